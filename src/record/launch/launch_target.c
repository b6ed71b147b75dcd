/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork and exec with the agent preloaded. Everything that allocates happens before the fork: the
 * recorder has threads by then, so the child may only make system calls. A close-on-exec pipe
 * reports whether exec succeeded.
 */
#include "record/launch/launch_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "backends/recorder/agent_library.h"
#include "backends/recorder/backend_table.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define STACKS "TRACESMITH_PYTHON_STACKS"
#define SETTINGS_BYTES 4096

extern char **environ;

/* ---- the environment ---- */

void ts_launch_format(const struct ts_launch_options *options, char *buffer, size_t bytes)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_text_printf(&text, "session=%016" PRIx64 ";mode=stream;enabled=%d", options->session,
		       options->enabled);
	if (options->step_open != TS_ABSENT)
		ts_text_printf(&text, ";steps=%" PRId64 "-%" PRId64, options->step_open,
			       options->step_close);
	if (options->max_steps)
		ts_text_printf(&text, ";max_steps=%" PRId64, options->max_steps);
	if (options->redact)
		ts_text_append_str(&text, ";redact=1");
	if (options->budget)
		ts_text_printf(&text, ";budget=%" PRIu64, options->budget);
	if (options->backends)
		ts_text_printf(&text, ";backends=%s", options->backends);
	if (options->settings && *options->settings)
		ts_text_printf(&text, ";%s", options->settings);
	if (options->replayable)
		ts_text_printf(&text,
			       ";replayable=%d;from_start=%d;snapshot_limit=%" PRIu64
			       ";window_timeout=%" PRId64,
			       (int)options->replayable, options->from_start,
			       options->snapshot_limit, options->window_timeout_ns);
	if (options->replayable && options->keep_contents)
		ts_text_printf(&text, ";keep_contents=%" PRIu64, options->keep_contents);
	strncpy(buffer, ts_text_cstr(&text), bytes - 1);
	buffer[bytes - 1] = '\0';
}

#define VARIABLES_AT_MOST 64

/* A copy of this environment with the variables that a recording sets. */
struct environment {
	char **variables;
	struct ts_text set[VARIABLES_AT_MOST]; /* "NAME=value"; "NAME" alone removes the variable */
	size_t set_count;
};

static void environment_release(struct environment *environment)
{
	free(environment->variables);
	for (size_t i = 0; i < environment->set_count; i++)
		ts_text_release(&environment->set[i]);
}

static bool is_of_backend(const struct ts_backend *backend, const char *name, size_t length)
{
	for (const char *const *file = backend->preload; file && *file; file++)
		if (strlen(*file) == length && !memcmp(*file, name, length))
			return true;
	return false;
}

/* True for the agent and libraries of backends, which an outer recording may have added. */
static bool is_library_of_ours(const char *path, size_t length)
{
	const struct ts_known_backend *known;
	const char *name = path + length;

	while (name > path && name[-1] != '/')
		name--;
	length = (size_t)(path + length - name);
	if (length == strlen(TS_AGENT_LIBRARY) && !memcmp(name, TS_AGENT_LIBRARY, length))
		return true;
	for (size_t i = 0; (known = ts_backend_known(i)); i++)
		if (is_of_backend(&known->backend, name, length))
			return true;
	return false;
}

/* Appends the elements of a list, except those that an outer recording added. */
static void append_others(struct ts_text *text, size_t begin, const char *before,
			  const char *separators)
{
	while (before && *before) {
		size_t length = strcspn(before, separators);

		if (length && !is_library_of_ours(before, length)) {
			if (text->length > begin)
				ts_text_append_char(text, ':');
			ts_text_append(text, before, length);
		}
		before += length + (before[length] != '\0');
	}
}

/* Appends the path of a backend's library, unless it is unreadable or LD_PRELOAD cannot hold it. */
static void append_library(struct ts_text *text, size_t begin, const char *agent_path,
			   const struct ts_known_backend *known, const char *name)
{
	const char *folder = known->folder[0] ? known->folder : agent_path;
	size_t length = text->length, folder_length = strlen(folder), at;

	while (!known->folder[0] && folder_length && folder[folder_length - 1] != '/')
		folder_length--;
	if (length > begin)
		ts_text_append_char(text, ':');
	at = text->length;
	if (!strchr(name, '/')) {
		ts_text_append(text, folder, folder_length);
		if (known->folder[0])
			ts_text_append_char(text, '/');
	}
	ts_text_append_str(text, name);
	if (!text->failed &&
	    (access(ts_text_cstr(text) + at, R_OK) || strpbrk(ts_text_cstr(text) + at, " :\t\n")))
		text->length = length;
}

/* Begins the text "NAME=". NULL: too many variables. */
static struct ts_text *add_variable(struct environment *environment, const char *name)
{
	struct ts_text *text;

	if (environment->set_count == VARIABLES_AT_MOST)
		return NULL;
	text = &environment->set[environment->set_count++];
	ts_text_append_str(text, name);
	ts_text_append_char(text, '=');
	return text;
}

