// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather with derived datatypes in device memory: on either side, in place, and another type on every rank.
// Nothing may be written into the gaps. Also sizes that do not match: device memory must give the same errors as host
// memory.
#include "test/mpi/lib/gpu_spread.hpp"
#include "test/mpi/lib/gpu_staging.hpp"

#include <string>
#include <vector>

using namespace hier_test;

namespace {

// All forms have the same signature: 72 * scale ints.
std::vector<Form> make_forms(int ranks, int scale)
{
    const int n = 72 * scale;
    const Layout i = Layout::basic(MPI_INT, sizeof(int));
    return {
        {i.called("int"), n},
        {Layout::vector(4, 2, 5, i).called("vector with gaps"), n / 8},
        {Layout::vector(3, 2, -4, i).called("vector with negative stride"), n / 6},
        {Layout::indexed({{2, -12}, {1, 8}, {3, 40}}, i).called("negative lower bound"), n / 6},
        {Layout::indexed({{2, 32}, {1, 0}, {3, 12}}, i).called("out of order"), n / 6},
        {Layout::resized(-8, 64, Layout::contiguous(4, i)).called("resized"), n / 4},
        {Layout::structure({{i, 0}, {Layout::contiguous(2, i), 12}, {i, 28}}).called("struct"),
         n / 4},
        {Layout::resized(0, sizeof(int), Layout::vector(n, 1, ranks, i)).called("column"), 1},
    };
}

class Datatypes {
public:
    Datatypes(Caller& caller, int scale)
        : caller_(caller), session_(caller.session()), forms_(make_forms(session_.size(), scale)),
          bytes_(72 * static_cast<std::size_t>(scale) * sizeof(int))
    {
    }

    void every_pair()
    {
        for (std::size_t to = 0; to < forms_.size(); ++to) {
            for (std::size_t from = 0; from < forms_.size(); ++from) {
                one(&forms_[from], forms_[to], Kind::device, Kind::device);
            }
            one(nullptr, forms_[to], Kind::device, Kind::device);
        }
    }

    // Every rank uses other forms on both sides. Only the signature is common.
    void mixed(int rounds)
    {
        const auto self = static_cast<std::uint64_t>(session_.rank()) << 32;
        const auto count = static_cast<unsigned>(forms_.size());
        for (int round = 0; round < rounds; ++round) {
            const auto at = static_cast<std::uint64_t>(round);
            const bool in_place = pick(7, at, 4) == 0;
            one(in_place ? nullptr : &forms_[pick(self + 5, at, count)],
                forms_[pick(self + 6, at, count)], static_cast<Kind>(pick(self + 8, at, kinds)),
                static_cast<Kind>(pick(self + 9, at, kinds)));
        }
    }

    // One rank sends more or less than the others receive. Both kinds of memory must give the same error.
    void unequal(int offender)
    {
        for (std::size_t form = 0; form < forms_.size(); form += 1) {
            for (const int halves : {1, 4}) {
                const int items = forms_[form].items;
                if (items * halves % 2 != 0) {
                    continue;
                }
                const bool is_offender = session_.rank() == offender;
                const int count = is_offender ? items * halves / 2 : items;
                const int on_host = send_so_many(forms_[form], count, Kind::pageable, offender);
                const int on_device = send_so_many(forms_[form], count, Kind::device, offender);
                session_.check(on_host == on_device,
                               "%s, %d half signatures of rank %d: error class %d from device "
                               "memory, %d from the host's",
                               forms_[form].layout.name.c_str(), halves, offender, on_device,
                               on_host);
                session_.check(!is_offender || on_device != MPI_SUCCESS, "no error");
            }
        }
    }

    // The last rank receives another size than the others. All ranks get an error as soon as they know.
    void unequal_everywhere()
    {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const bool is_last = session_.rank() == session_.size() - 1;
        const std::size_t bytes = is_last ? 5000 : 10000;
        const Memory send(Kind::device, bytes);
        const Memory receive(Kind::device, bytes * static_cast<std::size_t>(session_.size()));
        session_.phase("unequal counts");
        int status = caller_.allgather(send.data(), receive.data(), bytes, comm);
        if (status == MPI_SUCCESS) {
            status = caller_.allgather(send.data(), receive.data(), bytes, comm);
        }
        session_.check(status != MPI_SUCCESS, "unequal counts: success");
        MPI_Barrier(MPI_COMM_WORLD);  // now all transfers have landed
        MPI_Comm_free(&comm);
    }

private:
    int send_so_many(const Form& form, int items, Kind kind, int offender)
    {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const int call = ++call_;
        session_.phase("%d items of %s from rank %d, %s memory", items, form.layout.name.c_str(),
                       offender, name_of(kind));
        const Placement sending(form.layout, 2 * form.items, 1);
        const Memory send(kind, sending.span());
        Bytes laid_out(sending.span(), poison);
        sending.scatter(0, Pattern(session_.rank(), call).bytes(2 * bytes_), laid_out.data());
        send.write(0, laid_out);
        const std::size_t total = bytes_ * static_cast<std::size_t>(session_.size());
        const Memory receive(kind, total + 4096);
        const int status =
            caller_.allgather(sending.origin(send.data()), items, form.layout.type, receive.data(),
                              static_cast<int>(bytes_ / 4), MPI_INT, comm);
        const Bytes got = receive.read(0, total + 4096);
        session_.check(all_poison(got.data() + total, 4096), "written behind the buffer");
        for (int rank = 0; rank < session_.size(); ++rank) {
            session_.check(
                rank == offender ||
                    !Pattern(rank, call)
                         .mismatch(got.data() + static_cast<std::size_t>(rank) * bytes_, bytes_),
                "unequal: rank %d's block is wrong", rank);
        }
        MPI_Comm_free(&comm);
        int error_class = MPI_SUCCESS;
        MPI_Error_class(status, &error_class);
        return error_class;
    }

