// The command line of bench/allgather.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

enum class Validate { none, few, all };
enum class LinkSource { absent, measured, given };
enum class MemoryKind { host, device };

struct Options {
    std::vector<std::size_t>
        sizes;             // bytes a rank, ascending as given; empty: measure the link only
    long iterations = 0;   // timed calls a size; 0: chosen by size and by seconds
    double seconds = 2.0;  // budget of the timed loop of one size when iterations is 0
    long warmup = -1;      // untimed calls a size; -1: chosen by size
    Validate validate = Validate::few;
    bool in_place = false;
    MemoryKind memory = MemoryKind::host;
    std::string csv;  // empty: no file
    std::string label;
    LinkSource link = LinkSource::absent;
    double link_rate = 0.0;     // bytes per second, node and direction, when given
    double link_seconds = 2.0;  // length of each timed stream when measured
    int ranks_per_node = 0;  // 0: nodes are host names; k: each host is cut into nodes of k ranks
    bool help = false;
};

struct ParsedOptions {
    Options options;
    std::string error;  // empty: options are valid
};

// A pure function of its arguments, so that every rank comes to the same verdict on its own.
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

[[nodiscard]] const char* usage();

}  // namespace bench
