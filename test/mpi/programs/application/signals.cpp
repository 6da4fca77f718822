// SPDX-License-Identifier: BSD-3-Clause
// An application has set its own signal handlers before MPI_Init. They must stay, whether hier serves or not.
#include "test/mpi/lib/support.hpp"

#include <link.h>

#include <csignal>
#include <cstring>
#include <vector>

using namespace hier_test;

namespace {

void handler(int, siginfo_t*, void*) {}

// Another component may have loaded UCX first. Then UCX has taken the handlers on behalf of that component.
bool is_first(const char* library, const char* other)
{
    struct Search {
        const char *library, *other;
    } search{library, other};
    return dl_iterate_phdr(
               [](dl_phdr_info* info, std::size_t, void* out) {
                   const auto& s = *static_cast<const Search*>(out);
                   return std::strstr(info->dlpi_name, s.library) != nullptr ? 1
                          : std::strstr(info->dlpi_name, s.other) != nullptr ? 2
                                                                             : 0;
               },
               &search) == 1;
}

}  // namespace

int main(int argc, char** argv)
{
    constexpr int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction own {};
    own.sa_sigaction = handler;
    own.sa_flags = SA_SIGINFO;
    for (const int number : signals) {
        sigaction(number, &own, nullptr);
    }
    Session session(argc, argv, "signals", {"expect", "min-bytes"});
    Observer observer(session);
    const bool is_ours = is_first("mca_coll_hier", "libucs");
    for (const int number : signals) {
        struct sigaction now {};
        sigaction(number, nullptr, &now);
        session.check(!is_ours || now.sa_sigaction == handler, "signal %d has another handler",
                      number);
    }
    constexpr int count = 70001;
    const std::vector<unsigned char> send = Pattern(session.rank(), 1).bytes(count);
    std::vector<unsigned char> receive(send.size() * static_cast<std::size_t>(session.size()));
    session.ok(observer.allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE,
                                  MPI_COMM_WORLD),
               "MPI_Allgather");
    check_blocks(session, receive.data(), send.size(), session.size(), 1, "signals");
    return session.finish();
}
