/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3 (64 bits, seed 0), written from the algorithm's public specification; uses <xxhash.h> where
 * the build has it. The file format depends on its values: make it faster if you like, but never
 * different.
 */
#include "base/local/hash.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#if defined(__has_include)
#if __has_include("tracesmith_config.h")
#include "tracesmith_config.h"
#endif
#endif

#ifdef TS_HAVE_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PRIME32_1 0x9e3779b1u
#define PRIME32_2 0x85ebca77u
#define PRIME32_3 0xc2b2ae3du
#define PRIME64_1 0x9e3779b185ebca87u
#define PRIME64_2 0xc2b2ae3d27d4eb4fu
#define PRIME64_3 0x165667b19e3779f9u
#define PRIME64_4 0x85ebca77c2b2ae63u
#define PRIME64_5 0x27d4eb2f165667c5u
#define MIX_1 0x165667919e3779f9u
#define MIX_2 0x9fb21c651e98df25u

#define SECRET_BYTES 192
#define STRIPE_BYTES 64
#define LANES 8
/* Each stripe of a block advances 8 bytes in the secret. */
#define STRIPES_PER_BLOCK ((SECRET_BYTES - STRIPE_BYTES) / 8)
#define BLOCK_BYTES (STRIPES_PER_BLOCK * STRIPE_BYTES)

static const unsigned char secret[SECRET_BYTES] = {
	0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad,
	0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3,
	0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc,
	0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
	0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65,
	0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
	0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9,
	0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
	0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb,
	0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0,
	0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d,
	0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
	0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

static inline uint32_t read32(const unsigned char *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap32(value);
#endif
	return value;
}

static inline uint64_t read64(const unsigned char *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap64(value);
#endif
	return value;
}

static inline uint64_t rotate_left(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

/* The 128-bit product with its halves xored together. */
static inline uint64_t multiply_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t avalanche(uint64_t hash)
{
	hash ^= hash >> 37;
	hash *= MIX_1;
	return hash ^ hash >> 32;
}

/* The stronger finalizer for the shortest inputs. */
static inline uint64_t avalanche_short(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= PRIME64_2;
	hash ^= hash >> 29;
	hash *= PRIME64_3;
	return hash ^ hash >> 32;
}

static inline uint64_t mix16(const unsigned char *p, const unsigned char *key)
{
	return multiply_fold(read64(p) ^ read64(key), read64(p + 8) ^ read64(key + 8));
}

static uint64_t hash_to_3(const unsigned char *p, size_t n)
{
	uint32_t combined;

	if (n == 0)
		return avalanche_short(read64(secret + 56) ^ read64(secret + 64));
	combined = (uint32_t)p[0] << 16 | (uint32_t)p[n >> 1] << 24 | p[n - 1] | (uint32_t)n << 8;
	return avalanche_short(combined ^ (read32(secret) ^ read32(secret + 4)));
}

static uint64_t hash_4_to_8(const unsigned char *p, size_t n)
{
	uint64_t hash = read32(p + n - 4) + ((uint64_t)read32(p) << 32);

	hash ^= read64(secret + 8) ^ read64(secret + 16);
	hash ^= rotate_left(hash, 49) ^ rotate_left(hash, 24);
	hash *= MIX_2;
	hash ^= (hash >> 35) + n;
	hash *= MIX_2;
	return hash ^ hash >> 28;
}

static uint64_t hash_9_to_16(const unsigned char *p, size_t n)
{
	uint64_t low = read64(p) ^ (read64(secret + 24) ^ read64(secret + 32));
	uint64_t high = read64(p + n - 8) ^ (read64(secret + 40) ^ read64(secret + 48));

	return avalanche(n + __builtin_bswap64(low) + high + multiply_fold(low, high));
}

/* From both ends inwards, 16 bytes per step. */
static uint64_t hash_17_to_128(const unsigned char *p, size_t n)
{
	uint64_t hash = n * PRIME64_1;

	for (size_t i = (n - 1) / 32 + 1; i-- > 0;) {
		hash += mix16(p + 16 * i, secret + 32 * i);
		hash += mix16(p + n - 16 * (i + 1), secret + 32 * i + 16);
	}
	return avalanche(hash);
}

static uint64_t hash_129_to_240(const unsigned char *p, size_t n)
{
	uint64_t hash = n * PRIME64_1;

	for (size_t i = 0; i < 8; i++)
		hash += mix16(p + 16 * i, secret + 16 * i);
	hash = avalanche(hash);
	for (size_t i = 8; i < n / 16; i++)
		hash += mix16(p + 16 * i, secret + 16 * (i - 8) + 3);
	hash += mix16(p + n - 16, secret + 136 - 17);
	return avalanche(hash);
}

/* ---- 16 bytes at a time, where the processor multiplies two pairs of 32 bits at once ---- */

#if defined(__SSE2__)

typedef __m128i vector;

static inline vector load(const void *p)
{
	return _mm_loadu_si128(p);
}

static inline void store(void *p, vector value)
{
	_mm_storeu_si128(p, value);
}

static inline vector add32(vector a, vector b)
{
	return _mm_add_epi32(a, b);
}

/* Adds the products of 32-bit words to two sums of 64 bits. */
static inline vector add_products(vector sums, vector a, vector b)
{
	vector odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));

	return _mm_add_epi64(sums, _mm_add_epi64(_mm_mul_epu32(a, b), odd));
}

