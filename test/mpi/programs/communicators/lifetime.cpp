// SPDX-License-Identifier: BSD-3-Clause
// Communicators are made, used and freed in every order, or left to MPI_Finalize. Nothing may be lost, and nothing may
// be used after it was freed.
#include "test/mpi/lib/resources.hpp"
#include "test/mpi/lib/support.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace hier_test;

namespace {

// If each communicator that was made and freed costs more than this, memory leaks. Less may come from the allocator.
// valgrind keeps freed memory for a while and needs another figure.
constexpr long default_leak_bytes = 64L * 1024;

int deleted_attributes = 0;

int count_deleted(MPI_Comm, int, void*, void*)
{
    ++deleted_attributes;
    return MPI_SUCCESS;
}

class Lifetime {
public:
    Lifetime(Session& session, Observer& observer)
        : session_(session), observer_(observer),
          leak_bytes_(session.number("leak-bytes", default_leak_bytes))
    {
    }

    // Makes a communicator of all or some ranks, in one of several ways.
    MPI_Comm make(MPI_Comm parent, int way) const
    {
        const int rank = rank_of(parent);
        MPI_Comm comm = MPI_COMM_NULL;
        switch (way % 4) {
        case 0:
            MPI_Comm_dup(parent, &comm);
            break;
        case 1:
            MPI_Comm_split(parent, 0, -rank, &comm);
            break;
        case 2:
            MPI_Comm_split(parent, rank % 2, rank, &comm);
            break;
        case 3:
            MPI_Comm_split(parent, 0,
                           static_cast<int>(pick(3, static_cast<std::uint64_t>(rank), 1000)),
                           &comm);
            break;
        }
        return comm;
    }

