/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of pages and words that are addresses, as PTX and in C. The PTX runs near the bandwidth of
 * memory: 16-byte loads, four in flight per thread, and one comparison per word with the span of
 * all moves before any table is read.
 */
#include "code/cuda/local/page_kernels.h"

#include <string.h>

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static uint64_t mix(uint64_t word)
{
	word ^= word >> 33;
	word *= UINT64_C(0xff51afd7ed558ccd);
	word ^= word >> 33;
	word *= UINT64_C(0xc4ceb9fe1a85ec53);
	return word ^ word >> 33;
}

/* The move that a word lies in; UINT32_MAX: none. */
static uint32_t find_move(uint64_t word, const struct ts_page_move *moves, uint32_t count)
{
	uint32_t low = 0, high = count, middle;

	if (!count || word < moves[0].from)
		return UINT32_MAX;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (moves[middle].from <= word)
			low = middle;
		else
			high = middle;
	}
	return word - moves[low].from < moves[low].bytes ? low : UINT32_MAX;
}

uint64_t ts_hash_words(const void *words, uint64_t bytes, uint64_t index,
		       const struct ts_page_move *moves, uint32_t move_count)
{
	const uint64_t first = move_count ? moves[0].from : 0;
	const uint64_t span =
		move_count ? moves[move_count - 1].from + moves[move_count - 1].bytes - first : 0;
	const uint8_t *at = words;
	uint64_t sum = 0, key = (index + 1) * GOLDEN, word;
	uint32_t move;

	for (; bytes >= 8; bytes -= 8, at += 8, key += GOLDEN) {
		memcpy(&word, at, 8);
		if (word - first < span) {
			move = find_move(word, moves, move_count);
			if (move != UINT32_MAX)
				word += moves[move].delta;
		}
		sum += mix(word + key);
	}
	if (bytes) {
		word = 0;
		memcpy(&word, at, bytes);
		sum += mix(word + key);
	}
	return sum;
}

uint64_t ts_hash_page(const void *page, uint64_t bytes, const struct ts_page_move *moves,
		      uint32_t move_count)
{
	return ts_hash_words(page, bytes, 0, moves, move_count);
}

uint64_t ts_hash_zeros(uint64_t bytes)
{
	uint64_t sum = 0, key = GOLDEN;

	for (uint64_t i = 0; i < bytes; i += 8, key += GOLDEN)
		sum += mix(key);
	return sum;
}

void ts_move_page_words(void *page, uint64_t bytes, uint64_t *counts,
			const struct ts_page_move *moves, uint32_t move_count, uint32_t changes)
{
	uint8_t *at = page;
	uint64_t word;
	uint32_t move;

	for (; bytes >= 8; bytes -= 8, at += 8) {
		memcpy(&word, at, 8);
		move = find_move(word, moves, move_count);
		if (move == UINT32_MAX)
			continue;
		counts[move]++;
		if (changes) {
			word += moves[move].delta;
			memcpy(at, &word, 8);
		}
	}
}

/* clang-format off */

/* Lines of assembler. Registers and labels within braces are local to them, so that these pieces may be used several times. */
#define I(text) text "\n"

/* %is_moved, and then %index: the move that `word` lies in; %row: its address in the table. */
#define FIND_MOVE(word) \
	I("{") \
	I("	.reg .b64 distance, from;") \
	I("	.reg .b32 high, middle;") \
	I("	.reg .pred p;") \
	I("	sub.u64 distance, " word ", %first;") \
	I("	setp.lt.u64 %is_moved, distance, %span;") \
	I("	@!%is_moved bra FOUND;") \
	I("	mov.u32 %index, 0;") \
	I("	mov.u32 high, %move_count;") \
	I("HALVE:") \
	I("	sub.u32 middle, high, %index;") \
	I("	setp.le.u32 p, middle, 1;") \
	I("	@p bra HALVED;") \
	I("	shr.u32 middle, middle, 1;") \
	I("	add.u32 middle, middle, %index;") \
	I("	mad.wide.u32 %row, middle, 24, %moves;") \
	I("	ld.global.u64 from, [%row];") \
	I("	setp.le.u64 p, from, " word ";") \
	I("	selp.b32 %index, middle, %index, p;") \
	I("	selp.b32 high, high, middle, p;") \
	I("	bra HALVE;") \
	I("HALVED:") \
	I("	mad.wide.u32 %row, %index, 24, %moves;") \
	I("	ld.global.u64 from, [%row];") \
	I("	sub.u64 distance, " word ", from;") \
	I("	ld.global.u64 from, [%row+8];") \
	I("	setp.lt.u64 %is_moved, distance, from;") \
	I("FOUND:") \
	I("}")

