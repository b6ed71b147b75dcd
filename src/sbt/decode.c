/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes column payloads. The bytes are untrusted: every size is checked before use, and a payload
 * must be consumed exactly.
 */
#include "sbt/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"

void sbt_decoder_release(struct sbt_decoder *decoder)
{
	ZSTD_freeDCtx(decoder->zstd);
	free(decoder->bytes);
	free(decoder->words);
	memset(decoder, 0, sizeof(*decoder));
}

/* The rest of a payload. */
struct cursor {
	const uint8_t *at, *end;
	const char *why;
};

static int damaged(struct cursor *cursor, const char *why)
{
	cursor->why = why;
	return TS_EFORMAT;
}

static int take(struct cursor *cursor, size_t bytes, const uint8_t **ret_data)
{
	if ((size_t)(cursor->end - cursor->at) < bytes)
		return damaged(cursor, "column data ends early");
	*ret_data = cursor->at;
	cursor->at += bytes;
	return TS_OK;
}

static int take_u8(struct cursor *cursor, unsigned int smallest, unsigned int largest,
		   const char *why, unsigned int *ret_value)
{
	const uint8_t *data;

	if (take(cursor, 1, &data))
		return TS_EFORMAT;
	if (*data < smallest || *data > largest)
		return damaged(cursor, why);
	*ret_value = *data;
	return TS_OK;
}

static int take_u32(struct cursor *cursor, uint32_t *ret_value)
{
	const uint8_t *data;

	if (take(cursor, sizeof(*ret_value), &data))
		return TS_EFORMAT;
	memcpy(ret_value, data, sizeof(*ret_value));
	return TS_OK;
}

/* ---- blocks ---- */

/* A block: either one repeated byte, or `count` bytes in memory. */
struct block {
	const uint8_t *bytes; /* NULL: fill */
	uint8_t fill;
};

static int unpack(struct sbt_decoder *decoder, struct cursor *cursor, size_t count, uint8_t *into)
{
	const uint8_t *data;
	uint32_t stored;
	size_t got;

	if (take_u32(cursor, &stored) || take(cursor, stored, &data))
		return TS_EFORMAT;
	if (!decoder->zstd && !(decoder->zstd = ZSTD_createDCtx()))
		return TS_ENOMEM;
	got = ZSTD_decompressDCtx(decoder->zstd, into, count, data, stored);
	if (ZSTD_isError(got) || got != count)
		return damaged(cursor, "decompressed size is wrong");
	return TS_OK;
}

/* `scratch` holds count bytes; the block may point into it or into the payload. */
static int take_block(struct sbt_decoder *decoder, struct cursor *cursor, size_t count,
		      uint8_t *scratch, struct block *ret_block)
{
	unsigned int method;
	int result;

	if (take_u8(cursor, 0, SBT_BLOCK_ZSTD, "unknown block method", &method))
		return TS_EFORMAT;
	ret_block->bytes = NULL;
	switch (method) {
	case SBT_BLOCK_FILL:
		if (cursor->at == cursor->end)
			return damaged(cursor, "column data ends early");
		ret_block->fill = *cursor->at++;
		return TS_OK;
	case SBT_BLOCK_RAW:
		return take(cursor, count, &ret_block->bytes);
	default:
		result = unpack(decoder, cursor, count, scratch);
		ret_block->bytes = scratch;
		return result;
	}
}

static int scratch_bytes(struct sbt_decoder *decoder, size_t count)
{
	/* One more, so that a column without values gets memory too. */
	return ts_grow_array((void **)&decoder->bytes, &decoder->byte_capacity, count + 1, 1);
}

/* ---- layouts ---- */

static void add_plane(uint64_t *words, uint32_t count, const struct block *block,
		      unsigned int shift)
{
	if (!block->bytes) {
		uint64_t fill = (uint64_t)block->fill << shift;

		if (shift == 0)
			for (uint32_t i = 0; i < count; i++)
				words[i] = fill;
		else if (fill)
			for (uint32_t i = 0; i < count; i++)
				words[i] |= fill;
		return;
	}
	if (shift == 0)
		for (uint32_t i = 0; i < count; i++)
			words[i] = block->bytes[i];
	else
		for (uint32_t i = 0; i < count; i++)
			words[i] |= (uint64_t)block->bytes[i] << shift;
}

