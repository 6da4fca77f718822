#include "machine.hpp"

#include <algorithm>
#include <numeric>

namespace bench::simulator {

// P ranks, G of them on the node, S bytes each. (P-G) S has to enter by NICs. The node's ranks need
// G (P-1) S in all, by NIC or by link: no split between the two is faster than their sum.
Bound lower_bound(const std::vector<int>& ranks_of, std::size_t bytes, const Machine& machine)
{
    const int ranks = std::accumulate(ranks_of.begin(), ranks_of.end(), 0);
    Bound bound;
    for (const int here : ranks_of) {
        const auto size = static_cast<double>(bytes);
        const double entering = (ranks - here) * size;
        const double needed = here * (ranks - 1.0) * size;
        const double nics = entering > 0 ? machine.nics_of(here) * machine.nic_rate : 0;
        const double links = machine.is_host
                                 ? std::min(here * machine.core_rate, machine.memory_rate)
                                 : here * machine.link_rate;
        if (entering > 0) {
            bound.network = std::max(bound.network, entering / nics);
        }
        bound.links = std::max(bound.links, needed / (nics + links));
    }
    return bound;
}

}  // namespace bench::simulator
