// SPDX-License-Identifier: BSD-3-Clause
#include "net/devices/network_constraints.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace hier {
namespace {

std::vector<std::string> words_of(const std::string& list)
{
    std::vector<std::string> words;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) words.push_back(word);
    return words;
}

std::string list_of(const std::vector<std::string>& words)
{
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
    return out;
}

bool read(const char*& at, const char* end, unsigned& number)
{
    const auto [behind, error] = std::from_chars(at, end, number);
    at = behind;
    return error == std::errc{};
}

// "mlx5_[0-3]:1": from 1.22 on, UCX takes that for four names. A word without a range
// stays as it is.
void append_names(const std::string& word, std::vector<std::string>& out)
{
    constexpr unsigned max = 256;
    const std::size_t open = word.find('['), close = word.find(']');
    unsigned first = 0, last = 0;
    bool is_range = open != std::string::npos && close != std::string::npos && open < close;
    if (is_range) {
        const char *at = word.data() + open + 1, *const end = word.data() + close;
        is_range = read(at, end, first) && at < end && *at++ == '-' && read(at, end, last) &&
                   at == end && first <= last && last - first < max;
    }
    if (!is_range) return out.push_back(word);
    for (unsigned n = first; n <= last; n++)
        out.push_back(word.substr(0, open) + std::to_string(n) + word.substr(close + 1));
}

bool is_reliable(const std::string& word)
{
    return word == "all" || word == "ib" || word.starts_with("rc") || word.starts_with("dc");
}

std::string transports_of(const std::string& tls)
{
    const bool is_excluding = tls.starts_with('^');
    const auto words = words_of(tls.substr(is_excluding ? 1 : 0));
    const auto has = [&](bool (*wanted)(const std::string&)) {
        return std::any_of(words.begin(), words.end(), wanted);
    };
    // (Without dc there is rc.)
    if (is_excluding && has([](const auto& word) { return word == "tcp"; })) return no_tcp;
    if (is_excluding)
        return has([](const auto& word) { return word == "ib" || word.starts_with("rc"); })
                   ? "tcp"
                   : "auto";
    const bool is_tcp = has([](const auto& word) { return word == "tcp"; });
    return is_tcp && !has(is_reliable) ? "tcp" : "auto";
}

}  // namespace

NetworkSettings with_variables_of_ucx(NetworkSettings settings, const char* net_devices,
                                      const char* tls)
{
    std::string& devices = settings.devices;
    if (devices == "auto" && settings.transports == "auto" && tls != nullptr)
        settings.transports = transports_of(tls);
    if (devices == "auto" && net_devices != nullptr && *net_devices != '\0' &&
        net_devices != std::string("all"))
        devices = net_devices;
    const bool is_excluding = devices.starts_with('^');
    std::vector<std::string> names;
    for (const std::string& word : words_of(devices.substr(is_excluding ? 1 : 0)))
        append_names(word, names);
    devices = (is_excluding ? "^" : "") + list_of(names);
    return settings;
}

std::string why_not_tcp(const std::vector<NetworkDevice>& found, const std::string& messages)
{
    if (messages == "cm") return "Open MPI sends by its pml cm, which may be faster";
    const auto other = std::find_if(found.begin(), found.end(),
                                    [](const NetworkDevice& d) { return d.transport != "tcp"; });
    if (messages != "ucx" || other == found.end()) return "";
    return "Open MPI sends by UCX, which over " + other->transport + " on " + other->name +
           " may be faster";
}

}  // namespace hier
