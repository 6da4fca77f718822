// SPDX-License-Identifier: BSD-3-Clause
// Another thread than the main thread uses MPI. The main threads of all processes but one end between two calls. After
// that the kernel does not find memory and files of these processes by process id any more.
#include "test/mpi/lib/support.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace hier_test;

namespace {

std::atomic<bool> is_over{false};

bool has_ended()
{
    std::string state;
    std::getline(std::ifstream("/proc/self/stat"), state);
    return state.find(") Z ") != std::string::npos;
}

void end_main_thread()
{
    is_over = true;
    is_over.notify_one();
    while (!has_ended()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void gather(Session& session, Observer& observer, MPI_Comm comm, int call)
{
    const int count = call % 2 == 0 ? 1500000 : 70001;
    const std::vector<unsigned char> send =
        Pattern(session.rank(), call).bytes(static_cast<std::size_t>(count));
    std::vector<unsigned char> receive(send.size() * static_cast<std::size_t>(session.size()));
    session.ok(
        observer.allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, comm),
        "MPI_Allgather");
    check_blocks(session, receive.data(), send.size(), session.size(), call, "main thread");
}

int run(int argc, char** argv)
{
    Session session(argc, argv, "main_thread", {"expect", "min-bytes"}, MPI_THREAD_MULTIPLE);
    Observer observer(session);
    gather(session, observer, MPI_COMM_WORLD, 0);
    gather(session, observer, MPI_COMM_WORLD, 1);
    if (session.rank() != 0) {
        end_main_thread();
    }
    session.phase("without a main thread");
    gather(session, observer, MPI_COMM_WORLD, 2);
    gather(session, observer, MPI_COMM_WORLD, 3);
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    gather(session, observer, made, 4);
    gather(session, observer, made, 5);
    MPI_Comm_free(&made);
    return session.finish();
}

}  // namespace

int main(int argc, char** argv)
{
    std::thread([=] { std::exit(run(argc, argv)); }).detach();
    is_over.wait(false);
    pthread_exit(nullptr);
}
