// SPDX-License-Identifier: BSD-3-Clause
// The records by which ranks tell one another the rates of their machines.
#include <cmath>

#include "team/rates.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    Input input(bytes);
    std::vector<RateRecord> records;
    while (!input.empty() && records.size() < 16) records.push_back(input.take<RateRecord>());
    const bool is_sound = std::none_of(records.begin(), records.end(),
                                       [](const auto& r) { return fault_of(r) != nullptr; });
    if (records.empty() || !is_sound) return;
    std::vector<int> nodes(records.size());
    for (std::size_t i = 0; i < nodes.size(); i++) nodes[i] = static_cast<int>(i / 2);
    const TeamRates team = team_rates(records, Topology(nodes));
    const Rates& rates = team.rates;
    require(std::isfinite(rates.nic) && rates.nic > 0 && rates.link > 0, "rates are positive");
    require(rates.lanes > 0 && rates.nics > 0, "a node has network devices");
}

std::vector<std::string> seeds()
{
    hier_config config{};
    const RateRecord plain = own_rates(config, false, {.rate = {1e9, 1e-6}});
    const RateRecord device = own_rates(config, true, {.devices = "eth0", .lanes = 2});
    return {seed(plain) + seed(plain) + seed(plain), seed(device) + seed(plain)};
}

}  // namespace

const Target rates{"rates", run, seeds};

}  // namespace hier::fuzz
