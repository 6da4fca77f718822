// SPDX-License-Identifier: BSD-3-Clause
// Runs the fuzz targets without libFuzzer: on their seeds, and on inputs that are made of the seeds
// by chance. Equal numbers give equal inputs.
// usage: replay [ROUNDS [TARGET]]
#include <random>

#include "test/fuzz/target.hpp"

namespace {

using namespace hier::fuzz;

void run(const Target& target, const std::string& input)
{
    target.run({reinterpret_cast<const std::byte*>(input.data()), input.size()});
}

char interesting(std::mt19937_64& random)
{
    static const char some[] = {'\0', '\1', '\x7f', '\x80', '\xff', ',',
                                '^',  '-',  '[',    ':',    '/',    '0'};
    return random() % 2 == 0 ? static_cast<char>(random()) : some[random() % sizeof some];
}

void change(std::string& input, const std::vector<std::string>& seeds, std::mt19937_64& random)
{
    const std::size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 6) {
    case 0:
        input.resize(at);
        break;
    case 1:
        input.insert(at, 1 + random() % 9, interesting(random));
        break;
    case 2:
        input += seeds[random() % seeds.size()];
        break;
    case 3:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
    default:
        for (std::size_t i = 0; i < 1 + random() % 8 && at + i < input.size(); i++)
            input[at + i] = interesting(random);
        break;
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const long rounds = argc > 1 ? std::atol(argv[1]) : 20000;
    for (const Target* target : all_targets()) {
        if (argc > 2 && std::strcmp(argv[2], target->name) != 0) continue;
        const std::vector<std::string> seeds = target->seeds();
        for (const std::string& input : seeds) run(*target, input);
        std::mt19937_64 random(1);
        for (long i = 0; i < rounds; i++) {
            std::string input = seeds[random() % seeds.size()];
            for (std::uint64_t k = random() % 5; k > 0; k--) change(input, seeds, random);
            run(*target, input);
        }
        std::printf("%s: %zu seeds, %ld inputs\n", target->name, seeds.size(), rounds);
    }
    return 0;
}
