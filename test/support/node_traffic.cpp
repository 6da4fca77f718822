// SPDX-License-Identifier: BSD-3-Clause
#include "node_traffic.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <utility>

#include "node/node_setup.hpp"

namespace hier::test {
namespace {

std::byte value(int owner, std::uint64_t sequence, std::size_t at)
{
    return static_cast<std::byte>(
        (static_cast<std::size_t>(owner) * 61 + sequence * 17 + at * 5 + at / 255) % 251);
}

struct Counter final : Completions {
    void complete(std::uint32_t, Status status) override
    {
        done++;
        if (status != Status::ok) worst = status;
    }
    void moved_bytes() override { has_moved = true; }
    std::size_t done = 0;
    Status worst = Status::ok;
    bool has_moved = false;  // before a put was done
};

// Buffers at odd addresses. Extents that are displaced lie in another order on each rank, each behind a
// gap.
struct Buffers {
    static constexpr std::size_t before = 3, gap = 5;

    Buffers(const Traffic& t, const ForkedRank& self, std::uint64_t sequence)
        : me(self.rank()), shard(t.shards[static_cast<std::size_t>(me)]),
          receive(before + t.length + (t.are_displaced ? gap * t.extents.size() : 0)),
          send(shard.length + 1)
    {
        for (const auto& owned : t.extents) blocks.push_back(owned.extent);
        std::sort(blocks.begin(), blocks.end(),
                  [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
        if (t.are_displaced) displace();
        for (const auto& [owner, extent] : t.extents) {
            if (owner != me) continue;
            for (std::size_t i = extent.offset; i < extent.offset + extent.length; i++) {
                (is_sent(extent) ? send[1 + i - shard.offset] : receive[place_of(i)]) =
                    value(me, sequence, i);
            }
        }
    }
    void displace()
    {
        displacements.resize(blocks.size());
        std::vector<std::size_t> order(blocks.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(me)));
        std::size_t end = 0;
        for (const std::size_t block : order) {
            displacements[block] = end + gap;
            end = displacements[block] + blocks[block].length;
        }
    }
    std::size_t place_of(std::size_t home) const
    {
        if (displacements.empty()) return before + home;
        const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const Extent& b) {
            return home >= b.offset && home - b.offset < b.length;
        });
        const auto i = static_cast<std::size_t>(block - blocks.begin());
        return before + displacements[i] + (home - block->offset);
    }
    bool is_sent(const Extent& s) const
    {
        return s.offset >= shard.offset && s.offset + s.length <= shard.offset + shard.length;
    }
    Binding binding(std::uint64_t sequence)
    {
        Binding binding{sequence,
                        {send.data() + 1, shard.length},
                        {receive.data() + before, receive.size() - before}};
        binding.homes = BlockHomes(blocks, 0);
        binding.displacements = displacements;
        return binding;
    }
    std::string wrong_bytes(const Traffic& t, std::uint64_t sequence) const
    {
        std::vector<std::byte> right(receive.size());
        for (const auto& [owner, extent] : t.extents) {
            for (std::size_t i = extent.offset; i < extent.offset + extent.length; i++)
                right[place_of(i)] = value(owner, sequence, i);
        }
        const auto wrong = std::mismatch(receive.begin(), receive.end(), right.begin()).first;
        if (wrong == receive.end()) return "";
        return "a wrong byte " + std::to_string(wrong - receive.begin());
    }
    int me;
    Extent shard;
    std::vector<Extent> blocks;
    std::vector<std::size_t> displacements;
    std::vector<std::byte> receive;
    std::vector<std::byte> send;
};

// All at once: far more than any queue holds.
Status put_all(Transport& transport, const Buffers& buffers, const Traffic& traffic,
               std::vector<int> peers, Counter& counter)
{
    std::uint32_t op = 0;
    for (const int peer : peers) {
        for (const auto& [owner, extent] : traffic.extents) {
            if (owner != buffers.me) continue;
            const bool is_copy = peer == buffers.me;
            if (is_copy && !buffers.is_sent(extent)) continue;
            const bool is_sent = buffers.is_sent(extent);
            const std::size_t source = extent.offset - (is_sent ? buffers.shard.offset : 0);
            const Transfer transfer{peer,
                                    {source, extent.offset, extent.length},
                                    is_sent ? Place::send : Place::receive,
                                    Place::receive,
                                    1,
                                    op++};
            const Status status = is_copy ? transport.copy(transfer) : transport.put(transfer);
            if (failed(status)) return status;
            if (status == Status::in_progress) counter.done--;  // comes back
        }
    }
    return Status::ok;
}

// Does this rank put more than goes at once? Then it has to show that bytes move.
bool has_long_puts(const Traffic& traffic, int rank)
{
    constexpr std::size_t at_once = 1 << 20;
    return std::any_of(traffic.extents.begin(), traffic.extents.end(), [&](const auto& owned) {
        return owned.owner == rank && owned.extent.length > at_once;
    });
}

}  // namespace

