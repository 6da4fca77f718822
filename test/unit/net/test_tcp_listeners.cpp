// SPDX-License-Identifier: BSD-3-Clause
// Where a process can be reached from the network: UCX over TCP and our own probe listen at the
// address of their interface, and nowhere else.
#include <arpa/inet.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "net/devices/tcp_probe.hpp"
#include "net/ucx/ucx_worker.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

// The inodes of this process's sockets.
std::set<std::string> own_sockets()
{
    std::set<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string to = std::filesystem::read_symlink(file, gone);
        if (to.starts_with("socket:[")) found.insert(to.substr(8, to.size() - 9));
    }
    return found;
}

// The addresses at which this process listens, as the kernel writes them.
std::vector<std::string> listeners(const char* table)
{
    const auto own = own_sockets();
    std::vector<std::string> found;
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // titles
    while (std::getline(lines, line)) {
        std::istringstream fields(line);
        std::string number, local, remote, state, field, inode;
        fields >> number >> local >> remote >> state;
        for (int i = 0; i < 6; i++) fields >> inode;
        if (state == "0A" && own.contains(inode)) found.push_back(local.substr(0, local.find(':')));
    }
    return found;
}

const std::string loopback = "0100007F";

bool is_at_loopback_alone(std::size_t count)
{
    const auto found = listeners("/proc/net/tcp");
    if (found.size() != count || !listeners("/proc/net/tcp6").empty()) return false;
    for (const std::string& address : found) {
        if (address != loopback) return false;
    }
    return true;
}

void test_probe(void**)
{
    assert_true(is_at_loopback_alone(0));
    const TcpProbe probe("lo");
    assert_true(is_at_loopback_alone(1));
}

void test_ucx(void**)
{
    assert_true(is_at_loopback_alone(0));
    const UcxWorker worker({"lo", "tcp"});
    assert_true(is_at_loopback_alone(1));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_ucx),
    };
    return hier::test::run_cases(argc, argv, "tcp_listeners", tests);
}
