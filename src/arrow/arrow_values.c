/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of values of a fixed size: numbers as they are, and what ids stand for. An id is looked
 * up once for each distinct value of a chunk that stores few of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arrow/arrow_source.h"
#include "base/memory.h"

/* ---- ids ---- */

static int add_text(struct ts_arrow_worker *worker, size_t field, const char *text, size_t length,
		    int64_t *ret_value)
{
	int result = ts_arrow_dictionary_add(&worker->source->dictionaries[field], text, length,
					     ret_value);

	if (result == TS_ENOSPC)
		return ts_error_set(worker->err, TS_ENOSPC,
				    "column '%s' has more than 2 GiB of distinct strings: request "
				    "plain strings",
				    worker->source->fields.list[field].name);
	return result ? ts_arrow_no_memory(worker) : TS_OK;
}

static int look_up_enum(struct ts_arrow_worker *worker, size_t field, int64_t value,
			int64_t *ret_value)
{
	const char *name = ts_enum_name(worker->source->fields.list[field].enumeration, value);
	char digits[24];

	if (!name && (value < 0 || value >= TS_ARROW_MOST_ENUM_NAMES)) {
		*ret_value = TS_ABSENT;
		return TS_OK;
	}
	/* A value of a later version. */
	if (!name) {
		snprintf(digits, sizeof(digits), "%" PRId64, value);
		name = digits;
	}
	return add_text(worker, field, name, strlen(name), ret_value);
}

static int look_up_name(struct ts_arrow_worker *worker, size_t field, int64_t id,
			int64_t *ret_value)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];

	ts_text_clear(&worker->text);
	if (!info->lookup->text(worker->reader, id, &worker->text)) {
		*ret_value = TS_ABSENT;
		return TS_OK;
	}
	if (ts_text_status(&worker->text))
		return ts_arrow_no_memory(worker);
	return add_text(worker, field, worker->text.length ? worker->text.data : "",
			worker->text.length, ret_value);
}

static int look_up_new(struct ts_arrow_worker *worker, size_t field, int64_t id, int64_t *ret_value)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];

	switch (info->kind) {
	case TS_ARROW_NUMBER:
		*ret_value = info->lookup->number(worker->reader, id);
		return TS_OK;
	case TS_ARROW_ENUM:
		return look_up_enum(worker, field, id, ret_value);
	default:
		return look_up_name(worker, field, id, ret_value);
	}
}

int ts_arrow_look_up(struct ts_arrow_worker *worker, size_t field, int64_t id, int64_t *ret_value)
{
	struct ts_arrow_source *source = worker->source;
	struct ts_arrow_ids *ids =
		&source->ids[worker->unit->reader * source->fields.count + field];
	int64_t value = ts_arrow_ids_get(ids, id);
	int result = TS_OK;

	if (TS_UNLIKELY(value == TS_ARROW_NOT_LOOKED_UP)) {
		result = look_up_new(worker, field, id, &value);
		if (!result)
			ts_arrow_ids_put(ids, id, value);
	}
	*ret_value = value;
	return result;
}

/* The value of a column in its field; TS_ABSENT: null. */
static int map_value(struct ts_arrow_worker *worker, size_t field, int64_t value,
		     int64_t *ret_value)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];

	switch (info->kind) {
	case TS_ARROW_INTEGER:
	case TS_ARROW_FLOAT:
		*ret_value = info->has_null && value == info->null ? TS_ABSENT : value;
		return TS_OK;
	case TS_ARROW_TRACE:
		*ret_value = value;
		return TS_OK;
	case TS_ARROW_BOOL:
		*ret_value = value == TS_ABSENT ? TS_ABSENT : value != 0;
		return TS_OK;
	default:
		return ts_arrow_look_up(worker, field, value, ret_value);
	}
}

/* Are there values of the field that mean null? TS_ABSENT is a number like others elsewhere. */
static bool may_be_null(const struct ts_arrow_field *field)
{
	return (field->kind != TS_ARROW_INTEGER && field->kind != TS_ARROW_FLOAT) ||
	       field->has_null;
}

