// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/ucx_workers.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace hier {
namespace {

struct Registry {
    std::mutex mutex;
    std::vector<std::shared_ptr<UcxWorker>> workers;
    std::atomic<bool> quiet{false};
};

Registry& registry()
{
    // Never destroyed: a child of fork() that ends by exit() would end the parent's connections.
    static Registry& instance = *new Registry;
    return instance;
}

// To end a connection over TCP, UCX (1.13) asks for a socket and for the routes, and ends the process
// where it does not get both: no descriptor is left, /proc is not there (chroot), the main thread has ended.
bool can_end_connections()
{
    const int routes = open("/proc/net/route", O_RDONLY | O_CLOEXEC);
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (routes >= 0) close(routes);
    if (made >= 0) close(made);
    return routes >= 0 && made >= 0;
}

}  // namespace

std::shared_ptr<UcxWorker> UcxWorkers::get(const NetworkChoice& choice)
{
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    for (const auto& worker : all.workers) {
        if (worker->choice() == choice) return worker;
    }
    return all.workers.emplace_back(std::make_shared<UcxWorker>(choice));
}

void UcxWorkers::progress()
{
    Registry& all = registry();
    if (all.quiet) return;
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (const auto& worker : all.workers) {
        const std::unique_lock its(worker->mutex(), std::try_to_lock);
        if (its.owns_lock()) worker->progress(1);
    }
}

void UcxWorkers::quiesce() { registry().quiet = true; }

bool UcxWorkers::are_quiet() { return registry().quiet; }

void UcxWorkers::finalize()
{
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (!can_end_connections()) {
        for (const auto& worker : all.workers) worker->keep();
    }
    all.workers.clear();
}

void UcxWorkers::drop_unused(const NetworkChoice& choice)
{
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.workers, [&](const auto& worker) {
        return worker->choice() == choice && worker.use_count() == 1 && !worker->has_connections();
    });
}

}  // namespace hier
