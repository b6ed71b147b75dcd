/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the speedscope importer's files. See docs/formats/stacks.md for the mapping. */
#ifndef TS_IMPORT_SPEEDSCOPE_SPEEDSCOPE_IMPORT_H
#define TS_IMPORT_SPEEDSCOPE_SPEEDSCOPE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "import/common/entities.h"
#include "import/common/row_args.h"

struct ts_speedscope_frame {
	uint32_t id, name, file; /* in the trace; 0: none */
	int64_t line;            /* TS_ABSENT: none */
	uint32_t open_count;     /* spans of it that have begun */
};

/* A span that has begun. */
struct ts_speedscope_open {
	uint64_t frame; /* index */
	int64_t start;
};

struct ts_speedscope_import {
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_entities entities;
	int64_t process;
	struct ts_speedscope_frame *frames;
	size_t frame_count, frame_capacity;
	struct ts_speedscope_open *open;
	size_t open_count, open_capacity;
	struct ts_row_args args;
	uint32_t file_key, line_key; /* of arguments */
	uint64_t profile_count;
	struct ts_text scratch;
	struct ts_error *err;
	bool has_message; /* err is set: the error is not one of JSON */
};

struct ts_speedscope_profile {
	struct ts_json_string type, name, unit;
	/* Values not read yet; `next` NULL: none. */
	struct ts_json samples, weights, events, start;
};

/* ---- speedscope_import.c ---- */

/* A string, as one of the trace; 0: empty. */
uint32_t ts_speedscope_string(struct ts_speedscope_import *s, const struct ts_json_string *string);
int ts_speedscope_no_memory(struct ts_speedscope_import *s);

/* These scan a string or an integer, and leave any other value. */
int ts_speedscope_scan_string(struct ts_json *js, struct ts_json_string *ret_string);
int ts_speedscope_scan_int(struct ts_json *js, int64_t *ret_value);

/* ---- speedscope_profiles.c ---- */

/*
 * Adds the rows of one profile, whose values have been checked for syntax. 0, TS_ENOMEM, or
 * TS_ECANCELED.
 */
int ts_speedscope_add_profile(struct ts_speedscope_import *s,
			      const struct ts_speedscope_profile *profile);

#endif
