/* SPDX-License-Identifier: BSD-3-Clause */
/* coll/hier inside Open MPI. A call goes to a team of the core (include/hier/hier.h) or to the fallback
 * module. */
#ifndef MCA_COLL_HIER_H
#define MCA_COLL_HIER_H

#include "coll_hier_compat.h"
#include "coll_hier_numbers.h"
#include "coll_hier_others.h"

#include "hier/hier.h"

BEGIN_C_DECLS

struct mca_coll_hier_component_t {
    mca_coll_base_component_t super;

    int priority;
    int verbose;
    int output;       /* stream */
    size_t min_bytes; /* 0: by the team's cost model */
    hier_config config;
    const char* providers;
    int stages_others; /* 0: leave the other collectives alone, also on device memory */
};
typedef struct mca_coll_hier_component_t mca_coll_hier_component_t;
OMPI_DECLSPEC extern mca_coll_hier_component_t mca_coll_hier_component;

/* What tools may ask for: the calls of each collective that a team served, and those that it did not. */
typedef enum {
    MCA_COLL_HIER_COUNT_ALLGATHER,
    MCA_COLL_HIER_COUNT_ALLGATHERV,
    MCA_COLL_HIER_COUNT_IALLGATHER,
    MCA_COLL_HIER_COUNT_IALLGATHERV,
    MCA_COLL_HIER_COUNT_ALLGATHER_INIT, /* starts */
    MCA_COLL_HIER_COUNT_ALLGATHERV_INIT,
    MCA_COLL_HIER_COUNTED
} mca_coll_hier_counted_t;

/* Some communicators count here. Threads with communicators of their own would else write to the same
 * line of memory in each call. */
typedef struct {
    _Alignas(128) unsigned long long calls[MCA_COLL_HIER_COUNTED];
    unsigned long long fallbacks[MCA_COLL_HIER_COUNTED];
    unsigned long long fallback_bytes; /* of the results of all fallbacks */
} mca_coll_hier_counts_t;
mca_coll_hier_counts_t* mca_coll_hier_counts_of_next_module(void);

typedef enum {
    MCA_COLL_HIER_FRESH,    /* no call yet that is worth a team */
    MCA_COLL_HIER_IN_SETUP, /* begun by a call that has returned */
    MCA_COLL_HIER_READY,
    MCA_COLL_HIER_REFUSED, /* set-up failed on all ranks: the fallback module serves all calls */
    MCA_COLL_HIER_BROKEN /* set-up broke off, and its messages may still come: no calls any more */
} mca_coll_hier_state_t;

/* A set-up that runs while the application goes on. */
typedef struct mca_coll_hier_setup_t mca_coll_hier_setup_t;

/* The copies that pack and unpack elements in a device's memory. */
typedef struct mca_coll_hier_copies mca_coll_hier_copies_t;

/* A base need not be an address of memory: see MPI_BOTTOM. */
static inline void* mca_coll_hier_at(void* base, ptrdiff_t offset)
{
    return (void*)((uintptr_t)base + (uintptr_t)offset);
}

/* `count` elements of a datatype. */
typedef struct {
    void* base;
    size_t count;
    struct ompi_datatype_t* type;
    hier_memory memory;              /* the allocation of the first byte */
    mca_coll_hier_copies_t** copies; /* those of the last such elements are kept here */
} mca_coll_hier_elements_t;

/* A buffer as MPI's arguments name it: what a rank sends, or what it receives from each rank. */
typedef struct {
    void* base;
    hier_count_t count;
    struct ompi_datatype_t* type;
    bool owns_type;
} mca_coll_hier_buffer_t;

/* The calls that return before they have run, by their names in Open MPI's interface. */
#define MCA_COLL_HIER_STARTED(ROW)                                                                 \
    ROW(iallgather)                                                                                \
    ROW(iallgatherv)                                                                               \
    ROW(allgather_init)                                                                            \
    ROW(allgatherv_init)

/* Blocks that have different sizes, or do not lie one behind the other in rank order. */
typedef struct {
    hier_block* packed;       /* where each rank's block is in a result without gaps */
    hier_block* of_part;      /* memory for the bytes of each block that a part moves */
    size_t* counts;           /* elements of each block */
    ptrdiff_t* displacements; /* in extents */
    void* base;               /* from here on */
    bool are_equal;           /* all have the same number of bytes */
    bool are_in_order;        /* the elements lie one behind the other in rank order */
} mca_coll_hier_shards_t;

/* A call that may come again (coll_hier_last.c). */
typedef struct mca_coll_hier_last_t mca_coll_hier_last_t;

