/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python programs in `top`: functions by own and total time, threads, the GIL. Stacks come from its
 * own sampler; a snapshot covers the time between two refreshes.
 */
#ifndef TS_CLI_TOP_TOP_PYTHON_H
#define TS_CLI_TOP_TOP_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/text.h"
#include "cli/common/screen.h"
#include "cli/top/top_functions.h"
#include "sample/python/python_sampler.h"

#define TS_TOP_PYTHON_INTERVAL_NS INT64_C(10000000)
#define TS_TOP_PYTHON_FUNCTIONS 200u

struct ts_top_python_thread {
	pid_t pid, tid;
	char name[64];
	uint32_t state; /* of its last sample: enum ts_python_state flags */
	char task[64];
	/*
	 * The innermost function of its last sample; NULL: none. Lives as long as the struct
	 * ts_top_python.
	 */
	const char *function, *file;
	int32_t line;
	double active_percent, gil_percent; /* of the interval */
};

/* What was sampled between two refreshes. */
struct ts_top_python_snapshot {
	bool is_shown;    /* something is being sampled */
	double elapsed_s; /* 0: nothing measured yet */
	uint64_t samples, rejected;
	size_t processes;
	double gil_percent; /* share of time in which a thread holds the GIL; mean over processes */
	struct ts_top_function *functions;
	size_t function_count;
	struct ts_top_python_thread *threads; /* by pid and number, main ones first */
	size_t thread_count;
	char message[256]; /* why a process cannot be sampled; "" */
};

void ts_top_python_snapshot_release(struct ts_top_python_snapshot *picture);

struct ts_top_python;

int ts_top_python_open(struct ts_top_python **ret_python, struct ts_error *err);
void ts_top_python_close(struct ts_top_python *python);

/* Samples only these from now on; their intervals may be 0. None: pauses. */
int ts_top_python_watch(struct ts_top_python *python, const struct ts_sampled_process *processes,
			size_t count, struct ts_error *err);

struct ts_top_python_request {
	bool idle;     /* count idle threads too */
	bool by_total; /* order of functions */
};
/* What came since the last refresh; releases the previous snapshot. */
int ts_top_python_refresh(struct ts_top_python *python, const struct ts_top_python_request *wish,
			  struct ts_top_python_snapshot *picture, struct ts_error *err);

/* The sampler's callback, for tests of the counting: any thread. */
void ts_top_python_take(struct ts_top_python *python, const struct ts_python_sample *sample);

/* ---- showing (top_python_show.c) ---- */

enum ts_top_pane { TS_TOP_PANE_NONE, TS_TOP_PANE_FUNCTIONS, TS_TOP_PANE_THREADS, TS_TOP_PANES };

/* "python: 2 processes, 5 threads, 98 samples/s, 0.0% rejected, GIL 97.3%". */
void ts_top_python_describe(const struct ts_top_python_snapshot *picture, struct ts_text *out);
/* Both lists as text tables, after an empty line. */
int ts_top_python_put_text(const struct ts_top_python_snapshot *picture, struct ts_error *err);
/* An object. */
void ts_top_python_put_json(struct ts_text *out, const struct ts_top_python_snapshot *picture);
/* Rows that a list needs, including title and header. */
unsigned int ts_top_python_rows(const struct ts_top_python_snapshot *picture,
				enum ts_top_pane pane);
void ts_top_python_draw(struct ts_screen *screen, const struct ts_top_python_snapshot *picture,
			enum ts_top_pane pane, unsigned int row, unsigned int end);

#endif
