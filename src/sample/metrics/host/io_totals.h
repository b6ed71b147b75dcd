/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals over network interfaces or disks. Devices come and go, and some repeat the traffic of
 * others. Differences are taken per device, so that one that appears or disappears does not look
 * like traffic. Not thread-safe.
 */
#ifndef TS_SAMPLE_METRICS_HOST_IO_TOTALS_H
#define TS_SAMPLE_METRICS_HOST_IO_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/procfs_parse.h"

enum ts_io_device_kind {
	TS_IO_DEVICE_IGNORED, /* never counts: loopback, part of another device */
	TS_IO_DEVICE_VIRTUAL, /* counts if there are no physical ones */
	TS_IO_DEVICE_PHYSICAL,
};

#define TS_IO_DEVICE_NAME_BYTES 32u

struct ts_io_device {
	char name[TS_IO_DEVICE_NAME_BYTES];
	enum ts_io_device_kind kind;
	uint32_t round; /* last round in which it was seen */
	uint64_t in, out;
};

struct ts_io_totals_sum {
	uint64_t in, out;
	size_t carriers; /* devices seen in this round and the one before */
	bool is_good;    /* no counter went backwards */
};

/* What is totalled. */
struct ts_io_totals_kind {
	enum ts_io_device_kind (*classify)(const char *name);
	/* The next device of a text that lists all. */
	bool (*next)(const char **cursor, struct ts_procfs_traffic *ret_traffic);
	/* Per-device file DIR/NAME/FILE and the fields that count; NULL: none. */
	const char *folder, *file;
	unsigned int in_field, out_field;
};
extern const struct ts_io_totals_kind ts_io_totals_network, ts_io_totals_disks;

/*
 * A few physical devices are read from files of their own, which is cheaper than the list of all.
 */
#define TS_IO_TOTALS_SHORTCUTS 3u
#define TS_IO_TOTALS_PATH_BYTES 80u

struct ts_io_totals_shortcut {
	char name[TS_IO_DEVICE_NAME_BYTES];
	char path[TS_IO_TOTALS_PATH_BYTES];
	struct ts_procfs_file file;
};

/* A zeroed struct with `kind` is ready. */
struct ts_io_totals {
	const struct ts_io_totals_kind *kind;
	enum ts_io_device_kind counted; /* of the last round */
	struct ts_io_totals_shortcut shortcuts[TS_IO_TOTALS_SHORTCUTS];
	size_t shortcut_count;
	struct ts_io_device *carriers;
	size_t count, capacity;
	uint32_t round;
	int64_t at_ns;
	struct ts_io_totals_sum sums[TS_IO_DEVICE_PHYSICAL + 1];
};

/*
 * One round, from the list of all or from shortcuts. Units per second since the round before; false
 * if unknown.
 */
bool ts_io_totals_next(struct ts_io_totals *traffic, const char *text, int64_t now_ns,
		       double *ret_in, double *ret_out);
bool ts_io_totals_next_short(struct ts_io_totals *traffic, struct ts_text *buffer, int64_t now_ns,
			     double *ret_in, double *ret_out);
void ts_io_totals_release(struct ts_io_totals *traffic);

#endif
