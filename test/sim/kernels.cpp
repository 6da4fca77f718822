// SPDX-License-Identifier: BSD-3-Clause
// Modules and kernels. Any file passes for a module, and every module has the product's kernels.
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "calls.hpp"
#include "hip_sim.h"
#include "kernels.hpp"
#include "kernels_on_cpu.hpp"
#include "place.hpp"
#include "stream.hpp"

using namespace hip_sim;
using hier::gpu::Exchange;
using hier::gpu::FanOut;

namespace {

char the_module, the_exchange, the_fan_out;
std::atomic<std::uint64_t> kernels{0};

// The address by which the stream's thread reaches memory. No device reaches pageable memory.
template <class T> void reach(T*& pointer, std::size_t bytes)
{
    Place place;
    if (!locate(pointer, bytes, place) || place.is_pageable)
        give_up("a kernel touches memory that its device does not reach: %p",
                static_cast<const void*>(pointer));
    pointer = reinterpret_cast<T*>(place.at);
}

void reach_all(Exchange& e)
{
    const bool is_in_place = e.into[e.rank] == e.block;
    const std::size_t words = (e.bytes + 7) / 8 * 2 * sizeof(std::uint64_t);
    for (std::uint32_t r = 0; r < e.ranks; r++) {
        reach(e.into[r], e.bytes);
        if (r != e.rank) reach(e.to[r], words);
    }
    reach(e.block, e.bytes);
    if (is_in_place) e.into[e.rank] = const_cast<unsigned char*>(e.block);
    reach(e.zone, Exchange::zone_bytes(e.ranks));
    reach(e.control, sizeof *e.control);
    reach(e.stop, sizeof *e.stop);
    if (e.done != nullptr) reach(e.done, sizeof *e.done);
}

void reach_all(FanOut& f)
{
    for (FanOut::Block& block : std::span(f.block, f.blocks)) {
        reach(block.from, block.bytes);
        for (unsigned char*& to : std::span(f.to + block.first, block.places))
            reach(to, block.bytes);
    }
    for (std::uint32_t s = 0; s < f.signals; s++) reach(f.signal[s].at, sizeof *f.signal[s].at);
    if (f.added != nullptr) reach(f.added, sizeof *f.added);
    if (f.done != nullptr) reach(f.done, sizeof *f.done);
}

template <class Arguments>
hipError_t launch(Grid grid, hipStream_t stream, const Arguments& arguments)
{
    if (!is_stream(stream)) return hipErrorInvalidHandle;
    totals.kernels++;
    kernels++;
    Arguments reached = arguments;
    reach_all(reached);
    MarkRef mark;
    const auto run = [=](Random& random) {
        for (unsigned block = 0; block < grid.x * grid.y; block++) {
            pause_for_a_while(random);
            run_kernel(reached, {block % grid.x, block / grid.x}, grid);
        }
        return true;
    };
    return enqueue(stream, {run, {}}, mark) ? hipSuccess : hipErrorInvalidHandle;
}

}  // namespace

std::size_t hip_sim::argument_bytes(const void* function)
{
    return function == &the_fan_out ? sizeof(FanOut) : sizeof(Exchange);
}

void hip_sim::count_launch_by_graph() { totals.by_graphs++; }

std::uint64_t hip_sim_kernels() { return kernels; }

hipError_t hipModuleLoad(hipModule_t* module, const char* file)
{
    return counted(no_memory, [&] {
        if (access(file, R_OK) != 0) return hipErrorFileNotFound;
        *module = reinterpret_cast<hipModule_t>(&the_module);
        return hipSuccess;
    });
}

hipError_t hipModuleUnload(hipModule_t module)
{
    return uncounted([&] {
        const bool is_known = module == reinterpret_cast<hipModule_t>(&the_module);
        return is_known ? hipSuccess : hipErrorInvalidHandle;
    });
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t, const char* name)
{
    return counted(broken, [&] {
        const bool is_exchange = std::string_view(name) == "hier_exchange";
        if (!is_exchange && std::string_view(name) != "hier_fan_out") return hipErrorNotFound;
        *function = reinterpret_cast<hipFunction_t>(is_exchange ? &the_exchange : &the_fan_out);
        return hipSuccess;
    });
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned blocks_x, unsigned blocks_y,
                                 unsigned, unsigned, unsigned, unsigned, unsigned,
                                 hipStream_t stream, void** arguments, void**)
{
    return counted(broken, [&] {
        const Grid grid{blocks_x, blocks_y};
        if (function == reinterpret_cast<hipFunction_t>(&the_fan_out))
            return launch(grid, stream, *static_cast<const FanOut*>(arguments[0]));
        return launch(grid, stream, *static_cast<const Exchange*>(arguments[0]));
    });
}
