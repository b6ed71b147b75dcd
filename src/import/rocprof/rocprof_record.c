/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of rocprofv3 JSON: known members go into struct ts_rocprof_record, all others become
 * arguments. Members have the same order in every record, so the expected one is tried first.
 */
#include <string.h>

#include "import/rocprof/rocprof.h"

struct key {
	const char *name;
	uint8_t length;
	uint8_t member;
};

#define KEY(text, id)                                                  \
	{                                                              \
		.name = text, .length = sizeof(text) - 1, .member = id \
	}

/* In the order in which they are written. */
static const struct key record_keys[] = {
	KEY("size", TS_ROCPROF_SIZE),
	KEY("kind", TS_ROCPROF_KIND),
	KEY("operation", TS_ROCPROF_OPERATION),
	KEY("thread_id", TS_ROCPROF_THREAD),
	KEY("correlation_id", TS_ROCPROF_CORRELATION),
	KEY("start_timestamp", TS_ROCPROF_START),
	KEY("end_timestamp", TS_ROCPROF_END),
	KEY("dispatch_info", TS_ROCPROF_DISPATCH_INFO),
	KEY("stream_id", TS_ROCPROF_STREAM),
	KEY("agent_id", TS_ROCPROF_AGENT),
	KEY("queue_id", TS_ROCPROF_QUEUE),
	KEY("kernel_id", TS_ROCPROF_KERNEL_ID),
	KEY("dispatch_id", TS_ROCPROF_DISPATCH),
	KEY("private_segment_size", TS_ROCPROF_PRIVATE),
	KEY("group_segment_size", TS_ROCPROF_GROUP),
	KEY("workgroup_size", TS_ROCPROF_WORKGROUP),
	KEY("grid_size", TS_ROCPROF_GRID),
	KEY("dst_agent_id", TS_ROCPROF_DST_AGENT),
	KEY("src_agent_id", TS_ROCPROF_SRC_AGENT),
	KEY("bytes", TS_ROCPROF_BYTES),
	KEY("address", TS_ROCPROF_ADDRESS),
	KEY("allocation_size", TS_ROCPROF_ALLOCATION_SIZE),
	KEY("args", TS_ROCPROF_ARGS),
	KEY("retval", TS_ROCPROF_RETVAL),
	KEY("timestamp", TS_ROCPROF_TIMESTAMP),
	KEY("dispatch_data", TS_ROCPROF_DISPATCH_DATA),
	KEY("records", TS_ROCPROF_RECORDS),
	KEY("record", TS_ROCPROF_RECORD),
	KEY("inst_index", TS_ROCPROF_INST_INDEX),
	KEY("pc", TS_ROCPROF_PC),
	KEY("corr_id", TS_ROCPROF_CORRELATION),
};

/* Limit on nested objects whose members belong to the record. */
#define MAX_DEPTH 4

/* -1: unknown. *hint is where the last one was found. */
static int find_key(const struct ts_json_string *key, size_t *hint)
{
	size_t at = *hint;

	for (size_t i = 0; i < TS_ARRAY_SIZE(record_keys); i++) {
		at = at + 1 < TS_ARRAY_SIZE(record_keys) ? at + 1 : 0;
		if (record_keys[at].length == key->length &&
		    !memcmp(record_keys[at].name, key->text, key->length)) {
			*hint = at;
			return record_keys[at].member;
		}
	}
	return -1;
}

/* ---- values ---- */

