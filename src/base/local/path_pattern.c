/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the patterns in the name of an output. */
#include "base/local/path_pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/local/macros.h"
#include "base/local/rank.h"

#define NAME_BYTES 128
#define HOST_BYTES 256
#define NUMBER_BYTES 16

struct expansion {
	const struct ts_path_values *values;
	char *to, *why;
	size_t used, bytes, why_bytes;
};

bool ts_path_is_pattern(const char *path)
{
	return strchr(path, '%') != NULL;
}

bool ts_path_has_pattern(const char *path, char letter)
{
	for (; *path; path++)
		if (path[0] == '%' && *++path == letter)
			return true;
		else if (!*path)
			break;
	return false;
}

static bool __attribute__((format(printf, 2, 3)))
fail(struct expansion *expansion, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 overlooks va_start() */
	vsnprintf(expansion->why, expansion->why_bytes, format, arguments);
	va_end(arguments);
	return false;
}

static bool append(struct expansion *expansion, const char *text, size_t length)
{
	if (length >= expansion->bytes - expansion->used)
		return fail(expansion, "the path is too long");
	memcpy(expansion->to + expansion->used, text, length);
	expansion->used += length;
	expansion->to[expansion->used] = '\0';
	return true;
}

/* What a pattern stands for. A second expansion must not find patterns in it. */
static bool append_value(struct expansion *expansion, const char *text)
{
	for (; *text; text++)
		if (!append(expansion, *text == '%' && !expansion->values->pid ? "%%" : text,
			    *text == '%' && !expansion->values->pid ? 2 : 1))
			return false;
	return true;
}

static bool append_rank(struct expansion *expansion)
{
	char variables[TS_PATH_WHY_BYTES];

	if (expansion->values->rank)
		return append_value(expansion, expansion->values->rank);
	ts_rank_list_variables(variables, sizeof(variables));
	return fail(expansion, "%%r: the rank is unknown (looked for %s)", variables);
}

static bool append_host(struct expansion *expansion)
{
	char name[HOST_BYTES] = "";

	if (gethostname(name, sizeof(name) - 1) || !name[0])
		return fail(expansion, "%%h: the host has no name");
	return append_value(expansion, name);
}

static bool append_pid(struct expansion *expansion)
{
	char number[NUMBER_BYTES] = "%p";

	if (expansion->values->pid)
		snprintf(number, sizeof(number), "%d", (int)expansion->values->pid);
	return append(expansion, number, strlen(number));
}

/* `at` is behind "%q"; moves it behind the closing brace. */
static bool append_variable(struct expansion *expansion, const char **at)
{
	const char *end = **at == '{' ? strchr(*at, '}') : NULL, *value;
	char name[NAME_BYTES];
	size_t length;

	if (!end)
		return fail(expansion, "%%q needs the name of a variable in braces: %%q{NAME}");
	length = (size_t)(end - *at) - 1;
	if (!length || length >= sizeof(name))
		return fail(expansion, "%%q{%.*s}: not the name of a variable",
			    (int)TS_MIN(length, NAME_BYTES), *at + 1);
	memcpy(name, *at + 1, length);
	name[length] = '\0';
	*at = end + 1;
	value = getenv(name);
	if (!value || !*value)
		return fail(expansion, "%%q{%s}: the variable is not set", name);
	return append_value(expansion, value);
}

/* `at` is behind the percent sign. */
static bool append_pattern(struct expansion *expansion, const char **at)
{
	char letter = *(*at)++;

	switch (letter) {
	case '%':
		return append_value(expansion, "%");
	case 'r':
		return append_rank(expansion);
	case 'h':
		return append_host(expansion);
	case 'p':
		return append_pid(expansion);
	case 'q':
		return append_variable(expansion, at);
	case '\0':
		return fail(expansion, "it ends in a single %%: write %%%% for a percent sign");
	default:
		return fail(expansion,
			    "%%%c is not a pattern: use %%r, %%h, %%p, %%q{NAME}, or %%%% for a "
			    "percent sign",
			    letter);
	}
}

bool ts_path_expand(const char *path, const struct ts_path_values *values, char *ret_path,
		    size_t bytes, char *ret_why, size_t why_bytes)
{
	struct expansion expansion = { .values = values,
				       .to = ret_path,
				       .bytes = bytes,
				       .why = ret_why,
				       .why_bytes = why_bytes };

	ret_path[0] = ret_why[0] = '\0';
	while (*path) {
		size_t plain = strcspn(path, "%");

		if (!append(&expansion, path, plain))
			return false;
		path += plain;
		if (*path++ != '%')
			break;
		if (!append_pattern(&expansion, &path))
			return false;
	}
	return true;
}
