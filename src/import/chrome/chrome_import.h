/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importer of Chrome trace-event JSON; docs/chrome.md describes the mapping.
 *
 *	chrome_import.c       the file: array or object form, top-level members, errors
 *	chrome_text.c         texts of the file as strings of the trace
 *	chrome_event.c        parses one event, stores nothing
 *	chrome_args.c         arguments: types, columns, shapes
 *	chrome_rows.c         parsed events as rows: spans
 *	chrome_marks.c        the same for flows, instants, counters, samples, begins and ends
 *	chrome_pairs.c        matches begin and end events into slices
 *	chrome_stack.c        stack frames and samples
 *	chrome_profile.c      V8 profiles
 *	chrome_entity.c       processes, threads, devices, streams
 *	chrome_meta.c         metadata events, device properties, losses
 *	chrome_native.c       TraceSmith's extension of events
 *	chrome_native_rows.c  the leading "tracesmith" member of TraceSmith exports
 *
 * A function that reads JSON returns 0, TS_JSON_MORE (nothing was stored: refill and start the
 * value again) or a negative error. Writer errors are sticky and show at the next refill.
 */
#ifndef TS_IMPORT_CHROME_CHROME_IMPORT_H
#define TS_IMPORT_CHROME_CHROME_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "import/chrome/chrome_args.h"
#include "import/chrome/chrome_entity.h"
#include "import/chrome/chrome_event.h"
#include "import/chrome/chrome_native.h"
#include "import/chrome/chrome_pairs.h"
#include "import/chrome/chrome_stack.h"
#include "import/common/import_losses.h"
#include "import/common/json_stream.h"
#include "import/import.h"

/* ---- losses ---- */

enum ts_chrome_loss {
	TS_CHROME_LOSS_TIME,
	TS_CHROME_LOSS_ITEM,
	TS_CHROME_LOSS_END,
	TS_CHROME_LOSS_MEMBER,
	TS_CHROME_LOSS_MANY,
	TS_CHROME_LOSS_ROW,
	TS_CHROME_LOSS_CUT,
	TS_CHROME_LOSS_REST,
	TS_CHROME_LOSS_COUNT
};

/* ---- the importer ---- */

struct ts_chrome {
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_json_stream in; /* its key is that of the current top-level member */
	struct ts_json *js;       /* of `in` */
	bool cut_event;           /* the file ends inside an event */

	int64_t source; /* id; 0: not added yet */
	struct ts_source_row source_row;
	bool source_changed;
	uint32_t clock; /* current clock of the writer */
	int64_t base_ns;
	bool has_base;
	bool has_time;
	int64_t first_time, last_time; /* of events so far, as stored */
	uint64_t events;

	struct ts_chrome_event event;
	struct ts_text scratch, other;

	/* arguments */
	struct ts_chrome_node *nodes;
	size_t node_count, node_capacity;
	uint32_t epoch;
	struct ts_pairmap children; /* (node, field) -> child */
	struct ts_arena node_keys;

	/* The last row added, if a flow arrow may still belong to it. */
	struct {
		enum ts_table_id table; /* 0: none */
		uint32_t thread;
		int64_t start, correlation;
	} newest;

	/* entities */
	struct ts_strmap texts; /* of pids, tids and categories; never freed */
	struct ts_chrome_category *categories;
	size_t category_count, category_capacity;
	struct ts_map category_by_text;
	struct {
		const char *text; /* in texts */
		uint32_t length;
		uint32_t category;
	} category_cache[32];
	struct ts_pairmap pids; /* (is text, pid) -> index into pid_process */
	uint32_t *pid_process;  /* process of a pid, index plus 1; 0: none yet */
	size_t pid_count, pid_capacity;
	struct ts_chrome_process *processes;
	size_t process_count, process_capacity;
	struct ts_pairmap tids; /* (pid index and is text, tid) -> thread */
	struct ts_chrome_thread *threads;
	size_t thread_count, thread_capacity;
	struct {
		struct ts_chrome_id pid, tid;
		uint32_t thread; /* index plus 1; 0: free */
	} thread_cache[64];
	struct ts_pairmap device_by_number; /* (source, number) -> index */
	struct ts_chrome_device *devices;
	size_t device_count, device_capacity;
	struct ts_pairmap stream_keys;   /* (device, number) -> dense key */
	struct ts_pairmap stream_by_key; /* (that, thread) -> index */
	struct ts_chrome_stream *streams;
	size_t stream_count, stream_capacity;

	struct ts_chrome_pairs pairs;
	struct ts_chrome_stacks stacks;
	struct ts_chrome_profiles profiles;
	struct ts_chrome_native native;
	struct ts_import_losses losses;
};

/* ---- chrome_text.c ---- */

uint32_t ts_chrome_string_slow(struct ts_chrome *c, const struct ts_json_string *string);

static inline bool ts_chrome_is_ascii(const char *text, size_t length)
{
	uint64_t all = 0, word;
	size_t i = 0;

	for (; i + 8 <= length; i += 8) {
		memcpy(&word, text + i, 8);
		all |= word;
	}
	for (; i < length; i++)
		all |= (uint64_t)(unsigned char)text[i];
	return (all & UINT64_C(0x8080808080808080)) == 0;
}

