// SPDX-License-Identifier: BSD-3-Clause
// Derived datatypes, each with a list of the places of its bytes.
//
// A test must not ask MPI where the bytes of a datatype are, since that is what it tests. So each constructor here
// makes two things: the MPI datatype, and the list of byte ranges in the order of the signature, by the rules of the
// standard. The test compares the bounds of both.
#pragma once

#include "blocks.hpp"
#include "support.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hier_test {

struct Range {
    std::ptrdiff_t offset;
    std::size_t bytes;
};

class Layout {
public:
    std::string name;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<Range> ranges;  // of one item, from the item's origin
    std::ptrdiff_t lower = 0;
    std::ptrdiff_t upper = 0;

    std::ptrdiff_t extent() const { return upper - lower; }

    static Layout basic(MPI_Datatype type, std::size_t bytes)
    {
        Layout layout;
        layout.type = type;
        layout.ranges = {{0, bytes}};
        layout.upper = static_cast<std::ptrdiff_t>(bytes);
        return layout;
    }

    static Layout contiguous(int count, const Layout& inner)
    {
        Layout layout;
        MPI_Type_contiguous(count, inner.type, &layout.type);
        layout.place_all(count, inner.extent(), 0, inner);
        return layout.done();
    }

    static Layout vector(int count, int length, int stride, const Layout& inner)
    {
        Layout layout;
        MPI_Type_vector(count, length, stride, inner.type, &layout.type);
        for (int i = 0; i < count; ++i) {
            layout.place_all(length, inner.extent(), 1L * i * stride * inner.extent(), inner);
        }
        return layout.done();
    }

    // Each pair has a number of items and their place in bytes.
    static Layout indexed(const std::vector<std::pair<int, MPI_Aint>>& parts, const Layout& inner)
    {
        Layout layout;
        std::vector<int> lengths;
        std::vector<MPI_Aint> places;
        for (const auto& [length, place] : parts) {
            lengths.push_back(length);
            places.push_back(place);
            layout.place_all(length, inner.extent(), place, inner);
        }
        MPI_Type_create_hindexed(static_cast<int>(parts.size()), lengths.data(), places.data(),
                                 inner.type, &layout.type);
        return layout.done();
    }

    // Like indexed, but each part has a type of its own. MPI may pad the end of a structure like a compiler, so this
    // always sets the bounds to those of the parts.
    static Layout structure(const std::vector<std::pair<Layout, MPI_Aint>>& parts)
    {
        Layout layout;
        std::vector<int> lengths;
        std::vector<MPI_Aint> places;
        std::vector<MPI_Datatype> types;
        for (const auto& [part, place] : parts) {
            lengths.push_back(1);
            places.push_back(place);
            types.push_back(part.type);
            layout.place_all(1, 0, place, part);
        }
        MPI_Type_create_struct(static_cast<int>(parts.size()), lengths.data(), places.data(),
                               types.data(), &layout.type);
        Layout result = resized(layout.lower, layout.extent(), layout);
        MPI_Type_free(&layout.type);
        return result;
    }

    static Layout resized(std::ptrdiff_t lower, std::ptrdiff_t extent, const Layout& inner)
    {
        Layout layout = inner;
        MPI_Type_create_resized(inner.type, lower, extent, &layout.type);
        layout.lower = lower;
        layout.upper = lower + extent;
        return layout.done();
    }

    Layout called(const char* text) const
    {
        Layout layout = *this;
        layout.name = text;
        return layout;
    }

    // The same type with the buffer's address in it, for use with MPI_BOTTOM.
    MPI_Datatype absolute(const unsigned char* origin) const
    {
        MPI_Aint address = 0;
        MPI_Get_address(origin, &address);
        const int one = 1;
        MPI_Datatype result;
        MPI_Type_create_hindexed(1, &one, &address, type, &result);
        MPI_Type_commit(&result);
        return result;
    }

    bool bounds_agree() const
    {
        MPI_Aint mpi_lower = 0;
        MPI_Aint mpi_extent = 0;
        MPI_Type_get_extent(type, &mpi_lower, &mpi_extent);
        return mpi_lower == lower && mpi_extent == extent();
    }

private:
    void place_all(int count, std::ptrdiff_t step, std::ptrdiff_t from, const Layout& inner)
    {
        for (int i = 0; i < count; ++i) {
            const std::ptrdiff_t at = from + i * step;
            if (lower == 0 && upper == 0 && ranges.empty()) {
                lower = at + inner.lower;
                upper = at + inner.upper;
            }
            lower = std::min(lower, at + inner.lower);
            upper = std::max(upper, at + inner.upper);
            for (const Range& range : inner.ranges) {
                append({at + range.offset, range.bytes});
            }
        }
    }

