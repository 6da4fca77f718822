// SPDX-License-Identifier: BSD-3-Clause
// Runs plans of an allgather in virtual time on a stated machine.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "calibrate.hpp"
#include "report.hpp"

namespace {

using namespace bench::simulator;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int complain(int status, const std::string& message)
{
    std::fprintf(stderr, "simulate: %s\n", message.c_str());
    return status;
}

int run(const Options& options)
{
    print_machine(options);
    for (const std::size_t bytes : options.sizes) {
        const auto results = run_all(options, bytes);
        print_table(options, bytes, results);
        for (const Result& result : results) {
            if (result.choice.chunk > 0) {
                print_footprint(options, bytes, result);
            }
        }
        if (!options.csv.empty()) {
            const std::string failure = append_csv(options, bytes, results);
            if (!failure.empty()) {
                return complain(exit_failed, failure);
            }
        }
    }
    return 0;
}

int run_calibration(const std::string& file)
{
    std::vector<Measurement> measurements;
    const std::string wrong = read_measurements(file, measurements);
    if (!wrong.empty()) {
        return complain(exit_usage, wrong);
    }
    print_calibration(measurements);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        Options options;
        const std::string wrong =
            parse_options(std::vector<std::string>(argv + 1, argv + argc), options);
        if (!wrong.empty()) {
            return complain(exit_usage, wrong);
        }
        if (options.help) {
            std::printf("%s", usage());
            return 0;
        }
        return options.calibrate.empty() ? run(options) : run_calibration(options.calibrate);
    } catch (const std::exception& e) {
        return complain(exit_failed, e.what());
    }
}
