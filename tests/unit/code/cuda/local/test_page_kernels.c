/* SPDX-License-Identifier: Apache-2.0 */
#include "code/cuda/local/page_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/runner.h"

/* The definition, word by word. */
static uint64_t reference(const uint8_t *page, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i * 8 < bytes; i++) {
		const uint64_t left = bytes - i * 8;
		uint64_t word = 0;

		memcpy(&word, page + i * 8, left < 8 ? left : 8);
		word += (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
		word = (word ^ word >> 33) * UINT64_C(0xff51afd7ed558ccd);
		word = (word ^ word >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
		sum += word ^ word >> 33;
	}
	return sum;
}

TS_TEST(hash)
{
	uint8_t page[4096 + 16] = { 0 };

	TS_CHECK(!ts_hash_page(page, 0, NULL, 0));
	TS_CHECK(ts_hash_page(page, 4096, NULL, 0) == ts_hash_zeros(4096));
	TS_CHECK(ts_hash_page(page, 13, NULL, 0) == ts_hash_zeros(13));
	for (size_t i = 0; i < sizeof(page); i++)
		page[i] = (uint8_t)(i * i % 251);
	for (size_t start = 0; start < 16; start++)
		for (size_t bytes = 0; bytes <= 64; bytes++)
			TS_CHECK(ts_hash_page(page + start, bytes, NULL, 0) ==
				 reference(page + start, bytes));
	TS_CHECK(ts_hash_page(page, 4096, NULL, 0) == reference(page, 4096));
	/* Parts add up. */
	TS_CHECK(ts_hash_words(page, 1024, 0, NULL, 0) +
			 ts_hash_words(page + 1024, 3072, 128, NULL, 0) ==
		 reference(page, 4096));
}

TS_TEST(moves)
{
	static const struct ts_page_move moves[] = {
		{ .from = 1000, .bytes = 10, .delta = 5000 },
		{ .from = 2000, .bytes = 1, .delta = (uint64_t)-100 },
		{ .from = 3000, .bytes = 100, .delta = 1 },
	};
	static const uint64_t words[] = { 999,  1000, 1009, 1010, 1999, 2000,
					  2001, 3000, 3099, 3100, 0,    ~UINT64_C(0) };
	static const uint64_t moved[] = { 999,  6000, 6009, 1010, 1999, 1900,
					  2001, 3001, 3100, 3100, 0,    ~UINT64_C(0) };
	uint64_t page[12], counts[3] = { 0 };
	char unaligned[100];

	memcpy(page, words, sizeof(page));
	TS_CHECK(ts_hash_page(page, sizeof(page), moves, 3) ==
		 reference((const uint8_t *)moved, sizeof(moved)));
	/* A word that is incomplete stays. */
	TS_CHECK(ts_hash_page(&words[1], 7, moves, 3) == reference((const uint8_t *)&words[1], 7));
	ts_move_page_words(page, sizeof(page), counts, moves, 3, 0);
	TS_CHECK_MEM(page, words, sizeof(page));
	ts_move_page_words(page, sizeof(page), counts, moves, 3, 1);
	TS_CHECK_MEM(page, moved, sizeof(page));
	TS_CHECK_INT(counts[0], 4);
	TS_CHECK_INT(counts[1], 2);
	TS_CHECK_INT(counts[2], 4);
	memcpy(unaligned + 3, words, sizeof(words));
	ts_move_page_words(unaligned + 3, sizeof(words), counts, moves, 3, 1);
	TS_CHECK_MEM(unaligned + 3, moved, sizeof(moved));
}

/* The PTX is accepted for all architectures that the assembler knows; skipped without one. */
TS_TEST(ptx)
{
	static const char *const assemblers[] = { "/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas" };
	static const char *const architectures[] = { "sm_75", "sm_80", "sm_90" };
	const char *assembler = NULL;
	char command[256];
	FILE *pipe;

	for (size_t i = 0; i < 2 && !assembler; i++)
		if (!access(assemblers[i], X_OK))
			assembler = assemblers[i];
	if (!assembler)
		ts_test_skip("no ptxas");
	for (size_t i = 0; i < 3; i++) {
		snprintf(command, sizeof(command), "%s --gpu-name %s -o /dev/null -", assembler,
			 architectures[i]);
		pipe = popen(command, "w");
		TS_CHECK(pipe);
		fputs(ts_page_kernels_ptx, pipe);
		TS_CHECK_INT(pclose(pipe), 0);
	}
}
