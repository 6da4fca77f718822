// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "arena.hpp"
#include "types.hpp"

namespace hier_test::fuzz {

// A buffer argument: blocks of a form in memory of some kind, at some alignment, between guards. It has an image in
// ordinary memory of what the whole memory should hold: poison, but for the blocks that were put.
class TypedBuffer {
public:
    TypedBuffer(Arena& arena, Form form, int blocks, Random& local);
    ~TypedBuffer();
    TypedBuffer(const TypedBuffer&) = delete;
    TypedBuffer& operator=(const TypedBuffer&) = delete;

    // Puts a block into the image alone. The bytes come in the order of the signature.
    void put(int block, const Content& packed);
    // Copies the image to the memory.
    void upload();
    // Compares the memory with the image. Returns what differs first, or "".
    std::string difference();
    // Changes one byte of the memory.
    void corrupt();

    // The arguments of MPI calls. Where the type has absolute addresses, the address is MPI_BOTTOM.
    void* address();
    int count() const { return form_.items; }
    MPI_Datatype type() const;
    // A block of the image, for MPI calls that must not see other memory.
    const void* image(int block) const;
    const Form& form() const { return form_; }

    std::string text() const;

private:
    std::string place_of(std::size_t byte) const;

    static constexpr std::size_t guard = 128;
    Form form_;
    Placement placement_;
    std::size_t misalignment_;
    Arena::Loan memory_;
    Content image_;
    MPI_Datatype absolute_ = MPI_DATATYPE_NULL;
};

}  // namespace hier_test::fuzz
