/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a library: they leave signals to the program's own. */
#ifndef TS_BASE_THREAD_H
#define TS_BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that receives no signals but those of its own crashes, which must reach whoever
 * handles them. `name` is cut to 15 bytes. 0, or an errno.
 */
int ts_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context),
		    void *context);

#endif
