/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith info --json`. Members may be added, never renamed: scripts read them. */
#include <inttypes.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/info/info.h"
#include "trace/json_row.h"

static void append_tables(struct ts_text *out, const struct ts_info *info, bool bytes)
{
	const char *comma = "";

	ts_text_append_str(out, bytes ? ",\"table_bytes\":{" : ",\"tables\":{");
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_info_table *table = &info->tables[id];
		const struct ts_table_info *known = ts_table_info(id);

		if (!known || table->chunks == 0 || known->kind == TS_KIND_INTERNAL)
			continue;
		ts_text_printf(out, "%s\"%s\":%" PRIu64, comma, known->name,
			       bytes ? table->bytes : table->rows);
		comma = ",";
	}
	ts_text_append_char(out, '}');
}

/* Removes the comma after the last member and closes the object. */
static void close_object(struct ts_text *out)
{
	if (out->length && out->data[out->length - 1] == ',')
		out->length--;
	ts_text_append_char(out, '}');
}

struct losses {
	const struct ts_info *info;
	uint64_t count;
};

static int append_loss(void *context, const struct ts_row *row)
{
	struct losses *losses = context;
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, losses->count++ ? ",{" : "{");
	ts_show_json_members(&losses->info->show, out, row);
	close_object(out);
	return TS_OK;
}

/* Members of an object: keys of one source on which sources differ, or keys on which all agree. */
static void append_meta(struct ts_text *out, const struct ts_info *info,
			const struct ts_meta_list *list, bool differing, int64_t source)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct ts_meta *meta = &list->items[i];

		if (meta->differs != differing ||
		    (differing ? meta->source != source : meta->repeats))
			continue;
		ts_json_row_string(info->show.reader, out, meta->key);
		ts_text_append_char(out, ':');
		ts_json_row_raw(info->show.reader, out, meta->value);
		ts_text_append_char(out, ',');
	}
}

static void append_sources(struct ts_text *out, const struct ts_info *info,
			   const struct ts_meta_list *meta)
{
	struct ts_row row = { .table = ts_table_info(TS_TABLE_SOURCE) };
	const char *comma = "";
	size_t cursor = 0;
	int64_t id;

	ts_text_append_str(out, ",\"sources\":[");
	while ((row.columns = ts_reader_entity_next(info->reader, TS_TABLE_SOURCE, &cursor, &id))) {
		ts_text_printf(out, "%s{", comma);
		ts_show_json_members(&info->show, out, &row);
		ts_text_append_str(out, "\"meta\":{");
		append_meta(out, info, meta, true, id);
		close_object(out);
		ts_text_append_char(out, '}');
		comma = ",";
	}
	ts_text_append_char(out, ']');
}

/* Metadata of processes: [{"pid": 100, "key": ..., "value": ...}]. */
static void append_process_meta(struct ts_text *out, const struct ts_info *info,
				const struct ts_meta_list *list)
{
	ts_text_append_str(out, ",\"process_meta\":[");
	for (size_t i = 0; i < list->count; i++) {
		const struct ts_process_row *process =
			ts_reader_entity(info->reader, TS_TABLE_PROCESS, list->items[i].process);

		ts_text_printf(out, "%s{\"process\":%" PRId64 ",", i ? "," : "",
			       list->items[i].process);
		if (process && process->pid != TS_ABSENT)
			ts_text_printf(out, "\"pid\":%" PRId64 ",", process->pid);
		ts_text_append_str(out, "\"key\":");
		ts_json_row_string(info->reader, out, list->items[i].key);
		ts_text_append_str(out, ",\"value\":");
		ts_json_row_raw(info->reader, out, list->items[i].value);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
}

static void append_state(struct ts_text *out, const struct ts_info *info)
{
	const struct ts_reader_state *state = info->state;

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, info->path, strlen(info->path));
	if (info->imported) {
		ts_text_printf(out, ",\"bytes\":%" PRIu64, info->bytes);
	} else {
		ts_text_printf(
			out,
			",\"version\":\"%u.%u\",\"bytes\":%" PRIu64 ",\"finished\":%s"
			",\"damaged_bytes\":%" PRIu64 ",\"created_ns\":%" PRId64 ",\"trace_id\":\"",
			state->major, state->minor, info->bytes,
			state->finished && !info->pid && info->writer.writing == TS_TRACE_AT_REST
				? "true"
				: "false",
			state->damaged_bytes, state->created_ns);
		for (size_t i = 0; i < sizeof(state->trace_id); i++)
			ts_text_printf(out, "%02x", state->trace_id[i]);
		ts_text_append_char(out, '"');
	}
	ts_text_printf(out, ",\"events\":%" PRIu64 ",\"chunks\":%zu", info->totals.events,
		       ts_reader_chunk_count(info->reader));
}

static void append_counts(struct ts_text *out, const struct ts_info *info)
{
	append_tables(out, info, false);
	append_tables(out, info, true);
	if (info->range.any)
		ts_text_printf(out, ",\"time_range_ns\":[%" PRId64 ",%" PRId64 "]",
			       info->range.from, info->range.to);
	else
		ts_text_append_str(out, ",\"time_range_ns\":null");
	ts_text_printf(out,
		       ",\"processes\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"devices\":%" PRIu64
		       ",\"streams\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"unknown_losses\":%" PRIu64,
		       info->totals.processes, info->totals.threads, info->totals.devices,
		       info->totals.streams, info->totals.lost.events, info->totals.lost.unknown);
}

int ts_info_show_json(const struct ts_info *info, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	struct ts_meta_list meta = { 0 }, of_processes = { 0 };
	struct losses losses = { info, 0 };
	size_t begin = out->length;
	int rc;

	append_state(out, info);
	append_counts(out, info);
	ts_text_append_str(out, ",\"loss\":[");
	rc = ts_info_visit(info, TS_TABLE_LOSS, append_loss, &losses, err);
	if (!rc)
		rc = ts_meta_collect(info, false, &meta, err);
	if (!rc)
		rc = ts_meta_collect(info, true, &of_processes, err);
	if (rc) {
		ts_meta_list_release(&meta);
		out->length = begin;
		return rc;
	}
	ts_text_append_str(out, "],\"meta\":{");
	append_meta(out, info, &meta, false, 0);
	close_object(out);
	append_process_meta(out, info, &of_processes);
	append_sources(out, info, &meta);
	if (info->replay) {
		ts_text_append_str(out, ",\"replay\":");
		ts_replay_facts_json(info->replay, out);
	}
	ts_text_append_str(out, "}\n");
	ts_meta_list_release(&meta);
	ts_meta_list_release(&of_processes);
	return TS_OK;
}
