/* SPDX-License-Identifier: Apache-2.0 */
/* Values of arguments: by the name of their type, and guessed. */
#include <string.h>

#include "replay/describe/describe.h"
#include "unit/runner.h"

static void check_value(const char *type, const void *data, size_t bytes, const char *expected)
{
	unsigned char block[TS_REPLAY_VALUE_BYTES] = { 0 };
	struct ts_text text = { 0 };

	memcpy(block, data, TS_MIN(bytes, sizeof(block)));
	ts_replay_describe_value(type, block, bytes, &text);
	TS_CHECK_STR(ts_text_cstr(&text), expected);
	ts_text_release(&text);
}

static void check_json(const char *type, const void *data, size_t bytes, const char *expected)
{
	struct ts_text text = { 0 };

	ts_replay_describe_value_json(type, data, bytes, &text);
	TS_CHECK_STR(ts_text_cstr(&text), expected);
	ts_text_release(&text);
}

TS_TEST(known_types)
{
	const float vector[4] = { 1, -0.5f, 1e30f, 0 };
	const double real = 3;
	const float nan = __builtin_nanf("");

	check_value("int", &(int){ -7 }, 4, "-7");
	check_value("uint", &(int){ -7 }, 4, "4294967289");
	check_value("unsigned long", &(uint64_t){ UINT64_MAX }, 8, "18446744073709551615");
	check_value("uchar", "\xff", 1, "255");
	check_value("char", "\xff", 1, "-1");
	check_value("float", &(float){ 2.5f }, 4, "2.5f");
	check_value("float", &(float){ 0.1f }, 4, "0.1f");
	check_value("float", &(float){ 3 }, 4, "3.0f");
	check_value("float", &nan, 4, "nan");
	check_value("double", &real, 8, "3.0");
	check_value("half", "\x00\x3c", 2, "1.0");
	check_value("float2", vector, 8, "(1.0f, -0.5f)");
	check_value("float3", vector, 16, "(1.0f, -0.5f, 1e+30f)");
}

TS_TEST(unknown_types)
{
	char bytes[TS_REPLAY_VALUE_BYTES] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

	check_value("", &(int){ 1024 }, 4, "0x00000400 (1024?)");
	check_value("my_t", &(float){ 2.5f }, 4, "0x40200000 (2.5f?)");
	check_value("", &(double){ 0.25 }, 8, "0x3fd0000000000000 (0.25?)");
	check_value("", "\xff\xff\xff\x7f", 4, "0x7fffffff");
	check_value("", "\x07", 1, "0x07 (7?)");
	check_value("", "\x07\x01", 2, "0x0107 (263?)");
	check_value("struct big", bytes, 3, "bytes 616263");
	check_value(
		"struct big", bytes, 40,
		"bytes 6162636465666768696a6b6c6d6e6f707172737475767778797a616263646566... [40 bytes]");
	/* The size decides, whatever the type is called. */
	check_value("int", bytes, 3, "bytes 616263");
	check_value("float5", &(float){ 2.5f }, 4, "0x40200000 (2.5f?)");
	check_value(
		"int", bytes, 100000,
		"bytes 6162636465666768696a6b6c6d6e6f707172737475767778797a616263646566... [100000 bytes]");
}

TS_TEST(json)
{
	const float vector[2] = { 1, __builtin_inff() };

	check_json("int", &(int){ -7 }, 4, "\"value\":-7,\"hex\":\"f9ffffff\",");
	check_json("float2", vector, 8, "\"value\":[1,\"inf\"],\"hex\":\"0000803f0000807f\",");
	check_json("", "ab", 2, "\"hex\":\"6162\",");
}