static bool parse_unsigned(const char *text, size_t length, uint64_t *ret_value)
{
	bool is_hex = length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t value = 0, base = is_hex ? 16 : 10;

	for (size_t i = is_hex ? 2 : 0; i < length; i++) {
		char c = text[i];
		uint64_t digit = c >= '0' && c <= '9'             ? (uint64_t)(c - '0')
				 : is_hex && c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
				 : is_hex && c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A') + 10
								  : 99;

		if (digit == 99 || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret_value = value;
	return length > 0;
}

static int read_number(struct ts_json *js, uint64_t *ret_value, bool *ret_is)
{
	struct ts_json_number number = { 0 };
	int rc = ts_json_scan_number(js, &number);

	if (rc)
		return rc;
	if (number.kind == TS_JSON_INT) {
		*ret_value = (uint64_t)number.integer;
		*ret_is = true;
	} else if (number.kind == TS_JSON_BIG) {
		*ret_is = parse_unsigned(number.text, number.length, ret_value);
	} else if (number.kind == TS_JSON_DOUBLE && number.real > -9e18 && number.real < 9e18) {
		*ret_value = (uint64_t)(int64_t)number.real;
		*ret_is = true;
	}
	return TS_OK;
}

/* {"handle": 37946}; the last number inside counts. */
static int read_handle(struct ts_json *js, uint64_t *ret_value, bool *ret_is)
{
	struct ts_json_walk walk = { .open = '{' };

	while (ts_json_walk_next(&walk, js)) {
		int first = ts_json_peek(js);

		if (first == '-' || (first >= '0' && first <= '9'))
			walk.rc = read_number(js, ret_value, ret_is);
	}
	return walk.rc;
}

int ts_rocprof_read_unsigned(struct ts_json *js, uint64_t *ret_value, bool *ret_is)
{
	struct ts_json_string string = { 0 };
	int first = ts_json_peek(js), rc;

	*ret_is = false;
	if (TS_LIKELY(first == '-' || (first >= '0' && first <= '9')))
		return read_number(js, ret_value, ret_is);
	if (first < 0)
		return ts_json_cut(js);
	if (first == '{')
		return read_handle(js, ret_value, ret_is);
	if (first != '"')
		return ts_json_skip(js);
	rc = ts_json_scan_string(js, &string);
	if (!rc)
		*ret_is = parse_unsigned(string.text, string.length, ret_value);
	return rc;
}

int ts_rocprof_read_signed(struct ts_json *js, int64_t *ret_value, bool *ret_is)
{
	uint64_t value = 0;
	int first = ts_json_peek(js), rc;

	rc = ts_rocprof_read_unsigned(js, &value, ret_is);
	if (rc)
		return rc;
	/* Beyond an int64, rather than below zero. */
	if (*ret_is && value > INT64_MAX && first != '-')
		*ret_is = false;
	if (*ret_is)
		*ret_value = (int64_t)value;
	return TS_OK;
}

uint32_t ts_rocprof_string(struct ts_rocprof *r, const struct ts_json_string *string)
{
	if (!string->escaped)
		return ts_import_string(r->import, string->text, string->length);
	ts_text_clear(&r->scratch);
	ts_json_unescape(string, &r->scratch);
	return ts_import_string(r->import, ts_text_cstr(&r->scratch), r->scratch.length);
}

int ts_rocprof_read_string(struct ts_rocprof *r, uint32_t *ret_string)
{
	struct ts_json_string string = { 0 };
	int first = ts_json_peek(r->js), rc;

	if (first < 0)
		return ts_json_cut(r->js);
	*ret_string = 0;
	if (first != '"')
		return ts_json_skip(r->js);
	rc = ts_json_scan_string(r->js, &string);
	if (!rc && string.length > TS_IMPORT_MAX_STRING)
		return ts_json_bad(r->js, string.text, "a string is longer than 64 MiB");
	if (!rc)
		*ret_string = ts_rocprof_string(r, &string);
	return rc;
}

int ts_rocprof_read_json(struct ts_rocprof *r, uint32_t *ret_string)
{
	const char *at = r->js->next;
	int rc;

	ts_text_clear(&r->other);
	rc = ts_json_minify(r->js, &r->other);
	if (rc)
		return rc;
	if (r->other.failed)
		return TS_ENOMEM;
	if (r->other.length > TS_IMPORT_MAX_STRING)
		return ts_json_bad(r->js, at, "a value is longer than 64 MiB");
	*ret_string = ts_import_string(r->import, r->other.data, r->other.length);
	return TS_OK;
}

/* ---- arguments ---- */

static int read_number_arg(struct ts_rocprof *r, uint32_t key)
{
	struct ts_json_number number = { 0 };
	int rc = ts_json_scan_number(r->js, &number);

	if (rc)
		return rc;
	if (number.kind == TS_JSON_INT)
		ts_row_args_add(&r->rows.args, key, TS_ARG_INT, number.integer);
	else if (number.kind == TS_JSON_BIG)
		ts_row_args_add(&r->rows.args, key, TS_ARG_JSON,
				ts_import_string(r->import, number.text, number.length));
	else
		ts_row_args_add_double(&r->rows.args, key, number.real);
	return TS_OK;
}

static int read_arg(struct ts_rocprof *r, uint32_t key)
{
	enum ts_json_literal literal;
	uint64_t value = 0;
	uint32_t string = 0;
	int first = ts_json_peek(r->js), rc;
	const char *from = r->js->next;
	bool is;

	switch (first) {
	case -1:
		return ts_json_cut(r->js);
	case '"':
		rc = ts_rocprof_read_string(r, &string);
		ts_row_args_add(&r->rows.args, key, TS_ARG_STRING, string);
		return rc;
	case 't':
	case 'f':
		rc = ts_json_scan_literal(r->js, &literal);
		ts_row_args_add(&r->rows.args, key, TS_ARG_BOOL, !rc && literal == TS_JSON_TRUE);
		return rc;
	case '{':
		/* {"handle": 7} is 7. */
		if (r->js->end - from > 10 && !memcmp(from, "{\"handle\":", 10)) {
			rc = ts_rocprof_read_unsigned(r->js, &value, &is);
			if (!rc && is)
				ts_rocprof_arg_unsigned(&r->rows, key, value);
			return rc;
		}
		break;
	case '[':
	case 'n':
		break;
	default:
		return read_number_arg(r, key);
	}
	rc = ts_rocprof_read_json(r, &string);
	ts_row_args_add(&r->rows.args, key, TS_ARG_JSON, string);
	return rc;
}

/* {"type": "dim3", "name": "numBlocks", "value": "..."} */
static int read_call_arg(struct ts_rocprof *r)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };
	uint32_t name = 0, value = 0;

	while (ts_json_walk_next(&walk, r->js)) {
		if (ts_json_string_is(&walk.key, "name"))
			walk.rc = ts_rocprof_read_string(r, &name);
		else if (ts_json_string_is(&walk.key, "value"))
			walk.rc = ts_rocprof_read_string(r, &value);
	}
	if (!walk.rc && name)
		ts_row_args_add(&r->rows.args, name, TS_ARG_STRING, value);
	return walk.rc;
}

