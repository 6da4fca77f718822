// SPDX-License-Identifier: BSD-3-Clause
// The network devices that each rank of a host takes, on invented hosts.
//
// A position is written "package/numa/host bridge/root port", from the left as far as it is known:
// "0/0/1/5", "0/1" for cores, "-" for nothing.
#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "topology/nearness.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

Position position(const std::string& text)
{
    Position p;
    std::istringstream in(text);
    std::string word;
    for (std::int32_t* field : {&p.package, &p.numa, &p.host_bridge, &p.root_port}) {
        if (text != "-" && std::getline(in, word, '/')) *field = std::stoi(word);
    }
    return p;
}

std::vector<Position> positions(const std::string& text)
{
    std::vector<Position> out;
    std::istringstream in(text);
    for (std::string word; in >> word;) out.push_back(position(word));
    return out;
}

// A device's link follows after "=": "0/0/1/5=400".
std::vector<Nic> nics(const std::string& text)
{
    std::vector<Nic> out;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        const std::size_t end = std::min(word.find('='), word.size());
        out.push_back({position(word.substr(0, end)), word.substr(end)});
    }
    return out;
}

// "0 1+4": the second rank has two.
std::string text_of(const std::vector<std::vector<int>>& nics_of)
{
    std::string out;
    for (const auto& mine : nics_of) {
        out += out.empty() ? "" : " ";
        for (std::size_t i = 0; i < mine.size(); i++)
            out += (i > 0 ? "+" : "") + std::to_string(mine[i]);
    }
    return out;
}

struct Case {
    const char* what;
    const char* ranks;
    const char* nics;
    const char* wanted;
    int most = 4;
};
const Case cases[] = {
    {"DGX: a switch for each GPU and its device",
     "0/0/0/0 0/0/1/1 0/0/2/2 0/0/3/3 1/1/4/4 1/1/5/5 1/1/6/6 1/1/7/7",
     "0/0/0/0 0/0/1/1 0/0/2/2 0/0/3/3 1/1/4/4 1/1/5/5 1/1/6/6 1/1/7/7", "0 1 2 3 4 5 6 7"},
    {"the same, devices in another order", "0/0/0/0 0/0/1/1 1/1/4/4 1/1/5/5",
     "1/1/5/5 1/1/4/4 0/0/1/1 0/0/0/0", "3 2 1 0"},
    {"8 GPUs, a device for each two",
     "0/0/0/0 0/0/0/0 0/0/1/1 0/0/1/1 1/1/2/2 1/1/2/2 1/1/3/3 1/1/3/3",
     "0/0/0/0 0/0/1/1 1/1/2/2 1/1/3/3", "0 0 1 1 2 2 3 3"},
    {"8 GPUs, two devices on each package, behind ports of their own",
     "0/0/0/0 0/0/1/1 0/0/2/2 0/0/3/3 1/1/4/4 1/1/5/5 1/1/6/6 1/1/7/7",
     "0/0/8/8 0/0/9/9 1/1/10/10 1/1/11/11", "0 1 0 1 2 3 2 3"},
    {"4 GPUs, two devices for each", "0/0/0/0 0/0/1/1 1/1/2/2 1/1/3/3",
     "0/0/0/0 0/0/0/0 0/0/1/1 0/0/1/1 1/1/2/2 1/1/2/2 1/1/3/3 1/1/3/3", "0+1 2+3 4+5 6+7"},
    {"the same, one at most", "0/0/0/0 0/0/1/1 1/1/2/2 1/1/3/3",
     "0/0/0/0 0/0/0/0 0/0/1/1 0/0/1/1 1/1/2/2 1/1/2/2 1/1/3/3 1/1/3/3", "0 2 4 6", 1},
    {"4 GPUs, 8 devices behind ports of their own", "0/0/0/0 0/0/1/1 1/1/2/2 1/1/3/3",
     "0/0/10/10 0/0/11/11 0/0/12/12 0/0/13/13 1/1/14/14 1/1/15/15 1/1/16/16 1/1/17/17",
     "0+2 1+3 4+6 5+7"},
    {"one rank takes no more than it may", "0/0", "0/0/0/0 0/0/1/1 0/0/2/2 0/0/3/3 0/0/4/4",
     "0+1+2", 3},
    {"3 devices for 2 ranks: as many for each", "0/0 0/0", "0/0/0/0 0/0/1/1 0/0/2/2", "0 1"},
    {"a GPU's own device, and none that is farther", "0/0/0/0", "0/0/0/0 0/0/1/1 1/1/2/2", "0"},
    {"two packages: nobody takes from the other", "0/0 1/1", "0/0/0/0 0/0/1/1 1/1/2/2", "0 2"},
    {"8 GPUs, a device each, and two for storage",
     "0/0/0/0 0/0/1/1 0/0/2/2 0/0/3/3 1/1/4/4 1/1/5/5 1/1/6/6 1/1/7/7",
     "0/0/0/0 0/0/1/1 0/0/2/2 0/0/3/3 1/1/4/4 1/1/5/5 1/1/6/6 1/1/7/7 0/0/8/8 1/1/9/9",
     "0 1 2 3 4 5 6 7"},
    {"links that are not alike", "0/0", "0/0/0/0=400 0/0/1/1=25 0/0/2/2=400", "0+2"},
    {"who can choose leaves to others what is near them", "0 0/0",
     "0/0/0/0 0/0/1/1 0/1/2/2 0/1/3/3", "2+3 0+1"},
    {"nothing known, more devices", "- -", "- - - - -", "0+2 1+3"},
    {"two packages, all devices on the second", "0/0/0/0 0/0/1/1 1/1/2/2 1/1/3/3",
     "1/1/2/2 1/1/3/3", "0 1 0 1"},
    {"those with no choice go first", "0/0/0/0 1/1/2/2", "1/1/2/2 1/1/3/3", "1 0"},
    {"nothing known: round robin", "- - - - -", "- -", "0 1 0 1 0"},
    {"GPUs known, devices not", "0/0/0/0 0/0/1/1 1/1/2/2", "- - -", "0 1 2"},
    {"devices known, ranks not", "- - -", "0/0/0/0 1/1/1/1", "0 1 0"},
    {"ranks by their cores", "0/0 0/0 1/1 1/1 1", "0/0/0/0 1/1/1/1 1/1/2/2", "0 0 1 2 1"},
    {"a host bridge before the NUMA node", "0/0/1/5", "0/0/0/0 0/0/1/6", "1"},
    {"one device", "0/0/0/0 1/1/1/1 -", "0/0/0/0", "0 0 0"},
    {"no rank", "", "0/0/0/0", ""},
};