    // Ranges that follow one another in the signature and in memory are one range.
    void append(const Range& range)
    {
        if (!ranges.empty() &&
            ranges.back().offset + static_cast<std::ptrdiff_t>(ranges.back().bytes) ==
                range.offset) {
            ranges.back().bytes += range.bytes;
        } else {
            ranges.push_back(range);
        }
    }

    // The last copy of a layout frees its type, unless MPI has ended.
    Layout& done()
    {
        MPI_Type_commit(&type);
        owner_ = std::shared_ptr<void>(nullptr, [made = type](void*) mutable {
            int is_over = 0;
            MPI_Finalized(&is_over);
            if (is_over == 0) {
                MPI_Type_free(&made);
            }
        });
        return *this;
    }

    std::shared_ptr<void> owner_;
};

// A buffer of one block for each rank.
class Placement {
public:
    // The same number of items in each block, one block behind the other.
    Placement(const Layout& layout, int items, int blocks)
        : Placement(layout, Blocks::equal(items, blocks))
    {
    }

    // Blocks without items take no memory, wherever they are.
    Placement(const Layout& layout, Blocks blocks) : layout_(layout), blocks_(std::move(blocks))
    {
        bool is_first = true;
        for (std::size_t block = 0; block < blocks_.items.size(); ++block) {
            if (blocks_.items[block] == 0) continue;
            const std::ptrdiff_t begin = start(block);
            const std::ptrdiff_t last_item = begin + (blocks_.items[block] - 1) * layout.extent();
            for (const Range& range : layout.ranges) {
                const std::ptrdiff_t low = std::min(begin, last_item) + range.offset;
                const std::ptrdiff_t high = std::max(begin, last_item) + end_of(range);
                first_ = is_first ? low : std::min(first_, low);
                last_ = is_first ? high : std::max(last_, high);
                is_first = false;
            }
        }
    }

    std::size_t span() const { return static_cast<std::size_t>(last_ - first_); }
    const Blocks& blocks() const { return blocks_; }

    // The buffer argument of the call, for memory of span() bytes.
    unsigned char* origin(unsigned char* memory) const { return memory - first_; }
    // The same for a block alone.
    unsigned char* origin_of(int block, unsigned char* memory) const
    {
        return origin(memory) + start(static_cast<std::size_t>(block));
    }

    // Writes the bytes of a block to their places in memory of span() bytes. They come in the order of the signature.
    void scatter(int block, const std::vector<unsigned char>& packed, unsigned char* memory) const
    {
        if (packed.empty()) {
            return;
        }
        unsigned char* const to = origin_of(block, memory);
        if (is_dense()) {
            std::memcpy(to + layout_.lower, packed.data(), packed.size());
            return;
        }
        std::size_t taken = 0;
        for (int item = 0; item < blocks_.items[static_cast<std::size_t>(block)]; ++item) {
            for (const Range& range : layout_.ranges) {
                std::memcpy(to + item * layout_.extent() + range.offset, packed.data() + taken,
                            range.bytes);
                taken += range.bytes;
            }
        }
    }

    // The block and the position in it, in the order of the signature, that a byte of the memory belongs to.
    struct Place {
        int block;
        std::size_t position;
    };
    std::optional<Place> locate(std::size_t byte) const
    {
        for (std::size_t block = 0; block < blocks_.items.size(); ++block) {
            std::size_t before = 0;
            for (const Range& range : layout_.ranges) {
                const std::ptrdiff_t inside =
                    static_cast<std::ptrdiff_t>(byte) + first_ - start(block) - range.offset;
                const std::ptrdiff_t item = layout_.extent() > 0 ? inside / layout_.extent() : 0;
                const std::ptrdiff_t rest = inside - item * layout_.extent();
                if (inside >= 0 && item < blocks_.items[block] &&
                    rest < static_cast<std::ptrdiff_t>(range.bytes)) {
                    return Place{static_cast<int>(block),
                                 static_cast<std::size_t>(item) * bytes_of_item() + before +
                                     static_cast<std::size_t>(rest)};
                }
                before += range.bytes;
            }
        }
        return std::nullopt;
    }

private:
    static std::ptrdiff_t end_of(const Range& range)
    {
        return range.offset + static_cast<std::ptrdiff_t>(range.bytes);
    }

    std::size_t bytes_of_item() const
    {
        std::size_t bytes = 0;
        for (const Range& range : layout_.ranges) {
            bytes += range.bytes;
        }
        return bytes;
    }

    std::ptrdiff_t start(std::size_t block) const
    {
        return blocks_.displacements[block] * layout_.extent();
    }

    // No gaps between the bytes of neighbouring items.
    bool is_dense() const
    {
        return layout_.ranges.size() == 1 && layout_.ranges.front().offset == layout_.lower &&
               static_cast<std::ptrdiff_t>(layout_.ranges.front().bytes) == layout_.extent();
    }

    const Layout& layout_;
    Blocks blocks_;
    std::ptrdiff_t first_ = 0;
    std::ptrdiff_t last_ = 0;
};

}  // namespace hier_test
