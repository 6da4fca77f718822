#include "team.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "error.hpp"
#include "gpu/runtime.hpp"
#include "log.hpp"
#include "memory/resident.hpp"
#include "placement.hpp"
#include "transport/node_transport.hpp"
#include "transport/ucx_config.hpp"

namespace hier {
namespace {

constexpr std::size_t prepared_most = 8;  // programs kept

// What has to be equal on all ranks for their plans to fit together.
struct Agreed {
    std::uint64_t chunk_bytes;
    std::uint64_t eager_bytes;
    std::int32_t ranks_per_node;
    std::int32_t inter;
    std::int32_t intra;
    std::int32_t unused = 0;
};

const char* first_difference(const Agreed& a, const Agreed& b)
{
    if (a.chunk_bytes != b.chunk_bytes) return "coll_hier_chunk_bytes";
    if (a.eager_bytes != b.eager_bytes) return "coll_hier_eager_bytes";
    if (a.ranks_per_node != b.ranks_per_node) return "coll_hier_ranks_per_node";
    if (a.inter != b.inter) return "coll_hier_inter";
    if (a.intra != b.intra) return "coll_hier_intra";
    return nullptr;
}

void compare_settings(const Group& team, const hier_config& config)
{
    const auto all = team.allgather(Agreed{config.chunk_bytes, config.eager_bytes,
                                           config.ranks_per_node, config.inter, config.intra});
    for (std::size_t r = 1; r < all.size(); r++) {
        const char* differs = first_difference(all[0], all[r]);
        if (differs == nullptr) continue;
        const std::string cause = format(
            "%s differs between rank 0 and rank %zu; give all ranks the same value", differs, r);
        // All see it; one tells.
        if (team.rank() == 0) throw SetupError(cause);
        throw KnownFailure(cause);
    }
}

}  // namespace

Team::Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team)
    : config_(config), name_(bootstrap.name == nullptr ? "team" : bootstrap.name),
      rank_(bootstrap.rank)
{
    compare_settings(team, config);
    const auto records = team.allgather(own_record());
    std::optional<Group> node, rail;
    team.agree("finding groups", [&] {
        topology_ = make_topology(records, config.ranks_per_node);
        node.emplace(bootstrap, topology_.ranks_on(topology_.node_of(rank_)));
        rail.emplace(bootstrap, topology_.ranks_on_rail(topology_.rail_of(rank_)));
    });
    const auto& me = records[static_cast<std::size_t>(rank_)];
    const auto same_host = std::count_if(records.begin(), records.end(), [&](const PeerRecord& r) {
        return r.node_key == me.node_key;
    });
    oversubscribed_ = same_host > me.cpus;

    // Whoever is in the team's step takes part in the one of its node or rail, too.
    team.agree("setting up the node level",
               [&] { node->agree("", [&] { make_node(*node, records); }); });
    if (topology_.nodes() > 1)
        team.agree("setting up the rail level",
                   [&] { rail->agree("", [&] { make_rail(*rail, records); }); });
    executor_ = std::make_unique<Executor>(
        node_.get(), rail_.get(),
        Executor::Limits{
            .timeout = std::chrono::seconds(config.timeout),
            .rail_first = std::chrono::microseconds(oversubscribed_ ? 1000 : 0),
        });
    const TeamRates rates = measure(team, records);
    if (!rates.may_be_eager) config_.eager_bytes = 0;
    most_bytes_ = rates.most_bytes;
    team.agree("finishing the set-up", [&] {
        cost_.emplace(topology_, rates.rates);
        describe(records, rates.text);
        make_tracer(bootstrap);
    });
}

Team::~Team() = default;

void Team::make_node(const Group& node, const std::vector<PeerRecord>& records)
{
    NodeRanks ranks;
    ranks.share_cores = oversubscribed_;
    ranks.numa = memory_node(records[static_cast<std::size_t>(rank_)]);
    for (const int rank : topology_.ranks_on(topology_.node_of(rank_))) {
        const PeerRecord& record = records[static_cast<std::size_t>(rank)];
        ranks.pids.push_back(record.pid);
        ranks.have_devices = ranks.have_devices || record.has_device != 0;
    }
    node_ = make_node_transport(node, ranks, config_.intra);
}

