// What this process can find out about itself.
#pragma once

#include "hier/topology.hpp"

namespace hier {

// The record of this process. What cannot be found out is -1 or empty: the record then only orders
// ranks less well.
PeerRecord discover_self();

}  // namespace hier
