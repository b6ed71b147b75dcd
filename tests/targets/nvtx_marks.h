/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses NVTX, controlled by its arguments:
 *
 *	push:NAME  pop            a range of this thread, whose level is printed after `levels`
 *	wide:TEXT                 a push of wide characters, followed by one that is not ASCII
 *	domain:NAME               push, pop and mark use this domain; "domain:": the default one
 *	rich:NAME                 a push with a payload of 42, a color and a category "loading"
 *	real:NAME                 the same with only a payload of 0.5, and a registered name
 *	start:NAME  end:I         a range that any thread may end; the I-th started, from 0
 *	end-elsewhere:I           ended by another thread
 *	mark:NAME
 *	names:N                   N ranges with different names
 *	repeat:N                  N ranges with one name
 *	threads:N                 N threads at once: each names itself, and has a range "in thread"
 *	inside:N:NAME             N threads at once, each with 10 ranges of that name, each with a
 *				  mark "inside"
 *	deep:N                    N pushes, then N pops
 *	handles                   passes invalid handles to NVTX
 *	cost:N                    prints the CPU time of a push and a pop in ns
 *	make:FILE  await:FILE  sleep:MS  fork  kill:N  exit:N
 */
#ifndef NVTX_MARKS_H
#define NVTX_MARKS_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(TS_HAVE_CUDA_HEADERS) && !defined(BUNDLED_CLIENT)
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_client.h"
#endif

#include "file_signals.h"

#define STARTED 64

static nvtxDomainHandle_t domain;
static int prints_levels, started_count;
static nvtxRangeId_t started[STARTED];
static pid_t child;

static void print_level(int level)
{
	if (prints_levels)
		printf("%d\n", level);
}

static nvtxEventAttributes_t attributes(const char *name)
{
	nvtxEventAttributes_t event;

	memset(&event, 0, sizeof(event));
	event.version = NVTX_VERSION;
	event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	event.messageType = NVTX_MESSAGE_TYPE_ASCII;
	event.message.ascii = name;
	return event;
}

static void push(const char *name)
{
	nvtxEventAttributes_t event = attributes(name);

	print_level(domain ? nvtxDomainRangePushEx(domain, &event) : nvtxRangePushA(name));
}

static void pop(const char *unused)
{
	(void)unused;
	print_level(domain ? nvtxDomainRangePop(domain) : nvtxRangePop());
}

static void push_wide(const char *text)
{
	wchar_t wide[64];
	size_t length = strlen(text);

	for (size_t i = 0; i < length && i < 62; i++)
		wide[i] = (wchar_t)text[i];
	wide[length] = 0xe9;
	wide[length + 1] = 0;
	print_level(nvtxRangePushW(wide));
}

static void push_rich(const char *name)
{
	nvtxEventAttributes_t event = attributes(name);

	nvtxDomainNameCategoryA(domain, 7, "loading");
	event.category = 7;
	event.colorType = NVTX_COLOR_ARGB;
	event.color = 0xff00ff00;
	event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	event.payload.llValue = 42;
	print_level(nvtxDomainRangePushEx(domain, &event));
}

static void push_real(const char *name)
{
	nvtxEventAttributes_t event = attributes(NULL);

	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = nvtxDomainRegisterStringA(domain, name);
	event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	event.payload.dValue = 0.5;
	print_level(nvtxDomainRangePushEx(domain, &event));
}

static void choose_domain(const char *name)
{
	domain = *name ? nvtxDomainCreateA(name) : NULL;
}

static void start(const char *name)
{
	if (started_count < STARTED)
		started[started_count++] = nvtxRangeStartA(name);
}

static void end(const char *which)
{
	nvtxRangeEnd(started[strtol(which, NULL, 10) % STARTED]);
}

static void *end_range(void *which)
{
	end(which);
	return NULL;
}

static void end_in_thread(const char *which)
{
	pthread_t thread;

	pthread_create(&thread, NULL, end_range, (void *)which);
	pthread_join(thread, NULL);
}

static void mark(const char *name)
{
	nvtxEventAttributes_t event = attributes(name);

	if (domain)
		nvtxDomainMarkEx(domain, &event);
	else
		nvtxMarkA(name);
}

static void many_names(const char *count)
{
	char name[96];

	for (long i = 0; i < strtol(count, NULL, 10); i++) {
		snprintf(name, sizeof(name), "aten::add, seq = %ld, op_id = %ld", i, 3 * i);
		nvtxRangePushA(name);
		nvtxRangePop();
	}
}

