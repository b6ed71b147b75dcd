/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glob matching by characters. Only the last star is ever retried (retrying earlier ones cannot
 * help), so the time is polynomial for every pattern and text. Knows nothing of paths: '/' and a
 * leading '.' are ordinary characters.
 */
#include "base/text.h"
#include "base/utf8.h"

/* Consumes one character; a byte that is not UTF-8 becomes a value that no character has. */
static uint32_t take(const char **p, const char *end)
{
	const char *at = *p;
	size_t bytes;
	bool valid;

	if ((unsigned char)*at < 0x80) {
		*p = at + 1;
		return (unsigned char)*at;
	}
	bytes = ts_utf8_step(at, end, &valid);
	if (!valid) {
		*p = at + 1;
		return 0x110000u + (unsigned char)*at;
	}
	*p = at + bytes;
	return ts_utf8_decode(at, bytes);
}

static uint32_t take_from_set(const char **p, const char *end)
{
	if (**p == '\\' && *p + 1 < end)
		(*p)++;
	return take(p, end);
}

/*
 * *p is just after a '['. Returns whether c is in the set and moves *p past its ']'. Without a ']',
 * *ret_closed is false.
 */
static bool match_set(const char **p, const char *end, uint32_t c, bool *ret_closed)
{
	const char *at = *p, *first;
	bool negated = at < end && (*at == '!' || *at == '^'), found = false;

	at += negated;
	first = at;
	*ret_closed = false;
	while (at < end && (*at != ']' || at == first)) {
		uint32_t low = take_from_set(&at, end), high = low;

		if (end - at >= 2 && at[0] == '-' && at[1] != ']') {
			at++;
			high = take_from_set(&at, end);
		}
		found = found || (low <= c && c <= high);
	}
	if (at == end)
		return false;
	*ret_closed = true;
	*p = at + 1;
	return found != negated;
}

/* Matches one pattern element other than a star against one character. */
static bool match_one(const char **pattern, const char *pattern_end, const char **text,
		      const char *text_end)
{
	uint32_t c = take(text, text_end);
	const char *behind = *pattern + 1;
	bool closed, matches;

	switch (**pattern) {
	case '?':
		*pattern = behind;
		return true;
	case '[':
		matches = match_set(&behind, pattern_end, c, &closed);
		if (!closed)
			break;
		*pattern = behind;
		return matches;
	case '\\':
		if (behind < pattern_end)
			*pattern = behind;
		break;
	}
	return take(pattern, pattern_end) == c;
}

bool ts_glob_match(const char *pattern, const char *text, size_t length)
{
	const char *pattern_end = pattern + strlen(pattern), *text_end = text + length;
	const char *behind_star = NULL, *star_takes_to = NULL;

	for (;;) {
		if (pattern < pattern_end && *pattern == '*') {
			behind_star = ++pattern;
			star_takes_to = text;
			continue;
		}
		if (text == text_end && pattern == pattern_end)
			return true;
		if (text < text_end && pattern < pattern_end &&
		    match_one(&pattern, pattern_end, &text, text_end))
			continue;
		/* Let the last star match one character more and retry after it. */
		if (!behind_star || star_takes_to == text_end)
			return false;
		take(&star_takes_to, text_end);
		text = star_takes_to;
		pattern = behind_star;
	}
}
