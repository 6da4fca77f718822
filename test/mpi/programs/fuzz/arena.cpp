// SPDX-License-Identifier: BSD-3-Clause
#include "arena.hpp"

#include <cstring>

namespace hier_test::fuzz {

Arena::Loan Arena::borrow(unsigned kind, std::size_t bytes)
{
    for (std::size_t i = 0; i < idle_.size(); ++i) {
        const bool fits =
            idle_[i]->bytes() >= bytes && std::strcmp(idle_[i]->kind(), name_of_kind(kind)) == 0;
        if (fits && !random_.one_in(4)) {
            std::unique_ptr<Block> found = std::move(idle_[i]);
            idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
            return {*this, std::move(found)};
        }
    }
    const std::size_t reserve = random_.one_in(2) ? 0 : random_.between(0, 2 * bytes);
    return {*this, allocate(kind, bytes + reserve)};
}

void Arena::give_back(std::unique_ptr<Block> block)
{
    constexpr std::size_t max_idle = 8;
    constexpr std::size_t max_idle_bytes = std::size_t{64} << 20;
    idle_.push_back(std::move(block));
    while (idle_.size() > max_idle || held() > max_idle_bytes) {
        const auto which = static_cast<std::ptrdiff_t>(random_.between(0, idle_.size() - 1));
        idle_.erase(idle_.begin() + which);
    }
}

std::size_t Arena::held() const
{
    std::size_t bytes = 0;
    for (const auto& block : idle_) {
        bytes += block->bytes();
    }
    return bytes;
}

}  // namespace hier_test::fuzz
