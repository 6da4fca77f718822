// SPDX-License-Identifier: BSD-3-Clause
// One rank has device memory in a call and cannot take part with it: the module of its GPU runtime is missing
// (HIER_GPU_MODULES), there is no memory to stage it through, or a copy of it does not end. In a team it gets an error,
// and no rank waits for ever. In a call of the fallback module the job ends.
//
//   --victim r    the rank
//   --memory 0    the rank has the module, but no memory [1]
//   --hang 1      the rank has both, but its first copy does not end
#include "test/mpi/lib/gpu_memory.hpp"

#include "test/sim/hip_sim.h"

#include <fstream>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/resource.h>

using namespace hier_test;

namespace {

struct Combination {
    const char* name;
    Kind send;
    Kind receive;
    bool in_place;
};
constexpr Combination combinations[] = {
    {"device to device", Kind::device, Kind::device, false},
    {"in place", Kind::device, Kind::device, true},
    {"host to device", Kind::pageable, Kind::device, false},
    {"device to host", Kind::device, Kind::pageable, false},
};

const auto copies =
    reinterpret_cast<decltype(&hip_sim_copies)>(dlsym(RTLD_DEFAULT, "hip_sim_copies"));
const auto hang_copy_at =
    reinterpret_cast<decltype(&hip_sim_hang_copy_at)>(dlsym(RTLD_DEFAULT, "hip_sim_hang_copy_at"));

class Unusable {
public:
    Unusable(Session& session, Observer& observer)
        : session_(session), observer_(observer),
          victim_(static_cast<int>(session.number("victim", 0)))
    {
    }

    void with_memory(std::size_t bytes)
    {
        for (const Combination& combination : combinations) {
            session_.phase("%s, %zu bytes", combination.name, bytes);
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            on_host(comm, bytes);  // makes the team
            check(combination, bytes, attempt(combination, bytes, comm));
            MPI_Comm_free(&comm);
        }
    }

    void hanging(std::size_t bytes)
    {
        session_.phase("a copy that ends");  // and the set-up of the first call
        session_.ok(attempt(combinations[0], bytes, MPI_COMM_WORLD).status, "a copy that ends");
        session_.phase("a copy that does not end");
        hangs_ = is_victim();
        check(combinations[0], bytes, attempt(combinations[0], bytes, MPI_COMM_WORLD));
    }

    void without_memory(std::size_t bytes)
    {
        for (const Combination& combination : combinations) {
            if (combination.receive != Kind::device) {
                continue;
            }
            session_.phase("%s, %zu bytes, without memory", combination.name, bytes);
            check(combination, bytes, attempt(combination, bytes, MPI_COMM_WORLD));
        }
    }

private:
    struct Result {
        int status;
        Bytes got;
    };

    bool is_victim() const { return session_.rank() == victim_; }

    Result attempt(const Combination& combination, std::size_t bytes, MPI_Comm comm)
    {
        const int call = ++call_;
        const Bytes mine = Pattern(session_.rank(), call).bytes(bytes);
        const auto ranks = static_cast<std::size_t>(session_.size());
        const Memory receive(is_victim() ? combination.receive : Kind::pageable, bytes * ranks);
        const Memory send(is_victim() ? combination.send : Kind::pageable, bytes);
        if (combination.in_place) {
            receive.write(bytes * static_cast<std::size_t>(session_.rank()), mine);
        } else {
            send.write(0, mine);
        }
        const int count = static_cast<int>(bytes);
        const bool is_short = is_victim() && session_.number("memory", 1) == 0;
        MPI_Barrier(MPI_COMM_WORLD);
        rlimit before{};
        getrlimit(RLIMIT_AS, &before);
        if (is_short) {
            limit_memory(bytes);
        }
        if (hangs_) {
            hang_copy_at(copies() + 1);
        }
        const int status = MPI_Allgather(combination.in_place ? MPI_IN_PLACE : send.data(), count,
                                         MPI_BYTE, receive.data(), count, MPI_BYTE, comm);
        setrlimit(RLIMIT_AS, &before);
        if (hangs_) {
            hang_copy_at(0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        return {status, receive.read(0, bytes * ranks)};
    }

    // From now on at most half a block may be allocated.
    void limit_memory(std::size_t bytes)
    {
        std::ifstream file("/proc/self/statm");
        std::size_t pages = 0;
        file >> pages;
        rlimit limit{};
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + bytes / 2;
        session_.check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    }

    void check(const Combination& combination, std::size_t bytes, const Result& result)
    {
        session_.check(observer_.expect() == Expect::hier,
                       "%s, %zu bytes: a call has ended without rank %d", combination.name, bytes,
                       victim_);
        // The others hear of it at once, or, if the victim had sent its block, perhaps after their call.
        const bool must_fail = is_victim() || combination.send == Kind::device;
        const bool has_failed = result.status != MPI_SUCCESS;
        session_.check(has_failed || !must_fail, "%s, %zu bytes: error code %d", combination.name,
                       bytes, result.status);
        if (has_failed) {
            return;
        }
        const Bytes wanted = gathered(session_.size(), call_, bytes);
        const std::string wrong = difference(result.got, wanted);
        session_.check(wrong.empty(), "%s, %zu bytes: wrong %s", combination.name, bytes,
                       wrong.c_str());
    }

    void on_host(MPI_Comm comm, std::size_t bytes)
    {
        const int call = ++call_;
        const Bytes mine = Pattern(session_.rank(), call).bytes(bytes);
        Bytes got(bytes * static_cast<std::size_t>(session_.size()), poison);
        const int count = static_cast<int>(bytes);
        session_.ok(
            observer_.allgather(mine.data(), count, MPI_BYTE, got.data(), count, MPI_BYTE, comm),
            "host memory");
        check_blocks(session_, got.data(), bytes, session_.size(), call, "host memory");
    }

    Session& session_;
    Observer& observer_;
    int victim_;
    bool hangs_ = false;
    int call_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_unusable",
                    {"expect", "min-bytes", "victim", "memory", "hang"});
    Observer observer(session);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    require_hip(hipSetDevice(session.rank() % devices()), "hipSetDevice");
    Unusable unusable(session, observer);
    if (session.number("hang", 0) != 0) {
        unusable.hanging(300007);
    } else if (session.number("memory", 1) != 0) {
        for (const std::size_t bytes : {1U, 4097U, 300007U}) {
            unusable.with_memory(bytes);
        }
    } else {
        mallopt(M_MMAP_THRESHOLD, 1 << 16);  // so freed memory does not serve the next allocation
        for (const std::size_t bytes : {16U << 20, (2U << 20) + 1}) {
            unusable.without_memory(bytes);
        }
    }
    observer.close();
    return session.finish();
}
