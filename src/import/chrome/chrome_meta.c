/* SPDX-License-Identifier: Apache-2.0 */
/* File metadata: metadata events, top-level members, and losses. */
#include "import/chrome/chrome_import.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- times and losses ---- */

int64_t ts_chrome_shifted_time(struct ts_chrome *c, int64_t ts, int64_t shift)
{
	int64_t time;

	if (TS_UNLIKELY(__builtin_add_overflow(ts, shift, &time) || time == TS_ABSENT))
		time = shift < 0 ? TS_ABSENT + 1 : INT64_MAX - 1;
	if (TS_UNLIKELY(!c->has_time)) {
		c->has_time = true;
		c->first_time = time;
	}
	c->last_time = time;
	return time;
}

int64_t ts_chrome_time(struct ts_chrome *c, uint32_t thread, int64_t ts)
{
	return ts_chrome_shifted_time(c, ts, c->threads[thread].shift);
}

static const struct ts_loss_kind losses[TS_CHROME_LOSS_REST] = {
	[TS_CHROME_LOSS_TIME] = { .what = "event",
				  .one = "event without time",
				  .many = "events without time" },
	[TS_CHROME_LOSS_ITEM] = { .what = "event",
				  .one = "item that is not an event",
				  .many = "items that are not events" },
	[TS_CHROME_LOSS_END] = { .what = "slice",
				 .one = "end without begin",
				 .many = "ends without begin" },
	[TS_CHROME_LOSS_MEMBER] = { .what = "member",
				    .one = "member of the wrong type",
				    .many = "members of the wrong type" },
	[TS_CHROME_LOSS_MANY] = { .what = "argument",
				  .one = "argument beyond the limit of a row",
				  .many = "arguments beyond the limit of a row" },
	[TS_CHROME_LOSS_ROW] = { .what = "row", .one = "invalid row", .many = "invalid rows" },
	[TS_CHROME_LOSS_CUT] = { .what = "event",
				 .one = "event truncated at the end of the file",
				 .many = "truncated events" },
};

void ts_chrome_lose(struct ts_chrome *c, enum ts_chrome_loss loss, uint64_t count)
{
	ts_import_losses_add(&c->losses,
			     loss == TS_CHROME_LOSS_REST ? &ts_loss_rest : &losses[loss],
			     c->last_time, count);
}

void ts_chrome_write_losses(struct ts_chrome *c)
{
	ts_writer_set_clock(c->writer, c->clock);
	ts_import_losses_write(&c->losses, c->import, c->source, c->last_time);
}

/* ---- metadata events ---- */

static const struct known_metadata {
	const char *name;
	size_t length; /* all differ */
	const char *key;
	bool is_thread, is_text;
	size_t column; /* in the row */
} known_metadata[] = {
#define KNOWN(table, column_name, key_, is_thread_, is_text_)                                   \
	{                                                                                       \
		.name = #table "_" #column_name, .length = sizeof(#table "_" #column_name) - 1, \
		.key = (key_), .is_thread = (is_thread_), .is_text = (is_text_),                \
		.column = TS_COLUMN_OF(table, column_name)                                      \
	}
	KNOWN(process, name, "name", false, true),
	KNOWN(process, labels, "labels", false, true),
	KNOWN(process, sort_index, "sort_index", false, false),
	KNOWN(thread, name, "name", true, true),
	KNOWN(thread, sort_index, "sort_index", true, false),
};

static const struct known_metadata *find_known(const struct ts_json_string *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(known_metadata); i++)
		if (known_metadata[i].length == name->length &&
		    memcmp(known_metadata[i].name, name->text, name->length) == 0)
			return &known_metadata[i];
	return NULL;
}

