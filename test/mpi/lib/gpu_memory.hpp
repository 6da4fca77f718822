// SPDX-License-Identifier: BSD-3-Clause
// Memory of every kind that an application's buffer may have. The CPU may not reach this memory, so the test looks into
// it through write() and read(). The test launches no kernel.
#pragma once

#include "gpu_mapped.hpp"
#include "gpu_names.hpp"
#include "support.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace hier_test {

enum class Kind {
    pageable,
    pinned,
    managed,
    device,
    pool,    // device memory that cannot be exported to other processes
    mapped,  // device memory that the application has mapped
};
inline constexpr unsigned kinds = 6;

inline const char* name_of(Kind kind)
{
    switch (kind) {
    case Kind::pageable:
        return "pageable";
    case Kind::pinned:
        return "pinned";
    case Kind::managed:
        return "managed";
    case Kind::device:
        return "device";
    case Kind::pool:
        return "pool";
    case Kind::mapped:
        return "mapped";
    }
    return "?";
}

// For calls of the test itself. If one fails, the test cannot go on.
inline void require_hip(hipError_t error, const char* what)
{
    if (error == hipSuccess) {
        return;
    }
    std::fprintf(stderr, "the test's own %s: %s\n", what, hipGetErrorName(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

using Bytes = std::vector<unsigned char>;

inline int current_device()
{
    int device = -1;
    require_hip(hipGetDevice(&device), "hipGetDevice");
    return device;
}

// Makes another device current for a while. On CUDA only a pool's own device reaches its memory.
class OnDevice {
public:
    explicit OnDevice(int device) { require_hip(hipSetDevice(device), "hipSetDevice"); }
    ~OnDevice() { require_hip(hipSetDevice(before_), "hipSetDevice"); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

private:
    int before_ = current_device();
};

// One allocation on the current device, filled with poison.
class Memory {
public:
    Memory(Kind kind, const Bytes& content) : Memory(kind, content.size()) { write(0, content); }
    Memory(Kind kind, std::size_t bytes) : kind_(kind), bytes_(bytes)
    {
        switch (kind) {
        case Kind::pageable:
            at_ = std::malloc(bytes);
            break;
        case Kind::pinned:
            require_hip(hipHostMalloc(&at_, bytes, hipHostMallocDefault), "hipHostMalloc");
            break;
        case Kind::managed:
            require_hip(hipMallocManaged(&at_, bytes, hipMemAttachGlobal), "hipMallocManaged");
            break;
        case Kind::device:
            require_hip(hipMalloc(&at_, bytes), "hipMalloc");
            break;
        case Kind::pool:
            require_hip(hipMallocAsync(&at_, bytes, nullptr), "hipMallocAsync");
            require_hip(hipStreamSynchronize(nullptr), "hipStreamSynchronize");
            break;
        case Kind::mapped:
            mapped_ = std::make_unique<Mapped>(bytes, device_);
            at_ = mapped_->data();
            break;
        }
        clear();
    }
    ~Memory() { release(); }
    Memory(Memory&& other) noexcept
        : kind_(other.kind_), bytes_(other.bytes_), device_(other.device_),
          mapped_(std::move(other.mapped_)), at_(std::exchange(other.at_, nullptr))
    {
    }
    Memory& operator=(Memory&& other) noexcept
    {
        std::swap(kind_, other.kind_);
        std::swap(bytes_, other.bytes_);
        std::swap(device_, other.device_);
        std::swap(mapped_, other.mapped_);
        std::swap(at_, other.at_);
        return *this;
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    Kind kind() const { return kind_; }
    unsigned char* data() const { return static_cast<unsigned char*>(at_); }
    std::size_t bytes() const { return bytes_; }

    void write(std::size_t offset, const Bytes& content) const
    {
        if (kind_ == Kind::managed && ++writes_ % 2 == 0) {
            // The device copies, so it has the pages afterwards.
            const OnDevice here(device_);
            const Memory source(Kind::device, content);
            require_hip(
                hipMemcpy(data() + offset, source.data(), content.size(), hipMemcpyDeviceToDevice),
                "hipMemcpy to managed memory");
#ifndef HIER_CUDA
            require_hip(hipStreamSynchronize(nullptr), "hipStreamSynchronize");
#endif
        } else if (is_on_device()) {
            const OnDevice here(device_);
            require_hip(
                hipMemcpy(data() + offset, content.data(), content.size(), hipMemcpyHostToDevice),
                "hipMemcpy to the device");
        } else {
            std::memcpy(data() + offset, content.data(), content.size());
        }
    }

    Bytes read(std::size_t offset, std::size_t bytes) const
    {
        Bytes content(bytes);
        if (is_on_device()) {
            const OnDevice here(device_);
            require_hip(hipMemcpy(content.data(), data() + offset, bytes, hipMemcpyDeviceToHost),
                        "hipMemcpy from the device");
        } else {
            std::memcpy(content.data(), data() + offset, bytes);
        }
        return content;
    }

    void clear() const { write(0, Bytes(bytes_, poison)); }

    // For mapped memory: puts other memory at the same addresses.
    void remap()
    {
        const OnDevice here(device_);
        mapped_->renew();
        clear();
    }

    void release()
    {
        void* const memory = std::exchange(at_, nullptr);
        if (memory == nullptr) {
            return;
        }
        const OnDevice here(device_);
        switch (kind_) {
        case Kind::pageable:
            return std::free(memory);
        case Kind::pinned:
            return require_hip(hipHostFree(memory), "hipHostFree");
        case Kind::managed:
        case Kind::device:
            return require_hip(hipFree(memory), "hipFree");
        case Kind::pool:
            require_hip(hipFreeAsync(memory, nullptr), "hipFreeAsync");
            require_hip(hipStreamSynchronize(nullptr), "hipStreamSynchronize");
            return;
        case Kind::mapped:
            return mapped_.reset();
        }
    }

private:
    bool is_on_device() const
    {
        return kind_ == Kind::device || kind_ == Kind::pool || kind_ == Kind::mapped;
    }

    Kind kind_;
    std::size_t bytes_;
    int device_ = current_device();
    mutable unsigned writes_ = 0;
    std::unique_ptr<Mapped> mapped_;
    void* at_ = nullptr;
};

// Describes the first byte that differs; "" if there is none.
inline std::string difference(const Bytes& got, const Bytes& wanted)
{
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (got[i] != wanted[i]) {
            return "from byte " + std::to_string(i) + " of " + std::to_string(wanted.size()) +
                   (wanted[i] == poison ? " (written where nothing belongs)"
                    : got[i] == poison  ? " (never written)"
                                        : "");
        }
    }
    return "";
}

// The result of an allgather of the patterns of ranks 0, 1, ...
inline Bytes gathered(int ranks, int call, std::size_t bytes)
{
    Bytes all;
    for (int rank = 0; rank < ranks; ++rank) {
        const Bytes one = Pattern(rank, call).bytes(bytes);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

// Makes calls like an application, and checks that they change neither the current device nor the last error.
class Caller {
public:
    Caller(Session& session, Observer& observer) : session_(session), observer_(observer) {}

    int allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
    {
        const int before = current_device();
        const int status = observer_.allgather(send, send_count, send_type, receive, receive_count,
                                               receive_type, comm);
        const int after = current_device();
        session_.check(before == after, "the current device was %d, and is %d after the call",
                       before, after);
        session_.check(hipPeekAtLastError() == hipSuccess,
                       "the call has left an error for the application: %s",
                       hipGetErrorName(hipGetLastError()));
        return status;
    }

    int allgather(const void* send, void* receive, std::size_t bytes, MPI_Comm comm)
    {
        const bool in_place = send == nullptr;
        const int count = static_cast<int>(bytes);
        return allgather(in_place ? MPI_IN_PLACE : send, in_place ? 0 : count,
                         in_place ? MPI_DATATYPE_NULL : MPI_BYTE, receive, count, MPI_BYTE, comm);
    }

    Session& session() const { return session_; }
    Observer& observer() const { return observer_; }

private:
    Session& session_;
    Observer& observer_;
};

// The number of devices, at least one. Without a device the test is skipped, and its last line says so.
inline int devices()
{
    int count = 0;
    const hipError_t error = hipGetDeviceCount(&count);
    if (error == hipSuccess && count > 0) {
        return count;
    }
    if (rank_of(MPI_COMM_WORLD) == 0) {
        std::printf("no GPU here: %s\n", hipGetErrorName(error));
    }
    MPI_Finalize();
    std::exit(77);
}

}  // namespace hier_test