static int take_planes(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
		       unsigned int widest, uint64_t *words)
{
	unsigned int width;
	struct block block = { 0 };
	int result;

	if (take_u8(cursor, 1, widest, "bad column width", &width))
		return TS_EFORMAT;
	if (scratch_bytes(decoder, count))
		return TS_ENOMEM;
	for (unsigned int k = 0; k < width; k++) {
		result = take_block(decoder, cursor, count, decoder->bytes, &block);
		if (result)
			return result;
		add_plane(words, count, &block, 8 * k);
	}
	return TS_OK;
}

/* Meaning of a class byte. */
struct log_class {
	uint64_t high;
	uint64_t mask;
	uint32_t low_bits;
};

static void log_classes(struct log_class classes[256], unsigned int mantissa)
{
	for (unsigned int c = 0; c < 256; c++) {
		unsigned int exponent = c >> mantissa, low = 0;
		uint64_t high = c;

		if (exponent >= 2 && c <= sbt_log_max_class(mantissa)) {
			low = exponent - 1;
			high = (uint64_t)((c & ((1u << mantissa) - 1)) | 1u << mantissa) << low;
		}
		classes[c] = (struct log_class){ .high = high,
						 .mask = (UINT64_C(1) << low) - 1,
						 .low_bits = low };
	}
}

static inline uint64_t load_bits(const uint8_t *bits, uint64_t position, unsigned int count)
{
	uint64_t word;
	unsigned int shift = position & 7;

	/* May read past the bit stream: the payload is followed by slack, and the caller masks. */
	memcpy(&word, bits + position / 8, sizeof(word));
	word >>= shift;
	if (TS_UNLIKELY(count + shift > 64))
		word |= (uint64_t)bits[position / 8 + 8] << (64 - shift);
	return word;
}

static int take_classes(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
			const uint8_t **ret_classes)
{
	struct block block = { 0 };
	int result;

	if (scratch_bytes(decoder, count))
		return TS_ENOMEM;
	assert(decoder->bytes);
	result = take_block(decoder, cursor, count, decoder->bytes, &block);
	if (!result && !block.bytes)
		memset(decoder->bytes, block.fill, count);
	*ret_classes = block.bytes ? block.bytes : decoder->bytes;
	return result;
}

static int take_log(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
		    uint64_t *words)
{
	struct log_class table[256];
	const uint8_t *bits, *classes;
	uint64_t total = 0, position = 0;
	unsigned int mantissa, largest = 0;
	uint32_t bits_bytes;
	int result;

	if (take_u8(cursor, 0, SBT_LOG_MAX_MANTISSA, "bad number of mantissa bits", &mantissa))
		return TS_EFORMAT;
	result = take_classes(decoder, cursor, count, &classes);
	if (result)
		return result;
	log_classes(table, mantissa);
	for (uint32_t i = 0; i < count; i++) {
		largest = classes[i] > largest ? classes[i] : largest;
		total += table[classes[i]].low_bits;
	}
	if (largest > sbt_log_max_class(mantissa))
		return damaged(cursor, "class byte beyond the last class");
	if (take_u32(cursor, &bits_bytes) || take(cursor, bits_bytes, &bits))
		return TS_EFORMAT;
	if (bits_bytes != (total + 7) / 8)
		return damaged(cursor, "bit stream has the wrong size");
	for (uint32_t i = 0; i < count; i++) {
		const struct log_class *class = &table[classes[i]];

		words[i] = class->high | (load_bits(bits, position, class->low_bits) & class->mask);
		position += class->low_bits;
	}
	return TS_OK;
}

static int take_dictionary(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
			   uint64_t *words)
{
	struct block block = { 0 };
	uint32_t entries;
	uint64_t largest = 0;
	int result;

	if (take_u32(cursor, &entries))
		return TS_EFORMAT;
	if (entries < 1 || entries > count)
		return damaged(cursor, "dictionary has a bad size");
	if (scratch_bytes(decoder, (size_t)entries * 8) ||
	    ts_grow_array((void **)&decoder->words, &decoder->word_capacity, entries,
			  sizeof(*decoder->words)))
		return TS_ENOMEM;
	result = take_block(decoder, cursor, (size_t)entries * 8, decoder->bytes, &block);
	if (result)
		return result;
	if (block.bytes)
		memcpy(decoder->words, block.bytes, (size_t)entries * 8);
	else
		memset(decoder->words, block.fill, (size_t)entries * 8);
	result = take_planes(decoder, cursor, count, 3, words);
	if (result)
		return result;
	for (uint32_t i = 0; i < count; i++)
		largest = words[i] > largest ? words[i] : largest;
	if (largest >= entries)
		return damaged(cursor, "index beyond the dictionary");
	for (uint32_t i = 0; i < count; i++)
		words[i] = (uint64_t)decoder->words[words[i]];
	return TS_OK;
}

