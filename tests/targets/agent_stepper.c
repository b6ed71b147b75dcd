/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-steps a program that emits (ptrace):
 *
 *	agent_stepper look CASE DIRECTORY   copies its live area whenever a byte has changed:
 *					    what a kill -9 after that instruction leaves
 *	agent_stepper kill CASE AFTER       kills it after that many instructions
 *	agent_stepper signal CASE EVERY     sends a signal every so many instructions, whose
 *					    handler emits
 *	agent_stepper fork CASE EVERY       the same with a handler that forks; the child
 *					    continues emitting. A line for each child: its
 *					    pid, and its emits that returned
 *
 * Copies are DIRECTORY/STEP-RETURNED-BEGUN/NAME: the number of events whose emit had returned, and
 * had begun, at that instant.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/emit.h>

#define AREA_BYTES_MOST (16u << 20)
#define PAGE 4096u
#define CHILDREN_MOST 128u

struct progress {
	uint64_t begun, returned; /* events */
	uint64_t children, failed_children;
	uint64_t depth; /* of handlers */
	bool forks;
	bool is_over;
};

/* Of forked children, in memory that all of them share. */
static struct {
	uint64_t count;
	struct {
		uint32_t pid;
		uint32_t returned; /* emits since the fork */
	} child[CHILDREN_MOST];
} * reports;

/*
 * Seen by both processes; with forks only at the end, since children return into the counting code.
 */
static struct progress *shared;
static struct progress private_progress, *progress;
static bool is_child; /* created by a handler; not observed */
static uint64_t returned_at_fork;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(2);
}

/* ---- the observed program ---- */

/* Numbers increase in the order in which events begin. */
static uint64_t begin(void)
{
	return __atomic_fetch_add(&progress->begun, 1, __ATOMIC_RELAXED);
}

static void end(void)
{
	__atomic_fetch_add(&progress->returned, 1, __ATOMIC_RELAXED);
}

static void emit_int(void)
{
	uint64_t number = begin();

	TS_INSTANT("e", "c", TS_INT("n", (int64_t)number));
	end();
}

static void emit_text(void)
{
	static const char text[] =
		"The quick brown fox jumps over the lazy dog, and over another one.";
	uint64_t number = begin();

	TS_INSTANT("t", "c", TS_INT("n", (int64_t)number), TS_STRING("s", text + number % 7 * 9),
		   TS_INT("m", (int64_t)number));
	end();
}

static void emit_dynamic(void)
{
	uint64_t number = begin();
	struct ts_emit_arg args[] = { { "n", TS_EMIT_INT, { .integer = (int64_t)number } },
				      { "s", TS_EMIT_STRING, { .string = "dynamic" } } };

	ts_tracer_instant(ts_tracer_process(), "d", "c", TS_TRACK_THREAD, args, 2);
	end();
}

static void emit_step(void)
{
	uint64_t number = begin();

	ts_step((int64_t)number);
	end();
}

static void emit_mixture(unsigned int count)
{
	static void (*const ways[])(void) = { emit_int, emit_text, emit_int, emit_dynamic,
					      emit_step };

	for (unsigned int i = 0; i < count; i++)
		ways[i % 5]();
}

/* Observed from here until it reports the end. */
static void observe(void)
{
	raise(SIGSTOP);
}

static void run_case(const char *what)
{
	if (!strcmp(what, "first")) { /* all setup: area, ring, call sites */
		observe();
		emit_mixture(5);
	} else if (!strcmp(what, "lap")) { /* pads, and old records freed or the ring enlarged */
		while (progress->begun < 666)
			emit_int();
		observe();
		emit_mixture(50);
	} else {
		exit(2);
	}
	if (is_child)
		return;
	if (progress != shared)
		*shared = *progress;
	shared->is_over = true;
}

static void on_signal(int number)
{
	(void)number;
	shared->depth++;
	TS_INSTANT("handler", "c", TS_INT("h", (int64_t)begin()));
	end();
	shared->depth--;
}

