/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between Open MPI 4.1, 5.0 and 6.0 (main). The versions of its interfaces decide. */
#ifndef MCA_COLL_HIER_COMPAT_H
#define MCA_COLL_HIER_COMPAT_H

#include "ompi_config.h"

#include <stdbool.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"
#include "opal/mca/base/base.h"
#if OMPI_MAJOR_VERSION > 4
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/thread_usage.h"
#define HIER_MODEX_GLOBAL PMIX_GLOBAL
typedef size_t hier_modex_size_t;
#else
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/thread_usage.h"
#define HIER_MODEX_GLOBAL OPAL_PMIX_GLOBAL
typedef int32_t hier_modex_size_t;
#endif

#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
#define HIER_HAS_ULFM 1
#define HIER_PROVIDERS "tuned,basic,libnbc,inter,self,ftagree"
#else
#define HIER_HAS_ULFM 0
#define HIER_PROVIDERS "tuned,basic,libnbc,inter,self"
#endif

#if defined(MCA_COLL_BASE_VERSION_3_0_0) /* 6.0 */
#define HIER_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
#define HIER_MODULE_INSTALLS 1 /* enable() installs the functions, disable() restores them */
typedef size_t hier_count_t;
typedef ompi_count_array_t hier_counts_t;
typedef ompi_disp_array_t hier_displacements_t;
#define HIER_COUNT_AT(counts, i) ompi_count_array_get(counts, (size_t)(i))
#define HIER_DISPLACEMENT_AT(displacements, i) ompi_disp_array_get(displacements, (size_t)(i))
#elif defined(MCA_COLL_BASE_VERSION_2_4_0) /* 5.0 */
#define HIER_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define HIER_MODULE_INSTALLS 0
typedef int hier_count_t;
#elif defined(MCA_COLL_BASE_VERSION_2_0_0) /* 4.1 */
#define HIER_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#define HIER_MODULE_INSTALLS 0
typedef int hier_count_t;
#else
#error "coll/hier does not know this version of Open MPI's coll interface"
#endif

#if !HIER_MODULE_INSTALLS
typedef const int* hier_counts_t;
typedef const int* hier_displacements_t;
#define HIER_COUNT_AT(counts, i) ((size_t)(counts)[i])
#define HIER_DISPLACEMENT_AT(displacements, i) ((ptrdiff_t)(displacements)[i])
#endif

/* A message is over, or will never be: its peer has ended, or the communicator was revoked. */
static inline bool hier_is_over(ompi_request_t* message)
{
    if (MPI_REQUEST_NULL == message || REQUEST_COMPLETE(message)) {
        return true;
    }
#if HIER_HAS_ULFM
    return ompi_request_is_failed(message);
#else
    return false;
#endif
}

#endif
