// SPDX-License-Identifier: BSD-3-Clause
// Operations of chosen sizes, and their requests, for the programs nonblocking and persistent.
#pragma once

#include "test/mpi/programs/fuzz/operation.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace hier_test {

using fuzz::Operation;
using fuzz::TypedBuffer;
using Sizes = std::vector<std::size_t>;  // the bytes of each rank

inline constexpr CountedCollective both_collectives[] = {CountedCollective::allgather,
                                                         CountedCollective::allgatherv};

// An operation and its request.
struct Flight {
    std::unique_ptr<Operation> operation;
    MPI_Request request = MPI_REQUEST_NULL;

    Operation* operator->() const { return operation.get(); }
};
using Flights = std::vector<Flight>;

// Makes operations. Memory and alignment of the buffers are drawn.
class OperationMaker {
public:
    OperationMaker(std::uint64_t seed, int rank)
        : arena_(mix(seed, static_cast<std::uint64_t>(rank))),
          local_(mix(seed + 1, static_cast<std::uint64_t>(rank)))
    {
    }

    // What an operation is made of, besides sizes.
    struct Way {
        bool in_place = false;
        bool has_gaps = false;  // between blocks and, where items have 16 bytes or more, in them
        std::size_t item_bytes = 1;
    };

    std::unique_ptr<Operation> make(CountedCollective collective, MPI_Comm comm, Sizes sizes,
                                    Way way)
    {
        const Layout layout = make_layout(way);
        std::vector<int> items;
        for (const std::size_t size : sizes) {
            items.push_back(static_cast<int>(size / way.item_bytes));
        }
        const int mine = items[static_cast<std::size_t>(rank_of(comm))];
        Blocks blocks = place_blocks(collective, std::move(items), way.has_gaps);
        auto receive = std::make_unique<TypedBuffer>(arena_, layout, std::move(blocks), local_);
        auto send = way.in_place ? nullptr
                                 : std::make_unique<TypedBuffer>(arena_, layout,
                                                                 Blocks::equal(mine, 1), local_);
        return std::make_unique<Operation>(collective, comm, std::move(sizes), std::move(receive),
                                           std::move(send));
    }

    // Bytes one behind the other. MPI_Allgatherv has other sizes on each rank.
    std::unique_ptr<Operation> plain(CountedCollective collective, MPI_Comm comm, std::size_t bytes)
    {
        return make(collective, comm, about(collective, comm, bytes), {});
    }

    // While no operation is alive: frees the memory that is kept for the next ones.
    void rest() { arena_.clear(); }

    // Sizes of at most `bytes`, or half as many more. They are multiples of the item's.
    static Sizes about(CountedCollective collective, MPI_Comm comm, std::size_t bytes,
                       std::size_t item_bytes = 1)
    {
        Sizes sizes;
        for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_of(comm)); ++rank) {
            const std::size_t few = bytes / item_bytes * item_bytes;
            const std::size_t more = bytes / 2 / item_bytes * item_bytes;
            const bool is_longer = collective == CountedCollective::allgatherv && rank % 2 == 1;
            sizes.push_back(is_longer ? few + more : few);
        }
        return sizes;
    }

    // The bytes of an item with gaps, such that a block of `bytes` has a few hundred items at most. Each piece of an item is
    // a copy in device memory, and the simulated runtimes delay each copy.
    static std::size_t item_of(std::size_t bytes)
    {
        return std::max<std::size_t>(16, bytes / 300 / 8 * 8);
    }

private:
    static Layout make_layout(const Way& way)
    {
        const auto bytes = static_cast<int>(way.item_bytes);
        Layout byte = Layout::basic(MPI_BYTE, 1).called("byte");
        if (bytes == 1) {
            return byte;
        }
        const int pieces = bytes < 16 ? 1 : 2;
        const int length = bytes / pieces;
        return way.has_gaps
                   ? Layout::vector(pieces, length, length + 3, byte).called("vector with gaps")
                   : Layout::contiguous(bytes, byte).called("contiguous");
    }

    static Blocks place_blocks(CountedCollective collective, std::vector<int> items, bool has_gaps)
    {
        if (collective == CountedCollective::allgather) {
            return Blocks::equal(items.front(), static_cast<int>(items.size()));
        }
        std::vector<std::size_t> order(items.size());
        std::iota(order.rbegin(), order.rend(), 0UL);
        return place(std::move(items), order, 0, [has_gaps](std::size_t rank) {
            return has_gaps ? static_cast<int>(rank % 3) : 0;
        });
    }

    fuzz::Arena arena_;
    fuzz::Random local_;
};

// Starts and completes operations, checks their results, and counts the calls.
class Checker {
public:
    Checker(Session& session, Observer& observer) : session_(session), observer_(observer)
    {
        for (std::size_t i = 0; i < number_of_counted; ++i) {
            before_[i] = observer.read(static_cast<Counted>(i));
        }
    }

