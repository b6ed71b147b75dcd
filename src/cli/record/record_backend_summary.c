/* SPDX-License-Identifier: Apache-2.0 */
/* Lets each backend of a recording summarize its part of the finished trace. */
#include <stdio.h>
#include <string.h>

#include <tracesmith/reader.h>

#include "backends/recorder/backend_table.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "trace/trace_meta.h"
#include "trace/trace_totals.h"

struct summary {
	const struct ts_record *record;
	struct ts_reader *reader;
	struct ts_batch *batch;
	struct ts_text *json;
};

static uint64_t count_values(const struct ts_batch *batch, int column)
{
	const int64_t *values = batch->columns[column];
	uint64_t count = 0;

	for (uint32_t i = 0; i < batch->rows; i++)
		count += values[i] != 0 && values[i] != TS_ABSENT;
	return count;
}

/* Skips unreadable chunks: this is a summary. */
static uint64_t rows(void *context, const char *table_name, const char *column_name)
{
	struct summary *summary = context;
	int table = ts_table_by_name(table_name), column;
	uint64_t count = 0;

	if (table < 0)
		return 0;
	if (!column_name)
		return ts_reader_rows(summary->reader, (uint16_t)table);
	column = ts_column_by_name(ts_table_info((uint32_t)table), column_name);
	for (size_t i = 0; column >= 0 && i < ts_reader_chunk_count(summary->reader); i++) {
		if (ts_reader_chunk(summary->reader, i)->table == table &&
		    !ts_batch_read(summary->batch, i, UINT64_C(1) << column, NULL))
			count += count_values(summary->batch, column);
	}
	return count;
}

struct facts {
	void (*each)(void *user, const char *json);
	void *user;
};

static void on_fact(void *context, struct ts_string value)
{
	const struct facts *facts = context;

	facts->each(facts->user, value.data);
}

static void facts(void *context, const char *key, void (*each)(void *user, const char *json),
		  void *user)
{
	struct facts facts = { each, user };
	struct summary *summary = context;

	ts_trace_meta(summary->reader, key, on_fact, &facts);
}

/* Looks up a key in "key=value;key=value"; NULL if missing. Valid until the next call. */
static const char *setting(void *context, const char *key)
{
	static char value[256];
	const struct summary *summary = context;
	const char *at = summary->record->settings;
	size_t length = strlen(key);

	for (; *at; at += strcspn(at, ";"), at += *at == ';') {
		if (strncmp(at, key, length) != 0 || at[length] != '=')
			continue;
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(at + length + 1, ";"),
			 at + length + 1);
		return value;
	}
	return NULL;
}

static void note(void *context, const char *text)
{
	const struct summary *summary = context;

	if (!summary->record->quiet)
		ts_report_note("  %s", text);
}

static void warning(void *context, const char *text)
{
	(void)context;
	ts_report_warning("%s", text);
}

static void json(void *context, const char *key, const char *value)
{
	struct summary *summary = context;

	ts_text_append_char(summary->json, ',');
	ts_text_append_json(summary->json, key, strlen(key));
	ts_text_printf(summary->json, ":%s", value);
}

static void summarize_one(struct summary *summary, const struct ts_known_backend *known,
			  const struct ts_recorder_summary *recorded)
{
	const struct ts_record *record = summary->record;
	bool is_named = record->names_backends || !known->is_built_in;
	const struct ts_backend_recording recording = {
		.size = sizeof(recording),
		.flags = (record->quiet ? TS_BACKEND_QUIET : 0u) |
			 (record->json ? TS_BACKEND_JSON : 0u) |
			 (is_named ? TS_BACKEND_NAMED : 0u) |
			 (recorded->files <= 1 ? TS_BACKEND_ONE_FILE : 0u),
		.path = recorded->path,
		.context = summary,
		.rows = rows,
		.facts = facts,
		.setting = setting,
		.note = note,
		.warning = warning,
		.json = json,
	};

	if (known->backend.summarize && ts_record_runs_in_program(record, known->backend.name) &&
	    (record->command || !known->is_built_in))
		known->backend.summarize(&recording);
}

void ts_record_summarize_backends(const struct ts_record *record,
				  const struct ts_recorder_summary *recorded,
				  struct ts_text *ret_json)
{
	TS_AUTO(ts_reader) reader = NULL;
	TS_AUTO(ts_batch) batch = NULL;
	struct summary summary = { .record = record, .json = ret_json };
	const struct ts_known_backend *known;
	struct ts_error err;

	if (!record->launch.backends || !record->launch.backends[0] ||
	    ts_reader_open(&reader, recorded->path, &err) || ts_batch_new(&batch, reader, &err))
		return;
	summary.reader = reader;
	summary.batch = batch;
	for (size_t i = 0; (known = ts_backend_known(i)); i++)
		summarize_one(&summary, known, recorded);
}
