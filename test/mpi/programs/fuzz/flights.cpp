// SPDX-License-Identifier: BSD-3-Clause
#include "flights.hpp"

#include <algorithm>
#include <unistd.h>

namespace hier_test::fuzz {

namespace {

// What a completing call says: the requests that have ended, by their places in its list.
struct Ended {
    int status;
    std::vector<int> places;
};

Ended all_places(int status, int flag, int count)
{
    Ended ended{status, {}};
    for (int i = 0; i < count && flag != 0; ++i) {
        ended.places.push_back(i);
    }
    return ended;
}

Ended one_place(int status, int flag, int place)
{
    return flag != 0 && place != MPI_UNDEFINED ? Ended{status, {place}} : Ended{status, {}};
}

}  // namespace

// After an error requests may still be active. Then the job ends, and the buffers stay until that.
Flights::~Flights()
{
    for (Flight& flight : all_) {
        if (!goes_on()) (void)flight.operation.release();
    }
}

void Flights::init(std::size_t which) { note(all_[which].operation->init(&all_[which].request)); }

void Flights::prepare(std::size_t which, int pattern)
{
    Flight& flight = all_[which];
    while (flight.is_active && goes_on()) {
        wait_or_test(flight);
    }
    look_back(flight);
    flight.operation->fill(pattern);
    flight.is_filled = true;
}

void Flights::start(std::size_t which)
{
    if (!goes_on()) {
        return;
    }
    Flight& flight = all_[which];
    note(flight.manner == Manner::persistent
             ? MPI_Start(&flight.request)
             : flight.operation->call(flight.manner, &flight.request));
    outcome_.count(*flight.operation, flight.manner);
    flight.is_active = true;
    if (flight.manner == Manner::blocking) finish(flight);
}

void Flights::start_all(const std::vector<std::size_t>& chosen)
{
    if (!goes_on()) {
        return;
    }
    std::vector<MPI_Request> requests;
    requests.reserve(all_.size());
    for (const std::size_t which : chosen) {
        requests.push_back(all_[which].request);
    }
    note(MPI_Startall(static_cast<int>(requests.size()), requests.data()));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        Flight& flight = all_[chosen[i]];
        flight.request = requests[i];
        flight.is_active = true;
        outcome_.count(*flight.operation, flight.manner);
    }
}

void Flights::meddle()
{
    const std::vector<std::size_t> open = active();
    if (open.empty() || !goes_on()) {
        return;
    }
    Flight& flight = all_[open[local_.between(0, open.size() - 1)]];
    switch (local_.below(12)) {
    case 0:
        return complete_one(false);
    case 1:
        return complete_some(false);
    case 2:
        return complete_all(false);
    case 3:
        return wait_or_test(flight);
    case 4:
        return complete_one(true);
    case 5:
        usleep(local_.below(1000));
        return;
    case 6:
    case 7:
        if (flight.may_be_freed) leave(flight);
        return;
    default:
        return;
    }
}

void Flights::end()
{
    const unsigned way = local_.below(4);
    const bool must = local_.one_in(2);
    while (!active().empty() && goes_on()) {
        const std::vector<std::size_t> open = active();
        switch (way) {
        case 0:
            wait_or_test(all_[open[local_.between(0, open.size() - 1)]]);
            break;
        case 1:
            complete_one(must);
            break;
        case 2:
            complete_some(must);
            break;
        default:
            complete_all(must);
        }
    }
    await_abandoned();
    for (Flight& flight : all_) {
        look_back(flight);
        if (flight.is_filled && goes_on()) note(flight, flight.operation->opinion());
        const bool is_inactive = goes_on() && flight.request != MPI_REQUEST_NULL;
        if (is_inactive) note(MPI_Request_free(&flight.request));
    }
}

std::vector<std::size_t> Flights::active() const
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        if (all_[i].is_active && !all_[i].is_abandoned) found.push_back(i);
    }
    return found;
}

// Requests that are over or inactive may be among the others.
template <class Complete> void Flights::some(Complete complete)
{
    std::vector<std::size_t> open = active();
    for (std::size_t i = 0; i < all_.size() && local_.one_in(2); ++i) {
        if (!all_[i].is_active) open.push_back(i);
    }
    shuffle(local_, open);
    std::vector<MPI_Request> requests;
    requests.reserve(all_.size());
    for (const std::size_t which : open) {
        requests.push_back(all_[which].request);
    }
    const Ended ended = complete(static_cast<int>(requests.size()), requests.data());
    note(ended.status);
    for (std::size_t i = 0; i < open.size(); ++i) {
        all_[open[i]].request = requests[i];
    }
    for (const int place : ended.places) {
        finish(all_[open[static_cast<std::size_t>(place)]]);
    }
}

