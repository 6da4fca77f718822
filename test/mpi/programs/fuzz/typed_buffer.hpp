// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "arena.hpp"
#include "types.hpp"

namespace hier_test::fuzz {

// A buffer argument: blocks of items in memory of some kind, at some alignment, between guards. It
// has an image in ordinary memory of what the whole memory should hold: poison, but for the blocks
// that were put.
class TypedBuffer {
public:
    TypedBuffer(Arena& arena, Layout layout, Blocks blocks, Random& local);
    // Equal blocks, one behind the other.
    TypedBuffer(Arena& arena, const Form& form, int blocks, Random& local)
        : TypedBuffer(arena, form.layout, Blocks::equal(form.items, blocks), local)
    {
    }
    ~TypedBuffer();
    TypedBuffer(const TypedBuffer&) = delete;
    TypedBuffer& operator=(const TypedBuffer&) = delete;

    // Puts a block into the image alone. The bytes come in the order of the signature.
    void put(int block, const Content& packed);
    // Copies the image to the memory.
    void upload();
    // Makes the image poison again, or image and memory.
    void clear_image();
    void clear();
    // Compares the memory with the image. Returns what differs first, or "". It does not look at
    // the bytes of one block.
    std::string difference(int ignored_block = -1);
    // Changes one byte of the memory: one before the buffer, or the first one of a block, in a gap
    // or behind the buffer. False: there is none.
    enum class Spot { before, block, gap, behind };
    bool corrupt(Spot where = Spot::before);

    // The arguments of MPI calls. Where the type has absolute addresses, the address is MPI_BOTTOM.
    void* address();
    int count() const { return blocks().items.front(); }  // where blocks are equal
    const Blocks& blocks() const { return placement_.blocks(); }
    MPI_Datatype type() const;
    // Packs a block of the image, for MPI calls that must not see other memory.
    void pack_image(int block, Content& packed, MPI_Comm comm) const;

    std::string text() const;

private:
    bool is_in_block(std::size_t byte, int block) const;
    Spot spot_of(std::size_t byte) const;
    std::string place_of(std::size_t byte) const;

    static constexpr std::size_t guard = 128;
    Layout layout_;
    Placement placement_;
    std::size_t misalignment_;
    Arena::Loan memory_;
    Content image_;
    MPI_Datatype absolute_ = MPI_DATATYPE_NULL;
};

}  // namespace hier_test::fuzz