    void use(MPI_Comm comm)
    {
        constexpr std::size_t bytes = 4097;
        const int call = ++call_;
        const int ranks = size_of(comm);
        std::vector<unsigned char> send = Pattern(rank_of(comm), call).bytes(bytes);
        std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(ranks), poison);
        session_.ok(observer_.allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes,
                                        MPI_BYTE, comm),
                    "MPI_Allgather");
        check_blocks(session_, receive.data(), bytes, ranks, call, "lifetime");
    }

    // Makes communicators, uses four of five and frees them, one after the other.
    void churn(int count)
    {
        for (int i = 0; i < count; ++i) {
            session_.phase("communicator %d of %d", i, count);
            MPI_Comm comm = make(MPI_COMM_WORLD, i);
            if (i % 5 != 4) {
                use(comm);
            }
            if (i % 7 == 6) {
                MPI_Comm_disconnect(&comm);
            } else {
                MPI_Comm_free(&comm);
            }
        }
    }

    // The same, with a look at resources before and after.
    void churn_watched(int count)
    {
        churn(40);
        const Resources before = settled();
        churn(count);
        const Resources after = settled();
        const long long grown = after.resident_bytes - before.resident_bytes;
        session_.check(grown <= leak_bytes_ * count,
                       "%lld bytes lost with each of %d communicators", grown / count, count);
        session_.check(after.descriptors == before.descriptors,
                       "%ld descriptors before %d communicators, %ld after", before.descriptors,
                       count, after.descriptors);
        session_.check(after.shared_mappings == before.shared_mappings,
                       "%ld shared mappings before %d communicators, %ld after",
                       before.shared_mappings, count, after.shared_mappings);
        session_.check(after.shm_entries == before.shm_entries,
                       "%ld entries in /dev/shm before %d communicators, %ld after",
                       before.shm_entries, count, after.shm_entries);
        if (session_.rank() == 0) {
            std::printf("figure: lifetime: %lld bytes of resident memory more for each of %d "
                        "communicators made and freed\n",
                        grown / count, count);
        }
    }

    // Parents and children are used in one order and freed in another. The orders are the same on all ranks.
    void orders()
    {
        for (const int order : {0, 1, 2, 3, 4}) {
            session_.phase("order %d", order);
            std::vector<MPI_Comm> comms;
            comms.reserve(8);
            for (int i = 0; i < 8; ++i) {
                comms.push_back(
                    make(i % 3 == 2 ? comms.back() : MPI_COMM_WORLD, i % 3 == 2 ? 1 : i % 2 * 3));
            }
            std::vector<std::size_t> sequence = arranged(comms.size(), order + 1);
            for (const std::size_t i : sequence) {
                if (i != 3) {
                    use(comms[i]);
                }
            }
            use(MPI_COMM_WORLD);
            for (const std::size_t i : arranged(comms.size(), order)) {
                MPI_Comm_free(&comms[i]);
                use(MPI_COMM_WORLD);
            }
        }
    }

    void attributes()
    {
        session_.phase("attributes");
        int key = MPI_KEYVAL_INVALID;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deleted, &key, nullptr);
        for (const int way : {0, 1, 2}) {
            MPI_Comm comm = make(MPI_COMM_WORLD, way);
            MPI_Comm_set_attr(comm, key, this);
            use(comm);
            const int before = deleted_attributes;
            MPI_Comm_free(&comm);
            session_.check(deleted_attributes == before + 1,
                           "the attribute's delete callback ran %d times",
                           deleted_attributes - before);
        }
        MPI_Comm left = make(MPI_COMM_WORLD, 0);
        MPI_Comm_set_attr(left, key, this);
        use(left);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, this);
        MPI_Comm_free_keyval(&key);
    }

    // MPI_Finalize frees the communicators that a program leaves, in the order of context ids. Holes in these ids make
    // sure that the component's own communicators get lower ids than the application's.
    void leave_to_finalize()
    {
        session_.phase("communicators for MPI_Finalize");
        std::vector<MPI_Comm> holes(6);
        for (MPI_Comm& comm : holes) {
            comm = make(MPI_COMM_WORLD, 0);
        }
        std::vector<MPI_Comm> left;
        left.reserve(6);
        for (int way = 0; way < 4; ++way) {
            left.push_back(make(MPI_COMM_WORLD, way));
        }
        left.push_back(make(left[1], 2));
        for (const std::size_t i : {0UL, 2UL, 3UL, 5UL}) {
            MPI_Comm_free(&holes[i]);
        }
        use(left[3]);
        use(left[4]);
        use(left[0]);
        MPI_Comm_free(&holes[1]);
        use(left[2]);  // left[1] is never used, and holes[4] is neither used nor freed
        left.push_back(make(MPI_COMM_WORLD, 1));
        use(left[5]);
    }

    // Measures what a live communicator costs.
    void weigh(int count)
    {
        session_.phase("live communicators");
        std::vector<MPI_Comm> comms;
        comms.reserve(static_cast<std::size_t>(count));
        const Resources before = settled();
        for (int i = 0; i < count; ++i) {
            comms.push_back(make(MPI_COMM_WORLD, 0));
            use(comms.back());
        }
        const Resources after = settled();
        if (session_.rank() == 0) {
            std::printf("figure: lifetime: a live communicator of %d ranks holds %lld bytes of "
                        "resident memory and %.1f descriptors (rank 0)\n",
                        session_.size(), (after.resident_bytes - before.resident_bytes) / count,
                        static_cast<double>(after.descriptors - before.descriptors) / count);
        }
        for (MPI_Comm& comm : comms) {
            MPI_Comm_free(&comm);
        }
    }

private:
    // After two barriers no rank is still freeing. The third one keeps all ranks here until every rank has looked.
    static Resources settled()
    {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        const Resources held = Resources::now();
        MPI_Barrier(MPI_COMM_WORLD);
        return held;
    }

    // 0: in the order of making; 1: backwards; above: shuffled in one way or another.
    static std::vector<std::size_t> arranged(std::size_t count, int order)
    {
        std::vector<std::size_t> sequence(count);
        std::iota(sequence.begin(), sequence.end(), 0UL);
        if (order == 1) {
            std::reverse(sequence.begin(), sequence.end());
        } else if (order > 1) {
            std::sort(sequence.begin(), sequence.end(), [order](std::size_t a, std::size_t b) {
                return mix(static_cast<std::uint64_t>(order), a) <
                       mix(static_cast<std::uint64_t>(order), b);
            });
        }
        return sequence;
    }

    Session& session_;
    Observer& observer_;
    long leak_bytes_;
    int call_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    keep_pages_small();
    Session session(argc, argv, "lifetime", {"expect", "min-bytes", "count", "leak-bytes"});
    Observer observer(session);
    Lifetime lifetime(session, observer);
    const int count = static_cast<int>(session.number("count", 1000));
    if (count < 1) {
        session.usage("--count takes a number from 1 up");
    }
    lifetime.orders();
    lifetime.attributes();
    lifetime.churn_watched(count);
    lifetime.weigh(16);
    lifetime.leave_to_finalize();
    return session.finish();
}
