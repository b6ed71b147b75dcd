/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that callers of the library start: options as arguments, and the recorder's answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tracesmith/record.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/ns.h"
#include "base/text.h"
#include "record/control/control.h"
#include "record/control/spawn_tool.h"

#define START_NS INT64_C(30000000000)
#define NS_PER_MS 1000000

struct ts_record_session {
	int fd;
	pid_t pid;
	struct ts_text received; /* what is not a complete line yet */
	/* At the end: */
	bool has_ended;
	int status; /* of the command */
	struct ts_text json;
	struct ts_text file;
	struct ts_error failure; /* code TS_OK: none */
};
TS_DEFINE_AUTO(ts_record_session, ts_record_close);

/* ---- options as arguments ---- */

struct arguments {
	const char **items;
	size_t count, capacity;
	char **owned; /* texts to free */
	size_t owned_count, owned_capacity;
	bool failed;
};

static void arguments_release(struct arguments *arguments)
{
	for (size_t i = 0; i < arguments->owned_count; i++)
		free(arguments->owned[i]);
	free(arguments->owned);
	free(arguments->items);
}

/* One more item is always there for the NULL at the end. */
static void add(struct arguments *arguments, const char *item)
{
	if (ts_grow_array((void **)&arguments->items, &arguments->capacity, arguments->count + 2,
			  sizeof(*arguments->items))) {
		arguments->failed = true;
		return;
	}
	arguments->items[arguments->count++] = item;
	arguments->items[arguments->count] = NULL;
}

static void add_text(struct arguments *arguments, const char *option, const char *value)
{
	if (!value)
		return;
	add(arguments, option);
	add(arguments, value);
}

/* A copy of the text. */
static void add_copy(struct arguments *arguments, const char *option, struct ts_text *text)
{
	char *copy = text->failed ? NULL : strdup(ts_text_cstr(text));

	ts_text_clear(text);
	if (!copy || ts_grow_array((void **)&arguments->owned, &arguments->owned_capacity,
				   arguments->owned_count + 1, sizeof(*arguments->owned))) {
		free(copy);
		arguments->failed = true;
		return;
	}
	arguments->owned[arguments->owned_count++] = copy;
	add_text(arguments, option, copy);
}

static void add_number(struct arguments *arguments, const char *option, int64_t number,
		       const char *unit)
{
	TS_SCOPED(ts_text) text = { 0 };

	if (number <= 0)
		return;
	ts_text_printf(&text, "%" PRId64 "%s", number, unit);
	add_copy(arguments, option, &text);
}

static void add_pids(struct arguments *arguments, const struct ts_record_options *options)
{
	TS_SCOPED(ts_text) text = { 0 };

	for (size_t i = 0; i < options->pid_count; i++)
		ts_text_printf(&text, "%s%" PRId64, i ? "," : "", (int64_t)options->pids[i]);
	if (options->pid_count)
		add_copy(arguments, "--pid", &text);
}

