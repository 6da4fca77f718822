// SPDX-License-Identifier: BSD-3-Clause
// The n-th call of HIP fails on one rank, for n = 1, 2, ... until there is no n-th call. Each n has a communicator of
// its own and makes a few allgathers. Every rank must get an error or the right result, and no rank may wait for ever.
//
//   --victim r   the rank on which the calls fail
//   --first n    the first n [1]
//   --step s     every s-th n [1]
//   --last n     the last n
//   --uneven 1   MPI_Allgatherv of bytes, of which rank 1 has twelve times as many as the others
//   --typed 1    only derived datatypes, with so many bytes that they are packed in device memory
//   --in-place 1 only small blocks that are in place in device memory
//   --harmless 1 hier must get around every failure, so that no call fails
//   --async 1    the n-th copy fails when it is done; the device's queue is lost, so each n has a device of its own
#include "test/mpi/lib/gpu_memory.hpp"
#include "test/mpi/lib/layout.hpp"

#include "test/sim/hip_sim.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

template <class Function> Function* simulated(const char* name)
{
    void* const found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr) {
        std::fprintf(stderr, "gpu_faults: this is not the simulated runtime\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return reinterpret_cast<Function*>(found);
}

const auto calls = simulated<decltype(hip_sim_calls)>("hip_sim_calls");
const auto fail_at = simulated<decltype(hip_sim_fail_at)>("hip_sim_fail_at");
const auto copies = simulated<decltype(hip_sim_copies)>("hip_sim_copies");
const auto fail_copy_at = simulated<decltype(hip_sim_fail_copy_at)>("hip_sim_fail_copy_at");

// Blocks begin at equal distances.
class Uneven {
public:
    Uneven(int ranks, int most)
    {
        for (int rank = 0; rank < ranks; rank++) {
            counts_.push_back(rank == 1 ? most : most / 12);
            displacements_.push_back(rank * most);
        }
    }
    int bytes(int rank) const { return counts_[static_cast<std::size_t>(rank)]; }
    std::ptrdiff_t at(int rank) const { return displacements_[static_cast<std::size_t>(rank)]; }
    int gather(const void* send, void* receive, MPI_Comm comm) const
    {
        return MPI_Allgatherv(send, bytes(rank_of(comm)), MPI_BYTE, receive, counts_.data(),
                              displacements_.data(), MPI_BYTE, comm);
    }

private:
    std::vector<int> counts_, displacements_;
};

// One allgather, with memory of its own.
struct Step {
    Step(const Layout& layout_in, int items_in, Kind send_kind, Kind receive_kind, bool in_place_in,
         int call_in, MPI_Comm comm)
        : layout(layout_in), items(items_in), call(call_in), in_place(in_place_in),
          sending(layout, items, 1), receiving(layout, items, size_of(comm)),
          send(send_kind, sending.span()), receive(receive_kind, receiving.span())
    {
        const Bytes mine = Pattern(rank_of(comm), call).bytes(bytes());
        Bytes own(in_place ? receiving.span() : sending.span(), poison);
        (in_place ? receiving : sending).scatter(in_place ? rank_of(comm) : 0, mine, own.data());
        (in_place ? receive : send).write(0, own);
    }
    std::size_t bytes() const
    {
        std::size_t sum = 0;
        for (const Range& range : layout.ranges) {
            sum += range.bytes * static_cast<std::size_t>(items);
        }
        return sum;
    }
    // Before the first run.
    void make_uneven(MPI_Comm comm)
    {
        uneven.emplace(size_of(comm), items);
        const int me = rank_of(comm);
        const Bytes mine = Pattern(me, call).bytes(static_cast<std::size_t>(uneven->bytes(me)));
        Bytes all(in_place ? receiving.span() : sending.span(), poison);
        std::copy(mine.begin(), mine.end(), all.begin() + (in_place ? uneven->at(me) : 0));
        (in_place ? receive : send).write(0, all);
    }
    int run(MPI_Comm comm) const
    {
        if (uneven)
            return uneven->gather(in_place ? MPI_IN_PLACE : send.data(), receive.data(), comm);
        return MPI_Allgather(in_place ? MPI_IN_PLACE : sending.origin(send.data()), items,
                             layout.type, receiving.origin(receive.data()), items, layout.type,
                             comm);
    }
    std::string wrong(int ranks) const
    {
        Bytes wanted(receiving.span(), poison);
        for (int block = 0; block < ranks; ++block) {
            if (uneven) {
                const auto bytes = static_cast<std::size_t>(uneven->bytes(block));
                const Bytes theirs = Pattern(block, call).bytes(bytes);
                std::copy(theirs.begin(), theirs.end(), wanted.begin() + uneven->at(block));
                continue;
            }
            receiving.scatter(block, Pattern(block, call).bytes(bytes()), wanted.data());
        }
        return difference(receive.read(0, wanted.size()), wanted);
    }

    const Layout& layout;
    int items;
    int call;
    bool in_place;
    Placement sending;
    Placement receiving;
    Memory send;
    Memory receive;
    std::optional<Uneven> uneven;
};

class Faults {
public:
    explicit Faults(Session& session)
        : session_(session), is_victim_(session.rank() == session.number("victim", 0)),
          is_async_(session.number("async", 0) != 0), is_typed_(session.number("typed", 0) != 0),
          is_uneven_(session.number("uneven", 0) != 0),
          is_in_place_(session.number("in-place", 0) != 0), byte_(Layout::basic(MPI_BYTE, 1)),
          gaps_(Layout::vector(4, 2, 5, Layout::basic(MPI_INT, sizeof(int)))),
          wide_(Layout::vector(4, 512, 640, Layout::basic(MPI_INT, sizeof(int))))
    {
    }

    // False: there is no n-th call.
    bool one(std::uint64_t n)
    {
        session_.phase("failure %llu", static_cast<unsigned long long>(n));
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const int device = session_.rank() + (is_async_ ? static_cast<int>(n) : 0);
        require_hip(hipSetDevice(device % devices()), "hipSetDevice");
        std::vector<Step> steps;
        steps.reserve(5);
        const auto add = [&](const Layout& layout, int items, Kind send, Kind receive,
                             bool in_place) {
            steps.emplace_back(layout, items, send, receive, in_place, ++call_, comm);
        };
        if (is_uneven_) {
            add(byte_, 300001, Kind::device, Kind::device, false);
            add(byte_, 140097, Kind::pool, Kind::pool, true);
            add(byte_, 370001, session_.rank() % 2 == 0 ? Kind::pageable : Kind::managed,
                Kind::mapped, false);
            for (Step& step : steps) step.make_uneven(comm);
        } else if (is_typed_) {
            add(wide_, 16, Kind::device, Kind::device, false);
            add(wide_, 16, Kind::pool, Kind::mapped, true);
        } else if (is_in_place_) {
            for (const int bytes : {3000, 20001, 1, 3000, 4097})
                add(byte_, bytes, Kind::device, Kind::device, true);
        } else {
            add(byte_, 20001, Kind::device, Kind::device, false);
            add(byte_, 4097, Kind::pool, Kind::pool, true);
            add(byte_, 30001, Kind::device, Kind::mapped, false);
            add(gaps_, 3, Kind::device, Kind::device, false);
            add(byte_, 70001, session_.rank() % 2 == 0 ? Kind::pageable : Kind::managed,
                Kind::device, false);
        }
        require_hip(hipSetDevice((device + 1) % devices()), "hipSetDevice");
        MPI_Barrier(MPI_COMM_WORLD);

        arm(n);
        std::size_t done = 0;
        while (done < steps.size() && steps[done].run(comm) == MPI_SUCCESS) {
            session_.check(hipPeekAtLastError() == hipSuccess,
                           "failure %llu, step %zu: success, and an error for the application: %s",
                           static_cast<unsigned long long>(n), done,
                           hipGetErrorName(hipGetLastError()));
            ++done;
        }
        const bool was_hit = disarm(n);

        const bool has_failed = done < steps.size();
        // When all ranks have left, all transfers to a rank that has failed have landed.
        int any[2] = {has_failed ? 1 : 0, was_hit ? 1 : 0};
        MPI_Allreduce(MPI_IN_PLACE, any, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < done; ++i) {
            const std::string wrong = steps[i].wrong(session_.size());
            session_.check(wrong.empty(), "failure %llu, step %zu: success, but wrong %s",
                           static_cast<unsigned long long>(n), i, wrong.c_str());
        }
        session_.check(!has_failed || any[1] != 0, "an error, but nothing was made to fail");
        int current = -1;
        require_hip(hipGetDevice(&current), "hipGetDevice");
        session_.check(has_failed || current == (device + 1) % devices(),
                       "failure %llu: the current device is %d", static_cast<unsigned long long>(n),
                       current);
        (void)hipGetLastError();
        failures_ += any[0];
        MPI_Comm_free(&comm);
        return any[1] != 0;
    }

    int failures() const { return failures_; }

private:
    void arm(std::uint64_t n)
    {
        if (is_victim_) {
            start_ = is_async_ ? copies() : calls();
            (is_async_ ? fail_copy_at : fail_at)(start_ + n);
        }
    }
    bool disarm(std::uint64_t n)
    {
        if (!is_victim_) {
            return false;
        }
        (is_async_ ? fail_copy_at : fail_at)(0);
        return (is_async_ ? copies() : calls()) >= start_ + n;
    }

    Session& session_;
    bool is_victim_;
    bool is_async_;
    bool is_typed_;
    bool is_uneven_;
    bool is_in_place_;
    Layout byte_;
    Layout gaps_;
    Layout wide_;
    std::uint64_t start_ = 0;
    int call_ = 0;
    int failures_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(
        argc, argv, "gpu_faults",
        {"victim", "async", "typed", "uneven", "in-place", "first", "step", "last", "harmless"});
    const auto last = static_cast<std::uint64_t>(session.number("last", 100000));
    const auto step = static_cast<std::uint64_t>(session.number("step", 1));
    Faults faults(session);
    std::uint64_t failed = 0;
    // In the cold turn failures also hit the set-up that a process does once.
    for (const char* turn : {"cold", "warm"}) {
        std::uint64_t n = static_cast<std::uint64_t>(session.number("first", 1));
        while (n <= last && faults.one(n)) {
            n += step;
            ++failed;
        }
        session.check(n > 10, "%s: only %llu calls", turn,
                      static_cast<unsigned long long>(n - step));
        if (session.number("async", 0) != 0) {
            break;
        }
    }
    const bool is_harmless = session.number("harmless", 0) != 0;
    session.check(is_harmless == (faults.failures() == 0), "%d of %llu failures had an effect",
                  faults.failures(), static_cast<unsigned long long>(failed));
    if (session.rank() == 0) {
        std::printf("figure: %llu failures, %d of them errors of the call\n",
                    static_cast<unsigned long long>(failed), faults.failures());
    }
    return session.finish();
}
