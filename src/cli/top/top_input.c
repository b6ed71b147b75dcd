/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of `top`, as in top and htop. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text.h"
#include "cli/common/keys.h"
#include "cli/top/top.h"

#define DELAY_LEAST_NS INT64_C(50000000)
#define DELAY_GREATEST_NS (INT64_C(3600) * 1000000000)
#define SCROLL 8u
#define SCROLL_GREATEST 512u
#define CONTROL_L 0x0c
#define CONTROL_U 0x15

/* ---- signals ---- */

int ts_top_parse_signal(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },
		{ "ABRT", SIGABRT }, { "KILL", SIGKILL }, { "USR1", SIGUSR1 },
		{ "SEGV", SIGSEGV }, { "USR2", SIGUSR2 }, { "PIPE", SIGPIPE },
		{ "ALRM", SIGALRM }, { "TERM", SIGTERM }, { "CONT", SIGCONT },
		{ "STOP", SIGSTOP }, { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN },
		{ "TTOU", SIGTTOU }, { "URG", SIGURG },   { "WINCH", SIGWINCH },
	};
	int64_t number;

	if (!*text)
		return SIGTERM;
	if (!ts_parse_int64(text, strlen(text), &number))
		return number > 0 && number <= SIGRTMAX ? (int)number : 0;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (size_t i = 0; i < TS_ARRAY_SIZE(signals); i++) {
		if (!strcasecmp(text, signals[i].name))
			return signals[i].number;
	}
	return 0;
}

int ts_top_send_signal(pid_t pid, uint64_t start_time, int number, struct ts_error *err)
{
	/* Through a pidfd, so that a reused pid is not hit. */
	TS_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool has_descriptors = fd >= 0 || errno != ENOSYS;

	if ((has_descriptors && fd < 0) || !ts_process_lives(pid, start_time))
		return ts_error_set(err, TS_ENOTFOUND, "process %d has ended", (int)pid);
	if (has_descriptors ? syscall(SYS_pidfd_send_signal, fd, number, NULL, 0)
			    : kill(pid, number))
		return ts_error_errno(err, errno, "process %d cannot be sent signal %d", (int)pid,
				      number);
	return TS_OK;
}

/* ---- answers ---- */

static void answer_delay(struct ts_top_session *session)
{
	char text[sizeof(session->answer) + 2];
	size_t length = strlen(session->answer);
	int64_t delay;

	if (!length)
		return;
	snprintf(text, sizeof(text), "%s%s", session->answer,
		 isdigit((unsigned char)session->answer[length - 1]) ? "s" : "");
	if (ts_parse_duration_ns(text, strlen(text), &delay) || delay < DELAY_LEAST_NS ||
	    delay > DELAY_GREATEST_NS) {
		snprintf(session->message, sizeof(session->message),
			 "'%s' is not a time from 0.05 to 3600 seconds", session->answer);
		return;
	}
	session->top->delay_ns = delay;
	session->looks_now = true;
}

static void answer_signal(struct ts_top_session *session)
{
	int number = ts_top_parse_signal(session->answer);
	struct ts_error err;

	if (!number)
		snprintf(session->message, sizeof(session->message), "'%s' is not a signal",
			 session->answer);
	else if (ts_top_send_signal(session->victim, session->victim_start, number, &err))
		snprintf(session->message, sizeof(session->message), "%.150s", err.message);
	else
		snprintf(session->message, sizeof(session->message), "sent signal %d to process %d",
			 number, (int)session->victim);
}

static void accept(struct ts_top_session *session)
{
	if (session->mode == TS_TOP_PROMPT_DELAY)
		answer_delay(session);
	else if (session->mode == TS_TOP_PROMPT_FILTER)
		snprintf(session->view.filter, sizeof(session->view.filter), "%s", session->answer);
	else if (session->mode == TS_TOP_PROMPT_SIGNAL)
		answer_signal(session);
	session->mode = TS_TOP_TABLE;
}

static void erase_last(char *text)
{
	size_t length = strlen(text);

	while (length && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length ? length - 1 : 0] = '\0';
}

static void type(struct ts_top_session *session, uint32_t key)
{
	char bytes[4];
	size_t length = strlen(session->answer), more;

	if (key < ' ' || key >= TS_KEY_UP)
		return;
	more = ts_utf8_encode(bytes, key);
	if (length + more >= sizeof(session->answer))
		return;
	memcpy(session->answer + length, bytes, more);
	session->answer[length + more] = '\0';
}

static void answer(struct ts_top_session *session, uint32_t key)
{
	if (key == TS_KEY_ENTER)
		accept(session);
	else if (key == TS_KEY_ESCAPE)
		session->mode = TS_TOP_TABLE;
	else if (key == TS_KEY_BACKSPACE)
		erase_last(session->answer);
	else if (key == CONTROL_U)
		session->answer[0] = '\0';
	else
		type(session, key);
}