static void add_flags(struct arguments *arguments, unsigned int flags)
{
	static const struct {
		unsigned int flag;
		const char *option;
	} table[] = {
		{ TS_RECORD_REDACT, "--redact" }, { TS_RECORD_REPLAYABLE, "--replayable" },
		{ TS_RECORD_NATIVE, "--native" }, { TS_RECORD_LOCALS, "--locals" },
		{ TS_RECORD_SPLIT, "--split" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(table); i++)
		if (flags & table[i].flag)
			add(arguments, table[i].option);
}

static void add_all(struct arguments *arguments, const char *tool,
		    const struct ts_record_options *options)
{
	TS_SCOPED(ts_text) fd = { 0 };

	add(arguments, tool);
	add(arguments, "record");
	ts_text_printf(&fd, "%d", TS_TOOL_SOCKET_FD);
	add_copy(arguments, "--control", &fd);
	add(arguments, "--quiet");
	add_text(arguments, "--output", options->output);
	add_pids(arguments, options);
	add_flags(arguments, options->flags);
	add_text(arguments, "--backends", options->backends);
	add_text(arguments, "--window", options->window);
	add_number(arguments, "--max-steps", options->max_steps, "");
	add_number(arguments, "--duration", options->duration_ns, "ns");
	add_number(arguments, "--sample-interval", options->sample_interval_ns, "ns");
	if (options->sample_interval_ns < 0)
		add_text(arguments, "--sample-interval", "0");
	add_number(arguments, "--python-interval", options->python_interval_ns, "ns");
	add_number(arguments, "--max-size", (int64_t)TS_MIN(options->max_bytes, INT64_MAX), "");
	for (size_t i = 0; options->extra && options->extra[i]; i++)
		add(arguments, options->extra[i]);
	if (options->command)
		add(arguments, "--");
	for (size_t i = 0; options->command && options->command[i]; i++)
		add(arguments, options->command[i]);
}

/* ---- answers ---- */

/* "the message" of an exit code as an error of the library. */
static void set_failure(struct ts_record_session *session, int exit_code, const char *message)
{
	int code = TS_EIO;

	if (exit_code == 2)
		code = TS_EINVAL;
	else if (exit_code == 4)
		code = TS_ECAP;
	else if (exit_code == 126 || exit_code == 127)
		code = TS_ENOTFOUND;
	ts_error_set(&session->failure, code, "cannot record: %s",
		     *message ? message : "the recorder gave no reason");
}

static void take_finished(struct ts_record_session *session, const char *text)
{
	size_t digits = strcspn(text, " ");
	int64_t status = -1;

	(void)ts_parse_int64(text, digits, &status);
	session->status = (int)status;
	text += digits + (text[digits] == ' ');
	ts_text_append_str(&session->json, text);
	session->has_ended = true;
}

static void take_failed(struct ts_record_session *session, const char *text)
{
	size_t digits = strcspn(text, " ");
	int64_t exit_code = 0;

	(void)ts_parse_int64(text, digits, &exit_code);
	set_failure(session, (int)exit_code, text + digits + (text[digits] == ' '));
	session->has_ended = true;
}

static const char *after(const char *line, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(line, word, length) && line[length] == ' ' ? line + length + 1 : NULL;
}

static void take_line(struct ts_record_session *session, const char *line)
{
	const char *rest = after(line, TS_CONTROL_RECORDING);
	int64_t pid;

	if (rest && !ts_parse_int64(rest, strlen(rest), &pid))
		session->pid = (pid_t)pid;
	rest = after(line, TS_CONTROL_FINISHED);
	if (rest)
		take_finished(session, rest);
	rest = after(line, TS_CONTROL_FAILED);
	if (rest)
		take_failed(session, rest);
}

static void take_lines(struct ts_record_session *session)
{
	struct ts_text *received = &session->received;
	size_t from = 0;
	char *end;

	while ((end = memchr(received->data + from, '\n', received->length - from))) {
		*end = '\0';
		take_line(session, received->data + from);
		from = (size_t)(end + 1 - received->data);
	}
	memmove(received->data, received->data + from, received->length - from);
	received->length -= from;
}

/* The socket was closed without a message. */
static void take_end(struct ts_record_session *session)
{
	if (!session->has_ended)
		ts_error_set(&session->failure, TS_EIO,
			     "the recorder exited before the trace was complete; recover it with "
			     "'tracesmith recover'");
	session->has_ended = true;
}

/* Reads until there is a pid or the end, or the time is over: false. */
static bool await(struct ts_record_session *session, bool until_end, int64_t timeout_ns)
{
	int64_t end_ns = timeout_ns < 0 ? INT64_MAX
					: ts_ns_add(ts_clock_monotonic_ns(), timeout_ns);

	while (!session->has_ended && (until_end || !session->pid)) {
		struct pollfd fd = { .fd = session->fd, .events = POLLIN };
		int64_t left_ns = end_ns - ts_clock_monotonic_ns();
		ssize_t bytes;

		if (left_ns < 0)
			return false;
		if (poll(&fd, 1, (int)TS_MIN(left_ns / NS_PER_MS + 1, 60000)) <= 0)
			continue;
		if (!ts_text_reserve(&session->received, 4096)) {
			take_end(session);
			break;
		}
		bytes = recv(session->fd, session->received.data + session->received.length, 4096,
			     0);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes <= 0) {
			take_end(session);
			break;
		}
		session->received.length += (size_t)bytes;
		take_lines(session);
	}
	return true;
}

static void send_stop(const struct ts_record_session *session)
{
	(void)send(session->fd, TS_CONTROL_STOP, strlen(TS_CONTROL_STOP), MSG_NOSIGNAL);
}

/* ---- the summary ---- */

static uint64_t *number_of(struct ts_record_summary *summary, const struct ts_json_string *key)
{
	if (ts_json_string_is(key, "events"))
		return &summary->events;
	if (ts_json_string_is(key, "lost"))
		return &summary->lost;
	if (ts_json_string_is(key, "bytes"))
		return &summary->bytes;
	if (ts_json_string_is(key, "processes"))
		return &summary->processes;
	if (ts_json_string_is(key, "threads"))
		return &summary->threads;
	if (ts_json_string_is(key, "devices"))
		return &summary->devices;
	if (ts_json_string_is(key, "windows"))
		return &summary->windows;
	if (ts_json_string_is(key, "files"))
		return &summary->files;
	if (ts_json_string_is(key, "metrics"))
		return &summary->metrics;
	return ts_json_string_is(key, "stacks") ? &summary->stacks : NULL;
}

