// SPDX-License-Identifier: BSD-3-Clause
// How calls end that have been started: who waits, in which way, and what is checked.
#include "shared_communicator.hpp"

#include <cstdlib>

namespace hier_test::stress {

// Up to three of those that nobody waits for. `left` is how many may stay.
SharedCommunicator::Taken SharedCommunicator::take(fuzz::Random& random, std::size_t left)
{
    const std::lock_guard<std::mutex> lock(started_lock_);
    Taken taken;
    for (std::size_t i = random.between(1, 3); i > 0 && started_.size() > left; --i) {
        const auto which = static_cast<std::ptrdiff_t>(random.between(0, started_.size() - 1));
        taken.push_back(started_[static_cast<std::size_t>(which)]);
        started_.erase(started_.begin() + which);
    }
    return taken;
}

void SharedCommunicator::complete(Doing& doing, const Taken& taken, unsigned way)
{
    std::vector<MPI_Request> requests;
    for (const auto& active : taken) {
        requests.push_back(active->request);
    }
    const auto count = static_cast<int>(requests.size());
    int status = MPI_SUCCESS, flag = 0, index = 0;
    switch (way) {
    case 0:
        say(doing, count > 1 ? "MPI_Waitall, first" : "MPI_Waitall", *taken.front());
        status = MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
        break;
    case 1:
        say(doing, count > 1 ? "MPI_Testall, first" : "MPI_Testall", *taken.front());
        while (flag == 0 && status == MPI_SUCCESS) {
            status = MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE);
        }
        break;
    default:
        say(doing, count > 1 ? "MPI_Waitany, first" : "MPI_Waitany", *taken.front());
        for (int i = 0; i < count && status == MPI_SUCCESS; ++i) {
            status = MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
        }
        break;
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
        if (status != MPI_SUCCESS)
            fail(*taken[i], "at its end: error code " + std::to_string(status));
        taken[i]->request = requests[i];
        check(*taken[i]);
    }
}

void SharedCommunicator::check(Active& active)
{
    if (static_cast<long>(active.number) == sabotage_.corrupt) active.operation->corrupt();
    if (sabotage_.leak > 0) {
        const auto bytes = static_cast<std::size_t>(sabotage_.leak);
        static_cast<volatile char*>(std::calloc(bytes, 1))[0] = 1;
    }
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is meant to leak
    const std::string wrong = active.operation->difference();
    if (!wrong.empty()) fail(active, wrong);
    Doing::moved();
    if (active.manner != Manner::persistent) {
        release(std::move(active.operation));
        return;
    }
    const std::lock_guard<std::mutex> lock(started_lock_);
    active.is_busy = false;
    idle_.notify_all();
}

void SharedCommunicator::release(std::unique_ptr<Operation> operation)
{
    const std::lock_guard<std::mutex> lock(memory_);
    operation.reset();
}

}  // namespace hier_test::stress
