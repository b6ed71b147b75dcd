/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes: strip() does the first translation phases, check() reads the result line by line and
 * relies on nothing that strip() found. No heap, libc only.
 */
#include "code/local/opencl_c.h"

#include <stdbool.h>
#include <string.h>

#include "base/local/macros.h"

struct span {
	const char *at, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool starts_with(struct span text, const char *prefix)
{
	size_t length = strlen(prefix);

	return (size_t)(text.end - text.at) >= length && memcmp(text.at, prefix, length) == 0;
}

static bool equals(struct span word, const char *text)
{
	return (size_t)(word.end - word.at) == strlen(text) && starts_with(word, text);
}

static bool is_one_of(struct span word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (equals(word, words[i]))
			return true;
	return false;
}

/* ---- translation phases 1 to 3 ---- */

struct stripping {
	struct span in;
	char *to;
	size_t length;
	size_t newlines; /* removed with comments and splices, due after the next one */
	bool failed;     /* a trigraph splices lines: compilers differ in whether it does */
};

/* Skips blanks and a line end; false: something else follows. */
static bool skip_line_end(struct span *in)
{
	const char *p = in->at;

	while (p < in->end && (is_blank(*p) || *p == '\v' || *p == '\f'))
		p++;
	if (p == in->end || (*p != '\r' && *p != '\n'))
		return false;
	in->at = p + (*p == '\r' && p + 1 < in->end && p[1] == '\n' ? 2 : 1);
	return true;
}

/* The next character after splicing lines; -1 at the end. */
static int next_character(struct stripping *strip)
{
	struct span *in = &strip->in;

	while (in->at < in->end) {
		struct span rest = { in->at + 1, in->end };
		char c = *in->at;

		if (c == '\\' && skip_line_end(&rest)) {
			in->at = rest.at;
			strip->newlines++;
			continue;
		}
		if (starts_with(*in, "\?\?/")) {
			rest.at = in->at + 3;
			strip->failed |= skip_line_end(&rest);
		}
		if (c == '\r' || c == '\n') {
			(void)skip_line_end(in);
			return '\n';
		}
		in->at++;
		return (unsigned char)c;
	}
	return -1;
}

static int peek_character(const struct stripping *strip)
{
	struct stripping ahead = *strip;

	return next_character(&ahead);
}

static void put(struct stripping *strip, int c)
{
	strip->to[strip->length++] = (char)c;
	if (c != '\n')
		return;
	/* Line numbers stay the same. */
	memset(strip->to + strip->length, '\n', strip->newlines);
	strip->length += strip->newlines;
	strip->newlines = 0;
}

/* The initial "/" was read; returns false, and reads nothing, if it starts no comment. */
static bool skip_comment(struct stripping *strip)
{
	int kind = peek_character(strip), previous = 0, c;

	if (kind != '/' && kind != '*')
		return false;
	c = next_character(strip);
	if (kind == '/') {
		while (peek_character(strip) != '\n' && c >= 0)
			c = next_character(strip);
		return true;
	}
	while ((c = next_character(strip)) >= 0 && !(previous == '*' && c == '/')) {
		strip->newlines += c == '\n';
		previous = c;
	}
	put(strip, ' ');
	return true;
}

/* Up to the closing quote or the end of the line. */
static void copy_literal(struct stripping *strip, int quote)
{
	int c;

	put(strip, quote);
	while ((c = peek_character(strip)) >= 0 && c != '\n') {
		put(strip, next_character(strip));
		if (c == quote)
			return;
		c = c == '\\' ? peek_character(strip) : '\n';
		if (c >= 0 && c != '\n')
			put(strip, next_character(strip));
	}
}

static const char *strip_source(struct stripping *strip)
{
	int c;

	if (starts_with(strip->in, "\xef\xbb\xbf"))
		strip->in.at += 3;
	/* Programs count the terminating zero, too. */
	while (strip->in.at < strip->in.end && !strip->in.end[-1])
		strip->in.end--;
	while ((c = next_character(strip)) >= 0) {
		if (c == '"' || c == '\'')
			copy_literal(strip, c);
		else if (c != '/' || !skip_comment(strip))
			put(strip, c == '\v' || c == '\f' ? ' ' : c);
	}
	return strip->failed ? "uses trigraphs" : NULL;
}

/* ---- lines ---- */

/*
 * What is not read yet. Whatever compiles the result has the same idea of a line's tokens: a line
 * starts outside of comments and literals, and where the literals of a line end is checked.
 */
struct line {
	char *at, *end;
};

static struct span rest_of(const struct line *line)
{
	return (struct span){ line->at, line->end };
}

static void skip_blanks(struct line *line)
{
	while (line->at < line->end && is_blank(*line->at))
		line->at++;
}

static struct span take_word(struct line *line)
{
	struct span word;

