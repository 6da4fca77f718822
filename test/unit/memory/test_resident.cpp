// SPDX-License-Identifier: BSD-3-Clause
// Does the CPU have the pages of some memory?
#include "memory/resident.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "test/support/wrapped/system.hpp"
#include <cstdint>
#include <cstring>

#include "test/support/cmocka.hpp"

namespace {

using hier::is_resident;

class Pages {
public:
    explicit Pages(std::size_t count)
        : bytes_(count * page()),
          at_(static_cast<char*>(
              mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        (void)madvise(at_, bytes_, MADV_NOHUGEPAGE);
    }
    ~Pages() { munmap(at_, bytes_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
    char* of(std::size_t page_number) const { return at_ + page_number * page(); }
    void touch(std::size_t from, std::size_t to) const
    {
        std::memset(of(from), 1, (to - from) * page());
    }

private:
    std::size_t bytes_;
    char* at_;
};

void test_pages(void**)
{
    const std::size_t page = Pages::page();
    const Pages pages(100);
    assert_false(is_resident(pages.of(0), 100 * page));
    pages.touch(0, 100);
    assert_true(is_resident(pages.of(0), 100 * page));
    assert_true(is_resident(pages.of(3) + 7, 1));
    assert_int_equal(0, madvise(pages.of(40), 30 * page, MADV_DONTNEED));
    assert_false(is_resident(pages.of(0), 100 * page));
    assert_true(is_resident(pages.of(0), 40 * page));
    assert_true(is_resident(pages.of(70), 30 * page));
}

// The first and the last byte may lie on different pages.
void test_ends(void**)
{
    const std::size_t page = Pages::page();
    const Pages pages(3);
    pages.touch(1, 2);
    assert_true(is_resident(pages.of(1), page));
    assert_false(is_resident(pages.of(1), page + 1));
    assert_false(is_resident(pages.of(1) - 1, 2));
    assert_false(is_resident(pages.of(1) - 1, page));
}

// AMD's driver leaves an entry for a page that it has moved to a device, as for a page that is
// swapped out. mincore() takes such a page for one that is there.
void test_page_on_a_device(void**)
{
    constexpr std::uint64_t swapped = 1ull << 62;
    const Pages pages(2);
    pages.touch(0, 2);
    hier::test::pagemap_says = swapped;
    assert_false(is_resident(pages.of(0), 2 * Pages::page()));
    hier::test::pagemap_says.reset();
}

void test_no_page_map(void**)
{
    const Pages pages(2);
    pages.touch(0, 1);
    hier::test::pagemap_says = 0;
    assert_true(is_resident(pages.of(0), Pages::page()));
    assert_false(is_resident(pages.of(0), 2 * Pages::page()));
    hier::test::pagemap_says.reset();
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_page_on_a_device),
        cmocka_unit_test(test_no_page_map),
    };
    return hier::test::run_cases(argc, argv, "resident", tests);
}
