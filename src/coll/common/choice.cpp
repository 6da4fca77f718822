// SPDX-License-Identifier: BSD-3-Clause
#include "coll/common/choice.hpp"

namespace hier {

const char* to_string(Route route)
{
    switch (route) {
    case Route::direct:
        return "direct";
    case Route::ring:
        return "ring";
    case Route::bundles:
        return "bundles";
    }
    return "unknown";
}

}  // namespace hier
