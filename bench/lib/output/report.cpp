// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include "bench/lib/machine/environment.hpp"
#include "origin.hpp"

#include <cstdio>
#include <utility>
#include <vector>

namespace bench {
namespace {

constexpr double us = 1e6;
// Behind the columns of origin().
constexpr const char* csv_columns =
    ",bytes_per_rank,in_place,"
    "iterations,min_us,median_us,p99_us,mean_us,osu_us,bytes_per_second,link_bytes_per_second,"
    "bound_us,ratio,calls,validated,served_by_hier,call,memory,gpu_runtime,total_bytes,loop_us,"
    "fresh,buffers";

}  // namespace

Report::Report(const Options& options, const Layout& layout, const Link& link, Subject subject)
    : options_(options), layout_(layout), link_(link), subject_(std::move(subject))
{
}

std::string Report::open()
{
    return csv_.open(options_.csv, origin_columns + std::string(csv_columns));
}

void Report::print_header() const
{
    print_versions();
    const std::string turns =
        options_.buffers > 1 ? ", " + std::to_string(options_.buffers) + " pairs of buffers" : "";
    std::printf("# %d ranks on %d node(s) (%s), coll %s%s%s%s\n", layout_.ranks(), layout_.nodes(),
                layout_.text().c_str(), or_dash(coll_selection()).c_str(),
                options_.in_place ? ", in place" : "", options_.fresh ? ", fresh buffers" : "",
                turns.c_str());
    std::printf("# %s, memory %s%s\n", subject_.call.c_str(), memory_text(options_).c_str(),
                subject_.gpu_runtime.empty() ? "" : (", " + subject_.gpu_runtime).c_str());
    print_link(link_);
    std::printf("%10s %7s %11s %11s %11s %11s %9s %11s %7s %6s %7s%s\n", "bytes/rank", "iter",
                "min us", "median us", "p99 us", "mean us", "MB/s/node", "bound us", "ratio",
                "valid", "hier", options_.loop ? "     loop us" : "");
    std::fflush(stdout);
}

Report::Derived Report::derive(const Measurement& measurement) const
{
    const double entering = layout_.bytes_entering(measurement.bytes);
    const double median = measurement.slowest_rank.median;
    Derived derived{};
    derived.bytes_per_second = median > 0.0 ? entering / median : 0.0;
    derived.bound = link_.rate > 0.0 ? entering / link_.rate : 0.0;
    derived.ratio = derived.bound > 0.0 ? median / derived.bound : 0.0;
    return derived;
}

void Report::print(const Measurement& m, const Derived& derived) const
{
    std::printf(
        "%10zu %7ld %11.1f %11.1f %11.1f %11.1f %9s %11s %7s %6ld %7s", m.bytes, m.iterations,
        m.slowest_rank.min * us, m.slowest_rank.median * us, m.slowest_rank.p99 * us,
        m.slowest_rank.mean * us, or_dash(known(derived.bytes_per_second / 1e6, 1)).c_str(),
        or_dash(known(derived.bound * us, 1)).c_str(), or_dash(known(derived.ratio, 3)).c_str(),
        m.validated, m.served ? std::to_string(*m.served).c_str() : "-");
    if (options_.loop) {
        std::printf(" %11.1f", m.loop * us);
    }
    std::printf("\n");
    std::fflush(stdout);
}

std::string Report::write(const Measurement& m, const Derived& derived) const
{
    std::vector<std::string> fields = origin(options_, layout_);
    fields.insert(fields.end(),
                  {
                      std::to_string(m.bytes),
                      options_.in_place ? "yes" : "no",
                      std::to_string(m.iterations),
                      fixed(m.slowest_rank.min * us, 3),
                      fixed(m.slowest_rank.median * us, 3),
                      fixed(m.slowest_rank.p99 * us, 3),
                      fixed(m.slowest_rank.mean * us, 3),
                      fixed(m.mean_of_ranks * us, 3),
                      known(derived.bytes_per_second, 0),
                      known(link_.rate, 0),
                      known(derived.bound * us, 3),
                      known(derived.ratio, 4),
                      std::to_string(m.calls),
                      std::to_string(m.validated),
                      m.served ? std::to_string(*m.served) : "",
                      subject_.call,
                      memory_text(options_),
                      subject_.gpu_runtime,
                      std::to_string(m.bytes * static_cast<std::size_t>(layout_.ranks())),
                      known(m.loop * us, 3),
                      options_.fresh ? "yes" : "no",
                      std::to_string(options_.buffers),
                  });
    return csv_.add(fields);
}

std::string Report::add(const Measurement& measurement) const
{
    const Derived derived = derive(measurement);
    print(measurement, derived);
    return write(measurement, derived);
}

}  // namespace bench