void Flights::wait_or_test(Flight& flight)
{
    int flag = 1;
    // The analyzer does not see that the request is active.
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
    note(local_.one_in(2) ? MPI_Wait(&flight.request, MPI_STATUS_IGNORE)
                          : MPI_Test(&flight.request, &flag, MPI_STATUS_IGNORE));
    if (flag != 0) finish(flight);
}

void Flights::complete_one(bool must)
{
    some([must](int count, MPI_Request* requests) {
        int place = MPI_UNDEFINED;
        int flag = 1;
        const int status = must ? MPI_Waitany(count, requests, &place, MPI_STATUS_IGNORE)
                                : MPI_Testany(count, requests, &place, &flag, MPI_STATUS_IGNORE);
        return one_place(status, flag, place);
    });
}

void Flights::complete_some(bool must)
{
    some([must](int count, MPI_Request* requests) {
        std::vector<int> places(static_cast<std::size_t>(count));
        int ended = 0;
        const int status =
            must ? MPI_Waitsome(count, requests, &ended, places.data(), MPI_STATUSES_IGNORE)
                 : MPI_Testsome(count, requests, &ended, places.data(), MPI_STATUSES_IGNORE);
        places.resize(static_cast<std::size_t>(std::max(0, ended)));
        return Ended{status, places};
    });
}

void Flights::complete_all(bool must)
{
    some([must](int count, MPI_Request* requests) {
        int flag = 1;
        const int status = must ? MPI_Waitall(count, requests, MPI_STATUSES_IGNORE)
                                : MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
        return all_places(status, flag, count);
    });
}

void Flights::finish(Flight& flight)
{
    if (!flight.is_active || !goes_on()) {
        return;
    }
    flight.is_active = false;
    if (flight.manner == Manner::nonblocking && flight.request != MPI_REQUEST_NULL) {
        note(flight, "the request is over, but not MPI_REQUEST_NULL");
    }
    if (is_corrupt_) flight.operation->corrupt();
    is_corrupt_ = false;
    note(flight, flight.operation->difference());
    flight.is_clear = !flight.operation->asks() && local_.one_in(2);
    if (flight.is_clear) flight.operation->clear();
}

// The standard forbids it, and a module may refuse it with this error. Then the request stays.
void Flights::leave(Flight& flight)
{
    const int status = MPI_Request_free(&flight.request);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(status, &error_class);
    if (error_class == MPI_ERR_REQUEST && flight.request != MPI_REQUEST_NULL) {
        return;
    }
    note(status);
    flight.is_abandoned = true;
}

// A rank sees its own result alone. The barriers tell that the others have theirs, and so that
// nobody reads this rank's buffers any more.
void Flights::await_abandoned()
{
    for (Flight& flight : all_) {
        if (flight.is_abandoned) poll(flight);
    }
    for (Flight& flight : all_) {
        if (flight.may_be_freed && goes_on()) {
            note(MPI_Barrier(flight.operation->comm()));
        }
        if (flight.is_abandoned) finish(flight);
    }
}

void Flights::poll(Flight& flight)
{
    constexpr double max_seconds = 75;
    const double started = MPI_Wtime();
    while (goes_on() && !flight.operation->difference().empty() &&
           MPI_Wtime() - started < max_seconds) {
        int flag = 0;
        note(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, flight.operation->comm(), &flag,
                        MPI_STATUS_IGNORE));
    }
}

void Flights::look_back(Flight& flight)
{
    if (flight.is_clear) note(flight, flight.operation->late());
    flight.is_clear = false;
}

void Flights::note(int status)
{
    if (outcome_.status == MPI_SUCCESS) outcome_.status = status;
}

void Flights::note(const Flight& flight, const std::string& difference)
{
    if (outcome_.difference.empty() && !difference.empty()) {
        outcome_.difference = "operation " + std::to_string(flight.number) + ", " + difference;
    }
}

}  // namespace hier_test::fuzz
