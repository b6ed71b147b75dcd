/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of what passes through many: network interfaces, disks. They come and go, and some show
 * again what passed through others. Differences are made for each by itself, so that one that comes
 * or goes does not look like traffic. For one thread.
 */
#ifndef TS_SAMPLE_METRICS_HOST_IO_TOTALS_H
#define TS_SAMPLE_METRICS_HOST_IO_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/procfs_parse.h"

enum ts_io_device_kind {
	TS_IO_DEVICE_IGNORED, /* never counts: a loop, a part of another */
	TS_IO_DEVICE_VIRTUAL, /* counts where there are no real ones */
	TS_IO_DEVICE_PHYSICAL,
};

#define TS_IO_DEVICE_NAME_BYTES 32u

struct ts_io_device {
	char name[TS_IO_DEVICE_NAME_BYTES];
	enum ts_io_device_kind kind;
	uint32_t round; /* in which it was seen last */
	uint64_t in, out;
};

struct ts_io_totals_sum {
	uint64_t in, out;
	size_t carriers; /* seen in this round and in the one before */
	bool is_good;    /* none of their counters went back */
};

/* What is summed up. */
struct ts_io_totals_kind {
	enum ts_io_device_kind (*classify)(const char *name);
	/* The next of a text that has all of them. */
	bool (*next)(const char **cursor, struct ts_procfs_traffic *ret_traffic);
	/*
	 * Where a single one has a file of its own, FOLDER/NAME/FILE, and which numbers there
	 * count; NULL: nowhere.
	 */
	const char *folder, *file;
	unsigned int in_field, out_field;
};
extern const struct ts_io_totals_kind ts_io_totals_network, ts_io_totals_disks;

/* Few real ones are read from files of their own, which costs less than the text of all. */
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
	enum ts_io_device_kind counted; /* in the last round */
	struct ts_io_totals_shortcut shortcuts[TS_IO_TOTALS_SHORTCUTS];
	size_t shortcut_count;
	struct ts_io_device *carriers;
	size_t count, capacity;
	uint32_t round;
	int64_t at_ns;
	struct ts_io_totals_sum sums[TS_IO_DEVICE_PHYSICAL + 1];
};

/*
 * A round: with the text of all, or by shortcuts where there are some. Units a second since the
 * round before; false where that cannot be told.
 */
bool ts_io_totals_next(struct ts_io_totals *traffic, const char *text, int64_t now_ns,
		       double *ret_in, double *ret_out);
bool ts_io_totals_next_short(struct ts_io_totals *traffic, struct ts_text *buffer, int64_t now_ns,
			     double *ret_in, double *ret_out);
void ts_io_totals_release(struct ts_io_totals *traffic);

#endif
