/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled call stacks: rows of sample, stack and frame. For samplers, and for engines with their
 * own stacks (interpreters, schedulers). Costs a copy of the frames; takes a lock only when a
 * function is first seen.
 */
#ifndef TRACESMITH_SAMPLE_H
#define TRACESMITH_SAMPLE_H

#include <stdint.h>

#include <tracesmith/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A code location that frames refer to. Returns the number of a new entry in the area's dictionary,
 * 0 if it is full. Add each once.
 */
enum ts_code_kind {
	TS_CODE_PYTHON = 40,
	TS_CODE_NATIVE = 41,
	TS_CODE_SCRIPT = 42,
	TS_CODE_DEVICE = 45, /* on a device: `file` names its module, frames have offsets */
};
TS_EMIT_API uint32_t ts_code(enum ts_code_kind kind, const char *name, const char *file,
			     uint32_t first_line);

/*
 * One frame: a number from ts_code(), and the line, or for native code the address relative to its
 * file.
 */
static inline uint64_t ts_code_frame(uint32_t code, uint32_t line_or_address)
{
	return (uint64_t)code << 32 | line_or_address;
}

enum ts_sample_state {
	TS_SAMPLE_RUNNING = 1,
	TS_SAMPLE_HAS_LOCK = 2, /* an interpreter's */
	TS_SAMPLE_WAITS_LOCK = 4,
	TS_SAMPLE_COLLECTING = 8,
	TS_SAMPLE_STATE_KNOWN = 16, /* without it the others are meaningless */
	/*
	 * Not a thread: an instruction sampled on a device. One frame, of TS_CODE_DEVICE; the
	 * site's category is the state (stall reason), weight_ns the number of samples, tid the
	 * correlation of its launch, 0 if unknown. pid is 0. Stored even while events are off.
	 */
	TS_SAMPLE_ON_DEVICE = 32,
};

struct ts_sample {
	uint32_t size;       /* size of this struct, as the caller was compiled */
	int32_t pid;         /* 0: the calling thread itself; then tid is ignored */
	uint64_t start_time; /* of the process: field 22 of /proc/PID/stat; 0: unknown */
	uint32_t tid;
	uint32_t state;         /* enum ts_sample_state flags */
	uint64_t time;          /* from ts_now(); 0: now */
	int64_t weight_ns;      /* 0: unknown */
	const uint64_t *frames; /* outermost first */
	uint32_t count; /* more than TS_SAMPLE_FRAMES: the middle is dropped, and a frame says how
			   many */
};
#define TS_SAMPLE_FRAMES 1800

/*
 * A sampler without arguments; for arguments see what TS_EMIT_SITE_ of emit.h generates: kind 9,
 * flags 32 (a stack follows).
 */
#define TS_SAMPLE_SITE(name, category)                     \
	{                                                  \
		0, name, category, NULL, 0, 9, 32, 0, 0, 0 \
	}

/* `site`: name (the sampler) and argument names; see emit.h. TS_SAMPLE_SITE makes one. */
TS_EMIT_API void ts_sample(struct ts_emit_site *site, const struct ts_sample *sample,
			   const struct ts_emit_arg *args, unsigned int count);

/* The name of a thread of another process. */
TS_EMIT_API void ts_sample_thread(int32_t pid, uint64_t start_time, uint32_t tid, const char *name);

#ifdef __cplusplus
}
#endif

#endif
