/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto protobuf: header packets, then all events in time order. Memory does not grow with the
 * trace.
 */
#include "export/perfetto/perfetto_export.h"

#include "base/memory.h"
#include "export/export.h"

/* All packets belong to one sequence. */
#define SEQUENCE 1
#define NEEDS_STATE 2
#define STATE_CLEARED 1
#define PACKET_TAG (1 << 3 | TS_PROTO_BYTES)
/* Clocks of ClockSnapshot: boot time, the default of packets, and the time of day. */
#define DEFAULTS_OF_SAMPLES 12
#define TIMEBASE_CPU_CLOCK 1
#define CLOCK_OF_FILE 6
#define CLOCK_OF_DAY 1
#define YEAR_2000_NS INT64_C(946684800000000000)

int ts_pf_flush(struct ts_pf_export *x, size_t unless_below)
{
	if (x->out.failed || x->event.failed || x->interned.failed)
		return ts_error_set(x->err, TS_ENOMEM, "no memory");
	return x->out.length < unless_below ? TS_OK : ts_pf_write(x);
}

void ts_pf_put_interned(struct ts_pf_export *x)
{
	size_t open = ts_proto_open(&x->out, 1);

	ts_proto_put_uint(&x->out, TS_PF_SEQUENCE, SEQUENCE);
	ts_proto_put_uint(&x->out, TS_PF_FLAGS, NEEDS_STATE);
	ts_proto_put_bytes(&x->out, TS_PF_INTERNED, x->interned.data, x->interned.length);
	ts_proto_close(&x->out, open);
	x->interned.length = 0;
}

static unsigned char *put_sequence(unsigned char *to)
{
	static const unsigned char both[] = { TS_PF_SEQUENCE << 3, SEQUENCE, TS_PF_FLAGS << 3,
					      NEEDS_STATE };

	memcpy(to, both, sizeof(both));
	return to + sizeof(both);
}

void ts_pf_put_packet(struct ts_pf_export *x, int64_t time, enum ts_pf_packet field,
		      const void *native, size_t native_bytes)
{
	unsigned char head[40], *to = head, *begin;
	size_t inner = field ? x->event.length : 0, bytes;

	if (x->interned.length)
		ts_pf_put_interned(x);
	if (time != TS_ABSENT)
		to = ts_pf_uint(to, TS_PF_TIMESTAMP, ts_pf_time(x, time));
	to = put_sequence(to);
	if (field)
		to = ts_pf_varint(ts_pf_tag(to, field, TS_PROTO_BYTES), inner);
	bytes = (size_t)(to - head) + inner + native_bytes;
	if (ts_text_reserve(&x->out, sizeof(head) + 16 + inner + native_bytes)) {
		begin = (unsigned char *)x->out.data + x->out.length;
		*begin = PACKET_TAG;
		begin = ts_pf_varint(begin + 1, bytes);
		/* Copies the full array: a constant size needs no call. */
		memcpy(begin, head, sizeof(head));
		begin += to - head;
		if (inner)
			memcpy(begin, x->event.data, inner);
		if (native_bytes)
			memcpy(begin + inner, native, native_bytes);
		x->out.length = (size_t)((char *)begin - x->out.data) + inner + native_bytes;
	}
	x->event.length = 0;
}

void ts_pf_put_end(struct ts_pf_export *x, int64_t time, uint64_t track)
{
	unsigned char *packet, *event, *to;

	/* All lengths fit in one byte. */
	if (!ts_text_reserve(&x->out, 64))
		return;
	packet = (unsigned char *)x->out.data + x->out.length;
	to = ts_pf_uint(packet + 2, TS_PF_TIMESTAMP, ts_pf_time(x, time));
	event = put_sequence(to);
	to = ts_pf_put_head(event + 2, TS_PF_END, track);
	event[0] = TS_PF_TRACK_EVENT << 3 | TS_PROTO_BYTES;
	event[1] = (unsigned char)(to - event - 2);
	packet[0] = PACKET_TAG;
	packet[1] = (unsigned char)(to - packet - 2);
	x->out.length += (size_t)(to - packet);
}

/*
 * Time 0 of the file: slightly before the first row, because Perfetto's times cannot be negative.
 */
static void choose_base(struct ts_pf_export *x)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < ts_reader_chunk_count(x->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(x->reader, i);

		if (chunk->min_start != TS_ABSENT)
			first = TS_MIN(first, chunk->min_start);
	}
	x->base_ns = first == INT64_MAX ? 0 : first == INT64_MIN ? first : first - 1;
}

