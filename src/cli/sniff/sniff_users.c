/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the processes to sniff if none was named: those that use an accelerator according to
 * vendor tools and open device files, queried repeatedly.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/common/report.h"
#include "cli/sniff/sniff.h"
#include "cli/top/top.h"
#include "sample/metrics/device_files.h"
#include "sample/metrics/device_users.h"
#include "sample/metrics/metric_sources.h"

#define LOOK_NS INT64_C(1000000000)
#define FIRST_ANSWER_NS INT64_C(5000000000)

static bool has_accelerator(void)
{
	struct ts_device_table files;
	bool found = false;

	if (ts_device_table_init(&files, NULL))
		return false;
	for (size_t i = 0; i < files.node_count; i++)
		found |= !files.nodes[i].file.is_render;
	found |= files.range_count > 0;
	ts_device_table_release(&files);
	return found;
}

/* Excludes processes that only draw. */
static bool is_wanted(const struct ts_device_user *user)
{
	return user->pid != getpid() && user->evidence != TS_DEVICE_USER_BY_RENDER;
}

static size_t count_wanted(const struct ts_device_user *users, size_t count)
{
	size_t wanted = 0;

	for (size_t i = 0; i < count; i++)
		wanted += is_wanted(&users[i]);
	return wanted;
}

int ts_sniff_users_start(struct ts_sniff *sniff)
{
	struct ts_device_user *users = NULL;
	char message[256] = "";
	struct ts_error err;
	size_t count = 0, wanted;

	if (ts_top_users_start(&sniff->users, ts_metrics_sources(), true, &err))
		return ts_report_error(&err);
	ts_top_users_wait(sniff->users, FIRST_ANSWER_NS);
	if (ts_top_users_copy(sniff->users, &users, &count, message))
		count = 0;
	wanted = count_wanted(users, count);
	free(users);
	if (message[0])
		ts_report_warning("%s", message);
	if (wanted || has_accelerator())
		return TS_EXIT_DONE;
	ts_error_set(
		&err, TS_ECAP,
		"no accelerator found on this machine: name processes with -p PID,PID ('pgrep -a "
		"python' lists candidates)");
	return ts_report_error(&err);
}

int64_t ts_sniff_users_look(struct ts_sniff *sniff, struct ts_recorder *recorder, int64_t now_ns)
{
	struct ts_device_user *users = NULL;
	char message[256];
	size_t count = 0;

	if (now_ns < sniff->users_ns)
		return sniff->users_ns;
	sniff->users_ns = now_ns + LOOK_NS;
	if (ts_top_users_copy(sniff->users, &users, &count, message))
		return sniff->users_ns;
	for (size_t i = 0; i < count; i++)
		if (is_wanted(&users[i]))
			ts_recorder_attach(recorder, users[i].pid);
	if (!count_wanted(users, count) && !sniff->reported_none && !sniff->record.quiet) {
		sniff->reported_none = true;
		ts_report_event("no process uses an accelerator: waiting for one until "
				"Ctrl-C; use -p PID to sample other processes");
	}
	free(users);
	return sniff->users_ns;
}

void ts_sniff_users_stop(struct ts_sniff *sniff)
{
	ts_top_users_stop(sniff->users);
	sniff->users = NULL;
}