static int read_call_list(struct ts_rocprof *r)
{
	struct ts_json_walk walk = { .open = '[' };

	while (ts_json_walk_next(&walk, r->js))
		walk.rc = read_call_arg(r);
	return walk.rc;
}

/* A list of those, or an object with each under its name. */
static int read_call_args(struct ts_rocprof *r)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };

	if (ts_json_peek(r->js) == '[')
		return read_call_list(r);
	while (ts_json_walk_next(&walk, r->js))
		walk.rc = read_arg(r, ts_rocprof_string(r, &walk.key));
	return walk.rc;
}

/* ---- members ---- */

static int read_dimensions(struct ts_json *js, uint64_t dimensions[3], bool *ret_is)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };
	const struct ts_json_string *key = &walk.key;
	uint64_t value = 0;
	bool is;

	*ret_is = ts_json_peek(js) == '{';
	while (ts_json_walk_next(&walk, js)) {
		walk.rc = ts_rocprof_read_unsigned(js, &value, &is);
		if (!walk.rc && is && key->length == 1 && *key->text >= 'x' && *key->text <= 'z')
			dimensions[*key->text - 'x'] = value;
	}
	return walk.rc;
}

static int read_correlation(struct ts_json *js, struct ts_rocprof_record *record)
{
	struct ts_json_walk walk = { .open = '{' };
	uint64_t value = 0;
	bool is;

	if (ts_json_peek(js) != '{')
		return ts_rocprof_read_unsigned(js, &record->correlation, &is);
	while (ts_json_walk_next(&walk, js)) {
		walk.rc = ts_rocprof_read_unsigned(js, &value, &is);
		if (!walk.rc && is && ts_json_string_is(&walk.key, "internal"))
			record->correlation = value;
		else if (!walk.rc && is && ts_json_string_is(&walk.key, "external"))
			record->external = value;
	}
	return walk.rc;
}

