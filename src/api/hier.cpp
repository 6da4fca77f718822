// SPDX-License-Identifier: BSD-3-Clause
// The C interface. No exception leaves this file.
#include "hier/hier.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "api/progress_engine.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "coll/registry.hpp"
#include "gpu/runtime.hpp"
#include "memory/host_memory.hpp"
#include "memory/readable.hpp"
#include "net/network.hpp"
#include "node/device/lent_memory.hpp"
#include "node/device/peer_mappings.hpp"
#include "node/device/peer_vmm_segments.hpp"
#include "team/group.hpp"
#include "team/team.hpp"

struct hier_team {
    hier_team(const hier_config& config, const hier_bootstrap& bootstrap, const hier::Group& all)
        : team(config, bootstrap, all, {hier::shipped_collectives(), hier::make_network})
    {
        hier::ProgressEngine::instance().add(team);
    }
    ~hier_team() { hier::ProgressEngine::instance().forget(team); }
    hier_team(const hier_team&) = delete;
    hier_team& operator=(const hier_team&) = delete;

    hier::Team team;
};

struct hier_host_memory {
    hier::HostMemory memory;
};

namespace {

// In the order of Status.
constexpr int codes[] = {HIER_OK,         HIER_IN_PROGRESS,  HIER_ERR_ARGUMENT,
                         HIER_ERR_MEMORY, HIER_ERR_MISMATCH, HIER_ERR_TRANSPORT,
                         HIER_ERR_PEER,   HIER_ERR_TIMEOUT};
static_assert(std::size(codes) == static_cast<std::size_t>(hier::Status::timed_out) + 1);

int code_of(hier::Status status) { return codes[static_cast<std::size_t>(status)]; }

hier::Status status_of(int code)
{
    const auto* const found = std::find(std::begin(codes), std::end(codes), code);
    return static_cast<hier::Status>(found - std::begin(codes));
}

// hier_memory's kinds are those of MemoryKind.
static_assert(static_cast<int>(hier::MemoryKind::host) == HIER_MEMORY_HOST &&
              static_cast<int>(hier::MemoryKind::pinned) == HIER_MEMORY_PINNED &&
              static_cast<int>(hier::MemoryKind::managed) == HIER_MEMORY_MANAGED &&
              static_cast<int>(hier::MemoryKind::device) == HIER_MEMORY_DEVICE);

hier::Region region_of(const hier_buffer& buffer)
{
    const hier_memory& m = buffer.memory;
    return {static_cast<std::byte*>(buffer.base),
            buffer.bytes,
            {.kind = static_cast<hier::MemoryKind>(m.kind),
             .device = m.device,
             .base = static_cast<std::byte*>(m.base),
             .length = m.length,
             .id = m.id,
             .is_exportable = m.is_exportable != 0}};
}

hier::Call call_of(const hier_call& call)
{
    const int error = call.recv.memory.error != HIER_OK ? call.recv.memory.error
                      : call.in_place != 0              ? HIER_OK
                                                        : call.send.memory.error;
    return {.collective = static_cast<std::size_t>(call.collective),
            .bytes = call.bytes,
            .in_place = call.in_place != 0,
            .send = region_of(call.send),
            .receive = region_of(call.recv),
            .memory_error = status_of(error)};
}

template <class F> int guarded(int on_exception, F f) noexcept
{
    try {
        return f();
    } catch (const std::bad_alloc&) {
        hier::log(HIER_LOG_ERROR, "out of memory");
        return on_exception == HIER_ERR_SETUP ? HIER_ERR_SETUP : HIER_ERR_MEMORY;
    } catch (const std::exception& e) {
        hier::log(HIER_LOG_ERROR, "%s", e.what());
        return on_exception;
    }
}

constexpr std::size_t min_lent = 4 << 20;  // bytes of a block; HIER_MAX_LENT at most
constexpr std::size_t max_blocks = 16;

// Of a process that makes communicators by the thousand.
bool is_said_first(const std::string& cause)
{
    static std::mutex mutex;
    static std::set<std::string> said;
    const std::lock_guard lock(mutex);
    return said.insert(cause).second;
}

}  // namespace

void hier_give_signals_back(void) { hier::give_signals_back(); }

void hier_init(const hier_config* config)
{
    hier::set_log(config->log_level, config->log);
    hier::gpu::choose_runtime(config->gpu);
    hier::gpu::limit_waits(std::chrono::seconds(config->timeout));
    hier::gpu::let_peers_write(config->gpu_peers != HIER_GPU_PEERS_OFF);
}

int hier_team_create(const hier_config* config, const hier_bootstrap* bootstrap, hier_team** team)
{
    return guarded(HIER_ERR_SETUP, [&] {
        hier_init(config);
        const hier::Group all(*bootstrap);
        std::unique_ptr<hier_team> made;
        try {
            all.agree("", [&] { made = std::make_unique<hier_team>(*config, *bootstrap, all); });
            *team = made.release();
        } catch (const hier::SetupError& e) {
            const bool is_known = dynamic_cast<const hier::KnownFailure*>(&e) != nullptr;
            const bool is_news = !is_known && is_said_first(e.what());
            hier::log(is_news ? HIER_LOG_ERROR : HIER_LOG_INFO, "%s", e.what());
            return static_cast<int>(HIER_ERR_SETUP);
        } catch (const hier::ExchangeFailure& e) {
            hier::log(HIER_LOG_ERROR, "%s", e.what());
            return static_cast<int>(HIER_ERR_PEER);
        }
        return static_cast<int>(HIER_OK);
    });
}

