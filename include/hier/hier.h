/* SPDX-License-Identifier: BSD-3-Clause */
/* The C interface between Open MPI's side (ompi_coll_hier/) and the core (src/).
 *
 * Functions return HIER_OK or a code below. None of them throws, exits or aborts. When an error comes back,
 * its cause has been logged. One thread at a time may use a team. Several threads may use different teams
 * at once. */
#ifndef HIER_HIER_H
#define HIER_HIER_H

#include <stddef.h>

#include "hier/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HIER_OK = 0,
    HIER_IN_PROGRESS = 1,
    HIER_ERR_ARGUMENT = -1,
    HIER_ERR_MEMORY = -2,
    HIER_ERR_MISMATCH = -3,  /* ranks passed different sizes */
    HIER_ERR_TRANSPORT = -4, /* a copy, put or registration failed */
    HIER_ERR_PEER = -5,      /* another rank of the team failed */
    HIER_ERR_TIMEOUT = -6,   /* nothing has moved for hier_config's timeout, and that is an error */
    HIER_ERR_SETUP = -7      /* no rank could make a team; no data has moved */
};

enum { HIER_INTER_AUTO = 0, HIER_INTER_DIRECT, HIER_INTER_RING, HIER_INTER_BUNDLES };
enum { HIER_INTRA_AUTO = 0, HIER_INTRA_CMA, HIER_INTRA_SHM };

enum { HIER_GPU_AUTO = 0, HIER_GPU_NONE, HIER_GPU_ROCM, HIER_GPU_CUDA };
enum { HIER_GPU_PEERS_AUTO = 0, HIER_GPU_PEERS_OFF };
/* on free units: while they start at once (src/node/device/compute_units.hpp) */
enum { HIER_KERNELS_OFF = 0, HIER_KERNELS_ON_FREE_UNITS, HIER_KERNELS_ALWAYS };
enum { HIER_GPU_DIRECT_AUTO = 0, HIER_GPU_DIRECT_ON, HIER_GPU_DIRECT_OFF };

enum { HIER_TIMEOUT_REPORT = 0, HIER_TIMEOUT_FAIL };

enum { HIER_LOG_ERROR = 0, HIER_LOG_INFO = 1, HIER_LOG_DEBUG = 10 };

typedef struct hier_config {
    size_t chunk_bytes; /* bytes of one put at most; 4096 ... 1 GiB; 0: by the cost model */
    int depth; /* puts in flight on a rail; 1 ... 1024, less over RDMA; 0: by the cost model */
    size_t
        eager_bytes;  /* a shard or bundle of up to so many bytes waits for no receiver; 0: never */
    double net_rate;  /* GB/s of a network device, each direction; 0: as UCX says */
    double link_rate; /* GB/s of a rank's copies to its node's others; 0: what is usual */
    int ranks_per_node; /* 0: hosts as found; k: cut each host into virtual nodes of k ranks */
    int inter;          /* HIER_INTER_*: route between nodes; auto: by the cost model */
    int intra;          /* HIER_INTRA_*: host memory inside a node */
    int gpu; /* HIER_GPU_*: runtime of device memory; auto: the one that the process uses */
    int gpu_peers; /* HIER_GPU_PEERS_*: may other ranks of the node write into this one's device memory? */
    int kernels; /* HIER_KERNELS_*: may hier launch kernels? If a rank says off, none of its node does */
    int gpu_cpu_access; /* 1: the CPU moves small blocks of device memory where it reaches that. If any rank says
                         * 0, none does */
    int gpu_direct; /* HIER_GPU_DIRECT_*: may the network read and write device memory itself? Ranks may
                     * differ in this */
    int timeout; /* seconds without movement while all ranks are in the call, and seconds that one copy on
                  * a device may take, until something is reported; 0: never */
    int timeout_action; /* HIER_TIMEOUT_*: report, and go on, or fail. Ranks may differ in this */
    int nics;           /* network devices of a rank at most; 1 ... 16 */
    const char* net_devices;    /* UCX names, comma-separated; "auto" */
    const char* net_transports; /* UCX names, comma-separated; "auto"; "^tcp": "auto", but no TCP */
    const char* tcp_include; /* where net_devices is "auto": names or IPv4 networks (10.1.0.0/16),
                              * comma-separated, whose first is taken for TCP; "" or NULL: that of
                              * the default route */
    const char* tcp_exclude; /* a list of the same kind: these are not taken then */
    const char*
        messages;      /* how the caller sends messages: the name of Open MPI's pml; "" or NULL: not
                           * known. Where that is faster than the TCP which "auto" would take: no team */
    const char* trace; /* a directory, or what the files' names begin with; "" or NULL: none */
    int trace_call;    /* the call of each team that is traced, from 1; 0: every one */
    const char*
        tuning_file; /* hier_load_tuning reads it; "" or NULL: none. Ranks with different files use
                              * none of their choices */
    const char* caller;  /* name and version, for traces */
    int progress_thread; /* 1: a thread of hier's own moves calls that run in the background */
    int has_threads; /* 1: threads of the application may call at the same time. Ranks may differ in this */
    int device; /* this rank's GPU, as hier_device_of_thread says, where the process has used no device memory yet */
    size_t staging_kept;   /* bytes of staging memory that the process keeps between calls */
    size_t staging_window; /* bytes of staging memory that a call of a team uses at most, as far as
                            * hier_team_part_bytes can see to it */
    int log_level;         /* highest HIER_LOG_* that `log` wants */
    void (*log)(int level, const char* line);
    void (*progress)(void); /* keeps the caller's own communication alive while set-up waits */
} hier_config;

