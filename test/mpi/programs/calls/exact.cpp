// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather of bytes on communicators of every order. Every byte is compared with the pattern that was sent and
// with the result of coll/basic. Guards lie around both buffers. Then come calls in a row: see run_in_a_row().
#include "test/mpi/lib/support.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <sys/mman.h>

using namespace hier_test;

namespace {

struct Group {
    std::string name;
    MPI_Comm comm;
    MPI_Comm reference;  // the same ranks, served by coll/basic
};

class Exact {
public:
    Exact(Session& session, Observer& observer)
        : session_(session), observer_(observer), corrupt_(session.number("corrupt", 0) != 0)
    {
    }

    void run_sizes(const Group& group, const std::vector<std::size_t>& sizes)
    {
        for (const std::size_t bytes : sizes) {
            for (const bool in_place : {false, true}) {
                session_.phase("%s, %zu bytes a rank, in place %d", group.name.c_str(), bytes,
                               in_place);
                one(group, bytes, in_place);
            }
        }
    }

    // There is no barrier between the calls, and ranks are late at random. Each rank chooses its buffers and overwrites
    // both as soon as the call is over. So a block that is read or written after the return is noticed.
    void run_in_a_row(const Group& a, const Group& b, int calls)
    {
        constexpr std::size_t sizes[] = {64, 4097, 70001, 150001};
        constexpr unsigned pool = 3;
        std::vector<GuardedBuffer> send;
        std::vector<GuardedBuffer> receive;
        for (unsigned i = 0; i < pool; ++i) {
            send.emplace_back(sizes[3], i);
            receive.emplace_back(sizes[3] * static_cast<std::size_t>(session_.size()), 3 * i);
        }
        const auto self = static_cast<std::uint64_t>(session_.rank()) << 32;
        for (int i = 0; i < calls; ++i) {
            const auto at = static_cast<std::uint64_t>(i);
            const Group& group = pick(7, at, 3) == 0 ? b : a;
            const std::size_t bytes = sizes[pick(8, at, 4)];
            const int call = ++call_;
            session_.phase("in a row, call %d of %d, %zu bytes a rank on %s", i, calls, bytes,
                           group.name.c_str());
            GuardedBuffer& from = send[pick(self + 1, at, pool)];
            GuardedBuffer& to = receive[pick(self + 2, at, pool)];
            const int ranks = size_of(group.comm);
            const std::size_t total = bytes * static_cast<std::size_t>(ranks);
            session_.check(all_poison(to.data(), to.bytes()),
                           "in a row, call %d: written after an earlier return", i);
            Pattern(rank_of(group.comm), call).fill(from.data(), bytes);
            if (pick(self + 3, at, 4) == 0) {
                usleep(pick(self + 4, at, 2000));
            }
            session_.ok(observer_.allgather(from.data(), static_cast<int>(bytes), MPI_BYTE,
                                            to.data(), static_cast<int>(bytes), MPI_BYTE,
                                            group.comm),
                        "MPI_Allgather in a row");
            from.clear();
            check_blocks(session_, to.data(), bytes, ranks, call, "in a row");
            session_.check(all_poison(to.data() + total, to.bytes() - total) && to.guards_intact(),
                           "in a row, call %d: written beside the buffer", i);
            to.clear();
        }
    }

    // Memory is freed and comes back at the same address with new pages, not on all ranks in the same calls. hier must
    // not use what it remembers of the old pages.
    void run_same_address(const Group& group, int calls)
    {
        constexpr std::size_t sizes[] = {40000, 250003};
        const int ranks = size_of(group.comm);
        const std::size_t room = sizes[1] * static_cast<std::size_t>(ranks + 1) + 4096;
        const auto self = static_cast<std::uint64_t>(session_.rank()) << 32;
        unsigned char* memory = map(nullptr, room);
        for (int i = 0; i < calls && memory != nullptr; ++i) {
            const auto at = static_cast<std::uint64_t>(i);
            const std::size_t bytes = sizes[pick(9, at, 2)];
            const int call = ++call_;
            session_.phase("same address, call %d of %d, %zu bytes a rank", i, calls, bytes);
            if (pick(self, at, 2) == 0) {
                munmap(memory, room);
                memory = map(memory, room);
                if (memory == nullptr) {
                    break;
                }
            }
            unsigned char* to = memory + bytes;
            Pattern(rank_of(group.comm), call).fill(memory, bytes);
            session_.ok(observer_.allgather(memory, static_cast<int>(bytes), MPI_BYTE, to,
                                            static_cast<int>(bytes), MPI_BYTE, group.comm),
                        "MPI_Allgather at the same address");
            check_blocks(session_, to, bytes, ranks, call, "same address");
        }
        if (session_.check(memory != nullptr, "no memory at the same address")) {
            munmap(memory, room);
        }
    }

private:
    static unsigned char* map(unsigned char* where, std::size_t bytes)
    {
        const int fixed = where == nullptr ? 0 : MAP_FIXED_NOREPLACE;
        void* memory =
            mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
        return memory == MAP_FAILED || (where != nullptr && memory != where)
                   ? nullptr
                   : static_cast<unsigned char*>(memory);
    }

