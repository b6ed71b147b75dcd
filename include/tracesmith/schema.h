/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables and columns of a trace as C types and as data, both generated from schema.def.
 *
 * A row of table `slice` is a struct ts_slice_row. Every member of a row struct is 8 bytes wide, so
 * generic code may treat a row as an array of int64 (FLOAT members as their bits). Initialize a row
 * from ts_slice_none, which has "no value" in every column:
 *
 *	struct ts_slice_row slice = ts_slice_none;
 *	slice.start = now;
 *
 * The position of a column in its row is TS_COLUMN_OF(slice, start); its bit in a column mask is
 * TS_MASK_OF(slice, start).
 */
#ifndef TRACESMITH_SCHEMA_H
#define TRACESMITH_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "No value" of an integer or a time; ids use 0. */
#define TS_ABSENT INT64_MIN

/* Frames of a stack. The writer cuts deeper stacks and marks them; readers stop there. */
#define TS_STACK_MAX_DEPTH 65536u

/* More than the columns of the widest table, so that a mask fits 64 bits. */
#define TS_MAX_COLUMNS 64

/* clang-format would take the macros' braces for code. */
/* clang-format off */
enum ts_table_id {
#define TS_TABLE(NAME, name, id, kind, doc) TS_TABLE_##NAME = (id),
#include <tracesmith/schema.def>
	TS_TABLE_COUNT
};

#define TS_ENUM(name, doc) enum ts_##name {
#define TS_ENUM_VALUE(enumeration, CONSTANT, name, number) CONSTANT = (number),
#define TS_ENUM_END(name) };
#include <tracesmith/schema.def>

#define TS_CTYPE_TIME int64_t
#define TS_CTYPE_DURATION int64_t
#define TS_CTYPE_INT int64_t
#define TS_CTYPE_FLOAT double
#define TS_CTYPE_BOOL int64_t
#define TS_CTYPE_STRING int64_t
#define TS_CTYPE_JSON int64_t
#define TS_CTYPE_REF int64_t
#define TS_CTYPE_ENUM int64_t
#define TS_CTYPE_SHAPE int64_t
#define TS_CTYPE_BYTES int64_t

#define TS_TABLE(NAME, name, id, kind, doc) struct ts_##name##_row {
#define TS_COLUMN(table, id, column, type, refers, none, doc) TS_CTYPE_##type column;
#define TS_TABLE_END(NAME, name) };
#include <tracesmith/schema.def>

/* One row of each table with "no value" in every column. */
#define TS_TABLE(NAME, name, id, kind, doc) extern const struct ts_##name##_row ts_##name##_none;
#include <tracesmith/schema.def>

/* clang-format on */

#define TS_COLUMN_OF(table, column) (offsetof(struct ts_##table##_row, column) / sizeof(int64_t))
#define TS_MASK_OF(table, column) (UINT64_C(1) << TS_COLUMN_OF(table, column))
#define TS_MASK_ALL UINT64_MAX

enum ts_table_kind {
	TS_KIND_EVENT,
	TS_KIND_ENTITY,
	TS_KIND_DICTIONARY,
	TS_KIND_RECORD,
	TS_KIND_INTERNAL,
	TS_KIND_DERIVED,
};

enum ts_column_type {
	TS_COLUMN_TIME,
	TS_COLUMN_DURATION,
	TS_COLUMN_INT,
	TS_COLUMN_FLOAT,
	TS_COLUMN_BOOL,
	TS_COLUMN_STRING,
	TS_COLUMN_JSON,
	TS_COLUMN_REF,
	TS_COLUMN_ENUM,
	TS_COLUMN_SHAPE,
	TS_COLUMN_BYTES,
};

struct ts_column_info {
	const char *name;
	const char *doc;
	const char *refers; /* REF: table, ENUM: enum; else "none" */
	int64_t none;
	uint16_t id;  /* stable, in files */
	uint8_t type; /* enum ts_column_type */
};

struct ts_table_info {
	const char *name;
	const char *doc;
	const struct ts_column_info *columns;
	uint16_t id;
	uint8_t kind; /* enum ts_table_kind */
	uint8_t column_count;
	int8_t start;    /* index of the column that sorts rows, or -1 */
	int8_t duration; /* index of the DURATION column, or -1 */
	int8_t shape;    /* index of the SHAPE column, or -1 */
};

/* NULL for an unknown table. */
const struct ts_table_info *ts_table_info(uint32_t table);

/* The table of that name, or -1. */
int ts_table_by_name(const char *name);

/* Index of the column of that name, or -1. */
int ts_column_by_name(const struct ts_table_info *table, const char *name);

/* Index of the column with that stable id, or -1. */
int ts_column_by_id(const struct ts_table_info *table, uint32_t id);

/* Name of an enum value; NULL: unknown value. */
const char *ts_enum_name(const char *enumeration, int64_t value);

/* Value of an enum name. 0, or TS_ENOTFOUND. */
int ts_enum_value(const char *enumeration, const char *name, size_t length, int64_t *ret_value);

/* ---- arguments ---- */

enum ts_arg_type {
	TS_ARG_INT = 1,    /* int64 */
	TS_ARG_DOUBLE = 2, /* bits of a double */
	TS_ARG_STRING = 3, /* string id */
	TS_ARG_BOOL = 4,   /* 0 or 1 */
	TS_ARG_JSON = 5,   /* string id of JSON text */
	TS_ARG_NULL = 6,   /* no value is stored */
	TS_ARG_COLUMN = 7, /* no value is stored: the row's own column */
};

/* Columns that TS_ARG_COLUMN may refer to besides those of the schema: computed from the row. */
enum ts_computed_column {
	TS_COMPUTED_GRID = 1000,      /* [grid_x,grid_y,grid_z] */
	TS_COMPUTED_BLOCK = 1001,     /* [block_x,block_y,block_z] */
	TS_COMPUTED_BANDWIDTH = 1002, /* bytes / duration, GB/s */
	TS_COMPUTED_DEVICE = 1003,    /* number of the device */
	TS_COMPUTED_STREAM = 1004,    /* number of the stream */
};

/* One key of a shape. */
struct ts_field {
	uint32_t key;    /* string id */
	uint8_t type;    /* enum ts_arg_type */
	uint8_t beside;  /* 1: was outside the arguments in its source */
	uint16_t column; /* TS_ARG_COLUMN: stable column id, or enum ts_computed_column */
};

/* True for types that store a value in the row; types of later versions are assumed to. */
static inline int ts_arg_has_value(unsigned int type)
{
	return type != TS_ARG_NULL && type != TS_ARG_COLUMN;
}

struct ts_shape {
	const struct ts_field *fields;
	uint32_t field_count;
	uint32_t value_count; /* fields with a value */
};

#ifdef __cplusplus
}
#endif

#endif
