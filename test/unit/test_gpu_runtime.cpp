// Finding the GPU's runtime: only where the process uses one, as soon as it does, and without a word where there is
// none. Not linked with HIP; the simulated runtime is loaded as an application would load the real one.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "forked.hpp"
#include "gpu/runtime.hpp"
#include "hier/hier.h"

#include "cmocka.hpp"

namespace {

// A thread that sets it waits here once, with what it has learnt of the libraries in its hands.
thread_local std::atomic<bool>* go_on = nullptr;
std::atomic<bool> is_held{false};

}  // namespace

using Visit = int (*)(dl_phdr_info*, std::size_t, void*);
extern "C" int __real_dl_iterate_phdr(Visit visit, void* data);
extern "C" int __wrap_dl_iterate_phdr(Visit visit, void* data);

// That of our own objects; the linker's flag is in the build's list.
extern "C" int __wrap_dl_iterate_phdr(Visit visit, void* data)
{
    const int result = __real_dl_iterate_phdr(visit, data);
    if (std::atomic<bool>* const until = std::exchange(go_on, nullptr)) {
        is_held = true;
        until->wait(false);
    }
    return result;
}

namespace {

using namespace hier;
using namespace hier::test;

std::string load()
{
    return dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_LOCAL) != nullptr ? "" : dlerror();
}

// In a process of its own, which must say nothing.
const char* quietly(std::string (*body)())
{
    return keep(first_fault(run_ranks(1, [&](ForkedRank&) -> std::string {
        setenv("HIER_GPU_MODULES", HIER_TEST_MODULES, 0);
        const int words = memfd_create("stderr", 0);
        dup2(words, STDERR_FILENO);
        const std::string fault = body();
        struct stat file {};
        if (!fault.empty() || fstat(words, &file) != 0) return fault + ".";
        if (file.st_size > 0) return "words on stderr";
        return ForkedRank::log_lines().empty() ? "" : "it logs: " + ForkedRank::log_lines();
    })));
}

void test_no_library(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        Allocation found;
        int variable = 0;
        if (gpu::runtime() != nullptr) return "there is one";
        if (gpu::inspect(&variable, found) != Status::ok || found.kind != MemoryKind::host)
            return "a variable is no host memory";
        return gpu::used_device() == -1 ? "" : "a device is in use";
    }));
}

void test_a_library_that_is_loaded_later(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (gpu::runtime() != nullptr) return "too early";
        if (const auto fault = load(); !fault.empty()) return fault;
        const gpu::Runtime* found = gpu::runtime();
        if (found == nullptr) return "not found";
        if (found != gpu::runtime()) return "another one";
        const std::string name = found->name();  // with the headers' version
        return name.starts_with("ROCm 5.") && found->devices() == 8 ? "" : name;
    }));
}

// While one of them opens it, the others must not take it for missing.
void test_threads(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (gpu::runtime() != nullptr) return "too early";
        if (const auto fault = load(); !fault.empty()) return fault;
        std::atomic<int> ready{0}, missing{0};
        std::vector<std::thread> threads;
        constexpr int many = 8;
        for (int i = 0; i < many; i++) {
            threads.emplace_back([&] {
                ready++;
                while (ready < many) std::this_thread::yield();
                if (gpu::runtime() == nullptr) missing++;
            });
        }
        for (std::thread& t : threads) t.join();
        return missing == 0 ? "" : std::to_string(missing) + " threads found none";
    }));
}

// Another thread opens it after this one has counted the libraries, and before it does anything
// with the count.
void test_a_thread_that_is_overtaken(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (gpu::runtime() != nullptr) return "too early";
        if (const auto fault = load(); !fault.empty()) return fault;
        std::atomic<bool> is_open{false};
        bool is_found = false;
        std::thread overtaken([&] {
            go_on = &is_open;
            is_found = gpu::runtime() != nullptr;
        });
        while (!is_held) std::this_thread::yield();
        const bool is_found_here = gpu::runtime() != nullptr;
        is_open = true;
        is_open.notify_one();
        overtaken.join();
        if (!is_found_here) return "not found";
        return is_found ? "" : "the other thread found none";
    }));
}

void test_no_device(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        setenv("HIP_SIM_DEVICES", "0", 1);
        if (const auto fault = load(); !fault.empty()) return fault;
        std::string reason;
        if (gpu::runtime() != nullptr || gpu::find_runtime(reason) != nullptr)
            return "there is one";
        return reason.find("hier_gpu_rocm.so: hipErrorNoDevice") != std::string::npos ? "" : reason;
    }));
}

template <class F> void find(void* library, const char* name, F*& function)
{
    function = reinterpret_cast<F*>(dlsym(library, name));
}

