#include "transport/rail_board.hpp"

#include "transport/ucx_worker.hpp"

namespace hier {

RailBoard::RailBoard(ucp_context_h context, std::size_t ranks)
    : slots_(std::make_unique<RailSlot[]>(ranks + 1))
{
    check(memory_.map(context, slots_.get(), (ranks + 1) * sizeof(RailSlot), UCS_MEMORY_TYPE_HOST),
          "registering the rail's board");
}

}  // namespace hier
