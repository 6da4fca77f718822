// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/kernels.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <span>
#include <string>

#include "gpu/common/report.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

#ifdef HIER_CUDA
constexpr const char* file_name = "hier_kernels_cuda.fatbin";
#else
constexpr const char* file_name = "hier_kernels_rocm.hsaco";
#endif

// Empty: there is no such file.
const std::string& file()
{
    static const std::string found = [] {
        Dl_info info{};
        if (dladdr(reinterpret_cast<const void*>(&are_kernels_installed), &info) == 0 ||
            info.dli_fname == nullptr)
            return std::string();
        const std::string module = info.dli_fname;
        const std::string path = module.substr(0, module.rfind('/') + 1) + file_name;
        return access(path.c_str(), R_OK) == 0 ? path : std::string();
    }();
    return found;
}

}  // namespace

static_assert(Exchange::max_ranks <= FanOut::max_places, "a signal for each peer");
static_assert(sizeof(Exchange) <= 4096 && sizeof(FanOut) <= 4096, "the arguments of a kernel");

std::size_t Kernels::bytes_of_words()
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (sizeof(HostWords) + page - 1) / page * page;
}

bool are_kernels_installed() { return !file().empty(); }

// To give anything back might wait for the application's kernels, so what a refusal leaves stays.
bool Kernels::load(int device)
{
    if (is_tried_) return is_loaded_;
    is_tried_ = true;
    if (!are_kernels_installed()) return false;
    hipError_t error = hipModuleLoad(&module_, file().c_str());
    if (error != hipSuccess) module_ = nullptr;
    if (error == hipSuccess) error = hipModuleGetFunction(&exchange_, module_, "hier_exchange");
    if (error == hipSuccess) error = hipModuleGetFunction(&fan_out_, module_, "hier_fan_out");
    if (error == hipSuccess) error = make_words();
    if (error == hipSuccess) {
        compute_units_ = compute_units_of(device);
        is_loaded_ = true;
        return true;
    }
    report(HIER_LOG_INFO, "%s refuses the kernels of %s (%s): hier runs without kernels",
           platform_name, file().c_str(), hipGetErrorString(error));
    (void)hipGetLastError();
    return false;
}

hipError_t Kernels::make_words()
{
    void* const memory =
        mmap(nullptr, bytes_of_words(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return hipErrorOutOfMemory;
    const hipError_t error = hipHostRegister(memory, bytes_of_words(), hipHostRegisterDefault);
    if (error != hipSuccess) {
        munmap(memory, bytes_of_words());
        return error;
    }
    words_ = new (memory) HostWords;
    fan_outs_.values().open(words_.load()->added);
    return error;
}

hipError_t Kernels::launch(hipStream_t stream, FanOut& arguments)
{
    std::size_t largest = 0;
    for (const FanOut::Block& block : std::span(arguments.block, arguments.blocks))
        largest = std::max(largest, block.bytes);
    const KernelLaunch kernel{fan_out_, fan_out_blocks(largest, arguments.blocks), fan_out_threads,
                              arguments.blocks};
    return fan_outs_.launch(kernel, stream, arguments);
}

hipError_t Kernels::launch(hipStream_t stream, Exchange& arguments)
{
    std::atomic<std::uint32_t>& stop = words_.load()->stop;
    stop = 0;
    arguments.stop = reinterpret_cast<const std::uint32_t*>(&stop);
    const KernelLaunch kernel{exchange_, exchange_blocks(arguments.bytes, compute_units_),
                              exchange_threads};
    return exchanges_.launch(kernel, stream, arguments);
}

void Kernels::stop()
{
    if (HostWords* const words = words_) words->stop = 1;
}

void Kernels::unload()
{
    exchanges_.close();
    fan_outs_.close();
    if (module_ != nullptr) (void)hipModuleUnload(module_);
    if (words_ != nullptr && hipHostUnregister(words_) == hipSuccess)
        munmap(words_, bytes_of_words());
    abandon();
}

void Kernels::abandon()
{
    exchanges_.abandon();
    fan_outs_.abandon();
    module_ = nullptr;
    words_ = nullptr;
}

}  // namespace hier::gpu
