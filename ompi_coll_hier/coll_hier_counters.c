/* SPDX-License-Identifier: BSD-3-Clause */
/* The performance variables: what the component counts itself, and what the core counts. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "coll_hier.h"

#include "opal/mca/base/mca_base_pvar.h"

static struct mca_coll_hier_component_t* const self = &mca_coll_hier_component;

/* The core reads the clock at the end of a call only while a tool has a handle for such a time. */
static int want_times(struct mca_base_pvar_t* variable, mca_base_pvar_event_t event, void* object,
                      int* count)
{
    (void)variable;
    (void)object;
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = 1;
        hier_want_call_times(1);
    } else if (MCA_BASE_PVAR_HANDLE_UNBIND == event) {
        hier_want_call_times(0);
    }
    return OMPI_SUCCESS;
}

/* How calls travel, by HIER_PATH_*. */
static const struct {
    const char *name, *how;
} paths[HIER_PATHS] = {
    {"published", "inside a node through memory that all ranks read"},
    {"kernels", "inside a node by a kernel on the GPU"},
    {"copies", "inside a node by copies to each rank"},
    {"direct", "between nodes by direct puts"},
    {"ring", "between nodes by the ring"},
    {"bundles", "between nodes by bundles"},
};

static const struct {
    const char *name, *help;
    int statistic; /* of the core */
} counts[] = {
    {"program_hits", "Calls with a kept program", HIER_STATISTIC_PROGRAM_HITS},
    {"program_misses", "Calls that had to make their program", HIER_STATISTIC_PROGRAM_MISSES},
    {"key_hits", "Announcements of receive buffers whose key the peers had",
     HIER_STATISTIC_KEY_HITS},
    {"key_misses", "Announcements of receive buffers with a new key", HIER_STATISTIC_KEY_MISSES},
    {"mapping_hits", "Uses of a peer's device memory that was mapped", HIER_STATISTIC_MAPPING_HITS},
    {"mapping_misses", "Uses of a peer's device memory that had to be mapped",
     HIER_STATISTIC_MAPPING_MISSES},
    {"staging_hits", "Uses of staging memory that was kept", HIER_STATISTIC_STAGING_HITS},
    {"staging_misses", "Uses of staging memory that had to be made", HIER_STATISTIC_STAGING_MISSES},
    {"fan_outs", "Blocks that a kernel on the GPU pushed to peers", HIER_STATISTIC_FAN_OUTS},
    {"teams", "Teams that set-ups have made", HIER_STATISTIC_TEAMS},
};

/* Communicators take turns. */
static mca_coll_hier_counts_t all_counts[16];

mca_coll_hier_counts_t* mca_coll_hier_counts_of_next_module(void)
{
    static unsigned modules;
    const unsigned next = __atomic_fetch_add(&modules, 1, __ATOMIC_RELAXED);
    return &all_counts[next % (sizeof all_counts / sizeof all_counts[0])];
}

/* The context of a variable is the place of the number in mca_coll_hier_counts_t. */
static int read_own_count(const struct mca_base_pvar_t* variable, void* value, void* object)
{
    (void)object;
    const size_t at = (size_t)(uintptr_t)variable->ctx;
    unsigned long long sum = 0;
    for (size_t i = 0; i < sizeof all_counts / sizeof all_counts[0]; i++) {
        const char* const base = (const char*)&all_counts[i];
        sum += __atomic_load_n((const unsigned long long*)(base + at), __ATOMIC_RELAXED);
    }
    *(unsigned long long*)value = sum;
    return OMPI_SUCCESS;
}

/* The context of a variable is the core's statistic. */
static unsigned long long value_of(const struct mca_base_pvar_t* variable)
{
    return hier_statistic((int)(intptr_t)variable->ctx);
}

static int read_count(const struct mca_base_pvar_t* variable, void* value, void* object)
{
    (void)object;
    *(unsigned long long*)value = value_of(variable);
    return OMPI_SUCCESS;
}

static int read_time(const struct mca_base_pvar_t* variable, void* value, void* object)
{
    (void)object;
    *(unsigned long long*)value = value_of(variable) / 1000; /* ns to us */
    return OMPI_SUCCESS;
}

static int register_number(const char* name, const char* help, int class,
                           mca_base_get_value_fn_t get, mca_base_notify_fn_t notify, void* context)
{
    const int rc = mca_base_component_pvar_register(
        &self->super.collm_version, name, help, OPAL_INFO_LVL_4, class,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MPI_T_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL, notify, context);
    return 0 > rc ? rc : OMPI_SUCCESS;
}

