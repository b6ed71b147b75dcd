/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting and parsing numbers for people. */
#include <stdio.h>

#include "base/text.h"
#include "unit/runner.h"

TS_TEST(durations)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },
		{ 1, "1 ns" },
		{ -1, "-1 ns" },
		{ 999, "999 ns" },
		{ 1000, "1 us" },
		{ 1234, "1.234 us" },
		{ 12345, "12.35 us" },
		{ 12300000, "12.3 ms" },
		{ 123456, "123.5 us" },
		{ 999949, "999.9 us" },
		{ 999950, "1 ms" },
		{ 9999, "9.999 us" },
		{ 9999999, "10 ms" },
		{ 4560000000, "4.56 s" },
		{ 59994999999, "59.99 s" },
		{ 59995000000, "1 m 00 s" },
		{ 60000000000, "1 m 00 s" },
		{ 123000000000, "2 m 03 s" },
		{ 3599499999999, "59 m 59 s" },
		{ 3599500000000, "1 h 00 m" },
		{ 3720000000000, "1 h 02 m" },
		{ 86399000000000, "1 d 00 h" },
		{ 273600000000000, "3 d 04 h" },
		{ INT64_MAX, "106752 d 00 h" },
		{ INT64_MIN, "-106752 d 00 h" },
	};
	char buffer[TS_FORMAT_BYTES];

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++)
		TS_CHECK_STR(ts_format_duration_ns(buffer, sizeof(buffer), cases[i].ns),
			     cases[i].text);
	/* Truncated, never overrun. */
	TS_CHECK_STR(ts_format_duration_ns(buffer, 5, 1234), "1.23");
	TS_CHECK_STR(ts_format_duration_ns(buffer, 1, 1234), "");
}

TS_TEST(bytes)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 999, "999 B" },
		{ 1023, "1023 B" },
		{ 1024, "1 KiB" },
		{ 1536, "1.5 KiB" },
		{ 12595, "12.3 KiB" },
		{ 1048575, "1 MiB" },
		{ 1023 * 1024, "1023 KiB" },
		{ (uint64_t)456 << 30, "456 GiB" },
		{ UINT64_MAX, "16 EiB" },
	};
	char buffer[TS_FORMAT_BYTES];

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++)
		TS_CHECK_STR(ts_format_bytes(buffer, sizeof(buffer), cases[i].bytes),
			     cases[i].text);
}

TS_TEST(instants)
{
	char buffer[TS_FORMAT_BYTES];

	TS_CHECK_STR(ts_format_instant_ns(buffer, sizeof(buffer), 0), "0.000000 ms");
	TS_CHECK_STR(ts_format_instant_ns(buffer, sizeof(buffer), -1), "-0.000001 ms");
	TS_CHECK_STR(ts_format_instant_ns(buffer, sizeof(buffer), 12345678), "12.345678 ms");
	TS_CHECK_STR(ts_format_instant_ns(buffer, sizeof(buffer), INT64_MIN),
		     "-9223372036854.775808 ms");
}

TS_TEST(counted_nouns)
{
	TS_CHECK_STR(TS_COUNTED(1, "copy"), "1 copy");
	TS_CHECK_STR(TS_COUNTED(1645, "copy"), "1,645 copies");
	TS_CHECK_STR(TS_COUNTED(0, "launch"), "0 launches");
	TS_CHECK_STR(TS_COUNTED(1, "launch"), "1 launch");
	TS_CHECK_STR(TS_COUNTED(43915, "command"), "43,915 commands");
	TS_CHECK_STR(TS_COUNTED(2, "process"), "2 processes");
}

TS_TEST(counts)
{
	char buffer[TS_FORMAT_BYTES];

	TS_CHECK_STR(ts_format_count(buffer, sizeof(buffer), 0), "0");
	TS_CHECK_STR(ts_format_count(buffer, sizeof(buffer), 999), "999");
	TS_CHECK_STR(ts_format_count(buffer, sizeof(buffer), 1000), "1,000");
	TS_CHECK_STR(ts_format_count(buffer, sizeof(buffer), -1234567), "-1,234,567");
	TS_CHECK_STR(ts_format_count(buffer, sizeof(buffer), INT64_MIN),
		     "-9,223,372,036,854,775,808");
	TS_CHECK_STR(ts_format_count(buffer, 4, 1234567), "1,2");
}

TS_TEST(parse_int64)
{
	static const struct {
		const char *text;
		int rc;
		int64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-0", 0, 0 },
		{ "+7", 0, 7 },
		{ "007", 0, 7 },
		{ "-12", 0, -12 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "9223372036854775808", TS_EFORMAT, 0 },
		{ "-9223372036854775809", TS_EFORMAT, 0 },
		{ "18446744073709551616", TS_EFORMAT, 0 },
		{ "99999999999999999999999999", TS_EFORMAT, 0 },
		{ "", TS_EFORMAT, 0 },
		{ "-", TS_EFORMAT, 0 },
		{ "--1", TS_EFORMAT, 0 },
		{ "1 ", TS_EFORMAT, 0 },
		{ " 1", TS_EFORMAT, 0 },
		{ "1.5", TS_EFORMAT, 0 },
		{ "0x10", TS_EFORMAT, 0 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		int64_t value = 77;

		TS_CHECK_INT(ts_parse_int64(cases[i].text, strlen(cases[i].text), &value),
			     cases[i].rc);
		TS_CHECK_INT(value, cases[i].rc ? 77 : cases[i].value);
	}
}

TS_TEST(parse_durations)
{
	static const struct {
		const char *text;
		int rc;
		int64_t ns;
	} cases[] = {
		{ "250", 0, 250 },
		{ "250ns", 0, 250 },
		{ "10us", 0, 10000 },
		{ "1.5ms", 0, 1500000 },
		{ "3s", 0, 3000000000 },
		{ "3 s", 0, 3000000000 },
		{ "2m", 0, 120000000000 },
		{ "1h", 0, 3600000000000 },
		{ "1d", 0, 86400000000000 },
		{ "-3us", 0, -3000 },
		{ "0.1us", 0, 100 },
		{ "0.0004us", 0, 0 },
		{ "0.0005us", 0, 1 },
		{ "-0.0005us", 0, -1 },
		{ "0.5", 0, 1 },
		{ "0.123456789s", 0, 123456789 },
		{ "0.123456789012345678s", 0, 123456789 },
		{ "1712195495.607293168s", 0, 1712195495607293168 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "9223372036.854775807s", 0, INT64_MAX },
		{ "9223372036.854775808s", TS_EFORMAT, 0 },
		{ "18446744073709551615d", TS_EFORMAT, 0 },
		{ "0.1234567890123456789s", TS_EFORMAT, 0 },
		{ "", TS_EFORMAT, 0 },
		{ "s", TS_EFORMAT, 0 },
		{ "1.", TS_EFORMAT, 0 },
		{ ".5s", TS_EFORMAT, 0 },
		{ "1 ", TS_EFORMAT, 0 },
		{ "1  s", TS_EFORMAT, 0 },
		{ "1 s ", TS_EFORMAT, 0 },
		{ "1S", TS_EFORMAT, 0 },
		{ "1sec", TS_EFORMAT, 0 },
		{ "1e3s", TS_EFORMAT, 0 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		int64_t ns = 77;

		if (ts_parse_duration_ns(cases[i].text, strlen(cases[i].text), &ns) !=
			    cases[i].rc ||
		    ns != (cases[i].rc ? 77 : cases[i].ns))
			ts_test_fail(__FILE__, __LINE__, "'%s': %lld", cases[i].text,
				     (long long)ns);
	}
}
