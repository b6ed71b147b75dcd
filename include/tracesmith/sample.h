/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks that somebody has seen: rows of sample, stack and frame. For samplers, and for
 * engines that have stacks of their own (interpreters, schedulers). Costs a copy of the frames;
 * takes no lock but for a function's first time.
 */
#ifndef TRACESMITH_SAMPLE_H
#define TRACESMITH_SAMPLE_H

#include <stdint.h>

#include <tracesmith/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A place in code that frames name. The number of a new entry of the area's dictionary, 0 where
 * there is no room. Give each once.
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
 * One frame: a number that ts_code() gave, and the line, or for native code the address relative to
 * its file.
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
	TS_SAMPLE_STATE_KNOWN = 16, /* without it the others say nothing */
	/*
	 * No thread's: an instruction that a device was seen at. One frame, of TS_CODE_DEVICE; the
	 * site's category is the state (why it waited), weight_ns the number of times, tid the
	 * correlation of its launch, 0 where that is not known. pid is 0. Stored also while events
	 * are off.
	 */
	TS_SAMPLE_ON_DEVICE = 32,
};

struct ts_sample {
	uint32_t size;       /* of this struct, as the caller was compiled */
	int32_t pid;         /* 0: the calling thread itself; then tid is not looked at */
	uint64_t start_time; /* of the process: field 22 of /proc/PID/stat; 0: not known */
	uint32_t tid;
	uint32_t state;         /* enum ts_sample_state, or-ed */
	uint64_t time;          /* as of ts_now(); 0: now */
	int64_t weight_ns;      /* what it counts for; 0: not known */
	const uint64_t *frames; /* outermost first */
	uint32_t count; /* more than TS_SAMPLE_FRAMES: the middle is left out, and a frame says how
			   many */
};
#define TS_SAMPLE_FRAMES 1800

/*
 * A sampler without arguments; with some, see what TS_EMIT_SITE_ of emit.h makes: kind 9, flags 32
 * (a stack follows).
 */
#define TS_SAMPLE_SITE(name, category)                     \
	{                                                  \
		0, name, category, NULL, 0, 9, 32, 0, 0, 0 \
	}

/* `site`: name (the sampler) and arguments' names of it; see emit.h. TS_SAMPLE_SITE makes one. */
TS_EMIT_API void ts_sample(struct ts_emit_site *site, const struct ts_sample *sample,
			   const struct ts_emit_arg *args, unsigned int count);

/* The name of a thread of another process. */
TS_EMIT_API void ts_sample_thread(int32_t pid, uint64_t start_time, uint32_t tid, const char *name);

#ifdef __cplusplus
}
#endif

#endif