/* A cheap test before FIND_MOVE: %is_near if `word` lies in the span of all moves. */
#define TEST_NEAR(word) \
	I("sub.u64 %t, " word ", %first;") \
	I("setp.lt.or.u64 %is_near, %t, %span, %is_near;")

#define MOVE_WORD(word) \
	FIND_MOVE(word) \
	I("@%is_moved ld.global.u64 %t, [%row+16];") \
	I("@%is_moved add.u64 " word ", " word ", %t;")

/* Adds a word, whose key is %key plus `keys` times the constant, to the hash. */
#define ADD_WORD(word, keys) \
	I("add.u64 %t, %key, " keys ";") \
	I("add.u64 %t, %t, " word ";") \
	I("shr.u64 %u, %t, 33;") \
	I("xor.b64 %t, %t, %u;") \
	I("mul.lo.u64 %t, %t, 0xff51afd7ed558ccd;") \
	I("shr.u64 %u, %t, 33;") \
	I("xor.b64 %t, %t, %u;") \
	I("mul.lo.u64 %t, %t, 0xc4ceb9fe1a85ec53;") \
	I("shr.u64 %u, %t, 33;") \
	I("xor.b64 %t, %t, %u;") \
	I("add.u64 %sum, %sum, %t;")

/*
 * The page of this block, and the span of all moves. A thread begins with the word of its number
 * (%i; %at: its address) and goes on in steps of 256 words.
 */
#define PREPARE_PAGE \
	I("	.reg .b64 %page, %bytes, %i, %words, %at, %left, %moves, %row, %first, %span;") \
	I("	.reg .b64 %w, %t, %u;") \
	I("	.reg .b32 %thread, %block, %index, %move_count;") \
	I("	.reg .pred %is_moved, %is_done, %is_short, %p;") \
	I("	mov.u32 %thread, %tid.x;") \
	I("	mov.u32 %block, %ctaid.x;") \
	I("	ld.param.u64 %t, [pages];") \
	I("	mad.wide.u32 %t, %block, 16, %t;") \
	I("	ld.global.u64 %page, [%t];") \
	I("	ld.global.u64 %bytes, [%t+8];") \
	I("	ld.param.u64 %moves, [moves];") \
	I("	ld.param.u32 %move_count, [move_count];") \
	I("	mov.u64 %first, 0;") \
	I("	mov.u64 %span, 0;") \
	I("	setp.eq.u32 %p, %move_count, 0;") \
	I("	@%p bra NO_MOVES;") \
	I("	ld.global.u64 %first, [%moves];") \
	I("	sub.u32 %index, %move_count, 1;") \
	I("	mad.wide.u32 %row, %index, 24, %moves;") \
	I("	ld.global.u64 %span, [%row];") \
	I("	ld.global.u64 %t, [%row+8];") \
	I("	add.u64 %span, %span, %t;") \
	I("	sub.u64 %span, %span, %first;") \
	I("NO_MOVES:") \
	I("	cvt.u64.u32 %i, %thread;")

