/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content of command streams: parts of blobs into rows of at most 1 MiB, each of which continues
 * the one before it, so that memory is bounded whatever size a program claims. Equal rows are
 * stored once: a row is known by what it continues and by two hashes of its bytes, one of which
 * has a secret key, so that no program can make another's content look like its own.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"

#define FIRST_SLOTS 256u

/* ---- rows ---- */

/* The row of a piece: one that is there, or a new one. 0: the writer failed. */
static uint32_t piece_row(struct ts_encoder *encoder, const struct encode_half_blob *half)
{
	const struct ts_text *piece = &half->piece;
	uint64_t first = ts_hash64(piece->data, piece->length) ^ ts_hash_mix64(half->previous + 1);
	uint64_t second = ts_hash_keyed(encoder->blob_key, piece->data, piece->length);
	uint64_t *row;
	bool is_new;

	/* Bounded memory: what is forgotten is stored again if it comes again. */
	if (ts_pairmap_count(&encoder->blob_rows) >= ENCODE_BLOB_ROWS)
		ts_pairmap_clear(&encoder->blob_rows);
	row = ts_pairmap_insert(&encoder->blob_rows, first, second, &is_new);
	if (!row) {
		encode_no_memory(encoder);
		return 0;
	}
	if (is_new)
		*row = ts_writer_blob_piece(encoder->writer, half->previous,
					    ts_hash_stream_digest(&half->hash), half->done,
					    piece->data, piece->length);
	return (uint32_t)*row;
}

/* ---- numbers ---- */

static struct encode_blob_number *slot_of(const struct encode_channel *channel, uint64_t number)
{
	return &channel->blobs[number & (channel->blob_slots - 1)];
}

/*
 * Numbers are given out in order: a table of as many as there were so far, up to the limit, has no
 * two in one place.
 */
static bool grow_slots(struct encode_channel *channel, uint64_t number)
{
	struct encode_blob_number *old = channel->blobs;
	size_t slots = channel->blob_slots ? channel->blob_slots : FIRST_SLOTS / 2;
	size_t count = channel->blob_slots;

	if (count > number || count >= ENCODE_AREA_BLOBS)
		return true;
	do {
		slots *= 2;
	} while (slots <= number && slots < ENCODE_AREA_BLOBS);
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

bool encode_put_blob(struct ts_encoder *encoder, struct encode_channel *channel, uint64_t number,
		     uint32_t id)
{
	if (!grow_slots(channel, number)) {
		encode_no_memory(encoder);
		return false;
	}
	*slot_of(channel, number) = (struct encode_blob_number){ .number = number, .id = id };
	return true;
}

uint32_t encode_blob_id(struct ts_encoder *encoder, struct encode_channel *channel, uint64_t number,
			bool keep)
{
	const struct encode_blob_number *slot;
	uint64_t id;

	if (!number)
		return 0;
	if (ts_map_get(&channel->kept_blobs, number, &id))
		return (uint32_t)id;
	slot = channel->blob_slots ? slot_of(channel, number) : NULL;
	if (!slot || slot->number != number)
		return 0;
	if (keep && ts_map_count(&channel->kept_blobs) < ENCODE_AREA_KEPT_BLOBS &&
	    ts_map_put(&channel->kept_blobs, number, slot->id))
		encode_no_memory(encoder);
	return slot->id;
}

/* ---- parts ---- */

void encode_drop_half(struct encode_channel *channel)
{
	uint64_t number = channel->half.number;

	ts_text_release(&channel->half.piece);
	memset(&channel->half, 0, sizeof(channel->half));
	channel->half.broken = number;
}

static void begin_half(struct encode_channel *channel, uint64_t number, uint64_t bytes)
{
	struct encode_half_blob *half = &channel->half;
	struct ts_text piece = half->piece;

	ts_text_clear(&piece);
	*half = (struct encode_half_blob){ .number = number, .bytes = bytes, .piece = piece };
	ts_hash_stream_init(&half->hash);
}

/* A row for the piece; the memory of a small one is kept for the next. */
static bool end_piece(struct ts_encoder *encoder, struct encode_half_blob *half)
{
	half->previous = piece_row(encoder, half);
	ts_text_clear(&half->piece);
	return half->previous != 0;
}

static bool add_part(struct ts_encoder *encoder, struct encode_half_blob *half, const char *data,
		     size_t bytes)
{
	while (bytes) {
		size_t count = TS_MIN(bytes, ENCODE_BLOB_PIECE - half->piece.length);

		ts_text_append(&half->piece, data, count);
		if (ts_text_status(&half->piece)) {
			encode_no_memory(encoder);
			return false;
		}
		ts_hash_stream_add(&half->hash, data, count);
		half->done += count;
		data += count;
		bytes -= count;
		if ((half->piece.length == ENCODE_BLOB_PIECE || half->done == half->bytes) &&
		    !end_piece(encoder, half))
			return false;
	}
	return true;
}

/* False: the parts do not follow each other, or are not those of one content. */
static bool is_next_part(const struct encode_half_blob *half, uint64_t number, uint64_t bytes,
			 uint64_t offset, uint64_t count)
{
	return number && half->number == number && half->bytes == bytes && half->done == offset &&
	       count && count <= bytes - offset;
}

/* Nothing of it will be named; one that is counted is not counted again with its next part. */
static void give_up(struct ts_encoder *encoder, struct encode_half_blob *half,
		    struct encode_ring *ring, uint64_t number, int64_t ns)
{
	if (half->broken != number || !number)
		encode_lose(encoder, ring, LOSS_BAD_BLOB, 1, ns, ns);
	half->broken = number;
	half->number = 0;
}

bool encode_blob_record(struct ts_encoder *encoder, struct encode_channel *channel,
			struct encode_ring *ring, struct encode_cursor *cursor, int64_t ns)
{
	uint64_t number = encode_take_word(cursor), bytes = encode_take_word(cursor);
	uint64_t offset = encode_take_word(cursor), count = encode_take_word(cursor);
	struct encode_half_blob *half = &channel->half;

	if (cursor->bad || count > (size_t)(cursor->end - cursor->next) * 8)
		return false;
	if (offset == 0 && half->number != number)
		begin_half(channel, number, bytes);
	if (bytes > INT64_MAX || !is_next_part(half, number, bytes, offset, count)) {
		give_up(encoder, half, ring, number, ns);
		return true;
	}
	if (!add_part(encoder, half, (const char *)cursor->next, count)) {
		half->number = 0;
		return true;
	}
	if (half->done == half->bytes) {
		encode_put_blob(encoder, channel, number, half->previous);
		encoder->counts.blob_bytes += half->bytes;
		half->number = 0;
	}
	return true;
}
