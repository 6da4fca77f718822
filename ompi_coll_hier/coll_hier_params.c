/* SPDX-License-Identifier: BSD-3-Clause */
/* The MCA variables and performance variables, one row each. */
#include "coll_hier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

static struct mca_coll_hier_component_t* const self = &mca_coll_hier_component;

/* Open MPI reads "1,5" as 1 and a word as 0. So numbers are texts for Open MPI, and we read them
 * ourselves. */
typedef struct {
    const char* name;
    enum { COUNT, BYTES } type; /* of *value: int, size_t */
    void* value;
    long long initial, least, most; /* `initial` is allowed even if it is outside the range */
    int level;
    const char* help;
    const char* text;
} number_row_t;

typedef struct {
    const char* name;
    double* value; /* 0 by default */
    const char* help;
    const char* text;
} rate_row_t;

typedef struct {
    const char* name;
    int* value;
    const char* text;
    struct {
        int value;
        const char* text;
    } choices[4];
    const char* help;
} choice_row_t;

typedef struct {
    const char* name;
    const char** value;
    const char* initial;
    bool may_be_empty;
    const char* help;
} text_row_t;

static number_row_t number_rows[] = {
    {"priority", COUNT, &self->priority, 95, -1, 100, OPAL_INFO_LVL_3,
     "Priority of coll/hier; -1 switches it off. Above every stock component by default. Equal on "
     "all ranks",
     NULL},
    {"verbose", COUNT, &self->verbose, 0, 0, 100, OPAL_INFO_LVL_3,
     "0: errors only; 1: the groups and transports of each communicator, and how calls of each "
     "size go, and why; 10: more",
     NULL},
    {"min_bytes", BYTES, &self->min_bytes, 0, 1, 1LL << 50, OPAL_INFO_LVL_4,
     "Total bytes (all ranks together) below which the fallback module serves the call; 0: by the "
     "cost model, once a communicator has had a call of 32 KiB or 16 smaller ones. Equal on all "
     "ranks",
     NULL},
    {"chunk_bytes", BYTES, &self->config.chunk_bytes, 0, 4096, 1LL << 30, OPAL_INFO_LVL_4,
     "Largest put between nodes; 0: by the cost model. Equal on all ranks", NULL},
    {"eager_bytes", BYTES, &self->config.eager_bytes, 32768, 0, 1LL << 20, OPAL_INFO_LVL_4,
     "Bytes, of a rank or of a bundle, up to which data goes to other nodes without waiting for "
     "its "
     "receivers to be in the call; 0: never. Equal on all ranks",
     NULL},
    {"ranks_per_node", COUNT, &self->config.ranks_per_node, 0, 0, 1 << 20, OPAL_INFO_LVL_5,
     "Cut every host into virtual nodes of this many ranks; 0: hosts as found. For tests and "
     "tuning; equal on all ranks. MPI_T may set it: it counts at a communicator's first call",
     NULL},
    {"depth", COUNT, &self->config.depth, 0, 0, 1024, OPAL_INFO_LVL_5,
     "Puts in flight from one rank to other nodes; 0: as many as keep the network busy, by the "
     "cost model",
     NULL},
    {"nics", COUNT, &self->config.nics, 4, 1, 16, OPAL_INFO_LVL_5,
     "Network devices that a rank uses at most, where its host has several for each rank", NULL},
    {"timeout", COUNT, &self->config.timeout, 120, 0, 86400, OPAL_INFO_LVL_5,
     "Seconds without any movement, every rank being in the call, after which it fails; also of "
     "one copy on a device; 0: never",
     NULL},
    {"trace_call", COUNT, &self->config.trace_call, 10, 0, 1 << 30, OPAL_INFO_LVL_5,
     "Which call of each communicator coll_hier_trace records, counting from 1 those that "
     "coll/hier serves; 0: every one",
     NULL},
};

/* MPI_T may set this one, for communicators without a team. So it is a number for Open MPI too. */
static const char* const settable_name = "ranks_per_node";

