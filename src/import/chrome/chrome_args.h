/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of the events of a Chrome file: a tree of the shapes met so far, and the values of the
 * event that is being read.
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
 * A node of the tree of shapes: the fields from a root to it are those of an event so far. The
 * children used last are tried first, by comparing the key's bytes; so an event that looks
 * like one before it costs no hashing.
 */
struct ts_chrome_node {
	const char *key; /* as written, escapes and all; in the arena */
	uint32_t key_length;
	uint32_t key_string; /* id in the trace */
	uint32_t parent;
	uint32_t recent[2]; /* children; 0: none */
	uint32_t shape;     /* 0: not asked for yet */
	uint16_t depth;
	uint16_t column;
	uint8_t type; /* enum ts_arg_type */
	uint8_t beside;
	uint8_t arg; /* enum ts_kineto_arg that the key is in this table */
};

/* The arguments of one event. */
struct ts_chrome_args {
	uint32_t node; /* where in the tree of shapes */
	uint32_t value_count;
	uint32_t seen;          /* one bit an enum ts_kineto_arg that was met */
	uint32_t in_column;     /* and whose value is in `column` */
	enum ts_table_id table; /* for which they were read; 0: not at all */
	bool has_duration;      /* already when the arguments were read */
	bool undecided;         /* a bandwidth came before the bytes or the duration */
	int64_t duration;
	int64_t bytes; /* as soon as they are known */
	int64_t column[TS_KINETO_ARG_COUNT];
	int64_t grid[3], block[3];
	int64_t values[TS_SHAPE_MAX_FIELDS];
};

int ts_chrome_args_init(struct ts_chrome *c);
void ts_chrome_args_release(struct ts_chrome *c);

/* TS_EINVAL inside the importer: more fields than a shape can hold. */
#define TS_CHROME_TOO_MANY TS_EINVAL

/*
 * Reads an object as arguments of a row of `table`, after those that are already in `args` (see
 * start). With `beside` they are kept as members that stood beside the arguments.
 */
void ts_chrome_start_args(struct ts_chrome *c, struct ts_chrome_args *args, enum ts_table_id table,
			  uint32_t category);
int ts_chrome_read_args(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_args *args,
			bool beside);

/* Adds one pair; the value is at js. */
int ts_chrome_add_arg(struct ts_chrome *c, const struct ts_json_string *key, struct ts_json *js,
		      struct ts_chrome_args *args, bool beside);

/* The shape of all that was read; 0 where there is nothing. */
uint32_t ts_chrome_shape(struct ts_chrome *c, const struct ts_chrome_args *args);

#endif
