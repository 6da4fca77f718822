// SPDX-License-Identifier: BSD-3-Clause
// Memory of the host that a GPU runtime has been told of, so that its copies of it take no detour.
#pragma once

#include <cstddef>

namespace hier {

class Registration {
public:
    // By the runtime of this device; asks once. False: it was refused, and copies are slower.
    bool ensure(int device, void* memory, std::size_t bytes);
    // False: the memory has to stay where it is, as copies may still use it.
    bool release();

private:
    void* memory_ = nullptr;
    int device_ = -1;
    bool is_refused_ = false;
};

}  // namespace hier
