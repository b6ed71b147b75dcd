/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_oracle --oracle FILE [OPTION...] [-- PROGRAM...]: emits self-describing events from several
 * processes and threads, and counts in FILE what was emitted, after each emit has returned.
 * Whatever is killed, a trace must contain what that file says, or count it as lost
 * (tests/crash/live_check.py). Optionally executes another program at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/emit.h>

#include "live_events.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define SECOND_NS INT64_C(1000000000)

static struct options {
	const char *oracle, *name, *folder;
	const char *gate; /* after a flush: wait until this file exists */
	unsigned int processes, threads;
	unsigned int first; /* number of the first process */
	enum event_mode mode;
	uint64_t rate;  /* events per second and thread; 0: unlimited */
	double seconds; /* 0: until count */
	uint64_t count; /* events per thread; 0: until the time is over */
	uint64_t churn; /* a thread ends after this many events, and another continues; 0: never */
	unsigned int signals; /* per second and thread: handlers that emit */
	uint64_t step_every;  /* events of the first thread */
	double late, linger;  /* seconds before the first and after the last event */
	uid_t user;           /* become this user after the first event; 0: do not */
	int chain, daemon, host, flush, report;
} options = { .processes = 1, .threads = 1, .seconds = 1 };

static struct oracle_header *header;
static struct oracle_slot *slots;
static int64_t deadline;
static unsigned int process;

static __thread unsigned int thread_number;
static __thread struct oracle_slot *handler_slot;

static volatile sig_atomic_t children_signals;

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND_NS + time.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
	struct timespec time = { ns / SECOND_NS, ns % SECOND_NS };

	while (ns > 0 && nanosleep(&time, &time) && errno == EINTR)
		;
}

static void die(const char *what)
{
	perror(what);
	exit(9);
}

/* ---- the oracle ---- */

static unsigned int slots_of_process(void)
{
	return options.threads * (options.signals ? 2 : 1);
}

static struct oracle_slot *slot_of(unsigned int thread)
{
	return &slots[(size_t)(process - options.first) * slots_of_process() + thread];
}

static void open_oracle(void)
{
	size_t bytes = sizeof(*header) +
		       (size_t)options.processes * slots_of_process() * sizeof(struct oracle_slot);
	int fd = open(options.oracle ? options.oracle : "", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die(options.oracle);
	header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		die(options.oracle);
	close(fd);
	slots = (struct oracle_slot *)(void *)(header + 1);
	*header = (struct oracle_header){ .magic = "ORACLE1",
					  .processes = options.processes,
					  .threads = options.threads,
					  .mode = (uint32_t)options.mode,
					  .signals = options.signals != 0,
					  .first = options.first };
}

/* ---- one event ---- */

/*
 * Identifies the event: four arguments. One macro for all of them would be a single argument to
 * those of emit.h.
 */
#define ARG_P TS_INT("p", process)
#define ARG_T TS_INT("t", thread)
#define ARG_S TS_INT("s", sequence)
#define ARG_C TS_INT("c", event_checksum(process, thread, sequence))

static void emit_string(unsigned int thread, uint64_t sequence)
{
	char text[EVENT_TEXT_BYTES];

	event_text(sequence, text);
	/* cppcheck-suppress unknownMacro */
	TS_INSTANT("string", "oracle", ARG_P, ARG_T, ARG_S, ARG_C, TS_STRING("text", text));
}

static void emit_dynamic(unsigned int thread, uint64_t sequence)
{
	struct ts_emit_arg args[] = {
		{ "p", TS_EMIT_INT, { .integer = process } },
		{ "t", TS_EMIT_INT, { .integer = thread } },
		{ "s", TS_EMIT_INT, { .integer = (int64_t)sequence } },
		{ "c", TS_EMIT_INT, { .integer = event_checksum(process, thread, sequence) } },
		{ "half", TS_EMIT_DOUBLE, { .real = (double)sequence / 2 } },
		{ "odd", TS_EMIT_BOOL, { .integer = sequence % 2 } },
	};
	char name[EVENT_NAME_BYTES];

	event_dynamic_name(sequence, name);
	ts_tracer_instant(ts_tracer_process(), name, "oracle", TS_TRACK_THREAD, args,
			  sizeof(args) / sizeof(args[0]));
}

static void emit(unsigned int thread, uint64_t sequence)
{
	switch (event_kind_of(options.mode, sequence)) {
	case EVENT_INSTANT:
		TS_INSTANT("instant", "oracle", ARG_P, ARG_T, ARG_S, ARG_C);
		break;
	case EVENT_SPAN:
		TS_SPAN_NS("span", "oracle", 100, ARG_P, ARG_T, ARG_S, ARG_C);
		break;
	case EVENT_BEGIN:
		TS_BEGIN("begin", "oracle", ARG_P, ARG_T, ARG_S, ARG_C);
		break;
	case EVENT_END:
		TS_END();
		break;
	case EVENT_STRING:
		emit_string(thread, sequence);
		break;
	case EVENT_DYNAMIC:
		emit_dynamic(thread, sequence);
		break;
	case EVENT_COUNTER:
		TS_COUNTER("counter", "oracle", ARG_P, ARG_T, ARG_S, ARG_C);
		break;
	case EVENT_TRACK:
		TS_SPAN_NS_ON(thread + 1, "track", "oracle", 50, ARG_P, ARG_T, ARG_S, ARG_C);
		break;
	case EVENT_PAIR:
		TS_INSTANT("pair", "oracle", TS_INT("id", event_pack(process, thread, sequence)),
			   TS_INT("c", event_checksum(process, thread, sequence)));
		break;
	}
}

/* The count must not be visible before the emit has returned, not even to the compiler. */
static void count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELEASE);
}

