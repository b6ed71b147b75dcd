/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the emit path end to end: starts a program with the agent, which emits one event, and reads
 * it back from the live directory. Also tests its prerequisites: the live directory and /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "backends/recorder/agent_library.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "doctor/checks.h"
#include "live/area.h"
#include "live/discover.h"
#include "record/launch/launch_target.h"

/*
 * The name of a backend that does not exist: the agent emits an event about it. This works with any
 * program that does not know TraceSmith; the tool itself would not do, since it contains the
 * agent's code.
 */
#define NO_BACKEND "doctor"

/* ---- reading back ---- */

struct search {
	int directory_fd;
	uint64_t session;
	uint64_t events;
	unsigned int areas;
};

static int ignore_block(void *context, struct ts_block *block, const void *payload,
			struct ts_error *err)
{
	return TS_OK;
}

static void on_area(void *context, const struct ts_area_info *info)
{
	const struct ts_block_sink sink = { ignore_block, NULL };
	struct ts_drain_result result = { 0 };
	struct search *search = context;
	TS_AUTO(ts_area) area = NULL;

	if (info->control.session != search->session)
		return;
	search->areas++;
	if (!ts_area_open(&area, search->directory_fd, info->name, false, NULL) &&
	    !ts_area_drain(area, TS_DRAIN_FINAL, &sink, &result, NULL))
		search->events += result.events;
	ts_area_remove(search->directory_fd, info->name, info->control.area_id);
}

static void search_areas(uint64_t session, struct search *ret_search, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;

	*ret_search = (struct search){ .session = session };
	if (ts_live_directory_open(geteuid(), 0, &fd, err))
		return;
	ret_search->directory_fd = fd;
	ts_areas_list(fd, 0, on_area, NULL, ret_search, err);
}

/* ---- diagnosis ---- */

/*
 * ld.so continues without a library that it cannot load, and reports that on standard error only.
 */
static void classify_not_loaded(const char *program, const char *agent, char *captured,
				struct ts_finding *finding)
{
	char *line = strstr(captured, "cannot be preloaded");
	char *cause = line ? strchr(line, '(') : NULL;

	if (!cause) {
		ts_finding_set(finding, TS_CHECK_NO,
			       "the agent was not loaded into '%s': the program is static, or "
			       "LD_PRELOAD has no effect",
			       program);
		return;
	}
	cause[strcspn(cause, ")\n")] = '\0';
	ts_finding_set(finding, TS_CHECK_NO, "the agent was not loaded: %s", cause + 1);
	if (strstr(cause + 1, "failed to map") || strstr(cause + 1, "cannot open")) {
		ts_finding_fix(
			finding,
			"sudo install -D %s /usr/local/lib/tracesmith/libtracesmith-agent.so && export TRACESMITH_AGENT_PATH=/usr/local/lib/tracesmith/libtracesmith-agent.so",
			TS_SHELL(agent));
		ts_finding_note(
			finding,
			"its current folder does not allow execution (noexec, SELinux) or is not "
			"readable by others");
	} else {
		ts_finding_note(finding, "'%s' is not a library for this architecture", agent);
	}
}

/* Reports a broken prerequisite instead. */
static bool blame(void (*check)(const struct ts_machine *, struct ts_finding *),
		  const struct ts_machine *machine, struct ts_finding *finding)
{
	struct ts_finding cause = { 0 };

	check(machine, &cause);
	if (cause.state != TS_CHECK_NO)
		return false;
	*finding = cause;
	return true;
}

static void classify(const struct ts_machine *machine, const char *program, const char *agent,
		     int status, char *captured, uint64_t session, struct ts_finding *finding)
{
	struct ts_error err = { 0 };
	struct search search;

	search_areas(session, &search, &err);
	if (search.events)
		ts_finding_set(finding, TS_CHECK_YES,
			       "started '%s' with the agent and read back its event", program);
	else if (WIFSIGNALED(status))
		ts_finding_set(finding, TS_CHECK_NO, "'%s' with the agent was killed by SIG%s",
			       program, sigabbrev_np(WTERMSIG(status)));
	else if (blame(ts_check_live_directory, machine, finding) ||
		 blame(ts_check_shared_memory, machine, finding))
		return;
	else if (search.areas)
		ts_finding_set(finding, TS_CHECK_NO,
			       "the agent was loaded into '%s', but no event arrived: see "
			       "shared_memory",
			       program);
	else if (err.code)
		ts_finding_set(finding, TS_CHECK_NO, "%s", err.message);
	else
		classify_not_loaded(program, agent, captured, finding);
}

