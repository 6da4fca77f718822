// SPDX-License-Identifier: BSD-3-Clause
// Tells who served a call of MPI_Allgather, by the component's counters before and after the call.
//
// A right result alone proves nothing about the component, because the fallback module gives the same result.
#pragma once

#include "session.hpp"

namespace hier_test {

// The two counters of the component, read through the MPI tools interface.
class Counters {
public:
    struct Values {
        unsigned long long served = 0;
        unsigned long long fallbacks = 0;
    };

    Counters()
    {
        int provided = 0;
        usable_ = MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS &&
                  MPI_T_pvar_session_create(&session_) == MPI_SUCCESS &&
                  open("coll_hier_allgather_calls", &served_) &&
                  open("coll_hier_allgather_fallbacks", &fallbacks_);
    }
    ~Counters() = default;  // the handles stay until the program ends
    Counters(const Counters&) = delete;
    Counters(Counters&&) = delete;
    Counters& operator=(const Counters&) = delete;
    Counters& operator=(Counters&&) = delete;

    bool usable() const { return usable_; }

    // Ends the use of the tools interface. Before that, MPI_Finalize would leave the components open.
    void close()
    {
        if (usable_) {
            MPI_T_pvar_session_free(&session_);
            MPI_T_finalize();
        }
        usable_ = false;
    }

    Values read() const
    {
        Values values;
        if (usable_) {
            MPI_T_pvar_read(session_, served_, &values.served);
            MPI_T_pvar_read(session_, fallbacks_, &values.fallbacks);
        }
        return values;
    }

private:
    bool open(const char* name, MPI_T_pvar_handle* handle)
    {
        int index = -1;
        int count = 0;
        return MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS &&
               MPI_T_pvar_handle_alloc(session_, index, nullptr, handle, &count) == MPI_SUCCESS &&
               count == 1;
    }

    bool usable_ = false;
    MPI_T_pvar_session session_{};
    MPI_T_pvar_handle served_{};
    MPI_T_pvar_handle fallbacks_{};
};

// any: not checked. hier: the component served the call. fallback: the component handed the call on. none: the
// component never saw the call.
enum class Expect { any, hier, fallback, none };

// Makes calls and checks them against the options --expect and --min-bytes.
class Observer {
public:
    explicit Observer(Session& session) : session_(session)
    {
        const std::string word = session.text("expect", "any");
        if (word == "hier") {
            expect_ = Expect::hier;
        } else if (word == "fallback") {
            expect_ = Expect::fallback;
        } else if (word == "none") {
            expect_ = Expect::none;
        } else if (word != "any") {
            session.usage("--expect takes any, hier, fallback or none, not '%s'", word.c_str());
        }
        min_bytes_ = session.number("min-bytes", 0);
        if (expect_ == Expect::hier || expect_ == Expect::fallback) {
            session.check(counters_.usable(),
                          "no counters coll_hier_allgather_calls and _fallbacks: the component is "
                          "not loaded (see OMPI_MCA_mca_base_component_path)");
        }
    }

    Expect expect() const { return expect_; }
    Counters::Values read() const { return counters_.read(); }

    // Tells who should serve an allgather of so many bytes in all. Without bytes it may be anybody. A communicator of
    // one rank does not use the component.
    Expect expected(int ranks, long long total_bytes) const
    {
        if (expect_ == Expect::any || expect_ == Expect::none) {
            return expect_;
        }
        if (total_bytes == 0 || ranks < 2) {
            return Expect::any;
        }
        return total_bytes < min_bytes_ ? Expect::fallback : expect_;
    }

    // Calls MPI_Allgather, checks who served the call, and returns its status.
    int allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
    {
        int ranks = 0;
        int inter = 0;
        int type_bytes = 0;
        MPI_Comm_test_inter(comm, &inter);
        MPI_Comm_size(comm, &ranks);
        MPI_Type_size(receive_type, &type_bytes);
        const Counters::Values before = counters_.read();
        const int status =
            MPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
        const Counters::Values after = counters_.read();
        const unsigned long long served = after.served - before.served;
        const unsigned long long fallbacks = after.fallbacks - before.fallbacks;
        const long long total = 1LL * ranks * receive_count * type_bytes;
        if (inter != 0 || ranks < 2) {
            session_.check(served == 0,
                           "counted as served on an inter-communicator or on one rank");
        } else {
            compare(expected(ranks, total), served, fallbacks, total);
        }
        return status;
    }

    // Stops observing, so that MPI_Finalize can close the component.
    void close()
    {
        counters_.close();
        expect_ = Expect::any;
    }

    // Checks several calls that cannot be observed one by one.
    void compare_totals(Counters::Values before, unsigned long long calls)
    {
        const Counters::Values after = counters_.read();
        const unsigned long long served = after.served - before.served;
        const unsigned long long fallbacks = after.fallbacks - before.fallbacks;
        if (expect_ == Expect::hier) {
            session_.check(served == calls && fallbacks == 0,
                           "%llu calls: %llu served, %llu handed on", calls, served, fallbacks);
        }
    }

private:
    void compare(Expect expect, unsigned long long served, unsigned long long fallbacks,
                 long long total)
    {
        switch (expect) {
        case Expect::any:
            return;
        case Expect::hier:
            session_.check(served == 1 && fallbacks == 0,
                           "%lld bytes in all: not served by hier (served %+lld, handed on %+lld)",
                           total, static_cast<long long>(served),
                           static_cast<long long>(fallbacks));
            return;
        case Expect::fallback:
            session_.check(
                served == 0 && fallbacks == 1,
                "%lld bytes in all: not handed on by hier (served %+lld, handed on %+lld)", total,
                static_cast<long long>(served), static_cast<long long>(fallbacks));
            return;
        case Expect::none:
            session_.check(served == 0 && fallbacks == 0,
                           "%lld bytes in all: hier saw a call that was not its own", total);
            return;
        }
    }

    Session& session_;
    Counters counters_;
    Expect expect_ = Expect::any;
    long long min_bytes_ = 0;
};

}  // namespace hier_test
