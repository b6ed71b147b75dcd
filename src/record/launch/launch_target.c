/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork and exec with the agent preloaded. All that needs memory is made before the fork: the
 * recorder has threads by then, and its child may only make system calls. Whether exec worked
 * comes back through a pipe that exec closes.
 */
#include "record/launch/launch_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define AGENT_NAME "libtracesmith-agent.so"
#define PRELOAD "LD_PRELOAD="
#define AGENT "TRACESMITH_AGENT="
/*
 * How the agent gets into OpenCL (docs/replay.md, section 3.1): as a layer of the loader, and for
 * loaders that know none by name.
 */
#define OPENCL "opencl"
#define OPENCL_NAME "libtracesmith-opencl.so"
#define LAYERS "OPENCL_LAYERS="
/* How it gets into CUDA (docs/cuda.md, section 2), and how NVTX finds it. */
#define CUDA "cuda"
#define CUDA_NAME "libtracesmith-backend-cuda.so"
#define NVTX "NVTX_INJECTION64_PATH="
#define STACKS "TRACESMITH_PYTHON_STACKS="

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

extern char **environ;

/* ---- the agent ---- */

/* ld.so takes blanks and colons in LD_PRELOAD as separators and knows no escape. */
static int check_agent_path(const char *path, struct ts_error *err)
{
	struct stat status;

	if (strpbrk(path, " :\t\n"))
		return ts_error_set(
			err, TS_ECAP,
			"the path of the agent, '%s', has a blank or a colon, which LD_PRELOAD cannot hold; put a link to it elsewhere and set TRACESMITH_AGENT_PATH",
			path);
	if (stat(path, &status) || !S_ISREG(status.st_mode) || access(path, R_OK))
		return ts_error_set(err, TS_ECAP, "there is no agent '%s'", path);
	return TS_OK;
}

static int join_path(char *buffer, size_t bytes, const char *folder, const char *below)
{
	size_t length = strlen(folder);

	if (length + strlen(below) + sizeof("/" AGENT_NAME) + 1 > bytes)
		return TS_EINVAL;
	memcpy(buffer, folder, length);
	stpcpy(stpcpy(stpcpy(buffer + length, "/"), below), AGENT_NAME);
	return TS_OK;
}

/* Where the tool itself lies. */
static const char *own_folder(char *buffer, size_t bytes)
{
	ssize_t length = readlink("/proc/self/exe", buffer, bytes - 1);

	if (length <= 0)
		return NULL;
	buffer[length] = '\0';
	return dirname(buffer);
}

/* Absolute, since programs change their folder; the path as it is where that cannot be told. */
static void make_absolute(char *buffer, size_t bytes)
{
	TS_AUTO_FREE char *absolute = realpath(buffer, NULL);

	if (absolute && strlen(absolute) < bytes)
		stpcpy(buffer, absolute);
}

static int find_agent(char *buffer, size_t bytes, struct ts_error *err)
{
	static const char *const places[] = { "", "../lib/", "../lib/" MULTIARCH "/", "../lib64/" };
	const char *given = getenv("TRACESMITH_AGENT_PATH");
	char own[TS_LAUNCH_PATH_BYTES];
	const char *folder = own_folder(own, sizeof(own));

	if (given && *given) {
		if (strlen(given) >= bytes)
			return ts_error_set(err, TS_ECAP, "TRACESMITH_AGENT_PATH is too long");
		stpcpy(buffer, given);
		return TS_OK;
	}
	for (size_t i = 0; folder && i < TS_ARRAY_SIZE(places); i++) {
		if (!join_path(buffer, bytes, folder, places[i]) && !access(buffer, F_OK))
			return TS_OK;
	}
	return ts_error_set(
		err, TS_ECAP,
		"the agent, " AGENT_NAME
		", is neither beside this tool nor in '../lib'; set TRACESMITH_AGENT_PATH to where it is");
}

