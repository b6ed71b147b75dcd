/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen draws changes only, within its size, and passes no control characters; keys are
 * decoded from input split anywhere.
 */
#include "cli/common/keys.h"
#include "cli/common/screen.h"
#include "unit/runner.h"

#define BEGIN "\033[?2026h"
#define END "\033[?2026l"
#define ESC 0x1b
#define CLEAR_ALL "\033[0m\033[2J"

static struct ts_screen screen;

static void begin(unsigned int rows, unsigned int columns, bool utf8, bool colour)
{
	ts_screen_init(&screen, utf8, colour);
	TS_CHECK_INT(ts_screen_resize(&screen, rows, columns, NULL), 0);
	ts_screen_begin(&screen);
}

static const char *finish(void)
{
	ts_screen_finish(&screen);
	return ts_text_cstr(&screen.out);
}

/* ---- drawing ---- */

TS_TEST(draws_all_then_changes)
{
	begin(3, 10, false, true);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "one");
	ts_screen_row(&screen, 2);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "three");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Hone\033[3;1Hthree" END);
	ts_screen_begin(&screen);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "one");
	ts_screen_row(&screen, 2);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "drei");
	TS_CHECK_STR(finish(), BEGIN "\033[3;1Hdrei\033[K" END);
	ts_screen_begin(&screen);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "one");
	TS_CHECK_STR(finish(), BEGIN "\033[3;1H\033[K" END);
	ts_screen_begin(&screen);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "one");
	TS_CHECK_STR(finish(), "");
	ts_screen_forget(&screen);
	ts_screen_begin(&screen);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "one");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Hone" END);
	ts_screen_release(&screen);
}

/* At the last column the cursor stays on the last character: erasing would remove it. */
TS_TEST(full_lines_are_not_erased)
{
	begin(1, 5, false, true);
	finish();
	ts_screen_begin(&screen);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "12345678");
	TS_CHECK_STR(finish(), BEGIN "\033[1;1H12345" END);
	ts_screen_release(&screen);
}