/* The child returns into whatever was interrupted, and must complete it. */
static void on_signal_fork(int number)
{
	pid_t child;

	(void)number;
	shared->depth++;
	child = fork();
	if (child == 0) {
		is_child = true;
		returned_at_fork = progress->returned;
		return;
	}
	progress->children += child > 0;
	shared->depth--;
}

static void count_failure(pid_t pid, int status)
{
	if (!status)
		return;
	fprintf(stderr, "agent_stepper: child %d ended with status %#x\n", (int)pid,
		(unsigned int)status);
	shared->failed_children++;
}

static void report(void)
{
	uint64_t number = __atomic_fetch_add(&reports->count, 1, __ATOMIC_RELAXED);

	if (number >= CHILDREN_MOST)
		return;
	reports->child[number].pid = (uint32_t)getpid();
	reports->child[number].returned = (uint32_t)(progress->returned - returned_at_fork);
}

/* While this process lives, its area cannot be removed to make room for those of its children. */
static void outlive_children(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, 0)) > 0)
		count_failure(pid, status);
}

static void be_observed(const char *what)
{
	struct sigaction action = { .sa_handler = progress->forks ? on_signal_fork : on_signal };

	/* Two, so that a handler is interrupted, too. */
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	run_case(what);
	if (is_child) {
		emit_mixture(20);
		report();
		_exit(0);
	}
	outlive_children();
	exit(0);
}

/* ---- copies of its area ---- */

static struct copy {
	char name[NAME_MAX + 1];
	const char *mapped;
	size_t bytes;
	char *last; /* at the last comparison */
	const char *directory;
	unsigned long saved;
} area;

static const char *live_directory(void)
{
	const char *path = getenv("TRACESMITH_LIVE_DIR");

	check(path, "TRACESMITH_LIVE_DIR");
	return path;
}

/* Finds and maps it once it has its name, and again when it has grown. */
static bool find_area(pid_t pid)
{
	char path[PATH_MAX], prefix[32];
	DIR *list = area.name[0] ? NULL : opendir(live_directory());
	const struct dirent *entry;
	struct stat status;
	int fd;

	snprintf(prefix, sizeof(prefix), "%d-", (int)pid);
	while (list && (entry = readdir(list)))
		if (!strncmp(entry->d_name, prefix, strlen(prefix)) &&
		    !strstr(entry->d_name, ".new"))
			snprintf(area.name, sizeof(area.name), "%s", entry->d_name);
	if (list)
		closedir(list);
	if (!area.name[0])
		return false;
	snprintf(path, sizeof(path), "%s/%s", live_directory(), area.name);
	check(!stat(path, &status), path);
	if ((size_t)status.st_size == area.bytes)
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (area.mapped)
		munmap((void *)area.mapped, area.bytes);
	area.bytes = (size_t)status.st_size;
	area.mapped = mmap(NULL, area.bytes, PROT_READ, MAP_SHARED, fd, 0);
	check(area.mapped != MAP_FAILED && area.bytes <= AREA_BYTES_MOST, path);
	close(fd);
	return true;
}

/* Possibly used: control block and a page of the directory, a page of the dictionary, the pool. */
static bool is_watched(size_t offset)
{
	return offset < 2 * PAGE || (offset >= 0x101000 && offset < 0x101000 + PAGE) ||
	       offset >= 0x201000;
}

static bool has_changed(void)
{
	bool changed = false;

	for (size_t at = 0; at < area.bytes; at += PAGE) {
		if (!is_watched(at) || !memcmp(area.last + at, area.mapped + at, PAGE))
			continue;
		memcpy(area.last + at, area.mapped + at, PAGE);
		changed = true;
	}
	return changed;
}

static void save_copy(unsigned long step)
{
	static const char zeros[PAGE];
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%lu-%" PRIu64 "-%" PRIu64, area.directory, step,
		 shared->returned, shared->begun);
	check(!mkdir(path, 0700), path);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", area.name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	check(fd >= 0 && !ftruncate(fd, (off_t)area.bytes), path);
	for (size_t at = 0; at < area.bytes; at += PAGE)
		if (is_watched(at) && memcmp(area.last + at, zeros, PAGE) != 0)
			check(pwrite(fd, area.last + at, PAGE, (off_t)at) == PAGE, path);
	close(fd);
	area.saved++;
}

