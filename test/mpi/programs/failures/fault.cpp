// SPDX-License-Identifier: BSD-3-Clause
// The last rank fails. The survivors must not wait for ever: they get an error, print it, and end the job.
//
//   --mode kill     the rank is killed during calls; mpirun then ends the job
//   --mode stop     the rank is stopped during calls, as by a debugger: it does not run, but it exists
//   --mode counts   the rank gives another count than the others
//   --mode resume   the rank is stopped, and goes on when the others have freed the communicator; they sent staged data
//   --mode again    like counts; then staged calls on the broken communicator must return the error and lose no memory
//   --mode cut      the network goes down and comes back, by the commands in HIER_TEST_CUT and HIER_TEST_MEND
//   --mode late     the rank comes later than coll_hier_timeout; this is no failure, and every byte must be right
//   --mode pause    the rank is stopped for a while inside a call, and goes on; the call ends well
//   --mode slow     one call on a slow network; it ends well
//   --bytes N       bytes a rank in kill, stop, counts, late, pause and slow; for stop more than goes to a rank outside
//                   the call
//   --seconds N     how long the rank is stopped in pause [4]
#include "test/mpi/lib/resources.hpp"
#include "test/mpi/lib/support.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <csignal>
#include <unistd.h>

using namespace hier_test;

