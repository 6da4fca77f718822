// SPDX-License-Identifier: BSD-3-Clause
// Tuning files: what they say, and what is wrong with a broken one.
#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/log.hpp"
#include "tuning/tuning.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

const std::string machine = "version = 1\nmachine = { cpu = \"One\", cores = 2 }\n";
const std::string layout =
    "[[layout]]\ncollective = \"allgather\"\nnodes = 2\nranks_per_node = 4\nmemory = \"host\"\n"
    "network = \"tcp\"\n";

TunedLayout wanted(int nodes, TunedLayout::Network network)
{
    TunedLayout wanted;
    wanted.collective = "allgather";
    wanted.nodes = nodes;
    wanted.ranks_per_node = 4;
    wanted.network = network;
    return wanted;
}

// A file may name the GPU, which not every process knows.
void test_machines(void**)
{
    std::string fault;
    const auto tuning = parse_tuning(
        "version = 1\nmachine = { cpu = \"One\", cores = 2, gpu = \"10de:2335\" }\n", fault);
    assert_true(tuning.has_value());
    assert_true((tuning->machine == Machine{"One", 2, "10de:2335"}));
    for (const char* gpu : {"10de:2335", ""}) {
        const Machine here{"One", 2, gpu};
        assert_true(tuning->machine.is_like(here) && here.is_like(tuning->machine));
    }
    for (const Machine& other :
         {Machine{"One", 2, "10de:2330"}, Machine{"Two", 2, "10de:2335"}, Machine{"One", 3, ""}})
        assert_false(tuning->machine.is_like(other) || other.is_like(tuning->machine));
}

void test_all_of_a_file(void**)
{
    std::string fault;
    const auto tuning = parse_tuning(
        machine + "rates = { tcp_rate = 0.125, core_rate = 7, engine_rate = 1.5e2 }\n" + layout +
            "min_bytes = 4096\n"
            "sizes = [\n"
            "  { up_to = 1024, route = \"bundles\", eager = false },\n"
            "  { up_to = 65536, route = \"ring\", chunks = 4, publish = true },\n"
            "]\n"
            "[[layout]]\ncollective = \"allgather\"\nnodes = 1\nranks_per_node = 4\n"
            "memory = \"device\"\nvirtual = true\nsizes = [ { up_to = 8, publish = false } ]\n",
        fault);
    assert_true(tuning.has_value());
    assert_true((tuning->machine == Machine{"One", 2}));
    assert_true(tuning->tcp_rate == 0.125 && tuning->core_rate == 7 && tuning->engine_rate == 150);
    const TunedLayout* found = tuning->find(wanted(2, TunedLayout::Network::tcp));
    assert_non_null(found);
    assert_int_equal(found->min_bytes.value_or(0), 4096);
    const TunedSize* size = found->find(1024);
    assert_true(size->route == Route::bundles && size->eager == false && !size->publish);
    size = found->find(1025);
    assert_true(size->route == Route::ring && size->chunks == 4 && size->publish == true);
    assert_true(!size->eager);
    assert_null(found->find(65537));
    assert_null(tuning->find(wanted(2, TunedLayout::Network::rdma)));
    assert_null(tuning->find(wanted(3, TunedLayout::Network::tcp)));
    TunedLayout on_devices = wanted(1, TunedLayout::Network::none);
    assert_null(tuning->find(on_devices));
    on_devices.is_on_devices = true;
    assert_null(tuning->find(on_devices));
    on_devices.is_virtual = true;
    assert_non_null(tuning->find(on_devices));
    assert_false(tuning->find(on_devices)->min_bytes.has_value());
}

// The text, where the fault is, and a word of the reason.
struct Broken {
    std::string text;
    const char* line;
    const char* reason;
};

