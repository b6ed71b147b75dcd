/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building and parsing STATE blocks, for checkpoint.c, checkpoint_channel.c and
 * checkpoint_sample.c. A stored struct has members of 8 bytes or pairs of 4, so it has no padding.
 * A table of fields copies it from and to the decoder's struct; the caller validates what it has
 * read before it loads it.
 */
#ifndef TS_RECORD_RECORDING_CHECKPOINT_STATE_H
#define TS_RECORD_RECORDING_CHECKPOINT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum state_kind {
	STATE_RECORDING = 1,
	STATE_AREA = 2,
	STATE_NUMBERS = 3,
	STATE_ACCELERATOR = 4,
	STATE_OBJECTS = 5,
	STATE_BLOBS = 6,
	STATE_POINTS = 7,
	STATE_SEEN = 8,
	STATE_CALLS = 9,
	STATE_SOURCES = 10,
};

struct state_head {
	uint32_t kind;
	uint32_t bytes; /* of the struct that begins with this */
};

static inline void state_append_padded(struct ts_text *out, const void *data, size_t bytes)
{
	ts_text_append(out, data, bytes);
	while (out->length % 8 && !out->failed)
		ts_text_append_char(out, 0);
}

struct state_reading {
	const char *next;
	size_t left;
};

/* The next `bytes` bytes, padded to 8; NULL: fewer are left. */
static inline const char *state_take_bytes(struct state_reading *in, size_t bytes)
{
	size_t padded = (bytes + 7) & ~(size_t)7;
	const char *at = in->next;

	if (padded < bytes || padded > in->left)
		return NULL;
	in->next += padded;
	in->left -= padded;
	return at;
}

static inline bool state_take(struct state_reading *in, void *ret_struct, size_t bytes)
{
	const char *at = state_take_bytes(in, bytes);

	if (at)
		memcpy(ret_struct, at, bytes);
	return at != NULL;
}

/*
 * Reads a struct that begins with its kind and size. Skips members that a later version appended;
 * members after `least` that an earlier version did not have are 0.
 */
static inline bool state_take_head(struct state_reading *in, uint32_t kind, void *ret_struct,
				   size_t bytes, size_t least)
{
	struct state_head head;
	const char *at;

	if (in->left < sizeof(head))
		return false;
	memcpy(&head, in->next, sizeof(head));
	at = head.kind == kind && head.bytes >= least ? state_take_bytes(in, head.bytes) : NULL;
	if (!at)
		return false;
	memset(ret_struct, 0, bytes);
	memcpy(ret_struct, at, TS_MIN(bytes, (size_t)head.bytes));
	return true;
}

/* ---- tables of fields ---- */

enum state_field_type {
	STATE_COPY,    /* the same bytes */
	STATE_INTEGER, /* unsigned, of another width */
	STATE_FLAG,    /* a bool; any other value than 0 loads as true */
	STATE_TEXT,    /* characters; the last byte loaded is always NUL */
	STATE_TIME,    /* ns; loading clamps it to 0 .. `latest_ns` */
};

/* A member of a stored struct, and the member that it is copied from and to. */
struct state_field {
	uint8_t type;
	uint32_t stored, stored_bytes; /* offset and size */
	uint32_t live, live_bytes;
};

#define STATE_SIZEOF(type, member) sizeof(((struct type *)0)->member)

/* A size, checked when compiled: only integers and flags may have another one in memory. */
#define STATE_FIELD_BYTES(kind, bytes, other)                                                  \
	((bytes) +                                                                             \
	 0 * sizeof(char[(kind) == STATE_INTEGER || (kind) == STATE_FLAG || (bytes) == (other) \
				 ? 1                                                           \
				 : -1]))

#define STATE_FIELD(kind, stored_type, stored_member, live_type, live_member)                     \
	{                                                                                         \
		.type = (kind), .stored = offsetof(struct stored_type, stored_member),            \
		.stored_bytes = STATE_FIELD_BYTES(kind, STATE_SIZEOF(stored_type, stored_member), \
						  STATE_SIZEOF(live_type, live_member)),          \
		.live = offsetof(struct live_type, live_member),                                  \
		.live_bytes = STATE_SIZEOF(live_type, live_member),                               \
	}

static inline uint64_t state_get(const void *at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, TS_MIN(bytes, sizeof(value)));
	return value;
}

/* Copies the members listed into a stored struct whose other members are already set. */
static inline void state_save(const struct state_field *fields, size_t count, void *stored,
			      const void *live)
{
	for (const struct state_field *field = fields; field < fields + count; field++) {
		char *to = (char *)stored + field->stored;
		const char *from = (const char *)live + field->live;
		uint64_t value;

		if (field->type == STATE_INTEGER || field->type == STATE_FLAG) {
			value = state_get(from, field->live_bytes);
			memcpy(to, &value, field->stored_bytes);
		} else {
			memcpy(to, from, field->stored_bytes);
		}
	}
}

/* Copies the members listed out of a stored struct. Leaves all others as they are. */
static inline void state_load(const struct state_field *fields, size_t count, void *live,
			      const void *stored, int64_t latest_ns)
{
	for (const struct state_field *field = fields; field < fields + count; field++) {
		const char *from = (const char *)stored + field->stored;
		char *to = (char *)live + field->live;
		uint64_t value = state_get(from, field->stored_bytes);
		int64_t ns = (int64_t)value;

		switch (field->type) {
		case STATE_FLAG:
			value = value != 0;
			memcpy(to, &value, field->live_bytes);
			break;
		case STATE_INTEGER:
			memcpy(to, &value, field->live_bytes);
			break;
		case STATE_TIME:
			ns = TS_MAX(0, TS_MIN(ns, latest_ns));
			memcpy(to, &ns, sizeof(ns));
			break;
		case STATE_TEXT:
			memcpy(to, from, field->live_bytes - 1u);
			to[field->live_bytes - 1] = '\0';
			break;
		default:
			memcpy(to, from, field->live_bytes);
		}
	}
}

#define STATE_SAVE(fields, stored, live) state_save(fields, TS_ARRAY_SIZE(fields), stored, live)
#define STATE_LOAD(fields, live, stored) \
	state_load(fields, TS_ARRAY_SIZE(fields), live, stored, DECODE_LATEST_NS)

#endif