namespace {

constexpr std::size_t block = 300007;

// Sends the signal to this process a moment later, whatever the process does then.
void signal_soon(int signal)
{
    std::thread([signal] {
        usleep(50000);
        kill(getpid(), signal);
    }).detach();
}

// A child stops this process for a while and then continues it.
void stop_for_a_while(unsigned seconds)
{
    const pid_t process = getpid();
    if (fork() != 0) return;
    usleep(1000000);
    kill(process, SIGSTOP);
    sleep(seconds);
    kill(process, SIGCONT);
    _exit(0);
}

// Every other integer, so the data is packed before it is sent.
MPI_Datatype strided_block()
{
    MPI_Datatype type;
    MPI_Type_vector(1 << 22, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

// The victim stops in the call, after it has let the others write. The others' data is in memory of the component. UCX
// still uses this memory long after the communicator was freed.
void run_resume(Session& session, bool victim, MPI_Comm comm)
{
    constexpr unsigned pause = 10;
    MPI_Datatype type = strided_block();
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    const auto block_bytes = static_cast<std::size_t>(bytes);
    // Static, because transfers from and to these buffers may go on after this function has returned.
    static std::vector<unsigned char> send, receive;
    send.resize(2 * block_bytes);
    receive.resize(block_bytes * static_cast<std::size_t>(session.size()));
    if (victim) {
        stop_for_a_while(pause);
    } else {
        usleep(1500000);
    }
    session.phase("the call in which the last rank stops");
    const double started = MPI_Wtime();
    const int status = MPI_Allgather(send.data(), 1, type, receive.data(), bytes, MPI_BYTE, comm);
    session.check(status != MPI_SUCCESS, "success, though the last rank was stopped");
    session.check(victim || MPI_Wtime() - started < pause - 2, "the call failed too late");
    MPI_Comm_free(&comm);
    MPI_Type_free(&type);
    session.phase("after the call, until the last rank goes on");
    int found = 0;
    while (MPI_Wtime() - started < pause + 2)
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

// On a broken communicator no transfer starts. The memory into which data was packed is used again by the next call.
void run_again(Session& session, bool victim, MPI_Comm comm)
{
    constexpr int calls = 100;
    MPI_Datatype type;
    MPI_Type_vector(static_cast<int>(block), 1, 2, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    const std::vector<unsigned char> send(4 * block);  // two elements
    std::vector<unsigned char> receive(send.size() * static_cast<std::size_t>(session.size()));
    const auto call = [&](int count) {
        return MPI_Allgather(send.data(), count, type, receive.data(), count, type, comm);
    };
    session.phase("the call that breaks the communicator");
    session.check(call(victim ? 1 : 2) != MPI_SUCCESS, "success, though the counts differ");
    session.phase("%d calls on the broken communicator", calls);
    const long long before = Resources::now().resident_bytes;
    for (int i = 0; i < calls; ++i) {
        session.check(call(1) != MPI_SUCCESS, "success on a broken communicator");
    }
    const long long grown = Resources::now().resident_bytes - before;
    session.check(grown < static_cast<long long>(block) * calls / 4,
                  "%d calls on a broken communicator: %lld bytes more", calls, grown);
    MPI_Comm_free(&comm);
    MPI_Type_free(&type);
}

// The victim stops for a while in the call, after it has let the others write.
template <class Call> void run_pause(Session& session, bool victim, Call call)
{
    const auto seconds = static_cast<unsigned>(session.number("seconds", 4));
    if (victim) {
        stop_for_a_while(seconds);
    } else {
        usleep(1500000);
    }
    session.phase("the call in which the last rank stops for %u s", seconds);
    const double started = MPI_Wtime();
    call();
    session.check(MPI_Wtime() - started > seconds - 1, "the last rank was not stopped in the call");
}

void run_command(Session& session, const char* variable)
{
    const char* command = std::getenv(variable);
    if (command == nullptr) {
        session.usage("--mode cut needs %s", variable);
    }
    session.check(std::system(command) == 0, "%s", command);
}

// Small calls, which are not acknowledged, and large calls, each on a communicator of its own. While the network is
// down they fail on every rank. Communicators that are made later are served.
void run_cut(Session& session, MPI_Comm comm)
{
    constexpr std::size_t sizes[] = {8, block};
    MPI_Comm comms[2];
    std::vector<unsigned char> receive(block * static_cast<std::size_t>(session.size()));
    const auto call = [&](std::size_t bytes, MPI_Comm on, int number) {
        const std::vector<unsigned char> send = Pattern(session.rank(), number).bytes(bytes);
        const int count = static_cast<int>(bytes);
        return MPI_Allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, on);
    };
    for (MPI_Comm& c : comms) {
        MPI_Comm_dup(comm, &c);
        MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
        session.ok(call(block, c, 0), "before the network goes down");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (session.rank() == 0) {
        run_command(session, "HIER_TEST_CUT");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) {
        session.phase("the network is down, %zu bytes", sizes[i]);
        session.check(call(sizes[i], comms[i], 1) != MPI_SUCCESS, "success without a network");
        MPI_Comm_free(&comms[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (session.rank() == 0) {
        run_command(session, "HIER_TEST_MEND");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) {
        session.phase("the network is there again, communicator %d", i);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        session.ok(call(block, comms[0], 2 + i), "after the network has come back");
        check_blocks(session, receive.data(), block, session.size(), 2 + i, "fault");
        MPI_Comm_free(&comms[0]);
    }
    MPI_Comm_free(&comm);
}

// Prints the error of this rank and ends the job.
[[noreturn]] void survivor(const Session& session, int status)
{
    int error_class = MPI_SUCCESS;
    int length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(status, &error_class);
    MPI_Error_string(status, text, &length);
    std::fprintf(stderr, "fault: rank %d: survivor: error class %d: %s\n", session.rank(),
                 error_class, text);
    // Gives the others time to print their errors.
    sleep(2);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

}  // namespace

int main(int argc, char** argv)
{
    keep_pages_small();
    Session session(argc, argv, "fault", {"expect", "min-bytes", "mode", "bytes", "seconds"});
    Observer observer(session);
    const std::string mode = session.text("mode", "");
    const std::vector<std::string> modes{"kill", "stop", "counts", "resume", "again",
                                         "cut",  "late", "pause",  "slow"};
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) {
        session.usage("--mode does not take '%s'", mode.c_str());
    }
    if (session.size() < 2) {
        session.usage("needs two ranks or more");
    }
    const bool victim = session.rank() == session.size() - 1;
    const auto bytes = static_cast<std::size_t>(session.number("bytes", block));
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(session.size()), poison);

    const auto call = [&](int number, std::size_t given) {
        const std::vector<unsigned char> send = Pattern(session.rank(), number).bytes(given);
        const int count = static_cast<int>(given);
        const int status =
            observer.allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, comm);
        if (status != MPI_SUCCESS) {
            survivor(session, status);
        }
    };
    const auto good_calls = [&](int from, int calls, std::size_t size) {
        for (int number = from; number < from + calls; ++number) {
            session.phase("%s, call %d", mode.c_str(), number);
            call(number, size);
            check_blocks(session, receive.data(), size, session.size(), number, "fault");
        }
    };

    good_calls(0, 3, std::min(bytes, block));  // now there is a team, and it works
    MPI_Barrier(MPI_COMM_WORLD);
    if (mode == "kill" || mode == "stop") {
        // The victim enters the call and waits there for the others, so it gets the signal inside the call.
        if (victim) {
            signal_soon(mode == "kill" ? SIGKILL : SIGSTOP);
        } else {
            usleep(300000);
        }
        // The victim's block of the first call may have arrived, if it is small. That of the second call cannot.
        for (const int number : {100, 101}) {
            session.phase("%s, call %d", mode.c_str(), number);
            call(number, bytes);
        }
        session.check(false, "success, though the last rank cannot have sent");
    } else if (mode == "resume") {
        run_resume(session, victim, comm);
        return session.finish();
    } else if (mode == "again") {
        run_again(session, victim, comm);
        return session.finish();
    } else if (mode == "cut") {
        run_cut(session, comm);
        return session.finish();
    } else if (mode == "pause") {
        run_pause(session, victim, [&] { good_calls(100, 1, bytes); });
    } else if (mode == "slow") {
        good_calls(100, 1, bytes);
    } else if (mode == "counts") {
        session.phase("calls with unequal counts");
        call(100, victim ? bytes / 2 : bytes);
        call(101, victim ? bytes / 2 : bytes);
    } else {
        if (victim) {
            sleep(4);
        }
        good_calls(100, 3, bytes);
    }
    MPI_Comm_free(&comm);
    return session.finish();
}
