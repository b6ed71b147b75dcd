/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of Chrome events: a tree of the shapes seen so far, and the values of the current
 * event.
 */
#ifndef TS_IMPORT_CHROME_CHROME_ARGS_H
#define TS_IMPORT_CHROME_CHROME_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/json.h"
#include "model/kineto_names.h"
#include "model/shapes.h"

struct ts_chrome;

/*
 * A node of the shape tree: the path from a root to it lists the fields of an event so far.
 * Recently used children are tried first, by comparing the bytes of the key, so an event that looks
 * like an earlier one needs no hashing.
 */
struct ts_chrome_node {
	const char *key; /* as in the file, with escapes; in the arena */
	uint32_t key_length;
	uint32_t key_string; /* id in the trace */
	uint32_t parent;
	uint32_t recent[2]; /* children; 0: none */
	uint32_t shape;     /* 0: not created yet */
	uint16_t depth;
	uint16_t column;
	uint8_t type; /* enum ts_arg_type */
	uint8_t beside;
	uint8_t arg; /* enum ts_kineto_arg of the key in this table */
};

/* The arguments of one event. */
struct ts_chrome_args {
	uint32_t node; /* position in the shape tree */
	uint32_t value_count;
	uint32_t seen;          /* bit per enum ts_kineto_arg seen */
	uint32_t in_column;     /* bits whose value is in `column` */
	enum ts_table_id table; /* for which they were read; 0: not read */
	bool has_duration;      /* known when the arguments were read */
	bool undecided;         /* a bandwidth came before the bytes or the duration */
	int64_t duration;
	int64_t bytes; /* once known */
	int64_t column[TS_KINETO_ARG_COUNT];
	int64_t grid[3], block[3];
	int64_t values[TS_SHAPE_MAX_FIELDS];
};

int ts_chrome_args_init(struct ts_chrome *c);
void ts_chrome_args_release(struct ts_chrome *c);

/* TS_EINVAL inside the importer: too many fields for a shape. */
#define TS_CHROME_TOO_MANY TS_EINVAL

/*
 * Reads an object as arguments of a row of `table`, after those already in `args` (see start). With
 * `beside` they are stored as members next to the arguments.
 */
void ts_chrome_start_args(struct ts_chrome *c, struct ts_chrome_args *args, enum ts_table_id table,
			  uint32_t category);
int ts_chrome_read_args(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_args *args,
			bool beside);

/* Adds one pair; the value is at js. */
int ts_chrome_add_arg(struct ts_chrome *c, const struct ts_json_string *key, struct ts_json *js,
		      struct ts_chrome_args *args, bool beside);

/* The shape of everything read; 0 if there is nothing. */
uint32_t ts_chrome_shape(struct ts_chrome *c, const struct ts_chrome_args *args);

#endif
