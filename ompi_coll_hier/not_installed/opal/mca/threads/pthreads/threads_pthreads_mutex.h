/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI 5.0 and 6.0 do not install their header of this name, which the headers that they do install
 * include (configure takes this one only then). What those need of it: two types, which decide the
 * layout of a communicator, and what they call inline. */
#ifndef HIER_THREADS_PTHREADS_MUTEX_H
#define HIER_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "opal/constants.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t* mutex,
                                                  bool recursive)
{
    pthread_mutexattr_t kind;
    int error = pthread_mutexattr_init(&kind);
    if (0 == error) {
        error = pthread_mutexattr_settype(&kind, recursive ? PTHREAD_MUTEX_RECURSIVE
                                                           : PTHREAD_MUTEX_DEFAULT);
        if (0 == error) {
            error = pthread_mutex_init(mutex, &kind);
        }
        (void)pthread_mutexattr_destroy(&kind);
    }
    return 0 == error ? OPAL_SUCCESS : OPAL_ERROR;
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t* mutex)
{
    (void)pthread_mutex_destroy(mutex);
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t* mutex)
{
    (void)pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t* mutex)
{
    (void)pthread_mutex_unlock(mutex);
}

/* 0: it is locked now; 1: it was, by another. */
static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t* mutex)
{
    return 0 != pthread_mutex_trylock(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t* condition)
{
    return 0 == pthread_cond_init(condition, NULL) ? OPAL_SUCCESS : OPAL_ERROR;
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t* condition)
{
    (void)pthread_cond_signal(condition);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t* condition)
{
    (void)pthread_cond_destroy(condition);
}

#endif
