/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of Nsight Systems exports (docs/formats/nsys.md). nsys.c has the order in which tables
 * are read, and what rows refer to: strings, processes, threads, devices, streams. One file each:
 * facts about machine and session (nsys_info.c), device work (nsys_gpu.c), NVTX (nsys_nvtx.c), call
 * stacks and samples (nsys_stacks.c), sampled metrics (nsys_metrics.c), and all other tables, by
 * their columns (nsys_other.c).
 */
#ifndef TS_IMPORT_NSYS_NSYS_H
#define TS_IMPORT_NSYS_NSYS_H

#include "base/map.h"
#include "base/text.h"
#include "import/common/sqlite.h"

/* A row of StringIds. */
struct ts_nsys_text {
	const char *text; /* in the arena */
	uint32_t length;
	uint32_t string;   /* in the trace; 0: not added yet */
	uint32_t function; /* name without version suffix; 0: not added yet */
};

struct ts_nsys_process {
	uint64_t key; /* GlobalId without its thread */
	int64_t id;
	int64_t host;
	uint64_t correlation_base; /* added to correlation ids; 1: none yet */
};

/* Resolves a number to a string; 0: keep the number. */
struct ts_nsys;
typedef uint32_t ts_nsys_resolve(struct ts_nsys *n, const struct ts_sqlite_query *query,
				 int64_t number);

/* Arguments of the rows of one table: its columns, and the shapes seen so far. */
struct ts_nsys_arg {
	uint32_t key; /* string in the trace */
	int column;
	ts_nsys_resolve *resolve; /* NULL: numbers are numbers */
};

#define TS_NSYS_MAX_ARGS 31

struct ts_nsys_args {
	struct ts_nsys_arg list[TS_NSYS_MAX_ARGS];
	size_t count;
	uint64_t last_code;
	uint32_t last_shape;
	struct ts_map shapes; /* by code: 2 bits an argument, absent, int, double, text */
	int64_t values[TS_NSYS_MAX_ARGS];
};

/* Call chains of one table. */
struct ts_nsys_chains {
	struct ts_map stacks; /* id to stack */
	int64_t last;         /* the greatest id */
	int64_t offset;       /* id of a chain, less the number by which events refer to it */
};

struct ts_nsys {
	struct ts_sqlite *db;
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_entities *entities;
	struct ts_error *err;

	struct ts_nsys_text *texts;
	size_t text_count, text_capacity;
	uint32_t *dense_texts; /* index + 1, for ids below dense_count */
	size_t dense_count;
	struct ts_map sparse_texts; /* index, for other ids */

	struct ts_nsys_process *processes;
	size_t process_count, process_capacity;
	struct ts_map process_by_key; /* to index */
	size_t last_process;
	uint64_t correlation_bases;     /* given out */
	struct ts_pairmap cuda_gpus;    /* (pid, CUDA device) to GPU */
	struct ts_pairmap devices;      /* (process index, CUDA device) to device */
	struct ts_pairmap streams;      /* (process index, context and stream) to stream */
	struct ts_pairmap stream_facts; /* (pid, context and stream) to index */
	struct ts_nsys_stream_fact *facts;
	size_t fact_count, fact_capacity;

	struct ts_nsys_chains cuda_chains, osrt_chains, sample_chains;
	struct ts_map modules;        /* text id to mapping */
	struct ts_pairmap domains;    /* (process key, domain) to category of a slice */
	struct ts_pairmap categories; /* (process key and domain, category) to its name */
	struct ts_pairmap metrics;    /* (type, metric) to its name */
	struct ts_text scratch;
};

/* Stream properties from tables other than events. */
struct ts_nsys_stream_fact {
	uint32_t name; /* 0: none */
	int64_t priority;
};

/* ---- what rows refer to; nsys.c ---- */

/* GlobalId: hardware and machine, 16 bits; process, 24; thread, 24. */
static inline uint64_t ts_nsys_process_key(int64_t global)
{
	return (uint64_t)global >> 24;
}

