/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the simulated HIP runtime for tests. A program that is linked with the real library
 * finds them by dlsym(RTLD_DEFAULT, ...). If it finds none, it runs on the real runtime. */
#ifndef HIP_SIM_H
#define HIP_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of counted calls of this process so far. Some calls are not counted: those that free,
 * close or destroy something, those that tell an error, and queries, which a program repeats at
 * will. */
uint64_t hip_sim_calls(void);

/* The counted call of this number fails. The first call has number 1; 0: no call fails. Overrides
 * HIP_SIM_FAIL. */
void hip_sim_fail_at(uint64_t call);

/* The same for copies by hipMemcpyAsync and hipMemcpy2DAsync. A copy fails when it is done.
 * Overrides HIP_SIM_FAIL_ASYNC. */
uint64_t hip_sim_copies(void);
void hip_sim_fail_copy_at(uint64_t copy);
/* How many of these copies were of the kind hipMemcpyDeviceToDeviceNoCU. */
uint64_t hip_sim_forced_copies(void);
/* Kernels that this process has launched (hipModuleLaunchKernel). */
uint64_t hip_sim_kernels(void);
/* The bytes that all copies have moved between device memory and host memory. */
uint64_t hip_sim_host_bytes(void);

/* How often this process has written a flush register behind stores (HIP_SIM_LARGE_BAR=1). */
uint64_t hip_sim_flushes(void);

/* The copy of this number stops half-way, and its stream with it, until another number is given. 0:
 * no copy stops. Overrides HIP_SIM_HANG_ASYNC. */
void hip_sim_hang_copy_at(uint64_t copy);

/* A reset of the current device has ended its pinned memory: every access is an error from now on. */
void hip_sim_end_pinned(void);

/* Makes memory of the current device that HIP has not allocated. The memory stays. NULL: there is
 * none. */
void* hip_sim_foreign(size_t bytes);

/* How many of these things there are now: allocations, pinned, registrations, mappings, streams,
 * events, segments (of hipMemMap), handles, reservations. "pinned bytes" are those of pinned and
 * registered memory. */
uint64_t hip_sim_live(const char* what);

#ifdef __cplusplus
}
#endif

#endif
