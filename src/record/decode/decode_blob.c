/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes blobs of command streams into rows of at most 1 MiB, each of which continues the previous
 * one, so that memory stays bounded whatever size a program claims. Equal rows are stored once: the
 * key of a row is its predecessor, the hash of the content so far, and a hash of its bytes that has
 * a secret key, so that no program can forge another one's content.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"

#define FIRST_SLOTS 256u

/* ---- rows ---- */

/* The row of a piece, existing or new. 0: the writer failed. */
static uint32_t piece_row(struct ts_decoder *decoder, const struct decode_half_blob *half,
			  const char *data, size_t bytes)
{
	uint64_t hash = ts_hash_stream_digest(&half->hash), *row;
	uint64_t first = hash ^ ts_hash_mix64(half->previous + 1);
	uint64_t second = ts_hash_keyed(&decoder->blob_key, data, bytes);
	bool is_new;

	/* Bounds memory: forgotten content is stored again if it recurs. */
	if (ts_pairmap_count(&decoder->blob_rows) >= DECODE_BLOB_ROWS)
		ts_pairmap_clear(&decoder->blob_rows);
	row = ts_pairmap_insert(&decoder->blob_rows, first, second, &is_new);
	if (!row) {
		decode_no_memory(decoder);
		return 0;
	}
	if (is_new)
		*row = ts_writer_blob_piece(decoder->writer, half->previous, hash, half->done, data,
					    bytes);
	return (uint32_t)*row;
}

/* ---- numbers ---- */

static struct decode_blob_number *slot_of(const struct decode_channel *channel, uint64_t number)
{
	return &channel->blobs[number & (channel->blob_slots - 1)];
}

/*
 * Numbers are assigned in order, so a table with a slot for each number so far, up to the limit,
 * has no collisions.
 */
static bool grow_slots(struct decode_channel *channel, uint64_t number)
{
	struct decode_blob_number *old = channel->blobs;
	size_t slots = channel->blob_slots ? channel->blob_slots : FIRST_SLOTS / 2;
	size_t count = channel->blob_slots;

	if (count > number || count >= DECODE_AREA_BLOBS)
		return true;
	do {
		slots *= 2;
	} while (slots <= number && slots < DECODE_AREA_BLOBS);
	channel->blobs = calloc(slots, sizeof(*channel->blobs));
	if (!channel->blobs) {
		channel->blobs = old;
		return false;
	}
	channel->blob_slots = slots;
	for (size_t i = 0; i < count; i++)
		if (old[i].number)
			*slot_of(channel, old[i].number) = old[i];
	free(old);
	return true;
}

bool decode_put_blob(struct ts_decoder *decoder, struct decode_channel *channel, uint64_t number,
		     uint32_t id)
{
	if (!grow_slots(channel, number)) {
		decode_no_memory(decoder);
		return false;
	}
	*slot_of(channel, number) = (struct decode_blob_number){ .number = number, .id = id };
	return true;
}

uint32_t decode_blob_id(struct ts_decoder *decoder, struct decode_channel *channel, uint64_t number,
			bool keep)
{
	const struct decode_blob_number *slot;
	uint64_t id;

	if (!number)
		return 0;
	if (ts_map_get(&channel->kept_blobs, number, &id))
		return (uint32_t)id;
	slot = channel->blob_slots ? slot_of(channel, number) : NULL;
	if (!slot || slot->number != number)
		return 0;
	if (keep && ts_map_count(&channel->kept_blobs) < DECODE_AREA_KEPT_BLOBS &&
	    ts_map_put(&channel->kept_blobs, number, slot->id))
		decode_no_memory(decoder);
	return slot->id;
}

/* ---- parts ---- */

void decode_drop_half(struct decode_channel *channel)
{
	uint64_t number = channel->half.number;

	ts_text_release(&channel->half.piece);
	memset(&channel->half, 0, sizeof(channel->half));
	channel->half.broken = number;
}

static void begin_half(struct decode_channel *channel, uint64_t number, uint64_t bytes)
{
	struct decode_half_blob *half = &channel->half;
	struct ts_text piece = half->piece;

	ts_text_clear(&piece);
	*half = (struct decode_half_blob){ .number = number, .bytes = bytes, .piece = piece };
	ts_hash_stream_init(&half->hash);
}

/* Adds a row for the piece; keeps the memory of a small piece for the next. */
static bool end_piece(struct ts_decoder *decoder, struct decode_half_blob *half)
{
	half->previous = piece_row(decoder, half, half->piece.data, half->piece.length);
	ts_text_clear(&half->piece);
	return half->previous != 0;
}

static bool add_part(struct ts_decoder *decoder, struct decode_half_blob *half, const char *data,
		     size_t bytes)
{
	while (bytes) {
		size_t count = TS_MIN(bytes, DECODE_BLOB_PIECE - half->piece.length);

		ts_text_append(&half->piece, data, count);
		if (ts_text_status(&half->piece)) {
			decode_no_memory(decoder);
			return false;
		}
		ts_hash_stream_add(&half->hash, data, count);
		half->done += count;
		data += count;
		bytes -= count;
		if ((half->piece.length == DECODE_BLOB_PIECE || half->done == half->bytes) &&
		    !end_piece(decoder, half))
			return false;
	}
	return true;
}