/* %w: the word at %at, of which %left bytes exist. */
#define LOAD_WORD \
	I("{") \
	I("	.reg .b64 byte, shift, end, at;") \
	I("	.reg .pred p, q;") \
	I("	setp.lt.u64 %is_short, %left, 8;") \
	I("	and.b64 end, %at, 7;") \
	I("	setp.eq.u64 p, end, 0;") \
	I("	@%is_short bra BYTES;") \
	I("	@!p bra BYTES;") \
	I("	ld.global.u64 %w, [%at];") \
	I("	bra LOADED;") \
	I("BYTES:") \
	I("	min.u64 end, %left, 8;") \
	I("	add.u64 end, %at, end;") \
	I("	mov.u64 at, %at;") \
	I("	mov.u64 %w, 0;") \
	I("	mov.u64 shift, 0;") \
	I("NEXT_BYTE:") \
	I("	setp.ge.u64 q, at, end;") \
	I("	@q bra LOADED;") \
	I("	ld.global.u8 byte, [at];") \
	I("	{ .reg .b32 s; cvt.u32.u64 s, shift; shl.b64 byte, byte, s; }") \
	I("	or.b64 %w, %w, byte;") \
	I("	add.u64 at, at, 1;") \
	I("	add.u64 shift, shift, 8;") \
	I("	bra NEXT_BYTE;") \
	I("LOADED:") \
	I("}")

/* Leaves for `label` if %i is behind the last word; else %at and %left. */
#define NEXT_WORD(label) \
	I("	setp.ge.u64 %is_done, %i, %words;") \
	I("	@%is_done bra " label ";") \
	I("	shl.b64 %t, %i, 3;") \
	I("	add.u64 %at, %page, %t;") \
	I("	sub.u64 %left, %bytes, %t;")

