// SPDX-License-Identifier: BSD-3-Clause
// The fuzz targets under libFuzzer. test/fuzz/run starts it.
// usage: HIER_FUZZ_TARGET=TARGET fuzz [libFuzzer's options]
//        HIER_FUZZ_TARGET=list fuzz
//        HIER_FUZZ_TARGET=TARGET HIER_FUZZ_SEEDS=DIRECTORY fuzz     writes the target's seeds
#include <fstream>

#include "test/fuzz/target.hpp"

using namespace hier::fuzz;

namespace {

const Target* target = nullptr;

void write_seeds(const std::string& directory)
{
    int i = 0;
    for (const std::string& input : target->seeds())
        std::ofstream(directory + "/seed-" + std::to_string(i++), std::ios::binary) << input;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***);
extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    const char* const wanted = std::getenv("HIER_FUZZ_TARGET");
    for (const Target* each : all_targets()) {
        if (wanted != nullptr && std::strcmp(wanted, "list") == 0) std::printf("%s\n", each->name);
        if (wanted != nullptr && std::strcmp(wanted, each->name) == 0) target = each;
    }
    if (wanted != nullptr && std::strcmp(wanted, "list") == 0) std::exit(0);
    if (target == nullptr) {
        std::fprintf(stderr, "HIER_FUZZ_TARGET names no target; \"list\" prints them\n");
        std::exit(2);
    }
    const char* const directory = std::getenv("HIER_FUZZ_SEEDS");
    if (directory == nullptr) return 0;
    write_seeds(directory);
    std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t bytes);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t bytes)
{
    target->run({reinterpret_cast<const std::byte*>(data), bytes});
    return 0;
}
