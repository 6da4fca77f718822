// SPDX-License-Identifier: BSD-3-Clause
// One MPI_Allgather. Sizes, signature and in-place are equal on all ranks; datatypes, memory and alignment are each rank's
// own.
#include "kinds.hpp"
#include "opinion.hpp"
#include "sizes.hpp"

namespace hier_test::fuzz {

namespace {

struct Shape {
    Signature signature;
    std::size_t units;
    bool has_items;  // where there are no units
    bool in_place;
    int asked_root;  // of the second opinion; -1: none

    std::size_t bytes() const { return units * signature.unit_bytes; }
};

Shape draw_shape(Random& common, const Setting& setting)
{
    Shape shape{};
    const int ranks = size_of(setting.comm);
    const std::size_t bytes = draw_bytes(common, ranks, setting.largest);
    shape.signature = draw_signature(common);
    shape.units = bytes / shape.signature.unit_bytes;
    // Stock modules of Open MPI 4.1 stumble over items without bytes.
    shape.has_items = common.one_in(2) && setting.own_types;
    shape.in_place = common.one_in(4);
    const bool asks =
        common.one_in(2) && bytes * static_cast<std::size_t>(ranks) < max_opinion_bytes;
    shape.asked_root = asks ? common.number_below(ranks) : -1;
    return shape;
}

Form draw_form_of(const Shape& shape, Random& local, int ranks)
{
    return shape.units > 0 ? draw_form(local, shape.signature, shape.units, ranks)
                           : draw_empty_form(local, shape.signature, shape.has_items);
}

}  // namespace

std::unique_ptr<Operation> draw_allgather(const Setting& setting, Random& common, Random& local)
{
    const int ranks = size_of(setting.comm);
    const Shape shape = draw_shape(common, setting);
    const auto draw_buffer = [&](int blocks) {
        return std::make_unique<TypedBuffer>(setting.arena, draw_form_of(shape, local, ranks),
                                             blocks, local);
    };
    auto receive = draw_buffer(ranks);
    auto send = shape.in_place ? nullptr : draw_buffer(1);
    auto operation = std::make_unique<Operation>(
        CountedCollective::allgather, setting.comm,
        std::vector<std::size_t>(static_cast<std::size_t>(ranks), shape.bytes()),
        std::move(receive), std::move(send));
    operation->ask(shape.asked_root);
    return operation;
}

Outcome run_allgather(const Setting& setting, Random& common, Random& local)
{
    return run_alone(*draw_allgather(setting, common, local), setting);
}

}  // namespace hier_test::fuzz
