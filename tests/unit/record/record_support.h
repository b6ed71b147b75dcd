/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by tests of decoder and recording: ring bytes and dictionaries as a target writes them,
 * blocks around them, and the contents of the resulting trace.
 */
#ifndef TS_TESTS_UNIT_RECORD_RECORD_SUPPORT_H
#define TS_TESTS_UNIT_RECORD_RECORD_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "live/area.h"
#include "live/journal.h"

#include "unit/runner.h"

#define SUPPORT __attribute__((unused)) static

#define AREA 77u
#define PID 4242u
#define STARTED 1000000u /* counter; one count is one nanosecond here */

/* A new folder, which remove_folder() deletes with its contents. */
SUPPORT char folder[64];

SUPPORT void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command)) /* NOLINT: a name that mkdtemp() made */
		perror(command);
}

/* The same name gives the same pointer, which stays valid. */
SUPPORT const char *file_in_folder(const char *name)
{
	static char paths[16][128];
	static unsigned int count;

	for (unsigned int i = 0; i < count; i++)
		if (strcmp(strrchr(paths[i], '/') + 1, name) == 0)
			return paths[i];
	TS_CHECK(count < TS_ARRAY_SIZE(paths));
	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/ts_record_XXXXXX");
		TS_CHECK(mkdtemp(folder) != NULL);
		atexit(remove_folder);
	}
	snprintf(paths[count], sizeof(paths[count]), "%s/%s", folder, name);
	return paths[count++];
}

/* ---- records ---- */

SUPPORT void put_words(struct ts_text *ring, const uint64_t *words, size_t count)
{
	ts_text_append(ring, words, count * sizeof(*words));
	TS_CHECK(!ts_text_status(ring));
}

SUPPORT void put_thread(struct ts_text *ring, uint64_t counter, uint32_t serial, uint32_t tid,
			uint64_t dropped, const char *name)
{
	struct ts_live_thread_record record = { .head = { .words = sizeof(record) / 8,
							  .kind = TS_LIVE_THREAD },
						.counter = counter,
						.tid = tid,
						.serial = serial,
						.dropped = dropped };

	memcpy(record.name, name, strnlen(name, sizeof(record.name)));
	ts_text_append(ring, &record, sizeof(record));
}

/* A record with words and values after its counter. */
SUPPORT void put_record(struct ts_text *ring, unsigned int kind, unsigned int flags, uint32_t site,
			uint64_t counter, const uint64_t *words, size_t count)
{
	uint64_t first[2] = { ts_live_head(2 + count, kind, flags, site), counter };

	put_words(ring, first, 2);
	put_words(ring, words, count);
}

/* The first word of a struct ts_live_subject. */
SUPPORT uint64_t subject_word(unsigned int kind, uint32_t device, uint32_t pid)
{
	struct ts_live_subject subject = { .pid = pid,
					   .device_kind = ts_live_device_kind(device, kind) };
	uint64_t word;

	memcpy(&word, &subject, sizeof(word));
	return word;
}

SUPPORT void put_string(struct ts_text *words, const char *text, size_t length)
{
	uint32_t bytes = (uint32_t)length;

	ts_text_append(words, &bytes, sizeof(bytes));
	ts_text_append(words, text, length);
	while (words->length % 8)
		ts_text_append_char(words, 0);
}

SUPPORT void put_instant(struct ts_text *ring, uint32_t site, uint64_t counter, uint64_t value)
{
	put_record(ring, TS_LIVE_INSTANT, 0, site, counter, &value, 1);
}

/* ---- dictionaries ---- */

struct site_field {
	const char *key;
	uint16_t type;
};

