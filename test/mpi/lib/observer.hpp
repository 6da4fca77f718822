// SPDX-License-Identifier: BSD-3-Clause
// Tells who served a call of MPI_Allgather, MPI_Allgatherv or their like, by the component's counters
// before and after the call.
//
// A right result alone proves nothing about the component, because the fallback module gives the same result.
#pragma once

#include "blocks.hpp"
#include "session.hpp"

#include <iterator>
#include <string>

namespace hier_test {

// The collectives that hier serves, and how they are called.
enum class CountedCollective { allgather, allgatherv };
enum class Manner { blocking, nonblocking, persistent };

// What has counters of its own. A persistent call counts at each start.
enum class Counted {
    allgather,
    allgatherv,
    iallgather,
    iallgatherv,
    allgather_init,
    allgatherv_init
};
inline constexpr const char* names_of_counted[] = {
    "allgather", "allgatherv", "iallgather", "iallgatherv", "allgather_init", "allgatherv_init"};
inline constexpr std::size_t number_of_counted = std::size(names_of_counted);

constexpr Counted counted(CountedCollective collective, Manner manner)
{
    return static_cast<Counted>(2 * static_cast<int>(manner) + static_cast<int>(collective));
}
constexpr Manner manner_of(Counted which)
{
    return static_cast<Manner>(static_cast<int>(which) / 2);
}
constexpr CountedCollective collective_of(Counted which)
{
    return static_cast<CountedCollective>(static_cast<int>(which) % 2);
}
constexpr const char* counted_name(Counted which)
{
    return names_of_counted[static_cast<std::size_t>(which)];
}

// The component's counters, two for each collective, read through the MPI tools interface.
class Counters {
public:
    struct Values {
        unsigned long long served = 0;
        unsigned long long fallbacks = 0;
    };

    Counters()
    {
        int provided = 0;
        is_open_ = MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS &&
                   MPI_T_pvar_session_create(&session_) == MPI_SUCCESS;
        for (std::size_t i = 0; i < number_of_counted; ++i) {
            const std::string name = std::string("coll_hier_") + names_of_counted[i];
            handles_[i].usable = is_open_ && open(name + "_calls", &handles_[i].served) &&
                                 open(name + "_fallbacks", &handles_[i].fallbacks);
        }
    }
    ~Counters() = default;  // the handles stay until the program ends
    Counters(const Counters&) = delete;
    Counters(Counters&&) = delete;
    Counters& operator=(const Counters&) = delete;
    Counters& operator=(Counters&&) = delete;

    bool usable(Counted which) const { return is_open_ && handles_of(which).usable; }

    // Ends the use of the tools interface. Before that, MPI_Finalize would leave the components open.
    void close()
    {
        if (is_open_) {
            MPI_T_pvar_session_free(&session_);
            MPI_T_finalize();
        }
        is_open_ = false;
    }

    Values read(Counted which) const
    {
        Values values;
        const Handles& handles = handles_of(which);
        if (usable(which)) {
            MPI_T_pvar_read(session_, handles.served, &values.served);
            MPI_T_pvar_read(session_, handles.fallbacks, &values.fallbacks);
        }
        return values;
    }

private:
    struct Handles {
        bool usable;
        MPI_T_pvar_handle served;
        MPI_T_pvar_handle fallbacks;
    };

    const Handles& handles_of(Counted which) const
    {
        return handles_[static_cast<std::size_t>(which)];
    }

    bool open(const std::string& name, MPI_T_pvar_handle* handle)
    {
        int index = -1;
        int count = 0;
        return MPI_T_pvar_get_index(name.c_str(), MPI_T_PVAR_CLASS_COUNTER, &index) ==
                   MPI_SUCCESS &&
               MPI_T_pvar_handle_alloc(session_, index, nullptr, handle, &count) == MPI_SUCCESS &&
               count == 1;
    }

    bool is_open_ = false;
    MPI_T_pvar_session session_{};
    Handles handles_[number_of_counted]{};
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
            session.check(counters_.usable(Counted::allgather),
                          "no counters coll_hier_allgather_calls and their like: the component is "
                          "not loaded (see OMPI_MCA_mca_base_component_path)");
        }
    }

    Expect expect() const { return expect_; }
    Counters::Values read(Counted which = Counted::allgather) const
    {
        return counters_.read(which);
    }

    // Tells who should serve a call of so many bytes in all. Without bytes it may be anybody. A
    // communicator of one rank does not use the component.
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
        MPI_Comm_size(comm, &ranks);
        return observe(Counted::allgather, 1LL * ranks * receive_count, receive_type, comm, [&] {
            return MPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type,
                                 comm);
        });
    }

    // The same for MPI_Allgatherv.
    int allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   const Blocks& blocks, MPI_Datatype receive_type, MPI_Comm comm)
    {
        return observe(Counted::allgatherv, blocks.total(), receive_type, comm, [&] {
            return MPI_Allgatherv(send, send_count, send_type, receive, blocks.items.data(),
                                  blocks.displacements.data(), receive_type, comm);
        });
    }

    // Stops observing, so that MPI_Finalize can close the component.
    void close()
    {
        counters_.close();
        expect_ = Expect::any;
    }

    // Checks several calls that cannot be observed one by one.
    void compare_totals(Counters::Values before, unsigned long long calls,
                        Counted which = Counted::allgather)
    {
        const Counters::Values after = read(which);
        const unsigned long long served = after.served - before.served;
        const unsigned long long fallbacks = after.fallbacks - before.fallbacks;
        if (expect_ == Expect::hier) {
            session_.check(served == calls && fallbacks == 0,
                           "%llu calls of %s: %llu served, %llu handed on", calls,
                           counted_name(which), served, fallbacks);
        }
    }

private:
    // `items` of the type are what all ranks send.
    template <class Call>
    int observe(Counted which, long long items, MPI_Datatype type, MPI_Comm comm, Call call)
    {
        int ranks = 0;
        int inter = 0;
        int type_bytes = 0;
        MPI_Comm_test_inter(comm, &inter);
        MPI_Comm_size(comm, &ranks);
        MPI_Type_size(type, &type_bytes);
        const Counters::Values before = counters_.read(which);
        const int status = call();
        const Counters::Values after = counters_.read(which);
        const unsigned long long served = after.served - before.served;
        const unsigned long long fallbacks = after.fallbacks - before.fallbacks;
        const long long total = items * type_bytes;
        if (inter != 0 || ranks < 2) {
            session_.check(served == 0,
                           "counted as served on an inter-communicator or on one rank");
        } else {
            compare(expected(ranks, total), served, fallbacks, total);
        }
        return status;
    }

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
