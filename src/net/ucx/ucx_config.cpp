// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/ucx_config.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"

namespace hier {

unsigned ucx_version()
{
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    return 100 * major + minor;
}

// From 1.18 on UCX lets NICs place data out of order where they can (DDP_ENABLE), and only from 1.22
// on its weak fence holds a put back for that.
bool orders_by_weak_fence(unsigned version) { return version < 118 || version >= 122; }

namespace {

void modify(ucp_config_t* config, const char* key, const std::string& value)
{
    const ucs_status_t status = ucp_config_modify(config, key, value.c_str());
    if (status != UCS_OK)
        log(HIER_LOG_DEBUG, "UCX does not take %s=%s: %s", key, value.c_str(),
            ucs_status_string(status));
}

// UCX warns of a key that it does not know, once, at the first worker: so it gets only those that
// its version has.
bool knows(const ucp_config_t* config, const char* key)
{
    char* text = nullptr;
    std::size_t length = 0;
    FILE* stream = open_memstream(&text, &length);
    if (stream == nullptr) return false;
    ucp_config_print(config, stream, "", UCS_CONFIG_PRINT_CONFIG);
    std::fclose(stream);
    const bool found =
        std::string(text, length).find(std::string("UCX_") + key + '=') != std::string::npos;
    std::free(text);
    return found;
}

// From 1.18 on keys of a transport carry its name.
std::string prefixed(const char* transport, const char* key)
{
    return ucx_version() >= 118 ? std::string(transport) + '_' + key : key;
}

// The old protocols put from device memory with the CPU. And for ROCm's memory UCX has to be told to
// use what the kernel offers by itself (dmabuf), without a module of AMD's; a user may have said more.
void configure_devices(ucp_config_t* config, const std::string& memory)
{
    if (ucx_version() < first_for_devices) return;
    modify(config, "PROTO_ENABLE", "y");
    if (memory.find("rocm_copy") != std::string::npos &&
        std::getenv("UCX_ROCM_COPY_DMABUF") == nullptr)
        modify(config, prefixed("ROCM_COPY", "DMABUF").c_str(), "try");
}

}  // namespace

std::optional<std::size_t> max_lockable()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
    // Only the kernel knows whether the limit holds for this thread (CAP_IPC_LOCK, and not just in a user
    // namespace). So hier locks addresses without memory.
    const std::size_t beyond = limit.rlim_cur + 1;
    void* pages =
        mmap(nullptr, beyond, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return limit.rlim_cur;
    const bool is_free = mlock2(pages, beyond, MLOCK_ONFAULT) == 0;
    munmap(pages, beyond);
    return is_free ? std::nullopt : std::optional<std::size_t>(limit.rlim_cur);
}

void require_descriptors(std::size_t count)
{
    // One is opened, for the system has a limit, too. Not so many: another thread may want one meanwhile.
    const int one = eventfd(0, EFD_CLOEXEC);
    const int cause = one < 0 ? errno : EMFILE;
    if (one >= 0) close(one);
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    std::size_t free = 0;
    // From above, where numbers are free as a rule.
    for (rlim_t number = std::min<rlim_t>(limit.rlim_cur, INT_MAX);
         one >= 0 && number > 0 && free < count; number--)
        free += fcntl(static_cast<int>(number - 1), F_GETFD) < 0 ? 1 : 0;
    if (free < count)
        throw SetupError(format("UCX may need %zu more descriptors, and this process gets %zu: %s "
                                "(ulimit -n)",
                                count, free, std::strerror(cause)));
}

void require_thread()
{
    try {
        std::thread([] {}).join();
    } catch (const std::system_error& e) {
        throw SetupError(
            format("UCX needs a thread, and this process gets none: %s (ulimit -u)", e.what()));
    }
}

std::size_t max_registered(const NetworkChoice& choice)
{
    const auto max = is_rdma(choice) ? max_lockable() : std::nullopt;
    if (!max) return std::numeric_limits<std::size_t>::max();
    return *max > locked_by_ucx ? (*max - locked_by_ucx) / 2 : 0;
}

void configure(ucp_config_t* config, const NetworkChoice& choice)
{
    const std::string memory = choice.memory.empty() ? "" : "," + choice.memory;
    if (!choice.transports.empty()) modify(config, "TLS", choice.transports + memory);
    if (!choice.devices.empty()) modify(config, "NET_DEVICES", choice.devices);
    // Never stripe a chunk: its signal could overtake a part of it.
    if (knows(config, "MAX_RMA_RAILS")) modify(config, "MAX_RMA_RAILS", "1");
    // Order on one lane is all we need; a strong fence waits for every peer.
    if (knows(config, "FENCE_MODE")) modify(config, "FENCE_MODE", "weak");
    if (!choice.memory.empty()) configure_devices(config, choice.memory);
    // For few peers UCX chooses rc for all it sends; for many, DC, some of whose lanes are several.
    if (is_reliable_rdma(choice)) modify(config, "NUM_EPS", "1");
    // A put waits where all DC queues are busy, and UCX then forgets the fence between the put and its
    // signal (uct_dc_mlx5_ep_fence). The queue keeps their order all the same, and so does the host where its
    // bus is not told that it need not.
    if (is_dynamic_rdma(choice)) modify(config, "IB_PCI_RELAXED_ORDERING", "no");
    // The cache gives nothing back when the rest is used up.
    const std::size_t max = max_registered(choice);
    if (max < std::numeric_limits<std::size_t>::max())
        modify(config, "RCACHE_MAX_SIZE", std::to_string(max));
    if (is_tcp(choice)) {
        // The cache keeps registrations, and TCP has none. For the first cache of a process UCX patches
        // mmap while its own thread runs, and before 1.21 it sometimes hangs (openucx/ucx, pull request
        // 11112).
        if (choice.memory.empty()) modify(config, "RCACHE_ENABLE", "n");
        modify(config, prefixed("TCP", "TX_SEG_SIZE").c_str(), "64k");
    }
}

SignalOrder signal_order_for(const NetworkChoice& choice)
{
    const bool one_device =
        !choice.devices.empty() && choice.devices.find(',') == std::string::npos;
    if (one_device && is_tcp(choice)) return SignalOrder::by_lane;
    if (one_device && is_reliable_rdma(choice) && orders_by_weak_fence(ucx_version()))
        return SignalOrder::by_fence;
    return SignalOrder::by_flush;
}

int max_in_flight(const NetworkChoice& choice)
{
    if (signal_order_for(choice) != SignalOrder::by_fence) return std::numeric_limits<int>::max();
    return is_dynamic_rdma(choice) ? 50 : 100;
}

}  // namespace hier
