/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses details of objects and commands (docs/replay.md, section 2.3): JSON into a struct. Unknown
 * keys are skipped, values of the wrong type are errors.
 */
#include <string.h>

#include "base/json.h"
#include "replay/stream/stream_internal.h"

/* Maximum length of a list: far more than any driver accepts. */
#define MOST_ITEMS 65536u

struct parse {
	struct ts_json js;
	struct ts_arena *arena;
	struct ts_replay_details *details;
};

typedef int scan_function(struct parse *parse, void *to);

/* ---- values ---- */

static int scan_unsigned(struct parse *parse, void *to)
{
	struct ts_json_number number = { 0 };
	const char *at = parse->js.next;
	int rc = ts_json_scan_number(&parse->js, &number);

	if (rc)
		return rc;
	if (number.kind != TS_JSON_INT || number.integer < 0)
		return ts_json_bad(&parse->js, at, "expected a non-negative integer");
	*(uint64_t *)to = (uint64_t)number.integer;
	return TS_OK;
}

static int scan_signed(struct parse *parse, void *to)
{
	struct ts_json_number number = { 0 };
	const char *at = parse->js.next;
	int rc = ts_json_scan_number(&parse->js, &number);

	if (rc)
		return rc;
	if (number.kind != TS_JSON_INT)
		return ts_json_bad(&parse->js, at, "expected an integer");
	*(int64_t *)to = number.integer;
	return TS_OK;
}

static int scan_flag(struct parse *parse, void *to)
{
	enum ts_json_literal literal;
	int rc = ts_json_scan_literal(&parse->js, &literal);

	if (!rc)
		*(bool *)to = literal == TS_JSON_TRUE;
	return rc;
}

static int scan_text(struct parse *parse, void *to)
{
	struct ts_json_string string = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	int rc = ts_json_scan_string(&parse->js, &string);

	if (rc)
		return rc;
	ts_json_unescape(&string, &text);
	/*
	 * A NUL inside would hide the rest of the text from the checks of this tool or the driver.
	 */
	if (text.length && memchr(text.data, 0, text.length))
		return ts_json_bad(&parse->js, string.text, "a text holds a byte 0");
	*(const char **)to = ts_arena_strdup_len(parse->arena, ts_text_cstr(&text), text.length);
	return text.failed || !*(const char **)to ? TS_ENOMEM : TS_OK;
}

/* An array whose elements `item` parses, and where the list goes. */
struct list {
	scan_function *item;
	size_t item_bytes;
	void *to; /* a pointer to the items */
	uint32_t *count;
};

static int scan_list(struct parse *parse, void *to)
{
	const struct list *list = to;
	TS_AUTO_FREE void *items = NULL;
	struct ts_json_walk walk = { .open = '[' };
	size_t capacity = 0;
	uint32_t count = 0;
	void *kept;

	while (ts_json_walk_next(&walk, &parse->js)) {
		if (count == MOST_ITEMS)
			return ts_json_bad(&parse->js, parse->js.next, "a list is too long");
		if (ts_grow_array(&items, &capacity, count + 1, list->item_bytes))
			return TS_ENOMEM;
		memset((char *)items + count * list->item_bytes, 0, list->item_bytes);
		walk.rc = list->item(parse, (char *)items + count * list->item_bytes);
		count++;
	}
	if (walk.rc)
		return walk.rc;
	kept = ts_arena_copy(parse->arena, items ? items : "", count * list->item_bytes);
	if (!kept)
		return TS_ENOMEM;
	/* All pointers have the same representation. */
	memcpy(list->to, &kept, sizeof(kept));
	*list->count = count;
	return TS_OK;
}

static int scan_numbers(struct parse *parse, void *to)
{
	struct ts_replay_numbers *numbers = to;

	return scan_list(parse, &(struct list){ scan_unsigned, sizeof(*numbers->items),
						&numbers->items, &numbers->count });
}

/* ---- objects ---- */

/* A key, the function that parses its value, and where the value goes. */
struct member {
	const char *key;
	scan_function *scan;
	void *to;
};

static int scan_member(struct parse *parse, const struct ts_json_string *key,
		       const struct member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!key->escaped && strlen(members[i].key) == key->length &&
		    !memcmp(members[i].key, key->text, key->length))
			return members[i].scan(parse, members[i].to);
	}
	return TS_OK;
}

