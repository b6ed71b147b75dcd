/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of our own that run on a CUDA device, in a recorded program (src/backends/cuda/stream)
 * and in a replay (src/replay/targets/cuda): hashes of pages, and words that are addresses
 * (docs/cuda-replay.md, 2.4 and 4.3). page_kernels.c has them as PTX, and the same in C.
 *
 * All tables are sorted by address and lie in memory that the device can read. The host's versions
 * take the same arguments; tests compare both, and stand-ins for the driver run them.
 */
#ifndef TS_CODE_CUDA_LOCAL_PAGE_KERNELS_H
#define TS_CODE_CUDA_LOCAL_PAGE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define TS_PAGE_BYTES ((uint64_t)2 << 20)

/*
 * A page, or a shorter piece of memory. Its words are at multiples of 8 from its address, which
 * need not be aligned (16-aligned pages are faster). A last word that is incomplete counts with
 * zeros behind its end, and is never moved.
 */
struct ts_page_range {
	uint64_t address, bytes;
};

/* Addresses in [from, from + bytes) are moved: `delta` is added. */
struct ts_page_move {
	uint64_t from, bytes, delta;
};

/* PTX (NUL-terminated) with the entries below, for sm_50 and later. */
extern const char ts_page_kernels_ptx[];

/*
 * ts_hash_pages(const struct ts_page_range *pages, u64 *hashes, const struct ts_page_move *moves,
 *               u32 move_count)
 *
 * One block of 256 threads per page. Words in a move count as moved. The hash of a page is the sum,
 * modulo 2^64, of mix(w + (i + 1) * 0x9E3779B97F4A7C15) over its words w, where i is the word's
 * index in the page and mix is the finaliser of MurmurHash3. Words that are not there (behind the
 * end, or not mapped) do not count.
 */
#define TS_HASH_PAGES "ts_hash_pages"
/*
 * ts_move_words(const struct ts_page_range *pages, u64 *counts, const struct ts_page_move *moves,
 *               u32 move_count, u32 changes)
 *
 * One block of 256 threads per page. Counts, per move, the words that lie in it (counts[move], by
 * atomic addition); with `changes`, moves them.
 */
#define TS_MOVE_WORDS "ts_move_words"
#define TS_PAGE_KERNEL_THREADS 256

/* The part of a page's hash that words contribute which begin at word `index`; the sum of parts is
 * the hash. */
uint64_t ts_hash_words(const void *words, uint64_t bytes, uint64_t index,
		       const struct ts_page_move *moves, uint32_t move_count);
/* The hash of `bytes` zeros. */
uint64_t ts_hash_zeros(uint64_t bytes);
uint64_t ts_hash_page(const void *page, uint64_t bytes, const struct ts_page_move *moves,
		      uint32_t move_count);
void ts_move_page_words(void *page, uint64_t bytes, uint64_t *counts,
			const struct ts_page_move *moves, uint32_t move_count, uint32_t changes);

#endif