static rate_row_t rate_rows[] = {
    {"net_rate", &self->config.net_rate,
     "GB/s of a network device in each direction, for the cost model; 0: as UCX says", NULL},
    {"link_rate", &self->config.link_rate,
     "GB/s at which a rank copies to its node's others, for the cost model; 0: what is usual for "
     "copy engines, or for a core",
     NULL},
};

/* We read these ourselves, because Open MPI 4.1 answers a bad value of an enumerator with a message that
 * nobody understands. */
static choice_row_t choice_rows[] = {
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
     "copies), auto (cma where a trial shows that it works, and shm for small blocks, of up to 16 "
     "KiB, or 512 KiB where ranks share cores). Equal on all ranks"},
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
};

static const text_row_t text_rows[] = {
    {"net_devices", &self->config.net_devices, "auto", false,
     "Network devices by UCX's names (eth0, mlx5_0:1), of a list the rank's share; auto: the RDMA "
     "devices nearest to the rank's GPU or cores, else the interface that btl_tcp_if_include names "
     "or that of the default route"},
    {"net_transports", &self->config.net_transports, "auto", false,
     "Network transports by UCX's names (rc, tcp); auto: RDMA where there is a device, else tcp"},
    {"trace", &self->config.trace, "", true,
     "Record the times of every operation of one call: a directory, or what the files' names begin "
     "with; each rank writes a file, which bench/draw_trace draws. Empty: off"},
    {"providers", &self->providers, HIER_PROVIDERS, true,
     "Components loaded for the other collectives when --mca coll names coll/hier but nobody able "
     "to provide them; empty: none"},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static int register_variable(const char* name, const char* help, mca_base_var_type_t type,
                             int level, bool settable, void* value)
{
    const int rc = mca_base_component_var_register(
        &self->super.collm_version, name, help, type, NULL, 0,
        settable ? MCA_BASE_VAR_FLAG_SETTABLE : 0, (mca_base_var_info_lvl_t)level,
        settable ? MCA_BASE_VAR_SCOPE_ALL_EQ : MCA_BASE_VAR_SCOPE_READONLY, value);
    return 0 > rc ? rc : OMPI_SUCCESS;
}

static bool is_settable(const number_row_t* row) { return 0 == strcmp(row->name, settable_name); }

static int register_number(number_row_t* row)
{
    char initial[24];
    if (is_settable(row)) {
        *(int*)row->value = (int)row->initial;
        return register_variable(row->name, row->help, MCA_BASE_VAR_TYPE_INT, row->level, true,
                                 row->value);
    }
    /* Open MPI copies the text. */
    snprintf(initial, sizeof initial, "%lld", row->initial);
    row->text = initial;
    return register_variable(row->name, row->help, MCA_BASE_VAR_TYPE_STRING, row->level, false,
                             &row->text);
}

static int register_counter(const char* name, const char* help, unsigned long long* value)
{
    const int rc = mca_base_component_pvar_register(
        &self->super.collm_version, name, help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MPI_T_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL, value);
    return 0 > rc ? rc : OMPI_SUCCESS;
}

int mca_coll_hier_register(void)
{
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < ROWS(number_rows) && OMPI_SUCCESS == rc; i++) {
        rc = register_number(&number_rows[i]);
    }
    for (size_t i = 0; i < ROWS(rate_rows) && OMPI_SUCCESS == rc; i++) {
        rate_rows[i].text = "0";
        rc = register_variable(rate_rows[i].name, rate_rows[i].help, MCA_BASE_VAR_TYPE_STRING,
                               OPAL_INFO_LVL_5, false, &rate_rows[i].text);
    }
    for (size_t i = 0; i < ROWS(choice_rows) && OMPI_SUCCESS == rc; i++) {
        choice_rows[i].text = choice_rows[i].choices[0].text;
        rc = register_variable(choice_rows[i].name, choice_rows[i].help, MCA_BASE_VAR_TYPE_STRING,
                               OPAL_INFO_LVL_5, false, &choice_rows[i].text);
    }
    for (size_t i = 0; i < ROWS(text_rows) && OMPI_SUCCESS == rc; i++) {
        *text_rows[i].value = text_rows[i].initial;
        rc = register_variable(text_rows[i].name, text_rows[i].help, MCA_BASE_VAR_TYPE_STRING,
                               OPAL_INFO_LVL_5, false, text_rows[i].value);
    }
    if (OMPI_SUCCESS == rc) {
        rc = register_counter("allgather_calls", "Calls of MPI_Allgather that coll/hier served",
                              &self->allgather_calls);
    }
    if (OMPI_SUCCESS == rc) {
        rc = register_counter("allgather_fallbacks",
                              "Calls of MPI_Allgather handed to the fallback module",
                              &self->allgather_fallbacks);
    }
    return rc;
}