static int undo_transform(struct cursor *cursor, unsigned int transform, int64_t base,
			  uint32_t count, uint64_t *words)
{
	uint64_t value = (uint64_t)base;

	switch (transform) {
	case SBT_TRANSFORM_OFFSET:
		if (value)
			for (uint32_t i = 0; i < count; i++)
				words[i] += value;
		return TS_OK;
	case SBT_TRANSFORM_DELTA:
		for (uint32_t i = 0; i < count; i++)
			words[i] = value += words[i];
		return TS_OK;
	case SBT_TRANSFORM_ZIGZAG:
		for (uint32_t i = 0; i < count; i++)
			words[i] = value += words[i] >> 1 ^ -(words[i] & 1);
		return TS_OK;
	default:
		return damaged(cursor, "unknown transform");
	}
}

int sbt_decode_column(struct sbt_decoder *decoder, const struct sbt_column *column,
		      const uint8_t *payload, int64_t *ret_values, const char **ret_why)
{
	struct cursor cursor = { .at = payload, .end = payload + column->stored_bytes };
	unsigned int layout = SBT_ENCODING_LAYOUT(column->encoding);
	unsigned int transform = SBT_ENCODING_TRANSFORM(column->encoding);
	uint64_t *words = (uint64_t *)ret_values;
	int result;

	switch (layout) {
	case SBT_LAYOUT_CONST:
		for (uint32_t i = 0; i < column->count; i++)
			ret_values[i] = column->base;
		result = transform ? damaged(&cursor, "unknown transform") : TS_OK;
		break;
	case SBT_LAYOUT_PLANES:
		result = take_planes(decoder, &cursor, column->count, 8, words);
		break;
	case SBT_LAYOUT_LOG:
		result = take_log(decoder, &cursor, column->count, words);
		break;
	case SBT_LAYOUT_DICT:
		result = transform || column->base
				 ? damaged(&cursor, "unknown transform")
				 : take_dictionary(decoder, &cursor, column->count, words);
		break;
	default:
		result = damaged(&cursor, "unknown or misplaced column layout");
	}
	if (!result && (layout == SBT_LAYOUT_PLANES || layout == SBT_LAYOUT_LOG))
		result = undo_transform(&cursor, transform, column->base, column->count, words);
	if (!result && cursor.at != cursor.end)
		result = damaged(&cursor, "column data continues after its end");
	*ret_why = cursor.why;
	return result;
}

/* ---- indices ---- */

void sbt_form_store_release(struct sbt_form_store *store)
{
	free(store->entries);
	free(store->bytes);
	free(store->indices);
	memset(store, 0, sizeof(*store));
}

/* A block of indices in the store: a later read replaces the payload. */
static int take_index_bytes(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
			    struct sbt_form_store *store, struct block *ret_block)
{
	int result;

	if (ts_grow_array((void **)&store->bytes, &store->byte_capacity, (size_t)count + 1, 1))
		return TS_ENOMEM;
	result = take_block(decoder, cursor, count, store->bytes, ret_block);
	if (!result && ret_block->bytes && ret_block->bytes != store->bytes) {
		memcpy(store->bytes, ret_block->bytes, count);
		ret_block->bytes = store->bytes;
	}
	return result;
}

/* Planes of one byte: each of the 256 words it may hold is an entry. */
static int form_of_bytes(const struct block *block, const struct sbt_column *column,
			 struct sbt_form_store *store, struct sbt_form *form)
{
	bool seen[256] = { false };
	int64_t some = 0;