static inline vector accumulate_two(vector lanes, vector data, vector key)
{
	vector keyed = _mm_xor_si128(data, key);
	vector product = _mm_mul_epu32(keyed, _mm_srli_epi64(keyed, 32));

	data = _mm_shuffle_epi32(data, _MM_SHUFFLE(1, 0, 3, 2));
	return _mm_add_epi64(lanes, _mm_add_epi64(product, data));
}

static inline void accumulate_four(vector *first, vector *second, const unsigned char *p,
				   const unsigned char *key)
{
	*first = accumulate_two(*first, load(p), load(key));
	*second = accumulate_two(*second, load(p + 16), load(key + 16));
}

#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

typedef uint64x2_t vector;

static inline vector load(const void *p)
{
	return vreinterpretq_u64_u8(vld1q_u8(p));
}

static inline void store(void *p, vector value)
{
	vst1q_u8(p, vreinterpretq_u8_u64(value));
}

static inline vector add32(vector a, vector b)
{
	return vreinterpretq_u64_u32(vaddq_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b)));
}

static inline vector add_products(vector sums, vector a, vector b)
{
	uint32x4_t x = vreinterpretq_u32_u64(a), y = vreinterpretq_u32_u64(b);

	sums = vmlal_u32(sums, vget_low_u32(x), vget_low_u32(y));
	return vmlal_high_u32(sums, x, y);
}

/* Two vectors share the instructions that separate halves of lanes. */
static inline void accumulate_four(vector *first, vector *second, const unsigned char *p,
				   const unsigned char *key)
{
	vector x = load(p), y = load(p + 16);
	uint32x4_t keyed_x = vreinterpretq_u32_u64(veorq_u64(x, load(key)));
	uint32x4_t keyed_y = vreinterpretq_u32_u64(veorq_u64(y, load(key + 16)));
	uint32x4_t low = vuzp1q_u32(keyed_x, keyed_y), high = vuzp2q_u32(keyed_x, keyed_y);

	*first = vaddq_u64(*first, vextq_u64(x, x, 1));
	*first = vmlal_u32(*first, vget_low_u32(low), vget_low_u32(high));
	*second = vaddq_u64(*second, vextq_u64(y, y, 1));
	*second = vmlal_high_u32(*second, low, high);
}

#else

typedef struct {
	uint64_t lanes[2];
} vector;

