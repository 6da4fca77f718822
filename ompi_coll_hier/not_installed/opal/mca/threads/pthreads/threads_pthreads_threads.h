/* SPDX-License-Identifier: BSD-3-Clause */
/* As threads_pthreads_mutex.h beside it. threads.h declares this function, and its users call it. */
#ifndef HIER_THREADS_PTHREADS_THREADS_H
#define HIER_THREADS_PTHREADS_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void) { (void)sched_yield(); }

#endif
