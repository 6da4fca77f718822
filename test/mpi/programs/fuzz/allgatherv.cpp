// SPDX-License-Identifier: BSD-3-Clause
// One MPI_Allgatherv. The bytes of each rank, the signature and in-place are equal on all ranks;
// displacements, memory and alignment are each rank's own, and where hier serves all calls the
// datatypes, too.
#include "kinds.hpp"
#include "opinion.hpp"
#include "shares.hpp"
#include "sizes.hpp"

#include <optional>

namespace hier_test::fuzz {

namespace {

struct Shape {
    Signature signature;
    Shares shares;
    bool has_items;  // where there are no bytes at all
    bool in_place;
    int asked_root;                        // of the second opinion; -1: none
    std::uint64_t types_of_all;            // a seed
    std::optional<std::uint64_t> placing;  // a seed, if all ranks place the blocks alike

    std::size_t bytes_of(int rank) const { return shares.units_of(rank) * signature.unit_bytes; }
    std::vector<std::size_t> sizes() const
    {
        std::vector<std::size_t> all;
        for (int rank = 0; rank < static_cast<int>(shares.quanta.size()); ++rank) {
            all.push_back(bytes_of(rank));
        }
        return all;
    }
};

Shape draw_shape(Random& common, const Setting& setting)
{
    Shape shape{};
    const int ranks = size_of(setting.comm);
    const std::size_t bytes = draw_bytes(common, ranks, setting.largest);
    shape.signature = draw_signature(common);
    const std::size_t unit = shape.signature.unit_bytes;
    shape.shares = draw_shares(common, ranks, bytes / unit, setting.largest / unit);
    // Stock modules of Open MPI 4.1 stumble over items without bytes.
    shape.has_items = common.one_in(2) && setting.own_types;
    shape.in_place = common.one_in(4);
    const bool is_small = shape.shares.total() * shape.shares.quantum * unit < max_opinion_bytes;
    const int root = common.number_below(ranks);
    shape.asked_root = common.one_in(2) && is_small ? root : -1;
    shape.types_of_all = common.next();
    const std::uint64_t placing = common.next();
    if (common.one_in(3)) shape.placing = placing;
    return shape;
}

// A quantum, for a buffer of all blocks.
Form draw_form_of(const Shape& shape, Random& types)
{
    return shape.shares.total() > 0
               ? draw_form(types, shape.signature, shape.shares.quantum, room_for(shape.shares))
               : draw_empty_form(types, shape.signature, shape.has_items);
}

// Without bytes each block has the items of the form, which are empty.
Blocks place_blocks(const Shape& shape, const Form& form, Random& random)
{
    Shares shares = shape.shares;
    if (shares.total() == 0) std::fill(shares.quanta.begin(), shares.quanta.end(), 1UL);
    return draw_blocks(random, shares, form);
}

// Where a stock module may serve, all ranks send items of one type. Open MPI 4.1's coll/tuned
// chooses an algorithm by the size of the sender's items, so ranks with other types would not
// choose alike.
Form draw_send_form(const Shape& shape, const Setting& setting, Random& types)
{
    const int rank = rank_of(setting.comm);
    const std::size_t units = shape.shares.units_of(rank);
    if (setting.own_types && units > 0 && types.one_in(2)) {
        return draw_form(types, shape.signature, units, 1);
    }
    Form form = draw_form_of(shape, types);
    if (shape.shares.total() > 0) {
        form.items *= static_cast<int>(shape.shares.quanta[static_cast<std::size_t>(rank)]);
    }
    return form;
}

}  // namespace

std::unique_ptr<Operation> draw_allgatherv(const Setting& setting, Random& common, Random& local)
{
    const Shape shape = draw_shape(common, setting);
    Random types(setting.own_types ? local.next() : shape.types_of_all);
    const Form form = draw_form_of(shape, types);
    Random places(shape.placing.value_or(local.next()));
    auto receive = std::make_unique<TypedBuffer>(setting.arena, form.layout,
                                                 place_blocks(shape, form, places), local);
    std::unique_ptr<TypedBuffer> send;
    if (!shape.in_place) {
        send = std::make_unique<TypedBuffer>(setting.arena, draw_send_form(shape, setting, types),
                                             1, local);
    }
    auto operation =
        std::make_unique<Operation>(CountedCollective::allgatherv, setting.comm, shape.sizes(),
                                    std::move(receive), std::move(send));
    operation->ask(shape.asked_root);
    operation->name_shape(shape.shares.name);
    return operation;
}

Outcome run_allgatherv(const Setting& setting, Random& common, Random& local)
{
    return run_alone(*draw_allgatherv(setting, common, local), setting);
}

}  // namespace hier_test::fuzz
