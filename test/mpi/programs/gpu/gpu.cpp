// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather on memory of every kind. Every byte is checked. Each rank has another pair of kinds in every call, and
// after enough calls every pair has met every other pair. Several ranks share a device, which is not their current one.
#include "test/mpi/lib/gpu_memory.hpp"

#include "test/sim/hip_sim.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

using namespace hier_test;

#ifndef HIER_CUDA
// The simulated runtime moves no pages. This wrapper answers as the kernel would for managed memory that moves between
// host and device.
extern "C" int mincore(void* address, std::size_t length, unsigned char* states) noexcept
{
    static unsigned asked = 0;
    const auto status = static_cast<int>(syscall(SYS_mincore, address, length, states));
    if (status == 0 && length <= 4096 && dlsym(RTLD_DEFAULT, "hip_sim_live") != nullptr) {
        *states = static_cast<unsigned char>(++asked % 16 < 8);  // of one buffer, or of the other
    }
    return status;
}
#endif

namespace {

constexpr std::size_t guard = 256;
constexpr std::size_t offsets[] = {0, 1, 3, 77};
constexpr unsigned pairs = kinds * kinds;

struct Case {
    Kind send;
    Kind receive;
    std::size_t bytes;
    bool in_place;
    std::size_t send_offset;
    std::size_t receive_offset;
};

class Exact {
public:
    Exact(Caller& caller, std::size_t max_bytes)
        : caller_(caller), session_(caller.session()), max_bytes_(max_bytes)
    {
        const int count = devices();
        // Two ranks share a device. Afterwards another device is current.
        require_hip(hipSetDevice(session_.rank() / 2 % count), "hipSetDevice");
        for (unsigned kind = 0; kind < kinds; ++kind) {
            memory_.emplace_back(static_cast<Kind>(kind), receive_room() + send_room());
        }
        require_hip(hipSetDevice((session_.rank() / 2 + 3) % count), "hipSetDevice");
    }

    // The network uses a bounce buffer for managed memory, wherever its pages are.
    void avoid_managed(bool avoids) { avoids_managed_ = avoids; }

    // Rank r has pair (i + r * j) mod 36. Over all i and j, any two neighbours have had all combinations of pairs.
    Case pick_case(unsigned i, unsigned j, std::size_t bytes) const
    {
        const auto rank = static_cast<unsigned>(session_.rank());
        const unsigned pair = (i + rank * j) % pairs;
        const unsigned turn = i + j + rank;
        const auto kind_of = [&](unsigned kind) {
            const auto found = static_cast<Kind>(kind);
            return avoids_managed_ && found == Kind::managed ? Kind::device : found;
        };
        Case picked{};
        picked.send = kind_of(pair / kinds);
        picked.receive = kind_of(pair % kinds);
        picked.bytes = bytes;
        picked.in_place = (i + j) % 5 == 4;  // the same on all ranks, as MPI demands
        picked.send_offset = offsets[turn % 4];
        picked.receive_offset = offsets[turn / 4 % 4];
        return picked;
    }

    void one(MPI_Comm comm, const Case& c)
    {
        const int call = ++call_;
        const int ranks = size_of(comm);
        const auto rank = static_cast<std::size_t>(rank_of(comm));
        session_.phase("call %d, %zu bytes, in place %d", call, c.bytes, c.in_place);
        const Memory& to = of(c.receive);
        const Memory& from = of(c.send);
        const Bytes mine = Pattern(rank_of(comm), call).bytes(c.bytes);
        const std::size_t at = guard + c.receive_offset;
        const std::size_t send_at = receive_room() + guard + c.send_offset;
        const std::size_t total = c.bytes * static_cast<std::size_t>(ranks);

        to.write(0, Bytes(at + total + guard, poison));
        if (c.in_place) {
            to.write(at + rank * c.bytes, mine);
        } else {
            from.write(send_at, mine);  // if the kinds are equal, both are in one allocation
        }
        session_.ok(caller_.allgather(c.in_place ? nullptr : from.data() + send_at, to.data() + at,
                                      c.bytes, comm),
                    "MPI_Allgather");
        Bytes wanted(at + total + guard, poison);
        const Bytes all = gathered(ranks, call, c.bytes);
        std::copy(all.begin(), all.end(), wanted.begin() + static_cast<std::ptrdiff_t>(at));
        const std::string wrong = difference(to.read(0, wanted.size()), wanted);
        session_.check(wrong.empty(), "%s to %s, %zu bytes, in place %d, at %zu and %zu: wrong %s",
                       name_of(c.send), name_of(c.receive), c.bytes, c.in_place, c.send_offset,
                       c.receive_offset, wrong.c_str());
        session_.check(c.in_place || from.read(send_at, c.bytes) == mine, "send buffer changed");
    }

private:
    std::size_t receive_room() const
    {
        return guard + 77 + max_bytes_ * static_cast<std::size_t>(session_.size()) + guard;
    }
    std::size_t send_room() const { return guard + 77 + max_bytes_ + guard; }
    const Memory& of(Kind kind) const { return memory_[static_cast<std::size_t>(kind)]; }

