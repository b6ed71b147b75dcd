/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python from outside: starts an interpreter that prints the address of one of its objects, reads
 * that object from its memory, then its stack. Also lists the installed and running interpreters.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "doctor/checks.h"
#include "python/local/python_layout.h"
#include "python/reader/python_reader.h"

#define SECRET "tracesmith reads"
#define TRIES 5
#define PAUSE_NS 5000000

/* Prints its version and the address of a secret, then waits for the end of its input. */
#define PROGRAM                                                                 \
	"import sys, os; b = b'tracesmith ' + b'reads'; v = sys.version_info; " \
	"print(os.getpid(), v[0], v[1], v[2], id(b) + bytes.__basicsize__ - 1, int('t' in getattr(sys, 'abiflags', '')), sys.implementation.name, flush=True); sys.stdin.read()"

struct interpreter {
	unsigned long long pid, major, minor, patch;
	unsigned long long address;
	unsigned long long is_free_threaded; /* without the GIL */
	char kind[32];
};

/* ---- installed and running versions ---- */

/* 11 for "python3.11"; -1 for all else. */
static int minor_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	char *end;
	long minor;

	name = slash ? slash + 1 : name;
	if (strncmp(name, "python3.", strlen("python3.")) != 0)
		return -1;
	minor = strtol(name + strlen("python3."), &end, 10);
	return end > name + strlen("python3.") && (!*end || !strcmp(end, "t")) && minor >= 0 &&
			       minor < 63
		       ? (int)minor
		       : -1;
}

/* One bit per minor version found in PATH. */
static uint64_t versions_in_path(void)
{
	const char *path = getenv("PATH");
	uint64_t versions = 0;

	while (path && *path) {
		size_t length = strcspn(path, ":");
		char folder[1024];
		struct dirent *entry;
		DIR *files;

		snprintf(folder, sizeof(folder), "%.*s", (int)length, path);
		files = opendir(folder);
		while (files && (entry = readdir(files))) {
			int minor = minor_of(entry->d_name);

			versions |= minor >= 0 ? UINT64_C(1) << minor : 0;
		}
		if (files)
			closedir(files);
		path += length + (path[length] == ':');
	}
	return versions;
}

/* The same for running processes; returns their number. */
static unsigned int count_running(uint64_t *ret_versions)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	unsigned int count = 0;

	*ret_versions = 0;
	while (processes && (entry = readdir(processes))) {
		char link[300], target[1024];
		ssize_t length;
		int minor;

		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		snprintf(link, sizeof(link), "/proc/%s/exe", entry->d_name);
		length = readlink(link, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		minor = minor_of(target);
		if (minor >= 0) {
			*ret_versions |= UINT64_C(1) << minor;
			count++;
		}
	}
	if (processes)
		closedir(processes);
	return count;
}

static void append_versions(char *text, size_t bytes, uint64_t versions)
{
	size_t used = strlen(text);
	bool is_first = true;

	for (int minor = 0; minor < 63; minor++) {
		int written;

		if (!(versions >> minor & 1) || used >= bytes)
			continue;
		written =
			snprintf(text + used, bytes - used, "%s3.%d", is_first ? "" : ", ", minor);
		used += written > 0 ? (size_t)written : 0;
		is_first = false;
	}
}

/* "; in PATH 3.9, 3.11; running 3.11 (4)". */
static void describe_others(char *text, size_t bytes)
{
	uint64_t running, in_path = versions_in_path();
	unsigned int count = count_running(&running);
	size_t used;

	text[0] = '\0';
	if (in_path) {
		snprintf(text, bytes, "; in PATH: ");
		append_versions(text, bytes, in_path);
	}
	used = strlen(text);
	if (!running || used >= bytes)
		return;
	snprintf(text + used, bytes - used, "; running: ");
	append_versions(text, bytes, running);
	used = strlen(text);
	snprintf(text + used, bytes - used, " (%u process%s)", count, count == 1 ? "" : "es");
}

/* ---- test interpreter ---- */

