/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by tests of accelerator records and command streams: a decoder on its own trace, which a
 * successor may replace, and records as a backend writes them.
 */
#ifndef TS_TESTS_UNIT_RECORD_DECODE_DECODE_SUPPORT_H
#define TS_TESTS_UNIT_RECORD_DECODE_DECODE_SUPPORT_H

#include "record/decode/decoder.h"

#include "unit/record/record_support.h"

#define OTHER_AREA 78u

struct fixture {
	const char *path;
	struct ts_writer *writer;
	struct ts_decoder *decoder;
	struct ts_block_sink sink;
	struct ts_block_open open;
	struct ts_text ring;
	struct ring_side sides[2];
	uint64_t counter, events;
	struct ts_decoder *next; /* while its state is being restored */
	struct ts_decoder_options options;
};

SUPPORT int decode(void *context, struct ts_block *block, const void *payload, struct ts_error *err)
{
	struct fixture *fixture = context;

	return ts_decoder_block(fixture->decoder, block, payload, err);
}

SUPPORT void open_decoder(struct fixture *fixture)
{
	TS_CHECK_INT(ts_decoder_new(&fixture->decoder, &fixture->options, NULL), 0);
	TS_CHECK_INT(ts_decoder_set_writer(fixture->decoder, fixture->writer, false, "t"), 0);
	TS_CHECK_INT(
		put_block(&fixture->sink, TS_BLOCK_OPEN, 0, &fixture->open, sizeof(fixture->open)),
		0);
}

SUPPORT void open_file(struct fixture *fixture, const char *name)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };

	fixture->path = file_in_folder(name);
	TS_CHECK_INT(ts_writer_open(&fixture->writer, fixture->path, &options, NULL), 0);
}

/* Two areas: a target's, and another process's. */
SUPPORT void start_with(struct fixture *fixture, struct ts_spools *spools)
{
	struct ts_block_area other = plain_area(OTHER_AREA);

	memset(fixture, 0, sizeof(*fixture));
	fixture->options.spools = spools;
	fixture->counter = STARTED + 3000;
	fixture->open = plain_open();
	fixture->sink = (struct ts_block_sink){ .append = decode, .context = fixture };
	open_file(fixture, "t.sbt");
	open_decoder(fixture);
	TS_CHECK_INT(put_area(&fixture->sink, AREA), 0);
	other.pid = other.control.pid = PID + 1;
	other.control.image = 6;
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_AREA, OTHER_AREA, &other, sizeof(other)),
		     0);
	put_thread(&fixture->ring, fixture->counter++, 1, PID, 0, "main");
}

SUPPORT void start(struct fixture *fixture)
{
	start_with(fixture, NULL);
}

SUPPORT void drain_area(struct fixture *fixture, uint64_t area)
{
	struct ring_side *side = &fixture->sides[area == OTHER_AREA];

	TS_CHECK_INT(put_ring(&fixture->sink, area, 0, side, &fixture->ring, fixture->events), 0);
	fixture->events = 0;
}

SUPPORT void drain(struct fixture *fixture)
{
	drain_area(fixture, AREA);
}

SUPPORT struct ts_decoder_counts counts(const struct fixture *fixture)
{
	struct ts_decoder_counts found;

	ts_decoder_counts(fixture->decoder, &found);
	return found;
}

SUPPORT void finish(struct fixture *fixture)
{
	TS_CHECK_INT(ts_decoder_finish(fixture->decoder), 0);
	TS_CHECK_INT(ts_writer_finish(fixture->writer, NULL), 0);
	ts_decoder_free(fixture->decoder);
	ts_writer_close(fixture->writer);
	ts_text_release(&fixture->ring);
	check_finished(fixture->path);
}

SUPPORT int give_next(void *context, struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct fixture *fixture = context;

	return ts_decoder_block(fixture->next, block, payload, err);
}

