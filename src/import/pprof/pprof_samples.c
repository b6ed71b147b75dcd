/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a pprof profile: values of its types, labels, and the thread named by labels. */
#include "import/pprof/pprof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Samples between two checks for cancellation. */
#define SAMPLES_A_STEP 4096
/* One more than a stack has frames, so that the writer marks what is missing. */
#define KEPT_LOCATIONS (TS_STACK_MAX_DEPTH + 1)

static const struct ts_loss_kind loss_values = {
	.what = "sample",
	.one = "sample with fewer values than the profile has types",
	.many = "samples with fewer values than the profile has types",
};
static const struct ts_loss_kind loss_label = {
	.what = "argument",
	.one = "label whose string is missing from the profile",
	.many = "labels whose strings are missing from the profile",
};
static const struct ts_loss_kind loss_more = {
	.what = "value",
	.one = "sample value without a type in the profile",
	.many = "sample values without a type in the profile",
};
static const struct ts_loss_kind loss_range = {
	.what = "sample",
	.one = "sample whose time exceeds 64 bits",
	.many = "samples whose time exceeds 64 bits",
};
static const struct ts_loss_kind loss_args = {
	.what = "argument",
	.one = "argument beyond the limit of a row",
	.many = "arguments beyond the limit of a row",
};

void ts_pprof_samples_release(struct ts_pprof *p)
{
	free(p->path);
	free(p->type_list);
	free(p->values);
}

static bool is_text(struct ts_pprof_bytes text, const char *is)
{
	return text.length == strlen(is) && memcmp(text.data, is, text.length) == 0;
}

/* ---- types ---- */

static int64_t scale_of(struct ts_pprof_bytes unit)
{
	static const struct {
		const char *unit;
		int64_t scale;
	} units[] = {
		{ "nanoseconds", 1 },        { "ns", 1 },
		{ "microseconds", 1000 },    { "us", 1000 },
		{ "milliseconds", 1000000 }, { "ms", 1000000 },
		{ "seconds", 1000000000 },   { "s", 1000000000 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(units); i++)
		if (is_text(unit, units[i].unit))
			return units[i].scale;
	return 0;
}

static void read_type(struct ts_pprof *p, struct ts_pprof_bytes bytes, struct ts_pprof_type *type)
{
	struct ts_proto_reader message = ts_proto_reader(bytes.data, bytes.length);
	struct ts_proto_field field;
	struct ts_pprof_bytes name, unit;
	struct ts_text text;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			type->type = (uint32_t)TS_MIN(field.value, UINT32_MAX);
		else if (field.number == 2)
			type->unit = (uint32_t)TS_MIN(field.value, UINT32_MAX);
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	name = ts_pprof_text(p, type->type);
	unit = ts_pprof_text(p, type->unit);
	type->scale = scale_of(unit);
	ts_text_init(&text);
	ts_text_append(&text, name.data, name.length);
	ts_text_append_char(&text, '/');
	ts_text_append(&text, unit.data, unit.length);
	if (text.failed)
		p->rc = TS_ENOMEM;
	else
		type->name = ts_import_string(p->import, text.data,
					      TS_MIN(text.length, TS_IMPORT_MAX_STRING));
	ts_text_release(&text);
}

/* The default type of the profile, else CPU time, else the last, as in pprof itself. */
static size_t choose(const struct ts_pprof *p)
{
	struct ts_pprof_bytes wanted = ts_pprof_text(p, p->default_type);

	for (size_t i = 0; wanted.length && i < p->types.count; i++) {
		struct ts_pprof_bytes type = ts_pprof_text(p, p->type_list[i].type);

		if (type.length == wanted.length &&
		    memcmp(type.data, wanted.data, type.length) == 0)
			return i;
	}
	for (size_t i = 0; i < p->types.count; i++)
		if (p->type_list[i].scale && is_text(ts_pprof_text(p, p->type_list[i].type), "cpu"))
			return i;
	return p->types.count ? p->types.count - 1 : 0;
}

static int read_types(struct ts_pprof *p)
{
	p->type_list = calloc(p->types.count + 1, sizeof(*p->type_list));
	if (!p->type_list)
		return TS_ENOMEM;
	for (size_t i = 0; i < p->types.count; i++)
		read_type(p, p->types.items[i], &p->type_list[i]);
	p->chosen = choose(p);
	return p->rc;
}

/* ---- labels ---- */

/* Thread and process of a sample, from its labels. */
struct who {
	bool has_pid, has_tid;
	int64_t pid, tid;
	uint32_t name;
};

struct label {
	struct ts_pprof_bytes key;
	uint64_t key_index, text, unit;
	int64_t number;
	bool is_text;
};

static bool number_of(struct ts_pprof *p, const struct label *label, int64_t *ret_number)
{
	struct ts_pprof_bytes text = ts_pprof_text(p, label->text);

	if (label->is_text)
		return ts_parse_int64(text.data, text.length, ret_number) == TS_OK;
	*ret_number = label->number;
	return true;
}

/* False: the label does not describe the thread. */
static bool set_thread(struct ts_pprof *p, const struct label *label, struct who *who)
{
	if (is_text(label->key, "pid") || is_text(label->key, "process_id")) {
		who->has_pid = number_of(p, label, &who->pid);
		return who->has_pid;
	}
	if (is_text(label->key, "tid") || is_text(label->key, "thread_id") ||
	    is_text(label->key, "thread id")) {
		who->has_tid = number_of(p, label, &who->tid);
		return who->has_tid;
	}
	if (is_text(label->key, "thread") || is_text(label->key, "thread_name") ||
	    is_text(label->key, "thread name")) {
		if (!label->is_text) {
			who->has_tid = true;
			who->tid = label->number;
			return true;
		}
		who->name = ts_pprof_string(p, label->text);
		return who->name != 0;
	}
	return false;
}

/* The unit is part of the name, as for values. */
static uint32_t key_of(struct ts_pprof *p, const struct label *label)
{
	struct ts_pprof_bytes unit = ts_pprof_text(p, label->unit);
	struct ts_text text;
	uint32_t id;

	if (!unit.length || label->is_text)
		return ts_pprof_string(p, label->key_index);
	ts_text_init(&text);
	ts_text_append(&text, label->key.data, label->key.length);
	ts_text_append_char(&text, '/');
	ts_text_append(&text, unit.data, unit.length);
	id = text.failed ? 0
			 : ts_import_string(p->import, text.data,
					    TS_MIN(text.length, TS_IMPORT_MAX_STRING));
	ts_text_release(&text);
	return id;
}

static void take_label(struct ts_pprof *p, const struct ts_proto_field *from, struct who *who)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	struct label label = { .key_index = 0 };
	uint32_t key;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			label.key_index = field.value;
			break;
		case 2:
			label.text = field.value;
			label.is_text = field.value != 0;
			break;
		case 3:
			label.number = (int64_t)field.value;
			break;
		case 4:
			label.unit = field.value;
			break;
		default:
			break;
		}
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	label.key = ts_pprof_text(p, label.key_index);
	if (!label.key.length || label.text >= TS_MAX(p->string_count, (size_t)1)) {
		ts_entities_add_loss(&p->entities, &loss_label, 1);
		return;
	}
	if (set_thread(p, &label, who))
		return;
	key = key_of(p, &label);
	if (label.is_text)
		ts_row_args_add(&p->args, key, TS_ARG_STRING, ts_pprof_string(p, label.text));
	else
		ts_row_args_add(&p->args, key, TS_ARG_INT, label.number);
}

