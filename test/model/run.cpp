// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

namespace hier::model {

Machine::Machine(const Topology& topology, std::span<const Call> calls, const Schedule& schedule)
    : topo_(topology), calls_(calls), schedule_(schedule), events_(schedule, topology.size()),
      unfinished_(index(topology.size())), ranks_(unfinished_),
      last_flight_(unfinished_ * unfinished_, Flight::none)
{
    for (const Call& call : calls) {
        for (const Plan& plan : call.plans) dependents_.push_back(dependents_of(plan));
    }
    for (int r = 0; r < topology.size(); r++) {
        at(r).announced.assign(ranks_.size(), {-1, -1});
        at(r).entered.assign(ranks_.size(), {-1, -1});
        events_.push_by_rank({Event::Kind::enter, r, 0});
    }
}

Verdict Machine::run()
{
    Event event{};
    while (!verdict_ && events_.pop(event)) happen(event);
    if (verdict_) return verdict_;
    if (schedule_.kind == Schedule::Kind::stalled) {
        check_forwarded();
    } else if (unfinished_ > 0) {
        for (int r = 0; r < topo_.size(); r++) {
            if (at(r).inside) fail(Fault::deadlock, at(r).call, r);
        }
    } else if (flying_ > 0) {
        for (const Flight& f : flights_) {
            if (!f.signal_done) fail(Fault::stray, f.call, f.pair.from, static_cast<int>(f.op));
        }
    }
    return verdict_;
}

void Machine::happen(const Event& event)
{
    switch (event.kind) {
    case Event::Kind::enter:
        return enter(event.rank);
    case Event::Kind::op:
        return execute(event.rank, event.index);
    case Event::Kind::copy:
        return go_on_with_copy(event);
    case Event::Kind::done:
        return done(event.rank, event.index);
    case Event::Kind::payload:
        return land_payload(event);
    case Event::Kind::signal:
        return land_signal(event);
    case Event::Kind::announcement:
        return land_announcement(event);
    }
}

// Reports only the first fault. Its consequences explain nothing.
void Machine::fail(Fault fault, int call, int rank, int op)
{
    if (!verdict_) verdict_ = {fault, call, rank, op};
}

Verdict run(const Topology& topology, std::span<const Call> calls, const Schedule& schedule)
{
    return Machine(topology, calls, schedule).run();
}

}  // namespace hier::model
