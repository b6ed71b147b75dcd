/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends only lines that differ from those on the terminal, for slow connections. Frames use
 * synchronized output (mode 2026) where terminals support it.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "cli/common/screen.h"

#define FRAME_BEGIN "\033[?2026h"
#define FRAME_END "\033[?2026l"
#define CLEAR "\033[0m\033[2J"
#define ERASE_LINE_END "\033[K"
#define STYLE_OFF "\033[0m"

/* ---- characters ---- */

struct range {
	uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t count, uint32_t code_point)
{
	for (size_t i = 0; i < count && ranges[i].first <= code_point; i++) {
		if (code_point <= ranges[i].last)
			return true;
	}
	return false;
}

unsigned int ts_screen_width(uint32_t code_point)
{
	static const struct range joining[] = {
		{ 0x300, 0x36f },   { 0x483, 0x489 },     { 0x591, 0x5bd },     { 0x610, 0x61a },
		{ 0x64b, 0x65f },   { 0xe31, 0xe31 },     { 0xe34, 0xe3a },     { 0xe47, 0xe4e },
		{ 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },   { 0x20d0, 0x20ff },   { 0xfe00, 0xfe0f },
		{ 0xfe20, 0xfe2f }, { 0x1f3fb, 0x1f3ff }, { 0xe0100, 0xe01ef },
	};
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },
		{ 0x2e80, 0x303e },   { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },
		{ 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
		{ 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
		{ 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
	};

	if (code_point < 0x300)
		return 1;
	if (is_in(joining, TS_ARRAY_SIZE(joining), code_point))
		return 0;
	return is_in(wide, TS_ARRAY_SIZE(wide), code_point) ? 2 : 1;
}

/* Control, bidirectional formatting and invisible characters. */
static bool is_unwanted(uint32_t code_point)
{
	return ts_utf8_is_control(code_point) || code_point == 0xad || code_point == 0x180e ||
	       (code_point >= 0x200b && code_point <= 0x200f) ||
	       (code_point >= 0x2060 && code_point <= 0x206f) || code_point == 0xfeff ||
	       (code_point >= 0xfff0 && code_point <= 0xfffb) ||
	       (code_point >= 0xe0000 && code_point <= 0xe007f);
}

/* A character that is safe to show. */
struct glyph {
	const char *bytes;
	size_t length;
	unsigned int columns;
};

/* Decodes the next character; returns the bytes it takes in the text. */
static size_t next_glyph(bool utf8, const char *text, const char *end, struct glyph *ret_glyph)
{
	bool valid;
	size_t bytes = ts_utf8_step(text, end, &valid);
	uint32_t code_point = valid ? ts_utf8_decode(text, bytes) : 0;

	if (is_unwanted(code_point) || (!utf8 && code_point >= 0x80))
		*ret_glyph = (struct glyph){ "?", 1, 1 };
	else
		*ret_glyph = (struct glyph){ text, bytes, ts_screen_width(code_point) };
	return bytes;
}

unsigned int ts_screen_text_width(bool utf8, const char *text, size_t length)
{
	const char *end = text + length;
	unsigned int width = 0;

	while (text < end) {
		struct glyph glyph;

		text += next_glyph(utf8, text, end, &glyph);
		width += glyph.columns;
	}
	return width;
}

bool ts_screen_wants_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]), *charset;

		if (!value || !*value)
			continue;
		charset = strchr(value, '.');
		return charset &&
		       (!strncasecmp(charset, ".utf-8", 6) || !strncasecmp(charset, ".utf8", 5));
	}
	return false;
}

/* ---- lines ---- */

void ts_screen_init(struct ts_screen *screen, bool utf8, bool colour)
{
	*screen = (struct ts_screen){ .utf8 = utf8, .colour = colour, .forgotten = true };
}

static void free_lines(struct ts_screen_line *lines, unsigned int count)
{
	for (unsigned int i = 0; lines && i < count; i++)
		ts_text_release(&lines[i].bytes);
	free(lines);
}

void ts_screen_release(struct ts_screen *screen)
{
	free_lines(screen->shown, screen->rows);
	free_lines(screen->next, screen->rows);
	ts_text_release(&screen->out);
	*screen = (struct ts_screen){ .rows = 0 };
}

int ts_screen_resize(struct ts_screen *screen, unsigned int rows, unsigned int columns,
		     struct ts_error *err)
{
	struct ts_screen_line *shown, *next;

	rows = rows ? TS_MIN(rows, TS_SCREEN_ROWS) : 24;
	columns = columns ? TS_MIN(columns, TS_SCREEN_COLUMNS) : 80;
	shown = calloc(rows, sizeof(*shown));
	next = calloc(rows, sizeof(*next));
	if (!shown || !next) {
		free(shown);
		free(next);
		return ts_error_set(err, TS_ENOMEM, "no memory for a screen of %u lines", rows);
	}
	free_lines(screen->shown, screen->rows);
	free_lines(screen->next, screen->rows);
	screen->shown = shown;
	screen->next = next;
	screen->rows = rows;
	screen->columns = columns;
	screen->row = 0;
	screen->forgotten = true;
	return TS_OK;
}

void ts_screen_forget(struct ts_screen *screen)
{
	screen->forgotten = true;
}

void ts_screen_begin(struct ts_screen *screen)
{
	for (unsigned int i = 0; i < screen->rows; i++) {
		ts_text_clear(&screen->next[i].bytes);
		screen->next[i].columns = 0;
	}
	screen->row = 0;
	screen->style = TS_STYLE_PLAIN;
}

