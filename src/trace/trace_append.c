/* SPDX-License-Identifier: Apache-2.0 */
/* Appends rows to finished traces; see trace_append.h. */
#include "trace/trace_append.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "sbt/sbt_layout.h"

TS_DEFINE_AUTO(ts_writer, ts_writer_close);

bool ts_trace_is_sbt(const char *path)
{
	TS_AUTO_FD int fd = ts_io_open(path, O_RDONLY, 0);
	char magic[SBT_MAGIC_BYTES];

	return fd >= 0 && ts_read_some(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, SBT_FILE_MAGIC, sizeof(magic));
}

int ts_trace_append_check(const char *path, const struct ts_reader *reader, const char *otherwise,
			  struct ts_error *err)
{
	const struct ts_reader_state *state = ts_reader_state(reader);
	char quoted[TS_SHELL_BYTES];

	ts_shell_quote(quoted, path);
	if (!ts_trace_is_sbt(path))
		return ts_error_set(
			err, TS_EFORMAT,
			"'%s' is not an SBT trace, so rows cannot be appended: import it first "
			"(tracesmith import %s -o trace.sbt)%s",
			path, quoted, otherwise);
	if (!state->finished || state->damaged_bytes)
		return ts_error_set(err, TS_EFORMAT,
				    "trace '%s' is incomplete or damaged: recover it first "
				    "(tracesmith recover %s -o good.sbt)%s",
				    path, quoted, otherwise);
	return TS_OK;
}

/* ---- the file ---- */

/* The next free id of each table. */
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

/* Offset of the index. */
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

/* If the disk is too full for the rows, it still has space for the old index. */
static void restore_index(const char *path, const struct ts_reader *reader, bool is_locked)
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
		restore_index(path, reader, is_locked);
	return rc;
}

/*
 * Between truncating the old index and writing the new one the trace counts as unfinished, so
 * signals wait.
 */
int ts_trace_append_rows(const char *path, const struct ts_reader *reader, bool is_locked,
			 void (*add)(void *context, struct ts_writer *writer), void *context,
			 struct ts_error *err)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction file_size_action;
	sigset_t all, before;
	int rc;

	/* A file size limit is then an error of write(), like others. */
	sigaction(SIGXFSZ, &ignore, &file_size_action);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = append(path, reader, is_locked, add, context, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGXFSZ, &file_size_action, NULL);
	return rc;
}
