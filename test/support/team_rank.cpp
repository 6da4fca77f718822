// SPDX-License-Identifier: BSD-3-Clause
#include "team_rank.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace hier::test {
namespace {

std::byte value(int rank, int call, std::size_t i)
{
    return static_cast<std::byte>(
        1 + (static_cast<std::size_t>(rank * 89 + call * 31) + i * 7 + i / 251) % 255);
}

void keep_log(int, const char* line) { ForkedRank::add_log(line); }

// A process that waits inside MPI does this again and again.
int pass()
{
    int moved = 0;
    for (int i = 0; i < 64; i++) moved += hier_progress();
    return moved;
}

}  // namespace

hier_config config_for_tests()
{
    hier_config c{};
    c.chunk_bytes = 256 << 10;
    c.depth = 4;
    c.ranks_per_node = 1;
    c.timeout = 20;
    c.timeout_action = HIER_TIMEOUT_FAIL;
    c.staging_kept = 128 << 20;
    c.staging_window = 64 << 20;
    c.nics = 4;
    c.net_devices = "lo";
    c.net_transports = "tcp";
    c.log_level = HIER_LOG_INFO;
    c.log = keep_log;
    c.progress = [] { usleep(50); };  // there are more ranks than cores
    return c;
}

TeamRank::TeamRank(ForkedRank& self, const hier_config& config) : self_(self)
{
    // The creation of this cache can hang. configure() turns it off over TCP alone.
    setenv("UCX_RCACHE_ENABLE", "n", 0);
    created_ = hier_team_create(&config, &self.bootstrap(), &team_);
    ForkedRank::while_waiting(pass);
}

int TeamRank::call(std::size_t bytes, std::string& wrong)
{
    auto& send = kept_.emplace_back(bytes);
    auto& receive = kept_.emplace_back(bytes * static_cast<std::size_t>(self_.size()));
    return call(bytes, send, receive.data(), wrong);
}

int TeamRank::call(std::size_t bytes, std::vector<std::byte>& send, std::byte* recv,
                   std::string& wrong)
{
    return call(bytes, send.data(), recv, wrong);
}

int TeamRank::call(std::size_t bytes, std::byte* send, std::byte* recv, std::string& wrong)
{
    fill(bytes, send, recv);
    const int code = call_raw(send, recv, bytes);
    if (code == HIER_OK) wrong = wrong_byte(bytes, recv);
    return code;
}

int TeamRank::call_in_parts(std::size_t bytes, std::size_t part, std::string& wrong)
{
    std::byte* const recv =
        kept_.emplace_back(bytes * static_cast<std::size_t>(self_.size())).data();
    std::byte* const send = calls_ % 2 == 0 ? kept_.emplace_back(bytes).data() : nullptr;
    fill(bytes, send, recv);
    int code = HIER_OK;
    for (std::size_t first = 0; first < bytes && code == HIER_OK; first += part)
        code = finish(start_part(send, recv, bytes, {first, std::min(part, bytes - first)}));
    if (code == HIER_OK) wrong = wrong_byte(bytes, recv);
    return code;
}

// Bytes that are in no block stay 0.
int TeamRank::call_blocks(const std::vector<hier_block>& blocks, std::string& wrong,
                          void (*before)(), void (*after)())
{
    std::size_t end = 0, largest = 0;
    for (const hier_block& block : blocks) {
        end = std::max(end, block.offset + block.bytes);
        largest = std::max(largest, block.bytes);
    }
    const int number = calls_++;
    std::vector<std::byte> expected(end);
    for (std::size_t r = 0; r < blocks.size(); r++)
        for (std::size_t i = 0; i < blocks[r].bytes; i++)
            expected[blocks[r].offset + i] = value(static_cast<int>(r), number, i);
    const hier_block own = blocks[static_cast<std::size_t>(self_.rank())];
    auto& receive = kept_.emplace_back(end);
    auto& send = kept_.emplace_back(own.bytes);
    const bool in_place = number % 2 == 1 || own.bytes == 0;
    std::copy_n(expected.data() + own.offset, own.bytes,
                in_place ? receive.data() + own.offset : send.data());
    hier_call call{};
    call.collective = HIER_ALLGATHER;
    call.bytes = largest;
    call.blocks = blocks.data();
    call.in_place = in_place ? 1 : 0;
    call.recv = {receive.data(), end, {}, 0, 0, 0};
    call.send = {in_place ? receive.data() + own.offset : send.data(), own.bytes, {}, 0, 0, 0};
    const void* const addresses[] = {call.recv.base, call.send.base};
    hier_memory* const memories[] = {&call.recv.memory, &call.send.memory};
    hier_memory_inspect(2, addresses, memories);
    if (before != nullptr) before();
    const int code = finish(hier_start(team_, &call, &request_));
    if (after != nullptr) after();
    const auto differs = std::mismatch(expected.begin(), expected.end(), receive.begin());
    if (code == HIER_OK && differs.first != expected.end())
        wrong = "call " + std::to_string(number) + ": a wrong byte " +
                std::to_string(differs.first - expected.begin());
    return code;
}

