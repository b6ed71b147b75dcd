/* SPDX-License-Identifier: Apache-2.0 */
/* Appends rows to finished traces; see trace_append.h. */
#include "cli/common/trace_append.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "sbt/sbt_layout.h"

TS_DEFINE_AUTO(ts_writer, ts_writer_close);

/* ---- can it be done? ---- */

static bool is_sbt(const char *path)
{
	TS_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	char magic[SBT_MAGIC_BYTES];

	return fd >= 0 && ts_read_some(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, SBT_FILE_MAGIC, sizeof(magic));
}

int ts_append_check(const char *path, const struct ts_reader *reader, const char *otherwise,
		    struct ts_error *err)
{
	const struct ts_reader_state *state = ts_reader_state(reader);

	if (!is_sbt(path))
		return ts_error_set(
			err, TS_EFORMAT,
			"'%s' is no trace that rows can be appended to: make one of it first "
			"(tracesmith import %s -o trace.sbt)%s",
			path, path, otherwise);
	if (!state->finished || state->damaged_bytes)
		return ts_error_set(err, TS_EFORMAT,
				    "trace '%s' was not finished or is damaged: recover it first "
				    "(tracesmith recover %s -o good.sbt)%s",
				    path, path, otherwise);
	return TS_OK;
}

/* ---- the file ---- */

/* What a writer may go on with: ids above all that chunks define. */
static void find_ids(const struct ts_reader *reader, struct ts_writer_ids *ret_ids)
{
	size_t count = ts_reader_chunk_count(reader);

	memset(ret_ids, 0, sizeof(*ret_ids));
	for (size_t i = 0; i < count; i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->table < TS_WRITER_ID_TABLES && chunk->first_id)
			ret_ids->next[chunk->table] =
				TS_MAX(ret_ids->next[chunk->table], chunk->first_id + chunk->rows);
	}
}

/* Where the index began when the reader was opened. */
static uint64_t end_of_chunks(const struct ts_reader *reader)
{
	size_t count = ts_reader_chunk_count(reader);
	const struct ts_chunk *last = count ? ts_reader_chunk(reader, count - 1) : NULL;

	return last ? last->offset + last->bytes : sizeof(struct sbt_file_header);
}

static int resume(struct ts_writer **ret_writer, const char *path, const struct ts_reader *reader,
		  bool is_locked, struct ts_error *err)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .flags = TS_WRITER_SYNC |
						      (is_locked ? TS_WRITER_LOCKED : 0u),
					     .trace_id = ts_reader_state(reader)->trace_id };
	struct ts_writer_ids ids;

	find_ids(reader, &ids);
	return ts_writer_resume(ret_writer, path, end_of_chunks(reader), &ids, &options, err);
}

/* A disk that has no room for the rows has room for the index, which stood there before. */
static void put_index_back(const char *path, const struct ts_reader *reader, bool is_locked)
{
	TS_AUTO(ts_writer) writer = NULL;

	if (!resume(&writer, path, reader, is_locked, NULL))
		ts_writer_finish(writer, NULL);
}

static int append(const char *path, const struct ts_reader *reader, bool is_locked,
		  void (*add)(void *context, struct ts_writer *writer), void *context,
		  struct ts_error *err)
{
	struct ts_writer *writer = NULL;
	int rc = resume(&writer, path, reader, is_locked, err);

	if (rc)
		return rc;
	add(context, writer);
	rc = ts_writer_finish(writer, err);
	ts_writer_close(writer);
	if (rc)
		put_index_back(path, reader, is_locked);
	return rc;
}

/*
 * Between the cut of the old index and the new one the trace counts as unfinished: nobody stops us
 * there.
 */
int ts_append_rows(const char *path, const struct ts_reader *reader, bool is_locked,
		   void (*add)(void *context, struct ts_writer *writer), void *context,
		   struct ts_error *err)
{
	sigset_t all, before;
	int rc;

	signal(SIGXFSZ, SIG_IGN); /* a limit of a file's size is an error like others */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	rc = append(path, reader, is_locked, add, context, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}
