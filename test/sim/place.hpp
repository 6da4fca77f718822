// SPDX-License-Identifier: BSD-3-Clause
// Where copy engines and kernels find the memory of an address.
#pragma once

#include <cstddef>

namespace hip_sim {

struct Place {
    std::byte* at = nullptr;
    bool is_pageable = false;
    bool may_be_host = false;
    bool may_be_device = false;
    bool is_of_peer = false;
};

// False: the bytes lie neither in one block nor outside of all blocks.
bool locate(const void* address, std::size_t bytes, Place& place);

}  // namespace hip_sim
