// SPDX-License-Identifier: BSD-3-Clause
// The copies that staging of derived datatypes in device memory costs, and the memory that it keeps.
#pragma once

#include "gpu_memory.hpp"
#include "layout.hpp"

#include "test/sim/hip_sim.h"

#include <dlfcn.h>

#include <string>
#include <vector>

namespace hier_test {

struct Form {
    Layout layout;
    int items;
};

// A function of the simulated runtime; nullptr on a real one.
template <class Function> Function* of_simulation(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// A counter of the simulated runtime; 0 on a real one.
inline std::uint64_t counted(const char* name)
{
    auto* const count = of_simulation<std::uint64_t()>(name);
    return count == nullptr ? 0 : count();
}

inline std::uint64_t copies() { return counted("hip_sim_copies"); }
inline std::uint64_t crossing_bytes() { return counted("hip_sim_host_bytes"); }

// One allgather of a type, with memory of its own.
class Exchange {
public:
    Exchange(Caller& caller, const Layout& layout, int items, Kind kind, int call)
        : caller_(caller), layout_(layout), items_(items), call_(call), sending_(layout, items, 1),
          receiving_(layout, items, caller.session().size()), send_(kind, sending_.span()),
          receive_(kind, receiving_.span())
    {
        Bytes mine(sending_.span(), poison);
        sending_.scatter(0, shard_of(caller.session().rank()), mine.data());
        send_.write(0, mine);
    }

    void run(MPI_Comm comm) const { caller_.session().ok(attempt(items_, comm), "MPI_Allgather"); }

    // Makes the call with at most so many items and returns its error code.
    int attempt(int items, MPI_Comm comm) const
    {
        return caller_.allgather(sending_.origin(send_.data()), items, layout_.type,
                                 receiving_.origin(receive_.data()), items, layout_.type, comm);
    }

    void check() const
    {
        Bytes expected(receiving_.span(), poison);
        for (int rank = 0; rank < caller_.session().size(); ++rank) {
            receiving_.scatter(rank, shard_of(rank), expected.data());
        }
        const std::string wrong = difference(receive_.read(0, expected.size()), expected);
        caller_.session().check(wrong.empty(), "%s: wrong %s", layout_.name.c_str(), wrong.c_str());
    }

private:
    Bytes shard_of(int rank) const
    {
        std::size_t bytes = 0;
        for (const Range& range : layout_.ranges) {
            bytes += range.bytes * static_cast<std::size_t>(items_);
        }
        return Pattern(rank, call_).bytes(bytes);
    }

    Caller& caller_;
    const Layout& layout_;
    int items_;
    int call_;
    Placement sending_;
    Placement receiving_;
    Memory send_;
    Memory receive_;
};

// Parts of arrays, of some ten thousand blocks each. hier needs few copies for them. If each copy has many bytes, none
// goes to host memory.
inline void many_blocks(Caller& caller)
{
    constexpr int n = 12000;
    Session& session = caller.session();
    const Layout i = Layout::basic(MPI_INT, sizeof(int));
    const bool is_one_node = session.number("one-node", 0) != 0;
    constexpr std::size_t large_copies = 3;  // the first three forms take copies of many bytes
    const std::vector<Form> forms = {
        {Layout::vector(n, 1, 3, i).called("a column"), 1},
        {Layout::resized(0, 12, i).called("ints with gaps"), n},
        {Layout::resized(0, 800, Layout::vector(100, 1, 2, i)).called("a grid"), n / 100},
        {Layout::vector(2, 2, 3, i).called("small vectors"), n / 4},
        {Layout::resized(0, sizeof(int), Layout::vector(n / 6, 1, 7, i)).called("columns"), 6},
        {Layout::structure({{i, 0}, {Layout::contiguous(2, i), 12}, {i, 28}}).called("structs"),
         n / 4},
        {Layout::structure({{Layout::vector(10, 3, 4, i), 0},
                            {Layout::vector(2, 10, 20, i), 200},
                            {Layout::contiguous(50, i), 400}})
             .called("mixed structs"),
         n / 100},
        {Layout::resized(
             0, 2 * sizeof(int),
             Layout::vector(100, 1, n / 200 * session.size() + 1, Layout::contiguous(2, i)))
             .called("a plane's columns"),
         n / 200},
    };
    for (const Form& form : forms) {
        session.phase("many blocks, %s", form.layout.name.c_str());
        const Exchange exchange(caller, form.layout, form.items, Kind::device, 1);
        const std::uint64_t before = copies();
        const std::uint64_t crossed = crossing_bytes();
        exchange.run(MPI_COMM_WORLD);
        const std::uint64_t made = copies() - before;
        session.check(made < 190, "%s: %llu copies", form.layout.name.c_str(),
                      static_cast<unsigned long long>(made));
        const bool stays = is_one_node && &form < &forms[large_copies];
        session.check(!stays || crossing_bytes() == crossed, "%s: %llu bytes crossed",
                      form.layout.name.c_str(),
                      static_cast<unsigned long long>(crossing_bytes() - crossed));
        exchange.check();
    }
}

inline int deleted_attributes = 0;

inline int count_deleted(MPI_Datatype, int, void*, void*)
{
    ++deleted_attributes;
    return MPI_SUCCESS;
}

// Types are freed after a call, and types of the same size come to their addresses. The attributes of a type must go
// with the type.
inline void types_come_and_go(Caller& caller)
{
    Session& session = caller.session();
    int key = MPI_KEYVAL_INVALID;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deleted, &key, nullptr);
    const Layout i = Layout::basic(MPI_INT, sizeof(int));
    constexpr int n = 24000;
    for (int round = 0; round < 12; ++round) {
        session.phase("types come and go, %d", round);
        {
            const int width = 1 << (round % 4);
            const Layout layout = round % 3 == 2
                                      ? Layout::indexed({{n / 2, 4 * round}, {n / 2, 4 * n}}, i)
                                      : Layout::vector(n / width, width, width + 1 + round, i);
            const Exchange exchange(caller, layout, 1, Kind::device, round);
            exchange.run(MPI_COMM_WORLD);
            exchange.check();
            MPI_Type_set_attr(layout.type, key, nullptr);
        }  // frees the type
        session.check(deleted_attributes == round + 1, "%d attributes of %d types are gone",
                      deleted_attributes, round + 1);
    }
    MPI_Type_free_keyval(&key);
}

// Two types take turns on one communicator. They have the same blocks, but different extents.
inline void types_that_differ_in_extent(Caller& caller)
{
    const Layout blocks = Layout::vector(3, 2, 4, Layout::basic(MPI_INT, sizeof(int)));
    for (int round = 0; round < 4; ++round) {
        caller.session().phase("types that differ in extent, %d", round);
        const Layout layout =
            Layout::resized(0, round % 2 == 0 ? 48 : 64, blocks).called("vector with a gap");
        const Exchange exchange(caller, layout, 1000, Kind::device, round);
        exchange.run(MPI_COMM_WORLD);
        exchange.check();
    }
}

inline Layout irregular()
{
    return Layout::indexed({{2, 32}, {1, 0}, {3, 12}}, Layout::basic(MPI_INT, sizeof(int)))
        .called("irregular");
}

// Host and device buffers take turns on one communicator. Memory that was pinned for device buffers is used again.
inline void by_turns(Caller& caller)
{
    auto* const live = of_simulation<decltype(hip_sim_live)>("hip_sim_live");
    if (live == nullptr) {
        return;
    }
    Session& session = caller.session();
    const Layout blocks = irregular();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::uint64_t pinned = 0;
    for (int turn = 0; turn < 12; ++turn) {
        session.phase("by turns, %d", turn);
        const bool is_device = turn % 2 == 0;
        const Exchange exchange(caller, blocks, is_device ? 2000 : 5000,
                                is_device ? Kind::device : Kind::pageable, turn);
        exchange.run(comm);
        exchange.check();
        if (turn == 3) {
            pinned = live("pinned");
        }
    }
    session.check(live("pinned") <= pinned, "%llu blocks of pinned memory, %llu after 4 calls",
                  static_cast<unsigned long long>(live("pinned")),
                  static_cast<unsigned long long>(pinned));
    MPI_Comm_free(&comm);
}

// Staging memory of a call that has failed. A peer that does not know of the failure may still write there, so the next
// call gets other memory. On one node a rank hears of a failure only inside a call.
inline void memory_of_failed_calls(Caller& caller)
{
    Session& session = caller.session();
    auto* const live = of_simulation<decltype(hip_sim_live)>("hip_sim_live");
    const bool is_one_node = session.number("one-node", 0) != 0;
    if (live == nullptr || !is_one_node || caller.observer().expect() != Expect::hier) {
        return;
    }
    session.phase("memory of failed calls");
    const Layout halves =
        Layout::vector(2, 30000, 40000, Layout::basic(MPI_INT, sizeof(int))).called("two halves");
    const Exchange exchange(caller, halves, 2, Kind::device, 1);
    exchange.run(MPI_COMM_WORLD);
    // Where hier has kernels, a communicator has memory for small calls, and the next one gets that of a freed one.
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    const Exchange small(caller, halves, 1, Kind::device, 2);
    small.run(other);
    small.check();
    MPI_Comm_free(&other);
    const std::uint64_t before = live("allocations");
    constexpr std::uint64_t of_a_call = 2;  // one allocation for sending, one for receiving
    for (std::uint64_t failures = 1; failures <= 2; ++failures) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const bool is_last = session.rank() == session.size() - 1;
        session.check(exchange.attempt(is_last ? 1 : 2, comm) != MPI_SUCCESS,
                      "success with unequal counts");
        MPI_Comm_free(&comm);
        exchange.run(MPI_COMM_WORLD);
        session.check(live("allocations") == before + of_a_call * failures,
                      "%llu allocations, %llu before %llu calls that failed",
                      static_cast<unsigned long long>(live("allocations")),
                      static_cast<unsigned long long>(before),
                      static_cast<unsigned long long>(failures));
    }
    exchange.check();
}

