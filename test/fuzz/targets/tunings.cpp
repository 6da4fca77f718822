// SPDX-License-Identifier: BSD-3-Clause
// A tuning file.
#include "test/fuzz/target.hpp"
#include "tuning/tuning.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    std::string fault;
    const auto tuning = parse_tuning(Input(bytes).text(), fault);
    require(tuning.has_value() || fault.rfind("line ", 0) == 0, "a fault has a line");
    if (!tuning) return;
    require(tuning->digest != 0 && tuning->machine.cores > 0, "what is taken is whole");
    for (const TunedLayout& layout : tuning->layouts) {
        require(tuning->find(layout) == &layout, "each layout is found");
        for (const TunedSize& size : layout.sizes)
            require(layout.find(size.up_to) == &size, "each size is found");
    }
}

std::vector<std::string> seeds()
{
    const std::string begin = "version = 1\n[machine]\ncpu = \"x\"\ncores = 2\n";
    return {begin, begin + "[= 0.1\n",
            begin +
                "[rates]\ntcp_rate = 0.1\ncore_rate = 5\n[[layout]]\ncollective = \"allgather\"\n"
                "nodes = 2\nranks_per_node = 4\nmemory = \"host\"\nnetwork = \"tcp\"\n"
                "min_bytes = 100\nsizes = [ { up_to = 1024, eager = false },\n"
                "{ up_to = 65536, route = \"ring\", chunks = 2, publish = true } ]\n"};
}

}  // namespace

const Target tunings{"tunings", run, seeds};

}  // namespace hier::fuzz