SUPPORT void put_site(struct ts_text *dictionary, unsigned int kind, const char *name,
		      const char *category, const struct site_field *fields, size_t count)
{
	size_t at = dictionary->length;
	struct ts_live_site site = { .kind = (uint8_t)kind,
				     .fields = (uint8_t)count,
				     .name_bytes = (uint16_t)strlen(name),
				     .category_bytes = (uint16_t)strlen(category) };
	uint32_t bytes;

	ts_text_append(dictionary, &site, sizeof(site));
	for (size_t i = 0; i < count; i++) {
		struct ts_live_site_field field = { .key_bytes = (uint16_t)strlen(fields[i].key),
						    .type = fields[i].type };

		ts_text_append(dictionary, &field, sizeof(field));
	}
	ts_text_append_str(dictionary, name);
	ts_text_append_str(dictionary, category);
	for (size_t i = 0; i < count; i++)
		ts_text_append_str(dictionary, fields[i].key);
	while (dictionary->length % 8 || dictionary->length - at < TS_LIVE_SITE_LEAST)
		ts_text_append_char(dictionary, 0);
	bytes = (uint32_t)(dictionary->length - at);
	memcpy(dictionary->data + at, &bytes, sizeof(bytes));
}

/* Site 1: an instant with an integer. Site 2: a span without arguments. */
SUPPORT void put_plain_sites(struct ts_text *dictionary)
{
	static const struct site_field value = { "value", TS_ARG_INT };

	put_site(dictionary, TS_LIVE_INSTANT, "tick", "test", &value, 1);
	put_site(dictionary, TS_LIVE_SPAN, "work", "test", NULL, 0);
}

/* ---- blocks ---- */

SUPPORT struct ts_block_open plain_open(void)
{
	struct ts_block_open open = { .version = TS_JOURNAL_VERSION,
				      .counter_mult = UINT64_C(1) << 32,
				      .trace_start_ns = 5000000000,
				      .clock = TS_LIVE_CLOCK_COUNTER,
				      .started_counter = STARTED,
				      .started_monotonic_ns = STARTED,
				      .processors = 2,
				      .host = "box",
				      .system = "Linux test",
				      .recorder = "tracesmith test" };

	memset(open.trace_id, 7, sizeof(open.trace_id));
	return open;
}

SUPPORT struct ts_block_area plain_area(uint64_t area)
{
	struct ts_block_area about = {
		.control = { .version = TS_LIVE_VERSION,
			     .pid = PID,
			     .start_time = 99,
			     .area_id = area,
			     .image = 5,
			     .clock = TS_LIVE_CLOCK_COUNTER,
			     .created = { STARTED + 1000, STARTED + 1000, 1 },
			     .enabled = TS_LIVE_ENABLED,
			     .step_open = TS_ABSENT,
			     .name = "target",
			     .command = "target\0--all" },
		.pid = PID,
		.parent = 1,
		.seen_counter = STARTED + 2000,
	};

	return about;
}

SUPPORT int put_block(const struct ts_block_sink *sink, unsigned int type, uint64_t area,
		      const void *payload, size_t bytes)
{
	struct ts_block block = { .type = (uint16_t)type, .bytes = (uint32_t)bytes, .area = area };

	return sink->append(sink->context, &block, payload, NULL);
}

SUPPORT int put_dictionary(const struct ts_block_sink *sink, uint64_t area,
			   const struct ts_text *dictionary, uint64_t from)
{
	struct ts_block block = { .type = TS_BLOCK_DICTIONARY,
				  .bytes = (uint32_t)(dictionary->length - from),
				  .area = area,
				  .from = from,
				  .to = dictionary->length };

	return sink->append(sink->context, &block, dictionary->data + from, NULL);
}

/* A drain's view of a ring. */
struct ring_side {
	uint64_t position, events, dropped;
};

/* Passes on the bytes, which hold `events` events, and empties them. */
SUPPORT int put_ring(const struct ts_block_sink *sink, uint64_t area, uint32_t ring,
		     struct ring_side *side, struct ts_text *bytes, uint64_t events)
{
	struct ts_block block = { .type = TS_BLOCK_RING,
				  .bytes = (uint32_t)bytes->length,
				  .ring = ring,
				  .area = area,
				  .from = side->position,
				  .to = side->position + bytes->length,
				  .events = side->events + events,
				  .dropped = side->dropped };
	int result = sink->append(sink->context, &block, bytes->data, NULL);

