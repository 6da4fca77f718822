// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <cmath>

#include "net/stripes.hpp"

namespace bench::simulator {

using hier::Level;
using hier::Op;
using hier::Place;

Time from_seconds(double seconds) { return std::llround(seconds * 1e12); }

Time duration(std::size_t bytes, double rate)
{
    return std::max<Time>(1, from_seconds(static_cast<double>(bytes) / rate));
}

std::size_t Simulation::nic_of(int number, int sender, const Op& put) const
{
    const int node = topology_.node_of(number);
    const auto here = static_cast<int>(topology_.ranks_on(node).size());
    const auto lanes = static_cast<std::size_t>(machine_.lanes);
    const std::size_t members = topology_.ranks_on_rail(topology_.rail_of(sender)).size();
    const std::size_t first = hier::first_lane(
        static_cast<std::size_t>(topology_.rail_index_of(sender)),
        static_cast<std::size_t>(topology_.rail_index_of(put.peer)), members, lanes);
    const std::size_t stripe =
        hier::stripe_of(put.count, static_cast<std::size_t>(machine_.stripes));
    const std::size_t nic =
        static_cast<std::size_t>(topology_.local_of(number)) * lanes + (first + stripe) % lanes;
    return static_cast<std::size_t>(node) * nic_stride_ +
           nic % static_cast<std::size_t>(machine_.nics_of(here));
}

void Simulation::send(int number, OpIndex i)
{
    const Op& op = rank(number).op(i);
    Time& port = egress_[nic_of(number, number, op)];
    const Time start = std::max(on_core(number, machine_.message), port);
    port = start + duration(op.slice.length, machine_.nic_rate) + from_seconds(machine_.nic_gap);
    if (machine_.is_eager) {
        schedule(port, Kind::sent, number, 0, i);
    }
    network_bytes_[static_cast<std::size_t>(topology_.node_of(number))] +=
        static_cast<double>(op.slice.length);
    schedule(start + from_seconds(machine_.nic_latency), Kind::at_nic,
             deliver(number, op.peer).receiver, number, i);
}

void Simulation::receive(const Event& event)
{
    const Op& op = rank(event.peer).op(event.op);
    Time& port = ingress_[nic_of(event.rank, event.peer, op)];
    port = std::max(now_, port) + duration(op.slice.length, machine_.nic_rate) +
           from_seconds(machine_.nic_gap);
    schedule(port, Kind::landed, event.rank, event.peer, event.op);
    if (!machine_.is_eager) {
        schedule(port + from_seconds(machine_.nic_latency), Kind::sent, event.peer, 0, event.op);
    }
}

// The time at which the rank's core has done this work. The core begins as soon as it can.
Time Simulation::on_core(int number, double seconds)
{
    const Time taken = from_seconds(seconds);
    if (taken == 0) return now_;
    Time& core = rank(number).core;
    return core = std::max(now_, core) + taken;
}

Rank::Class Simulation::class_of(const Op& op) const
{
    if (machine_.is_host || op.kind != Op::Kind::copy) return Rank::others;
    return op.to == Place::bounce     ? Rank::outward
           : op.from == Place::bounce ? Rank::inward
                                      : Rank::others;
}

// Issues a copy or a kernel. When may it begin?
Time Simulation::begin_of_issued(Rank& r) const
{
    r.last_issue = std::max(now_, r.last_issue);
    if (machine_.is_host) return r.last_issue;
    r.last_issue += from_seconds(machine_.copy_issue);
    return r.last_issue + from_seconds(machine_.launch);
}

void Simulation::enqueue_copy(int number, OpIndex i, int reads)
{
    Rank& r = rank(number);
    const Time begin = begin_of_issued(r);
    const Rank::Class queue = reads == Rank::nobody ? class_of(r.op(i)) : Rank::others;
    r.queues[queue].copies.push_back({i, begin, reads});
    wake(number, queue);
}

void Simulation::wake(int number, Rank::Class queue)
{
    Rank& r = rank(number);
    Rank::CopyQueue& q = r.queues[queue];
    if (q.is_woken || !r.has_entered || q.free_streams == 0 || q.head == q.copies.size()) {
        return;
    }
    q.is_woken = true;
    schedule(std::max(now_, q.copies[q.head].begin), Kind::look, number, 0, queue);
}

void Simulation::look_at_queue(int number, Rank::Class queue)
{
    Rank& r = rank(number);
    Rank::CopyQueue& q = r.queues[queue];
    q.is_woken = false;
    const Rank::Copying next = q.copies[q.head++];
    q.free_streams--;
    const bool is_read = next.reads != Rank::nobody;
    const Op& op = is_read ? rank(next.reads).op(next.op) : r.op(next.op);
    const Time done = op.kind == Op::Kind::copy ? copy_end(number, op) : put_end(number, op);
    const Time end = done + from_seconds(machine_.link_latency);
    if (machine_.is_host) {
        r.core = end;
    }
    schedule(end, is_read ? Kind::read : Kind::copied, number, is_read ? next.reads : 0, next.op);
    wake(number, queue);
}

// The end of a copy inside the rank's own memory, or to or from its bounce buffer.
Time Simulation::copy_end(int number, const Op& op)
{
    if (machine_.is_host) {
        return put_end(number, op);
    }
    const bool in = op.from == Place::bounce;
    if (machine_.stage_rate <= 0 || (!in && op.to != Place::bounce)) {
        return now_ + duration(op.slice.length, machine_.copy_rate);
    }
    Time& port = in ? rank(number).stage_ingress : rank(number).stage_egress;
    return port = std::max(now_, port) + duration(op.slice.length, machine_.stage_rate);
}

Time Simulation::put_end(int number, const Op& op)
{
    const std::size_t bytes = op.slice.length;
    if (machine_.is_host) {
        const Time start = std::max(now_, rank(number).core);
        Time& memory = memory_[static_cast<std::size_t>(topology_.node_of(number))];
        memory = std::max(start, memory) + duration(bytes, machine_.memory_rate);
        return std::max(memory, start + duration(bytes, machine_.core_rate));
    }
    Time& from = rank(number).egress;
    Time& to = rank(op.peer).ingress;
    return from = to = std::max({now_, from, to}) + duration(bytes, machine_.link_rate);
}

}  // namespace bench::simulator
