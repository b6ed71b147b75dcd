/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON scanner: tokens, complete values, every cut of a document, and random damage. Every
 * input is in memory of exactly its size, so that the sanitizer detects reads beyond it.
 */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/runner.h"

/* A scanner over a copy of the bytes; freed by drop(). */
static char *held;

static struct ts_json scan(const char *text, size_t length, bool last)
{
	struct ts_json js;

	held = malloc(length + !length);
	memcpy(held, text, length);
	ts_json_init(&js, held, length, last);
	return js;
}

static void drop(void)
{
	free(held);
	held = NULL;
}

TS_TEST(strings)
{
	static const struct {
		const char *text;
		int rc;
		const char *unescaped; /* or the reason */
	} cases[] = {
		{ "\"\"", 0, "" },
		{ " \t\r\n\"abc\"", 0, "abc" },
		{ "\"raw\ncontrol\x01\"", 0, "raw\ncontrol\x01" },
		{ "\"a/b \\/ \\\" \\\\ \\b\\f\\n\\r\\t\"", 0, "a/b / \" \\ \b\f\n\r\t" },
		{ "\"\\u0041\\u00e9\\u20AC\"", 0, "A\xc3\xa9\xe2\x82\xac" },
		{ "\"\\ud83d\\ude80\"", 0, "\xf0\x9f\x9a\x80" },
		{ "\"\\ud83d\"", 0, "\xef\xbf\xbd" },
		{ "\"\\ude80x\"", 0, "\xef\xbf\xbdx" },
		{ "\"\\ud83d\\u0041\"", 0,
		  "\xef\xbf\xbd"
		  "A" },
		{ "\"\\ud83d\\n\"", 0, "\xef\xbf\xbd\n" },
		{ "\"\\ud83d\\ud83d\\ude80\"", 0, "\xef\xbf\xbd\xf0\x9f\x9a\x80" },
		{ "\"ends in a backslash \\\\\"", 0, "ends in a backslash \\" },
		{ "abc", TS_EFORMAT, "expected a string" },
		{ "\"abc", TS_EFORMAT, "unexpected end" },
		{ "\"abc\\", TS_EFORMAT, "unexpected end" },
		{ "\"abc\\\"", TS_EFORMAT, "unexpected end" },
		{ "\"abc\\u12", TS_EFORMAT, "unexpected end" },
		{ "\"\\x41\"", TS_EFORMAT, "unknown escape in a string" },
		{ "\"\\u12g4\"", TS_EFORMAT, "expected four hexadecimal digits" },
		{ "\"\\u12\"", TS_EFORMAT, "expected four hexadecimal digits" },
		{ "", TS_EFORMAT, "unexpected end" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_json js = scan(cases[i].text, strlen(cases[i].text), true);
		struct ts_json_string string = { .text = "", .length = 77 };
		TS_SCOPED(ts_text) text = { 0 };
		const char *start = js.next;

		TS_CHECK_INT(ts_json_scan_string(&js, &string), cases[i].rc);
		if (cases[i].rc) {
			TS_CHECK_STR(js.reason, cases[i].unescaped);
			TS_CHECK(js.next == start);
			TS_CHECK(js.error_at >= start && js.error_at <= js.end);
			TS_CHECK_INT(string.length, 77);
		} else {
			TS_CHECK(js.next == js.end);
			TS_CHECK_INT(string.escaped,
				     memchr(string.text, '\\', string.length) != NULL);
			ts_json_unescape(&string, &text);
			TS_CHECK_STR(ts_text_cstr(&text), cases[i].unescaped);
		}
		drop();
	}
}

TS_TEST(strings_of_every_length)
{
	for (size_t length = 0; length < 70; length++) {
		for (size_t at = 0; at <= length; at++) {
			struct ts_json_string string = { 0 };
			struct ts_json js;
			char text[80];

			/* Nothing at the end, an escape elsewhere. */
			memset(text, 'a', sizeof(text));
			text[0] = '"';
			if (at + 1 < length)
				memcpy(text + 1 + at, "\\\"", 2);
			text[1 + length] = '"';
			js = scan(text, length + 2, false);
			TS_CHECK_INT(ts_json_scan_string(&js, &string), 0);
			TS_CHECK_INT(string.length, length);
			TS_CHECK_INT(string.escaped, at + 1 < length);
			drop();
			js = scan(text, length + 1, false);
			TS_CHECK_INT(ts_json_scan_string(&js, &string), TS_JSON_MORE);
			TS_CHECK(js.next == held);
			drop();
		}
	}
}

TS_TEST(zero_is_a_byte)
{
	struct ts_json js = scan("\"a\\u0000b\"", 10, true);
	struct ts_json_string string = { 0 };
	TS_SCOPED(ts_text) text = { 0 };

	TS_CHECK_INT(ts_json_scan_string(&js, &string), 0);
	ts_json_unescape(&string, &text);
	TS_CHECK_INT(text.length, 3);
	TS_CHECK_MEM(text.data, "a\0b", 3);
	drop();
}

TS_TEST(unescape_of_bytes_nobody_scanned)
{
	static const char *const odd[] = { "\\",         "\\u",       "\\u1", "\\u12", "\\u123",
					   "\\ud83d\\u", "\\ud83d\\", "x\\",  "\\q",   "\\\xff" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(odd); i++) {
		struct ts_json js = scan(odd[i], strlen(odd[i]), true);
		struct ts_json_string string = { .text = js.next, .length = strlen(odd[i]) };
		TS_SCOPED(ts_text) text = { 0 };

		ts_json_unescape(&string, &text);
		TS_CHECK(!text.failed);
		drop();
	}
}

TS_TEST(objects_and_arrays_are_pulled)
{
	static const char text[] = " { \"a\" : [ 1 , 2,3 ] , \"b\":{},\"c\" : [ ] , \"d\":true } x";
	struct ts_json js = scan(text, sizeof(text) - 1, true);
	struct ts_json_number number = { .integer = 0 };
	struct ts_json_string key = { .text = NULL };
	enum ts_json_literal literal = TS_JSON_NULL;
	int64_t sum = 0;
	bool more;

	TS_CHECK_INT(ts_json_enter(&js, '[', &more), TS_EFORMAT);
	TS_CHECK_STR(js.reason, "expected '['");
	TS_CHECK_INT(ts_json_enter(&js, '{', &more), 0);
	TS_CHECK(more);
	TS_CHECK_INT(ts_json_scan_key(&js, &key), 0);
	TS_CHECK(ts_json_string_is(&key, "a"));
	TS_CHECK(!ts_json_string_is(&key, "ab"));
	TS_CHECK_INT(ts_json_peek(&js), '[');
	TS_CHECK_INT(ts_json_enter(&js, '[', &more), 0);
	while (more) {
		TS_CHECK_INT(ts_json_scan_number(&js, &number), 0);
		sum += number.integer;
		TS_CHECK_INT(ts_json_next(&js, ']', &more), 0);
	}
	TS_CHECK_INT(sum, 6);
	TS_CHECK_INT(ts_json_next(&js, '}', &more), 0);
	TS_CHECK(more);
	TS_CHECK_INT(ts_json_scan_key(&js, &key), 0);
	TS_CHECK_INT(ts_json_enter(&js, '{', &more), 0);
	TS_CHECK(!more);
	TS_CHECK_INT(ts_json_next(&js, '}', &more), 0);
	TS_CHECK_INT(ts_json_scan_key(&js, &key), 0);
	TS_CHECK_INT(ts_json_enter(&js, '[', &more), 0);
	TS_CHECK(!more);
	TS_CHECK_INT(ts_json_next(&js, '}', &more), 0);
	TS_CHECK_INT(ts_json_scan_key(&js, &key), 0);
	TS_CHECK_INT(ts_json_scan_literal(&js, &literal), 0);
	TS_CHECK_INT(literal, TS_JSON_TRUE);
	TS_CHECK_INT(ts_json_next(&js, '}', &more), 0);
	TS_CHECK(!more);
	TS_CHECK_INT(ts_json_peek(&js), 'x');
	TS_CHECK_INT(ts_json_next(&js, '}', &more), TS_EFORMAT);
	TS_CHECK_STR(js.reason, "expected ',' or '}' after a value");
	TS_CHECK_INT(ts_json_next(&js, ']', &more), TS_EFORMAT);
	TS_CHECK_STR(js.reason, "expected ',' or ']' after a value");
	drop();
}

/* "key=number ..." of an object or an array, until it ends or fails. */
static int walk_text(const char *text, char open, bool skips_others, char *buffer, size_t size)
{
	struct ts_json_walk walk = { .open = open, .skips_others = skips_others };
	struct ts_json js = scan(text, strlen(text), true);
	struct ts_json_number number = { .integer = 0 };
	size_t length = 0;

	*buffer = 0;
	while (ts_json_walk_next(&walk, &js)) {
		/* A look at a value leaves it. */
		int first = ts_json_peek(&js);

		if (first >= '0' && first <= '9')
			walk.rc = ts_json_scan_number(&js, &number);
		length += (size_t)snprintf(buffer + length, size - length, "%.*s=%d ",
					   (int)walk.key.length,
					   walk.key.length ? walk.key.text : "",
					   first >= '0' && first <= '9' ? (int)number.integer : -1);
	}
	TS_CHECK(!ts_json_walk_next(&walk, &js));
	if (!walk.rc)
		TS_CHECK_INT(ts_json_peek(&js), 'x');
	drop();
	return walk.rc;
}

TS_TEST(walks)
{
	static const struct {
		const char *text;
		char open;
		bool skips_others;
		int rc;
		const char *members;
	} cases[] = {
		{ " { \"a\" : 1 , \"b\":{\"c\": 2},\"d\" : null , \"\":3 } x", '{', false, 0,
		  "a=1 b=-1 d=-1 =3 " },
		{ "[ 4 , [5], \"x\" ,6]x", '[', false, 0, "=4 =-1 =-1 =6 " },
		{ "{ } x", '{', false, 0, "" },
		{ " [ ]x", '[', true, 0, "" },
		{ "[1] x", '{', false, TS_EFORMAT, "" },
		{ "[1] x", '{', true, 0, "" },
		{ " 7 x", '[', true, 0, "" },
		{ "", '[', true, TS_EFORMAT, "" },
		{ "{\"a\":1,}", '{', false, TS_EFORMAT, "a=1 " },
		{ "[1,]", '[', false, TS_EFORMAT, "=1 =-1 " },
		{ "{\"a\":1 2}", '{', false, TS_EFORMAT, "a=1 " },
		{ "{\"a\": tru}", '{', false, TS_EFORMAT, "a=-1 " },
		{ "{\"a\":", '{', false, TS_EFORMAT, "a=-1 " },
	};
	char members[64];

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		TS_CHECK_INT(walk_text(cases[i].text, cases[i].open, cases[i].skips_others, members,
				       sizeof(members)),
			     cases[i].rc);
		TS_CHECK_STR(members, cases[i].members);
	}
}

