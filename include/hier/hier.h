/* SPDX-License-Identifier: BSD-3-Clause */
/* The C interface between Open MPI's side (ompi_coll_hier/) and the core (src/).
 *
 * Functions return HIER_OK or a code below; none throws, exits or aborts. The cause of an error has
 * been logged when the code comes back. A team may be used by one thread at a time; different teams
 * by different threads at once. */
#ifndef HIER_HIER_H
#define HIER_HIER_H

#include <stddef.h>

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
    HIER_ERR_TIMEOUT = -6, /* nothing has moved for hier_config's timeout */
    HIER_ERR_SETUP = -7 /* no team could be made, on any rank; nothing has moved */
};

enum { HIER_INTER_AUTO = 0, HIER_INTER_DIRECT, HIER_INTER_RING, HIER_INTER_BUNDLES };
enum { HIER_INTRA_AUTO = 0, HIER_INTRA_CMA, HIER_INTRA_SHM };

enum { HIER_GPU_AUTO = 0, HIER_GPU_NONE, HIER_GPU_ROCM, HIER_GPU_CUDA };
enum { HIER_GPU_PEERS_AUTO = 0, HIER_GPU_PEERS_OFF };
enum { HIER_GPU_DIRECT_AUTO = 0, HIER_GPU_DIRECT_ON, HIER_GPU_DIRECT_OFF };

enum { HIER_LOG_ERROR = 0, HIER_LOG_INFO = 1, HIER_LOG_DEBUG = 10 };

typedef struct hier_config {
    size_t chunk_bytes; /* bytes of one put at most; 4096 ... 1 GiB; 0: by the cost model */
    int depth;          /* puts in flight on a rail; 1 ... 1024, over RDMA 100; 0: by the cost model */
    size_t eager_bytes; /* of a rank or a bundle, up to which nobody waits; 0: never */
    double net_rate;    /* GB/s of a network device, each direction; 0: as UCX says */
    double link_rate;   /* GB/s of a rank's copies to its node's others; 0: what is usual */
    int ranks_per_node; /* 0: hosts as found; k: cut each host into virtual nodes of k ranks */
    int inter;          /* HIER_INTER_*: route between nodes; auto: by the cost model */
    int intra;          /* HIER_INTRA_*: host memory inside a node */
    int gpu;        /* HIER_GPU_*: runtime of device memory; auto: the one that the process uses */
    int gpu_peers;  /* HIER_GPU_PEERS_*: may the node's others write into this rank's device memory? */
    int gpu_direct; /* HIER_GPU_DIRECT_*: may the network read and write device memory itself? Each
                     * rank's own affair */
    int timeout; /* seconds without movement, all ranks being in the call, and of a copy on a device;
                  * 0: no end */
    int nics;    /* network devices of a rank at most; 1 ... 16 */
    const char* net_devices;    /* UCX names, comma-separated; "auto" */
    const char* net_transports; /* UCX names, comma-separated; "auto" */
    const char* tcp_include; /* where net_devices is "auto": names or IPv4 networks (10.1.0.0/16),
                              * comma-separated, whose first is taken for TCP; "" or NULL: that of
                              * the default route */
    const char* tcp_exclude; /* likewise: what is not taken then */
    const char* messages; /* how the caller sends messages: the name of Open MPI's pml; "" or NULL: not
                           * known. Where that is faster than the TCP which "auto" would take: no team */
    const char* trace;  /* a directory, or what the files' names begin with; "" or NULL: none */
    int trace_call;     /* the call of each team that is traced, from 1; 0: every one */
    const char* caller; /* name and version, for traces */
    int log_level;      /* highest HIER_LOG_* that `log` wants */
    void (*log)(int level, const char* line);
    void (*progress)(void); /* keeps the caller's own communication alive while set-up waits */
} hier_config;

/* The ranks of a team, and how they exchange bytes during set-up. */
typedef struct hier_bootstrap {
    void* context;
    int rank, size;
    /* Sends `out` to rank `to` and receives `in` from rank `from` at the same time; these may be one,
     * but not the caller. Messages from one rank to another arrive in order, and may be shorter than
     * `in_bytes`, but not longer. 0 or an error. */
    int (*exchange)(void* context, const void* out, size_t out_bytes, int to, void* in,
                    size_t in_bytes, int from);
    const char* name; /* of the team, in traces and log lines: teams of one time have different ones;
                       * or NULL */
} hier_bootstrap;

/* When the library has been loaded, with UCX: the signals that UCX took go back to whoever had them. */
void hier_give_signals_back(void);

/* Before anything else: what of the configuration concerns the process. */
void hier_init(const hier_config* config);

typedef struct hier_team hier_team;

/* Collective over the bootstrap's team. On HIER_ERR_SETUP, the same on every rank, no team exists
 * and the caller keeps to its fallback. HIER_ERR_PEER: an exchange has failed, and what the others have
 * sent for it may still come; no team exists here. */
int hier_team_create(const hier_config* config, const hier_bootstrap* bootstrap, hier_team** team);
/* Local. No collective may be running on the team. NULL is allowed. */
void hier_team_destroy(hier_team* team);
/* One line on the groups and transports of a team. Valid until the team is destroyed. */
const char* hier_team_description(const hier_team* team);

