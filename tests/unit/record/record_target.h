/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the recorder: a handmade target. The area belongs to the test process (or to a child
 * that only sleeps) and has one ring, which the test writes like an agent (docs/live.md). Live
 * directory and output are in the test's own folder.
 */
#ifndef TS_TESTS_UNIT_RECORD_RECORD_TARGET_H
#define TS_TESTS_UNIT_RECORD_RECORD_TARGET_H

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/clock.h"
#include "live/discover.h"
#include "live/local/counter.h"
#include "live/local/live_records.h"
#include "record/loop/recorder.h"

#include "unit/runner.h"

#define RING_BYTES (256u << 10)
#define SESSION UINT64_C(0x1234)

struct fake {
	char *memory;
	struct ts_live_control *control;
	struct ts_live_ring *ring;
	char path[256];
	uint64_t emitted, dropped;
};

static char test_folder[64];

static inline int remove_entry(const char *path, const struct stat *status, int kind,
			       struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static inline void remove_folder(void)
{
	nftw(test_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* A folder with live/ for areas; removed by remove_folder(). */
static inline void make_folder(void)
{
	char live[128];

	snprintf(test_folder, sizeof(test_folder), "/tmp/tracesmith-record-XXXXXX");
	TS_CHECK(mkdtemp(test_folder));
	snprintf(live, sizeof(live), "%s/live", test_folder);
	TS_CHECK(!mkdir(live, 0700));
	setenv("TRACESMITH_LIVE_DIR", live, 1);
}

static inline const char *in_folder(const char *name)
{
	static char path[4][256];
	static unsigned int next;
	char *buffer = path[next++ % 4];

	snprintf(buffer, sizeof(path[0]), "%s/%s", test_folder, name);
	return buffer;
}

static inline void write_file(const char *name, size_t bytes)
{
	FILE *file = fopen(in_folder(name), "w");

	TS_CHECK(file);
	for (size_t i = 0; i < bytes; i++)
		fputc('x', file);
	fclose(file);
}

static inline bool exists(const char *name)
{
	return !access(in_folder(name), F_OK);
}

/* ---- the area ---- */

static inline void commit(struct fake *fake, const void *record, size_t bytes)
{
	struct ts_live_ring *ring = fake->ring;
	uint64_t at = ring->head % RING_BYTES;

	/* Most tests do not wrap; long ones fill up with a PAD. */
	if (at + bytes > RING_BYTES) {
		struct ts_live_record pad = { .words = (uint16_t)((RING_BYTES - at) / 8),
					      .kind = TS_LIVE_PAD };

		memcpy(fake->memory + ring->offset + at, &pad, sizeof(pad));
		__atomic_store_n(&ring->head, ring->head + (RING_BYTES - at), __ATOMIC_RELEASE);
		at = 0;
	}
	memcpy(fake->memory + ring->offset + at, record, bytes);
	__atomic_store_n(&ring->head, ring->head + bytes, __ATOMIC_RELEASE);
}

static inline void fill_control(struct fake *fake, pid_t pid, uint64_t session, uint64_t area_id)
{
	struct ts_live_control *control = fake->control;
	int64_t uncertainty;

	memcpy(control->magic, TS_LIVE_MAGIC, 8);
	control->version = TS_LIVE_VERSION;
	control->control_bytes = TS_LIVE_CONTROL_BYTES;
	control->pid_namespace = ts_process_namespace(getpid());
	control->pid = (uint32_t)pid;
	control->uid = (uint32_t)getuid();
	control->start_time = ts_process_start_time(pid);
	control->area_id = area_id;
	control->image = 77;
	control->session = session;
	control->clock = ts_counter_kind();
	control->created = ts_counter_anchor(ts_counter_kind(), &uncertainty);
	control->latest = control->created;
	control->ring_limit = TS_LIVE_RING_LIMIT;
	control->ring_bytes = TS_LIVE_ENTRY_BYTES;
	control->directory = TS_LIVE_DIRECTORY;
	control->dictionary = TS_LIVE_DICTIONARY;
	control->pool = TS_LIVE_POOL;
	control->budget = 32u << 20;
	control->rings = 1;
	control->target_state = TS_LIVE_RUNNING;
	control->step = INT64_MIN;
	control->step_open = control->step_close = INT64_MIN;
	control->mode = session ? TS_LIVE_STREAM : TS_LIVE_FLIGHT;
	snprintf(control->name, sizeof(control->name), "fake");
}

static inline void fill_ring(struct fake *fake, uint32_t tid)
{
	struct ts_live_thread_record thread = { .head = { .words = sizeof(thread) / 8,
							  .kind = TS_LIVE_THREAD },
						.counter = ts_counter_read(ts_counter_kind()),
						.tid = tid,
						.serial = 1,
						.name = "main" };

	fake->ring->offset = TS_LIVE_POOL;
	fake->ring->bytes = RING_BYTES;
	fake->ring->state = TS_LIVE_RING_OWNED;
	fake->ring->tid = tid;
	fake->ring->slot_0 = (struct ts_live_oldest){ .tid = 0 };
	fake->ring->consumed_check = ts_live_consumed_check(0, 0, 0, 0);
	commit(fake, &thread, sizeof(thread));
}

/* An area of a process, under its final name. */
static inline void make_area(struct fake *fake, pid_t pid, uint64_t session, uint64_t area_id,
			     bool enabled)
{
	size_t bytes = TS_LIVE_POOL + RING_BYTES;
	char unfinished[280];
	int fd;

	memset(fake, 0, sizeof(*fake));
	snprintf(fake->path, sizeof(fake->path), "%s/%d-%llu-%016llx",
		 getenv("TRACESMITH_LIVE_DIR"), (int)pid,
		 (unsigned long long)ts_process_start_time(pid), (unsigned long long)area_id);
	snprintf(unfinished, sizeof(unfinished), "%s.new", fake->path);
	fd = open(unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TS_CHECK(fd >= 0);
	TS_CHECK(!ftruncate(fd, (off_t)bytes));
	fake->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TS_CHECK(fake->memory != MAP_FAILED);
	close(fd);
	fake->control = (struct ts_live_control *)(void *)fake->memory;
	fake->ring = (struct ts_live_ring *)(void *)(fake->memory + TS_LIVE_DIRECTORY);
	fill_control(fake, pid, session, area_id);
	fill_ring(fake, (uint32_t)pid);
	fake->control->enabled = enabled;
	TS_CHECK(!rename(unfinished, fake->path));
}

static inline void free_area(struct fake *fake)
{
	munmap(fake->memory, TS_LIVE_POOL + RING_BYTES);
}

static inline bool is_on(const struct fake *fake)
{
	return __atomic_load_n(&fake->control->enabled, __ATOMIC_ACQUIRE) & TS_LIVE_ENABLED;
}

/*
 * Instants named "e", as an agent emits them: only while it is enabled, and dropped if the ring is
 * full.
 */
static inline void emit(struct fake *fake, unsigned int count)
{
	struct {
		struct ts_live_record head;
		uint64_t counter;
		uint32_t name_length;
		char name[4];
		uint64_t category, arguments;
	} event = { .head = { .words = 5, .kind = TS_LIVE_INSTANT },
		    .name_length = 1,
		    .name = "e" };

	for (; count && is_on(fake); count--) {
		uint64_t used = fake->ring->head -
				__atomic_load_n(&fake->ring->consumed, __ATOMIC_ACQUIRE);

		event.counter = ts_counter_read(ts_counter_kind());
		if (used + 2 * sizeof(event) > RING_BYTES) {
			fake->dropped++;
			__atomic_store_n(&fake->ring->dropped, fake->dropped, __ATOMIC_RELEASE);
			continue;
		}
		commit(fake, &event, sizeof(event));
		fake->emitted++;
	}
}

/* ---- a process that only waits ---- */

/* As another user, if we are root. */
static inline pid_t start_sleeper_of(uid_t user)
{
	int ready[2];
	pid_t pid;
	char byte;

	TS_CHECK(!pipe(ready));
	pid = fork();
	TS_CHECK(pid >= 0);
	if (pid) {
		close(ready[1]);
		TS_CHECK_INT(read(ready[0], &byte, 1), 1);
		close(ready[0]);
		return pid;
	}
	if (setuid(user))
		_exit(1);
	/* Not even a failing test leaves it behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static inline pid_t start_sleeper(void)
{
	return start_sleeper_of(getuid());
}

static inline void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- the recorder ---- */

static char last_note[512];

static inline void keep_note(void *context, const char *message)
{
	(void)context;
	snprintf(last_note, sizeof(last_note), "%s", message);
}

static inline struct ts_recorder_options plain_options(const char *name)
{
	static char output[256];

	snprintf(output, sizeof(output), "%s", in_folder(name));
	return (struct ts_recorder_options){ .output = output,
					     .session = SESSION,
					     .note = keep_note };
}

static inline struct ts_recorder *open_recorder(const struct ts_recorder_options *options)
{
	struct ts_recorder *recorder;
	struct ts_error err;

	if (ts_recorder_open(&recorder, options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return recorder;
}

/* One pass; true when the recorder is done. */
static inline bool pass(struct ts_recorder *recorder)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct ts_error err;
	int64_t wait_ns;
	bool done;

	if (ts_recorder_pass(recorder, &wait_ns, &done, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK(wait_ns >= 0 && wait_ns <= 1000000000);
	nanosleep(&pause, NULL);
	return done;
}

static inline void passes(struct ts_recorder *recorder, unsigned int count)
{
	while (count--)
		pass(recorder);
}

static inline struct ts_recorder_summary finish_recorder(struct ts_recorder *recorder)
{
	struct ts_recorder_summary summary = { 0 };
	struct ts_error err;

	if (ts_recorder_finish(recorder, &summary, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_recorder_close(recorder);
	return summary;
}

/* ---- the trace ---- */

static inline struct ts_reader *open_trace(const char *name)
{
	struct ts_reader *reader;
	struct ts_error err;

	if (ts_reader_open(&reader, in_folder(name), &err))
		ts_test_fail(__FILE__, __LINE__, "%s: %s", name, err.message);
	TS_CHECK(ts_reader_state(reader)->finished);
	return reader;
}

/* Rows of a table of a finished trace. */
static inline uint64_t rows_of(const char *name, enum ts_table_id table)
{
	struct ts_reader *reader = open_trace(name);
	uint64_t rows = ts_reader_rows(reader, table);

	ts_reader_close(reader);
	return rows;
}

/* Instants are rows of `mark`. */
static inline uint64_t events_of(const char *name)
{
	return rows_of(name, TS_TABLE_MARK);
}

#endif