	if (!block->bytes) {
		form->kind = SBT_FORM_CONSTANT;
		form->constant = (int64_t)((uint64_t)column->base + block->fill);
		return TS_OK;
	}
	if (ts_grow_array((void **)&store->entries, &store->entry_capacity, 256,
			  sizeof(*store->entries)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < column->count; i++)
		seen[block->bytes[i]] = true;
	for (unsigned int i = 0; i < 256; i++)
		if (seen[i])
			some = (int64_t)((uint64_t)column->base + i);
	/* An entry that no row has is equal to one that some row has: it costs no lookup. */
	for (unsigned int i = 0; i < 256; i++)
		store->entries[i] = seen[i] ? (int64_t)((uint64_t)column->base + i) : some;
	*form = (struct sbt_form){ .kind = SBT_FORM_INDEXED,
				   .index_bytes = 1,
				   .entries = store->entries,
				   .indices = block->bytes,
				   .entry_count = 256 };
	return TS_OK;
}

static int form_of_planes(struct sbt_decoder *decoder, struct cursor *cursor,
			  const struct sbt_column *column, struct sbt_form_store *store,
			  struct sbt_form *form)
{
	struct block block = { 0 };
	int result;

	if (column->stored_bytes == 0 || *cursor->at != 1 ||
	    SBT_ENCODING_TRANSFORM(column->encoding) != SBT_TRANSFORM_OFFSET)
		return TS_OK;
	cursor->at++;
	result = take_index_bytes(decoder, cursor, column->count, store, &block);
	return result ? result : form_of_bytes(&block, column, store, form);
}

static int take_narrow_indices(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
			       struct sbt_form_store *store, struct sbt_form *form)
{
	struct block block = { 0 };
	uint8_t largest = 0;
	int result = take_index_bytes(decoder, cursor, count, store, &block);

	if (result)
		return result;
	if (!block.bytes)
		memset(store->bytes, block.fill, count);
	for (uint32_t i = 0; i < count; i++)
		largest = store->bytes[i] > largest ? store->bytes[i] : largest;
	if (largest >= form->entry_count)
		return damaged(cursor, "index beyond the dictionary");
	form->index_bytes = 1;
	form->indices = store->bytes;
	return TS_OK;
}

static int take_wide_indices(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
			     unsigned int width, struct sbt_form_store *store,
			     struct sbt_form *form)
{
	struct block block = { 0 };
	uint32_t largest = 0;

	if (ts_grow_array((void **)&store->indices, &store->index_capacity, (size_t)count + 1,
			  sizeof(*store->indices)))
		return TS_ENOMEM;
	memset(store->indices, 0, count * sizeof(*store->indices));
	for (unsigned int k = 0; k < width; k++) {
		int result = take_index_bytes(decoder, cursor, count, store, &block);

		if (result)
			return result;
		for (uint32_t i = 0; i < count; i++)
			store->indices[i] |= (uint32_t)(block.bytes ? block.bytes[i] : block.fill)
					     << 8 * k;
	}
	for (uint32_t i = 0; i < count; i++)
		largest = store->indices[i] > largest ? store->indices[i] : largest;
	if (largest >= form->entry_count)
		return damaged(cursor, "index beyond the dictionary");
	form->index_bytes = 4;
	form->indices = store->indices;
	return TS_OK;
}

static int form_of_dictionary(struct sbt_decoder *decoder, struct cursor *cursor,
			      const struct sbt_column *column, struct sbt_form_store *store,
			      struct sbt_form *form)
{
	struct block block = { 0 };
	unsigned int width;
	uint32_t entries;
	int result;

