#include "options.hpp"

#include "quantity.hpp"

#include <climits>
#include <functional>
#include <string_view>

namespace bench {
namespace {

// Sets the option from its value; false means that the value is not valid.
using Setter = std::function<bool(Options&, std::string_view)>;

struct Row {
    std::string_view name;
    std::string_view valid;  // what the value must be, for the error; empty: the option takes none
    Setter set;
};

bool set_sizes(Options& options, std::string_view value)
{
    const auto sizes = parse_sizes(value);
    if (!sizes) {
        return false;
    }
    for (const std::size_t size : *sizes) {
        if (size > static_cast<std::size_t>(INT_MAX)) {
            return false;
        }
    }
    options.sizes = *sizes;
    return true;
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

bool set_memory(Options& options, std::string_view value)
{
    if (value == "host") {
        options.memory = MemoryKind::host;
    } else if (value == "device") {
        options.memory = MemoryKind::device;
    } else {
        return false;
    }
    return true;
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

// The setter of a number: TARGET is the member, PARSE gives an optional.
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
        {"--sizes", "a list (64k,256k,1m), a doubling range (1k:1m) or none; at most 2147483647",
         set_sizes},
        {"--iterations", "a whole number from 1 to 10000000",
         count(&Options::iterations, 1, 10'000'000)},
        {"--seconds", "a number above 0", number(&Options::seconds, parse_positive)},
        {"--warmup", "a whole number from 0 to 1000000", count(&Options::warmup, 0, 1'000'000)},
        {"--validate", "none, few or all", set_validate},
        {"--in-place", "", flag(&Options::in_place)},
        {"--memory", "host or device", set_memory},
        {"--csv", "a file name", text(&Options::csv)},
        {"--label", "a text", text(&Options::label)},
        {"--link-rate", "measured, bytes per second (119.5e6) or bits (1gbit, 100mbit)", set_link},
        {"--measure-link", "",
         [](Options& options, std::string_view) {
             options.link = LinkSource::measured;
             return true;
         }},
        {"--link-seconds", "a number above 0", number(&Options::link_seconds, parse_positive)},
        {"--ranks-per-node", "a whole number from 0 to 1000000",
         count(&Options::ranks_per_node, 0, 1'000'000)},
        {"--help", "", flag(&Options::help)},
    };
    return table;
}

const Row* find_row(std::string_view name)
{
    for (const Row& row : rows()) {
        if (row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

std::string parse_one(Options& options, int argc, const char* const* argv, int& next)
{
    const std::string argument = argv[next++];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool attached = equals != std::string::npos;
    const Row* row = find_row(name);
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

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv)
{
    ParsedOptions parsed;
    parsed.options.sizes = *parse_sizes("1k:1m");
    for (int next = 1; next < argc && parsed.error.empty();) {
        parsed.error = parse_one(parsed.options, argc, argv, next);
    }
    if (parsed.error.empty() && parsed.options.memory == MemoryKind::device) {
        parsed.error = "--memory device: not built into this program; use --memory host";
    }
    if (parsed.error.empty() && parsed.options.sizes.empty() &&
        parsed.options.link != LinkSource::measured) {
        parsed.error = "--sizes none leaves nothing to do; add --measure-link or give sizes";
    }
    return parsed;
}

}  // namespace bench
