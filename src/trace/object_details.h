/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `details` of objects and commands: JSON objects of docs/replay.md, sections 2.2 and 2.3.
 * What the recorder changes in them, and the little that it reads.
 */
#ifndef TS_TRACE_OBJECT_DETAILS_H
#define TS_TRACE_OBJECT_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Appends the object without white space. False, with `out` as it was, where the text is no JSON
 * object.
 */
bool ts_details_check(const char *text, size_t length, struct ts_text *out);

/*
 * Appends details that ts_details_check() gave, with the number behind every key "blob" replaced by
 * what `id_of` gives for it.
 */
void ts_details_map_blobs(const char *text, size_t length,
			  uint64_t (*id_of)(void *context, uint64_t number), void *context,
			  struct ts_text *out);

/* The string behind a key of the outermost object, cut to fit. False: there is none. */
bool ts_details_string(const char *text, size_t length, const char *key, char *buffer, size_t size);

#endif