/* The n-th selected backend that runs in the program, or NULL. */
static const struct ts_known_backend *chosen(const struct ts_launch_options *options, size_t n)
{
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++)
		if (ts_backend_is_listed(options->backends, known->backend.name) && !n--)
			return known;
	return NULL;
}

static void set_preload(struct environment *environment, const char *agent_path,
			const struct ts_launch_options *options)
{
	struct ts_text *text = add_variable(environment, "LD_PRELOAD");
	size_t begin = text->length;
	const struct ts_known_backend *known;

	ts_text_append_str(text, agent_path);
	for (size_t i = 0; (known = chosen(options, i)); i++)
		for (const char *const *file = known->backend.preload; file && *file; file++)
			append_library(text, begin, agent_path, known, *file);
	append_others(text, begin, getenv("LD_PRELOAD"), " :");
}

/*
 * Sets a variable of a backend. Removes what an outer recording set there, even if `is_wanted` is
 * false.
 */
static void set_variable(struct environment *environment, const char *agent_path,
			 const struct ts_known_backend *known,
			 const struct ts_backend_variable *variable, bool is_wanted)
{
	const char *before = getenv(variable->name);
	bool is_others = before && *before && !is_library_of_ours(before, strlen(before));
	struct ts_text *text;
	size_t begin;

	if (!is_wanted && (!before || variable->kind == TS_BACKEND_TEXT))
		return;
	text = add_variable(environment, variable->name);
	if (!text)
		return;
	begin = text->length;
	if (is_others && variable->merge == TS_BACKEND_KEEP)
		is_wanted = false;
	if (is_wanted && variable->kind == TS_BACKEND_AGENT)
		ts_text_append_str(text, agent_path);
	else if (is_wanted && variable->kind == TS_BACKEND_LIBRARY)
		append_library(text, begin, agent_path, known, variable->value);
	else if (is_wanted && variable->value)
		ts_text_append_str(text, variable->value);
	if (variable->merge == TS_BACKEND_PREPEND)
		append_others(text, begin, before, ":");
	else if (is_others && !is_wanted)
		ts_text_append_str(text, before);
	/* Empty value: "NAME" without '=' removes the variable. */
	if (text->length == begin)
		text->length--;
}

static void set_variables(struct environment *environment, const char *agent_path,
			  const struct ts_launch_options *options)
{
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		const struct ts_backend_variable *variable = known->backend.environment;
		bool is_wanted = ts_backend_is_listed(options->backends, known->backend.name);

		for (; variable && variable->name; variable++)
			set_variable(environment, agent_path, known, variable, is_wanted);
	}
}

/* Elements of PYTHONPATH that an outer recording added. */
static bool is_injection(const char *path, size_t length)
{
	static const char suffix[] = "/tracesmith/inject";

	return length >= strlen(suffix) &&
	       !memcmp(path + length - strlen(suffix), suffix, strlen(suffix));
}

/*
 * Lets a Python program import the package without installing it (docs/install.md). Programs that
 * are not Python see a longer variable.
 */
static void set_python_path(struct environment *environment)
{
	const char *before = getenv("PYTHONPATH"), *switched = getenv("TRACESMITH_INJECT");
	char folder[TS_AGENT_PATH_BYTES];
	struct ts_text *text;

	if (switched && !strcmp(switched, "0"))
		return;
	if (!ts_agent_library_find_injection(folder, sizeof(folder)))
		return;
	text = add_variable(environment, "PYTHONPATH");
	if (!text)
		return;
	ts_text_append_str(text, folder);
	/* The rest stays as it is: an empty element means the current directory. */
	for (const char *rest = before ? before : ""; *rest;) {
		size_t length = strcspn(rest, ":");

		if (!is_injection(rest, length)) {
			ts_text_append_char(text, ':');
			ts_text_append(text, rest, length);
		}
		rest += length;
		if (*rest && !*++rest)
			ts_text_append_char(text, ':');
	}
}

static int make_texts(const struct ts_launch_options *options, const char *agent_path,
		      struct environment *environment)
{
	char settings[SETTINGS_BYTES];
	bool failed = false;

	set_preload(environment, agent_path, options);
	ts_launch_format(options, settings, sizeof(settings));
	ts_text_append_str(add_variable(environment, "TRACESMITH_AGENT"), settings);
	if (options->python_stacks)
		ts_text_append_str(add_variable(environment, STACKS), options->python_stacks);
	set_variables(environment, agent_path, options);
	set_python_path(environment);
	/* Terminate each text now: nothing is allocated after this. */
	for (size_t i = 0; i < environment->set_count; i++) {
		ts_text_append_char(&environment->set[i], '\0');
		failed |= environment->set[i].failed;
	}
	return failed ? TS_ENOMEM : TS_OK;
}

