// SPDX-License-Identifier: BSD-3-Clause
// UCX's functions as the core calls them. The wrappers count the calls. If a test says so, calls
// fail, or puts behave as on a network that reorders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace hier::test {

enum class UcxCall {
    config_read,
    init,
    worker_create,
    get_address,
    ep_create,
    mem_map,
    rkey_pack,
    rkey_unpack,
    put,
    flush,
    fence,
    get,
    context_query,
    message,
    worker_flush
};
inline constexpr UcxCall every_ucx_call[] = {
    UcxCall::config_read,   UcxCall::init,    UcxCall::worker_create, UcxCall::get_address,
    UcxCall::ep_create,     UcxCall::mem_map, UcxCall::rkey_pack,     UcxCall::rkey_unpack,
    UcxCall::put,           UcxCall::flush,   UcxCall::fence,         UcxCall::get,
    UcxCall::context_query, UcxCall::message, UcxCall::worker_flush};
const char* to_string(UcxCall call);

enum class UcxFailure {
    at_once,  // the call returns an error
    later,    // put, flush, message: the completion reports an error
    for_good  // the call and all later calls of the kind return an error
};

// How puts of data behave, that is, all puts but those of single words.
enum class Lanes {
    one,      // like UCX
    several,  // puts go out at the next flush or fence, or after some turns of the worker
    // Like `several`, but flushes and fences do nothing for large puts, as if the core had left
    // them out.
    several_unordered,
    second_late,     // only the connections of the first worker send; the others wait for a while
    loses_data,      // large puts complete, but are never sent
    loses_signals,   // large puts are sent, but the words behind them are not
    loses_chunks,    // neither large puts nor the words behind them are sent
    loses_one_chunk  // the next large put and the word behind it are not sent; then like `one`
};

// Registrations that end with their memory, like those of a NIC. Registrations of TCP and shared
// memory do not. A put by the key of freed memory goes nowhere. All ranks share one object, which
// is made before the ranks are forked.
class Registrations {
public:
    Registrations();
    ~Registrations();
    Registrations(const Registrations&) = delete;
    Registrations& operator=(const Registrations&) = delete;

    // This rank may give this memory back.
    void watch(int rank, const void* begin, std::size_t bytes);
    // The memory has been given back. Other memory may be at its address by now.
    void renew();
    // The number of puts of all ranks so far that used the key of freed memory.
    unsigned stale_puts() const;

    // For the wrappers.
    struct Key {
        std::uint64_t owner;  // of the memory; `none`: memory that is never freed
        std::uint64_t generation;
    };
    static constexpr std::uint64_t none = ~0ull;
    Key key_of(const void* begin) const;
    bool is_stale(const Key& key);

private:
    struct Shared;
    Shared* shared_;
    std::uint64_t rank_ = none;
    const std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

struct WrappedUcx {
    // The n-th call from now, from 1, fails.
    void fail_nth(UcxCall call, int nth, UcxFailure how);
    bool has_failed() const { return has_failed_; }
    std::size_t destroyed_workers = 0;
    std::size_t puts_of_second = 0;  // over the connections of all workers but the first
    // Lists the objects of UCX that were made and not destroyed; "" if there are none.
    std::string leaks() const;
    std::size_t calls(UcxCall call) const { return calls_[static_cast<std::size_t>(call)]; }

    Lanes lanes = Lanes::one;
    Registrations* registrations = nullptr;  // nullptr: UCX's own
    bool packs_old_keys = false;  // an address always gets its first key, as with a careless cache
    const char* transports = nullptr;             // UCX gets these, whatever the core asks for
    std::map<std::string, std::string> settings;  // that UCX was given
    bool keeps_back = false;                      // a flush of the worker is not done at once
    bool answers_puts = false;  // a put is done when its target has answered (UCX 1.18 over TCP)
    bool knows_rocm = false;    // UCX says that it knows ROCm memory
    bool refuses_devices =
        false;  // UCX does not register device memory and logs an error each time
    // A put to device memory becomes visible when a get is done (ucx_device.hpp).
    bool hides_landings = false;
    void (*before_large_put)() = nullptr;
    bool (*may_fail)() = nullptr;  // UcxFailure::later: the failure waits until this says true
    bool reads_flush = true;       // false: a get does not flush, as if the core had made none

    // For the wrappers.
    bool fails(UcxCall call);
    bool fails_later() const { return how_ == UcxFailure::later; }
    long contexts = 0, configs = 0, workers = 0, addresses = 0, mappings = 0, packed = 0, keys = 0,
         requests = 0;

private:
    std::size_t calls_[std::size(every_ucx_call)]{};
    UcxCall call_ = UcxCall::init;
    int left_ = 0;
    UcxFailure how_ = UcxFailure::at_once;
    bool has_failed_ = false;
};

extern WrappedUcx ucx;  // of this process

// `key` was unpacked by this process.
bool is_stale(const void* key);
// Does the endpoint belong to the worker that was the first to have one?
bool is_of_first_worker(const void* endpoint);

}  // namespace hier::test
