/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged stacks, innermost first. A native stack is a text: "E" is the interpreter's loop, "g" an
 * internal function of it, anything else a function; in a Python stack a capital letter is a frame
 * entered from native code.
 */
#include "sample/python/merge_stacks.h"

#include <ctype.h>

#include "unit/runner.h"

#define MOST 64

static struct ts_native_code native_codes[128];
static struct ts_python_code python_codes[128];
static char names[128][2];

static void name_codes(void)
{
	for (int i = 0; i < 128; i++) {
		names[i][0] = (char)i;
		native_codes[i] = (struct ts_native_code){ .name = names[i],
							   .module = "",
							   .is_python_eval = i == 'E',
							   .is_glue = i == 'g' };
		python_codes[i] = (struct ts_python_code){ .name = names[i] };
	}
}

/* Native functions are in parentheses. */
static const char *merge(const char *native, bool complete, const char *python, size_t capacity)
{
	static char text[4 * MOST];
	struct ts_native_frame native_frames[MOST];
	struct ts_python_frame python_frames[MOST];
	struct ts_sample_frame frames[2 * MOST];
	size_t count, length = 0;

	name_codes();
	for (size_t i = 0; native[i]; i++)
		native_frames[i] =
			(struct ts_native_frame){ .code = &native_codes[(int)native[i]] };
	for (size_t i = 0; python[i]; i++)
		python_frames[i] = (struct ts_python_frame){
			.code = &python_codes[tolower(python[i])],
			.line = (int32_t)i,
			.flags = isupper(python[i]) ? TS_PYTHON_FRAME_ENTRY : 0,
		};
	count = ts_merge_stacks(native_frames, strlen(native), complete, python_frames,
				strlen(python), frames, capacity);
	for (size_t i = 0; i < count; i++) {
		if (frames[i].native)
			text[length++] = '(';
		text[length++] =
			*(frames[i].native ? frames[i].native->name : frames[i].python->name);
		if (frames[i].native)
			text[length++] = ')';
	}
	text[length] = '\0';
	return text;
}

TS_TEST(loops_become_their_frames)
{
	TS_CHECK_STR(merge("zgEgm", true, "abC", MOST), "(z)abc(m)");
	TS_CHECK_STR(merge("EgE", true, "aBcD", MOST), "abcd");
	TS_CHECK_STR(merge("EyEx", true, "aBcD", MOST), "ab(y)cd(x)");
	TS_CHECK_STR(merge("zygEgxE", true, "AB", MOST), "(z)(y)a(x)b");
}

TS_TEST(what_only_leads_on_is_hidden)
{
	TS_CHECK_STR(merge("ggEgggEg", true, "AB", MOST), "(g)ab"); /* but not the innermost */
	TS_CHECK_STR(merge("zgggE", true, "A", MOST), "(z)a");
}

TS_TEST(threads_without_python)
{
	TS_CHECK_STR(merge("xyg", true, "", MOST), "(x)(y)");
	TS_CHECK_STR(merge("xyg", false, "", MOST), "(x)(y)");
	TS_CHECK_STR(merge("", true, "aB", MOST), "ab");
	TS_CHECK_STR(merge("", false, "", MOST), "");
}

/* The native stack is incomplete: the outer part is Python only. */
TS_TEST(native_stacks_that_are_cut)
{
	TS_CHECK_STR(merge("zEy", false, "aBcDeF", MOST), "(z)ab(y)cdef");
	TS_CHECK_STR(merge("z", false, "aB", MOST), "(z)ab");
	TS_CHECK_STR(merge("zEyEE", false, "aB", MOST), "ab"); /* more loops than frames */
}

/* The thread moved between the readings: only the outer part, which both share, is merged. */
TS_TEST(stacks_that_do_not_fit)
{
	/* Python has gone deeper: B and its callees are Python only. */
	TS_CHECK_STR(merge("zEyExE", true, "aAbBcCdD", MOST), "aabbcc(x)dd");
	/* Python has returned. */
	TS_CHECK_STR(merge("zEyExEwEv", true, "BCD", MOST), "bc(w)d(v)");
	TS_CHECK_STR(merge("zEyEx", true, "aB", MOST), "ab");
	TS_CHECK_STR(merge("zx", true, "aB", MOST), "ab");
}

TS_TEST(frames_without_an_entry_stay)
{
	TS_CHECK_STR(merge("zEx", true, "aBc", MOST), "(z)ab(x)c");
	TS_CHECK_STR(merge("z", true, "ab", MOST), "(z)ab");
}

TS_TEST(no_more_than_there_is_room)
{
	TS_CHECK_STR(merge("zgEgm", true, "abC", 2), "(z)a");
	TS_CHECK_STR(merge("zgEgm", true, "abC", 0), "");
}