    Caller& caller_;
    Session& session_;
    std::size_t max_bytes_;
    std::vector<Memory> memory_;
    bool avoids_managed_ = false;
    int call_ = 0;
};

// The communicator's first calls are on host memory alone. The runtime's library is already loaded.
void host_first(Exact& exact, MPI_Comm comm)
{
    for (const std::size_t bytes : {std::size_t{3}, std::size_t{4097}}) {
        exact.one(comm, {Kind::pageable, Kind::pageable, bytes, false, 1, 3});
        exact.one(comm, {Kind::pageable, Kind::pageable, bytes, true, 0, 1});
    }
}

// nullptr on a real runtime.
decltype(&hip_sim_live) find_live()
{
    return reinterpret_cast<decltype(&hip_sim_live)>(dlsym(RTLD_DEFAULT, "hip_sim_live"));
}

// Bounce buffers are pinned memory. The test itself has one pinned allocation. On CUDA the words of a queue's streams
// are another. `gdr` is 1: no rank has more; 2: no odd rank has more.
void check_bounce(Session& session, long gdr)
{
    const auto live = find_live();
    if (gdr == 0 || live == nullptr) {
        return;
    }
#ifdef HIER_CUDA
    constexpr std::uint64_t others = 2;
#else
    constexpr std::uint64_t others = 1;
#endif
    const bool has_none = gdr == 1 || session.rank() % 2 == 1;
    session.check((live("pinned") == others) == has_none, "%llu pinned allocations",
                  static_cast<unsigned long long>(live("pinned")));
}

// Mappings of the peers' device memory.
void check_mappings(Session& session, long wanted)
{
    const auto live = find_live();
    if (wanted >= 0 && live != nullptr) {
        session.check(live("mappings") == static_cast<std::uint64_t>(wanted), "%llu mappings",
                      static_cast<unsigned long long>(live("mappings")));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu",
                    {"expect", "min-bytes", "meetings", "large", "gdr", "mappings"});
    Observer observer(session);
    Caller caller(session, observer);
    constexpr std::size_t small[] = {1, 3, 4097, 16384};
    std::vector<std::size_t> large = {100003, (1 << 20) + 7};
    if (session.number("large", 1) == 0) {
        large = {70001};
    }
    Exact exact(caller, large.back());

    const long gdr = session.number("gdr", 0);
    exact.avoid_managed(gdr != 0);
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -session.rank(), &reversed);
    host_first(exact, MPI_COMM_WORLD);
    const auto meetings = static_cast<unsigned>(session.number("meetings", pairs));
    for (unsigned j = 0; j < meetings; ++j) {
        for (unsigned i = 0; i < pairs; ++i) {
            exact.one(j % 2 == 0 ? MPI_COMM_WORLD : reversed,
                      exact.pick_case(i, j, small[(i + j) % std::size(small)]));
        }
    }
    for (const std::size_t bytes : large) {
        for (unsigned i = 0; i<pairs; i += bytes> 200000 ? 5 : 1) {
            exact.one(i % 2 == 0 ? MPI_COMM_WORLD : reversed,
                      exact.pick_case(i, static_cast<unsigned>(bytes) % pairs, bytes));
        }
    }
    check_bounce(session, gdr);
    check_mappings(session, session.number("mappings", -1));
    exact.avoid_managed(false);
    for (unsigned i = 0; gdr != 0 && i < pairs; ++i) {
        exact.one(MPI_COMM_WORLD, exact.pick_case(i, 1, 4097));
    }
    MPI_Comm_free(&reversed);
    observer.close();
    return session.finish();
}
