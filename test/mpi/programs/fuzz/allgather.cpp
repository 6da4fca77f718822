// SPDX-License-Identifier: BSD-3-Clause
// One MPI_Allgather. Sizes, signature and in-place are equal on all ranks; datatypes, memory and alignment are each rank's
// own.
#include "kinds.hpp"
#include "opinion.hpp"
#include "sizes.hpp"

#include <optional>

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

Shape draw_shape(Random& common, int ranks, std::size_t largest)
{
    Shape shape{};
    const std::size_t bytes = draw_bytes(common, ranks, largest);
    shape.signature = draw_signature(common);
    shape.units = bytes / shape.signature.unit_bytes;
    shape.has_items = common.one_in(2);
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

class Allgather {
public:
    Allgather(const Setting& setting, Shape shape, Random& local)
        : setting_(setting), shape_(std::move(shape)), ranks_(size_of(setting.comm)),
          rank_(rank_of(setting.comm)),
          receive_(setting.arena, draw_form_of(shape_, local, ranks_), ranks_, local)
    {
        const Content mine = Pattern(rank_, setting.drawn.pattern()).bytes(shape_.bytes());
        if (shape_.in_place) {
            receive_.put(rank_, mine);
        } else {
            send_.emplace(setting.arena, draw_form_of(shape_, local, ranks_), 1, local);
            send_->put(0, mine);
            send_->upload();
        }
        receive_.upload();
    }

    std::string text() const
    {
        return "allgather of " + std::to_string(shape_.bytes()) + " bytes a rank on " +
               std::to_string(ranks_) + " ranks, " + (send_ ? send_->text() : "in place") + " to " +
               receive_.text();
    }

    int call()
    {
        return send_ ? MPI_Allgather(send_->address(), send_->count(), send_->type(),
                                     receive_.address(), receive_.count(), receive_.type(),
                                     setting_.comm)
                     : MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive_.address(),
                                     receive_.count(), receive_.type(), setting_.comm);
    }

    // What is wrong after the call, or "".
    std::string check()
    {
        if (setting_.is_corrupt) receive_.corrupt();
        const std::string opinion = ask();
        for (int rank = 0; rank < ranks_; ++rank) {
            receive_.put(rank, Pattern(rank, setting_.drawn.pattern()).bytes(shape_.bytes()));
        }
        const std::string received = receive_.difference();
        const std::string sent = send_ ? send_->difference() : "";
        return !received.empty() ? "receive buffer, " + received
               : !sent.empty()   ? "send buffer, " + sent
                                 : opinion;
    }

private:
    std::string ask() const
    {
        const std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks_), shape_.bytes());
        return shape_.asked_root < 0
                   ? ""
                   : second_opinion(setting_.comm, send_ ? *send_ : receive_, send_ ? 0 : rank_,
                                    sizes, shape_.asked_root, setting_.drawn.pattern());
    }

    const Setting& setting_;
    Shape shape_;
    int ranks_;
    int rank_;
    TypedBuffer receive_;
    std::optional<TypedBuffer> send_;
};

}  // namespace

Outcome run_allgather(const Setting& setting, Random& common, Random& local)
{
    const int ranks = size_of(setting.comm);
    Shape shape = draw_shape(common, ranks, setting.largest);
    const bool is_empty = shape.bytes() == 0;
    Allgather allgather(setting, std::move(shape), local);
    Outcome outcome;
    outcome.text = allgather.text();
    outcome.status = allgather.call();
    if (outcome.status == MPI_SUCCESS) outcome.difference = allgather.check();
    outcome.calls = ranks > 1 && !is_empty;
    return outcome;
}

}  // namespace hier_test::fuzz
