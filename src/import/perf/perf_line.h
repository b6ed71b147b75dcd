/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of perf script's text, one at a time: what stands where. Looks at bytes only; knows
 * neither stream nor trace.
 */
#ifndef TS_IMPORT_PERF_PERF_LINE_H
#define TS_IMPORT_PERF_PERF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a line; borrowed from it. */
struct ts_perf_text {
	const char *text;
	size_t length;
};

/* The line that an event begins with. */
struct ts_perf_head {
	struct ts_perf_text comm;
	bool has_pid, has_tid, has_cpu, has_time, has_period;
	bool is_time_too_large; /* for an int64 of ns */
	int64_t pid, tid, cpu, time, period;
	struct ts_perf_text event;  /* without the last colon; empty: none */
	struct ts_perf_text record; /* behind "PERF_RECORD_"; empty: none */
	struct ts_perf_text rest;   /* behind the event's name, trimmed */
};

/* A frame: "ffff800080360f64 do_wp_page+0x23c ([kernel.kallsyms])". */
struct ts_perf_frame {
	uint64_t ip;
	struct ts_perf_text symbol; /* without offset; empty: not known or not said */
	struct ts_perf_text object; /* the dso; empty: not known or not said */
	bool is_inlined;
};

/* What stands behind the name of an event that is no tracepoint. */
struct ts_perf_rest {
	struct ts_perf_text address;   /* hexadecimal; empty: none */
	struct ts_perf_text frame;     /* where it was, "ip symbol (dso)"; empty: none */
	struct ts_perf_text branches;  /* brstack */
	struct ts_perf_text registers; /* iregs, uregs */
	struct ts_perf_text other;     /* what is none of these */
};

struct ts_perf_text ts_perf_trim(const char *text, size_t length);

/* The next word of a text, which is cut off its front; empty at the end. */
struct ts_perf_text ts_perf_word(struct ts_perf_text *text);

bool ts_perf_starts(struct ts_perf_text text, const char *with);

/* A whole word as a number; *ret_value is untouched where it is none. */
bool ts_perf_decimal(struct ts_perf_text word, int64_t *ret_value);
bool ts_perf_hex(struct ts_perf_text word, uint64_t *ret_value);

/* Is it the first line of an event? Nothing is filled in where it is not. */
bool ts_perf_parse_head(const char *line, size_t length, struct ts_perf_head *ret_head);

/*
 * As above and sure enough to tell the format from any other text: it has thread, time, and event
 * or record.
 */
bool ts_perf_is_sure(const struct ts_perf_head *head);

bool ts_perf_parse_frame(struct ts_perf_text line, struct ts_perf_frame *ret_frame);

/* "file.c:12" behind a frame. False: it is something else, or says nothing. */
bool ts_perf_parse_source(struct ts_perf_text line, struct ts_perf_text *ret_file,
			  int64_t *ret_line);

void ts_perf_split_rest(struct ts_perf_text rest, struct ts_perf_rest *ret_rest);

#endif
