/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content hash: our code against <xxhash.h> where the build has it, and both against fixed
 * values, since files contain them.
 */
#include "base/local/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "unit/runner.h"

static void fill(unsigned char *bytes, size_t count)
{
	uint64_t random = 88172645463325252u;

	for (size_t i = 0; i < count; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		bytes[i] = (unsigned char)(random >> 24);
	}
}

TS_TEST(both_codes_agree)
{
	static const size_t large[] = { 4095, 4096, 4097, 65536, 100003, 1 << 20, (1 << 20) + 63 };
	size_t bytes = (1 << 20) + 64;
	TS_AUTO_FREE unsigned char *data = malloc(bytes);

	fill(data, bytes);
	for (size_t n = 0; n <= 2100; n++) {
		TS_AUTO_FREE unsigned char *exact = malloc(n + !n);

		memcpy(exact, data + n, n);
		TS_CHECK_INT(ts_hash64(exact, n), ts_hash64_portable(exact, n));
		/* Alignment does not matter. */
		TS_CHECK_INT(ts_hash64_portable(exact, n), ts_hash64_portable(data + n, n));
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(large); i++)
		TS_CHECK_INT(ts_hash64(data + 1, large[i]), ts_hash64_portable(data + 1, large[i]));
}

TS_TEST(values_are_fixed)
{
	static const struct {
		size_t bytes;
		uint64_t hash;
	} cases[] = {
		{ 0, 0x2d06800538d394c2u },    { 1, 0xc44bdff4074eecdbu },
		{ 2, 0x433ce72a5f67ae52u },    { 3, 0x6811538b444fc6dcu },
		{ 4, 0xed503340c589a28bu },    { 7, 0xcf5c76090b0bca8fu },
		{ 8, 0xe5b43ab074c9c13bu },    { 9, 0x98b5d7141ed79e34u },
		{ 16, 0xac4b400b09fefc71u },   { 17, 0xe43948ad7d39cc4eu },
		{ 32, 0x285e921dd0912d24u },   { 33, 0x71dc38a3bf0b5551u },
		{ 64, 0x61aebb26f12563f6u },   { 65, 0x4f6fd22179b6afa5u },
		{ 96, 0x02ef3fb93f51af89u },   { 97, 0x5f560370492f16cdu },
		{ 128, 0xabe5353db9741d3cu },  { 129, 0x62e851eb617ab82cu },
		{ 160, 0x1442d8cb54abc106u },  { 239, 0xf6e3b35c498b9a5eu },
		{ 240, 0x3b7fbc325f2fe844u },  { 241, 0xa9d16963bf94ed57u },
		{ 256, 0x2da5ad14ab420002u },  { 1023, 0x6a940f0d1f87e826u },
		{ 1024, 0x9de7f57ae046252au }, { 1025, 0xbf9b78b0edb148d3u },
		{ 1088, 0x15efeba30eb0d4c3u }, { 2000, 0xadb1d2a498f8f694u },
	};
	unsigned char data[2000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 131 + (i >> 3));
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		TS_CHECK_INT(ts_hash64(data, cases[i].bytes), cases[i].hash);
		TS_CHECK_INT(ts_hash64_portable(data, cases[i].bytes), cases[i].hash);
	}
}

TS_TEST(mix_is_spread_over_low_bits)
{
	unsigned int buckets[256] = { 0 };

	TS_CHECK_INT(ts_hash_mix64(0), 0);
	for (uint64_t i = 0; i < 256 * 64; i++)
		buckets[ts_hash_mix64(i << 32) & 255]++;
	for (int i = 0; i < 256; i++)
		TS_CHECK(buckets[i] > 20 && buckets[i] < 130);
}

