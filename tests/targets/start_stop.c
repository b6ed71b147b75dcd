/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and stops its own recording (docs/live.md, section 4.6), for
 * tests/cli/record/start_stop.sh:
 *
 *	start_stop cycles FOLDER N    N recordings, of four threads; others emit all the time
 *	start_stop flight FOLDER      flight mode, then a recording that begins with what it kept
 *	start_stop fresh FOLDER       the same, but flight mode is stopped first
 *	start_stop children FOLDER    with forked and executed children
 *	start_stop running FOLDER     does not stop: waits for a line on standard input, then exits
 *	start_stop busy FOLDER        two processes, one file
 *	start_stop redact FOLDER      strings are not stored
 *	start_stop elsewhere FOLDER   a file that cannot be written
 *
 * Prints what ts_start() and ts_stop() return.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/emit.h>

enum { THREADS = 4, EVENTS = 1000 };

static char *program;

static const char *name_of(int rc)
{
	return rc ? strerrorname_np(-rc) : "0";
}

static void start_at(const char *folder, const char *name, uint32_t flags)
{
	struct ts_start_options options = { .size = sizeof(options), .flags = flags };
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name ? name : "");
	options.output = name ? path : NULL;
	printf("start %s: %s\n", name ? name : "flight", name_of(ts_start(&options)));
}

static void stop(void)
{
	char notice[256];
	int rc = ts_stop(notice, sizeof(notice));

	printf("stop: %s%s%s\n", name_of(rc), notice[0] ? " " : "", notice);
}

static void mark(const char *name, int times)
{
	for (int i = 0; i < times; i++)
		ts_tracer_instant(ts_tracer_process(), name, "test", TS_TRACK_THREAD, NULL, 0);
}

/* ---- cycles ---- */

static pthread_barrier_t barrier;
static int is_over;

static void *work(void *cycles_of)
{
	for (int cycle = 0; cycle < *(int *)cycles_of; cycle++) {
		pthread_barrier_wait(&barrier); /* started */
		for (int i = 0; i < EVENTS; i++)
			TS_INSTANT("work", "test", TS_INT("cycle", cycle));
		pthread_barrier_wait(&barrier); /* done */
	}
	return NULL;
}

static void *make_noise(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		TS_BEGIN("noise", "test");
		usleep(10);
		TS_END();
	}
	return NULL;
}

static void cycles(const char *folder, int count)
{
	pthread_t threads[THREADS + 1];

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, &count);
	pthread_create(&threads[THREADS], NULL, make_noise, NULL);
	for (int cycle = 0; cycle < count; cycle++) {
		char name[32];

		snprintf(name, sizeof(name), "%d.sbt", cycle);
		start_at(folder, name, 0);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		stop();
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- children ---- */

static void run_child(bool executes)
{
	pid_t child;
	int status = -1;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (executes) {
			char text[256];

			if (!ts_start_environment(text, sizeof(text)))
				setenv("TRACESMITH_AGENT", text, 1);
			execl(program, program, "child", ".", (char *)NULL);
			_exit(127);
		}
		start_at(".", "child.sbt", 0);
		stop();
		fflush(stdout);
		mark("forked", 5);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("child: %d\n", status);
}

static void children(const char *folder)
{
	char text[256];

	start_at(folder, "t.sbt", 0);
	mark("parent", 2);
	run_child(false);
	setenv("TRACESMITH_AGENT", ts_start_environment(text, sizeof(text)) ? "" : text, 1);
	run_child(true);
	unsetenv("TRACESMITH_AGENT");
	stop();
	run_child(true);
}

/* ---- the others ---- */

static void busy(const char *folder)
{
	int ready[2], done[2];
	char byte = 0;
	pid_t child;

	if (pipe(ready) || pipe(done))
		return;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		start_at(folder, "t.sbt", 0);
		fflush(stdout);
		mark("first", 1);
		ts_flush();
		if (write(ready[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1)
			stop();
		fflush(stdout);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		return;
	start_at(folder, "t.sbt", 0);
	fflush(stdout);
	if (write(done[1], &byte, 1) == 1)
		waitpid(child, NULL, 0);
	start_at(folder, "t.sbt", 0);
	mark("second", 1);
	stop();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "", *folder = argc > 2 ? argv[2] : "";
	char byte;

	program = argv[0];
	if (!strcmp(what, "cycles") && argc == 4) {
		cycles(folder, (int)strtol(argv[3], NULL, 10));
	} else if (!strcmp(what, "flight") || !strcmp(what, "fresh")) {
		start_at(folder, NULL, 0);
		mark("kept", 5000);
		if (!strcmp(what, "fresh"))
			stop();
		start_at(folder, "t.sbt", 0);
		mark("recorded", 10);
		stop();
		mark("lost", 10);
	} else if (!strcmp(what, "children")) {
		children(folder);
	} else if (!strcmp(what, "child")) {
		mark("executed", 7);
	} else if (!strcmp(what, "running")) {
		start_at(folder, "t.sbt", 0);
		mark("recorded", 10);
		fflush(stdout);
		(void)!read(0, &byte, 1);
	} else if (!strcmp(what, "busy")) {
		busy(folder);
	} else if (!strcmp(what, "redact")) {
		start_at(folder, "t.sbt", TS_START_REDACT);
		TS_INSTANT("secret", "test", TS_STRING("text", "do not store"), TS_INT("n", 1));
		stop();
	} else if (!strcmp(what, "elsewhere")) {
		start_at(folder, "missing/t.sbt", 0);
		mark("recorded", 1);
		stop();
	} else {
		fprintf(stderr, "usage: start_stop CASE FOLDER [N]\n");
		return 2;
	}
	return 0;
}
