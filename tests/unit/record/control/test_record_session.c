/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorders that fail, die or cannot be found: the caller learns why, and nothing changes in it.
 * tests/abi/install.sh records with the real one.
 */
#include <tracesmith/record.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/runner.h"

static volatile sig_atomic_t children;

static void on_child(int number)
{
	(void)number;
	children++;
}

static void write_script(char *path, const char *script)
{
	int fd = mkstemp(path);

	TS_CHECK(fd >= 0);
	TS_CHECK_INT(write(fd, script, strlen(script)), (ssize_t)strlen(script));
	TS_CHECK_INT(fchmod(fd, 0700), 0);
	close(fd);
	setenv("TRACESMITH_RECORDER", path, 1);
}

/* A shell script as the recorder; it has the socket as descriptor 3. */
static int start(const char *script, struct ts_record_session **ret_session, struct ts_error *err)
{
	const pid_t pids[] = { getpid() };
	struct ts_record_options options = {
		.size = sizeof(options),
		.pids = pids,
		.pid_count = 1,
		.output = "x.sbt",
	};
	char path[] = "/tmp/tracesmith-recorder-XXXXXX";
	int rc;

	write_script(path, script);
	signal(SIGCHLD, on_child);
	rc = ts_record_start(ret_session, &options, err);
	unlink(path);
	/* It is nobody's child here. */
	TS_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	TS_CHECK_INT(children, 0);
	return rc;
}

TS_TEST(reasons)
{
	struct ts_record_session *session = NULL;
	struct ts_error err;

	TS_CHECK_INT(start("#!/bin/sh\necho 'failed 4 no agent' >&3\n", &session, &err), TS_ECAP);
	TS_CHECK_STR(err.message, "cannot record: no agent");
	TS_CHECK_INT(start("#!/bin/sh\necho 'failed 2 bad option' >&3\n", &session, &err),
		     TS_EINVAL);
	TS_CHECK_INT(start("#!/bin/sh\nexit 1\n", &session, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "before the trace was complete") != NULL);
	TS_CHECK(!session);
}

TS_TEST(no_tool)
{
	struct ts_record_session *session = NULL;
	const pid_t pids[] = { getpid() };
	struct ts_record_options options = { .size = sizeof(options),
					     .pids = pids,
					     .pid_count = 1 };
	struct ts_error err;

	setenv("TRACESMITH_RECORDER", "/no/such/tool", 1);
	TS_CHECK_INT(ts_record_start(&session, &options, &err), TS_ENOTFOUND);
	TS_CHECK(strstr(err.message, "TRACESMITH_RECORDER is '/no/such/tool'") != NULL);
	/* Found, but no program: the kernel says so. */
	TS_CHECK_INT(start("neither a script nor a program\n", &session, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "cannot start") != NULL);
}

/* What is not there is refused, and no descriptor of ours is closed. */
TS_TEST(nothing_given)
{
	struct ts_record_session *session = NULL;
	struct ts_record_options options = { .size = sizeof(options) };
	struct ts_error err;

	dup2(STDERR_FILENO, 0);
	TS_CHECK_INT(ts_record_start(&session, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_record_start(NULL, &options, &err), TS_EINVAL);
	TS_CHECK(fcntl(0, F_GETFD) >= 0);
	TS_CHECK(!session);
}

/* Of a daemon, new descriptors have the numbers of the standard streams. */
TS_TEST(standard_streams_are_closed)
{
	static const char script[] =
		"#!/bin/sh\n"
		"[ -e /dev/fd/0 ] && [ -e /dev/fd/1 ] && [ -e /dev/fd/2 ] || exit 1\n"
		"echo 'recording 1' >&3\n"
		"read -r word <&3\n"
		"echo 'finished -1 {}' >&3\n";
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	struct ts_record_session *session = NULL;
	struct ts_error err;
	int rc;

	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	rc = start(script, &session, &err);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(saved, fd);
	close(saved);
	if (rc)
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(ts_record_stop(session, NULL, &err), 0);
	ts_record_close(session);
}

/* A recorder that starts after its caller has given up does not record for nobody. */
TS_TEST(starts_too_late)
{
	char path[] = "/tmp/tracesmith-recorder-XXXXXX", answer[64], word[8] = "";
	const pid_t pids[] = { getpid() };
	struct ts_record_options options = {
		.size = sizeof(options), .pids = pids, .pid_count = 1, .timeout_ns = 1
	};
	struct ts_record_session *session = NULL;
	struct ts_error err;
	int fd;

	write_script(path, "#!/bin/sh\nread -r word <&3; printf %s \"$word\" >\"$0.answer\"\n");
	snprintf(answer, sizeof(answer), "%s.answer", path);
	TS_CHECK_INT(mkfifo(answer, 0600), 0);
	TS_CHECK_INT(ts_record_start(&session, &options, &err), TS_EBUSY);
	TS_CHECK(!session);
	fd = open(answer, O_RDONLY);
	TS_CHECK_INT(read(fd, word, sizeof(word) - 1), 4);
	TS_CHECK_STR(word, "stop");
	close(fd);
	unlink(answer);
	unlink(path);
}

/* The answer comes in pieces; arguments and environment are those of the options. */
TS_TEST(summary)
{
	static const char script[] =
		"#!/bin/sh\n"
		"[ -z \"$LD_PRELOAD$TRACESMITH_OUT$TRACESMITH_LIVE\" ] || exit 1\n"
		"case \" $* \" in *' --pid '*' --output x.sbt '*) ;; *) [ \"$2\" = --control ] ;; esac\n"
		"printf 'recor' >&3; printf 'ding %d\\n' $$ >&3\n"
		"read -r word <&3; [ \"$word\" = stop ] || exit 1\n"
		"printf 'finished 256 {\"file\":\"a\\\\\"b\",\"events\":7,' >&3\n"
		"printf '\"lost\":1,\"other\":[1,2],\"stacks\":18446744073709551615}\\n' >&3\n";
	struct ts_record_summary result = { .size = sizeof(result) };
	struct ts_record_session *session;
	struct ts_error err;
	bool ended = true;

	setenv("TRACESMITH_LIVE", "1", 1);
	if (start(script, &session, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK(ts_record_pid(session) > 0);
	TS_CHECK_INT(ts_record_wait(session, 0, &ended, &err), 0);
	TS_CHECK(!ended);
	TS_CHECK_INT(ts_record_stop(session, &result, &err), 0);
	TS_CHECK_STR(result.file, "a\"b");
	TS_CHECK_INT(result.events, 7);
	TS_CHECK_INT(result.lost, 1);
	TS_CHECK_INT(WEXITSTATUS(result.command_status), 1);
	/* Again, by a program that knows less of the summary. */
	memset(&result, 0x55, sizeof(result));
	result.size = offsetof(struct ts_record_summary, lost);
	TS_CHECK_INT(ts_record_stop(session, &result, &err), 0);
	TS_CHECK_INT(result.events, 7);
	TS_CHECK_INT(result.lost, 0x5555555555555555);
	ts_record_close(session);
	ts_record_close(NULL);
}

TS_TEST(dies_later)
{
	struct ts_record_session *session;
	struct ts_error err;
	bool ended = false;

	TS_CHECK_INT(start("#!/bin/sh\necho 'recording 1' >&3\nread -r word <&3\n", &session, &err),
		     0);
	TS_CHECK_INT(ts_record_stop(session, NULL, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "tracesmith recover") != NULL);
	TS_CHECK_INT(ts_record_wait(session, -1, &ended, &err), TS_EIO);
	TS_CHECK(ended);
	ts_record_close(session);
}