static inline vector load(const void *p)
{
	const unsigned char *bytes = p;

	return (vector){ { read64(bytes), read64(bytes + 8) } };
}

static inline void store(void *p, vector value)
{
	memcpy(p, value.lanes, sizeof(value.lanes));
}

static inline vector add32(vector a, vector b)
{
	for (int i = 0; i < 2; i++)
		a.lanes[i] = (uint32_t)(a.lanes[i] + b.lanes[i]) |
			     ((a.lanes[i] >> 32) + (b.lanes[i] >> 32)) << 32;
	return a;
}

static inline vector add_products(vector sums, vector a, vector b)
{
	for (int i = 0; i < 2; i++)
		sums.lanes[i] += (uint64_t)(uint32_t)a.lanes[i] * (uint32_t)b.lanes[i] +
				 (a.lanes[i] >> 32) * (b.lanes[i] >> 32);
	return sums;
}

static inline vector accumulate_two(vector lanes, vector data, vector key)
{
	for (int i = 0; i < 2; i++) {
		uint64_t keyed = data.lanes[i] ^ key.lanes[i];

		lanes.lanes[i ^ 1] += data.lanes[i];
		lanes.lanes[i] += (uint32_t)keyed * (keyed >> 32);
	}
	return lanes;
}

static inline void accumulate_four(vector *first, vector *second, const unsigned char *p,
				   const unsigned char *key)
{
	*first = accumulate_two(*first, load(p), load(key));
	*second = accumulate_two(*second, load(p + 16), load(key + 16));
}

#endif

/* ---- long inputs ---- */

/*
 * Consecutive stripes; each advances 8 bytes in the key. The sums are not an array, which gcc -O2
 * would keep in memory.
 */
static inline void accumulate(uint64_t lanes[LANES], const unsigned char *p,
			      const unsigned char *key, size_t stripes)
{
	vector a = load(&lanes[0]), b = load(&lanes[2]), c = load(&lanes[4]), d = load(&lanes[6]);

	for (; stripes; stripes--, p += STRIPE_BYTES, key += 8) {
		accumulate_four(&a, &b, p, key);
		accumulate_four(&c, &d, p + 32, key + 32);
	}
	store(&lanes[0], a);
	store(&lanes[2], b);
	store(&lanes[4], c);
	store(&lanes[6], d);
}

static inline void scramble(uint64_t lanes[LANES], const unsigned char *key)
{
	for (size_t i = 0; i < LANES; i++) {
		lanes[i] ^= lanes[i] >> 47;
		lanes[i] ^= read64(key + 8 * i);
		lanes[i] *= PRIME32_1;
	}
}

static const uint64_t first_lanes[LANES] = { PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3,
					     PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1 };
static const unsigned char *const last_key = secret + SECRET_BYTES - STRIPE_BYTES;

/* Full blocks that are not the last. */
static void take_block(uint64_t lanes[LANES], const unsigned char *p)
{
	accumulate(lanes, p, secret, STRIPES_PER_BLOCK);
	scramble(lanes, last_key);
}

/* The rest, at most a block. The last stripe ends with the input and may overlap consumed bytes. */
static uint64_t take_end(uint64_t lanes[LANES], const unsigned char *p, size_t n,
			 const unsigned char *last_stripe, uint64_t bytes)
{
	uint64_t hash = bytes * PRIME64_1;

	accumulate(lanes, p, secret, n ? (n - 1) / STRIPE_BYTES : 0);
	accumulate(lanes, last_stripe, last_key - 7, 1);
	for (size_t i = 0; i < LANES / 2; i++)
		hash += multiply_fold(lanes[2 * i] ^ read64(secret + 11 + 16 * i),
				      lanes[2 * i + 1] ^ read64(secret + 11 + 16 * i + 8));
	return avalanche(hash);
}

