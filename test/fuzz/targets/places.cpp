// SPDX-License-Identifier: BSD-3-Clause
// Texts of the system and of the GPU runtimes: addresses of PCI devices.
#include "test/fuzz/target.hpp"
#include "topology/nearness.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    const std::int64_t pci = parse_pci(Input(bytes).text());
    require(pci >= -1, "an address, or none");
    if (pci >= 0) require(parse_pci(pci_text(pci)) == pci, "what is written is read");
}

std::vector<std::string> seeds() { return {"0000:1b:00.0", "ffffffff:ff:1f.7", "0:0:0.0"}; }

}  // namespace

const Target places{"places", run, seeds};

}  // namespace hier::fuzz
