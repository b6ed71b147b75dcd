/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trace for each rank of a job that one recorder has recorded: its launcher was started by
 * `tracesmith record`, and the output is named after the rank (docs/ranks.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/local/path_pattern.h"
#include "base/output.h"
#include "record/loop/record_internal.h"
#include "trace/extract.h"
#include "trace/trace_totals.h"

struct ts_rank ts_ranks_choose(const struct ts_recorder *recorder, const struct ts_rank *rank)
{
	if (rank->launcher && ts_rank_equals(rank, &recorder->options.outer_rank))
		return (struct ts_rank){ 0 };
	return *rank;
}

/* ---- which ranks ---- */

struct ranks {
	struct ts_recorder_rank *files;
	int64_t *sources;
	size_t count, capacity, source_capacity;
};

static void release(struct ranks *ranks)
{
	free(ranks->files);
	free(ranks->sources);
}

static int add_rank(struct ranks *ranks, int64_t id, const struct ts_source_row *source)
{
	if (ts_grow_array((void **)&ranks->files, &ranks->capacity, ranks->count + 1,
			  sizeof(*ranks->files)) ||
	    ts_grow_array((void **)&ranks->sources, &ranks->source_capacity, ranks->count + 1,
			  sizeof(*ranks->sources)))
		return TS_ENOMEM;
	ranks->files[ranks->count] =
		(struct ts_recorder_rank){ .rank = source->rank, .world_size = source->world_size };
	ranks->sources[ranks->count++] = id;
	return TS_OK;
}

/* The sources with a rank, in the order of their ranks. */
static int find_ranks(struct ranks *ranks, const char *trace, struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	const struct ts_source_row *source;
	int rc = ts_reader_open(&reader, trace, err);
	size_t cursor = 0;
	int64_t id;

	if (rc)
		return rc;
	while ((source = ts_reader_entity_next(reader, TS_TABLE_SOURCE, &cursor, &id)))
		if (source->rank != TS_ABSENT && add_rank(ranks, id, source))
			return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 1; i < ranks->count; i++)
		for (size_t k = i; k && ranks->files[k].rank < ranks->files[k - 1].rank; k--) {
			struct ts_recorder_rank file = ranks->files[k];
			int64_t of_file = ranks->sources[k];

			ranks->files[k] = ranks->files[k - 1];
			ranks->sources[k] = ranks->sources[k - 1];
			ranks->files[k - 1] = file;
			ranks->sources[k - 1] = of_file;
		}
	return TS_OK;
}

/* ---- their traces ---- */

static int name_file(const struct ts_recorder *recorder, struct ts_recorder_rank *file,
		     struct ts_error *err)
{
	char number[24], why[TS_PATH_WHY_BYTES];
	const struct ts_path_values values = { .rank = number, .pid = recorder->self };

	snprintf(number, sizeof(number), "%lld", (long long)file->rank);
	if (ts_path_expand(recorder->options.rank_pattern, &values, file->path,
			   sizeof(file->path) - 16, why, sizeof(why)))
		return ts_output_make_parents(file->path, err);
	return ts_error_set(err, TS_EINVAL, "output '%s': %s", recorder->options.rank_pattern, why);
}

/* Two launchers may have started ranks of the same number. */
static int check_names(const struct ranks *ranks, struct ts_error *err)
{
	for (size_t i = 1; i < ranks->count; i++)
		if (strcmp(ranks->files[i].path, ranks->files[i - 1].path) == 0)
			return ts_error_set(err, TS_EINVAL,
					    "several jobs with a rank %lld were recorded",
					    (long long)ranks->files[i].rank);
	return TS_OK;
}

/* An existing file is replaced if it is a trace, or a text that was exported. */
static int check_replaced(const struct ts_recorder *recorder, const char *path,
			  struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	int rc = ts_output_check(path, err);

	if (rc || recorder->saves.exporter || access(path, F_OK))
		return rc;
	if (ts_reader_open(&reader, path, NULL))
		return ts_error_set(err, TS_EINVAL, "'%s' is not a trace and is not replaced",
				    path);
	return TS_OK;
}

static int complete(struct ts_recorder *recorder, const char *part, const char *path,
		    struct ts_error *err)
{
	int rc;

	if (!recorder->saves.exporter) {
		rc = ts_output_rename(part, path, err);
		if (!rc)
			ts_recorder_completed(recorder, path);
		return rc;
	}
	rc = ts_saves_export_text(recorder, part, path, err);
	unlink(part);
	return rc;
}

static int write_file(struct ts_recorder *recorder, struct ts_recorder_rank *file, int64_t source,
		      struct ts_error *err)
{
	const char *slash = strrchr(file->path, '/');
	const struct ts_extract_filter filter = { .pid = TS_ABSENT,
						  .source = source,
						  .source_name = slash ? slash + 1 : file->path,
						  .from_ns = INT64_MIN,
						  .to_ns = INT64_MAX,
						  .commands = true };
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_trace_totals totals = { 0 };
	char part[sizeof(file->path) + 16];
	int rc = check_replaced(recorder, file->path, err);

	if (rc)
		return rc;
	/* Differs from the temporary name of the text export. */
	snprintf(part, sizeof(part), "%s%s.part", file->path,
		 recorder->saves.exporter ? ".sbt" : "");
	rc = ts_extract(recorder->saves.trace_path, part, &filter, err);
	if (rc)
		return rc;
	if (!ts_reader_open(&reader, part, NULL) && !ts_trace_totals(reader, &totals, NULL)) {
		file->events = totals.events;
		file->lost = totals.lost.events;
		file->unknown_losses = totals.lost.unknown;
	}
	rc = complete(recorder, part, file->path, err);
	if (rc)
		unlink(part);
	return rc;
}

static int write_files(struct ts_recorder *recorder, struct ranks *ranks, struct ts_error *err)
{
	int rc = TS_OK;

	for (size_t i = 0; i < ranks->count && !rc; i++)
		rc = name_file(recorder, &ranks->files[i], err);
	if (!rc)
		rc = check_names(ranks, err);
	if (!rc && ranks->count && recorder->saves.exporter && recorder->options.before_text)
		recorder->options.before_text(recorder->options.context,
					      recorder->saves.trace_path);
	for (size_t i = 0; i < ranks->count && !rc; i++)
		rc = write_file(recorder, &ranks->files[i], ranks->sources[i], err);
	return rc;
}

int ts_ranks_split(struct ts_recorder *recorder, bool *ret_done, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	struct ranks ranks = { 0 };
	struct ts_error why = { 0 };
	int rc = find_ranks(&ranks, saves->trace_path, &why);

	*ret_done = false;
	saves->ranks = ranks.count;
	if (!rc && ranks.count && recorder->options.rank_pattern)
		rc = write_files(recorder, &ranks, &why);
	if (rc == TS_ENOMEM) {
		release(&ranks);
		return ts_error_set(err, rc, "%s", why.message);
	}
	if (rc)
		snprintf(saves->not_split, sizeof(saves->not_split), "%.255s", why.message);
	*ret_done = !rc && ranks.count && recorder->options.rank_pattern;
	if (*ret_done) {
		unlink(saves->trace_path);
		saves->rank_files = TS_STEAL(ranks.files);
	}
	release(&ranks);
	return TS_OK;
}
