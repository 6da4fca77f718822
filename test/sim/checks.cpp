// SPDX-License-Identifier: BSD-3-Clause
#include "checks.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "hip_sim.h"
#include "test/support/cmocka.hpp"

namespace hip_sim::test {

namespace {

std::string text_of(const Where& where)
{
    const std::string file = where.file;
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line);
}

template <class Function> Function* simulated(const char* name)
{
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr) throw std::runtime_error("this is not the simulated library");
    return reinterpret_cast<Function*>(found);
}

}  // namespace

void require(bool holds, Where where)
{
    if (!holds) throw std::runtime_error(text_of(where) + " does not hold");
}

void gives(hipError_t got, hipError_t wanted, Where where)
{
    if (got != wanted) throw std::runtime_error(text_of(where) + " gives " + hipGetErrorName(got));
}

const char* run(int processes, const Environment& environment,
                const std::function<void(hier::test::ForkedRank&)>& body)
{
    const auto with_environment = [&](hier::test::ForkedRank& self) -> std::string {
        setenv("OMPI_COMM_WORLD_RANK", std::to_string(self.rank()).c_str(), 1);
        for (const auto& [name, value] : environment) setenv(name, value, 1);
        body(self);
        return "";
    };
    return hier::test::keep(
        hier::test::first_fault(hier::test::run_ranks(processes, with_environment)));
}

const char* run_alone(const Environment& environment, const std::function<void()>& body)
{
    return run(1, environment, [&](hier::test::ForkedRank&) { body(); });
}

int signal_of(const std::function<void()>& what)
{
    const pid_t child = fork();
    if (child == 0) {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        for (const int number : {SIGABRT, SIGSEGV, SIGBUS}) signal(number, SIG_DFL);
        what();
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) throw std::runtime_error("no child to wait for");
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

std::uint64_t calls() { return simulated<std::uint64_t()>("hip_sim_calls")(); }

std::uint64_t live(const char* what)
{
    return simulated<std::uint64_t(const char*)>("hip_sim_live")(what);
}

void fail_at(std::uint64_t call) { simulated<void(std::uint64_t)>("hip_sim_fail_at")(call); }
void hang_at(std::uint64_t copy) { simulated<void(std::uint64_t)>("hip_sim_hang_copy_at")(copy); }

std::byte* device_memory(std::size_t bytes)
{
    void* memory = nullptr;
    gives(hipMalloc(&memory, bytes));
    return static_cast<std::byte*>(memory);
}

std::byte* pinned_memory(std::size_t bytes)
{
    void* memory = nullptr;
    gives(hipHostMalloc(&memory, bytes, hipHostMallocDefault));
    return static_cast<std::byte*>(memory);
}

hipStream_t stream(unsigned flags)
{
    hipStream_t made = nullptr;
    gives(hipStreamCreateWithFlags(&made, flags));
    return made;
}

hipEvent_t event()
{
    hipEvent_t made = nullptr;
    gives(hipEventCreateWithFlags(&made, hipEventDisableTiming));
    return made;
}

Bytes pattern(std::size_t bytes, unsigned seed)
{
    Bytes made(bytes);
    for (std::size_t i = 0; i < bytes; i++)
        made[i] = static_cast<unsigned char>((i * 7 + i / 251 + seed * 101 + 1) & 0xff);
    return made;
}

void put(void* to, const Bytes& bytes)
{
    gives(hipMemcpy(to, bytes.data(), bytes.size(), hipMemcpyDefault));
}

Bytes get(const void* from, std::size_t bytes)
{
    Bytes got(bytes);
    gives(hipMemcpy(got.data(), from, bytes, hipMemcpyDefault));
    return got;
}

}  // namespace hip_sim::test