const char ts_page_kernels_ptx[] =
	I(".version 6.0")
	I(".target sm_50")
	I(".address_size 64")

	I(".visible .entry " TS_HASH_PAGES "(.param .u64 pages, .param .u64 hashes,")
	I("	.param .u64 moves, .param .u32 move_count)")
	I(".maxntid 256, 1, 1")
	I("{")
	I("	.shared .align 8 .b64 sums[256];")
	I("	.reg .b64 %sum, %key, %quads, %q, %w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7;")
	I("	.reg .b32 %slot, %other, %count;")
	I("	.reg .pred %is_near, %false;")
	PREPARE_PAGE
	I("	setp.ne.u64 %false, 0, 0;")
	I("	mov.u64 %sum, 0;")
	I("	mov.u64 %quads, 0;")
	I("	and.b64 %t, %page, 15;")
	I("	setp.ne.u64 %p, %t, 0;")
	I("	@%p bra REST;")

	/* Rounds of 16 KiB: thread t loads 16 bytes at t * 16, and 4, 8 and 12 KiB behind. */
	I("	shr.u64 %quads, %bytes, 14;")
	I("	shl.b64 %t, %i, 4;")
	I("	add.u64 %at, %page, %t;")
	I("	shl.b64 %t, %i, 1;")
	I("	add.u64 %t, %t, 1;")
	I("	mul.lo.u64 %key, %t, 0x9E3779B97F4A7C15;")
	I("	mov.u64 %q, %quads;")
	I("ROUND:")
	I("	setp.eq.u64 %p, %q, 0;")
	I("	@%p bra REST;")
	I("	ld.global.v2.u64 {%w0, %w1}, [%at];")
	I("	ld.global.v2.u64 {%w2, %w3}, [%at+4096];")
	I("	ld.global.v2.u64 {%w4, %w5}, [%at+8192];")
	I("	ld.global.v2.u64 {%w6, %w7}, [%at+12288];")
	I("	mov.pred %is_near, %false;")
	TEST_NEAR("%w0") TEST_NEAR("%w1") TEST_NEAR("%w2") TEST_NEAR("%w3")
	TEST_NEAR("%w4") TEST_NEAR("%w5") TEST_NEAR("%w6") TEST_NEAR("%w7")
	I("	@!%is_near bra ADD;")
	MOVE_WORD("%w0") MOVE_WORD("%w1") MOVE_WORD("%w2") MOVE_WORD("%w3")
	MOVE_WORD("%w4") MOVE_WORD("%w5") MOVE_WORD("%w6") MOVE_WORD("%w7")
	I("ADD:")
	ADD_WORD("%w0", "0") ADD_WORD("%w1", "0x9E3779B97F4A7C15")
	ADD_WORD("%w2", "0x6EF372FE94F82A00") ADD_WORD("%w3", "0x0D2AECB81442A615")
	ADD_WORD("%w4", "0xDDE6E5FD29F05400") ADD_WORD("%w5", "0x7C1E5FB6A93AD015")
	ADD_WORD("%w6", "0x4CDA58FBBEE87E00") ADD_WORD("%w7", "0xEB11D2B53E32FA15")
	I("	add.u64 %key, %key, 0xBBCDCBFA53E0A800;")
	I("	add.u64 %at, %at, 16384;")
	I("	sub.u64 %q, %q, 1;")
	I("	bra ROUND;")

	/* What is left, or all of a page that is not aligned. */
	I("REST:")
	I("	shl.b64 %t, %quads, 11;")
	I("	add.u64 %i, %i, %t;")
	I("	add.u64 %words, %bytes, 7;")
	I("	shr.u64 %words, %words, 3;")
	I("NEXT:")
	NEXT_WORD("REDUCE")
	LOAD_WORD
	I("	@%is_short bra ADD_REST;")
	MOVE_WORD("%w")
	I("ADD_REST:")
	I("	add.u64 %key, %i, 1;")
	I("	mul.lo.u64 %key, %key, 0x9E3779B97F4A7C15;")
	ADD_WORD("%w", "0")
	I("	add.u64 %i, %i, 256;")
	I("	bra NEXT;")

	I("REDUCE:")
	I("	mov.u32 %slot, sums;")
	I("	shl.b32 %other, %thread, 3;")
	I("	add.u32 %slot, %slot, %other;")
	I("	st.shared.u64 [%slot], %sum;")
	I("	mov.u32 %count, 128;")
	I("HALF:")
	I("	bar.sync 0;")
	I("	setp.ge.u32 %p, %thread, %count;")
	I("	@%p bra ADDED;")
	I("	shl.b32 %other, %count, 3;")
	I("	add.u32 %other, %other, %slot;")
	I("	ld.shared.u64 %t, [%other];")
	I("	add.u64 %sum, %sum, %t;")
	I("	st.shared.u64 [%slot], %sum;")
	I("ADDED:")
	I("	shr.u32 %count, %count, 1;")
	I("	setp.ne.u32 %p, %count, 0;")
	I("	@%p bra HALF;")
	I("	setp.ne.u32 %p, %thread, 0;")
	I("	@%p bra END;")
	I("	ld.param.u64 %t, [hashes];")
	I("	mad.wide.u32 %t, %block, 8, %t;")
	I("	st.global.u64 [%t], %sum;")
	I("END:")
	I("	ret;")
	I("}")

	I(".visible .entry " TS_MOVE_WORDS "(.param .u64 pages, .param .u64 counts,")
	I("	.param .u64 moves, .param .u32 move_count, .param .u32 changes)")
	I(".maxntid 256, 1, 1")
	I("{")
	I("	.reg .b64 %counts;")
	I("	.reg .b32 %changes;")
	PREPARE_PAGE
	I("	ld.param.u64 %counts, [counts];")
	I("	ld.param.u32 %changes, [changes];")
	I("	shr.u64 %words, %bytes, 3;")
	I("NEXT:")
	NEXT_WORD("END")
	LOAD_WORD
	I("	add.u64 %i, %i, 256;")
	FIND_MOVE("%w")
	I("	@!%is_moved bra NEXT;")
	I("	mad.wide.u32 %t, %index, 8, %counts;")
	I("	red.global.add.u64 [%t], 1;")
	I("	setp.eq.u32 %p, %changes, 0;")
	I("	@%p bra NEXT;")
	I("	ld.global.u64 %t, [%row+16];")
	I("	add.u64 %w, %w, %t;")
	I("	and.b64 %t, %at, 7;")
	I("	setp.ne.u64 %p, %t, 0;")
	I("	@%p bra BYTES;")
	I("	st.global.u64 [%at], %w;")
	I("	bra NEXT;")
	I("BYTES:")
	I("	add.u64 %u, %at, 8;")
	I("STORE_BYTE:")
	I("	st.global.u8 [%at], %w;")
	I("	shr.u64 %w, %w, 8;")
	I("	add.u64 %at, %at, 1;")
	I("	setp.lt.u64 %p, %at, %u;")
	I("	@%p bra STORE_BYTE;")
	I("	bra NEXT;")
	I("END:")
	I("	ret;")
	I("}");