/* In pieces of random sizes, with digests in between, the result is the same. */
TS_TEST(pieces_give_the_same)
{
	static const size_t sizes[] = { 1,    3,    16,   17,   63,   64,   65,    128,
					129,  240,  241,  1023, 1024, 1025, 1087,  1088,
					1089, 2047, 2048, 2049, 4096, 5000, 65536, 100003 };
	TS_AUTO_FREE unsigned char *data = malloc(100003);
	uint64_t random = 42;

	fill(data, 100003);
	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++) {
		for (unsigned int round = 0; round < 20; round++) {
			struct ts_hash_stream stream;
			size_t at = 0;

			ts_hash_stream_init(&stream);
			TS_CHECK_INT(ts_hash_stream_digest(&stream), ts_hash64("", 0));
			while (at < sizes[i]) {
				size_t piece;

				random = ts_hash_mix64(random + 1);
				piece = random % (round < 10 ? 100 : 5000);
				piece = TS_MIN(piece, sizes[i] - at);
				ts_hash_stream_add(&stream, data + at, piece);
				at += piece;
				TS_CHECK_INT(ts_hash_stream_digest(&stream), ts_hash64(data, at));
				TS_CHECK(ts_hash_stream_is_sound(&stream));
			}
			TS_CHECK_INT(ts_hash_stream_digest(&stream), ts_hash64_portable(data, at));
		}
	}
}

/* A stored state continues; a damaged one is detected. */
TS_TEST(state_can_be_stored)
{
	struct ts_hash_stream stream, copy;
	unsigned char data[3000];

	fill(data, sizeof(data));
	ts_hash_stream_init(&stream);
	ts_hash_stream_add(&stream, data, 1500);
	memcpy(&copy, &stream, sizeof(copy));
	ts_hash_stream_add(&copy, data + 1500, 1500);
	TS_CHECK_INT(ts_hash_stream_digest(&copy), ts_hash64(data, sizeof(data)));
	copy.held_bytes = TS_HASH_BLOCK_BYTES + 1;
	TS_CHECK(!ts_hash_stream_is_sound(&copy));
}

/* Every byte counts, in each place of a block and of an incomplete one. */
TS_TEST(keyed_hash_depends_on_all)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 16, 31, 32, 33, 64, 1023, 1024, 1025, 2111, 4096
	};
	unsigned char data[4096], other[4096];
	struct ts_hash_key key, second;

	fill(data, sizeof(data));
	ts_hash_key_draw(&key);
	ts_hash_key_draw(&second);
	for (size_t k = 0; k < TS_ARRAY_SIZE(sizes); k++) {
		size_t n = sizes[k];
		uint64_t hash = ts_hash_keyed(&key, data, n);

		TS_CHECK(hash < (UINT64_C(1) << 61));
		TS_CHECK_INT(hash, ts_hash_keyed(&key, data, n));
		TS_CHECK(n == 0 || hash != ts_hash_keyed(&second, data, n));
		memcpy(other, data, n);
		for (size_t i = 0; i < n; i++) {
			other[i] ^= 0x80;
			TS_CHECK(hash != ts_hash_keyed(&key, other, n));
			other[i] = data[i];
		}
	}
	/* Zeros count, and so does the order of blocks. */
	memset(data, 0, sizeof(data));
	TS_CHECK(ts_hash_keyed(&key, data, 7) != ts_hash_keyed(&key, data, 8));
	TS_CHECK(ts_hash_keyed(&key, data, 1024) != ts_hash_keyed(&key, data, 2048));
	data[0] = 1;
	memset(other, 0, sizeof(other));
	other[1024] = 1;
	TS_CHECK(ts_hash_keyed(&key, data, 2048) != ts_hash_keyed(&key, other, 2048));
}

/* The sums are those of their definition, whatever the processor multiplies at once. */
TS_TEST(keyed_hash_is_its_definition)
{
	const uint64_t prime = (UINT64_C(1) << 61) - 1;
	unsigned char data[96];
	struct ts_hash_key key;
	uint32_t words[24];
	uint64_t sums[2] = { 0, 0 }, hash;

	fill(data, sizeof(data));
	memcpy(words, data, sizeof(words));
	ts_hash_key_draw(&key);
	for (size_t shift = 0; shift < 2; shift++)
		for (size_t i = 0; i < 24; i += 8)
			for (size_t j = i; j < i + 4; j++)
				sums[shift] += (uint64_t)(words[j] + key.words[j + 4 * shift]) *
					       (words[j + 4] + key.words[j + 4 + 4 * shift]);
	hash = (uint64_t)((unsigned __int128)sizeof(data) * key.point % prime);
	for (size_t i = 0; i < 2; i++) {
		hash = (uint64_t)((unsigned __int128)(hash + (sums[i] >> 32)) * key.point % prime);
		hash = (uint64_t)((unsigned __int128)(hash + (uint32_t)sums[i]) * key.point %
				  prime);
	}
	TS_CHECK_INT(ts_hash_keyed(&key, data, sizeof(data)), hash);
}
