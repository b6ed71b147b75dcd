/* SPDX-License-Identifier: Apache-2.0 */
/* Prints --help of a verb from the table that parses its command line. */
#include <string.h>

#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"

/* Column of the option descriptions, and line width. */
#define DOC_COLUMN 26
#define LINE_COLUMNS 96

static void pad(struct ts_text *out, size_t from, size_t to)
{
	for (; from < to; from++)
		ts_text_append_char(out, ' ');
}

/* Wraps the text into lines that begin at DOC_COLUMN; the cursor is at `column`. */
static void append_doc(struct ts_text *out, size_t column, const char *doc)
{
	if (column + 2 > DOC_COLUMN) {
		ts_text_append_char(out, '\n');
		column = 0;
	}
	pad(out, column, DOC_COLUMN);
	column = DOC_COLUMN;
	while (*doc) {
		size_t word = strcspn(doc, " ");

		if (column > DOC_COLUMN && column + 1 + word > LINE_COLUMNS) {
			ts_text_append_char(out, '\n');
			pad(out, 0, DOC_COLUMN);
			column = DOC_COLUMN;
		} else if (column > DOC_COLUMN) {
			ts_text_append_char(out, ' ');
			column++;
		}
		ts_text_append(out, doc, word);
		column += word;
		doc += word + strspn(doc + word, " ");
	}
	ts_text_append_char(out, '\n');
}

static void append_option(struct ts_text *out, const struct ts_option *option)
{
	size_t begin = out->length;

	if (option->letter)
		ts_text_printf(out, "  -%c, --%s", option->letter, option->name);
	else
		ts_text_printf(out, "      --%s", option->name);
	if (option->value)
		ts_text_printf(out, option->type == TS_OPTION_TYPE_MAYBE ? "[=%s]" : " %s",
			       option->value);
	append_doc(out, out->length - begin, option->doc);
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
	static const struct ts_option help = { .name = "help", .letter = 'h', .doc = "this text" };
	struct ts_text *out = ts_stdout();

	ts_text_printf(out, "usage: tracesmith %s%s%s%s%s\n\n%s\noptions:\n", command->verb,
		       command->runs_command ? " [options]" : "", *command->operands ? " " : "",
		       command->operands,
		       command->option_count && !command->runs_command ? " [options]" : "",
		       command->about);
	for (size_t i = 0; i < command->option_count; i++)
		append_option(out, &command->options[i]);
	append_option(out, &help);
	ts_text_append_str(out, "\nexamples:\n");
	append_lines(out, command->examples);
	ts_text_append_str(out, "\nexit codes:\n");
	append_lines(out, command->exits);
}
