// SPDX-License-Identifier: BSD-3-Clause
// Buffers whose counts or displacements an int cannot hold, for the program large_counts.
#pragma once

#include "address_space.hpp"
#include "test/mpi/lib/large_counts.hpp"

#include <functional>

namespace hier_test {

inline constexpr std::size_t page = 4096;
inline constexpr std::size_t beyond_int = std::size_t{1} << 31;

// One allgather, for any number of calls. Each call has contents of its own.
struct Test {
    const char* name;
    CountedCollective collective;
    LargeArguments arguments;
    std::function<void(int pattern)> fill;
    std::function<void(int pattern)> check;
    bool has_bytes = true;
};

// Blocks that are small and lie far from each other. Rank 0's lies before the buffer's address, if there are more ranks.
class FarBlocks {
public:
    // Items of `item` bytes, one every `extent` bytes.
    FarBlocks(Session& session, MPI_Datatype basic, std::size_t item, std::size_t extent,
              bool in_place)
        : session_(session), item_(item), extent_(extent), in_place_(in_place),
          stride_((beyond_int + 4099) * extent), ranks_(static_cast<std::size_t>(session.size())),
          memory_(session, stride_ * ranks_ + block_bytes() + 2 * page)
    {
        MPI_Type_create_resized(basic, 0, static_cast<MPI_Aint>(extent), &type_);
        MPI_Type_commit(&type_);
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            counts_.push_back(static_cast<MPI_Count>(items_of(rank)));
            displacements_.push_back(
                (static_cast<MPI_Aint>(rank) - static_cast<MPI_Aint>(ranks_ / 2)) *
                static_cast<MPI_Aint>(beyond_int + 4099));
        }
        sent_.resize(items_of(own()) * item);
        test_ = {extent == item ? "far displacements" : "far displacements of items with gaps",
                 CountedCollective::allgatherv,
                 {in_place ? MPI_IN_PLACE : sent_.data(), counts_[own()], basic,
                  place_of(ranks_ / 2), counts_, displacements_, type_},
                 [this](int pattern) { fill(pattern); },
                 [this](int pattern) { check(pattern); }};
    }
    ~FarBlocks() { MPI_Type_free(&type_); }
    FarBlocks(const FarBlocks&) = delete;
    FarBlocks(FarBlocks&&) = delete;
    FarBlocks& operator=(const FarBlocks&) = delete;
    FarBlocks& operator=(FarBlocks&&) = delete;

    const Test& test() const { return test_; }

private:
    static std::size_t items_of(std::size_t rank) { return 5003 + 1001 * rank; }
    std::size_t own() const { return static_cast<std::size_t>(session_.rank()); }
    std::size_t block_bytes() const { return items_of(ranks_) * extent_; }
    unsigned char* place_of(std::size_t rank) { return memory_.at(page + rank * stride_); }

    // The block as it lies in memory, with zeros between the items.
    std::vector<unsigned char> image(std::size_t rank, int pattern) const
    {
        const auto packed = Pattern(static_cast<int>(rank), pattern).bytes(items_of(rank) * item_);
        std::vector<unsigned char> image(items_of(rank) * extent_);
        for (std::size_t i = 0; i < items_of(rank); ++i) {
            std::memcpy(image.data() + i * extent_, packed.data() + i * item_, item_);
        }
        return image;
    }

    void fill(int pattern)
    {
        memory_.clear();
        if (in_place_) {
            const auto mine = image(own(), pattern);
            std::memcpy(place_of(own()), mine.data(), mine.size());
        } else {
            Pattern(session_.rank(), pattern).fill(sent_.data(), sent_.size());
        }
    }

    void check(int pattern)
    {
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            const auto wanted = image(rank, pattern);
            const unsigned char* const got = place_of(rank);
            const auto is_zero = [](unsigned char byte) { return byte == 0; };
            session_.check(std::equal(wanted.begin(), wanted.end(), got), "%s: block of rank %zu",
                           test_.name, rank);
            session_.check(
                std::all_of(got - page, got, is_zero) &&
                    std::all_of(got + wanted.size(), got + wanted.size() + page, is_zero),
                "%s: bytes beside the block of rank %zu", test_.name, rank);
        }
    }

    Session& session_;
    std::size_t item_, extent_;
    bool in_place_;
    std::size_t stride_, ranks_;
    AddressSpace memory_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    std::vector<MPI_Count> counts_;
    std::vector<MPI_Aint> displacements_;
    std::vector<unsigned char> sent_;
    Test test_;
};

// Blocks of many bytes. All but the last page of a block repeat the same memory, and the last page is
// beyond 2^31 bytes.
class LargeBlocks {
public:
    LargeBlocks(Session& session, CountedCollective collective, std::size_t bytes, bool in_place)
        : session_(session), block_(bytes + page), in_place_(in_place),
          ranks_(static_cast<std::size_t>(session.size())), receive_(session, block_ * ranks_),
          send_(session, block_)
    {
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            receive_.repeat(rank * block_, rank * block_ + bytes, unit);
        }
        send_.repeat(0, bytes, unit);
        const auto count = static_cast<MPI_Count>(block_);
        std::vector<MPI_Aint> displacements;
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            displacements.push_back(static_cast<MPI_Aint>(rank * block_));
        }
        test_ = {"large blocks",
                 collective,
                 {in_place ? MPI_IN_PLACE : send_.at(0), count, MPI_BYTE, receive_.at(0),
                  std::vector<MPI_Count>(ranks_, count), displacements, MPI_BYTE},
                 [this](int pattern) { fill(pattern); },
                 [this](int pattern) { check(pattern); }};
    }

    const Test& test() const { return test_; }

private:
    static constexpr std::size_t unit = std::size_t{1} << 20;
    std::size_t own() const { return static_cast<std::size_t>(session_.rank()); }
    std::size_t last() const { return block_ - page; }

    void fill(int pattern)
    {
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            unsigned char* const block = receive_.at(rank * block_);
            std::memset(block, poison, unit);
            std::memset(block + last(), poison, page);
        }
        unsigned char* const from = in_place_ ? receive_.at(own() * block_) : send_.at(0);
        Pattern(session_.rank(), pattern).fill(from, unit);
        Pattern(session_.rank(), -pattern).fill(from + last(), page);
    }

    void check(int pattern)
    {
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            const unsigned char* const block = receive_.at(rank * block_);
            const int from = static_cast<int>(rank);
            session_.check(!Pattern(from, pattern).mismatch(block, unit) &&
                               !Pattern(from, -pattern).mismatch(block + last(), page),
                           "large blocks: block of rank %d", from);
        }
    }

    Session& session_;
    std::size_t block_;
    bool in_place_;
    std::size_t ranks_;
    AddressSpace receive_, send_;
    Test test_;
};

}  // namespace hier_test
