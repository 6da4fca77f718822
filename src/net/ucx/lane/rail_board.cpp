// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/rail_board.hpp"

#include <sys/mman.h>

#include <new>

#include "net/ucx/ucx_worker.hpp"

namespace hier {

RailBoard::RailBoard(ucp_context_h context, std::size_t ranks)
{
    const std::size_t bytes = (ranks + 1) * sizeof(RailSlot);
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    slots_ = {static_cast<RailSlot*>(pages), Unmap{bytes}};
    check(memory_.map(context, pages, bytes, UCS_MEMORY_TYPE_HOST), "registering the rail's board");
}

void RailBoard::Unmap::operator()(RailSlot* slots) const { munmap(slots, bytes); }

}  // namespace hier
