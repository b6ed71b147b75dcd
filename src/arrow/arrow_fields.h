/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which columns a table has as Arrow, and what the ids of the trace stand for in them. Data, not
 * code: arrow_values.c and arrow_texts.c fill them, arrow_batch.c describes them.
 */
#ifndef TS_ARROW_ARROW_FIELDS_H
#define TS_ARROW_ARROW_FIELDS_H

#include <stdbool.h>

#include <tracesmith/arrow.h>

#include "base/text.h"

enum ts_arrow_kind {
	TS_ARROW_TRACE,   /* index of the reader */
	TS_ARROW_ROW_ID,  /* implicit id of a row of a dictionary table */
	TS_ARROW_INTEGER, /* a column as it is */
	TS_ARROW_NUMBER,  /* a number that an id stands for */
	TS_ARROW_FLOAT,
	TS_ARROW_BOOL,
	TS_ARROW_ENUM,
	TS_ARROW_NAME,   /* a text that an id stands for, in a dictionary */
	TS_ARROW_TEXT,   /* the same as plain text: JSON, or names if they are wanted so */
	TS_ARROW_BYTES,  /* the BYTES column as text */
	TS_ARROW_BINARY, /* ... as it is */
	TS_ARROW_ARGUMENTS,
};

/* What an id stands for; one of the two. */
struct ts_arrow_lookup {
	/* TS_ABSENT: nothing. */
	int64_t (*number)(struct ts_reader *reader, int64_t id);
	/* Appends the text; false: there is none. */
	bool (*text)(struct ts_reader *reader, int64_t id, struct ts_text *out);
};

struct ts_arrow_field {
	char name[TS_ARROW_COLUMN_NAME_BYTES];
	const char *doc;
	const struct ts_column_info *column; /* NULL: TRACE, ROW_ID */
	const struct ts_arrow_lookup *lookup;
	const char *enumeration;
	int64_t null;   /* the value that means null, of INTEGER */
	uint8_t kind;   /* enum ts_arrow_kind */
	uint8_t source; /* position of the column */
	uint8_t beside; /* ARGUMENTS: which */
	bool has_null;  /* `null` means something */
	bool is_nullable;
	bool is_default;
};

#define TS_ARROW_MOST_FIELDS 128

struct ts_arrow_fields {
	const struct ts_table_info *table;
	struct ts_arrow_field *list;
	size_t count;
	uint64_t mask; /* columns of the table that they need */
};

/*
 * The fields that the options ask for of a table. TS_ENOTFOUND for an unknown table or column.
 * `options` is complete (ts_arrow_options_read()). Release also after failure.
 */
int ts_arrow_fields_init(struct ts_arrow_fields *fields, const char *table, bool with_trace,
			 const struct ts_arrow_options *options, struct ts_error *err);
void ts_arrow_fields_release(struct ts_arrow_fields *fields);

/* Options of a caller, who may know fewer members or pass NULL: missing members are zero. */
struct ts_arrow_options ts_arrow_options_read(const struct ts_arrow_options *options);

/* Is the field a dictionary, and of how many bytes is an index? 0: it is not. */
static inline unsigned int ts_arrow_index_bytes(const struct ts_arrow_field *field)
{
	return field->kind == TS_ARROW_NAME ? 4 : field->kind == TS_ARROW_ENUM ? 1 : 0;
}

/* Bytes of a value; 0: a text, or a bit. */
static inline unsigned int ts_arrow_value_bytes(const struct ts_arrow_field *field)
{
	switch (field->kind) {
	case TS_ARROW_BOOL:
	case TS_ARROW_TEXT:
	case TS_ARROW_BYTES:
	case TS_ARROW_BINARY:
	case TS_ARROW_ARGUMENTS:
		return 0;
	default:
		return ts_arrow_index_bytes(field) ? ts_arrow_index_bytes(field) : 8;
	}
}

/* What follows the names of `table` in CSV, in order; NULL ends the list. */
struct ts_arrow_beside {
	const char *table;
	const char *suffix;
	const char *doc;
	struct ts_arrow_lookup lookup;
};
extern const struct ts_arrow_beside ts_arrow_besides[];

extern const struct ts_arrow_lookup ts_arrow_string_lookup, ts_arrow_json_lookup;

/* Of columns of derived tables that hold no ids of strings; NULL: they do. */
const struct ts_arrow_lookup *ts_arrow_derived_lookup(const struct ts_table_info *table,
						      const struct ts_column_info *column);

#endif
