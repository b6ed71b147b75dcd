/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the native frames of a trace, appended to it as rows of `symbol`: what `tracesmith
 * symbolize` does, and `record` at its end.
 */
#ifndef TS_CLI_COMMON_SYMBOLIZE_TRACE_H
#define TS_CLI_COMMON_SYMBOLIZE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/text.h"
#include "code/symbolize.h"

struct ts_symbolize_choice {
	/*
	 * Folders beside those of TRACESMITH_DEBUG_PATH; each may be several, with colons between.
	 */
	char **folders;
	size_t folder_count;
	bool force;     /* frames that have names already, too */
	bool is_locked; /* the caller holds the trace's lock */
};

/* What came of it. */
struct ts_symbolize_summary {
	uint64_t frames; /* without a name of their own, in a binary */
	uint64_t known;  /* of these, named by an earlier run and left alone */
	uint64_t named, with_lines;
	uint64_t binaries;
	uint64_t states[TS_SYMBOLIZE_LINES + 1]; /* of binaries, by enum ts_symbolize_state */
	uint64_t damaged;                        /* debug information that could not be used */
	bool has_libdw;
	struct ts_text missing; /* a line for people for each binary that gave nothing */
};
void ts_symbolize_summary_release(struct ts_symbolize_summary *summary);

/*
 * Appends rows where there are any. Shows its progress. *ret_summary is to be released, also after
 * failure.
 */
int ts_cli_symbolize(const char *path, const struct ts_symbolize_choice *choice,
		     struct ts_symbolize_summary *ret_summary, struct ts_error *err);

/*
 * Says on stderr how native frames of a trace that was saved get their names, if it has any
 * without.
 */
void ts_symbolize_advise(const char *path);

/* Says it on stderr: a line, and where `all`, one for each binary that gave nothing. */
void ts_symbolize_tell(const struct ts_symbolize_summary *summary, const char *path, bool all);

#endif