struct mca_coll_hier_module_t {
    mca_coll_base_module_t super;
    mca_coll_base_module_allgather_fn_t fallback_allgather;
    mca_coll_base_module_t* fallback_allgather_module;
    mca_coll_base_module_allgatherv_fn_t fallback_allgatherv;
    mca_coll_base_module_t* fallback_allgatherv_module; /* this one, if mirrors take part */
#if HIER_MODULE_INSTALLS
    /* What the communicator had before. Nothing calls it. */
#define MCA_COLL_HIER_PREVIOUS(name)                                                               \
    mca_coll_base_module_##name##_fn_t previous_##name;                                            \
    mca_coll_base_module_t* previous_##name##_module;
    MCA_COLL_HIER_STARTED(MCA_COLL_HIER_PREVIOUS)
#undef MCA_COLL_HIER_PREVIOUS
#endif
    mca_coll_hier_previous_t others[MCA_COLL_HIER_OTHER_COUNT];
    mca_coll_hier_counts_t* counts;
    mca_coll_hier_state_t state;
    /* The team serves calls from min_bytes to max_bytes, of all ranks together. */
    size_t min_bytes[HIER_COLLECTIVES];
    size_t max_bytes; /* SIZE_MAX while there is no team */
    int small_calls;  /* before there was a team */
    bool has_told_of_small_calls;
    hier_team* team;
    mca_coll_hier_setup_t* setup; /* while it runs */
    /* Started calls: how many there have been, and how many of them have been given to the team. */
    unsigned turns, next_turn;
    int running;        /* started calls that are not over */
    unsigned own_teams; /* of persistent requests, so far */
    mca_coll_hier_copies_t *send_copies, *receive_copies;
    mca_coll_hier_shards_t shards;      /* memory for MPI_Allgatherv; NULLs: not needed yet */
    mca_coll_hier_last_t* last;         /* the last blocking call; NULL: none so far */
    mca_coll_hier_last_t* last_started; /* the same of nonblocking calls */
    unsigned passes;                    /* of waiting blocking calls, so far */
    bool lacks_device_memory;           /* for staging */
    bool has_waited_for_cause;          /* Open MPI was given time to name the cause of a failure */
};
typedef struct mca_coll_hier_module_t mca_coll_hier_module_t;
OBJ_CLASS_DECLARATION(mca_coll_hier_module_t);

/* coll_hier_error.c: `code` is HIER_OK or HIER_ERR_... */
int mca_coll_hier_to_mpi_error(int code);

/* coll_hier_params.c */
int mca_coll_hier_register(void);
/* Reads the texts that Open MPI has. OMPI_ERR_BAD_PARAM: a line has named the bad one. */
int mca_coll_hier_read_params(void);

/* coll_hier_counters.c: the performance variables */
int mca_coll_hier_register_counters(void);

/* coll_hier_providers.c: makes `--mca coll hier` alone work */
void mca_coll_hier_add_providers(bool progress_threads, bool mpi_threads);

/* coll_hier_presence.c */
/* When the component opens: tells the other processes that this one has hier. */
void mca_coll_hier_publish(void);
/* hier_bootstrap.is_present: does this rank of the communicator have hier, with equal settings? */
int mca_coll_hier_is_present(void* comm, int rank);
/* When the component closes. */
void mca_coll_hier_forget_answers(void);

/* coll_hier_module.c */
mca_coll_base_module_t* mca_coll_hier_comm_query(struct ompi_communicator_t* comm, int* priority);

/* coll_hier_team.c */
/* Makes the communicator's team. */
void mca_coll_hier_build_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm);
/* The same, but returns at once. While module->state is MCA_COLL_HIER_IN_SETUP, mca_coll_hier_move_team has to be
 * called; one thread at a time. If there can be no thread, the job ends. */
void mca_coll_hier_begin_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm);
void mca_coll_hier_move_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm);
/* Makes one more team, for one persistent request. Returns HIER_OK or an error of hier_team_create. */
int mca_coll_hier_build_own_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm,
                                 hier_team** team);

/* coll_hier_device_types.c: packs and unpacks elements in a device's memory. `packed` is any memory.
 * Blocking. */
int mca_coll_hier_convert_on_device(char* packed, size_t bytes,
                                    const mca_coll_hier_elements_t* elements, bool is_pack);
/* Do a few large copies do it? */
bool mca_coll_hier_is_regular(const mca_coll_hier_elements_t* elements, size_t bytes);
void mca_coll_hier_drop_copies(mca_coll_hier_copies_t** copies);

/* coll_hier_bytes.c */
/* Describes `count` elements of `each` bytes, without gaps, from `buffer->base` on. buffer->type is NULL if
 * there is no memory for the datatype. */
void mca_coll_hier_describe_bytes(size_t count, size_t each, mca_coll_hier_buffer_t* buffer);
void mca_coll_hier_drop_type(mca_coll_hier_buffer_t* buffer);

/* coll_hier_allgather.c */
int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module);
int mca_coll_hier_iallgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                             void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                             struct ompi_communicator_t* comm, struct ompi_request_t** handle,
                             mca_coll_base_module_t* module);
int mca_coll_hier_allgather_init(const void* sbuf, hier_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf, hier_count_t rcount,
                                 struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                 struct ompi_info_t* info, struct ompi_request_t** handle,
                                 mca_coll_base_module_t* module);

/* coll_hier_allgatherv.c */
int mca_coll_hier_allgatherv(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                             void* rbuf, hier_counts_t rcounts, hier_displacements_t displacements,
                             struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                             mca_coll_base_module_t* module);
int mca_coll_hier_iallgatherv(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                              void* rbuf, hier_counts_t rcounts, hier_displacements_t displacements,
                              struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                              struct ompi_request_t** handle, mca_coll_base_module_t* module);
int mca_coll_hier_allgatherv_init(const void* sbuf, hier_count_t scount,
                                  struct ompi_datatype_t* sdtype, void* rbuf, hier_counts_t rcounts,
                                  hier_displacements_t displacements,
                                  struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                  struct ompi_info_t* info, struct ompi_request_t** handle,
                                  mca_coll_base_module_t* module);

END_C_DECLS
#endif
