/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: what the kernels of work_kernels.cu do, and those of
 * src/code/cuda/local/page_kernels.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "code/cuda/local/page_kernels.h"
#include "cuda/driver/driver.h"

#pragma weak ts_hash_page
#pragma weak ts_move_page_words

#define PARAM(type, index) \
	(*(const type *)(const void *)(call->params + call->function->offsets[index]))

/* For whoever wonders: which address. */
static void illegal(struct kernel_call *call, uint64_t address)
{
	call->is_illegal = true;
	if (getenv("STAND_IN_VERBOSE"))
		fprintf(stderr, "stand-in: '%s' uses %#llx\n", call->function->name,
			(unsigned long long)address);
}

static uint32_t get32(struct kernel_call *call, uint64_t address)
{
	uint32_t value = 0;

	if (!memory_read(&value, address, sizeof(value)))
		illegal(call, address);
	return value;
}

static void put32(struct kernel_call *call, uint64_t address, uint32_t value)
{
	if (!memory_write(address, &value, sizeof(value)))
		illegal(call, address);
}

static uint64_t get64(struct kernel_call *call, uint64_t address)
{
	uint64_t value = 0;

	if (!memory_read(&value, address, sizeof(value)))
		illegal(call, address);
	return value;
}

static void put64(struct kernel_call *call, uint64_t address, uint64_t value)
{
	if (!memory_write(address, &value, sizeof(value)))
		illegal(call, address);
}

static uint64_t threads(const struct kernel_call *call)
{
	uint64_t count = 1;

	for (int i = 0; i < 3; i++)
		count *= (uint64_t)call->grid[i] * call->block[i];
	return count;
}