void Team::make_rail(const Group& rail, const std::vector<PeerRecord>& records)
{
    std::vector<bool> is_remote;
    for (const int rank : topology_.ranks_on_rail(topology_.rail_of(rank_))) {
        is_remote.push_back(topology_.node_of(rank) != topology_.node_of(rank_));
    }
    std::vector<NetworkChoice> choices;
    rail.agree("choosing network devices",
               [&] { choices = network_choices(config_, records, topology_, rank_); });
    const int depth = config_.depth > 0 ? config_.depth : AllgatherCost::most_depth;
    rail_ = std::make_unique<RailLanes>(
        rail, choices, is_remote,
        RailSettings{depth, config_.gpu_direct, gpu::runtime(), config_.progress});
    // (The rank's own affair. 0 stays 0.)
    config_.depth = std::min(config_.depth, most_in_flight(rail_->choice()));
}

TeamRates Team::measure(const Group& team, const std::vector<PeerRecord>& records)
{
    const bool uses_device = records[static_cast<std::size_t>(rank_)].has_device != 0;
    RateRecord own = rail_ ? own_rates(config_, uses_device, rail_->choice(), rail_->network_rate())
                           : own_rates(config_, uses_device, {}, {});
    own.in_order = rail_ && rail_->is_in_order() ? 1 : 0;
    own.lanes = rail_ ? rail_->lanes() : 1;
    own.most_bytes =
        rail_ ? most_registered(rail_->choice()) : std::numeric_limits<std::size_t>::max();
    own.stages = rail_ && !rail_->reaches_devices() ? 1 : 0;
    own.broadcast = node_->broadcast_space();
    return team_rates(team.allgather(own), topology_);
}

void Team::describe(const std::vector<PeerRecord>& records, const std::string& rates)
{
    std::string nodes;
    for (int n = 0; n < std::min(topology_.nodes(), 8); n++)
        nodes += (n > 0 ? "," : "") + std::to_string(topology_.ranks_on(n).size());
    if (topology_.nodes() > 8) nodes += ",...";
    description_ =
        format("%d ranks on %d node%s (%s), %d rail%s, %s inside a node", topology_.size(),
               topology_.nodes(), topology_.nodes() > 1 ? "s" : "", nodes.c_str(),
               topology_.rails(), topology_.rails() > 1 ? "s" : "", node_->name());
    if (rail_) description_ += format(", %s between nodes", rail_->name().c_str());
    if (rail_ && !rail_->device_memory().empty()) description_ += ", " + rail_->device_memory();
    const std::string place =
        describe_place(records, topology_, rank_, rail_ ? rail_->choice().devices : "");
    const PeerRecord& self = records[static_cast<std::size_t>(rank_)];
    if (self.gpu.pci >= 0 || numa_node(self) >= 0)
        description_ += format("; rank %d: %s", rank_, place.c_str());
    description_ += "; " + rates;
    if (oversubscribed_) description_ += "; ranks share cores: calls take longer than expected";
    if (most_bytes_ < std::numeric_limits<std::size_t>::max())
        description_ += format("; calls of up to %zu MiB in all, for the limit on locked memory "
                               "(ulimit -l)",
                               most_bytes_ >> 20);
    log(HIER_LOG_DEBUG, "rank %d of %d: %s", rank_, topology_.size(), place.c_str());
}

const Team::Prepared& Team::prepare(const Call& call, const AllgatherChoice& choice)
{
    for (Prepared& p : prepared_) {
        if (p.call != call) continue;
        p.used = sequence_;
        return p;
    }
    const auto shards = equal_shards(topology_.size(), call.bytes_per_rank);
    report(call, choice);
    const AllgatherShape shape{
        .shards = shards,
        .chunk = choice.chunk,
        .route = choice.route,
        .in_place = call.in_place,
        .landing = call.has_landing,
        .depth = choice.depth,
        .eager = choice.eager,
        .broadcast = choice.broadcast,
        .own_whole = choice.own_whole,
        .copy_whole = choice.own_whole && call.is_on_device,
    };
    auto made =
        std::make_unique<Program>(plan_allgather(topology_, rank_, shape), topology_, rank_);
    if (tracer_) tracer_->reserve(made->size());
    if (prepared_.size() == prepared_most) {
        prepared_.erase(
            std::min_element(prepared_.begin(), prepared_.end(),
                             [](const auto& a, const auto& b) { return a.used < b.used; }));
    }
    return prepared_.emplace_back(Prepared{call, sequence_, choice, std::move(made)});
}

bool Team::takes_device_memory() const { return node_->takes_device_memory(); }

