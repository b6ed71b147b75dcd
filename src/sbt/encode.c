/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses an encoding for a column and applies it. The choice rests on the entropy of a sample, so
 * that each column is compressed once.
 */
#include "sbt/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/local/hash.h"
#include "base/memory.h"

#define SAMPLE_RUNS 16
#define SAMPLE_RUN 128
#define SAMPLE_MAX (SAMPLE_RUNS * SAMPLE_RUN)
#define DICTIONARY_MAX 32768u
#define DICTIONARY_SLOTS (DICTIONARY_MAX * 4)
/* Encodings with estimates this near the best are tried on this many rows. */
#define TRIAL_ROWS 8192u
#define TRIAL_FACTOR 1.25
/* Of large byte strings, samples are compressed first. */
#define SAMPLED_BYTES 65536u
#define SAMPLES 4u
#define SAMPLE_BYTES 4096u

void sbt_encoder_release(struct sbt_encoder *encoder)
{
	ZSTD_freeCCtx(encoder->zstd);
	free(encoder->words);
	free(encoder->bytes);
	free(encoder->slots);
	free(encoder->slot_index);
	ts_text_release(&encoder->trial);
	memset(encoder, 0, sizeof(*encoder));
}

static int encoder_prepare(struct sbt_encoder *encoder, size_t count)
{
	if (!encoder->zstd) {
		ZSTD_CCtx *zstd = ZSTD_createCCtx();

		if (!zstd)
			return TS_ENOMEM;
		encoder->zstd = zstd;
		/* The directory has the size: saves bytes in small frames. */
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0);
	}
	if (ts_grow_array((void **)&encoder->words, &encoder->word_capacity, count,
			  sizeof(*encoder->words)))
		return TS_ENOMEM;
	return ts_grow_array((void **)&encoder->bytes, &encoder->byte_capacity, count, 1);
}

/* ---- blocks ---- */

static bool all_equal(const uint8_t *bytes, size_t count)
{
	return count == 0 || memcmp(bytes, bytes + 1, count - 1) == 0;
}

static int put_block(struct sbt_encoder *encoder, const uint8_t *bytes, size_t count, int level,
		     struct ts_text *out)
{
	size_t bound = ZSTD_compressBound(count), stored;
	uint32_t stored_bytes;
	char *start;

	if (all_equal(bytes, count)) {
		ts_text_append_char(out, SBT_BLOCK_FILL);
		ts_text_append_char(out, (char)(count ? bytes[0] : 0));
		return ts_text_status(out);
	}
	if (!ts_text_reserve(out, 1 + sizeof(stored_bytes) + bound))
		return TS_ENOMEM;
	start = out->data + out->length;
	ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, level);
	stored = ZSTD_compress2(encoder->zstd, start + 1 + sizeof(stored_bytes), bound, bytes,
				count);
	if (ZSTD_isError(stored) || stored + sizeof(stored_bytes) >= count) {
		start[0] = SBT_BLOCK_RAW;
		memcpy(start + 1, bytes, count);
		out->length += 1 + count;
		return TS_OK;
	}
	stored_bytes = (uint32_t)stored;
	start[0] = SBT_BLOCK_ZSTD;
	memcpy(start + 1, &stored_bytes, sizeof(stored_bytes));
	out->length += 1 + sizeof(stored_bytes) + stored;
	return TS_OK;
}

/*
 * True if a sample, taken at several places, becomes smaller by a sixteenth. Compressing all of it
 * only to find out takes longer than to hash and to write it.
 */
static bool looks_compressible(struct sbt_encoder *encoder, const char *data, size_t bytes)
{
	const size_t sample = SAMPLE_BYTES * SAMPLES, bound = ZSTD_compressBound(sample);
	size_t stored;

	ts_text_clear(&encoder->trial);
	if (!ts_text_reserve(&encoder->trial, sample + bound))
		return true;
	for (size_t i = 0; i < SAMPLES; i++)
		ts_text_append(&encoder->trial, data + (bytes - SAMPLE_BYTES) / (SAMPLES - 1) * i,
			       SAMPLE_BYTES);
	stored = ZSTD_compressCCtx(encoder->zstd, encoder->trial.data + sample, bound,
				   encoder->trial.data, sample, 1);
	return ZSTD_isError(stored) || stored < sample - sample / 16;
}

