#include "transport/retired_rails.hpp"

#include <atomic>
#include <mutex>
#include <vector>

#include "transport/ucx_rail.hpp"

namespace hier {
namespace {

struct Retired {
    std::mutex mutex;
    std::vector<std::unique_ptr<UcxRail>> rails;
    std::atomic<std::size_t> count{0};
};

Retired& retired()
{
    static Retired& instance = *new Retired;  // never destroyed, as the workers' registry
    return instance;
}

void sweep_locked(Retired& all)
{
    std::erase_if(all.rails, [](const std::unique_ptr<UcxRail>& rail) { return rail->leave(); });
    all.count = all.rails.size();
}

}  // namespace

void RetireRail::operator()(UcxRail* rail) const
{
    Retired& all = retired();
    const std::lock_guard lock(all.mutex);
    all.rails.emplace_back(rail);
    sweep_locked(all);
}

void sweep_retired_rails()
{
    Retired& all = retired();
    if (all.count.load(std::memory_order_relaxed) == 0) return;
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    if (lock.owns_lock()) sweep_locked(all);
}

void drop_retired_rails()
{
    Retired& all = retired();
    const std::lock_guard lock(all.mutex);
    all.rails.clear();
    all.count = 0;
}

}  // namespace hier
