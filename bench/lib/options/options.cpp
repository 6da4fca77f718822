// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "quantity.hpp"

#include <climits>
#include <functional>
#include <optional>
#include <string_view>

namespace bench {
namespace {

// Sets an option; false: the value is not valid.
using Setter = std::function<bool(Options&, std::string_view)>;

struct Row {
    std::string_view name;
    std::string_view valid;  // describes valid values in errors; empty: the option takes no value
    Setter set;
    unsigned programs;  // that have the option
};

constexpr unsigned allgather = static_cast<unsigned>(Program::allgather);
constexpr unsigned levels = static_cast<unsigned>(Program::levels);
constexpr unsigned nccl = static_cast<unsigned>(Program::nccl_allgather);
constexpr unsigned overlap = static_cast<unsigned>(Program::gpu_overlap);
constexpr unsigned p2p = static_cast<unsigned>(Program::p2p);
constexpr unsigned allgatherv = static_cast<unsigned>(Program::allgatherv);
constexpr unsigned requests = static_cast<unsigned>(Program::requests);
constexpr unsigned threads = static_cast<unsigned>(Program::threads);
constexpr unsigned mpi = allgather | levels;
constexpr unsigned gathers = mpi | nccl;
constexpr unsigned sized = gathers | overlap;
constexpr unsigned all = sized | p2p | allgatherv | requests | threads;

bool set_sizes(Options& options, std::string_view value)
{
    const auto sizes = parse_sizes(value);
    if (sizes) {
        options.sizes = *sizes;
    }
    return sizes.has_value();
}

bool set_validate(Options& options, std::string_view value)
{
    if (value == "none") {
        options.validate = Validate::none;
    } else if (value == "few") {
        options.validate = Validate::few;
    } else if (value == "all") {
        options.validate = Validate::all;
    } else {
        return false;
    }
    return true;
}

std::optional<MemoryKind> parse_kind(std::string_view value)
{
    for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device}) {
        if (value == name_of(kind)) {
            return kind;
        }
    }
    return std::nullopt;
}

bool set_memory(Options& options, std::string_view value)
{
    options.mixed_memory = value == "mixed";
    if (options.mixed_memory) {
        return true;
    }
    const std::size_t comma = value.find(',');
    const auto send = parse_kind(value.substr(0, comma));
    const auto receive =
        comma == std::string_view::npos ? send : parse_kind(value.substr(comma + 1));
    if (send && receive) {
        options.memory = {*send, *receive};
    }
    return send && receive;
}

bool set_by(Options& options, std::string_view value)
{
    options.by.clear();
    for (std::size_t end = 0; end != std::string_view::npos; value.remove_prefix(end + 1)) {
        end = value.find(',');
        options.by.emplace_back(value.substr(0, end));
        if (end == std::string_view::npos) {
            break;
        }
    }
    return !value.empty();
}

bool set_blocks(Options& options, std::string_view value)
{
    const std::size_t at = value.find('@');
    if (at == std::string_view::npos) {
        return false;
    }
    const auto bytes = parse_size(value.substr(0, at));
    const auto stride = parse_size(value.substr(at + 1));
    options.blocks = {bytes.value_or(0), stride.value_or(0)};
    return options.blocks.bytes > 0 && options.blocks.stride >= options.blocks.bytes &&
           options.blocks.stride <= static_cast<std::size_t>(INT_MAX);
}

bool set_copy_bytes(Options& options, std::string_view value)
{
    const auto bytes = parse_size(value);
    options.copy_bytes = bytes.value_or(0);
    return options.copy_bytes > 0;
}

bool set_link(Options& options, std::string_view value)
{
    if (value == "measured") {
        options.link = LinkSource::measured;
        return true;
    }
    const auto rate = parse_rate(value);
    if (rate) {
        options.link = LinkSource::given;
        options.link_rate = *rate;
    }
    return rate.has_value();
}

// Sets a member to the number that `parse` finds.
template <typename Target, typename Parse> Setter number(Target Options::*member, Parse parse)
{
    return [member, parse](Options& options, std::string_view value) {
        const auto parsed = parse(value);
        if (parsed) {
            options.*member = static_cast<Target>(*parsed);
        }
        return parsed.has_value();
    };
}

Setter count(auto member, long low, long high)
{
    return number(member, [=](std::string_view value) { return parse_count(value, low, high); });
}

Setter text(std::string Options::*member)
{
    return [member](Options& options, std::string_view value) {
        options.*member = value;
        return !value.empty();
    };
}

Setter flag(bool Options::*member)
{
    return [member](Options& options, std::string_view) { return options.*member = true; };
}

