// SPDX-License-Identifier: BSD-3-Clause
// Reads the text of a tuning file. Every table and key is checked, and one that is not known is an
// error, so that a mistyped key does not pass for one that was left out.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>

// toml++ 3.3 takes some broken texts for mistakes of its own ("[= 1"). That must not end the process.
[[noreturn]] static void fail_check(const char* condition) { throw std::logic_error(condition); }
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : fail_check(#condition))
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/error.hpp"
#include "tuning/tuning.hpp"

namespace hier {
namespace {

struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const toml::node& at, const std::string& why)
{
    throw Fault(format("line %u: %s", static_cast<unsigned>(at.source().begin.line), why.c_str()));
}

// A table whose keys are all known.
class Table {
public:
    Table(const toml::node& node, const std::string& name, std::initializer_list<const char*> known)
        : name_(name)
    {
        table_ = node.as_table();
        if (table_ == nullptr) refuse(node, name + " must be a table");
        for (const auto& [key, value] : *table_) {
            const auto is_it = [&, &word = key](const char* k) { return word.str() == k; };
            if (std::none_of(known.begin(), known.end(), is_it))
                refuse(value, "'" + std::string(key.str()) + "' is not known in " + name);
        }
    }

    const toml::node* find(const char* key) const { return table_->get(key); }
    const toml::node& get(const char* key) const
    {
        const toml::node* node = find(key);
        if (node == nullptr) refuse(*table_, name_ + " has no '" + key + "'");
        return *node;
    }

    std::string text(const char* key) const
    {
        const auto* value = get(key).as_string();
        if (value == nullptr) refuse(get(key), std::string(key) + " must be a text");
        return value->get();
    }

    // The place of a text in a list.
    std::size_t one_of(const char* key, std::initializer_list<const char*> words) const
    {
        const std::string text = this->text(key);
        std::size_t place = 0;
        std::string list;
        for (const char* word : words) {
            if (text == word) return place;
            list += (place++ > 0 ? ", " : "") + std::string(word);
        }
        refuse(get(key), std::string(key) + " is '" + text + "', but must be one of " + list);
    }

    long long number(const char* key, long long least, long long most) const
    {
        const auto* value = get(key).as_integer();
        if (value == nullptr || value->get() < least || value->get() > most)
            refuse(get(key),
                   format("%s must be a whole number from %lld to %lld", key, least, most));
        return value->get();
    }

    std::size_t bytes(const char* key, long long least) const
    {
        return static_cast<std::size_t>(number(key, least, 1LL << 50));
    }

    // 0: not given.
    double rate(const char* key) const
    {
        constexpr double least = 1e-6, most = 1e6;
        if (find(key) == nullptr) return 0;
        const std::optional<double> value = get(key).value<double>();
        if (!value || !get(key).is_number() || !(*value >= least && *value <= most))
            refuse(get(key), format("%s must be from %g to %g GB/s", key, least, most));
        return *value;
    }

    std::optional<bool> yes_or_no(const char* key) const
    {
        if (find(key) == nullptr) return std::nullopt;
        const auto* value = get(key).as_boolean();
        if (value == nullptr) refuse(get(key), std::string(key) + " must be true or false");
        return value->get();
    }

    // The tables of an array of tables; none if it is not there.
    template <class F> void each(const char* key, F take) const
    {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        const auto* list = node->as_array();
        if (list == nullptr) refuse(*node, std::string(key) + " must be an array of tables");
        for (const toml::node& element : *list) take(element);
    }

private:
    const toml::table* table_ = nullptr;
    std::string name_;
};

TunedSize size_of(const toml::node& node, std::size_t above, bool is_one_node)
{
    const Table table(node, "a size", {"up_to", "route", "chunks", "eager", "publish"});
    TunedSize size;
    size.up_to = table.bytes("up_to", 1);
    if (size.up_to <= above) refuse(node, "up_to must be larger than that of the size before");
    for (const char* key : {"route", "chunks", "eager"}) {
        if (is_one_node && table.find(key) != nullptr)
            refuse(table.get(key), std::string(key) + " is for several nodes");
    }
    if (table.find("route") != nullptr)
        size.route = all_routes[table.one_of("route", {"direct", "ring", "bundles"})];
    if (table.find("chunks") != nullptr) {
        if (size.route == Route::bundles) refuse(node, "chunks and bundles exclude each other");
        size.chunks = static_cast<std::size_t>(table.number("chunks", 1, 1 << 20));
    }
    size.eager = table.yes_or_no("eager");
    size.publish = table.yes_or_no("publish");
    return size;
}

TunedLayout layout_of(const toml::node& node)
{
    constexpr int most = 1 << 20;
    const Table table(node, "a layout",
                      {"collective", "nodes", "ranks_per_node", "memory", "network", "virtual",
                       "min_bytes", "sizes"});
    TunedLayout layout;
    layout.collective = table.text("collective");
    layout.nodes = static_cast<int>(table.number("nodes", 1, most));
    layout.ranks_per_node = static_cast<int>(table.number("ranks_per_node", 1, most));
    layout.is_on_devices = table.one_of("memory", {"host", "device"}) == 1;
    if (layout.nodes > 1) {
        const bool is_rdma = table.one_of("network", {"tcp", "rdma"}) == 1;
        layout.network = is_rdma ? TunedLayout::Network::rdma : TunedLayout::Network::tcp;
    } else if (table.find("network") != nullptr) {
        refuse(table.get("network"), "a single node has no network");
    }
    layout.is_virtual = table.yes_or_no("virtual").value_or(false);
    if (table.find("min_bytes") != nullptr) layout.min_bytes = table.bytes("min_bytes", 0);
    table.each("sizes", [&](const toml::node& element) {
        const std::size_t above = layout.sizes.empty() ? 0 : layout.sizes.back().up_to;
        layout.sizes.push_back(size_of(element, above, layout.nodes == 1));
    });
    return layout;
}

Tuning tuning_of(const toml::table& root)
{
    const Table table(root, "the file", {"version", "machine", "rates", "layout"});
    (void)table.number("version", 1, 1);
    const Table machine(table.get("machine"), "machine", {"cpu", "cores", "gpu"});
    Tuning tuning;
    tuning.machine.cpu = machine.text("cpu");
    tuning.machine.cores =
        static_cast<int>(machine.number("cores", 1, std::numeric_limits<int>::max()));
    if (machine.find("gpu") != nullptr) tuning.machine.gpu = machine.text("gpu");
    if (table.find("rates") != nullptr) {
        const Table rates(table.get("rates"), "rates", {"tcp_rate", "core_rate", "engine_rate"});
        tuning.tcp_rate = rates.rate("tcp_rate");
        tuning.core_rate = rates.rate("core_rate");
        tuning.engine_rate = rates.rate("engine_rate");
    }
    table.each("layout", [&](const toml::node& element) {
        TunedLayout layout = layout_of(element);
        if (tuning.find(layout) != nullptr) refuse(element, "this layout is there twice");
        tuning.layouts.push_back(std::move(layout));
    });
    return tuning;
}

std::uint64_t digest_of(const std::string& text)
{
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash != 0 ? hash : 1;
}

// The first line with which toml++ fails a check of its own.
std::size_t line_of_failed_check(const std::string& text)
{
    std::size_t line = 0, end = 0;
    while (end < text.size()) {
        line++;
        end = std::min(text.find('\n', end), text.size() - 1) + 1;
        try {
            (void)toml::parse(text.substr(0, end));
        } catch (const toml::parse_error&) {  // the next lines may complete it
        } catch (const std::logic_error&) {
            return line;
        }
    }
    return line;
}

}  // namespace

std::optional<Tuning> parse_tuning(const std::string& text, std::string& fault)
{
    // toml++ 3.3 is not sound with all other characters.
    const auto odd =
        std::find_if(text.begin(), text.end(), [](unsigned char c) { return c > 127; });
    if (odd != text.end()) {
        fault = format("line %d: a character that is not ASCII",
                       static_cast<int>(1 + std::count(text.begin(), odd, '\n')));
        return std::nullopt;
    }
    try {
        Tuning tuning = tuning_of(toml::parse(text));
        tuning.digest = digest_of(text);
        return tuning;
    } catch (const toml::parse_error& e) {
        fault = format("line %u: %.*s", static_cast<unsigned>(e.source().begin.line),
                       static_cast<int>(e.description().size()), e.description().data());
    } catch (const Fault& e) {
        fault = e.what();
    } catch (const std::logic_error&) {
        fault = format("line %zu: this is not TOML", line_of_failed_check(text));
    }
    return std::nullopt;
}

}  // namespace hier
