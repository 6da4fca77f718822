// SPDX-License-Identifier: BSD-3-Clause
// The linker's --wrap redirects only the calls of the program's own objects. Calls of shared
// libraries stay as they are.
#include "system.hpp"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>

using namespace hier::test;

extern "C" {

int __real_memfd_create(const char* name, unsigned flags);
int __wrap_memfd_create(const char* name, unsigned flags);
int __wrap_memfd_create(const char* name, unsigned flags)
{
    if (!memfd_call.fails()) return __real_memfd_create(name, flags);
    errno = memfd_call.error;
    return -1;
}

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (std::strstr(path, "/fd/") == nullptr) return __real_open(path, flags, mode);
    if (opens_another) return __real_memfd_create("another", 0);
    if (!open_call.fails()) return __real_open(path, flags, mode);
    errno = open_call.error;
    return -1;
}

int __real_shm_open(const char* name, int flags, mode_t mode);
int __wrap_shm_open(const char* name, int flags, mode_t mode);
int __wrap_shm_open(const char* name, int flags, mode_t mode)
{
    if (!shm_open_call.fails()) return __real_shm_open(name, flags, mode);
    errno = shm_open_call.error;
    return -1;
}

int __real_posix_fallocate(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate(int fd, off_t offset, off_t length)
{
    return fallocate_call.fails() ? fallocate_call.error
                                  : __real_posix_fallocate(fd, offset, length);
}

void* __real_mmap(void* at, std::size_t length, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* at, std::size_t length, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* at, std::size_t length, int protection, int flags, int fd, off_t offset)
{
    if (!mmap_call.fails()) return __real_mmap(at, length, protection, flags, fd, offset);
    errno = mmap_call.error;
    return MAP_FAILED;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list more;
    va_start(more, number);
    long a[4];
    for (long& argument : a) argument = va_arg(more, long);
    va_end(more);
    constexpr long pidfd_getfd = 438;
    if (number == pidfd_getfd) {
        if (before_getfd != nullptr) before_getfd();
        if (getfd_call.fails()) {
            errno = getfd_call.error;
            return -1;
        }
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3]);
}

using ProcessVmCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                  unsigned long);

// The call of this number, with one range at each end.
static ssize_t call_in(Writev mode, int number, ProcessVmCall real, pid_t pid, const iovec* local,
                       const iovec* remote, unsigned long flags)
{
    switch (mode) {
    case Writev::works:
        break;
    case Writev::is_refused:
        errno = EPERM;
        return -1;
    case Writev::faults:
        errno = EFAULT;
        return -1;
    case Writev::pretends:
        return static_cast<ssize_t>(local->iov_len);
    case Writev::ends_early:
        return 0;
    case Writev::interrupted:
        if (number % 2 == 1) {
            errno = EINTR;
            return -1;
        }
        const iovec local_part{local->iov_base, (local->iov_len + 1) / 2};
        const iovec remote_part{remote->iov_base, (remote->iov_len + 1) / 2};
        return real(pid, &local_part, 1, &remote_part, 1, flags);
    }
    return real(pid, local, 1, remote, 1, flags);
}

ssize_t __real_process_vm_writev(pid_t pid, const iovec* local, unsigned long locals,
                                 const iovec* remote, unsigned long remotes, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const iovec* local, unsigned long locals,
                                 const iovec* remote, unsigned long remotes, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const iovec* local, unsigned long locals,
                                 const iovec* remote, unsigned long remotes, unsigned long flags)
{
    writev_calls++;
    if (before_writev != nullptr) before_writev();
    (void)locals, (void)remotes;
    return call_in(writev_mode, writev_calls, __real_process_vm_writev, pid, local, remote, flags);
}

ssize_t __real_process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                const iovec* remote, unsigned long remotes, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                const iovec* remote, unsigned long remotes, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                const iovec* remote, unsigned long remotes, unsigned long flags)
{
    readv_calls++;
    if (before_readv != nullptr) before_readv();
    (void)locals, (void)remotes;
    const ssize_t read =
        call_in(readv_mode, readv_calls, __real_process_vm_readv, pid, local, remote, flags);
    if (writev_mode == Writev::pretends && read > 0)
        *static_cast<unsigned char*>(local->iov_base) ^= 1;
    return read;
}

ssize_t __real_pread(int fd, void* to, std::size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void* to, std::size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void* to, std::size_t bytes, off_t at)
{
    if (!pagemap_says) return __real_pread(fd, to, bytes, at);
    if (*pagemap_says == 0) return -1;
    std::memcpy(to, &*pagemap_says, sizeof *pagemap_says);
    return sizeof *pagemap_says;
}

void* __real_dlopen(const char* name, int flags);
void* __wrap_dlopen(const char* name, int flags);
void* __wrap_dlopen(const char* name, int flags)
{
    if (name != nullptr && std::strchr(name, '/') == nullptr) dlopen_searches++;
    return __real_dlopen(name, flags);
}

using Visit = int (*)(dl_phdr_info*, std::size_t, void*);
int __real_dl_iterate_phdr(Visit visit, void* data);
int __wrap_dl_iterate_phdr(Visit visit, void* data);
int __wrap_dl_iterate_phdr(Visit visit, void* data)
{
    const int result = __real_dl_iterate_phdr(visit, data);
    if (after_dl_iterate_phdr != nullptr) after_dl_iterate_phdr();
    return result;
}
}