/* ---- test run ---- */

/* Makes sure that the user's settings start no recorder for the test program. */
static void clear_environment(void)
{
	unsetenv("TRACESMITH_OUT");
	unsetenv("FERRUM_TRACE_OUT");
	unsetenv("TRACESMITH_LIVE");
	unsetenv("TRACESMITH_BUDGET");
	/* Its messages are parsed. */
	setenv("LC_ALL", "C", 1);
}

/* Runs the program; `captured` gets its standard error. */
static int run_program(char *const *arguments, const char *agent, uint64_t session, int *ret_status,
		       char *captured, size_t bytes, struct ts_error *err)
{
	struct ts_launch_options options = { .argv = (char **)arguments,
					     .agent = agent,
					     .session = session,
					     .enabled = true,
					     .step_open = TS_ABSENT,
					     .step_close = TS_ABSENT,
					     .backends = NO_BACKEND };
	TS_AUTO_FD int output = memfd_create("stderr", MFD_CLOEXEC);
	ssize_t got;
	pid_t pid;
	int rc;

	if (output >= 0)
		dup2(output, STDERR_FILENO);
	rc = ts_launch_start(&options, &pid, err);
	if (rc)
		return rc;
	while (waitpid(pid, ret_status, 0) != pid)
		;
	got = output >= 0 ? pread(output, captured, bytes - 1, 0) : 0;
	captured[got > 0 ? got : 0] = '\0';
	return TS_OK;
}

void ts_check_agent(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char *const plain[] = { (char *)"true", NULL };
	char *const shell[] = { (char *)"/bin/sh", (char *)"-c", (char *)":", NULL };
	char *const *arguments = plain;
	char agent[TS_AGENT_PATH_BYTES], captured[512];
	uint64_t session = 0;
	struct ts_error err;
	int status, rc;

	/* Everything depends on /proc, also finding the agent. */
	if (access("/proc/self/stat", F_OK) && blame(ts_check_proc, machine, ret_finding))
		return;
	clear_environment();
	(void)!getrandom(&session, sizeof(session), 0);
	session |= 1;
	rc = ts_agent_library_find(agent, sizeof(agent), &err);
	if (!rc) {
		rc = run_program(arguments, agent, session, &status, captured, sizeof(captured),
				 &err);
		if (rc == TS_ENOTFOUND) {
			arguments = shell;
			rc = run_program(arguments, agent, session, &status, captured,
					 sizeof(captured), &err);
		}
	}
	if (rc)
		ts_finding_set(ret_finding, rc == TS_ENOTFOUND ? TS_CHECK_UNKNOWN : TS_CHECK_NO,
			       "%s", err.message);
	else
		classify(machine, arguments[0], agent, status, captured, session, ret_finding);
}

/* ---- what is installed with the tool ---- */

void ts_check_libraries(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char path[TS_AGENT_PATH_BYTES], package[TS_AGENT_PATH_BYTES];
	struct ts_error err;

	if (ts_agent_library_find(path, sizeof(path), &err)) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s", err.message);
		return;
	}
	*strrchr(path, '/') = '\0';
	if (ts_agent_library_find_injection(package, sizeof(package)))
		ts_finding_set(ret_finding, TS_CHECK_YES, "%s; Python programs get %.*s", path,
			       (int)(strrchr(package, '/') - package), package);
	else
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "%s; without the Python package: programs started by 'record' can "
			       "import tracesmith only if their Python has it",
			       path);
}

/* ---- the live directory ---- */

