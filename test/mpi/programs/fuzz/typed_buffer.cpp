// SPDX-License-Identifier: BSD-3-Clause
#include "typed_buffer.hpp"

namespace hier_test::fuzz {

namespace {

std::size_t draw_misalignment(Random& local)
{
    return local.one_in(2) ? 0 : local.one_in(2) ? 8 * local.between(1, 16) : local.between(1, 63);
}

// "3" for equal blocks without gaps, else all items and displacements.
std::string text_of(const Blocks& blocks)
{
    const int items = blocks.items.front();
    const Blocks equal = Blocks::equal(items, static_cast<int>(blocks.items.size()));
    return blocks.items == equal.items && blocks.displacements == equal.displacements
               ? std::to_string(items)
               : listed(blocks.items) + " at " + listed(blocks.displacements);
}

}  // namespace

TypedBuffer::TypedBuffer(Arena& arena, Layout layout, Blocks blocks, Random& local)
    : layout_(std::move(layout)), placement_(layout_, std::move(blocks)),
      misalignment_(draw_misalignment(local)),
      memory_(arena.borrow(draw_kind(local), misalignment_ + 2 * guard + placement_.span())),
      image_(2 * guard + placement_.span(), poison)
{
    if (local.one_in(8)) {
        absolute_ = layout_.absolute(placement_.origin(memory_->data() + misalignment_ + guard));
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

void TypedBuffer::clear_image() { std::fill(image_.begin(), image_.end(), poison); }

void TypedBuffer::clear()
{
    clear_image();
    upload();
}

std::string TypedBuffer::difference(int ignored_block)
{
    const Content found = memory_->read(misalignment_, image_.size());
    if (found == image_) return {};
    std::size_t at = 0;
    while (at < found.size() &&
           (found[at] == image_[at] || (ignored_block >= 0 && is_in_block(at, ignored_block)))) {
        ++at;
    }
    if (at == found.size()) return {};
    char bytes[80];
    std::snprintf(bytes, sizeof bytes, ": expected 0x%02x, found 0x%02x%s", image_[at], found[at],
                  found[at] == poison ? " (never written)" : "");
    return place_of(at) + bytes;
}

bool TypedBuffer::is_in_block(std::size_t byte, int block) const
{
    return spot_of(byte) == Spot::block && placement_.locate(byte - guard)->block == block;
}

TypedBuffer::Spot TypedBuffer::spot_of(std::size_t byte) const
{
    return byte < guard                        ? Spot::before
           : byte >= guard + placement_.span() ? Spot::behind
           : placement_.locate(byte - guard)   ? Spot::block
                                               : Spot::gap;
}

std::string TypedBuffer::place_of(std::size_t byte) const
{
    const Spot spot = spot_of(byte);
    const std::size_t inside = byte - guard;
    if (spot == Spot::before) {
        return "byte " + std::to_string(guard - byte) + " before the buffer";
    }
    if (spot == Spot::behind) {
        return "byte " + std::to_string(inside - placement_.span()) + " behind the buffer";
    }
    const auto place = placement_.locate(inside);
    return "offset " + std::to_string(inside) + " of " + std::to_string(placement_.span()) +
           (place ? " (block " + std::to_string(place->block) + ", byte " +
                        std::to_string(place->position) + ")"
                  : " (in a gap)");
}

bool TypedBuffer::corrupt(Spot where)
{
    std::size_t byte = guard / 2;
    while (byte < image_.size() && spot_of(byte) != where) {
        ++byte;
    }
    if (byte == image_.size()) {
        return false;
    }
    Content one = memory_->read(misalignment_ + byte, 1);
    one[0] ^= 1;
    memory_->write(misalignment_ + byte, one);
    return true;
}

void* TypedBuffer::address()
{
    return absolute_ != MPI_DATATYPE_NULL
               ? MPI_BOTTOM
               : placement_.origin(memory_->data() + misalignment_ + guard);
}

MPI_Datatype TypedBuffer::type() const
{
    return absolute_ != MPI_DATATYPE_NULL ? absolute_ : layout_.type;
}

void TypedBuffer::pack_image(int block, Content& packed, MPI_Comm comm) const
{
    int position = 0;
    const unsigned char* from =
        placement_.origin_of(block, const_cast<unsigned char*>(image_.data()) + guard);
    MPI_Pack(from, blocks().items[static_cast<std::size_t>(block)], layout_.type, packed.data(),
             static_cast<int>(packed.size()), &position, comm);
}

std::string TypedBuffer::text() const
{
    return std::string(memory_->kind()) + " + " + std::to_string(misalignment_) + ", " +
           text_of(blocks()) + " x " + layout_.name +
           (absolute_ != MPI_DATATYPE_NULL ? " at absolute addresses" : "");
}

}  // namespace hier_test::fuzz
