// SPDX-License-Identifier: BSD-3-Clause
// Can other processes write to this memory? A driver's mapping of pinned memory may refuse that.
#include <sys/mman.h>
#include <unistd.h>

#include "node/host/cma_path.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

// Makes two pages. The bits of `refused` say which of them refuse writes of other processes.
bool can_be_written(unsigned refused, std::size_t from, std::size_t bytes)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const pages =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    auto* const base = static_cast<std::byte*>(pages);
    for (unsigned i = 0; i < 2; i++) {
        if ((refused >> i & 1U) != 0) (void)mprotect(base + i * page, page, PROT_READ);
    }
    Region region{};
    region.base = base + from;
    region.length = bytes;
    const bool can_be = hier::can_be_written(region);
    munmap(pages, 2 * page);
    return can_be;
}

// A buffer may begin in memory of one kind and end in memory of another kind.
void test_both_ends(void**)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    assert_true(can_be_written(0, 0, 2 * page));
    assert_false(can_be_written(1, 0, 2 * page));
    assert_false(can_be_written(2, 0, 2 * page));
    assert_false(can_be_written(2, page - 1, 2));
    assert_true(can_be_written(2, 0, page));  // does not look beyond the end
    assert_true(can_be_written(1, page, 1));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ends),
    };
    return hier::test::run_cases(argc, argv, "cma", tests);
}
