/* SPDX-License-Identifier: BSD-3-Clause */
/* A function of the simulated GDRCopy for tests, which find it by dlsym(). */
#ifndef GDR_SIM_H
#define GDR_SIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "pins" and "mappings" that there are now; how often so far the process has "asked" for a pin, and its
 * "loads", "stores" and "flushes". */
uint64_t gdr_sim_count(const char* what);

#ifdef __cplusplus
}
#endif

#endif
