// SPDX-License-Identifier: BSD-3-Clause
// Forked ranks that use the node level with GPUs. Their buffers are in the memory of simulated
// devices.
#pragma once

#include <memory>
#include <string>

#include "cmocka.hpp"
#include "gpu_rank.hpp"
#include "node/device/fan_out.hpp"
#include "node/node_setup.hpp"
#include "team/group.hpp"

namespace hier::test {

inline constexpr std::size_t some_bytes = 30000;

// A pattern that differs at every offset, owner and call.
inline Bytes content(int owner, std::uint64_t sequence, std::size_t bytes)
{
    Bytes all(bytes);
    std::uint64_t state = static_cast<std::uint64_t>(owner) * 1000 + sequence;
    for (unsigned char& byte : all) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<unsigned char>(state >> 56);
    }
    return all;
}

struct Counter final : Completions {
    void complete(std::uint32_t, Status status) override
    {
        done++;
        if (failed(status)) worst = status;
    }
    int done = 0;
    Status worst = Status::ok;
};

// One rank, with its buffers in device memory.
class Rank {
public:
    explicit Rank(ForkedRank& self, bool pool = false, std::size_t shard = some_bytes,
                  FanOutUse fan_out = FanOutUse::never)
        : self_(self), shard_(shard), group_(self.group()),
          transport_(make_node_transport(group_,
                                         {.processes = group_.collect(own_cma_target()),
                                          .have_devices = true,
                                          .share_gpus = fan_out == FanOutUse::all_blocks,
                                          .fan_out = fan_out},
                                         HIER_INTRA_AUTO)),
          send_(device_memory(2 * shard)),
          receive_(device_memory(shard * static_cast<std::size_t>(self.size()), pool))
    {
    }
    // The buffers are not freed here, because a driver frees memory only when no peer maps it.
    Status begin(std::uint64_t sequence)
    {
        put(send_, content(self_.rank(), sequence, shard_));
        Allocation sent;
        if (failed(gpu::inspect(send_, sent))) return Status::transport_error;
        Binding b{};
        b.sequence = sequence;
        b.send = {send_, shard_, sent};
        b.receive = {receive_, shard_ * static_cast<std::size_t>(self_.size()),
                     allocation_of(receive_)};
        b.receive.memory.length -= unknown;
        b.total = b.receive.length;
        b.in_background = in_background;
        return transport_->begin(b);
    }
    Status put_own(int peer, std::uint32_t op)
    {
        return transport_->put(
            {peer, {0, at(self_.rank()), shard_}, Place::send, Place::receive, 1, op});
    }
    bool turn()
    {
        status = transport_->progress(counter);
        return !failed(status) && !failed(counter.worst);
    }
    bool wait_for_peer(int peer)
    {
        return await([&] { return turn() && transport_->announced(peer) == Status::ok; });
    }
    // The bytes must be there at the moment of their signal.
    std::string received(int peer, std::uint64_t sequence)
    {
        if (!await([&] { return !turn() || transport_->arrived(peer) > 0; }))
            return "nothing comes";
        if (failed(status) || failed(counter.worst)) return "a failure";
        return get(receive_ + at(peer), shard_) == content(peer, sequence, shard_)
                   ? ""
                   : "signalled before it was there";
    }
    std::size_t at(int rank) const { return static_cast<std::size_t>(rank) * shard_; }
    Transport& transport() { return *transport_; }
    bool ran_kernel() const { return transport_->ran_kernel(); }
    void submit() { transport_->submit(counter); }
    std::byte* receive() { return receive_; }
    void receive_into(std::byte* memory) { receive_ = memory; }
    void send_from(std::byte* memory) { send_ = memory; }
    void meet() { (void)group_.collect(0); }

    Counter counter;
    Status status = Status::ok;
    bool in_background = false;
    std::size_t unknown = 0;  // bytes of the receive buffer that lie in another allocation

private:
    ForkedRank& self_;
    std::size_t shard_;
    Group group_;
    std::unique_ptr<NodeTransport> transport_;
    std::byte* send_;
    std::byte* receive_;
};

inline const char* run(int ranks, const char* delay_us,
                       const std::function<std::string(ForkedRank&)>& body,
                       const char* version = sharing_version,
                       const char* modules = HIER_TEST_MODULES)
{
    return keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) {
        setenv("HIER_GPU_MODULES", modules, 1);
        setenv("HIP_SIM_DELAY_US", delay_us, 1);
        setenv("HIP_SIM_VERSION", version, 1);
        setenv("OMPI_COMM_WORLD_RANK", std::to_string(self.rank()).c_str(), 1);
        use_device(self.rank());
        if (gpu::runtime() == nullptr) return std::string("no runtime");
        return body(self);
    })));
}

// `failing`: the call of HIP that fails while this rank announces; 0: none.
inline std::string exchange(Rank& rank, const ForkedRank& self, std::uint64_t sequence,
                            std::uint64_t failing = 0)
{
    if (failed(rank.begin(sequence))) return "begin failed";
    hip_sim_fail_at(failing == 0 ? 0 : hip_sim_calls() + failing);
    if (failed(rank.transport().announce(Op::every_peer))) return "announcing failed";
    hip_sim_fail_at(0);
    std::uint32_t op = 0;
    for (int peer = 0; peer < self.size(); peer++) {
        if (peer == self.rank()) continue;
        if (!rank.wait_for_peer(peer)) return "a peer is never ready";
        if (failed(rank.put_own(peer, op++))) return "a put failed";
    }
    rank.submit();
    for (int peer = 0; peer < self.size(); peer++) {
        if (peer == self.rank()) continue;
        if (const auto fault = rank.received(peer, sequence); !fault.empty()) return fault;
    }
    if (!await([&] { return rank.turn() && rank.counter.done == self.size() - 1; }))
        return "not completed";
    rank.counter = {};
    rank.transport().end();
    rank.meet();
    return "";
}

}  // namespace hier::test
