/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and edits the `details` of objects and commands: JSON objects of docs/replay.md, sections
 * 2.2 and 2.3.
 */
#ifndef TS_TRACE_OBJECT_DETAILS_H
#define TS_TRACE_OBJECT_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/text.h"

/*
 * Appends the object without white space. False, with `out` unchanged: the text is not a JSON
 * object.
 */
bool ts_object_details_check(const char *text, size_t length, struct ts_text *out);

/*
 * Appends details from ts_object_details_check(), with the number of every key "blob" mapped by
 * `id_of`.
 */
void ts_object_details_map_blobs(const char *text, size_t length,
				 uint64_t (*id_of)(void *context, uint64_t number), void *context,
				 struct ts_text *out);

/*
 * The number by which all of the tool shows an object: that in the program, of devices and streams
 * that of their rows in gpu_op. False: the trace has no such object, or no number of it.
 */
bool ts_object_number(struct ts_reader *reader, int64_t id, uint64_t *ret_number);

#endif
