#include "gpu/runtime.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "hier/hier.h"
#include "log.hpp"
#include "memory/readable.hpp"

namespace hier::gpu {
namespace {

struct Candidate {
    int choice;
    const char* module;
    // That an application which uses this runtime has loaded; empty: not built.
    const char* library;
};
constexpr Candidate candidates[] = {
    {HIER_GPU_CUDA, "hier_gpu_cuda.so", "libcuda.so.1"},
    {HIER_GPU_ROCM, "hier_gpu_rocm.so", HIER_ROCM_LIBRARY},
};

std::mutex mutex;
std::atomic<Runtime*> opened{nullptr};
std::atomic<int> chosen{HIER_GPU_AUTO};
std::atomic<int> last_device{-1};
std::atomic<bool> found_broken{false};  // by the last search
std::map<int, std::unique_ptr<Queue>> queues;
std::atomic<std::chrono::milliseconds> wait_bound{std::chrono::milliseconds(0)};

void log_line(int level, const char* line) { log(level, "%s", line); }

std::string directory_of_this()
{
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&log_line), &info) == 0 || info.dli_fname == nullptr)
        return ".";
    const std::string name = info.dli_fname;
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? "." : name.substr(0, slash);
}

// Beside the component; for programs of the build tree, where the component is. The variable is for
// tests and benches.
void* open_module(const char* name, std::string& reason)
{
    const std::string here = directory_of_this();
    const char* elsewhere = std::getenv("HIER_GPU_MODULES");
    for (const std::string& directory :
         {std::string(elsewhere != nullptr ? elsewhere : here), here + "/../component"}) {
        void* module = dlopen((directory + '/' + name).c_str(), RTLD_NOW | RTLD_LOCAL);
        if (module != nullptr) return module;
        const char* cause = dlerror();
        if (reason.empty() && cause != nullptr) reason = cause;
    }
    return nullptr;
}

Runtime* open(const Candidate& candidate, std::string& reasons, bool& is_broken)
{
    std::string reason;
    Runtime* runtime = nullptr;
    if (void* module = open_module(candidate.module, reason)) {
        char text[256] = "it has another version";
        const auto entry = reinterpret_cast<Open>(dlsym(module, entry_point));
        if (entry != nullptr) runtime = entry(log_line, text, sizeof text, is_broken);
        if (runtime == nullptr) reason = text;
    }
    if (runtime == nullptr) {
        log(HIER_LOG_DEBUG, "%s is not used: %s", candidate.module, reason.c_str());
        reasons += (reasons.empty() ? "" : "; ") + std::string(candidate.module) + ": " + reason;
    } else {
        log(HIER_LOG_DEBUG, "GPU memory by %s", runtime->name());
    }
    return runtime;
}

bool is_loaded(const char* library)
{
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
}

// How many libraries this process has loaded so far.
unsigned long long libraries_loaded()
{
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<unsigned long long*>(out) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

Runtime* search(bool only_loaded, std::string& reasons)
{
    const std::lock_guard lock(mutex);
    const int choice = chosen;
    if (opened != nullptr || choice == HIER_GPU_NONE) return opened;
    bool any_is_broken = false;
    for (const Candidate& c : candidates) {
        if ((choice != HIER_GPU_AUTO && choice != c.choice) || *c.library == '\0') continue;
        if (only_loaded && choice == HIER_GPU_AUTO && !is_loaded(c.library)) continue;
        if (Runtime* found = open(c, reasons, any_is_broken)) {
            opened = found;
            break;
        }
    }
    found_broken = opened == nullptr && any_is_broken;
    static bool told = false;
    if (opened == nullptr && choice != HIER_GPU_AUTO && !told) {
        told = true;
        log(HIER_LOG_ERROR, "coll_hier_gpu asks for a runtime that cannot be used: %s",
            reasons.c_str());
    }
    return opened;
}

}  // namespace

void choose_runtime(int choice) { chosen = choice; }

void limit_waits(std::chrono::milliseconds bound) { wait_bound = bound; }

Runtime* runtime()
{
    static std::atomic<unsigned long long> loaded_at_last_search{0};
    if (Runtime* found = opened) return found;
    if (chosen == HIER_GPU_NONE) return nullptr;
    const unsigned long long loaded = libraries_loaded();
    if (loaded_at_last_search == loaded) return nullptr;
    std::string reasons;
    Runtime* const found = search(true, reasons);
    loaded_at_last_search = loaded;  // not before: other threads would take the answer for known
    return found;
}

Runtime* find_runtime(std::string& reason)
{
    reason.clear();
    return search(false, reason);
}

// Nobody says what it is; but the host's it is not when the CPU does not reach it.
static Status inspect_without(const void* address, const Runtime*& r)
{
    if (!found_broken || is_readable(address)) return Status::ok;
    std::string reasons;
    r = search(true, reasons);
    if (r != nullptr) return Status::ok;
    log(HIER_LOG_ERROR,
        "a buffer that is not in the host's memory, and no GPU runtime that works: %s",
        reasons.c_str());
    return Status::transport_error;
}

Status inspect(const void* address, Allocation& allocation)
{
    allocation = {};
    const Runtime* r = runtime();
    if (r == nullptr) {
        const Status status = inspect_without(address, r);
        if (r == nullptr) return status;
    }
    const Status status = r->inspect(address, allocation);
    if (allocation.kind != MemoryKind::host && allocation.device >= 0)
        last_device.store(allocation.device, std::memory_order_relaxed);
    return status;
}

int used_device() { return last_device.load(std::memory_order_relaxed); }

Queue* queue(int device)
{
    const std::lock_guard lock(mutex);
    std::unique_ptr<Queue>& q = queues[device];
    if (!q && opened != nullptr) q = opened.load()->make_queue(device, wait_bound);
    return q.get();
}

static Status copy_by_queue(std::span<const Copy> copies)
{
    Allocation target, source;
    Status status = inspect(copies[0].to, target);
    if (!failed(status)) status = inspect(copies[0].from, source);
    if (failed(status)) return status;
    const int device = target.kind == MemoryKind::device ? target.device : source.device;
    Queue* q = device >= 0 ? queue(device) : nullptr;
    if (q == nullptr) return Status::transport_error;
    std::uint64_t ticket = 0;
    status = q->start(copies, {}, ticket);
    if (failed(status)) return status;
    return q->wait(ticket);
}

// These stage a call whose other ranks may be in it already: nothing is given up easily.
Status copy_now(std::span<const Copy> copies)
{
    if (copies.empty()) return Status::ok;
    const Status status = copy_by_queue(copies);
    const Runtime* r = opened;
    if (!failed(status) || status == Status::timed_out || r == nullptr) return status;
    return r->copy_plainly(copies);
}

void release_runtime()
{
    const std::lock_guard lock(mutex);
    queues.clear();
}

}  // namespace hier::gpu
