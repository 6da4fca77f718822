// SPDX-License-Identifier: BSD-3-Clause
#include "environment.hpp"

#include <mpi.h>

#include <dlfcn.h>
#include <sys/utsname.h>

#include <array>
#include <cstdlib>
#include <ctime>

#ifndef HIER_COMMIT
#define HIER_COMMIT "unknown"
#endif

namespace bench {
namespace {

utsname system_names()
{
    utsname names{};
    uname(&names);
    return names;
}

}  // namespace

std::string host_name() { return system_names().nodename; }

std::string kernel_release() { return system_names().release; }

std::string mpi_version()
{
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string full(text.data(), static_cast<std::size_t>(length));
    return full.substr(0, full.find_first_of(",\n"));
}

std::string ucx_version()
{
    // Asks only a library that a component has already loaded. Loading UCX here would change what
    // is measured.
    void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) {
        return "";
    }
    using VersionString = const char* (*)();
    const auto version = reinterpret_cast<VersionString>(dlsym(library, "ucp_get_version_string"));
    std::string text = version != nullptr ? version() : "";
    dlclose(library);
    return text;
}

std::string commit() { return HIER_COMMIT; }

std::string utc_now()
{
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    const std::size_t length =
        std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), length};
}

std::string coll_selection()
{
    const char* list = std::getenv("OMPI_MCA_coll");
    return list != nullptr ? list : "";
}

}  // namespace bench