/* ---- a sample ---- */

/* Threads without a number are identified by name; the keys cannot collide with thread numbers. */
static int64_t find_thread(struct ts_pprof *p, const struct who *who)
{
	int64_t process = p->process, thread;
	uint64_t key = who->has_tid ? (uint64_t)who->tid : (uint64_t)who->name << 32 | UINT32_MAX;

	if (!who->has_pid && !who->has_tid && !who->name)
		return p->thread;
	if (who->has_pid) {
		process = ts_entities_process(&p->entities, who->pid);
		if (process)
			ts_entities_process_row(&p->entities, process)->name = p->program;
	}
	thread = process ? ts_entities_thread(&p->entities, process, key,
					      who->has_tid ? who->tid : TS_ABSENT)
			 : 0;
	if (!thread)
		p->rc = TS_ENOMEM;
	else if (who->name)
		ts_entities_thread_row(&p->entities, thread)->name = who->name;
	return thread;
}

/* The outermost locations come last. The writer cuts the others, which need no memory here. */
static void take_location(struct ts_pprof *p, uint64_t id)
{
	if (p->path_count == 2 * (size_t)KEPT_LOCATIONS) {
		memmove(p->path, p->path + KEPT_LOCATIONS, KEPT_LOCATIONS * sizeof(*p->path));
		p->path_count = KEPT_LOCATIONS;
	}
	if (ts_grow_array((void **)&p->path, &p->path_capacity, p->path_count + 1,
			  sizeof(*p->path)))
		p->rc = TS_ENOMEM;
	else
		p->path[p->path_count++] = id;
}

