/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on stderr, wrapped at the width of the terminal, and exit codes. Erases the progress bar
 * before a message.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"

#define MESSAGE_BYTES 4096

static const char *verb_name;
static char last_error[MESSAGE_BYTES];
static bool keeps_errors;
static char rank_text[48]; /* "rank 3 of 8: "; empty: no rank */

void ts_report_start(const char *verb)
{
	verb_name = verb;
}

void ts_report_set_rank(const char *rank)
{
	snprintf(rank_text, sizeof(rank_text), "%.40s%s", rank, *rank ? ": " : "");
}

/* One line, wrapped at the width of the terminal; further lines are indented more. */
static void append_line(struct ts_text *shown, const char *line)
{
	size_t indent = strspn(line, " "), width = ts_terminal_stderr_width();

	ts_text_append(shown, line, indent);
	if (ts_text_shown_width(line, strlen(line)) <= width)
		width = 0;
	ts_text_append_wrapped(shown, line + indent, indent, indent + 2, width);
	ts_text_append_char(shown, '\n');
}

/*
 * Prints a message of one or more lines. Names in it come from untrusted files: control characters
 * must not reach the terminal.
 */
static void print(char *message)
{
	TS_SCOPED(ts_text) shown = { 0 };
	char *line;

	while ((line = strsep(&message, "\n")))
		append_line(&shown, line);
	ts_progress_hide();
	fputs(ts_text_cstr(&shown), stderr);
}

/* "tracesmith view: KIND: TEXT" */
static void print_prefixed(const char *kind, const char *text)
{
	char message[MESSAGE_BYTES + 128];

	snprintf(message, sizeof(message), "tracesmith%s%s: %s%s%s", verb_name ? " " : "",
		 verb_name ? verb_name : "", rank_text, kind, text);
	print(message);
}

static void TS_PRINTF_LIKE(2, 0)
	print_formatted(const char *kind, const char *format, va_list arguments)
{
	char text[MESSAGE_BYTES];

	vsnprintf(text, sizeof(text), format, arguments);
	print_prefixed(kind, text);
}

int ts_report_usage(const char *format, ...)
{
	char text[MESSAGE_BYTES];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(last_error, sizeof(last_error), "%s", text);
	if (length >= 0 && (size_t)length < sizeof(text))
		snprintf(text + length, sizeof(text) - (size_t)length,
			 " (see 'tracesmith%s%s --help')", verb_name ? " " : "",
			 verb_name ? verb_name : "");
	if (!keeps_errors)
		print_prefixed("", text);
	return TS_EXIT_USAGE;
}

int ts_report_exit_code(int code)
{
	switch (code) {
	case TS_OK:
		return TS_EXIT_DONE;
	case TS_EINVAL:
		return TS_EXIT_USAGE;
	case TS_ECAP:
		return TS_EXIT_CAPABILITY;
	case TS_ECANCELED:
		return TS_EXIT_SIGNAL + ts_stop_signal();
	default:
		return TS_EXIT_INPUT;
	}
}

void ts_report_keep_errors(void)
{
	keeps_errors = true;
}

const char *ts_report_last_error(void)
{
	return last_error;
}

int ts_report_error(const struct ts_error *err)
{
	snprintf(last_error, sizeof(last_error), "%s", err->message);
	if (err->code != TS_ECANCELED && err->message[0] && !keeps_errors)
		print_prefixed("", err->message);
	return ts_report_exit_code(err->code);
}

void ts_report_warning(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_formatted("warning: ", format, arguments);
	va_end(arguments);
}

void ts_report_event(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_formatted("", format, arguments);
	va_end(arguments);
}

void ts_report_note(const char *format, ...)
{
	char text[MESSAGE_BYTES], message[MESSAGE_BYTES + 64];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* Between lines of other ranks, an indented one belongs to none. */
	snprintf(message, sizeof(message), "%s%s", rank_text,
		 text + (rank_text[0] ? strspn(text, " ") : 0));
	print(message);
}