static void put_raw(struct sbt_encoder *encoder, const char *data, size_t bytes,
		    struct ts_text *out)
{
	ts_text_append_char(out, SBT_BLOCK_RAW);
	if (encoder->leave_raw) {
		encoder->raw = data;
		encoder->raw_bytes = bytes;
	} else {
		ts_text_append(out, data, bytes);
	}
}

static unsigned int byte_width(uint64_t largest)
{
	return largest ? (71u - (unsigned int)__builtin_clzll(largest)) / 8 : 1;
}

static int put_planes(struct sbt_encoder *encoder, const uint64_t *words, uint32_t count,
		      unsigned int width, struct ts_text *out)
{
	ts_text_append_char(out, (char)width);
	for (unsigned int k = 0; k < width; k++) {
		for (uint32_t i = 0; i < count; i++)
			encoder->bytes[i] = (uint8_t)(words[i] >> (8 * k));
		if (put_block(encoder, encoder->bytes, count, encoder->level, out))
			return TS_ENOMEM;
	}
	return ts_text_status(out);
}

/* ---- LOG ---- */

static inline unsigned int log_class(uint64_t word, unsigned int mantissa, unsigned int *ret_low)
{
	unsigned int bits = word ? 64u - (unsigned int)__builtin_clzll(word) : 0;

	if (bits <= mantissa + 1) {
		*ret_low = 0;
		return (unsigned int)word;
	}
	*ret_low = bits - mantissa - 1;
	return (*ret_low << mantissa) + (unsigned int)(word >> *ret_low);
}

static int put_log(struct sbt_encoder *encoder, const uint64_t *words, uint32_t count,
		   unsigned int mantissa, struct ts_text *out)
{
	uint64_t bits = 0;
	uint32_t bits_bytes, at = 0;
	unsigned __int128 pending = 0;
	unsigned int pending_bits = 0, low;
	char *stream;

	for (uint32_t i = 0; i < count; i++) {
		encoder->bytes[i] = (uint8_t)log_class(words[i], mantissa, &low);
		bits += low;
	}
	bits_bytes = (uint32_t)((bits + 7) / 8);
	ts_text_append_char(out, (char)mantissa);
	if (put_block(encoder, encoder->bytes, count, encoder->level, out))
		return TS_ENOMEM;
	ts_text_append(out, &bits_bytes, sizeof(bits_bytes));
	if (!ts_text_reserve(out, bits_bytes + sizeof(uint64_t)))
		return TS_ENOMEM;
	stream = out->data + out->length;
	for (uint32_t i = 0; i < count; i++) {
		log_class(words[i], mantissa, &low);
		pending |= (unsigned __int128)(words[i] & ((UINT64_C(1) << low) - 1))
			   << pending_bits;
		pending_bits += low;
		if (pending_bits >= 64) {
			uint64_t word = (uint64_t)pending;

			memcpy(stream + at, &word, sizeof(word));
			at += sizeof(word);
			pending >>= 64;
			pending_bits -= 64;
		}
	}
	for (; at < bits_bytes; at++, pending >>= 8)
		stream[at] = (char)pending;
	out->length += bits_bytes;
	return ts_text_status(out);
}

/* ---- transforms ---- */

struct column_facts {
	int64_t smallest, largest;
	uint64_t largest_delta;  /* as DELTA words */
	uint64_t largest_zigzag; /* as ZIGZAG words */
	bool rising;             /* never decreases */
	bool constant;
};

static inline uint64_t zigzag(uint64_t delta)
{
	return delta << 1 ^ -(delta >> 63);
}

