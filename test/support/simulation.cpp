// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <cstring>

#include "coll/allgather/plan.hpp"
#include "machine.hpp"
#include "wrapped/clock.hpp"

namespace hier::test {
namespace {

using std::chrono::microseconds;

std::byte value(std::size_t rank, int call, std::size_t i)
{
    return static_cast<std::byte>(1 +
                                  (rank * 89 + static_cast<std::size_t>(call) * 31 + i * 7) % 255);
}

class SimulatedRank {
public:
    SimulatedRank(const Scenario& scenario, const Topology& topology, std::size_t rank,
                  std::unique_ptr<FakeTransport> node, std::unique_ptr<FakeTransport> rail)
        : scenario_(scenario), rank_(rank), ranks_(scenario.nodes.size()),
          bytes_(scenario.bytes_of_rank.empty() ? scenario.bytes : scenario.bytes_of_rank[rank]),
          node_(std::move(node)), rail_(std::move(rail)),
          executor_(node_.get(), rail_.get(), scenario.limits), send_(bytes_),
          receive_(ranks_ * bytes_), bounce_(ranks_ * bytes_)
    {
        const auto shards = equal_shards(static_cast<int>(ranks_), bytes_);
        const auto r = static_cast<int>(rank);
        for (const bool publish : {false, true}) {
            for (const bool bounce : {false, true}) {
                for (const bool in_place : {false, true}) {
                    const AllgatherShape shape{.shards = shards,
                                               .chunk = scenario.chunk,
                                               .route = scenario.route,
                                               .in_place = in_place,
                                               .bounce = bounce,
                                               .depth = scenario.depth,
                                               .publish = publish};
                    programs_.push_back(
                        std::make_unique<Program>(plan_allgather(topology, r, shape), topology, r));
                }
            }
        }
    }

    bool is_over() const { return failed(status_) || (done_ == scenario_.calls && !running_); }
    // Tells this rank which processes have ended.
    void tell(const std::vector<bool>& is_dead) { is_dead_ = is_dead; }
    Status status() const { return status_; }
    int done() const { return done_; }

    // "" or wrong bytes.
    std::string step()
    {
        if (is_over()) return "";
        if (!running_) {
            start();
            return "";
        }
        if (scenario_.freezes == static_cast<int>(rank_)) return "";
        if (!is_dead_.empty()) executor_.interrupt(is_dead_);
        if (scenario_.refuses == static_cast<int>(rank_) && ++steps_ == scenario_.refuses_at)
            executor_.refuse(Status::out_of_memory);
        status_ = executor_.progress();
        if (status_ == Status::in_progress) return "";
        running_ = false;
        const std::string fault = status_ == Status::ok ? wrong_bytes() : "";
        if (status_ == Status::ok) done_++;
        // The buffers are the caller's again. A rank that still reads them gets wrong bytes.
        std::fill(send_.begin(), send_.end(), std::byte{0});
        std::fill(receive_.begin(), receive_.end(), std::byte{0});
        std::fill(bounce_.begin(), bounce_.end(), std::byte{0});
        return fault;
    }

private:
    bool has_bounce() const
    {
        if (scenario_.bounce != Bounce::some) return scenario_.bounce == Bounce::all;
        return (rank_ + static_cast<std::size_t>(done_)) % 2 == 0;
    }

    bool is_publish() const
    {
        if (scenario_.publish != Publish::some) return scenario_.publish == Publish::all;
        return done_ % 3 != 2;
    }

    void start()
    {
        const bool in_place = (rank_ + static_cast<std::size_t>(done_)) % 3 == 0;
        std::byte* own = in_place ? receive_.data() + rank_ * bytes_ : send_.data();
        for (std::size_t i = 0; i < bytes_; i++) own[i] = value(rank_, done_, i);
        Binding binding{};
        binding.sequence = static_cast<std::uint64_t>(done_) + 1;
        binding.send = {own, bytes_};
        binding.receive = {receive_.data(), receive_.size()};
        binding.publish = is_publish();
        binding.total = receive_.size();
        running_ = true;
        const std::size_t program =
            (is_publish() ? 4U : 0U) + (has_bounce() ? 2U : 0U) + (in_place ? 1U : 0U);
        if (has_bounce()) {
            binding.bounce = {bounce_.data(), programs_[program]->bounce_bytes()};
            binding.bounce_places = programs_[program]->bounce_places();
        }
        status_ = executor_.start(*programs_[program], binding);
    }

    std::string wrong_bytes() const
    {
        for (std::size_t r = 0; r < ranks_; r++) {
            for (std::size_t i = 0; i < bytes_; i++) {
                if (receive_[r * bytes_ + i] == value(r, done_, i)) continue;
                return "call " + std::to_string(done_) + ": rank " + std::to_string(rank_) +
                       " has a wrong byte " + std::to_string(i) + " of rank " + std::to_string(r);
            }
        }
        return "";
    }

