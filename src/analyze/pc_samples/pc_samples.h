/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a kernel spends its time: samples of its instructions, why they waited, and which launches
 * they may be of. docs/cuda.md, section 5.
 */
#ifndef TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_H
#define TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"

/* A function that was sampled. Texts live as long as the struct ts_pc_samples. */
struct ts_pc_samples_kernel {
	const char *name;
	const char *module; /* its code: name of an object; "": not known */
	int64_t samples;
};

struct ts_pc_samples_reason {
	const char *name;
	int64_t samples;
};

struct ts_pc_samples_instruction {
	int64_t offset; /* in its function */
	int64_t samples;
	size_t first_reason, reason_count; /* in `why` */
};

/* Launches with one call stack. */
struct ts_pc_samples_launch {
	int64_t stack; /* 0: none was taken */
	int64_t launches;
	int64_t device_ns;
	int64_t samples; /* of these launches alone; 0 where that is not known */
};

struct ts_pc_samples {
	struct ts_pc_samples_kernel *kernels; /* all that are called so; hottest first */
	size_t kernel_count;
	/* Of the first. */
	struct ts_pc_samples_reason *reasons; /* most first, as in `why` */
	size_t reason_count;
	struct ts_pc_samples_instruction *instructions; /* hottest first */
	size_t instruction_count;
	struct ts_pc_samples_reason *why;
	size_t why_count;
	struct ts_pc_samples_launch *launches; /* by samples, then by time, most first */
	size_t launch_count;
	bool is_exact; /* samples say which launch they are of */
	struct ts_pc_samples_store *store;
};

/*
 * Kernels called `name`; where none is, that are meant by it as a glob; else with that in their
 * name. TS_ENOTFOUND: the trace has no such samples, and the message says which there are.
 */
int ts_pc_samples_new(struct ts_pc_samples **ret_hot, struct ts_reader *reader, const char *name,
		      struct ts_error *err);
void ts_pc_samples_free(struct ts_pc_samples *hot);
TS_DEFINE_AUTO(ts_pc_samples, ts_pc_samples_free);

/*
 * The code of the first one, as the trace has it: caller frees. TS_ENOTFOUND: it does not have it.
 */
int ts_pc_samples_code(const struct ts_pc_samples *hot, void **ret_image, size_t *ret_bytes,
		       struct ts_error *err);

#endif
