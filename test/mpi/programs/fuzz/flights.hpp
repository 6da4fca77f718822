// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kinds.hpp"

namespace hier_test::fuzz {

// An operation of a batch, and its request.
struct Flight {
    std::unique_ptr<Operation> operation;
    Manner manner;
    std::size_t number;  // in the batch; equal on all ranks
    bool may_be_freed;   // while it is active; equal on all ranks
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_filled = false;
    bool is_active = false;
    bool is_abandoned = false;  // its request was freed while it was active
    bool is_clear = false;      // its buffers were overwritten after the last completion
};

// The operations of a batch on one rank. Each completion is checked at once. Then many buffers are
// overwritten, and looked at again when they are used next. Whatever is wrong goes to the outcome.
// After an error code nothing starts any more.
class Flights {
public:
    // is_corrupt: a byte of the first result is changed.
    Flights(Random& local, Outcome& outcome, bool is_corrupt)
        : local_(local), outcome_(outcome), is_corrupt_(is_corrupt)
    {
    }
    ~Flights();
    Flights(const Flights&) = delete;
    Flights& operator=(const Flights&) = delete;
    Flights(Flights&&) = delete;
    Flights& operator=(Flights&&) = delete;

    void add(Flight flight) { all_.push_back(std::move(flight)); }
    std::size_t count() const { return all_.size(); }
    Manner manner(std::size_t which) const { return all_[which].manner; }
    std::size_t number(std::size_t which) const { return all_[which].number; }

    void init(std::size_t which);
    // Completes the last start, and gives the buffers new contents.
    void prepare(std::size_t which, int pattern);
    void start(std::size_t which);
    void start_all(const std::vector<std::size_t>& chosen);
    // Now and then tests or completes some requests, frees one, or rests.
    void meddle();
    // Completes everything, in a way that is drawn, and frees the persistent requests.
    void end();

private:
    bool goes_on() const { return outcome_.status == MPI_SUCCESS; }
    std::vector<std::size_t> active() const;
    // Calls `complete` with the requests that are active, and finishes those that it names.
    template <class Complete> void some(Complete complete);
    void wait_or_test(Flight& flight);
    void complete_one(bool must);
    void complete_some(bool must);
    void complete_all(bool must);
    void finish(Flight& flight);
    void leave(Flight& flight);
    void await_abandoned();
    void poll(Flight& flight);
    void look_back(Flight& flight);
    void note(int status);
    void note(const Flight& flight, const std::string& difference);

    Random& local_;
    Outcome& outcome_;
    bool is_corrupt_;
    std::vector<Flight> all_;
};

}  // namespace hier_test::fuzz