/* The ranks of a team, and how they exchange bytes during set-up. */
typedef struct hier_bootstrap {
    void* context;
    int rank, size;
    /* Sends `out` to rank `to` and receives `in` from rank `from` at the same time. `to` and `from` may be
     * equal, but neither is the caller. -1: to nobody, or from nobody. Messages from one rank to another arrive in
     * order, and may be shorter than `in_bytes`, but not longer. 0 or an error. */
    int (*exchange)(void* context, const void* out, size_t out_bytes, int to, void* in,
                    size_t in_bytes, int from);
    const char*
        name; /* of the team, in traces and log lines: teams of one time have different ones;
                       * or NULL */
    /* Will this rank take part in the set-up? Asked for the few ranks that are the first to exchange messages
     * with the caller. The others have to be asked the same about the caller. An absent rank gets no message, and
     * all ranks that are present get HIER_ERR_SETUP. NULL: all ranks are present. */
    int (*is_present)(void* context, int rank);
} hier_bootstrap;

/* UCX takes signal handlers when it is loaded with this library. This puts the earlier ones back. */
void hier_give_signals_back(void);

/* Before anything else: takes the settings that concern the process. hier_team_create does so again. hier_finalize ends
 * the progress thread. */
void hier_init(const hier_config* config);

/* Reads hier_config's tuning_file, for all teams of the process. Before the first one.
 * HIER_ERR_ARGUMENT: the file is broken. The line and the reason have been logged. */
int hier_load_tuning(const hier_config* config);

typedef struct hier_team hier_team;

/* Collective over the bootstrap's team. After an error there is no team.
 * HIER_ERR_SETUP: every rank gets this error, and the caller uses its fallback.
 * HIER_ERR_PEER: an exchange has failed. Messages that other ranks sent for it may still arrive. */
int hier_team_create(const hier_config* config, const hier_bootstrap* bootstrap, hier_team** team);
/* Local. No call may be running on the team. NULL is allowed. */
void hier_team_destroy(hier_team* team);
/* One line on the groups and transports of a team. Valid until the team is destroyed. */
const char* hier_team_description(const hier_team* team);

/* Below so many bytes of all ranks together, the cost model expects the caller's own function to be
 * faster. Equal on all ranks. A smaller call may be started all the same. */
size_t hier_team_min_bytes(const hier_team* team, int collective);

/* Up to so many bytes of all ranks together, the network can register the memory of a call. Equal on all
 * ranks. The caller must not start a larger call. SIZE_MAX, unless RDMA has a limit on locked memory. */
size_t hier_team_max_bytes(const hier_team* team);

/* Bytes of each block that one start should move at most, in a call of `bytes` a block. A larger call is
 * started part by part, so that a rank that stages its buffers needs memory for a part alone. Equal on all
 * ranks. */
size_t hier_team_part_bytes(hier_team* team, int collective, size_t bytes);

/* May the blocks of a call lie anywhere in a rank's receive buffer (hier_call)? `bytes`: of the largest block of the
 * whole call. `are_equal`: 1: all blocks have so many. A rank may ask alone. */
int hier_team_takes_displacements(hier_team* team, int collective, size_t bytes, int are_equal);

/* May a call's buffers be memory that the CPU cannot reach? A team that was made before the process used
 * its GPU says no. Then such buffers have to be staged. */
int hier_team_takes_device_memory(const hier_team* team);

/* The collectives, in the order of shipped_collectives(). In an allgather the ranks' blocks may have different
 * sizes. */
