#include "report.hpp"

#include "environment.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace bench {
namespace {

constexpr double us = 1e6;
constexpr const char* csv_header =
    "date,host,kernel,mpi,ucx,commit,label,coll,nodes,ranks,layout,bytes_per_rank,in_place,"
    "iterations,min_us,median_us,p99_us,mean_us,osu_us,bytes_per_second,link_bytes_per_second,"
    "bound_us,ratio,calls,validated,served_by_hier\n";

// RFC 4180: a field with a comma, a quote or a line end is quoted.
std::string quoted(const std::string& field)
{
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
        return field;
    }
    std::string text = "\"";
    for (const char c : field) {
        text += c == '"' ? "\"\"" : std::string(1, c);
    }
    return text + '"';
}

std::string fixed(double value, int digits)
{
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

std::string known(double value, int digits) { return value > 0.0 ? fixed(value, digits) : ""; }

std::string column(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

Report::Report(const Options& options, const Layout& layout, const Link& link)
    : options_(options), layout_(layout), link_(link)
{
}

std::string Report::open()
{
    if (options_.csv.empty()) {
        return "";
    }
    csv_.reset(std::fopen(options_.csv.c_str(), "a"));
    if (csv_ == nullptr) {
        return "--csv " + options_.csv + ": " + std::strerror(errno);
    }
    std::fseek(csv_.get(), 0, SEEK_END);
    if (std::ftell(csv_.get()) == 0) {
        std::fputs(csv_header, csv_.get());
    }
    return "";
}

void Report::print_header() const
{
    std::printf("# %s, kernel %s, %s, UCX %s, commit %s\n", host_name().c_str(),
                kernel_release().c_str(), mpi_version().c_str(), column(ucx_version()).c_str(),
                commit().c_str());
    std::printf("# %d ranks on %d node(s) (%s), coll %s%s\n", layout_.ranks(), layout_.nodes(),
                layout_.text().c_str(), column(coll_selection()).c_str(),
                options_.in_place ? ", in place" : "");
    std::printf("# link: %s MB/s a node and direction (%s)\n",
                column(known(link_.rate / 1e6, 2)).c_str(), link_.source.c_str());
    std::printf("%10s %7s %11s %11s %11s %11s %9s %11s %7s %6s %7s\n", "bytes/rank", "iter",
                "min us", "median us", "p99 us", "mean us", "MB/s/node", "bound us", "ratio",
                "valid", "hier");
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
        "%10zu %7ld %11.1f %11.1f %11.1f %11.1f %9s %11s %7s %6ld %7s\n", m.bytes, m.iterations,
        m.slowest_rank.min * us, m.slowest_rank.median * us, m.slowest_rank.p99 * us,
        m.slowest_rank.mean * us, column(known(derived.bytes_per_second / 1e6, 1)).c_str(),
        column(known(derived.bound * us, 1)).c_str(), column(known(derived.ratio, 3)).c_str(),
        m.validated, m.served ? std::to_string(*m.served).c_str() : "-");
    std::fflush(stdout);
}

std::string Report::row(const Measurement& m, const Derived& derived) const
{
    const std::array<std::string, 26> fields{
        utc_now(),
        host_name(),
        kernel_release(),
        mpi_version(),
        ucx_version(),
        commit(),
        options_.label,
        coll_selection(),
        std::to_string(layout_.nodes()),
        std::to_string(layout_.ranks()),
        layout_.text(),
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
    };
    std::string line;
    for (const std::string& field : fields) {
        line += (&field == &fields.front() ? "" : ",") + quoted(field);
    }
    return line + '\n';
}

std::string Report::add(const Measurement& measurement) const
{
    const Derived derived = derive(measurement);
    print(measurement, derived);
    if (csv_ == nullptr) {
        return "";
    }
    const std::string line = row(measurement, derived);
    if (std::fputs(line.c_str(), csv_.get()) < 0 || std::fflush(csv_.get()) != 0) {
        return "--csv " + options_.csv + ": " + std::strerror(errno);
    }
    return "";
}

}  // namespace bench
