// SPDX-License-Identifier: BSD-3-Clause
// The state of one simulated run, and its events. simulator.cpp has what ranks do, ports.cpp how
// long that takes.
#pragma once

#include <queue>
#include <vector>

#include "rank.hpp"
#include "simulator.hpp"

namespace bench::simulator {

class Simulation {
public:
    Simulation(const hier::Topology& topology, const Machine& machine, Symmetry symmetry,
               const Planner& planner);
    Outcome run();

private:
    // When several events are due, they are handled in this order.
    enum class Kind : std::uint8_t {
        enter,      // rank
        announced,  // at rank, on its pair `op`
        at_nic,     // the first byte at the ingress of rank's NIC: peer's op
        landed,     // at rank: peer's op, from another node
        taken,      // by rank's core: peer's op, from another node
        sent,       // rank's op
        copied,     // rank's op, and it has arrived
        read,       // by rank: peer's op, which is for all of its node
        stored,     // by rank's kernel, and it has arrived
        look,       // at one of rank's queues of copies
        launch,     // of rank's next kernel
        begins,     // rank's kernel
    };
    struct Event {
        Time at;
        int rank;
        int peer;
        OpIndex op;
        Kind kind;
        bool operator>(const Event& other) const;
    };
    // The receiver, as one of the ranks that are run, and the sender in the receiver's eyes.
    struct Delivery {
        int receiver;
        int source;
    };

    Rank& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
    Delivery deliver(int from, int to) const;
    void schedule(Time at, Kind kind, int rank, int peer = 0, OpIndex op = 0);
    void handle(const Event& event);

    void enter(int number);
    void run_op(int number, OpIndex i);
    void finish(int number, OpIndex i);
    void announce(int number, OpIndex i);
    void announced(int number, std::uint32_t pair);
    void arrived(int from, int to, OpIndex i);
    void take_message(int number, int from, OpIndex i);
    void issue_rail(int number);
    void pushed(int number, OpIndex i);

    // ports.cpp
    void send(int number, OpIndex i);
    void receive(const Event& event);
    Time on_core(int number, double seconds);
    Time begin_of_issued(Rank& r) const;
    void enqueue_copy(int number, OpIndex i, int reads = Rank::nobody);
    Rank::Class class_of(const hier::Op& op) const;
    void wake(int number, Rank::Class queue);
    void look_at_queue(int number, Rank::Class queue);
    // fan_out.cpp
    bool may_fan_out(int number, const hier::Op& op) const;
    void enqueue_push(int number, OpIndex i);
    void wake_kernels(int number);
    void launch_kernel(int number);
    void schedule_kernel(int number);
    void begin_kernel(int number);
    void end_kernel(int number);
    Time copy_end(int number, const hier::Op& op);
    Time put_end(int number, const hier::Op& op);
    // The NIC of rank `number`, for a put that this rank sends or gets.
    std::size_t nic_of(int number, int sender, const hier::Op& put) const;

    const hier::Topology& topology_;
    const Machine machine_;
    Symmetry symmetry_;
    std::vector<Rank> ranks_;
    std::vector<Time> egress_, ingress_;  // by NIC: the time from which it is free
    std::vector<Time> memory_;            // by node: the same for its memory
    std::vector<double> network_bytes_;   // by node
    std::size_t nic_stride_;
    Time now_ = 0;
    std::uint64_t remaining_ = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

[[nodiscard]] Time from_seconds(double seconds);
[[nodiscard]] Time duration(std::size_t bytes, double rate);

}  // namespace bench::simulator
