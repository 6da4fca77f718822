// SPDX-License-Identifier: BSD-3-Clause
// Forked ranks that publish blocks of device memory.
#pragma once

#include "engine_rank.hpp"

namespace hier::test {

inline constexpr std::uint32_t put_op = 1, copy_op = 2;
inline constexpr std::size_t gap = 5;  // between blocks

struct Memory {
    bool send_on_device = true, receive_on_device = true, in_place = false;
    bool has_kernels = false;
    std::size_t bytes = 3000;  // of a block
    int salt = 0;              // of the bytes
    std::size_t max_by_cpu = 0;
    bool is_mapped = false;  // by the application, if it is on a device

    // Where the block of this place begins.
    std::size_t at(int place) const { return static_cast<std::size_t>(place) * (bytes + gap); }
};

struct PublishDone final : Completions {
    void complete(std::uint32_t op, Status status) override
    {
        (op == put_op ? put : copy) = status;
    }
    Status put = Status::in_progress, copy = Status::in_progress;
};

// A rank whose block goes to `place` in the receive buffers.
class Publisher {
public:
    Publisher(const ForkedRank& self, int place, Memory memory)
        : memory_(memory), rank_(self.rank()), size_(self.size()), bytes_(memory.bytes),
          offset_(at(place)), group_(self.group()),
          transport_(make_node_transport(group_,
                                         {.processes = group_.collect(own_cma_target()),
                                          .have_devices = true,
                                          .share_gpus = memory.max_by_cpu == 0,
                                          .have_kernels = memory.has_kernels,
                                          .max_by_cpu = memory.max_by_cpu},
                                         HIER_INTRA_AUTO)),
          send_(allocate(memory.send_on_device, bytes_)),
          receive_(allocate(memory.receive_on_device, at(size_)))
    {
        places_ = group_.collect(place);
    }
    std::size_t at(int place) const { return memory_.at(place); }
    std::size_t total() const { return at(size_); }

