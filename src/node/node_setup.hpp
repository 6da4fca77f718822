// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node make their transport together.
#pragma once

#include <memory>

#include "node/node_transport.hpp"
#include "team/group.hpp"

namespace hier {

// Collective over the node's group. Throws on all its ranks or on none. Takes two exchanges, and two
// more if ranks use devices. `intra` is a HIER_INTRA_*.
std::unique_ptr<NodeTransport> make_node_transport(const Group& group, const NodeRanks& ranks,
                                                   int intra);

}  // namespace hier
