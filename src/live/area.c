/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live area read from outside: opens it, reads its control block, writes the fields that belong
 * to recorders. Validates every number before others see it.
 */
#include "live/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/area_internal.h"

/* Start of the fields that both sides may write. */
#define SHARED_FROM offsetof(struct ts_live_control, enabled)
#define SHARED_TO offsetof(struct ts_live_control, name)

ssize_t live_read(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got =
			pread(fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	/* The target writes while we read: the order of reads is part of the protocol. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return (ssize_t)done;
}

/* ---- the control block ---- */

static void end_texts(struct ts_live_control *control)
{
	control->name[sizeof(control->name) - 1] = '\0';
	control->output[sizeof(control->output) - 1] = '\0';
	control->command[sizeof(control->command) - 1] = '\0';
	control->message[sizeof(control->message) - 1] = '\0';
	control->notice[sizeof(control->notice) - 1] = '\0';
}

static bool has_our_layout(const struct ts_live_control *control)
{
	return control->control_bytes == TS_LIVE_CONTROL_BYTES &&
	       control->ring_bytes == TS_LIVE_ENTRY_BYTES &&
	       control->directory == TS_LIVE_DIRECTORY && ts_live_dictionary_bytes(control);
}

static const char *control_fault(const struct ts_live_control *control)
{
	if (!has_our_layout(control))
		return "its sections are not where this layout has them";
	if (control->area_id == 0 || control->pid == 0 || control->pid > INT32_MAX)
		return "it has no process id";
	if (control->clock != TS_LIVE_CLOCK_COUNTER && control->clock != TS_LIVE_CLOCK_MONOTONIC)
		return "its clock is unknown";
	if (control->ring_limit > TS_LIVE_RING_LIMIT || control->rings > control->ring_limit)
		return "it has too many rings";
	if (control->dictionary_used > ts_live_dictionary_bytes(control) ||
	    control->dictionary_used % 8)
		return "its dictionary has a bad size";
	return NULL;
}

/* Recorders write only what the owner of the live directory made there, not what is linked. */
static bool is_of_directory(int directory_fd, const struct stat *status)
{
	struct stat directory;

	return !fstat(directory_fd, &directory) && directory.st_uid == status->st_uid;
}

static int check_control(struct ts_live_control *control, const char *name, struct ts_error *err)
{
	const char *fault;

	if (memcmp(control->magic, TS_LIVE_MAGIC, sizeof(control->magic)) != 0)
		return ts_error_set(err, TS_EFORMAT, "area '%s': not a live area", name);
	if (control->version > TS_LIVE_VERSION)
		return ts_error_set(err, TS_EVERSION,
				    "area '%s': layout %u is newer than this program, which reads "
				    "up to %u (use a newer tracesmith)",
				    name, control->version, TS_LIVE_VERSION);
	fault = control->version == 0 ? "its version is 0" : control_fault(control);
	if (fault)
		return ts_error_set(err, TS_EFORMAT, "area '%s': damaged: %s", name, fault);
	end_texts(control);
	return TS_OK;
}

int live_read_control(int directory_fd, const char *name, int open_flags, int *ret_fd,
		      struct ts_live_control *ret_control, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;
	ssize_t got;
	int result;

	/* O_NONBLOCK: opening a pipe of that name must not block. */
	fd = openat(directory_fd, name, open_flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status))
		return ts_error_errno(err, errno, "cannot open area '%s'", name);
	if (!S_ISREG(status.st_mode))
		return ts_error_set(err, TS_EFORMAT, "area '%s': not a regular file", name);
	if ((open_flags & O_ACCMODE) != O_RDONLY && !is_of_directory(directory_fd, &status))
		return ts_error_set(err, TS_EFORMAT,
				    "area '%s': it belongs to another user than its directory",
				    name);
	got = live_read(fd, ret_control, sizeof(*ret_control), 0);
	if (got < 0)
		return ts_error_errno(err, errno, "area '%s': cannot read", name);
	if (got < (ssize_t)sizeof(*ret_control))
		return ts_error_set(err, TS_EFORMAT, "area '%s': damaged: cut at byte %zd", name,
				    got);
	result = check_control(ret_control, name, err);
	if (result)
		return result;
	*ret_fd = fd;
	fd = -1;
	return TS_OK;
}

int ts_area_open(struct ts_area **ret_area, int directory_fd, const char *name, bool writable,
		 struct ts_error *err)
{
	TS_AUTO(ts_area) area = NULL;
	int result;

	if (strlen(name) >= AREA_NAME_BYTES || strchr(name, '/'))
		return ts_error_set(err, TS_EINVAL, "area '%s': not the name of a live area", name);
	area = calloc(1, sizeof(*area));
	if (!area)
		return ts_error_set(err, TS_ENOMEM, "area '%s': no memory", name);
	area->fd = -1;
	area->writable = writable;
	memcpy(area->name, name, strlen(name) + 1);
	result = live_read_control(directory_fd, name, writable ? O_RDWR : O_RDONLY, &area->fd,
				   &area->control, err);
	if (result)
		return result;
	*ret_area = TS_STEAL(area);
	return TS_OK;
}

void ts_area_close(struct ts_area *area)
{
	if (!area)
		return;
	if (area->fd >= 0)
		close(area->fd);
	free(area->directory);
	free(area->rings);
	free(area->stack);
	free(area->buffer);
	free(area);
}

int live_condemn_area(struct ts_area *area, struct ts_error *err, const char *format, ...)
{
	va_list args;

	if (!area->damaged) {
		va_start(args, format);
		vsnprintf(area->damage, sizeof(area->damage), format, args);
		va_end(args);
	}
	area->damaged = true;
	return ts_error_set(err, TS_EFORMAT, "area '%s': damaged: %s", area->name, area->damage);
}

/* Compares fields that never change: all before `latest`, and from ring_limit to budget. */
static bool is_same_area(const struct ts_live_control *a, const struct ts_live_control *b)
{
	const size_t until = offsetof(struct ts_live_control, latest);
	const size_t from = offsetof(struct ts_live_control, ring_limit);
	const size_t to = offsetof(struct ts_live_control, reserved_0);

	return memcmp(a, b, until) == 0 &&
	       memcmp((const char *)a + from, (const char *)b + from, to - from) == 0;
}

int ts_area_refresh(struct ts_area *area, struct ts_error *err)
{
	struct ts_live_control control;
	const char *fault;
	ssize_t got;

	if (area->damaged)
		return live_condemn_area(area, err, "%s", area->damage);
	got = live_read(area->fd, &control, sizeof(control), 0);
	if (got < 0)
		return ts_error_errno(err, errno, "area '%s': cannot read", area->name);
	if (got < (ssize_t)sizeof(control))
		return live_condemn_area(area, err, "cut at byte %zd", got);
	if (!is_same_area(&area->control, &control))
		return live_condemn_area(area, err, "its control block changed");
	fault = control_fault(&control);
	if (fault)
		return live_condemn_area(area, err, "%s", fault);
	if (control.rings < area->control.rings ||
	    control.dictionary_used < area->control.dictionary_used)
		return live_condemn_area(area, err, "its counts went backwards");
	/* The target is changing it right now. */
	if (control.latest.counter == 0)
		control.latest = area->control.latest;
	end_texts(&control);
	area->control = control;
	return TS_OK;
}

const struct ts_live_control *ts_area_control(const struct ts_area *area)
{
	return &area->control;
}

const char *ts_area_name(const struct ts_area *area)
{
	return area->name;
}

const char *ts_area_damage(const struct ts_area *area)
{
	return area->damaged ? area->damage : NULL;
}

/* ---- writing ---- */

int ts_area_lock(struct ts_area *area, struct ts_error *err)
{
	if (area->locked)
		return TS_OK;
	if (flock(area->fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return ts_error_errno(err, errno, "area '%s': cannot lock", area->name);
		return ts_error_set(err, TS_EIO,
				    "area '%s': another recorder drains it (process %llu)",
				    area->name, (unsigned long long)area->control.recorder_pid);
	}
	area->locked = true;
	return TS_OK;
}

int ts_area_set(struct ts_area *area, size_t offset, uint64_t value, unsigned int bytes,
		struct ts_error *err)
{
	/* Only one byte of `enabled` ever changes, since the target writes it, too. */
	size_t written = offset == offsetof(struct ts_live_control, enabled) ? 1 : bytes;
	ssize_t done;

	if ((bytes != 4 && bytes != 8) || offset % bytes || offset < SHARED_FROM ||
	    offset > SHARED_TO - bytes)
		return ts_error_set(
			err, TS_EINVAL,
			"area '%s': not a field that the recorder may write, at byte %zu",
			area->name, offset);
	if (!area->writable)
		return ts_error_set(err, TS_EINVAL, "area '%s': opened for reading only",
				    area->name);
	do {
		done = pwrite(area->fd, &value, written, (off_t)offset);
	} while (done < 0 && errno == EINTR);
	if (done < 0)
		return ts_error_errno(err, errno, "area '%s': cannot write", area->name);
	memcpy((char *)&area->control + offset, &value, written);
	return TS_OK;
}

void ts_area_notify(struct ts_area *area, const char *text)
{
	char notice[sizeof(area->control.notice)] = "";

	strncpy(notice, text, sizeof(notice) - 1);
	/* If it cannot be written, the target is gone. */
	if (area->writable &&
	    pwrite(area->fd, notice, sizeof(notice), offsetof(struct ts_live_control, notice)) > 0)
		memcpy(area->control.notice, notice, sizeof(notice));
}

/* ---- memory ---- */

static int grow_rings_memory(struct ts_area *area, uint32_t count)
{
	size_t capacity = TS_MAX((size_t)count, (size_t)area->ring_capacity * 2);
	void *directory, *rings, *stack;

	directory = realloc(area->directory, capacity * sizeof(*area->directory));
	if (!directory)
		return TS_ENOMEM;
	area->directory = directory;
	rings = realloc(area->rings, capacity * sizeof(*area->rings));
	if (!rings)
		return TS_ENOMEM;
	area->rings = rings;
	stack = realloc(area->stack, capacity * sizeof(*area->stack));
	if (!stack)
		return TS_ENOMEM;
	area->stack = stack;
	area->ring_capacity = (uint32_t)capacity;
	return TS_OK;
}

int live_grow_rings(struct ts_area *area, uint32_t count, struct ts_error *err)
{
	if (count > area->ring_capacity && grow_rings_memory(area, count))
		return ts_error_set(err, TS_ENOMEM, "area '%s': no memory for %u rings", area->name,
				    count);
	for (uint32_t i = area->ring_count; i < count; i++) {
		area->directory[i] = (struct ts_live_ring){ .head = 0 };
		area->rings[i] =
			(struct ring){ .piece = RING_PIECE_BYTES, .passed_over = UINT64_MAX };
	}
	area->ring_count = TS_MAX(area->ring_count, count);
	return TS_OK;
}

int live_grow_buffer(struct ts_area *area, size_t bytes, struct ts_error *err)
{
	size_t capacity = 64 * 1024;

	if (bytes <= area->buffer_bytes)
		return TS_OK;
	while (capacity < bytes)
		capacity *= 2;
	/* The content need not be kept. */
	free(area->buffer);
	area->buffer_bytes = 0;
	area->buffer = malloc(sizeof(struct ts_live_thread_record) + capacity);
	if (!area->buffer)
		return ts_error_set(err, TS_ENOMEM, "area '%s': no memory", area->name);
	area->buffer_bytes = capacity;
	return TS_OK;
}

/* ---- resuming ---- */

void ts_area_resume_dictionary(struct ts_area *area, uint64_t position)
{
	area->dictionary_position = position;
}

void ts_area_resume_ring(struct ts_area *area, uint32_t index, uint64_t position, uint64_t events,
			 uint64_t dropped)
{
	struct ring *ring;

	if (index >= TS_LIVE_RING_LIMIT || live_grow_rings(area, index + 1, NULL)) {
		area->resume_failed = true;
		return;
	}
	ring = &area->rings[index];
	ring->flags = RING_RESUMED;
	ring->position = position;
	ring->events = ring->reported_events = events;
	ring->dropped = ring->reported_dropped = dropped;
}