static void take_locations(struct ts_pprof *p, const struct ts_proto_field *field)
{
	struct ts_proto_reader packed = ts_proto_message(field);
	uint64_t id;

	if (field->type != TS_PROTO_BYTES)
		take_location(p, field->value);
	while (packed.next < packed.end && ts_proto_varint(&packed, &id))
		take_location(p, id);
	if (packed.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
}

/* Values without a type are only counted. */
static void take_value(struct ts_pprof *p, size_t *count, uint64_t value)
{
	if (*count >= p->types.count)
		(*count)++;
	else if (ts_grow_array((void **)&p->values, &p->value_capacity, *count + 1,
			       sizeof(*p->values)))
		p->rc = TS_ENOMEM;
	else
		p->values[(*count)++] = (int64_t)value;
}

static void take_values(struct ts_pprof *p, const struct ts_proto_field *field, size_t *count)
{
	struct ts_proto_reader packed = ts_proto_message(field);
	uint64_t value;

	if (field->type != TS_PROTO_BYTES)
		take_value(p, count, field->value);
	while (packed.next < packed.end && ts_proto_varint(&packed, &value))
		take_value(p, count, value);
	if (packed.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
}

/* The innermost location comes first. */
static uint32_t make_stack(struct ts_pprof *p)
{
	uint32_t stack = 0;

	for (size_t i = p->path_count; i > 0; i--) {
		const struct ts_pprof_location *location = ts_pprof_location(p, p->path[i - 1]);

		for (uint32_t j = 0; location && j < location->count; j++)
			stack = ts_writer_stack(p->writer, stack, p->frames[location->first + j]);
	}
	return stack;
}

static void add_values(struct ts_pprof *p)
{
	for (size_t i = 0; i < p->types.count; i++)
		if (i != p->chosen)
			ts_row_args_add(&p->args, p->type_list[i].name, TS_ARG_INT, p->values[i]);
}

static void add_sample(struct ts_pprof *p, struct ts_pprof_bytes bytes)
{
	struct ts_proto_reader message = ts_proto_reader(bytes.data, bytes.length);
	const struct ts_pprof_type *type = &p->type_list[p->chosen];
	struct ts_sample_row row = ts_sample_none;
	struct who who = { .has_pid = false };
	struct ts_proto_field field;
	size_t values = 0;

	ts_row_args_clear(&p->args);
	p->path_count = 0;
	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			take_locations(p, &field);
		else if (field.number == 2)
			take_values(p, &field, &values);
		else if (field.number == 3)
			take_label(p, &field, &who);
	}
	if (message.failed)
		ts_entities_add_loss(&p->entities, &ts_pprof_loss_message, 1);
	if (!p->types.count || values < p->types.count) {
		ts_entities_add_loss(&p->entities, &loss_values, 1);
		return;
	}
	row.start = p->time;
	row.name = type->name;
	row.weight = p->values[p->chosen];
	if (type->scale && __builtin_mul_overflow(row.weight, type->scale, &row.weight)) {
		ts_entities_add_loss(&p->entities, &loss_range, 1);
		return;
	}
	row.thread = find_thread(p, &who);
	row.stack = make_stack(p);
	add_values(p);
	if (values > p->types.count)
		ts_entities_add_loss(&p->entities, &loss_more, values - p->types.count);
	row.shape = ts_row_args_shape(&p->args, p->writer);
	ts_writer_add(p->writer, TS_TABLE_SAMPLE, &row, p->args.values);
	p->import->result.events++;
}

/* For samples without thread labels; created only if needed. */
static int make_process(struct ts_pprof *p)
{
	p->program = ts_pprof_program(p);
	p->process = ts_entities_process_of(&p->entities, 0, (uint64_t)INT64_MIN, TS_ABSENT);
	p->thread = p->process ? ts_entities_thread(&p->entities, p->process, (uint64_t)INT64_MIN,
						    TS_ABSENT)
			       : 0;
	if (!p->thread)
		return TS_ENOMEM;
	ts_entities_process_row(&p->entities, p->process)->name = p->program;
	return TS_OK;
}

static int look_around(struct ts_pprof *p, size_t done, struct ts_error *err)
{
	struct ts_import *import = p->import;
	int rc = ts_writer_status(p->writer, err);

	/* All bytes have been read: progress counts samples. */
	if (!rc && import->options.progress &&
	    import->options.progress(import->options.context, done, p->samples.count))
		rc = ts_error_set(
			err, TS_ECANCELED,
			"input '%s': stopped at sample %zu of %zu; everything read so far "
			"is in the trace",
			import->path, done, p->samples.count);
	return rc;
}

int ts_pprof_add_samples(struct ts_pprof *p, struct ts_error *err)
{
	int rc = read_types(p);

	if (!rc)
		rc = make_process(p);
	for (size_t i = 0; !rc && i < p->samples.count; i++) {
		if (i % SAMPLES_A_STEP == 0)
			rc = look_around(p, i, err);
		if (!rc)
			add_sample(p, p->samples.items[i]);
		if (!rc && p->rc)
			rc = p->rc;
	}
	if (p->args.left_out)
		ts_entities_add_loss(&p->entities, &loss_args, p->args.left_out);
	if (rc == TS_ENOMEM)
		ts_error_set(err, rc, "input '%s': out of memory", p->import->path);
	return rc;
}
