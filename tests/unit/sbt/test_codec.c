/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to bytes and back: every layout and transform, edge values, and malformed bytes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/memory.h"
#include "sbt/codec.h"

#include "unit/runner.h"

#define MOST 70000

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Encodes, decodes, compares; returns the chosen encoding. */
static unsigned int round_trip(const int64_t *values, uint32_t count, enum sbt_hint hint)
{
	struct sbt_encoder encoder = { .level = 3 };
	struct sbt_decoder decoder = { 0 };
	TS_SCOPED(ts_text) out = { 0 };
	struct sbt_column column = { 0 };
	int64_t *decoded = calloc(count, sizeof(*decoded));
	uint8_t *payload;
	const char *why = NULL;

	TS_CHECK_INT(sbt_encode_column(&encoder, values, count, hint, &out, &column), 0);
	TS_CHECK_INT(column.count, count);
	TS_CHECK_INT(column.stored_bytes, out.length);
	payload = calloc(1, out.length + SBT_DECODE_SLACK);
	if (out.length)
		memcpy(payload, out.data, out.length);
	TS_CHECK_INT(sbt_decode_column(&decoder, &column, payload, decoded, &why), 0);
	for (uint32_t i = 0; i < count; i++)
		TS_CHECK_INT(decoded[i], values[i]);
	free(payload);
	free(decoded);
	sbt_encoder_release(&encoder);
	sbt_decoder_release(&decoder);
	return column.encoding;
}

TS_TEST(constant)
{
	int64_t values[100];

	for (int i = 0; i < 100; i++)
		values[i] = INT64_MIN;
	TS_CHECK_INT(round_trip(values, 100, SBT_HINT_NUMBER), SBT_ENCODING(SBT_LAYOUT_CONST, 0));
	TS_CHECK_INT(round_trip(values, 1, SBT_HINT_TIME), SBT_ENCODING(SBT_LAYOUT_CONST, 0));
}

TS_TEST(extremes)
{
	int64_t values[] = { INT64_MIN,     INT64_MAX,     0, -1,  1,
			     INT64_MIN + 1, INT64_MAX - 1, 0, 255, 256 };

	for (uint32_t count = 1; count <= TS_ARRAY_SIZE(values); count++) {
		round_trip(values, count, SBT_HINT_NUMBER);
		round_trip(values, count, SBT_HINT_TIME);
		round_trip(values, count, SBT_HINT_DOUBLE);
	}
}

TS_TEST(rising_times_use_deltas)
{
	static int64_t values[MOST];
	int64_t now = 1700000000000000000;
	unsigned int encoding;

	for (int i = 0; i < MOST; i++)
		values[i] = now += (int64_t)(exp2((double)(next_random() % 1600) / 100));
	encoding = round_trip(values, MOST, SBT_HINT_TIME);
	TS_CHECK_INT(SBT_ENCODING_TRANSFORM(encoding), SBT_TRANSFORM_DELTA);
	TS_CHECK_INT(SBT_ENCODING_LAYOUT(encoding), SBT_LAYOUT_LOG);
}

TS_TEST(few_wide_values_use_a_dictionary)
{
	static int64_t values[MOST];

	for (int i = 0; i < MOST; i++) {
		double value = sqrt((double)(next_random() % 50));

		memcpy(&values[i], &value, sizeof(value));
	}
	TS_CHECK_INT(round_trip(values, MOST, SBT_HINT_DOUBLE), SBT_ENCODING(SBT_LAYOUT_DICT, 0));
}

TS_TEST(every_bit_width)
{
	static int64_t values[3000];

	for (unsigned int bits = 0; bits <= 64; bits++) {
		uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

		for (int i = 0; i < 3000; i++)
			values[i] = (int64_t)(next_random() & mask);
		round_trip(values, 3000, SBT_HINT_NUMBER);
		round_trip(values, 3000, SBT_HINT_TIME);
		for (int i = 0; i < 3000; i++)
			values[i] = (int64_t)((next_random() & mask) >> (next_random() % 64));
		round_trip(values, 3000, SBT_HINT_TIME);
	}
}