TS_TEST(strings_of_members)
{
	static const char text[] = "{\"n\":1,\"in\":{\"key\":\"no\"},\"key\" : \"w\\u00e9\"}";
	char buffer[4] = "old";

	TS_CHECK(!ts_json_member_string(text, sizeof(text) - 1, "n", buffer, sizeof(buffer)));
	TS_CHECK(!ts_json_member_string(text, sizeof(text) - 1, "ke", buffer, sizeof(buffer)));
	TS_CHECK(!ts_json_member_string("[]", 2, "key", buffer, sizeof(buffer)));
	TS_CHECK_STR(buffer, "old");
	TS_CHECK(ts_json_member_string(text, sizeof(text) - 1, "key", buffer, sizeof(buffer)));
	TS_CHECK_STR(buffer, "w\xc3\xa9");
	/* Never half a character. */
	TS_CHECK(ts_json_member_string(text, sizeof(text) - 1, "key", buffer, 3));
	TS_CHECK_STR(buffer, "w");
}

TS_TEST(keys)
{
	struct ts_json_string key = { .length = 77 };
	struct ts_json js = scan("\"k\" 1", 5, true);

	TS_CHECK_INT(ts_json_scan_key(&js, &key), TS_EFORMAT);
	TS_CHECK_STR(js.reason, "expected ':' after a key");
	TS_CHECK_INT(js.error_at - held, 4);
	TS_CHECK(js.next == held);
	TS_CHECK_INT(key.length, 77);
	drop();
	js = scan("\"k\" ", 4, false);
	TS_CHECK_INT(ts_json_scan_key(&js, &key), TS_JSON_MORE);
	TS_CHECK(js.next == held);
	drop();
}

