// SPDX-License-Identifier: BSD-3-Clause
// Device memory and communicators come and go. A mapping must never outlive the memory that it maps, and nothing may be
// left behind. The simulated runtime tells which objects there are.
#include "test/mpi/lib/gpu_memory.hpp"
#include "test/mpi/lib/persistent.hpp"

#include "test/sim/hip_sim.h"

#include <dlfcn.h>

#include <string>
#include <vector>

using namespace hier_test;

namespace {

constexpr const char* all_live[] = {"allocations", "pinned",  "registrations",
                                    "mappings",    "streams", "events",
                                    "segments",    "handles", "reservations"};

std::vector<std::uint64_t> live_now()
{
    const auto live =
        reinterpret_cast<decltype(&hip_sim_live)>(dlsym(RTLD_DEFAULT, "hip_sim_live"));
    std::vector<std::uint64_t> counts;
    for (const char* what : all_live) {
        counts.push_back(live == nullptr ? 0 : live(what));
    }
    return counts;
}

bool is_simulated() { return dlsym(RTLD_DEFAULT, "hip_sim_live") != nullptr; }

class Lifetime {
public:
    explicit Lifetime(Caller& caller) : caller_(caller), session_(caller.session()) {}

    void one(MPI_Comm comm, const Memory& send, const Memory& receive, std::size_t bytes,
             const char* what)
    {
        const int call = ++call_;
        const int ranks = size_of(comm);
        session_.phase("%s, call %d, %zu bytes", what, call, bytes);
        receive.clear();
        send.write(0, Pattern(rank_of(comm), call).bytes(bytes));
        session_.ok(caller_.allgather(send.data(), receive.data(), bytes, comm), what);
        Bytes wanted = gathered(ranks, call, bytes);
        wanted.resize(receive.bytes(), poison);
        const std::string wrong = difference(receive.read(0, wanted.size()), wanted);
        session_.check(wrong.empty(), "%s, call %d, %zu bytes: wrong %s", what, call, bytes,
                       wrong.c_str());
    }

    // Memory is freed and comes back at the same address, not on all ranks in the same calls. `whose`: only this rank's
    // memory changes; negative: each rank decides for itself.
    void same_address(MPI_Comm comm, int calls, int whose, Kind kind)
    {
        constexpr std::size_t bytes = 30011;
        const int ranks = size_of(comm);
        const auto self = static_cast<std::uint64_t>(session_.rank()) << 32;
        Memory send(kind, bytes);
        Memory receive(kind, bytes * static_cast<std::size_t>(ranks) + 100);
        for (int i = 0; i < calls; ++i) {
            const auto at = static_cast<std::uint64_t>(i);
            const bool changes = whose < 0 ? pick(self, at, 2) == 0 : whose == session_.rank();
            if (changes) {
                renew(pick(self + 1, at, 2) == 0 ? send : receive);
                renew(receive);
            }
            one(comm, send, receive, bytes, "same address");
        }
    }

    // The same between starts of a persistent request. On a real device freed memory may come back elsewhere.
    void persistent(MPI_Comm comm, int starts, Kind kind)
    {
        constexpr std::size_t bytes = 30011;
        const auto count = static_cast<int>(bytes);
        Memory send(kind, bytes);
        Memory receive(kind, bytes * static_cast<std::size_t>(size_of(comm)));
        MPI_Request request = MPI_REQUEST_NULL;
        session_.ok(allgather_init(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE,
                                   comm, &request),
                    "the init call");
        for (int i = 0; i < starts; ++i) {
            const bool may_change = kind == Kind::mapped || is_simulated();
            if (may_change && (i + session_.rank()) % 3 == 1) {
                renew(send);
                renew(receive);
            }
            const int call = ++call_;
            session_.phase("start %d of a persistent request", i);
            receive.clear();
            send.write(0, Pattern(rank_of(comm), call).bytes(bytes));
            session_.ok(MPI_Start(&request), "MPI_Start");
            session_.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
            const Bytes wanted = gathered(size_of(comm), call, bytes);
            const std::string wrong = difference(receive.read(0, wanted.size()), wanted);
            session_.check(wrong.empty(), "start %d: wrong %s", i, wrong.c_str());
        }
        MPI_Request_free(&request);
    }

    // Old memory is freed after new memory is there. So addresses change, and sizes grow.
    void growing(MPI_Comm comm, int calls)
    {
        const auto ranks = static_cast<std::size_t>(size_of(comm));
        Memory send(Kind::device, 1);
        Memory receive(Kind::device, ranks);
        for (int i = 0; i < calls; ++i) {
            const std::size_t bytes = 1 + static_cast<std::size_t>(i * i) * 397;
            send = Memory(Kind::device, bytes);
            receive =
                Memory(Kind::device, bytes * ranks + 4096 * (static_cast<std::size_t>(i) % 3));
            one(comm, send, receive, bytes, "growing");
        }
        for (int i = calls; i-- > 0;) {  // then calls use less and less of one allocation
            one(comm, send, receive, 1 + static_cast<std::size_t>(i * i) * 397, "shrinking");
        }
    }

