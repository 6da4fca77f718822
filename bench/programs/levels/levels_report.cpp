// SPDX-License-Identifier: BSD-3-Clause
#include "levels_report.hpp"

#include "bench/lib/machine/environment.hpp"
#include "bench/lib/output/origin.hpp"

#include <cstdio>
#include <utility>
#include <vector>

namespace bench {
namespace {

constexpr double us = 1e6;
// Behind the columns of origin().
constexpr const char* csv_columns =
    ",bytes_per_rank,total_bytes,"
    "in_place,memory,gpu_runtime,iterations,network_us,links_us,together_us,together_p99_us,"
    "overlap,link_bytes_per_second,bound_us,ratio,calls,validated,served_by_hier";

std::string median_us(const PartFigures& part, int digits)
{
    return known(part.slowest_rank.median * us, digits);
}

double ratio(double time, double bound) { return bound > 0.0 ? time / bound : 0.0; }

}  // namespace

LevelsReport::LevelsReport(const Options& options, const Layout& layout, const Link& link,
                           std::string gpu_runtime)
    : options_(options), layout_(layout), link_(link), gpu_runtime_(std::move(gpu_runtime))
{
}

std::string LevelsReport::open()
{
    return csv_.open(options_.csv, origin_columns + std::string(csv_columns));
}

void LevelsReport::print_header() const
{
    print_versions();
    std::printf("# %d ranks on %d node(s) (%s), coll %s%s, memory %s%s\n", layout_.ranks(),
                layout_.nodes(), layout_.text().c_str(), or_dash(coll_selection()).c_str(),
                options_.in_place ? ", in place" : "", memory_text(options_).c_str(),
                gpu_runtime_.empty() ? "" : (", " + gpu_runtime_).c_str());
    print_link(link_);
    std::printf("%10s %7s %11s %11s %11s %7s %11s %7s %6s %7s\n", "bytes/rank", "iter",
                "network us", "links us", "together us", "overlap", "bound us", "ratio", "valid",
                "hier");
    std::fflush(stdout);
}

double LevelsReport::bound(const LevelsMeasurement& m) const
{
    return link_.rate > 0.0 ? layout_.bytes_entering(m.bytes) / link_.rate : 0.0;
}

void LevelsReport::print(const LevelsMeasurement& m) const
{
    const auto served = m.served();
    std::printf("%10zu %7ld %11s %11s %11s %7s %11s %7s %6ld %7s\n", m.bytes, m.iterations,
                or_dash(median_us(m.network, 1)).c_str(), or_dash(median_us(m.links, 1)).c_str(),
                or_dash(median_us(m.together, 1)).c_str(), or_dash(known(m.overlap(), 3)).c_str(),
                or_dash(known(bound(m) * us, 1)).c_str(),
                or_dash(known(ratio(m.together.slowest_rank.median, bound(m)), 3)).c_str(),
                m.validated, served ? std::to_string(*served).c_str() : "-");
    std::fflush(stdout);
}

std::string LevelsReport::write(const LevelsMeasurement& m) const
{
    const auto served = m.served();
    std::vector<std::string> fields = origin(options_, layout_);
    fields.insert(fields.end(),
                  {
                      std::to_string(m.bytes),
                      std::to_string(m.bytes * static_cast<std::size_t>(layout_.ranks())),
                      options_.in_place ? "yes" : "no",
                      memory_text(options_),
                      gpu_runtime_,
                      std::to_string(m.iterations),
                      median_us(m.network, 3),
                      median_us(m.links, 3),
                      median_us(m.together, 3),
                      fixed(m.together.slowest_rank.p99 * us, 3),
                      known(m.overlap(), 4),
                      known(link_.rate, 0),
                      known(bound(m) * us, 3),
                      known(ratio(m.together.slowest_rank.median, bound(m)), 4),
                      std::to_string(m.calls),
                      std::to_string(m.validated),
                      served ? std::to_string(*served) : "",
                  });
    return csv_.add(fields);
}

std::string LevelsReport::add(const LevelsMeasurement& measurement) const
{
    print(measurement);
    return write(measurement);
}

}  // namespace bench
