// SPDX-License-Identifier: BSD-3-Clause
// The set-up of the node level. All ranks choose the same paths, even if the system refuses
// something to one of them.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "test/support/forked.hpp"
#include "test/support/node_traffic.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// Lists the named shared memory that these processes have left behind.
std::string leftovers(const std::vector<int>& pids)
{
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
        const std::string name = file.path().filename();
        for (const int pid : pids) {
            if (name.starts_with("hier." + std::to_string(pid) + '.'))
                return "left in /dev/shm: " + name;
        }
    }
    return "";
}

// Looks when all ranks have finished.
std::string look_for_leftovers(const ForkedRank& self)
{
    return leftovers(self.group().collect(static_cast<int>(getpid())));
}

// Does a little work, to see that the chosen paths work.
std::string use(Transport& transport, const ForkedRank& self)
{
    return run_traffic(transport, self, make_traffic(1, self.size(), 3, {100, 70000}), 1);
}

std::string choose(const ForkedRank& self, int intra, const std::string& wanted)
{
    const auto transport = make_transport(self, intra);
    if (transport->name() != wanted) return std::string("chosen: ") + transport->name();
    const auto left = look_for_leftovers(self);
    return left.empty() ? use(*transport, self) : left;
}

constexpr const char* cma = "copies between processes (CMA)";
constexpr const char* both =
    "copies between processes (CMA; results of up to 1024 KiB: shared memory)";
constexpr const char* shm = "shared memory";

void test_as_asked_for(void**)
{
    expect_no_reason(keep(first_fault(
        run_ranks(3, [](ForkedRank& self) { return choose(self, HIER_INTRA_AUTO, both); }))));
    expect_no_reason(keep(first_fault(
        run_ranks(3, [](ForkedRank& self) { return choose(self, HIER_INTRA_CMA, cma); }))));
    expect_no_reason(keep(first_fault(
        run_ranks(3, [](ForkedRank& self) { return choose(self, HIER_INTRA_SHM, shm); }))));
}

// A rank alone only copies, and no other rank can fail.
void test_a_rank_alone(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank& self) -> std::string {
        const auto transport = make_transport(self, HIER_INTRA_AUTO);
        std::byte send[2]{std::byte{1}, std::byte{2}}, receive[2]{};
        const Binding binding{1, {send, 2}, {receive, 2}};
        if (failed(transport->begin(binding))) return "begin failed";
        if (transport->copy({0, {1, 1, 1}, Place::send, Place::receive, 0, 0}) != Status::ok)
            return "copy failed";
        transport->tell(1);
        if (transport->heard() != 0) return "it hears somebody";
        transport->raise(Status::transport_error);
        struct Ignore final : Completions {
            void complete(std::uint32_t, Status) override {}
        } ignore;
        if (failed(transport->progress(ignore))) return "it hears of its own error";
        transport->end();
        return receive[0] == std::byte{0} && receive[1] == std::byte{2} ? "" : "wrong bytes";
    }))));
}

// The kernel refuses CMA to one rank or to all ranks. Then all ranks use shared memory, and say
// why.
// Fault: the system refuses copies between processes | a refused system call | shared memory serves
void test_refused_cma_leads_to_shared_memory(void**)
{
    for (const Writev mode : {Writev::is_refused, Writev::pretends, Writev::ends_early}) {
        for (int culprit = -1; culprit < 3; culprit++) {
            expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
                if (culprit == -1 || culprit == self.rank()) writev_mode = mode;
                const auto fault = choose(self, HIER_INTRA_AUTO, shm);
                if (!fault.empty()) return fault;
                return ForkedRank::is_logged("using shared memory inside the node")
                           ? ""
                           : "it does not say so";
            }))));
        }
    }
}

// ---- errors

// All ranks get a SetupError. The culprit's error has `cause`. No memory stays behind.
std::string fail_setup(const ForkedRank& self, int intra, bool is_culprit, const std::string& cause)
{
    std::string error;
    try {
        const auto transport = make_transport(self, intra);
    } catch (const SetupError& e) {
        error = e.what();
    }
    if (error.empty()) return "no error";
    if (is_culprit && error.find(cause) == std::string::npos) return "the error is: " + error;
    return look_for_leftovers(self);
}

void test_refused_cma_that_was_asked_for(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) {
        if (self.rank() == 1) writev_mode = Writev::is_refused;
        return fail_setup(
            self, HIER_INTRA_CMA, self.rank() == 1,
            "coll_hier_intra is cma, but the kernel refuses it: process_vm_writev to process");
    }))));
}

// /dev/shm is not needed and not used.
// Fault: /dev/shm is missing | opening it fails | anonymous memory serves
void test_no_dev_shm(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) -> std::string {
        const auto fault = choose(self, HIER_INTRA_SHM, shm);
        if (!fault.empty()) return fault;
        return shm_open_call.calls == 0 ? "" : "it has made something there";
    }))));
}

