/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The importer of rocpd databases, shared by its files; docs/formats/rocprof.md says what becomes
 * of what.
 *
 *	rocpd.c          which tables there are; processes, agents, names
 *	rocpd_events.c   what happened
 *
 * Names of tables end in the id of the process that wrote them, and several may stand in one file;
 * each has numbers of its own. Older ones have no such ending.
 */
#ifndef TS_IMPORT_ROCPD_ROCPD_H
#define TS_IMPORT_ROCPD_ROCPD_H

#include "base/arena.h"
#include "import/common/sqlite.h"
#include "import/rocprof/rocprof_rows.h"

/*
 * Things by their number in the file: a list where numbers are dense, as they are, a map for the
 * others.
 */
struct ts_rocpd_list {
	size_t item_bytes;
	char *items; /* each begins with a bool: whether it was put */
	size_t count, capacity;
	struct ts_map others; /* number -> index */
	char *other_items;
	size_t other_count, other_capacity;
};

/* NULL: no memory. The item is zeroed; valid until the next one. */
void *ts_rocpd_put(struct ts_rocpd_list *list, int64_t number);
/* NULL: there is none. */
void *ts_rocpd_get(const struct ts_rocpd_list *list, int64_t number);

struct ts_rocpd_string {
	bool is_there;
	uint32_t string;
	enum ts_rocprof_operation operation;
	bool is_call, is_marker, is_empty;
};

struct ts_rocpd_node {
	bool is_there;
	int64_t host;
};

struct ts_rocpd_process {
	bool is_there;
	int64_t process, host;
	uint64_t index; /* in the file */
};

struct ts_rocpd_thread {
	bool is_there;
	int64_t thread;
};

struct ts_rocpd_agent {
	bool is_there;
	int64_t device; /* 0: no accelerator */
};

struct ts_rocpd_symbol {
	bool is_there, is_collective;
	const char *text; /* in the arena */
	size_t length;
	uint32_t name; /* 0: not used yet */
	int64_t vgprs, accum_vgprs, sgprs;
};

struct ts_rocpd_track {
	bool is_there;
	int64_t process, thread, agent, queue, stream, name; /* as they stand there */
};

struct ts_rocpd_time {
	bool is_there;
	int64_t value;
};

/* Of rocpd_event; a dispatch adds when and where it was, for its counters. */
struct ts_rocpd_event {
	bool is_there, has_dispatch;
	uint32_t category, message; /* number of a string; a string of the trace */
	uint32_t last_arg;          /* index into args plus 1; 0: none */
	int64_t correlation, external;
	int64_t start, device;
};

/* One of a dispatch: rows of one event follow each other. */
struct ts_rocpd_value {
	int64_t counter;
	double value;
};

struct ts_rocpd_arg {
	uint32_t name, value, previous;
};

struct ts_rocpd {
	struct ts_sqlite *db;
	struct ts_rocprof_rows rows;
	struct ts_error *err;
	const char *ending; /* of the tables that are being read */
	struct ts_text name;
	struct ts_arena texts;
	uint64_t processes; /* so far */
	struct ts_rocpd_list strings, nodes, process_list, threads, agents, symbols, counters,
		tracks, times, events;
	struct ts_rocpd_arg *args;
	size_t arg_count, arg_capacity;
	struct ts_rocpd_value *values;
	size_t value_count, value_capacity;
};

/* Starts a query of a table of the present ending and says that it is taken. */
int ts_rocpd_select(struct ts_rocpd *r, struct ts_sqlite_query *query, const char *table,
		    const char *const *columns, size_t count);

/* Never NULL: what a number that is not there refers to is all zero. */
const struct ts_rocpd_string *ts_rocpd_string(struct ts_rocpd *r, int64_t number);
const struct ts_rocpd_process *ts_rocpd_process(struct ts_rocpd *r, int64_t number);
int64_t ts_rocpd_thread(struct ts_rocpd *r, int64_t process, int64_t number);
int64_t ts_rocpd_device(struct ts_rocpd *r, int64_t process, int64_t number);

/* rocpd_events.c: all that happened, once the rest is known. */
int ts_rocpd_read_events(struct ts_rocpd *r);

#endif
