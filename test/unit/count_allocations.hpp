// Counts what our objects allocate: operator new(std::size_t) is wrapped, whose linker flag is in
// the build's list. UCX's own allocations are not ours to count.
#pragma once

#include <cstddef>

namespace hier::test {

extern std::size_t allocations;

}  // namespace hier::test
