/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_names.h. A character counts as one column. */
#include "cli/common/fit_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/error.h>

#include "base/map.h"
#include "base/text.h"
#include "cli/common/text_table.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define VOID "void "
#define ANONYMOUS "(anonymous namespace)::"
#define CONST " const"
#define LOCALS ".<locals>"
/* Each round separates names that still look alike; those left after the last get numbers. */
#define ROUNDS 8

/* A distinct name. */
struct name {
	const char *text;  /* as given */
	const char *plain; /* without namespaces and call arguments */
	const char *shown;
};

struct fitting {
	struct ts_arena *arena;
	size_t width;
	struct name *names;
	size_t count;
	struct ts_text scratch;
	bool failed; /* out of memory */
};

/* ---- columns of UTF-8 ---- */

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t columns_of(const char *text)
{
	return ts_text_shown_width(text, strlen(text));
}

/* The text after its first columns. */
static const char *skip_columns(const char *text, size_t columns)
{
	for (; *text; text++)
		if (begins_character(*text) && columns-- == 0)
			break;
	return text;
}

static void append_columns(struct ts_text *out, const char *text, size_t columns)
{
	ts_text_append(out, text, (size_t)(skip_columns(text, columns) - text));
}

/* ---- names without what says least ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$';
}

static size_t word_length(const char *text)
{
	size_t length = 0;

	while (is_word(text[length]))
		length++;
	return length;
}

/* The length of "f" in "f(int) const"; that of the text if it does not end in call arguments. */
static size_t length_without_call(const char *text)
{
	size_t length = strlen(text), at = length, depth = 0;

	if (at > strlen(CONST) && !strcmp(text + at - strlen(CONST), CONST))
		at -= strlen(CONST);
	if (!at || text[at - 1] != ')')
		return length;
	do {
		at--;
		depth += text[at] == ')';
		depth -= text[at] == '(';
	} while (at && depth);
	/* "Memcpy HtoD (Pageable -> Device)" is no call. */
	return !at || text[at - 1] == ' ' ? length : at;
}

/* Skips "at::native::(anonymous namespace)::". */
static const char *skip_namespaces(const char *text)
{
	for (;;) {
		size_t word = word_length(text);

		if (ts_starts_with(text, ANONYMOUS))
			text += strlen(ANONYMOUS);
		else if (word && ts_starts_with(text + word, "::") &&
			 (is_word(text[word + 2]) || text[word + 2] == '('))
			text += word + 2;
		else
			return text;
	}
}

/*
 * Without "void ", namespaces, call arguments, the blank in "> >", and "<locals>" of Python's
 * "f.<locals>.g".
 */
static void append_plain(struct ts_text *out, const char *text)
{
	const char *end = text + length_without_call(text);
	char last = ' ';

	if (ts_starts_with(text, VOID))
		text += strlen(VOID);
	while (text < end) {
		size_t length;

		if (!is_word(last))
			text = skip_namespaces(text);
		if (ts_starts_with(text, LOCALS "."))
			text += strlen(LOCALS);
		if (last == '>' && ts_starts_with(text, " >"))
			text++;
		length = TS_MAX(word_length(text), (size_t)1);
		if (text < end)
			ts_text_append(out, text, TS_MIN(length, (size_t)(end - text)));
		text += length;
		last = text[-1];
	}
}

/* ---- nested arguments ---- */

/* Python's "<module>" and "f.<lambda>" are names. */
static bool opens_group(const char *text, size_t at)
{
	return text[at] == '(' || (text[at] == '<' && at && text[at - 1] != '.');
}

/* The arrow in "a -> b" does not. */
static bool closes_group(const char *text, size_t at)
{
	return text[at] == ')' || (text[at] == '>' && (!at || text[at - 1] != '-'));
}

static size_t deepest(const char *text)
{
	size_t depth = 0, most = 0;

	for (size_t at = 0; text[at]; at++) {
		if (opens_group(text, at))
			depth++;
		else if (depth && closes_group(text, at))
			depth--;
		most = TS_MAX(most, depth);
	}
	return most;
}

/* Arguments nested deeper than `levels` become "…". */
static void append_collapsed(struct ts_text *out, const char *text, size_t levels)
{
	size_t depth = 0;

	for (size_t at = 0; text[at]; at++) {
		if (depth && closes_group(text, at))
			depth--;
		if (depth <= levels)
			ts_text_append_char(out, text[at]);
		if (opens_group(text, at) && ++depth == levels + 1 && !closes_group(text, at + 1))
			ts_text_append_str(out, ELLIPSIS);
	}
}