/* ---- nulls ---- */

static size_t bitmap_bytes(uint32_t rows)
{
	return ((size_t)rows + 63) / 64 * 8;
}

/* Appends bits to whole words; the last is completed with zeros. */
struct bits {
	uint64_t *words;
	uint64_t word;
	uint32_t count, set;
};

static inline void put_bit(struct bits *bits, bool is_set)
{
	bits->word |= (uint64_t)is_set << (bits->count & 63);
	bits->set += is_set;
	if ((++bits->count & 63) == 0) {
		bits->words[bits->count / 64 - 1] = bits->word;
		bits->word = 0;
	}
}

static void close_bits(struct bits *bits)
{
	if (bits->count & 63)
		bits->words[bits->count / 64] = bits->word;
}

static int no_values(struct ts_arrow_worker *worker, struct ts_arrow_data *data)
{
	data->validity = data->values = ts_arrow_zeros();
	data->null_count = worker->batch->rows;
	return TS_OK;
}

static void set_validity(struct ts_arrow_data *data, struct bits *bits)
{
	close_bits(bits);
	data->validity = bits->words;
	data->null_count = (int64_t)bits->count - bits->set;
}

/* ---- constants ---- */

static int fill_bool_constant(struct ts_arrow_worker *worker, struct ts_arrow_data *data,
			      bool value)
{
	void *bits;

	data->values = ts_arrow_zeros();
	if (!value)
		return TS_OK;
	bits = ts_arrow_worker_alloc(worker, bitmap_bytes(worker->batch->rows));
	if (!bits)
		return ts_arrow_no_memory(worker);
	memset(bits, 0xff, bitmap_bytes(worker->batch->rows));
	data->values = bits;
	return TS_OK;
}

static void store(void *values, unsigned int width, uint32_t row, int64_t value)
{
	if (width == 8)
		((int64_t *)values)[row] = value;
	else if (width == 4)
		((int32_t *)values)[row] = (int32_t)value;
	else
		((int8_t *)values)[row] = (int8_t)value;
}

static int fill_constant(struct ts_arrow_worker *worker, size_t field, int64_t constant)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];
	struct ts_arrow_data *data = &worker->batch->data[field];
	unsigned int width = ts_arrow_value_bytes(info);
	int64_t value;
	void *values;
	int result = map_value(worker, field, constant, &value);

	if (result)
		return result;
	if (may_be_null(info) && value == TS_ABSENT)
		return no_values(worker, data);
	if (info->kind == TS_ARROW_BOOL)
		return fill_bool_constant(worker, data, value);
	data->values = ts_arrow_constant(worker->source->memory, width, value);
	if (data->values)
		return TS_OK;
	values = ts_arrow_worker_alloc(worker, (size_t)worker->batch->rows * width);
	if (!values)
		return ts_arrow_no_memory(worker);
	for (uint32_t row = 0; row < worker->batch->rows; row++)
		store(values, width, row, value);
	data->values = values;
	return TS_OK;
}

/* ---- indices ---- */

#define EXPAND(type, index)                                \
	do {                                               \
		type *to = values;                         \
		const index *from = view->indices;         \
		for (uint32_t row = 0; row < rows; row++)  \
			to[row] = (type)mapped[from[row]]; \
	} while (0)

/* A null becomes 0: consumers may check indices of rows that are null. */
static void expand(const struct ts_arrow_view *view, const int64_t *mapped, void *values,
		   unsigned int width, uint32_t rows)
{
	if (view->index_bytes == 1) {
		if (width == 8)
			EXPAND(int64_t, uint8_t);
		else if (width == 4)
			EXPAND(int32_t, uint8_t);
		else
			EXPAND(int8_t, uint8_t);
	} else {
		if (width == 8)
			EXPAND(int64_t, uint32_t);
		else if (width == 4)
			EXPAND(int32_t, uint32_t);
		else
			EXPAND(int8_t, uint32_t);
	}
}

