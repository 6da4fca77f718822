/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_variables.h"

static struct mca_coll_hier_component_t* const self = &mca_coll_hier_component;

mca_coll_hier_number_row_t mca_coll_hier_number_rows[] = {
    {"priority", COUNT, &self->priority, 95, -1, 100, OPAL_INFO_LVL_3,
     "Priority of coll/hier; -1 switches it off. Above every stock component by default. Equal on "
     "all ranks",
     false, NULL},
    {"verbose", COUNT, &self->verbose, 0, 0, 100, OPAL_INFO_LVL_3,
     "0: errors only; 1: the groups and transports of each communicator, and how calls of each "
     "size go, and why; 10: more",
     false, NULL},
    {"min_bytes", BYTES, &self->min_bytes, 0, 1, 1LL << 50, OPAL_INFO_LVL_4,
     "Total bytes (all ranks together) below which the fallback module serves the call; 0: by the "
     "cost model, once a communicator has had a call of 32 KiB or 16 smaller ones. Equal on all "
     "ranks",
     false, NULL},
    {"chunk_bytes", BYTES, &self->config.chunk_bytes, 0, 4096, 1LL << 30, OPAL_INFO_LVL_4,
     "Largest put between nodes; 0: by the cost model. Equal on all ranks", false, NULL},
    {"eager_bytes", BYTES, &self->config.eager_bytes, 32768, 0, 1LL << 20, OPAL_INFO_LVL_4,
     "Bytes, of a rank or of a bundle, up to which data goes to other nodes without waiting for "
     "its receivers to be in the call; 0: never. Equal on all ranks",
     false, NULL},
    {"staging_kept", BYTES, &self->config.staging_kept, 128LL << 20, 0, 1LL << 50, OPAL_INFO_LVL_5,
     "Bytes of staging memory (for datatypes with gaps, for the fallback module, for networks that "
     "do not reach a buffer) that a process keeps between calls",
     false, NULL},
    {"staging_window", BYTES, &self->config.staging_window, 64LL << 20, 4096, 1LL << 50,
     OPAL_INFO_LVL_5,
     "Bytes of staging memory that a call uses at a time: larger calls go part by part. Equal on "
     "all ranks",
     false, NULL},
    {"ranks_per_node", COUNT, &self->config.ranks_per_node, 0, 0, 1 << 20, OPAL_INFO_LVL_5,
     "Cut every host into virtual nodes of this many ranks; 0: hosts as found. For tests and "
     "tuning; equal on all ranks. MPI_T may set it: it counts at a communicator's first call",
     true, NULL},
    {"depth", COUNT, &self->config.depth, 0, 0, 1024, OPAL_INFO_LVL_5,
     "Puts in flight from one rank to other nodes; 0: as many as keep the network busy, by the "
     "cost model",
     false, NULL},
    {"nics", COUNT, &self->config.nics, 4, 1, 16, OPAL_INFO_LVL_5,
     "Network devices that a rank uses at most, where its host has several for each rank", false,
     NULL},
    {"timeout", COUNT, &self->config.timeout, 120, 0, 86400, OPAL_INFO_LVL_5,
     "Seconds in which no byte moves, every rank being in the call, after which hier says who "
     "waits for whom; also of one copy on a device; 0: never. See coll_hier_timeout_action",
     false, NULL},
    {"kernels", COUNT, &self->config.kernels, 1, 0, 2, OPAL_INFO_LVL_5,
     "1: small and middle blocks in device memory go by a kernel on each GPU, while kernels start "
     "at once there, and all blocks of ranks that share GPUs under MPS, where hier has kernels for "
     "it; 2: even if kernels wait for those of the application; 0: hier launches no kernels",
     false, NULL},
    {"gpu_cpu_access", COUNT, &self->config.gpu_cpu_access, 0, 0, 1, OPAL_INFO_LVL_5,
     "1: the CPU reads and writes small blocks of device memory itself, on a single node, where a "
     "trial shows that it can and is quicker than copies (AMD GPUs behind a large BAR, NVIDIA "
     "GPUs with GDRCopy); 0: never",
     false, NULL},
    {"stage_others", COUNT, &self->stages_others, 1, 0, 1, OPAL_INFO_LVL_5,
     "1: if Open MPI knows no GPUs, the other blocking collectives on device memory go through "
     "memory "
     "of the host; 0: they are left alone",
     false, NULL},
    {"progress_thread", COUNT, &self->config.progress_thread, 0, 0, 1, OPAL_INFO_LVL_4,
     "1: a thread of each process moves nonblocking and persistent calls while the application "
     "computes; it sleeps while no call runs, and wants a core that is not busy; 0: calls move "
     "inside calls of MPI",
     false, NULL},
    {"trace_call", COUNT, &self->config.trace_call, 10, 0, 1 << 30, OPAL_INFO_LVL_5,
     "Which call of each communicator coll_hier_trace records, counting from 1 those that "
     "coll/hier serves; 0: every one",
     false, NULL},
};

