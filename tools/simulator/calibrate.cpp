// SPDX-License-Identifier: BSD-3-Clause
#include "calibrate.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "bench/lib/options/quantity.hpp"

namespace bench::simulator {
namespace {

std::string parse_line(const std::string& line, Measurement& measurement)
{
    std::istringstream in(line);
    std::string layout, bytes, measured, options;
    std::getline(in, layout, ',');
    std::getline(in, bytes, ',');
    std::getline(in, measured, ',');
    std::getline(in, options, ',');
    std::getline(in, measurement.source);
    const auto microseconds = parse_positive(measured);
    if (!microseconds) {
        return "'" + measured + "' is no time in us";
    }
    measurement.seconds = *microseconds * 1e-6;
    measurement.machine = options;
    std::vector<std::string> arguments{"--layout",  layout,  "--bytes",      bytes,
                                       "--route",   "model", "--algorithms", "hier",
                                       "--fan-out", "0"};  // copies alone were measured
    std::istringstream words(options);
    for (std::string word; words >> word;) {
        arguments.push_back(word);
    }
    return parse_options(arguments, measurement.options);
}

}  // namespace

std::string read_measurements(const std::string& file, std::vector<Measurement>& measurements)
{
    std::ifstream in(file);
    if (!in) {
        return "--calibrate " + file + ": " + std::strerror(errno);
    }
    std::string line;
    bool has_header = false;
    for (int number = 1; std::getline(in, line); number++) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        if (!has_header) {
            has_header = true;
            continue;
        }
        Measurement measurement;
        const std::string wrong = parse_line(line, measurement);
        if (!wrong.empty()) {
            return file + ":" + std::to_string(number) + ": " + wrong;
        }
        measurements.push_back(std::move(measurement));
    }
    return "";
}

}  // namespace bench::simulator