/* A new decoder continues with the state of this one, in the same file. */
SUPPORT void succeed(struct fixture *fixture)
{
	struct ts_block_sink sink = { .append = give_next, .context = fixture };
	struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(fixture->open) };
	struct ts_decoder_counts before = counts(fixture), after;

	TS_CHECK_INT(ts_decoder_seal(fixture->decoder), 0);
	TS_CHECK_INT(ts_writer_flush(fixture->writer), 0);
	fixture->open.trace_bytes = ts_writer_chunk_bytes(fixture->writer);
	TS_CHECK_INT(ts_decoder_new(&fixture->next, &fixture->options, NULL), 0);
	ts_decoder_set_writer(fixture->next, fixture->writer, false, "t");
	TS_CHECK_INT(ts_decoder_block(fixture->next, &block, &fixture->open, NULL), 0);
	TS_CHECK_INT(ts_decoder_save_state(fixture->decoder, &sink, NULL), 0);
	ts_decoder_counts(fixture->next, &after);
	TS_CHECK(memcmp(&before, &after, sizeof(before)) == 0);
	ts_decoder_free(fixture->decoder);
	fixture->decoder = fixture->next;
}

/* An anchor of the host's clock. */
SUPPORT void put_anchor(struct fixture *fixture, uint64_t counter, int64_t monotonic_ns)
{
	struct ts_block_clock clock = { .anchor = { counter, monotonic_ns, 0 } };

	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_CLOCK, 0, &clock, sizeof(clock)), 0);
}

SUPPORT void put_window(struct fixture *fixture, uint32_t action, uint64_t counter)
{
	struct ts_block_window window = { .counter = counter,
					  .action = action,
					  .serial = 1,
					  .step = TS_ABSENT,
					  .cause = "command" };

	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_WINDOW, AREA, &window, sizeof(window)), 0);
}

/* ---- records ---- */

SUPPORT void put_fields(struct fixture *fixture, unsigned int kind, unsigned int flags,
			const struct ts_text *words)
{
	put_record(&fixture->ring, kind, flags, 0, fixture->counter++,
		   (const uint64_t *)(const void *)words->data, words->length / 8);
	fixture->events += ts_live_kind_is_event(kind) != 0;
}

/* A payload of live_records.h. */
SUPPORT void put_fixed(struct ts_text *words, const void *payload, size_t bytes)
{
	ts_text_append(words, payload, bytes);
	TS_CHECK(!ts_text_status(words));
}

/* Name and category of the dynamic form, without arguments. */
SUPPORT void put_names(struct ts_text *words, const char *name, const char *category)
{
	uint64_t none = 0;

	put_string(words, name, strlen(name));
	put_string(words, category, strlen(category));
	put_words(words, &none, 1);
}

SUPPORT void put_call(struct fixture *fixture, const char *name, uint64_t ticks,
		      uint64_t correlation, int64_t result)
{
	struct ts_live_call fixed = { ticks, correlation, result };
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &fixed, sizeof(fixed));
	put_names(&words, name, "opencl");
	put_fields(fixture, TS_LIVE_CALL, TS_LIVE_FLAG_TICKS, &words);
}

struct op {
	const char *name;
	uint64_t correlation, kind, copy_kind;
	uint32_t device, stream, context;
	int64_t queued, submitted, start, end;
	uint32_t grid[3], block[3];
	int64_t bytes;
	const uint64_t *waits;
	uint64_t wait_count, more_waits;
};

SUPPORT uint64_t pair(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

SUPPORT void put_op(struct fixture *fixture, const struct op *op)
{
	struct ts_live_gpu_op fixed = {
		.correlation = op->correlation,
		.device_kind = ts_live_device_kind(op->device, (unsigned int)op->kind),
		.copy_kind = (uint8_t)op->copy_kind,
		.waits = (uint8_t)op->wait_count,
		.unlisted_waits = (uint16_t)op->more_waits,
		.stream = op->stream,
		.context = op->context,
		.queued = op->queued,
		.submitted = op->submitted,
		.start = op->start,
		.end = op->end,
		.grid = { op->grid[0], op->grid[1], op->grid[2] },
		.block = { op->block[0], op->block[1], op->block[2] },
		.bytes = op->bytes,
	};
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &fixed, sizeof(fixed));
	put_words(&words, op->waits, op->wait_count);
	put_names(&words, op->name, "opencl");
	put_fields(fixture, TS_LIVE_GPU_OP, 0, &words);
}