mca_coll_hier_rate_row_t mca_coll_hier_rate_rows[] = {
    {"net_rate", &self->config.net_rate,
     "GB/s of a network device in each direction, for the cost model; 0: as UCX says", NULL},
    {"link_rate", &self->config.link_rate,
     "GB/s at which a rank copies to its node's others, for the cost model; 0: what is usual for "
     "copy engines, or for a core",
     NULL},
};

/* We read these ourselves, because Open MPI 4.1 answers a bad value of an enumerator with a message that
 * nobody understands. */
mca_coll_hier_choice_row_t mca_coll_hier_choice_rows[] = {
    {"inter",
     &self->config.inter,
     "auto",
     {{HIER_INTER_AUTO, "auto"},
      {HIER_INTER_DIRECT, "direct"},
      {HIER_INTER_RING, "ring"},
      {HIER_INTER_BUNDLES, "bundles"}},
     "Route between nodes: direct (one hop to every node), ring (from node to node), bundles (what "
     "a node's ranks have in one message), auto (by the cost model); equal on all ranks"},
    {"intra",
     &self->config.intra,
     "auto",
     {{HIER_INTRA_AUTO, "auto"}, {HIER_INTRA_CMA, "cma"}, {HIER_INTRA_SHM, "shm"}},
     "Host memory inside a node: cma (process_vm_writev, one copy), shm (shared memory, two "
     "copies), auto (cma where a trial shows that it works, and shm for small blocks; where ranks "
     "share cores, shm for all). Equal on all ranks"},
    {"gpu",
     &self->config.gpu,
     "auto",
     {{HIER_GPU_AUTO, "auto"},
      {HIER_GPU_NONE, "none"},
      {HIER_GPU_ROCM, "rocm"},
      {HIER_GPU_CUDA, "cuda"}},
     "Runtime of device memory: none, rocm, cuda, auto (the one that the application has loaded)"},
    {"gpu_peers",
     &self->config.gpu_peers,
     "auto",
     {{HIER_GPU_PEERS_AUTO, "auto"}, {HIER_GPU_PEERS_OFF, "off"}},
     "Device memory inside a node: off (through shared memory of the host, for machines on which "
     "what GPUs write into each other is lost), auto (copy engines of the peers write it)"},
    {"gpu_direct",
     &self->config.gpu_direct,
     "auto",
     {{HIER_GPU_DIRECT_AUTO, "auto"}, {HIER_GPU_DIRECT_ON, "on"}, {HIER_GPU_DIRECT_OFF, "off"}},
     "Let the network read and write device memory itself: on (wherever UCX knows that memory), "
     "off "
     "(through pinned memory), auto (on over RDMA with UCX 1.16 or newer)"},
    {"timeout_action",
     &self->config.timeout_action,
     "report",
     {{HIER_TIMEOUT_REPORT, "report"}, {HIER_TIMEOUT_FAIL, "fail"}},
     "What follows after coll_hier_timeout: report (a report, at most once a minute, and the call "
     "goes on), fail (a report, and the call fails on all ranks)"},
};

const mca_coll_hier_text_row_t mca_coll_hier_text_rows[] = {
    {"net_devices", &self->config.net_devices, "auto", false,
     "Network devices by UCX's names (eth0, mlx5_0:1), of a list the rank's share; auto: the RDMA "
     "devices nearest to the rank's GPU or cores, else the interface that btl_tcp_if_include names "
     "or that of the default route"},
    {"net_transports", &self->config.net_transports, "auto", false,
     "Network transports by UCX's names (rc, tcp); auto: RDMA where there is a device, else tcp; "
     "^tcp: RDMA or nothing"},
    {"trace", &self->config.trace, "", true,
     "Record the times of every operation of one call: a directory, or what the files' names begin "
     "with; each rank writes a file, which bench/draw_trace draws. Empty: off"},
    {"tuning_file", &self->config.tuning_file, "", true,
     "A file that bench/tune has written on this machine: measured rates, and the choices that "
     "were "
     "fastest. Empty: none"},
    {"providers", &self->providers, HIER_PROVIDERS, true,
     "Components loaded for the other collectives when --mca coll names coll/hier but nobody able "
     "to provide them; empty: none"},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

const size_t mca_coll_hier_number_row_count = ROWS(mca_coll_hier_number_rows);
const size_t mca_coll_hier_rate_row_count = ROWS(mca_coll_hier_rate_rows);
const size_t mca_coll_hier_choice_row_count = ROWS(mca_coll_hier_choice_rows);
const size_t mca_coll_hier_text_row_count = ROWS(mca_coll_hier_text_rows);