    // Communicators are made and freed in turn, while their peers' memory stays mapped.
    void communicators(int rounds, Kind kind)
    {
        constexpr std::size_t bytes = 20001;
        const Memory send(kind, bytes);
        const Memory receive(kind, bytes * static_cast<std::size_t>(session_.size()));
        const int rank = session_.rank();
        MPI_Comm kept;
        MPI_Comm_dup(MPI_COMM_WORLD, &kept);
        for (int round = 0; round < rounds; ++round) {
            MPI_Comm made[3];
            MPI_Comm_dup(MPI_COMM_WORLD, &made[0]);
            MPI_Comm_split(MPI_COMM_WORLD, round % 2 == 0 ? rank % 2 : 0, -rank, &made[1]);
            MPI_Comm_split(made[1], rank < session_.size() / 2 ? 0 : 1, rank, &made[2]);
            for (int turn = 0; turn < 2; ++turn) {
                for (MPI_Comm comm : made) {
                    one(comm, send, receive, bytes, "communicators in turn");
                    one(kept, send, receive, bytes / 3, "the one that is kept");
                }
            }
            for (const int which : {round % 3, (round + 1) % 3, (round + 2) % 3}) {
                MPI_Comm_free(&made[which]);
                one(kept, send, receive, bytes, "after another one was freed");
            }
        }
        MPI_Comm_free(&kept);
    }

    // Many calls must not leave more objects than there were.
    void steady(MPI_Comm comm, int calls)
    {
        constexpr std::size_t bytes = 10007;
        const auto ranks = static_cast<std::size_t>(size_of(comm));
        std::vector<Memory> send;
        std::vector<Memory> receive;
        for (unsigned kind = 0; kind < kinds; ++kind) {
            send.emplace_back(static_cast<Kind>(kind), bytes);
            receive.emplace_back(static_cast<Kind>(kind), bytes * ranks);
        }
        const auto some_calls = [&](int count) {
            for (int i = 0; i < count; ++i) {
                one(comm, send[static_cast<std::size_t>(i) % kinds],
                    receive[static_cast<std::size_t>(i) / kinds % kinds], i % 7 == 0 ? 5 : bytes,
                    "steady");
            }
        };
        some_calls(calls);
        const std::vector<std::uint64_t> before = live_now();
        some_calls(2 * calls);
        const std::vector<std::uint64_t> after = live_now();
        for (std::size_t i = 0; i < before.size(); ++i) {
            // hier keeps as many events as it ever needed at a time.
            const std::uint64_t more = std::string(all_live[i]) == "events" ? 8 : 0;
            session_.check(after[i] <= before[i] + more, "%d calls: %llu %s before, %llu after",
                           2 * calls, static_cast<unsigned long long>(before[i]), all_live[i],
                           static_cast<unsigned long long>(after[i]));
        }
    }

    // Communicators that come and go must not leave objects, either.
    void steady_communicators(int rounds)
    {
        communicators(2, Kind::device);
        communicators(2, Kind::pool);
        communicators(2, Kind::mapped);
        const std::vector<std::uint64_t> before = live_later();
        communicators(rounds, Kind::device);
        communicators(rounds, Kind::pool);
        communicators(rounds, Kind::mapped);
        const std::vector<std::uint64_t> after = live_later();
        for (std::size_t i = 0; i < before.size(); ++i) {
            // The mapping of a freed buffer stays until its address is used again. communicators() has two buffers.
            const bool is_mapping = std::string(all_live[i]) == "mappings";
            const bool is_event = std::string(all_live[i]) == "events";  // as in steady()
            const std::uint64_t more = is_mapping ? 2 * static_cast<std::uint64_t>(session_.size())
                                       : is_event ? 8
                                                  : 0;
            session_.check(after[i] <= before[i] + more, "%d rounds: %llu %s before, %llu after",
                           rounds, static_cast<unsigned long long>(before[i]), all_live[i],
                           static_cast<unsigned long long>(after[i]));
        }
    }

private:
    // Waits until the objects of freed communicators have gone. Peers say goodbye in the background.
    static std::vector<std::uint64_t> live_later()
    {
        for (int turn = 0; turn < 200; ++turn) {
            MPI_Barrier(MPI_COMM_WORLD);
            usleep(200);
        }
        return live_now();
    }

    void renew(Memory& memory)
    {
        if (memory.kind() == Kind::mapped) {
            return memory.remap();
        }
        const unsigned char* const before = memory.data();
        const std::size_t bytes = memory.bytes();
        memory.release();
        memory = Memory(memory.kind(), bytes);
        session_.check(!is_simulated() || memory.data() == before, "at another address");
    }

    Caller& caller_;
    Session& session_;
    int call_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_lifetime", {"expect", "min-bytes", "calls"});
    Observer observer(session);
    Caller caller(session, observer);
    const auto calls = static_cast<int>(session.number("calls", 50));
    require_hip(hipSetDevice(session.rank() % devices()), "hipSetDevice");
    Lifetime lifetime(caller);
    for (const Kind kind : {Kind::device, Kind::mapped}) {
        lifetime.same_address(MPI_COMM_WORLD, calls, -1, kind);
        for (int whose = 0; whose < session.size(); ++whose) {
            lifetime.same_address(MPI_COMM_WORLD, 4, whose, kind);
        }
    }
    for (const Kind kind : {Kind::device, Kind::mapped, Kind::pinned}) {
        if (has_persistent) {
            lifetime.persistent(MPI_COMM_WORLD, 12, kind);
        }
    }
    lifetime.growing(MPI_COMM_WORLD, 14);
    lifetime.steady(MPI_COMM_WORLD, calls);
    lifetime.steady_communicators(4);
    observer.close();
#ifdef HIER_CUDA
    // Many programs do this at their end, before MPI_Finalize. It destroys all objects of hier on the device.
    require_hip(cudaDeviceReset(), "cudaDeviceReset");
#endif
    return session.finish();
}