SUPPORT void put_stream(struct fixture *fixture, uint32_t device, uint32_t stream, uint32_t context,
			int64_t priority, uint64_t flags, const char *name)
{
	struct ts_live_stream fixed = { .device = device,
					.stream = stream,
					.context = context,
					.priority = priority,
					.out_of_order = flags };
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &fixed, sizeof(fixed));
	put_string(&words, name, strlen(name));
	put_fields(fixture, TS_LIVE_STREAM_IS, 0, &words);
}

SUPPORT void put_device_clock(struct fixture *fixture, uint32_t device, uint64_t counter,
			      int64_t device_ns, int64_t uncertainty_ns)
{
	struct ts_live_device_clock fixed = { .device = device,
					      .counter = counter,
					      .device_ns = device_ns,
					      .uncertainty_ns = uncertainty_ns };
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &fixed, sizeof(fixed));
	put_string(&words, "bracket", 7);
	put_fields(fixture, TS_LIVE_DEVICE_CLOCK, 0, &words);
}

SUPPORT void put_texts(struct fixture *fixture, unsigned int kind, const uint64_t *leading,
		       size_t count, const char *first, const char *second)
{
	TS_SCOPED(ts_text) words = { 0 };

	put_words(&words, leading, count);
	put_string(&words, first, strlen(first));
	if (second)
		put_string(&words, second, strlen(second));
	put_fields(fixture, kind, 0, &words);
}

SUPPORT void put_object(struct fixture *fixture, uint64_t number, unsigned int kind,
			uint64_t parent, int64_t bytes, uint64_t blob, const char *name,
			const char *details)
{
	struct ts_live_object fixed = { number, kind, parent, 0x7f000000 + number, bytes, blob };

	put_texts(fixture, TS_LIVE_OBJECT, (const uint64_t *)(const void *)&fixed,
		  TS_LIVE_WORDS(fixed), name, details);
}

SUPPORT void put_gone(struct fixture *fixture, uint64_t number)
{
	put_record(&fixture->ring, TS_LIVE_GONE, 0, 0, fixture->counter++, &number, 1);
}

SUPPORT void put_command(struct fixture *fixture, const struct ts_live_command *command,
			 const char *details)
{
	put_texts(fixture, TS_LIVE_COMMAND, (const uint64_t *)(const void *)command,
		  TS_LIVE_WORDS(*command), details, NULL);
}

SUPPORT void put_blob_part(struct fixture *fixture, uint64_t number, uint64_t bytes,
			   uint64_t offset, const void *data, uint64_t count)
{
	struct ts_live_blob fixed = { number, bytes, offset, count };
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &fixed, sizeof(fixed));
	ts_text_append(&words, data, count);
	while (words.length % 8)
		ts_text_append_char(&words, 0);
	put_fields(fixture, TS_LIVE_BLOB, 0, &words);
}

/* The entire blob; drains in between, since a ring is bounded. */
SUPPORT void put_blob(struct fixture *fixture, uint64_t number, const char *data, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += TS_LIVE_BLOB_PART) {
		put_blob_part(fixture, number, bytes, at, data + at,
			      TS_MIN(bytes - at, TS_LIVE_BLOB_PART));
		if (fixture->ring.length > (4 << 20))
			drain(fixture);
	}
}

/* ---- rows ---- */

/* Sum of the loss rows of that kind whose reason begins with `reason`. */
SUPPORT int64_t losses_of(const char *path, const char *what, const char *reason)
{
	struct rows rows = rows_open(path, TS_TABLE_LOSS);
	struct ts_loss_row row;
	int64_t count = 0;

	while (rows_next(&rows, &row))
		if (strcmp(rows_text(&rows, row.what), what) == 0 &&
		    strncmp(rows_text(&rows, row.reason), reason, strlen(reason)) == 0)
			count += row.count;
	rows_close(&rows);
	return count;
}

#endif
