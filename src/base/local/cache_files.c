/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small results that are kept between runs of programs. This runs inside programs: no signal may
 * result from a write (a limit on file sizes), no thread may be canceled here, and links, foreign
 * and damaged files count as missing.
 */
#include "base/local/cache_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/local/hash.h"

#define NAME_DIGITS 32u
#define NEW_PREFIX ".new-" /* of a file that is being written */
#define NEW_DIGITS 16u
#define MOST_LISTED 4096u /* files of a directory that are looked at when it is too full */

static const uint64_t magic = 0x3145484341435354u; /* "TSCACHE1" */

/* A file begins with this; the content follows. */
struct header {
	uint64_t magic;
	struct ts_cache_key key;
	uint64_t bytes; /* of the content */
	uint64_t hash;  /* of the content */
};

/* ---- directory ---- */

static int join_path(char *to, size_t size, const char *first, const char *second,
		     const char *third)
{
	int length = snprintf(to, size, "%s%s/%s", first, second, third);

	return length > 0 && (size_t)length < size ? 0 : -1;
}

void ts_cache_locate(const char *name, char *to, size_t size)
{
	const char *given = secure_getenv("TRACESMITH_CACHE_DIR");
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	int rc = -1;

	if (given)
		rc = given[0] == '/' ? join_path(to, size, given, "", name) : -1;
	else if (cache && cache[0] == '/')
		rc = join_path(to, size, cache, "/tracesmith", name);
	else if (home && home[0] == '/')
		rc = join_path(to, size, home, "/.cache/tracesmith", name);
	if (rc)
		to[0] = 0;
}

/* Is it this user's, and nobody else's to change? */
static bool is_ours(const struct stat *status)
{
	return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static int open_directory(const char *path)
{
	struct stat status;
	int fd = path[0] ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd >= 0 && (fstat(fd, &status) || !is_ours(&status))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* And those above it, but not the home directory of ~/.cache/tracesmith/NAME. */
static void create_directory(const char *path, int levels)
{
	char above[4096];
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (mkdir(path, 0700) == 0 || errno != ENOENT || levels == 0 || length == 0 ||
	    length >= sizeof(above))
		return;
	memcpy(above, path, length);
	above[length] = 0;
	create_directory(above, levels - 1);
	mkdir(path, 0700);
}

static void entry_name(char name[NAME_DIGITS + 1], struct ts_cache_key key)
{
	snprintf(name, NAME_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, key.halves[0], key.halves[1]);
}

/* ---- files ---- */

static void *read_entry(int fd, struct ts_cache_key key, size_t *ret_bytes)
{
	struct stat status;
	struct header header;
	void *content;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !is_ours(&status) ||
	    read(fd, &header, sizeof(header)) != sizeof(header) || header.magic != magic ||
	    memcmp(&header.key, &key, sizeof(key)) != 0 || header.bytes > TS_CACHE_ENTRY_BYTES ||
	    (uint64_t)status.st_size != sizeof(header) + header.bytes)
		return NULL;
	content = malloc(header.bytes + 1);
	if (!content || read(fd, content, header.bytes) != (ssize_t)header.bytes ||
	    ts_hash64(content, header.bytes) != header.hash) {
		free(content);
		return NULL;
	}
	*ret_bytes = header.bytes;
	return content;
}

/* A program may be canceled, or look at errno, around any call that leads here. */
struct guard {
	int cancel_state, error;
};

static struct guard enter(void)
{
	struct guard guard = { .error = errno };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard.cancel_state);
	return guard;
}

static void leave(struct guard guard)
{
	pthread_setcancelstate(guard.cancel_state, NULL);
	errno = guard.error;
}

