// SPDX-License-Identifier: BSD-3-Clause
// What a call of MPI_Allgatherv gets and gives. A seed, the number of the call and the rank decide
// everything.
#pragma once

#include "shapes.hpp"
#include "test/mpi/programs/fuzz/typed_buffer.hpp"

#include <memory>

namespace hier_test {

struct Group {
    const char* name;
    MPI_Comm comm;
};

struct Call {
    int number;
    bool in_place;
    bool is_typed;      // items of 8 bytes, of another type on each rank
    const char* shape;  // of the counts
    Numbers items;      // of each rank
    Spread spread;

    static constexpr int record_bytes = 8;
    int item_bytes() const { return is_typed ? record_bytes : 1; }
    int items_of(int rank) const { return items[static_cast<std::size_t>(rank)]; }

    // What a rank sends, in the order of the signature. A wrong call has more items.
    fuzz::Content content(int rank) const { return content(rank, items_of(rank)); }
    fuzz::Content content(int rank, int items_sent) const
    {
        return Pattern(rank, number).bytes(static_cast<std::size_t>(items_sent * item_bytes()));
    }
};

// Makes calls, and each rank's buffers for them.
class CallMaker {
public:
    CallMaker(std::uint64_t seed, int rank)
        : seed_(seed), rank_(rank), arena_(mix(seed, static_cast<std::uint64_t>(rank))),
          shapes_(make_shapes(seed))
    {
    }

    const std::vector<Shape>& shapes() const { return shapes_; }
    const Shape& shape_called(const std::string& name) const
    {
        return *std::find_if(shapes_.begin(), shapes_.end(),
                             [&name](const Shape& shape) { return name == shape.name; });
    }

    Call make(const Group& group, const Shape& shape, int scale, Spread spread, bool in_place)
    {
        const int number = ++calls_;
        Call call{number,
                  in_place,
                  pick(seed_ + 3, key(number), 3) == 0,
                  shape.name,
                  shape.counts(size_of(group.comm), scale),
                  spread};
        for (int& items : call.items) {
            items = (items + call.item_bytes() - 1) / call.item_bytes();
        }
        return call;
    }

    // What this rank draws for itself.
    fuzz::Random local(const Call& call) const
    {
        return fuzz::Random(mix(mix(seed_, key(call.number)), key(rank_)));
    }

    std::unique_ptr<fuzz::TypedBuffer> receive_buffer(const Group& group, const Call& call,
                                                      fuzz::Random& local)
    {
        const std::uint64_t own = call.spread == Spread::differs ? key(rank_of(group.comm)) : 0;
        const std::uint64_t seed = mix(mix(seed_, key(call.number)), own);
        return std::make_unique<fuzz::TypedBuffer>(
            arena_, layout(call, local), spread_out(call.spread, call.items, seed), local);
    }

    // So many items with the content of this call.
    std::unique_ptr<fuzz::TypedBuffer> send_buffer(const Group& group, const Call& call, int items,
                                                   fuzz::Random& local)
    {
        auto buffer = std::make_unique<fuzz::TypedBuffer>(arena_, layout(call, local),
                                                          Blocks::equal(items, 1), local);
        buffer->put(0, call.content(rank_of(group.comm), items));
        buffer->upload();
        return buffer;
    }

    // Items without bytes.
    std::unique_ptr<fuzz::TypedBuffer> empty_send_buffer(fuzz::Random& local)
    {
        const Layout none = Layout::contiguous(0, Layout::basic(MPI_INT, sizeof(int)));
        return std::make_unique<fuzz::TypedBuffer>(arena_, none, Blocks::equal(5, 1), local);
    }

private:
    static std::uint64_t key(int number) { return static_cast<std::uint64_t>(number); }

    // All of them have the signature of two ints. Their sizes are equal, because Open MPI's
    // coll/tuned chooses its algorithm by the size of the sender's items, and all ranks have to
    // choose alike.
    static std::vector<Layout> make_records()
    {
        const Layout i = Layout::basic(MPI_INT, sizeof(int));
        const Layout two = Layout::contiguous(2, i);
        return {two.called("two ints"), Layout::resized(-4, 20, two).called("two ints with a gap"),
                Layout::indexed({{1, 4}, {1, 0}}, i).called("second int first"),
                Layout::structure({{i, 0}, {i, 12}}).called("two ints apart")};
    }

    Layout layout(const Call& call, fuzz::Random& local) const
    {
        return call.is_typed ? records_[local.below(static_cast<unsigned>(records_.size()))]
                             : Layout::basic(MPI_BYTE, 1).called("byte");
    }

    std::uint64_t seed_;
    int rank_;
    fuzz::Arena arena_;
    std::vector<Shape> shapes_;
    std::vector<Layout> records_ = make_records();
    int calls_ = 0;
};

}  // namespace hier_test
