/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects metadata of a trace, its sources and processes. The last value of each key counts; keys
 * on which sources differ are marked. Texts are compared by hash, as equal texts may have different
 * ids.
 */
#include <string.h>

#include "base/local/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "cli/info/info.h"

struct collecting {
	const struct ts_info *info;
	struct ts_meta_list *list;
	bool of_processes;
	struct ts_pairmap items_by_key; /* (source or process, key) to its item */
};

static uint64_t hash_text(const struct ts_info *info, int64_t string)
{
	struct ts_string text = ts_reader_string(info->reader, string);

	return ts_hash64(text.data, text.length);
}

static int add_meta(void *context, const struct ts_row *row)
{
	struct collecting *collecting = context;
	struct ts_meta_list *list = collecting->list;
	struct ts_meta_row meta;
	uint64_t key_hash, *slot;
	bool is_new;

	memcpy(&meta, row->columns, sizeof(meta));
	if (meta.thread || !meta.process == collecting->of_processes)
		return TS_OK;
	key_hash = hash_text(collecting->info, meta.key);
	slot = ts_pairmap_insert(&collecting->items_by_key,
				 (uint64_t)(meta.process ? meta.process : meta.source), key_hash,
				 &is_new);
	if (!slot)
		return TS_ENOMEM;
	if (is_new) {
		if (ts_grow_array((void **)&list->items, &list->capacity, list->count + 1,
				  sizeof(*list->items)))
			return TS_ENOMEM;
		*slot = list->count++;
	}
	list->items[*slot] = (struct ts_meta){
		.process = meta.process,
		.source = meta.source,
		.key = meta.key,
		.value = meta.value,
		.key_hash = key_hash,
		.value_hash = hash_text(collecting->info, meta.value),
	};
	return TS_OK;
}

/* Compares each item with the first item of its key. */
static int compare_sources(struct ts_meta_list *list)
{
	struct ts_map first = { 0 };
	uint64_t *slot;
	bool is_new;

	for (size_t i = 0; i < list->count; i++) {
		slot = ts_map_insert(&first, list->items[i].key_hash, &is_new);
		if (!slot) {
			ts_map_release(&first);
			return TS_ENOMEM;
		}
		if (is_new)
			*slot = i;
		list->items[i].repeats = !is_new;
		if (list->items[*slot].value_hash != list->items[i].value_hash)
			list->items[*slot].differs = true;
	}
	for (size_t i = 0; i < list->count; i++) {
		uint64_t index = i;

		ts_map_get(&first, list->items[i].key_hash, &index);
		list->items[i].differs = list->items[index].differs;
	}
	ts_map_release(&first);
	return TS_OK;
}

int ts_meta_collect(const struct ts_info *info, bool of_processes, struct ts_meta_list *ret_list,
		    struct ts_error *err)
{
	struct ts_meta_list list = { 0 };
	struct collecting collecting = { .info = info,
					 .list = &list,
					 .of_processes = of_processes };
	int rc = ts_info_visit(info, TS_TABLE_META, add_meta, &collecting, err);

	ts_pairmap_release(&collecting.items_by_key);
	if (!rc && !of_processes && compare_sources(&list))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the metadata of the trace");
	if (rc)
		ts_meta_list_release(&list);
	else
		*ret_list = list;
	return rc;
}

void ts_meta_list_release(struct ts_meta_list *list)
{
	free(list->items);
	*list = (struct ts_meta_list){ 0 };
}

int ts_info_visit(const struct ts_info *info, enum ts_table_id table,
		  int (*visit)(void *context, const struct ts_row *row), void *context,
		  struct ts_error *err)
{
	struct ts_row row = { .table = ts_table_info(table) };
	TS_AUTO(ts_batch) batch = NULL;
	int64_t columns[TS_MAX_COLUMNS];
	int rc = ts_batch_new(&batch, info->reader, err);

	row.columns = columns;
	for (size_t i = 0; !rc && i < ts_reader_chunk_count(info->reader); i++) {
		if (ts_reader_chunk(info->reader, i)->table != table)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_ALL, err);
		for (uint32_t k = 0; !rc && k < batch->rows; k++) {
			ts_batch_row(batch, k, columns);
			rc = visit(context, &row);
			if (rc)
				ts_error_set(err, rc, "no memory for the metadata of the trace");
		}
	}
	return rc;
}