int ts_launch_find_agent(char *buffer, size_t bytes, struct ts_error *err)
{
	int rc = find_agent(buffer, bytes, err);

	if (rc)
		return rc;
	make_absolute(buffer, bytes);
	return check_agent_path(buffer, err);
}

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
	if (options->stacks)
		ts_text_printf(&text, ";stacks=%s", options->stacks);
	if (options->pc_sampling)
		ts_text_printf(&text, ";pc_sampling=%s", options->pc_sampling);
	if (options->window)
		ts_text_printf(&text, ";window=%s", options->window);
	if (options->replayable)
		ts_text_printf(&text,
			       ";replayable=%d;from_start=%d;snapshot_limit=%" PRIu64
			       ";window_timeout=%" PRId64,
			       (int)options->replayable, options->from_start,
			       options->snapshot_limit, options->window_timeout_ns);
	strncpy(buffer, ts_text_cstr(&text), bytes - 1);
	buffer[bytes - 1] = '\0';
}

static bool wants(const struct ts_launch_options *options, const char *backend)
{
	const char *list = options->backends;

	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length == strlen(backend) && !memcmp(list, backend, length))
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

/* A copy of the environment with ours set, which have texts of their own. */
struct environment {
	char **variables;
	struct ts_text preload, agent, layers, nvtx, stacks;
};

static void environment_release(struct environment *environment)
{
	free(environment->variables);
	ts_text_release(&environment->preload);
	ts_text_release(&environment->agent);
	ts_text_release(&environment->layers);
	ts_text_release(&environment->nvtx);
	ts_text_release(&environment->stacks);
}

/* Is it one of our libraries? An outer recording may have put it there. */
static bool names_ours(const char *path, size_t length)
{
	static const char *const names[] = { AGENT_NAME, OPENCL_NAME, CUDA_NAME };
	const char *name = path + length;

	while (name > path && name[-1] != '/')
		name--;
	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++)
		if ((size_t)(path + length - name) == strlen(names[i]) &&
		    !memcmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/*
 * What is in a list already stays, behind ours; what is ours there goes. `begin`: of the first
 * word.
 */
static void append_others(struct ts_text *text, size_t begin, const char *before,
			  const char *separators)
{
	while (before && *before) {
		size_t length = strcspn(before, separators);

		if (length && !names_ours(before, length)) {
			if (text->length > begin)
				ts_text_append_char(text, ':');
			ts_text_append(text, before, length);
		}
		before += length + (before[length] != '\0');
	}
}

/* Libraries with calls by name lie beside the agent, where they are. */
static void append_beside(struct ts_text *text, char separator, const char *agent_path,
			  const char *name)
{
	size_t length = text->length, folder = strlen(agent_path);

	while (folder && agent_path[folder - 1] != '/')
		folder--;
	ts_text_append_char(text, separator);
	ts_text_append(text, agent_path, folder);
	ts_text_append_str(text, name);
	if (!text->failed && access(ts_text_cstr(text) + length + 1, R_OK))
		text->length = length;
}

static void append_preload(struct ts_text *text, const char *agent_path,
			   const struct ts_launch_options *options)
{
	ts_text_append_str(text, PRELOAD);
	ts_text_append_str(text, agent_path);
	if (wants(options, OPENCL))
		append_beside(text, ':', agent_path, OPENCL_NAME);
	if (wants(options, CUDA))
		append_beside(text, ':', agent_path, CUDA_NAME);
	append_others(text, strlen(PRELOAD), getenv("LD_PRELOAD"), " :");
}

/* What the program would get without us; one that is ours is an outer recording's. */
static const char *others_nvtx(void)
{
	const char *before = getenv("NVTX_INJECTION64_PATH");

	return before && *before && !names_ours(before, strlen(before)) ? before : NULL;
}

/* NVTX calls one library: where the user has chosen another, that stays. */
static void append_nvtx(struct ts_text *text, const char *agent_path,
			const struct ts_launch_options *options)
{
	const char *others = others_nvtx();

	if (others) {
		ts_text_append_str(text, NVTX);
		ts_text_append_str(text, others);
	} else if (wants(options, CUDA)) {
		ts_text_append_str(text, "NVTX_INJECTION64_PATH");
		append_beside(text, '=', agent_path, CUDA_NAME);
		if (!strchr(ts_text_cstr(text), '='))
			text->length = 0;
	}
}

/* Left empty where there is nothing to say. */
static void append_layers(struct ts_text *text, const char *agent_path, bool opencl)
{
	const char *before = getenv("OPENCL_LAYERS");

	if (!opencl && !before)
		return;
	ts_text_append_str(text, LAYERS);
	if (opencl)
		ts_text_append_str(text, agent_path);
	append_others(text, strlen(LAYERS), before, ":");
	if (text->length == strlen(LAYERS))
		text->length = 0;
}

static bool is_ours(const char *variable)
{
	return !strncmp(variable, PRELOAD, strlen(PRELOAD)) ||
	       !strncmp(variable, AGENT, strlen(AGENT)) ||
	       !strncmp(variable, LAYERS, strlen(LAYERS)) || !strncmp(variable, NVTX, strlen(NVTX));
}

static bool is_stacks(const char *variable)
{
	return !strncmp(variable, STACKS, strlen(STACKS));
}

static int make_texts(const struct ts_launch_options *options, const char *agent_path,
		      struct environment *environment)
{
	char settings[TS_LAUNCH_PATH_BYTES];

	append_preload(&environment->preload, agent_path, options);
	append_layers(&environment->layers, agent_path, wants(options, OPENCL));
	append_nvtx(&environment->nvtx, agent_path, options);
	ts_launch_format(options, settings, sizeof(settings));
	ts_text_append_str(&environment->agent, AGENT);
	ts_text_append_str(&environment->agent, settings);
	if (options->python_stacks)
		ts_text_printf(&environment->stacks, STACKS "%s", options->python_stacks);
	/* A NUL for each, and no allocation after this. */
	ts_text_append_char(&environment->preload, '\0');
	ts_text_append_char(&environment->agent, '\0');
	ts_text_append_char(&environment->layers, '\0');
	ts_text_append_char(&environment->nvtx, '\0');
	ts_text_append_char(&environment->stacks, '\0');
	return environment->preload.failed || environment->agent.failed ||
			       environment->layers.failed || environment->nvtx.failed ||
			       environment->stacks.failed
		       ? TS_ENOMEM
		       : TS_OK;
}

static int make_environment(const struct ts_launch_options *options, const char *agent_path,
			    struct environment *environment)
{
	size_t count = 0, kept = 0;

	while (environ && environ[count])
		count++;
	environment->variables = ts_alloc_array(count + 6, sizeof(char *));
	if (!environment->variables || make_texts(options, agent_path, environment))
		return TS_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!is_ours(environ[i]) && !(options->python_stacks && is_stacks(environ[i])))
			environment->variables[kept++] = environ[i];
	}
	environment->variables[kept++] = environment->preload.data;
	environment->variables[kept++] = environment->agent.data;
	if (environment->layers.data[0])
		environment->variables[kept++] = environment->layers.data;
	if (environment->nvtx.data[0])
		environment->variables[kept++] = environment->nvtx.data;
	if (environment->stacks.data[0])
		environment->variables[kept++] = environment->stacks.data;
	environment->variables[kept] = NULL;
	return TS_OK;
}