static int register_calls(const char* name, const char* what, const char* help, size_t at)
{
    char full_name[64], full_help[128];
    snprintf(full_name, sizeof full_name, "%s_%s", name, what);
    snprintf(full_help, sizeof full_help, "%s of MPI_%c%s that %s",
             NULL == strstr(name, "_init") ? "Calls" : "Starts", toupper((unsigned char)name[0]),
             name + 1, help);
    return register_number(full_name, full_help, MCA_BASE_PVAR_CLASS_COUNTER, read_own_count, NULL,
                           (void*)(uintptr_t)at);
}

/* Who served the calls of each collective. */
static int register_servers(void)
{
    static const struct {
        const char* name;
        const char* else_by; /* who serves the calls that no team serves */
    } collectives[MCA_COLL_HIER_COUNTED] = {
        [MCA_COLL_HIER_COUNT_ALLGATHER] = {"allgather", "the fallback module"},
        [MCA_COLL_HIER_COUNT_ALLGATHERV] = {"allgatherv", "the fallback module"},
        [MCA_COLL_HIER_COUNT_IALLGATHER] = {"iallgather", "plain messages"},
        [MCA_COLL_HIER_COUNT_IALLGATHERV] = {"iallgatherv", "plain messages"},
        [MCA_COLL_HIER_COUNT_ALLGATHER_INIT] = {"allgather_init", "plain messages"},
        [MCA_COLL_HIER_COUNT_ALLGATHERV_INIT] = {"allgatherv_init", "plain messages"},
    };
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < MCA_COLL_HIER_COUNTED && OMPI_SUCCESS == rc; i++) {
        const size_t before = i * sizeof(unsigned long long);
        char help[64];
        snprintf(help, sizeof help, "coll/hier left to %s", collectives[i].else_by);
        rc = register_calls(collectives[i].name, "calls", "coll/hier served",
                            offsetof(mca_coll_hier_counts_t, calls) + before);
        if (OMPI_SUCCESS == rc) {
            rc = register_calls(collectives[i].name, "fallbacks", help,
                                offsetof(mca_coll_hier_counts_t, fallbacks) + before);
        }
    }
    return rc;
}

static int register_statistic(const char* name, const char* help, int class, int statistic,
                              mca_base_notify_fn_t notify)
{
    return register_number(name, help, class,
                           MCA_BASE_PVAR_CLASS_TIMER == class ? read_time : read_count, notify,
                           (void*)(intptr_t)statistic);
}

static int register_path(int path)
{
    const struct {
        const char *what, *help;
        int class, statistic;
        mca_base_notify_fn_t notify;
    } rows[] = {
        {"calls", "Calls", MCA_BASE_PVAR_CLASS_COUNTER, HIER_STATISTIC_CALLS, NULL},
        {"bytes", "Bytes of results", MCA_BASE_PVAR_CLASS_AGGREGATE, HIER_STATISTIC_BYTES, NULL},
        {"usec", "Microseconds of calls", MCA_BASE_PVAR_CLASS_TIMER, HIER_STATISTIC_CALL_TIME,
         want_times},
    };
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && OMPI_SUCCESS == rc; i++) {
        char name[64], help[128];
        snprintf(name, sizeof name, "path_%s_%s", paths[path].name, rows[i].what);
        snprintf(help, sizeof help, "%s that went %s", rows[i].help, paths[path].how);
        rc =
            register_statistic(name, help, rows[i].class, rows[i].statistic + path, rows[i].notify);
    }
    return rc;
}

int mca_coll_hier_register_counters(void)
{
    int rc = register_servers();
    if (OMPI_SUCCESS == rc) {
        rc = register_number("fallback_bytes", "Bytes of results of calls that no team served",
                             MCA_BASE_PVAR_CLASS_AGGREGATE, read_own_count, NULL,
                             (void*)offsetof(mca_coll_hier_counts_t, fallback_bytes));
    }
    for (int path = 0; path < HIER_PATHS && OMPI_SUCCESS == rc; path++) {
        rc = register_path(path);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && OMPI_SUCCESS == rc; i++) {
        rc = register_statistic(counts[i].name, counts[i].help, MCA_BASE_PVAR_CLASS_COUNTER,
                                counts[i].statistic, NULL);
    }
    return OMPI_SUCCESS != rc
               ? rc
               : register_statistic("setup_usec", "Microseconds of set-ups",
                                    MCA_BASE_PVAR_CLASS_TIMER, HIER_STATISTIC_SETUP_TIME, NULL);
}
