// SPDX-License-Identifier: BSD-3-Clause
// A process that uses its GPU late. By then a communicator has served host memory, without any GPU runtime. The same
// communicator must then serve device memory. The program is not linked with the runtime. Another thread uses the
// device, so the thread that gathers never has a current device. On CUDA hier must leave that thread without a context,
// and every other device, too.
//
//   --early r   this rank uses its GPU from the start [no rank does]
#include "test/mpi/lib/gpu_names.hpp"
#include "test/mpi/lib/support.hpp"

#include <dlfcn.h>

#ifdef HIER_CUDA
#include <cuda.h>
#endif

#include <thread>
#include <vector>

using namespace hier_test;

namespace {

using Bytes = std::vector<unsigned char>;

#ifdef HIER_CUDA
constexpr const char* prefix = "cuda";
constexpr const char* sign = "libcuda.so.1";  // tells hier that the process uses a GPU
#else
constexpr const char* prefix = "hip";
constexpr const char* sign = HIER_RUNTIME_LIBRARY;
#endif

// The functions of the runtime that this test calls.
struct Hip {
    Hip()
    {
        void* const library = dlopen(HIER_RUNTIME_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            std::fprintf(stderr, "gpu_late: %s\n", dlerror());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        get(library, "GetDeviceCount", count_devices);
        get(library, "SetDevice", set_device);
        get(library, "Malloc", allocate);
        get(library, "Free", release);
        get(library, "Memcpy", copy);
    }
    template <class Function> static void get(void* library, const char* name, Function*& function)
    {
        function =
            reinterpret_cast<Function*>(dlsym(library, (prefix + std::string(name)).c_str()));
    }
    // Calls the function in a thread of its own, with the rank's device as current one. False: an error.
    template <class... Parameters, class... Arguments>
    bool apart(hipError_t (*call)(Parameters...), Arguments... arguments) const
    {
        hipError_t error = hipSuccess;
        std::jthread([&] {
            int devices = 1;
            error = count_devices(&devices);
            if (error == hipSuccess) error = set_device(rank_of(MPI_COMM_WORLD) % devices);
            if (error == hipSuccess) error = call(arguments...);
        }).join();
        return error == hipSuccess;
    }

    hipError_t (*count_devices)(int*) = nullptr;
    hipError_t (*set_device)(int) = nullptr;
    hipError_t (*allocate)(void**, std::size_t) = nullptr;
    hipError_t (*release)(void*) = nullptr;
    hipError_t (*copy)(void*, const void*, std::size_t, hipMemcpyKind) = nullptr;
};

class Late {
public:
    Late(Session& session, Observer& observer) : session_(session), observer_(observer) {}

    void on_host(MPI_Comm comm, std::size_t bytes)
    {
        const int call = ++call_;
        const Bytes send = Pattern(rank_of(comm), call).bytes(bytes);
        Bytes receive(bytes * static_cast<std::size_t>(size_of(comm)), poison);
        run(send.data(), receive.data(), bytes, comm, "host memory");
        check_blocks(session_, receive.data(), bytes, size_of(comm), call, "host memory");
    }

    void on_device(const Hip& hip, MPI_Comm comm, std::size_t bytes, bool in_place,
                   const char* what, int again = 1)
    {
        const int call = ++call_;
        const std::size_t total = bytes * static_cast<std::size_t>(size_of(comm));
        const Bytes mine = Pattern(rank_of(comm), call).bytes(bytes);
        void* memory = nullptr;
        if (!hip.apart(hip.allocate, &memory, total + bytes)) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        auto* const receive = static_cast<unsigned char*>(memory);
        unsigned char* const own =
            receive + (in_place ? bytes * static_cast<std::size_t>(rank_of(comm)) : total);
        session_.check(hip.apart(hip.copy, own, mine.data(), bytes, hipMemcpyHostToDevice),
                       "hipMemcpy");
        for (int i = 0; i < again; ++i) {
            run(in_place ? nullptr : own, receive, bytes, comm, what);
        }
        Bytes got(total);
        session_.check(hip.apart(hip.copy, got.data(), receive, total, hipMemcpyDeviceToHost),
                       "hipMemcpy");
        check_blocks(session_, got.data(), bytes, size_of(comm), call, what);
        session_.check(hip.apart(hip.release, memory), "hipFree");
    }

private:
    void run(const void* send, void* receive, std::size_t bytes, MPI_Comm comm, const char* what)
    {
        session_.phase("%s, %zu bytes", what, bytes);
        const int count = static_cast<int>(bytes);
        session_.ok(observer_.allgather(send == nullptr ? MPI_IN_PLACE : send, count, MPI_BYTE,
                                        receive, count, MPI_BYTE, comm),
                    what);
    }

    Session& session_;
    Observer& observer_;
    int call_ = 0;
};

#ifdef HIER_CUDA
void check_contexts(Session& session, const Hip& hip)
{
    void* const driver = dlopen(sign, RTLD_NOW | RTLD_NOLOAD);
    const auto current =
        reinterpret_cast<decltype(&cuCtxGetCurrent)>(dlsym(driver, "cuCtxGetCurrent"));
    const auto state = reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(
        dlsym(driver, "cuDevicePrimaryCtxGetState"));
    CUcontext context = nullptr;
    session.check(current(&context) == CUDA_SUCCESS && context == nullptr,
                  "the thread that gathers has a context");
    int devices = 0;
    session.check(hip.count_devices(&devices) == hipSuccess, "hipGetDeviceCount");
    for (int device = 0; device < devices; ++device) {
        unsigned flags = 0;
        int is_active = 0;
        const bool is_own = device == session.rank() % devices;
        session.check(state(device, &flags, &is_active) == CUDA_SUCCESS && (is_own || !is_active),
                      "device %d, which is not the rank's, has a context", device);
    }
}
#else
void check_contexts(Session&, const Hip&) {}
#endif

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_late", {"expect", "min-bytes", "early"});
    Observer observer(session);
    session.check(dlopen(sign, RTLD_LAZY | RTLD_NOLOAD) == nullptr,
                  "%s is there already: this tests nothing", sign);
    constexpr std::size_t sizes[] = {3, 4097, 100003};
    Late late(session, observer);
    if (session.text("early", "") == std::to_string(session.rank())) {
        const Hip early;
        void* memory = nullptr;
        session.check(early.apart(early.allocate, &memory, std::size_t{1}), "hipMalloc");
        session.check(early.apart(early.release, memory), "hipFree");
    }
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (const std::size_t bytes : sizes) {
        late.on_host(MPI_COMM_WORLD, bytes);
    }
    const Hip hip;
    for (const std::size_t bytes : sizes) {
        for (const bool in_place : {false, true}) {
            late.on_device(hip, MPI_COMM_WORLD, bytes, in_place, "a team made without");
            late.on_device(hip, other, bytes, in_place, "a team made with the runtime");
        }
        late.on_host(MPI_COMM_WORLD, bytes);
    }
    // So many calls that hier also looks at the streams.
    late.on_device(hip, other, sizes[1], false, "many calls", 200);
    check_contexts(session, hip);
    MPI_Comm_free(&other);
    observer.close();
    return session.finish();
}
