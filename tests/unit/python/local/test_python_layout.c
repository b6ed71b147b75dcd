/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython layouts: facts of a few versions, and layouts derived from a runtime's own offsets, valid
 * or not.
 */
#include <stdlib.h>
#include <string.h>

#include <tracesmith/error.h>

#include "python/local/python_layout.h"
#include "unit/runner.h"

#define WORDS (TS_PYTHON_DEBUG_OFFSETS_BYTES / 8)

/* As reported by 3.15.0 beta 1 without the GIL, from `version` on; 0x030f00b1. */
static const uint64_t offsets_15_beta[] = {
	0x030f00b1, 1,    405376, 904, 928,  247040, 7272, 7264,  7336, 7352, 7400, 7592, 7576,
	7584,       16,   7736,   0,   7760, 7752,   7952, 17564, 880,  0,    8,    16,   72,
	80,         88,   168,    176, 248,  32,     36,   40,    128,  280,  0,    88,   8,
	0,          56,   80,     78,  64,   72,     240,  128,   136,  144,  152,  84,   68,
	112,        120,  232,    224, 32,   24,     440,  40,    104,  184,  48,   304,  968,
	904,        56,   48,     32,  56,   40,     32,   216,   40,   56,   48,   64,   48,
	56,         40,   32,     48,  32,   40,     56,   32,    48,   80,   48,   32,   56,
	72,         176,  112,    120, 216,  104,    176,  40,    88,   83,   0,    8,    24,
	336,        8036, 0,      4,   512,
};

static void fill(uint64_t words[WORDS])
{
	memset(words, 0, WORDS * 8);
	memcpy(words, TS_PYTHON_COOKIE, 8);
	memcpy(words + 1, offsets_15_beta, sizeof(offsets_15_beta));
}

/* The same numbers in the final release: one word more. */
static void fill_final(uint64_t words[WORDS])
{
	fill(words);
	memmove(words + 30, words + 29, (WORDS - 30) * 8);
	words[29] = 96;
	words[1] = 0x030f00f0;
}

TS_TEST(versions_have_their_offsets)
{
	struct ts_python_layout layout;

	TS_CHECK(!ts_python_layout_of_version(&layout, 7, false));
	TS_CHECK(!ts_python_layout_of_version(&layout, 13, false));
	for (unsigned int minor = 8; minor <= 12; minor++) {
		TS_CHECK(ts_python_layout_of_version(&layout, minor, minor == 9));
		TS_CHECK_INT(layout.minor, minor);
		TS_CHECK_INT(layout.is_debug, minor == 9);
		TS_CHECK_INT(layout.runtime.interpreters_head, minor < 11 ? 32 : 40);
		TS_CHECK(layout.thread.bytes > layout.thread.frame && layout.thread.bytes < 1024);
		TS_CHECK(layout.frame.bytes > layout.frame.previous && layout.frame.bytes < 512);
	}
	TS_CHECK_INT(layout.frames, TS_PYTHON_CFRAME);
	TS_CHECK_INT(layout.frame.owner_c_stack, 3);
	TS_CHECK_INT(layout.unicode.ascii_bytes, 40);
	TS_CHECK_INT(layout.thread.native_thread_id, 144);
}

TS_TEST(a_runtime_tells_its_layout)
{
	struct ts_python_layout layout;
	uint64_t words[WORDS], version;

	fill_final(words);
	TS_CHECK_INT(ts_python_layout_of_runtime(&layout, words, sizeof(words), &version), TS_OK);
	TS_CHECK_INT(version, 0x030f00f0);
	TS_CHECK_INT(layout.minor, 15);
	TS_CHECK(layout.is_free_threaded);
	TS_CHECK_INT(layout.runtime.interpreters_head, 928);
	TS_CHECK_INT(layout.interpreter.threads_head, 7336);
	TS_CHECK_INT(layout.interpreter.collecting, 7400 + 112);
	TS_CHECK_INT(layout.thread.base_frame, 80);
	TS_CHECK_INT(layout.thread.thread_id, 168);
	TS_CHECK_INT(layout.thread.data_stack_top, 256);
	TS_CHECK_INT(layout.thread.holds_gil, 36);
	TS_CHECK_INT(layout.thread.attached, 48);
	TS_CHECK_INT(layout.frame.code_index, 72);
	TS_CHECK_INT(layout.frame.owner, 78);
	TS_CHECK_INT(layout.code.thread_instructions, 224);
	TS_CHECK_INT(layout.code.instructions, 232);
	TS_CHECK_INT(layout.code.first_traceable, 208);
	TS_CHECK_INT(layout.object.type, 24);
	TS_CHECK_INT(layout.dict.used, 32);
	TS_CHECK_INT(layout.gil.last_holder, 16);
}

TS_TEST(a_beta_lacks_a_word)
{
	struct ts_python_layout layout, final;
	uint64_t words[WORDS], version;

	fill_final(words);
	TS_CHECK_INT(ts_python_layout_of_runtime(&final, words, sizeof(words), &version), TS_OK);
	fill(words);
	TS_CHECK_INT(ts_python_layout_of_runtime(&layout, words, sizeof(words), &version), TS_OK);
	TS_CHECK_INT(version, 0x030f00b1);
	TS_CHECK_INT(layout.thread.thread_id, final.thread.thread_id);
	TS_CHECK_INT(layout.frame.instruction, final.frame.instruction);
	TS_CHECK_INT(layout.unicode.compact_bytes, final.unicode.compact_bytes);
	TS_CHECK_INT(layout.interpreter.collecting, final.interpreter.collecting);
}

TS_TEST(what_is_none_is_told)
{
	struct ts_python_layout layout;
	uint64_t words[WORDS], version = 7;

	fill_final(words);
	words[0]++;
	TS_CHECK_INT(ts_python_layout_of_runtime(&layout, words, sizeof(words), &version),
		     TS_EFORMAT);
	TS_CHECK_INT(version, 7);
	fill_final(words);
	words[1] = 0x031000a0;
	TS_CHECK_INT(ts_python_layout_of_runtime(&layout, words, sizeof(words), &version),
		     TS_EVERSION);
	TS_CHECK_INT(version, 0x031000a0);
	fill_final(words);
	TS_CHECK_INT(ts_python_layout_of_runtime(&layout, words, 16, &version), TS_EFORMAT);
	TS_CHECK_INT(ts_python_layout_of_runtime(&layout, words, 320, &version), TS_EFORMAT);
}

/* Whatever the numbers are, all used offsets are within what is read. */
TS_TEST(hostile_numbers_stay_bounded)
{
	static const uint64_t odd[] = { 0, 7, 8191, 65535, 65536, UINT32_MAX, UINT64_MAX };
	size_t refused = 0;

	for (size_t word = 2; word < 100; word++) {
		for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
			struct ts_python_layout layout;
			uint64_t words[WORDS], version;

			fill_final(words);
			words[word] = odd[i];
			if (ts_python_layout_of_runtime(&layout, words, sizeof(words), &version)) {
				refused++;
				continue;
			}
			TS_CHECK(layout.thread.bytes < 8192);
			TS_CHECK(layout.frame.bytes < 8192);
			TS_CHECK(layout.frame.owner < layout.frame.bytes);
			TS_CHECK(layout.thread.next + 8u <= layout.thread.bytes);
			TS_CHECK(layout.thread.data_stack_limit + 8u <= layout.thread.bytes);
			TS_CHECK(layout.code.line_table < 8192 && layout.object.type < 64);
		}
	}
	TS_CHECK(refused > 100);
}