const char* every_case_is_right()
{
    for (const Case& c : cases) {
        const auto found = text_of(assign_nics(positions(c.ranks), nics(c.nics), c.most));
        if (found != c.wanted)
            return keep(std::string(c.what) + ": " + found + ", not " + c.wanted);
    }
    return nullptr;
}

void test_cases(void**) { expect_no_reason(every_case_is_right()); }

std::vector<Position> positions_of(const std::vector<Nic>& nics)
{
    std::vector<Position> out;
    for (const Nic& nic : nics) out.push_back(nic.position);
    return out;
}

// No rank could move to a device that is as near and has two ranks fewer.
const char* fault_of_first(const std::vector<Position>& ranks, const std::vector<Position>& nics,
                           const std::vector<std::vector<int>>& nics_of)
{
    std::vector<int> load(nics.size());
    for (const auto& mine : nics_of) load[static_cast<std::size_t>(mine[0])]++;
    for (std::size_t r = 0; r < ranks.size(); r++) {
        const auto mine = static_cast<std::size_t>(nics_of[r][0]);
        for (std::size_t n = 0; n < nics.size(); n++) {
            const Nearness own = nearness(ranks[r], nics[mine]);
            const Nearness other = nearness(ranks[r], nics[n]);
            if (other < own) return "not the nearest";
            if (other == own && load[n] + 1 < load[mine]) return "uneven";
        }
    }
    return nullptr;
}