static void on_alarm(int number)
{
	struct oracle_slot *slot = handler_slot;
	unsigned int thread = options.threads + thread_number;
	uint64_t sequence;

	(void)number;
	if (!slot)
		return;
	sequence = slot->returned;
	TS_INSTANT("signal", "oracle", ARG_P, ARG_T, ARG_S, ARG_C);
	count(&slot->returned);
}

/* ---- a thread ---- */

struct work {
	unsigned int thread;
	uint64_t until; /* sequence */
};

static void name_slot(struct oracle_slot *slot)
{
	slot->tid = (uint32_t)syscall(SYS_gettid);
	slot->pid = (uint32_t)getpid();
}

/* A timer for the calling thread only. */
static timer_t start_alarms(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	long ns = (long)(SECOND_NS / options.signals);
	struct itimerspec every = { { 0, ns }, { 0, ns } };
	timer_t timer = NULL;

	handler_slot = slot_of(options.threads + thread_number);
	name_slot(handler_slot);
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL))
		die("timer");
	return timer;
}

static void emit_some(struct oracle_slot *slot, unsigned int thread, uint64_t until)
{
	for (uint64_t i = slot->returned; i < until; i++) {
		if (options.step_every && thread == 0 && i % options.step_every == 0) {
			TS_STEP((int64_t)(i / options.step_every));
			count(&slot->steps);
		}
		emit(thread, i);
		if (options.user && thread == 0 && i == 0 &&
		    setresuid(options.user, options.user, options.user))
			die("setresuid");
		count(&slot->returned);
	}
}

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static bool time_is_over(int64_t ns)
{
	return options.seconds > 0 && ns >= deadline;
}

/* Until the sequence, the time, or both are reached; by rate in portions of a millisecond. */
static void emit_until(struct oracle_slot *slot, unsigned int thread, uint64_t until)
{
	uint64_t portion = options.rate ? (options.rate + 999) / 1000 : 64;

	while (slot->returned < until) {
		int64_t began = now_ns();

		if (time_is_over(began))
			break;
		emit_some(slot, thread, least(until, slot->returned + portion));
		if (options.rate)
			sleep_ns(began + (int64_t)(portion * SECOND_NS / options.rate) - now_ns());
	}
}

