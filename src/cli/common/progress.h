/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress bar on stderr, and Ctrl-C. The bar shows only on a terminal and only for work that
 * takes more than a second. One piece of work at a time; main thread only.
 *
 *	struct ts_progress progress;
 *	ts_progress_start(&progress, "import a.json", TS_PROGRESS_BYTES);
 *	rc = ts_verify(path, report, ts_progress_step, &progress, &err);
 *	ts_progress_stop(&progress);
 */
#ifndef TS_CLI_COMMON_PROGRESS_H
#define TS_CLI_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum ts_progress_unit {
	TS_PROGRESS_BYTES,
	TS_PROGRESS_ROWS,
	TS_PROGRESS_COMMANDS,
	TS_PROGRESS_RUNS,
};

struct ts_progress {
	const char *label;
	enum ts_progress_unit unit;
	bool terminal;
	int64_t begun_ns;
	int64_t shown_ns; /* when the bar was last drawn; 0: never */
};

/*
 * From now on SIGINT, SIGTERM and SIGHUP only ask the work to stop. A second SIGINT, or work that
 * takes no notice of the others, ends the program within a second. The label is borrowed.
 */
void ts_progress_start(struct ts_progress *progress, const char *label, enum ts_progress_unit unit);

/*
 * Progress callback for the library; `context` is the struct ts_progress. Not 0: the user wants to
 * stop.
 */
int ts_progress_step(void *context, uint64_t done, uint64_t total);

/* Removes the bar. Signals stay caught: files may still have to be finished. */
void ts_progress_stop(struct ts_progress *progress);

/*
 * From now on signals end the program at once: before any work, and for work without output files.
 * Outputs that are not complete are removed even so (ts_output_remove_parts()). A file size limit
 * is an error of write().
 */
void ts_progress_guard(void);

/* Shows "WHAT ..." in place of the bar, for work of unknown length. Only on a terminal. */
void ts_progress_phase(const char *what);

/* Shows a line in place of the bar, unchanged. Only on a terminal. */
void ts_progress_show(const char *line);

/* Erases the bar or line, so that a message can be printed. */
void ts_progress_hide(void);

/* Seconds since start. */
double ts_progress_seconds(const struct ts_progress *progress);

/* The signal that asked to stop, or 0. */
int ts_stop_signal(void);

#endif
