/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the perf importer's files. See docs/formats/perf.md for the mapping. */
#ifndef TS_IMPORT_PERF_PERF_IMPORT_H
#define TS_IMPORT_PERF_PERF_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/map.h"
#include "import/common/entities.h"
#include "import/common/frame_list.h"
#include "import/common/row_args.h"
#include "import/perf/perf_line.h"

/* What an event's name implies. */
struct ts_perf_event {
	uint32_t name, category; /* strings */
	bool is_timed;           /* its period is ns */
	bool is_tracepoint;
};

struct ts_perf_thread {
	int64_t id, process;
	uint32_t comm; /* string */
	bool is_main;
};

/* An event whose stack is being read. */
struct ts_perf_open {
	bool is_open;
	bool has_frame; /* given on the header line */
	uint32_t frame;
	bool has_address;
	uint64_t address;
	struct ts_perf_event event;
	struct ts_sample_row row;
	int64_t period; /* TS_ABSENT: none, or it is the weight */
};

/* Keys of arguments: strings, made once. */
enum ts_perf_key {
	TS_PERF_KEY_PERIOD,
	TS_PERF_KEY_ADDRESS,
	TS_PERF_KEY_BRANCHES,
	TS_PERF_KEY_REGISTERS,
	TS_PERF_KEY_CPU,
	TS_PERF_KEY_TEXT,
	TS_PERF_KEYS
};

struct ts_perf {
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_entities entities;
	int64_t host;
	int rc; /* TS_ENOMEM: out of memory */
	uint32_t keys[TS_PERF_KEYS];
	struct ts_strmap event_names; /* to index */
	struct ts_perf_event *events;
	size_t event_capacity;
	struct ts_pairmap thread_keys; /* (pid, tid) to index */
	struct ts_perf_thread *threads;
	size_t thread_count, thread_capacity;
	struct ts_map tid_pids;       /* from records */
	struct ts_map pid_execs;      /* processes named by an exec */
	struct ts_strmap frame_lines; /* to index */
	struct ts_frame_row *frames;
	uint32_t *frame_ids;
	size_t frame_capacity, frame_id_capacity;
	struct ts_strmap objects; /* paths of mappings to index */
	int64_t *mappings;
	size_t mapping_capacity;
	bool is_skipping; /* skipping the lines of a lost event */
	struct ts_perf_open open;
	struct ts_row_args args; /* of the open event */
	struct ts_frame_list stack;
	struct ts_frame_row last_frame; /* of the stack, for a source line after it */
	struct ts_map sourced;          /* frames that have a symbol with their line */
	uint64_t lines;                 /* that said something */
};

/* ---- perf_rows.c ---- */

int ts_perf_rows_init(struct ts_perf *p);
void ts_perf_rows_release(struct ts_perf *p);
/* Thread of an event, named as in the event; 0: none given. */
int64_t ts_perf_thread(struct ts_perf *p, const struct ts_perf_head *head);
int64_t ts_perf_process(struct ts_perf *p, int64_t pid);
/* Names a thread from a record. `name` 0: unknown. */
void ts_perf_name_thread(struct ts_perf *p, int64_t pid, int64_t tid, uint32_t name, bool is_exec);
void ts_perf_begin(struct ts_perf *p, const struct ts_perf_head *head);
/* A line after the header line. False: not part of this event. */
bool ts_perf_continue(struct ts_perf *p, struct ts_perf_text line);
/* Adds the open event, if there is one. */
void ts_perf_end(struct ts_perf *p);
void ts_perf_mark(struct ts_perf *p, struct ts_mark_row *mark);

/* ---- perf_frames.c ---- */

int ts_perf_frames_init(struct ts_perf *p);
void ts_perf_frames_release(struct ts_perf *p);
/* The frame of a text; 0: not a frame. *ret_row may be NULL. */
uint32_t ts_perf_frame(struct ts_perf *p, struct ts_perf_text text, struct ts_frame_row *ret_row);

/* ---- perf_records.c ---- */

/* "PERF_RECORD_...": kernel records other than samples. */
void ts_perf_record(struct ts_perf *p, const struct ts_perf_head *head);
/* "# name : value" */
void ts_perf_comment(struct ts_perf *p, struct ts_perf_text line);

#endif
