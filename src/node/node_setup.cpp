// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_setup.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "hier/hier.h"

namespace hier {
namespace {

// A place for the shared memory, and what goes into it. The next one is tried where this one fails.
struct Attempt {
    SharedMemory (*create)(std::size_t bytes);
    bool has_areas;
    const char* announcement;  // when the one before has failed
};
constexpr Attempt attempts[] = {
    {SharedMemory::create_anonymous, true, ""},
    {SharedMemory::create_named, true, "trying /dev/shm"},
    {SharedMemory::create_anonymous, false, "no cells for small blocks: all of them by CMA"},
    {SharedMemory::create_named, false, "trying /dev/shm"},
};

// What a rank tells the others of its node.
struct Told {
    SharedMemory::Address memory;  // from node rank 0
    std::uint32_t is_made;         // the same
    std::uint32_t is_cma_slow;     // the same
    std::uint32_t reaches_all;     // by CMA
    std::uint32_t reserved;
};
static_assert(std::has_unique_object_representations_v<Told>);

class NodeSetup {
public:
    NodeSetup(const Group& group, const NodeRanks& ranks, int intra)
        : group_(group), ranks_(ranks), intra_(intra)
    {
    }

    // Equal on all ranks.
    bool allows(const Attempt& attempt) const
    {
        const bool needs_no_areas = intra_ == HIER_INTRA_CMA && !ranks_.have_devices;
        if (is_cma_missing_) return false;
        return attempt.has_areas ? !needs_no_areas : needs_no_areas || is_cma_enough_;
    }
    std::unique_ptr<NodeTransport> make(const Attempt& attempt)
    {
        NodeNeeds needs{.ranks = group_.size(),
                        .blocks = ranks_.team,
                        .have_devices = ranks_.have_devices,
                        .share_gpus = ranks_.share_gpus,
                        .gpu_turns = ranks_.gpu_turns,
                        .have_kernels = ranks_.have_kernels,
                        .by_cpu = ranks_.max_by_cpu > 0,
                        .share_cores = ranks_.share_cores,
                        .has_areas = attempt.has_areas};
        std::unique_ptr<NodeSegment> segment;
        if (needs.ranks > 1) segment = share(attempt, needs);
        segment_ = segment.get();
        return std::make_unique<NodeTransport>(group_, ranks_, needs, std::move(segment));
    }
    // All ranks have mapped the memory of the last make().
    void withdraw()
    {
        if (segment_ != nullptr) segment_->withdraw();
    }

private:
    std::unique_ptr<NodeSegment> share(const Attempt& attempt, NodeNeeds& needs)
    {
        const std::string refusal = intra_ == HIER_INTRA_SHM ? "" : try_cma(ranks_.processes);
        const bool reaches_all = intra_ != HIER_INTRA_SHM && refusal.empty();
        needs.is_cma_slow = reaches_all && cma_start() >= NodeNeeds::slow_cma_start;
        SharedMemory memory;
        // Rank 0 supposes that the others reach all if it does. Seldom it has to start again.
        std::vector<Told> told = tell(attempt, needs, reaches_all, reaches_all, memory);
        const auto refused = std::find_if(told.begin(), told.end(),
                                          [](const Told& t) { return t.reaches_all == 0; });
        const auto first = refused - told.begin();
        const bool has_cma = refused == told.end();
        decide(has_cma, refusal.empty()
                            ? format("node rank %d was refused", static_cast<int>(first))
                            : refusal);
        if (!has_cma && first > 0) told = tell(attempt, needs, false, reaches_all, memory);
        needs.has_cma = has_cma;
        needs.is_cma_slow = told[0].is_cma_slow != 0;
        if (told[0].is_made == 0)
            throw group_.rank() == 0 ? SetupError(cause_)
                                     : KnownFailure("node rank 0 has no shared memory");
        const NodeLayout layout(needs);
        if (group_.rank() != 0) memory = SharedMemory::open(told[0].memory, layout.bytes);
        return std::make_unique<NodeSegment>(group_.rank(), layout, std::move(memory));
    }
    // Even if there is no memory the ranks tell of CMA, which decides what else can be tried.
    std::vector<Told> tell(const Attempt& attempt, NodeNeeds& needs, bool has_cma, bool reaches_all,
                           SharedMemory& memory)
    {
        needs.has_cma = has_cma;
        bool is_made = false;
        if (group_.rank() == 0) {
            try {
                memory = attempt.create(NodeLayout(needs).bytes);
                is_made = true;
            } catch (const SetupError& e) {
                cause_ = e.what();
            }
        }
        return group_.collect(Told{memory.address(), is_made ? 1U : 0U, needs.is_cma_slow ? 1U : 0U,
                                   reaches_all ? 1U : 0U, 0});
    }
    void decide(bool has_cma, const std::string& refusal)
    {
        is_cma_enough_ = has_cma && !ranks_.have_devices;
        if (has_cma || intra_ == HIER_INTRA_SHM) return;
        is_cma_missing_ = intra_ == HIER_INTRA_CMA;
        if (is_cma_missing_)
            throw SetupError("coll_hier_intra is cma, but the kernel refuses it: " + refusal);
        if (!std::exchange(is_refusal_told_, true))
            log(HIER_LOG_INFO,
                "no copies between processes (%s): using shared memory inside the node",
                refusal.c_str());
    }

    const Group& group_;
    const NodeRanks& ranks_;
    int intra_;
    NodeSegment* segment_ = nullptr;
    std::string cause_;  // there is no memory
    bool is_cma_enough_ = false;
    bool is_cma_missing_ = false;
    bool is_refusal_told_ = false;
};

}  // namespace

std::unique_ptr<NodeTransport> make_node_transport(const Group& group, const NodeRanks& ranks,
                                                   int intra)
{
    NodeSetup setup(group, ranks, intra);
    const auto next = [&](const Attempt* from) {
        return std::find_if(from, std::end(attempts), [&](auto& a) { return setup.allows(a); });
    };
    for (const Attempt* attempt = next(std::begin(attempts));;) {
        try {
            std::unique_ptr<NodeTransport> made;
            group.agree("setting up the node level", [&] { made = setup.make(*attempt); });
            setup.withdraw();
            return made;
        } catch (const SetupError& e) {  // on all ranks
            attempt = next(attempt + 1);
            if (attempt == std::end(attempts)) throw;
            log(HIER_LOG_INFO, "%s: %s", e.what(), attempt->announcement);
        }
    }
}

}  // namespace hier
