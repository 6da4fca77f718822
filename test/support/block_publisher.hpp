// SPDX-License-Identifier: BSD-3-Clause
// A rank that publishes on its node, for tests of NodePublish.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node/node_setup.hpp"
#include "test/support/forked.hpp"
#include "test/support/node_traffic.hpp"

namespace hier::test {

struct CountCompletions final : Completions {
    void complete(std::uint32_t, Status status) override { done += status == Status::ok ? 1 : 0; }
    int done = 0;
};

inline std::byte value(int rank, std::uint64_t call, std::size_t at)
{
    return static_cast<std::byte>(static_cast<std::size_t>(rank) * 61 + call * 17 + at * 5 +
                                  at / 255);
}

// A rank with its blocks of `size` bytes, and the blocks that it gets from others. Displaced: what a rank
// publishes lies elsewhere on each rank, behind a gap.
class BlockPublisher {
public:
    BlockPublisher(ForkedRank& self, int intra = HIER_INTRA_AUTO)
        : BlockPublisher(self, make_transport(self, intra))
    {
    }
    BlockPublisher(ForkedRank& self, std::unique_ptr<NodeTransport> transport)
        : self_(self), transport_(std::move(transport))
    {
    }
    NodeTransport& transport() { return *transport_; }

    void displace() { are_displaced_ = true; }
    // `is_moved`: by the thread that starts the calls.
    void stay_in_background(bool is_moved)
    {
        is_in_background_ = true;
        is_moved_ = is_moved;
    }

    Status begin(std::uint64_t call, std::size_t blocks, std::size_t size, bool publish = true)
    {
        bind(call, blocks, size, publish);
        return transport_->begin(binding_);
    }

    void bind(std::uint64_t call, std::size_t blocks, std::size_t size, bool publish = true)
    {
        call_ = call;
        blocks_ = blocks;
        size_ = size;
        const std::size_t own = blocks * size, ranks = static_cast<std::size_t>(self_.size());
        displacements_.clear();
        for (std::size_t rank = 0; are_displaced_ && rank < ranks; rank++) {
            const std::size_t place = (rank + static_cast<std::size_t>(self_.rank())) % ranks;
            displacements_.push_back(gap + place * (own + gap));
        }
        receive_.assign(are_displaced_ ? ranks * (own + gap) + gap : ranks * own, std::byte{0});
        for (std::size_t i = 0; i < own; i++)
            receive_[at(self_.rank()) + i] = value_of(self_.rank(), i);
        const Region all{receive_.data(), receive_.size()};
        binding_ = {call, all, all};
        binding_.total = ranks * own;
        binding_.publish = publish;
        binding_.in_background = is_in_background_;
        binding_.is_moved_by_starter = is_moved_;
        binding_.homes = BlockHomes({}, own);
        binding_.displacements = displacements_;
    }

    Status put(std::size_t block) { return put_to(home(self_.rank()) + block * size_, block); }
    Status put_to(std::size_t to, std::size_t block)
    {
        return transport_->put(transfer(to, block));
    }

    Status put_small(std::size_t block)
    {
        Transfer small = transfer(home(self_.rank()) + block * size_, block);
        small.slice.length = 1;
        return transport_->put(small);
    }

