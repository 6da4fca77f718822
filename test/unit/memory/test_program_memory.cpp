// SPDX-License-Identifier: BSD-3-Clause
// Which memory is the program's own?
#include "memory/program_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "test/support/cmocka.hpp"

namespace {

using hier::is_of_program;

constexpr std::size_t page = 4096;
int with_value = 1;
char without_value[3 * page];
const int constant = 1;

void test_data(void**)
{
    assert_true(is_of_program(&with_value));
    assert_true(is_of_program(without_value));
    assert_true(is_of_program(without_value + sizeof without_value - 1));
    assert_false(is_of_program(&constant));
    assert_false(is_of_program(nullptr));
}

void test_stack(void**)
{
    int variable = 0;
    assert_true(is_of_program(&variable));
    bool is_of_other = true;
    std::thread([&] {
        int of_thread = 0;
        is_of_other = is_of_program(&of_thread);
    }).join();
    assert_false(is_of_other);
}

void test_heap(void**)
{
    auto* const more = static_cast<char*>(sbrk(2 * page));
    assert_true(more != reinterpret_cast<char*>(-1));
    assert_true(is_of_program(more));
    const char* const end = static_cast<char*>(sbrk(0));
    assert_true(is_of_program(end - 1));
    assert_false(is_of_program(end));
    assert_true(sbrk(-static_cast<std::intptr_t>(page)) == end);
    assert_false(is_of_program(end - 1));
}

// As a GPU's runtime and large blocks of malloc do.
void test_mapping(void**)
{
    void* const at = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_false(is_of_program(at));
    munmap(at, page);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_mapping),
    };
    return hier::test::run_cases(argc, argv, "program_memory", tests);
}