void *ts_cache_load(const char *directory, struct ts_cache_key key, size_t *ret_bytes)
{
	struct guard guard = enter();
	int folder = open_directory(directory), fd = -1;
	void *content = NULL;
	char name[NAME_DIGITS + 1];

	entry_name(name, key);
	if (folder >= 0)
		fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		content = read_entry(fd, key, ret_bytes);
		/* What is used stays: the oldest are deleted first. */
		if (content)
			futimens(fd, NULL);
		close(fd);
	}
	if (folder >= 0)
		close(folder);
	leave(guard);
	return content;
}

/* ---- size limit ---- */

struct listed {
	char name[NAME_DIGITS + 1]; /* the longest that is_entry() accepts */
	struct timespec used;
};

static bool is_number(const char *text, size_t digits)
{
	return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

/* Only what is written here: the directory may have been given by mistake. */
static bool is_entry(const char *name)
{
	size_t prefix = sizeof(NEW_PREFIX) - 1;

	if (strncmp(name, NEW_PREFIX, prefix) == 0)
		return is_number(name + prefix, NEW_DIGITS);
	return is_number(name, NAME_DIGITS);
}

static int compare_ages(const void *a, const void *b)
{
	const struct timespec *x = &((const struct listed *)a)->used;
	const struct timespec *y = &((const struct listed *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static uint32_t list_entries(int folder, struct listed *list)
{
	/* A description of its own, with its own position. */
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	uint32_t count = 0;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	/* Nobody else reads this stream. */
	while (count < MOST_LISTED &&
	       (entry = readdir(stream))) { /* NOLINT(concurrency-mt-unsafe) */
		struct stat status;

		if (!is_entry(entry->d_name) ||
		    fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		snprintf(list[count].name, sizeof(list[count].name), "%s", entry->d_name);
		list[count++].used = status.st_mtim;
	}
	closedir(stream);
	return count;
}

/* Down to three quarters, so that not every new entry has to list all. */
static void prune(int folder)
{
	struct listed *list = malloc(MOST_LISTED * sizeof(*list));
	uint32_t count = list ? list_entries(folder, list) : 0;

	if (count > TS_CACHE_FILES) {
		qsort(list, count, sizeof(*list), compare_ages);
		for (uint32_t i = 0; i < count - TS_CACHE_FILES / 4 * 3; i++)
			unlinkat(folder, list[i].name, 0);
	}
	free(list);
}

/* ---- storing ---- */

static bool fits_limit(size_t bytes)
{
	struct rlimit limit;

	/* Beyond the limit a write sends SIGXFSZ. */
	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

/*
 * Under a random name first: a process that was killed here may have left a file, and the pids of
 * containers are often the same.
 */
static void write_entry(int folder, const struct header *header, const void *content)
{
	const struct iovec parts[] = { { (void *)(uintptr_t)header, sizeof(*header) },
				       { (void *)(uintptr_t)content, header->bytes } };
	char name[NAME_DIGITS + 1], fresh[sizeof(NEW_PREFIX) + NEW_DIGITS];
	uint64_t random;
	bool is_written;
	int fd;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return;
	entry_name(name, header->key);
	snprintf(fresh, sizeof(fresh), NEW_PREFIX "%016" PRIx64, random);
	fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	is_written = writev(fd, parts, 2) == (ssize_t)(sizeof(*header) + header->bytes);
	if (close(fd) || !is_written || renameat(folder, fresh, folder, name))
		unlinkat(folder, fresh, 0);
}

void ts_cache_store(const char *directory, struct ts_cache_key key, const void *content,
		    size_t bytes)
{
	struct header header = {
		.magic = magic,
		.key = key,
		.bytes = bytes,
		.hash = ts_hash64(content, bytes),
	};
	struct guard guard;
	int folder;

	if (!directory[0] || bytes > TS_CACHE_ENTRY_BYTES || !fits_limit(sizeof(header) + bytes))
		return;
	guard = enter();
	folder = open_directory(directory);
	if (folder < 0) {
		create_directory(directory, 2);
		folder = open_directory(directory);
	}
	if (folder >= 0) {
		write_entry(folder, &header, content);
		prune(folder);
		close(folder);
	}
	leave(guard);
}
