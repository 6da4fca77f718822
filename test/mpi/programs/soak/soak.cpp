// SPDX-License-Identifier: BSD-3-Clause
// Runs the fuzzer's cases for a time, and looks now and then for what the process has lost. test/soak starts it.
//
//   --seconds N   how long [20]
//   --every N     seconds between two readings [10, at most an eighth of the time]
//   --warm-up N   seconds before the first reading that counts [60, at most a third of the time]
//   --seed S, --largest N   as of the fuzzer; the largest is 1 MiB
#include "growth.hpp"
#include "test/mpi/lib/resources.hpp"
#include "test/mpi/programs/fuzz/memory.hpp"
#include "test/mpi/programs/fuzz/worker.hpp"

#include <chrono>

using namespace hier_test;

namespace {

using Seconds = std::chrono::duration<double>;

class Soak {
public:
    Soak(Session& session, const Observer& observer)
        : session_(session), seconds_(session.number("seconds", 20))
    {
        plan_.own_types = observer.expect() == Expect::hier;
        every_ = static_cast<double>(session.number("every", std::clamp(seconds_ / 8, 1L, 10L)));
        warm_up_ = static_cast<double>(session.number("warm-up", std::min(60L, seconds_ / 3)));
        plan_.seed = static_cast<std::uint64_t>(session.number("seed", 1));
        plan_.largest = static_cast<std::size_t>(session.number("largest", 1 << 20));
        plan_.rerun = "fuzz --seed " + std::to_string(plan_.seed) + " --largest " +
                      std::to_string(plan_.largest) + (plan_.own_types ? " --expect hier" : "");
    }

    void run()
    {
        MPI_Comm_dup(MPI_COMM_WORLD, &base_);
        {
            fuzz::choose_device(session_.rank());
            fuzz::Worker worker(base_, plan_, 0);
            while (elapsed() < static_cast<double>(seconds_)) {
                step(worker);
            }
            session_.check(worker.tally().failures == 0, "%llu of %llu cases failed",
                           worker.tally().failures, worker.tally().cases);
        }
        MPI_Comm_free(&base_);
        for (const std::string& text : growth_.found()) {
            session_.check(false, "%s", text.c_str());
        }
    }

private:
    // The clock of rank 0, so that all ranks decide alike.
    double elapsed() const
    {
        double now = Seconds(std::chrono::steady_clock::now() - started_).count();
        MPI_Bcast(&now, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        return now;
    }

    void step(fuzz::Worker& worker)
    {
        constexpr std::uint64_t cases_at_once = 25;
        for (std::uint64_t i = 0; i < cases_at_once; ++i) {
            session_.phase("case %llu", static_cast<unsigned long long>(next_));
            worker.run(next_++);
        }
        const double now = elapsed();
        if (now >= next_reading_) {
            next_reading_ = now + every_;
            read(worker, now);
        }
    }

    // No rank looks while another one is freeing.
    void read(fuzz::Worker& worker, double now)
    {
        session_.phase("reading after %.0f s", now);
        worker.rest();
        fuzz::close_mappings_of_freed(base_);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        const std::vector<soak::Figure> figures = soak::measure(worker.communicators());
        MPI_Barrier(MPI_COMM_WORLD);
        if (now >= warm_up_) growth_.add(figures);
        std::vector<double> mine;
        for (const soak::Figure& figure : figures) {
            mine.push_back(figure.value);
        }
        std::vector<double> most(mine.size());
        MPI_Reduce(mine.data(), most.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0,
                   MPI_COMM_WORLD);
        if (session_.rank() == 0) {
            std::printf("soak: %.0f s, %llu cases; most of a rank:", now,
                        static_cast<unsigned long long>(next_));
            for (std::size_t i = 0; i < most.size(); ++i) {
                std::printf("%s %s %.0f", i == 0 ? "" : ",", figures[i].name.c_str(), most[i]);
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    }

    Session& session_;
    long seconds_;
    double every_;
    double warm_up_;
    fuzz::Plan plan_;
    MPI_Comm base_ = MPI_COMM_NULL;
    soak::Growth growth_;
    std::uint64_t next_ = 0;
    double next_reading_ = 0;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace

int main(int argc, char** argv)
{
    keep_pages_small();
    const std::string program = std::string(fuzz::prefix_of_programs) + "soak";
    Session session(argc, argv, program.c_str(),
                    {"expect", "min-bytes", "seconds", "every", "warm-up", "seed", "largest"});
    Observer observer(session);
    const Counters::Values before = observer.read();
    Soak(session, observer).run();
    session.check(observer.expect() != Expect::hier || observer.read().served > before.served,
                  "hier served no call");
    observer.close();
    return session.finish();
}
