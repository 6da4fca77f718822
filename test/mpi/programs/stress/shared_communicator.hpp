// SPDX-License-Identifier: BSD-3-Clause
// A communicator on which several threads make calls. MPI demands that all ranks make the calls of a
// communicator in the same order. So the number of a call decides what the call is, and the thread
// that has the lock takes the next number and starts that call. A blocking call ends under the lock.
// The other ones are waited for outside, by any thread of the communicator.
#pragma once

#include "doing.hpp"
#include "test/mpi/programs/calls/requests.hpp"

#include <condition_variable>
#include <mutex>

namespace hier_test::stress {

// What the test breaks on purpose, on communicator 0 of rank 0. The numbers are those of calls.
struct Sabotage {
    long hang = -1;     // the call never starts
    long corrupt = -1;  // a byte of its result is changed
    long leak = 0;      // bytes that each call loses
};

class SharedCommunicator {
public:
    // Takes the communicator over.
    SharedCommunicator(MPI_Comm comm, int index, std::uint64_t seed, const Sabotage& sabotage);
    ~SharedCommunicator();
    SharedCommunicator(const SharedCommunicator&) = delete;
    SharedCommunicator& operator=(const SharedCommunicator&) = delete;

    // Makes calls, together with the other threads, until `end` have been made. Then the requests
    // that the thread has found are over. A failure is kept.
    void work(Doing& doing, std::uint64_t thread, std::uint64_t end);
    // While no thread works: frees requests and buffers.
    void rest();
    // All ranks together: closes mappings of device memory that is freed. It makes calls.
    void close_mappings();

    const std::string& failure() const { return failure_; }
    unsigned long long calls(Counted which) const
    {
        return calls_[static_cast<std::size_t>(which)];
    }

private:
    // A call that has been started, or a persistent request that is not.
    struct Active {
        std::unique_ptr<Operation> operation;
        MPI_Request request = MPI_REQUEST_NULL;
        Manner manner = Manner::nonblocking;
        std::uint64_t number = 0;
        bool is_busy = false;  // of a persistent request: from its start to the end of the check
        int starts = 0;
    };
    struct Drawn;
    using Taken = std::vector<std::shared_ptr<Active>>;

    Drawn draw(std::uint64_t number) const;
    bool start_next(Doing& doing, std::uint64_t end);
    void start(Doing& doing, Active& active, const Drawn& drawn);
    void start_persistent(Doing& doing, const Drawn& drawn);
    void renew(Active& active, const Drawn& drawn);
    void make_idle(Doing& doing, const std::shared_ptr<Active>& active);
    void enlist(std::shared_ptr<Active> active);
    Taken take(fuzz::Random& random, std::size_t left);
    void complete(Doing& doing, const Taken& taken, unsigned way);
    void check(Active& active);
    void release(std::unique_ptr<Operation> operation);
    void fail(const Active& active, const std::string& what);
    void say(Doing& doing, const char* what, const Active& active) const;

    MPI_Comm comm_;
    int index_;
    std::uint64_t seed_;
    Sabotage sabotage_;

    std::mutex order_;  // from the number of a call to its start
    std::uint64_t next_ = 0;
    std::vector<std::shared_ptr<Active>> persistent_;
    unsigned long long calls_[number_of_counted] = {};

    std::mutex memory_;  // of the maker, to which buffers go back
    OperationMaker maker_;

    std::mutex started_lock_;
    std::condition_variable idle_;                  // a persistent request has become idle
    std::vector<std::shared_ptr<Active>> started_;  // and nobody waits for them yet
    std::string failure_;
};

}  // namespace hier_test::stress
