// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string_view>

#include "bench/lib/options/quantity.hpp"
#include "node/device/fan_out.hpp"

namespace bench::simulator {
namespace {

using Setter = std::function<bool(Options&, std::string_view)>;

struct Row {
    std::string_view name;
    std::string_view valid;  // what the value must be, for the error; empty: there is no value
    Setter set;
};

std::vector<std::string_view> split(std::string_view text, std::string_view separators)
{
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at != std::string_view::npos;) {
        at = text.find_first_of(separators);
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    }
    return parts;
}

// `target` returns the variable.
Setter number(auto target, auto parse)
{
    return [=](Options& options, std::string_view value) {
        const auto parsed = parse(value);
        if (parsed) {
            auto& variable = target(options);
            variable = static_cast<std::remove_reference_t<decltype(variable)>>(*parsed);
        }
        return parsed.has_value();
    };
}

Setter count(auto target, long low, long high)
{
    return number(target, [=](std::string_view value) { return parse_count(value, low, high); });
}

Setter rate(double Machine::*member)
{
    return number([=](Options& o) -> double& { return o.machine.*member; }, parse_rate);
}

Setter time(double Machine::*member)
{
    return number([=](Options& o) -> double& { return o.machine.*member; }, parse_duration);
}

Setter flag(bool Options::*member)
{
    return [=](Options& options, std::string_view) { return options.*member = true; };
}

bool set_layout(Options& options, std::string_view value)
{
    options.layout.clear();
    for (const auto part : split(value, ",+")) {
        const auto ranks = parse_count(part, 1, 1 << 16);
        if (!ranks) {
            return false;
        }
        options.layout.push_back(static_cast<int>(*ranks));
    }
    return true;
}

bool set_sizes(Options& options, std::string_view value)
{
    const auto sizes = parse_sizes(value);
    if (!sizes || sizes->empty() || std::find(sizes->begin(), sizes->end(), 0u) != sizes->end()) {
        return false;
    }
    options.sizes = *sizes;
    return true;
}

bool set_chunk(Options& options, std::string_view value)
{
    const auto size = parse_size(value);
    options.chunk = size.value_or(0);
    return value == "model" || options.chunk > 0;
}

bool set_route(Options& options, std::string_view value)
{
    static constexpr std::pair<std::string_view, RouteChoice> names[] = {
        {"both", RouteChoice::both},       {"model", RouteChoice::best},
        {"direct", RouteChoice::direct},   {"ring", RouteChoice::ring},
        {"bundles", RouteChoice::bundles},
    };
    for (const auto& [name, route] : names) {
        if (value == name) {
            options.route = route;
            return true;
        }
    }
    return false;
}

bool set_algorithms(Options& options, std::string_view value)
{
    static const std::vector<std::string> known = Options().algorithms;
    options.algorithms.clear();
    for (const auto part : split(value, ",")) {
        if (std::find(known.begin(), known.end(), part) == known.end()) {
            return false;
        }
        options.algorithms.emplace_back(part);
    }
    return true;
}

Setter text(std::string Options::*member)
{
    return [=](Options& options, std::string_view value) {
        options.*member = value;
        return !value.empty();
    };
}

const std::vector<Row>& rows()
{
    constexpr std::string_view bandwidth = "bytes per second (50GB, 119.2MB) or bits (1gbit)";
    constexpr std::string_view duration = "a time: 300ns, 5us, 1ms";
    constexpr std::string_view whole = "a whole number from 1 to 65536";
    static const std::vector<Row> table{
        {"--nodes", whole, count([](Options& o) -> int& { return o.nodes; }, 1, 1 << 16)},
        {"--gpus", whole, count([](Options& o) -> int& { return o.gpus; }, 1, 1 << 16)},
        {"--layout", "ranks of each node: 4,2,1", set_layout},
        {"--bytes", "a list (64k,256k,1m) or a doubling range (1k:1m)", set_sizes},
        {"--nic-rate", bandwidth, rate(&Machine::nic_rate)},
        {"--nic-latency", duration, time(&Machine::nic_latency)},
        {"--nics", whole, count([](Options& o) -> int& { return o.machine.nics; }, 1, 1 << 16)},
        {"--depth", whole, count([](Options& o) -> int& { return o.machine.depth; }, 1, 1 << 16)},
        {"--link-rate", bandwidth, rate(&Machine::link_rate)},
        {"--link-latency", duration,
         [](Options& o, std::string_view v) { return !!(o.link_latency = parse_duration(v)); }},
        {"--copy-issue", duration, time(&Machine::copy_issue)},
        {"--launch", duration,
         [](Options& o, std::string_view v) { return !!(o.launch = parse_duration(v)); }},
        {"--copy-rate", bandwidth, rate(&Machine::copy_rate)},
        {"--streams", whole,
         count([](Options& o) -> int& { return o.machine.streams; }, 1, 1 << 16)},
        {"--fan-out", "a size (512k), or 0",
         [](Options& o, std::string_view v) {
             o.fan_out = v == "0" ? std::optional<std::size_t>(0) : parse_size(v);
             return o.fan_out.has_value();
         }},
        {"--kernel-gap", duration,
         [](Options& o, std::string_view v) { return !!(o.kernel_gap = parse_duration(v)); }},
        {"--staged", "", flag(&Options::is_staged)},
        {"--stage-rate", bandwidth,
         number([](Options& o) -> double& { return o.stage_rate; }, parse_rate)},
        {"--host", "", [](Options& o, std::string_view) { return o.machine.is_host = true; }},
        {"--core-rate", bandwidth, rate(&Machine::core_rate)},
        {"--memory-rate", bandwidth, rate(&Machine::memory_rate)},
        {"--eager", "a size (32k), or 0",
         [](Options& o, std::string_view v) {
             const auto size = v == "0" ? std::optional<std::size_t>(0) : parse_size(v);
             o.machine.eager_bytes = size.value_or(0);
             return size.has_value();
         }},
        {"--message", duration, time(&Machine::message)},
        {"--nic-gap", duration, time(&Machine::nic_gap)},
        {"--small-latency", duration, time(&Machine::small_latency)},
        {"--publish-latency", duration, time(&Machine::publish_latency)},
        {"--overhead", duration, time(&Machine::overhead)},
        {"--skew", duration, time(&Machine::skew)},
        {"--in-place", "", flag(&Options::is_in_place)},
        {"--chunk", "a size (256k) or model", set_chunk},
        {"--route", "both, direct, ring, bundles or model", set_route},
        {"--algorithms", "a list of hier, ring, doubling, leader", set_algorithms},
        {"--full", "", flag(&Options::is_full)},
        {"--csv", "a file name", text(&Options::csv)},
        {"--calibrate", "a file name", text(&Options::calibrate)},
        {"--help", "", flag(&Options::help)},
    };
    return table;
}

// 0, or the errno of appending rows there. An empty file is left.
int fault_of_csv(const std::string& path)
{
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (file == nullptr) return errno;
    std::fclose(file);
    return 0;
}

}  // namespace

