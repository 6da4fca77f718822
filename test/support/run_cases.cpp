// SPDX-License-Identifier: BSD-3-Clause
#include <fnmatch.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cmocka.hpp"

namespace hier::test {
namespace {

void print_usage(std::FILE* to, const char* program)
{
    std::fprintf(to,
                 "usage: %s [--list | --help | PATTERN...]\n"
                 "Runs the cases whose names match one of the shell patterns, or all of them.\n"
                 "--list prints the names of the cases and runs nothing.\n",
                 program);
}

bool is_named(const CMUnitTest& test, std::span<char*> patterns)
{
    return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const char* p) {
               return fnmatch(p, test.name, 0) == 0;
           });
}

}  // namespace

int run_cases(int argc, char** argv, const char* group, std::span<const CMUnitTest> cases,
              CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    const std::span<char*> arguments(argv + 1, static_cast<std::size_t>(std::max(argc, 1) - 1));
    const std::string_view first = arguments.empty() ? "" : arguments[0];
    if (first.starts_with('-')) {
        const bool is_known = first == "--list" || first == "--help" || first == "-h";
        if (!is_known || arguments.size() > 1) return print_usage(stderr, argv[0]), 2;
        if (first != "--list") return print_usage(stdout, argv[0]), 0;
        for (const CMUnitTest& test : cases) std::printf("%s\n", test.name);
        return 0;
    }
    std::vector<CMUnitTest> chosen;
    for (const CMUnitTest& test : cases) {
        if (is_named(test, arguments)) chosen.push_back(test);
    }
    if (chosen.empty()) {
        std::fprintf(stderr, "%s: no case has such a name; --list prints them\n", argv[0]);
        return 2;
    }
    return _cmocka_run_group_tests(group, chosen.data(), chosen.size(), set_up, tear_down);
}

}  // namespace hier::test
