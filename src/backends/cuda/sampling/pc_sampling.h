/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of instruction sampling share: pc_sampling.c (contexts, samples),
 * pc_sampling_start.c (configuration), pc_sampling_code.c (functions and images).
 */
#ifndef TS_BACKENDS_CUDA_SAMPLING_PC_SAMPLING_H
#define TS_BACKENDS_CUDA_SAMPLING_PC_SAMPLING_H

#include "backends/cuda/cuda_internal.h"
#include "backends/cuda/sampling/pc_sampling_abi.h"

#define SAMPLING_REASONS 128u     /* limit of CUPTI's reason numbers */
#define SAMPLING_BUFFER_PCS 4096u /* read at once */
#define SAMPLING_AT_END_PCS 1024u /* for the rest when a context is destroyed */
#define SAMPLING_LEAST_PERIOD 5
#define SAMPLING_GREATEST_PERIOD 31

struct sampling_settings {
	uint32_t period; /* every 2^period cycles; 0: off */
	bool is_serialized;
};

enum { SAMPLED_FREE, SAMPLED_CHANGES, SAMPLED_ON };

/* A context whose kernels are sampled. CUPTI keeps its address. */
struct sampled {
	uint32_t state; /* whoever changed it from FREE or ON to CHANGES owns the rest */
	void *context;
	struct sampling_data at_end; /* where CUPTI puts the rest */
	size_t reason_count;
	uint32_t indexes[SAMPLING_REASONS]; /* of reasons; CUPTI may keep the pointer */
	/* By CUPTI's number of the reason: */
	struct ts_emit_site *sites[SAMPLING_REASONS];
	bool is_not_issued[SAMPLING_REASONS]; /* for cycles in which nothing was issued */
};

/* ---- pc_sampling.c ---- */

/* Returns at once if another thread is draining. */
void sampling_drain_now(void);

/* ---- pc_sampling_start.c ---- */

const struct sampling_settings *sampling_settings(void);
/* Allocates space for this many pcs, each with all reasons; false: no memory. Never freed. */
bool sampling_make_buffer(struct sampling_data *data, size_t pcs, size_t reasons);
/* Starts sampling the context; false: not possible, and a fact says why. */
bool sampling_begin(struct sampled *sampled);

/* ---- pc_sampling_code.c ---- */

/*
 * The number of the function for ts_code_frame(); 0: the table is full. Only for the draining
 * thread.
 */
uint32_t sampling_function(const struct sampling_pc *pc);
/*
 * Emits images of modules that have samples; the last call counts those that could not be emitted.
 * Waits for the recorder: only for the helper.
 */
void sampling_store_images(bool is_last);

#endif