static void prompt(struct ts_top_session *session, enum ts_top_mode mode)
{
	session->mode = mode;
	session->answer[0] = '\0';
	if (mode == TS_TOP_PROMPT_FILTER)
		snprintf(session->answer, sizeof(session->answer), "%s", session->view.filter);
	if (mode != TS_TOP_PROMPT_SIGNAL)
		return;
	if (!session->view.row_count) {
		session->mode = TS_TOP_TABLE;
		return;
	}
	/* The process selected now, wherever the selection goes meanwhile. */
	session->victim = session->view.selected_pid;
	session->victim_start = session->view.selected_start;
}

/* ---- keys of the table ---- */

static void sort_by(struct ts_top_view *view, enum ts_top_column column)
{
	view->reverse = view->sort == column ? view->reverse : false;
	view->sort = column;
}

static void move_sort(struct ts_top_view *view, int step, bool has_devices)
{
	int column = (int)view->sort;

	do {
		column = (column + step + TS_TOP_COLUMNS) % TS_TOP_COLUMNS;
	} while (ts_top_column((enum ts_top_column)column)->of_devices && !has_devices);
	sort_by(view, (enum ts_top_column)column);
}

/* After a choice the process is followed. Before, the top row is selected. */
static void select_row(struct ts_top_view *view, size_t index)
{
	view->follows = index > 0;
	ts_top_view_select(view, index);
}

/* True if the key moves something. */
static bool move(struct ts_top_session *session, uint32_t key)
{
	struct ts_top_view *view = &session->view;
	size_t page = session->page ? session->page : 1, at = view->selected;

	if (key == TS_KEY_UP)
		select_row(view, at ? at - 1 : 0);
	else if (key == TS_KEY_DOWN)
		select_row(view, at + 1);
	else if (key == TS_KEY_PAGE_UP)
		select_row(view, at > page ? at - page : 0);
	else if (key == TS_KEY_PAGE_DOWN)
		select_row(view, at + page);
	else if (key == TS_KEY_HOME)
		select_row(view, 0);
	else if (key == TS_KEY_END)
		select_row(view, view->row_count);
	else if (key == TS_KEY_LEFT)
		view->column_offset -= TS_MIN(view->column_offset, SCROLL);
	else if (key == TS_KEY_RIGHT)
		view->column_offset += view->column_offset < SCROLL_GREATEST ? SCROLL : 0;
	else
		return false;
	return true;
}

static bool sort(struct ts_top_session *session, uint32_t key)
{
	static const struct {
		char key;
		enum ts_top_column column;
	} keys[] = {
		{ 'P', TS_TOP_COLUMN_CPU },    { 'M', TS_TOP_COLUMN_RSS },
		{ 'N', TS_TOP_COLUMN_PID },    { 'T', TS_TOP_COLUMN_TIME },
		{ 'E', TS_TOP_COLUMN_EVENTS },
	};
	struct ts_top_view *view = &session->view;

	for (size_t i = 0; i < TS_ARRAY_SIZE(keys); i++) {
		if ((uint32_t)keys[i].key == key) {
			sort_by(view, keys[i].column);
			return true;
		}
	}
	if (key == 'R' || key == 'I')
		view->reverse = !view->reverse;
	else if (key == '<' || key == '>')
		move_sort(view, key == '<' ? -1 : 1, session->top->uses_accelerators);
	else
		return false;
	return true;
}

/* Functions, threads, neither. Stacks are sampled while they are shown. */
static void turn_pane(struct ts_top_session *session)
{
	session->pane = (enum ts_top_pane)((session->pane + 1) % TS_TOP_PANES);
	session->wants_pane = true;
	session->top->samples_python = session->pane != TS_TOP_PANE_NONE;
	session->looks_now = true;
}

static void act(struct ts_top_session *session, uint32_t key)
{
	if (key == 'q' || key == 'Q' || key == TS_KEY_F1 + 9)
		session->quits = true;
	else if (key == 'h' || key == '?' || key == TS_KEY_F1)
		session->mode = TS_TOP_HELP;
	else if (key == ' ')
		session->looks_now = true;
	else if (key == 'd' || key == 's')
		prompt(session, TS_TOP_PROMPT_DELAY);
	else if (key == 'k' || key == TS_KEY_F1 + 8)
		prompt(session, TS_TOP_PROMPT_SIGNAL);
	else if (key == '/' || key == 'F' || key == TS_KEY_F1 + 3)
		prompt(session, TS_TOP_PROMPT_FILTER);
	else if (key == 'c')
		session->view.full_command = !session->view.full_command;
	else if (key == 'y')
		turn_pane(session);
	else if (key == 'o')
		session->top->python_request.by_total = !session->top->python_request.by_total;
	else if (key == 'i')
		session->top->python_request.idle = !session->top->python_request.idle;
	else if (key == CONTROL_L)
		ts_screen_forget(&session->screen);
}

void ts_top_input(struct ts_top_session *session, uint32_t key)
{
	session->message[0] = '\0';
	if (session->mode == TS_TOP_HELP)
		session->mode = TS_TOP_TABLE;
	else if (session->mode != TS_TOP_TABLE)
		answer(session, key);
	else if (!move(session, key) && !sort(session, key))
		act(session, key);
}
