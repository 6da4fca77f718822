// SPDX-License-Identifier: BSD-3-Clause
// How much memory large calls cost. Each of several communicators gathers a large result with a receive type that has
// gaps. Resident memory may grow a little during the calls, and by no more than that afterwards, however large the
// result is and however many communicators there are.
#include "test/mpi/lib/observer.hpp"
#include "test/mpi/lib/pattern.hpp"
#include "test/mpi/lib/resources.hpp"

#include <cstring>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

constexpr std::size_t mib = 1 << 20;

// A line of /proc/self/status, in bytes.
std::size_t status_of(const char* name)
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word != name) continue;
        std::size_t kib = 0;
        status >> kib;
        return kib << 10;
    }
    return 0;
}

// From now on VmHWM is the most memory since this moment.
void forget_the_most() { std::ofstream("/proc/self/clear_refs") << 5; }

// Blocks of `width` bytes with a gap behind each.
constexpr std::size_t width = 1000, pitch = 1024;

class Rows {
public:
    explicit Rows(std::size_t rows)
    {
        MPI_Type_vector(static_cast<int>(rows), width, pitch, MPI_BYTE, &vector_);
        MPI_Type_create_resized(vector_, 0, static_cast<MPI_Aint>(rows * pitch), &type);
        MPI_Type_commit(&type);
    }
    ~Rows()
    {
        MPI_Type_free(&vector_);
        MPI_Type_free(&type);
    }
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    MPI_Datatype type = MPI_DATATYPE_NULL;

private:
    MPI_Datatype vector_ = MPI_DATATYPE_NULL;
};

constexpr unsigned char gap = 255;

// Each row is a window of one sequence, which is quick to write and to compare.
class Sequence {
public:
    Sequence()
    {
        for (std::size_t i = 0; i < bytes_.size(); i++)
            bytes_[i] = static_cast<unsigned char>(i % period);
    }
    const unsigned char* row(int rank, int call, std::size_t row) const
    {
        return bytes_.data() +
               (static_cast<std::size_t>(rank * 89 + call * 31) + row * 7 + row / 13) % period;
    }

private:
    static constexpr std::size_t period = 251;
    std::vector<unsigned char> bytes_ = std::vector<unsigned char>(width + period);
};

class Run {
public:
    Run(Session& session, Observer& observer, std::size_t bytes)
        : session_(session), observer_(observer),
          rows_(bytes / static_cast<std::size_t>(session.size()) / width), send_(rows_ * width),
          receive_(static_cast<std::size_t>(session.size()) * rows_ * pitch, gap), type_(rows_)
    {
    }

    void gather(MPI_Comm comm)
    {
        const int call = ++call_;
        session_.phase("call %d", call);
        for (std::size_t row = 0; row < rows_; row++)
            std::memcpy(send_.data() + row * width, sequence_.row(session_.rank(), call, row),
                        width);
        session_.ok(observer_.allgather(send_.data(), static_cast<int>(send_.size()), MPI_BYTE,
                                        receive_.data(), 1, type_.type, comm),
                    "MPI_Allgather");
        for (int rank = 0; rank < session_.size(); rank++) check(call, rank);
    }

private:
    void check(int call, int rank)
    {
        for (std::size_t row = 0; row < rows_; row++) {
            const unsigned char* at =
                receive_.data() + (static_cast<std::size_t>(rank) * rows_ + row) * pitch;
            const bool is_right = std::memcmp(at, sequence_.row(rank, call, row), width) == 0 &&
                                  at[width] == gap && at[pitch - 1] == gap;
            if (!is_right) {
                session_.check(false, "call %d: wrong bytes in row %zu of rank %d", call, row,
                               rank);
                return;
            }
        }
        session_.check(true, "never seen");
    }

    Session& session_;
    Observer& observer_;
    std::size_t rows_;
    std::vector<unsigned char> send_, receive_;
    Rows type_;
    Sequence sequence_;
    int call_ = 0;
};

// The team of a communicator, and its first small calls, cost memory of another kind.
void warm_up(Observer& observer, MPI_Comm comm, int ranks)
{
    constexpr std::size_t bytes = 65536;
    std::vector<unsigned char> send(bytes), receive(bytes * static_cast<std::size_t>(ranks));
    for (int i = 0; i < 2; i++)
        observer.allgather(send.data(), static_cast<int>(bytes), MPI_BYTE, receive.data(),
                           static_cast<int>(bytes), MPI_BYTE, comm);
}

// Returns when the datatype and the communicators are free: MPI_Finalize comes next.
void measure(Session& session)
{
    Observer observer(session);
    Run run(session, observer, static_cast<std::size_t>(session.number("mib", 244)) * mib);
    const auto most_during = static_cast<std::size_t>(session.number("during", 64 + 16)) * mib;
    const auto most_after = static_cast<std::size_t>(session.number("after", 64 + 16)) * mib;
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(session.number("communicators", 4)));
    for (MPI_Comm& comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        warm_up(observer, comm, session.size());
    }
    const std::size_t before = status_of("VmRSS:");
    forget_the_most();
    for (MPI_Comm comm : comms) run.gather(comm);
    const std::size_t during = status_of("VmHWM:") - before, rest = status_of("VmRSS:");
    const std::size_t after = rest > before ? rest - before : 0;
    if (session.rank() == 0)
        std::printf("memory: %zu MiB more during the calls, %zu MiB after them\n", during / mib,
                    after / mib);
    session.check(during <= most_during, "%zu MiB more during the calls", during / mib);
    session.check(after <= most_after, "%zu MiB more after the calls", after / mib);
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv)
{
    keep_pages_small();
    Session session(argc, argv, "memory",
                    {"expect", "min-bytes", "mib", "communicators", "during", "after"});
    measure(session);
    return session.finish();
}
