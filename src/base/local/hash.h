/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content hash: XXH3, 64 bits, seed 0. It is part of the file format, so its values are the
 * same on every build and machine. Not cryptographic, and not hardened against crafted collisions.
 */
#ifndef TS_BASE_LOCAL_HASH_H
#define TS_BASE_LOCAL_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3_64bits(data, bytes): from <xxhash.h> where the build has it, else ts_hash64_portable(). */
uint64_t ts_hash64(const void *data, size_t bytes);

/* The same function in our own code; always built so that tests can compare the two. */
uint64_t ts_hash64_portable(const void *data, size_t bytes);

/*
 * The same function over input that arrives in pieces. A digest may be taken at any time. The
 * struct is the complete state, without padding or pointers, so it can be stored and resumed
 * elsewhere. A corrupt stored state gives a wrong hash and nothing worse
 * (ts_hash_stream_is_sound()).
 */
#define TS_HASH_BLOCK_BYTES 1024
#define TS_HASH_STRIPE_BYTES 64
struct ts_hash_stream {
	uint64_t lanes[8];
	uint64_t bytes; /* total */
	/*
	 * The last stripe of the block before `held`, then the newest bytes: the end is hashed
	 * differently and may need both.
	 */
	uint8_t before[TS_HASH_STRIPE_BYTES];
	uint8_t held[TS_HASH_BLOCK_BYTES];
	uint64_t held_bytes;
};

void ts_hash_stream_init(struct ts_hash_stream *stream);
void ts_hash_stream_add(struct ts_hash_stream *stream, const void *data, size_t bytes);
uint64_t ts_hash_stream_digest(const struct ts_hash_stream *stream);
bool ts_hash_stream_is_sound(const struct ts_hash_stream *stream);

/*
 * A keyed hash to compare contents that somebody else may have chosen: two different contents of at
 * most n bytes collide with probability (n / 256 + 6) / 2^61 over the keys, as long as the key is
 * secret. 61 bits. At the speed of memory.
 */
struct ts_hash_key {
	uint32_t words[(TS_HASH_BLOCK_BYTES + 16) / 4];
	uint64_t point;
};

/* Draws a random key. */
void ts_hash_key_draw(struct ts_hash_key *key);
uint64_t ts_hash_keyed(const struct ts_hash_key *key, const void *data, size_t bytes);

/* Spreads an integer key over 64 bits. A bijection, so distinct keys never collide in full. */
static inline uint64_t ts_hash_mix64(uint64_t key)
{
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93u;
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93u;
	key ^= key >> 32;
	return key;
}

#endif
