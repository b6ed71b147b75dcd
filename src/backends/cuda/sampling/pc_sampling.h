/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of instruction sampling share: pc_sampling.c (contexts, samples),
 * pc_sampling_start.c (how it is set), pc_sampling_code.c (functions and images).
 */
#ifndef TS_BACKENDS_CUDA_SAMPLING_PC_SAMPLING_H
#define TS_BACKENDS_CUDA_SAMPLING_PC_SAMPLING_H

#include "backends/cuda/cuda_internal.h"
#include "backends/cuda/sampling/pc_sampling_abi.h"

#define SAMPLING_REASONS 128u     /* that CUPTI may number */
#define SAMPLING_BUFFER_PCS 4096u /* taken at once */
#define SAMPLING_AT_END_PCS 1024u /* what is left when a context ends */
#define SAMPLING_LEAST_PERIOD 5
#define SAMPLING_GREATEST_PERIOD 31

struct sampling_settings {
	uint32_t period; /* 0: not wanted; every 2^period cycles */
	bool is_serialized;
};

enum { SAMPLED_FREE, SAMPLED_CHANGES, SAMPLED_ON };

/* A context whose kernels are sampled. CUPTI knows where it lies. */
struct sampled {
	uint32_t state; /* who has changed it from FREE or ON to CHANGES alone touches the rest */
	void *context;
	struct sampling_data at_end; /* where CUPTI puts what is left */
	size_t reason_count;
	uint32_t indexes[SAMPLING_REASONS]; /* of reasons; CUPTI may keep the pointer */
	/* By CUPTI's number of the reason: */
	struct ts_emit_site *sites[SAMPLING_REASONS];
	bool is_not_issued[SAMPLING_REASONS]; /* of cycles in which nothing was issued */
};

/* ---- pc_sampling.c ---- */

/* Unless another thread does. */
void sampling_drain_now(void);

/* ---- pc_sampling_start.c ---- */

const struct sampling_settings *sampling_settings(void);
/* Room for so many pcs, each with all reasons; false: there is no memory. Is kept for ever. */
bool sampling_make_buffer(struct sampling_data *data, size_t pcs, size_t reasons);
/* Sampling of the context begins; false: it cannot, and a fact says why. */
bool sampling_begin(struct sampled *sampled);

/* ---- pc_sampling_code.c ---- */

/*
 * The number of the function for ts_code_frame(); 0: there is no room. By the thread that drains
 * alone.
 */
uint32_t sampling_function(const struct sampling_pc *pc);
/*
 * Images of modules that were seen in samples go to the trace; at last those that could not are
 * counted. Waits for the recorder: by the helper alone.
 */
void sampling_store_images(bool is_last);

#endif