const std::vector<Row>& rows()
{
    static const std::vector<Row> table{
        {"--sizes", "a list (64k,256k,1m), a doubling range (1k:1m) or none", set_sizes,
         sized | allgatherv | requests | threads},
        {"--total", "", flag(&Options::total), mpi | requests},
        {"--iterations", "a whole number from 1 to 10000000",
         count(&Options::iterations, 1, 10'000'000), all & ~threads},
        {"--seconds", "a number above 0", number(&Options::seconds, parse_positive),
         gathers | allgatherv | requests | threads},
        {"--warmup", "a whole number from 0 to 1000000", count(&Options::warmup, 0, 1'000'000),
         gathers},
        {"--gap", "a size from 0 (4k)", number(&Options::gap, parse_size), allgatherv},
        {"--validate", "none, few or all", set_validate, gathers},
        {"--in-place", "", flag(&Options::in_place), mpi | overlap | allgatherv | requests},
        {"--loop", "", flag(&Options::loop), allgather | nccl},
        {"--fresh", "", flag(&Options::fresh), allgather},
        {"--buffers", "a whole number from 1 to 10000", count(&Options::buffers, 1, 10'000),
         gathers},
        {"--blocks", "BYTES@STRIDE, two sizes from 1 (64@4k), the stride not below the bytes",
         set_blocks, allgather},
        {"--memory", "host, pinned or device, or two of them (device,host), or mixed", set_memory,
         mpi | allgatherv | requests},
        {"--by", "a list of names that --help explains", set_by, nccl | overlap},
        {"--gemm", "a whole number from 16 to 65536", count(&Options::gemm_size, 16, 65536),
         overlap},
        {"--gemm-factor", "a number above 0", number(&Options::gemm_factor, parse_positive),
         overlap},
        {"--bytes", "a size from 1 (256m)", set_copy_bytes, p2p},
        {"--csv", "a file name", text(&Options::csv), all},
        {"--label", "a text", text(&Options::label), all},
        {"--link-rate", "measured, bytes per second (119.5e6) or bits (1gbit, 100mbit)", set_link,
         mpi},
        {"--measure-link", "",
         [](Options& options, std::string_view) {
             options.link = LinkSource::measured;
             return true;
         },
         mpi},
        {"--link-seconds", "a number above 0", number(&Options::link_seconds, parse_positive), mpi},
        {"--ranks-per-node", "a whole number from 0 to 1000000",
         count(&Options::ranks_per_node, 0, 1'000'000), mpi | allgatherv | requests | threads},
        {"--help", "", flag(&Options::help), all},
    };
    return table;
}

const Row* find_row(Program program, std::string_view name)
{
    for (const Row& row : rows()) {
        if (row.name == name && (row.programs & static_cast<unsigned>(program)) != 0) {
            return &row;
        }
    }
    return nullptr;
}

std::string parse_one(Program program, Options& options, int argc, const char* const* argv,
                      int& next)
{
    const std::string argument = argv[next++];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool attached = equals != std::string::npos;
    const Row* row = find_row(program, name);
    if (row == nullptr) {
        return "unknown option '" + argument + "'; --help lists the options";
    }
    if (row->valid.empty()) {
        if (attached) {
            return name + " takes no value";
        }
        return row->set(options, "") ? "" : name + " is not valid";
    }
    if (!attached && next >= argc) {
        return name + " needs a value: " + std::string(row->valid);
    }
    const std::string value = attached ? argument.substr(equals + 1) : argv[next++];
    if (!row->set(options, value)) {
        return name + " '" + value + "' is not valid; it must be " + std::string(row->valid);
    }
    return "";
}

void set_defaults(Program program, Options& options)
{
    switch (program) {
    case Program::allgather:
        options.sizes = *parse_sizes("1k:1m");
        return;
    case Program::requests:
        options.sizes = *parse_sizes("8:4m");
        return;
    case Program::threads:
        options.sizes = *parse_sizes("8,4k,64k,1m");
        return;
    case Program::levels:
        options.sizes = *parse_sizes("256k,1m,4m");
        return;
    case Program::allgatherv:
        options.sizes = *parse_sizes("64k,1m,16m,64m");
        options.total = true;
        return;
    case Program::nccl_allgather:
        options.sizes = *parse_sizes("1k,16k,64k,256k,1m,4m,16m,64m,256m,1g");
        options.by = {"plain", "symmetric", "zero-cta"};
        break;
    case Program::gpu_overlap:
        options.sizes = *parse_sizes("64m:1g");
        options.by = {"mpi"};
        break;
    case Program::p2p:
        break;
    }
    options.total = true;
    options.memory = {MemoryKind::device, MemoryKind::device};
}

}  // namespace

ParsedOptions parse_options(Program program, int argc, const char* const* argv)
{
    ParsedOptions parsed;
    Options& options = parsed.options;
    set_defaults(program, options);
    for (int next = 1; next < argc && parsed.error.empty();) {
        parsed.error = parse_one(program, options, argc, argv, next);
    }
    if (parsed.error.empty() && options.sizes.empty() && options.link != LinkSource::measured &&
        program != Program::p2p) {
        parsed.error = program == Program::allgather
                           ? "--sizes none leaves nothing to do; add --measure-link or give sizes"
                           : "--sizes none leaves nothing to do; give sizes";
    }
    const auto is_of_device = [](MemoryKind kind) { return kind == MemoryKind::device; };
    if (parsed.error.empty() && options.fresh &&
        (options.mixed_memory || is_of_device(options.memory.send) ||
         is_of_device(options.memory.receive))) {
        parsed.error = "--fresh is for memory that the CPU reaches: host or pinned";
    }
    return parsed;
}

std::string share_sizes(Options& options, int ranks)
{
    for (std::size_t& size : options.sizes) {
        if (options.total) {
            size /= static_cast<std::size_t>(ranks);
        }
        if (!options.blocks.is_whole() && size % options.blocks.bytes != 0) {
            return "--sizes: " + std::to_string(size) + " bytes a rank are no multiple of " +
                   std::to_string(options.blocks.bytes) + ", the bytes of a block";
        }
        if (size > static_cast<std::size_t>(INT_MAX)) {
            return "--sizes: " + std::to_string(size) + " bytes a rank are more than " +
                   std::to_string(INT_MAX) + ", which is all that MPI_Allgather counts";
        }
    }
    return "";
}

}  // namespace bench
