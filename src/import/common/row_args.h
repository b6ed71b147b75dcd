/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the arguments of one row. Importers whose rows all have the same arguments create their
 * shape once and do not need this.
 */
#ifndef TS_IMPORT_COMMON_ROW_ARGS_H
#define TS_IMPORT_COMMON_ROW_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <tracesmith/writer.h>

#include "model/shapes.h"

struct ts_row_args {
	struct ts_field fields[TS_SHAPE_MAX_FIELDS];
	int64_t values[TS_SHAPE_MAX_FIELDS];
	uint32_t field_count, value_count;
	uint64_t left_out; /* arguments beyond the limit since the struct was zeroed */
};

static inline void ts_row_args_clear(struct ts_row_args *args)
{
	args->field_count = args->value_count = 0;
}

/*
 * Adds a value as rows store it: an int64, the bits of a double, a string id, 0 or 1. `key` is a
 * string id.
 */
static inline void ts_row_args_add(struct ts_row_args *args, uint32_t key, enum ts_arg_type type,
				   int64_t value)
{
	if (args->field_count == TS_SHAPE_MAX_FIELDS) {
		args->left_out++;
		return;
	}
	args->fields[args->field_count++] = (struct ts_field){ .key = key, .type = (uint8_t)type };
	if (ts_arg_has_value(type))
		args->values[args->value_count++] = value;
}

static inline void ts_row_args_add_double(struct ts_row_args *args, uint32_t key, double value)
{
	int64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	ts_row_args_add(args, key, TS_ARG_DOUBLE, bits);
}

/* The shape of the row; 0 if there are no arguments. Its values are args->values. */
static inline uint32_t ts_row_args_shape(const struct ts_row_args *args, struct ts_writer *writer)
{
	return args->field_count ? ts_writer_shape(writer, args->fields, args->field_count) : 0;
}

#endif
