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

enum ts_carrier {
	TS_CARRIER_NONE,    /* never counts: a loop, a part of another */
	TS_CARRIER_VIRTUAL, /* counts where there are no real ones */
	TS_CARRIER_REAL,
};

#define TS_CARRIER_NAME_BYTES 32u

struct ts_traffic_carrier {
	char name[TS_CARRIER_NAME_BYTES];
	enum ts_carrier kind;
	uint32_t round; /* in which it was seen last */
	uint64_t in, out;
};

struct ts_traffic_sum {
	uint64_t in, out;
	size_t carriers; /* seen in this round and in the one before */
	bool is_good;    /* none of their counters went back */
};

/* What is summed up. */
struct ts_traffic_kind {
	enum ts_carrier (*classify)(const char *name);
	/* The next of a text that has all of them. */
	bool (*next)(const char **cursor, struct ts_traffic_text *ret_traffic);
	/*
	 * Where a single one has a file of its own, FOLDER/NAME/FILE, and which numbers there
	 * count; NULL: nowhere.
	 */
	const char *folder, *file;
	unsigned int in_field, out_field;
};
extern const struct ts_traffic_kind ts_traffic_network, ts_traffic_disks;

/* Few real ones are read from files of their own, which costs less than the text of all. */
#define TS_SHORTCUTS 3u
#define TS_SHORTCUT_PATH_BYTES 80u

struct ts_shortcut {
	char name[TS_CARRIER_NAME_BYTES];
	char path[TS_SHORTCUT_PATH_BYTES];
	struct ts_kept_file file;
};

/* A zeroed struct with `kind` is ready. */
struct ts_traffic {
	const struct ts_traffic_kind *kind;
	enum ts_carrier counted; /* in the last round */
	struct ts_shortcut shortcuts[TS_SHORTCUTS];
	size_t shortcut_count;
	struct ts_traffic_carrier *carriers;
	size_t count, capacity;
	uint32_t round;
	int64_t at_ns;
	struct ts_traffic_sum sums[TS_CARRIER_REAL + 1];
};

/*
 * A round: with the text of all, or by shortcuts where there are some. Units a second since the
 * round before; false where that cannot be told.
 */
bool ts_traffic_next(struct ts_traffic *traffic, const char *text, int64_t now_ns, double *ret_in,
		     double *ret_out);
bool ts_traffic_next_short(struct ts_traffic *traffic, struct ts_text *buffer, int64_t now_ns,
			   double *ret_in, double *ret_out);
void ts_traffic_release(struct ts_traffic *traffic);

#endif
