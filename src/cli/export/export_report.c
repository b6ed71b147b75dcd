/* SPDX-License-Identifier: Apache-2.0 */
/* See export_report.h. */
#include "cli/export/export_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/common/report.h"

/* The reason that exporters give for tables that their format cannot represent. */
#define NOT_REPRESENTABLE "no place"

void ts_export_losses_add(struct ts_export_losses *losses, const char *table, uint64_t rows,
			  const char *reason)
{
	struct ts_export_loss loss;

	for (size_t i = 0; i < losses->count; i++) {
		struct ts_export_loss *known = &losses->items[i];

		if (!strcmp(known->table, table) && !strcmp(known->reason, reason)) {
			known->rows += rows;
			return;
		}
	}
	loss = (struct ts_export_loss){ strdup(table), strdup(reason), rows };
	if (!loss.table || !loss.reason ||
	    ts_grow_array((void **)&losses->items, &losses->capacity, losses->count + 1,
			  sizeof(*losses->items))) {
		free(loss.table);
		free(loss.reason);
		return;
	}
	losses->items[losses->count++] = loss;
}

void ts_export_losses_release(struct ts_export_losses *losses)
{
	for (size_t i = 0; i < losses->count; i++) {
		free(losses->items[i].table);
		free(losses->items[i].reason);
	}
	free(losses->items);
}

void ts_export_summary_release(struct ts_export_summary *summary)
{
	ts_text_release(&summary->names);
	ts_export_losses_release(&summary->losses);
}

void ts_export_report_output(const struct ts_export_summary *summary)
{
	char bytes[TS_FORMAT_BYTES], files[TS_FORMAT_BYTES];

	ts_format_bytes(bytes, sizeof(bytes), summary->bytes);
	ts_format_count(files, sizeof(files), (int64_t)summary->files);
	if (summary->names.length)
		ts_report_note("%s: %s, %s files, %s in %.3f s", summary->output, summary->format,
			       files, bytes, summary->seconds);
	else if (summary->has_bytes)
		ts_report_note("%s: %s, %s in %.3f s", summary->output, summary->format, bytes,
			       summary->seconds);
	else
		ts_report_note("%s: %s in %.3f s", summary->output, summary->format,
			       summary->seconds);
}

/* Has an earlier one the same reason? */
static bool is_reported(const struct ts_export_losses *losses, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (!strcmp(losses->items[i].reason, losses->items[at].reason))
			return true;
	return false;
}

static void report_reason(const struct ts_export_summary *summary, const char *reason)
{
	const struct ts_export_losses *losses = &summary->losses;
	TS_SCOPED(ts_text) line = { 0 };
	char count[TS_FORMAT_BYTES];
	uint64_t rows = 0;
	bool any = false;

	if (!strcmp(reason, NOT_REPRESENTABLE))
		ts_text_printf(&line,
			       "not exported, since %s cannot represent them:", summary->format);
	else
		ts_text_printf(&line, "not exported (%s):", reason);
	for (size_t i = 0; i < losses->count; i++) {
		if (strcmp(losses->items[i].reason, reason) != 0)
			continue;
		ts_text_printf(
			&line, "%s %s %s", any ? "," : "",
			ts_format_count(count, sizeof(count), (int64_t)losses->items[i].rows),
			losses->items[i].table);
		rows += losses->items[i].rows;
		any = true;
	}
	ts_report_note("%s %s", ts_text_cstr(&line), rows == 1 ? "row" : "rows");
}

void ts_export_report_losses(const struct ts_export_summary *summary)
{
	for (size_t i = 0; i < summary->losses.count; i++)
		if (!is_reported(&summary->losses, i))
			report_reason(summary, summary->losses.items[i].reason);
}

void ts_export_show_json(const struct ts_export_summary *summary)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, summary->output, strlen(summary->output));
	ts_text_printf(out, ",\"format\":\"%s\",\"bytes\":", summary->format);
	if (summary->has_bytes)
		ts_text_append_uint(out, summary->bytes);
	else
		ts_text_append_str(out, "null");
	ts_text_append_str(out, ",\"seconds\":");
	ts_text_append_double(out, summary->seconds);
	if (summary->names.length) {
		ts_text_append_str(out, ",\"files\":[");
		ts_text_append(out, summary->names.data, summary->names.length);
		ts_text_append_char(out, ']');
	}
	ts_text_append_str(out, ",\"left_out\":[");
	for (size_t i = 0; i < summary->losses.count; i++) {
		const struct ts_export_loss *loss = &summary->losses.items[i];

		ts_text_append_str(out, i ? ",{\"table\":" : "{\"table\":");
		ts_text_append_json(out, loss->table, strlen(loss->table));
		ts_text_printf(out, ",\"rows\":%" PRIu64 ",\"reason\":", loss->rows);
		ts_text_append_json(out, loss->reason, strlen(loss->reason));
		ts_text_append_char(out, '}');
	}
	ts_text_append_str(out, "]}\n");
}
