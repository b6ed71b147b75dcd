/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolizes the native frames of a trace: appends rows of `symbol` to it. */
#ifndef TS_CODE_SYMBOLIZE_TRACE_H
#define TS_CODE_SYMBOLIZE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/text.h"
#include "code/symbolize.h"

struct ts_symbolize_choice {
	/* Debug folders, besides those of TRACESMITH_DEBUG_PATH; each may be a list with colons. */
	char **folders;
	size_t folder_count;
	bool force;     /* symbolize frames again that have symbols already */
	bool is_locked; /* the caller holds the file's writer lock */
	/* Told how far it is; not 0 ends it with TS_ECANCELED. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
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
 * Appends the rows, if there are any. *ret_summary is to be released, also after failure.
 */
int ts_symbolize_trace(const char *path, const struct ts_symbolize_choice *choice,
		       struct ts_symbolize_summary *ret_summary, struct ts_error *err);

#endif
