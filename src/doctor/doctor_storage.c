/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage of live events and queries: shared memory, tested by allocating as much as a program
 * would, and DuckDB, tested with a query.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "doctor/checks.h"
#include "live/discover.h"

/* Maximum of one program: docs/live.md, section 2. */
#define BUDGET_BYTES (UINT64_C(32) << 20)
/* A program takes at most an eighth of the free space. */
#define AMPLE_BYTES (8 * BUDGET_BYTES)
/* An eighth of this holds an area with a small ring and a few more events. */
#define LEAST_KIB 384u
#define LEAST_BYTES (UINT64_C(1024) * LEAST_KIB)

/* ---- shared memory ---- */

/* The directory that contains the live directory, or will. */
static void shared_folder(uid_t uid, char *buffer, size_t bytes)
{
	char *slash;

	if (ts_live_directory_path(uid, buffer, bytes))
		buffer[0] = '\0';
	if (!access(buffer, F_OK))
		return;
	slash = strrchr(buffer, '/');
	if (slash > buffer)
		*slash = '\0';
	else
		strncpy(buffer, slash ? "/" : ".", bytes - 1);
}

/*
 * Really allocates: a file can be longer than the available memory, and touching it would be fatal.
 * Returns 0 or an errno.
 */
static int try_allocate(const char *folder, uint64_t bytes)
{
	TS_AUTO_FD int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	return fallocate(fd, 0, 0, (off_t)bytes) ? errno : 0;
}

static void suggest_size(const struct ts_machine *machine, struct ts_finding *finding)
{
	switch (machine->container) {
	case TS_CONTAINER_NONE:
		ts_finding_fix(finding, "sudo mount -o remount,size=4G /dev/shm");
		ts_finding_note(finding, "until the next boot; only the files in it use memory");
		break;
	case TS_CONTAINER_KUBERNETES:
		ts_finding_note(
			finding,
			"in the pod's specification: volumes: [{name: shm, emptyDir: {medium: "
			"Memory, sizeLimit: 1Gi}}], mounted on /dev/shm");
		break;
	case TS_CONTAINER_DOCKER:
	case TS_CONTAINER_PODMAN:
		ts_finding_fix(finding, "%s run --shm-size=1g IMAGE",
			       ts_container_name(machine->container));
		ts_finding_note(
			finding,
			"run this on the host; --ipc=host also allows a recorder outside, but "
			"shares the host's shared memory with the container");
		break;
	default:
		ts_finding_note(
			finding,
			"its size is set when the container is started; or set "
			"TRACESMITH_LIVE_DIR to your own folder (mode 700) with more space");
	}
}

static void classify_size(const struct ts_machine *machine, const char *folder,
			  const struct statfs *status, struct ts_finding *finding)
{
	uint64_t bytes = (uint64_t)status->f_bavail * (uint64_t)status->f_bsize;
	char size[TS_FORMAT_BYTES];

	ts_format_bytes(size, sizeof(size), bytes);
	if (bytes < AMPLE_BYTES) {
		ts_finding_set(finding, TS_CHECK_LIMITED,
			       "%s: %s free: a program gets less than the default of 32 MiB",
			       folder, size);
		suggest_size(machine, finding);
	} else if (status->f_type != TMPFS_MAGIC && status->f_type != RAMFS_MAGIC) {
		ts_finding_set(
			finding, TS_CHECK_LIMITED,
			"%s: %s free, but on a disk: events are slower and are lost when it is "
			"full",
			folder, size);
		ts_finding_fix(finding, "unset TRACESMITH_LIVE_DIR");
	} else {
		ts_finding_set(finding, TS_CHECK_YES, "%s: %s free", folder, size);
	}
}

void ts_check_shared_memory(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char folder[4096];
	struct statfs status;
	int error;

	shared_folder(machine->uid, folder, sizeof(folder));
	if (statfs(folder, &status)) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s: %s", folder, strerror(errno));
		ts_finding_fix(
			ret_finding,
			"mkdir -m 700 /tmp/tracesmith-$(id -u) && export TRACESMITH_LIVE_DIR=/tmp/tracesmith-$(id -u)");
		return;
	}
	error = try_allocate(folder, BUDGET_BYTES);
	if (error == ENOSPC)
		error = try_allocate(folder, LEAST_BYTES);
	if (error == ENOSPC) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s: less than %u KiB are free", folder,
			       LEAST_KIB);
		suggest_size(machine, ret_finding);
	} else if (error) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s: cannot allocate: %s", folder,
			       strerror(error));
	} else {
		classify_size(machine, folder, &status, ret_finding);
	}
}

/* ---- DuckDB ---- */

static void *open_duckdb(void)
{
	const char *given = getenv("TRACESMITH_DUCKDB");
	char executable[4096], path[4200];
	ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
	void *library;

	if (given && *given)
		return dlopen(given, RTLD_NOW | RTLD_LOCAL);
	if (length > 0) {
		executable[length] = '\0';
		snprintf(path, sizeof(path), "%s/libduckdb.so", dirname(executable));
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (library)
			return library;
	}
	return dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL);
}

/* Runs a query on an in-memory database. */
static bool try_query(void *library)
{
	int (*open_database)(const char *, void **), (*connect)(void *, void **),
		(*query)(void *, const char *, void *);
	void *database = NULL, *connection = NULL;

	*(void **)&open_database = dlsym(library, "duckdb_open");
	*(void **)&connect = dlsym(library, "duckdb_connect");
	*(void **)&query = dlsym(library, "duckdb_query");
	return open_database && connect && query && !open_database(NULL, &database) &&
	       !connect(database, &connection) && !query(connection, "select 42", NULL);
}

static void suggest_duckdb(const struct ts_machine *machine, struct ts_finding *finding)
{
	const char *machine_name = strcmp(machine->architecture, "aarch64") ? "x64" : "arm64";

	ts_finding_fix(
		finding,
		"npm install @duckdb/node-bindings-linux-%s && export TRACESMITH_DUCKDB=$(find \"$PWD/node_modules\" -name libduckdb.so)",
		machine_name);
}

void ts_check_duckdb(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	void *library = open_duckdb();
	const char *why = library ? NULL : dlerror();
	const char *(*version)(void);

	if (!library) {
		bool is_missing = why &&
				  strstr(why, "cannot open shared object file: No such file");

		ts_finding_set(ret_finding,
			       is_missing && !getenv("TRACESMITH_DUCKDB") ? TS_CHECK_ABSENT
									  : TS_CHECK_NO,
			       "%s", why ? why : "libduckdb.so cannot be loaded");
		suggest_duckdb(machine, ret_finding);
		return;
	}
	*(void **)&version = dlsym(library, "duckdb_library_version");
	if (!version)
		ts_finding_set(ret_finding, TS_CHECK_NO, "the loaded library is not DuckDB");
	else if (!try_query(library))
		ts_finding_set(ret_finding, TS_CHECK_NO, "DuckDB %s does not answer a query",
			       version());
	else
		ts_finding_set(ret_finding, TS_CHECK_YES, "DuckDB %s answers a query", version());
}
