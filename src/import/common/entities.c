/* SPDX-License-Identifier: Apache-2.0 */
/* Entities of imported files. */
#include "import/common/entities.h"

#include <stdlib.h>
#include <string.h>

static void init_list(struct ts_entity_list *list, enum ts_table_id table, size_t row_bytes)
{
	*list = (struct ts_entity_list){ .table = table, .row_bytes = row_bytes };
	ts_pairmap_init(&list->by_key);
}

static void release_list(struct ts_entity_list *list)
{
	ts_pairmap_release(&list->by_key);
	free(list->rows);
	free(list->changed);
}

int ts_entities_start(struct ts_entities *entities, struct ts_import *import, struct ts_error *err)
{
	const char *name = strrchr(import->path, '/');
	struct ts_source_row *row = &entities->source_row;

	*entities = (struct ts_entities){ .import = import, .writer = import->writer };
	init_list(&entities->hosts, TS_TABLE_HOST, sizeof(struct ts_host_row));
	init_list(&entities->processes, TS_TABLE_PROCESS, sizeof(struct ts_process_row));
	init_list(&entities->threads, TS_TABLE_THREAD, sizeof(struct ts_thread_row));
	init_list(&entities->devices, TS_TABLE_DEVICE, sizeof(struct ts_device_row));
	init_list(&entities->streams, TS_TABLE_STREAM, sizeof(struct ts_stream_row));
	name = name && name[1] ? name + 1 : import->path;
	entities->source = ts_writer_new_id(entities->writer, TS_TABLE_SOURCE);
	entities->clock = (uint32_t)entities->source;
	*row = ts_source_none;
	row->id = entities->source;
	row->name = ts_import_string(import, name, strlen(name));
	row->format =
		ts_import_string(import, import->result.format, strlen(import->result.format));
	row->clock = entities->source;
	ts_writer_set_clock(entities->writer, entities->clock);
	ts_writer_add(entities->writer, TS_TABLE_SOURCE, row, NULL);
	return ts_writer_status(entities->writer, err);
}

void ts_entities_release(struct ts_entities *entities)
{
	release_list(&entities->hosts);
	release_list(&entities->processes);
	release_list(&entities->threads);
	release_list(&entities->devices);
	release_list(&entities->streams);
}

static void write_changed(struct ts_entities *entities, struct ts_entity_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->changed[i])
			ts_writer_add(entities->writer, list->table,
				      list->rows + i * list->row_bytes, NULL);
		list->changed[i] = false;
	}
}

void ts_entities_finish(struct ts_entities *entities)
{
	ts_writer_set_clock(entities->writer, entities->clock);
	if (entities->source_changed)
		ts_writer_add(entities->writer, TS_TABLE_SOURCE, &entities->source_row, NULL);
	entities->source_changed = false;
	write_changed(entities, &entities->hosts);
	write_changed(entities, &entities->processes);
	write_changed(entities, &entities->threads);
	write_changed(entities, &entities->devices);
	write_changed(entities, &entities->streams);
	ts_import_losses_write(&entities->losses, entities->import, entities->source,
			       entities->time);
}

/* ---- ids ---- */

/* The id of a known key; 0: new. */
static int64_t find(struct ts_entity_list *list, uint64_t first, uint64_t second)
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

/* Adds a row; its first column is set to its id. */
static int64_t add(struct ts_entities *entities, struct ts_entity_list *list, uint64_t first,
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
	row[0] = ts_writer_new_id(entities->writer, list->table);
	if (!row[0] || ts_writer_add(entities->writer, list->table, row, NULL))
		return 0;
	if (!list->count)
		list->first_id = row[0];
	memcpy(list->rows + list->count * list->row_bytes, row, list->row_bytes);
	list->changed[list->count++] = false;
	return row[0];
}

int64_t ts_entities_host(struct ts_entities *entities, uint64_t key)
{
	struct ts_host_row row = ts_host_none;
	int64_t id = find(&entities->hosts, 0, key);

	return id ? id : add(entities, &entities->hosts, 0, key, (int64_t *)&row);
}

int64_t ts_entities_process(struct ts_entities *entities, int64_t pid)
{
	return ts_entities_process_of(entities, 0, (uint64_t)pid, pid);
}

int64_t ts_entities_process_of(struct ts_entities *entities, int64_t host, uint64_t key,
			       int64_t pid)
{
	struct ts_process_row row = ts_process_none;
	int64_t id = find(&entities->processes, (uint64_t)host, key);

	if (id)
		return id;
	row.source = entities->source;
	row.host = host;
	row.pid = pid;
	return add(entities, &entities->processes, (uint64_t)host, key, (int64_t *)&row);
}

int64_t ts_entities_thread(struct ts_entities *entities, int64_t process, uint64_t key, int64_t tid)
{
	struct ts_thread_row row = ts_thread_none;
	int64_t id = find(&entities->threads, (uint64_t)process, key);

	if (id)
		return id;
	row.process = process;
	row.tid = tid;
	return add(entities, &entities->threads, (uint64_t)process, key, (int64_t *)&row);
}

int64_t ts_entities_device(struct ts_entities *entities, int64_t host, uint64_t key, int64_t number)
{
	struct ts_device_row row = ts_device_none;
	int64_t id = find(&entities->devices, (uint64_t)host, key);

	if (id)
		return id;
	row.source = entities->source;
	row.host = host;
	row.number = number;
	return add(entities, &entities->devices, (uint64_t)host, key, (int64_t *)&row);
}

int64_t ts_entities_stream(struct ts_entities *entities, int64_t device, uint64_t key,
			   int64_t number)
{
	struct ts_stream_row row = ts_stream_none;
	int64_t id = find(&entities->streams, (uint64_t)device, key);

	if (id)
		return id;
	row.device = device;
	row.number = number;
	return add(entities, &entities->streams, (uint64_t)device, key, (int64_t *)&row);
}

/* ---- rows ---- */

static void *change(struct ts_entity_list *list, int64_t id)
{
	size_t index = (size_t)(id - list->first_id);

	list->changed[index] = true;
	return list->rows + index * list->row_bytes;
}

struct ts_source_row *ts_entities_source_row(struct ts_entities *entities)
{
	entities->source_changed = true;
	return &entities->source_row;
}

struct ts_host_row *ts_entities_host_row(struct ts_entities *entities, int64_t id)
{
	return change(&entities->hosts, id);
}

struct ts_process_row *ts_entities_process_row(struct ts_entities *entities, int64_t id)
{
	return change(&entities->processes, id);
}

struct ts_thread_row *ts_entities_thread_row(struct ts_entities *entities, int64_t id)
{
	return change(&entities->threads, id);
}

struct ts_device_row *ts_entities_device_row(struct ts_entities *entities, int64_t id)
{
	return change(&entities->devices, id);
}

struct ts_stream_row *ts_entities_stream_row(struct ts_entities *entities, int64_t id)
{
	return change(&entities->streams, id);
}

void ts_entities_meta(struct ts_entities *entities, const char *key, const char *json,
		      size_t length)
{
	struct ts_meta_row row = ts_meta_none;

	row.source = entities->source;
	row.key = ts_import_string(entities->import, key, strlen(key));
	row.value = ts_import_string(entities->import, json, length);
	ts_writer_add(entities->writer, TS_TABLE_META, &row, NULL);
}