	if (!result) {
		side->position = block.to;
		side->events = block.events;
		ts_text_clear(bytes);
	}
	return result;
}

SUPPORT int put_area(const struct ts_block_sink *sink, uint64_t area)
{
	struct ts_block_area about = plain_area(area);

	return put_block(sink, TS_BLOCK_AREA, area, &about, sizeof(about));
}

SUPPORT int put_end(const struct ts_block_sink *sink, uint64_t area, uint64_t counter)
{
	struct ts_block_end end = { .ended_counter = counter, .exit_status = 0 };

	return put_block(sink, TS_BLOCK_END, area, &end, sizeof(end));
}

/* ---- traces ---- */

/* A cursor over the rows of one table. */
struct rows {
	struct ts_reader *reader;
	struct ts_batch *batch;
	unsigned int table;
	size_t chunk;
	uint32_t row;
};

SUPPORT struct rows rows_open(const char *path, unsigned int table)
{
	struct rows rows = { .table = table };
	struct ts_error err;

	if (ts_reader_open(&rows.reader, path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(ts_batch_new(&rows.batch, rows.reader, NULL), 0);
	return rows;
}

SUPPORT void rows_close(struct rows *rows)
{
	ts_batch_free(rows->batch);
	ts_reader_close(rows->reader);
}

SUPPORT bool rows_next(struct rows *rows, void *ret_row)
{
	while (rows->batch->rows == rows->row) {
		struct ts_error err;

		do {
			if (rows->chunk == ts_reader_chunk_count(rows->reader))
				return false;
		} while (ts_reader_chunk(rows->reader, rows->chunk++)->table != rows->table);
		if (ts_batch_read(rows->batch, rows->chunk - 1, TS_MASK_ALL, &err))
			ts_test_fail(__FILE__, __LINE__, "%s", err.message);
		rows->row = 0;
	}
	ts_batch_row(rows->batch, rows->row++, ret_row);
	return true;
}

SUPPORT const char *rows_text(struct rows *rows, int64_t string)
{
	return ts_reader_string(rows->reader, string).data;
}

/* The first argument of the last row. */
SUPPORT int64_t rows_value(const struct rows *rows, uint32_t number)
{
	return rows->batch->arg_values[rows->batch->arg_offsets[rows->row - 1] + number];
}

SUPPORT uint64_t count_rows(const char *path, unsigned int table)
{
	struct rows rows = rows_open(path, table);
	uint64_t count = ts_reader_rows(rows.reader, (enum ts_table_id)table);

	rows_close(&rows);
	return count;
}

/* Losses of events with that reason; NULL: all. */
SUPPORT uint64_t count_lost(const char *path, const char *reason)
{
	struct rows rows = rows_open(path, TS_TABLE_LOSS);
	struct ts_loss_row row;
	uint64_t count = 0;

	while (rows_next(&rows, &row))
		if (strcmp(rows_text(&rows, row.what), "events") == 0 &&
		    (!reason || strncmp(rows_text(&rows, row.reason), reason, strlen(reason)) == 0))
			count += (uint64_t)row.count;
	rows_close(&rows);
	return count;
}

SUPPORT void print_finding(void *context, const struct ts_verify_finding *finding)
{
	fprintf(stderr, "%s: chunk %llu at byte %llu: %s\n", (const char *)context,
		(unsigned long long)finding->chunk, (unsigned long long)finding->offset,
		finding->message);
}

SUPPORT void check_finished(const char *path)
{
	char copy[128];

	snprintf(copy, sizeof(copy), "%s", path);
	TS_CHECK_INT(ts_verify(path, print_finding, NULL, copy, NULL), 0);
}

#endif