static uint32_t index_at(const struct ts_arrow_view *view, uint32_t row)
{
	return view->index_bytes == 1 ? ((const uint8_t *)view->indices)[row]
				      : ((const uint32_t *)view->indices)[row];
}

static int fill_indexed(struct ts_arrow_worker *worker, size_t field,
			const struct ts_arrow_view *view)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];
	struct ts_arrow_data *data = &worker->batch->data[field];
	unsigned int width = ts_arrow_value_bytes(info);
	uint32_t rows = worker->batch->rows;
	bool has_null = false, check = may_be_null(info);
	struct bits bits = { 0 };
	void *values;

	if (ts_grow_array((void **)&worker->mapped, &worker->mapped_capacity, view->entry_count,
			  sizeof(*worker->mapped)))
		return ts_arrow_no_memory(worker);
	for (uint32_t i = 0; i < view->entry_count; i++) {
		int result = map_value(worker, field, view->entries[i], &worker->mapped[i]);

		if (result)
			return result;
		has_null |= check && worker->mapped[i] == TS_ABSENT;
	}
	if (has_null) {
		bits.words = ts_arrow_worker_alloc(worker, bitmap_bytes(rows));
		if (!bits.words)
			return ts_arrow_no_memory(worker);
		for (uint32_t row = 0; row < rows; row++)
			put_bit(&bits, worker->mapped[index_at(view, row)] != TS_ABSENT);
		set_validity(data, &bits);
		for (uint32_t i = 0; i < view->entry_count; i++)
			if (worker->mapped[i] == TS_ABSENT)
				worker->mapped[i] = 0;
	}
	values = ts_arrow_worker_alloc(worker, (size_t)rows * width);
	if (!values)
		return ts_arrow_no_memory(worker);
	expand(view, worker->mapped, values, width, rows);
	data->values = values;
	return TS_OK;
}

/* ---- words ---- */

/* Without a comparison, which not all vector units have for 64 bits. */
static bool any_equals(const int64_t *words, uint32_t rows, int64_t value)
{
	uint64_t found = 0;

	for (uint32_t row = 0; row < rows; row++) {
		uint64_t difference = (uint64_t)words[row] ^ (uint64_t)value;

		/* The upper bit of this is set for 0 only. */
		found |= (difference - 1) & ~difference;
	}
	return found >> 63;
}

/* Words that are the values: only nulls are looked for. */
static int fill_placed(struct ts_arrow_worker *worker, size_t field,
		       const struct ts_arrow_view *view)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];
	struct ts_arrow_data *data = &worker->batch->data[field];
	uint32_t rows = worker->batch->rows;
	struct bits bits = { 0 };

	data->values = view->words;
	if (!may_be_null(info) || !any_equals(view->words, rows, info->null))
		return TS_OK;
	bits.words = ts_arrow_worker_alloc(worker, bitmap_bytes(rows));
	if (!bits.words)
		return ts_arrow_no_memory(worker);
	for (uint32_t row = 0; row < rows; row++)
		put_bit(&bits, view->words[row] != info->null);
	set_validity(data, &bits);
	return TS_OK;
}

/*
 * The common case of ids: all were looked up before, and mean something. Returns the first row from
 * `row` on that is not so.
 */
static uint32_t map_known(const struct ts_arrow_worker *worker, size_t field,
			  const struct ts_arrow_view *view, void *values, unsigned int width,
			  uint32_t row)
{
	const struct ts_arrow_source *source = worker->source;
	const struct ts_arrow_ids *ids =
		&source->ids[worker->unit->reader * source->fields.count + field];
	uint32_t rows = worker->batch->rows;

	for (; row < rows; row++) {
		int64_t value = ts_arrow_ids_get(ids, view->words[row * view->stride]);

		/* TS_ABSENT is the only smaller value. */
		if (TS_UNLIKELY(value <= TS_ARROW_NOT_LOOKED_UP))
			break;
		if (width == 4)
			((int32_t *)values)[row] = (int32_t)value;
		else
			((int64_t *)values)[row] = value;
	}
	return row;
}

