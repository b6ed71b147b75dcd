/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a kernel spends its time: instruction samples, stall reasons, and the launches that the
 * samples may belong to. docs/cuda.md, section 5.
 */
#ifndef TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_H
#define TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"

/* A sampled function. Texts live as long as the struct ts_pc_samples. */
struct ts_pc_samples_kernel {
	const char *name;
	const char *module; /* code object that contains it; "": unknown */
	int64_t samples;
};

struct ts_pc_samples_reason {
	const char *name;
	int64_t samples;
};

struct ts_pc_samples_instruction {
	int64_t offset; /* in the function */
	int64_t samples;
	size_t first_reason, reason_count; /* in `why` */
};

/* Launches from the same call stack. */
struct ts_pc_samples_launch {
	int64_t stack; /* 0: no stack was recorded */
	int64_t launches;
	int64_t device_ns;
	int64_t samples; /* of these launches alone; 0: unknown */
};

struct ts_pc_samples {
	struct ts_pc_samples_kernel *kernels; /* all that match the name, hottest first */
	size_t kernel_count;
	/* The rest describes kernels[0]. */
	struct ts_pc_samples_reason *reasons; /* most samples first, as in `why` */
	size_t reason_count;
	struct ts_pc_samples_instruction *instructions; /* hottest first */
	size_t instruction_count;
	struct ts_pc_samples_reason *why;
	size_t why_count;
	struct ts_pc_samples_launch *launches; /* by samples, then by time, most first */
	size_t launch_count;
	bool is_exact; /* samples name their launch */
	struct ts_pc_samples_store *store;
};

/*
 * Finds kernels named `name`, else those that match it as a glob, else those whose name contains
 * it. TS_ENOTFOUND: no samples match; the message names the hottest kernel.
 */
int ts_pc_samples_new(struct ts_pc_samples **ret_hot, struct ts_reader *reader, const char *name,
		      struct ts_error *err);
void ts_pc_samples_free(struct ts_pc_samples *hot);
TS_DEFINE_AUTO(ts_pc_samples, ts_pc_samples_free);

/*
 * Returns the code of kernels[0] from the trace; the caller frees it. TS_ENOTFOUND: not in the
 * trace.
 */
int ts_pc_samples_code(const struct ts_pc_samples *hot, void **ret_image, size_t *ret_bytes,
		       struct ts_error *err);

#endif
