/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What if: changes of a model in words, `--what-if CHANGE`, several at once (docs/replay.md,
 * section 7).
 *
 *	kernel:GLOB=0.5x | =12us    how long kernels of a name take; so copy:GLOB
 *	device-speed=2x             all kernels, fills and copies inside a device
 *	copy-bandwidth=2x | =25GB/s copies between host and devices, and between devices
 *	latency=2us | =0.5x         from a call to the start of its command
 *	host-speed=2x               time in and between calls
 *	streams=N                   queues of each device
 *	concurrency=N               kernels that a device runs side by side
 *	policy=fifo|priority|shortest
 *
 * Numbers are decimal fractions, and so exact: a change by 1x changes nothing. Private to
 * src/replay.
 */
#ifndef TS_REPLAY_EMULATOR_WHAT_IF_H
#define TS_REPLAY_EMULATOR_WHAT_IF_H

#include "replay/emulator/emulator.h"

enum ts_what_if_kind {
	TS_WHAT_IF_KERNEL,
	TS_WHAT_IF_COPY,
	TS_WHAT_IF_DEVICE_SPEED,
	TS_WHAT_IF_COPY_BANDWIDTH,
	TS_WHAT_IF_LATENCY,
	TS_WHAT_IF_HOST_SPEED,
	TS_WHAT_IF_STREAMS,
	TS_WHAT_IF_CONCURRENCY,
	TS_WHAT_IF_POLICY,
};

/* A decimal number: value / 10^decimals, as units. */
enum ts_what_if_unit {
	TS_WHAT_IF_TIMES,   /* 0.5x: numerator / denominator */
	TS_WHAT_IF_NS,      /* numerator */
	TS_WHAT_IF_BYTES_S, /* numerator, a second */
	TS_WHAT_IF_COUNT,   /* numerator */
	TS_WHAT_IF_NAME,    /* numerator: enum ts_emulator_policy */
};

struct ts_what_if_change {
	enum ts_what_if_kind kind;
	enum ts_what_if_unit unit;
	int64_t numerator, denominator;
	const char *text; /* as it was given; borrowed */
	const char *glob; /* kernel, copy; owned by the what-if */
	uint64_t changed; /* commands that it was applied to */
};

struct ts_what_if {
	struct ts_what_if_change *changes;
	size_t count;
	struct ts_arena arena;
};

/*
 * texts stay the caller's, and must live as long. release() accepts a zeroed struct, and one that
 * failed.
 */
int ts_what_if_parse(struct ts_what_if *what_if, const char *const *texts, size_t count,
		     struct ts_error *err);
void ts_what_if_release(struct ts_what_if *what_if);

/* What the model must be built with, and run with. */
struct ts_emulator_shape ts_what_if_shape(const struct ts_what_if *what_if);
enum ts_emulator_policy ts_what_if_policy(const struct ts_what_if *what_if);

/* All the rest, in the order given. TS_EINVAL: a name that no command has. */
int ts_what_if_apply(struct ts_what_if *what_if, const struct ts_work *work,
		     struct ts_emulator_model *model, struct ts_error *err);

/* "kernel:gemm*=0.5x (12 commands), streams=2"; cut to fit. */
void ts_what_if_describe(const struct ts_what_if *what_if, char *buffer, size_t bytes);

#endif