TS_TEST(each_line_has_its_own_styles)
{
	begin(2, 10, false, true);
	ts_screen_str(&screen, TS_STYLE_RED, "a");
	ts_screen_str(&screen, TS_STYLE_RED, "b");
	ts_screen_str(&screen, TS_STYLE_BOLD, "c");
	ts_screen_row(&screen, 1);
	ts_screen_str(&screen, TS_STYLE_BOLD, "d");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1H\033[31mab\033[0m\033[1mc\033[0m"
					       "\033[2;1H\033[1md\033[0m" END);
	ts_screen_release(&screen);
	/* Without colours a selection is still visible. */
	begin(1, 10, false, false);
	ts_screen_str(&screen, TS_STYLE_RED, "a");
	ts_screen_str(&screen, TS_STYLE_DIM, "b");
	ts_screen_str(&screen, TS_STYLE_REVERSE, "c");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Hab\033[7mc\033[0m" END);
	ts_screen_release(&screen);
}

TS_TEST(rows_outside_take_nothing)
{
	begin(1, 4, false, true);
	ts_screen_row(&screen, 1);
	ts_screen_str(&screen, TS_STYLE_BOLD, "x");
	ts_screen_cell(&screen, TS_STYLE_BOLD, "x", 3, true);
	ts_screen_clear_row(&screen, 7);
	ts_screen_pad(&screen, TS_STYLE_BOLD, 100);
	ts_screen_row(&screen, 0);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "y");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Hy" END);
	ts_screen_release(&screen);
}

TS_TEST(sizes_have_limits)
{
	begin(0, 0, false, true);
	TS_CHECK_INT(screen.rows, 24);
	TS_CHECK_INT(screen.columns, 80);
	TS_CHECK_INT(ts_screen_resize(&screen, 65535, 65535, NULL), 0);
	TS_CHECK_INT(screen.rows, TS_SCREEN_ROWS);
	TS_CHECK_INT(screen.columns, TS_SCREEN_COLUMNS);
	TS_CHECK_INT(ts_screen_resize(&screen, 1, 1, NULL), 0);
	ts_screen_begin(&screen);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "xyz");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Hx" END);
	ts_screen_release(&screen);
}

/* ---- texts ---- */

TS_TEST(nothing_but_characters_comes_out)
{
	begin(1, 40, true, true);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "a\033[2Jb\a\r\n\x7f\xc2\x9b");
	/* Right to left, zero width, bytes that are not UTF-8. */
	ts_screen_str(&screen, TS_STYLE_PLAIN, "\xe2\x80\xae\xe2\x80\x8b\xff\xc3");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Ha?[2Jb?????????" END);
	ts_screen_release(&screen);
	begin(1, 10, false, true);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "\xc3\xa9 \xe6\xbc\xa2");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1H? ?" END);
	ts_screen_release(&screen);
}

TS_TEST(widths_of_characters)
{
	TS_CHECK_INT(ts_screen_width('a'), 1);
	TS_CHECK_INT(ts_screen_width(0xe9), 1);
	TS_CHECK_INT(ts_screen_width(0x301), 0);
	TS_CHECK_INT(ts_screen_width(0x6f22), 2);
	TS_CHECK_INT(ts_screen_width(0xac00), 2);
	TS_CHECK_INT(ts_screen_width(0x1f600), 2);
	TS_CHECK_INT(ts_screen_width(0x2588), 1);
	TS_CHECK_INT(ts_screen_width(0x10ffff), 1);
	TS_CHECK_INT(ts_screen_text_width(true, "a\xe6\xbc\xa2", 4), 3);
	TS_CHECK_INT(ts_screen_text_width(false, "a\xe6\xbc\xa2", 4), 2);
}

TS_TEST(wide_characters_are_not_halved)
{
	begin(1, 4, true, true);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "abc\xe6\xbc\xa2z");
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1Habc" END);
	ts_screen_begin(&screen);
	ts_screen_cell(&screen, TS_STYLE_PLAIN, "\xe6\xbc\xa2\xe6\xbc\xa2", 3, false);
	ts_screen_str(&screen, TS_STYLE_PLAIN, "|");
	TS_CHECK_STR(finish(), BEGIN "\033[1;1H\xe6\xbc\xa2 |" END);
	ts_screen_release(&screen);
}

TS_TEST(cells_are_cut_and_padded)
{
	begin(1, 20, true, true);
	ts_screen_cell(&screen, TS_STYLE_PLAIN, "ab", 4, true);
	ts_screen_cell(&screen, TS_STYLE_PLAIN, "|cd", 4, false);
	ts_screen_cell(&screen, TS_STYLE_PLAIN, "|efghij", 4, true);
	ts_screen_cell(&screen, TS_STYLE_PLAIN, "", 2, true);
	TS_CHECK_INT(ts_screen_column(&screen), 14);
	TS_CHECK_STR(finish(), BEGIN CLEAR_ALL "\033[1;1H  ab|cd |efg  " END);
	ts_screen_release(&screen);
}

TS_TEST(the_environment_says_utf8)
{
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	unsetenv("LANG");
	TS_CHECK(!ts_screen_wants_utf8());
	setenv("LANG", "de_DE.UTF-8", 1);
	TS_CHECK(ts_screen_wants_utf8());
	setenv("LC_CTYPE", "C.utf8", 1);
	TS_CHECK(ts_screen_wants_utf8());
	setenv("LC_ALL", "C", 1);
	TS_CHECK(!ts_screen_wants_utf8());
	setenv("LC_ALL", "", 1);
	TS_CHECK(ts_screen_wants_utf8());
}

/* ---- keys ---- */

/* Decodes a text byte by byte; flushes what is pending at the end. */
static size_t keys_of(const char *text, uint32_t *ret_keys)
{
	struct ts_keys keys = { .length = 0 };
	size_t count = 0;

	for (; *text; text++) {
		uint32_t key = ts_keys_take(&keys, (unsigned char)*text);

		if (key)
			ret_keys[count++] = key;
	}
	if (ts_keys_pending(&keys))
		ret_keys[count++] = ts_keys_flush(&keys);
	TS_CHECK(!ts_keys_pending(&keys));
	return count;
}

static void check_key(const char *text, uint32_t key)
{
	uint32_t keys[64];

	TS_CHECK_INT(keys_of(text, keys), 1);
	if (keys[0] != key)
		ts_test_fail(__FILE__, __LINE__, "'%s' gives %x, not %x", text + (*text == ESC),
			     keys[0], key);
}

TS_TEST(keys_of_terminals)
{
	check_key("q", 'q');
	check_key("\r", TS_KEY_ENTER);
	check_key("\n", TS_KEY_ENTER);
	check_key("\b", TS_KEY_BACKSPACE);
	check_key("\x7f", TS_KEY_BACKSPACE);
	check_key("\033", TS_KEY_ESCAPE);
	check_key("\033[A", TS_KEY_UP);
	check_key("\033OB", TS_KEY_DOWN);
	check_key("\033[1;5C", TS_KEY_RIGHT);
	check_key("\033[D", TS_KEY_LEFT);
	check_key("\033[H", TS_KEY_HOME);
	check_key("\033[1~", TS_KEY_HOME);
	check_key("\033[7~", TS_KEY_HOME);
	check_key("\033OF", TS_KEY_END);
	check_key("\033[4~", TS_KEY_END);
	check_key("\033[5~", TS_KEY_PAGE_UP);
	check_key("\033[6;2~", TS_KEY_PAGE_DOWN);
	check_key("\033[3~", TS_KEY_DELETE);
	check_key("\033OP", TS_KEY_F1);
	check_key("\033[11~", TS_KEY_F1);
	check_key("\033[[A", TS_KEY_F1);
	check_key("\033[17~", TS_KEY_F1 + 5);
	check_key("\033[21~", TS_KEY_F1 + 9);
	check_key("\033[24~", TS_KEY_F12);
	check_key("\xc3\xa9", 0xe9);
	check_key("\xf0\x9f\x98\x80", 0x1f600);
}

/* An unknown sequence is consumed completely, and no part of it becomes a letter. */
TS_TEST(other_sequences_are_swallowed)
{
	check_key("\033[99~", TS_KEY_OTHER);
	check_key("\033[?1;2c", TS_KEY_OTHER);
	check_key("\033[<0;10;20M", TS_KEY_OTHER);
	check_key("\033x", TS_KEY_OTHER);
	check_key("\033[1;", TS_KEY_OTHER);
	check_key("\xff", TS_KEY_OTHER);
	check_key("\033[11111111111111111111111111111111111111111111111111111111111111q",
		  TS_KEY_OTHER);
}

TS_TEST(keys_follow_each_other)
{
	uint32_t keys[64];

	TS_CHECK_INT(keys_of("a\033[Bb\033OAc\033", keys), 6);
	TS_CHECK_INT(keys[0], 'a');
	TS_CHECK_INT(keys[1], TS_KEY_DOWN);
	TS_CHECK_INT(keys[2], 'b');
	TS_CHECK_INT(keys[3], TS_KEY_UP);
	TS_CHECK_INT(keys[4], 'c');
	TS_CHECK_INT(keys[5], TS_KEY_ESCAPE);
	/* Escape, immediately followed by an arrow. */
	TS_CHECK_INT(keys_of("\033\033[A", keys), 2);
	TS_CHECK_INT(keys[0], TS_KEY_ESCAPE);
	TS_CHECK_INT(keys[1], TS_KEY_UP);
}

/* Whatever the input, there are no more keys than bytes and no access out of bounds. */
TS_TEST(random_bytes_do_no_harm)
{
	struct ts_keys keys = { .length = 0 };
	unsigned int seed = 1;

	for (int i = 0; i < 1000000; i++) {
		static const unsigned char likely[] = "\033[O;~1259AMq\xc3\xf0\x9f\x80";
		unsigned int draw = (unsigned int)rand_r(&seed);

		ts_keys_take(&keys, draw & 0x100 ? likely[draw % (sizeof(likely) - 1)]
						 : (unsigned char)draw);
		TS_CHECK(keys.length < sizeof(keys.bytes));
	}
}
