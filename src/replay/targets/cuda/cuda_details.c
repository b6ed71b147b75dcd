/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Details of objects and commands that only this target knows (docs/cuda-replay.md, section 4).
 * Unknown keys are skipped, values of the wrong type are errors.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "replay/targets/cuda/cuda_session.h"

#define MOST_PAIRS 4096u
#define MOST_BYTES 64u /* of a value in hexadecimal */

struct scan {
	struct ts_json js;
	struct ts_arena *arena;
	struct ts_cuda_details *details;
};

/* ---- values ---- */

static int scan_number(struct scan *scan, uint64_t *to)
{
	const char *at = scan->js.next;
	struct ts_json_number number = { 0 };
	int rc = ts_json_scan_number(&scan->js, &number);

	if (rc)
		return rc;
	if (number.kind != TS_JSON_INT)
		return ts_json_bad(&scan->js, at, "expected an integer");
	*to = (uint64_t)number.integer;
	return TS_OK;
}

static int scan_flag(struct scan *scan, bool *to)
{
	enum ts_json_literal literal = TS_JSON_FALSE;
	int rc = ts_json_scan_literal(&scan->js, &literal);

	*to = literal == TS_JSON_TRUE;
	return rc;
}

static int scan_text(struct scan *scan, const char **to)
{
	struct ts_json_string string = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	int rc = ts_json_scan_string(&scan->js, &string);

	if (rc)
		return rc;
	ts_json_unescape(&string, &text);
	*to = ts_arena_strdup_len(scan->arena, ts_text_cstr(&text), text.length);
	return text.failed || !*to ? TS_ENOMEM : TS_OK;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Bytes in hexadecimal; hyphens are skipped. Their number, or -1. */
static int read_hex(const struct ts_json_string *string, uint8_t *bytes, size_t most)
{
	size_t count = 0;
	int high = -1;

	for (size_t i = 0; i < string->length; i++) {
		int digit = digit_of(string->text[i]);

		if (string->text[i] == '-')
			continue;
		if (digit < 0 || count == most)
			return -1;
		if (high >= 0)
			bytes[count++] = (uint8_t)(high << 4 | digit);
		high = high >= 0 ? -1 : digit;
	}
	return high >= 0 ? -1 : (int)count;
}

static int scan_uuid(struct scan *scan)
{
	struct ts_json_string string = { 0 };
	int rc = ts_json_scan_string(&scan->js, &string);

	if (rc)
		return rc;
	if (string.length > 4 && !memcmp(string.text, "GPU-", 4)) {
		string.text += 4;
		string.length -= 4;
	}
	scan->details->has_uuid = read_hex(&string, scan->details->uuid, 16) == 16;
	return TS_OK;
}

/* A number, or bytes in hexadecimal. */
static int scan_value(struct scan *scan, struct ts_cuda_pair *pair)
{
	struct ts_json_string string = { 0 };
	uint8_t bytes[MOST_BYTES];
	int rc, count;

	if (ts_json_peek(&scan->js) != '"')
		return scan_number(scan, &pair->number);
	rc = ts_json_scan_string(&scan->js, &string);
	if (rc)
		return rc;
	count = read_hex(&string, bytes, sizeof(bytes));
	if (count < 0)
		return ts_json_bad(&scan->js, string.text, "expected bytes in hexadecimal");
	pair->bytes = ts_arena_copy(scan->arena, bytes, (size_t)count);
	pair->byte_count = (uint32_t)count;
	return pair->bytes ? TS_OK : TS_ENOMEM;
}

/* ---- lists ---- */

static int scan_numbers(struct scan *scan, uint64_t *to, size_t most)
{
	struct ts_json_walk walk = { .open = '[' };
	size_t count = 0;

	while (ts_json_walk_next(&walk, &scan->js)) {
		if (count == most)
			walk.rc = ts_json_bad(&scan->js, scan->js.next, "a list is too long");
		else
			walk.rc = scan_number(scan, &to[count++]);
	}
	return walk.rc;
}

static int scan_pair(struct scan *scan, struct ts_cuda_pair *pair)
{
	struct ts_json_walk walk = { .open = '[' };
	unsigned int count = 0;

	*pair = (struct ts_cuda_pair){ 0 };
	while (ts_json_walk_next(&walk, &scan->js)) {
		if (count == 0)
			walk.rc = scan_number(scan, &pair->id);
		else if (count == 1)
			walk.rc = scan_value(scan, pair);
		count++;
	}
	if (!walk.rc && count < 2)
		return ts_json_bad(&scan->js, scan->js.next, "expected a pair");
	return walk.rc;
}

static int scan_pairs(struct scan *scan, const struct ts_cuda_pair **to, uint32_t *ret_count)
{
	struct ts_json_walk walk = { .open = '[' };
	TS_AUTO_FREE struct ts_cuda_pair *pairs = NULL;
	size_t capacity = 0, count = 0;

	while (ts_json_walk_next(&walk, &scan->js)) {
		if (count == MOST_PAIRS)
			return ts_json_bad(&scan->js, scan->js.next, "a list is too long");
		if (ts_grow_array((void **)&pairs, &capacity, count + 1, sizeof(*pairs)))
			return TS_ENOMEM;
		walk.rc = scan_pair(scan, &pairs[count++]);
	}
	if (walk.rc)
		return walk.rc;
	*to = ts_arena_copy(scan->arena, pairs ? (void *)pairs : "", count * sizeof(*pairs));
	*ret_count = (uint32_t)count;
	return *to ? TS_OK : TS_ENOMEM;
}

static int scan_foreign(struct scan *scan)
{
	struct ts_json_walk walk = { .open = '[' };

	while (ts_json_walk_next(&walk, &scan->js))
		if (scan->details->foreign_count < TS_ARRAY_SIZE(scan->details->foreign))
			walk.rc = scan_text(
				scan, &scan->details->foreign[scan->details->foreign_count++]);
	return walk.rc;
}

static int scan_named(struct scan *scan, struct ts_cuda_named *named)
{
	struct ts_json_walk walk = { .open = '[' };
	unsigned int count = 0;

	*named = (struct ts_cuda_named){ .name = "" };
	while (ts_json_walk_next(&walk, &scan->js)) {
		if (count == 0)
			walk.rc = scan_number(scan, &named->offset);
		else if (count == 1)
			walk.rc = scan_text(scan, &named->name);
		count++;
	}
	return walk.rc;
}

static int scan_functions(struct scan *scan)
{
	struct ts_json_walk walk = { .open = '[' };
	TS_AUTO_FREE struct ts_cuda_named *functions = NULL;
	size_t capacity = 0, count = 0;

	while (ts_json_walk_next(&walk, &scan->js)) {
		if (count == MOST_PAIRS)
			return ts_json_bad(&scan->js, scan->js.next, "a list is too long");
		if (ts_grow_array((void **)&functions, &capacity, count + 1, sizeof(*functions)))
			return TS_ENOMEM;
		walk.rc = scan_named(scan, &functions[count++]);
	}
	if (walk.rc)
		return walk.rc;
	scan->details->functions = ts_arena_copy(scan->arena, functions ? (void *)functions : "",
						 count * sizeof(*functions));
	scan->details->function_count = (uint32_t)count;
	return scan->details->functions ? TS_OK : TS_ENOMEM;
}

/* ---- members ---- */

static int scan_registered(struct scan *scan)
{
	scan->details->has_registered = true;
	return scan_number(scan, &scan->details->registered);
}

static int scan_scalar(struct scan *scan, const struct ts_json_string *key)
{
	struct ts_cuda_details *details = scan->details;
	const struct {
		const char *key;
		uint64_t *to;
	} numbers[] = {
		{ "index", &details->index },   { "driver", &details->driver },
		{ "memory", &details->memory }, { "flags", &details->flags },
		{ "cache", &details->cache },   { "shared", &details->shared },
		{ "id", &details->id },         { "nodes", &details->nodes },
	};
	const struct {
		const char *key;
		bool *to;
	} flags[] = {
		{ "pageable", &details->pageable },
		{ "primary", &details->is_primary },
		{ "library", &details->is_library },
		{ "cooperative", &details->is_cooperative },
	};
	const struct {
		const char *key;
		const char **to;
	} texts[] = {
		{ "default", &details->legacy_or_thread },
		{ "from", &details->from },
		{ "what", &details->what },
		{ "release", &details->release },
	};

#define IS_KEY(name) (key->length == strlen(name) && !memcmp(key->text, name, key->length))
	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++)
		if (IS_KEY(numbers[i].key))
			return scan_number(scan, numbers[i].to);
	for (size_t i = 0; i < TS_ARRAY_SIZE(flags); i++)
		if (IS_KEY(flags[i].key))
			return scan_flag(scan, flags[i].to);
	for (size_t i = 0; i < TS_ARRAY_SIZE(texts); i++)
		if (IS_KEY(texts[i].key))
			return scan_text(scan, texts[i].to);
#undef IS_KEY
	return TS_OK;
}