static void repeat(const char *count)
{
	for (long i = strtol(count, NULL, 10); i > 0; i--) {
		nvtxRangePushA("again");
		nvtxRangePop();
	}
}

static void *in_thread(void *number)
{
	char name[32];

	snprintf(name, sizeof(name), "worker %d", (int)(intptr_t)number);
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
	nvtxRangePushA("in thread");
	nvtxRangePop();
	return NULL;
}

static void *ten_inside(void *name)
{
	for (int i = 0; i < 10; i++) {
		nvtxRangePushA(name);
		nvtxMarkA("inside");
		nvtxRangePop();
	}
	return NULL;
}

static void run_threads(long count, void *(*run)(void *), const char *name)
{
	pthread_t threads[64];

	count = count > 64 ? 64 : count;
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, run, name ? (void *)name : (void *)(intptr_t)i);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void threads(const char *count)
{
	run_threads(strtol(count, NULL, 10), in_thread, NULL);
}

static void inside(const char *commands)
{
	char *name;
	long count = strtol(commands, &name, 10);

	run_threads(count, ten_inside, name + 1);
}

static void deep(const char *count)
{
	long depth = strtol(count, NULL, 10);

	for (long i = 0; i < depth; i++)
		if (nvtxRangePushA("deep") != i)
			printf("a push said another level than %ld\n", i);
	for (long i = depth; i > 0; i--)
		if (nvtxRangePop() != i - 1)
			printf("a pop said another level than %ld\n", i - 1);
}

static void odd_handles(const char *unused)
{
	nvtxEventAttributes_t event = attributes("of no domain");

	(void)unused;
	nvtxDomainMarkEx((nvtxDomainHandle_t)(uintptr_t)0x1234, &event);
	event = attributes(NULL);
	nvtxDomainMarkEx(NULL, &event);
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = (nvtxStringHandle_t)(uintptr_t)0x4321;
	nvtxDomainMarkEx(NULL, &event);
	event = attributes("too small");
	event.size = 8;
	nvtxDomainMarkEx(NULL, &event);
	nvtxRangeEnd(77);
	nvtxRangeEnd(0);
	printf("%d\n", nvtxRangePop());
}

static void cost(const char *count)
{
	long pairs = strtol(count, NULL, 10);
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (long i = 0; i < pairs; i++) {
		nvtxRangePushA("a range that is measured");
		nvtxRangePop();
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	printf("%.1f ns\n",
	       ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
		       (double)pairs);
}

static void sleep_ms(const char *count)
{
	usleep((useconds_t)strtol(count, NULL, 10) * 1000);
}

static void fork_child(const char *unused)
{
	(void)unused;
	fflush(stdout);
	child = fork();
}

static void kill_self(const char *number)
{
	kill(getpid(), (int)strtol(number, NULL, 10));
}

static void exit_now(const char *code)
{
	exit((int)strtol(code, NULL, 10));
}

static void print_levels(const char *unused)
{
	(void)unused;
	prints_levels = 1;
}

static const struct {
	const char *command;
	void (*run)(const char *value);
} commands[] = {
	{ "push", push },
	{ "pop", pop },
	{ "levels", print_levels },
	{ "wide", push_wide },
	{ "domain", choose_domain },
	{ "rich", push_rich },
	{ "real", push_real },
	{ "start", start },
	{ "end", end },
	{ "end-elsewhere", end_in_thread },
	{ "mark", mark },
	{ "names", many_names },
	{ "repeat", repeat },
	{ "threads", threads },
	{ "inside", inside },
	{ "deep", deep },
	{ "handles", odd_handles },
	{ "cost", cost },
	{ "make", make_file },
	{ "await", await_file },
	{ "sleep", sleep_ms },
	{ "fork", fork_child },
	{ "kill", kill_self },
	{ "exit", exit_now },
};

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t length = strcspn(argv[i], ":"), n = 0,
		       count = sizeof(commands) / sizeof(commands[0]);

		while (n < count && (strlen(commands[n].command) != length ||
				     memcmp(commands[n].command, argv[i], length) != 0))
			n++;
		if (n == count) {
			fprintf(stderr, "unknown word '%s'\n", argv[i]);
			return 2;
		}
		commands[n].run(argv[i][length] ? argv[i] + length + 1 : "");
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	return 0;
}

#endif