/* The value set by a known event, if its only argument is that key with the right type. */
static bool read_known(struct ts_chrome *c, const struct known_metadata *known,
		       const struct ts_chrome_raw *args, int64_t *ret_value)
{
	struct ts_json js = ts_chrome_reopen(args);
	struct ts_json_string key = { 0 }, text = { 0 };
	bool more;

	if (ts_json_enter(&js, '{', &more) || !more || ts_json_scan_key(&js, &key) ||
	    !ts_chrome_is(&key, known->key))
		return false;
	if (known->is_text) {
		if (ts_json_peek(&js) != '"' || ts_json_scan_string(&js, &text) ||
		    text.length > TS_IMPORT_MAX_STRING)
			return false;
		*ret_value = ts_chrome_string(c, &text);
	} else if (!ts_chrome_scan_int(&js, ret_value) || *ret_value == TS_ABSENT) {
		return false;
	}
	return !ts_json_next(&js, '}', &more) && !more;
}

static int set_known(struct ts_chrome *c, const struct ts_chrome_event *event,
		     const struct known_metadata *known, int64_t value)
{
	uint32_t index = known->is_thread ? ts_chrome_thread(c, &event->pid, &event->tid)
					  : ts_chrome_process(c, &event->pid);
	int64_t *row;

	if (index == UINT32_MAX)
		return TS_ENOMEM;
	row = known->is_thread ? (int64_t *)&c->threads[index].row
			       : (int64_t *)&c->processes[index].row;
	if (row[known->column] == value)
		return TS_OK;
	row[known->column] = value;
	if (known->is_thread)
		c->threads[index].changed = true;
	else
		c->processes[index].changed = true;
	return TS_OK;
}

static int add_meta(struct ts_chrome *c, struct ts_chrome_event *event)
{
	struct ts_meta_row row = ts_meta_none;
	uint32_t index = ts_chrome_process(c, &event->pid);

	if (index == UINT32_MAX)
		return TS_ENOMEM;
	row.source = c->source;
	row.process = c->processes[index].row.id;
	if (event->has & TS_CHROME_HAS_TID) {
		index = ts_chrome_thread(c, &event->pid, &event->tid);
		if (index == UINT32_MAX)
			return TS_ENOMEM;
		row.thread = c->threads[index].row.id;
	}
	if (event->has & TS_CHROME_HAS_NAME)
		row.key = ts_chrome_string(c, &event->name);
	if (event->has & TS_CHROME_HAS_ARGS)
		row.value = ts_chrome_raw_json(c, &event->args);
	for (uint32_t i = 0; i < event->beside_count; i++)
		if (ts_json_string_is(&event->beside[i].key, "args"))
			row.value = ts_chrome_raw_json(c, &event->beside[i].value);
	ts_chrome_add(c, 0, TS_TABLE_META, &row, NULL);
	return TS_OK;
}

int ts_chrome_store_metadata(struct ts_chrome *c, struct ts_chrome_event *event)
{
	const struct known_metadata *known;
	int64_t value;

	if (c->native.active) {
		if (ts_json_string_is(&event->name, "tracesmith_row"))
			return ts_chrome_store_native_row(c, event);
		return TS_OK;
	}
	known = find_known(&event->name);
	if (known && event->has & TS_CHROME_HAS_ARGS && read_known(c, known, &event->args, &value))
		return set_known(c, event, known, value);
	return add_meta(c, event);
}

/* ---- top-level members ---- */

/* The member of that name of an object in the buffer, or false. */
static bool find_member(const struct ts_chrome_raw *object, const char *name,
			struct ts_chrome_raw *ret_value)
{
	struct ts_json_string key = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, ret_value))
		if (ts_chrome_is(&key, name))
			return true;
	return false;
}

static bool find_int(const struct ts_chrome_raw *object, const char *name, int64_t *ret_value)
{
	struct ts_chrome_raw value = { 0 };
	struct ts_json js;

	if (!find_member(object, name, &value))
		return false;
	js = ts_chrome_reopen(&value);
	return ts_chrome_scan_int(&js, ret_value);
}

