/* SPDX-License-Identifier: Apache-2.0 */
/* Entities of imported files. */
#include "import/common/entities.h"

#include <stdlib.h>
#include <string.h>

static void init_list(struct ts_place_list *list, enum ts_table_id table, size_t row_bytes)
{
	*list = (struct ts_place_list){ .table = table, .row_bytes = row_bytes };
	ts_pairmap_init(&list->by_key);
}

static void release_list(struct ts_place_list *list)
{
	ts_pairmap_release(&list->by_key);
	free(list->rows);
	free(list->changed);
}

int ts_places_start(struct ts_places *places, struct ts_import *import, struct ts_error *err)
{
	const char *name = strrchr(import->path, '/');
	struct ts_source_row *row = &places->source_row;

	*places = (struct ts_places){ .import = import, .writer = import->writer };
	init_list(&places->hosts, TS_TABLE_HOST, sizeof(struct ts_host_row));
	init_list(&places->processes, TS_TABLE_PROCESS, sizeof(struct ts_process_row));
	init_list(&places->threads, TS_TABLE_THREAD, sizeof(struct ts_thread_row));
	init_list(&places->devices, TS_TABLE_DEVICE, sizeof(struct ts_device_row));
	init_list(&places->streams, TS_TABLE_STREAM, sizeof(struct ts_stream_row));
	name = name && name[1] ? name + 1 : import->path;
	places->source = ts_writer_new_id(places->writer, TS_TABLE_SOURCE);
	places->clock = (uint32_t)places->source;
	*row = ts_source_none;
	row->id = places->source;
	row->name = ts_import_string(import, name, strlen(name));
	row->format =
		ts_import_string(import, import->result.format, strlen(import->result.format));
	row->clock = places->source;
	ts_writer_set_clock(places->writer, places->clock);
	ts_writer_add(places->writer, TS_TABLE_SOURCE, row, NULL);
	return ts_writer_status(places->writer, err);
}

void ts_places_release(struct ts_places *places)
{
	release_list(&places->hosts);
	release_list(&places->processes);
	release_list(&places->threads);
	release_list(&places->devices);
	release_list(&places->streams);
}

static void write_changed(struct ts_places *places, struct ts_place_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->changed[i])
			ts_writer_add(places->writer, list->table, list->rows + i * list->row_bytes,
				      NULL);
		list->changed[i] = false;
	}
}

void ts_places_finish(struct ts_places *places)
{
	ts_writer_set_clock(places->writer, places->clock);
	if (places->source_changed)
		ts_writer_add(places->writer, TS_TABLE_SOURCE, &places->source_row, NULL);
	places->source_changed = false;
	write_changed(places, &places->hosts);
	write_changed(places, &places->processes);
	write_changed(places, &places->threads);
	write_changed(places, &places->devices);
	write_changed(places, &places->streams);
	ts_losses_write(&places->losses, places->import, places->source);
}

/* ---- ids ---- */

/* The id of a key that is there; 0: it is new. */
static int64_t find(struct ts_place_list *list, uint64_t first, uint64_t second)
{
	uint64_t index;

	if (TS_LIKELY(list->last_id && list->last_first == first && list->last_second == second))
		return list->last_id;
	if (!ts_pairmap_get(&list->by_key, first, second, &index))
		return 0;
	list->last_first = first;
	list->last_second = second;
	list->last_id = list->first_id + (int64_t)index;
	return list->last_id;
}

/* A row whose first column is its id; the id is put in. */
static int64_t add(struct ts_places *places, struct ts_place_list *list, uint64_t first,
		   uint64_t second, int64_t *row)
{
	size_t row_capacity = list->rows_capacity;

	if (ts_grow_array((void **)&list->rows, &row_capacity, list->count + 1, list->row_bytes))
		return 0;
	list->rows_capacity = row_capacity;
	if (ts_grow_array((void **)&list->changed, &list->changed_capacity, list->count + 1,
			  sizeof(*list->changed)) ||
	    ts_pairmap_put(&list->by_key, first, second, list->count))
		return 0;
	row[0] = ts_writer_new_id(places->writer, list->table);
	if (!row[0] || ts_writer_add(places->writer, list->table, row, NULL))
		return 0;
	if (!list->count)
		list->first_id = row[0];
	memcpy(list->rows + list->count * list->row_bytes, row, list->row_bytes);
	list->changed[list->count++] = false;
	return row[0];
}

