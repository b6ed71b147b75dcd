/* SPDX-License-Identifier: Apache-2.0 */
/* Parses single lines of perf script output. Works on bytes only. */
#ifndef TS_IMPORT_PERF_PERF_LINE_H
#define TS_IMPORT_PERF_PERF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a line; borrowed. */
struct ts_perf_text {
	const char *text;
	size_t length;
};

/* The header line of an event. */
struct ts_perf_head {
	struct ts_perf_text comm;
	bool has_pid, has_tid, has_cpu, has_time, has_period;
	bool is_time_too_large; /* for int64 ns */
	int64_t pid, tid, cpu, time, period;
	struct ts_perf_text event;  /* without the last colon; empty: none */
	struct ts_perf_text record; /* after "PERF_RECORD_"; empty: none */
	struct ts_perf_text rest;   /* after the event's name, trimmed */
};

/* A frame: "ffff800080360f64 do_wp_page+0x23c ([kernel.kallsyms])". */
struct ts_perf_frame {
	uint64_t ip;
	struct ts_perf_text symbol; /* without offset; empty: unknown */
	struct ts_perf_text object; /* the DSO; empty: unknown */
	bool is_inlined;
};

/* What follows the name of an event other than a tracepoint. */
struct ts_perf_rest {
	struct ts_perf_text address;   /* hexadecimal; empty: none */
	struct ts_perf_text frame;     /* "ip symbol (dso)"; empty: none */
	struct ts_perf_text branches;  /* brstack */
	struct ts_perf_text registers; /* iregs, uregs */
	struct ts_perf_text other;     /* anything else */
};

struct ts_perf_text ts_perf_trim(const char *text, size_t length);

/* Removes and returns the next word of a text; empty at the end. */
struct ts_perf_text ts_perf_word(struct ts_perf_text *text);

bool ts_perf_starts(struct ts_perf_text text, const char *with);

/* Parses an entire word as a number; *ret_value is unchanged if it is not one. */
bool ts_perf_decimal(struct ts_perf_text word, int64_t *ret_value);
bool ts_perf_hex(struct ts_perf_text word, uint64_t *ret_value);

/* Is it the header line of an event? Nothing is filled in if not. */
bool ts_perf_parse_head(const char *line, size_t length, struct ts_perf_head *ret_head);

/*
 * Like ts_perf_parse_head() and certain enough to detect the format: it has thread, time, and event
 * or record.
 */
bool ts_perf_is_sure(const struct ts_perf_head *head);

bool ts_perf_parse_frame(struct ts_perf_text line, struct ts_perf_frame *ret_frame);

/* "file.c:12" after a frame. False: something else, or no information. */
bool ts_perf_parse_source(struct ts_perf_text line, struct ts_perf_text *ret_file,
			  int64_t *ret_line);

void ts_perf_split_rest(struct ts_perf_text rest, struct ts_perf_rest *ret_rest);

#endif
