/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens recordings: new ones, and those that a dead recorder left (docs/live.md, sections 6 and
 * 8.2). The journal says what is valid, at whatever instant the recorder died.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/output.h"
#include "record/loop/counter_clock.h"
#include "record/recording/checkpoint_internal.h"
#include "sbt/recover.h"
#include "tracesmith_config.h"

#define DEFAULT_LIMIT ((uint64_t)64 << 20)
#define LEAST_LIMIT ((uint64_t)256 << 10)
/* Maximum rotations in a chain of journals; each hop deletes one journal. */
#define MAX_HOPS 64
/* How often to try for the lock while others only read the trace. */
#define SHARED_LOOKS 10

char *ts_recording_beside(const char *path, const char *ending)
{
	char *text;

	return asprintf(&text, "%s%s", path, ending) < 0 ? NULL : text;
}

int ts_recording_check_names(const char *path, struct ts_error *err)
{
	static const char *const endings[] = { "", ".journal", ".journal.new", ".reserve" };
	int result = TS_OK;

	for (size_t i = 0; i < TS_ARRAY_SIZE(endings) && !result; i++) {
		TS_AUTO_FREE char *name = ts_recording_beside(path, endings[i]);

		result = name ? ts_output_check(name, err)
			      : ts_error_set(err, TS_ENOMEM, "no memory");
	}
	return result;
}

void ts_recording_draw_id(uint8_t id[16])
{
	uint64_t weak[2] = { (uint64_t)time(NULL), (uint64_t)getpid() };

	if (getrandom(id, 16, 0) != 16)
		memcpy(id, weak, 16);
}

/* ---- the lock ---- */

/* The error for a locked trace, naming the holder if the journal does. */
static int held_by_other(const char *path, struct ts_error *err)
{
	struct ts_block_open open;

	if (!ts_journal_origin(path, &open))
		return ts_error_set(err, TS_EBUSY, "trace '%s': another process has locked it",
				    path);
	return ts_error_set(err, TS_EBUSY,
			    "trace '%s': another recorder is writing it (process %llu)", path,
			    (unsigned long long)open.recorder_pid);
}

int ts_recording_lock(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int looks = 0;

	for (;;) {
		TS_AUTO_FD int fd = -1;
		struct stat opened, current;
		int result = ts_output_open(path, TS_OUTPUT_READ | flags, &fd, err);

		if (result)
			return result;
		if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
			/* Who only looks whether it is being written has it for an instant. */
			if (++looks >= SHARED_LOOKS || flock(fd, LOCK_SH | LOCK_NB))
				return held_by_other(path, err);
			nanosleep(&pause, NULL);
			continue;
		}
		if (fstat(fd, &opened))
			return ts_error_errno(err, errno, "trace '%s'", path);
		if (!S_ISREG(opened.st_mode))
			return ts_error_set(err, TS_EINVAL, "'%s' is not a regular file", path);
		/* It may have been removed or replaced between open and lock. */
		if (lstat(path, &current) || opened.st_dev != current.st_dev ||
		    opened.st_ino != current.st_ino)
			continue;
		*ret_fd = fd;
		fd = -1;
		return TS_OK;
	}
}

/* ---- OPEN block ---- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Zeros if it cannot be read. */
static void read_boot_id(uint8_t id[16])
{
	TS_AUTO_FD int fd = ts_io_open("/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
	char text[64] = "";
	size_t digits = 0;

	memset(id, 0, 16);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 36)
		return;
	for (const char *p = text; *p && digits < 32; p++) {
		int digit = hex_digit(*p);

		if (digit < 0)
			continue;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
		digits++;
	}
}

static void describe_host(struct ts_block_open *open)
{
	struct utsname name;
	long processors = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	long page_bytes = sysconf(_SC_PAGESIZE);

	if (uname(&name) == 0) {
		snprintf(open->host, sizeof(open->host), "%.63s", name.nodename);
		snprintf(open->system, sizeof(open->system), "%.40s %.60s %.20s", name.sysname,
			 name.release, name.machine);
	}
	if (processors > 0)
		open->processors = (uint64_t)processors;
	if (pages > 0 && page_bytes > 0)
		open->memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
	read_boot_id(open->boot_id);
	snprintf(open->recorder, sizeof(open->recorder), "tracesmith %s", TS_VERSION_STRING);
	open->recorder_pid = (uint64_t)getpid();
}

void ts_recording_describe(struct ts_block_open *open, uint64_t session, bool redact)
{
	struct ts_block_clock start;
	struct ts_clocks clocks;

	ts_clocks_calibrate(&clocks);
	ts_clocks_anchor(&clocks, &start);
	*open = (struct ts_block_open){
		.version = TS_JOURNAL_VERSION,
		.session = session,
		.counter_mult = clocks.mult,
		.trace_start_ns = start.anchor.realtime_ns,
		.clock = (uint32_t)clocks.kind,
		.redact = redact,
		.started_counter = start.anchor.counter,
		.started_monotonic_ns = start.anchor.monotonic_ns,
	};
	ts_recording_draw_id(open->trace_id);
	describe_host(open);
	if (open->redact)
		memset(open->host, 0, sizeof(open->host));
}

