/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test doubles around the CUPTI code: the agent and the driver wrappers, which record what they are
 * called with; the stand-in for CUPTI; and a launch as a wrapper does it.
 */
#ifndef TS_TESTS_CUDA_PLAYED_H
#define TS_TESTS_CUDA_PLAYED_H

#include "backends/cuda/calls/cuda_calls.h"
#include "backends/cuda/cupti/cupti_device.h"
#include "cuda/stand_in_cupti.h"
#include "unit/runner.h"

#define LAUNCH 307 /* cuLaunchKernel, as in cuda_calls.def */
#define COPY 305   /* cuMemcpy */
#define OPS 8192
#define WAIT_TRIES 2000

struct emitted_op {
	struct ts_gpu_op op;
	char name[128], category[16];
};

/* Recorded calls. */
extern struct emitted_op ops[OPS];
extern uint32_t stream_count, clock_count, call_count;
extern struct ts_accelerator_call last_call;
extern uint64_t lost;
extern char lost_reason[128], fact[2048];
extern uint32_t contexts_emitted, modules_emitted;
extern uint32_t symbols_requested; /* of the dynamic linker */

/* Settings of the doubles. */
extern uint32_t is_enabled; /* events are wanted */
extern bool is_forked, samples;
extern struct stand_in_cupti *cupti_played;

void open_stand_in(void);
void begin(void);
/* Launches as a wrapper does; returns the correlation that it found. */
uint32_t launch_as(const struct stand_in_work *work);
uint32_t launch(uint32_t grid);
uint32_t ops_now(void);
void await_ops(uint32_t count);
void await_state(enum cuda_device_state state);
/* At least two passes of the helper thread. */
void let_helper_look(void);

#endif