/*
 * Id of a string of the file: unescaped, converted to valid UTF-8. 0 after the writer has failed.
 */
static inline uint32_t ts_chrome_string(struct ts_chrome *c, const struct ts_json_string *string)
{
	if (TS_LIKELY(!string->escaped && ts_chrome_is_ascii(string->text, string->length)))
		return ts_writer_string(c->writer, string->text, string->length);
	return ts_chrome_string_slow(c, string);
}

/* Text of a string, unescaped and valid, in c->other until its next use. */
struct ts_json_string ts_chrome_clean(struct ts_chrome *c, const struct ts_json_string *string);

/* Id of the JSON text of the value at js without white space; TS_EFORMAT if it is too long. */
int ts_chrome_json(struct ts_chrome *c, struct ts_json *js, uint32_t *ret_string);

/* The same for a value scanned before: only the writer can fail. */
uint32_t ts_chrome_raw_json(struct ts_chrome *c, const struct ts_chrome_raw *raw);

/* Id of a constant text. */
uint32_t ts_chrome_text(struct ts_chrome *c, const char *text);

/* A scanner for a value in the buffer. */
static inline struct ts_json ts_chrome_reopen(const struct ts_chrome_raw *raw)
{
	return (struct ts_json){ .next = raw->at, .end = raw->end, .last = true };
}

/* Enters a value scanned before; *more is false if it is not such an object or array. */
struct ts_json ts_chrome_open(const struct ts_chrome_raw *raw, char open, bool *more);

/* Its next member or item; false at the end. */
bool ts_chrome_next_member(struct ts_json *js, bool *more, struct ts_json_string *key,
			   struct ts_chrome_raw *value);
bool ts_chrome_next_item(struct ts_json *js, bool *more, struct ts_chrome_raw *value);

/* An int64 at js; false for numbers of any other form. */
bool ts_chrome_scan_int(struct ts_json *js, int64_t *ret_value);

/* Compares with a text that is not a literal. */
static inline bool ts_chrome_is(const struct ts_json_string *string, const char *text)
{
	return string->text && strlen(text) == string->length &&
	       memcmp(text, string->text, string->length) == 0;
}

/* Checks the length of a string that was just scanned. */
static inline int ts_chrome_check_length(struct ts_json *js, const struct ts_json_string *string)
{
	if (TS_LIKELY(string->length <= TS_IMPORT_MAX_STRING))
		return TS_OK;
	return ts_json_bad(js, string->text, "a string is longer than 64 MiB");
}

/* ---- chrome_entity.c: the usual case ---- */

static inline size_t ts_chrome_thread_slot(const struct ts_chrome_id *pid,
					   const struct ts_chrome_id *tid)
{
	uint64_t key = (uint64_t)pid->number * 31 + (uint64_t)tid->number + pid->text + tid->text;

	return (key ^ key >> 6) & 63;
}

static inline uint32_t ts_chrome_thread(struct ts_chrome *c, const struct ts_chrome_id *pid,
					const struct ts_chrome_id *tid)
{
	size_t slot = ts_chrome_thread_slot(pid, tid);

	if (TS_LIKELY(c->thread_cache[slot].thread &&
		      c->thread_cache[slot].pid.number == pid->number &&
		      c->thread_cache[slot].pid.text == pid->text &&
		      c->thread_cache[slot].tid.number == tid->number &&
		      c->thread_cache[slot].tid.text == tid->text))
		return c->thread_cache[slot].thread - 1;
	return ts_chrome_thread_slow(c, pid, tid);
}

/* ---- chrome_rows.c, chrome_marks.c ---- */

/* Stores a completely read event; fails only for memory or the writer. */
int ts_chrome_store(struct ts_chrome *c, struct ts_chrome_event *event);
int ts_chrome_store_sample(struct ts_chrome *c, struct ts_chrome_event *event);

/* Arguments and extra members for a row of `table`; `taken` has the members with a column. */
int ts_chrome_finish_args(struct ts_chrome *c, struct ts_chrome_event *event,
			  enum ts_table_id table, uint32_t taken);

/* Adds a row with times in that clock. */
void ts_chrome_add_in_clock(struct ts_chrome *c, uint32_t clock, enum ts_table_id table,
			    const void *row, const int64_t *values);

/* Adds a row in the clock of a thread (index plus 1), or (0) of the source. */
void ts_chrome_add(struct ts_chrome *c, uint32_t thread, enum ts_table_id table, const void *row,
		   const int64_t *values);

/* ---- chrome_meta.c ---- */

/* A thread's time in its clock; updates the time range of the file. */
int64_t ts_chrome_time(struct ts_chrome *c, uint32_t thread, int64_t ts);
/* The same in a clock that is `shift` ahead of the file's times. */
int64_t ts_chrome_shifted_time(struct ts_chrome *c, int64_t ts, int64_t shift);
void ts_chrome_lose(struct ts_chrome *c, enum ts_chrome_loss loss, uint64_t count);
/* Writes loss rows and the note of the result. */
void ts_chrome_write_losses(struct ts_chrome *c);
int ts_chrome_store_metadata(struct ts_chrome *c, struct ts_chrome_event *event);
/* A top-level member other than the known arrays; the key is in c->key. */
int ts_chrome_read_top(struct ts_chrome *c);

#endif
