/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes use which accelerator: what the makers' tools say (NVML, npu-smi, AMD's KFD), and
 * who has a device file open. What later work picks processes with.
 */
#ifndef TS_SAMPLE_METRICS_DEVICE_USERS_H
#define TS_SAMPLE_METRICS_DEVICE_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

struct ts_device_table;

enum ts_device_user_evidence {
	TS_DEVICE_USER_BY_VENDOR = 1, /* the maker's tool says so */
	TS_DEVICE_USER_BY_FILE = 2,   /* it has a device file open or mapped */
	TS_DEVICE_USER_BY_RENDER =
		4, /* only a file that programs which draw have open, too: Xorg, browsers */
};

struct ts_device_user {
	pid_t pid;
	uint64_t start_time;
	char vendor[16];      /* "NVIDIA", "Ascend", "AMD", "Intel", ... */
	int64_t device;       /* number at its maker's tools; TS_METRICS_UNKNOWN: not known which */
	int64_t memory_bytes; /* that it has there, or TS_METRICS_UNKNOWN */
	unsigned int evidence; /* enum ts_device_user_evidence, or-ed */
	char files[48];        /* behind "/dev/", with commas; cut to fit; "" */
};

struct ts_device_users {
	struct ts_device_user *users; /* by pid, then vendor, then device */
	size_t count;
	bool complete; /* false: some processes could not be looked at (run as root to see all) */
	char message[256]; /* why something is missing; "" */
};

/*
 * Asks everybody, makers' tools for at most `limit_ns` (0: device files only). One that hangs is
 * left to itself, on a thread of its own. A process of which a maker's tool says which devices it
 * uses has no rows of others, even where it has their files open.
 */
int ts_device_users_find(struct ts_device_users *ret_users, int64_t limit_ns, struct ts_error *err);
void ts_device_users_release(struct ts_device_users *users);

/* The same with another table of device files and other sources (ended by NULL). */
int ts_device_users_find_by(struct ts_device_users *ret_users, const struct ts_device_table *files,
			    const struct ts_metrics_source *const *sources, int64_t limit_ns,
			    struct ts_error *err);

#endif