static int read_summary(struct ts_record_session *session, struct ts_record_summary *summary)
{
	struct ts_json js;
	struct ts_json_walk walk = { .open = '{' };

	ts_json_init(&js, session->json.data, session->json.length, true);
	ts_text_clear(&session->file);
	while (ts_json_walk_next(&walk, &js)) {
		uint64_t *number = number_of(summary, &walk.key);
		struct ts_json_string text;
		struct ts_json_number value = { .kind = TS_JSON_DOUBLE };

		if (ts_json_string_is(&walk.key, "file")) {
			walk.rc = ts_json_scan_string(&js, &text);
			if (!walk.rc)
				ts_json_unescape(&text, &session->file);
		} else if (number) {
			walk.rc = ts_json_scan_number(&js, &value);
			if (!walk.rc && value.kind == TS_JSON_INT)
				*number = (uint64_t)value.integer;
		}
	}
	return walk.rc;
}

static int summarize(struct ts_record_session *session, struct ts_record_summary *ret_summary,
		     struct ts_error *err)
{
	struct ts_record_summary summary = { .command_status = session->status };
	size_t bytes;

	if (!ret_summary)
		return TS_OK;
	if (read_summary(session, &summary))
		return ts_error_set(err, TS_EFORMAT, "the recorder's summary is not valid");
	summary.file = ts_text_cstr(&session->file);
	summary.json = ts_text_cstr(&session->json);
	bytes = TS_MIN(ret_summary->size, sizeof(summary));
	summary.size = ret_summary->size;
	memcpy(ret_summary, &summary, bytes);
	return TS_OK;
}

/* ---- public ---- */

static int check(const struct ts_record_options *options, struct ts_error *err)
{
	bool has_command = options->command && options->command[0];

	if (has_command && options->pid_count)
		return ts_error_set(err, TS_EINVAL, "record either processes or a command");
	if (!has_command && !options->pid_count)
		return ts_error_set(err, TS_EINVAL,
				    "nothing to record: neither processes nor a command are given");
	return TS_OK;
}

static int spawn(const struct ts_record_options *options, int socket_fd, struct ts_error *err)
{
	struct arguments arguments = { 0 };
	char tool[PATH_MAX];
	int rc = ts_tool_find(tool, sizeof(tool), err);

	if (rc)
		return rc;
	add_all(&arguments, tool, options);
	if (arguments.failed)
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the recorder's arguments");
	else
		rc = ts_tool_spawn(arguments.items, socket_fd, !options->command, err);
	arguments_release(&arguments);
	return rc;
}

/* Close-on-exec, so that no other child keeps the recorder's end open. */
static int start(struct ts_record_session *session, const struct ts_record_options *options,
		 struct ts_error *err)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return ts_error_errno(err, errno, "cannot create a socket for the recorder");
	/* Above the standard streams, which a program may have closed and open later. */
	session->fd = fcntl(ends[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(ends[0]);
	rc = session->fd < 0 ? ts_error_errno(err, errno, "cannot create a socket for the recorder")
			     : spawn(options, ends[1], err);
	close(ends[1]);
	if (rc)
		return rc;
	if (!await(session, false, options->timeout_ns > 0 ? options->timeout_ns : START_NS)) {
		/* It may still be starting: nobody else would end what it then records. */
		send_stop(session);
		return ts_error_set(err, TS_EBUSY, "the recorder did not start recording in time");
	}
	if (session->failure.code) {
		*err = session->failure;
		return err->code;
	}
	return TS_OK;
}

int ts_record_start(struct ts_record_session **ret_session, const struct ts_record_options *options,
		    struct ts_error *err)
{
	TS_AUTO(ts_record_session) session = calloc(1, sizeof(*session));
	struct ts_record_options complete = { 0 };
	struct ts_error unused = { 0 };
	int rc;

	err = err ? err : &unused;
	if (!session)
		return ts_error_set(err, TS_ENOMEM, "no memory for a recording");
	session->fd = session->status = -1;
	if (!ret_session || !options)
		return ts_error_set(err, TS_EINVAL, "the options of the recording are missing");
	memcpy(&complete, options, TS_MIN(options->size, sizeof(complete)));
	rc = check(&complete, err);
	if (!rc)
		rc = start(session, &complete, err);
	if (!rc)
		*ret_session = TS_STEAL(session);
	return rc;
}

pid_t ts_record_pid(const struct ts_record_session *session)
{
	return session->pid;
}

int ts_record_wait(struct ts_record_session *session, int64_t timeout_ns, bool *ret_ended,
		   struct ts_error *err)
{
	bool ended = await(session, true, timeout_ns);

	if (ret_ended)
		*ret_ended = ended;
	if (ended && session->failure.code)
		return ts_error_set(err, session->failure.code, "%s", session->failure.message);
	return TS_OK;
}

int ts_record_stop(struct ts_record_session *session, struct ts_record_summary *ret_summary,
		   struct ts_error *err)
{
	int rc;

	if (!session->has_ended)
		send_stop(session);
	rc = ts_record_wait(session, -1, NULL, err);
	return rc ? rc : summarize(session, ret_summary, err);
}

void ts_record_close(struct ts_record_session *session)
{
	if (!session)
		return;
	if (session->fd >= 0)
		close(session->fd);
	ts_text_release(&session->received);
	ts_text_release(&session->json);
	ts_text_release(&session->file);
	free(session);
}
