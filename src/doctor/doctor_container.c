/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes can be reached from here: inside a container only those of the container; from
 * the host, those of containers through /proc/PID/root.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "doctor/checks.h"

/* Processes of other mount namespaces: how many exist, and how many are accessible. */
struct census {
	unsigned int seen, reached, denied;
};

static void look_into(pid_t pid, ino_t self_mounts, struct census *census)
{
	char path[64];
	struct stat status;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (stat(path, &status)) {
		census->denied += errno == EACCES || errno == EPERM;
		return;
	}
	if (status.st_ino == self_mounts)
		return;
	census->seen++;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		census->reached++;
		close(fd);
	}
}

static struct census count_other_mounts(void)
{
	DIR *processes = opendir("/proc");
	struct census census = { 0 };
	struct dirent *entry;
	struct stat self_status;

	if (stat("/proc/self/ns/mnt", &self_status))
		self_status.st_ino = 0;
	while (processes && (entry = readdir(processes))) {
		if (isdigit((unsigned char)*entry->d_name))
			look_into((pid_t)strtol(entry->d_name, NULL, 10), self_status.st_ino,
				  &census);
	}
	if (processes)
		closedir(processes);
	return census;
}

static void classify_inside(const struct ts_machine *machine, struct ts_finding *finding)
{
	const char *runtime = ts_container_name(machine->container);

	if (!machine->private_pid_namespace) {
		ts_finding_set(finding, TS_CHECK_YES,
			       "inside a %s container (%s) that shares the host's pid namespace",
			       runtime, machine->container_signs);
		return;
	}
	ts_finding_set(finding, TS_CHECK_LIMITED,
		       "inside a %s%s (%s): only its own processes are visible", runtime,
		       machine->container == TS_CONTAINER_OTHER ? "" : " container",
		       machine->container_signs);
	if (machine->container == TS_CONTAINER_DOCKER ||
	    machine->container == TS_CONTAINER_PODMAN) {
		ts_finding_fix(finding, "%s run --pid=host --ipc=host IMAGE", runtime);
		ts_finding_note(
			finding,
			"needed only to record processes outside; run this on the host; removes "
			"the container's isolation from them");
	}
}

void ts_check_container(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	struct census census;

	if (machine->container) {
		classify_inside(machine, ret_finding);
		return;
	}
	census = count_other_mounts();
	if (census.denied && !ts_machine_has(machine, TS_CAP_SYS_PTRACE)) {
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "not in a container; only root can access containers of other "
			       "users");
	} else if (census.reached < census.seen) {
		ts_finding_set(
			ret_finding, TS_CHECK_LIMITED,
			"not in a container; %u of %u processes in other mount namespaces are "
			"accessible",
			census.reached, census.seen);
	} else {
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "not in a container; %u process%s in other mount namespaces, all "
			       "accessible",
			       census.seen, census.seen == 1 ? "" : "es");
	}
}