static inline int64_t ts_nsys_pid(int64_t global)
{
	return ((uint64_t)global >> 24) & 0xffffff;
}

/* NULL: not in StringIds. */
struct ts_nsys_text *ts_nsys_text(struct ts_nsys *n, int64_t id);
/* As a string of the trace; 0: none. */
uint32_t ts_nsys_string(struct ts_nsys *n, int64_t id);
/* Does a column of that name refer to StringIds? Schemas say so only in comments. */
bool ts_nsys_is_text_id(const char *column);
/* A constant text as a string of the trace. */
uint32_t ts_nsys_literal(struct ts_nsys *n, const char *literal);

/* NULL: out of memory, or the writer has failed. Absent ids mean a process without pid. */
struct ts_nsys_process *ts_nsys_process(struct ts_nsys *n, int64_t global);
int64_t ts_nsys_thread(struct ts_nsys *n, int64_t global);
int64_t ts_nsys_device(struct ts_nsys *n, struct ts_nsys_process *process, int64_t device);
int64_t ts_nsys_stream(struct ts_nsys *n, struct ts_nsys_process *process, int64_t device_id,
		       int64_t context, int64_t stream);

/* Properties of a stream, added if new. NULL: out of memory. */
struct ts_nsys_stream_fact *ts_nsys_stream_fact(struct ts_nsys *n, int64_t pid, int64_t context,
						int64_t stream);

/*
 * Correlation ids are per process: those of the first process are kept, others are moved out of the
 * way.
 */
int64_t ts_nsys_correlation(struct ts_nsys *n, struct ts_nsys_process *process, int64_t id);

/* False: the row has no start, or its times are out of order; counted as lost. No end: -1. */
bool ts_nsys_span(struct ts_nsys *n, int64_t start, int64_t end, int64_t *ret_duration);

void ts_nsys_add_event(struct ts_nsys *n, enum ts_table_id table, const void *row,
		       const int64_t *values);

/* ---- arguments; nsys.c ---- */

/* The text of StringIds that a number refers to. */
uint32_t ts_nsys_resolve_text(struct ts_nsys *n, const struct ts_sqlite_query *query,
			      int64_t number);
void ts_nsys_args_add(struct ts_nsys *n, struct ts_nsys_args *args, const char *name, int column,
		      ts_nsys_resolve *resolve);
/* Reads the arguments of the row and returns its shape; 0: no arguments. */
uint32_t ts_nsys_args_read(struct ts_nsys *n, struct ts_nsys_args *args,
			   const struct ts_sqlite_query *query);
void ts_nsys_args_release(struct ts_nsys_args *args);

/* ---- readers of tables: 0, or an error with its message ---- */

int ts_nsys_read_info(struct ts_nsys *n);
/* Names of processes and threads that have events; called last. */
int ts_nsys_read_names(struct ts_nsys *n);
int ts_nsys_read_kernels(struct ts_nsys *n);
int ts_nsys_read_copies(struct ts_nsys *n);
int ts_nsys_read_fills(struct ts_nsys *n);
int ts_nsys_read_syncs(struct ts_nsys *n);
int ts_nsys_read_graphs(struct ts_nsys *n);
int ts_nsys_read_allocations(struct ts_nsys *n);
int ts_nsys_read_calls(struct ts_nsys *n);
int ts_nsys_read_nvtx(struct ts_nsys *n);
int ts_nsys_read_stacks(struct ts_nsys *n);
/* The stack that an event refers to; false, and nothing is stored: none. */
bool ts_nsys_find_stack(const struct ts_nsys_chains *chains, int64_t chain, int64_t *ret_stack);
int ts_nsys_read_samples(struct ts_nsys *n);
int ts_nsys_read_metrics(struct ts_nsys *n);
int ts_nsys_read_other(struct ts_nsys *n);

/* Adds a row of a table as JSON `meta` under the table's name; nsys_info.c. */
int ts_nsys_read_as_meta(struct ts_nsys *n, const char *table, uint64_t most, uint64_t *ret_rows);

#endif