Status Team::inspect(const hier_allgather_args& args, Binding& binding) const
{
    const std::size_t offset = static_cast<std::size_t>(rank_) * args.bytes_per_rank;
    const auto ranks = static_cast<std::size_t>(topology_.size());
    binding.receive = {static_cast<std::byte*>(args.recv), args.bytes_per_rank * ranks};
    // Read only; a Region has one type for both directions.
    binding.send = {args.send == nullptr
                        ? binding.receive.base + offset
                        : const_cast<std::byte*>(static_cast<const std::byte*>(args.send)),
                    args.bytes_per_rank};
    binding.send_offset = offset;
    // Managed memory is the host's while the CPU has its pages, but for NICs, which may not have it.
    const bool is_for_nics = rail_ && is_rdma(rail_->choice());
    if (!takes_device_memory() && !is_for_nics) return Status::ok;  // the CPU reaches all of it
    const auto look = [&](Region& region) {
        const Status status = gpu::inspect(region.base, region.memory);
        if (region.memory.kind == MemoryKind::managed &&
            (!takes_device_memory() || (!is_for_nics && is_resident(region.base, region.length))))
            region.memory.device = -1;
        return status;
    };
    Status status = look(binding.receive);
    if (args.send == nullptr) {
        binding.send.memory = binding.receive.memory;
    } else if (!failed(status)) {
        status = look(binding.send);
    }
    return status;
}

Status Team::reserve_landing(Binding& binding)
{
    const Allocation& receive = binding.receive.memory;
    const Allocation& send = binding.send.memory;
    const int device = is_of_device(receive) ? receive.device
                       : is_of_device(send)  ? send.device
                                             : -1;
    if (!landing_) {
        landing_ = std::make_shared<HostMemory>();
        rail_->keep(landing_);
    }
    binding.landing = {landing_->reserve(device, binding.receive.length), binding.receive.length};
    if (binding.landing.base == nullptr) return Status::out_of_memory;
    binding.landing.memory.kind = landing_->is_pinned() ? MemoryKind::pinned : MemoryKind::host;
    return Status::ok;
}

Status Team::start(const hier_allgather_args& args)
{
    if (failed(error())) return error();
    if (status() == Status::in_progress || args.recv == nullptr || args.bytes_per_rank == 0)
        return Status::bad_argument;
    Binding binding{};
    Status status = inspect(args, binding);
    const bool is_device =
        is_of_device(binding.receive.memory) || is_of_device(binding.send.memory);
    const AllgatherChoice choice = choose(args.bytes_per_rank);
    binding.eager = choice.eager;
    binding.broadcast = choice.broadcast;
    binding.chunks = (args.bytes_per_rank + choice.chunk - 1) / choice.chunk;
    // What the network does not reach goes through memory that it does. Eager messages land by the
    // CPU, and are sent from the receive buffer, too, where others' shards go on.
    const auto is_reached = [&] {
        return choice.eager
                   ? !is_device && rail_->register_sources(binding, choice.route != Route::direct)
                   : rail_->register_buffers(binding);
    };
    const bool has_landing = topology_.nodes() > 1 && !failed(status) && !is_reached();
    if (has_landing) status = reserve_landing(binding);
    if (failed(status)) return refuse(status);
    binding.sequence = ++sequence_;
    const Call call{args.bytes_per_rank, args.send == nullptr, has_landing, is_device};
    if (tracer_) tracer_->write();  // the last call's; its program may be the one that goes now
    const Prepared& prepared = prepare(call, choice);
    status = executor_->start(*prepared.program, binding, trace_of(prepared));
    status_.store(status, std::memory_order_release);
    return status;
}

Status Team::refuse(Status status)
{
    if (failed(error())) return error();
    broken_.store(status, std::memory_order_release);
    executor_->refuse(status);
    return status;
}

void Team::answer_failure()
{
    const bool is_idle = status() != Status::in_progress && !failed(error());
    if (!is_idle || !rail_->has_failed()) return;
    (void)refuse(Status::peer_failed);
    log(HIER_LOG_ERROR,
        "an allgather failed while rank %d of %d was in none; this communicator takes no more",
        rank_, topology_.size());
}

Status Team::progress()
{
    const Status status = executor_->progress();
    if (tracer_ && status != Status::in_progress) tracer_->end(status);
    if (failed(status)) {
        broken_.store(status, std::memory_order_release);
        log(HIER_LOG_ERROR,
            "an allgather failed on rank %d of %d: %s; this communicator takes no more", rank_,
            topology_.size(), to_string(status));
    }
    if (status != Status::in_progress) status_.store(status, std::memory_order_release);
    return status;
}

}  // namespace hier