static void *run_thread(void *argument)
{
	const struct work *work = argument;
	struct oracle_slot *slot = slot_of(work->thread);
	timer_t timer = NULL;

	thread_number = work->thread;
	name_slot(slot);
	if (options.signals)
		timer = start_alarms();
	emit_until(slot, work->thread, work->until);
	if (options.signals) {
		timer_delete(timer);
		handler_slot = NULL;
	}
	return NULL;
}

/* A thread that delegates to others, one after another. */
static void *run_churn(void *argument)
{
	const struct work *work = argument;
	const struct oracle_slot *slot = slot_of(work->thread);

	while (slot->returned < work->until && !time_is_over(now_ns())) {
		struct work part = { work->thread,
				     least(work->until, slot->returned + options.churn) };
		pthread_t thread;

		if (pthread_create(&thread, NULL, run_thread, &part))
			die("pthread_create");
		pthread_join(thread, NULL);
	}
	return NULL;
}

/* ---- a process ---- */

static void run_threads(uint64_t until)
{
	void *(*run)(void *) = options.churn ? run_churn : run_thread;
	struct work work[1024];
	pthread_t threads[1024];

	for (unsigned int i = 0; i < options.threads; i++) {
		work[i] = (struct work){ i, until };
		if (pthread_create(&threads[i], NULL, run, &work[i]))
			die("pthread_create");
	}
	for (unsigned int i = 0; i < options.threads; i++)
		pthread_join(threads[i], NULL);
}

static void report(int64_t took_ns)
{
	uint64_t most = 0, all = 0;

	for (unsigned int i = 0; i < slots_of_process(); i++) {
		const struct oracle_slot *slot = slot_of(i);

		all += slot->returned + slot->steps;
		most = slot->returned > most ? slot->returned : most;
	}
	printf("process %u: %" PRIu64 " events, %.1f ns an emit\n", process, all,
	       most ? (double)took_ns / (double)most : 0.0);
}

static void mark_done(void)
{
	for (unsigned int i = 0; i < slots_of_process(); i++)
		__atomic_store_n(&slot_of(i)->done, 1, __ATOMIC_RELEASE);
}

static void run_process(void)
{
	uint64_t until = options.count ? options.count : UINT64_MAX;
	int64_t began;

	sleep_ns((int64_t)(options.late * 1e9));
	began = now_ns();
	deadline = began + (int64_t)(options.seconds * 1e9);
	run_threads(until);
	if (options.report)
		report(now_ns() - began);
	if (options.flush) {
		printf("flush: %d\n", ts_flush());
		fflush(stdout);
		while (options.gate && access(options.gate, F_OK))
			sleep_ns(SECOND_NS / 200);
		deadline = now_ns() + (int64_t)(options.seconds * 1e9);
		run_threads(options.count ? until * 2 : until);
	}
	mark_done();
	sleep_ns((int64_t)(options.linger * 1e9));
}

static int wait_for_all(void)
{
	int status, code = 0;

	while (wait(&status) > 0)
		if (status)
			code = 1;
	return code;
}

static int run_siblings(void)
{
	for (unsigned int i = 0; i < options.processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		process = options.first + i;
		if (pid == 0) {
			run_process();
			exit(0);
		}
	}
	return wait_for_all();
}

/* Each is the parent of the next. */
static int run_chain(void)
{
	for (unsigned int i = 0; i + 1 < options.processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid != 0)
			break;
		process++;
	}
	run_process();
	return wait_for_all();
}

/* ---- a parent that watches its children closely ---- */

static void on_child(int number)
{
	(void)number;
	children_signals = children_signals + 1;
}

static int run_host(void)
{
	struct sigaction action = { .sa_handler = on_child };
	int status, strange = 0;

	sigaction(SIGCHLD, &action, NULL);
	run_process();
	while (waitpid(-1, &status, WNOHANG | __WALL) > 0)
		strange++;
	printf("strange children: %d, errno %s, SIGCHLD: %d\n", strange,
	       errno == ECHILD ? "ECHILD" : "other", (int)children_signals);
	return strange || children_signals;
}