static int scan_object(struct parse *parse, const struct member *members, size_t count)
{
	struct ts_json_walk walk = { .open = '{' };

	while (ts_json_walk_next(&walk, &parse->js))
		walk.rc = scan_member(parse, &walk.key, members, count);
	return walk.rc;
}

static int scan_offset(struct parse *parse, void *to)
{
	struct ts_replay_raw_arg *arg = to;

	arg->has_offset = true;
	return scan_unsigned(parse, &arg->offset);
}

static int scan_bytes(struct parse *parse, void *to)
{
	struct ts_replay_raw_arg *arg = to;

	arg->has_bytes = true;
	return scan_unsigned(parse, &arg->bytes);
}

static int scan_arg(struct parse *parse, void *to)
{
	struct ts_replay_raw_arg *arg = to;
	const struct member members[] = {
		{ "kind", scan_text, &arg->kind },
		{ "at", scan_unsigned, &arg->at },
		{ "size", scan_unsigned, &arg->size },
		{ "object", scan_unsigned, &arg->object },
		{ "offset", scan_offset, arg },
		{ "bytes", scan_bytes, arg },
		{ "access", scan_text, &arg->access },
		{ "normalized", scan_flag, &arg->is_normalized },
		{ "addressing", scan_text, &arg->addressing },
		{ "filter", scan_text, &arg->filter },
	};

	return scan_object(parse, members, TS_ARRAY_SIZE(members));
}

/* A list for a launch, a count for a function. */
static int scan_args(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;
	uint64_t count = 0;
	int rc;

	if (ts_json_peek(&parse->js) != '[') {
		rc = scan_unsigned(parse, &count);
		details->arg_count = (uint32_t)TS_MIN(rc ? 0 : count, (uint64_t)UINT32_MAX);
		return rc;
	}
	rc = scan_list(parse, &(struct list){ scan_arg, sizeof(*details->args), &details->args,
					      &details->arg_count });
	details->has_args = !rc;
	return rc;
}

static int scan_three(struct parse *parse, void *to)
{
	struct ts_replay_numbers numbers = { 0 };
	const char *at = parse->js.next;
	int rc = scan_numbers(parse, &numbers);

	if (rc)
		return rc;
	if (numbers.count != 3)
		return ts_json_bad(&parse->js, at, "expected three numbers");
	memcpy(to, numbers.items, 3 * sizeof(uint64_t));
	return TS_OK;
}

static int scan_side(struct parse *parse, void *to)
{
	struct ts_replay_rect_side *side = to;
	const struct member members[] = {
		{ "origin", scan_three, side->origin },
		{ "row", scan_unsigned, &side->row },
		{ "slice", scan_unsigned, &side->slice },
	};

	return scan_object(parse, members, TS_ARRAY_SIZE(members));
}

static int scan_rect(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;
	const struct member members[] = {
		{ "region", scan_numbers, &details->region },
		{ "to", scan_side, &details->to },
		{ "from", scan_side, &details->from },
	};

	details->has_rect = true;
	return scan_object(parse, members, TS_ARRAY_SIZE(members));
}

static int scan_image(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;
	struct ts_replay_raw_image *image = &details->image;
	const struct member members[] = {
		{ "type", scan_text, &image->type },
		{ "order", scan_text, &image->order },
		{ "data", scan_text, &image->data },
		{ "size", scan_three, image->size },
		{ "element", scan_unsigned, &image->element },
		{ "row", scan_unsigned, &image->row },
	};

	details->has_image = true;
	return scan_object(parse, members, TS_ARRAY_SIZE(members));
}

static int scan_binary(struct parse *parse, void *to)
{
	struct ts_replay_raw_binary *binary = to;
	const struct member members[] = {
		{ "device", scan_unsigned, &binary->device },
		{ "blob", scan_unsigned, &binary->blob },
	};

	return scan_object(parse, members, TS_ARRAY_SIZE(members));
}

static int scan_parameter(struct parse *parse, void *to)
{
	struct ts_replay_parameter *parameter = to;
	const struct member members[] = {
		{ "name", scan_text, &parameter->name },
		{ "type", scan_text, &parameter->type },
	};

	parameter->name = parameter->type = "";
	return scan_object(parse, members, TS_ARRAY_SIZE(members));
}

