// SPDX-License-Identifier: BSD-3-Clause
// When UCX is loaded, it takes the signals of errors (SIGSEGV and others), even from an application that has
// handlers of its own. Hier gives them back to the handlers that were there before. It does so if UCX was
// loaded for hier's sake, and nobody has asked for UCX's handlers (UCX_ERROR_SIGNALS, UCX_HANDLE_ERRORS).
#include "net/network.hpp"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <ucs/debug/debug.h>

#include <cstdlib>
#include <initializer_list>

namespace hier {
namespace {

// Where the object that an address lies in begins; null: in none.
template <class T> const void* object_of(T* address)
{
    Dl_info about{};
    return dladdr(reinterpret_cast<const void*>(address), &about) != 0 ? about.dli_fbase : nullptr;
}

// Libraries come in the order in which they were loaded, those that one needs behind it.
bool is_loaded_before(const void* one, const void* other)
{
    struct Search {
        const void *one, *other;
    } search{one, other};
    return dl_iterate_phdr(
               [](dl_phdr_info* info, std::size_t, void* out) {
                   const auto& s = *static_cast<const Search*>(out);
                   const auto base = reinterpret_cast<const void*>(info->dlpi_addr);
                   return base == s.one ? 1 : base == s.other ? 2 : 0;
               },
               &search) == 1;
}

}  // namespace

void give_signals_back()
{
    const bool is_asked_for =
        std::getenv("UCX_ERROR_SIGNALS") != nullptr || std::getenv("UCX_HANDLE_ERRORS") != nullptr;
    const void* const ucx = object_of(&ucs_debug_disable_signal);
    if (is_asked_for || !is_loaded_before(object_of(&give_signals_back), ucx)) return;
    for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
        struct sigaction now {};
        if (sigaction(number, nullptr, &now) == 0 && object_of(now.sa_sigaction) == ucx)
            ucs_debug_disable_signal(number);
    }
}

}  // namespace hier