static struct ts_screen_line *current(struct ts_screen *screen)
{
	return screen->row < screen->rows ? &screen->next[screen->row] : NULL;
}

static void set_style(struct ts_screen *screen, enum ts_style style)
{
	static const char *const sequences[] = {
		[TS_STYLE_BOLD] = "\033[1m",    [TS_STYLE_DIM] = "\033[2m",
		[TS_STYLE_REVERSE] = "\033[7m", [TS_STYLE_RED] = "\033[31m",
		[TS_STYLE_GREEN] = "\033[32m",  [TS_STYLE_YELLOW] = "\033[33m",
		[TS_STYLE_CYAN] = "\033[36m",
	};
	struct ts_screen_line *line = current(screen);

	if (!screen->colour && style != TS_STYLE_BOLD && style != TS_STYLE_REVERSE)
		style = TS_STYLE_PLAIN;
	if (!line || style == screen->style)
		return;
	if (screen->style != TS_STYLE_PLAIN)
		ts_text_append_str(&line->bytes, STYLE_OFF);
	if (style != TS_STYLE_PLAIN)
		ts_text_append_str(&line->bytes, sequences[style]);
	screen->style = style;
}

void ts_screen_row(struct ts_screen *screen, unsigned int row)
{
	/* Each line is drawn independently of the one before. */
	set_style(screen, TS_STYLE_PLAIN);
	screen->row = row;
}

void ts_screen_clear_row(struct ts_screen *screen, unsigned int row)
{
	ts_screen_row(screen, row);
	if (row >= screen->rows)
		return;
	ts_text_clear(&screen->next[row].bytes);
	screen->next[row].columns = 0;
}

void ts_screen_put(struct ts_screen *screen, enum ts_style style, const char *text, size_t length)
{
	struct ts_screen_line *line = current(screen);
	const char *end = text + length;

	if (!line)
		return;
	set_style(screen, style);
	while (text < end) {
		struct glyph glyph;

		text += next_glyph(screen->utf8, text, end, &glyph);
		if (line->columns + glyph.columns > screen->columns)
			return;
		/* No character to combine with. */
		if (glyph.columns == 0 && line->columns == 0)
			continue;
		ts_text_append(&line->bytes, glyph.bytes, glyph.length);
		line->columns += glyph.columns;
	}
}

void ts_screen_str(struct ts_screen *screen, enum ts_style style, const char *text)
{
	ts_screen_put(screen, style, text, strlen(text));
}

void ts_screen_cell(struct ts_screen *screen, enum ts_style style, const char *text,
		    unsigned int columns, bool right)
{
	const char *at = text, *end = text + strlen(text);
	unsigned int begin = ts_screen_column(screen), width = 0;

	while (at < end) {
		struct glyph glyph;
		size_t bytes = next_glyph(screen->utf8, at, end, &glyph);

		if (width + glyph.columns > columns)
			break;
		width += glyph.columns;
		at += bytes;
	}
	if (right)
		ts_screen_pad(screen, style, begin + columns - width);
	ts_screen_put(screen, style, text, (size_t)(at - text));
	ts_screen_pad(screen, style, begin + columns);
}

void ts_screen_pad(struct ts_screen *screen, enum ts_style style, unsigned int column)
{
	while (ts_screen_column(screen) < TS_MIN(column, screen->columns))
		ts_screen_put(screen, style, " ", 1);
}

unsigned int ts_screen_column(const struct ts_screen *screen)
{
	/* Rows off the screen are full. */
	return screen->row < screen->rows ? screen->next[screen->row].columns : screen->columns;
}

/* ---- drawing ---- */

static bool are_equal(const struct ts_screen_line *a, const struct ts_screen_line *b)
{
	return a->bytes.length == b->bytes.length &&
	       (!a->bytes.length || !memcmp(a->bytes.data, b->bytes.data, a->bytes.length));
}

static void draw_line(struct ts_screen *screen, unsigned int row)
{
	const struct ts_screen_line *line = &screen->next[row];
	struct ts_text *out = &screen->out;

	ts_text_printf(out, "\033[%u;1H", row + 1);
	ts_text_append(out, line->bytes.data, line->bytes.length);
	/* At the last column the cursor stays on the last character, which would be erased. */
	if (line->columns < screen->columns && !screen->forgotten)
		ts_text_append_str(out, ERASE_LINE_END);
}

const struct ts_text *ts_screen_finish(struct ts_screen *screen)
{
	static const struct ts_screen_line empty;
	struct ts_text *out = &screen->out;
	struct ts_screen_line *swap = screen->shown;
	size_t begin;

	set_style(screen, TS_STYLE_PLAIN);
	ts_text_clear(out);
	ts_text_append_str(out, FRAME_BEGIN);
	begin = out->length;
	if (screen->forgotten)
		ts_text_append_str(out, CLEAR);
	for (unsigned int i = 0; i < screen->rows; i++) {
		if (!are_equal(&screen->next[i], screen->forgotten ? &empty : &screen->shown[i]))
			draw_line(screen, i);
	}
	if (out->length == begin)
		ts_text_clear(out);
	else
		ts_text_append_str(out, FRAME_END);
	screen->shown = screen->next;
	screen->next = swap;
	screen->forgotten = out->failed;
	return out;
}
