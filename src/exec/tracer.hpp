// SPDX-License-Identifier: BSD-3-Clause
// Which calls of a team are traced (coll_hier_trace, coll_hier_trace_call), and their files.
//
// A file is written when the team's next call begins or when the team ends. Before that, ranks of
// this host may still be in the traced call.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "exec/trace.hpp"
#include "hier/status.hpp"

namespace hier {

class Tracer {
public:
    struct Setting {
        std::string prefix;     // a directory, or the start of the files' names
        std::string team;       // name
        int rank;               // in the team
        std::uint64_t call;     // counted from 1; 0: every call
        bool complains = true;  // in the error log, of files that cannot be written; else debug
        std::string header;     // the first lines of all files of the team
    };

    explicit Tracer(Setting setting) : setting_(std::move(setting)) {}
    ~Tracer() { write(); }
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    void reserve(std::uint32_t ops) { trace_.reserve(ops); }
    // The trace for the run of `program` in this call; null: no trace. `program` stays until
    // write(). `header` has the lines of this call.
    Trace* begin(std::uint64_t call, const Program& program, std::string header);
    bool wants(std::uint64_t call) const { return setting_.call == 0 || setting_.call == call; }
    // The call is over.
    void end(Status status);
    // Writes the trace of a call that has ended, unless it has been written. A failure ends all
    // tracing.
    void write() noexcept;

private:
    void write_file();

    Setting setting_;
    Trace trace_;
    const Program* program_ = nullptr;  // of the call that is traced, or that is not written yet
    std::uint64_t call_ = 0;
    std::string call_header_;
    std::int64_t realtime_offset_ = 0;  // ns from the steady clock to the time of day
    Status status_ = Status::in_progress;
    bool has_failed_ = false;
};

// PREFIX/TEAM.RANK.CALL.csv if PREFIX is a directory, else PREFIX.TEAM.RANK.CALL.csv. Characters
// that a name should not have become "_".
std::string trace_path(const std::string& prefix, const std::string& team, int rank,
                       std::uint64_t call);

}  // namespace hier