/* ---- creating ---- */

/* Uses a temporary name until the OPEN block is written, so every journal begins with OPEN. */
static int create_journal(struct ts_recording *recording, struct ts_error *err)
{
	TS_AUTO_FREE char *temporary = ts_recording_beside(recording->journal_path, ".new");
	struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(recording->open) };
	int result;

	if (!temporary)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	result = ts_journal_create(&recording->journal, temporary, err);
	if (!result)
		result = ts_journal_append(recording->journal, &block, &recording->open, err);
	ts_crash_point("R0");
	if (!result)
		result = ts_journal_rename(recording->journal, recording->journal_path, err);
	if (result)
		unlink(temporary);
	return result;
}

static int open_new(struct ts_recording *recording, struct ts_error *err)
{
	ts_recording_describe(&recording->open, recording->options.session,
			      recording->options.flags & TS_RECORDING_REDACT);
	recording->open.rank = recording->options.rank;
	return create_journal(recording, err);
}

/* ---- resuming ---- */

static int check_boot(const struct ts_recording *recording, struct ts_error *err)
{
	uint8_t now[16];

	read_boot_id(now);
	if (recording->recovering || memcmp(now, recording->open.boot_id, sizeof(now)) == 0)
		return TS_OK;
	return ts_error_set(err, TS_EINVAL,
			    "journal '%s' is from before the last reboot: it cannot be "
			    "continued (use 'tracesmith recover')",
			    recording->journal_path);
}

/* Reads the OPEN block; *ret_state_end is where the blocks of a checkpoint end, 0: nowhere. */
static int take_origin(struct ts_recording *recording, uint64_t *offset, uint64_t *ret_state_end,
		       struct ts_error *err)
{
	struct ts_block block;
	int result = ts_journal_read(ts_journal_fd(recording->journal), offset, &block,
				     &recording->payload, err);

	if (result == TS_ENOTFOUND)
		return ts_error_set(err, TS_ENOTFOUND, "journal '%s' is empty",
				    recording->journal_path);
	if (result || block.type != TS_BLOCK_OPEN ||
	    !ts_journal_take_open(recording->payload.data, block.bytes, &recording->open))
		return result == TS_ENOMEM || result == TS_EIO
			       ? result
			       : ts_error_set(
					 err, TS_EFORMAT,
					 "the first block of journal '%s' is damaged: it cannot "
					 "be continued (use 'tracesmith recover')",
					 recording->journal_path);
	*ret_state_end = block.to;
	if (recording->open.version > TS_JOURNAL_VERSION)
		return ts_error_set(err, TS_EVERSION,
				    "journal '%s' has version %u, newer than this program, which "
				    "reads up to %u",
				    recording->journal_path, recording->open.version,
				    TS_JOURNAL_VERSION);
	return check_boot(recording, err);
}

static int refuse_damaged(const struct ts_recording *recording, struct ts_error *err)
{
	return ts_error_set(err, TS_EFORMAT,
			    "journal '%s' is damaged: it cannot be continued (use 'tracesmith "
			    "recover')",
			    recording->journal_path);
}

/* Reads positions and anchors; *ret_rotated is the path of a rotation, caller frees. */
static int take_blocks(struct ts_recording *recording, uint64_t offset, uint64_t state_end,
		       char **ret_rotated, struct ts_error *err)
{
	for (;;) {
		struct ts_block block;
		int result = ts_journal_read(ts_journal_fd(recording->journal), &offset, &block,
					     &recording->payload, err);

		if (result == TS_ENOTFOUND)
			return offset < state_end ? refuse_damaged(recording, err) : TS_OK;
		/* The decoder of a recovery counts the damage. */
		if (result == TS_EFORMAT && recording->recovering)
			continue;
		if (result)
			return result == TS_EFORMAT ? refuse_damaged(recording, err) : result;
		if (ts_recording_note(recording, &block, recording->payload.data))
			return ts_error_set(err, TS_ENOMEM, "no memory");
		if (block.type == TS_BLOCK_ROTATE && !*ret_rotated)
			*ret_rotated = strndup(recording->payload.data, block.bytes);
	}
}

/* Completes a rotation that was committed but perhaps not finished. */
static int follow_rotation(struct ts_recording *recording, const char *new_path,
			   struct ts_error *err)
{
	TS_AUTO_FREE char *journal = ts_recording_beside(new_path, ".journal");
	TS_AUTO_FREE char *temporary = ts_recording_beside(new_path, ".journal.new");

	if (!journal || !temporary)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (rename(temporary, journal) && errno != ENOENT)
		return ts_error_errno(err, errno, "cannot rename journal '%s'", temporary);
	if (access(journal, F_OK))
		return ts_error_errno(err, errno, "the recording continues in '%s', whose journal",
				      new_path);
	unlink(recording->journal_path);
	ts_recording_drop_reserve(recording);
	return TS_OK;
}

