/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol buffers wire format, read from untrusted bytes and written to a growing buffer. No
 * schema: the caller knows its field numbers.
 *
 * struct ts_proto_reader message = ts_proto_reader(data, bytes);
 *	struct ts_proto_field field;
 *	while (ts_proto_next(&message, &field)) {
 *		switch (field.number) {
 *		case 1: id = field.value; break;
 *		case 2: name = field.bytes; break;          field.length bytes
 *		}
 *	}
 *	if (message.failed) ...
 *
 * size_t open = ts_proto_open(out, 7);
 *	ts_proto_put_uint(out, 1, id);
 *	ts_proto_close(out, open);
 */
#ifndef TS_BASE_PROTO_H
#define TS_BASE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum ts_proto_type {
	TS_PROTO_VARINT = 0,
	TS_PROTO_FIXED64 = 1,
	TS_PROTO_BYTES = 2, /* text, bytes, a message, or packed numbers */
	TS_PROTO_FIXED32 = 5,
};

#define TS_PROTO_MAX_VARINT 10

/* ---- reading ---- */

struct ts_proto_reader {
	const unsigned char *next, *end;
	bool failed; /* the bytes are malformed; fields before were valid */
};

struct ts_proto_field {
	uint32_t number;
	enum ts_proto_type type;
	uint64_t value;    /* numbers, as stored */
	const char *bytes; /* TS_PROTO_BYTES */
	size_t length;
};

static inline struct ts_proto_reader ts_proto_reader(const void *data, size_t bytes)
{
	const unsigned char *next = (const unsigned char *)data;

	return (struct ts_proto_reader){ .next = next, .end = bytes ? next + bytes : next };
}

static inline struct ts_proto_reader ts_proto_message(const struct ts_proto_field *field)
{
	return ts_proto_reader(field->bytes, field->type == TS_PROTO_BYTES ? field->length : 0);
}

/*
 * False, with `failed` set, if the bytes are truncated or exceed 64 bits. For packed numbers: call
 * while next < end.
 */
static inline bool ts_proto_varint(struct ts_proto_reader *reader, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (TS_LIKELY(reader->next < reader->end && *reader->next < 0x80)) {
		*ret_value = *reader->next++;
		return true;
	}
	for (unsigned int shift = 0; reader->next < reader->end && shift < 64; shift += 7) {
		unsigned char byte = *reader->next++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret_value = value;
			return true;
		}
	}
	reader->failed = true;
	return false;
}

/* The next field; false at the end, or with `failed` set. Groups (obsolete) are a failure. */
bool ts_proto_next(struct ts_proto_reader *reader, struct ts_proto_field *field);

static inline int64_t ts_proto_zigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static inline uint64_t ts_proto_from_signed(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline double ts_proto_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* ---- writing ---- */

static inline unsigned char *ts_proto_encode_varint(unsigned char *to, uint64_t value)
{
	while (value >= 0x80) {
		*to++ = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	*to++ = (unsigned char)value;
	return to;
}

static inline unsigned int ts_proto_varint_bytes(uint64_t value)
{
	return (unsigned int)(70 - __builtin_clzll(value | 1)) / 7;
}

static inline void ts_proto_put_varint(struct ts_text *out, uint64_t value)
{
	if (TS_LIKELY(ts_text_reserve(out, TS_PROTO_MAX_VARINT)))
		out->length = (size_t)((char *)ts_proto_encode_varint(
					       (unsigned char *)out->data + out->length, value) -
				       out->data);
}

static inline void ts_proto_put_tag(struct ts_text *out, uint32_t number, enum ts_proto_type type)
{
	ts_proto_put_varint(out, (uint64_t)number << 3 | (uint64_t)type);
}

/* uint64, int64 (negative ones take 10 bytes), bool, enum */
static inline void ts_proto_put_uint(struct ts_text *out, uint32_t number, uint64_t value)
{
	ts_proto_put_tag(out, number, TS_PROTO_VARINT);
	ts_proto_put_varint(out, value);
}

static inline void ts_proto_put_int(struct ts_text *out, uint32_t number, int64_t value)
{
	ts_proto_put_uint(out, number, (uint64_t)value);
}

/* sint64 */
static inline void ts_proto_put_sint(struct ts_text *out, uint32_t number, int64_t value)
{
	ts_proto_put_uint(out, number, ts_proto_from_signed(value));
}

static inline void ts_proto_put_fixed64(struct ts_text *out, uint32_t number, uint64_t value)
{
	ts_proto_put_tag(out, number, TS_PROTO_FIXED64);
	for (int i = 0; i < 8; i++)
		ts_text_append_char(out, (char)(value >> (8 * i)));
}

static inline void ts_proto_put_double(struct ts_text *out, uint32_t number, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	ts_proto_put_fixed64(out, number, bits);
}

static inline void ts_proto_put_bytes(struct ts_text *out, uint32_t number, const void *data,
				      size_t bytes)
{
	ts_proto_put_tag(out, number, TS_PROTO_BYTES);
	ts_proto_put_varint(out, bytes);
	ts_text_append(out, data, bytes);
}

/*
 * A nested message: its length is filled in when it is closed. One byte is reserved, enough for
 * messages shorter than 128 bytes; longer ones are moved. Close in reverse order.
 */
static inline size_t ts_proto_open(struct ts_text *out, uint32_t number)
{
	ts_proto_put_tag(out, number, TS_PROTO_BYTES);
	ts_text_append_char(out, 0);
	return out->length;
}

void ts_proto_close_long_(struct ts_text *out, size_t open);

static inline void ts_proto_close(struct ts_text *out, size_t open)
{
	size_t bytes = out->length - open;

	if (TS_LIKELY(bytes < 0x80 && !out->failed))
		out->data[open - 1] = (char)bytes;
	else
		ts_proto_close_long_(out, open);
}

#endif