/* Bytes of all ranks together below which the caller's own function for this collective is expected to
 * be faster, by the cost model; equal on all ranks. Such calls are served all the same. */
size_t hier_team_min_bytes(const hier_team* team, int collective);

/* Bytes of all ranks together up to which the network can be sure to have the memory of a call; equal
 * on all ranks. Larger calls are the caller's own. (RDMA under a limit on locked memory; else SIZE_MAX) */
size_t hier_team_max_bytes(const hier_team* team);

/* May a call's buffers be memory that the CPU cannot reach? Without that, as in a team made before
 * the process used its GPU, such buffers have to be staged. */
int hier_team_takes_device_memory(const hier_team* team);

/* The collectives, in the order of shipped_collectives(). */
enum { HIER_ALLGATHER = 0, HIER_COLLECTIVES };

enum { HIER_MEMORY_HOST = 0, HIER_MEMORY_PINNED, HIER_MEMORY_MANAGED, HIER_MEMORY_DEVICE };

/* The allocation that an address belongs to. */
typedef struct hier_memory {
    int kind;      /* HIER_MEMORY_* */
    int device;    /* of device and managed memory; -1: none, or the CPU has its pages */
    void* base;    /* of device memory: where the allocation begins */
    size_t length; /* bytes from `base` */
    unsigned long long id; /* of this allocation alone, even when its address comes back; 0: none */
    int is_exportable;     /* 0: the runtime cannot show it to other processes */
    int is_reachable;      /* 1: the CPU reads and writes it; 0: it is a device's */
    int error; /* HIER_OK, or why the GPU's runtime could not tell, which has been logged. No call takes
                * such memory. */
} hier_memory;

/* Asks once for each buffer of a call: the core does not ask again. */
void hier_memory_inspect(const void* address, hier_memory* memory);

typedef struct hier_buffer {
    void* base;
    size_t bytes;
    hier_memory memory; /* that `base` lies in */
} hier_buffer;

/* One rank's part in a collective call. Each buffer is of any kind of memory, whatever the other ranks'
 * are. */
typedef struct hier_call {
    int collective; /* HIER_ALLGATHER */
    size_t bytes;   /* of one rank's block; equal on all ranks */
    int in_place;   /* 1: `send` is a part of `recv` */
    hier_buffer send; /* never written, but in place */
    hier_buffer recv;
} hier_call;

typedef struct hier_request hier_request;

/* Starts a call. Every rank of the team starts the same calls in the same order; a team runs them one
 * after the other. The buffers must stay as they are until hier_test says that the call is over.
 * HIER_IN_PROGRESS: `*request` stands for the call. HIER_ERR_ARGUMENT: nothing was started, and no other
 * rank hears of it. After any other error the team is broken: every later start returns that error.
 * Nobody writes into `recv` then, unless a line "not safe to reuse" was logged: a peer has not answered
 * within 5 s. */
int hier_start(hier_team* team, const hier_call* call, hier_request** request);
/* HIER_IN_PROGRESS, HIER_OK or the call's error. Does not wait. After anything but HIER_IN_PROGRESS the
 * request is gone. */
int hier_test(hier_request* request);
/* In place of a start, where this rank cannot take part: the others' call fails as after an error, and
 * the team is broken. */
void hier_refuse(hier_team* team);
/* The caller knows that the running call cannot end well: a rank's process has ended, or the users gave
 * the communicator up. If the call has not failed yet, it does, with HIER_ERR_PEER, and the others hear
 * of it; hier_test says when it has ended. `is_dead` has a byte for each rank, which is not 0 if the
 * rank's process has ended. Without a running call nothing happens. */
void hier_interrupt(hier_team* team, const unsigned char* is_dead);
/* HIER_OK, or the error that has broken the team, which every start returns. */
int hier_team_error(const hier_team* team);
/* Moves all running collectives of the process. Returns how many moved, for opal_progress. */
int hier_progress(void);
/* Peers may leave from now on: nothing is sent to them any more but by collectives. Local. */
void hier_quiesce(void);
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

/* Blocking copies; one end of each at least is device memory. After HIER_ERR_TIMEOUT they may go on
 * reading and writing, and the process copies no more for that device. */
int hier_memory_copy(const hier_strided_copy* copies, size_t count);
/* Memory of the host that is kept from call to call and grows. */
typedef struct hier_host_memory hier_host_memory;
/* At least so many bytes, page-aligned; what was in it is lost when it grows. `*memory` is NULL at first.
 * `for_device`: from and to which devices copy best, if there is such memory and device memory has been
 * seen. NULL: there is none at all, which has been logged. */
void* hier_host_memory_reserve(hier_host_memory** memory, size_t bytes, int for_device);
void hier_host_memory_free(hier_host_memory* memory); /* NULL: nothing happens */
/* Memory of the device that `like` belongs to, for at most HIER_MAX_LENT bytes; NULL: there is none, or
 * too much is lent. The process keeps it and lends it again: peers may keep it mapped, and to free it could
 * mean to wait for the application's kernels. */
#define HIER_MAX_LENT ((size_t)256 << 20)
void* hier_memory_borrow(const void* like, size_t bytes);
void hier_memory_give_back(const void* memory); /* NULL: nothing happens */

const char* hier_strerror(int code);

#ifdef __cplusplus
}
#endif
#endif