/* ---- the program ---- */

static int cannot_start(const char *program, int errnum, struct ts_error *err)
{
	/* The script is there: what its first line names is not. */
	if (errnum == ENOENT && strchr(program, '/') && !access(program, F_OK))
		return ts_error_set(
			err, TS_EIO,
			"cannot start '%s': the interpreter or loader that it names is not there",
			program);
	if (errnum == ENOENT)
		return ts_error_set(err, TS_ENOTFOUND, "cannot start '%s': no such program",
				    program);
	return ts_error_errno(err, errnum, "cannot start '%s'", program);
}

/* 0, or why the file cannot be executed. */
static int why_not_executable(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return errno;
	if (!S_ISREG(status.st_mode))
		return EACCES;
	return access(path, X_OK) ? errno : 0;
}

/* As execvp() searches: the first that can be executed; else EACCES where one could not. */
static int search_path(const char *program)
{
	const char *path = getenv("PATH");
	char candidate[TS_LAUNCH_PATH_BYTES];
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

/* The child: system calls only. */
static void become(const struct ts_launch_options *options, char **variables, int report_fd)
{
	int why;

	restore_signals(options);
	execvpe(options->argv[0], options->argv, variables);
	why = errno;
	(void)!write(report_fd, &why, sizeof(why));
	_exit(127);
}

/* What exec said: 0 once the pipe was closed by it, or an errno. */
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
		return ts_error_errno(err, errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		become(options, variables, ends[1]);
	why = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return ts_error_errno(err, why, "cannot make a process");
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
	char path[TS_LAUNCH_PATH_BYTES];
	int rc;

	if (!options->agent) {
		rc = ts_launch_find_agent(path, sizeof(path), err);
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