// On a device of the library that is loaded.
void* simulated_memory()
{
    int (*allocate)(void**, std::size_t) = nullptr;
    find(dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_NOLOAD), "hipMalloc", allocate);
    void* memory = nullptr;
    if (allocate(&memory, 64) != 0) throw std::runtime_error("no device memory");
    return memory;
}

// A runtime that does not say how many devices there are may have some.
struct Broken {
    Broken()
    {
        if (const auto fault = load(); !fault.empty()) throw std::runtime_error(fault);
        void* const library = dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_NOLOAD);
        find(library, "hip_sim_fail_at", fail_at);
        find(library, "hip_sim_calls", calls);
        device = simulated_memory();
        // Loading the module makes for a second search.
        for (int i = 0; i < 2; i++) {
            fail_next();
            if (gpu::runtime() != nullptr) throw std::runtime_error("it works");
        }
    }
    void fail_next() const { fail_at(calls() + 1); }
    void (*fail_at)(std::uint64_t);
    std::uint64_t (*calls)();
    void* device = nullptr;
    int host = 0;
};

// The next question is asked anew.
void test_a_runtime_that_fails_once(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        const Broken it;
        if (hier_memory_is_reachable(&it.host) != 1) return "a variable is no host memory";
        if (gpu::runtime() != nullptr) return "asked anew for the host's memory";
        if (hier_memory_is_reachable(it.device) != 0) return "not known as a device's";
        return gpu::runtime() != nullptr && gpu::used_device() == 0 ? "" : "no runtime";
    }));
}

// While it fails, device memory is an error, and never passes for the host's.
void test_a_runtime_that_goes_on_failing(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) -> std::string {
        setenv("HIER_GPU_MODULES", HIER_TEST_MODULES, 0);
        const Broken it;
        for (int i = 0; i < 3; i++) {
            it.fail_next();
            Allocation found;
            if (gpu::inspect(it.device, found) != Status::transport_error) return "no error";
            it.fail_next();
            if (hier_memory_is_reachable(it.device) != 0) return "it passes for the host's";
            if (hier_memory_is_reachable(&it.host) != 1) return "a variable is no host memory";
        }
        return ForkedRank::is_logged("no GPU runtime that works: hier_gpu_rocm.so: hipErrorUnknown")
                   ? ""
                   : ForkedRank::log_lines();
    }))));
}

// A directory in place of the modules'.
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

// The process uses a GPU, and the file that knows it is not the one that it should be.
std::string no_module(const std::string& file, const std::string& cause)
{
    int host = 0;
    if (gpu::runtime() != nullptr || hier_memory_is_reachable(&host) != 1)
        return "wrong before the library is there";
    if (!ForkedRank::log_lines().empty()) return "it logs: " + ForkedRank::log_lines();
    if (const auto fault = load(); !fault.empty()) return fault;
    void* const device = simulated_memory();
    for (int i = 0; i < 3; i++) {
        std::string reason;
        if (gpu::runtime() != nullptr || gpu::find_runtime(reason) != nullptr)
            return "there is one";
        if (reason.find("hier_gpu_rocm.so: " + cause) == std::string::npos) return reason;
        if (hier_memory_is_reachable(&host) != 1) return "a variable is no host memory";
        if (hier_memory_is_reachable(device) != 0) return "device memory passes for the host's";
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

// One that was put there since is found.
void test_module_that_comes_late(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) {
        const Directory modules;
        if (const auto fault = load(); !fault.empty()) return fault;
        void* const device = simulated_memory();
        if (hier_memory_is_reachable(device) != 0 || gpu::runtime() != nullptr)
            return std::string("there is one");
        std::filesystem::create_symlink(HIER_TEST_MODULES "/hier_gpu_rocm.so", modules.module());
        const bool is_known = hier_memory_is_reachable(device) == 0 && gpu::used_device() == 0;
        return std::string(is_known ? "" : "not found");
    }))));
}

void test_left_out(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        gpu::choose_runtime(HIER_GPU_NONE);
        if (const auto fault = load(); !fault.empty()) return fault;
        if (gpu::runtime() != nullptr) return "there is one";
        gpu::choose_runtime(HIER_GPU_ROCM);
        return gpu::runtime() != nullptr ? "" : "not found when it was asked for";
    }));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_a_library_that_is_loaded_later),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_a_thread_that_is_overtaken),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_a_runtime_that_fails_once),
        cmocka_unit_test(test_a_runtime_that_goes_on_failing),
        cmocka_unit_test(test_no_module),
        cmocka_unit_test(test_unreadable_module),
        cmocka_unit_test(test_module_of_another_version),
        cmocka_unit_test(test_module_that_comes_late),
        cmocka_unit_test(test_left_out),
    };
    return cmocka_run_group_tests_name("gpu_runtime", tests, nullptr, nullptr);
}
