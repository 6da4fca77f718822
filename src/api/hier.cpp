// SPDX-License-Identifier: BSD-3-Clause
// The C interface to teams and calls.
#include "hier/hier.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "api/guard.hpp"
#include "api/progress_engine.hpp"
#include "api/progress_thread.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/statistics.hpp"
#include "coll/registry.hpp"
#include "gpu/runtime.hpp"
#include "memory/staging_budget.hpp"
#include "memory/staging_pool.hpp"
#include "net/network.hpp"
#include "node/device/compute_units.hpp"
#include "node/device/exports/lent_memory.hpp"
#include "node/device/exports/vmm_exports.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"
#include "team/group.hpp"
#include "team/team.hpp"
#include "tuning/tuning.hpp"

struct hier_team {
    hier_team(const hier_config& config, const hier_bootstrap& bootstrap, const hier::Group& all)
        : team(config, bootstrap, all, {hier::shipped_collectives(), hier::make_network})
    {
        hier::ProgressEngine::instance().add(team);
        if (!team.has_spare_cores()) hier::ProgressThread::instance().share_core();
    }
    ~hier_team() { hier::ProgressEngine::instance().forget(team); }
    hier_team(const hier_team&) = delete;
    hier_team& operator=(const hier_team&) = delete;

    hier::Team team;
};

namespace {

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
             .is_exportable = m.is_exportable != 0},
            buffer.before,
            buffer.after,
            buffer.is_sparse != 0};
}

std::vector<hier::Extent> blocks_of(const hier_call& call, int ranks)
{
    std::vector<hier::Extent> blocks;
    if (call.blocks == nullptr) return blocks;
    blocks.reserve(static_cast<std::size_t>(ranks));
    for (const hier_block* b = call.blocks; b != call.blocks + ranks; b++)
        blocks.push_back({b->offset, b->bytes});
    return blocks;
}

std::vector<std::size_t> displacements_of(const hier_call& call, int ranks)
{
    if (call.displacements == nullptr) return {};
    return {call.displacements, call.displacements + ranks};
}

hier::Call call_of(const hier_call& call, int ranks)
{
    const int error = call.recv.memory.error != HIER_OK ? call.recv.memory.error
                      : call.in_place != 0              ? HIER_OK
                                                        : call.send.memory.error;
    return {.collective = static_cast<std::size_t>(call.collective),
            .bytes = call.bytes,
            .in_place = call.in_place != 0,
            .send = region_of(call.send),
            .receive = region_of(call.recv),
            .memory_error = hier::status_of(error),
            .stride = call.stride,
            .in_background = call.waiter == HIER_NOBODY,
            .blocks = blocks_of(call, ranks),
            .displacements = displacements_of(call, ranks)};
}

// Seconds. A thread that sleeps needs some 50 us to wake up, which a call of this time on the network hides.
constexpr double long_call = 400e-6;

bool launches_later(const hier_team& team, std::size_t bytes)
{
    const bool is_long = team.team.network_time(bytes) >= long_call;
    return hier::ProgressThread::instance().should_launch(is_long);
}

template <class Start> int start_by(hier_team& team, std::size_t bytes, int waiter, Start start)
{
    return hier::guarded(HIER_ERR_MEMORY, [&] {
        hier::ProgressEngine& engine = hier::ProgressEngine::instance();
        if (waiter != HIER_NOBODY)
            return hier::code_of(engine.start(
                team.team, [&] { return start(hier::Launch::and_move); }, waiter == HIER_CALLER));
        hier::ProgressThread& thread = hier::ProgressThread::instance();
        // The thread may be looking at an earlier call of the team, again and again.
        if (engine.is_busy()) thread.stand_back();
        const auto when = launches_later(team, bytes) ? hier::Launch::later : hier::Launch::now;
        const hier::Status status = engine.start(
            team.team, [&] { return start(when); }, false);
        if (status == hier::Status::in_progress) thread.wake();
        return hier::code_of(status);
    });
}

// A process may make communicators by the thousand. Each cause is said once.
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
    hier::gpu::limit_waits({.bound = std::chrono::seconds(config->timeout),
                            .fails = config->timeout_action == HIER_TIMEOUT_FAIL});
    hier::StagingBudget::instance().set_limit(config->staging_kept);
    hier::gpu::let_peers_write(config->gpu_peers != HIER_GPU_PEERS_OFF);
    hier::gpu::let_kernels_run(config->kernels != HIER_KERNELS_OFF);
    hier::ComputeUnits::watch_kernels(config->kernels == HIER_KERNELS_ON_FREE_UNITS);
    if (config->progress_thread != 0) hier::ProgressThread::instance().start();
}

int hier_load_tuning(const hier_config* config)
{
    return hier::guarded(HIER_ERR_ARGUMENT, [&] {
        hier::set_log(config->log_level, config->log);
        const bool is_fine = hier::load_tuning(config->tuning_file);
        return static_cast<int>(is_fine ? HIER_OK : HIER_ERR_ARGUMENT);
    });
}

