// SPDX-License-Identifier: BSD-3-Clause
// Address space without memory behind it, for buffers that are larger than the machine's memory.
#pragma once

#include "test/mpi/lib/support.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace hier_test {

// All bytes are 0. A page gets memory when it is written.
class AddressSpace {
public:
    AddressSpace(Session& session, std::size_t bytes) : session_(session), bytes_(bytes)
    {
        data_ = map(nullptr, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    }
    ~AddressSpace() { munmap(data_, bytes_); }
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace(AddressSpace&&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;
    AddressSpace& operator=(AddressSpace&&) = delete;

    unsigned char* at(std::size_t offset) { return data_ + offset; }

    // Gives the memory back.
    void clear() { session_.check(madvise(data_, bytes_, MADV_DONTNEED) == 0, "madvise"); }

    // The same `unit` bytes of memory appear again and again, from `from` to `to`. All offsets are multiples of a page.
    void repeat(std::size_t from, std::size_t to, std::size_t unit)
    {
        const int file = memfd_create("hier-test", 0);
        session_.check(file >= 0 && ftruncate(file, static_cast<off_t>(unit)) == 0, "memfd: %s",
                       std::strerror(errno));
        for (std::size_t at = from; at < to; at += unit) {
            map(data_ + at, unit, MAP_SHARED | MAP_FIXED, file);
        }
        close(file);
    }

private:
    unsigned char* map(void* address, std::size_t bytes, int flags, int file) const
    {
        void* const mapped = mmap(address, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
        if (mapped == MAP_FAILED) {
            session_.usage("no %zu bytes of address space: %s", bytes, std::strerror(errno));
        }
        return static_cast<unsigned char*>(mapped);
    }

    Session& session_;
    std::size_t bytes_;
    unsigned char* data_ = nullptr;
};

}  // namespace hier_test