/* ---- cutting ---- */

/* The first `head` columns, "…", and of the end as much as fits. */
static void append_ends(struct ts_text *out, const char *text, size_t width, size_t head)
{
	size_t columns = columns_of(text), tail = width - 1 - head;

	append_columns(out, text, head);
	ts_text_append_str(out, ELLIPSIS);
	ts_text_append_str(out, skip_columns(text, columns - tail));
}

static bool has_arguments(const char *text)
{
	for (size_t at = 0; text[at]; at++)
		if (text[at] == '<' && opens_group(text, at))
			return true;
	return false;
}

/* Of a path the end says most, of arguments and sentences the beginning, of others both. */
static void append_cut(struct ts_text *out, const char *text, size_t width)
{
	append_ends(out, text, width,
		    text[0] == '/'                               ? 0
		    : has_arguments(text) || strpbrk(text, " {") ? width - 1
								 : width * 3 / 5);
}

/*
 * Where to begin so that byte `focus` is seen in its word, within `most` bytes: at the word, else
 * at a part of it (after '_'), else as far back as possible.
 */
static const char *word_around(const char *text, size_t focus, size_t most)
{
	const char *at = text + focus, *part = NULL;

	while (at > text && is_word(at[-1]) && (size_t)(text + focus - at) < most) {
		at--;
		if (at > text && at[-1] == '_')
			part = at;
	}
	if (part && at > text && is_word(at[-1]))
		at = part;
	while (!begins_character(*at))
		at--;
	return at;
}

/* The beginning, and the word at byte `focus`. */
static void append_focused(struct ts_text *out, const char *text, size_t width, size_t focus)
{
	size_t head = width * 2 / 5, window = width - head - 2;
	const char *begin = word_around(text, focus, window * 2 / 3);

	if (text + focus < skip_columns(text, width - 1)) {
		append_ends(out, text, width, width - 1);
	} else if (columns_of(begin) <= window + 1) {
		append_ends(out, text, width, head);
	} else {
		append_columns(out, text, head);
		ts_text_append_str(out, ELLIPSIS);
		append_columns(out, begin, window);
		ts_text_append_str(out, ELLIPSIS);
	}
}

/* ---- one name ---- */

/* The text in `scratch`, kept; scratch is then empty. */
static const char *keep(struct fitting *fitting)
{
	const char *text = NULL;

	if (!fitting->scratch.failed)
		text = ts_arena_strdup_len(fitting->arena, ts_text_cstr(&fitting->scratch),
					   fitting->scratch.length);
	fitting->failed |= !text;
	ts_text_clear(&fitting->scratch);
	return text ? text : "";
}

static bool fits(const struct fitting *fitting, const char *text)
{
	return columns_of(text) <= fitting->width;
}

static void fit(struct fitting *fitting, struct name *name)
{
	struct ts_text *scratch = &fitting->scratch;
	bool is_fitting;
	size_t levels;

	name->plain = name->shown = name->text;
	if (fits(fitting, name->text))
		return;
	append_plain(scratch, name->text);
	name->plain = name->shown = keep(fitting);
	is_fitting = fits(fitting, name->plain);
	/* Each level takes a column: of thousands, no more can be seen. */
	levels = TS_MIN(deepest(name->plain), fitting->width + 1);
	while (!is_fitting && levels-- > 1) {
		ts_text_clear(scratch);
		append_collapsed(scratch, name->plain, levels);
		is_fitting = fits(fitting, ts_text_cstr(scratch));
	}
	if (scratch->length || scratch->failed)
		name->shown = keep(fitting);
	if (is_fitting)
		return;
	append_cut(scratch, name->shown, fitting->width);
	name->shown = keep(fitting);
}

/* ---- names that look alike ---- */

static int compare_shown(const void *left, const void *right)
{
	const struct name *const *a = left, *const *b = right;
	int order = strcmp((*a)->shown, (*b)->shown);

	return order ? order : strcmp((*a)->text, (*b)->text);
}

static size_t common_length(const char *a, const char *b)
{
	size_t length = 0;

	while (a[length] && a[length] == b[length])
		length++;
	return length;
}

