/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolizer workers: one process per binary, several in parallel; each writes its results into
 * shared memory, which we read when it has exited. A worker that crashes on debug information is
 * restarted without it. Its output is untrusted.
 */
#include "code/symbolize.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/pool.h"
#include "code/symbolize_internal.h"

#define MAX_WORKERS 16u
#define PAUSE_NS 2000000
#define SECOND_NS INT64_C(1000000000)
#define PATIENCE_NS (180 * SECOND_NS) /* time limit for one binary */
/* Files are mapped completely; some have several GB, and so do decompressed sections. */
#define MAX_ADDRESSES ((rlim_t)64 << 30)
#define MAX_BYTES ((size_t)1 << 30) /* output limit of a worker */

struct worker {
	size_t module;
	pid_t pid;
	int fd; /* shared output */
	bool without_lines, has_ended, has_failed;
	int64_t since_ns;
};

struct symbolize {
	struct ts_symbolize_module *modules;
	size_t count, next; /* modules: all; still to start */
	const struct ts_symbolize_options *options;
	struct worker workers[MAX_WORKERS]; /* in the order of their modules */
	size_t worker_count, most_workers;
	uint64_t done, total; /* addresses */
	struct ts_error *err;
};

/* ---- in the worker ---- */

/* Sanitizers need far more address space than memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define IS_WATCHED 1
#endif
#endif

static void set_limit(int what, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(what, &limit) || limit.rlim_cur <= most)
		return;
	limit.rlim_cur = most;
	setrlimit(what, &limit);
}

/* A file may make us use endless time and all memory. Leaves half of the memory to others. */
static void limit_resources(int64_t patience_ns)
{
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_CPU, (rlim_t)(patience_ns / SECOND_NS + 1));
#ifndef IS_WATCHED
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	set_limit(RLIMIT_AS, MAX_ADDRESSES);
	if (pages > 0 && page > 0)
		set_limit(RLIMIT_DATA, (rlim_t)pages / 2 * (rlim_t)page);
#endif
}

static int64_t patience_of(const struct symbolize *s)
{
	return s->options->patience_ns > 0 ? s->options->patience_ns : PATIENCE_NS;
}

/* A worker dies with its parent, dumps no core, and has default signal handling. */
static void prepare(pid_t parent, int64_t patience_ns)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	limit_resources(patience_ns);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void work(const struct symbolize *s, const struct worker *worker)
{
	TS_SCOPED(ts_text) out = { 0 };

	ts_symbolize_module(&s->modules[worker->module], s->options, worker->without_lines, &out);
	if (ts_text_status(&out) || ts_write_all(worker->fd, out.data, out.length, NULL))
		_exit(1);
	_exit(0);
}

/* ---- sending them ---- */

static int send_worker(struct symbolize *s, struct worker *worker)
{
	pid_t parent = getpid();

	worker->has_ended = worker->has_failed = false;
	worker->since_ns = ts_clock_monotonic_ns();
	worker->fd = memfd_create("tracesmith-symbols", MFD_CLOEXEC);
	if (worker->fd < 0)
		return ts_error_errno(s->err, errno, "no memory for symbols");
	worker->pid = fork();
	if (worker->pid == 0) {
		prepare(parent, patience_of(s));
		work(s, worker);
	}
	if (worker->pid > 0)
		return TS_OK;
	close(worker->fd);
	return ts_error_errno(s->err, errno, "cannot start a symbolizer process");
}

static void end_worker(struct worker *worker)
{
	if (!worker->has_ended) {
		kill(worker->pid, SIGKILL);
		while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(worker->fd);
}

static void look_after(struct worker *worker, int64_t patience_ns)
{
	int status;
	pid_t ended;

	if (worker->has_ended)
		return;
	if (ts_clock_monotonic_ns() - worker->since_ns > patience_ns)
		kill(worker->pid, SIGKILL);
	ended = waitpid(worker->pid, &status, WNOHANG);
	if (ended == 0 || (ended < 0 && errno == EINTR))
		return;
	worker->has_ended = true;
	worker->has_failed = ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
}

/* ---- what they found ---- */

struct cursor {
	const char *at;
	size_t left;
};

static bool take(struct cursor *cursor, void *to, size_t bytes)
{
	if (cursor->left < bytes)
		return false;
	memcpy(to, cursor->at, bytes);
	cursor->at += bytes;
	cursor->left -= bytes;
	return true;
}

static bool take_text(struct cursor *cursor, uint32_t bytes, struct ts_text *texts)
{
	if (bytes > TS_SYMBOLIZE_NAME_BYTES || cursor->left < bytes)
		return false;
	ts_text_append(texts, cursor->at, bytes);
	ts_text_append_char(texts, '\0');
	cursor->at += bytes;
	cursor->left -= bytes;
	return true;
}

/* Strings are NUL-terminated and contiguous: their offsets are known when all are there. */
static bool take_address(struct cursor *cursor, struct ts_text *texts, struct ts_symbol *symbols,
			 uint32_t *ret_count)
{
	uint32_t count;
	const char *text;

	ts_text_clear(texts);
	if (!take(cursor, &count, sizeof(count)) || count > TS_SYMBOLIZE_DEPTH)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct ts_symbolize_item item;

		if (!take(cursor, &item, sizeof(item)) ||
		    !take_text(cursor, item.name_bytes, texts) ||
		    !take_text(cursor, item.file_bytes, texts))
			return false;
		symbols[i].line = item.line > 0 && item.line <= INT32_MAX ? item.line : 0;
	}
	if (ts_text_status(texts))
		return false;
	text = texts->data;
	for (uint32_t i = 0; i < count; i++) {
		symbols[i].name = text;
		symbols[i].file = text + strlen(text) + 1;
		text = symbols[i].file + strlen(symbols[i].file) + 1;
	}
	*ret_count = count;
	return true;
}

