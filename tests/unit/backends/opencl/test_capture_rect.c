/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Details of the command stream as JSON, and rectangles of memory, whose sources are part of the
 * agent and included here.
 */
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include <string.h>

#include "backends/opencl/stream/capture_rect.c" /* NOLINT(bugprone-suspicious-include) */

static struct stream_text text;

TS_TEST(text_is_json)
{
	const size_t sizes[2] = { 3, 4 };

	stream_text_begin(&text);
	stream_text_string(&text, "call", "f");
	stream_text_true(&text, "blocking");
	stream_text_int(&text, "status", -5);
	stream_text_sizes(&text, "global", sizes, 2);
	stream_text_open(&text, "args", '[');
	stream_text_open(&text, NULL, '{');
	stream_text_uint(&text, "size", UINT64_MAX);
	stream_text_close(&text, '{');
	stream_text_open(&text, NULL, '{');
	stream_text_close(&text, '{');
	stream_text_close(&text, '[');
	stream_text_open(&text, "wait", '[');
	stream_text_close(&text, '[');
	stream_text_open(&text, "flags", '[');
	stream_text_element(&text, "x");
	stream_text_element(&text, "y");
	stream_text_close(&text, '[');
	TS_CHECK_STR(
		stream_text_end(&text),
		"{\"call\":\"f\",\"blocking\":true,\"status\":-5,\"global\":[3,4],"
		"\"args\":[{\"size\":18446744073709551615},{}],\"wait\":[],\"flags\":[\"x\",\"y\"]}");
}

TS_TEST(text_escapes)
{
	stream_text_begin(&text);
	stream_text_string(&text, "a", "q\" b\\ n\n d\x7f");
	stream_text_string(&text, "b", "\xc3\xa4 \xff \xc3 \xed\xa0\x80 \xf0\x9f\x98\x80");
	stream_text_part(&text, "c", "abcdef", 3);
	TS_CHECK_STR(
		stream_text_end(&text),
		"{\"a\":\"q\\\" b\\\\ n\\u000a d\\u007f\",\"b\":\"\xc3\xa4 \xef\xbf\xbd \xef\xbf\xbd "
		"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80\",\"c\":\"abc\"}");
}

/* Never writes beyond the buffer, and reports truncation. */
TS_TEST(text_has_a_limit)
{
	static char longer[STREAM_DETAILS + 10];

	memset(longer, 'x', sizeof(longer) - 1);
	stream_text_begin(&text);
	stream_text_string(&text, "a", longer);
	TS_CHECK(stream_text_end(&text) == NULL);
	longer[STREAM_DETAILS - 8] = 0; /* {"a":""} plus this */
	stream_text_begin(&text);
	stream_text_string(&text, "a", longer);
	TS_CHECK(stream_text_end(&text) != NULL);
	TS_CHECK_INT(strlen(text.data), STREAM_DETAILS);
	longer[STREAM_DETAILS - 8] = 'x';
	longer[STREAM_DETAILS - 7] = 0;
	stream_text_begin(&text);
	stream_text_string(&text, "a", longer);
	TS_CHECK(stream_text_end(&text) == NULL);
}

TS_TEST(rect_packs)
{
	struct stream_rect rect = {
		.region = { 3, 2, 2 }, .origin = { 1, 1, 1 }, .row = 10, .slice = 50
	};
	unsigned char memory[200], packed[12];
	const unsigned char expected[12] = { 61, 62, 63, 71, 72, 73, 111, 112, 113, 121, 122, 123 };
	uint64_t offset, bytes;

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)i;
	TS_CHECK_INT(stream_rect_bytes(&rect), 12);
	stream_rect_extent(&rect, &offset, &bytes);
	TS_CHECK_INT(offset, 61);
	TS_CHECK_INT(bytes, 63);
	stream_rect_pack(&rect, memory, 0, packed, 12);
	TS_CHECK_MEM(packed, expected, 12);
	/* In pieces that begin and end inside rows. */
	memset(packed, 0, sizeof(packed));
	for (uint64_t at = 0; at < 12; at += 5)
		stream_rect_pack(&rect, memory, at, packed + at, at + 5 < 12 ? 5 : 12 - at);
	TS_CHECK_MEM(packed, expected, 12);
}

#else

TS_TEST(no_opencl)
{
	ts_test_skip("this build has no OpenCL");
}

#endif
