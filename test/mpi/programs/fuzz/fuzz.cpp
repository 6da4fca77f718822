// SPDX-License-Identifier: BSD-3-Clause
// Runs random cases of the collectives that hier serves, and compares every byte with what it should be.
//
//   --seed S      decides all cases [1]
//   --cases N     how many cases [1000]
//   --first N     the number of the first one [0]
//   --case N      only this case
//   --threads N   each with communicators of its own; case n runs in thread n mod N [1]
//   --largest N   the most bytes of a rank [8 MiB]
//   --corrupt N   changes a byte of the result of case N on rank 0, which has to be found
//   --call NAMES  only these calls: allgather, allgatherv, iallgather, iallgatherv, allgather_init, allgatherv_init, with
//                 commas between them; or blocking, nonblocking, persistent or all of them [all]
//   --called NAME the name of the case of test/mpi/run, for the command that runs a failed case again
#include "worker.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <sstream>
#include <thread>

using namespace hier_test;
using namespace hier_test::fuzz;

namespace {

int thread_level(int argc, char** argv)
{
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--threads") return MPI_THREAD_MULTIPLE;
    }
    return MPI_THREAD_SINGLE;
}

std::uint64_t count_of(const Session& session, const char* option, std::uint64_t otherwise)
{
    return static_cast<std::uint64_t>(session.number(option, static_cast<long>(otherwise)));
}

// The options besides the seed on which a case depends, as they were given. --expect is one of
// them; a case of test/mpi/run has it already.
std::string options_that_decide(const Session& session, bool has_expect)
{
    std::string text;
    for (const std::string option : {"call", "largest", "threads", "expect"}) {
        const std::string value = session.text(option.c_str(), "");
        if (!value.empty() && !(option == "expect" && has_expect)) {
            text += " --" + option + " " + value;
        }
    }
    return text;
}

bool is_called(Counted which, const std::string& word)
{
    constexpr const char* manners[] = {"blocking", "nonblocking", "persistent"};
    return word == "all" || word == counted_name(which) ||
           word == manners[static_cast<std::size_t>(manner_of(which))];
}

Wanted read_wanted(const Session& session)
{
    const Wanted possible;
    Wanted wanted{};
    std::istringstream words(session.text("call", "all"));
    std::fill_n(wanted.calls, number_of_counted, false);
    for (std::string word; std::getline(words, word, ',');) {
        bool is_known = false;
        for (std::size_t i = 0; i < number_of_counted; ++i) {
            const bool is_meant = is_called(static_cast<Counted>(i), word);
            is_known = is_known || is_meant;
            wanted.calls[i] = wanted.calls[i] || (is_meant && possible.calls[i]);
        }
        if (!is_known) session.usage("--call does not know '%s'", word.c_str());
    }
    if (wanted.list().empty()) {
        session.usage("--call wants nothing that this MPI library has");
    }
    return wanted;
}

Plan read_plan(const Session& session, const Observer& observer)
{
    Plan plan;
    plan.seed = count_of(session, "seed", plan.seed);
    plan.largest = count_of(session, "largest", plan.largest);
    plan.threads = count_of(session, "threads", plan.threads);
    if (!session.text("corrupt", "").empty()) plan.corrupt = count_of(session, "corrupt", 0);
    const std::string name = session.text("called", "");
    plan.rerun = name.empty() ? "fuzz" : "test/mpi/run '" + name + "' --with";
    plan.rerun +=
        " --seed " + std::to_string(plan.seed) + options_that_decide(session, !name.empty());
    plan.wanted = read_wanted(session);
    plan.own_types = observer.expect() == Expect::hier;
    return plan;
}

// Says which cases are running, should the program hang.
class Current {
public:
    Current(Session& session, const Plan& plan) : session_(session), cases_(plan.threads) {}

    void begin(std::uint64_t number)
    {
        const std::lock_guard lock(mutex_);
        cases_[number % cases_.size()] = number;
        std::string text;
        for (const std::uint64_t each : cases_) {
            text += " " + std::to_string(each);
        }
        session_.phase("case%s", text.c_str());
    }

private:
    Session& session_;
    std::mutex mutex_;
    std::vector<std::uint64_t> cases_;
};