static void look(pid_t pid, unsigned long step)
{
	/* Listing the directory costs more than a step; a name is assigned once. */
	if ((area.name[0] || shared->returned == 0) && !find_area(pid))
		return;
	if (area.name[0] && has_changed())
		save_copy(step);
}

/* ---- the observer ---- */

static int wait_stop(pid_t pid)
{
	int status = 0;

	check(waitpid(pid, &status, 0) == pid, "waitpid");
	if (!WIFSTOPPED(status)) {
		fprintf(stderr, "agent_stepper: the program ended with status %#x\n",
			(unsigned int)status);
		exit(1);
	}
	return WSTOPSIG(status);
}

struct plan {
	const char *action;
	unsigned long number;
};

/* Steps one instruction, and delivers a signal. True until the observed part ends. */
static bool step_once(pid_t pid, int *signal)
{
	int stop;

	check(!ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(uintptr_t)*signal),
	      "PTRACE_SINGLESTEP");
	stop = wait_stop(pid);
	/* A signal that was blocked when it was sent arrives later, and is passed on then. */
	*signal = stop == SIGUSR1 || stop == SIGUSR2 || stop == SIGCHLD ? stop : 0;
	check(*signal || stop == SIGTRAP, "an unexpected signal");
	return !__atomic_load_n(&shared->is_over, __ATOMIC_RELAXED);
}

/*
 * One every so many instructions outside handlers, and sometimes a second one inside its handler.
 */
static int choose_signal(unsigned long every)
{
	static unsigned long outside, inside;

	if (shared->depth == 0)
		return ++outside % every ? 0 : SIGUSR1;
	return shared->depth == 1 && !shared->forks && ++inside % 331 == 0 ? SIGUSR2 : 0;
}

/* Steps through the observed part; returns its number of instructions. */
static unsigned long step_through(pid_t pid, const struct plan *plan)
{
	bool looks = !strcmp(plan->action, "look"), kills = !strcmp(plan->action, "kill");
	unsigned long step = 0;
	int signal = 0;

	find_area(pid);
	while (step_once(pid, &signal)) {
		step++;
		if (looks)
			look(pid, step);
		else if (!kills && !signal)
			signal = choose_signal(plan->number);
		else if (kills && step == plan->number)
			break;
	}
	if (kills)
		kill(pid, SIGKILL);
	return step;
}

/* Waits for the observed program, and for its forked children that outlive it. */
static void wait_all(pid_t pid, bool killed)
{
	int status = 0;

	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	check(waitpid(pid, &status, 0) == pid, "waitpid");
	if (!killed && status) {
		fprintf(stderr, "agent_stepper: the program ended with status %#x\n",
			(unsigned int)status);
		exit(1);
	}
	while ((pid = waitpid(-1, &status, 0)) > 0)
		count_failure(pid, status);
}

static void *map_shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(memory != MAP_FAILED, "memory");
	return memory;
}

int main(int argc, char **argv)
{
	struct plan plan;
	unsigned long steps;
	pid_t pid;

	if (argc != 4)
		return 2;
	plan.action = argv[1];
	plan.number = strtoul(argv[3], NULL, 10);
	area.directory = argv[3];
	area.last = calloc(1, AREA_BYTES_MOST);
	shared = map_shared(sizeof(*shared));
	reports = map_shared(sizeof(*reports));
	check(area.last, "memory");
	shared->forks = private_progress.forks = !strcmp(plan.action, "fork");
	progress = shared->forks ? &private_progress : shared;
	check(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl");
	pid = fork();
	if (pid == 0)
		be_observed(argv[2]);
	check(wait_stop(pid) == SIGSTOP, "the first stop");
	steps = step_through(pid, &plan);
	wait_all(pid, !strcmp(plan.action, "kill"));
	printf("%d %lu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %lu\n", (int)pid, steps,
	       shared->returned, shared->begun, shared->children, shared->failed_children,
	       area.saved);
	for (uint64_t i = 0; i < reports->count && i < CHILDREN_MOST; i++)
		printf("%u %u\n", reports->child[i].pid, reports->child[i].returned);
	return 0;
}