static bool is_set(const struct environment *environment, const char *variable)
{
	size_t length = strcspn(variable, "=");

	for (size_t i = 0; i < environment->set_count; i++)
		if (!strncmp(environment->set[i].data, variable, length) &&
		    (environment->set[i].data[length] == '=' || !environment->set[i].data[length]))
			return true;
	return false;
}

static int make_environment(const struct ts_launch_options *options, const char *agent_path,
			    struct environment *environment)
{
	size_t count = 0, kept = 0;

	while (environ && environ[count])
		count++;
	environment->variables = ts_alloc_array(count + VARIABLES_AT_MOST + 1, sizeof(char *));
	if (!environment->variables || make_texts(options, agent_path, environment))
		return TS_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!is_set(environment, environ[i]))
			environment->variables[kept++] = environ[i];
	}
	for (size_t i = 0; i < environment->set_count; i++) {
		if (strchr(environment->set[i].data, '='))
			environment->variables[kept++] = environment->set[i].data;
	}
	environment->variables[kept] = NULL;
	return TS_OK;
}

/* ---- the program ---- */

static int cannot_start(const char *program, int errnum, struct ts_error *err)
{
	/* The file exists, so its interpreter (#!) or loader does not. */
	if (errnum == ENOENT && strchr(program, '/') && !access(program, F_OK))
		return ts_error_set(err, TS_EIO,
				    "cannot start '%s': its interpreter or loader does not exist",
				    program);
	if (errnum == ENOENT)
		return ts_error_set(err, TS_ENOTFOUND, "cannot start '%s': no such program",
				    program);
	return ts_error_errno(err, errnum, "cannot start '%s'", program);
}

/* 0, or an errno: why the file cannot be executed. */
static int why_not_executable(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return errno;
	if (!S_ISREG(status.st_mode))
		return EACCES;
	return access(path, X_OK) ? errno : 0;
}

/*
 * Searches like execvp(): the first executable file wins; EACCES if some file was not executable.
 */
static int search_path(const char *program)
{
	const char *path = getenv("PATH");
	char candidate[PATH_MAX];
	int why = ENOENT;

	for (const char *folder = path ? path : "/bin:/usr/bin"; folder;) {
		size_t length = strcspn(folder, ":");
		int found;

		if (length + strlen(program) + 2 <= sizeof(candidate)) {
			memcpy(candidate, folder, length);
			stpcpy(stpcpy(candidate + length, length ? "/" : ""), program);
			found = why_not_executable(candidate);
			if (!found)
				return 0;
			if (found == EACCES)
				why = EACCES;
		}
		folder = folder[length] ? folder + length + 1 : NULL;
	}
	return why;
}

int ts_launch_check(const char *program, struct ts_error *err)
{
	int why;

	if (!*program)
		return cannot_start(program, ENOENT, err);
	why = strchr(program, '/') ? why_not_executable(program) : search_path(program);
	return why ? cannot_start(program, why, err) : TS_OK;
}

static void restore_signals(const struct ts_launch_options *options)
{
	for (int number = 1; options->signals_ignored && number < NSIG; number++) {
		if (sigismember(options->signals_ignored, number) == 1)
			signal(number, SIG_IGN);
	}
	if (options->signal_mask)
		sigprocmask(SIG_SETMASK, options->signal_mask, NULL);
}

/* Runs in the child: system calls only. */
static void become(const struct ts_launch_options *options, char **variables, int report_fd)
{
	int why;

	restore_signals(options);
	execvpe(options->argv[0], options->argv, variables);
	why = errno;
	(void)!write(report_fd, &why, sizeof(why));
	_exit(127);
}

/* Result of exec: 0 if it closed the pipe, else an errno. */
static int wait_for_exec(int fd)
{
	int why = 0;

	return ts_read_some(fd, &why, sizeof(why)) == (ssize_t)sizeof(why) ? why : 0;
}

static int fork_and_exec(const struct ts_launch_options *options, char **variables, pid_t *ret_pid,
			 struct ts_error *err)
{
	int ends[2], why;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return ts_error_errno(err, errno, "cannot create a pipe");
	pid = fork();
	if (pid == 0)
		become(options, variables, ends[1]);
	why = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return ts_error_errno(err, why, "cannot create a process");
	}
	why = wait_for_exec(ends[0]);
	close(ends[0]);
	if (why) {
		waitpid(pid, NULL, 0);
		return cannot_start(options->argv[0], why, err);
	}
	*ret_pid = pid;
	return TS_OK;
}

int ts_launch_start(const struct ts_launch_options *options, pid_t *ret_pid, struct ts_error *err)
{
	struct environment environment = { 0 };
	char path[TS_AGENT_PATH_BYTES];
	int rc;

	if (!options->agent) {
		rc = ts_agent_library_find(path, sizeof(path), err);
		if (rc)
			return rc;
	}
	rc = make_environment(options, options->agent ? options->agent : path, &environment);
	if (rc)
		ts_error_set(err, rc, "no memory");
	else
		rc = fork_and_exec(options, environment.variables, ret_pid, err);
	environment_release(&environment);
	return rc;
}
