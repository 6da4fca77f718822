// SPDX-License-Identifier: BSD-3-Clause
// Counts what is alive, and reports what is left when the process exits.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "calls.hpp"
#include "hip_sim.h"
#include "memory.hpp"
#include "stream.hpp"
#include "virtual.hpp"

using namespace hip_sim;

namespace {

constexpr const char* all_live[] = {"allocations", "pinned",  "registrations",
                                    "mappings",    "streams", "events",
                                    "segments",    "handles", "reservations"};

// Runs after the destructors of everything that is linked with this library.
__attribute__((destructor)) void write_report()
{
    if (!is_used() || options().report.empty()) return;
    // Processes of two virtual nodes may have the same number.
    auto path = options().report + "/" + std::to_string(getpid()) + ".XXXXXX";
    const int descriptor = mkstemp(path.data());
    std::FILE* file = descriptor >= 0 ? fdopen(descriptor, "w") : nullptr;
    if (file == nullptr) {
        std::fprintf(stderr, "hip_sim: cannot write %s\n", path.c_str());
        return;
    }
    std::fprintf(file, "calls %" PRIu64 "\n", totals.calls.load());
    std::fprintf(file, "copies %" PRIu64 "\n", totals.copies.load());
    std::fprintf(file, "kernels %" PRIu64 "\n", totals.kernels.load());
    std::fprintf(file, "by_graphs %" PRIu64 "\n", totals.by_graphs.load());
    for (const char* what : all_live)
        std::fprintf(file, "live %s %" PRIu64 "\n", what, hip_sim_live(what));
    std::fclose(file);
}

}  // namespace

std::uint64_t hip_sim_live(const char* what)
{
    const std::string_view name = what;
    if (name == "allocations")
        return count(Kind::device) + count(Kind::pool) + count(Kind::managed);
    if (name == "pinned") return count(Kind::pinned);
    if (name == "pinned bytes") return bytes_of(Kind::pinned) + bytes_of(Kind::registered);
    if (name == "registrations") return count(Kind::registered);
    if (name == "mappings") return count(Kind::mapped);
    if (name == "streams") return live_streams();
    if (name == "events") return live_events();
    if (name == "segments") return count(Kind::segment);
    if (name == "handles") return live_handles();
    if (name == "reservations") return live_reservations();
    give_up("hip_sim_live(\"%s\"): no such thing", what);
}
