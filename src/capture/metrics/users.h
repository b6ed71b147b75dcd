/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes use which accelerator: what the makers' tools say (NVML, npu-smi, AMD's KFD), and who has a device
 * file open. What later work picks processes with.
 */
#ifndef TS_CAPTURE_METRICS_USERS_H
#define TS_CAPTURE_METRICS_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

enum ts_user_evidence {
	TS_USER_BY_MAKER = 1, /* the maker's tool says so */
	TS_USER_BY_FILE = 2,  /* it has a device file open or mapped */
};

struct ts_accelerator_user {
	pid_t pid;
	uint64_t start_time;
	const char *vendor;   /* "NVIDIA", "Ascend", "AMD", "Intel", ... */
	int64_t device;       /* number at its maker's tools; TS_METRICS_UNKNOWN: not known which */
	int64_t memory_bytes; /* that it has there, or TS_METRICS_UNKNOWN */
	unsigned int evidence; /* enum ts_user_evidence, or-ed */
};

struct ts_accelerator_users {
	struct ts_accelerator_user *users; /* by pid, then vendor, then device */
	size_t count;
	bool complete; /* false: some processes could not be looked at (run as root to see all) */
	char message[256]; /* why something is missing; "" */
};

/* Asks everybody, makers' tools for at most `limit_ns` (0: device files only). */
int ts_accelerator_users_find(struct ts_accelerator_users *ret_users, int64_t limit_ns,
			      struct ts_error *err);
void ts_accelerator_users_release(struct ts_accelerator_users *users);

#endif
