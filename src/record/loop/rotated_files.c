/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a rotation: their numbers, and which of them this recording wrote. Only those are
 * ever deleted; a name proves nothing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "record/loop/record_internal.h"
#include "trace/trace_meta.h"
#include "trace/trace_totals.h"

/* A greater number in a name is no number of ours, but a date or a time. */
#define NUMBER_GREATEST 9999999

/* ---- names ---- */

void ts_rotation_path(char *buffer, size_t bytes, const char *stem, uint32_t number,
		      const char *ending)
{
	snprintf(buffer, bytes, "%s.%04" PRIu32 "%s", stem, number, ending);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

uint32_t ts_rotation_number(const char *path, const char *stem, const char *ending)
{
	const char *name = last_part(path), *base = last_part(stem);
	size_t base_length = strlen(base), length = strlen(name), ending_length = strlen(ending);
	size_t digits;
	int64_t number;

	if (length < base_length + 1 + 4 + ending_length || strncmp(name, base, base_length) != 0 ||
	    name[base_length] != '.' || strcmp(name + length - ending_length, ending) != 0)
		return 0;
	digits = length - base_length - 1 - ending_length;
	if (strspn(name + base_length + 1, "0123456789") != digits ||
	    ts_parse_int64(name + base_length + 1, digits, &number))
		return 0;
	return number > 0 && number <= NUMBER_GREATEST ? (uint32_t)number : 0;
}

/* Calls `found` with the number of each file STEM.NNNN.ENDING. */
static void each_number(const char *stem, const char *ending,
			void (*found)(void *context, uint32_t number), void *context)
{
	char path[TS_PATH_BYTES];
	const struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "%.*s.", (int)(last_part(stem) - stem), stem);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		uint32_t number = ts_rotation_number(entry->d_name, stem, ending);

		if (number)
			found(context, number);
	}
	if (folder)
		closedir(folder);
}

static void keep_greatest(void *context, uint32_t number)
{
	uint32_t *greatest = context;

	*greatest = TS_MAX(*greatest, number);
}

uint32_t ts_rotation_greatest(const char *stem, const char *ending)
{
	uint32_t greatest = 0;

	each_number(stem, ending, keep_greatest, &greatest);
	return greatest;
}

/* ---- what was written ---- */

/* False: there is no regular file of that name. */
static bool identify(const char *stem, const char *ending, uint32_t number,
		     struct ts_rotated_file *ret_file, uint64_t *ret_bytes)
{
	char path[TS_PATH_BYTES];
	struct statx status;

	ts_rotation_path(path, sizeof(path), stem, number, ending);
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &status) ||
	    !S_ISREG(status.stx_mode))
		return false;
	*ret_file = (struct ts_rotated_file){ .number = number, .inode = status.stx_ino };
	if (status.stx_mask & STATX_BTIME)
		ret_file->created_ns = status.stx_btime.tv_sec * TS_NS_PER_S +
				       (int64_t)status.stx_btime.tv_nsec;
	*ret_bytes = status.stx_size;
	return true;
}

void ts_rotation_add(struct ts_rotation *rotation, const char *stem, const char *ending,
		     uint32_t number, uint64_t events)
{
	struct ts_rotated_file file;
	uint64_t bytes;

	/* A file that is not noted, for lack of memory, is not deleted. */
	if (identify(stem, ending, number, &file, &bytes) &&
	    !ts_grow_array((void **)&rotation->files, &rotation->capacity, rotation->count + 1,
			   sizeof(file))) {
		file.events = events;
		rotation->files[rotation->count++] = file;
	}
}

static void read_session(void *context, struct ts_string value)
{
	uint64_t *session = context;

	*session = strtoull(value.data, NULL, 10);
}

/* True if a recording of that session wrote the trace. */
static bool is_of_session(const char *path, uint64_t session)
{
	TS_AUTO(ts_reader) reader = NULL;
	uint64_t writer = 0;

	if (ts_reader_open(&reader, path, NULL))
		return false;
	ts_trace_meta(reader, "session", read_session, &writer);
	return writer && writer == session;
}

struct search {
	struct ts_rotation *rotation;
	const char *stem, *ending;
	uint32_t before;
	uint64_t session;
};

static void add_if_ours(void *context, uint32_t number)
{
	const struct search *search = context;
	char path[TS_PATH_BYTES];

	ts_rotation_path(path, sizeof(path), search->stem, number, search->ending);
	if (number < search->before && is_of_session(path, search->session))
		ts_rotation_add(search->rotation, search->stem, search->ending, number, 0);
}

static int compare_files(const void *a, const void *b)
{
	const struct ts_rotated_file *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

void ts_rotation_find(struct ts_rotation *rotation, const char *stem, const char *ending,
		      uint32_t before, uint64_t session)
{
	struct search search = { rotation, stem, ending, before, session };

	each_number(stem, ending, add_if_ours, &search);
	if (rotation->count)
		qsort(rotation->files, rotation->count, sizeof(*rotation->files), compare_files);
}

void ts_rotation_release(struct ts_rotation *rotation)
{
	free(rotation->files);
	*rotation = (struct ts_rotation){ .files = NULL };
}

/* ---- deleting ---- */

/* Forgets files that were removed or replaced meanwhile. Returns the bytes of the others. */
static uint64_t forget_others(struct ts_rotation *rotation, const char *stem, const char *ending)
{
	uint64_t bytes = 0;
	size_t kept = 0;

	for (size_t i = 0; i < rotation->count; i++) {
		struct ts_rotated_file file = rotation->files[i], now;
		uint64_t size;

		if (!identify(stem, ending, file.number, &now, &size) || now.inode != file.inode ||
		    now.created_ns != file.created_ns)
			continue;
		bytes += size;
		rotation->files[kept++] = file;
	}
	rotation->count = kept;
	return bytes;
}

uint64_t ts_rotation_expire(struct ts_rotation *rotation, const char *stem, const char *ending,
			    uint64_t current_bytes, unsigned int keep, uint64_t bytes)
{
	for (;;) {
		uint64_t total = forget_others(rotation, stem, ending) + current_bytes;
		bool too_many = keep && rotation->count + 1 > keep;
		char path[TS_PATH_BYTES];

		if (!rotation->count || (!too_many && (!bytes || total <= bytes)))
			return total;
		ts_rotation_path(path, sizeof(path), stem, rotation->files[0].number, ending);
		if (unlink(path))
			return total;
	}
}