std::string use_dev_shm(const ForkedRank& self)
{
    const auto fault = choose(self, HIER_INTRA_SHM, shm);
    if (!fault.empty()) return fault;
    if (shm_open_call.calls == 0) return "it has not";
    return ForkedRank::is_logged("trying /dev/shm") ? "" : "it does not say so";
}

// Fault: the system refuses anonymous shared memory | a refused system call | /dev/shm serves
void test_refused_anonymous_memory(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
        if (self.rank() == 0) memfd_call.fail_nth(1, ENOSYS);
        return use_dev_shm(self);
    }))));
    for (int culprit = 1; culprit < 3; culprit++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            if (self.rank() == culprit) open_call.fail_nth(1, EACCES);
            return use_dev_shm(self);
        }))));
    }
}

// /proc belongs to another namespace of process ids.
void test_another_process(void**)
{
    for (int culprit = 1; culprit < 3; culprit++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            opens_another = self.rank() == culprit;
            return use_dev_shm(self);
        }))));
    }
}

// On older kernels a signal ends a reservation.
void test_a_signal_meanwhile(void**)
{
    for (int nth = 1; nth <= 6; nth++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
            fallocate_call.fail_nth(nth, EINTR);
            const auto fault = choose(self, HIER_INTRA_SHM, shm);
            if (!fault.empty()) return fault;
            return shm_open_call.calls == 0 ? "" : "it has given up";
        }))));
    }
}

// Fault: shared memory is full | the allocation of pages fails | no team on any rank
void test_full_shared_memory(void**)
{
    for (int nth = 1; nth <= 2; nth++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            memfd_call.fail_all(ENOSYS);
            if (self.rank() == 0) fallocate_call.fail_nth(nth, ENOSPC);
            return fail_setup(self, HIER_INTRA_SHM, self.rank() == 0,
                              "of shared memory (/dev/shm): No space left on device");
        }))));
    }
}

// If CMA works, small blocks need no cells, and they need not be published.
void test_no_room_for_areas(void**)
{
    for (int culprit = 0; culprit < 3; culprit++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
            memfd_call.fail_all(ENOSYS);
            if (self.rank() == culprit)
                (culprit == 0 ? fallocate_call : mmap_call).fail_nth(1, ENOMEM);
            const auto transport = make_transport(self, HIER_INTRA_AUTO);
            if (transport->publish_space() != 0) return "it has room all the same";
            const auto traffic = make_traffic(1, self.size(), 20, {1, 100, 5000});
            const auto fault = run_traffic(*transport, self, traffic, 1);
            if (!fault.empty()) return fault;
            return ForkedRank::is_logged("no cells for small blocks") ? "" : "it does not say so";
        }))));
    }
}

// Fault: the system refuses all shared memory | refused system calls | no team on any rank
void test_refused_shared_memory(void**)
{
    for (int culprit = 0; culprit < 3; culprit++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            memfd_call.fail_all(ENOSYS);
            if (self.rank() == culprit) shm_open_call.fail_nth(1, EMFILE);
            return fail_setup(self, HIER_INTRA_SHM, self.rank() == culprit, "Too many open files");
        }))));
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            memfd_call.fail_all(ENOSYS);
            if (self.rank() == culprit) mmap_call.fail_nth(1, ENOMEM);
            return fail_setup(self, HIER_INTRA_SHM, self.rank() == culprit,
                              "Cannot allocate memory");
        }))));
    }
}

// The check for leftovers finds memory that is left.
void test_leftovers_are_found(void**)
{
    const std::string name = "/hier." + std::to_string(getpid()) + ".test";
    const std::filesystem::path path = "/dev/shm" + name;
    std::fclose(std::fopen(path.c_str(), "w"));
    const bool is_found = !leftovers({getpid()}).empty();
    std::filesystem::remove(path);
    const bool is_gone = leftovers({getpid()}).empty();
    assert_true(is_found);
    assert_true(is_gone);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_as_asked_for),
        cmocka_unit_test(test_a_rank_alone),
        cmocka_unit_test(test_refused_cma_leads_to_shared_memory),
        cmocka_unit_test(test_refused_cma_that_was_asked_for),
        cmocka_unit_test(test_no_dev_shm),
        cmocka_unit_test(test_refused_anonymous_memory),
        cmocka_unit_test(test_another_process),
        cmocka_unit_test(test_a_signal_meanwhile),
        cmocka_unit_test(test_full_shared_memory),
        cmocka_unit_test(test_no_room_for_areas),
        cmocka_unit_test(test_refused_shared_memory),
        cmocka_unit_test(test_leftovers_are_found),
    };
    return hier::test::run_cases(argc, argv, "node_transport_setup", tests);
}