static const char *form_of(const struct name *name, bool is_plain)
{
	return is_plain ? name->plain : name->text;
}

/* Bytes that all names of a group have in common. */
static size_t common_start(struct name *const *group, size_t count, bool is_plain)
{
	size_t common = strlen(form_of(group[0], is_plain));

	for (size_t i = 1; i < count; i++)
		common = TS_MIN(common, common_length(form_of(group[0], is_plain),
						      form_of(group[i], is_plain)));
	return common;
}

/* Shows each name of the group around the first difference. */
static void separate(struct fitting *fitting, struct name *const *group, size_t count)
{
	size_t common = common_start(group, count, true);
	bool is_plain = true;

	/* They differ only in what the plain form leaves out. */
	for (size_t i = 0; i < count; i++)
		is_plain &= strlen(group[i]->plain) > common;
	if (!is_plain)
		common = common_start(group, count, false);
	for (size_t i = 0; i < count; i++) {
		const char *form = form_of(group[i], is_plain);

		if (fits(fitting, form)) {
			group[i]->shown = form;
			continue;
		}
		append_focused(&fitting->scratch, form, fitting->width,
			       TS_MIN(common, strlen(form)));
		group[i]->shown = keep(fitting);
	}
}

/* "void at::nat…#2": no two of all names get the same number. */
static void number(struct fitting *fitting, struct name *const *group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		TS_SCOPED(ts_text) tail = { 0 };
		size_t columns;

		ts_text_printf(&tail, ELLIPSIS "#%td", group[i] - fitting->names + 1);
		columns = columns_of(ts_text_cstr(&tail));
		append_columns(&fitting->scratch, group[i]->text,
			       fitting->width - TS_MIN(columns, fitting->width));
		ts_text_append(&fitting->scratch, tail.data, tail.length);
		group[i]->shown = keep(fitting);
	}
}

/* Calls `resolve` for each group of names that are shown alike; returns whether there were any. */
static bool resolve_groups(struct fitting *fitting, struct name **order,
			   void (*resolve)(struct fitting *fitting, struct name *const *group,
					   size_t count))
{
	bool found = false;
	size_t end;

	ts_sort(order, fitting->count, sizeof(*order), compare_shown);
	for (size_t begin = 0; begin < fitting->count; begin = end) {
		const char *shown = order[begin]->shown;

		for (end = begin + 1; end < fitting->count && !strcmp(order[end]->shown, shown);)
			end++;
		if (end - begin < 2)
			continue;
		found = true;
		resolve(fitting, order + begin, end - begin);
	}
	return found;
}

static void fit_all(struct fitting *fitting, struct name **order)
{
	bool alike = true;

	for (size_t i = 0; i < fitting->count; i++) {
		fit(fitting, &fitting->names[i]);
		order[i] = &fitting->names[i];
	}
	for (int round = 0; alike && !fitting->failed && round < ROUNDS; round++)
		alike = resolve_groups(fitting, order, separate);
	if (alike && !fitting->failed)
		resolve_groups(fitting, order, number);
}

int ts_fit_names(struct ts_arena *arena, const char **names, size_t count, size_t width)
{
	struct fitting fitting = { .arena = arena, .width = width };
	struct ts_strmap distinct;
	struct name **order = ts_alloc_array(count, sizeof(*order));

	ts_strmap_init(&distinct, 0);
	fitting.names = calloc(count + 1, sizeof(*fitting.names));
	fitting.failed = !order || !fitting.names;
	for (size_t i = 0; !fitting.failed && i < count; i++) {
		bool is_new = false;
		uint32_t id = ts_strmap_intern(&distinct, names[i], strlen(names[i]), &is_new);

		fitting.failed = id == TS_STRMAP_NONE;
		if (is_new)
			fitting.names[fitting.count++] = (struct name){ .text = names[i] };
	}
	if (!fitting.failed)
		fit_all(&fitting, order);
	for (size_t i = 0; !fitting.failed && i < count; i++)
		names[i] =
			fitting.names[ts_strmap_find(&distinct, names[i], strlen(names[i]))].shown;
	ts_strmap_release(&distinct);
	ts_text_release(&fitting.scratch);
	free(fitting.names);
	free(order);
	return fitting.failed ? TS_ENOMEM : TS_OK;
}