/* [at, size] of a parameter. */
static int scan_place(struct parse *parse, void *to)
{
	struct ts_replay_place *place = to;
	struct ts_replay_numbers numbers = { 0 };
	const char *at = parse->js.next;
	int rc = scan_numbers(parse, &numbers);

	if (rc)
		return rc;
	if (numbers.count != 2)
		return ts_json_bad(&parse->js, at, "expected two numbers");
	*place = (struct ts_replay_place){ numbers.items[0], numbers.items[1] };
	return TS_OK;
}

/* [offset, bytes]; of host memory that was registered also its flags. */
static int scan_mapping(struct parse *parse, void *to)
{
	struct ts_replay_mapping *mapping = to;
	struct ts_replay_numbers numbers = { 0 };
	const char *at = parse->js.next;
	int rc = scan_numbers(parse, &numbers);

	if (rc)
		return rc;
	if (numbers.count != 2 && numbers.count != 3)
		return ts_json_bad(&parse->js, at, "expected two or three numbers");
	*mapping = (struct ts_replay_mapping){ .offset = numbers.items[0],
					       .bytes = numbers.items[1],
					       .is_registered = numbers.count == 3 };
	if (mapping->is_registered)
		mapping->flags = (uint32_t)numbers.items[2];
	return TS_OK;
}

/* A number, or bytes in hexadecimal digits. */
static int scan_setting_value(struct parse *parse, void *to)
{
	struct ts_replay_setting *setting = to;

	return ts_json_peek(&parse->js) == '"' ? scan_text(parse, &setting->bytes)
					       : scan_signed(parse, &setting->value);
}

/* [id, value] */
static int scan_attribute(struct parse *parse, void *to)
{
	struct ts_replay_setting *setting = to;
	struct ts_json_walk walk = { .open = '[' };
	const char *at = parse->js.next;
	int count = 0;

	while (ts_json_walk_next(&walk, &parse->js)) {
		if (count++ == 0)
			walk.rc = scan_unsigned(parse, &setting->id);
		else
			walk.rc = scan_setting_value(parse, setting);
	}
	return walk.rc || count == 2 ? walk.rc
				     : ts_json_bad(&parse->js, at, "expected an id and a value");
}

static int scan_count(struct parse *parse, void *to)
{
	struct ts_replay_count *count = to;
	int rc = scan_unsigned(parse, &count->value);

	count->is_known = !rc;
	return rc;
}

/* A list of words, or a number. */
static int scan_flags(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;

	if (ts_json_peek(&parse->js) != '[')
		return scan_unsigned(parse, &details->flag_bits);
	return scan_list(parse, &(struct list){ scan_text, sizeof(const char *), &details->flags,
						&details->flag_count });
}

/* "global" of a launch is a list; memory that is a variable has `true`. */
static int scan_global(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;

	return ts_json_peek(&parse->js) == '[' ? scan_numbers(parse, &details->global)
					       : scan_flag(parse, &details->is_global);
}

static int scan_index(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;

	details->has_index = true;
	return scan_unsigned(parse, &details->index);
}

/* "failed" is a text or true. */
static int scan_failed(struct parse *parse, void *to)
{
	struct ts_replay_details *details = to;
	bool failed;
	int rc;

	if (ts_json_peek(&parse->js) == '"')
		return scan_text(parse, &details->failed);
	rc = scan_flag(parse, &failed);
	details->failed = !rc && failed ? "no reason given" : NULL;
	return rc;
}

/* "offset" of a launch is a list; elsewhere a number that is also in a column. */
static int scan_global_offset(struct parse *parse, void *to)
{
	return ts_json_peek(&parse->js) == '[' ? scan_numbers(parse, to) : ts_json_skip(&parse->js);
}

/* A word; other types are for one target only ("from" of a rectangle, "driver" as a number). */
static int scan_word(struct parse *parse, void *to)
{
	return ts_json_peek(&parse->js) == '"' ? scan_text(parse, to) : ts_json_skip(&parse->js);
}

