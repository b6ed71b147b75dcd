/* SPDX-License-Identifier: Apache-2.0 */
/* The result of `tracesmith info`; info_text.c and info_json.c print it. */
#ifndef TS_CLI_INFO_INFO_H
#define TS_CLI_INFO_INFO_H

#include <tracesmith/reader.h>

#include "cli/common/show.h"
#include "open/trace_open.h"
#include "replay/summary/replay_facts.h"
#include "trace/trace_totals.h"

struct ts_info_table {
	uint64_t rows, bytes, chunks;
};

struct ts_info {
	struct ts_reader *reader;
	const char *path; /* or what messages call the process */
	pid_t pid;        /* of which this is a snapshot; 0: a trace */
	bool imported;    /* a file of another tool: `state` and chunks are of its conversion */
	uint64_t bytes;   /* of the file; 0: a pipe */
	const struct ts_reader_state *state;
	struct ts_trace_writer writer;
	struct ts_show show;
	struct ts_trace_range range;
	struct ts_info_table tables[TS_TABLE_COUNT];
	struct ts_info_table unknown; /* all tables unknown to this build */
	struct ts_trace_totals totals;
	struct ts_replay_facts *replay; /* NULL: the trace was not recorded for a replay */
};

int ts_info_show_text(const struct ts_info *info, struct ts_error *err);
int ts_info_show_json(const struct ts_info *info, struct ts_error *err);

/* Calls visit for each row of a table, in file order; stops at a nonzero result and returns it. */
int ts_info_visit(const struct ts_info *info, enum ts_table_id table,
		  int (*visit)(void *context, const struct ts_row *row), void *context,
		  struct ts_error *err);

/* ---- meta ---- */

/* The last value of a key of a source or of a process. */
struct ts_meta {
	int64_t process;    /* 0: not about a process */
	int64_t source;     /* 0: the trace */
	int64_t key, value; /* string ids */
	uint64_t key_hash, value_hash;
	bool differs; /* sources do not agree on this key */
	bool repeats; /* an earlier item has the same key */
};

struct ts_meta_list {
	struct ts_meta *items;
	size_t count, capacity;
};

/*
 * Collects metadata of sources, or of processes; rows about threads are omitted. Caller releases.
 */
int ts_meta_collect(const struct ts_info *info, bool of_processes, struct ts_meta_list *ret_list,
		    struct ts_error *err);
void ts_meta_list_release(struct ts_meta_list *list);

#endif