static struct column_facts column_facts(const int64_t *values, uint32_t count)
{
	int64_t smallest = values[0], largest = values[0];
	uint64_t deltas = 0, zigzags = 0;
	int64_t falls = 0;

	for (uint32_t i = 1; i < count; i++) {
		uint64_t delta = (uint64_t)values[i] - (uint64_t)values[i - 1];

		smallest = values[i] < smallest ? values[i] : smallest;
		largest = values[i] > largest ? values[i] : largest;
		/* Only the highest bit matters, so OR serves as maximum. */
		deltas |= delta;
		zigzags |= zigzag(delta);
		falls |= -(int64_t)(values[i] < values[i - 1]);
	}
	return (struct column_facts){ .smallest = smallest,
				      .largest = largest,
				      .largest_delta = deltas,
				      .largest_zigzag = zigzags,
				      .rising = falls == 0,
				      .constant = smallest == largest };
}

static inline uint64_t transformed(const int64_t *values, uint32_t i, unsigned int transform,
				   int64_t base)
{
	uint64_t delta;

	if (transform == SBT_TRANSFORM_OFFSET)
		return (uint64_t)values[i] - (uint64_t)base;
	delta = i ? (uint64_t)values[i] - (uint64_t)values[i - 1] : 0;
	return transform == SBT_TRANSFORM_DELTA ? delta : zigzag(delta);
}

static void transform_all(const int64_t *values, uint32_t count, unsigned int transform,
			  int64_t base, uint64_t *words)
{
	switch (transform) {
	case SBT_TRANSFORM_OFFSET:
		for (uint32_t i = 0; i < count; i++)
			words[i] = (uint64_t)values[i] - (uint64_t)base;
		return;
	case SBT_TRANSFORM_DELTA:
		words[0] = 0;
		for (uint32_t i = 1; i < count; i++)
			words[i] = (uint64_t)values[i] - (uint64_t)values[i - 1];
		return;
	default:
		words[0] = 0;
		for (uint32_t i = 1; i < count; i++)
			words[i] = zigzag((uint64_t)values[i] - (uint64_t)values[i - 1]);
	}
}

/* ---- choosing ---- */

/* A column's values at a few offsets, neighbours kept together. */
struct sample {
	uint32_t at[SAMPLE_MAX];
	uint32_t count;
};

static void take_sample(struct sample *sample, uint32_t count)
{
	sample->count = 0;
	if (count <= SAMPLE_MAX) {
		for (uint32_t i = 0; i < count; i++)
			sample->at[sample->count++] = i;
		return;
	}
	for (uint32_t run = 0; run < SAMPLE_RUNS; run++) {
		uint32_t first =
			(uint32_t)((uint64_t)run * (count - SAMPLE_RUN) / (SAMPLE_RUNS - 1));

		for (uint32_t i = 0; i < SAMPLE_RUN; i++)
			sample->at[sample->count++] = first + i;
	}
}

/* Bits per symbol, order 0, corrected for the sample size (Miller and Madow). */
static double entropy(const uint32_t counts[256], uint32_t total)
{
	double bits = 0;
	int symbols = 0;

	for (int i = 0; i < 256; i++) {
		if (!counts[i])
			continue;
		symbols++;
		bits -= counts[i] * log2((double)counts[i] / total);
	}
	return TS_MIN(bits / total + (symbols - 1) / (2 * M_LN2 * total), 8.0);
}

static double planes_cost(const uint64_t *words, uint32_t count, unsigned int width)
{
	double bits = 0;

	for (unsigned int k = 0; k < width; k++) {
		uint32_t counts[256] = { 0 };

		for (uint32_t i = 0; i < count; i++)
			counts[words[i] >> (8 * k) & 255]++;
		bits += entropy(counts, count);
	}
	return bits;
}

static double log_cost(const uint64_t *words, uint32_t count, unsigned int mantissa)
{
	uint32_t counts[256] = { 0 };
	uint64_t low_bits = 0;

	for (uint32_t i = 0; i < count; i++) {
		unsigned int low;

		counts[log_class(words[i], mantissa, &low)]++;
		low_bits += low;
	}
	return entropy(counts, count) + (double)low_bits / count;
}