static int scan_details(struct parse *parse)
{
	struct ts_replay_details *d = parse->details;
	struct list binaries = { scan_binary, sizeof(*d->binaries), &d->binaries,
				 &d->binary_count };
	struct list parameters = { scan_parameter, sizeof(*d->parameters), &d->parameters,
				   &d->parameter_count };
	struct list places = { scan_place, sizeof(*d->places), &d->places, &d->place_count };
	struct list attributes = { scan_attribute, sizeof(*d->attributes), &d->attributes,
				   &d->attribute_count };
	struct list mappings = { scan_mapping, sizeof(*d->mappings), &d->mappings,
				 &d->mapping_count };
	const struct member members[] = {
		{ "call", scan_text, &d->call },
		{ "unreplayable", scan_text, &d->unreplayable },
		{ "why", scan_text, &d->why },
		{ "what", scan_text, &d->what },
		{ "failed", scan_failed, d },
		{ "unchecked", scan_text, &d->unchecked },
		{ "from_start", scan_flag, &d->from_start },
		{ "wait", scan_numbers, &d->wait },
		{ "event", scan_unsigned, &d->event },
		{ "window", scan_unsigned, &d->window },
		{ "until", scan_unsigned, &d->until },
		{ "blocking", scan_flag, &d->blocking },
		{ "unknown", scan_flag, &d->unknown },
		{ "ambiguous", scan_flag, &d->ambiguous },
		{ "status", scan_signed, &d->status },
		{ "memory", scan_unsigned, &d->memory },
		{ "global", scan_global, d },
		{ "local", scan_numbers, &d->local },
		{ "offset", scan_global_offset, &d->offset },
		{ "indirect", scan_numbers, &d->indirect },
		{ "args", scan_args, d },
		{ "rect", scan_rect, d },
		{ "hash", scan_text, &d->hash },
		{ "number", scan_unsigned, &d->number },
		{ "index", scan_index, d },
		{ "device", scan_unsigned, &d->device },
		{ "origin", scan_unsigned, &d->origin },
		{ "out_of_order", scan_flag, &d->out_of_order },
		{ "user", scan_flag, &d->user },
		{ "svm", scan_flag, &d->svm },
		{ "image", scan_image, d },
		{ "priority", scan_signed, &d->priority },
		{ "options", scan_text, &d->options },
		{ "from", scan_word, &d->from_what },
		{ "platform", scan_text, &d->platform },
		{ "vendor", scan_text, &d->vendor },
		{ "version", scan_text, &d->version },
		{ "driver", scan_word, &d->driver },
		{ "devices", scan_numbers, &d->devices },
		{ "flags", scan_flags, d },
		{ "binaries", scan_list, &binaries },
		{ "parameters", scan_list, &parameters },
		{ "params", scan_list, &places },
		{ "sparse", scan_flag, &d->is_sparse },
		{ "space", scan_word, &d->space },
		{ "mapped", scan_list, &mappings },
		{ "more", scan_flag, &d->is_more },
		{ "registered", scan_count, &d->registered },
		{ "default", scan_word, &d->default_stream },
		{ "nodes", scan_count, &d->nodes },
		{ "node", scan_count, &d->node },
		{ "after", scan_numbers, &d->after },
		{ "grid", scan_numbers, &d->grid },
		{ "block", scan_numbers, &d->block },
		{ "pages", scan_count, &d->pages },
		{ "pieces", scan_count, &d->pieces },
		{ "compute", scan_numbers, &d->compute },
		{ "shared", scan_count, &d->shared },
		{ "cooperative", scan_flag, &d->is_cooperative },
		{ "attributes", scan_list, &attributes },
		{ "id", scan_unsigned, &d->setting.id },
		{ "value", scan_setting_value, &d->setting },
	};
	int rc = scan_object(parse, members, TS_ARRAY_SIZE(members));

	if (!rc && ts_json_peek(&parse->js) != -1)
		rc = ts_json_bad(&parse->js, parse->js.next, "trailing data after the object");
	return rc;
}

int ts_replay_details_parse(struct ts_replay_details *ret_details, struct ts_arena *arena,
			    const char *json, size_t length, struct ts_error *err)
{
	struct parse parse = { .arena = arena, .details = ret_details };
	int rc;

	*ret_details = (struct ts_replay_details){ .priority = TS_ABSENT };
	if (length == 0)
		return TS_OK;
	ts_json_init(&parse.js, json, length, true);
	rc = scan_details(&parse);
	if (rc == TS_ENOMEM)
		return ts_replay_no_memory(err);
	if (rc)
		return ts_error_set(err, TS_EFORMAT, "malformed details at byte %td: %s",
				    parse.js.error_at - json, parse.js.reason);
	return TS_OK;
}