static uint64_t hash_long(const unsigned char *p, size_t n)
{
	const unsigned char *end = p + n;
	uint64_t lanes[LANES];

	memcpy(lanes, first_lanes, sizeof(lanes));
	for (; end - p > BLOCK_BYTES; p += BLOCK_BYTES)
		take_block(lanes, p);
	return take_end(lanes, p, (size_t)(end - p), end - STRIPE_BYTES, n);
}

uint64_t ts_hash64_portable(const void *data, size_t bytes)
{
	const unsigned char *p = data;

	if (bytes <= 16) {
		if (bytes > 8)
			return hash_9_to_16(p, bytes);
		return bytes >= 4 ? hash_4_to_8(p, bytes) : hash_to_3(p, bytes);
	}
	if (bytes <= 128)
		return hash_17_to_128(p, bytes);
	return bytes <= 240 ? hash_129_to_240(p, bytes) : hash_long(p, bytes);
}

uint64_t ts_hash64(const void *data, size_t bytes)
{
#ifdef TS_HAVE_XXHASH
	return XXH3_64bits(data, bytes);
#else
	return ts_hash64_portable(data, bytes);
#endif
}

/* ---- in pieces ---- */

static_assert(TS_HASH_BLOCK_BYTES == BLOCK_BYTES && TS_HASH_STRIPE_BYTES == STRIPE_BYTES,
	      "as in hash.h");
static_assert(sizeof(struct ts_hash_stream) == 64 + 8 + STRIPE_BYTES + BLOCK_BYTES + 8,
	      "it is stored as it is");

void ts_hash_stream_init(struct ts_hash_stream *stream)
{
	memset(stream, 0, sizeof(*stream));
	memcpy(stream->lanes, first_lanes, sizeof(stream->lanes));
}

bool ts_hash_stream_is_sound(const struct ts_hash_stream *stream)
{
	return stream->held_bytes <= BLOCK_BYTES && stream->held_bytes <= stream->bytes;
}

static void hold(struct ts_hash_stream *stream, const unsigned char *p, size_t n)
{
	memcpy(stream->held + stream->held_bytes, p, n);
	stream->held_bytes += n;
}

/* A block is consumed only when more input follows. */
void ts_hash_stream_add(struct ts_hash_stream *stream, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	size_t space = BLOCK_BYTES - stream->held_bytes;

	if (!bytes)
		return;
	stream->bytes += bytes;
	if (bytes <= space) {
		hold(stream, p, bytes);
		return;
	}
	if (stream->held_bytes) {
		hold(stream, p, space);
		p += space;
		bytes -= space;
		take_block(stream->lanes, stream->held);
		memcpy(stream->before, stream->held + BLOCK_BYTES - STRIPE_BYTES, STRIPE_BYTES);
		stream->held_bytes = 0;
	}
	if (bytes > BLOCK_BYTES) {
		for (; bytes > BLOCK_BYTES; p += BLOCK_BYTES, bytes -= BLOCK_BYTES)
			take_block(stream->lanes, p);
		memcpy(stream->before, p - STRIPE_BYTES, STRIPE_BYTES);
	}
	hold(stream, p, bytes);
}

uint64_t ts_hash_stream_digest(const struct ts_hash_stream *stream)
{
	size_t held = stream->held_bytes;
	unsigned char last[STRIPE_BYTES];
	uint64_t lanes[LANES];

	if (stream->bytes <= BLOCK_BYTES)
		return ts_hash64(stream->held, held);
	if (held >= STRIPE_BYTES) {
		memcpy(last, stream->held + held - STRIPE_BYTES, STRIPE_BYTES);
	} else {
		memcpy(last, stream->before + held, STRIPE_BYTES - held);
		memcpy(last + STRIPE_BYTES - held, stream->held, held);
	}
	memcpy(lanes, stream->lanes, sizeof(lanes));
	return take_end(lanes, stream->held, held, last, stream->bytes);
}

/* ---- with a key ---- */

#define PRIME61 ((UINT64_C(1) << 61) - 1)