// Writes the bytes of the next call.
void TeamRank::fill(std::size_t bytes, std::byte* send, std::byte* recv)
{
    const int number = calls_++;
    std::fill(recv, recv + bytes * static_cast<std::size_t>(self_.size()), std::byte{0});
    std::byte* own = send != nullptr ? send : recv + static_cast<std::size_t>(self_.rank()) * bytes;
    for (std::size_t i = 0; i < bytes; i++) own[i] = value(self_.rank(), number, i);
}

std::string TeamRank::wrong_byte(std::size_t bytes, const std::byte* recv) const
{
    const int number = calls_ - 1;
    for (int r = 0; r < self_.size(); r++) {
        for (std::size_t i = 0; i < bytes; i++) {
            if (recv[static_cast<std::size_t>(r) * bytes + i] == value(r, number, i)) continue;
            return "call " + std::to_string(number) + ": a wrong byte " + std::to_string(i) +
                   " of rank " + std::to_string(r);
        }
    }
    return "";
}

int TeamRank::call_raw(const std::byte* send, std::byte* recv, std::size_t bytes)
{
    return finish(start_raw(send, recv, bytes));
}

int TeamRank::start_raw(const std::byte* send, std::byte* recv, std::size_t bytes)
{
    return start_part(send, recv, bytes, {0, bytes});
}

hier_call TeamRank::make_call(const std::byte* send, std::byte* recv, std::size_t bytes,
                              Part part) const
{
    const auto others = static_cast<std::size_t>(self_.size() - 1);
    const auto own = static_cast<std::size_t>(self_.rank()) * bytes;
    const std::size_t after = bytes - part.first - part.moved;
    std::byte* const from = send == nullptr ? recv + own : const_cast<std::byte*>(send);
    hier_call call{};
    call.collective = HIER_ALLGATHER;
    call.bytes = part.moved;
    call.stride = bytes;
    call.in_place = send == nullptr ? 1 : 0;
    call.recv = {recv + part.first, others * bytes + part.moved, {}, part.first, after, 0};
    call.send = {from + part.first, part.moved, {}, part.first, after, 0};
    const void* const addresses[] = {recv, send};
    hier_memory* const memories[] = {&call.recv.memory, &call.send.memory};
    hier_memory_inspect(send == nullptr ? 1 : 2, addresses, memories);
    return call;
}

int TeamRank::start_part(const std::byte* send, std::byte* recv, std::size_t bytes, Part part)
{
    const hier_call call = make_call(send, recv, bytes, part);
    return hier_start(team_, &call, &request_);
}

int TeamRank::prepare(std::size_t bytes, Form form, Prepared& prepared)
{
    const auto size = static_cast<std::size_t>(self_.size());
    prepared = {.request = prepared.request,
                .bytes = bytes,
                .send = form == Form::in_place ? nullptr : kept_.emplace_back(bytes).data(),
                .recv = kept_.emplace_back(bytes * size).data()};
    std::vector<hier_block> blocks;
    for (std::size_t r = 0; r < size; r++) blocks.push_back({r * bytes, bytes});
    hier_call call = make_call(prepared.send, prepared.recv, bytes, {0, bytes});
    if (form == Form::blocks) call.blocks = blocks.data();
    return hier_prepare(team_, &call, &prepared.request);
}

int TeamRank::start(const Prepared& call, int waiter)
{
    request_ = call.request;
    return hier_start_prepared(team_, call.request, waiter, nullptr, nullptr);
}

int TeamRank::call(const Prepared& call, std::string& wrong,
                   const std::function<void(int)>& between)
{
    fill(call.bytes, call.send, call.recv);
    const int started = start(call, HIER_CALLER);
    between(started);
    const int code = finish(started);
    if (code == HIER_OK) wrong = wrong_byte(call.bytes, call.recv);
    return code;
}

int TeamRank::finish(int code)
{
    (void)await([&] {
        if (code == HIER_IN_PROGRESS) (void)hier_progress_team(team_);
        if (code == HIER_IN_PROGRESS) code = hier_test(request_);
        return code != HIER_IN_PROGRESS;
    });
    return code;
}

int TeamRank::start_only()
{
    std::byte send[8]{}, receive[64]{};
    return start_raw(send, receive, sizeof send);
}

int TeamRank::refuse()
{
    hier_refuse(team_);
    return hier_team_error(team_);
}

void TeamRank::leave()
{
    left_ = true;
    hier_team_destroy(std::exchange(team_, nullptr));
}

TeamRank::~TeamRank()
{
    if (!left_) end();
}

void TeamRank::wait_for_others() { (void)self_.group().collect(0); }

void TeamRank::end()
{
    if (left_) return;
    wait_for_others();
    leave();
    // Four rounds: a flush, its answer by the peer, the goodbye, and the completion of that.
    constexpr int rounds = 4, idle_passes = 25;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < idle_passes; i++) (void)pass();
        wait_for_others();
    }
    ForkedRank::while_waiting(nullptr);
    hier_quiesce();
    wait_for_others();  // as MPI_Finalize does
    hier_finalize();
}

}  // namespace hier::test
