/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages, formatted into the caller's fixed buffer without allocation. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/error.h>

#include "base/memory.h"

static bool is_utf8_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Copies text into the message at `at`, truncated at a character boundary if it does not fit. */
static size_t put(struct ts_error *err, size_t at, const char *text)
{
	size_t space = sizeof(err->message) - 1 - at;
	size_t length = strlen(text);

	if (length > space) {
		length = space;
		while (length > 0 && is_utf8_continuation(text[length]))
			length--;
	}
	memcpy(err->message + at, text, length);
	err->message[at + length] = '\0';
	return at + length;
}

/* Replaces the tail of a truncated message by "...". */
static void mark_cut(struct ts_error *err)
{
	size_t at = sizeof(err->message) - sizeof("...");

	while (at > 0 && is_utf8_continuation(err->message[at]))
		at--;
	memcpy(err->message + at, "...", sizeof("..."));
}

/* Sets the message to head, separator and tail. Each may be as long as a message. */
static void compose(struct ts_error *err, const char *head, const char *separator, const char *tail)
{
	size_t total = strlen(head) + strlen(separator) + strlen(tail);
	size_t at = put(err, 0, head);

	at = put(err, at, separator);
	put(err, at, tail);
	if (total >= sizeof(err->message))
		mark_cut(err);
}

/* One byte longer than a message, so that truncation here is detected. */
struct scratch {
	char text[TS_ERROR_MESSAGE_BYTES + 1];
};

static void format_scratch(struct scratch *scratch, const char *format, va_list args)
	TS_PRINTF_LIKE(2, 0);
static void format_scratch(struct scratch *scratch, const char *format, va_list args)
{
	if (vsnprintf(scratch->text, sizeof(scratch->text), format, args) < 0)
		snprintf(scratch->text, sizeof(scratch->text), "%s", format);
}

int ts_error_set(struct ts_error *err, int code, const char *format, ...)
{
	int saved_errno = errno;
	struct scratch scratch;
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	format_scratch(&scratch, format, args);
	va_end(args);
	err->code = code;
	compose(err, scratch.text, "", "");
	errno = saved_errno;
	return code;
}

static int code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOSPC:
#ifdef EDQUOT
	case EDQUOT:
#endif
		return TS_ENOSPC;
	case ENOENT:
		return TS_ENOTFOUND;
	case ENOMEM:
		return TS_ENOMEM;
	case ECANCELED:
		return TS_ECANCELED;
	default:
		return TS_EIO;
	}
}

/* strerror_r() has two forms; feature macros that the build may set choose one. */
static inline const char *text_of_posix(int rc, const char *buffer)
{
	return rc == 0 ? buffer : "unknown error";
}

static inline const char *text_of_gnu(const char *text, const char *buffer)
{
	(void)buffer;
	return text;
}

int ts_error_errno(struct ts_error *err, int errnum, const char *format, ...)
{
	int saved_errno = errno;
	int code = code_of_errno(errnum);
	struct scratch scratch;
	char buffer[128] = "";
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	format_scratch(&scratch, format, args);
	va_end(args);
	err->code = code;
	compose(err, scratch.text, ": ",
		_Generic(strerror_r(errnum, buffer, sizeof(buffer)),
			int: text_of_posix,
			char *: text_of_gnu)(strerror_r(errnum, buffer, sizeof(buffer)), buffer));
	errno = saved_errno;
	return code;
}

int ts_error_prefix(struct ts_error *err, const char *format, ...)
{
	int saved_errno = errno;
	struct scratch prefix, message;
	va_list args;

	if (!err)
		return TS_EINVAL;
	va_start(args, format);
	format_scratch(&prefix, format, args);
	va_end(args);
	memcpy(message.text, err->message, sizeof(err->message));
	message.text[sizeof(err->message) - 1] = '\0';
	compose(err, prefix.text, ": ", message.text);
	errno = saved_errno;
	return err->code;
}

const char *ts_error_name(int code)
{
	static const char *const names[] = {
		[-TS_OK] = "success",
		[-TS_EINVAL] = "invalid argument",
		[-TS_ENOMEM] = "out of memory",
		[-TS_EIO] = "system call failed",
		[-TS_EFORMAT] = "bad input",
		[-TS_ENOTFOUND] = "not found",
		[-TS_ENOSPC] = "no space left",
		[-TS_EVERSION] = "version too new",
		[-TS_ECAP] = "capability missing",
		[-TS_ECANCELED] = "canceled",
		[-TS_EBUSY] = "busy",
	};

	if (code > 0 || code <= -(int)TS_ARRAY_SIZE(names))
		return "unknown error";
	return names[-code];
}