/* {"code_object_id": 1, "code_object_offset": 64} */
static int read_pc(struct ts_json *js, uint64_t *ret_pc)
{
	struct ts_json_walk walk = { .open = '{' };
	uint64_t value = 0;
	bool is;

	if (ts_json_peek(js) != '{')
		return ts_rocprof_read_unsigned(js, ret_pc, &is);
	while (ts_json_walk_next(&walk, js)) {
		walk.rc = ts_rocprof_read_unsigned(js, &value, &is);
		if (!walk.rc && is && ts_json_string_is(&walk.key, "code_object_offset"))
			*ret_pc = value;
	}
	return walk.rc;
}

/* {"counter_id": {"handle": 7}, "value": 1.5} */
static int read_counter_value(struct ts_rocprof *r)
{
	struct ts_json_walk walk = { .open = '{' };
	struct ts_rocprof_value *value;
	struct ts_json_number number = { 0 };
	bool is;

	if (ts_json_peek(r->js) != '{')
		return TS_OK;
	if (ts_grow_array((void **)&r->values, &r->value_capacity, r->value_count + 1,
			  sizeof(*r->values)))
		return TS_ENOMEM;
	value = &r->values[r->value_count++];
	*value = (struct ts_rocprof_value){ 0 };
	while (ts_json_walk_next(&walk, r->js)) {
		int first = ts_json_peek(r->js);

		if (ts_json_string_is(&walk.key, "counter_id") ||
		    ts_json_string_is(&walk.key, "id")) {
			walk.rc = ts_rocprof_read_unsigned(r->js, &value->counter, &is);
		} else if ((ts_json_string_is(&walk.key, "value") ||
			    ts_json_string_is(&walk.key, "counter_value")) &&
			   first > 0 && !strchr("\"{[tfn", first)) {
			walk.rc = ts_json_scan_number(r->js, &number);
			value->value = number.kind == TS_JSON_INT ? (double)number.integer
								  : number.real;
		}
	}
	return walk.rc;
}

static int read_counter_values(struct ts_rocprof *r)
{
	struct ts_json_walk walk = { .open = '[', .skips_others = true };

	while (ts_json_walk_next(&walk, r->js))
		walk.rc = read_counter_value(r);
	return walk.rc;
}

static int read_members(struct ts_rocprof *r, int depth);

/* An object whose members are treated as those of the record. */
static int read_inner(struct ts_rocprof *r, int depth)
{
	int first = ts_json_peek(r->js);

	if (first < 0)
		return ts_json_cut(r->js);
	if (first != '{' || depth >= MAX_DEPTH)
		return ts_json_skip(r->js);
	return read_members(r, depth + 1);
}