enum { HIER_ALLGATHER = 0, HIER_COLLECTIVES };

enum { HIER_MEMORY_HOST = 0, HIER_MEMORY_PINNED, HIER_MEMORY_MANAGED, HIER_MEMORY_DEVICE };

/* The allocation that an address belongs to. */
typedef struct hier_memory {
    int kind;              /* HIER_MEMORY_* */
    int device;            /* of device and managed memory; -1: none, or the CPU has its pages */
    void* base;            /* of device memory: where the allocation begins */
    size_t length;         /* bytes from `base` */
    unsigned long long id; /* a later allocation at the same address has another one; 0: none */
    int is_exportable;     /* 0: the runtime cannot show it to other processes */
    int is_reachable;      /* 1: the CPU reads and writes it; 0: it is a device's */
    int error; /* HIER_OK, or why the GPU's runtime could not tell, which has been logged. No call takes
                * such memory. */
} hier_memory;

/* The caller asks once for all buffers of a call. The core does not ask again. The program's data, heap and stack are
 * HIER_MEMORY_HOST, also if the GPU's runtime has pinned them, or if it is broken. */
void hier_memory_inspect(size_t count, const void* const addresses[],
                         hier_memory* const memories[]);
/* 1: hier_memory_inspect would find the host's memory alone, whatever the address: the process uses no GPU so far. */
int hier_memory_is_all_host(void);
/* 1: all these addresses are in host memory, because the process uses no GPU, or because they lie in the program's data,
 * heap or stack. 0: not known. Takes some 10 ns, and to ask a GPU's runtime takes far longer. */
int hier_memory_is_host(size_t count, const void* const addresses[]);

typedef struct hier_buffer {
    void* base;
    size_t bytes;
    hier_memory memory; /* the allocation of `base` */
    /* Bytes of the same buffer before `base` and behind the end. The network registers them along with the
     * rest, so that all parts of a large call share one registration. */
    size_t before, after;
    int is_sparse; /* 1: HIER_STAGING_SPARSE, which no network registers */
} hier_buffer;

/* A rank's block in `recv`. */
typedef struct hier_block {
    size_t offset; /* bytes */
    size_t bytes;
} hier_block;

/* Who moves a call until it is over? ANYBODY: threads that call hier_progress. CALLER: the thread that starts it, by
 * hier_progress_team; hier_progress need not move it. NOBODY waits: the application computes, and hier's own thread moves
 * the call, too, if there is one. */
enum { HIER_ANYBODY = 0, HIER_CALLER, HIER_NOBODY };

/* One rank's part in a collective call. The kinds of memory may differ between buffers and ranks. */
typedef struct hier_call {
    int collective; /* HIER_ALLGATHER */
    size_t
        bytes; /* of each rank's block that this call moves, or of the largest; equal on all ranks */
    size_t
        stride; /* from the beginning of one block in `recv` to that of the next; equal on all ranks; 0:
                     * they lie side by side */
    /* NULL: blocks are equal. Else one for each rank, equal on all ranks, without overlap. Then `bytes` is the largest
     * one's, and `stride` that of the whole call's largest block, or 0 if this is the whole call. hier_start copies
     * them. */
    const hier_block* blocks;
    /* NULL: each rank's block begins where the above says. Else where in `recv` it begins, by rank; without meaning
     * for empty blocks. Local, so other ranks may have others. `blocks`, if there are any, are in rank order then. Only
     * if hier_team_takes_displacements says so. hier_start copies them. */
    const size_t* displacements;
    int in_place;     /* 1: `send` is a part of `recv` */
    int waiter;       /* HIER_ANYBODY, ... */
    hier_buffer send; /* not written, unless in place */
    hier_buffer recv;
    /* For hier_start. NULL, or called once if the call ends well, and not in its start: just before hier_test says so, in
     * the thread that has moved the call last, which may be one of hier's own. It may call nothing of hier. */
    void (*on_success)(void* context);
    void* context;
} hier_call;

typedef struct hier_request hier_request;

/* Starts a call. Every rank of the team starts the same calls in the same order. A team runs them one after
 * the other. The buffers must stay as they are until hier_test says that the call is over.
 * HIER_IN_PROGRESS: `*request` stands for the call. HIER_OK: the call is over already, and there is no request.
 * HIER_ERR_ARGUMENT: nothing was started, and no other rank hears of this.
 * Any other error has broken the team: every later start returns it. No peer writes into `recv` any more,
 * unless the line "not safe to reuse" was logged. Then a peer has not answered within 5 s. */