Traffic make_traffic(std::uint64_t seed, int ranks, std::size_t extents,
                     const std::vector<std::size_t>& sizes)
{
    std::mt19937_64 random(seed);
    Traffic t;
    const auto add = [&](int owner) {
        const std::size_t length = sizes[random() % sizes.size()];
        t.extents.push_back({owner, {t.length, length}});
        t.length += length;
    };
    for (int r = 0; r < ranks; r++) {
        const std::size_t from = t.length;
        for (std::size_t i = 0; i < extents; i++) add(r);
        t.shards.push_back({from, t.length - from});
    }
    for (std::size_t i = 0; i < extents; i++)
        add(static_cast<int>(random() % static_cast<std::size_t>(ranks)));
    std::shuffle(t.extents.begin(), t.extents.end(), random);
    return t;
}

std::string run_traffic(Transport& transport, const ForkedRank& self, const Traffic& traffic,
                        std::uint64_t sequence)
{
    Buffers buffers(traffic, self, sequence);
    Counter counter;
    if (failed(transport.begin(buffers.binding(sequence))) ||
        failed(transport.announce(Op::every_peer)))
        return "begin or announce failed";
    std::vector<int> peers;
    std::vector<std::uint32_t> wanted(static_cast<std::size_t>(self.size()));
    for (const auto& owned : traffic.extents) wanted[static_cast<std::size_t>(owned.owner)]++;
    for (int i = 0; i < self.size(); i++) peers.push_back((self.rank() + i) % self.size());

    const bool are_ready = await([&] {
        return std::all_of(peers.begin() + 1, peers.end(),
                           [&](int p) { return transport.announced(p) == Status::ok; });
    });
    if (!are_ready) return "a peer is never ready";
    if (failed(put_all(transport, buffers, traffic, peers, counter))) return "a put failed";

    Status status = Status::ok;
    const bool is_done = await([&] {
        status = transport.progress(counter);
        return failed(status) ||
               (counter.done == 0 && std::all_of(peers.begin() + 1, peers.end(), [&](int p) {
                    return transport.arrived(p) == wanted[static_cast<std::size_t>(p)];
                }));
    });
    if (failed(status) || failed(counter.worst)) return "a transfer failed";
    if (!is_done) return "not everything came, or too much";
    if (has_long_puts(traffic, self.rank()) && !counter.has_moved) return "no byte is seen to move";
    if (!transport.idle()) return "done, but not idle";
    const auto fault = buffers.wrong_bytes(traffic, sequence);
    transport.end();
    return fault;
}

std::unique_ptr<NodeTransport> make_transport(const ForkedRank& self, int intra, bool share_cores)
{
    const Group group = self.group();
    return make_node_transport(group,
                               {.processes = group.collect(own_cma_target()),
                                .team = max_extents,
                                .share_cores = share_cores},
                               intra);
}

std::unique_ptr<NodeTransport> make_whole_transport(const ForkedRank& self)
{
    const Group group = self.group();
    return make_node_transport(group,
                               {.processes = group.collect(own_cma_target()), .team = self.size()},
                               HIER_INTRA_AUTO);
}

std::unique_ptr<NodeTransport> make_packed_transport(const ForkedRank& self, bool has_cma)
{
    const Group group = self.group();
    const NodeNeeds needs{.ranks = self.size(),
                          .blocks = max_extents,
                          .has_cma = has_cma,
                          .max_roomy = 1,
                          .max_bytes = 4096};
    const NodeLayout layout(needs);
    const NodeRanks ranks{.processes = group.collect(own_cma_target())};
    SharedMemory memory;
    if (self.rank() == 0) memory = SharedMemory::create_anonymous(layout.bytes);
    const auto addresses = group.collect(memory.address());
    if (self.rank() != 0) memory = SharedMemory::open(addresses[0], layout.bytes);
    (void)group.collect(0);
    memory.withdraw();
    return std::make_unique<NodeTransport>(
        group, ranks, needs, std::make_unique<NodeSegment>(self.rank(), layout, std::move(memory)));
}

std::vector<std::span<std::uint64_t>> shared_memory()
{
    std::vector<std::span<std::uint64_t>> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        if (line.find("memfd:coll_hier") == std::string::npos ||
            std::sscanf(line.c_str(), "%lx-%lx rw-s", &begin, &end) != 2)
            continue;
        found.emplace_back(reinterpret_cast<std::uint64_t*>(begin),
                           (end - begin) / sizeof(std::uint64_t));
    }
    return found;
}

}  // namespace hier::test