/* Destination of a plain number; NULL: not a number. */
static uint64_t *number_of(struct ts_rocprof_record *record, int member)
{
	switch (member) {
	case TS_ROCPROF_KIND:
		return &record->kind;
	case TS_ROCPROF_OPERATION:
		return &record->operation;
	case TS_ROCPROF_THREAD:
		return &record->thread;
	case TS_ROCPROF_STREAM:
		return &record->stream;
	case TS_ROCPROF_QUEUE:
		return &record->queue;
	case TS_ROCPROF_AGENT:
		return &record->agent;
	case TS_ROCPROF_SRC_AGENT:
		return &record->src_agent;
	case TS_ROCPROF_DST_AGENT:
		return &record->dst_agent;
	case TS_ROCPROF_BYTES:
		return &record->bytes;
	case TS_ROCPROF_ADDRESS:
		return &record->address;
	case TS_ROCPROF_ALLOCATION_SIZE:
		return &record->allocation_size;
	case TS_ROCPROF_KERNEL_ID:
		return &record->kernel_id;
	case TS_ROCPROF_DISPATCH:
		return &record->dispatch_id;
	case TS_ROCPROF_PRIVATE:
		return &record->private_size;
	case TS_ROCPROF_GROUP:
		return &record->group_size;
	default:
		return NULL;
	}
}

static int read_member(struct ts_rocprof *r, int member, int depth)
{
	struct ts_rocprof_record *record = &r->record;
	uint64_t *number = number_of(record, member), size;
	bool is = true;
	int rc;

	if (number) {
		rc = ts_rocprof_read_unsigned(r->js, number, &is);
	} else if (member == TS_ROCPROF_START) {
		rc = ts_rocprof_read_signed(r->js, &record->start, &is);
	} else if (member == TS_ROCPROF_END) {
		rc = ts_rocprof_read_signed(r->js, &record->end, &is);
	} else if (member == TS_ROCPROF_TIMESTAMP) {
		rc = ts_rocprof_read_signed(r->js, &record->timestamp, &is);
	} else if (member == TS_ROCPROF_CORRELATION) {
		rc = read_correlation(r->js, record);
	} else if (member == TS_ROCPROF_WORKGROUP) {
		rc = read_dimensions(r->js, record->block, &is);
	} else if (member == TS_ROCPROF_GRID) {
		rc = read_dimensions(r->js, record->grid, &is);
	} else if (member == TS_ROCPROF_SIZE) {
		rc = ts_rocprof_read_unsigned(r->js, &size, &is);
	} else if (member == TS_ROCPROF_ARGS) {
		rc = read_call_args(r);
	} else if (member == TS_ROCPROF_RETVAL) {
		rc = ts_rocprof_read_signed(r->js, &record->result, &is);
	} else if (member == TS_ROCPROF_INST_INDEX) {
		rc = ts_rocprof_read_signed(r->js, &record->instruction, &is);
	} else if (member == TS_ROCPROF_PC) {
		rc = read_pc(r->js, &record->pc);
	} else if (member == TS_ROCPROF_RECORDS) {
		rc = read_counter_values(r);
	} else {
		rc = read_inner(r, depth);
	}
	if (!rc && is)
		record->has |= 1u << member;
	return rc;
}

static int read_members(struct ts_rocprof *r, int depth)
{
	struct ts_json_walk walk = { .open = '{' };
	size_t hint = TS_ARRAY_SIZE(record_keys) - 1;

	if (depth)
		hint = 8; /* before agent_id: those of dispatch_info */
	while (ts_json_walk_next(&walk, r->js)) {
		int member = find_key(&walk.key, &hint);

		walk.rc = member >= 0 ? read_member(r, member, depth)
				      : read_arg(r, ts_rocprof_string(r, &walk.key));
	}
	return walk.rc;
}

int ts_rocprof_read_record(void *context)
{
	struct ts_rocprof *r = context;
	int first = ts_json_peek(r->js);

	r->record = (struct ts_rocprof_record){ .start = TS_ABSENT,
						.end = TS_ABSENT,
						.timestamp = TS_ABSENT,
						.result = TS_ABSENT,
						.instruction = -1 };
	r->value_count = 0;
	ts_row_args_clear(&r->rows.args);
	if (first < 0)
		return ts_json_cut(r->js);
	if (first == '{')
		return read_members(r, 0);
	r->record.has = 0;
	return ts_json_skip(r->js);
}
