/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on stderr and exit codes. Erases the progress bar before a message. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/common/progress.h"
#include "cli/common/report.h"

static const char *verb_name;

void ts_report_start(const char *verb)
{
	verb_name = verb;
}

const char *ts_report_verb(void)
{
	return verb_name ? verb_name : "";
}

/* Names in messages come from untrusted files: control characters must not reach the terminal. */
static void put_text(const char *format, va_list arguments) TS_PRINTF_LIKE(1, 0);
static void put_text(const char *format, va_list arguments)
{
	char text[4096];
	int length = vsnprintf(text, sizeof(text), format, arguments);

	for (int i = 0; i < length && i < (int)sizeof(text) - 1; i++)
		if (((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t') ||
		    text[i] == 0x7f)
			text[i] = '?';
	fputs(text, stderr);
}

static void put(const char *format, ...) TS_PRINTF_LIKE(1, 2);
static void put(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_text(format, arguments);
	va_end(arguments);
}

static void begin_line(void)
{
	ts_progress_hide();
	fprintf(stderr, "tracesmith%s%s: ", verb_name ? " " : "", ts_report_verb());
}

int ts_report_usage(const char *format, ...)
{
	va_list arguments;

	begin_line();
	va_start(arguments, format);
	put_text(format, arguments);
	va_end(arguments);
	fprintf(stderr, " (see 'tracesmith%s%s --help')\n", verb_name ? " " : "", ts_report_verb());
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

int ts_report_error(const struct ts_error *err)
{
	if (err->code != TS_ECANCELED && err->message[0]) {
		begin_line();
		put("%s\n", err->message);
	}
	return ts_report_exit_code(err->code);
}

void ts_report_warning(const char *format, ...)
{
	va_list arguments;

	begin_line();
	fputs("warning: ", stderr);
	va_start(arguments, format);
	put_text(format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

void ts_report_note(const char *format, ...)
{
	va_list arguments;

	ts_progress_hide();
	va_start(arguments, format);
	put_text(format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}
