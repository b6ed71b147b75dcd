/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error codes and messages of the library. A function that can fail returns 0 or one of the
 * negative codes below and, if it takes a struct ts_error, sets a message that can be printed as it
 * is. Codes are general: do not add codes for single modules.
 */
#ifndef TRACESMITH_ERROR_H
#define TRACESMITH_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TS_OK = 0,
	TS_EINVAL = -1,    /* caller error: a bad argument, a call out of order */
	TS_ENOMEM = -2,    /* no memory */
	TS_EIO = -3,       /* a system call failed */
	TS_EFORMAT = -4,   /* bad input: damaged, hostile, or not ours */
	TS_ENOTFOUND = -5, /* no such file, table, column, process */
	TS_ENOSPC = -6,    /* disk, shared memory or a budget is full */
	TS_EVERSION = -7,  /* the input is newer than this build */
	TS_ECAP = -8,      /* this build or machine lacks a capability */
	TS_ECANCELED = -9, /* the user or the caller cancelled */
	TS_EBUSY = -10,    /* in use by somebody else */
};

#define TS_ERROR_MESSAGE_BYTES 512

/*
 * Owned by the caller, who need not initialise it: it is written, completely, on failure only.
 * Messages are lower case, cause first, subject quoted, without a final period or newline.
 */
struct ts_error {
	int code;
	char message[TS_ERROR_MESSAGE_BYTES];
};

#if defined(__GNUC__)
#define TS_PRINTF_LIKE(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define TS_PRINTF_LIKE(format_at, first_at)
#endif

/*
 * All three: err may be NULL; the code is returned so that `return ts_error_set(...)` works; a
 * message that is too long is truncated at a character boundary and ends in "...". The arguments
 * may point into err->message itself. errno is preserved.
 */

/* Sets code and message. */
int ts_error_set(struct ts_error *err, int code, const char *format, ...) TS_PRINTF_LIKE(3, 4);

/*
 * Sets code and message from an errno value: the formatted text, then ": " and the system's text.
 * ENOSPC and EDQUOT give TS_ENOSPC, ENOENT TS_ENOTFOUND, ENOMEM TS_ENOMEM, all others TS_EIO.
 */
int ts_error_errno(struct ts_error *err, int errnum, const char *format, ...) TS_PRINTF_LIKE(3, 4);

/*
 * Prepends the formatted text and ": " to an existing message; returns err->code, or TS_EINVAL if
 * err is NULL, so keep and return the code of the failed call.
 */
int ts_error_prefix(struct ts_error *err, const char *format, ...) TS_PRINTF_LIKE(2, 3);

/* The code as text ("bad input"); never NULL. */
const char *ts_error_name(int code);

#ifdef __cplusplus
}
#endif

#endif