/* NULL: no memory. */
static uint64_t *all_valid(struct ts_arrow_worker *worker)
{
	uint64_t *valid = ts_arrow_worker_alloc(worker, bitmap_bytes(worker->batch->rows));

	if (valid)
		memset(valid, 0xff, bitmap_bytes(worker->batch->rows));
	return valid;
}

static int fill_looked_up(struct ts_arrow_worker *worker, size_t field,
			  const struct ts_arrow_view *view)
{
	struct ts_arrow_data *data = &worker->batch->data[field];
	unsigned int width = ts_arrow_value_bytes(&worker->source->fields.list[field]);
	uint32_t rows = worker->batch->rows, row = 0, nulls = 0;
	void *values = ts_arrow_worker_alloc(worker, (size_t)rows * width);
	uint64_t *valid = NULL;

	if (!values)
		return ts_arrow_no_memory(worker);
	while ((row = map_known(worker, field, view, values, width, row)) < rows) {
		int64_t value = 0;
		int result =
			ts_arrow_look_up(worker, field, ts_arrow_view_value(view, row), &value);

		if (result)
			return result;
		if (value == TS_ABSENT) {
			if (!valid)
				valid = all_valid(worker);
			if (!valid)
				return ts_arrow_no_memory(worker);
			valid[row / 64] &= ~(UINT64_C(1) << (row & 63));
			value = 0;
			nulls++;
		}
		store(values, width, row++, value);
	}
	data->values = values;
	data->validity = valid;
	data->null_count = nulls;
	return TS_OK;
}

static int fill_mapped(struct ts_arrow_worker *worker, size_t field,
		       const struct ts_arrow_view *view)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];
	struct ts_arrow_data *data = &worker->batch->data[field];
	unsigned int width = ts_arrow_value_bytes(info);
	uint32_t rows = worker->batch->rows;
	bool check = may_be_null(info);
	struct bits valid = { .words = ts_arrow_worker_alloc(worker, bitmap_bytes(rows)) };
	struct bits bools = { 0 };
	void *values =
		ts_arrow_worker_alloc(worker, width ? (size_t)rows * width : bitmap_bytes(rows));

	if (!valid.words || !values)
		return ts_arrow_no_memory(worker);
	bools.words = values;
	for (uint32_t row = 0; row < rows; row++) {
		int64_t value = 0;
		int result = map_value(worker, field, ts_arrow_view_value(view, row), &value);
		bool is_null = check && value == TS_ABSENT;

		if (TS_UNLIKELY(result))
			return result;
		put_bit(&valid, !is_null);
		value = is_null ? 0 : value;
		if (width)
			store(values, width, row, value);
		else
			put_bit(&bools, value);
	}
	close_bits(&bools);
	data->values = values;
	if (valid.set != rows)
		set_validity(data, &valid);
	return TS_OK;
}

int ts_arrow_fill_values(struct ts_arrow_worker *worker, size_t field,
			 const struct ts_arrow_view *view)
{
	const struct ts_arrow_field *info = &worker->source->fields.list[field];
	bool as_it_is = info->kind == TS_ARROW_INTEGER || info->kind == TS_ARROW_FLOAT;

	if (view->kind == SBT_FORM_CONSTANT)
		return fill_constant(worker, field, view->constant);
	if (view->kind == SBT_FORM_INDEXED && info->kind != TS_ARROW_BOOL)
		return fill_indexed(worker, field, view);
	if (view->kind == SBT_FORM_WORDS && as_it_is && !worker->unit->rows)
		return fill_placed(worker, field, view);
	if (view->kind == SBT_FORM_WORDS &&
	    (info->kind == TS_ARROW_NAME || info->kind == TS_ARROW_NUMBER))
		return fill_looked_up(worker, field, view);
	return fill_mapped(worker, field, view);
}
