/* SPDX-License-Identifier: Apache-2.0 */
/* Prints --help of a verb from the table that parses its command line. */
#include <string.h>

#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"

/* Column of the option descriptions, and the width of a terminal. */
#define DOC_COLUMN 26
#define LINE_COLUMNS 80

static void pad(struct ts_text *out, size_t from, size_t to)
{
	for (; from < to; from++)
		ts_text_append_char(out, ' ');
}

/* Wraps the words of the text between columns `left` and LINE_COLUMNS; the cursor is at `left`. */
static void append_words(struct ts_text *out, size_t left, const char *text, size_t length)
{
	const char *end = text + length;
	size_t column = left;

	while (text < end) {
		size_t word_length = strcspn(text, " \n");

		if (column > left && column + 1 + word_length > LINE_COLUMNS) {
			ts_text_append_char(out, '\n');
			pad(out, 0, left);
			column = left;
		} else if (column > left) {
			ts_text_append_char(out, ' ');
			column++;
		}
		ts_text_append(out, text, word_length);
		column += word_length;
		text += word_length + strspn(text + word_length, " ");
	}
	ts_text_append_char(out, '\n');
}

static void append_option(struct ts_text *out, const struct ts_option *option)
{
	size_t begin = out->length, column;

	if (option->letter)
		ts_text_printf(out, "  -%c, --%s", option->letter, option->name);
	else
		ts_text_printf(out, "      --%s", option->name);
	if (option->value)
		ts_text_printf(out, option->type == TS_OPTION_TYPE_MAYBE ? "[=%s]" : " %s",
			       option->value);
	column = out->length - begin;
	if (column + 2 > DOC_COLUMN) {
		ts_text_append_char(out, '\n');
		column = 0;
	}
	pad(out, column, DOC_COLUMN);
	append_words(out, DOC_COLUMN, option->doc, strlen(option->doc));
}

/* Where the text after a heading such as "0  " begins; 0 if the line has no heading. */
static size_t heading_length(const char *line, size_t length)
{
	for (size_t i = length; i >= 2; i--) {
		if (line[i - 1] == ' ' && line[i - 2] == ' ')
			return i;
	}
	return 0;
}

/* Wraps each line; further lines of one with a heading are aligned after the heading. */
static void append_wrapped(struct ts_text *out, size_t indent, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t heading = heading_length(text, length);

		pad(out, 0, length ? indent : 0);
		ts_text_append(out, text, heading);
		append_words(out, indent + heading, text + heading, length - heading);
		text += length + (text[length] == '\n');
	}
}

/* Prints every line of the text indented. */
static void append_lines(struct ts_text *out, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		ts_text_append_str(out, "  ");
		ts_text_append(out, text, length);
		ts_text_append_char(out, '\n');
		text += length + (text[length] == '\n');
	}
}

void ts_command_help(const struct ts_command *command)
{
	static const struct ts_option help = { .name = "help",
					       .letter = 'h',
					       .doc = "show this help" };
	struct ts_text *out = ts_stdout();

	ts_text_printf(out, "usage: tracesmith %s%s%s%s%s\n\n", command->verb,
		       command->runs_command ? " [options]" : "", *command->operands ? " " : "",
		       command->operands,
		       command->option_count && !command->runs_command ? " [options]" : "");
	append_wrapped(out, 0, command->about);
	ts_text_append_str(out, "\noptions:\n");
	for (size_t i = 0; i < command->option_count; i++)
		append_option(out, &command->options[i]);
	append_option(out, &help);
	ts_text_append_str(out, "\nexamples:\n");
	append_lines(out, command->examples);
	ts_text_append_str(out, "\nexit codes:\n");
	append_wrapped(out, 2, command->exits);
}
