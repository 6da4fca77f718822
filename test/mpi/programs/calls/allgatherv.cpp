// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgatherv with many shapes of counts and many layouts of the receive buffer, in place and
// not, on communicators of several orders, in memory of every kind. Each byte is compared, with
// those in gaps and around the buffers. Then come calls in a row, and arguments that do not match.
//
//   --scales N,...  average bytes of a rank [7,4099,70001]
//   --spreads few   leaves out most layouts of the receive buffer [all]
//   --calls N       calls in a row [60]
//   --seed S        of random counts, layouts, kinds of memory and pauses [1]
//   --corrupt WHERE tests the test: changes a byte on rank 0, which has to be found (block, gap
//                   or behind)
#include "allgatherv_call.hpp"

#include <deque>
#include <sstream>

using namespace hier_test;
using fuzz::Random;
using fuzz::TypedBuffer;

namespace {

class Allgatherv {
public:
    Allgatherv(Session& session, Observer& observer)
        : session_(session), observer_(observer), corrupt_(session.text("corrupt", "")),
          maker_(static_cast<std::uint64_t>(session.number("seed", 1)), session.rank())
    {
        if (!corrupt_.empty() && corrupt_ != "block" && corrupt_ != "gap" && corrupt_ != "behind") {
            session.usage("--corrupt takes block, gap or behind, not '%s'", corrupt_.c_str());
        }
    }

    // Every shape in the given spreads of the blocks. Without `both`, every second call is in
    // place.
    void run_shapes(const Group& group, int scale, std::initializer_list<Spread> spreads, bool both)
    {
        for (const Shape& shape : maker_.shapes()) {
            for (const Spread spread : spreads) {
                one(group, make(group, shape, scale, spread, is_odd_));
                if (both) one(group, make(group, shape, scale, spread, !is_odd_));
                is_odd_ = !is_odd_;
            }
        }
    }

    // There is no barrier between the calls, and ranks are late at random. Each rank overwrites
    // both buffers as soon as the call is over, and looks at the receive buffer again some calls
    // later. So a block that is read or written after the return is noticed.
    void run_in_a_row(const Group& a, const Group& b, int calls)
    {
        constexpr int scales[] = {64, 4099, 40001};
        constexpr std::size_t kept = 3;
        const auto shapes = static_cast<unsigned>(maker_.shapes().size());
        std::deque<std::unique_ptr<TypedBuffer>> idle;
        for (int i = 0; i < calls; ++i) {
            const auto at = static_cast<std::uint64_t>(i);
            const Group& group = pick(7, at, 3) == 0 ? b : a;
            const Call call =
                make(group, maker_.shapes()[pick(8, at, shapes)], scales[pick(9, at, 3)],
                     static_cast<Spread>(pick(10, at, number_of_spreads)), false);
            Random local = maker_.local(call);
            auto receive = maker_.receive_buffer(group, call, local);
            const auto send =
                maker_.send_buffer(group, call, call.items_of(rank_of(group.comm)), local);
            receive->upload();
            if (local.one_in(4)) usleep(local.below(2000));
            session_.ok(run(group, send.get(), *receive), "MPI_Allgatherv in a row");
            send->clear();
            check(group, call, *receive);
            receive->clear();
            idle.push_back(std::move(receive));
            if (idle.size() > kept) {
                const std::string late = idle.front()->difference();
                session_.check(late.empty(), "call %d: written after an earlier return: %s",
                               call.number, late.c_str());
                idle.pop_front();
            }
        }
    }

    // One rank sends more than the others receive from it. It gets an error, and the others get all
    // other blocks.
    void run_too_much(int offender)
    {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const Group group{"the communicator of wrong calls", comm};
        for (const int scale : {40, 70001}) {
            for (const char* const name : {"equal", "growing", "random"}) {
                too_much(group,
                         make(group, maker_.shape_called(name), scale, Spread::differs, false),
                         offender);
            }
        }
        // The communicator must still work.
        one(group, make(group, maker_.shape_called("growing"), 4099, Spread::differs, false));
        MPI_Comm_free(&comm);
    }

    // Ranks whose block is empty send items without bytes. Stock modules stumble over them.
    void run_empty_types(const Group& group)
    {
        for (const char* const name : {"rank 0 empty", "odd ranks empty", "all empty"}) {
            const Call call = make(group, maker_.shape_called(name), 4099, Spread::differs, false);
            Random local = maker_.local(call);
            const int items = call.items_of(rank_of(group.comm));
            const auto receive = maker_.receive_buffer(group, call, local);
            const auto send = items == 0 ? maker_.empty_send_buffer(local)
                                         : maker_.send_buffer(group, call, items, local);
            receive->upload();
            session_.ok(run(group, send.get(), *receive), "MPI_Allgatherv of items without bytes");
            check(group, call, *receive);
        }
    }

private:
    Call make(const Group& group, const Shape& shape, int scale, Spread spread, bool in_place)
    {
        Call call = maker_.make(group, shape, scale, spread, in_place);
        session_.phase("call %d on %s: %s, %s, in place %d, typed %d", call.number, group.name,
                       call.shape, names_of_spreads[static_cast<unsigned>(call.spread)],
                       call.in_place, call.is_typed);
        return call;
    }