/* A candidate encoding. */
struct choice {
	unsigned int layout, transform, mantissa, width;
	double bits; /* estimate per value */
};

/* Two transforms, each as planes or with up to three mantissas; and a dictionary. */
struct choices {
	struct choice list[2 * (1 + SBT_LOG_MAX_MANTISSA) + 1];
	unsigned int count;
};

static void consider_transform(struct choices *choices, const struct sample *sample,
			       const int64_t *values, unsigned int transform, int64_t base,
			       uint64_t largest, enum sbt_hint hint)
{
	uint64_t words[SAMPLE_MAX];
	struct choice planes = { .layout = SBT_LAYOUT_PLANES,
				 .transform = transform,
				 .width = byte_width(largest) };

	for (uint32_t i = 0; i < sample->count; i++)
		words[i] = transformed(values, sample->at[i], transform, base);
	planes.bits = planes_cost(words, sample->count, planes.width);
	choices->list[choices->count++] = planes;
	if (hint != SBT_HINT_TIME || planes.width < 2)
		return;
	for (unsigned int mantissa = 1; mantissa <= SBT_LOG_MAX_MANTISSA; mantissa++)
		if (largest <= sbt_log_max_word(mantissa))
			choices->list[choices->count++] =
				(struct choice){ .layout = SBT_LAYOUT_LOG,
						 .transform = transform,
						 .mantissa = mantissa,
						 .bits = log_cost(words, sample->count, mantissa) };
}

/* Few distinct values in the sample, estimated by a sketch. */
static uint32_t sample_distinct(const struct sample *sample, const int64_t *values)
{
	uint64_t seen[1024] = { 0 };
	uint32_t distinct = 0;

	for (uint32_t i = 0; i < sample->count; i++) {
		uint64_t hash = ts_hash_mix64((uint64_t)values[sample->at[i]]) & 65535;

		distinct += !(seen[hash / 64] >> (hash % 64) & 1);
		seen[hash / 64] |= UINT64_C(1) << (hash % 64);
	}
	return distinct;
}

static void consider_dictionary(struct choices *choices, const struct sample *sample,
				const int64_t *values, uint32_t count, unsigned int width,
				enum sbt_hint hint)
{
	uint32_t distinct;

	if (hint == SBT_HINT_TIME || width < 2 || count < 8)
		return;
	distinct = sample_distinct(sample, values);
	if (distinct * 3 >= sample->count || (width == 2 && distinct > 200))
		return;
	/* An upper bound, for indices in random order; a trial tells the actual size. */
	choices->list[choices->count++] =
		(struct choice){ .layout = SBT_LAYOUT_DICT, .bits = log2(distinct + 1.0) };
}

static void list_choices(struct choices *choices, const struct sample *sample,
			 const int64_t *values, uint32_t count, const struct column_facts *facts,
			 enum sbt_hint hint)
{
	uint64_t range = (uint64_t)facts->largest - (uint64_t)facts->smallest;

	choices->count = 0;
	consider_transform(choices, sample, values, SBT_TRANSFORM_OFFSET, facts->smallest, range,
			   hint);
	consider_dictionary(choices, sample, values, count, byte_width(range), hint);
	if (hint == SBT_HINT_DOUBLE || range < 2)
		return;
	if (facts->rising)
		consider_transform(choices, sample, values, SBT_TRANSFORM_DELTA, 0,
				   facts->largest_delta, hint);
	else
		consider_transform(choices, sample, values, SBT_TRANSFORM_ZIGZAG, 0,
				   facts->largest_zigzag, hint);
}

/* ---- dictionary ---- */

/*
 * Collects the distinct values, with their indices per row in encoder->words. Returns their number,
 * or 0 if there are more than `most`.
 */