    // `from` is nullptr: in place.
    void one(const Form* from, const Form& to, Kind send_kind, Kind receive_kind)
    {
        const int call = ++call_;
        const int ranks = session_.size();
        session_.phase("%s to %s", from == nullptr ? "in place" : from->layout.name.c_str(),
                       to.layout.name.c_str());
        const Placement receiving(to.layout, to.items, ranks);
        const Memory receive(receive_kind, receiving.span());
        Bytes expected(receiving.span(), poison);
        for (int block = 0; block < ranks; ++block) {
            receiving.scatter(block, Pattern(block, call).bytes(bytes_), expected.data());
        }
        const Bytes mine = Pattern(session_.rank(), call).bytes(bytes_);
        // Each rank now and then uses absolute addresses, whatever the others use.
        const bool absolute = pick(static_cast<std::uint64_t>(session_.rank()) + 11,
                                   static_cast<std::uint64_t>(call), 4) == 0;
        unsigned char* const origin = receiving.origin(receive.data());
        MPI_Datatype type = absolute ? to.layout.absolute(origin) : to.layout.type;
        void* const target = absolute ? MPI_BOTTOM : origin;
        int status = MPI_SUCCESS;
        if (from == nullptr) {
            Bytes own(receiving.span(), poison);
            receiving.scatter(session_.rank(), mine, own.data());
            receive.write(0, own);
            status = caller_.allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, target, to.items, type,
                                       MPI_COMM_WORLD);
        } else {
            const Placement sending(from->layout, from->items, 1);
            const Memory send(send_kind, sending.span());
            Bytes laid_out(sending.span(), poison);
            sending.scatter(0, mine, laid_out.data());
            send.write(0, laid_out);
            status = caller_.allgather(sending.origin(send.data()), from->items, from->layout.type,
                                       target, to.items, type, MPI_COMM_WORLD);
            session_.check(send.read(0, laid_out.size()) == laid_out, "send buffer changed");
        }
        if (absolute) {
            MPI_Type_free(&type);
        }
        session_.ok(status, "MPI_Allgather");
        const std::string wrong = difference(receive.read(0, expected.size()), expected);
        session_.check(wrong.empty(), "%s to %s%s, %s to %s: wrong %s",
                       from == nullptr ? "in place" : from->layout.name.c_str(),
                       to.layout.name.c_str(), absolute ? " at absolute addresses" : "",
                       name_of(send_kind), name_of(receive_kind), wrong.c_str());
    }

    Caller& caller_;
    Session& session_;
    std::vector<Form> forms_;
    std::size_t bytes_;
    int call_ = 0;
};

// More bytes than an int counts. One rank alone, because memory has to hold them six times.
void more_than_an_int(Caller& caller)
{
    constexpr std::size_t count = (1u << 29) + 3;
    const Bytes mine = Pattern(0, 1).bytes(count * sizeof(int));
    const Memory send(Kind::device, mine);
    const Memory receive(Kind::device, mine.size());
    const auto items = static_cast<int>(count);
    Session& session = caller.session();
    session.phase("%zu bytes", mine.size());
    session.ok(caller.allgather(send.data(), items, MPI_INT, receive.data(), items, MPI_INT,
                                MPI_COMM_SELF),
               "MPI_Allgather");
    session.check(receive.read(0, mine.size()) == mine, "%zu bytes: wrong", mine.size());
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_datatypes", {"expect", "min-bytes", "huge", "one-node"});
    Observer observer(session);
    Caller caller(session, observer);
    require_hip(hipSetDevice(session.rank() % devices()), "hipSetDevice");
    if (session.number("huge", 0) != 0) {
        more_than_an_int(caller);
        observer.close();
        return session.finish();
    }
    memory_of_failed_calls(caller);  // first, while there is no other staging memory
    // Before hier sees memory of a pool. From then on CUDA waits for copies of all memory.
    spread_over_allocations(caller);
    Datatypes one(caller, 1);
    one.every_pair();
    one.mixed(40);
    Datatypes(caller, 7).mixed(16);
    many_blocks(caller);
    types_come_and_go(caller);
    types_that_differ_in_extent(caller);
    by_turns(caller);
    growing_beside_a_copy(caller);
    // This is promised by the component alone. With stock modules it is open what the other ranks see.
    if (observer.expect() == Expect::hier && session.size() > 1) {
        one.unequal(session.size() - 1);
        one.unequal_everywhere();
    }
    observer.close();
    return session.finish();
}
