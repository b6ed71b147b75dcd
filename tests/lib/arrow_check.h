/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of Arrow arrays for tests, written from the specification of the interface: checks
 * that an array is what its schema says, down to every offset and index, and reads cells.
 */
#ifndef TS_TEST_ARROW_CHECK_H
#define TS_TEST_ARROW_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <tracesmith/arrow.h>

#include "base/text.h"

struct arrow_cell {
	bool is_null;
	int64_t integer; /* also bool, and the bits of a double */
	const char *text;
	size_t length; /* of text */
};

static inline bool arrow_bit(const void *bits, int64_t row)
{
	return ((const uint8_t *)bits)[row / 8] >> (row % 8) & 1;
}

static inline bool arrow_is_null(const struct ArrowArray *array, int64_t row)
{
	return array->buffers[0] && !arrow_bit(array->buffers[0], row);
}

static inline struct arrow_cell arrow_cell(const struct ArrowSchema *schema,
					   const struct ArrowArray *array, int64_t row)
{
	struct arrow_cell cell = { .is_null = arrow_is_null(array, row) };
	const int64_t *offsets = array->buffers[1];
	const int32_t *narrow = array->buffers[1];

	switch (cell.is_null ? 0 : schema->format[0]) {
	case 'c':
		cell.integer = ((const int8_t *)array->buffers[1])[row];
		break;
	case 'i':
		cell.integer = narrow[row];
		break;
	case 'b':
		cell.integer = arrow_bit(array->buffers[1], row);
		break;
	case 'l':
	case 'g':
		cell.integer = offsets[row];
		break;
	case 'u':
		cell.text = (const char *)array->buffers[2] + narrow[row];
		cell.length = (size_t)(narrow[row + 1] - narrow[row]);
		break;
	case 'U':
	case 'Z':
		cell.text = (const char *)array->buffers[2] + offsets[row];
		cell.length = (size_t)(offsets[row + 1] - offsets[row]);
		break;
	default:
		break;
	}
	if (!cell.is_null && schema->dictionary)
		return arrow_cell(schema->dictionary, array->dictionary, cell.integer);
	return cell;
}

/* ---- checks: NULL, or what is wrong ---- */

static inline const char *arrow_text_fault(const struct ArrowSchema *schema,
					   const struct ArrowArray *array)
{
	int64_t end = 0;

	for (int64_t row = 0; row < array->length; row++) {
		struct arrow_cell cell = arrow_cell(schema, array, row);
		int64_t at;

		if (cell.is_null)
			continue;
		at = cell.text - (const char *)array->buffers[2];
		if (at < end || cell.length > (size_t)1 << 40)
			return "offsets decrease";
		end = at + (int64_t)cell.length;
		if (schema->format[0] != 'Z' && !ts_utf8_valid(cell.text, cell.length))
			return "text is not UTF-8";
	}
	return NULL;
}

static inline const char *arrow_index_fault(const struct ArrowSchema *schema,
					    const struct ArrowArray *array)
{
	for (int64_t row = 0; row < array->length; row++) {
		int64_t index = schema->format[0] == 'c'
					? ((const int8_t *)array->buffers[1])[row]
					: ((const int32_t *)array->buffers[1])[row];

		/* Also of nulls. */
		if (index < 0 || (index >= array->dictionary->length && !arrow_is_null(array, row)))
			return "index beyond the dictionary";
	}
	return arrow_text_fault(schema->dictionary, array->dictionary);
}

static inline const char *arrow_column_fault(const struct ArrowSchema *schema,
					     const struct ArrowArray *array)
{
	bool is_text = strchr("uUZ", schema->format[0]) != NULL;
	int64_t nulls = 0;

	if (!array->release || array->offset || array->n_children ||
	    array->n_buffers != (is_text ? 3 : 2))
		return "structure of a column";
	if ((schema->dictionary != NULL) != (array->dictionary != NULL))
		return "dictionary in one of schema and array";
	if (!array->buffers[1] || (is_text && !array->buffers[2]))
		return "a buffer is missing";
	for (int64_t row = 0; row < array->length; row++)
		nulls += arrow_is_null(array, row);
	if (array->null_count >= 0 && array->null_count != nulls)
		return "wrong number of nulls";
	if (nulls && !(schema->flags & ARROW_FLAG_NULLABLE))
		return "null in a column that has none";
	if (schema->dictionary)
		return arrow_index_fault(schema, array);
	return is_text ? arrow_text_fault(schema, array) : NULL;
}

static inline const char *arrow_fault(const struct ArrowSchema *schema,
				      const struct ArrowArray *array)
{
	if (!array->release || array->n_children != schema->n_children || array->n_buffers != 1 ||
	    array->null_count || array->offset || array->buffers[0])
		return "structure of a batch";
	for (int64_t i = 0; i < array->n_children; i++) {
		const char *fault;

		if (array->children[i]->length != array->length)
			return "columns of different lengths";
		fault = arrow_column_fault(schema->children[i], array->children[i]);
		if (fault)
			return fault;
	}
	return NULL;
}

#endif
