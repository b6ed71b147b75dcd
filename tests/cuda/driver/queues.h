/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: what functions of streams and events need of queues.c. */
#ifndef TS_TESTS_CUDA_DRIVER_QUEUES_H
#define TS_TESTS_CUDA_DRIVER_QUEUES_H

#include "cuda/driver/driver.h"

/* With `queues` held: */
struct stream *stream_new(struct context *context, unsigned int flags, int priority);
/*
 * Runs a command that is ready, if there is one, without the lock meanwhile. Stuck: it has to run
 * again, and no other one was ready.
 */
bool run_one(bool *ret_is_stuck);
void wait_point(struct point point);

/* As submit(); the command records the event, if not NULL. */
int submit_event(struct stream *stream, struct op *op, struct event *event);

/* Each function of a stream exists twice: stream 0 is another one in programs with per-thread
 * default streams. */
#define STREAM_FUNCTION(name, parameters, arguments)                                \
	API name parameters                                                         \
	{                                                                           \
		struct stream *on = stream_of(stream, false);                       \
                                                                                    \
		return !on ? (current_context() ? INVALID_HANDLE : INVALID_CONTEXT) \
			   : do_##name arguments;                                   \
	}                                                                           \
	API name##_ptsz parameters                                                  \
	{                                                                           \
		struct stream *on = stream_of(stream, true);                        \
                                                                                    \
		return !on ? (current_context() ? INVALID_HANDLE : INVALID_CONTEXT) \
			   : do_##name arguments;                                   \
	}

#endif