void hier_team_destroy(hier_team* team)
{
    if (team == nullptr) return;
    (void)guarded(HIER_ERR_ARGUMENT, [&] {
        delete team;
        return static_cast<int>(HIER_OK);
    });
}

const char* hier_team_description(const hier_team* team)
{
    return team->team.description().c_str();
}

size_t hier_team_min_bytes(const hier_team* team, int collective)
{
    return team->team.min_bytes(static_cast<std::size_t>(collective));
}

size_t hier_team_max_bytes(const hier_team* team) { return team->team.max_bytes(); }

int hier_team_error(const hier_team* team) { return code_of(team->team.error()); }

int hier_team_takes_device_memory(const hier_team* team)
{
    return static_cast<int>(team->team.takes_device_memory());
}

int hier_start(hier_team* team, const hier_call* call, hier_request** request)
{
    return guarded(HIER_ERR_MEMORY, [&] {
        hier::Request* started = nullptr;
        const hier::Status status =
            hier::ProgressEngine::instance().start(team->team, call_of(*call), started);
        *request = reinterpret_cast<hier_request*>(started);
        return code_of(status);
    });
}

int hier_test(hier_request* request)
{
    return code_of(reinterpret_cast<hier::Request*>(request)->test());
}

void hier_refuse(hier_team* team)
{
    (void)guarded(HIER_ERR_TRANSPORT, [&] {
        hier::ProgressEngine::instance().refuse(team->team);
        return static_cast<int>(HIER_OK);
    });
}

void hier_interrupt(hier_team* team, const unsigned char* is_dead)
{
    (void)guarded(HIER_ERR_MEMORY, [&] {
        const std::vector<bool> dead(is_dead, is_dead + team->team.size());
        hier::ProgressEngine::instance().interrupt(team->team, dead);
        return static_cast<int>(HIER_OK);
    });
}

int hier_progress(void)
{
    return guarded(0, [] { return hier::ProgressEngine::instance().progress(); });
}

void hier_quiesce(void) { hier::quiesce_networks(); }

void hier_finalize(void)
{
    (void)guarded(HIER_OK, [] {
        hier::finalize_networks();
        hier::PeerMappings::instance().clear();
        hier::PeerVmmSegments::instance().clear();
        hier::LentMemory::instance().clear();
        hier::gpu::release_runtime();
        return static_cast<int>(HIER_OK);
    });
}

void hier_memory_inspect(const void* address, hier_memory* memory)
{
    *memory = {};
    memory->error = guarded(HIER_ERR_TRANSPORT, [&] {
        hier::Allocation found;
        const hier::Status status = hier::gpu::inspect(address, found);
        *memory = {.kind = static_cast<int>(found.kind),
                   .device = found.device,
                   .base = found.base,
                   .length = found.length,
                   .id = found.id,
                   .is_exportable = found.is_exportable ? 1 : 0,
                   .is_reachable = found.kind != hier::MemoryKind::device ? 1 : 0,
                   .error = HIER_OK};
        // Where the GPU's runtime fails to tell, the kernel knows.
        if (hier::failed(status)) memory->is_reachable = hier::is_readable(address) ? 1 : 0;
        return code_of(status);
    });
}

int hier_memory_copy(const hier_memory_piece* pieces, size_t count)
{
    return guarded(HIER_ERR_TRANSPORT, [&] {
        std::vector<hier::gpu::Copy> copies;
        copies.reserve(count);
        for (size_t i = 0; i < count; i++)
            copies.push_back({pieces[i].to, pieces[i].from, pieces[i].bytes,
                              hier::gpu::Copy::inside, pieces[i].rows, pieces[i].to_pitch,
                              pieces[i].from_pitch});
        return code_of(hier::gpu::copy_now(copies));
    });
}

void* hier_host_memory_reserve(hier_host_memory** memory, size_t bytes, int for_device)
{
    void* data = nullptr;
    (void)guarded(HIER_ERR_MEMORY, [&] {
        if (*memory == nullptr) *memory = new hier_host_memory;
        data = (*memory)->memory.reserve(for_device != 0 ? hier::gpu::used_device() : -1, bytes);
        return static_cast<int>(HIER_OK);
    });
    return data;
}

void hier_host_memory_free(hier_host_memory* memory) { delete memory; }

void* hier_memory_borrow(const void* like, size_t bytes)
{
    void* base = nullptr;
    (void)guarded(HIER_ERR_MEMORY, [&] {
        hier::Allocation memory;
        if (bytes > HIER_MAX_LENT) return code_of(hier::Status::bad_argument);
        const hier::Status status = hier::gpu::inspect(like, memory);
        if (hier::failed(status) || memory.kind != hier::MemoryKind::device)
            return code_of(hier::Status::out_of_memory);
        // Few sizes, so that what is given back serves the next; and what failed calls keep has an end.
        std::size_t size = min_lent;
        while (size < bytes) size *= 4;
        hier::LentMemory& all = hier::LentMemory::instance();
        const auto* block = all.lent() < max_blocks ? all.take(memory.device, size) : nullptr;
        if (block != nullptr) base = block->base;
        return static_cast<int>(HIER_OK);
    });
    return base;
}

void hier_memory_give_back(const void* memory)
{
    hier::LentMemory::instance().give_back(static_cast<const std::byte*>(memory));
}

const char* hier_strerror(int code)
{
    if (code == HIER_ERR_SETUP) return "the groups could not be set up";
    const auto* const found = std::find(std::begin(codes), std::end(codes), code);
    if (found == std::end(codes)) return "unknown code";
    return hier::to_string(static_cast<hier::Status>(found - std::begin(codes)));
}