int hier_start(hier_team* team, const hier_call* call, hier_request** request);
/* The thread that has started the running call as HIER_CALLER moves it no more: it goes on as with HIER_NOBODY. */
void hier_hand_over(hier_team* team);
/* HIER_IN_PROGRESS, HIER_OK or the call's error. Does not wait. After anything but HIER_IN_PROGRESS the
 * request is gone, unless hier_prepare made it. */
int hier_test(hier_request* request);
/* For a call that is started again and again, with the same buffers. What the first start finds out serves the later ones.
 * hier_prepare is local and starts nothing. `*request`: NULL, and then a new one, which lasts as long as the team; or one
 * that hier_prepare has made and whose call is over, to be used for this call. HIER_OK, HIER_ERR_ARGUMENT or
 * HIER_ERR_MEMORY. */
int hier_prepare(hier_team* team, const hier_call* call, hier_request** request);
/* Starts the call of a request from hier_prepare, with the results of hier_start; but for HIER_NOBODY it may be hier_test
 * that returns the error of a broken team. The call may not be running. Its buffers are still in the memory that
 * hier_prepare was told of. `waiter`, `on_success` and `context` replace those of the call. */
int hier_start_prepared(hier_team* team, hier_request* request, int waiter,
                        void (*on_success)(void* context), void* context);
/* Takes the place of hier_start on a rank that cannot take part. The call fails on the other ranks, and the
 * team is broken. */
void hier_refuse(hier_team* team);
/* Ends the running call with HIER_ERR_PEER, if it has not failed yet, and tells the other ranks. For a caller
 * that knows that the call cannot end well: a rank's process has ended, or the communicator was revoked.
 * hier_test says when the call is over. `is_dead` has a byte for each rank: not 0 if the rank's process has
 * ended. Without a running call nothing happens. */
void hier_interrupt(hier_team* team, const unsigned char* is_dead);
/* HIER_OK, or the error that has broken the team. */
int hier_team_error(const hier_team* team);
/* Moves all running collectives of the process, unless the progress thread moves them. Returns how many moved, for
 * opal_progress. */
int hier_progress(void);
/* The same for the running collective of one team, for the thread that waits for it. */
int hier_progress_team(hier_team* team);
/* Peers may leave from now on: only calls send to them any more. Local. */
void hier_quiesce(void);
/* The device that the calling thread uses; 0 if it has chosen none; -1: the process uses no GPU. */
int hier_device_of_thread(void);
/* After the last team is gone: releases what the process shares (network workers and connections).
 * Local. */
void hier_finalize(void);

/* `rows` times `bytes` bytes. At either end rows are a pitch apart, which is at least `bytes`. */
typedef struct hier_strided_copy {
    void* to;
    const void* from;
    size_t bytes;
    size_t rows;
    size_t to_pitch, from_pitch; /* of no meaning where there is one row */
} hier_strided_copy;

/* Blocking copies. At least one end of each is device memory. After HIER_ERR_TIMEOUT the copies may go on
 * reading and writing, and the process makes no more copies for that device. */
int hier_memory_copy(const hier_strided_copy* copies, size_t count);
/* Memory of the host that takes a buffer's place for one call. All teams of the process share it, and the
 * process keeps no more of it than hier_config says. */
enum {
    HIER_STAGING_HOST = 0, /* pageable */
    HIER_STAGING_PINNED, /* pinned, if a device has been seen and can have so much; else pageable */
    HIER_STAGING_SPARSE /* pageable; a page is there only from its first use to hier_staging_drop_pages */
};
/* At least so many bytes, page-aligned. NULL: there is no memory, which has been logged. */
void* hier_staging_borrow(int kind, size_t bytes);
/* Drops all pages of sparse memory that have any of these bytes. */
void hier_staging_drop_pages(void* from, size_t bytes);
/* Nobody reads or writes the memory any more. The memory of a failed call is never given back. NULL:
 * nothing happens. */
void hier_staging_give_back(void* memory);
/* The same in device memory: up to HIER_MAX_LENT bytes of the device that `like` belongs to. NULL: there is
 * no memory, or too much is lent. The process keeps the memory and lends it again: peers may have it mapped, and
 * freeing it could wait for the application's kernels. */
#define HIER_MAX_LENT ((size_t)64 << 20)
void* hier_memory_borrow(const void* like, size_t bytes);
void hier_memory_give_back(const void* memory); /* NULL: nothing happens */

const char* hier_strerror(int code);

#ifdef __cplusplus
}
#endif
#endif