static uint32_t collect(struct sbt_encoder *encoder, const int64_t *values, uint32_t count,
			int64_t *distinct, uint32_t most)
{
	uint32_t found = 0;

	if (!encoder->slots) {
		encoder->slots = malloc(DICTIONARY_SLOTS * sizeof(*encoder->slots));
		encoder->slot_index = malloc(DICTIONARY_SLOTS * sizeof(*encoder->slot_index));
		if (!encoder->slots || !encoder->slot_index)
			return 0;
	}
	memset(encoder->slot_index, 0, DICTIONARY_SLOTS * sizeof(*encoder->slot_index));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t value = (uint64_t)values[i];
		uint32_t slot = (uint32_t)ts_hash_mix64(value) & (DICTIONARY_SLOTS - 1);

		while (encoder->slot_index[slot] && encoder->slots[slot] != value)
			slot = (slot + 1) & (DICTIONARY_SLOTS - 1);
		if (!encoder->slot_index[slot]) {
			if (found == most)
				return 0;
			encoder->slots[slot] = value;
			distinct[found] = values[i];
			encoder->slot_index[slot] = ++found;
		}
		encoder->words[i] = encoder->slot_index[slot] - 1;
	}
	return found;
}

/* TS_ENOTFOUND: too many distinct values. */
static int put_dictionary(struct sbt_encoder *encoder, const int64_t *values, uint32_t count,
			  struct ts_text *out)
{
	uint32_t most = TS_MIN(TS_MAX(count / 2, 1u), DICTIONARY_MAX), entries;
	TS_AUTO_FREE int64_t *distinct = ts_alloc_array(most, sizeof(*distinct));

	if (!distinct)
		return TS_ENOMEM;
	entries = collect(encoder, values, count, distinct, most);
	if (!entries)
		return TS_ENOTFOUND;
	ts_text_append(out, &entries, sizeof(entries));
	if (put_block(encoder, (const uint8_t *)distinct, entries * sizeof(*distinct),
		      encoder->level, out))
		return TS_ENOMEM;
	return put_planes(encoder, encoder->words, count, byte_width(entries - 1), out);
}

/* ---- trying ---- */

static int put_choice(struct sbt_encoder *encoder, const int64_t *values, uint32_t count,
		      const struct choice *choice, int64_t base, struct ts_text *out)
{
	if (choice->layout == SBT_LAYOUT_DICT)
		return put_dictionary(encoder, values, count, out);
	transform_all(values, count, choice->transform, base, encoder->words);
	if (choice->layout == SBT_LAYOUT_LOG)
		return put_log(encoder, encoder->words, count, choice->mantissa, out);
	return put_planes(encoder, encoder->words, count, choice->width, out);
}

static int64_t base_of(const struct choice *choice, const struct column_facts *facts,
		       const int64_t *values)
{
	if (choice->layout == SBT_LAYOUT_DICT)
		return 0;
	return choice->transform == SBT_TRANSFORM_OFFSET ? facts->smallest : values[0];
}

/* Entropy ignores repeats: candidates near the best are tried on part of the column. */
static struct choice choose(struct sbt_encoder *encoder, const struct choices *choices,
			    const int64_t *values, uint32_t count, const struct column_facts *facts)
{
	uint32_t trial_count = TS_MIN(count, TRIAL_ROWS);
	const int64_t *trial = values + (count - trial_count) / 2;
	double least = HUGE_VAL;
	size_t smallest = SIZE_MAX;
	struct choice best = choices->list[0];

	for (unsigned int i = 0; i < choices->count; i++)
		least = TS_MIN(least, choices->list[i].bits);
	for (unsigned int i = 0; i < choices->count; i++) {
		const struct choice *choice = &choices->list[i];

		if (choice->bits > least * TRIAL_FACTOR + 0.5)
			continue;
		ts_text_clear(&encoder->trial);
		if (put_choice(encoder, trial, trial_count, choice, base_of(choice, facts, trial),
			       &encoder->trial))
			continue;
		if (encoder->trial.length < smallest) {
			smallest = encoder->trial.length;
			best = *choice;
		}
	}
	return best;
}

/* ---- columns ---- */