std::vector<int> Options::ranks_of() const
{
    return layout.empty() ? std::vector<int>(static_cast<std::size_t>(nodes), gpus) : layout;
}

std::string parse_options(const std::vector<std::string>& arguments, Options& options)
{
    bool has_nodes = false;
    for (std::size_t next = 0; next < arguments.size();) {
        const std::string& argument = arguments[next++];
        const std::size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        const auto row = std::find_if(rows().begin(), rows().end(),
                                      [&](const Row& r) { return r.name == name; });
        if (row == rows().end()) {
            return "unknown option '" + argument + "'; --help lists the options";
        }
        has_nodes = has_nodes || name == "--nodes" || name == "--gpus";
        std::string value;
        if (!row->valid.empty()) {
            if (equals == std::string::npos && next == arguments.size()) {
                return name + " needs a value: " + std::string(row->valid);
            }
            value = equals == std::string::npos ? arguments[next++] : argument.substr(equals + 1);
        }
        if (!row->set(options, value)) {
            return name + " '" + value + "' is not valid; it must be " + std::string(row->valid);
        }
    }
    if (!options.layout.empty() && has_nodes) {
        return "--layout says how many nodes and ranks there are, so --nodes and --gpus cannot";
    }
    if (!options.csv.empty() && !options.calibrate.empty()) {
        return "--calibrate prints a table and writes no rows, so --csv cannot be";
    }
    if (!options.csv.empty() && !options.help) {
        const int fault = fault_of_csv(options.csv);
        if (fault != 0) return "--csv " + options.csv + ": " + std::strerror(fault);
    }
    Machine& machine = options.machine;
    constexpr double cpu_latency = 1e-6;  // a system call and a flag
    machine.link_latency =
        options.link_latency.value_or(machine.is_host ? cpu_latency : Machine().link_latency);
    // As on H100 and H200 (bench/README.md).
    constexpr double gpu_launch = 7e-6, gpu_kernel_gap = 4.1e-6;
    machine.launch = options.launch.value_or(machine.is_host ? 0 : gpu_launch);
    machine.kernel_gap = options.kernel_gap.value_or(gpu_kernel_gap);
    const std::vector<int> ranks_of = options.ranks_of();
    const bool has_kernels = !machine.is_host && ranks_of.size() > 1;
    const auto peers = static_cast<std::size_t>(*std::ranges::max_element(ranks_of) - 1);
    machine.fan_out = options.fan_out.value_or(has_kernels ? hier::max_chunk_by_kernel(peers) : 0);
    machine.stage_rate = options.is_staged && !machine.is_host ? options.stage_rate : 0;
    return "";
}

