/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to a model, `--what-if CHANGE`, may be repeated (docs/replay.md, section 7.4).
 *
 *	kernel:GLOB=0.5x | =12us    duration of matching kernels; likewise copy:GLOB
 *	device-speed=2x             all kernels, fills and copies inside a device
 *	copy-bandwidth=2x | =25GB/s copies between host and devices, and between devices
 *	latency=2us | =0.5x         from a call to the start of its command
 *	host-speed=2x               time in and between calls
 *	streams=N                   queues of each device
 *	concurrency=N               kernels that a device runs concurrently
 *	policy=fifo|priority|shortest
 *
 * Numbers are exact decimal fractions: a change by 1x changes nothing. Private to src/replay.
 */
#ifndef TS_REPLAY_EMULATOR_WHAT_IF_H
#define TS_REPLAY_EMULATOR_WHAT_IF_H

#include "replay/emulator/emulator.h"

/* All changes, for --help and messages. */
#define TS_WHAT_IF_CHANGES                                                                        \
	"kernel:GLOB=0.5x|12us, copy:GLOB=0.5x|12us, device-speed=2x, copy-bandwidth=2x|25GB/s, " \
	"latency=2us|0.5x, host-speed=2x, streams=N, concurrency=N, policy=fifo|priority|shortest"

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

/* How the value of a change is stored. */
enum ts_what_if_unit {
	TS_WHAT_IF_TIMES,   /* 0.5x: numerator / denominator */
	TS_WHAT_IF_NS,      /* numerator */
	TS_WHAT_IF_BYTES_S, /* numerator, per second */
	TS_WHAT_IF_COUNT,   /* numerator */
	TS_WHAT_IF_NAME,    /* numerator: enum ts_emulator_policy */
};

struct ts_what_if_change {
	enum ts_what_if_kind kind;
	enum ts_what_if_unit unit;
	int64_t numerator, denominator;
	const char *text; /* as given; borrowed */
	const char *glob; /* kernel, copy; in the arena of the what-if */
	uint64_t changed; /* number of commands it applied to */
};

struct ts_what_if {
	struct ts_what_if_change *changes;
	size_t count;
	struct ts_arena arena;
};

/*
 * texts are borrowed and must outlive the struct. release() accepts a zeroed struct, and one whose
 * parsing failed.
 */
int ts_what_if_parse(struct ts_what_if *what_if, const char *const *texts, size_t count,
		     struct ts_error *err);
void ts_what_if_release(struct ts_what_if *what_if);

/* The shape to build the model with, and the policy to run it with. */
struct ts_emulator_shape ts_what_if_shape(const struct ts_what_if *what_if);
enum ts_emulator_policy ts_what_if_policy(const struct ts_what_if *what_if);

/* Applies all other changes, in the order given. TS_EINVAL: a name that matches no command. */
int ts_what_if_apply(struct ts_what_if *what_if, const struct ts_work *work,
		     struct ts_emulator_model *model, struct ts_error *err);

/* "kernel:gemm*=0.5x (12 commands), streams=2"; truncated to fit. */
void ts_what_if_describe(const struct ts_what_if *what_if, char *buffer, size_t bytes);

#endif
