/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes use which accelerator: from vendor tools (NVML, npu-smi, AMD's KFD) and from open
 * device files.
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
	TS_DEVICE_USER_BY_VENDOR = 1, /* reported by the vendor's tool */
	TS_DEVICE_USER_BY_FILE = 2,   /* has a device file open or mapped */
	TS_DEVICE_USER_BY_RENDER =
		4, /* only a file that graphics programs open too: Xorg, browsers */
};

struct ts_device_user {
	pid_t pid;
	uint64_t start_time;
	char vendor[16];       /* "NVIDIA", "Ascend", "AMD", "Intel", ... */
	int64_t device;        /* number in the vendor's tools; TS_METRICS_UNKNOWN: unknown */
	int64_t memory_bytes;  /* device memory it uses, or TS_METRICS_UNKNOWN */
	unsigned int evidence; /* enum ts_device_user_evidence flags */
	char files[48];        /* after "/dev/", comma-separated, truncated to fit; "" */
};

struct ts_device_users {
	struct ts_device_user *users; /* by pid, then vendor, then device */
	size_t count;
	bool complete; /* false: some processes could not be inspected (run as root to see all) */
	char message[256]; /* why something is missing; "" */
};

/*
 * Queries all sources, vendor tools for at most `limit_ns` (0: device files only). A tool that
 * hangs is abandoned on its own thread. If a vendor tool says which devices a process uses, there
 * are no rows for others that it merely has open.
 */
int ts_device_users_find(struct ts_device_users *ret_users, int64_t limit_ns, struct ts_error *err);
void ts_device_users_release(struct ts_device_users *users);

/*
 * The same with another table of device files (NULL: no files are searched) and other sources
 * (NULL-terminated).
 */
int ts_device_users_find_by(struct ts_device_users *ret_users, const struct ts_device_table *files,
			    const struct ts_metrics_source *const *sources, int64_t limit_ns,
			    struct ts_error *err);

#endif
