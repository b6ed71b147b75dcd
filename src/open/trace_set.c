/* SPDX-License-Identifier: Apache-2.0 */
/* Several traces as one set; see trace_open.h. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/memory.h"
#include "open/trace_open.h"
#include "trace/trace_totals.h"

int ts_trace_set_find_duplicate(char *const *paths, size_t count)
{
	struct ts_pairmap files;
	int duplicate = -1;

	ts_pairmap_init(&files);
	for (size_t i = 0; i < count && duplicate < 0; i++) {
		struct stat status;
		bool is_new = true;

		if (!stat(paths[i], &status))
			ts_pairmap_insert(&files, status.st_dev, status.st_ino, &is_new);
		if (!is_new)
			duplicate = (int)i;
	}
	ts_pairmap_release(&files);
	return duplicate;
}

int ts_trace_set_open(struct ts_trace_set *set, char *const *paths, size_t count,
		      const struct ts_open_options *options, struct ts_error *err)
{
	int rc = TS_OK;

	*set = (struct ts_trace_set){ .start = INT64_MAX };
	set->readers = calloc(count ? count : 1, sizeof(struct ts_reader *));
	if (!set->readers)
		return ts_error_set(err, TS_ENOMEM, "no memory to open %zu traces", count);
	for (size_t i = 0; i < count && !rc; i++) {
		struct ts_reader *reader;

		rc = ts_trace_open(&reader, paths[i], options, err);
		if (rc)
			break;
		set->readers[set->count++] = reader;
		set->start = TS_MIN(set->start, ts_trace_start(reader));
	}
	if (rc)
		ts_trace_set_close(set);
	return rc;
}

void ts_trace_set_close(struct ts_trace_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		ts_reader_close(set->readers[i]);
	free(set->readers);
	*set = (struct ts_trace_set){ 0 };
}