const char* usage()
{
    return R"(Usage: simulate [OPTION...]
Runs the plans of an allgather in virtual time, and other algorithms on the same machine.

  --nodes N --gpus N   nodes and ranks of each [2, 8]
  --layout LIST        ranks of each node: 4,2,1
  --bytes LIST         bytes a rank: 64k,256k,1m, or 1k:1m (doubling) [1m]
  --nics N             of a node [one a rank]; more than ranks: each has several, 4 at most
  --nic-rate RATE      [50GB]
  --nic-latency TIME   [5us]                       --depth N           puts in flight of a rank [model]
  --link-rate RATE     of a GPU's port [393GB]     --link-latency TIME of a copy [2us; host 1us]
  --copy-issue TIME    between two copies [0.5us]  --streams N         copies at a time [2]
  --copy-rate RATE     inside a GPU [2000GB]
  --fan-out SIZE       blocks of up to this go to all of a node by kernels; 0: none
                       [32k for each rank of a node; one node 0]
  --launch TIME        from the issue of a copy or a kernel until it begins [7us]
  --kernel-gap TIME    from the end of a kernel until the next one begins [4.1us]
  --staged             the network reaches host memory only; --stage-rate RATE [50GB]
  --host               host memory: --core-rate RATE [8GB], --memory-rate RATE of a node [40GB]
  --eager SIZE         messages of up to this wait for nobody [32k]; each takes
  --message TIME       a core at either end [0.5us], --nic-gap TIME a NIC [0us]
  --small-latency TIME of a push of up to 16 KiB in host memory [0.4us], of one to all of a node
                       --publish-latency TIME [0.15us]
  --overhead TIME      of every call [0us]
  --skew TIME          local rank l enters l times this later than the first [0us]
  --in-place           MPI_IN_PLACE
  --chunk SIZE         of ours, or model, what the product's cost model chooses [model]
  --route WHICH        of ours: both (direct and ring), one of them, bundles, or model [both]
  --algorithms LIST    hier,ring,doubling,leader
  --full               run every rank even where one node stands for all
  --csv FILE           append a row for each algorithm and size
  --calibrate FILE     run its rows instead, and compare with what was measured

Exit status: 0; 1 a simulation failed; 2 an option or its value is not usable.
)";
}

}  // namespace bench::simulator
