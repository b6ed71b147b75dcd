/* SPDX-License-Identifier: Apache-2.0 */
/* Library threads: they leave signals to the program's own threads. */
#ifndef TS_BASE_THREAD_H
#define TS_BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread with all signals blocked except those of its own crashes, which must reach their
 * handlers. `name` is truncated to 15 bytes. 0, or an errno.
 */
int ts_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context),
		    void *context);

#endif