static bool is_usable(const number_row_t* row, const char* text, long long* number)
{
    if (NULL != text && mca_coll_hier_parse_number(text, BYTES == row->type, number) &&
        (*number == row->initial || (*number >= row->least && *number <= row->most))) {
        return true;
    }
    opal_output(0,
                "coll:hier: coll_hier_%s is \"%s\", but must be a whole number, %s%lld to %lld: "
                "coll/hier is not used",
                row->name, NULL == text ? "" : text,
                row->initial < row->least ? "0 or from " : "from ", row->least, row->most);
    return false;
}

static bool read_number(const number_row_t* row)
{
    char text[64];
    long long number;
    if (is_settable(row)) {
        /* Open MPI has read the number, and MPI_T may have changed it since. */
        snprintf(text, sizeof text, "OMPI_MCA_coll_hier_%s", row->name);
        const char* const given = getenv(text);
        snprintf(text, sizeof text, "%d", *(int*)row->value);
        return (NULL == given || is_usable(row, given, &number)) && is_usable(row, text, &number);
    }
    if (!is_usable(row, row->text, &number)) {
        return false;
    }
    if (COUNT == row->type) {
        *(int*)row->value = (int)number;
    } else {
        *(size_t*)row->value = (size_t)number;
    }
    return true;
}

static bool read_rate(const rate_row_t* row)
{
    const double least = 1e-6, most = 1e6;
    const char* const text = NULL == row->text ? "" : row->text;
    /* Not a number fails all of these comparisons. */
    if (mca_coll_hier_parse_rate(text, row->value) &&
        (0 == *row->value || (*row->value >= least && *row->value <= most))) {
        return true;
    }
    opal_output(0,
                "coll:hier: coll_hier_%s is \"%s\", but must be 0 or from %g to %g (GB/s): "
                "coll/hier is not used",
                row->name, text, least, most);
    return false;
}

static bool read_choice(choice_row_t* row)
{
    char list[64] = "";
    for (size_t i = 0; i < ROWS(row->choices) && NULL != row->choices[i].text; i++) {
        if (NULL != row->text && 0 == strcmp(row->text, row->choices[i].text)) {
            *row->value = row->choices[i].value;
            return true;
        }
        const size_t end = strlen(list);
        snprintf(list + end, sizeof list - end, "%s%s", 0 == i ? "" : ", ", row->choices[i].text);
    }
    opal_output(0,
                "coll:hier: coll_hier_%s is \"%s\", but must be one of %s: coll/hier is not used",
                row->name, NULL == row->text ? "" : row->text, list);
    return false;
}

/* A value out of range is refused, never corrected: all ranks have to work with the same value. */
int mca_coll_hier_read_params(void)
{
    bool fine = true;
    for (size_t i = 0; i < ROWS(number_rows); i++) {
        fine = read_number(&number_rows[i]) && fine;
    }
    for (size_t i = 0; i < ROWS(rate_rows); i++) {
        fine = read_rate(&rate_rows[i]) && fine;
    }
    for (size_t i = 0; i < ROWS(choice_rows); i++) {
        fine = read_choice(&choice_rows[i]) && fine;
    }
    for (size_t i = 0; i < ROWS(text_rows); i++) {
        const text_row_t* row = &text_rows[i];
        /* NULL is Open MPI's empty value. */
        if ((NULL == *row->value || '\0' == **row->value) && !row->may_be_empty) {
            opal_output(0,
                        "coll:hier: coll_hier_%s is empty, but must be \"auto\" or a list of "
                        "names: coll/hier is not used",
                        row->name);
            fine = false;
        }
    }
    return fine ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM;
}