static void close_column(struct sbt_column *column, uint32_t count, unsigned int layout,
			 unsigned int transform, int64_t base, struct ts_text *out, size_t start)
{
	column->encoding = SBT_ENCODING(layout, transform);
	column->count = count;
	column->base = base;
	column->stored_bytes = (uint32_t)(out->length - start);
	column->checksum = ts_hash64(out->data ? out->data + start : "", out->length - start);
}

/* Counts what stays where it is. */
static void add_raw(const struct sbt_encoder *encoder, struct sbt_column *column,
		    const struct ts_text *out, size_t start)
{
	struct ts_hash_stream hash;

	ts_hash_stream_init(&hash);
	ts_hash_stream_add(&hash, out->data + start, out->length - start);
	ts_hash_stream_add(&hash, encoder->raw, encoder->raw_bytes);
	column->stored_bytes += (uint32_t)encoder->raw_bytes;
	column->checksum = ts_hash_stream_digest(&hash);
}

void sbt_encode_constant(int64_t value, uint32_t count, struct sbt_column *column)
{
	column->encoding = SBT_ENCODING(SBT_LAYOUT_CONST, 0);
	column->count = count;
	column->base = value;
	column->stored_bytes = 0;
	column->checksum = ts_hash64("", 0);
}

int sbt_encode_column(struct sbt_encoder *encoder, const int64_t *values, uint32_t count,
		      enum sbt_hint hint, struct ts_text *out, struct sbt_column *column)
{
	struct column_facts facts = column_facts(values, count);
	size_t start = out->length;
	struct choices choices;
	struct sample sample;
	struct choice choice;
	int result;

	if (facts.constant) {
		sbt_encode_constant(values[0], count, column);
		return TS_OK;
	}
	if (encoder_prepare(encoder, count))
		return TS_ENOMEM;
	take_sample(&sample, count);
	list_choices(&choices, &sample, values, count, &facts, hint);
	choice = choose(encoder, &choices, values, count, &facts);
	result = put_choice(encoder, values, count, &choice, base_of(&choice, &facts, values), out);
	if (result == TS_ENOTFOUND) {
		/*
		 * The trial saw fewer distinct values than there are: the first choice always
		 * works.
		 */
		out->length = start;
		choice = choices.list[0];
		result = put_choice(encoder, values, count, &choice,
				    base_of(&choice, &facts, values), out);
	}
	close_column(column, count, choice.layout, choice.transform,
		     base_of(&choice, &facts, values), out, start);
	return result;
}

int sbt_encode_bytes(struct sbt_encoder *encoder, const int64_t *lengths, uint32_t count,
		     const char *data, size_t data_bytes, struct ts_text *out,
		     struct sbt_column *column)
{
	/* Text is written once and is a large part of a small trace: worth a better level. */
	int level = TS_MAX(encoder->level, data_bytes > (256 << 10) ? 5 : 9);
	uint32_t raw_bytes = (uint32_t)data_bytes;
	size_t start = out->length;
	uint64_t largest = 0;

	if (encoder->bytes_level)
		level = encoder->bytes_level;
	if (encoder_prepare(encoder, count))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		encoder->words[i] = (uint64_t)lengths[i];
		largest |= (uint64_t)lengths[i];
	}
	if (put_planes(encoder, encoder->words, count, byte_width(largest), out))
		return TS_ENOMEM;
	ts_text_append(out, &raw_bytes, sizeof(raw_bytes));
	if (encoder->bytes_level && data_bytes >= SAMPLED_BYTES &&
	    !looks_compressible(encoder, data, data_bytes))
		put_raw(encoder, data, data_bytes, out);
	else if (put_block(encoder, (const uint8_t *)data, data_bytes, level, out))
		return TS_ENOMEM;
	if (ts_text_status(out))
		return TS_ENOMEM;
	close_column(column, count, SBT_LAYOUT_BYTES, 0, 0, out, start);
	if (encoder->raw)
		add_raw(encoder, column, out, start);
	return TS_OK;
}
