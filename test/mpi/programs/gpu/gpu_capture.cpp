// SPDX-License-Identifier: BSD-3-Clause
// One thread of the application captures a graph while another one gathers. hier must serve the calls, and the capture
// must go on. The capture has the strictest mode, the default of CUDA and PyTorch. In that mode a call of any thread
// breaks the capture if it waits, queries an event or allocates. A thread can opt out of this rule.
#include "test/mpi/lib/gpu_memory.hpp"

#include <optional>
#include <semaphore>
#include <thread>

using namespace hier_test;

namespace {

// A capture in a thread of its own, from construction to end().
class Capture {
public:
    explicit Capture(int device) : thread_([this, device] { run(device); }) { begun_.acquire(); }
    // Ends the capture and returns its result.
    hipError_t end()
    {
        ended_.release();
        thread_.join();
        return error_;
    }

private:
    void run(int device)
    {
        require_hip(hipSetDevice(device), "hipSetDevice");
        hipStream_t stream = nullptr;
        require_hip(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "a stream");
        require_hip(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), "a capture");
        begun_.release();
        ended_.acquire();
        hipGraph_t graph = nullptr;
        error_ = hipStreamEndCapture(stream, &graph);
        (void)hipStreamDestroy(stream);
    }

    std::binary_semaphore begun_{0}, ended_{0};
    hipError_t error_ = hipSuccess;
    std::jthread thread_;
};

void gather(Session& session, Observer& observer, Kind kind, std::size_t bytes, int call,
            bool beside_capture = true)
{
    const std::size_t total = bytes * static_cast<std::size_t>(session.size());
    const Memory send(kind, Pattern(session.rank(), call).bytes(bytes));
    const Memory receive(kind, total);
    session.phase("%s memory, %zu bytes a rank", name_of(kind), bytes);
    // The test itself has not opted out. So it uses memory only before and after the capture.
    std::optional<Capture> capture;
    if (beside_capture) {
        capture.emplace(current_device());
    }
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);  // so set-up runs beside the capture, too
    const auto count = static_cast<int>(bytes);
    for (const MPI_Comm on : {comm, MPI_COMM_WORLD}) {
        session.ok(
            observer.allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, on),
            "MPI_Allgather beside a capture");
    }
    MPI_Comm_free(&comm);
    const hipError_t end = capture ? capture->end() : hipSuccess;
    session.check(end == hipSuccess, "%s memory, %zu bytes a rank: the capture has ended with %s",
                  name_of(kind), bytes, hipGetErrorName(end));
    check_blocks(session, receive.read(0, total).data(), bytes, session.size(), call,
                 name_of(kind));
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_capture", {"expect", "min-bytes"}, MPI_THREAD_MULTIPLE);
    require_hip(hipSetDevice(session.rank() % devices()), "hipSetDevice");
    Observer observer(session);
    constexpr std::size_t sizes[] = {16, 4097, 300000, 5000000};
    int call = 0;
#ifdef HIER_CUDA
    // When hier first sees memory of a pool, it sets the flag CU_CTX_SYNC_MEMOPS of the context. That breaks captures
    // in any mode, so it happens here.
    gather(session, observer, Kind::pool, 4097, ++call, false);
#endif
    for (unsigned kind = 0; kind < kinds; ++kind) {
        for (const std::size_t bytes : sizes) {
            gather(session, observer, static_cast<Kind>(kind), bytes, ++call);
        }
    }
    observer.close();
    return session.finish();
}
