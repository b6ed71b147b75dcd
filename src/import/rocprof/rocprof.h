/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of rocprofv3 JSON; docs/formats/rocprof.md describes the mapping.
 *
 *	rocprof.c         the file: processes, sections, errors
 *	rocprof_info.c    metadata: process, agents, names
 *	rocprof_record.c  parses one record, stores nothing
 *	rocprof_store.c   parsed records as rows
 *	rocprof_held.c    buffers records whose names come later
 *	rocprof_rows.c    rows, shared with rocpd and CSV
 *
 * A function that reads JSON returns 0, TS_JSON_MORE (nothing was stored: refill and start the
 * value again) or a negative error.
 */
#ifndef TS_IMPORT_ROCPROF_ROCPROF_H
#define TS_IMPORT_ROCPROF_ROCPROF_H

#include "base/arena.h"
#include "base/map.h"
#include "base/text.h"
#include "import/common/json_stream.h"
#include "import/rocprof/rocprof_rows.h"

enum ts_rocprof_section {
	TS_ROCPROF_SECTION_OTHER,
	TS_ROCPROF_SECTION_KERNEL,
	TS_ROCPROF_SECTION_COPY,
	TS_ROCPROF_SECTION_ALLOCATION,
	TS_ROCPROF_SECTION_CALL,
	TS_ROCPROF_SECTION_MARKER,
	TS_ROCPROF_SECTION_SAMPLE,  /* of a program counter */
	TS_ROCPROF_SECTION_COUNTER, /* values of a dispatch */
};

/* Members of records with a field of their own; bits of ts_rocprof_record.has. */
enum ts_rocprof_member {
	TS_ROCPROF_KIND,
	TS_ROCPROF_OPERATION,
	TS_ROCPROF_THREAD,
	TS_ROCPROF_CORRELATION,
	TS_ROCPROF_START,
	TS_ROCPROF_END,
	TS_ROCPROF_DISPATCH_INFO,
	TS_ROCPROF_STREAM,
	TS_ROCPROF_DST_AGENT,
	TS_ROCPROF_SRC_AGENT,
	TS_ROCPROF_BYTES,
	TS_ROCPROF_AGENT,
	TS_ROCPROF_QUEUE,
	TS_ROCPROF_ADDRESS,
	TS_ROCPROF_ALLOCATION_SIZE,
	TS_ROCPROF_ARGS,
	TS_ROCPROF_RETVAL,
	TS_ROCPROF_SIZE,
	TS_ROCPROF_TIMESTAMP,
	TS_ROCPROF_DISPATCH,
	TS_ROCPROF_DISPATCH_DATA,
	TS_ROCPROF_RECORDS,
	TS_ROCPROF_RECORD,
	TS_ROCPROF_INST_INDEX,
	TS_ROCPROF_PC,
	TS_ROCPROF_KERNEL_ID,
	TS_ROCPROF_PRIVATE,
	TS_ROCPROF_GROUP,
	TS_ROCPROF_WORKGROUP,
	TS_ROCPROF_GRID,
};

struct ts_rocprof_value {
	uint64_t counter;
	double value;
};

struct ts_rocprof_record {
	uint32_t has; /* 1 << enum ts_rocprof_member */
	uint64_t kind, operation, thread, correlation, external;
	int64_t start, end, timestamp;
	uint64_t stream, queue, agent, src_agent, dst_agent;
	uint64_t bytes, allocation_size, address;
	uint64_t kernel_id, dispatch_id, private_size, group_size;
	uint64_t block[3], grid[3];
	int64_t result, instruction;
	uint64_t pc;
};

struct ts_rocprof_name {
	uint32_t string;
	enum ts_rocprof_operation operation;
};

/* A kind of record: its name and the names of its operations. */
struct ts_rocprof_kind {
	uint32_t name;
	size_t first, count; /* in operations */
};

struct ts_rocprof_symbol {
	const char *text; /* in names */
	size_t length;
	uint32_t name; /* 0: not used yet */
	bool is_collective;
	int64_t vgprs, accum_vgprs, sgprs; /* TS_ABSENT: not said */
};

