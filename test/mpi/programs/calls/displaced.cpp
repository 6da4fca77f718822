// SPDX-License-Identifier: BSD-3-Clause
// Results whose blocks lie in another order on each rank, with gaps. Options:
//
//   --expect    displaced: the blocks go where they belong; staged: hier copies the result
//   --bytes     of the largest block
//   --blocks    all, or only those that are equal
//
// The receive buffer has an address that is lower than its length, as far as the system allows that: in programs that are
// linked without PIE such addresses are usual.
#include "test/mpi/lib/support.hpp"
#include "test/mpi/lib/variables.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <numeric>
#include <span>
#include <vector>

using namespace hier_test;

namespace {

constexpr unsigned char untouched = 0x5a;

// Pages at the lowest address that a process may use.
class LowMemory {
public:
    explicit LowMemory(std::size_t bytes) : bytes_(bytes)
    {
        constexpr std::uintptr_t lowest = 64 << 10;
        void* const wanted = reinterpret_cast<void*>(lowest);  // NOLINT: no object is there
        pages_ = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (pages_ == MAP_FAILED)
            pages_ =
                mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages_ == MAP_FAILED) throw std::bad_alloc();
    }
    ~LowMemory() { munmap(pages_, bytes_); }
    LowMemory(const LowMemory&) = delete;
    LowMemory(LowMemory&&) = delete;
    LowMemory& operator=(const LowMemory&) = delete;
    LowMemory& operator=(LowMemory&&) = delete;

    // The first bytes, untouched.
    std::span<unsigned char> fresh(std::size_t bytes) const
    {
        const std::span all(static_cast<unsigned char*>(pages_), bytes);
        std::fill(all.begin(), all.end(), untouched);
        return all;
    }

private:
    std::size_t bytes_;
    void* pages_;
};

class Displaced {
public:
    explicit Displaced(Session& session)
        : session_(session), variables_(session),
          bytes_(static_cast<int>(session.number("bytes", 100000))),
          is_staged_(session.text("expect", "displaced") == "staged"),
          memory_(static_cast<std::size_t>((bytes_ + gap) * (session.size() + 1)))
    {
        for (const char* count : {"staging_hits", "staging_misses"})
            variables_.bind(count, MPI_T_PVAR_CLASS_COUNTER);
        warm_up();
    }

    // MPI_Allgatherv. In place: a rank's block is where the result has it.
    void gather(int call, bool are_equal, bool in_place)
    {
        session_.phase("call %d: %s, %s", call, are_equal ? "equal" : "different",
                       in_place ? "in place" : "not in place");
        const Blocks blocks = blocks_of(are_equal);
        const auto end = static_cast<std::size_t>(blocks.total() + gap * (session_.size() + 1));
        const std::span<unsigned char> receive = memory_.fresh(end);
        const auto own = static_cast<std::size_t>(session_.rank());
        const auto send =
            Pattern(session_.rank(), call).bytes(static_cast<std::size_t>(blocks.items[own]));
        if (in_place)
            std::copy(send.begin(), send.end(), receive.begin() + blocks.displacements[own]);
        const unsigned long long before = staged();
        session_.ok(MPI_Allgatherv(in_place ? MPI_IN_PLACE : send.data(), blocks.items[own],
                                   MPI_BYTE, receive.data(), blocks.items.data(),
                                   blocks.displacements.data(), MPI_BYTE, MPI_COMM_WORLD),
                    "MPI_Allgatherv");
        check_staging(before);
        check_result(blocks, receive, call);
    }

    // MPI_Allgather into a datatype that leaves a gap behind each block.
    void gather_with_gaps(int call)
    {
        session_.phase("call %d: a datatype with gaps", call);
        MPI_Datatype block = MPI_DATATYPE_NULL, spaced = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(bytes_, MPI_BYTE, &block);
        MPI_Type_create_resized(block, 0, bytes_ + gap, &spaced);
        MPI_Type_commit(&spaced);
        Blocks blocks = Blocks::equal(bytes_, session_.size());
        for (int rank = 0; rank < session_.size(); rank++)
            blocks.displacements[static_cast<std::size_t>(rank)] += gap * rank;
        const std::span<unsigned char> receive =
            memory_.fresh(static_cast<std::size_t>((bytes_ + gap) * session_.size()));
        const auto send = Pattern(session_.rank(), call).bytes(static_cast<std::size_t>(bytes_));
        const unsigned long long before = staged();
        session_.ok(
            MPI_Allgather(send.data(), bytes_, MPI_BYTE, receive.data(), 1, spaced, MPI_COMM_WORLD),
            "MPI_Allgather");
        check_staging(before);
        check_result(blocks, receive, call);
        MPI_Type_free(&spaced);
        MPI_Type_free(&block);
    }

private:
    static constexpr int gap = 100;

    // The ranks' blocks in an order that differs from rank to rank.
    Blocks blocks_of(bool are_equal) const
    {
        const auto ranks = static_cast<std::size_t>(session_.size());
        std::vector<std::size_t> order(ranks);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::rotate(order.begin(), order.begin() + session_.rank(), order.end());
        std::reverse(order.begin(), order.end());
        std::vector<int> items(ranks, bytes_);
        for (std::size_t rank = 0; rank < ranks && !are_equal; rank++)
            items[rank] = rank == 1 ? 0 : bytes_ / static_cast<int>(rank + 1);
        return place(std::move(items), order, 0, [](std::size_t) { return gap; });
    }
    // Makes the team.
    void warm_up()
    {
        std::vector<unsigned char> all(static_cast<std::size_t>(bytes_) *
                                       static_cast<std::size_t>(session_.size()));
        session_.ok(
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all.data(), bytes_, MPI_BYTE, MPI_COMM_WORLD),
            "MPI_Allgather");
    }
    unsigned long long staged() const
    {
        return variables_.read("staging_hits") + variables_.read("staging_misses");
    }
    void check_staging(unsigned long long before)
    {
        const unsigned long long count = staged() - before;
        session_.check((count > 0) == is_staged_, "hier has staged %llu buffers", count);
    }
    void check_result(const Blocks& blocks, std::span<const unsigned char> receive, int call)
    {
        std::vector<unsigned char> right(receive.size(), untouched);
        for (int rank = 0; rank < session_.size(); rank++) {
            const auto i = static_cast<std::size_t>(rank);
            Pattern(rank, call)
                .fill(right.data() + blocks.displacements[i],
                      static_cast<std::size_t>(blocks.items[i]));
        }
        const auto wrong = std::mismatch(receive.begin(), receive.end(), right.begin()).first;
        session_.check(wrong == receive.end(), "byte %td is wrong", wrong - receive.begin());
    }

    Session& session_;
    Variables variables_;
    int bytes_;
    bool is_staged_;
    LowMemory memory_;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "displaced", {"expect", "bytes", "blocks"});
    {
        Displaced calls(session);
        int call = 0;
        for (const bool are_equal : {true, false}) {
            for (const bool in_place : {false, true}) {
                if (are_equal || session.text("blocks", "all") == "all")
                    calls.gather(call++, are_equal, in_place);
            }
        }
        calls.gather_with_gaps(call);
    }
    return session.finish();
}
