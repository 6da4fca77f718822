// SPDX-License-Identifier: BSD-3-Clause
// Small calls on devices whose kernels start late. Blocks that are in place in memory which peers can map are pushed by
// copy engines. Others go through memory of the host. Some calls look whether kernels still start late.
#include "test/mpi/lib/gpu_memory.hpp"
#include "test/mpi/lib/support.hpp"
#include "test/mpi/lib/variables.hpp"

using namespace hier_test;

namespace {

constexpr std::size_t bytes = 3000;
constexpr int calls = 60, least = 20;  // after a late kernel so many calls at least have none

class Busy {
public:
    explicit Busy(Session& session) : session_(session), variables_(session)
    {
        for (const char* path : {"published", "kernels", "copies"})
            variables_.bind(calls_by(path), MPI_T_PVAR_CLASS_COUNTER);
        variables_.bind("fan_outs", MPI_T_PVAR_CLASS_COUNTER);
    }

    // `path`: that of most calls. None may go by `other`, but for the first ones.
    void run(Kind kind, bool in_place, const std::string& path, const std::string& other)
    {
        const Memory send(kind, bytes);
        const Memory receive(kind, bytes * static_cast<std::size_t>(session_.size()));
        const Memory& own = in_place ? receive : send;
        const std::size_t at = in_place ? bytes * static_cast<std::size_t>(session_.rank()) : 0;
        const unsigned long long by_path = variables_.read(calls_by(path)),
                                 by_other = variables_.read(calls_by(other));
        for (int i = 0; i < calls; ++i) {
            const int call = ++call_;
            session_.phase("call %d, %s, %s", i, name_of(kind), in_place ? "in place" : "");
            own.write(at, Pattern(session_.rank(), call).bytes(bytes));
            gather(in_place ? MPI_IN_PLACE : send.data(), receive.data(), i % 3 == 2);
            const Bytes got = receive.read(0, bytes * static_cast<std::size_t>(session_.size()));
            check_blocks(session_, got.data(), bytes, session_.size(), call, name_of(kind));
        }
        const unsigned long long done = variables_.read(calls_by(path)) - by_path;
        session_.check(done >= least, "%llu calls of %d by %s", done, calls, path.c_str());
        const unsigned long long others = variables_.read(calls_by(other)) - by_other;
        session_.check(others < least / 2, "%llu calls of %d by %s", others, calls, other.c_str());
        session_.check(variables_.read("fan_outs") == 0, "a kernel has pushed a block");
        session_.check(variables_.read(calls_by("kernels")) > 0, "no call has found out");
    }

private:
    static std::string calls_by(const std::string& path) { return "path_" + path + "_calls"; }

    void gather(const void* send, void* receive, bool returns_early)
    {
        const auto count = static_cast<int>(bytes);
        if (returns_early) {
            MPI_Request request = MPI_REQUEST_NULL;
            session_.ok(MPI_Iallgather(send, count, MPI_BYTE, receive, count, MPI_BYTE,
                                       MPI_COMM_WORLD, &request),
                        "MPI_Iallgather");
            session_.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        } else {
            session_.ok(
                MPI_Allgather(send, count, MPI_BYTE, receive, count, MPI_BYTE, MPI_COMM_WORLD),
                "MPI_Allgather");
        }
    }

    Session& session_;
    Variables variables_;
    int call_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_busy", {});
    int devices = 0;
    require_hip(hipGetDeviceCount(&devices), "hipGetDeviceCount");
    require_hip(hipSetDevice(session.rank() % devices), "hipSetDevice");
    {
        Busy busy(session);
        busy.run(Kind::device, true, "copies", "published");
        busy.run(Kind::device, false, "published", "copies");
        busy.run(Kind::pool, true, "published", "copies");
        busy.run(Kind::device, true, "copies", "published");
    }
    return session.finish();
}
