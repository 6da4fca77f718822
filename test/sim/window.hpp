// SPDX-License-Identifier: BSD-3-Clause
// Two views of a file: one for the application, which the CPU cannot reach, one for copy engines.
#pragma once

#include <cstddef>

namespace hip_sim {

struct Window {
    std::byte* base = nullptr;
    std::byte* alias = nullptr;
};

std::size_t whole_pages(std::size_t bytes);

// What the addresses are for: each use has its own, and what is closed last comes back first.
enum class Use { allocation, mapping };

// False: there is no address space left. Takes no part in owning the file.
bool open_window(int fd, std::size_t bytes, Use use, Window& window);
void close_window(const Window& window, std::size_t bytes, Use use);

// Memory that the CPU may reach, too; nullptr: there is none left.
std::byte* open_plain(std::size_t bytes);
void close_plain(std::byte* base, std::size_t bytes);

}  // namespace hip_sim