static uint32_t mixed(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

/* All have `n` elements, of which each thread takes every one at its distance. */
#define EACH(n) for (uint32_t i = 0, most_ = (n); i < most_ && !call->is_illegal; i++)

/* (u32 *out, const u32 *a, const u32 *b, u32 n) */
static bool add(struct kernel_call *call)
{
	EACH(PARAM(uint32_t, 3))
	put32(call, PARAM(uint64_t, 0) + i * 4ull,
	      get32(call, PARAM(uint64_t, 1) + i * 4ull) +
		      get32(call, PARAM(uint64_t, 2) + i * 4ull));
	return true;
}

/* (float *y, const float *x, float a, u32 n) */
static bool saxpy(struct kernel_call *call)
{
	EACH(PARAM(uint32_t, 3))
	{
		uint32_t x = get32(call, PARAM(uint64_t, 1) + i * 4ull);
		uint32_t y = get32(call, PARAM(uint64_t, 0) + i * 4ull);
		float fx, fy;

		memcpy(&fx, &x, sizeof(fx));
		memcpy(&fy, &y, sizeof(fy));
		fy = PARAM(float, 2) * fx + fy;
		memcpy(&y, &fy, sizeof(y));
		put32(call, PARAM(uint64_t, 0) + i * 4ull, y);
	}
	return true;
}

/* (u32 *out, u32 value, u32 n) */
static bool fill(struct kernel_call *call)
{
	EACH(PARAM(uint32_t, 2))
	put32(call, PARAM(uint64_t, 0) + i * 4ull, PARAM(uint32_t, 1) + i);
	return true;
}

/* The kernels of examples/cuda_pipeline.c: (u32 *numbers, u32 step), (u32 *sum, const u32 *numbers)
 */
static bool prepare(struct kernel_call *call)
{
	EACH((uint32_t)threads(call))
	put32(call, PARAM(uint64_t, 0) + i * 4ull,
	      get32(call, PARAM(uint64_t, 0) + i * 4ull) * 5 + PARAM(uint32_t, 1));
	return true;
}

static bool mix_numbers(struct kernel_call *call)
{
	EACH((uint32_t)threads(call))
	put32(call, PARAM(uint64_t, 0) + i * 4ull,
	      get32(call, PARAM(uint64_t, 0) + i * 4ull) * 3 +
		      get32(call, PARAM(uint64_t, 1) + i * 4ull));
	return true;
}

/* (u32 *out, const u32 *in, u32 seed, u32 n) */
static bool mix(struct kernel_call *call)
{
	if (call->function->param_count == 2)
		return mix_numbers(call);
	EACH(PARAM(uint32_t, 3))
	{
		uint32_t in = get32(call, PARAM(uint64_t, 1) + i * 4ull);
		uint32_t out = get32(call, PARAM(uint64_t, 0) + i * 4ull);

		put32(call, PARAM(uint64_t, 0) + i * 4ull,
		      mixed(in ^ mixed(out + PARAM(uint32_t, 2) + i)));
	}
	return true;
}

/* (u32 **table, u32 n): table[0] is written, table[1] is read */
static bool copy_through_pointer(struct kernel_call *call)
{
	uint64_t to = get64(call, PARAM(uint64_t, 0)), from = get64(call, PARAM(uint64_t, 0) + 8);

	EACH(PARAM(uint32_t, 1))
	put32(call, to + i * 4ull, get32(call, from + i * 4ull) + 1);
	return true;
}

/* (u64 *out, u32 n): out[i] = words[i % 16] + factors[i % 4] + i */
static bool use_global(struct kernel_call *call)
{
	uint64_t words = module_global(call->function->module, "words");
	uint64_t factors = module_global(call->function->module, "factors");

	EACH(PARAM(uint32_t, 1))
	put64(call, PARAM(uint64_t, 0) + i * 8ull,
	      get64(call, words + i % 16 * 8) + get32(call, factors + i % 4 * 4) + i);
	return true;
}

/* (const u64 *in): words[i] += in[i]; sums[i] += words[i] */
static bool add_to_global(struct kernel_call *call)
{
	uint64_t words = module_global(call->function->module, "words");
	uint64_t sums = module_global(call->function->module, "sums");

	EACH(16)
	{
		put64(call, words + i * 8,
		      get64(call, words + i * 8) + get64(call, PARAM(uint64_t, 0) + i * 8));
		put64(call, sums + i * 8, get64(call, sums + i * 8) + get64(call, words + i * 8));
	}
	return true;
}

/* (u64 *out, u32 n): out[i] = &words[i % 16] */
static bool global_address_to_memory(struct kernel_call *call)
{
	uint64_t words = module_global(call->function->module, "words");

	EACH(PARAM(uint32_t, 1))
	put64(call, PARAM(uint64_t, 0) + i * 8ull, words + i % 16 * 8);
	return true;
}

/* (u64 *out, const u64 *const *table, u32 n): out[i] = *table[i] */
static bool read_through_table(struct kernel_call *call)
{
	EACH(PARAM(uint32_t, 2))
	put64(call, PARAM(uint64_t, 0) + i * 8ull,
	      get64(call, get64(call, PARAM(uint64_t, 1) + i * 8ull)));
	return true;
}

/* (u64 *out): through the variable `pointer`, which is initialised with &words[1] */
static bool read_through_global(struct kernel_call *call)
{
	put64(call, PARAM(uint64_t, 0),
	      get64(call, get64(call, module_global(call->function->module, "pointer"))));
	return true;
}

/* (u32 *counter, u32 *out, u32 n): out[i] = what the counter was */
static bool count_up(struct kernel_call *call)
{
	uint32_t count = get32(call, PARAM(uint64_t, 0));

	EACH(PARAM(uint32_t, 2))
	put32(call, PARAM(uint64_t, 1) + i * 4ull, count++);
	put32(call, PARAM(uint64_t, 0), count);
	return true;
}

/* (u64 *out, u32 n) */
static bool nondeterministic(struct kernel_call *call)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	EACH(PARAM(uint32_t, 1))
	put64(call, PARAM(uint64_t, 0) + i * 8ull,
	      (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + i);
	return true;
}

/* (const volatile u32 *flag, u32 *out): waits until the host has set the flag */
static bool spin_until_host(struct kernel_call *call)
{
	uint32_t flag = get32(call, PARAM(uint64_t, 0));

	if (flag)
		put32(call, PARAM(uint64_t, 1), flag);
	return flag != 0;
}

/* (u64 *out, u32 n): out[i] = &out[i] */
static bool write_own_address(struct kernel_call *call)
{
	EACH(PARAM(uint32_t, 1))
	put64(call, PARAM(uint64_t, 0) + i * 8ull, PARAM(uint64_t, 0) + i * 8ull);
	return true;
}

struct pair {
	uint32_t first;
	uint64_t second;
};

/* (u64 *out, struct pair by value, u8): a structure with padding */
static bool take_structure(struct kernel_call *call)
{
	struct pair pair = PARAM(struct pair, 1);

	put64(call, PARAM(uint64_t, 0), pair.first * 3ull + pair.second + PARAM(uint8_t, 2));
	return true;
}

/* (u32 *out): out[0] = threads of the grid, out[1] = those of a block */
static bool write_shape(struct kernel_call *call)
{
	put32(call, PARAM(uint64_t, 0), (uint32_t)threads(call));
	put32(call, PARAM(uint64_t, 0) + 4, call->block[0] * call->block[1] * call->block[2]);
	return true;
}

static bool nothing(struct kernel_call *call)
{
	(void)call;
	return true;
}

/* ---- src/code/cuda/local/page_kernels.c ---- */

/* Hashes of pages that nobody has written since. */
#define KNOWN_HASHES 4096
static struct known_hash {
	uint64_t address, bytes, version, moves, hash;
} known_hashes[KNOWN_HASHES];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* The place for a page's hash: its own, else a free one, else somebody's. `known_lock` is held. */
static struct known_hash *find_known(const struct ts_page_range *page)
{
	uint64_t first = page->address / 8 * 0x9E3779B97F4A7C15 >> 40;
	struct known_hash *known = NULL;

	for (uint64_t i = 0; i < 8; i++) {
		known = &known_hashes[(first + i) % KNOWN_HASHES];
		if (!known->bytes ||
		    (known->address == page->address && known->bytes == page->bytes))
			break;
	}
	return known;
}

/* Of all its bytes, which may lie in several ranges. */
static uint64_t hash_bytes(const struct ts_page_range *page, const struct ts_page_move *moves,
			   uint32_t move_count)
{
	const void *bytes = memory_at(page->address, page->bytes);
	void *copy = bytes ? NULL : malloc(page->bytes);
	uint64_t hash = 0;

	if (bytes || memory_read(copy, page->address, page->bytes))
		hash = ts_hash_page(bytes ? bytes : copy, page->bytes, moves, move_count);
	free(copy);
	return hash;
}

static uint64_t hash_of(const struct ts_page_range *page, const struct ts_page_move *moves,
			uint32_t move_count)
{
	uint64_t version = memory_version(page->address, page->bytes);
	struct known_hash *known;
	bool is_known;
	struct known_hash found = { page->address, page->bytes, version, move_count, 0 };

	for (uint32_t i = 0; i < move_count; i++)
		found.moves = found.moves * 31 + moves[i].from + 7 * moves[i].delta;
	pthread_mutex_lock(&known_lock);
	known = find_known(page);
	found.hash = known->hash;
	is_known = version && known->address == found.address && known->bytes == found.bytes &&
		   known->version == version && known->moves == found.moves;
	pthread_mutex_unlock(&known_lock);
	if (is_known)
		return found.hash;
	found.hash = hash_bytes(page, moves, move_count);
	pthread_mutex_lock(&known_lock);
	*known = found;
	pthread_mutex_unlock(&known_lock);
	return found.hash;
}

/* (pages, hashes, moves, move_count), or (pages, counts, moves, move_count, changes) */
static bool page_kernel(struct kernel_call *call, bool hashes)
{
	uint32_t move_count = PARAM(uint32_t, 3);
	uint64_t *counts = calloc(move_count + 1, sizeof(counts[0]));
	struct ts_page_move *moves = calloc(move_count + 1, sizeof(moves[0]));
	void *copy = hashes ? NULL : malloc(TS_PAGE_BYTES);

	if (!memory_read(moves, PARAM(uint64_t, 2), move_count * sizeof(moves[0])))
		illegal(call, PARAM(uint64_t, 2));
	for (uint32_t i = 0; i < call->grid[0] && !call->is_illegal; i++) {
		struct ts_page_range page = { 0, 0 };

		if (!memory_read(&page, PARAM(uint64_t, 0) + i * sizeof(page), sizeof(page)) ||
		    page.bytes > TS_PAGE_BYTES || !memory_is_valid(page.address, page.bytes)) {
			illegal(call, page.address);
			break;
		}
		if (hashes)
			put64(call, PARAM(uint64_t, 1) + i * 8ull,
			      hash_of(&page, moves, move_count));
		else if (memory_read(copy, page.address, page.bytes))
			ts_move_page_words(copy, page.bytes, counts, moves, move_count,
					   PARAM(uint32_t, 4));
		if (!hashes && PARAM(uint32_t, 4))
			memory_write(page.address, copy, page.bytes);
	}
	for (uint32_t i = 0; i < move_count && !hashes && !call->is_illegal; i++)
		put64(call, PARAM(uint64_t, 1) + i * 8ull,
		      get64(call, PARAM(uint64_t, 1) + i * 8ull) + counts[i]);
	free(counts);
	free(moves);
	free(copy);
	return true;
}

static bool hash_pages(struct kernel_call *call)
{
	return page_kernel(call, true);
}

static bool move_words(struct kernel_call *call)
{
	return page_kernel(call, false);
}

kernel_code kernel_find(const char *name)
{
	static const struct {
		const char *name;
		kernel_code code;
	} kernels[] = {
		{ "add", add },
		{ "saxpy", saxpy },
		{ "fill", fill },
		{ "mix", mix },
		{ "prepare", prepare },
		{ "copy_through_pointer", copy_through_pointer },
		{ "use_global", use_global },
		{ "add_to_global", add_to_global },
		{ "global_address_to_memory", global_address_to_memory },
		{ "read_through_table", read_through_table },
		{ "read_through_global", read_through_global },
		{ "count_up", count_up },
		{ "nondeterministic", nondeterministic },
		{ "spin_until_host", spin_until_host },
		{ "write_own_address", write_own_address },
		{ "take_structure", take_structure },
		{ "write_shape", write_shape },
		{ "prints", nothing },
		{ "allocates", nothing },
		{ "launches", nothing },
		{ "harmless", nothing },
		{ "uses_managed", nothing },
		{ TS_HASH_PAGES, hash_pages },
		{ TS_MOVE_WORDS, move_words },
	};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		if (!strcmp(kernels[i].name, name))
			return kernels[i].code;
	}
	return NULL;
}