// All ranks have equally many devices. A rank with several shares none of them. No device is left
// over that could serve all ranks.
const char* fault_of_others(const std::vector<Position>& ranks, const std::vector<Position>& nics,
                            const std::vector<std::vector<int>>& nics_of, std::size_t most)
{
    std::vector<int> load(nics.size());
    std::size_t without_more = 0;
    for (const auto& mine : nics_of) {
        for (const int nic : mine) load[static_cast<std::size_t>(nic)]++;
    }
    for (std::size_t r = 0; r < ranks.size(); r++) {
        const auto& mine = nics_of[r];
        if (mine.size() != nics_of[0].size() || mine.size() > most)
            return "not as many as the others";
        const Nearness own = nearness(ranks[r], nics[static_cast<std::size_t>(mine[0])]);
        for (const int nic : mine) {
            const auto n = static_cast<std::size_t>(nic);
            if (mine.size() > 1 && load[n] > 1) return "two ranks share one of several";
            if (nearness(ranks[r], nics[n]) != own) return "a farther one";
        }
        bool has_more = false;
        for (std::size_t n = 0; n < nics.size(); n++)
            has_more = has_more || (load[n] == 0 && nearness(ranks[r], nics[n]) == own);
        without_more += has_more ? 0 : 1;
    }
    // A single rank takes more devices, because no other rank can lack one.
    const bool is_alone = ranks.size() == 1;
    return is_alone && without_more == 0 && nics_of[0].size() < most ? "one is left" : nullptr;
}

const char* random_hosts_are_right()
{
    std::mt19937 random(1);
    const auto somewhere = [&] {
        Position p;
        p.root_port = static_cast<int>(random() % 12);
        p.host_bridge = p.root_port / 2;
        p.numa = p.root_port / 3;
        p.package = p.root_port / 6;
        return p;
    };
    for (int i = 0; i < 2000; i++) {
        std::vector<Position> ranks(1 + random() % 16);
        std::vector<Nic> nics(1 + random() % 8);
        std::generate(ranks.begin(), ranks.end(), somewhere);
        for (Nic& nic : nics) nic.position = somewhere();
        const int most = static_cast<int>(1 + random() % 4);
        const auto nics_of = assign_nics(ranks, nics, most);
        const auto places = positions_of(nics);
        const char* fault = fault_of_first(ranks, places, nics_of);
        if (fault == nullptr)
            fault = fault_of_others(ranks, places, nics_of, static_cast<std::size_t>(most));
        if (fault != nullptr) return keep("round " + std::to_string(i) + ": " + fault);
    }
    return nullptr;
}

void test_random_hosts(void**) { expect_no_reason(random_hosts_are_right()); }

// ---- the position that decides

PeerRecord record(const std::string& gpu, std::int64_t pci, std::int32_t package)
{
    PeerRecord r{};
    r.gpu = position(gpu);
    r.gpu.pci = pci;
    r.package = r.numa = package;
    return r;
}

bool gpus_decide()
{
    const std::vector<PeerRecord> host = {record("1/1/4/4", 4, 0), record("0/0/0/0", 0, 0),
                                          record("-", 7, 1), record("-", -1, 1)};
    const auto found = rank_positions(host);
    return found[0] == host[0].gpu && found[1] == host[1].gpu && found[2] == position("1/1") &&
           found[3] == position("1/1");
}

bool a_gpu_of_all_is_nobodys()
{
    const std::vector<PeerRecord> host = {record("0/0/0/0", 3, 0), record("0/0/0/0", 3, 1)};
    const auto found = rank_positions(host);
    return found[0] == position("0/0") && found[1] == position("1/1") &&
           rank_positions(std::span(host).first(1))[0] == host[0].gpu;
}

void test_rank_positions(void**)
{
    assert_true(gpus_decide());
    assert_true(a_gpu_of_all_is_nobodys());
}

// ---- addresses

bool addresses_are_read_and_written()
{
    for (const char* text : {"0000:00:00.0", "0000:1b:00.0", "ffff:ff:1f.7", "10000:01:00.0"}) {
        if (pci_text(parse_pci(text)) != text) return false;
    }
    for (const char* text :
         {"", "1b:00.0", "0000:1b:20.0", "0000:1b:00.8", "0000:1b:00", "mlx5_0"}) {
        if (parse_pci(text) != -1) return false;
    }
    return parse_pci("0000:1B:00.0") == parse_pci("0000:1b:00.0");
}

void test_addresses(void**) { assert_true(addresses_are_read_and_written()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_random_hosts),
        cmocka_unit_test(test_rank_positions),
        cmocka_unit_test(test_addresses),
    };
    return hier::test::run_cases(argc, argv, "nearness", tests);
}
