/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of sources of device metrics: a sink that keeps what it is given, and files to read. */
#ifndef TS_TESTS_UNIT_SAMPLE_METRICS_GPU_SUPPORT_H
#define TS_TESTS_UNIT_SAMPLE_METRICS_GPU_SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/metrics.h>

#include "unit/runner.h"

/* ---- the sink ---- */

enum { MAX_GIVEN = 4096, MAX_MESSAGES = 256, MAX_DEVICES = 64 };

struct given {
	struct ts_metrics_subject subject;
	char name[48], series[48];
	double value;
};

struct collected {
	struct ts_metrics_sink sink;
	struct given given[MAX_GIVEN];
	unsigned int count;
	char messages[MAX_MESSAGES][256];
	unsigned int message_count;
	struct ts_metrics_device devices[MAX_DEVICES];
	char texts[MAX_DEVICES][4][96]; /* vendor, model, uuid, bus */
	unsigned int device_count;
};

static inline void collect_device(void *context, const struct ts_metrics_device *device)
{
	struct collected *all = context;
	unsigned int at = all->device_count++;

	TS_CHECK(at < MAX_DEVICES);
	all->devices[at] = *device;
	snprintf(all->texts[at][0], sizeof(all->texts[at][0]), "%s", device->vendor);
	snprintf(all->texts[at][1], sizeof(all->texts[at][1]), "%s", device->model);
	snprintf(all->texts[at][2], sizeof(all->texts[at][2]), "%s", device->uuid);
	snprintf(all->texts[at][3], sizeof(all->texts[at][3]), "%s", device->bus);
}

static inline void collect_real(void *context, const struct ts_metrics_subject *subject,
				const char *name, const char *series, double value)
{
	struct collected *all = context;
	struct given *given = &all->given[all->count++];

	TS_CHECK(all->count <= MAX_GIVEN);
	given->subject = *subject;
	snprintf(given->name, sizeof(given->name), "%s", name);
	snprintf(given->series, sizeof(given->series), "%s", series);
	given->value = value;
}

static inline void collect_integer(void *context, const struct ts_metrics_subject *subject,
				   const char *name, const char *series, int64_t value)
{
	collect_real(context, subject, name, series, (double)value);
}

static inline void collect_message(void *context, const char *text)
{
	struct collected *all = context;

	TS_CHECK(all->message_count < MAX_MESSAGES);
	snprintf(all->messages[all->message_count++], 256, "%s", text);
}

/* Starts over. */
static inline void collected_init(struct collected *all)
{
	memset(all, 0, sizeof(*all));
	all->sink = (struct ts_metrics_sink){
		.size = sizeof(all->sink),
		.context = all,
		.device = collect_device,
		.real = collect_real,
		.integer = collect_integer,
		.message = collect_message,
	};
}

/* The last value of a device, or of a process on it if `pid` is not 0; NULL: absent. */
static inline const struct given *given_of(const struct collected *all, uint32_t device,
					   int32_t pid, const char *name, const char *series)
{
	const struct given *found = NULL;

	for (unsigned int i = 0; i < all->count; i++) {
		const struct given *given = &all->given[i];

		if (given->subject.device == device && given->subject.pid == pid &&
		    given->subject.kind ==
			    (pid ? TS_METRICS_PROCESS_ON_DEVICE : TS_METRICS_DEVICE) &&
		    strcmp(given->name, name) == 0 && strcmp(given->series, series) == 0)
			found = given;
	}
	return found;
}

#define CHECK_GIVEN(all, device, name, series, expected) \
	check_given(__FILE__, __LINE__, all, device, 0, name, series, expected)
#define CHECK_OF_PROCESS(all, device, pid, name, series, expected) \
	check_given(__FILE__, __LINE__, all, device, pid, name, series, expected)
#define CHECK_ABSENT(all, device, name, series)                                                 \
	do {                                                                                    \
		if (given_of(all, device, 0, name, series))                                     \
			ts_test_fail(__FILE__, __LINE__, "%s of %s is given: %g", series, name, \
				     given_of(all, device, 0, name, series)->value);            \
	} while (0)

static inline void check_given(const char *file, int line, const struct collected *all,
			       uint32_t device, int32_t pid, const char *name, const char *series,
			       double expected)
{
	const struct given *given = given_of(all, device, pid, name, series);

	if (!given)
		ts_test_fail(file, line, "device %u: no %s of %s", device, series, name);
	if (given->value < expected - 1e-6 || given->value > expected + 1e-6)
		ts_test_fail(file, line, "device %u: %s of %s is %.9g, not %.9g", device, series,
			     name, given->value, expected);
}

static inline bool has_message(const struct collected *all, const char *part)
{
	for (unsigned int i = 0; i < all->message_count; i++)
		if (strstr(all->messages[i], part))
			return true;
	return false;
}

/* ---- NVIDIA's library ---- */

/* tests/lib/fake_nvml.c: build/tests/lib/libfake_nvml.so; test programs are in build/tests/unit. */
static inline const char *fake_nvml_path(void)
{
	static char path[600];
	char program[512];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	TS_CHECK(length > 0);
	program[length] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(program, '/') = '\0';
	snprintf(path, sizeof(path), "%s/lib/libfake_nvml.so", program);
	if (access(path, R_OK))
		ts_test_fail(__FILE__, __LINE__, "'%s' is not built", path);
	return path;
}

/* ---- files ---- */

/* A new empty directory; its path. */
static inline const char *tree_make(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/ts-gpu-XXXXXX");
	TS_CHECK(mkdtemp(path) != NULL);
	return path;
}

static inline int tree_remove_one(const char *path, const struct stat *status, int type,
				  struct FTW *ftw)
{
	return remove(path);
}

static inline void tree_remove(const char *root)
{
	nftw(root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *tree_parents(const char *root, const char *path)
{
	static char full[512];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		TS_CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
	return full;
}

/* A file with its directories. */
static inline void tree_bytes(const char *root, const char *path, const void *bytes, size_t count)
{
	int fd = open(tree_parents(root, path), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	TS_CHECK(fd >= 0);
	TS_CHECK_INT(write(fd, bytes, count), count);
	close(fd);
}

static inline void tree_file(const char *root, const char *path, const char *text)
{
	tree_bytes(root, path, text, strlen(text));
}

static inline void tree_link(const char *root, const char *path, const char *target)
{
	TS_CHECK_INT(symlink(target, tree_parents(root, path)), 0);
}

static inline void tree_drop(const char *root, const char *path)
{
	TS_CHECK_INT(remove(tree_parents(root, path)), 0);
}

#endif