static void suggest_directory(const char *path, const struct ts_error *err,
			      struct ts_finding *finding)
{
	if (strstr(err->message, "chmod"))
		ts_finding_fix(finding, "chmod 700 %s", TS_SHELL(path));
	else if (getenv("TRACESMITH_LIVE_DIR"))
		ts_finding_fix(finding, "unset TRACESMITH_LIVE_DIR");
	else
		ts_finding_fix(
			finding,
			"mkdir -m 700 /tmp/tracesmith-$(id -u) && export TRACESMITH_LIVE_DIR=/tmp/tracesmith-$(id -u)");
}

/* Creates a file the way an area is created: exclusively, named afterwards. */
static int try_file(int directory_fd)
{
	char name[64];
	int fd, error = 0;

	snprintf(name, sizeof(name), "doctor-%d.new", (int)getpid());
	fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	if (fallocate(fd, 0, 0, 4096))
		error = errno;
	unlinkat(directory_fd, name, 0);
	close(fd);
	return error;
}

void ts_check_live_directory(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	char path[4096] = "";
	TS_AUTO_FD int fd = -1;
	struct ts_error err;
	int error;

	/* Programs create it with their first event. */
	if (!ts_live_directory_path(machine->uid, path, sizeof(path)) && mkdir(path, 0700) &&
	    errno != EEXIST) {
		ts_error_errno(&err, errno, "cannot create '%s'", path);
	} else if (!ts_live_directory_open(machine->uid, 0, &fd, &err)) {
		error = try_file(fd);
		if (!error) {
			ts_finding_set(ret_finding, TS_CHECK_YES, "%s", path);
			return;
		}
		ts_error_errno(&err, error, "cannot create a file in '%s'", path);
	}
	ts_finding_set(ret_finding, TS_CHECK_NO, "%s", err.message);
	suggest_directory(path, &err, ret_finding);
}

/* ---- /proc ---- */

/* The first file of a child that cannot be read, or NULL. */
static const char *unreadable(pid_t pid, int *ret_error)
{
	static const char *const names[] = { "stat",    "status", "maps",   "io",
					     "environ", "exe",    "ns/pid", "cmdline" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		char path[64], text[16];
		bool is_link = !strcmp(names[i], "exe") || !strcmp(names[i], "ns/pid");

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, names[i]);
		if (is_link ? readlink(path, text, sizeof(text)) < 0
			    : !ts_machine_read(path, text, sizeof(text))) {
			*ret_error = errno;
			return names[i];
		}
	}
	return NULL;
}

static void classify_proc(const struct ts_machine *machine, pid_t child, struct ts_finding *finding)
{
	int error = 0;
	const char *name = unreadable(child, &error);

	if (!name) {
		/* Exists for every user, unless hidepid hides it. */
		if (!access("/proc/1/stat", F_OK)) {
			ts_finding_set(finding, TS_CHECK_YES, "processes of all users are visible");
			return;
		}
		ts_finding_set(finding, TS_CHECK_LIMITED,
			       "only own processes are visible; those of others are hidden "
			       "(hidepid)");
		ts_finding_fix(finding, "sudo mount -o remount,hidepid=0 /proc");
		ts_finding_note(
			finding,
			"%smakes all processes visible to all users; safer: run tracesmith with "
			"sudo",
			machine->container ? "run this on the host; " : "");
	} else if (!strcmp(name, "stat") || !strcmp(name, "status")) {
		ts_finding_set(finding, TS_CHECK_NO,
			       "cannot read /proc/PID/%s of a child "
			       "process: %s",
			       name, ts_errno_name(error));
		ts_finding_fix(finding, "sudo mount -t proc proc /proc");
	} else {
		ts_finding_set(finding, TS_CHECK_LIMITED,
			       "cannot read /proc/PID/%s of a child process: %s", name,
			       ts_errno_name(error));
	}
}

void ts_check_proc(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	pid_t child = ts_sleeper_start(false);

	if (!child) {
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN,
			       "cannot create a process for the check");
		return;
	}
	classify_proc(machine, child, ret_finding);
	ts_sleeper_stop(child, false);
}