static int scan_member(struct scan *scan, const struct ts_json_string *key)
{
	struct ts_cuda_details *details = scan->details;

	if (ts_json_string_is(key, "grid"))
		return scan_numbers(scan, details->grid, 3);
	if (ts_json_string_is(key, "block"))
		return scan_numbers(scan, details->block, 3);
	if (ts_json_string_is(key, "compute"))
		return scan_numbers(scan, details->compute, 2);
	if (ts_json_string_is(key, "uuid"))
		return scan_uuid(scan);
	if (ts_json_string_is(key, "value"))
		return scan_value(scan, &details->value);
	if (ts_json_string_is(key, "limits"))
		return scan_pairs(scan, &details->limits, &details->limit_count);
	if (ts_json_string_is(key, "jit"))
		return scan_pairs(scan, &details->jit, &details->jit_count);
	if (ts_json_string_is(key, "attributes"))
		return scan_pairs(scan, &details->attributes, &details->attribute_count);
	if (ts_json_string_is(key, "params"))
		return scan_pairs(scan, &details->params, &details->param_count);
	if (ts_json_string_is(key, "registered"))
		return scan_registered(scan);
	if (ts_json_string_is(key, "foreign"))
		return scan_foreign(scan);
	if (ts_json_string_is(key, "functions"))
		return scan_functions(scan);
	return scan_scalar(scan, key);
}

int ts_cuda_details_parse(struct ts_cuda_details *ret_details, struct ts_arena *arena,
			  const char *json, struct ts_error *err)
{
	struct ts_cuda_details details = { 0 };
	struct scan scan = { .arena = arena, .details = &details };
	struct ts_json_walk walk = { .open = '{' };

	*ret_details = details;
	if (!json || !json[0])
		return TS_OK;
	ts_json_init(&scan.js, json, strlen(json), true);
	while (ts_json_walk_next(&walk, &scan.js))
		walk.rc = scan_member(&scan, &walk.key);
	if (walk.rc == TS_ENOMEM)
		return ts_error_set(err, TS_ENOMEM, "no memory for details");
	if (walk.rc)
		return ts_error_set(err, TS_EFORMAT, "invalid details at byte %zu: %s",
				    (size_t)(scan.js.error_at - json), scan.js.reason);
	*ret_details = details;
	return TS_OK;
}
