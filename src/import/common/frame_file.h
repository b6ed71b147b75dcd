/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of a frame and the name of its file say. */
#ifndef TS_IMPORT_COMMON_FRAME_FILE_H
#define TS_IMPORT_COMMON_FRAME_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

struct ts_frame_file {
	size_t name_length; /* of the function, at the start of the text */
	const char *path;   /* in the text */
	size_t path_length; /* 0: none */
	int64_t line;       /* TS_ABSENT: none */
};

/*
 * Splits "function (file:line)" and "function (file)". Parentheses that do not look like a file
 * belong to the function.
 */
void ts_frame_file_split(const char *text, size_t length, struct ts_frame_file *ret_file);

/* The language, by the ending: TS_FRAME_PYTHON, TS_FRAME_SCRIPT, or TS_FRAME_UNKNOWN. */
enum ts_frame_kind ts_frame_file_kind(const char *path, size_t length);

#endif