TS_TEST(literals)
{
	static const struct {
		const char *text;
		bool last;
		int rc;
		int literal;
	} cases[] = {
		{ "true", false, 0, TS_JSON_TRUE },  { "false", false, 0, TS_JSON_FALSE },
		{ " null", false, 0, TS_JSON_NULL }, { "tru", false, TS_JSON_MORE, 0 },
		{ "tru", true, TS_EFORMAT, 0 },      { "", false, TS_JSON_MORE, 0 },
		{ "trux", false, TS_EFORMAT, 0 },    { "True", true, TS_EFORMAT, 0 },
		{ "1", true, TS_EFORMAT, 0 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_json js = scan(cases[i].text, strlen(cases[i].text), cases[i].last);
		enum ts_json_literal literal;

		TS_CHECK_INT(ts_json_scan_literal(&js, &literal), cases[i].rc);
		if (!cases[i].rc)
			TS_CHECK_INT(literal, cases[i].literal);
		else
			TS_CHECK(js.next == held);
		drop();
	}
}

TS_TEST(byte_order_mark)
{
	static const struct {
		const char *text;
		bool last;
		int rc, stepped;
	} cases[] = {
		{ "\xef\xbb\xbf{", false, 0, 3 },
		{ "\xef\xbb\xbf", true, 0, 3 },
		{ "{}", false, 0, 0 },
		{ "\xef\xbb", false, TS_JSON_MORE, 0 },
		{ "\xef\xbb", true, 0, 0 },
		{ "", false, TS_JSON_MORE, 0 },
		{ "", true, 0, 0 },
		{ "\xef\xbb\xbe", false, 0, 0 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_json js = scan(cases[i].text, strlen(cases[i].text), cases[i].last);

		TS_CHECK_INT(ts_json_skip_bom(&js), cases[i].rc);
		TS_CHECK_INT(js.next - held, cases[i].stepped);
		drop();
	}
}

/* Skips and minifies in the last buffer; both must agree. */
static void check_value(const char *text, const char *minified)
{
	size_t length = strlen(text);
	struct ts_json js = scan(text, length, true);
	TS_SCOPED(ts_text) out = { 0 };
	int rc;

	rc = ts_json_skip(&js);
	if (rc)
		ts_test_fail(__FILE__, __LINE__, "%s: %s at %td", text, js.reason,
			     js.error_at - held);
	TS_CHECK(js.next == js.end);
	ts_json_init(&js, held, length, true);
	ts_text_append_str(&out, ">");
	TS_CHECK_INT(ts_json_minify(&js, &out), 0);
	TS_CHECK(js.next == js.end);
	TS_CHECK_STR(ts_text_cstr(&out) + 1, minified);
	drop();
}

TS_TEST(values_and_their_short_form)
{
	check_value("1", "1");
	check_value(" -1.50e+3", "-1.50e+3");
	check_value("\"a b\"", "\"a b\"");
	check_value("true", "true");
	check_value("null", "null");
	check_value("{}", "{}");
	check_value("[ ]", "[]");
	check_value("{ \"a\" : 1 , \"b b\" : [ true , false , null , \"x \\\" y\" ] }",
		    "{\"a\":1,\"b b\":[true,false,null,\"x \\\" y\"]}");
	check_value("[\n\t1,\r\n  2.0 ,\"\\u0041\"\n]", "[1,2.0,\"\\u0041\"]");
	check_value(
		"[NaN, Infinity,-Infinity , nan,inf ,-inf,-nan]",
		"[\"NaN\",\"Infinity\",\"-Infinity\",\"NaN\",\"Infinity\",\"-Infinity\",\"NaN\"]");
	check_value("{\"ratio\": NaN }", "{\"ratio\":\"NaN\"}");
	check_value("NaN", "\"NaN\"");
	check_value("[[[[]]],{\"a\":{\"b\":{}}}]", "[[[[]]],{\"a\":{\"b\":{}}}]");
	check_value("[123456789012345678901234567890,0,-0,0.0,1e400]",
		    "[123456789012345678901234567890,0,-0,0.0,1e400]");
	check_value(
		"{\"a long key of more than 16 bytes\":   \"and a long value, also beyond that\"}",
		"{\"a long key of more than 16 bytes\":\"and a long value, also beyond that\"}");
}

TS_TEST(values_that_are_wrong)
{
	static const struct {
		const char *text;
		int at;
		const char *reason;
	} cases[] = {
		{ "", 0, "unexpected end" },
		{ "  ", 2, "unexpected end" },
		{ "{", 1, "unexpected end" },
		{ "[1,2", 4, "unexpected end" },
		{ "{\"a\":1", 6, "unexpected end" },
		{ "{\"a\"", 4, "unexpected end" },
		{ "[\"a\\\"]", 6, "unexpected end" },
		{ "[1,]", 3, "expected a value" },
		{ "[,1]", 1, "expected a value" },
		{ "{,}", 1, "expected a key in double quotes" },
		{ "{\"a\":1,}", 7, "expected a key in double quotes" },
		{ "{a:1}", 1, "expected a key in double quotes" },
		{ "{'a':1}", 1, "expected a key in double quotes" },
		{ "{1:1}", 1, "expected a key in double quotes" },
		{ "{\"a\" 1}", 5, "expected ':' after a key" },
		{ "{\"a\"::1}", 5, "expected a value" },
		{ "{\"a\":}", 5, "expected a value" },
		{ "[1 2]", 3, "expected ',' or ']' after a value" },
		{ "{\"a\":1 \"b\":2}", 7, "expected ',' or '}' after a value" },
		{ "[1}", 2, "expected ',' or ']' after a value" },
		{ "{\"a\":1]", 6, "expected ',' or '}' after a value" },
		{ "[tru]", 1, "expected a value" },
		{ "[truex]", 5, "expected ',' or ']' after a value" },
		{ "[nil]", 1, "expected a number" },
		{ "[+1]", 1, "expected a value" },
		{ "[.5]", 1, "expected a value" },
		{ "[007]", 1, "a number must not begin with 0" },
		{ "[-01]", 2, "a number must not begin with 0" },
		{ "[0x1F]", 2, "unexpected character in a number" },
		{ "[1.]", 3, "expected a digit after '.'" },
		{ "[1.e5]", 3, "expected a digit after '.'" },
		{ "[1e]", 3, "expected a digit in the exponent" },
		{ "[1e+]", 4, "expected a digit in the exponent" },
		{ "[1.5.2]", 4, "unexpected character in a number" },
		{ "[1-2]", 2, "unexpected character in a number" },
		{ "[-]", 2, "expected a digit after '-'" },
		{ "[--1]", 2, "expected a digit after '-'" },
		{ "[-true]", 2, "expected a digit after '-'" },
		{ "[NaNa]", 4, "unexpected character in a number" },
		{ "[\x01"
		  "1]",
		  1, "expected a value" },
		{ "[1\x0b]", 2, "expected ',' or ']' after a value" },
		{ "]", 0, "expected a value" },
		{ "[\"\\q\"]", 3, "unknown escape in a string" },
		{ "\xff", 0, "expected a value" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		size_t length = strlen(cases[i].text);
		struct ts_json js = scan(cases[i].text, length, true);
		TS_SCOPED(ts_text) out = { 0 };

		ts_text_append_str(&out, ">");
		if (ts_json_skip(&js) != TS_EFORMAT || strcmp(js.reason, cases[i].reason) != 0 ||
		    js.error_at - held != cases[i].at)
			ts_test_fail(__FILE__, __LINE__, "%s: %s at %td", cases[i].text, js.reason,
				     js.error_at - held);
		TS_CHECK(js.next == held);
		TS_CHECK_INT(ts_json_minify(&js, &out), TS_EFORMAT);
		TS_CHECK_STR(ts_text_cstr(&out), ">");
		drop();
	}
}

TS_TEST(depth_is_a_limit)
{
	static char text[4 * TS_JSON_MAX_DEPTH];
	struct ts_json js;

	for (int extra = 0; extra < 2; extra++) {
		size_t depth = TS_JSON_MAX_DEPTH + (size_t)extra;

		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		js = scan(text, 2 * depth, true);
		TS_CHECK_INT(ts_json_skip(&js), extra ? TS_EFORMAT : 0);
		if (extra)
			TS_CHECK_STR(js.reason, "arrays and objects are nested too deeply");
		drop();
	}
	/* Adjacent is not nested. */
	memset(text, '[', 1);
	for (size_t i = 1; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "[],", 3);
	memcpy(text + 1 + (sizeof(text) - 4) / 3 * 3 - 1, "]", 1);
	js = scan(text, 1 + (sizeof(text) - 4) / 3 * 3, true);
	TS_CHECK_INT(ts_json_skip(&js), 0);
	drop();
}

static const char document[] =
	"{ \"schemaVersion\": 1, \"deviceProperties\": [ {\"id\": 0, \"name\": \"H100\"} ],\n"
	"  \"traceEvents\": [\n  {\n"
	"    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add_\",\n"
	"    \"ts\": 1712195495607293.168, \"dur\": 12.5e-1, \"pid\": -17,\n"
	"    \"tid\": 1234567890123, \"args\": {\"External id\": 42, \"r\": NaN,\n"
	"      \"path\": \"C:\\\\x\\u00e9\\ud83d\\ude80\", \"Input Dims\": [[2, 3], [], [[1]]],\n"
	"      \"ok\": true, \"no\": false, \"nil\": null,\n"
	"      \"inf\": [Infinity, -Infinity, -inf, nan]}\n  }\n]}";

/*
 * If more input may come, every cut says so and changes nothing; in the last buffer it is an error.
 */
TS_TEST(every_cut_of_a_document)
{
	size_t total = sizeof(document) - 1;

	for (size_t cut = 0; cut < total; cut++) {
		struct ts_json js = scan(document, cut, false);
		TS_SCOPED(ts_text) out = { 0 };

		ts_text_append_str(&out, ">");
		TS_CHECK_INT(ts_json_skip(&js), TS_JSON_MORE);
		TS_CHECK(js.next == held);
		TS_CHECK_INT(ts_json_minify(&js, &out), TS_JSON_MORE);
		TS_CHECK(js.next == held);
		TS_CHECK_STR(ts_text_cstr(&out), ">");
		js.last = true;
		TS_CHECK_INT(ts_json_skip(&js), TS_EFORMAT);
		TS_CHECK_STR(js.reason, "unexpected end");
		TS_CHECK(js.error_at == js.end);
		drop();
	}
}

/* Reads values as an importer would, without a recursion limit of its own. */
static int pull(struct ts_json *js, int depth)
{
	struct ts_json_number number;
	struct ts_json_string string = { 0 };
	enum ts_json_literal literal;
	int rc, first = ts_json_peek(js);
	int64_t ns;
	bool more;

	if (first == -1)
		return ts_json_cut(js);
	if (depth > 20)
		return ts_json_skip(js);
	switch (first) {
	case '{':
	case '[':
		rc = ts_json_enter(js, (char)first, &more);
		while (!rc && more) {
			if (first == '{')
				rc = ts_json_scan_key(js, &string);
			rc = rc ? rc : pull(js, depth + 1);
			rc = rc ? rc : ts_json_next(js, (char)(first + 2), &more);
		}
		return rc;
	case '"':
		rc = ts_json_scan_string(js, &string);
		if (!rc) {
			TS_SCOPED(ts_text) text = { 0 };

			ts_json_unescape(&string, &text);
			TS_CHECK(text.length <= string.length);
		}
		return rc;
	case 't':
	case 'f':
		return ts_json_scan_literal(js, &literal);
	case 'n':
		rc = ts_json_scan_literal(js, &literal);
		return rc == TS_EFORMAT ? ts_json_scan_number(js, &number) : rc;
	default: {
		struct ts_json copy = *js;
		int also = ts_json_scan_us(&copy, &ns);

		rc = ts_json_scan_number(js, &number);
		/* Both read the same tokens, except for values out of range. */
		if (also == 0)
			TS_CHECK(rc == 0 && js->next == copy.next);
		if (also == TS_JSON_MORE)
			TS_CHECK_INT(rc, TS_JSON_MORE);
		return rc;
	}
	}
}

TS_TEST(random_damage)
{
	static const char bytes[] = "{}[]\",:\\ \n0123456789.eE+-truefalsnINy\x01\x80\xff";
	size_t total = sizeof(document) - 1;
	uint32_t random = 1;
	int good = 0;

	for (int round = 0; round < 60000; round++) {
		char text[sizeof(document)];
		struct ts_json js;
		TS_SCOPED(ts_text) out = { 0 };
		size_t length = total;
		int skipped, minified, pulled;

		memcpy(text, document, sizeof(document));
		for (int i = 0; i < 1 + round % 4; i++) {
			size_t at;

			random = random * 1664525 + 1013904223;
			at = (random >> 8) % length;
			random = random * 1664525 + 1013904223;
			if (random >> 31) {
				text[at] = bytes[(random >> 8) % (sizeof(bytes) - 1)];
			} else {
				memmove(text + at, text + at + 1, length - at - 1);
				length--;
			}
		}
		js = scan(text, length, round & 1);
		skipped = ts_json_skip(&js);
		TS_CHECK(skipped || js.next > held);
		ts_json_init(&js, held, length, round & 1);
		minified = ts_json_minify(&js, &out);
		ts_json_init(&js, held, length, round & 1);
		pulled = pull(&js, 0);
		drop();
		TS_CHECK_INT(skipped, minified);
		/* The importer's reader also rejects a comma before a bracket, so they agree. */
		TS_CHECK_INT(pulled, skipped);
		if (skipped)
			continue;
		good++;
		/* The output is a value, and minifying it again changes nothing. */
		js = scan(out.data, out.length, true);
		TS_SCOPED(ts_text) again = { 0 };

		TS_CHECK_INT(ts_json_minify(&js, &again), 0);
		TS_CHECK(js.next == js.end);
		TS_CHECK_INT(again.length, out.length);
		TS_CHECK_MEM(again.data, out.data, out.length);
		drop();
	}
	TS_CHECK(good > 1000);
}