static uint32_t find_text(struct ts_chrome *c, const struct ts_chrome_raw *object, const char *name)
{
	struct ts_json_string text = { 0 };
	struct ts_chrome_raw value = { 0 };
	struct ts_json js;

	if (!find_member(object, name, &value) || *value.at != '"')
		return 0;
	js = ts_chrome_reopen(&value);
	if (ts_json_scan_string(&js, &text) || !text.length)
		return 0;
	return ts_chrome_string(c, &text);
}

static int read_device(struct ts_chrome *c, const struct ts_chrome_raw *raw)
{
	struct ts_device_row *row;
	int64_t number;
	uint32_t index;

	if (*raw->at != '{' || !find_int(raw, "id", &number))
		return TS_OK;
	index = ts_chrome_device(c, c->source, number);
	if (index == UINT32_MAX)
		return TS_ENOMEM;
	row = &c->devices[index].row;
	row->name = find_text(c, raw, "name");
	find_int(raw, "totalGlobalMem", &row->memory_bytes);
	row->properties = ts_chrome_raw_json(c, raw);
	c->devices[index].changed = true;
	return TS_OK;
}

static int read_devices(struct ts_chrome *c, const struct ts_chrome_raw *list)
{
	struct ts_chrome_raw raw = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(list, '[', &more);
	int rc = TS_OK;

	while (!rc && ts_chrome_next_item(&js, &more, &raw))
		rc = read_device(c, &raw);
	return rc;
}

/* Written at once: if it comes before the events, a killed import has it too. */
static void write_base(struct ts_chrome *c)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	if (ts_chrome_start_source(c))
		return;
	row.clock = (int64_t)c->source;
	row.reference = c->base_ns;
	row.method = ts_chrome_text(c, "baseTimeNanoseconds");
	ts_chrome_add(c, 0, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

static bool read_base(struct ts_chrome *c, const struct ts_chrome_raw *raw)
{
	size_t quotes = *raw->at == '"';
	int64_t base;

	if (ts_parse_int64(raw->at + quotes, (size_t)(raw->end - raw->at) - 2 * quotes, &base))
		return false;
	c->base_ns = base;
	c->has_base = true;
	if (!c->native.active)
		write_base(c);
	return true;
}

static bool key_is(const struct ts_chrome *c, const char *name)
{
	return ts_json_stream_key_is(&c->in, name);
}

/* The first bytes do not always show that a file is from Kineto. */
static void note_format(struct ts_chrome *c)
{
	struct ts_import_result *result = &c->import->result;

	if (strcmp(result->format, "chrome") != 0 ||
	    !ts_kineto_is_member(c->in.key.data ? c->in.key.data : "", c->in.key.length))
		return;
	result->format = "kineto";
	c->source_row.format = ts_chrome_text(c, result->format);
	c->source_changed = true;
}

int ts_chrome_read_top(struct ts_chrome *c)
{
	struct ts_json *js = c->js;
	struct ts_meta_row row = ts_meta_none;
	struct ts_chrome_raw raw = { 0 };
	uint32_t value;
	int rc;

	ts_json_skip_space(js);
	raw.at = js->next;
	if (c->native.active)
		rc = ts_json_skip(js);
	else
		rc = ts_chrome_json(c, js, &value);
	if (rc)
		return rc;
	raw.end = js->next;
	if (!c->native.active) {
		rc = ts_chrome_start_source(c);
		if (rc)
			return rc;
		note_format(c);
	}
	if ((key_is(c, "baseTimeNanoseconds") && read_base(c, &raw)) || c->native.active)
		return TS_OK;
	row.source = c->source;
	row.key =
		ts_writer_string(c->writer, c->in.key.data ? c->in.key.data : "", c->in.key.length);
	row.value = value;
	ts_chrome_add(c, 0, TS_TABLE_META, &row, NULL);
	if (key_is(c, "deviceProperties"))
		return read_devices(c, &raw);
	if (key_is(c, "distributedInfo")) {
		find_int(&raw, "rank", &c->source_row.rank);
		find_int(&raw, "world_size", &c->source_row.world_size);
		c->source_changed = true;
	}
	return TS_OK;
}
