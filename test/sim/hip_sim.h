/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests ask of the simulated HIP runtime. A program that is linked with the real library finds
 * these by dlsym(RTLD_DEFAULT, ...); without them, it runs on the real one. */
#ifndef HIP_SIM_H
#define HIP_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counted calls of this process so far: all but those that free, close or destroy, those that tell
 * an error, and those that ask whether something is done, of which there is any number. */
uint64_t hip_sim_calls(void);

/* The counted call of this number fails, the first being 1; 0: none. In place of HIP_SIM_FAIL. */
void hip_sim_fail_at(uint64_t call);

/* The same for copies by hipMemcpyAsync and hipMemcpy2DAsync, which fail when they are done. In place
 * of HIP_SIM_FAIL_ASYNC. */
uint64_t hip_sim_copies(void);
uint64_t hip_sim_forced_copies(void); /* of these by hipMemcpyDeviceToDeviceNoCU */
uint64_t
hip_sim_host_bytes(void); /* that all copies moved between a device's memory and the host's */
void hip_sim_fail_copy_at(uint64_t copy);

/* The copy of this number stops half-way, and so does all that is behind it in its stream, until
 * another number is given; 0: none. In place of HIP_SIM_HANG_ASYNC. */
void hip_sim_hang_copy_at(uint64_t copy);

/* Memory of the current device that another library than HIP has allocated; it stays. NULL: none. */
void* hip_sim_foreign(size_t bytes);

/* How many there are now of: allocations, pinned, registrations, mappings, streams, events,
 * segments (of hipMemMap), handles, reservations. */
uint64_t hip_sim_live(const char* what);

#ifdef __cplusplus
}
#endif

#endif
