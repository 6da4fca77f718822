// SPDX-License-Identifier: BSD-3-Clause
// Host memory that a GPU runtime has been told of, so that its copies take no detour.
#pragma once

#include <cstddef>

namespace hier {

class Registration {
public:
    // Registers the memory for copies by `device`, at the first call only. False: the runtime has
    // refused, and copies are slower.
    bool ensure(int device, void* memory, std::size_t bytes);
    // False: the memory has to stay where it is, because copies may still use it.
    bool release();

private:
    void* memory_ = nullptr;
    int device_ = -1;
    bool is_refused_ = false;
};

}  // namespace hier
