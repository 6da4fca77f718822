// SPDX-License-Identifier: BSD-3-Clause
// UCX's functions as the core calls them: counted, made to fail, or made to behave like a network
// that reorders. Until a test says so, they are only counted.
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
    later,    // put, flush, message: its completion reports an error
    for_good  // at once, and so do all later calls of the kind
};

// How puts of data behave, that is, all puts but those of single words.
enum class Lanes {
    one,      // as UCX does
    several,  // they go out at the next flush or fence, or after some turns of the worker
    // As `several`, but flushes and fences do nothing for large puts, as if the core had left them
    // out.
    several_unordered,
    second_late,     // nothing on the connections of any worker but the first goes out for a while
    loses_data,      // large puts are done and never sent
    loses_signals,   // large puts are sent, no word behind one is
    loses_chunks,    // neither are
    loses_one_chunk  // the next large put and the word behind it; then `one`
};

// Registrations that end with their memory, as those of a NIC. (Those of TCP and shared memory do
// not.) A put by the key of memory that has been given back goes nowhere. All ranks share one object,
// which is made before they are.
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
    // Puts of all ranks so far by the key of memory that has been given back.
    unsigned stale_puts() const;

    // For the wrappers.
    struct Key {
        std::uint64_t owner;  // none: of memory that stays
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
    std::size_t puts_of_second = 0;  // over the connections of any worker but the first
    // Lists the objects of UCX that were made and not given back; "" if there are none.
    std::string leaks() const;
    std::size_t calls(UcxCall call) const { return calls_[static_cast<std::size_t>(call)]; }

    Lanes lanes = Lanes::one;
    Registrations* registrations = nullptr;  // none: UCX's own
    bool packs_old_keys = false;  // for an address as for the first time, as a careless cache does
    const char* transports = nullptr;             // given to UCX whatever the core asks for
    std::map<std::string, std::string> settings;  // what UCX has been told
    bool keeps_back = false;       // what is sent: a flush of the worker is not done at once
    bool answers_puts = false;     // a put is done when its target has answered (UCX 1.18 over TCP)
    bool knows_rocm = false;       // what it says of itself
    bool refuses_devices = false;  // their memory, each time with an error in UCX's own log
    // A put to device memory becomes visible when a get is done (ucx_device.hpp).
    bool hides_landings = false;
    void (*before_large_put)() = nullptr;
    bool (*may_fail)() = nullptr;  // UcxFailure::later: not before
    bool reads_flush = true;       // false: not even then, which is what a missing flush looks like

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
