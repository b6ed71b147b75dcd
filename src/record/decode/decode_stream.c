/* SPDX-License-Identifier: Apache-2.0 */
/* Device queues: identified by the numbers that an area uses, and their rows. */
#include <assert.h>

#include "record/decode/decode_internal.h"

static uint64_t stream_key(const struct decode_stream *stream)
{
	return (uint64_t)stream->context << 32 | stream->device;
}

static void stream_row(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_stream *stream)
{
	const struct decode_device *device = decode_use_device(decoder, area, stream->device);
	struct ts_stream_row row = ts_stream_none;

	row.id = stream->id;
	row.device = device ? device->id : 0;
	row.number = stream->stream;
	row.priority = stream->priority;
	row.out_of_order = stream->out_of_order;
	if (stream->name[0])
		row.name = decode_fixed(decoder, stream->name, sizeof(stream->name));
	ts_writer_add(decoder->writer, TS_TABLE_STREAM, &row, NULL);
	stream->epoch = decoder->epoch;
}

/* Forgets the older half: programs may create any number of queues. */
static void forget_streams(struct ts_decoder *decoder, struct decode_area *area)
{
	size_t kept = area->stream_count / 2;

	if (!kept)
		return;
	assert(area->streams);
	memmove(area->streams, area->streams + (area->stream_count - kept),
		kept * sizeof(*area->streams));
	area->stream_count = kept;
	ts_pairmap_clear(&area->stream_index);
	for (size_t i = 0; i < kept; i++)
		if (ts_pairmap_put(&area->stream_index, stream_key(&area->streams[i]),
				   area->streams[i].stream, i))
			decode_no_memory(decoder);
}

bool decode_add_stream(struct ts_decoder *decoder, struct decode_area *area,
		       const struct decode_stream *stream)
{
	if (area->stream_count >= DECODE_AREA_STREAMS)
		forget_streams(decoder, area);
	if (ts_grow_array((void **)&area->streams, &area->stream_capacity, area->stream_count + 1,
			  sizeof(*area->streams)) ||
	    ts_pairmap_put(&area->stream_index, stream_key(stream), stream->stream,
			   area->stream_count)) {
		decode_no_memory(decoder);
		return false;
	}
	area->streams[area->stream_count++] = *stream;
	return true;
}

static struct decode_stream *find_stream(const struct decode_area *area,
					 const struct decode_stream *like)
{
	uint64_t index;

	return ts_pairmap_get(&area->stream_index, stream_key(like), like->stream, &index)
		       ? &area->streams[index]
		       : NULL;
}

struct decode_stream *decode_use_stream(struct ts_decoder *decoder, struct decode_area *area,
					uint32_t device, uint32_t stream, uint32_t context)
{
	struct decode_stream like = {
		.device = device, .stream = stream, .context = context, .priority = TS_ABSENT
	};
	struct decode_stream *found = find_stream(area, &like);

	if (!found) {
		like.id = decoder->next_stream;
		if (!decode_add_stream(decoder, area, &like))
			return NULL;
		decoder->next_stream++;
		found = &area->streams[area->stream_count - 1];
	}
	if (TS_UNLIKELY(found->epoch != decoder->epoch))
		stream_row(decoder, area, found);
	return found;
}

bool decode_stream_record(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_cursor *cursor)
{
	struct ts_live_stream about;
	struct decode_stream *stream;
	const char *name;
	uint32_t length;

	decode_take(cursor, &about, sizeof(about));
	name = decode_take_string(cursor, &length);
	if (cursor->bad)
		return false;
	stream = decode_use_stream(decoder, area, about.device & TS_LIVE_DEVICE_MASK, about.stream,
				   about.context);
	if (!stream)
		return true;
	stream->priority = about.priority;
	stream->out_of_order = about.out_of_order & 1;
	memset(stream->name, 0, sizeof(stream->name));
	length = (uint32_t)TS_MIN(length, sizeof(stream->name) - 1);
	memcpy(stream->name, name, ts_utf8_valid_prefix(name, length));
	stream_row(decoder, area, stream);
	return true;
}