static void become_python(int input, int output)
{
	/* Variables that would run code in it or record it. */
	static const char *const cleared[] = { "PYTHONSTARTUP",    "TRACESMITH_OUT",
					       "FERRUM_TRACE_OUT", "TRACESMITH_LIVE",
					       "TRACESMITH_AGENT", "LD_PRELOAD" };
	char *argv[] = { (char *)"python3", (char *)"-S", (char *)"-c", (char *)PROGRAM, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	for (size_t i = 0; i < TS_ARRAY_SIZE(cleared); i++)
		unsetenv(cleared[i]);
	execvp(argv[0], argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Parses six numbers and a name. */
static bool parse(const char *text, struct interpreter *python)
{
	unsigned long long *const numbers[] = { &python->pid,     &python->major,
						&python->minor,   &python->patch,
						&python->address, &python->is_free_threaded };
	char *end;

	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++) {
		*numbers[i] = strtoull(text, &end, 10);
		if (end == text)
			return false;
		text = end;
	}
	text += strspn(text, " ");
	snprintf(python->kind, sizeof(python->kind), "%.*s", (int)strcspn(text, "\n"), text);
	return python->kind[0] != '\0';
}

/* With PYTHONUNBUFFERED the line arrives in pieces. */
static void read_line(int fd, char *text, size_t bytes)
{
	size_t used = 0;
	ssize_t got = 1;

	text[0] = '\0';
	while (got > 0 && used < bytes - 1 && !memchr(text, '\n', used)) {
		got = ts_read_some(fd, text + used, bytes - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	text[used] = '\0';
}

/*
 * Starts the interpreter and reads its description. Returns 0 or its exit status. The interpreter
 * lives while *ret_hold is open.
 */
static int start_python(struct interpreter *ret_python, int *ret_hold, pid_t *ret_child)
{
	int input[2], output[2], status = 0;
	char text[256];

	if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC))
		return -1;
	*ret_child = fork();
	if (*ret_child == 0)
		become_python(input[0], output[1]);
	close(input[0]);
	close(output[1]);
	*ret_hold = input[1];
	read_line(output[0], text, sizeof(text));
	close(output[0]);
	if (parse(text, ret_python))
		return 0;
	/* It exits at the end of its input. */
	close(input[1]);
	*ret_hold = -1;
	waitpid(*ret_child, &status, 0);
	*ret_child = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : -1;
}

/* Returns 0 or an errno. */
static int read_secret(const struct interpreter *python)
{
	char got[sizeof(SECRET)] = "";
	struct iovec local = { got, sizeof(SECRET) - 1 };
	struct iovec remote = { (void *)(uintptr_t)python->address, sizeof(SECRET) - 1 };

	if (process_vm_readv((pid_t)python->pid, &local, 1, &remote, 1, 0) < 0)
		return errno;
	return strcmp(got, SECRET) ? EIO : 0;
}

/*
 * Counts threads with a complete stack, and whether the main thread is one of them. It may not have
 * reached its input yet.
 */
static int count_stacks(struct ts_python_reader *reader, size_t *ret_complete, bool *ret_has_main,
			struct ts_error *err)
{
	*ret_has_main = false;
	for (int i = 0; i < TRIES && !*ret_has_main; i++) {
		const struct timespec pause = { .tv_nsec = i ? PAUSE_NS : 0 };
		struct ts_python_sweep sweep = { 0 };
		int rc;

		nanosleep(&pause, NULL);
		rc = ts_python_sweep(reader, &sweep, err);
		if (rc)
			return rc;
		*ret_complete = 0;
		for (size_t k = 0; k < sweep.count; k++) {
			*ret_complete += sweep.threads[k].depth > 0;
			*ret_has_main |= sweep.threads[k].is_main && sweep.threads[k].depth;
		}
	}
	return TS_OK;
}

/* Describes its stacks, as in "1 thread, main", or why there is none. Returns TS_E*. */
static int read_stacks(const struct interpreter *python, char *ret_text, size_t bytes)
{
	TS_AUTO(ts_python_reader) reader = NULL;
	struct ts_error err;
	size_t complete = 0;
	bool has_main = false;
	int rc = ts_python_reader_open(&reader, (pid_t)python->pid, 0, TS_PYTHON_NAMES, &err);

	if (!rc)
		rc = count_stacks(reader, &complete, &has_main, &err);
	if (rc) {
		snprintf(ret_text, bytes, "%s", err.message);
		return rc;
	}
	snprintf(ret_text, bytes, "%zu thread%s%s", complete, complete == 1 ? "" : "s",
		 has_main ? ", main" : "");
	return has_main ? TS_OK : TS_EFORMAT;
}

static void classify_stacks(const struct interpreter *python, const char *name, const char *others,
			    struct ts_finding *finding)
{
	char text[TS_ERROR_MESSAGE_BYTES];
	int rc = read_stacks(python, text, sizeof(text));

	if (!rc)
		ts_finding_set(finding, TS_CHECK_YES, "%s: stacks can be read (%s)%s", name, text,
			       others);
	else if (rc == TS_EVERSION)
		ts_finding_set(finding, TS_CHECK_NO, "%s: stacks of 3.%d to 3.%d can be read%s",
			       name, TS_PYTHON_OLDEST_MINOR, TS_PYTHON_NEWEST_MINOR, others);
	else if (rc == TS_EFORMAT)
		ts_finding_set(finding, TS_CHECK_UNKNOWN,
			       "%s: memory can be read, but the stack was incomplete (%s)%s", name,
			       text, others);
	else
		ts_finding_set(finding, rc == TS_ECAP ? TS_CHECK_NO : TS_CHECK_UNKNOWN,
			       "%s: memory can be read, but not the stack: %s%s", name, text,
			       others);
}

static void classify(const struct interpreter *python, struct ts_finding *finding)
{
	int error = strcmp(python->kind, "cpython") ? 0 : read_secret(python);
	char others[192], name[64];

	describe_others(others, sizeof(others));
	snprintf(name, sizeof(name), "python3 is %s %llu.%llu.%llu%s", python->kind, python->major,
		 python->minor, python->patch, python->is_free_threaded ? "t" : "");
	if (error)
		ts_finding_set(finding, error == EPERM ? TS_CHECK_NO : TS_CHECK_UNKNOWN,
			       "%s: memory cannot be read (%s): see read_memory%s", name,
			       ts_errno_name(error), others);
	else if (strcmp(python->kind, "cpython") != 0)
		ts_finding_set(finding, TS_CHECK_NO, "%s: only stacks of CPython can be read%s",
			       name, others);
	else
		classify_stacks(python, name, others, finding);
}

static void classify_none(int status, struct ts_finding *finding)
{
	char others[192];

	describe_others(others, sizeof(others));
	if (status == 127 && !others[0])
		ts_finding_set(finding, TS_CHECK_ABSENT,
			       "no python3 in PATH and no Python process");
	else if (status == 127)
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "no python3 in PATH to check with%s",
			       others);
	else
		ts_finding_set(finding, TS_CHECK_UNKNOWN,
			       "python3 cannot be run (exit status %d)%s", status, others);
}

void ts_check_python(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	struct interpreter python = { 0 };
	pid_t child = 0;
	int hold = -1, status = start_python(&python, &hold, &child);

	if (status)
		classify_none(status, ret_finding);
	else
		classify(&python, ret_finding);
	if (hold >= 0)
		close(hold);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}