    void one(const Group& group, std::size_t bytes, bool in_place)
    {
        const int call = ++call_;
        const int ranks = size_of(group.comm);
        const int rank = rank_of(group.comm);
        const int count = static_cast<int>(bytes);
        const Pattern mine(rank, call);
        GuardedBuffer send(bytes, static_cast<std::size_t>(call) % 17);
        GuardedBuffer receive(bytes * static_cast<std::size_t>(ranks),
                              static_cast<std::size_t>(call) % 13);
        GuardedBuffer reference(receive.bytes());
        mine.fill(send.data(), bytes);
        if (in_place) {
            mine.fill(receive.data() + static_cast<std::size_t>(rank) * bytes, bytes);
        }
        // In place MPI ignores the send count and the send type.
        const void* from = in_place ? MPI_IN_PLACE : send.data();
        const int send_count = in_place ? 0 : count;
        const MPI_Datatype send_type = in_place ? MPI_DATATYPE_NULL : MPI_BYTE;
        session_.ok(observer_.allgather(from, send_count, send_type, receive.data(), count,
                                        MPI_BYTE, group.comm),
                    "MPI_Allgather");
        if (corrupt_ && session_.rank() == 0 && receive.bytes() > 0) {
            receive.data()[receive.bytes() / 2] ^= 1;
        }
        const char* name = group.name.c_str();
        check_blocks(session_, receive.data(), bytes, ranks, call, name);
        session_.check(receive.guards_intact(), "%s: %zu bytes: written beside the receive buffer",
                       name, bytes);
        session_.check(send.guards_intact() && !mine.mismatch(send.data(), bytes),
                       "%s: %zu bytes: send buffer changed", name, bytes);
        compare_with_basic(group, send, receive, reference, bytes);
    }

    void compare_with_basic(const Group& group, const GuardedBuffer& send,
                            const GuardedBuffer& receive, GuardedBuffer& reference,
                            std::size_t bytes)
    {
        const Counters::Values before = observer_.read();
        session_.ok(MPI_Allgather(send.data(), static_cast<int>(bytes), MPI_BYTE, reference.data(),
                                  static_cast<int>(bytes), MPI_BYTE, group.reference),
                    "MPI_Allgather by coll/basic");
        const Counters::Values after = observer_.read();
        session_.check(before.served == after.served && before.fallbacks == after.fallbacks,
                       "%s: the reference went through hier", group.name.c_str());
        session_.check(std::memcmp(reference.data(), receive.data(), receive.bytes()) == 0,
                       "%s: %zu bytes: differs from coll/basic", group.name.c_str(), bytes);
    }

    Session& session_;
    Observer& observer_;
    bool corrupt_;  // tests the test: a wrong bit must be found
    int call_ = 0;
};

// The info key gives coll/basic the first place on this communicator.
MPI_Comm served_by_basic(MPI_Comm comm)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", "basic");
    MPI_Comm copy;
    MPI_Comm_dup_with_info(comm, info, &copy);
    MPI_Info_free(&info);
    return copy;
}

std::vector<Group> make_groups(int rank, int size, unsigned seed)
{
    std::vector<Group> groups;
    const auto add = [&groups](const char* name, MPI_Comm comm) {
        groups.push_back({name, comm, served_by_basic(comm)});
    };
    const auto split = [&](const char* name, int color, int key) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
        add(name, comm);
    };
    add("world", MPI_COMM_WORLD);
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    add("dup", dup);
    split("reversed", 0, -rank);
    split("shuffled", 0, static_cast<int>(pick(seed, static_cast<std::uint64_t>(rank), 1U << 20)));
    split("halves", rank < (size + 1) / 2 ? 0 : 1, rank);
    split("odd and even, reversed", rank % 2, -rank);
    return groups;
}

std::vector<std::size_t> parse_sizes(Session& session, const std::string& list)
{
    std::vector<std::size_t> sizes;
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
        char* end = nullptr;
        const unsigned long value = std::strtoul(word.c_str(), &end, 10);
        if (word.empty() || *end != '\0' || value > 1UL << 30) {
            session.usage(
                "--sizes takes numbers of bytes up to 2^30 with commas between them, not '%s'",
                list.c_str());
        }
        sizes.push_back(value);
    }
    return sizes;
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "exact",
                    {"expect", "min-bytes", "sizes", "calls", "seed", "corrupt"});
    Observer observer(session);
    auto sizes = parse_sizes(session, session.text("sizes", "0,1,3,4097,1048583"));
    const auto calls = static_cast<int>(session.number("calls", 60));
    auto groups = make_groups(session.rank(), session.size(),
                              static_cast<unsigned>(session.number("seed", 1)));

    Exact exact(session, observer);
    for (const Group& group : groups) {
        exact.run_sizes(group, sizes);
        // Large results cost the most time, and another order of ranks changes little for them.
        std::erase_if(sizes, [](std::size_t bytes) { return bytes > 500000; });
    }
    exact.run_in_a_row(groups[0], groups[3], calls);
    exact.run_same_address(groups[2], calls / 2);

    session.phase("freeing communicators");
    for (Group& group : groups) {
        MPI_Comm_free(&group.reference);
        if (group.comm != MPI_COMM_WORLD) {
            MPI_Comm_free(&group.comm);
        }
    }
    observer.close();  // so that MPI_Finalize closes the component
    return session.finish();
}