/* False: the part is not the next one of the same blob. */
static bool is_next_part(const struct decode_half_blob *half, const struct ts_live_blob *part)
{
	return part->number && half->number == part->number && half->bytes == part->bytes &&
	       half->done == part->offset && part->count &&
	       part->count <= part->bytes - part->offset;
}

/* Rejects the blob: nothing will refer to it, and further parts are not counted again. */
static void give_up(struct ts_decoder *decoder, struct decode_half_blob *half,
		    struct decode_ring *ring, enum decode_loss why, uint64_t number, int64_t ns)
{
	if (half->broken != number || !number)
		decode_lose(decoder, ring, why, 1, ns, ns);
	half->broken = number;
	half->number = 0;
}

/* A part was added: the blob may be complete. */
static void end_part(struct ts_decoder *decoder, struct decode_channel *channel)
{
	struct decode_half_blob *half = &channel->half;

	if (half->done != half->bytes)
		return;
	decode_put_blob(decoder, channel, half->number, half->previous);
	decoder->counts.blob_bytes += half->bytes;
	half->number = 0;
}

bool decode_blob_record(struct ts_decoder *decoder, struct decode_channel *channel,
			struct decode_ring *ring, struct decode_cursor *cursor, int64_t ns)
{
	struct decode_half_blob *half = &channel->half;
	struct ts_live_blob part;

	decode_take(cursor, &part, sizeof(part));
	if (cursor->bad || part.count > (size_t)(cursor->end - cursor->next) * 8)
		return false;
	if (part.offset == 0 && half->number != part.number)
		begin_half(channel, part.number, part.bytes);
	if (part.bytes > INT64_MAX || !is_next_part(half, &part)) {
		give_up(decoder, half, ring, LOSS_BAD_BLOB, part.number, ns);
		return true;
	}
	if (add_part(decoder, half, (const char *)cursor->next, part.count))
		end_part(decoder, channel);
	else
		half->number = 0;
	return true;
}

/* ---- parts in the spool ---- */

/*
 * Reads at most a piece from `at` on in the part: if it is a row of its own, straight to where the
 * writer wants it.
 */
static int add_spooled_piece(struct ts_decoder *decoder, const struct decode_area *area,
			     const struct ts_live_spooled *part, uint64_t *at)
{
	struct decode_half_blob *half = &area->channel->half;
	size_t held = half->piece.length;
	size_t bytes = (size_t)TS_MIN(part->part.count - *at, DECODE_BLOB_PIECE - held);
	bool is_last = half->done + bytes == half->bytes, is_row = false;
	char *to;
	int result;

	if (!held && (is_last || bytes == DECODE_BLOB_PIECE)) {
		is_row = true;
		to = ts_writer_blob_space(decoder->writer, bytes);
	} else {
		to = ts_text_reserve(&half->piece, bytes) ? half->piece.data + held : NULL;
	}
	if (!to)
		return TS_ENOMEM;
	result = ts_spools_read(decoder->options.spools, &area->about->control, part, *at, to,
				bytes);
	if (result)
		return result;
	ts_hash_stream_add(&half->hash, to, bytes);
	half->done += bytes;
	*at += bytes;
	if (is_row) {
		half->previous = piece_row(decoder, half, to, bytes);
		return half->previous ? TS_OK : TS_ENOMEM;
	}
	half->piece.length += bytes;
	if ((is_last || half->piece.length == DECODE_BLOB_PIECE) && !end_piece(decoder, half))
		return TS_ENOMEM;
	return TS_OK;
}

static int add_spooled(struct ts_decoder *decoder, const struct decode_area *area,
		       const struct ts_live_spooled *part)
{
	uint64_t at = 0;
	int result = area->about ? TS_OK : TS_ENOTFOUND;

	while (!result && at < part->part.count)
		result = add_spooled_piece(decoder, area, part, &at);
	return result;
}

bool decode_spooled_record(struct ts_decoder *decoder, struct decode_area *area,
			   struct decode_ring *ring, struct decode_cursor *cursor, int64_t ns)
{
	struct decode_half_blob *half = &area->channel->half;
	struct ts_live_spooled spooled;
	const struct ts_live_blob *part = &spooled.part;
	bool is_gone;
	int result;

	decode_take(cursor, &spooled, sizeof(spooled));
	if (cursor->bad)
		return false;
	ts_crash_point("R9");
	if (part->offset == 0 && half->number != part->number)
		begin_half(area->channel, part->number, part->bytes);
	if (part->bytes > INT64_MAX || !is_next_part(half, part))
		result = TS_EFORMAT;
	else
		result = add_spooled(decoder, area, &spooled);
	ts_crash_point("R10");
	if (area->about)
		ts_spools_decoded(decoder->options.spools, &area->about->control, &spooled);
	if (!result) {
		end_part(decoder, area->channel);
	} else if (result == TS_ENOMEM) {
		half->number = 0;
		if (!ts_writer_status(decoder->writer, NULL))
			decode_no_memory(decoder);
	} else {
		is_gone = result == TS_ENOTFOUND && half->broken != part->number;
		give_up(decoder, half, ring,
			result == TS_ENOTFOUND ? LOSS_GONE_BLOB : LOSS_BAD_BLOB, part->number, ns);
		if (is_gone)
			decode_channel_gone(decoder, area, part->number, ns);
	}
	return true;
}
