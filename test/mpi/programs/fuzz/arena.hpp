// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "memory.hpp"

#include <utility>

namespace hier_test::fuzz {

// Allocations that cases use, keep and free at random, so that addresses come again with the same memory or with other
// memory behind them.
class Arena {
public:
    // Memory of one case, which goes back to the arena.
    class Loan {
    public:
        Loan(Arena& arena, std::unique_ptr<Block> block) : arena_(arena), block_(std::move(block))
        {
        }
        ~Loan() { arena_.give_back(std::move(block_)); }
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;
        Loan(Loan&&) = delete;
        Loan& operator=(Loan&&) = delete;
        Block* operator->() const { return block_.get(); }

    private:
        Arena& arena_;
        std::unique_ptr<Block> block_;
    };

    // The seed decides what is used again and what is freed, in the order of the calls.
    explicit Arena(std::uint64_t seed) : random_(seed) {}
    Loan borrow(unsigned kind, std::size_t bytes);
    // Frees everything that is not lent.
    void clear() { idle_.clear(); }

private:
    void give_back(std::unique_ptr<Block> block);
    std::size_t held() const;

    Random random_;
    std::vector<std::unique_ptr<Block>> idle_;
};

}  // namespace hier_test::fuzz
