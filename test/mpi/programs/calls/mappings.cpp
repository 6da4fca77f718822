// SPDX-License-Identifier: BSD-3-Clause
// Buffers in memory of every origin, because a network may have to register more than the heap. Each rank has memory of
// another origin in each call, and the same address is other memory in the next call.
#include "test/mpi/lib/support.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>

using namespace hier_test;

namespace {

enum class Origin {
    pages,
    read_only,
    read_only_file,  // this and read_only are for send buffers alone
    shared_file,
    dropped,  // the kernel has taken the pages back once
    forked,   // a child has had the pages, too
};
constexpr int origins = 6;

constexpr const char* name_of[origins] = {"pages",         "read-only pages", "a read-only file",
                                          "a shared file", "dropped pages",   "pages of a child"};

bool is_read_only(Origin origin)
{
    return origin == Origin::read_only || origin == Origin::read_only_file;
}

// Reserves addresses, so that nothing else comes to lie there between two mappings.
void* reserve(void* at, std::size_t bytes)
{
    return mmap(at, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == nullptr ? 0 : MAP_FIXED), -1,
                0);
}

// Memory at an address that has been reserved.
class Mapping {
public:
    Mapping(Session& session, void* at, std::size_t bytes, Origin origin)
        : session_(session), origin_(origin), bytes_(bytes)
    {
        const bool is_file = origin == Origin::shared_file || origin == Origin::read_only_file;
        const int file = is_file ? open_file() : -1;
        void* mapped =
            mmap(at, bytes, PROT_READ | PROT_WRITE,
                 MAP_FIXED | (is_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), file, 0);
        if (is_file) close(file);
        if (mapped == MAP_FAILED)
            session.usage("no %s: %s", name_of[static_cast<int>(origin)], strerror(errno));
        data_ = static_cast<unsigned char*>(mapped);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { reserve(data_, bytes_); }

    unsigned char* data() { return data_; }

    // Call this when the data to send is in place.
    void settle()
    {
        if (is_read_only(origin_))
            session_.check(mprotect(data_, bytes_, PROT_READ) == 0, "mprotect");
    }

    // Call this before any data is in place.
    void prepare()
    {
        if (origin_ == Origin::dropped) {
            std::memset(data_, poison, bytes_);
            session_.check(madvise(data_, bytes_, MADV_DONTNEED) == 0, "madvise");
        }
        if (origin_ == Origin::forked) {
            std::memset(data_, poison, bytes_);
            fork_and_wait();
        }
    }

private:
    static int open_file()
    {
        char name[] = "/var/tmp/hier-test-mappings-XXXXXX";
        const int file = mkstemp(name);
        if (file >= 0) unlink(name);
        if (file >= 0 && ftruncate(file, 1 << 24) != 0) perror("ftruncate");
        return file;
    }

    void fork_and_wait()
    {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        int status = 0;
        session_.check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "fork");
    }

    Session& session_;
    Origin origin_;
    std::size_t bytes_;
    unsigned char* data_ = nullptr;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "mappings", {"expect", "min-bytes", "rounds"});
    Observer observer(session);
    const auto calls = static_cast<int>(session.number("rounds", 2)) * origins;
    for (const int bytes : {70001, 300000, 5000}) {
        // Each call has other memory at the addresses of the last call.
        constexpr std::size_t page = 4096;
        const std::size_t block = static_cast<std::size_t>(bytes);
        const std::size_t all = static_cast<std::size_t>(session.size()) * block;
        const std::size_t apart = (all / page + 2) * page;
        auto* const place = static_cast<unsigned char*>(reserve(nullptr, apart + block));
        for (int call = 0; call < calls; ++call) {
            const auto turn = static_cast<unsigned>(call + session.rank());
            const auto send_origin = static_cast<Origin>(turn % origins);
            auto receive_origin = static_cast<Origin>(turn / 2 % origins);
            if (is_read_only(receive_origin)) receive_origin = Origin::shared_file;
            session.phase("%d bytes a rank, call %d, from %s to %s", bytes, call,
                          name_of[static_cast<int>(send_origin)],
                          name_of[static_cast<int>(receive_origin)]);
            Mapping receive(session, place, all, receive_origin);
            Mapping send(session, place + apart, block, send_origin);
            receive.prepare();
            send.prepare();
            Pattern(session.rank(), call).fill(send.data(), block);
            send.settle();
            session.ok(observer.allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes,
                                          MPI_BYTE, MPI_COMM_WORLD),
                       "MPI_Allgather");
            check_blocks(session, receive.data(), block, session.size(), call, "mappings");
        }
        munmap(place, apart + block);
    }
    return session.finish();
}