/* The first packet identifies the file and starts the sequence. */
static void put_header(struct ts_pf_export *x)
{
	size_t open = ts_proto_open(&x->out, 1), native, defaults, inner, timebase;

	ts_proto_put_uint(&x->out, TS_PF_SEQUENCE, SEQUENCE);
	ts_proto_put_uint(&x->out, TS_PF_FLAGS, STATE_CLEARED);
	ts_proto_put_uint(&x->out, TS_PF_FIRST_ON_SEQUENCE, 1);
	/* What samples count; readers ignore samples without it. */
	defaults = ts_proto_open(&x->out, TS_PF_DEFAULTS);
	inner = ts_proto_open(&x->out, DEFAULTS_OF_SAMPLES);
	timebase = ts_proto_open(&x->out, 1);
	ts_proto_put_uint(&x->out, 4, TIMEBASE_CPU_CLOCK);
	ts_proto_close(&x->out, timebase);
	ts_proto_close(&x->out, inner);
	ts_proto_close(&x->out, defaults);
	native = ts_proto_open(&x->out, TS_PF_NATIVE);
	ts_proto_put_uint(&x->out, 1, 1);
	ts_proto_put_sint(&x->out, 2, x->base_ns);
	ts_proto_close(&x->out, native);
	ts_proto_close(&x->out, open);
}

/*
 * Relation of the file's time to the time of day, if the trace has it: trace time is time of day
 * then.
 */
static int put_clock(struct ts_pf_export *x)
{
	struct ts_batch *batch;
	bool is_tied = false;
	int result = ts_batch_new(&batch, x->reader, x->err);

	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++) {
		const int64_t *reference;

		if (ts_reader_chunk(x->reader, i)->table != TS_TABLE_CLOCK_SYNC)
			continue;
		result = ts_batch_read(batch, i, TS_MASK_OF(clock_sync, reference), x->err);
		reference = batch->columns[TS_COLUMN_OF(clock_sync, reference)];
		for (uint32_t row = 0; !result && row < batch->rows; row++)
			is_tied |= reference[row] >= YEAR_2000_NS;
	}
	ts_batch_free(batch);
	if (result || !is_tied || x->base_ns < 0)
		return result;
	for (int i = 0; i < 2; i++) {
		size_t open = ts_proto_open(&x->event, 1);

		ts_proto_put_uint(&x->event, 1, i ? CLOCK_OF_DAY : CLOCK_OF_FILE);
		ts_proto_put_uint(&x->event, 2, i ? (uint64_t)x->base_ns + 1 : 1);
		ts_proto_close(&x->event, open);
	}
	ts_pf_put_packet(x, TS_ABSENT, TS_PF_CLOCK_SNAPSHOT, NULL, 0);
	return TS_OK;
}

/* Flow points without a matching span. */
static int put_waiting(struct ts_pf_export *x)
{
	for (size_t i = 0; i < x->group_count; i++)
		if (ts_pf_flows_of(&x->groups[i]) && ts_pf_put_flows(x, &x->groups[i]))
			return ts_error_set(x->err, TS_ENOMEM, "no memory");
	return TS_OK;
}

static int put_file(struct ts_pf_export *x)
{
	int result = ts_pf_threads_start(x);

	if (!result)
		result = ts_pf_intern_init(x);
	choose_base(x);
	put_header(x);
	if (!result)
		result = put_clock(x);
	if (!result)
		result = ts_pf_put_tables(x);
	if (!result)
		ts_pf_put_gpus(x);
	if (!result)
		result = ts_pf_tracks_init(x);
	if (!result)
		result = ts_pf_walk(x);
	if (!result)
		result = put_waiting(x);
	if (!result)
		result = ts_reader_status(x->reader, x->err);
	if (!result)
		result = ts_pf_flush(x, 0);
	return result ? result : ts_pf_write_wait(x);
}

int ts_export_perfetto(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		       struct ts_error *err)
{
	struct ts_export_options all = ts_export_options(options);
	struct ts_error local_err = { 0 };
	struct ts_pf_export x = {
		.chrome = { .reader = reader,
			    .fd = fd,
			    .options = &all,
			    .err = err ? err : &local_err },
		.reader = reader,
		.fd = fd,
		.flags = all.flags,
		.err = err ? err : &local_err,
	};
	int result = put_file(&x);

	ts_pf_threads_stop(&x);
	ts_pf_tracks_release(&x);
	ts_pf_shapes_release(&x);
	ts_pf_intern_release(&x);
	ts_map_release(&x.stacks);
	ts_map_release(&x.frames);
	ts_map_release(&x.mappings);
	ts_map_release(&x.specifications);
	ts_stack_list_release(&x.path);
	ts_text_release(&x.out);
	ts_text_release(&x.event);
	ts_text_release(&x.interned);
	ts_text_release(&x.text);
	ts_text_release(&x.beside);
	return result;
}
