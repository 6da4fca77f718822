// SPDX-License-Identifier: BSD-3-Clause
#include "link.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace bench {
namespace {

// How a rank streams. Over TCP only eager messages fill both directions of a link: the handshake of
// a larger message waits in the socket behind bulk data. On faster networks only large messages
// fill a link.
struct Shape {
    int message_bytes;
    std::size_t depth;        // messages in flight, each way
    std::size_t streams = 1;  // ranks of each node that take part
};
constexpr std::array<Shape, 2> message_shapes{{{32 * 1024, 32}, {1024 * 1024, 16}}};

constexpr double fewest_messages = 64;
constexpr double max_messages = 1e9;

// One rank's part in the ring of nodes.
class Stream {
public:
    Stream(MPI_Comm comm, const Layout& layout, const Shape& shape)
        : comm_(comm), shape_(shape), bytes_(static_cast<std::size_t>(shape.message_bytes)),
          out_(shape.depth * bytes_), in_(shape.depth * bytes_),
          requests_(2 * shape.depth, MPI_REQUEST_NULL)
    {
        int rank = 0;
        MPI_Comm_rank(comm, &rank);
        const auto nodes = layout.ranks_of.size();
        const auto node = static_cast<std::size_t>(layout.node_of[static_cast<std::size_t>(rank)]);
        const std::vector<int>& here = layout.ranks_of[node];
        const auto local = static_cast<std::size_t>(std::ranges::find(here, rank) - here.begin());
        if (local < shape.streams) {
            to_ = layout.ranks_of[(node + 1) % nodes][local];
            from_ = layout.ranks_of[(node + nodes - 1) % nodes][local];
        }
    }

    // Seconds until all ranks are done, the same on all ranks. The time includes the closing
    // barrier: without it a rank that started late would report too little.
    double run(long messages)
    {
        MPI_Barrier(comm_);
        const double start = MPI_Wtime();
        if (to_ != MPI_PROC_NULL) {
            exchange(messages);
        }
        MPI_Barrier(comm_);
        double elapsed = MPI_Wtime() - start;
        MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, comm_);
        return elapsed;
    }

private:
    void exchange(long messages)
    {
        for (long i = 0; i < messages; ++i) {
            const std::size_t slot = static_cast<std::size_t>(i) % shape_.depth;
            MPI_Waitall(2, &requests_[2 * slot], MPI_STATUSES_IGNORE);
            MPI_Irecv(&in_[slot * bytes_], shape_.message_bytes, MPI_BYTE, from_, tag, comm_,
                      &requests_[2 * slot]);
            MPI_Isend(&out_[slot * bytes_], shape_.message_bytes, MPI_BYTE, to_, tag, comm_,
                      &requests_[2 * slot + 1]);
        }
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }

    static constexpr int tag = 1;
    MPI_Comm comm_;
    Shape shape_;
    std::size_t bytes_;  // of a message
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
    std::vector<MPI_Request> requests_;
    int to_ = MPI_PROC_NULL;  // MPI_PROC_NULL here and in from_: this rank takes no part
    int from_ = MPI_PROC_NULL;
};

// Bytes per second into each node over about `seconds`. The number of messages is chosen for
// `expected`, the rate measured so far.
double measure(MPI_Comm comm, const Layout& layout, const Shape& shape, double expected,
               double seconds)
{
    Stream stream(comm, layout, shape);
    const double message = static_cast<double>(shape.message_bytes);
    const double streams = static_cast<double>(shape.streams);
    double rate = expected;
    // The first, short stream connects, finds the rate and uses up a token bucket.
    for (const double goal : {seconds / 10.0, seconds}) {
        const double messages =
            std::clamp(goal * rate / (message * streams), fewest_messages, max_messages);
        const long count = static_cast<long>(messages);
        rate = static_cast<double>(count) * message * streams / stream.run(count);
    }
    return rate;
}

std::vector<Shape> shapes_for(const Layout& layout)
{
    std::vector<Shape> shapes;
    for (Shape shape : message_shapes) {
        shape.streams = 1;
        shapes.push_back(shape);
        if (layout.smallest_node() > 1) {
            shape.streams = layout.smallest_node();
            shapes.push_back(shape);
        }
    }
    return shapes;
}

}  // namespace

Link measure_link(MPI_Comm comm, const Layout& layout, double seconds)
{
    if (layout.nodes() < 2) {
        return {0.0, "one node: no link to measure"};
    }
    Shape best{};
    double best_rate = 0.0;
    // Two passes: a disturbance makes a short trial slower, never faster.
    for (int pass = 0; pass < 2; ++pass) {
        for (const Shape& shape : shapes_for(layout)) {
            const double rate = measure(comm, layout, shape, best_rate, seconds / 8.0);
            if (rate > best_rate) {
                best_rate = rate;
                best = shape;
            }
        }
    }
    const double rate = measure(comm, layout, best, best_rate, seconds);
    return {rate, "measured, " + std::to_string(best.streams) + " stream(s) a node, messages of " +
                      std::to_string(best.message_bytes) + " bytes"};
}

Link find_link(MPI_Comm comm, const Layout& layout, const Options& options)
{
    switch (options.link) {
    case LinkSource::absent:
        return {0.0, "not measured"};
    case LinkSource::given:
        return {options.link_rate, "given"};
    case LinkSource::measured:
        return measure_link(comm, layout, options.link_seconds);
    }
    return {};
}

}  // namespace bench
