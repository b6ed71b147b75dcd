/* SPDX-License-Identifier: Apache-2.0 */
/* A child of fork() can use readers, whatever other threads were doing with them. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "sbt/reader_internal.h"
#include "unit/runner.h"
#include "unit/temporary.h"

static struct ts_reader *write_text(int64_t *ret_id)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_mark_row row = ts_mark_none;
	struct ts_writer *writer;
	struct ts_reader *reader;
	struct ts_error err;
	char path[64];

	temporary_path(path);
	TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), 0);
	row.start = 1;
	*ret_id = row.name = ts_writer_string(writer, "tick", 4);
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_MARK, &row, NULL), 0);
	TS_CHECK_INT(ts_writer_finish(writer, &err), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	unlink(path);
	return reader;
}

struct loading {
	struct ts_reader *reader;
	pthread_barrier_t begun;
};

/* Loads something for a while. */
static void *load(void *context)
{
	const struct timespec while_forking = { .tv_nsec = 20000000 };
	struct loading *loading = context;

	pthread_mutex_lock(&loading->reader->lock);
	pthread_barrier_wait(&loading->begun);
	nanosleep(&while_forking, NULL);
	pthread_mutex_unlock(&loading->reader->lock);
	return NULL;
}

TS_TEST(child_while_a_thread_loads)
{
	int64_t id;
	struct loading loading = { .reader = write_text(&id) };
	struct ts_reader *closed = write_text(&id), *other = write_text(&id);
	pthread_t thread;
	int status = -1;
	pid_t child;

	ts_reader_close(closed);
	pthread_barrier_init(&loading.begun, NULL, 2);
	TS_CHECK_INT(pthread_create(&thread, NULL, load, &loading), 0);
	pthread_barrier_wait(&loading.begun);
	child = fork();
	if (!child) {
		alarm(60);
		TS_CHECK_STR(ts_reader_string(loading.reader, id).data, "tick");
		TS_CHECK_STR(ts_reader_string(other, id).data, "tick");
		ts_reader_close(loading.reader);
		ts_reader_close(other);
		_exit(0);
	}
	TS_CHECK(child > 0 && waitpid(child, &status, 0) == child);
	TS_CHECK_INT(status, 0);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	TS_CHECK_STR(ts_reader_string(loading.reader, id).data, "tick");
	pthread_barrier_destroy(&loading.begun);
	ts_reader_close(loading.reader);
	ts_reader_close(other);
}
