// SPDX-License-Identifier: BSD-3-Clause
// GDRCopy, the library by which the CPU reaches memory of NVIDIA's GPUs. It pins the memory and maps it
// for the CPU: by its kernel module gdrdrv or, from 2.6 on, by a CUDA driver from 13.3 on. hier opens the
// library at run time and needs no header of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "hier/gpu.hpp"

namespace hier::gpu {

class Gdrcopy {
public:
    // The GPU's page, of which pinned memory is made.
    static constexpr std::size_t page = 64 << 10;

    // Tries it once in a process. null: it cannot be used, and `reason` says why.
    static const Gdrcopy* open(std::string& reason);

    // A window to `memory`, which lies in these whole pages of the current device. null: the driver
    // refuses to pin them, say. The window unpins them at its end.
    std::shared_ptr<const CpuWindow> map(std::span<const std::byte> pages,
                                         std::span<const std::byte> memory,
                                         std::string& reason) const;

private:
    class Window;
    // As the library has it.
    struct Handle {
        unsigned long value;
    };
    bool open_library();

    std::string fault_;
    void* (*open_)() = nullptr;
    int (*pin_)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, Handle*) = nullptr;
    int (*unpin_)(void*, Handle) = nullptr;
    int (*map_)(void*, Handle, void**, std::size_t) = nullptr;
    int (*unmap_)(void*, Handle, void*, std::size_t) = nullptr;
    int (*store_)(Handle, void*, const void*, std::size_t) = nullptr;
    int (*load_)(Handle, void*, const void*, std::size_t) = nullptr;
    void* instance_ = nullptr;  // that all calls take; they have one at a time
};

}  // namespace hier::gpu
