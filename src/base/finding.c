/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in findings. Texts may come from vendor libraries, so each is reduced to one line. */
#include "base/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Removes an incomplete UTF-8 character from the end of a truncated text. */
static void end_at_character(char *text, size_t length)
{
	size_t first = length;

	while (first && length - first < 3 && ((unsigned char)text[first - 1] & 0xc0) == 0x80)
		first--;
	if (first && (unsigned char)text[first - 1] >= 0xc0 &&
	    !ts_utf8_valid(text + first - 1, length - first + 1))
		text[first - 1] = '\0';
}

__attribute__((format(printf, 3, 0))) static void put(char *text, size_t bytes, const char *format,
						      va_list arguments)
{
	int length = vsnprintf(text, bytes, format, arguments);

	if (length < 0)
		text[0] = '\0';
	else if ((size_t)length >= bytes)
		end_at_character(text, bytes - 1);
	ts_utf8_replace_controls(text, strlen(text), ' ');
}

void ts_finding_set(struct ts_finding *finding, enum ts_check_state state, const char *format, ...)
{
	va_list arguments;

	finding->state = state;
	va_start(arguments, format);
	put(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}

void ts_finding_fix(struct ts_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put(finding->fix, sizeof(finding->fix), format, arguments);
	va_end(arguments);
}

void ts_finding_note(struct ts_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put(finding->note, sizeof(finding->note), format, arguments);
	va_end(arguments);
}

const char *ts_check_state_name(enum ts_check_state state)
{
	switch (state) {
	case TS_CHECK_YES:
		return "yes";
	case TS_CHECK_LIMITED:
		return "limited";
	case TS_CHECK_NO:
		return "no";
	case TS_CHECK_ABSENT:
		return "absent";
	default:
		return "unknown";
	}
}

const char *ts_errno_name(int error)
{
	static char number[24];
	const char *name = strerrorname_np(error);

	if (name)
		return name;
	snprintf(number, sizeof(number), "error %d", error);
	return number;
}
