// SPDX-License-Identifier: BSD-3-Clause
#include "node/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hier {
namespace {

constexpr const char* processes = "/proc/";

[[noreturn]] void refuse(const char* what, const SharedMemory::Address& address)
{
    const int cause = errno;
    throw SetupError(
        format("cannot %s shared memory %s: %s", what, address.path.data(), std::strerror(cause)));
}

// Returns 0 or an errno. RLIMIT_FSIZE holds for such memory too. Beyond this limit the kernel would
// send a signal before it refuses, so the limit is checked first.
//
// The memory is reserved in steps. On older kernels a signal ends a step without any effect, and a
// step that is short enough gets done between two signals.
int reserve(int descriptor, std::size_t bytes)
{
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) return EFBIG;
    constexpr std::size_t step = 256 << 10;
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t length = std::min(step, bytes - done);
        const int cause =
            posix_fallocate(descriptor, static_cast<off_t>(done), static_cast<off_t>(length));
        if (cause != 0 && cause != EINTR) return cause;
        if (cause == 0) done += length;
    }
    return 0;
}

SharedMemory::Address at(const std::string& path)
{
    SharedMemory::Address address;
    path.copy(address.path.data(), address.path.size() - 1);
    return address;
}

}  // namespace

SharedMemory SharedMemory::create_anonymous(std::size_t bytes)
{
    SharedMemory made;
    made.address_ = at("of no name");
    made.descriptor_ = memfd_create("coll_hier", MFD_CLOEXEC);
    if (made.descriptor_ < 0) refuse("create", made.address_);
    made.address_ =
        at(format("%s%d/fd/%d", processes, static_cast<int>(getpid()), made.descriptor_));
    made.reserve_and_map(bytes, "of no name");
    return made;
}

SharedMemory SharedMemory::create_named(std::size_t bytes)
{
    std::random_device random;
    SharedMemory made;
    made.address_ = at(format("/hier.%d.%08x%08x", static_cast<int>(getpid()), random(), random()));
    made.descriptor_ =
        shm_open(made.address_.path.data(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made.descriptor_ < 0) refuse("create", made.address_);
    made.has_name_ = true;
    made.reserve_and_map(bytes, "(/dev/shm)");
    return made;
}

SharedMemory SharedMemory::open(const Address& address, std::size_t bytes, bool may_write)
{
    if (address.path.back() != '\0')  // another process has sent it
        throw SetupError("shared memory of no possible name");
    SharedMemory opened;
    opened.address_ = address;
    const char* path = address.path.data();
    const int flags = (may_write ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    opened.descriptor_ = std::strncmp(path, processes, std::strlen(processes)) == 0
                             ? ::open(path, flags)
                             : shm_open(path, flags, 0);
    if (opened.descriptor_ < 0) refuse("open", address);
    // /proc may belong to another namespace of process ids.
    struct stat found {};
    if (fstat(opened.descriptor_, &found) != 0) refuse("look at", address);
    if (found.st_dev != address.device || found.st_ino != address.inode)
        throw SetupError(format("shared memory %s is another one here", path));
    opened.map(bytes, may_write);
    opened.withdraw();
    return opened;
}

// Reserves the memory now, so that lack of room is an error here and not a SIGBUS at the first
// touch.
void SharedMemory::reserve_and_map(std::size_t bytes, const char* where)
{
    const int cause = reserve(descriptor_, bytes);
    if (cause != 0)
        throw SetupError(format("cannot reserve %zu bytes of shared memory %s: %s", bytes, where,
                                std::strerror(cause)));
    struct stat made {};
    if (fstat(descriptor_, &made) != 0) refuse("look at", address_);
    address_.device = made.st_dev;
    address_.inode = made.st_ino;
    map(bytes);
}

void SharedMemory::map(std::size_t bytes, bool may_write)
{
    const int access = may_write ? PROT_READ | PROT_WRITE : PROT_READ;
    void* at = mmap(nullptr, bytes, access, MAP_SHARED, descriptor_, 0);
    if (at == MAP_FAILED) refuse("map", address_);
    data_ = static_cast<std::byte*>(at);
    size_ = bytes;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept
{
    std::swap(address_, other.address_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(has_name_, other.has_name_);
    return *this;
}

SharedMemory::~SharedMemory()
{
    withdraw();
    if (data_ != nullptr) munmap(data_, size_);
}

void SharedMemory::withdraw()
{
    if (std::exchange(has_name_, false)) shm_unlink(address_.path.data());
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace hier
