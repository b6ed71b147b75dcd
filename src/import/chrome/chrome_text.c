/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of a Chrome file as strings of the trace: unescaped, invalid UTF-8 replaced, nested values
 * without white space.
 */
#include "import/chrome/chrome_import.h"

struct ts_json_string ts_chrome_clean(struct ts_chrome *c, const struct ts_json_string *string)
{
	struct ts_json_string clean = *string;

	if (string->escaped) {
		ts_text_clear(&c->scratch);
		ts_json_unescape(string, &c->scratch);
		clean = (struct ts_json_string){ .text = ts_text_cstr(&c->scratch),
						 .length = c->scratch.length };
	}
	if (ts_chrome_is_ascii(clean.text, clean.length) || ts_utf8_valid(clean.text, clean.length))
		return clean;
	ts_text_clear(&c->other);
	ts_utf8_sanitize(&c->other, clean.text, clean.length);
	return (struct ts_json_string){ .text = ts_text_cstr(&c->other),
					.length = c->other.length };
}

uint32_t ts_chrome_string_slow(struct ts_chrome *c, const struct ts_json_string *string)
{
	struct ts_json_string clean = ts_chrome_clean(c, string);

	return ts_writer_string(c->writer, clean.text, clean.length);
}

uint32_t ts_chrome_text(struct ts_chrome *c, const char *text)
{
	return ts_writer_string(c->writer, text, strlen(text));
}

int ts_chrome_json(struct ts_chrome *c, struct ts_json *js, uint32_t *ret_string)
{
	struct ts_json_string text = { 0 };
	const char *at = js->next;
	int rc;

	ts_text_clear(&c->scratch);
	rc = ts_json_minify(js, &c->scratch);
	if (TS_UNLIKELY(rc))
		return rc;
	if (TS_UNLIKELY(c->scratch.failed))
		return TS_ENOMEM;
	text = (struct ts_json_string){ .text = c->scratch.data, .length = c->scratch.length };
	if (TS_UNLIKELY(text.length > TS_IMPORT_MAX_STRING))
		return ts_json_bad(js, at, "a value is longer than 64 MiB");
	*ret_string = ts_chrome_string(c, &text);
	return TS_OK;
}

uint32_t ts_chrome_raw_json(struct ts_chrome *c, const struct ts_chrome_raw *raw)
{
	struct ts_json js = ts_chrome_reopen(raw);
	uint32_t string = 0;

	return ts_chrome_json(c, &js, &string) ? 0 : string;
}

/* ---- values that were scanned before ---- */

struct ts_json ts_chrome_open(const struct ts_chrome_raw *raw, char open, bool *more)
{
	struct ts_json js = ts_chrome_reopen(raw);

	*more = false;
	if (ts_json_peek(&js) == open)
		ts_json_enter(&js, open, more);
	return js;
}

static bool next_value(struct ts_json *js, char close, bool *more, struct ts_chrome_raw *value)
{
	ts_json_skip_space(js);
	value->at = js->next;
	if (ts_json_skip(js))
		return false;
	value->end = js->next;
	return !ts_json_next(js, close, more);
}

bool ts_chrome_next_member(struct ts_json *js, bool *more, struct ts_json_string *key,
			   struct ts_chrome_raw *value)
{
	return *more && !ts_json_scan_key(js, key) && next_value(js, '}', more, value);
}

bool ts_chrome_next_item(struct ts_json *js, bool *more, struct ts_chrome_raw *value)
{
	return *more && next_value(js, ']', more, value);
}

bool ts_chrome_scan_int(struct ts_json *js, int64_t *ret_value)
{
	struct ts_json_number number = { 0 };
	int first = ts_json_peek(js);

	if ((first != '-' && !(first >= '0' && first <= '9')) || ts_json_scan_number(js, &number) ||
	    number.kind != TS_JSON_INT)
		return false;
	*ret_value = number.integer;
	return true;
}
