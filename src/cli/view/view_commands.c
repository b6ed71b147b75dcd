/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith view --commands`: the commands of each stream in submission order
 * (state/work/command_list.h), as a table or JSON lines.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/view/view.h"
#include "model/short_name.h"
#include "state/work/command_list.h"

/* ---- selection ---- */

static bool is_named(const struct ts_view *view, const char *name)
{
	const struct ts_string_list *names = &view->filters.names;

	for (size_t i = 0; i < names->count; i++) {
		if (ts_glob_match(names->items[i], name, strlen(name)))
			return true;
	}
	return names->count == 0;
}

/* Is the number in the list? Its items have been validated. */
static bool is_listed(const struct ts_string_list *list, int64_t number)
{
	for (size_t i = 0; i < list->count; i++) {
		int64_t wanted;

		if (!ts_parse_int64(list->items[i], strlen(list->items[i]), &wanted) &&
		    wanted == number)
			return true;
	}
	return list->count == 0;
}

static int64_t device_number(const struct ts_work *work, const struct ts_command_entry *one)
{
	return one->device == TS_WORK_NONE ? TS_ABSENT : work->devices[one->device].number;
}

static int64_t stream_number(const struct ts_work *work, uint32_t stream)
{
	return stream == TS_WORK_NONE ? TS_ABSENT : work->streams[stream].number;
}

static bool is_wanted(const struct ts_view *view, const struct ts_work *work,
		      const struct ts_command_entry *one)
{
	int64_t from = one->start == TS_ABSENT ? one->issued : one->start;
	int64_t to = one->end == TS_ABSENT ? from : one->end;

	return to >= view->from && from <= view->to &&
	       is_listed(&view->filters.devices, device_number(work, one)) &&
	       is_listed(&view->filters.streams, stream_number(work, one->stream)) &&
	       is_named(view, ts_work_text(work, one->name));
}

/* ---- JSON ---- */

static void append_number(struct ts_text *out, const char *key, int64_t value)
{
	if (value != TS_ABSENT)
		ts_text_printf(out, "\"%s\":%" PRId64 ",", key, value);
}

static void append_triple(struct ts_text *out, const char *key, const int64_t *values)
{
	if (values[0] != TS_ABSENT)
		ts_text_printf(out, "\"%s\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],", key, values[0],
			       values[1], values[2]);
}

static void append_json_entities(struct ts_text *out, const struct ts_work *work,
				 const struct ts_command_entry *one)
{
	append_number(out, "rank", work->ranks[one->rank].rank);
	append_number(out, "device", device_number(work, one));
	append_number(out, "stream", stream_number(work, one->stream));
	append_number(out, "sequence", one->sequence);
	ts_text_printf(out, "\"kind\":\"%s\",", ts_enum_name("command_kind", one->kind));
	append_number(out, "issued", one->issued);
	append_number(out, "start", one->start);
	if (one->end != TS_ABSENT)
		append_number(out, "duration", one->end - one->start);
	if (one->thread != TS_WORK_NONE) {
		append_number(out, "pid", work->threads[one->thread].pid);
		append_number(out, "tid", work->threads[one->thread].tid);
	}
}

static void append_json_operands(struct ts_text *out, const struct ts_work *work,
				 const struct ts_command_entry *one)
{
	append_triple(out, "grid", one->grid);
	append_triple(out, "block", one->block);
	append_number(out, "registers", one->registers);
	append_number(out, "shared_bytes", one->shared_bytes);
	append_number(out, "bytes", one->bytes);
	if (one->kind == TS_COMMAND_COPY && one->copy_kind != TS_COPY_UNKNOWN)
		ts_text_printf(out, "\"copy_kind\":\"%s\",",
			       ts_enum_name("copy_kind", one->copy_kind));
	append_number(out, "event", one->event);
	append_number(out, "on_stream", stream_number(work, one->on_stream));
	append_number(out, "record_correlation", one->record_correlation);
	if (one->graph >= 0)
		append_number(out, "graph", one->graph);
	if (one->graph_node >= 0)
		append_number(out, "graph_node", one->graph_node);
	if (one->flags & TS_COMMAND_ENTRY_MISSING)
		ts_text_append_str(out, "\"missing\":true,");
}

static void print_json(const struct ts_work *work, const struct ts_command_entry *one)
{
	struct ts_text *out = ts_stdout();
	const char *name = ts_work_text(work, one->name);

	ts_text_append_char(out, '{');
	append_json_entities(out, work, one);
	ts_text_append_str(out, "\"name\":");
	ts_text_append_json(out, name, strlen(name));
	ts_text_append_char(out, ',');
	append_number(out, "correlation", one->correlation);
	append_json_operands(out, work, one);
	out->length--;
	ts_text_append_str(out, "}\n");
}

/* ---- text ---- */

static const struct {
	const char *title;
	bool right;
	unsigned int detail; /* text_table.h */
} COLUMNS[] = {
	{ "where", false, 0 },    { "sequence", true, 1 }, { "issued", true, 3 },
	{ "start", true, 0 },     { "duration", true, 0 }, { "kind", false, 0 },
	{ "operands", false, 2 }, { "name", false, 0 },
};

static void append_where(struct ts_text *out, const struct ts_work *work,
			 const struct ts_command_entry *one)
{
	if (work->rank_count > 1)
		ts_text_printf(out, "rank %" PRId64 "/", work->ranks[one->rank].rank);
	if (one->device != TS_WORK_NONE && device_number(work, one) != TS_ABSENT)
		ts_text_printf(out, "device %" PRId64 "/", device_number(work, one));
	if (one->stream == TS_WORK_NONE)
		ts_text_append_str(out, "no stream");
	else if (work->streams[one->stream].number != TS_ABSENT)
		ts_text_printf(out, "stream %" PRId64, work->streams[one->stream].number);
	else
		ts_text_printf(out, "stream #%" PRId64, work->streams[one->stream].id);
}

/* Relative to the start of the trace, like view's column `time`. */
static void append_time(struct ts_text *out, const struct ts_view *view, int64_t time)
{
	char text[TS_FORMAT_BYTES];
	int64_t ns;

	if (time != TS_ABSENT && !__builtin_sub_overflow(time, view->show.start, &ns))
		ts_text_append_str(out, ts_format_instant_ns(text, sizeof(text), ns));
}

static void append_value(struct ts_text *out, const char *format, int64_t value)
{
	if (value == TS_ABSENT)
		return;
	ts_text_append_str(out, out->length ? " " : "");
	ts_text_append_str(out, format);
	ts_text_append_int(out, value);
}

static void append_dimensions(struct ts_text *out, const char *key, const int64_t *values)
{
	if (values[0] != TS_ABSENT)
		ts_text_printf(out, "%s%s=%" PRId64 "x%" PRId64 "x%" PRId64, out->length ? " " : "",
			       key, values[0], values[1], values[2]);
}

static void append_operands(struct ts_text *out, const struct ts_work *work,
			    const struct ts_command_entry *one)
{
	append_dimensions(out, "grid", one->grid);
	append_dimensions(out, "block", one->block);
	append_value(out, "registers=", one->registers);
	append_value(out, "shared_bytes=", one->shared_bytes);
	append_value(out, "bytes=", one->bytes);
	append_value(out, "event=", one->event);
	append_value(out, "on_stream=", stream_number(work, one->on_stream));
	append_value(out, "record_correlation=", one->record_correlation);
	append_value(out, "graph=", one->graph >= 0 ? one->graph : TS_ABSENT);
	append_value(out, "graph_node=", one->graph_node >= 0 ? one->graph_node : TS_ABSENT);
	append_value(out, "correlation=", one->correlation);
	if (one->flags & TS_COMMAND_ENTRY_MISSING)
		ts_text_append_str(out, out->length ? " missing" : "missing");
}

static void append_name(struct ts_text *out, const struct ts_view *view, const char *name,
			int64_t kind)
{
	size_t length = strlen(name);

	if (!view->show.short_names || kind != TS_COMMAND_LAUNCH)
		ts_text_append(out, name, length);
	else if (ts_text_reserve(out, length))
		out->length += ts_short_name(name, length, out->data + out->length);
}

static void append_cell(struct ts_view *view, const struct ts_work *work,
			const struct ts_command_entry *one, size_t column)
{
	struct ts_text *out = &view->cell;
	char buffer[TS_FORMAT_BYTES];

	switch (column) {
	case 0:
		append_where(out, work, one);
		break;
	case 1:
		if (one->sequence != TS_ABSENT)
			ts_text_append_int(out, one->sequence);
		break;
	case 2:
		append_time(out, view, one->issued);
		break;
	case 3:
		append_time(out, view, one->start);
		break;
	case 4:
		if (one->end != TS_ABSENT)
			ts_text_append_str(out, ts_format_duration_ns(buffer, sizeof(buffer),
								      one->end - one->start));
		break;
	case 5:
		ts_text_append_str(out, ts_enum_name("command_kind", one->kind));
		break;
	case 6:
		append_operands(out, work, one);
		break;
	default:
		append_name(out, view, ts_work_text(work, one->name), one->kind);
	}
}

static void print_text(struct ts_view *view, const struct ts_work *work,
		       const struct ts_command_entry *one)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(COLUMNS); i++) {
		ts_text_clear(&view->cell);
		append_cell(view, work, one, i);
		ts_text_table_cell(&view->grid, view->cell.data, view->cell.length);
	}
	ts_text_table_end_row(&view->grid);
}

/* ---- entry points ---- */

int ts_view_check_commands(const struct ts_view *view)
{
	const struct ts_filter_options *filters = &view->filters;
	const char *option = NULL;

	if (view->table_names.count)
		option = "table";
	else if (view->column_names.count)
		option = "columns";
	else if (view->args)
		option = "args";
	else if (strcmp(view->sort_text, "start") != 0)
		option = "sort";
	else if (filters->categories.count)
		option = "category";
	else if (filters->processes.count)
		option = "process";
	else if (filters->threads.count)
		option = "thread";
	if (option)
		return ts_report_usage("option '--%s' cannot be combined with '--commands'",
				       option);
	return TS_EXIT_DONE;
}

static int load(const struct ts_view *view, struct ts_work **ret_work, struct ts_error *err)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	TS_AUTO(ts_work) work = NULL;
	int rc;

	options.all = true;
	rc = ts_work_new(&work, &options, err);
	if (!rc)
		rc = ts_work_add(work, view->reader, err);
	if (!rc)
		rc = ts_work_finish(work, err);
	if (!rc)
		*ret_work = TS_STEAL(work);
	return rc;
}

static int show(struct ts_view *view, const struct ts_command_list *commands, struct ts_error *err)
{
	uint64_t limit = view->limit < 0 ? UINT64_MAX : (uint64_t)view->limit;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < commands->count && view->rows < limit; i++) {
		const struct ts_command_entry *one = &commands->list[i];

		if (!is_wanted(view, commands->work, one))
			continue;
		view->rows++;
		if (view->json)
			print_json(commands->work, one);
		else
			print_text(view, commands->work, one);
		rc = ts_stdout_drain(err);
	}
	return rc;
}

static int show_table(struct ts_view *view, const struct ts_command_list *commands,
		      struct ts_error *err)
{
	int rc, finished;

	if (view->json)
		return show(view, commands, err);
	ts_text_table_init(&view->grid);
	ts_text_init(&view->cell);
	for (size_t i = 0; i < TS_ARRAY_SIZE(COLUMNS); i++) {
		ts_text_table_add_column(&view->grid, COLUMNS[i].title, COLUMNS[i].right);
		ts_text_table_set_detail(&view->grid, COLUMNS[i].detail);
	}
	rc = show(view, commands, err);
	finished = ts_text_table_finish(&view->grid, rc ? NULL : err);
	ts_text_table_release(&view->grid);
	ts_text_release(&view->cell);
	return rc ? rc : finished;
}

int ts_view_commands(struct ts_view *view, struct ts_error *err)
{
	TS_AUTO(ts_command_list) commands = NULL;
	TS_AUTO(ts_work) work = NULL;
	int rc = load(view, &work, err);

	if (!rc)
		rc = ts_command_list_new(&commands, work, err);
	return rc ? rc : show_table(view, commands, err);
}
