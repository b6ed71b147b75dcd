/* SPDX-License-Identifier: Apache-2.0 */
/* Finds includes in OpenCL C as a preprocessor would, and splits build options. */
#include "replay/targets/opencl/opencl_source.h"

#include <ctype.h>
#include <string.h>

/* ---- includes ---- */

/*
 * Length of a line end that the preceding backslash splices away (blanks may be between); 0: none.
 */
static size_t splice_length(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && (*p == ' ' || *p == '\t' || *p == '\v' || *p == '\f'))
		p++;
	if (p < end && *p == '\r')
		p += p + 1 < end && p[1] == '\n' ? 2 : 1;
	else if (p < end && *p == '\n')
		p++;
	else
		return 0;
	return (size_t)(p - start);
}

/* The source after the first translation phases: trigraphs replaced, lines spliced. */
static void splice(const char *p, const char *end, struct ts_text *out)
{
	while (p < end) {
		char c = *p++;
		size_t skip;

		if (c == '?' && end - p >= 2 && *p == '?' && (p[1] == '=' || p[1] == '/')) {
			c = p[1] == '=' ? '#' : '\\';
			p += 2;
		}
		skip = c == '\\' ? splice_length(p, end) : 0;
		if (!skip)
			ts_text_append_char(out, c == '\r' ? '\n' : c);
		p += skip;
	}
}

/* The end of a comment that starts at p, else p. */
static const char *skip_comment(const char *p, const char *end)
{
	if (end - p < 2 || *p != '/')
		return p;
	if (p[1] == '/') {
		const char *stop = memchr(p, '\n', (size_t)(end - p));

		return stop ? stop : end;
	}
	if (p[1] == '*') {
		const char *stop = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);

		return stop ? stop + 2 : end;
	}
	return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
	for (;;) {
		const char *start = p;

		while (p < end && (*p == ' ' || *p == '\t' || *p == '\v' || *p == '\f' || !*p))
			p++;
		p = skip_comment(p, end);
		if (p == start)
			return p;
	}
}

/* Position after the closing quote, or the line's end. */
static const char *skip_quoted(const char *p, const char *end)
{
	char quote = *p++;

	while (p < end && *p != quote && *p != '\n')
		p += *p == '\\' && p + 1 < end ? 2 : 1;
	return p < end && *p == quote ? p + 1 : p;
}

static bool is_include_directive(const char *p, const char *end)
{
	static const char *const directives[] = { "include", "include_next", "include_alias",
						  "import", "embed" };
	const char *stop = p;

	while (stop < end && (isalnum((unsigned char)*stop) || *stop == '_'))
		stop++;
	for (size_t i = 0; i < TS_ARRAY_SIZE(directives); i++)
		if ((size_t)(stop - p) == strlen(directives[i]) &&
		    memcmp(p, directives[i], (size_t)(stop - p)) == 0)
			return true;
	return false;
}

/* Length of '#' or its digraph; 0: something else. */
static size_t hash_length(const char *p, const char *end)
{
	if (*p == '#')
		return 1;
	return end - p >= 2 && p[0] == '%' && p[1] == ':' ? 2 : 0;
}

static bool has_directive(const char *p, const char *end)
{
	bool at_start = true;

	for (p = skip_blanks(p, end); p < end; p = skip_blanks(p, end)) {
		size_t hash = at_start ? hash_length(p, end) : 0;

		if (hash && is_include_directive(skip_blanks(p + hash, end), end))
			return true;
		at_start = *p == '\n';
		p = *p == '"' || *p == '\'' ? skip_quoted(p, end) : p + 1;
	}
	return false;
}

bool ts_opencl_source_includes(const char *source, size_t bytes)
{
	TS_SCOPED(ts_text) text = { 0 };

	if (!bytes)
		return false;
	splice(source, source + bytes, &text);
	return text.failed || has_directive(text.data, text.data + text.length);
}

/* ---- options ---- */

/* The end of a word; quoted and escaped blanks belong to it. */
static const char *option_end(const char *p)
{
	char quote = 0;

	for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (quote ? *p == quote : *p == '"' || *p == '\'')
			quote = quote ? 0 : *p;
	}
	return p;
}

static bool starts_with(const char *option, size_t length, const char *prefix)
{
	return length >= strlen(prefix) && memcmp(option, prefix, strlen(prefix)) == 0;
}

static bool has_any(const char *option, size_t length, const char *characters)
{
	for (size_t i = 0; i < length; i++)
		if (strchr(characters, option[i]))
			return true;
	return false;
}

static bool is_macro(const char *option, size_t length)
{
	return starts_with(option, length, "-D") || starts_with(option, length, "-U");
}

/* Allowed options, of Khronos and vendors: they change code and name no file. Any other might. */
static bool passes(const char *option, size_t length)
{
	static const char *const plain[] = { "-cl-", "-nv-", "-qcom-", "-ze-", "-w",
					     "-W",   "-g",   "-O",     "-f" };

	if (has_any(option, length, "/\\\"',@"))
		return false;
	/* -fplugin=FILE, -fmodule-map-file=FILE */
	if (starts_with(option, length, "-f") && has_any(option, length, "="))
		return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(plain); i++)
		if (starts_with(option, length, plain[i]))
			return true;
	return false;
}

static void append_option(struct ts_text *text, const char *option, size_t length)
{
	if (text->length)
		ts_text_append_char(text, ' ');
	ts_text_append(text, option, length);
}

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

void ts_opencl_options_clean(const char *options, struct ts_text *kept, struct ts_text *left_out)
{
	const char *p = skip_space(options ? options : "");

	while (*p) {
		const char *end = option_end(p);
		bool macro = is_macro(p, (size_t)(end - p));

		/* -D NAME as two words. */
		if (macro && end - p == 2)
			end = option_end(skip_space(end));
		append_option(macro || passes(p, (size_t)(end - p)) ? kept : left_out, p,
			      (size_t)(end - p));
		p = skip_space(end);
	}
}
