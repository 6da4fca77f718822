/* SPDX-License-Identifier: BSD-3-Clause */
/* coll/hier inside Open MPI: when a call goes to a team of the core (include/hier/hier.h), and to
 * the fallback module when not. */
#ifndef MCA_COLL_HIER_H
#define MCA_COLL_HIER_H

#include "coll_hier_compat.h"

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

    unsigned long long allgather_calls;     /* served here */
    unsigned long long allgather_fallbacks; /* handed to the fallback module */
};
typedef struct mca_coll_hier_component_t mca_coll_hier_component_t;
OMPI_DECLSPEC extern mca_coll_hier_component_t mca_coll_hier_component;

typedef enum {
    MCA_COLL_HIER_FRESH, /* no call yet that is worth a team */
    MCA_COLL_HIER_READY,
    MCA_COLL_HIER_REFUSED, /* set-up failed, on all ranks: the fallback module for good */
    MCA_COLL_HIER_BROKEN   /* set-up broke off, and its messages may still come: no calls any more */
} mca_coll_hier_state_t;

/* Memory of ours. */
typedef struct {
    void* base;
    hier_host_memory* host; /* of the host, kept from call to call; NULL: of a device, lent for one call */
} mca_coll_hier_staging_t;

/* The copies that pack and unpack elements in a device's memory. */
typedef struct mca_coll_hier_copies mca_coll_hier_copies_t;

/* A base may be no address of memory: MPI_BOTTOM. */
static inline void* mca_coll_hier_at(void* base, ptrdiff_t offset)
{
    return (void*)((uintptr_t)base + (uintptr_t)offset);
}

/* `count` elements of a type somewhere in memory. */
typedef struct {
    void* base;
    size_t count;
    struct ompi_datatype_t* type;
    hier_memory memory;          /* that the first byte lies in */
    mca_coll_hier_copies_t** copies; /* those of the last such elements are kept here */
} mca_coll_hier_elements_t;

/* As a call of MPI names it: what a rank sends, or what it receives from each. */
typedef struct {
    void* base;
    hier_count_t count;
    struct ompi_datatype_t* type;
    bool owns_type;
} mca_coll_hier_buffer_t;

struct mca_coll_hier_module_t {
    mca_coll_base_module_t super;
    mca_coll_base_module_allgather_fn_t fallback_allgather;
    mca_coll_base_module_t* fallback_allgather_module;
    mca_coll_hier_state_t state;
    /* The team serves calls from min_bytes to max_bytes, of all ranks together. */
    size_t min_bytes[HIER_COLLECTIVES];
    size_t max_bytes; /* SIZE_MAX while there is no team */
    int small_calls;    /* before there was a team */
    bool has_told_of_small_calls;
    hier_team* team;
    mca_coll_hier_staging_t send_staging, receive_staging;
    mca_coll_hier_copies_t *send_copies, *receive_copies;
    bool lacks_device_memory; /* for staging */
    bool has_waited_for_cause; /* of a failure, by Open MPI's word */
};
typedef struct mca_coll_hier_module_t mca_coll_hier_module_t;
OBJ_CLASS_DECLARATION(mca_coll_hier_module_t);

/* coll_hier_error.c: of a code of the core (HIER_OK, HIER_ERR_...) */
int mca_coll_hier_to_mpi_error(int code);

/* coll_hier_params.c */
int mca_coll_hier_register(void);
/* From the texts that Open MPI has. OMPI_ERR_BAD_PARAM: a line said which of them cannot be. */
int mca_coll_hier_read_params(void);

/* coll_hier_numbers.c: false if the text is anything else, or too large. */
/* Units are k, m, g, as Open MPI has them. */
bool mca_coll_hier_parse_number(const char* text, bool has_units, long long* number);
/* With a point, whatever the application's locale. */
bool mca_coll_hier_parse_rate(const char* text, double* rate);

/* coll_hier_providers.c: makes `--mca coll hier` alone work */
void mca_coll_hier_add_providers(bool progress_threads, bool mpi_threads);

/* coll_hier_presence.c: when the component opens; before a communicator's set-up; when it closes */
void mca_coll_hier_publish(void);
bool mca_coll_hier_is_everywhere(struct ompi_communicator_t* comm);
void mca_coll_hier_forget_answers(void);

/* coll_hier_module.c */
mca_coll_base_module_t* mca_coll_hier_comm_query(struct ompi_communicator_t* comm, int* priority);

/* coll_hier_team.c: the team of a communicator, made at its first call that is worth it */
void mca_coll_hier_build_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm);

/* coll_hier_staging.c: what is not one piece of memory, or memory that the CPU cannot reach, goes
 * through memory of ours; the communication pattern does not change */
bool mca_coll_hier_is_dense(const struct ompi_datatype_t* type, size_t count, ptrdiff_t* offset);
/* What is lent, if it is, for so many bytes; else memory of the host. NULL: there is none. */
void* mca_coll_hier_reserve(mca_coll_hier_staging_t* staging, size_t bytes, bool for_device);
/* Memory of the elements' device, for one call. False: there is none. */
bool mca_coll_hier_borrow(mca_coll_hier_staging_t* staging, size_t bytes,
                          const mca_coll_hier_elements_t* elements);
void mca_coll_hier_release(mca_coll_hier_staging_t* staging);
void mca_coll_hier_abandon(mca_coll_hier_staging_t* staging);
void mca_coll_hier_release_abandoned(void); /* when the component closes */
/* The first `bytes` bytes of the elements, one after the other, from or to staging memory, which is
 * abandoned after an error. Packed, they begin `at` bytes behind its start. */
int mca_coll_hier_pack(mca_coll_hier_staging_t* staging, size_t at, size_t bytes,
                       const mca_coll_hier_elements_t* from);
int mca_coll_hier_unpack(mca_coll_hier_staging_t* staging, size_t bytes,
                         const mca_coll_hier_elements_t* to);

/* coll_hier_device_types.c: the same of elements in a device's memory, to and from any memory. Blocking. */
int mca_coll_hier_convert_on_device(char* packed, size_t bytes,
                                    const mca_coll_hier_elements_t* elements, bool is_pack);
/* Is it done by few copies, of many bytes each? */
bool mca_coll_hier_is_regular(const mca_coll_hier_elements_t* elements, size_t bytes);
void mca_coll_hier_drop_copies(mca_coll_hier_copies_t** copies);

/* coll_hier_placeholder.c: a buffer without memory. It has as many bytes as is said, from each rank where
 * it receives, all of them in the same few: read as zeros, or written to no purpose. No type: not even
 * for that there is memory. */
void mca_coll_hier_make_placeholder(size_t bytes, bool is_send, mca_coll_hier_buffer_t* buffer);
bool mca_coll_hier_is_placeholder(const mca_coll_hier_buffer_t* buffer);
/* `count` elements of `each` bytes, dense, from `buffer->base` on. No type where there is no memory for
 * it. */
void mca_coll_hier_describe_bytes(size_t count, size_t each, mca_coll_hier_buffer_t* buffer);
void mca_coll_hier_drop_type(mca_coll_hier_buffer_t* buffer);

/* coll_hier_allgather.c */
int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module);

END_C_DECLS
#endif
