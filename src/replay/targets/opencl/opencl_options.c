/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits build options and keeps those that name no file. Drivers split them in their own ways:
 * PoCL at every space, also between quotes. A kept option is harmless however it is split.
 */
#include "replay/targets/opencl/opencl_options.h"

#include <ctype.h>
#include <string.h>

#define QUOTES "\"'\\"

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

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

/* ---- macros ---- */

static bool is_macro(const char *option)
{
	option += strspn(option, QUOTES);
	return ts_starts_with(option, "-D") || ts_starts_with(option, "-U");
}

/* Might be an option, or a file with options, for a driver that splits at every space. */
static bool is_option(const char *piece)
{
	piece += strspn(piece, QUOTES);
	return *piece == '@' || (*piece == '-' && piece[1] && !strchr("( \t0123456789.", piece[1]));
}

/* With quotes and without: whichever the compiler gets. */
static bool contains(const char *macro, const char *text)
{
	TS_SCOPED(ts_text) plain = { 0 };
	bool found;

	for (const char *p = macro; *p; p++)
		if (!strchr(QUOTES, *p))
			ts_text_append_char(&plain, *p);
	found = plain.failed || strstr(macro, text) || strstr(ts_text_cstr(&plain), text);
	return found;
}

/* Values may be anything that is neither an option nor a way to files in OpenCL C (opencl_c.h). */
static bool is_plain_macro(const char *macro)
{
	static const char *const others[] = { "#",      "%:",      "/*",       "//",   "\?\?",
					      "__has_", "_Pragma", "__pragma", "__asm" };

	if (macro[0] != '-' || !macro[2])
		return false;
	for (const char *p = macro + 2; *p; p++) {
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~' || strchr("`$@", *p))
			return false;
		if ((p[-1] == ' ' || p == macro + 2) && is_option(p))
			return false;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		if (contains(macro, others[i]))
			return false;
	return true;
}

/* ---- others ---- */

/* Options of Khronos and vendors that change code and name no file. Any other might. */
static bool passes(const char *option)
{
	static const char *const families[] = { "-cl-", "-nv-", "-qcom-", "-ze-" };
	static const char *const plain[] = { "-g",
					     "-O0",
					     "-O1",
					     "-O2",
					     "-O3",
					     "-Os",
					     "-Ofast",
					     "-fassociative-math",
					     "-ffast-math",
					     "-ffinite-math-only",
					     "-ffp-contract=fast",
					     "-ffp-contract=off",
					     "-ffp-contract=on",
					     "-fno-fast-math",
					     "-fno-math-errno",
					     "-fno-signed-zeros",
					     "-fno-strict-aliasing",
					     "-fno-unroll-loops",
					     "-freciprocal-math",
					     "-fstrict-aliasing",
					     "-funroll-loops" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(plain); i++)
		if (!strcmp(option, plain[i]))
			return true;
	for (const char *p = option; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.=+:", *p))
			return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(families); i++)
		if (ts_starts_with(option, families[i]))
			return true;
	return false;
}

static bool is_warning(const char *option)
{
	return !strcmp(option, "-w") || (ts_starts_with(option, "-W") && !strpbrk(option, ",/@"));
}

static void append_option(struct ts_text *text, const char *option)
{
	if (text->length)
		ts_text_append_char(text, ' ');
	ts_text_append_str(text, option);
}

/* Returns the start of the next one. */
static const char *take_option(const char *p, struct ts_text *option)
{
	const char *end = option_end(p);

	ts_text_append(option, p, (size_t)(end - p));
	return skip_space(end);
}

bool ts_opencl_options_clean(const char *options, struct ts_text *kept, struct ts_text *left_out)
{
	const char *p = skip_space(options ? options : "");
	bool is_complete = true;

	append_option(kept, "-w");
	while (*p) {
		TS_SCOPED(ts_text) option = { 0 };
		bool macro = is_macro(p);

		p = take_option(p, &option);
		/* -D NAME as two words. */
		if (macro && option.length == 2 && *p) {
			ts_text_append_char(&option, ' ');
			p = take_option(p, &option);
		}
		if (macro ? is_plain_macro(ts_text_cstr(&option)) : passes(ts_text_cstr(&option))) {
			append_option(kept, ts_text_cstr(&option));
		} else if (!is_warning(ts_text_cstr(&option))) {
			append_option(left_out, ts_text_cstr(&option));
			is_complete &= !macro;
		}
	}
	return is_complete;
}
