/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and reports what an import could not keep. */
#include "import/common/import_losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/import.h"

const struct ts_loss_kind ts_loss_rest = {
	.what = "file", .one = "unread rest of the file", .many = "", .is_rest = true
};

void ts_import_losses_add(struct ts_import_losses *losses, const struct ts_loss_kind *kind,
			  int64_t time, uint64_t count)
{
	struct ts_loss_count *entry = losses->list;

	while (entry < losses->list + losses->count && entry->kind != kind)
		entry++;
	if (entry == losses->list + TS_IMPORT_LOSSES_MAX)
		entry--;
	if (entry == losses->list + losses->count) {
		*entry = (struct ts_loss_count){ .kind = kind, .first = time };
		losses->count++;
	}
	entry->last = time;
	entry->count += count;
}

static void add_row(const struct ts_loss_count *entry, struct ts_import *import, int64_t source)
{
	struct ts_loss_row row = ts_loss_none;

	row.start = TS_MIN(entry->first, entry->last);
	if (__builtin_sub_overflow(TS_MAX(entry->first, entry->last), row.start, &row.duration))
		row.duration = INT64_MAX;
	row.source = source;
	row.what = ts_import_string(import, entry->kind->what, strlen(entry->kind->what));
	row.reason = ts_import_string(import, entry->kind->one, strlen(entry->kind->one));
	if (!entry->kind->is_rest)
		row.count = (int64_t)entry->count;
	ts_writer_add(import->writer, TS_TABLE_LOSS, &row, NULL);
}

static void add_cuts(struct ts_import_losses *losses, struct ts_import *import, int64_t time)
{
	static const struct ts_loss_kind stack = {
		.what = "stack",
		.one = "stack cut at 65,536 frames",
		.many = "stacks cut at 65,536 frames",
	};
	static const struct ts_loss_kind text = {
		.what = "text",
		.one = "long repetitive text cut",
		.many = "long repetitive texts cut",
	};
	struct ts_writer_cuts cuts;

	ts_writer_cuts(import->writer, &cuts);
	if (cuts.stacks > import->cuts.stacks)
		ts_import_losses_add(losses, &stack, time, cuts.stacks - import->cuts.stacks);
	if (cuts.texts > import->cuts.texts)
		ts_import_losses_add(losses, &text, time, cuts.texts - import->cuts.texts);
	import->cuts = cuts;
}

void ts_import_losses_write(struct ts_import_losses *losses, struct ts_import *import,
			    int64_t source, int64_t time)
{
	char *note = import->result.note;
	size_t size = sizeof(import->result.note), used = strlen(note);

	add_cuts(losses, import, time);
	for (size_t i = 0; i < losses->count; i++) {
		const struct ts_loss_count *entry = &losses->list[i];
		int written;

		add_row(entry, import, source);
		if (used >= size)
			continue;
		if (entry->kind->is_rest)
			written = snprintf(note + used, size - used, "%slost: the %s",
					   used ? ", " : "", entry->kind->one);
		else
			written =
				snprintf(note + used, size - used, "%s%" PRIu64 " %s",
					 used ? ", " : "lost: ", entry->count,
					 entry->count == 1 ? entry->kind->one : entry->kind->many);
		used += written > 0 ? (size_t)written : 0;
	}
}
