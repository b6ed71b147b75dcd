/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers wire format: fields, and the length prefixes of long messages. */
#include "base/proto.h"

static bool fail(struct ts_proto_reader *reader)
{
	reader->failed = true;
	return false;
}

static bool read_fixed(struct ts_proto_reader *reader, size_t bytes, uint64_t *ret_value)
{
	*ret_value = 0;
	if ((size_t)(reader->end - reader->next) < bytes)
		return fail(reader);
	for (size_t i = 0; i < bytes; i++)
		*ret_value |= (uint64_t)reader->next[i] << (8 * i);
	reader->next += bytes;
	return true;
}

bool ts_proto_next(struct ts_proto_reader *reader, struct ts_proto_field *field)
{
	uint64_t tag, length;

	if (reader->failed || reader->next >= reader->end)
		return false;
	if (!ts_proto_varint(reader, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
		return fail(reader);
	*field = (struct ts_proto_field){ .number = (uint32_t)(tag >> 3),
					  .type = (enum ts_proto_type)(tag & 7) };
	switch (tag & 7) {
	case TS_PROTO_VARINT:
		return ts_proto_varint(reader, &field->value);
	case TS_PROTO_FIXED64:
		return read_fixed(reader, 8, &field->value);
	case TS_PROTO_FIXED32:
		return read_fixed(reader, 4, &field->value);
	case TS_PROTO_BYTES:
		if (!ts_proto_varint(reader, &length) ||
		    length > (size_t)(reader->end - reader->next))
			return fail(reader);
		field->bytes = (const char *)reader->next;
		field->length = (size_t)length;
		reader->next += length;
		return true;
	default:
		return fail(reader);
	}
}

void ts_proto_close_long_(struct ts_text *out, size_t open)
{
	size_t bytes = out->length - open;
	unsigned int prefix = ts_proto_varint_bytes(bytes);

	if (!ts_text_reserve(out, prefix))
		return;
	memmove(out->data + open - 1 + prefix, out->data + open, bytes);
	ts_proto_encode_varint((unsigned char *)out->data + open - 1, bytes);
	out->length += prefix - 1;
}
