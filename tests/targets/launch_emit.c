/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program to record, controlled by its arguments:
 *
 *	instants:N  N instants "tick" with an argument i
 *	spans:N     N spans "work" of 1 us
 *	track:N     a span "layer" on track N
 *	counter:N   a counter "memory"
 *	texts:N     N instants with a string
 *	steps:N     N steps with an instant each
 *	threads:N   N threads, an instant in each, one after another
 *	make:FILE   creates a file
 *	await:FILE  waits until a file exists
 *	say:TEXT    prints a line
 *	sleep:MS    sleeps
 *	fork        child and parent both do the rest; the parent then waits for the child
 *	daemon      a daemonized grandchild does the rest; the process itself exits at once
 *	exit:N      exits
 *	kill:N      kills itself with signal N
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/emit.h>

#include "file_signals.h"

static pid_t child;

static void emit_instants(long count)
{
	for (long i = 0; i < count; i++)
		TS_INSTANT("tick", "test", TS_INT("i", i));
}

static void emit_spans(long count)
{
	for (long i = 0; i < count; i++)
		TS_SPAN_NS("work", "test", 1000, TS_INT("i", i));
}

static void emit_texts(long count)
{
	for (long i = 0; i < count; i++)
		TS_INSTANT("told", "test", TS_STRING("text", "secret"));
}

static void emit_steps(long count)
{
	for (long i = 0; i < count; i++) {
		TS_STEP(i);
		TS_INSTANT("tick", "test", TS_INT("step", i));
	}
}

static void *emit_one(void *unused)
{
	(void)unused;
	TS_INSTANT("tick", "test");
	return NULL;
}

static void emit_in_threads(long count)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		if (!pthread_create(&thread, NULL, emit_one, NULL))
			pthread_join(thread, NULL);
	}
}

static void nap(long ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left))
		;
}

static void become_daemon(void)
{
	if (fork() > 0)
		_exit(0);
	setsid();
	if (fork() > 0)
		_exit(0);
}

static void obey_number(const char *command, size_t length, long number)
{
	if (!strncmp(command, "instants", length))
		emit_instants(number);
	else if (!strncmp(command, "spans", length))
		emit_spans(number);
	else if (!strncmp(command, "texts", length))
		emit_texts(number);
	else if (!strncmp(command, "steps", length))
		emit_steps(number);
	else if (!strncmp(command, "threads", length))
		emit_in_threads(number);
	else if (!strncmp(command, "track", length))
		TS_SPAN_NS_ON(number, "layer", "test", 1500);
	else if (!strncmp(command, "counter", length))
		TS_COUNTER("memory", "test", TS_INT("used", number));
	else if (!strncmp(command, "sleep", length))
		nap(number);
	else if (!strncmp(command, "kill", length))
		raise((int)number);
	else if (!strncmp(command, "exit", length))
		exit((int)number);
}

static void obey(const char *command)
{
	size_t length = strcspn(command, ":");
	const char *value = command[length] ? command + length + 1 : "";

	if (!strcmp(command, "fork"))
		child = fork();
	else if (!strcmp(command, "daemon"))
		become_daemon();
	else if (!strncmp(command, "make", length))
		make_file(value);
	else if (!strncmp(command, "await", length))
		await_file(value);
	else if (!strncmp(command, "say", length))
		puts(value);
	else
		obey_number(command, length, strtol(value, NULL, 10));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		obey(argv[i]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return 0;
}
