// SPDX-License-Identifier: BSD-3-Clause
#include "exec/tracer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "base/log.hpp"
#include "hier/hier.h"

namespace hier {
namespace {

struct CloseFile {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

const char* to_string(Op::Kind kind)
{
    switch (kind) {
    case Op::Kind::copy:
        return "copy";
    case Op::Kind::announce:
        return "announce";
    case Op::Kind::enter:
        return "enter";
    case Op::Kind::await_announced:
        return "await_announced";
    case Op::Kind::await_entered:
        return "await_entered";
    case Op::Kind::put:
        return "put";
    case Op::Kind::drain:
        return "drain";
    case Op::Kind::await_data:
        return "await_data";
    }
    return "?";
}

const char* to_string(Place place)
{
    switch (place) {
    case Place::send:
        return "send";
    case Place::receive:
        return "receive";
    case Place::bounce:
        return "bounce";
    }
    return "?";
}

using File = std::unique_ptr<std::FILE, CloseFile>;

// The names can be guessed, and the directory may be one that others write to. So a file or a link
// that is there already is an error.
File create(const std::string& path)
{
    const int descriptor =
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) return nullptr;
    File file(fdopen(descriptor, "w"));
    if (!file) close(descriptor);
    return file;
}

// Ranks with equal names run on one kernel, so their clocks are one.
std::string clock_name()
{
    char text[64] = "unknown";
    const File file(std::fopen("/proc/sys/kernel/random/boot_id", "re"));
    if (file && std::fgets(text, sizeof text, file.get()) == nullptr) text[0] = '\0';
    text[std::strcspn(text, "\n")] = '\0';
    return text;
}

std::int64_t time_of_day()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// The field is empty if the op did not get that far.
void print_time(std::FILE* file, std::int64_t time, std::int64_t begin)
{
    if (time == 0) {
        std::fputc(',', file);
    } else {
        std::fprintf(file, ",%" PRId64, time - begin);
    }
}

void print_op(std::FILE* file, std::uint32_t i, const Op& op, const Trace::Times& times,
              std::int64_t begin)
{
    const bool is_copy = op.kind == Op::Kind::copy;
    const bool moves = is_copy || op.kind == Op::Kind::put;
    std::fprintf(file, "%u,%s,%s,%d,%s,%s,%u,%zu,%zu", i, to_string(op.kind),
                 op.level == Level::rail ? "rail" : "node", op.peer,
                 moves ? to_string(op.from) : "", is_copy ? to_string(op.to) : "", op.count,
                 op.slice.target, op.slice.length);
    print_time(file, times.runnable, begin);
    print_time(file, times.started, begin);
    print_time(file, times.ended, begin);
    std::fputc('\n', file);
}

}  // namespace

std::string trace_path(const std::string& prefix, const std::string& team, int rank,
                       std::uint64_t call)
{
    std::string name;
    for (const char c : team) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '-' || c == '_';
        name += is_plain ? c : '_';
    }
    struct stat about;
    const bool is_directory = stat(prefix.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
    return prefix + (is_directory ? "/" : ".") + name + "." + std::to_string(rank) + "." +
           std::to_string(call) + ".csv";
}

Trace* Tracer::begin(std::uint64_t call, const Program& program, std::string header)
{
    if (has_failed_) return nullptr;
    call_ = call;
    program_ = &program;
    call_header_ = std::move(header);
    status_ = Status::in_progress;
    const std::int64_t steady = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::steady_clock::now().time_since_epoch())
                                    .count();
    realtime_offset_ = time_of_day() - steady;
    return &trace_;
}

void Tracer::end(Status status)
{
    if (program_ == nullptr || status_ != Status::in_progress) return;
    status_ = status;
    trace_.end(*program_);
}

void Tracer::write() noexcept
{
    if (program_ == nullptr) return;
    try {
        if (status_ != Status::in_progress) write_file();
    } catch (const std::exception& e) {
        log(HIER_LOG_ERROR, "no trace of call %" PRIu64 ": %s", call_, e.what());
        has_failed_ = true;
    }
    program_ = nullptr;
}

void Tracer::write_file()
{
    const std::string path = trace_path(setting_.prefix, setting_.team, setting_.rank, call_);
    File file = create(path);
    if (file) {
        std::FILE* out = file.get();
        std::fprintf(out, "# hier trace,1\n%s%s", setting_.header.c_str(), call_header_.c_str());
        std::fprintf(out, "# call,%" PRIu64 "\n# status,%s\n# clock,%s\n", call_,
                     hier::to_string(status_), clock_name().c_str());
        std::fprintf(
            out, "# begin_ns,%" PRId64 "\n# end_ns,%" PRId64 "\n# realtime_offset_ns,%" PRId64 "\n",
            trace_.begin_time(), trace_.end_time(), realtime_offset_);
        std::fprintf(out, "# operations,%u\n", program_->size());
        std::fprintf(out, "op,kind,level,peer,from,to,count,offset,bytes,runnable_ns,started_ns,"
                          "ended_ns\n");
        for (std::uint32_t i = 0; i < program_->size(); i++)
            print_op(out, i, program_->op(i), trace_.times()[i], trace_.begin_time());
        const bool was_written = std::ferror(out) == 0;
        if (std::fclose(file.release()) == 0 && was_written) return;
    }
    has_failed_ = true;
    log(setting_.complains ? HIER_LOG_ERROR : HIER_LOG_DEBUG,
        "coll_hier_trace: cannot write %s: %s; no traces of this communicator", path.c_str(),
        std::strerror(errno));
}

}  // namespace hier
