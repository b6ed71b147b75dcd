/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How STATE blocks are put together and taken apart, for checkpoint.c, checkpoint_channel.c and
 * checkpoint_sample.c. All structs have members of 8 bytes or pairs of 4, so that there is no
 * padding in what is stored; what is read back is distrusted.
 */
#ifndef TS_RECORD_RECORDING_CHECKPOINT_STATE_H
#define TS_RECORD_RECORDING_CHECKPOINT_STATE_H

#include <stdbool.h>
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

/* The next `bytes` bytes, padded to 8, or NULL. */
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
 * A struct that begins with its kind and size. What a later version adds is passed over; what an
 * earlier one did not have, behind `least`, is 0.
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

#endif
