/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Details of objects and commands. Programs wrote them: nothing is taken for JSON that was not
 * checked.
 */
#include "trace/object_details.h"

#include <string.h>

#include "base/json.h"

bool ts_object_details_check(const char *text, size_t length, struct ts_text *out)
{
	size_t before = out->length;
	struct ts_json js;

	ts_json_init(&js, text, length, true);
	if (ts_json_peek(&js) == '{' && !ts_json_minify(&js, out) && ts_json_peek(&js) < 0)
		return true;
	out->length = before;
	return false;
}

/* The end of the string that begins at a quote mark; the text is JSON. */
static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at < end ? at + 1 : end;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parses an unsigned integer; returns `end` if there is none. */
static const char *scan_number(const char *at, const char *end, uint64_t *ret_number)
{
	const char *first = at;
	uint64_t number = 0;

	for (; at < end && is_digit(*at); at++)
		if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return NULL;
	if (at == first || at == end || *at == '.' || *at == 'e' || *at == 'E')
		return NULL;
	*ret_number = number;
	return at;
}

void ts_object_details_map_blobs(const char *text, size_t length,
				 uint64_t (*id_of)(void *context, uint64_t number), void *context,
				 struct ts_text *out)
{
	static const char key[] = "\"blob\"";
	const char *at = text, *end = text + length, *copied = text;

	while (at < end) {
		const char *name = at, *behind;
		uint64_t number;

		if (*at != '"') {
			at++;
			continue;
		}
		at = skip_string(at, end);
		if ((size_t)(at - name) != sizeof(key) - 1 ||
		    memcmp(name, key, sizeof(key) - 1) != 0 || at == end || *at != ':')
			continue;
		behind = scan_number(++at, end, &number);
		if (!behind)
			continue;
		ts_text_append(out, copied, (size_t)(at - copied));
		ts_text_append_uint(out, id_of(context, number));
		at = copied = behind;
	}
	ts_text_append(out, copied, (size_t)(end - copied));
}

/* A non-negative integer; false: the value is something else. */
static bool scan_member(struct ts_json *js, uint64_t *ret_number)
{
	struct ts_json_number number = { 0 };

	if (ts_json_peek(js) == '"' || ts_json_scan_number(js, &number) ||
	    number.kind != TS_JSON_INT || number.integer < 0)
		return false;
	*ret_number = (uint64_t)number.integer;
	return true;
}

bool ts_object_number(struct ts_reader *reader, int64_t id, uint64_t *ret_number)
{
	const struct ts_object_row *object = id > 0 ? ts_reader_entity(reader, TS_TABLE_OBJECT, id)
						    : NULL;
	struct ts_json_walk walk = { .open = '{' };
	uint64_t number = UINT64_MAX, index = UINT64_MAX;
	struct ts_string json;
	struct ts_json js;

	if (!object)
		return false;
	json = ts_reader_string(reader, object->details);
	ts_json_init(&js, json.data, json.length, true);
	while (ts_json_walk_next(&walk, &js)) {
		if (ts_json_string_is(&walk.key, "number") && !scan_member(&js, &number))
			break;
		if (ts_json_string_is(&walk.key, "index") && !scan_member(&js, &index))
			break;
	}
	if ((object->kind == TS_OBJECT_DEVICE || object->kind == TS_OBJECT_STREAM) &&
	    index != UINT64_MAX)
		number = index;
	if (number != UINT64_MAX)
		*ret_number = number;
	return number != UINT64_MAX;
}
