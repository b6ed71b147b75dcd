/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one content hash: XXH3, 64 bits, seed 0. It is part of the file format, so its value for
 * given bytes is the same on every build and machine. Not for secrets, and not hardened against
 * crafted collisions. Knows nothing of what it hashes.
 */
#ifndef TS_BASE_HASH_H
#define TS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3_64bits(data, bytes): <xxhash.h>'s where the build has it, else ts_hash64_portable(). */
uint64_t ts_hash64(const void *data, size_t bytes);

/* The same function, our own code; always built so that tests can compare the two. */
uint64_t ts_hash64_portable(const void *data, size_t bytes);

/* Spreads an integer key over 64 bits (a bijection, so distinct keys never collide in full). */
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
