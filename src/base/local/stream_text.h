/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Details of the objects and commands of a stream (docs/replay.md, section 2): a JSON object in a
 * buffer of fixed size, without heap. It does not know what the keys mean.
 */
#ifndef TS_BASE_LOCAL_STREAM_TEXT_H
#define TS_BASE_LOCAL_STREAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_DETAILS 8000u

/* A JSON object. If something does not fit, is_full is set and nothing more is added. */
struct stream_text {
	size_t used;
	bool is_full;
	char data[STREAM_DETAILS + 1];
};

void stream_text_begin(struct stream_text *text);
/* Ends the object; NULL if it did not fit. */
const char *stream_text_end(struct stream_text *text);
/* Bytes that are not UTF-8 become U+FFFD. */
void stream_text_string(struct stream_text *text, const char *key, const char *value);
/* At most `most` bytes of the value. */
void stream_text_part(struct stream_text *text, const char *key, const char *value, size_t most);
void stream_text_uint(struct stream_text *text, const char *key, uint64_t value);
void stream_text_int(struct stream_text *text, const char *key, int64_t value);
void stream_text_true(struct stream_text *text, const char *key);
/* `bracket`: '[' or '{'. Inside a list, key is NULL. */
void stream_text_open(struct stream_text *text, const char *key, char bracket);
void stream_text_close(struct stream_text *text, char bracket);
void stream_text_item(struct stream_text *text, uint64_t value);
void stream_text_element(struct stream_text *text, const char *value);
void stream_text_sizes(struct stream_text *text, const char *key, const size_t *sizes,
		       size_t count);

#endif
