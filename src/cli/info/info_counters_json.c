/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith info --counters --json`. Members may be added, never renamed: scripts read them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/info/info_counters.h"
#include "trace/json_row.h"

#define POINTS 120

static const char *const subjects[] = {
	[TS_COUNTER_SYSTEM] = "system", [TS_COUNTER_PROCESS] = "process",
	[TS_COUNTER_DEVICE] = "device", [TS_COUNTER_PROCESS_ON_DEVICE] = "process_on_device",
	[TS_COUNTER_THREAD] = "thread",
};

static void append_text(const struct ts_counters *all, struct ts_text *out, const char *key,
			int64_t string)
{
	if (!string)
		return;
	ts_text_printf(out, "\"%s\":", key);
	ts_json_row_string(all->reader, out, string);
	ts_text_append_char(out, ',');
}

/* Names for the ids. */
static void append_names(const struct ts_counters *all, struct ts_text *out,
			 const struct ts_counter_row *row)
{
	const struct ts_process_row *process;
	const struct ts_device_row *device;
	const struct ts_thread_row *thread;
	int64_t process_id = row->process;

	thread = ts_reader_entity(all->reader, TS_TABLE_THREAD, row->thread);
	if (thread && !process_id)
		process_id = thread->process;
	process = ts_reader_entity(all->reader, TS_TABLE_PROCESS, process_id);
	device = ts_reader_entity(all->reader, TS_TABLE_DEVICE, row->device);
	if (process)
		append_text(all, out, "process_name", process->name);
	if (thread)
		append_text(all, out, "thread_name", thread->name);
	if (device) {
		append_text(all, out, "vendor", device->vendor);
		append_text(all, out, "model", device->name);
		append_text(all, out, "uuid", device->uuid);
	}
}

static void append_identity(const struct ts_counters *all, struct ts_text *out,
			    const struct ts_counter_series *series)
{
	const struct ts_counter *counter = &all->counters[series->counter];
	const struct ts_table_info *table = ts_table_info(TS_TABLE_COUNTER);
	const struct ts_row row = {
		.table = table,
		.columns = (const int64_t *)(const void *)&counter->row,
	};
	struct ts_string name = ts_reader_string(all->reader, counter->row.name);

	ts_text_printf(out, "{\"subject\":\"%s\",\"where\":", subjects[counter->subject]);
	ts_text_append_json(out, counter->where, strlen(counter->where));
	ts_text_append_char(out, ',');
	append_names(all, out, &counter->row);
	for (unsigned int i = 0; i < table->column_count; i++) {
		if (i != TS_COLUMN_OF(counter, start) && table->columns[i].type != TS_COLUMN_SHAPE)
			ts_show_json_column(&all->show, out, &row, i);
	}
	ts_text_append_str(out, "\"series\":");
	ts_json_row_string(all->reader, out, series->key);
	ts_text_printf(out, ",\"unit\":\"%s\",\"values\":%" PRIu64,
		       ts_counter_unit(name.data, name.length), series->values);
}

static void append_number(struct ts_text *out, const char *key,
			  const struct ts_counter_series *series, double real, int64_t integer)
{
	ts_text_printf(out, ",\"%s\":", key);
	if (series->is_real)
		ts_text_append_double(out, real);
	else
		ts_text_append_int(out, integer);
}

static void append_points(struct ts_text *out, const struct ts_counter_series *series)
{
	double points[POINTS];

	ts_resample_values(series->graph, points, POINTS);
	ts_text_append_str(out, ",\"points\":[");
	for (size_t i = 0; i < POINTS; i++) {
		if (i)
			ts_text_append_char(out, ',');
		if (isnan(points[i]))
			ts_text_append_str(out, "null");
		else
			ts_text_append_double(out, points[i]);
	}
	ts_text_append_char(out, ']');
}

static void append_series(const struct ts_counters *all, struct ts_text *out,
			  const struct ts_counter_series *series)
{
	append_identity(all, out, series);
	if (series->texts) {
		ts_text_printf(out, ",\"texts\":%" PRIu64 ",\"last_text\":", series->texts);
		ts_json_row_string(all->reader, out, series->newest_text);
	}
	if (series->not_drawn)
		ts_text_printf(out, ",\"not_drawn\":%" PRIu64, series->not_drawn);
	if (series->values) {
		ts_text_printf(out, ",\"first_ns\":%" PRId64 ",\"last_ns\":%" PRId64,
			       series->first_ns, series->last_ns);
		append_number(out, "min", series, series->least, series->least_integer);
		ts_text_append_str(out, ",\"mean\":");
		ts_text_append_double(out, ts_resample_mean(series->graph));
		append_number(out, "max", series, series->greatest, series->greatest_integer);
		append_number(out, "last", series, series->newest, series->newest_integer);
		append_points(out, series);
	}
	ts_text_append_char(out, '}');
}

int ts_counters_show_json(const struct ts_counters *all, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	int rc = TS_OK;

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, all->path, strlen(all->path));
	if (all->range.any)
		ts_text_printf(out, ",\"time_range_ns\":[%" PRId64 ",%" PRId64 "]", all->range.from,
			       all->range.to);
	else
		ts_text_append_str(out, ",\"time_range_ns\":null");
	ts_text_printf(out, ",\"rows\":%" PRIu64 ",\"left_out\":%" PRIu64 ",\"counters\":[",
		       all->rows, all->left_out);
	for (size_t i = 0; !rc && i < all->series_count; i++) {
		if (i)
			ts_text_append_char(out, ',');
		append_series(all, out, &all->series[i]);
		rc = ts_stdout_drain(err);
	}
	ts_text_append_str(out, "]}\n");
	return rc;
}
