/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes one column to bytes and back (docs/format.md, section 3.3). encode.c chooses an encoding;
 * decode.c accepts everything the format allows and trusts nothing. Neither knows of chunks, files
 * or the schema.
 */
#ifndef TS_SBT_CODEC_H
#define TS_SBT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/text.h"
#include "sbt/sbt_layout.h"

/* Scratch memory and zstd state, one per thread. A zeroed struct is ready. */
struct sbt_encoder {
	void *zstd; /* ZSTD_CCtx */
	int level;
	int bytes_level; /* for byte strings; 0: a level that suits text */
	uint64_t *words; /* transformed values */
	uint8_t *bytes;  /* one plane */
	size_t word_capacity, byte_capacity;
	uint64_t *slots; /* hash table of a dictionary */
	uint32_t *slot_index;
	struct ts_text trial;
	/*
	 * Of the column that ends a chunk, byte strings that are not compressed may stay where they
	 * are: leave_raw asks for it, and then raw_bytes at `raw` belong after `out`.
	 */
	bool leave_raw;
	const char *raw;
	size_t raw_bytes;
};

void sbt_encoder_release(struct sbt_encoder *encoder);

/* Hints for the encoder. */
enum sbt_hint {
	SBT_HINT_NUMBER, /* ids, counts: values repeat */
	SBT_HINT_TIME,   /* times and durations: low bits are noise */
	SBT_HINT_DOUBLE, /* bits of doubles */
};

/*
 * Appends the payload to out and fills encoding, count, stored_bytes, base and checksum of column.
 * count > 0. Failure is TS_ENOMEM.
 */
int sbt_encode_column(struct sbt_encoder *encoder, const int64_t *values, uint32_t count,
		      enum sbt_hint hint, struct ts_text *out, struct sbt_column *column);

/* A constant column; it has no payload. */
void sbt_encode_constant(int64_t value, uint32_t count, struct sbt_column *column);

/* The same for byte strings: `lengths` of each, concatenated in `data`. */
int sbt_encode_bytes(struct sbt_encoder *encoder, const int64_t *lengths, uint32_t count,
		     const char *data, size_t data_bytes, struct ts_text *out,
		     struct sbt_column *column);

struct sbt_decoder {
	void *zstd; /* ZSTD_DCtx */
	uint8_t *bytes;
	size_t byte_capacity;
	int64_t *words; /* dictionary, lengths */
	size_t word_capacity;
};

void sbt_decoder_release(struct sbt_decoder *decoder);

/* Bit streams are loaded 9 bytes at a time: this many readable bytes must follow a payload. */
#define SBT_DECODE_SLACK 16

/*
 * Decodes column->count values. `payload` holds column->stored_bytes bytes, whose checksum the
 * caller has verified, and SBT_DECODE_SLACK arbitrary bytes. Returns 0, TS_ENOMEM, or TS_EFORMAT
 * with *ret_why set to the reason.
 */
int sbt_decode_column(struct sbt_decoder *decoder, const struct sbt_column *column,
		      const uint8_t *payload, int64_t *ret_values, const char **ret_why);

/* A column in the shortest form that its encoding gives for free. */
enum sbt_form_kind {
	SBT_FORM_WORDS,    /* a word per row: sbt_decode_column() */
	SBT_FORM_CONSTANT, /* every row has `constant` */
	SBT_FORM_INDEXED,  /* row i has entries[index i]; every index is below entry_count */
};

struct sbt_form {
	enum sbt_form_kind kind;
	unsigned int index_bytes; /* 1 or 4 */
	int64_t constant;
	const int64_t *entries;
	const void *indices;
	uint32_t entry_count;
};

/* Memory of one indexed column. A zeroed struct is ready. */
struct sbt_form_store {
	int64_t *entries;
	uint8_t *bytes;
	uint32_t *indices;
	size_t entry_capacity, byte_capacity, index_capacity;
};

void sbt_form_store_release(struct sbt_form_store *store);

/*
 * Decodes a column of few distinct values to indices, in memory of the store. Otherwise *ret_form
 * is SBT_FORM_WORDS, and nothing was decoded. Same arguments and result as sbt_decode_column().
 */
int sbt_decode_form(struct sbt_decoder *decoder, const struct sbt_column *column,
		    const uint8_t *payload, struct sbt_form_store *store, struct sbt_form *ret_form,
		    const char **ret_why);

/*
 * Decodes byte strings: ret_offsets gets count + 1 entries, *ret_data is malloc()ed; the caller
 * frees it. With `terminate`, each string is followed by a NUL, which is counted in the offsets.
 */
int sbt_decode_bytes(struct sbt_decoder *decoder, const struct sbt_column *column,
		     const uint8_t *payload, bool terminate, uint64_t *ret_offsets, char **ret_data,
		     const char **ret_why);

#endif