/* Refuses to continue a damaged trace: `recover` leaves out what is damaged, and says so. */
static int check_trace(const struct ts_recording *recording, struct ts_error *err)
{
	struct ts_error why;
	int result;

	/* A recovery has checked it. */
	if (recording->recovering || !recording->open.trace_bytes)
		return TS_OK;
	result = sbt_check_chunks(recording->path, recording->open.trace_bytes, &why);
	return result ? ts_error_set(err, result,
				     "%s: it cannot be continued (use 'tracesmith recover')",
				     why.message)
		      : TS_OK;
}

static int open_existing(struct ts_recording *recording, char **ret_rotated, struct ts_error *err)
{
	TS_AUTO_FREE char *temporary = ts_recording_beside(recording->journal_path, ".new");
	uint64_t offset = 0, state_end = 0;
	int result = ts_journal_resume(&recording->journal, recording->journal_path, err);

	if (!result)
		result = take_origin(recording, &offset, &state_end, err);
	if (!result)
		result = take_blocks(recording, offset, state_end, ret_rotated, err);
	if (!result && *ret_rotated)
		return follow_rotation(recording, *ret_rotated, err);
	if (!result)
		result = check_trace(recording, err);
	if (!result)
		result = ts_journal_trim(recording->journal, err);
	/* Left by an unfinished checkpoint. */
	if (!result && temporary)
		unlink(temporary);
	recording->held = true;
	return result;
}

/* ---- opening ---- */

static int set_paths(struct ts_recording *recording, const char *path, struct ts_error *err)
{
	recording->path = strdup(path);
	recording->journal_path = ts_recording_beside(path, ".journal");
	return recording->path && recording->journal_path
		       ? TS_OK
		       : ts_error_set(err, TS_ENOMEM, "no memory");
}

/* Checks that there is a journal to resume, before any file is created. */
static int find_journal(const struct ts_recording *recording, struct ts_error *err)
{
	if (access(recording->journal_path, F_OK))
		return ts_error_errno(err, errno, "cannot continue '%s': journal '%s'",
				      recording->path, recording->journal_path);
	return TS_OK;
}

static void set_limit(struct ts_recording *recording)
{
	uint64_t free_bytes = ts_recording_free_bytes(recording);

	recording->limit = recording->options.journal_limit;
	if (!recording->limit)
		recording->limit = TS_MAX(TS_MIN(DEFAULT_LIMIT, free_bytes / 16), LEAST_LIMIT);
}

static int open_files(struct ts_recording *recording, char **ret_rotated, struct ts_error *err)
{
	bool resume = recording->options.flags & TS_RECORDING_RESUME;
	bool is_continued = resume && !access(recording->path, F_OK);
	int result = resume ? find_journal(recording, err) : TS_OK;

	if (!result)
		result = ts_recording_check_names(recording->path, err);
	if (!result)
		result = ts_recording_lock(recording->path, is_continued ? TS_OUTPUT_EXISTING : 0,
					   &recording->lock_fd, err);
	if (!result)
		result = resume ? open_existing(recording, ret_rotated, err)
				: open_new(recording, err);
	if (result || *ret_rotated)
		return result;
	set_limit(recording);
	recording->origin = recording->open;
	result = ts_recording_reload(recording, err);
	if (!result) {
		ts_recording_make_reserve(recording);
		result = ts_recording_start(recording, err);
	}
	return result;
}

static int open_one(struct ts_recording **ret_recording, const char *path,
		    const struct ts_recording_options *options, bool recovering, char **ret_rotated,
		    struct ts_error *err)
{
	struct ts_recording *recording = calloc(1, sizeof(*recording));
	int result;

	if (!recording)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (options)
		recording->options = *options;
	recording->recovering = recovering;
	recording->lock_fd = -1;
	pthread_mutex_init(&recording->lock, NULL);
	pthread_cond_init(&recording->work, NULL);
	pthread_cond_init(&recording->done, NULL);
	result = set_paths(recording, path, err);
	if (!result)
		result = open_files(recording, ret_rotated, err);
	if (result || *ret_rotated)
		ts_recording_close(recording);
	else
		*ret_recording = recording;
	return result;
}

int ts_recording_open_any(struct ts_recording **ret_recording, const char *path,
			  const struct ts_recording_options *options, bool recovering,
			  struct ts_error *err)
{
	TS_AUTO_FREE char *at = NULL;
	int result = TS_OK;

	for (int hop = 0; hop < MAX_HOPS; hop++) {
		char *rotated = NULL;

		result =
			open_one(ret_recording, at ? at : path, options, recovering, &rotated, err);
		if (result || !rotated) {
			free(rotated);
			return result;
		}
		free(at);
		at = rotated;
	}
	return ts_error_set(err, TS_EFORMAT, "the journal of '%s' leads from file to file", path);
}

int ts_recording_open(struct ts_recording **ret_recording, const char *path,
		      const struct ts_recording_options *options, struct ts_error *err)
{
	if (!path || !*path || strcmp(path, "-") == 0)
		return ts_error_set(err, TS_EINVAL, "a recording needs a file name");
	return ts_recording_open_any(ret_recording, path, options, false, err);
}