/* Every encoding that the format allows, including those that the encoder would not choose. */
TS_TEST(decodes_log_of_every_mantissa)
{
	for (unsigned int mantissa = 0; mantissa <= SBT_LOG_MAX_MANTISSA; mantissa++) {
		struct sbt_decoder decoder = { 0 };
		/* u = 5 and 1000, by hand: classes, then the low bits of each. */
		unsigned int low5 = mantissa < 2 ? 2 - mantissa : 0, low1000 = 9 - mantissa;
		uint32_t bits = (uint32_t)(5 & ((1u << low5) - 1)) |
				(uint32_t)(1000 & ((1u << low1000) - 1)) << low5;
		uint32_t bytes = (low5 + low1000 + 7) / 8;
		uint8_t payload[64] = { (uint8_t)mantissa, SBT_BLOCK_RAW,
					(uint8_t)((low5 << mantissa) + (5 >> low5)),
					(uint8_t)((low1000 << mantissa) + (1000 >> low1000)) };
		struct sbt_column column = { .encoding = SBT_ENCODING(SBT_LAYOUT_LOG,
								      SBT_TRANSFORM_OFFSET),
					     .count = 2,
					     .base = 7 };
		int64_t values[2];
		const char *why;

		memcpy(payload + 4, &bytes, 4);
		memcpy(payload + 8, &bits, bytes);
		column.stored_bytes = 8 + bytes;
		TS_CHECK_INT(sbt_decode_column(&decoder, &column, payload, values, &why), 0);
		TS_CHECK_INT(values[0], 12);
		TS_CHECK_INT(values[1], 1007);
		sbt_decoder_release(&decoder);
	}
}

TS_TEST(byte_strings)
{
	static const char data[] = "onetwo\0three";
	int64_t lengths[] = { 3, 0, 4, 5, 0 };
	struct sbt_encoder encoder = { .level = 3 };
	struct sbt_decoder decoder = { 0 };
	TS_SCOPED(ts_text) out = { 0 };
	struct sbt_column column = { 0 };
	uint64_t offsets[6];
	char *text = NULL;
	const char *why;

	TS_CHECK_INT(sbt_encode_bytes(&encoder, lengths, 5, data, 12, &out, &column), 0);
	ts_text_append(&out, "0123456789abcdef", SBT_DECODE_SLACK);
	TS_CHECK_INT(sbt_decode_bytes(&decoder, &column, (uint8_t *)out.data, true, offsets, &text,
				      &why),
		     0);
	TS_CHECK_STR(text + offsets[0], "one");
	TS_CHECK_STR(text + offsets[1], "");
	TS_CHECK(memcmp(text + offsets[2], "two\0", 5) == 0);
	TS_CHECK_STR(text + offsets[3], "three");
	TS_CHECK_STR(text + offsets[4], "");
	TS_CHECK_INT(offsets[5], 12 + 5);
	free(text);
	sbt_encoder_release(&encoder);
	sbt_decoder_release(&decoder);
}

/* Random payloads, and valid payloads with random changes: never a crash, mostly an error. */
TS_TEST(noise_is_refused)
{
	static const unsigned int layouts[] = { SBT_LAYOUT_CONST, SBT_LAYOUT_PLANES, SBT_LAYOUT_LOG,
						SBT_LAYOUT_DICT,  SBT_LAYOUT_BYTES,  9 };
	struct sbt_decoder decoder = { 0 };
	int64_t values[300];
	uint64_t offsets[301];

	for (int run = 0; run < 20000; run++) {
		uint32_t bytes = (uint32_t)(next_random() % 200);
		uint8_t *payload = malloc(bytes + SBT_DECODE_SLACK);
		struct sbt_column column = { .encoding = SBT_ENCODING(layouts[next_random() % 6],
								      next_random() % 4),
					     .count = (uint32_t)(next_random() % 300),
					     .stored_bytes = bytes };
		const char *why = "";
		char *text = NULL;

		for (uint32_t i = 0; i < bytes + SBT_DECODE_SLACK; i++)
			payload[i] = (uint8_t)(next_random() % (run % 7 ? 4 : 256));
		if (sbt_decode_column(&decoder, &column, payload, values, &why) == TS_EFORMAT)
			TS_CHECK(why && *why);
		if (!sbt_decode_bytes(&decoder, &column, payload, true, offsets, &text, &why))
			free(text);
		free(payload);
	}
	sbt_decoder_release(&decoder);
}