    Status begin(std::uint64_t sequence, std::size_t total, bool publish)
    {
        return transport_->begin(bind(sequence, total, publish));
    }
    Status exchange(std::uint64_t sequence, unsigned looks)
    {
        const Slice slice{memory_.in_place ? offset_ : 0, offset_, bytes_};
        const Place place = memory_.in_place ? Place::receive : Place::send;
        const Transfer put{Op::every_peer, slice, place, Place::receive, 1, put_op};
        return transport_->exchange(bind(sequence, total(), true), {put, {}}, looks);
    }
    Binding bind(std::uint64_t sequence, std::size_t total, bool publish)
    {
        done_ = {};
        put(receive_, Bytes(at(size_), 0xee));
        std::byte* const from = memory_.in_place ? receive_ + offset_ : send_;
        put(from, content(rank_ + memory_.salt, sequence, bytes_));
        Binding binding{};
        binding.sequence = sequence;
        binding.receive = {receive_, at(size_)};
        binding.send = {from, bytes_};
        if (memory_.receive_on_device) binding.receive.memory = allocation_of(receive_);
        if (memory_.in_place ? memory_.receive_on_device : memory_.send_on_device)
            binding.send.memory = allocation_of(from);
        binding.publish = publish;
        binding.total = total;
        return binding;
    }
    // Takes the call for one of another kind.
    Status announce(std::uint64_t sequence, std::size_t total)
    {
        const Status status = begin(sequence, total, false);
        return failed(status) ? status : transport_->announce(Op::every_peer);
    }
    Status start(std::uint64_t sequence, std::size_t total)
    {
        Status status = begin(sequence, total, true);
        if (failed(status)) return status;
        if (before_put) before_put();
        const Slice slice{memory_.in_place ? offset_ : 0, offset_, bytes_};
        const Place place = memory_.in_place ? Place::receive : Place::send;
        status = transport_->put({Op::every_peer, slice, place, Place::receive, 1, put_op});
        if (status != Status::in_progress) done_.put = status;
        if (failed(status) || memory_.in_place) {
            done_.copy = Status::ok;
            return status;
        }
        status = transport_->copy({rank_, slice, place, Place::receive, 0, copy_op});
        if (status != Status::in_progress) done_.copy = status;
        return status;
    }
    // ok: all is done.
    Status turn()
    {
        Status status = transport_->progress(done_);
        for (const Status each : {done_.put, done_.copy})
            if (failed(each)) status = each;
        if (failed(status)) return status;
        for (int peer = 0; peer < size_; peer++) {
            if (peer == rank_) continue;
            const Status entered = transport_->entered(peer);
            if (failed(entered)) return entered;
            if (entered != Status::ok || transport_->arrived(peer) < 1) return Status::in_progress;
        }
        return done_.put == Status::ok && done_.copy == Status::ok ? Status::ok
                                                                   : Status::in_progress;
    }
    Status finish()
    {
        Status status = Status::in_progress;
        (void)await([&] { return (status = turn()) != Status::in_progress; });
        return status;
    }
    bool wants_announcements() const { return transport_->wants_announcements(); }
    // start() was called, and all ranks want announcements. The block is in place.
    std::string begin_anew(std::uint64_t sequence)
    {
        transport_->end();
        Status status = announce(sequence, total());
        Counter pushed;
        const auto turns_until = [&](const std::function<bool()>& condition) {
            return await([&] {
                status = transport_->progress(pushed);
                return failed(status) || failed(pushed.worst) || condition();
            });
        };
        for (int peer = 0; peer < size_ && !failed(status); peer++) {
            if (peer == rank_) continue;
            if (!turns_until([&] { return transport_->announced(peer) == Status::ok; }))
                return "not announced";
            if (!failed(status))
                status = transport_->put(
                    {peer, {offset_, offset_, bytes_}, Place::receive, Place::receive, 1, put_op});
        }
        transport_->submit(pushed);
        const auto have_all = [&] {
            for (int peer = 0; peer < size_; peer++)
                if (peer != rank_ && transport_->arrived(peer) == 0) return false;
            return pushed.done == size_ - 1;
        };
        if (!failed(status) && !turns_until(have_all)) return "not pushed";
        transport_->end();
        return failed(status) || failed(pushed.worst) ? "a failure" : "";
    }
    std::string fault(std::uint64_t sequence) const
    {
        const Bytes got = get(receive_, at(size_));
        for (int rank = 0; rank < size_; rank++) {
            const auto from = got.begin() + static_cast<std::ptrdiff_t>(
                                                at(places_[static_cast<std::size_t>(rank)]));
            const auto end = from + static_cast<std::ptrdiff_t>(bytes_);
            if (Bytes(from, end) != content(rank + memory_.salt, sequence, bytes_))
                return "a wrong block of rank " + std::to_string(rank);
            if (Bytes(end, end + gap) != Bytes(gap, 0xee)) return "bytes between blocks";
        }
        return "";
    }
    std::string start_and_finish(std::uint64_t sequence)
    {
        const Status started = start(sequence, total());
        if (failed(started)) return "cannot start";
        const Status status = finish();
        transport_->end();
        return status == Status::ok ? "" : std::string("ended with ") + to_string(status);
    }
    std::string call(std::uint64_t sequence)
    {
        const std::string wrong = start_and_finish(sequence);
        return wrong.empty() ? fault(sequence) : wrong;
    }
    // From now on the buffers are in the memory of the current device, or of the host.
    void move(bool to_device = true)
    {
        memory_.send_on_device = memory_.receive_on_device = to_device;
        send_ = allocate(memory_.send_on_device, bytes_);
        receive_ = allocate(memory_.receive_on_device, total());
    }
    // The same with buffers that the rank has had before.
    struct Buffers {
        std::byte *send, *receive;
    };
    Buffers buffers() const { return {send_, receive_}; }
    void move_to(Buffers before)
    {
        send_ = before.send;
        receive_ = before.receive;
    }
    // Is the own block in the receive buffer from now on?
    void place_block(bool in_place) { memory_.in_place = in_place; }
    Transport& transport() { return *transport_; }
    void meet() { (void)group_.collect(0); }

    std::function<void()> before_put;

private:
    std::byte* allocate(bool on_device, std::size_t length) const
    {
        if (on_device && memory_.is_mapped) return mapped_memory(1, rank_);
        return on_device ? device_memory(length) : new std::byte[length];
    }

    Memory memory_;
    int rank_, size_;
    std::size_t bytes_, offset_;
    Group group_;
    std::unique_ptr<NodeTransport> transport_;
    std::byte* send_;
    std::byte* receive_;
    std::vector<int> places_;
    PublishDone done_;
};

inline std::string calls(Publisher& rank, std::uint64_t count)
{
    for (std::uint64_t sequence = 1; sequence <= count; sequence++) {
        const std::string wrong = rank.call(sequence);
        if (!wrong.empty()) return "call " + std::to_string(sequence) + ": " + wrong;
    }
    return "";
}

inline const char* run_on_one_device(int ranks, const std::function<std::string(ForkedRank&)>& body)
{
    return run(ranks, "200", [&](ForkedRank& self) {
        gives_success(hipSetDevice(0), "hipSetDevice");
        return body(self);
    });
}

}  // namespace hier::test
