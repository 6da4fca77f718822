// SPDX-License-Identifier: BSD-3-Clause
// Up to eight operations at a time, blocking, nonblocking and persistent ones, on several
// communicators.
//
// The starts of all operations have an order that is equal on all ranks. An operation draws the
// times of its starts from a seed of its own, so a rank needs to know nothing of the operations
// without it. Each rank draws for itself how it completes its requests, and when.
#include "flights.hpp"

#include <algorithm>
#include <tuple>

namespace hier_test::fuzz {

namespace {

// A persistent request has the event 0, which makes it, and one for each start. The others have one
// start.
struct Event {
    std::uint64_t time;
    std::size_t flight;
    int number;

    bool operator<(const Event& other) const
    {
        return std::tie(time, flight, number) < std::tie(other.time, other.flight, other.number);
    }
};

// Large ones start less often.
int draw_starts(Random& random, const Operation& operation)
{
    constexpr std::size_t max_starts = 50;
    constexpr std::size_t max_bytes = std::size_t{2} << 20;
    const std::size_t most = std::clamp<std::size_t>(
        max_bytes / std::max<std::size_t>(1, operation.total_bytes()), 1, max_starts);
    const std::size_t few = std::min<std::size_t>(most, 4);
    const bool has_many = random.one_in(8);
    return random.one_in(16) ? 0 : static_cast<int>(random.between(1, has_many ? most : few));
}

class Batch {
public:
    Batch(const Setting& setting, Random& common, Random& local)
        : setting_(setting), local_(local), flights_(local, outcome_, setting.is_corrupt)
    {
        constexpr std::size_t max_operations = 8;
        const std::vector<Counted> kinds = setting.wanted.list();
        const std::size_t operations = common.between(1, max_operations);
        for (std::size_t i = 0; i < operations; ++i) {
            const Counted which = kinds[common.between(0, kinds.size() - 1)];
            const MPI_Comm comm = setting.comms[common.between(0, setting.comms.size() - 1)];
            Random own(common.next());
            if (comm != MPI_COMM_NULL) add(which, comm, operations > 2, own, i);
        }
        std::sort(events_.begin(), events_.end());
    }

    Outcome run()
    {
        for (std::size_t i = 0; i < events_.size() && outcome_.status == MPI_SUCCESS; ++i) {
            flights_.meddle();
            const std::size_t together = same_kind(i);
            if (together > 1 && local_.one_in(2)) {
                start_all(i, together);
                i += together - 1;
            } else {
                begin(events_[i]);
            }
        }
        flights_.end();
        return outcome_;
    }

private:
    // One among many is not as large as one alone.
    void add(Counted which, MPI_Comm comm, bool is_one_of_many, Random& own, std::size_t number)
    {
        Setting setting = setting_;
        setting.comm = comm;
        if (is_one_of_many) setting.largest /= 4;
        auto operation = collective_of(which) == CountedCollective::allgather
                             ? draw_allgather(setting, own, local_)
                             : draw_allgatherv(setting, own, local_);
        const Manner manner = manner_of(which);
        // Open MPI 4.1 forgets to keep the datatypes of persistent requests.
        const bool keeps_types =
            manner != Manner::persistent || (setting.own_types && operation->is_counted());
        if (keeps_types && local_.one_in(3)) operation->free_types_early();
        const int starts = manner == Manner::persistent ? draw_starts(own, *operation) : 1;
        const bool may_be_freed = manner == Manner::nonblocking && own.one_in(8);
        outcome_.text +=
            (outcome_.text.empty() ? "" : "; ") + std::to_string(number) + ": " +
            operation->text(manner) +
            (manner == Manner::persistent ? ", " + std::to_string(starts) + " starts" : "");
        std::uint64_t time = own.below(1000);
        for (int i = manner == Manner::persistent ? 0 : 1; i <= starts; ++i) {
            events_.push_back({time, flights_.count(), i});
            time += own.below(400);
        }
        flights_.add({std::move(operation), manner, number, may_be_freed});
    }

    // Neighbouring starts of different persistent requests.
    std::size_t same_kind(std::size_t first) const
    {
        std::size_t last = first;
        const auto is_new = [&](const Event& event) {
            return std::none_of(events_.begin() + static_cast<std::ptrdiff_t>(first),
                                events_.begin() + static_cast<std::ptrdiff_t>(last),
                                [&](const Event& other) { return other.flight == event.flight; });
        };
        while (last < events_.size() && events_[last].number > 0 &&
               flights_.manner(events_[last].flight) == Manner::persistent &&
               is_new(events_[last])) {
            ++last;
        }
        return last - first;
    }

    void start_all(std::size_t first, std::size_t count)
    {
        std::vector<std::size_t> chosen;
        for (std::size_t i = first; i < first + count; ++i) {
            flights_.prepare(events_[i].flight, pattern(events_[i]));
            chosen.push_back(events_[i].flight);
        }
        flights_.start_all(chosen);
    }

    void begin(const Event& event)
    {
        if (event.number == 0) {
            flights_.init(event.flight);
            return;
        }
        flights_.prepare(event.flight, pattern(event));
        flights_.start(event.flight);
    }

    // Equal on all ranks of the operation.
    int pattern(const Event& event) const
    {
        const std::uint64_t key = mix(setting_.drawn.key(), flights_.number(event.flight));
        return static_cast<int>(mix(key, static_cast<std::uint64_t>(event.number)) & 0x7fffffff);
    }

    const Setting& setting_;
    Random& local_;
    Outcome outcome_;
    Flights flights_;
    std::vector<Event> events_;
};

}  // namespace

Outcome run_batch(const Setting& setting, Random& common, Random& local)
{
    return Batch(setting, common, local).run();
}

}  // namespace hier_test::fuzz