    const Scenario& scenario_;
    std::size_t rank_;
    std::size_t ranks_;
    std::size_t bytes_;
    std::unique_ptr<FakeTransport> node_;
    std::unique_ptr<FakeTransport> rail_;
    Executor executor_;
    // Not in place, in place; the same with a bounce buffer; all of these as publishes.
    std::vector<std::unique_ptr<Program>> programs_;
    std::vector<std::byte> send_;
    std::vector<std::byte> receive_;
    std::vector<std::byte> bounce_;
    int done_ = 0;
    int steps_ = 0;
    bool running_ = false;
    std::vector<bool> is_dead_;  // as far as this rank has been told
    Status status_ = Status::in_progress;
};

std::vector<std::unique_ptr<SimulatedRank>> make_team(const Scenario& scenario,
                                                      const Topology& topology,
                                                      FakeNetwork& network,
                                                      std::deque<FakeGroup>& groups)
{
    for (int n = 0; n < topology.nodes(); n++) groups.emplace_back(topology.ranks_on(n).size());
    for (int r = 0; r < topology.rails(); r++)
        groups.emplace_back(topology.ranks_on_rail(r).size());
    std::vector<std::unique_ptr<SimulatedRank>> team;
    for (int r = 0; r < topology.size(); r++) {
        auto& node = groups[static_cast<std::size_t>(topology.node_of(r))];
        auto& rail = groups[static_cast<std::size_t>(topology.nodes() + topology.rail_of(r))];
        team.push_back(std::make_unique<SimulatedRank>(
            scenario, topology, static_cast<std::size_t>(r),
            std::make_unique<FakeTransport>(network, node, Level::node, r, topology.local_of(r)),
            topology.nodes() == 1 ? nullptr
                                  : std::make_unique<FakeTransport>(network, rail, Level::rail, r,
                                                                    topology.rail_index_of(r))));
    }
    return team;
}

// A dead rank's bytes that have not left its node are lost.
void end_transfers(const Topology& topology, int rank, std::deque<FakeGroup>& groups)
{
    const auto node = static_cast<std::size_t>(topology.node_of(rank));
    const auto rail = static_cast<std::size_t>(topology.nodes() + topology.rail_of(rank));
    for (auto& receiver : groups[node].lanes) {
        auto& lane = receiver[static_cast<std::size_t>(topology.local_of(rank))];
        lane.road.clear();
        lane.arriving.clear();
    }
    for (auto& receiver : groups[rail].lanes)
        receiver[static_cast<std::size_t>(topology.rail_index_of(rank))].road.clear();
}

}  // namespace

Outcome simulate(const Scenario& scenario, std::size_t max_passes)
{
    const Topology topology(scenario.nodes);
    FakeNetwork network(scenario.weather, scenario.sabotage, scenario.depth);
    std::deque<FakeGroup> groups;
    const auto team = make_team(scenario, topology, network, groups);

    Outcome out;
    const auto dead = static_cast<std::size_t>(scenario.dies);
    bool is_dead = false, is_told = false;
    const auto is_over = [&](const auto& rank) {
        return rank->is_over() || (is_dead && rank == team[dead]);
    };
    for (std::size_t pass = 0; pass < max_passes && out.fault.empty(); pass++) {
        if (std::all_of(team.begin(), team.end(), is_over)) break;
        fake_now += scenario.pass;
        if (out.elapsed < scenario.suspended_at &&
            out.elapsed + scenario.pass >= scenario.suspended_at)
            fake_now += scenario.suspended_for;
        out.elapsed += scenario.pass;
        if (scenario.dies >= 0 && !is_dead && out.elapsed >= scenario.dies_at) {
            is_dead = true;
            end_transfers(topology, scenario.dies, groups);
        }
        if (is_dead && !is_told && out.elapsed >= scenario.dies_at + scenario.told_after) {
            is_told = true;
            std::vector<bool> ranks(team.size());
            ranks[dead] = true;
            for (const auto& rank : team) rank->tell(ranks);
        }
        const std::size_t r = network.below(team.size());
        if (is_dead && r == dead) continue;
        if (!scenario.late.empty() && out.elapsed < scenario.late[r]) continue;
        out.fault = team[r]->step();
        if (out.fault.empty()) out.fault = network.fault();
    }
    for (const auto& rank : team) {
        out.status.push_back(rank->status());
        out.calls_done.push_back(rank->done());
    }
    out.has_struck = network.has_struck();
    return out;
}

std::string text_of(const Scenario& scenario)
{
    std::string out = "nodes of ranks " + text_of(scenario.nodes) +
                      (scenario.route == Route::ring ? ", ring" : ", direct") + ", bounce " +
                      std::to_string(static_cast<int>(scenario.bounce)) + ", publish " +
                      std::to_string(static_cast<int>(scenario.publish)) + ", seed " +
                      std::to_string(scenario.weather.seed);
    if (const auto& s = scenario.sabotage) {
        out += ", rank " + std::to_string(s->rank) + "'s " + to_string(s->call) + " number " +
               std::to_string(s->nth) + " on the " + (s->level == Level::rail ? "rail" : "node");
    }
    return out;
}

}  // namespace hier::test
