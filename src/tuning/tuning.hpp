// SPDX-License-Identifier: BSD-3-Clause
// A tuning file: what bench/tune has measured on a machine. It takes the place of figures that the
// cost model assumes, and of its choices for the layouts that were measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coll/common/choice.hpp"
#include "topology/discovery.hpp"

namespace hier {

// How blocks of up to `up_to` bytes go. What is not given is left to the cost model.
struct TunedSize {
    std::size_t up_to = 0;
    std::optional<Route> route = {};
    std::size_t chunks = 0;  // into which a block is cut between nodes; 0: not given
    std::optional<bool> eager = {};
    std::optional<bool> publish = {};
};

// A layout that was measured: ranks of a node side by side, as many on each node.
struct TunedLayout {
    enum class Network { none, tcp, rdma };

    std::string collective;
    int nodes = 1;
    int ranks_per_node = 1;
    bool is_on_devices = false;
    Network network = Network::none;  // none: a single node
    bool is_virtual = false;          // hosts cut by coll_hier_ranks_per_node
    // Below so many bytes of all ranks together the fallback module is faster.
    std::optional<std::size_t> min_bytes;
    std::vector<TunedSize> sizes;  // by up_to, ascending

    bool is_of_layout(const TunedLayout& other) const
    {
        return collective == other.collective && nodes == other.nodes &&
               ranks_per_node == other.ranks_per_node && is_on_devices == other.is_on_devices &&
               network == other.network && is_virtual == other.is_virtual;
    }
    // nullptr: no block of this size was measured.
    const TunedSize* find(std::size_t bytes) const;
};

struct Tuning {
    std::string path;
    Machine machine;
    // GB/s; 0: not measured. Of a network device over TCP, in each direction; of a rank's copies to
    // the others of its node, by its core or by copy engines.
    double tcp_rate = 0, core_rate = 0, engine_rate = 0;
    std::vector<TunedLayout> layouts;
    std::uint64_t digest = 0;  // of the file's bytes; never 0

    const TunedLayout* find(const TunedLayout& layout) const;
};

// Pure. nullopt: the text is not right, and `fault` says where ("line 7: ...").
std::optional<Tuning> parse_tuning(const std::string& text, std::string& fault);

// Reads the file that the process uses. "" or nullptr: none. False: it is broken, which has been
// logged. The file is read once. Another path later is ignored.
bool load_tuning(const char* path);
// nullptr: there is no file.
const Tuning* loaded_tuning();

}  // namespace hier