void test_broken_files(void**)
{
    const std::string sizes = machine + layout + "sizes = [ ";
    const std::vector<Broken> all{
        {"", "line 1:", "version"},
        {"version = 2\n", "line 1:", "from 1 to 1"},
        {"version = 1\n", "line 1:", "machine"},
        {"version = 1\nmachine = 3\n", "line 2:", "table"},
        {"version = 1\nmachine = { cpu = 1, cores = 2 }\n", "line 2:", "text"},
        {"version = 1\nmachine = { cpu = \"One\", cores = 0 }\n", "line 2:", "cores"},
        {machine + "rate = 3\n", "line 3:", "'rate' is not known"},
        {machine + "rates = { tcp_rate = -1 }\n", "line 3:", "GB/s"},
        {machine + "rates = { tcp_rate = nan }\n", "line 3:", "GB/s"},
        {machine + "rates = { tcp_rate = true }\n", "line 3:", "GB/s"},
        {machine + "rates = { tcp_rate = \n", "line 3:", ""},
        {machine + "[= 1\n", "line 3:", "not TOML"},
        {machine + "[\x01]\n", "line 3:", ""},
        {machine + "# caf\xc3\xa9\n", "line 3:", "ASCII"},
        {machine + "layout = 1\n", "line 3:", "array"},
        {machine + "layout = [ 1 ]\n", "line 3:", "table"},
        {machine + layout + layout, "line 9:", "twice"},
        {machine + layout + "nodes = 3\n", "line 9:", ""},
        {machine + layout + "min_bytes = -1\n", "line 9:", "min_bytes"},
        {machine + layout + "min_bytes = 1.5\n", "line 9:", "min_bytes"},
        {machine + "[[layout]]\ncollective = \"allgather\"\nnodes = 1\nranks_per_node = 4\n"
                   "memory = \"host\"\nnetwork = \"tcp\"\n",
         "line 8:", "no network"},
        {machine + "[[layout]]\ncollective = \"allgather\"\nnodes = 2\nranks_per_node = 4\n"
                   "memory = \"paper\"\n",
         "line 7:", "host, device"},
        {machine + "[[layout]]\ncollective = \"allgather\"\nnodes = 1\nranks_per_node = 4\n"
                   "memory = \"host\"\nsizes = [ { up_to = 8, chunks = 1 } ]\n",
         "line 8:", "several nodes"},
        {sizes + "{ route = \"ring\" } ]\n", "line 9:", "up_to"},
        {sizes + "{ up_to = 0 } ]\n", "line 9:", "up_to"},
        {sizes + "{ up_to = 8 }, { up_to = 8 } ]\n", "line 9:", "larger"},
        {sizes + "{ up_to = 8, route = \"rign\" } ]\n", "line 9:", "direct, ring, bundles"},
        {sizes + "{ up_to = 8, route = \"bundles\", chunks = 2 } ]\n", "line 9:", "exclude"},
        {sizes + "{ up_to = 8, chunks = 0 } ]\n", "line 9:", "chunks"},
        {sizes + "{ up_to = 8, eager = 1 } ]\n", "line 9:", "true or false"},
        {sizes + "{ up_to = 8, depth = 1 } ]\n", "line 9:", "'depth' is not known"},
    };
    for (const Broken& broken : all) {
        std::string fault;
        const bool is_taken = parse_tuning(broken.text, fault).has_value();
        const bool is_told =
            fault.rfind(broken.line, 0) == 0 && fault.find(broken.reason) != std::string::npos;
        if (is_taken || !is_told) std::printf("%s gives: %s\n", broken.text.c_str(), fault.c_str());
        assert_true(!is_taken && is_told);
    }
}

void test_digest(void**)
{
    std::string fault;
    const auto one = parse_tuning(machine, fault), same = parse_tuning(machine, fault);
    const auto other = parse_tuning(machine + "# two\n", fault);
    assert_true(one->digest == same->digest && one->digest != other->digest && one->digest != 0);
}

std::string told;

// A file that is not there, and then none at all: the first answer stands.
void test_loading(void**)
{
    set_log(HIER_LOG_ERROR, [](int, const char* line) { told = line; });
    assert_true(load_tuning(nullptr) && load_tuning(""));
    assert_null(loaded_tuning());
    const std::string path = "/nowhere/" + std::to_string(getpid()) + ".toml";
    assert_false(load_tuning(path.c_str()));
    assert_true(told.find(path) != std::string::npos);
    assert_true(told.find("No such file") != std::string::npos);
    assert_false(load_tuning(path.c_str()));
    assert_null(loaded_tuning());
}

void test_this_machine(void**)
{
    const Machine here = this_machine(-1);
    assert_true(here.cores > 0);
    assert_true(here == this_machine(-1));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_a_file), cmocka_unit_test(test_machines),
        cmocka_unit_test(test_broken_files),  cmocka_unit_test(test_digest),
        cmocka_unit_test(test_loading),       cmocka_unit_test(test_this_machine),
    };
    return hier::test::run_cases(argc, argv, "tuning", tests);
}
