/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol buffer wire format: what is written reads back; truncated or malformed input is
 * rejected.
 */
#include <string.h>

#include "base/proto.h"
#include "unit/runner.h"

TS_TEST(what_is_written_reads_back)
{
	static const int64_t numbers[] = { 0, 1, 127, 128, -1, INT64_MAX, INT64_MIN };
	TS_SCOPED(ts_text) out = { 0 };
	struct ts_proto_reader reader;
	struct ts_proto_field field;

	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++) {
		ts_proto_put_int(&out, 1, numbers[i]);
		ts_proto_put_sint(&out, 2, numbers[i]);
		ts_proto_put_fixed64(&out, 536870911, (uint64_t)numbers[i]);
	}
	ts_proto_put_double(&out, 3, 0.1);
	ts_proto_put_bytes(&out, 4, "abc", 3);
	reader = ts_proto_reader(out.data, out.length);
	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++) {
		TS_CHECK(ts_proto_next(&reader, &field));
		TS_CHECK_INT(field.number, 1);
		TS_CHECK_INT((int64_t)field.value, numbers[i]);
		TS_CHECK(ts_proto_next(&reader, &field));
		TS_CHECK_INT(ts_proto_zigzag(field.value), numbers[i]);
		TS_CHECK(ts_proto_next(&reader, &field));
		TS_CHECK_INT(field.number, 536870911);
		TS_CHECK_INT(field.type, TS_PROTO_FIXED64);
		TS_CHECK_INT((int64_t)field.value, numbers[i]);
	}
	TS_CHECK(ts_proto_next(&reader, &field));
	TS_CHECK(ts_proto_double(field.value) == 0.1);
	TS_CHECK(ts_proto_next(&reader, &field));
	TS_CHECK_INT((int64_t)field.length, 3);
	TS_CHECK(memcmp(field.bytes, "abc", 3) == 0);
	TS_CHECK(!ts_proto_next(&reader, &field));
	TS_CHECK(!reader.failed);
}

/* Lengths of 1, 2 and 3 bytes, nested. */
TS_TEST(messages_of_any_length)
{
	static const size_t lengths[] = { 0, 1, 127, 128, 16383, 16384, 3000000 };
	TS_SCOPED(ts_text) out = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(lengths); i++) {
		struct ts_proto_reader reader, inner;
		struct ts_proto_field field;
		size_t outer_at, inner_at;

		ts_text_clear(&out);
		outer_at = ts_proto_open(&out, 5);
		inner_at = ts_proto_open(&out, 6);
		for (size_t byte = 0; byte < lengths[i]; byte++)
			ts_text_append_char(&out, 'x');
		ts_proto_close(&out, inner_at);
		ts_proto_put_uint(&out, 7, 9);
		ts_proto_close(&out, outer_at);
		reader = ts_proto_reader(out.data, out.length);
		TS_CHECK(ts_proto_next(&reader, &field));
		TS_CHECK(reader.next == reader.end);
		inner = ts_proto_message(&field);
		TS_CHECK(ts_proto_next(&inner, &field));
		TS_CHECK_INT(field.number, 6);
		TS_CHECK_INT((int64_t)field.length, (int64_t)lengths[i]);
		TS_CHECK(!lengths[i] || field.bytes[lengths[i] - 1] == 'x');
		TS_CHECK(ts_proto_next(&inner, &field));
		TS_CHECK_INT(field.number, 7);
		TS_CHECK_INT((int64_t)field.value, 9);
	}
}

TS_TEST(varints_take_as_many_bytes_as_said)
{
	unsigned char bytes[TS_PROTO_MAX_VARINT];

	for (int shift = 0; shift < 64; shift++) {
		uint64_t value = UINT64_C(1) << shift;

		TS_CHECK_INT(ts_proto_encode_varint(bytes, value) - bytes,
			     ts_proto_varint_bytes(value));
		TS_CHECK_INT(ts_proto_encode_varint(bytes, value - 1) - bytes,
			     ts_proto_varint_bytes(value - 1));
	}
}

static void refuse(const char *bytes, size_t length)
{
	struct ts_proto_reader reader = ts_proto_reader(bytes, length);
	struct ts_proto_field field;

	while (ts_proto_next(&reader, &field))
		;
	TS_CHECK(reader.failed);
}

TS_TEST(bad_bytes_are_refused)
{
	refuse("\x08", 1);                                              /* no value */
	refuse("\x08\xff", 2);                                          /* truncated */
	refuse("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12); /* beyond 64 bits */
	refuse("\x0a\x05xyz", 5);                                       /* longer than the input */
	refuse("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);     /* 2^64 - 1 bytes */
	refuse("\x09\x01\x02", 3);                                      /* a truncated number */
	refuse("\x00\x01", 2);                                          /* field 0 */
	refuse("\x0b\x01", 2);                                          /* a group */
}
