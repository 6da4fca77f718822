// SPDX-License-Identifier: BSD-3-Clause
#include "layout.hpp"

#include "environment.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace bench {
namespace {

constexpr int name_bytes = 256;

std::size_t node_size(const std::vector<int>& ranks) { return ranks.size(); }

}  // namespace

std::size_t Layout::smallest_node() const
{
    return std::ranges::min(ranks_of, {}, node_size).size();
}

std::size_t Layout::largest_node() const
{
    return std::ranges::max(ranks_of, {}, node_size).size();
}

double Layout::bytes_entering(std::size_t bytes) const
{
    const std::size_t remote_ranks = node_of.size() - smallest_node();
    return static_cast<double>(remote_ranks) * static_cast<double>(bytes);
}

std::string Layout::text() const
{
    std::string text;
    for (const auto& ranks : ranks_of) {
        text += (text.empty() ? "" : "+") + std::to_string(ranks.size());
    }
    return text;
}

Layout make_layout(const std::vector<std::string>& host_of, int ranks_per_node)
{
    Layout layout;
    std::map<std::string, int> ranks_on_host;
    std::map<std::pair<std::string, int>, int> number;
    for (const std::string& host : host_of) {
        const int local = ranks_on_host[host]++;
        const int part = ranks_per_node > 0 ? local / ranks_per_node : 0;
        const auto [entry, added] = number.try_emplace({host, part}, layout.nodes());
        if (added) {
            layout.ranks_of.emplace_back();
        }
        const int rank = layout.ranks();
        layout.node_of.push_back(entry->second);
        layout.ranks_of[static_cast<std::size_t>(entry->second)].push_back(rank);
    }
    return layout;
}

Layout find_layout(MPI_Comm comm, int ranks_per_node)
{
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::string name = host_name();
    name.resize(name_bytes - 1);
    name.push_back('\0');
    std::string names(static_cast<std::size_t>(ranks) * name_bytes, '\0');
    MPI_Gather(name.data(), name_bytes, MPI_CHAR, names.data(), name_bytes, MPI_CHAR, 0, comm);
    MPI_Bcast(names.data(), static_cast<int>(names.size()), MPI_CHAR, 0, comm);
    std::vector<std::string> host_of;
    for (std::size_t at = 0; at < names.size(); at += name_bytes) {
        host_of.emplace_back(names.c_str() + at);
    }
    return make_layout(host_of, ranks_per_node);
}

}  // namespace bench