// A copy of the application runs, and each call has more bytes than the last one. hier must not free the memory that
// has become too small: the runtime would wait for the copy, and the copy may wait for a rank that is in the call.
inline void growing_beside_a_copy(Caller& caller)
{
    auto* const hang = of_simulation<decltype(hip_sim_hang_copy_at)>("hip_sim_hang_copy_at");
    if (hang == nullptr) {
        return;
    }
    Session& session = caller.session();
    const Layout blocks = irregular();
    const Layout byte = Layout::basic(MPI_BYTE, 1);
    std::vector<Exchange> exchanges;
    exchanges.reserve(6);
    for (const int scale : {1, 5, 11}) {
        exchanges.emplace_back(caller, blocks, 400 * scale, Kind::device, scale);
        exchanges.emplace_back(caller, byte, 30000 * scale, Kind::device, scale);
    }
    const Memory from(Kind::device, 4096);
    const Memory to(Kind::device, 4096);
    hipStream_t stream = nullptr;
    require_hip(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreate");
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    session.phase("growing beside a copy");
    exchanges[0].run(comm);
    exchanges[1].run(comm);
    hang(copies() + 1);
    require_hip(hipMemcpyAsync(to.data(), from.data(), 4096, hipMemcpyDeviceToDevice, stream),
                "hipMemcpyAsync");
    for (std::size_t k = 2; k < exchanges.size(); ++k) {
        exchanges[k].run(comm);
    }
#ifndef HIER_CUDA
    session.check(hipStreamQuery(stream) == hipErrorNotReady, "the copy is over");
#endif
    hang(0);
    require_hip(hipStreamSynchronize(stream), "hipStreamSynchronize");
    require_hip(hipStreamDestroy(stream), "hipStreamDestroy");
    for (const Exchange& exchange : exchanges) {
        exchange.check();
    }
    MPI_Comm_free(&comm);
}

}  // namespace hier_test