    // The whole call at once, with one block; the caller checks what it has got.
    Status exchange(std::uint64_t call, std::size_t size, unsigned looks)
    {
        bind(call, 1, size);
        return transport_->exchange(binding_, {transfer(home(self_.rank()), 0), {}}, looks);
    }
    // The call that did not end in exchange(). `meanwhile` comes behind the put.
    std::string run_exchanged(const std::function<void()>& meanwhile = [] {})
    {
        change_own();
        if (failed(transport_->begin(binding_)) || put(0) != Status::ok) return "it does not begin";
        meanwhile();
        change_own();
        std::string fault = take_all();
        transport_->end();
        return fault;
    }
    std::string run_again()
    {
        if (failed(transport_->begin(binding_))) return "it does not begin";
        const Status status = put(0);
        if (failed(status)) return "a block is not taken";
        completions_.done = 0;
        std::string fault = take_all();
        if (fault.empty() && !gets_back(status == Status::in_progress ? 1 : 0))
            fault = "the block never comes back";
        transport_->end();
        return fault;
    }
    // Twice: the bytes are as before.
    void change_own()
    {
        for (std::size_t i = 0; i < size_; i++) receive_[at(self_.rank()) + i] ^= std::byte{255};
    }
    bool has_all() const
    {
        for (int peer = 0; peer < self_.size(); peer++)
            if (!is_right(peer, 0)) return false;
        return true;
    }

    // Completes the puts of so many blocks.
    bool gets_back(int lent)
    {
        return await([&] {
            (void)transport_->progress(completions_);
            return completions_.done == lent;
        });
    }

    // Returns "" or a fault. A block must be there as soon as it is counted.
    std::string take_all()
    {
        std::string fault;
        std::vector<std::uint32_t> seen(static_cast<std::size_t>(self_.size()));
        const bool have_all = await([&] {
            Status status = transport_->progress(completions_);
            bool all = true;
            for (int peer = 0; peer < self_.size(); peer++) {
                if (peer == self_.rank()) continue;
                std::uint32_t& known = seen[static_cast<std::size_t>(peer)];
                for (; known < transport_->arrived(peer); known++)
                    if (!is_right(peer, known)) fault = "a wrong byte";
                const Status entered = transport_->entered(peer);
                if (failed(entered)) status = entered;
                all = all && known == blocks_ && entered == Status::ok;
            }
            if (failed(status)) fault = to_string(status);
            return all || !fault.empty();
        });
        if (!have_all) fault = "not all blocks come";
        return fault.empty() ? "" : "call " + std::to_string(call_) + ": " + fault;
    }

    std::string run(std::uint64_t call, std::size_t blocks, std::size_t size)
    {
        if (failed(begin(call, blocks, size))) return "it does not begin";
        int lent = 0;
        for (std::size_t block = 0; block < blocks; block++) {
            const Status status = put(block);
            if (failed(status)) return "a block is not taken";
            lent += status == Status::in_progress ? 1 : 0;
        }
        completions_.done = 0;
        std::string fault = take_all();
        if (fault.empty() && !gets_back(lent)) fault = "a lent block never comes back";
        if (!transport_->idle()) fault = "done, but not idle";
        transport_->end();
        return fault;
    }

private:
    static constexpr std::size_t gap = 5;

    Transfer transfer(std::size_t to, std::size_t block) const
    {
        return {Op::every_peer, {home(self_.rank()) + block * size_, to, size_}, Place::receive,
                Place::receive, static_cast<std::uint32_t>(block + 1),           0};
    }
    std::size_t home(int rank) const { return static_cast<std::size_t>(rank) * blocks_ * size_; }
    std::size_t at(int rank) const
    {
        return displacements_.empty() ? home(rank) : displacements_[static_cast<std::size_t>(rank)];
    }
    std::byte value_of(int rank, std::size_t i) const { return value(rank, call_, i); }
    bool is_right(int peer, std::size_t block) const
    {
        for (std::size_t i = block * size_; i < (block + 1) * size_; i++)
            if (receive_[at(peer) + i] != value_of(peer, i)) return false;
        return true;
    }

    ForkedRank& self_;
    std::unique_ptr<NodeTransport> transport_;
    CountCompletions completions_;
    Binding binding_{};
    std::uint64_t call_ = 0;
    std::size_t blocks_ = 0, size_ = 0;
    bool are_displaced_ = false;
    bool is_in_background_ = false, is_moved_ = false;
    std::vector<std::size_t> displacements_;
    std::vector<std::byte> receive_;
};

}  // namespace hier::test