/* The current array of a section of a process. */
struct ts_rocprof_list {
	enum ts_rocprof_section section;
	uint32_t name; /* string */
};

struct ts_rocprof {
	struct ts_entities entities;
	struct ts_rocprof_rows rows;
	struct ts_json_stream in;
	struct ts_import *import;
	struct ts_json *js; /* current input: that of `in`, or `held_js` */
	struct ts_json held_js;
	struct ts_text scratch, other;

	/* of the process that is being read */
	uint64_t index;
	unsigned int seen; /* sections */
	int64_t host, process;
	bool by_queue, renames;
	int64_t processors, memory_bytes; /* of its host so far */
	struct ts_map agents;             /* handle -> id of a device, or 0: no accelerator */
	struct ts_map symbols;            /* kernel id -> index */
	struct ts_rocprof_symbol *symbol_list;
	struct ts_arena names;
	size_t symbol_count, symbol_capacity;
	struct ts_rocprof_kind *kinds;
	size_t kind_count, kind_capacity;
	struct ts_rocprof_name *operations;
	size_t operation_count, operation_capacity;
	struct ts_map messages; /* correlation -> string, of markers */
	struct ts_map renamed;  /* external correlation -> string */
	struct ts_map counters; /* handle -> string */
	uint32_t *instructions, *comments;
	size_t instruction_count, instruction_capacity, comment_count, comment_capacity;
	uint64_t dispatches; /* found among its records */

	struct ts_rocprof_list list; /* that is being read */
	struct ts_rocprof_record record;
	struct ts_rocprof_value *values; /* of the record */
	size_t value_count, value_capacity;

	int held; /* file, or -1 */
	struct ts_text held_bytes;
	uint64_t held_count;
};

/* ---- rocprof_info.c ---- */

/* Each reads one complete value. */
int ts_rocprof_read_metadata(void *context);
int ts_rocprof_read_agent(void *context);
int ts_rocprof_read_symbol(void *context);
int ts_rocprof_read_counter(void *context);
int ts_rocprof_read_kind(void *context);
int ts_rocprof_read_message(void *context);
int ts_rocprof_read_external(void *context);
int ts_rocprof_read_instruction(void *context);
int ts_rocprof_read_comment(void *context);

/* Id of a kernel's name; 0: none. */
uint32_t ts_rocprof_symbol_name(struct ts_rocprof *r, struct ts_rocprof_symbol *symbol);

/* Resets all per-process state. */
void ts_rocprof_next_process(struct ts_rocprof *r);
void ts_rocprof_info_release(struct ts_rocprof *r);

/* Id of the process; added with its metadata or on first use. */
int64_t ts_rocprof_process(struct ts_rocprof *r);

/* ---- rocprof_record.c ---- */

int ts_rocprof_read_record(void *context);

/*
 * Numbers as written: an integer, a string that contains one, or an object {"handle": integer}.
 * *ret_is false: something else, skipped.
 */
int ts_rocprof_read_unsigned(struct ts_json *js, uint64_t *ret_value, bool *ret_is);
int ts_rocprof_read_signed(struct ts_json *js, int64_t *ret_value, bool *ret_is);

/* Id of a text, unescaped and valid. */
uint32_t ts_rocprof_string(struct ts_rocprof *r, const struct ts_json_string *string);

/* A string, or (0) anything else. */
int ts_rocprof_read_string(struct ts_rocprof *r, uint32_t *ret_string);

/* The id of the JSON text of the value at js. */
int ts_rocprof_read_json(struct ts_rocprof *r, uint32_t *ret_string);

/* ---- rocprof_store.c ---- */

void ts_rocprof_store(struct ts_rocprof *r);

/* ---- rocprof_held.c ---- */

/* Keeps the bytes of a record of r->list for ts_rocprof_store_held(). */
int ts_rocprof_hold(struct ts_rocprof *r, const char *text, size_t length);
int ts_rocprof_store_held(struct ts_rocprof *r);
void ts_rocprof_held_release(struct ts_rocprof *r);

#endif
