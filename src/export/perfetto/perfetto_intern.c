/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts: strings of the trace under their own numbers, generated ones above them. Each is
 * written before the packet that first uses it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "export/perfetto/perfetto_export.h"

/* Fields of InternedData. */
static const uint8_t text_fields[TS_PF_TEXT_COUNT] = {
	[TS_PF_CATEGORY] = 1,      [TS_PF_EVENT_NAME] = 2, [TS_PF_KEY] = 3,
	[TS_PF_VALUE] = 29,        [TS_PF_FUNCTION] = 5,   [TS_PF_SOURCE_PATH] = 18,
	[TS_PF_MAPPING_PATH] = 17,
};

int ts_pf_intern_init(struct ts_pf_export *x)
{
	x->string_end = ts_reader_string_end(x->reader);
	ts_map_init(&x->synthetic);
	ts_strmap_init(&x->texts, 1);
	x->stages = calloc((size_t)x->string_end / 64 + 1, sizeof(*x->stages));
	for (int i = 0; i < TS_PF_TEXT_COUNT; i++) {
		x->seen[i] = calloc((size_t)x->string_end / 64 + 1, sizeof(*x->seen[i]));
		if (!x->seen[i] || !x->stages)
			return ts_error_set(x->err, TS_ENOMEM, "no memory");
	}
	return TS_OK;
}

void ts_pf_intern_release(struct ts_pf_export *x)
{
	for (int i = 0; i < TS_PF_TEXT_COUNT; i++)
		free(x->seen[i]);
	free(x->stages);
	ts_strmap_release(&x->texts);
	ts_map_release(&x->synthetic);
}

static void put_text(struct ts_pf_export *x, enum ts_pf_text kind, uint64_t iid, const char *text,
		     size_t length)
{
	size_t open = ts_proto_open(&x->interned, text_fields[kind]);

	ts_proto_put_uint(&x->interned, 1, iid);
	ts_proto_put_bytes(&x->interned, 2, text, length);
	ts_proto_close(&x->interned, open);
}

static uint64_t synthetic_iid(const struct ts_pf_export *x, uint64_t number)
{
	return x->string_end + 1 + number;
}

uint64_t ts_pf_intern_synthetic(struct ts_pf_export *x, enum ts_pf_text kind, uint64_t number,
				const char *text, size_t length)
{
	uint64_t iid = synthetic_iid(x, number);
	bool is_new = false;

	if (number < TS_PF_FIRST_COLUMN) {
		uint64_t *seen = &x->few_seen[kind][number / 64], bit = UINT64_C(1) << number % 64;

		if (!(*seen & bit))
			put_text(x, kind, iid, text, length);
		*seen |= bit;
		return iid;
	}

	/* If out of memory, it is written twice. */
	if (!ts_map_insert(&x->synthetic, number << 3 | (uint64_t)kind, &is_new) || is_new)
		put_text(x, kind, iid, text, length);
	return iid;
}

uint64_t ts_pf_intern_text(struct ts_pf_export *x, enum ts_pf_text kind, const char *text,
			   size_t length)
{
	uint32_t number;

	/* An empty text may have no address. */
	text = text ? text : "";
	number = ts_strmap_intern(&x->texts, text, length, NULL);
	return ts_pf_intern_synthetic(x, kind, (UINT64_C(1) << 32) + number, text, length);
}

uint64_t ts_pf_intern_new_(struct ts_pf_export *x, enum ts_pf_text kind, int64_t string)
{
	struct ts_string text = ts_reader_string(x->reader, string);

	/* Missing, like all strings that the trace does not have. */
	if (string <= 0 || (uint64_t)string >= x->string_end)
		return ts_pf_intern_synthetic(x, kind, 0, text.data, text.length);
	x->seen[kind][(uint64_t)string / 64] |= UINT64_C(1) << ((uint64_t)string % 64);
	put_text(x, kind, (uint64_t)string, text.data, text.length);
	return (uint64_t)string;
}

/*
 * Numbers of generated texts: 0 a missing one, a few constants, then names of columns, then enum
 * values.
 */
static uint64_t column_number(const struct ts_table_info *table, int position)
{
	return TS_PF_FIRST_COLUMN + (uint64_t)table->id * TS_MAX_COLUMNS + (uint64_t)position;
}

uint64_t ts_pf_intern_column(struct ts_pf_export *x, const struct ts_table_info *table,
			     int position)
{
	uint64_t number = column_number(table, position);
	char text[80];
	int length;

	if (x->columns_seen[table->id] >> position & 1)
		return synthetic_iid(x, number);
	x->columns_seen[table->id] |= UINT64_C(1) << position;
	length = snprintf(text, sizeof(text), "ts.%s", table->columns[position].name);
	return ts_pf_intern_synthetic(x, TS_PF_KEY, number, text, (size_t)length);
}

uint64_t ts_pf_intern_enum(struct ts_pf_export *x, const struct ts_table_info *table, int position,
			   int64_t value)
{
	uint64_t number = (column_number(table, position) + 1) << 6 | (uint64_t)value, *seen;
	const char *name;

	if (value < 0 || value > 63)
		return 0;
	seen = &x->enums_seen[table->id][position];
	if (*seen >> value & 1)
		return synthetic_iid(x, number);
	name = ts_enum_name(table->columns[position].refers, value);
	if (!name)
		return 0;
	*seen |= UINT64_C(1) << value;
	return ts_pf_intern_synthetic(x, TS_PF_VALUE, number, name, strlen(name));
}
