// SPDX-License-Identifier: BSD-3-Clause
#include "shared_communicator.hpp"

#include "test/mpi/lib/persistent.hpp"

#include <chrono>
#include <thread>

namespace hier_test::stress {

namespace {

constexpr std::size_t persistent_requests = 6;
constexpr int max_starts = 40;  // of a persistent request, before another one takes its place

// Mostly small, so that calls are many. Some go by large puts.
std::size_t draw_bytes(fuzz::Random& random)
{
    const unsigned share = random.below(200);
    return share == 0   ? random.between(100000, 600000)
           : share < 20 ? random.between(4096, 32768)
                        : random.between(1, 2000);
}

}  // namespace

// Equal on all ranks.
struct SharedCommunicator::Drawn {
    std::uint64_t number;
    Manner manner;
    CountedCollective collective;
    std::size_t bytes;
    bool in_place;
    std::size_t request;  // the persistent one
};

SharedCommunicator::SharedCommunicator(MPI_Comm comm, int index, std::uint64_t seed,
                                       const Sabotage& sabotage)
    : comm_(comm), index_(index), seed_(mix(seed, static_cast<std::uint64_t>(index))),
      sabotage_(index == 0 && rank_of(comm) == 0 ? sabotage : Sabotage{}),
      maker_(seed_, rank_of(comm))
{
    for (std::size_t i = 0; i < persistent_requests; ++i) {
        persistent_.push_back(std::make_shared<Active>());
    }
}

SharedCommunicator::~SharedCommunicator()
{
    rest();
    MPI_Comm_free(&comm_);
}

SharedCommunicator::Drawn SharedCommunicator::draw(std::uint64_t number) const
{
    fuzz::Random random = fuzz::Case{seed_, number}.common();
    Drawn drawn{};
    drawn.number = number;
    drawn.manner = static_cast<Manner>(random.below(has_persistent ? 3 : 2));
    drawn.collective = both_collectives[random.below(2)];
    drawn.bytes = draw_bytes(random);
    drawn.in_place = random.one_in(4);
    drawn.request = random.below(persistent_requests);
    return drawn;
}

void SharedCommunicator::say(Doing& doing, const char* what, const Active& active) const
{
    const auto which = counted(active.operation->collective(), active.manner);
    doing.now("%s: call %llu of communicator %d, %s of %zu bytes in all", what,
              static_cast<unsigned long long>(active.number), index_, counted_name(which),
              active.operation->total_bytes());
}

void SharedCommunicator::fail(const Active& active, const std::string& what)
{
    const std::lock_guard<std::mutex> lock(started_lock_);
    if (failure_.empty()) {
        failure_ = "call " + std::to_string(active.number) + " of communicator " +
                   std::to_string(index_) + ", " + active.operation->text(active.manner) + ": " +
                   what;
    }
}

// ---- starts, under order_

void SharedCommunicator::renew(Active& active, const Drawn& drawn)
{
    const std::lock_guard<std::mutex> lock(memory_);
    active.operation = maker_.make(
        drawn.collective, comm_, OperationMaker::about(drawn.collective, comm_, drawn.bytes),
        {.in_place = drawn.in_place, .has_gaps = false, .item_bytes = 1});
}

void SharedCommunicator::enlist(std::shared_ptr<Active> active)
{
    const std::lock_guard<std::mutex> lock(started_lock_);
    started_.push_back(std::move(active));
}

void SharedCommunicator::start(Doing& doing, Active& active, const Drawn& drawn)
{
    active.number = drawn.number;
    active.manner = drawn.manner;
    active.operation->fill(static_cast<int>(drawn.number));
    ++calls_[static_cast<std::size_t>(counted(active.operation->collective(), drawn.manner))];
    if (static_cast<long>(drawn.number) == sabotage_.hang) {
        say(doing, "hangs on purpose", active);
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
    say(doing, "starts", active);
    const int status = drawn.manner == Manner::persistent
                           ? MPI_Start(&active.request)
                           : active.operation->call(drawn.manner, &active.request);
    if (status != MPI_SUCCESS) fail(active, "error code " + std::to_string(status));
}

// Some thread may be about to complete it. Otherwise this one does.
void SharedCommunicator::make_idle(Doing& doing, const std::shared_ptr<Active>& active)
{
    std::unique_lock<std::mutex> lock(started_lock_);
    const auto found = std::find(started_.begin(), started_.end(), active);
    if (found != started_.end()) {
        started_.erase(found);
        lock.unlock();
        complete(doing, {active}, 0);
        lock.lock();
    }
    idle_.wait(lock, [&active] { return !active->is_busy; });
}

void SharedCommunicator::start_persistent(Doing& doing, const Drawn& drawn)
{
    const std::shared_ptr<Active>& active = persistent_[drawn.request];
    doing.now("waits for persistent request %zu of communicator %d", drawn.request, index_);
    make_idle(doing, active);
    if (active->starts++ % max_starts == 0) {
        if (active->operation) {
            MPI_Request_free(&active->request);
            release(std::move(active->operation));
        }
        renew(*active, drawn);
        active->number = drawn.number;
        active->manner = Manner::persistent;
        say(doing, "initializes", *active);
        const int status = active->operation->init(&active->request);
        if (status != MPI_SUCCESS) fail(*active, "init: error code " + std::to_string(status));
    }
    active->is_busy = true;
    start(doing, *active, drawn);
    enlist(active);
}

bool SharedCommunicator::start_next(Doing& doing, std::uint64_t end)
{
    doing.now("waits for its turn on communicator %d", index_);
    std::unique_lock<std::mutex> order(order_);
    if (next_ == end) return false;
    const Drawn drawn = draw(next_++);
    if (drawn.manner == Manner::persistent) {
        start_persistent(doing, drawn);
        return true;
    }
    auto active = std::make_shared<Active>();
    renew(*active, drawn);
    start(doing, *active, drawn);
    if (drawn.manner == Manner::nonblocking) {
        enlist(std::move(active));
        return true;
    }
    order.unlock();
    check(*active);
    return true;
}

// ---- all of it

void SharedCommunicator::work(Doing& doing, std::uint64_t thread, std::uint64_t end)
{
    constexpr std::size_t max_started = 8;
    fuzz::Random random(mix(seed_ + end, thread));
    fuzz::choose_device(rank_of(MPI_COMM_WORLD));
    while (start_next(doing, end)) {
        for (Taken taken; !(taken = take(random, random.between(0, max_started))).empty();) {
            complete(doing, taken, random.below(3));
        }
    }
    for (Taken taken; !(taken = take(random, 0)).empty();) {
        complete(doing, taken, random.below(3));
    }
    doing.now("has ended its part");
}

void SharedCommunicator::rest()
{
    for (const auto& active : persistent_) {
        if (active->operation) {
            MPI_Request_free(&active->request);
            release(std::move(active->operation));
        }
        active->starts = 0;
    }
    maker_.rest();
}

void SharedCommunicator::close_mappings() { fuzz::close_mappings_of_freed(comm_); }

}  // namespace hier_test::stress
