// SPDX-License-Identifier: BSD-3-Clause
// Blocks that one kernel pushes to the other ranks of a node (src/node/device/fan_out.hpp).
//
//     n puts of a block that become runnable at a time --> one launch
//     all n end at start + n bytes / rate + latency, or later where a receiver's port is taken
//
// The kernel stores to all receivers at a time, each at an n-th of its port's rate. So the port of a
// receiver has room for the kernels of its other peers meanwhile. It is taken for this block's bytes.
#include <algorithm>
#include <utility>

#include "simulation.hpp"

namespace bench::simulator {

using hier::Op;

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
    auto& kernels = r.kernels.kernels;
    const std::size_t first = r.kernels.head + (r.kernels.is_running ? 1 : 0);
    for (std::size_t k = kernels.size(); k > first && kernels[k - 1].runnable == now_; k--) {
        const Op& other = r.op(kernels[k - 1].puts[0]);
        if (other.from == op.from && other.slice.source == op.slice.source &&
            other.slice.length == op.slice.length) {
            kernels[k - 1].puts.push_back(i);
            return;
        }
    }
    r.last_issue = std::max(now_, r.last_issue) + from_seconds(machine_.copy_issue);
    kernels.push_back({now_, r.last_issue, {i}});
    wake_kernels(number);
}

void Simulation::wake_kernels(int number)
{
    Rank& r = rank(number);
    Rank::KernelQueue& q = r.kernels;
    if (q.is_woken || q.is_running || !r.has_entered || q.head == q.kernels.size()) {
        return;
    }
    q.is_woken = true;
    schedule(std::max(now_, q.kernels[q.head].issued), Kind::launch, number);
}

// A single put goes by a copy.
void Simulation::launch_kernel(int number)
{
    Rank& r = rank(number);
    Rank::KernelQueue& q = r.kernels;
    q.is_woken = false;
    const Rank::Kernel& next = q.kernels[q.head];
    if (next.puts.size() == 1) {
        r.queues[Rank::others].copies.push_back({next.puts[0], next.issued});
        q.head++;
        wake(number, Rank::others);
        wake_kernels(number);
        return;
    }
    q.is_running = true;
    schedule(kernel_end(number, next) + from_seconds(machine_.link_latency), Kind::stored, number);
}

Time Simulation::kernel_end(int number, const Rank::Kernel& kernel)
{
    Rank& r = rank(number);
    const Time start = std::max(now_, r.egress);
    const std::size_t bytes = r.op(kernel.puts[0]).slice.length;
    Time end = r.egress = start + duration(bytes * kernel.puts.size(), machine_.link_rate);
    for (const OpIndex i : kernel.puts) {
        Time& port = rank(r.op(i).peer).ingress;
        port = std::max(start, port) + duration(bytes, machine_.link_rate);
        end = std::max(end, port);
    }
    return end;
}

void Simulation::end_kernel(int number)
{
    Rank::KernelQueue& q = rank(number).kernels;
    const std::vector<OpIndex> puts = std::move(q.kernels[q.head++].puts);
    q.is_running = false;
    for (const OpIndex i : puts) {
        finish(number, i);
        pushed(number, i);
    }
    issue_rail(number);
    wake_kernels(number);
}

}  // namespace bench::simulator
