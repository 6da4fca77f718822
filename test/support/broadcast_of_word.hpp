// SPDX-License-Identifier: BSD-3-Clause
// A collective that only tests have: rank 0 gives all others a word. The ranks are nodes of their
// own. Nothing below src/coll knows this collective.
#pragma once

#include <cstdint>
#include <memory>

#include "coll/common/collective.hpp"

namespace hier::test {

class BroadcastOfWord final : public Collective {
public:
    static constexpr std::size_t bytes = sizeof(std::uint64_t);

    explicit BroadcastOfWord(const Topology& topology) : topology_(topology) {}
    static std::unique_ptr<Collective> make(const Topology& topology, const Rates&)
    {
        return std::make_unique<BroadcastOfWord>(topology);
    }

    const char* name() const override { return "broadcast of a word"; }
    bool eligible(std::size_t size) const override { return size == bytes; }
    Choice choose(std::size_t, const Constraints&) const override
    {
        return {.chunk = bytes, .depth = 2};
    }
    Cost cost(std::size_t, const Constraints&) const override { return {1e-6, 2e-6}; }
    Plan plan(const PlanInput& input) const override
    {
        Plan plan;
        plan.depth = input.choice.depth;
        if (input.rank != 0) {
            (void)plan.append(op(Op::Kind::announce, 0));
            Op await = op(Op::Kind::await_data, 0);
            await.count = 1;
            (void)plan.append(await);
            return plan;
        }
        Op copy = op(Op::Kind::copy, 0);
        copy.level = Level::node;
        copy.to = Place::receive;
        copy.slice = {0, 0, bytes};
        (void)plan.append(copy);
        for (int peer = 1; peer < topology_.size(); peer++) put_to(peer, plan);
        return plan;
    }

private:
    static Op op(Op::Kind kind, int peer)
    {
        Op op{};
        op.kind = kind;
        op.level = Level::rail;
        op.from = Place::send;
        op.peer = peer;
        return op;
    }
    static void put_to(int peer, Plan& plan)
    {
        const auto announced = plan.append(op(Op::Kind::await_announced, peer));
        Op put = op(Op::Kind::put, peer);
        put.count = 1;
        put.slice = {0, 0, bytes};
        const auto is_put = plan.append(put, {announced});
        (void)plan.append(op(Op::Kind::drain, peer), {is_put});
    }

    const Topology& topology_;
};

}  // namespace hier::test
