// SPDX-License-Identifier: BSD-3-Clause
#include "tuning/tuning.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>

#include "base/log.hpp"

namespace hier {
namespace {

struct Loaded {
    std::mutex mutex;
    bool is_tried = false;
    std::optional<Tuning> tuning;
};

Loaded& loaded()
{
    static Loaded once;
    return once;
}

std::optional<Tuning> read(const std::string& path, std::string& fault)
{
    constexpr off_t most = 1 << 20;
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        fault = std::strerror(errno);
        return std::nullopt;
    }
    if (!S_ISREG(status.st_mode) || status.st_size == 0 || status.st_size > most) {
        fault = "it is not a file of 1 byte to 1 MiB";
        return std::nullopt;
    }
    std::ifstream file(path);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf())) {
        fault = "it cannot be read";
        return std::nullopt;
    }
    return parse_tuning(text.str(), fault);
}

}  // namespace

const TunedSize* TunedLayout::find(std::size_t bytes) const
{
    const auto found = std::find_if(sizes.begin(), sizes.end(),
                                    [&](const TunedSize& size) { return bytes <= size.up_to; });
    return found != sizes.end() ? &*found : nullptr;
}

const TunedLayout* Tuning::find(const TunedLayout& layout) const
{
    const auto found = std::find_if(layouts.begin(), layouts.end(), [&](const TunedLayout& known) {
        return known.is_of_layout(layout);
    });
    return found != layouts.end() ? &*found : nullptr;
}

bool load_tuning(const char* path)
{
    if (path == nullptr || *path == '\0') return true;
    const std::lock_guard lock(loaded().mutex);
    if (loaded().is_tried) return loaded().tuning.has_value();
    loaded().is_tried = true;
    std::string fault;
    loaded().tuning = read(path, fault);
    if (!loaded().tuning) {
        log(HIER_LOG_ERROR, "coll_hier_tuning_file: %s: %s", path, fault.c_str());
        return false;
    }
    loaded().tuning->path = path;
    return true;
}

const Tuning* loaded_tuning()
{
    const std::lock_guard lock(loaded().mutex);
    return loaded().tuning ? &*loaded().tuning : nullptr;
}

}  // namespace hier