int64_t ts_places_host(struct ts_places *places, uint64_t key)
{
	struct ts_host_row row = ts_host_none;
	int64_t id = find(&places->hosts, 0, key);

	return id ? id : add(places, &places->hosts, 0, key, (int64_t *)&row);
}

int64_t ts_places_process(struct ts_places *places, int64_t pid)
{
	return ts_places_process_of(places, 0, (uint64_t)pid, pid);
}

int64_t ts_places_process_of(struct ts_places *places, int64_t host, uint64_t key, int64_t pid)
{
	struct ts_process_row row = ts_process_none;
	int64_t id = find(&places->processes, (uint64_t)host, key);

	if (id)
		return id;
	row.source = places->source;
	row.host = host;
	row.pid = pid;
	return add(places, &places->processes, (uint64_t)host, key, (int64_t *)&row);
}

int64_t ts_places_thread(struct ts_places *places, int64_t process, uint64_t key, int64_t tid)
{
	struct ts_thread_row row = ts_thread_none;
	int64_t id = find(&places->threads, (uint64_t)process, key);

	if (id)
		return id;
	row.process = process;
	row.tid = tid;
	return add(places, &places->threads, (uint64_t)process, key, (int64_t *)&row);
}

int64_t ts_places_device(struct ts_places *places, int64_t host, uint64_t key, int64_t number)
{
	struct ts_device_row row = ts_device_none;
	int64_t id = find(&places->devices, (uint64_t)host, key);

	if (id)
		return id;
	row.source = places->source;
	row.host = host;
	row.number = number;
	return add(places, &places->devices, (uint64_t)host, key, (int64_t *)&row);
}

int64_t ts_places_stream(struct ts_places *places, int64_t device, uint64_t key, int64_t number)
{
	struct ts_stream_row row = ts_stream_none;
	int64_t id = find(&places->streams, (uint64_t)device, key);

	if (id)
		return id;
	row.device = device;
	row.number = number;
	return add(places, &places->streams, (uint64_t)device, key, (int64_t *)&row);
}

/* ---- rows ---- */

static void *change(struct ts_place_list *list, int64_t id)
{
	size_t index = (size_t)(id - list->first_id);

	list->changed[index] = true;
	return list->rows + index * list->row_bytes;
}

struct ts_source_row *ts_places_source_row(struct ts_places *places)
{
	places->source_changed = true;
	return &places->source_row;
}

struct ts_host_row *ts_places_host_row(struct ts_places *places, int64_t id)
{
	return change(&places->hosts, id);
}

struct ts_process_row *ts_places_process_row(struct ts_places *places, int64_t id)
{
	return change(&places->processes, id);
}

struct ts_thread_row *ts_places_thread_row(struct ts_places *places, int64_t id)
{
	return change(&places->threads, id);
}

struct ts_device_row *ts_places_device_row(struct ts_places *places, int64_t id)
{
	return change(&places->devices, id);
}

struct ts_stream_row *ts_places_stream_row(struct ts_places *places, int64_t id)
{
	return change(&places->streams, id);
}

void ts_places_meta(struct ts_places *places, const char *key, const char *json, size_t length)
{
	struct ts_meta_row row = ts_meta_none;

	row.source = places->source;
	row.key = ts_import_string(places->import, key, strlen(key));
	row.value = ts_import_string(places->import, json, length);
	ts_writer_add(places->writer, TS_TABLE_META, &row, NULL);
}
