// SPDX-License-Identifier: BSD-3-Clause
// A forked process with simulated devices. It tests how the core handles device memory outside of
// teams.
#pragma once

#include <string>

#include "gpu_rank.hpp"
#include "hier/hier.h"
#include "team_rank.hpp"

#include "cmocka.hpp"

namespace hier::test {

constexpr std::size_t MiB = 1 << 20;

// nullptr if `body` returns "", else the fault that `body` returns. The text stays valid.
inline const char* run_on_devices(std::string (*body)())
{
    return keep(first_fault(run_ranks(1, [&](ForkedRank&) {
        use_built_module();
        setenv("HIP_SIM_VERSION", sharing_version, 1);
        const hier_config config = config_for_tests();
        hier_init(&config);
        if (gpu::runtime() == nullptr) return std::string("no runtime");
        std::string fault = body();
        hier_finalize();
        return fault;
    })));
}

}  // namespace hier::test
