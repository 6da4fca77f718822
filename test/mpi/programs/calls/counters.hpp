// SPDX-License-Identifier: BSD-3-Clause
// Equal calls on new communicators, and what the performance variables say of them. Options:
//
//   --bytes     a rank's block
//   --path      how the calls go, or "fallback"
//   --first     how the first call of a communicator goes, if that is another way
//   --mappings  how often the first call maps memory of a peer
//   --fan-outs  how many blocks a kernel pushes at least, in all calls; 0: none
#pragma once

#include "test/mpi/lib/support.hpp"
#include "test/mpi/lib/variables.hpp"

#include <map>
#include <string>

namespace hier_test {

class CountedCalls {
public:
    // The buffers stay with the caller: `send` has a block, `receive` has one of each rank.
    CountedCalls(Session& session, void* send, void* receive)
        : session_(session), variables_(session), send_(send), receive_(receive),
          bytes_(session.number("bytes", 1 << 20)), path_(session.text("path", "copies")),
          first_(session.text("first", path_.c_str()))
    {
        for (const char* path : paths) {
            variables_.bind(of(path, "calls"), MPI_T_PVAR_CLASS_COUNTER);
            variables_.bind(of(path, "bytes"), MPI_T_PVAR_CLASS_AGGREGATE);
        }
        variables_.bind("fallback_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
        variables_.bind("fan_outs", MPI_T_PVAR_CLASS_COUNTER);
        variables_.bind("teams", MPI_T_PVAR_CLASS_COUNTER);
        variables_.bind("setup_usec", MPI_T_PVAR_CLASS_TIMER);
        for (const char* cache : {"program", "key", "mapping", "staging"}) {
            variables_.bind(cache + std::string("_hits"), MPI_T_PVAR_CLASS_COUNTER);
            variables_.bind(cache + std::string("_misses"), MPI_T_PVAR_CLASS_COUNTER);
        }
    }

    void run()
    {
        for (int round = 0; round < rounds; ++round) {
            session_.phase("round %d", round);
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            const std::string time = of(path_.c_str(), "usec");
            const bool is_timed = round > 0 && by_team();
            if (is_timed) variables_.bind(time, MPI_T_PVAR_CLASS_TIMER);
            const double begin = MPI_Wtime();
            gather(comm);
            const double elapsed = (MPI_Wtime() - begin) * 1e6;
            if (is_timed) check_time(time, elapsed);
            check_setup(round + 1, elapsed);
            MPI_Comm_free(&comm);
            check_counts(round + 1);
        }
        check_fan_outs();
    }

private:
    static constexpr int rounds = 3;
    static constexpr int calls = 5;  // of a round
    static constexpr const char* paths[] = {"published", "kernels", "copies",
                                            "direct",    "ring",    "bundles"};

    static std::string of(const char* path, const char* what)
    {
        return std::string("path_") + path + "_" + what;
    }
    bool by_team() const { return path_ != "fallback"; }

    void gather(MPI_Comm comm)
    {
        const auto count = static_cast<int>(bytes_);
        for (int i = 0; i < calls; ++i) {
            session_.ok(MPI_Allgather(send_, count, MPI_BYTE, receive_, count, MPI_BYTE, comm),
                        "MPI_Allgather");
        }
    }

    void expect(const std::string& name, unsigned long long wanted)
    {
        const unsigned long long value = variables_.read(name);
        session_.check(value == wanted, "coll_hier_%s is %llu, not %llu", name.c_str(), value,
                       wanted);
    }

    void check_counts(int done)
    {
        const auto teams = static_cast<unsigned long long>(done);
        const unsigned long long total =
            static_cast<unsigned long long>(bytes_) * static_cast<unsigned>(session_.size());
        for (const std::string path : paths) {
            const unsigned first = path == first_ ? 1 : 0, later = path == path_ ? calls - 1 : 0;
            const unsigned long long wanted = teams * (first + later);
            expect(of(path.c_str(), "calls"), wanted);
            expect(of(path.c_str(), "bytes"), wanted * total);
        }
        expect("fallback_bytes", by_team() ? 0 : teams * calls * total);
        expect("program_misses", by_team() ? teams : 0);
        expect("program_hits", by_team() ? teams * (calls - 1) : 0);
        const auto mappings = static_cast<unsigned long long>(session_.number("mappings", 0));
        // Kernels for small blocks map the zones of peers, once for a communicator.
        const unsigned long long uses = first_ != path_ ? teams : teams * calls;
        expect("mapping_misses", mappings);
        expect("mapping_hits", mappings * (uses - 1));
        // A network device has a key of its own, and eager calls have none.
        const unsigned long long keys = variables_.read("key_misses");
        expect("key_hits", keys * (calls - 1));
        const bool has_keys = path_ == "direct" || path_ == "ring" || path_ == "bundles";
        session_.check((keys > 0) == has_keys, "coll_hier_key_misses is %llu", keys);
    }

    // Peers that come late get copies of their own.
    void check_fan_outs()
    {
        const auto least = static_cast<unsigned long long>(session_.number("fan-outs", 0));
        const unsigned long long value = variables_.read("fan_outs");
        session_.check(least > 0 ? value >= least : value == 0,
                       "coll_hier_fan_outs is %llu, and %llu were wanted", value, least);
    }

    void check_setup(int done, double elapsed)
    {
        expect("teams", by_team() ? static_cast<unsigned>(done) : 0);
        const unsigned long long before = setup_;
        setup_ = variables_.read("setup_usec");
        const unsigned long long time = setup_ - before;
        session_.check(by_team() ? time > 0 : time == 0, "a set-up of %llu us", time);
        session_.check(static_cast<double>(time) <= elapsed + 1, "a set-up of %llu us in %.0f us",
                       time, elapsed);
    }

    void check_time(const std::string& name, double elapsed)
    {
        const unsigned long long time = variables_.read(name);
        session_.check(time > 0 && static_cast<double>(time) <= elapsed,
                       "coll_hier_%s is %llu, and all took %.0f us", name.c_str(), time, elapsed);
        variables_.unbind(name);
    }

    Session& session_;
    Variables variables_;
    void* send_;
    void* receive_;
    long bytes_;
    std::string path_, first_;
    unsigned long long setup_ = 0;
};

}  // namespace hier_test