    void blocking(Operation& operation, const char* what)
    {
        operation.fill(++pattern_);
        count(operation, Manner::blocking);
        session_.ok(operation.call(), what);
        check(operation, what);
    }

    Flight start(std::unique_ptr<Operation> operation, const char* what)
    {
        Flight flight{std::move(operation)};
        flight->fill(++pattern_);
        count(*flight.operation, Manner::nonblocking);
        session_.ok(flight->start(&flight.request), what);
        return flight;
    }

    Flight init(std::unique_ptr<Operation> operation, const char* what)
    {
        Flight flight{std::move(operation)};
        session_.ok(flight->init(&flight.request), what);
        return flight;
    }

    // New contents for a persistent request, before it is started.
    void refill(const Flight& flight)
    {
        flight->fill(++pattern_);
        count(*flight.operation, Manner::persistent);
    }

    void restart(Flight& flight, const char* what)
    {
        refill(flight);
        session_.ok(MPI_Start(&flight.request), what);
    }

    void wait(Flight& flight, const char* what)
    {
        // The analyzer does not see that the request is active.
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        session_.ok(MPI_Wait(&flight.request, MPI_STATUS_IGNORE), what);
        check(*flight.operation, what);
    }

    void check(Operation& operation, const char* what)
    {
        const std::string wrong = operation.difference();
        session_.check(wrong.empty(), "%s: %s: %s", what, wrong.c_str(), operation.text().c_str());
    }

    void free_inactive(Flight& flight, const char* what)
    {
        session_.ok(MPI_Request_free(&flight.request), what);
        session_.check(flight.request == MPI_REQUEST_NULL, "%s: a freed request is not null", what);
    }

    // For calls that cannot count themselves.
    void count(Counted which, unsigned long long calls)
    {
        calls_[static_cast<std::size_t>(which)] += calls;
    }

    // Open MPI calls MPI_Allgather itself, and hier may count calls without bytes. So it may have
    // served more.
    void check_servers() const
    {
        for (std::size_t i = 0; i < number_of_counted; ++i) {
            const Counters::Values after = observer_.read(static_cast<Counted>(i));
            const unsigned long long served = after.served - before_[i].served;
            const unsigned long long fallbacks = after.fallbacks - before_[i].fallbacks;
            const bool is_right = observer_.expect() == Expect::hier
                                      ? served >= calls_[i] && fallbacks == 0
                                  : observer_.expect() == Expect::fallback ? fallbacks >= calls_[i]
                                                                           : true;
            session_.check(is_right, "of %llu calls of %s hier served %llu and handed on %llu",
                           calls_[i], names_of_counted[i], served, fallbacks);
        }
    }

private:
    void count(const Operation& operation, Manner manner)
    {
        count(counted(operation.collective(), manner), operation.is_counted());
    }

    Session& session_;
    Observer& observer_;
    Counters::Values before_[number_of_counted];
    unsigned long long calls_[number_of_counted] = {};
    int pattern_ = 0;
};

// What the parts of a program share. All of them test one collective at a time.
struct Tester {
    Tester(Session& the_session, Observer& the_observer)
        : session(the_session), observer(the_observer), checker(the_session, the_observer),
          maker(static_cast<std::uint64_t>(the_session.number("seed", 1)), the_session.rank()),
          rank(the_session.rank()), ranks(the_session.size())
    {
    }

    std::unique_ptr<Operation> make(MPI_Comm comm, std::size_t bytes,
                                    const OperationMaker::Way& way)
    {
        return maker.make(collective, comm,
                          OperationMaker::about(collective, comm, bytes, way.item_bytes), way);
    }

    Flight start_plain(MPI_Comm comm, std::size_t bytes, const char* what)
    {
        return checker.start(maker.plain(collective, comm, bytes), what);
    }

    // Small ones and larger ones in turn.
    Flights start_many(MPI_Comm comm, int count)
    {
        constexpr std::size_t sizes[] = {8, 3000, 64, 40000, 1, 9000};
        Flights flights;
        for (int i = 0; i < count; ++i) {
            flights.push_back(start_plain(comm, sizes[turn++ % std::size(sizes)], "one of many"));
        }
        return flights;
    }

    Session& session;
    Observer& observer;
    Checker checker;
    OperationMaker maker;
    CountedCollective collective = CountedCollective::allgather;
    int rank;
    int ranks;
    std::size_t turn = 0;
};

inline void add(Flights& flights, Flights more)
{
    std::move(more.begin(), more.end(), std::back_inserter(flights));
}

inline MPI_Comm duplicate()
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
}

inline void tell(int rank) { MPI_Send(nullptr, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD); }

inline void hear(int rank)
{
    MPI_Recv(nullptr, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

inline bool is_error(int status, int expected)
{
    int error_class = MPI_SUCCESS;
    MPI_Error_class(status, &error_class);
    return error_class == expected;
}

}  // namespace hier_test