static int report_addresses(struct symbolize *s, struct ts_symbolize_module *module,
			    struct cursor *cursor)
{
	struct ts_symbol symbols[TS_SYMBOLIZE_DEPTH];
	TS_SCOPED(ts_text) texts = { 0 };
	int rc = TS_OK;

	for (size_t i = 0; i < module->count && !rc; i++) {
		uint32_t count;

		if (!take_address(cursor, &texts, symbols, &count)) {
			module->state = TS_SYMBOLIZE_UNREADABLE;
			return TS_OK;
		}
		if (count == 0)
			continue;
		module->named++;
		rc = s->options->found(s->options->context, module, i, symbols, count, s->err);
	}
	return rc;
}

static int symbolize_bytes(struct symbolize *s, const struct worker *worker, const char *bytes,
			   size_t length)
{
	struct ts_symbolize_module *module = &s->modules[worker->module];
	struct cursor cursor = { bytes, length };
	struct ts_symbolize_head head;

	module->is_damaged = worker->without_lines;
	module->state = TS_SYMBOLIZE_UNREADABLE;
	if (worker->has_failed || !take(&cursor, &head, sizeof(head)) ||
	    head.state > TS_SYMBOLIZE_FUNCTIONS)
		return TS_OK;
	module->state = (enum ts_symbolize_state)head.state;
	if (module->state != TS_SYMBOLIZE_FUNCTIONS)
		return TS_OK;
	if (head.has_lines)
		module->state = TS_SYMBOLIZE_LINES;
	return report_addresses(s, module, &cursor);
}

static int symbolize_module(struct symbolize *s, const struct worker *worker)
{
	struct stat about;
	size_t bytes;
	void *found;
	int rc;

	if (fstat(worker->fd, &about) || about.st_size <= 0 || about.st_size > (off_t)MAX_BYTES)
		return symbolize_bytes(s, worker, NULL, 0);
	bytes = (size_t)about.st_size;
	found = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, worker->fd, 0);
	if (found == MAP_FAILED)
		return ts_error_errno(s->err, errno, "cannot read symbols");
	rc = symbolize_bytes(s, worker, found, bytes);
	munmap(found, bytes);
	return rc;
}

/* ---- all of them ---- */

static int begin_some(struct symbolize *s)
{
	int rc = TS_OK;

	while (!rc && s->next < s->count && s->worker_count < s->most_workers) {
		struct worker *worker = &s->workers[s->worker_count];

		*worker = (struct worker){ .module = s->next };
		rc = send_worker(s, worker);
		if (rc)
			break;
		s->worker_count++;
		s->next++;
	}
	return rc;
}

/* The first running worker has exited: report its results, or restart it. */
static int finish_first(struct symbolize *s)
{
	struct worker *worker = &s->workers[0];
	int rc;

	if (worker->has_failed && !worker->without_lines) {
		close(worker->fd);
		worker->without_lines = true;
		rc = send_worker(s, worker);
		if (!rc)
			return TS_OK;
	} else {
		rc = symbolize_module(s, worker);
		s->done += s->modules[worker->module].count;
		close(worker->fd);
	}
	s->worker_count--;
	memmove(&s->workers[0], &s->workers[1], s->worker_count * sizeof(*worker));
	return rc;
}

static int step(struct symbolize *s)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int rc = begin_some(s);

	if (!rc && s->options->progress &&
	    s->options->progress(s->options->progress_context, s->done, s->total))
		return ts_error_set(s->err, TS_ECANCELED, "stopped");
	for (size_t i = 0; i < s->worker_count; i++)
		look_after(&s->workers[i], patience_of(s));
	if (!rc && s->workers[0].has_ended)
		return finish_first(s);
	if (!rc)
		nanosleep(&pause, NULL);
	return rc;
}

int ts_symbolize(struct ts_symbolize_module *modules, size_t count,
		 const struct ts_symbolize_options *options, struct ts_error *err)
{
	struct ts_error unused_err = { 0 };
	struct symbolize s = { .modules = modules,
			       .count = count,
			       .options = options,
			       .err = err ? err : &unused_err };
	int rc = TS_OK;

	s.most_workers = options->workers ? options->workers : ts_pool_processors();
	s.most_workers = TS_MIN(s.most_workers, MAX_WORKERS);
	for (size_t i = 0; i < count; i++)
		s.total += modules[i].count;
	while (!rc && (s.next < s.count || s.worker_count))
		rc = step(&s);
	for (size_t i = 0; i < s.worker_count; i++)
		end_worker(&s.workers[i]);
	return rc;
}