/* ---- options ---- */

static enum event_mode mode_named(const char *name)
{
	static const char *const names[] = { "instant", "span",    "begin", "string",
					     "dynamic", "counter", "pair",  "mixed" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return (enum event_mode)i;
	fprintf(stderr, "live_oracle: unknown mode '%s'\n", name);
	exit(2);
}

static void set_option(int letter, const char *value)
{
	switch (letter) {
	case 'o':
		options.oracle = value;
		break;
	case 'n':
		options.name = value;
		break;
	case 'p':
		options.processes = (unsigned int)strtoul(value, NULL, 10);
		break;
	case 't':
		options.threads = (unsigned int)strtoul(value, NULL, 10);
		break;
	case 'm':
		options.mode = mode_named(value);
		break;
	case 'r':
		options.rate = strtoull(value, NULL, 10);
		break;
	case 's':
		options.seconds = strtod(value, NULL);
		break;
	case 'c':
		options.count = strtoull(value, NULL, 10);
		break;
	case 'u':
		options.churn = strtoull(value, NULL, 10);
		break;
	case 'g':
		options.signals = (unsigned int)strtoul(value, NULL, 10);
		break;
	case 'e':
		options.step_every = strtoull(value, NULL, 10);
		break;
	case 'f':
		options.first = (unsigned int)strtoul(value, NULL, 10);
		break;
	case 'w':
		options.gate = value;
		break;
	case 'd':
		options.folder = value;
		break;
	case 'l':
		options.late = strtod(value, NULL);
		break;
	case 'i':
		options.linger = strtod(value, NULL);
		break;
	case 'a':
		options.user = (uid_t)strtoul(value, NULL, 10);
		break;
	default:
		exit(2);
	}
}

static void read_options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "oracle", 1, NULL, 'o' },
		{ "name", 1, NULL, 'n' },
		{ "processes", 1, NULL, 'p' },
		{ "threads", 1, NULL, 't' },
		{ "mode", 1, NULL, 'm' },
		{ "rate", 1, NULL, 'r' },
		{ "seconds", 1, NULL, 's' },
		{ "count", 1, NULL, 'c' },
		{ "churn", 1, NULL, 'u' },
		{ "signals", 1, NULL, 'g' },
		{ "step-every", 1, NULL, 'e' },
		{ "first", 1, NULL, 'f' },
		{ "gate", 1, NULL, 'w' },
		{ "chdir", 1, NULL, 'd' },
		{ "late", 1, NULL, 'l' },
		{ "linger", 1, NULL, 'i' },
		{ "user", 1, NULL, 'a' },
		{ "chain", 0, &options.chain, 1 },
		{ "daemon", 0, &options.daemon, 1 },
		{ "host", 0, &options.host, 1 },
		{ "flush", 0, &options.flush, 1 },
		{ "report", 0, &options.report, 1 },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1)
		if (letter)
			set_option(letter, optarg);
	if (!options.oracle || !options.threads || options.threads > 1024 || !options.processes) {
		fprintf(stderr, "live_oracle: --oracle FILE is needed, and 1 to 1024 threads\n");
		exit(2);
	}
}

static void become_daemon(void)
{
	if (fork())
		_exit(0);
	setsid();
	if (fork()) {
		/* A recorder waits half a second for the first event of a process left behind. */
		while (!__atomic_load_n(&slots[0].returned, __ATOMIC_ACQUIRE))
			sleep_ns(SECOND_NS / 1000);
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	read_options(argc, argv);
	open_oracle();
	sigaction(SIGUSR1, &action, NULL);
	process = options.first;
	if (options.folder && chdir(options.folder))
		die(options.folder);
	if (options.daemon)
		become_daemon();
	if (options.name)
		ts_thread_name(options.name);
	if (options.host)
		return run_host();
	if (options.chain)
		return run_chain();
	if (options.processes > 1)
		return run_siblings();
	run_process();
	if (optind < argc) {
		execv(argv[optind], argv + optind);
		die(argv[optind]);
	}
	return 0;
}
