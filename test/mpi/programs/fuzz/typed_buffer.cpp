// SPDX-License-Identifier: BSD-3-Clause
#include "typed_buffer.hpp"

namespace hier_test::fuzz {

namespace {

std::size_t draw_misalignment(Random& local)
{
    return local.one_in(2) ? 0 : local.one_in(2) ? 8 * local.between(1, 16) : local.between(1, 63);
}

}  // namespace

TypedBuffer::TypedBuffer(Arena& arena, Form form, int blocks, Random& local)
    : form_(std::move(form)), placement_(form_.layout, form_.items, blocks),
      misalignment_(draw_misalignment(local)),
      memory_(arena.borrow(draw_kind(local), misalignment_ + 2 * guard + placement_.span())),
      image_(2 * guard + placement_.span(), poison)
{
    if (local.one_in(8)) {
        absolute_ =
            form_.layout.absolute(placement_.origin(memory_->data() + misalignment_ + guard));
    }
}

TypedBuffer::~TypedBuffer()
{
    if (absolute_ != MPI_DATATYPE_NULL) MPI_Type_free(&absolute_);
}

void TypedBuffer::put(int block, const Content& packed)
{
    placement_.scatter(block, packed, image_.data() + guard);
}

void TypedBuffer::upload() { memory_->write(misalignment_, image_); }

std::string TypedBuffer::difference()
{
    const Content found = memory_->read(misalignment_, image_.size());
    if (found == image_) {
        return {};
    }
    std::size_t at = 0;
    while (found[at] == image_[at]) {
        ++at;
    }
    char bytes[80];
    std::snprintf(bytes, sizeof bytes, ": expected 0x%02x, found 0x%02x%s", image_[at], found[at],
                  found[at] == poison ? " (never written)" : "");
    return place_of(at) + bytes;
}

std::string TypedBuffer::place_of(std::size_t byte) const
{
    if (byte < guard) {
        return "byte " + std::to_string(guard - byte) + " before the buffer";
    }
    const std::size_t inside = byte - guard;
    if (inside >= placement_.span()) {
        return "byte " + std::to_string(inside - placement_.span()) + " behind the buffer";
    }
    const auto place = placement_.locate(inside);
    return "offset " + std::to_string(inside) + " of " + std::to_string(placement_.span()) +
           (place ? " (block " + std::to_string(place->block) + ", byte " +
                        std::to_string(place->position) + ")"
                  : " (in a gap)");
}

void TypedBuffer::corrupt()
{
    const std::size_t at = misalignment_ + guard / 2;
    Content byte = memory_->read(at, 1);
    byte[0] ^= 1;
    memory_->write(at, byte);
}

void* TypedBuffer::address()
{
    return absolute_ != MPI_DATATYPE_NULL
               ? MPI_BOTTOM
               : placement_.origin(memory_->data() + misalignment_ + guard);
}

MPI_Datatype TypedBuffer::type() const
{
    return absolute_ != MPI_DATATYPE_NULL ? absolute_ : form_.layout.type;
}

const void* TypedBuffer::image(int block) const
{
    return placement_.origin(const_cast<unsigned char*>(image_.data()) + guard) +
           1L * block * form_.items * form_.layout.extent();
}

std::string TypedBuffer::text() const
{
    return std::string(memory_->kind()) + " + " + std::to_string(misalignment_) + ", " +
           std::to_string(form_.items) + " x " + form_.layout.name +
           (absolute_ != MPI_DATATYPE_NULL ? " at absolute addresses" : "");
}

}  // namespace hier_test::fuzz