static inline uint64_t reduce61(unsigned __int128 value)
{
	uint64_t sum = (uint64_t)(value & PRIME61) + (uint64_t)(value >> 61);

	sum = (sum & PRIME61) + (sum >> 61);
	return sum >= PRIME61 ? sum - PRIME61 : sum;
}

static_assert(sizeof(((struct ts_hash_key *)0)->words) == TS_HASH_BLOCK_BYTES + 16,
	      "the second sum is 16 bytes ahead");

/*
 * Two sums of products of keyed words (NH of UMAC, RFC 4418): the key of the second is shifted.
 * `bytes` is a multiple of 32.
 */
static void sum_block(const struct ts_hash_key *key, const unsigned char *p, size_t bytes,
		      uint64_t ret_sums[2])
{
	const unsigned char *words = (const unsigned char *)key->words;
	uint64_t zeros[2] = { 0, 0 }, lanes[2];
	vector first = load(zeros), second = first, a = load(words);

	for (size_t i = 0; i < bytes; i += 32) {
		vector x = load(p + i), y = load(p + i + 16);
		vector b = load(words + i + 16), c = load(words + i + 32);

		first = add_products(first, add32(x, a), add32(y, b));
		second = add_products(second, add32(x, b), add32(y, c));
		a = c;
	}
	store(lanes, first);
	ret_sums[0] = lanes[0] + lanes[1];
	store(lanes, second);
	ret_sums[1] = lanes[0] + lanes[1];
}

/* A polynomial of the limbs at a secret point, modulo a prime. */
static inline uint64_t add_limb(uint64_t hash, uint64_t limb, uint64_t point)
{
	return reduce61((unsigned __int128)(hash + limb) * point);
}

static uint64_t add_block(const struct ts_hash_key *key, uint64_t hash, const unsigned char *p,
			  size_t bytes)
{
	uint64_t sums[2];

	sum_block(key, p, bytes, sums);
	for (int i = 0; i < 2; i++) {
		hash = add_limb(hash, sums[i] >> 32, key->point);
		hash = add_limb(hash, (uint32_t)sums[i], key->point);
	}
	return hash;
}

/* A signal may cut short a request for more. */
#define RANDOM_BYTES 256u

static bool draw(void *to, size_t bytes)
{
	char *next = to;

	while (bytes) {
		size_t count = bytes < RANDOM_BYTES ? bytes : RANDOM_BYTES;

		if (getrandom(next, count, GRND_NONBLOCK) != (ssize_t)count)
			return false;
		next += count;
		bytes -= count;
	}
	return true;
}

void ts_hash_key_draw(struct ts_hash_key *key)
{
	/* Without random numbers, as early after a boot: the address and the time must do. */
	if (!draw(key, sizeof(*key))) {
		uint64_t state = (uint64_t)(uintptr_t)key ^ (uint64_t)time(NULL) << 32;

		for (size_t i = 0; i < sizeof(*key) / 8; i++) {
			state = ts_hash_mix64(state + PRIME64_1);
			memcpy((char *)key + 8 * i, &state, sizeof(state));
		}
	}
	key->point = key->point % (PRIME61 - 2) + 1;
}

uint64_t ts_hash_keyed(const struct ts_hash_key *key, const void *data, size_t bytes)
{
	uint64_t hash = add_limb(0, bytes & (PRIME61 >> 1), key->point);
	unsigned char rest[TS_HASH_BLOCK_BYTES] = { 0 };
	const unsigned char *p = data;

	for (; bytes >= TS_HASH_BLOCK_BYTES; p += TS_HASH_BLOCK_BYTES, bytes -= TS_HASH_BLOCK_BYTES)
		hash = add_block(key, hash, p, TS_HASH_BLOCK_BYTES);
	if (!bytes)
		return hash;
	memcpy(rest, p, bytes);
	return add_block(key, hash, rest, (bytes + 31) / 32 * 32);
}