	if (SBT_ENCODING_TRANSFORM(column->encoding) || column->base)
		return damaged(cursor, "unknown transform");
	if (take_u32(cursor, &entries))
		return TS_EFORMAT;
	if (entries < 1 || entries > column->count)
		return damaged(cursor, "dictionary has a bad size");
	if (scratch_bytes(decoder, (size_t)entries * 8) ||
	    ts_grow_array((void **)&store->entries, &store->entry_capacity, entries,
			  sizeof(*store->entries)))
		return TS_ENOMEM;
	result = take_block(decoder, cursor, (size_t)entries * 8, decoder->bytes, &block);
	if (result)
		return result;
	if (block.bytes)
		memcpy(store->entries, block.bytes, (size_t)entries * 8);
	else
		memset(store->entries, block.fill, (size_t)entries * 8);
	if (take_u8(cursor, 1, 3, "bad column width", &width))
		return TS_EFORMAT;
	form->entries = store->entries;
	form->entry_count = entries;
	form->kind = SBT_FORM_INDEXED;
	if (width == 1)
		return take_narrow_indices(decoder, cursor, column->count, store, form);
	return take_wide_indices(decoder, cursor, column->count, width, store, form);
}

int sbt_decode_form(struct sbt_decoder *decoder, const struct sbt_column *column,
		    const uint8_t *payload, struct sbt_form_store *store, struct sbt_form *ret_form,
		    const char **ret_why)
{
	struct cursor cursor = { .at = payload, .end = payload + column->stored_bytes };
	struct sbt_form form = { .kind = SBT_FORM_WORDS };
	int result = TS_OK;

	switch (SBT_ENCODING_LAYOUT(column->encoding)) {
	case SBT_LAYOUT_CONST:
		form.kind = SBT_FORM_CONSTANT;
		form.constant = column->base;
		if (SBT_ENCODING_TRANSFORM(column->encoding))
			result = damaged(&cursor, "unknown transform");
		break;
	case SBT_LAYOUT_PLANES:
		result = form_of_planes(decoder, &cursor, column, store, &form);
		break;
	case SBT_LAYOUT_DICT:
		result = form_of_dictionary(decoder, &cursor, column, store, &form);
		break;
	default:
		break;
	}
	if (!result && form.kind != SBT_FORM_WORDS && cursor.at != cursor.end)
		result = damaged(&cursor, "column data continues after its end");
	*ret_form = form;
	*ret_why = cursor.why;
	return result;
}

/* ---- byte strings ---- */

static int lengths_to_offsets(struct cursor *cursor, uint64_t *offsets, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t length = offsets[i];

		if (length > SBT_MAX_STRING_BYTES)
			return damaged(cursor, "string is too long");
		offsets[i] = sum;
		sum += length;
	}
	offsets[count] = sum;
	return TS_OK;
}

/* Inserts a NUL after each string in place, from the last one on. */
static void terminate_all(char *data, uint64_t *offsets, uint32_t count)
{
	for (uint32_t i = count; i-- > 0;) {
		uint64_t length = offsets[i + 1] - offsets[i];

		memmove(data + offsets[i] + i, data + offsets[i], length);
		data[offsets[i] + i + length] = '\0';
		offsets[i + 1] += i + 1;
	}
}

static int take_bytes(struct sbt_decoder *decoder, struct cursor *cursor, uint32_t count,
		      bool terminate, uint64_t *offsets, char **ret_data)
{
	TS_AUTO_FREE char *data = NULL;
	struct block block = { 0 };
	uint32_t raw_bytes;
	int result = take_planes(decoder, cursor, count, 4, offsets);

	if (result)
		return result;
	if (lengths_to_offsets(cursor, offsets, count) || take_u32(cursor, &raw_bytes))
		return TS_EFORMAT;
	if (raw_bytes != offsets[count])
		return damaged(cursor, "string lengths do not add up");
	if (raw_bytes > SBT_MAX_RAW_BYTES)
		return damaged(cursor, "more text than a chunk may hold");
	data = malloc((size_t)raw_bytes + count + 1);
	if (!data)
		return TS_ENOMEM;
	result = take_block(decoder, cursor, raw_bytes, (uint8_t *)data, &block);
	if (result)
		return result;
	if (!block.bytes)
		memset(data, block.fill, raw_bytes);
	else if (block.bytes != (uint8_t *)data)
		memcpy(data, block.bytes, raw_bytes);
	if (terminate)
		terminate_all(data, offsets, count);
	*ret_data = TS_STEAL(data);
	return TS_OK;
}

int sbt_decode_bytes(struct sbt_decoder *decoder, const struct sbt_column *column,
		     const uint8_t *payload, bool terminate, uint64_t *ret_offsets, char **ret_data,
		     const char **ret_why)
{
	struct cursor cursor = { .at = payload, .end = payload + column->stored_bytes };
	int result;

	if (column->encoding != SBT_ENCODING(SBT_LAYOUT_BYTES, 0))
		result = damaged(&cursor, "unknown or misplaced column layout");
	else
		result = take_bytes(decoder, &cursor, column->count, terminate, ret_offsets,
				    ret_data);
	if (!result && cursor.at != cursor.end) {
		free(*ret_data);
		*ret_data = NULL;
		result = damaged(&cursor, "column data continues after its end");
	}
	*ret_why = cursor.why;
	return result;
}
