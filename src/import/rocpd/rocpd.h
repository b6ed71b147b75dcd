/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of rocpd databases; docs/formats/rocprof.md describes the mapping.
 *
 *	rocpd.c         tables; processes, agents, names
 *	rocpd_events.c  events
 *
 * Table names end with the id of the process that wrote them. One file may contain several sets of
 * tables, each with its own numbering. Older versions have no such suffix.
 */
#ifndef TS_IMPORT_ROCPD_ROCPD_H
#define TS_IMPORT_ROCPD_ROCPD_H

#include "base/arena.h"
#include "import/common/sqlite.h"
#include "import/rocprof/rocprof_rows.h"

/* Items by their number in the file: an array for dense numbers, a map for others. */
struct ts_rocpd_list {
	size_t item_bytes;
	char *items; /* each begins with a bool: present */
	size_t count, capacity;
	struct ts_map others; /* number -> index */
	char *other_items;
	size_t other_count, other_capacity;
};

/* NULL: out of memory. The item is zeroed; valid until the next call. */
void *ts_rocpd_put(struct ts_rocpd_list *list, int64_t number);
/* NULL: not present. */
void *ts_rocpd_get(const struct ts_rocpd_list *list, int64_t number);

struct ts_rocpd_string {
	bool is_present;
	uint32_t string;
	enum ts_rocprof_operation operation;
	bool is_call, is_marker, is_empty;
};

struct ts_rocpd_node {
	bool is_present;
	int64_t host;
};

struct ts_rocpd_process {
	bool is_present;
	int64_t process, host;
	uint64_t index; /* in the file */
};

struct ts_rocpd_thread {
	bool is_present;
	int64_t thread;
};

struct ts_rocpd_agent {
	bool is_present;
	int64_t device; /* 0: no accelerator */
};

struct ts_rocpd_symbol {
	bool is_present, is_collective;
	const char *text; /* in the arena */
	size_t length;
	uint32_t name; /* 0: not used yet */
	int64_t vgprs, accum_vgprs, sgprs;
};

struct ts_rocpd_track {
	bool is_present;
	int64_t process, thread, agent, queue, stream, name; /* as in the file */
};

struct ts_rocpd_time {
	bool is_present;
	int64_t value;
};

/* Of rocpd_event; a dispatch adds time and location, for its counters. */
struct ts_rocpd_event {
	bool is_present, has_dispatch;
	uint32_t category, message; /* number of a string; a string of the trace */
	uint32_t last_arg;          /* index into args plus 1; 0: none */
	int64_t correlation, external;
	int64_t start, device;
};

/* A value of a dispatch: rows of one event are adjacent. */
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
	const char *ending; /* suffix of the tables being read */
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

/* Starts a query of a table with the current suffix and marks it as read. */
int ts_rocpd_select(struct ts_rocpd *r, struct ts_sqlite_query *query, const char *table,
		    const char *const *columns, size_t count);

/* Never NULL: unknown numbers give an all-zero item. */
const struct ts_rocpd_string *ts_rocpd_string(struct ts_rocpd *r, int64_t number);
const struct ts_rocpd_process *ts_rocpd_process(struct ts_rocpd *r, int64_t number);
int64_t ts_rocpd_thread(struct ts_rocpd *r, int64_t process, int64_t number);
int64_t ts_rocpd_device(struct ts_rocpd *r, int64_t process, int64_t number);

/* rocpd_events.c: reads all events, after everything else. */
int ts_rocpd_read_events(struct ts_rocpd *r);

#endif