	skip_blanks(line);
	word.at = line->at;
	while (line->at < line->end && is_word(*line->at))
		line->at++;
	word.end = line->at;
	return word;
}

/* ---- directives: functions get the line after the name ---- */

static const char *check_nothing(struct line *line)
{
	(void)line;
	return NULL;
}

static const char *refuse_include(struct line *line)
{
	(void)line;
	return "includes files";
}

/* The prologue has decided what these words mean. */
static const char *check_definition(struct line *line)
{
	static const char *const decided[] = { "_Pragma", "asm", "__asm", "__asm__" };
	struct line ahead = *line;

	return is_one_of(take_word(&ahead), decided, TS_ARRAY_SIZE(decided))
		       ? "defines _Pragma or asm"
		       : NULL;
}

/* Keeps the number of a line, and removes the name of a file. */
static const char *check_line_number(struct line *line)
{
	skip_blanks(line);
	if (line->at == line->end || !is_digit(*line->at))
		return "has a #line without a number";
	while (line->at < line->end && is_digit(*line->at))
		line->at++;
	memset(line->at, ' ', (size_t)(line->end - line->at));
	return NULL;
}

static const char *check_pragma(struct line *line)
{
	static const char *const known[] = {
		"OPENCL", "STDC", "ivdep", "nounroll", "once", "unroll"
	};
	static const char *const compilers[] = { "GCC", "clang" };
	static const char *const theirs[] = { "diagnostic", "fp", "ivdep", "loop", "unroll" };
	struct line ahead = *line;
	struct span word = take_word(&ahead);

	if (is_one_of(word, known, TS_ARRAY_SIZE(known)))
		return NULL;
	if (is_one_of(word, compilers, TS_ARRAY_SIZE(compilers)) &&
	    is_one_of(take_word(&ahead), theirs, TS_ARRAY_SIZE(theirs)))
		return NULL;
	return "has a #pragma that may name files";
}

/* The line after its "#". */
static const char *check_directive(struct line *line)
{
	static const struct {
		const char *name;
		const char *(*check)(struct line *line);
	} directives[] = {
		{ "define", check_definition }, { "elif", check_nothing },
		{ "elifdef", check_nothing },   { "elifndef", check_nothing },
		{ "else", check_nothing },      { "embed", refuse_include },
		{ "endif", check_nothing },     { "error", check_nothing },
		{ "if", check_nothing },        { "ifdef", check_nothing },
		{ "ifndef", check_nothing },    { "import", refuse_include },
		{ "include", refuse_include },  { "include_next", refuse_include },
		{ "line", check_line_number },  { "pragma", check_pragma },
		{ "undef", check_definition },  { "warning", check_nothing },
	};
	struct span word;

	skip_blanks(line);
	if (line->at == line->end)
		return NULL;
	if (is_digit(*line->at))
		return check_line_number(line);
	word = take_word(line);
	for (size_t i = 0; i < TS_ARRAY_SIZE(directives); i++)
		if (equals(word, directives[i].name))
			return directives[i].check(line);
	return "has an unknown directive";
}

/* ---- tokens ---- */

static bool is_comment(struct span text)
{
	return starts_with(text, "//") || starts_with(text, "/*");
}

static bool has_comment(struct span text)
{
	for (; text.at < text.end; text.at++)
		if (is_comment(text))
			return true;
	return false;
}

/* _Pragma("unroll 4"), which the prologue removes: no result depends on it. */
static const char *check_pragma_operator(struct line *line)
{
	struct line ahead = *line;

	skip_blanks(&ahead);
	if (ahead.at < ahead.end && *ahead.at == '(') {
		ahead.at++;
		skip_blanks(&ahead);
	}
	return starts_with(rest_of(&ahead), "\"unroll") ||
			       starts_with(rest_of(&ahead), "\"nounroll")
		       ? NULL
		       : "uses _Pragma";
}

static const char *check_word(struct line *line)
{
	static const char *const reading[] = { "__has_embed", "__has_include", "__has_include_next",
					       "__pragma", "import" };
	static const char *const raw[] = { "R", "LR", "uR", "UR", "u8R" };
	struct span word = take_word(line);

	if (is_one_of(word, reading, TS_ARRAY_SIZE(reading)))
		return "may ask for files";
	if (is_one_of(word, raw, TS_ARRAY_SIZE(raw)) && starts_with(rest_of(line), "\""))
		return "has raw strings";
	return equals(word, "_Pragma") ? check_pragma_operator(line) : NULL;
}

/* An apostrophe would separate digits in some languages and start a literal in others. */
static const char *check_number(struct line *line)
{
	char last = 0;

	while (line->at < line->end &&
	       (is_word(*line->at) || *line->at == '.' ||
		((*line->at == '+' || *line->at == '-') && last && strchr("eEpP", last))))
		last = *line->at++;
	return starts_with(rest_of(line), "'") ? "has an apostrophe after a number" : NULL;
}

static const char *check_literal(struct line *line)
{
	struct span text = { line->at + 1, line->end };
	char quote = *line->at;

	for (; text.at < text.end && *text.at != quote; text.at++) {
		if (*text.at == '\\')
			text.at++;
	}
	/* No error in #error and #if 0, but compilers differ in where it ends. */
	if (text.at == text.end && has_comment(rest_of(line)))
		return "has an unclosed literal";
	line->at += TS_MIN(text.at + 1, text.end) - line->at;
	return NULL;
}

static const char *check_token(struct line *line)
{
	static const char punctuation[] = " \t!#%&()*+,-./:;<=>?[]^{|}~";
	char c = *line->at, next = (char)(line->end - line->at > 1 ? line->at[1] : 0);

	if (is_digit(c) || (c == '.' && is_digit(next)))
		return check_number(line);
	if (is_word(c))
		return check_word(line);
	if (c == '"' || c == '\'')
		return check_literal(line);
	if (!c || !strchr(punctuation, c))
		return "has characters that C does not use outside of strings and comments";
	if (is_comment(rest_of(line)))
		return "has a comment where none can be";
	line->at++;
	return NULL;
}

/* Anywhere in a line, whatever it is part of. */
static const char *check_characters(struct span text)
{
	char last = 0;

	for (; text.at < text.end; text.at++) {
		if ((unsigned char)*text.at < ' ' && *text.at != '\t')
			return "has control characters";
		if (starts_with(text, "\?\?") && text.end - text.at > 2 &&
		    memchr("=/'()!<>-", text.at[2], 9))
			return "uses trigraphs";
		if (*text.at != ' ' && *text.at != '\t')
			last = *text.at;
	}
	return last == '\\' ? "has a line that ends with a backslash" : NULL;
}

static const char *check_line(struct line *line)
{
	const char *refused = check_characters(rest_of(line));
	size_t hash;

	skip_blanks(line);
	hash = starts_with(rest_of(line), "#") ? 1 : starts_with(rest_of(line), "%:") ? 2 : 0;
	line->at += hash;
	if (hash && !refused)
		refused = check_directive(line);
	while (!refused && line->at < line->end)
		refused = check_token(line);
	return refused;
}

static const char *check(char *text, size_t bytes)
{
	char *end = text + bytes;
	const char *refused = NULL;

	while (!refused && text < end) {
		char *stop = memchr(text, '\n', (size_t)(end - text));
		struct line line = { text, stop ? stop : end };

		text = stop ? stop + 1 : end;
		refused = check_line(&line);
	}
	return refused;
}

const char *ts_opencl_c_normalize(const char *source, size_t bytes, char *to, size_t *ret_bytes)
{
	struct stripping strip = { .in = { source, source + bytes }, .to = to };
	const char *refused = strip_source(&strip);

	*ret_bytes = strip.length;
	return refused ? refused : check(to, strip.length);
}