    // `send` is nullptr: in place.
    int run(const Group& group, TypedBuffer* send, TypedBuffer& receive)
    {
        return observer_.allgatherv(
            send == nullptr ? MPI_IN_PLACE : send->address(), send == nullptr ? 0 : send->count(),
            send == nullptr ? MPI_DATATYPE_NULL : send->type(), receive.address(), receive.blocks(),
            receive.type(), group.comm);
    }

    void one(const Group& group, const Call& call)
    {
        const int rank = rank_of(group.comm);
        Random local = maker_.local(call);
        const auto receive = maker_.receive_buffer(group, call, local);
        std::unique_ptr<TypedBuffer> send;
        if (call.in_place) {
            receive->put(rank, call.content(rank));
        } else {
            send = maker_.send_buffer(group, call, call.items_of(rank), local);
        }
        receive->upload();
        session_.ok(run(group, send.get(), *receive), "MPI_Allgatherv");
        corrupt(*receive);
        check(group, call, *receive);
        const std::string sent = send ? send->difference() : "";
        session_.check(sent.empty(), "call %d: send buffer changed, %s", call.number, sent.c_str());
    }

    void too_much(const Group& group, const Call& call, int offender)
    {
        const int rank = rank_of(group.comm);
        const bool is_mine = rank == offender;
        const int items = call.items_of(rank);
        Random local = maker_.local(call);
        const auto receive = maker_.receive_buffer(group, call, local);
        const auto send = maker_.send_buffer(group, call, is_mine ? 2 * items + 1 : items, local);
        receive->upload();
        const int status = run(group, send.get(), *receive);
        int error_class = MPI_SUCCESS;
        MPI_Error_class(status, &error_class);
        session_.check(error_class == (is_mine ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
                       "call %d: rank %d sends too much: error class %d", call.number, offender,
                       error_class);
        if (!is_mine) check(group, call, *receive, offender);
    }

    void check(const Group& group, const Call& call, TypedBuffer& receive, int ignored_block = -1)
    {
        for (int rank = 0; rank < size_of(group.comm); ++rank) {
            receive.put(rank, call.content(rank));
        }
        const std::string wrong = receive.difference(ignored_block);
        session_.check(wrong.empty(), "call %d on %s, %s, in place %d, to %s: %s", call.number,
                       group.name, call.shape, call.in_place, receive.text().c_str(),
                       wrong.c_str());
    }

    void corrupt(TypedBuffer& receive) const
    {
        using Spot = TypedBuffer::Spot;
        if (!corrupt_.empty() && session_.rank() == 0) {
            receive.corrupt(corrupt_ == "block" ? Spot::block
                            : corrupt_ == "gap" ? Spot::gap
                                                : Spot::behind);
        }
    }

    Session& session_;
    Observer& observer_;
    std::string corrupt_;
    CallMaker maker_;
    bool is_odd_ = false;
};

std::vector<int> parse_scales(const Session& session)
{
    std::vector<int> scales;
    std::istringstream words(session.text("scales", "7,4099,70001"));
    for (std::string word; std::getline(words, word, ',');) {
        scales.push_back(std::atoi(word.c_str()));
        if (scales.back() < 1 || scales.back() > 1 << 24) {
            session.usage(
                "--scales takes numbers of bytes from 1 to 2^24, with commas between them");
        }
    }
    return scales;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string program = std::string(fuzz::prefix_of_programs) + "allgatherv";
    Session session(argc, argv, program.c_str(),
                    {"expect", "min-bytes", "scales", "spreads", "calls", "seed", "corrupt"});
    Observer observer(session);
    fuzz::choose_device(session.rank());
    const auto split = [&session](int color, int key) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
        return comm;
    };
    const int rank = session.rank();
    std::vector<Group> groups = {{"world", MPI_COMM_WORLD},
                                 {"reversed", split(0, -rank)},
                                 {"odd and even, reversed", split(rank % 2, -rank)},
                                 {"each rank alone", split(rank, 0)}};
    {
        Allgatherv test(session, observer);
        bool has_all = session.text("spreads", "all") == "few";
        for (const int scale : parse_scales(session)) {
            // All spreads at one scale, and few at the others.
            if (scale > 1000 && !has_all) {
                test.run_shapes(groups[0], scale, all_spreads, true);
                has_all = true;
            } else {
                test.run_shapes(groups[0], scale, {Spread::packed, Spread::differs}, true);
            }
            test.run_shapes(groups[1], scale, {Spread::differs}, false);
            test.run_shapes(groups[2], scale, {Spread::differs}, false);
        }
        test.run_shapes(groups[3], 4099, {Spread::differs}, false);
        test.run_in_a_row(groups[0], groups[1], static_cast<int>(session.number("calls", 60)));
        // This is promised by the component alone. With stock modules it is open what the other
        // ranks see.
        if (observer.expect() == Expect::hier && session.number("min-bytes", 0) == 0 &&
            session.size() > 1) {
            test.run_too_much(0);
            test.run_too_much(session.size() - 1);
            test.run_empty_types(groups[0]);
        }
    }
    session.phase("freeing communicators");
    for (std::size_t i = 1; i < groups.size(); ++i) {
        MPI_Comm_free(&groups[i].comm);
    }
    observer.close();  // so that MPI_Finalize closes the component
    return session.finish();
}