Tally work(MPI_Comm base, const Plan& plan, Current& current, std::uint64_t first,
           std::uint64_t end, std::uint64_t thread)
{
    choose_device(rank_of(base));
    Worker worker(base, plan, thread);
    for (std::uint64_t number = first; number < end; ++number) {
        if (number % plan.threads == thread) {
            current.begin(number);
            worker.run(number);
        }
    }
    return worker.tally();
}

Tally run_threads(Session& session, const Plan& plan, std::uint64_t first, std::uint64_t end)
{
    Current current(session, plan);
    std::vector<MPI_Comm> bases(plan.threads);
    std::vector<Tally> tallies(plan.threads);
    for (MPI_Comm& base : bases) {
        MPI_Comm_dup(MPI_COMM_WORLD, &base);
    }
    {
        std::deque<std::jthread> others;
        for (std::uint64_t i = 1; i < plan.threads; ++i) {
            others.emplace_back(
                [&, i] { tallies[i] = work(bases[i], plan, current, first, end, i); });
        }
        tallies[0] = work(bases[0], plan, current, first, end, 0);
    }
    Tally sum;
    for (std::size_t i = 0; i < bases.size(); ++i) {
        MPI_Comm_free(&bases[i]);
        sum.cases += tallies[i].cases;
        for (std::size_t which = 0; which < number_of_counted; ++which) {
            sum.calls[which] += tallies[i].calls[which];
        }
        sum.failures += tallies[i].failures;
    }
    return sum;
}

using AllValues = std::array<Counters::Values, number_of_counted>;

AllValues read_all(const Observer& observer)
{
    AllValues all;
    for (std::size_t i = 0; i < number_of_counted; ++i) {
        all[i] = observer.read(static_cast<Counted>(i));
    }
    return all;
}

// The share that hier served. It may be more than the calls of the cases, because Open MPI makes communicators with the
// help of MPI_Allgather, and hier may count calls without bytes. It does not see those on one rank.
void check_servers(Session& session, const Observer& observer, const Tally& tally,
                   const AllValues& before, bool is_alone)
{
    const AllValues after = read_all(observer);
    for (std::size_t i = 0; i < number_of_counted; ++i) {
        const char* const name = names_of_counted[i];
        unsigned long long mine[] = {tally.calls[i], after[i].served - before[i].served,
                                     after[i].fallbacks - before[i].fallbacks};
        session.check(observer.expect() != Expect::hier || (mine[1] >= mine[0] && mine[2] == 0),
                      "of %llu calls of %s hier served %llu and handed on %llu", mine[0], name,
                      mine[1], mine[2]);
        session.check(observer.expect() != Expect::fallback || mine[2] >= mine[0],
                      "of %llu calls of %s hier handed on only %llu", mine[0], name, mine[2]);
        unsigned long long all[3] = {};
        MPI_Reduce(mine, all, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (session.rank() != 0 || all[0] == 0) {
            continue;
        }
        std::printf("figure: fuzz: %llu calls of %s of all ranks on more than one rank: %llu "
                    "served by hier, %llu by the fallback module\n",
                    all[0], name, all[1], all[2]);
        const bool may_serve =
            observer.expect() == Expect::any || observer.expect() == Expect::hier;
        session.check(is_alone || !may_serve || all[1] > all[0] / 4,
                      "hier served only %llu of %llu calls of %s", all[1], all[0], name);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string program = std::string(prefix_of_programs) + "fuzz";
    Session session(argc, argv, program.c_str(),
                    {"expect", "min-bytes", "seed", "cases", "first", "case", "threads", "largest",
                     "corrupt", "call", "called"},
                    thread_level(argc, argv));
    Observer observer(session);
    const Plan plan = read_plan(session, observer);
    const bool is_alone = !session.text("case", "").empty();
    const std::uint64_t first = count_of(session, is_alone ? "case" : "first", 0);
    const std::uint64_t end = first + (is_alone ? 1 : count_of(session, "cases", 1000));
    if (plan.threads == 0 || session.thread_level() < thread_level(argc, argv)) {
        session.usage("--threads takes a number from 1 up, and an MPI library with threads");
    }
    const AllValues before = read_all(observer);
    const Tally tally = run_threads(session, plan, first, end);
    session.check(tally.failures == 0, "%llu of %llu cases failed", tally.failures, tally.cases);
    check_servers(session, observer, tally, before, is_alone);
    observer.close();
    return session.finish();
}
