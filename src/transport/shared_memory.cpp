#include "transport/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "error.hpp"

namespace hier {
namespace {

std::byte* map(int fd, const std::string& name, std::size_t bytes)
{
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int cause = errno;
    close(fd);
    if (at == MAP_FAILED)
        throw SetupError(
            format("cannot map shared memory %s: %s", name.c_str(), std::strerror(cause)));
    return static_cast<std::byte*>(at);
}

}  // namespace

SharedMemory SharedMemory::create(std::size_t bytes)
{
    std::random_device random;
    SharedMemory made;
    made.name_ = format("/hier.%d.%08x%08x", static_cast<int>(getpid()), random(), random());
    const int fd = shm_open(made.name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        throw SetupError(
            format("cannot create shared memory %s: %s", made.name_.c_str(), std::strerror(errno)));
    made.linked_ = true;
    // Reserved now: a full /dev/shm must be an error here, not a SIGBUS at the first touch.
    const int cause = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    if (cause != 0) {
        close(fd);
        throw SetupError(format("cannot reserve %zu bytes of shared memory (/dev/shm): %s", bytes,
                                std::strerror(cause)));
    }
    made.data_ = map(fd, made.name_, bytes);
    made.size_ = bytes;
    return made;
}

SharedMemory SharedMemory::open(const std::string& name, std::size_t bytes)
{
    const int fd = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        throw SetupError(
            format("cannot open shared memory %s: %s", name.c_str(), std::strerror(errno)));
    SharedMemory opened;
    opened.name_ = name;
    opened.data_ = map(fd, name, bytes);
    opened.size_ = bytes;
    return opened;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept
{
    std::swap(name_, other.name_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(linked_, other.linked_);
    return *this;
}

SharedMemory::~SharedMemory()
{
    unlink();
    if (data_ != nullptr) munmap(data_, size_);
}

void SharedMemory::unlink()
{
    if (std::exchange(linked_, false)) shm_unlink(name_.c_str());
}

}  // namespace hier