int hier_team_create(const hier_config* config, const hier_bootstrap* bootstrap, hier_team** team)
{
    const hier::TimeCount time(HIER_STATISTIC_SETUP_TIME);
    return hier::guarded(HIER_ERR_SETUP, [&] {
        hier_init(config);
        const hier::Group all(*bootstrap);
        std::unique_ptr<hier_team> made;
        try {
            all.agree("", [&] { made = std::make_unique<hier_team>(*config, *bootstrap, all); });
            *team = made.release();
            hier::Statistics::instance().add(HIER_STATISTIC_TEAMS);
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
    (void)hier::guarded(HIER_ERR_ARGUMENT, [&] {
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

size_t hier_team_part_bytes(hier_team* team, int collective, size_t bytes)
{
    // Only such a team asks how its last calls travelled, which another thread may be changing.
    std::unique_lock lock(team->team.mutex(), std::defer_lock);
    if (team->team.bounces_devices()) lock.lock();
    return team->team.part_bytes(static_cast<std::size_t>(collective), bytes);
}

int hier_team_takes_displacements(hier_team* team, int collective, size_t bytes, int are_equal)
{
    const std::lock_guard lock(team->team.mutex());
    return static_cast<int>(team->team.takes_displacements(static_cast<std::size_t>(collective),
                                                           bytes, are_equal != 0));
}

size_t hier_team_max_bytes(const hier_team* team) { return team->team.max_bytes(); }

int hier_team_error(const hier_team* team) { return hier::code_of(team->team.error()); }

int hier_team_takes_device_memory(const hier_team* team)
{
    return static_cast<int>(team->team.takes_device_memory());
}

int hier_start(hier_team* team, const hier_call* call, hier_request** request)
{
    hier::Request* started = nullptr;
    const int code = start_by(*team, call->bytes, call->waiter, [&](hier::Launch when) {
        return team->team.start(call_of(*call, team->team.size()), started, when,
                                {call->on_success, call->context});
    });
    *request = code == HIER_IN_PROGRESS ? reinterpret_cast<hier_request*>(started) : nullptr;
    return code;
}

int hier_prepare(hier_team* team, const hier_call* call, hier_request** request)
{
    return hier::guarded(HIER_ERR_MEMORY, [&] {
        auto* prepared = reinterpret_cast<hier::Request*>(*request);
        const std::lock_guard lock(team->team.mutex());
        const hier::Status status = team->team.prepare(call_of(*call, team->team.size()), prepared);
        *request = reinterpret_cast<hier_request*>(prepared);
        return hier::code_of(status);
    });
}

int hier_start_prepared(hier_team* team, hier_request* request, int waiter,
                        void (*on_success)(void* context), void* context)
{
    hier::Request& prepared = *reinterpret_cast<hier::Request*>(request);
    if (waiter == HIER_NOBODY && launches_later(*team, prepared.call().bytes)) {
        if (prepared.is_running()) return HIER_ERR_ARGUMENT;
        hier::ProgressEngine::instance().post(prepared, {on_success, context});
        hier::ProgressThread::instance().wake_for_post();
        return HIER_IN_PROGRESS;
    }
    return start_by(*team, prepared.call().bytes, waiter, [&](hier::Launch when) {
        return team->team.start(prepared, when, {on_success, context});
    });
}

void hier_hand_over(hier_team* team)
{
    hier::ProgressThread::instance().stand_back();
    (void)hier::guarded(HIER_ERR_TRANSPORT, [&] {
        hier::ProgressEngine::instance().hand_over(team->team);
        hier::ProgressThread::instance().wake();
        return static_cast<int>(HIER_OK);
    });
}

int hier_test(hier_request* request)
{
    return hier::code_of(reinterpret_cast<hier::Request*>(request)->test());
}

void hier_refuse(hier_team* team)
{
    hier::ProgressThread::instance().stand_back();
    (void)hier::guarded(HIER_ERR_TRANSPORT, [&] {
        hier::ProgressEngine::instance().refuse(team->team);
        return static_cast<int>(HIER_OK);
    });
}

void hier_interrupt(hier_team* team, const unsigned char* is_dead)
{
    hier::ProgressThread::instance().stand_back();
    (void)hier::guarded(HIER_ERR_MEMORY, [&] {
        const std::vector<bool> dead(is_dead, is_dead + team->team.size());
        hier::ProgressEngine::instance().interrupt(team->team, dead);
        return static_cast<int>(HIER_OK);
    });
}

int hier_progress(void)
{
    hier::ProgressThread& thread = hier::ProgressThread::instance();
    if (thread.moves_calls()) return 0;
    thread.stand_back();
    return hier::guarded(0, [] { return hier::ProgressEngine::instance().progress(); });
}

int hier_progress_team(hier_team* team)
{
    hier::ProgressThread::instance().stand_back();
    return hier::guarded(0, [&] { return hier::ProgressEngine::instance().progress(team->team); });
}

void hier_quiesce(void) { hier::quiesce_networks(); }

void hier_finalize(void)
{
    (void)hier::guarded(HIER_OK, [] {
        hier::ProgressThread::instance().stop();
        hier::finalize_networks();
        hier::PeerMappings::instance().clear();
        hier::PeerVmmSegments::instance().clear();
        hier::VmmExports::instance().clear();
        hier::LentMemory::instance().clear();
        hier::StagingPool::instance().clear();
        hier::gpu::release_runtime();
        return static_cast<int>(HIER_OK);
    });
}
