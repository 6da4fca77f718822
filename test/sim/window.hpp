// SPDX-License-Identifier: BSD-3-Clause
// Two views of a file: one for the application, which the CPU cannot reach, and one for copy
// engines.
#pragma once

#include <cstddef>

namespace hip_sim {

struct Window {
    std::byte* base = nullptr;
    std::byte* alias = nullptr;
};

std::size_t whole_pages(std::size_t bytes);

// Each use has addresses of its own. The address that was closed last is used again first. Only allocations
// may share a page of the GPU, whose size is 64 KiB.
enum class Use { allocation, pool, mapping };

// Addresses that nothing can be reached at. They share no page of the GPU with others. nullptr: none are left.
void* reserve_gpu_pages(std::size_t bytes);

// False: there is no address space left. The caller keeps the file.
bool open_window(int fd, std::size_t bytes, Use use, Window& window);
void close_window(const Window& window, std::size_t bytes, Use use);

// Memory that the CPU may reach too. nullptr: there is none left.
std::byte* open_plain(std::size_t bytes);
void close_plain(std::byte* base, std::size_t bytes);
void forbid_plain(std::byte* base, std::size_t bytes);  // any access

}  // namespace hip_sim
