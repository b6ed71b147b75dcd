/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads stacks of a CPython process from outside: never stops it, never writes to it. 3.8 to 3.15,
 * including free-threaded and debug builds. A stack that does not validate is read once more, then
 * dropped and counted; nothing is invented. See docs/python.md.
 *
 * One thread at a time per struct ts_python_reader.
 */
#ifndef TS_PYTHON_READER_PYTHON_READER_H
#define TS_PYTHON_READER_PYTHON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_python_reader;

/* A function. Created when first seen, immutable, freed with its reader. */
struct ts_python_code {
	const char *name; /* qualified (3.11 on), UTF-8 */
	const char *file;
	int32_t first_line;
	uint32_t number; /* from 1, per process */
	uint32_t tag;    /* for the caller: 0 at first */
};

#define TS_PYTHON_FRAME_ENTRY \
	1u /* the interpreter's loop was entered for this frame: native code called it */

struct ts_python_frame {
	struct ts_python_code *code;
	int32_t line; /* 0: unknown */
	uint32_t flags;
	uint64_t address; /* frame address, for ts_python_locals() */
};

enum ts_python_state {
	TS_PYTHON_RUNS = 1,      /* on a CPU, according to the kernel */
	TS_PYTHON_HAS_GIL = 2,   /* free-threaded: attached */
	TS_PYTHON_WAITS_GIL = 4, /* waiting for the GIL, if the version shows it */
	TS_PYTHON_COLLECTS = 8,  /* collecting garbage */
};

struct ts_python_thread {
	pid_t tid;           /* as seen from here; 0: unknown (3.8 to 3.10: inferred if possible) */
	uint64_t thread_id;  /* Python's own (pthread_self) */
	int64_t interpreter; /* its id; 0 is the main one */
	const char *name;    /* of threading.Thread; "": unknown */
	bool is_main;        /* the main thread of the main interpreter */
	bool is_rejected;    /* its stack did not validate: no frames */
	int64_t time_ns;     /* of its stack: the sweep's, or later if it had to be read again */
	uint32_t state;      /* enum ts_python_state flags */
	const char *task;    /* asyncio: name of the current task; "": none or unknown */
	struct ts_python_frame *frames; /* innermost first */
	uint32_t depth;
	uint32_t same; /* outermost frames whose code and line equal those of the last sweep */
};

struct ts_python_sweep {
	int64_t time_ns;                  /* CLOCK_MONOTONIC, in the middle of the read */
	struct ts_python_thread *threads; /* valid until the next call */
	size_t count;
};

#define TS_PYTHON_NAMES 1u     /* names of threads */
#define TS_PYTHON_KERNEL 2u    /* asks the kernel which threads run */
#define TS_PYTHON_MAIN_ONLY 4u /* the main thread only */
#define TS_PYTHON_TASKS 8u     /* asyncio's current tasks */

/*
 * TS_ENOTFOUND: no such process, or no Python in it (yet); TS_EVERSION: an unsupported version,
 * named in the message; TS_ECAP: access denied, and the message says which capability is missing.
 * `start_time` 0: whichever process has the pid now.
 */
int ts_python_reader_open(struct ts_python_reader **ret_python, pid_t pid, uint64_t start_time,
			  unsigned int flags, struct ts_error *err);
void ts_python_reader_close(struct ts_python_reader *python);
TS_DEFINE_AUTO(ts_python_reader, ts_python_reader_close);

/* All threads now. TS_ENOTFOUND: it has exited, or executed another program. */
int ts_python_sweep(struct ts_python_reader *python, struct ts_python_sweep *ret_sweep,
		    struct ts_error *err);

struct ts_python_info {
	unsigned int major, minor, patch;
	char version[48]; /* "3.13.5", "3.14.0rc2 free-threaded", "3.11.7 debug" */
	bool is_free_threaded, is_debug;
	char binary[256];     /* file with the runtime */
	const char *found_by; /* "symbol", "section", "scan" */
};
const struct ts_python_info *ts_python_info(const struct ts_python_reader *python);

/* Since it was opened. */
struct ts_python_reader_counts {
	uint64_t sweeps, stacks; /* accepted */
	uint64_t retried, rejected;
	uint64_t system_calls, bytes;
	uint64_t speculations_missed; /* ranges that had to be read again */
	int64_t read_ns, resolve_ns;  /* time spent */
};
void ts_python_reader_counts(const struct ts_python_reader *python,
			     struct ts_python_reader_counts *ret_counts);

/* ---- local variables: python_locals.c ---- */

struct ts_text;
/*
 * Appends a JSON object {"name":"shortened repr", ...} of a frame's local variables as they are in
 * memory now. The frame may have returned: implausible values are "?". At most `limit` bytes. Large
 * values are shortened: "[1, 2, 3, ... 1000 items]", "<Tensor (8, 128) float32 cpu>".
 */
int ts_python_locals(struct ts_python_reader *python, const struct ts_python_frame *frame,
		     size_t limit, struct ts_text *out);

#endif
