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

class Allgatherv {
public:
    Allgatherv(const Setting& setting, Shape shape, Random& local)
        : setting_(setting), shape_(std::move(shape)), ranks_(size_of(setting.comm)),
          rank_(rank_of(setting.comm)),
          types_(setting.own_types ? local.next() : shape_.types_of_all),
          receive_form_(draw_form_of(shape_, types_)),
          places_(shape_.placing.value_or(local.next())),
          receive_(setting.arena, receive_form_.layout,
                   place_blocks(shape_, receive_form_, places_), local)
    {
        const Content mine = content_of(rank_);
        if (shape_.in_place) {
            receive_.put(rank_, mine);
        } else {
            send_.emplace(setting.arena, send_form(), 1, local);
            send_->put(0, mine);
            send_->upload();
        }
        receive_.upload();
    }

    std::string text() const
    {
        std::string sizes;
        for (const std::size_t size : shape_.sizes()) {
            sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
        }
        return std::string("allgatherv (") + shape_.shares.name + ") of " + sizes + " bytes on " +
               std::to_string(ranks_) + " ranks, " + (send_ ? send_->text() : "in place") + " to " +
               receive_.text();
    }

    int call()
    {
        const Blocks& to = receive_.blocks();
        return send_ ? MPI_Allgatherv(send_->address(), send_->count(), send_->type(),
                                      receive_.address(), to.items.data(), to.displacements.data(),
                                      receive_.type(), setting_.comm)
                     : MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive_.address(),
                                      to.items.data(), to.displacements.data(), receive_.type(),
                                      setting_.comm);
    }

    // What is wrong after the call, or "".
    std::string check()
    {
        if (setting_.is_corrupt) receive_.corrupt();
        const std::string opinion =
            shape_.asked_root < 0
                ? ""
                : second_opinion(setting_.comm, send_ ? *send_ : receive_, send_ ? 0 : rank_,
                                 shape_.sizes(), shape_.asked_root, setting_.drawn.pattern());
        for (int rank = 0; rank < ranks_; ++rank) {
            receive_.put(rank, content_of(rank));
        }
        const std::string received = receive_.difference();
        const std::string sent = send_ ? send_->difference() : "";
        return !received.empty() ? "receive buffer, " + received
               : !sent.empty()   ? "send buffer, " + sent
                                 : opinion;
    }

private:
    Content content_of(int rank) const
    {
        return Pattern(rank, setting_.drawn.pattern()).bytes(shape_.bytes_of(rank));
    }

    // Where a stock module may serve, all ranks send items of one type. Open MPI 4.1's coll/tuned
    // chooses an algorithm by the size of the sender's items, so ranks with other types would not
    // choose alike.
    Form send_form()
    {
        const std::size_t units = shape_.shares.units_of(rank_);
        if (setting_.own_types && units > 0 && types_.one_in(2)) {
            return draw_form(types_, shape_.signature, units, 1);
        }
        Form form = draw_form_of(shape_, types_);
        if (shape_.shares.total() > 0) {
            form.items *= static_cast<int>(shape_.shares.quanta[static_cast<std::size_t>(rank_)]);
        }
        return form;
    }

    const Setting& setting_;
    Shape shape_;
    int ranks_;
    int rank_;
    Random types_;
    Form receive_form_;
    Random places_;
    TypedBuffer receive_;
    std::optional<TypedBuffer> send_;
};

}  // namespace

Outcome run_allgatherv(const Setting& setting, Random& common, Random& local)
{
    Shape shape = draw_shape(common, setting);
    const bool is_empty = shape.shares.total() == 0;
    Allgatherv allgatherv(setting, std::move(shape), local);
    Outcome outcome;
    outcome.text = allgatherv.text();
    outcome.status = allgatherv.call();
    if (outcome.status == MPI_SUCCESS) outcome.difference = allgatherv.check();
    outcome.calls = size_of(setting.comm) > 1 && !is_empty;
    return outcome;
}

}  // namespace hier_test::fuzz
