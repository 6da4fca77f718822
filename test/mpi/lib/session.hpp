// SPDX-License-Identifier: BSD-3-Clause
// One run of a test program: its options, a verdict on which all ranks agree, and a bound on its time.
//
// Options have the form `--name value`. A program lists the names that it takes; every program takes --bound. The rank
// that finds a failure prints it. The exit status is the same on every rank.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <unistd.h>

namespace hier_test {

// Seconds after which a program gives up. So a hang ends as a failure, and the message says where.
inline constexpr long default_bound_s = 100;

// The message of the watchdog. It is static, because a signal handler may use nothing else.
inline char watchdog_text[256];

extern "C" inline void watchdog(int)
{
    size_t length = 0;
    while (length < sizeof watchdog_text && watchdog_text[length] != '\0') {
        ++length;
    }
    if (write(STDERR_FILENO, watchdog_text, length) < 0) {
        _exit(4);
    }
    _exit(3);
}

class Session {
public:
    Session(int argc, char** argv, const char* name, std::initializer_list<const char*> options,
            int thread_level = MPI_THREAD_SINGLE)
        : name_(name)
    {
        MPI_Init_thread(&argc, &argv, thread_level, &thread_level_);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
        parse(argc, argv, options);
        std::signal(SIGALRM, watchdog);
        phase("start");
        alarm(static_cast<unsigned>(number("bound", default_bound_s)));
    }
    ~Session() = default;
    Session(const Session&) = delete;
    Session(Session&&) = delete;
    Session& operator=(const Session&) = delete;
    Session& operator=(Session&&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    int thread_level() const { return thread_level_; }

    std::string text(const char* option, const char* otherwise) const
    {
        const auto found = options_.find(option);
        return found == options_.end() ? otherwise : found->second;
    }

    long number(const char* option, long otherwise) const
    {
        const auto found = options_.find(option);
        if (found == options_.end()) {
            return otherwise;
        }
        char* end = nullptr;
        const long value = std::strtol(found->second.c_str(), &end, 10);
        if (end == found->second.c_str() || *end != '\0' || value < 0) {
            usage("--%s takes a number from 0 up, not '%s'", option, found->second.c_str());
        }
        return value;
    }

    // Says what the test does now, for the watchdog's message.
    [[gnu::format(printf, 2, 3)]] void phase(const char* format, ...)
    {
        char what[160];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(what, sizeof what, format, arguments);
        va_end(arguments);
        std::snprintf(watchdog_text, sizeof watchdog_text,
                      "%s: rank %d: not finished in time, in: %s\n", name_, rank_, what);
    }

    // Counts a check and prints the message if the check has failed. Returns `ok`.
    [[gnu::format(printf, 3, 4)]] bool check(bool ok, const char* format, ...)
    {
        ++checks_;
        if (ok) {
            return true;
        }
        constexpr unsigned long long shown =
            5;  // on each rank, because one cause often fails many checks
        if (++failures_ <= shown) {
            char what[400];
            va_list arguments;
            va_start(arguments, format);
            std::vsnprintf(what, sizeof what, format, arguments);
            va_end(arguments);
            std::fprintf(stderr, "%s: rank %d: %s\n", name_, rank_, what);
        }
        return false;
    }

    bool ok(int mpi_status, const char* what)
    {
        return check(mpi_status == MPI_SUCCESS, "%s: error code %d", what, mpi_status);
    }

    // Ends MPI. Returns the verdict of all ranks as an exit status.
    int finish()
    {
        const Verdict verdict = judge(MPI_COMM_WORLD);
        phase("MPI_Finalize");
        MPI_Finalize();
        if (rank_ == 0) {
            tell(verdict, size_);
        }
        return verdict.is_good() ? 0 : 1;
    }

    // Prints the verdict of a communicator's ranks, before MPI ends. True: all checks were good.
    bool verdict(MPI_Comm comm)
    {
        const Verdict verdict = judge(comm);
        int rank = 0, size = 0;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        if (rank == 0) {
            tell(verdict, size);
        }
        return verdict.is_good();
    }

    // For a wrong command line: rank 0 prints the message, and all ranks end with the same status.
    [[noreturn, gnu::format(printf, 2, 3)]] void usage(const char* format, ...) const
    {
        if (rank_ == 0) {
            va_list arguments;
            va_start(arguments, format);
            std::fprintf(stderr, "%s: ", name_);
            std::vfprintf(stderr, format, arguments);
            std::fprintf(stderr, "\n");
            va_end(arguments);
        }
        MPI_Finalize();
        std::exit(2);
    }

private:
    struct Verdict {
        unsigned long long failures, checks;
        // A run without a check is no success.
        bool is_good() const { return failures == 0 && checks > 0; }
    };

    Verdict judge(MPI_Comm comm)
    {
        phase("verdict");
        unsigned long long mine[2] = {failures_, checks_};
        unsigned long long all[2] = {0, 0};
        MPI_Allreduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, comm);
        return {all[0], all[1]};
    }

    void tell(const Verdict& verdict, int ranks) const
    {
        std::printf("%s: %s: %llu of %llu checks failed on %d ranks\n", name_,
                    verdict.is_good() ? "ok" : "FAILED", verdict.failures, verdict.checks, ranks);
        std::fflush(stdout);
    }

    void parse(int argc, char** argv, std::initializer_list<const char*> known)
    {
        for (int i = 1; i < argc; i += 2) {
            const std::string word = argv[i];
            bool takes = word == "--bound";
            for (const char* option : known) {
                takes = takes || word == std::string("--") + option;
            }
            if (!takes) {
                std::string all = "--bound";
                for (const char* option : known) {
                    all += std::string(" --") + option;
                }
                usage("unknown option '%s'; known: %s", word.c_str(), all.c_str());
            }
            if (i + 1 == argc) {
                usage("%s needs a value", word.c_str());
            }
            options_[word.substr(2)] = argv[i + 1];
        }
    }

    const char* name_;
    int rank_ = 0;
    int size_ = 0;
    int thread_level_ = MPI_THREAD_SINGLE;
    unsigned long long failures_ = 0;
    unsigned long long checks_ = 0;
    std::map<std::string, std::string> options_;
};

}  // namespace hier_test
