// SPDX-License-Identifier: BSD-3-Clause
// The process uses a GPU, but there is no good module for it. The module is missing, is not a
// library, has another version, or comes late.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "gpu/runtime.hpp"
#include "hier/hier.h"
#include "test/support/forked.hpp"
#include "test/support/reachable.hpp"
#include "test/support/simulated_runtime.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// A directory in place of the one that has the modules.
struct Directory {
    Directory()
    {
        if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no directory");
        setenv("HIER_GPU_MODULES", path.c_str(), 1);
    }
    ~Directory() { std::filesystem::remove_all(path); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    std::string module() const { return path + "/hier_gpu_rocm.so"; }
    std::string path = "/tmp/hier-test-modules.XXXXXX";
};

std::size_t count(const std::string& text, const std::string& words)
{
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; at++) found++;
    return found;
}

// The process uses a GPU, and `file` is not the module that it should be.
std::string no_module(const std::string& file, const std::string& cause)
{
    void* const host = host_page();
    if (gpu::runtime() != nullptr || !is_reachable(host))
        return "wrong before the library is there";
    if (!ForkedRank::log_lines().empty()) return "it logs: " + ForkedRank::log_lines();
    if (const auto fault = load(); !fault.empty()) return fault;
    void* const device = simulated_memory();
    for (int i = 0; i < 3; i++) {
        std::string reason;
        if (gpu::runtime() != nullptr || gpu::find_runtime(reason) != nullptr)
            return "there is one";
        if (reason.find("hier_gpu_rocm.so: " + cause) == std::string::npos) return reason;
        if (!is_reachable(host)) return "a page is no host memory";
        if (is_reachable(device)) return "device memory passes for the host's";
        Allocation found;
        if (gpu::inspect(device, found) != Status::transport_error) return "no error";
    }
    const std::string lines = ForkedRank::log_lines();
    const bool is_told_once =
        count(lines, "has loaded libamdhip64.so") == 1 && count(lines, file) >= 1 &&
        count(lines, "no GPU runtime that works: hier_gpu_rocm.so: " + cause) == 6;
    return is_told_once ? "" : lines;
}

void test_no_module(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        const Directory modules;
        return no_module(modules.module(), modules.module() + ": cannot open");
    }))));
}

void test_unreadable_module(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        const Directory modules;
        std::ofstream(modules.module()) << "no library";
        return no_module(modules.module(), modules.module() + ": file too short");
    }))));
}

void test_module_of_another_version(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        const Directory modules;
        std::filesystem::create_symlink(HIER_TEST_SIMULATED, modules.module());
        return no_module(modules.module(), modules.module() + ": it has another version");
    }))));
}

// A module that is installed later is found.
void test_module_that_comes_late(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        const Directory modules;
        if (const auto fault = load(); !fault.empty()) return fault;
        void* const device = simulated_memory();
        if (is_reachable(device) || gpu::runtime() != nullptr) return std::string("there is one");
        std::filesystem::create_symlink(HIER_TEST_MODULES "/hier_gpu_rocm.so", modules.module());
        const bool is_known = !is_reachable(device) && gpu::used_device() == 0;
        return std::string(is_known ? "" : "not found");
    }))));
}

// After each library that the application loads, hier looks whether it is a GPU runtime. That look must not
// search the disk.
void test_no_search_on_disk(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        void* const host = host_page();
        if (gpu::runtime() != nullptr) return std::string("a runtime before it is loaded");
        if (dlopen("libresolv.so.2", RTLD_NOW) == nullptr) return std::string(dlerror());
        dlopen_searches = 0;
        Allocation found;
        if (gpu::runtime() != nullptr || gpu::inspect(host, found) != Status::ok)
            return std::string("a runtime is found in libresolv");
        return dlopen_searches == 0 ? std::string() : std::to_string(dlopen_searches) + " searches";
    }))));
}

// To count the libraries takes a lock of the loader, where threads would meet.
void test_libraries_are_not_counted_in_each_call(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        constexpr int calls = 10000;
        static int counts = 0;
        after_dl_iterate_phdr = [] { counts++; };
        void* const host = host_page();
        for (int i = 0; i < calls; i++) (void)is_reachable(host);
        after_dl_iterate_phdr = nullptr;
        const bool is_seldom = 0 < counts && counts < calls / 10;
        return is_seldom ? std::string() : std::to_string(counts) + " times";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_no_module),
        cmocka_unit_test(test_unreadable_module),
        cmocka_unit_test(test_module_of_another_version),
        cmocka_unit_test(test_module_that_comes_late),
        cmocka_unit_test(test_no_search_on_disk),
        cmocka_unit_test(test_libraries_are_not_counted_in_each_call),
    };
    return hier::test::run_cases(argc, argv, "gpu_modules", tests);
}
