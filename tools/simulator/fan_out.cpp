// SPDX-License-Identifier: BSD-3-Clause
// Blocks that kernels push to the other ranks of a node (src/node/device/copy_engines.cpp).
//
//     n puts of a block that become runnable at a time --> a block that waits
//     all blocks that wait, up to FanOut::max_blocks   --> one launch; two kernels are on their way at most
//     all puts of a kernel end at start + bytes / rate + latency, or later where a receiver's port is taken
//
// Kernels of a rank follow one another, `kernel_gap` apart. A kernel takes ports when it begins. It stores
// to all receivers at a time, each at a part of its port's rate. So the port of a receiver has room for
// the kernels of its other peers meanwhile. It is taken for these bytes.
#include <algorithm>
#include <map>
#include <utility>

#include "hier/gpu_fan_out.hpp"
#include "simulation.hpp"

namespace bench::simulator {

using hier::Op;
using hier::gpu::FanOut;

bool Simulation::may_fan_out(int number, const Op& op) const
{
    return !machine_.is_host && op.peer != Op::every_peer && op.slice.length <= machine_.fan_out &&
           topology_.ranks_on(topology_.node_of(number)).size() > 2;
}

void Simulation::enqueue_push(int number, OpIndex i)
{
    Rank& r = rank(number);
    const Op& op = r.op(i);
    if (!may_fan_out(number, op)) {
        enqueue_copy(number, i);
        return;
    }
    auto& waiting = r.kernels.waiting;
    for (auto block = waiting.rbegin(); block != waiting.rend() && block->runnable == now_;
         ++block) {
        const Op& other = r.op(block->puts[0]);
        if (other.from == op.from && other.slice.source == op.slice.source &&
            other.slice.length == op.slice.length) {
            block->puts.push_back(i);
            return;
        }
    }
    waiting.push_back({now_, {i}});
    wake_kernels(number);
}

void Simulation::wake_kernels(int number)
{
    constexpr std::size_t max_on_their_way = 2;
    Rank& r = rank(number);
    Rank::KernelQueue& q = r.kernels;
    if (q.is_woken || !r.has_entered || q.waiting.empty() ||
        q.on_their_way.size() == max_on_their_way) {
        return;
    }
    q.is_woken = true;
    schedule(now_, Kind::launch, number);
}

// A single put goes by a copy.
void Simulation::launch_kernel(int number)
{
    Rank& r = rank(number);
    Rank::KernelQueue& q = r.kernels;
    q.is_woken = false;
    std::vector<OpIndex> puts;
    for (std::size_t blocks = 0; !q.waiting.empty() && blocks < FanOut::max_blocks;) {
        const std::vector<OpIndex>& block = q.waiting.front().puts;
        if (block.size() == 1) {
            enqueue_copy(number, block[0]);
        } else if (puts.size() + block.size() > FanOut::max_places_in_all) {
            break;
        } else {
            puts.insert(puts.end(), block.begin(), block.end());
            blocks++;
        }
        q.waiting.pop_front();
    }
    if (!puts.empty()) {
        q.on_their_way.push_back({begin_of_issued(r), std::move(puts)});
        if (q.on_their_way.size() == 1) schedule_kernel(number);
    }
    wake_kernels(number);
}

// The first kernel that is on its way.
void Simulation::schedule_kernel(int number)
{
    const Rank::KernelQueue& q = rank(number).kernels;
    schedule(std::max(q.on_their_way.front().begin, q.free), Kind::begins, number);
}

void Simulation::begin_kernel(int number)
{
    Rank& r = rank(number);
    const Time begin = std::max(now_, r.egress);
    std::map<int, std::size_t> bytes;  // by receiver
    std::size_t sum = 0;
    for (const OpIndex i : r.kernels.on_their_way.front().puts) {
        bytes[r.op(i).peer] += r.op(i).slice.length;
        sum += r.op(i).slice.length;
    }
    Time end = r.egress = begin + duration(sum, machine_.link_rate);
    for (const auto& [peer, its] : bytes) {
        Time& port = rank(peer).ingress;
        port = std::max(begin, port) + duration(its, machine_.link_rate);
        end = std::max(end, port);
    }
    schedule(end + from_seconds(machine_.link_latency), Kind::stored, number);
}

void Simulation::end_kernel(int number)
{
    Rank::KernelQueue& q = rank(number).kernels;
    const std::vector<OpIndex> puts = std::move(q.on_their_way.front().puts);
    q.on_their_way.pop_front();
    q.free = now_ + from_seconds(machine_.kernel_gap);
    if (!q.on_their_way.empty()) schedule_kernel(number);
    for (const OpIndex i : puts) {
        finish(number, i);
        pushed(number, i);
    }
    issue_rail(number);
    wake_kernels(number);
}

}  // namespace bench::simulator
