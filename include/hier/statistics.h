/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core counts, for tools. A part of the C interface: hier.h includes it. */
#ifndef HIER_STATISTICS_H
#define HIER_STATISTICS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The paths of calls that a team runs: how blocks move inside a single node, or the route between nodes. */
enum {
    HIER_PATH_PUBLISHED = 0, /* each rank writes its block once, into shared memory */
    HIER_PATH_KERNELS,       /* a kernel on the GPU stores the block into the memory of all peers */
    HIER_PATH_COPIES,        /* to each rank: by the CPU or by copy engines */
    HIER_PATH_DIRECT,
    HIER_PATH_RING,
    HIER_PATH_BUNDLES,
    HIER_PATHS
};

/* What a process counts. A call is one start that ended well, so each part of a large call counts. */
enum {
    HIER_STATISTIC_CALLS = 0, /* and the path: HIER_STATISTIC_CALLS + HIER_PATH_RING */
    HIER_STATISTIC_BYTES = HIER_STATISTIC_CALLS + HIER_PATHS,     /* of results, by path */
    HIER_STATISTIC_CALL_TIME = HIER_STATISTIC_BYTES + HIER_PATHS, /* ns, by path */
    HIER_STATISTIC_PROGRAM_HITS = HIER_STATISTIC_CALL_TIME + HIER_PATHS,
    HIER_STATISTIC_PROGRAM_MISSES, /* a program was made */
    HIER_STATISTIC_KEY_HITS,       /* peers knew the key of the receive buffer */
    HIER_STATISTIC_KEY_MISSES,     /* they were told a new one */
    HIER_STATISTIC_MAPPING_HITS,   /* a peer's device memory was mapped already */
    HIER_STATISTIC_MAPPING_MISSES, /* the GPU's runtime was asked to map it */
    HIER_STATISTIC_STAGING_HITS,   /* kept staging memory was lent */
    HIER_STATISTIC_STAGING_MISSES, /* staging memory was made */
    HIER_STATISTIC_FAN_OUTS,       /* blocks that a kernel has pushed to peers */
    HIER_STATISTIC_TEAMS,          /* made */
    HIER_STATISTIC_SETUP_TIME,     /* ns in hier_team_create, also where no team was made */
    HIER_STATISTICS
};
/* Since the start of the process. For any thread at any time, also before hier_init. */
unsigned long long hier_statistic(int which);
/* The time of calls is measured while more have asked for it than have given it up. A call that begins
 * before that is not measured. */
void hier_want_call_times(int is_wanted);

#ifdef __cplusplus
}
#endif
#endif
