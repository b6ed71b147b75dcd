/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes over and restores the terminal. Signal handlers set a flag and wake the loop through a
 * descriptor; crash handlers restore the terminal with async-signal-safe calls and let the crash
 * continue.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/top/top_terminal.h"

/* Alternate screen, no cursor, no wrapping at the right edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[0m"
#define LEAVE "\033[?2026l\033[0m\033[?7h\033[?25h\033[?1049l"

static struct termios before; /* original settings */
static volatile sig_atomic_t is_entered;
static volatile sig_atomic_t has_resized, has_stopped, has_continued, end_signal;
static bool has_hung_up;
static int wake_fd = -1;

/* ---- enter and leave ---- */

static void write_safely(const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t done = write(STDOUT_FILENO, text, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		text += done;
		bytes -= (size_t)done;
	}
}

static bool is_foreground(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void enter(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | INLCR | IGNCR);
	raw.c_iflag |= ICRNL;
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* In the background this stops us until we are in the foreground, as it should. */
	while (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) && errno == EINTR)
		;
	is_entered = 1;
	write_safely(ENTER, strlen(ENTER));
}

/* Also called from handlers. */
static void leave(void)
{
	if (!is_entered)
		return;
	is_entered = 0;
	write_safely(LEAVE, sizeof(LEAVE) - 1);
	/* In the background its settings belong to somebody else. */
	if (is_foreground())
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* ---- signals ---- */

static void wake(void)
{
	const uint64_t one = 1;

	(void)!write(wake_fd, &one, sizeof(one));
}

static void on_signal(int number)
{
	int error = errno;

	if (number == SIGWINCH)
		has_resized = 1;
	else if (number == SIGTSTP)
		has_stopped = 1;
	else if (number == SIGCONT)
		has_continued = 1;
	else
		end_signal = number;
	wake();
	errno = error;
}

static void on_crash(int number)
{
	leave();
	/* The default action is restored. */
	raise(number);
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, now;

	sigemptyset(&action.sa_mask);
	/* Ignored signals stay ignored (nohup), and a sanitizer's handlers say more than ours. */
	if (!sigaction(number, NULL, &now) && now.sa_handler == SIG_DFL)
		sigaction(number, &action, NULL);
}

static void handle_all(void)
{
	static const int signals[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH
	};
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS };

	for (size_t i = 0; i < TS_ARRAY_SIZE(signals); i++)
		handle(signals[i], on_signal, 0);
	for (size_t i = 0; i < TS_ARRAY_SIZE(crashes); i++)
		handle(crashes[i], on_crash, (int)SA_RESETHAND);
}

/* ---- the interface ---- */

int ts_top_terminal_open(struct ts_error *err)
{
	if (tcgetattr(STDIN_FILENO, &before))
		return ts_error_errno(err, errno, "cannot use the terminal");
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return ts_error_errno(err, errno, "cannot receive signals");
	atexit(leave);
	handle_all();
	enter();
	return TS_OK;
}

void ts_top_terminal_close(void)
{
	leave();
}

void ts_top_terminal_size(unsigned int *ret_rows, unsigned int *ret_columns)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
}

static unsigned int take_flags(void)
{
	unsigned int what = 0;

	if (has_resized || has_continued)
		what |= TS_TOP_RESIZED;
	if (has_stopped)
		what |= TS_TOP_SUSPENDED;
	if (end_signal || has_hung_up)
		what |= TS_TOP_ENDED;
	/* Stopped by SIGSTOP; another program has changed the settings meanwhile. */
	if (has_continued && !has_stopped)
		enter();
	has_resized = has_continued = has_stopped = 0;
	return what;
}

unsigned int ts_top_terminal_wait(int64_t timeout_ns)
{
	struct pollfd polled[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				   { .fd = wake_fd, .events = POLLIN } };
	struct timespec timeout = { .tv_sec = timeout_ns / 1000000000,
				    .tv_nsec = timeout_ns % 1000000000 };
	unsigned int what;
	uint64_t count;

	if (ppoll(polled, TS_ARRAY_SIZE(polled), &timeout, NULL) < 0)
		polled[0].revents = polled[1].revents = 0;
	(void)!read(wake_fd, &count, sizeof(count));
	what = take_flags();
	if (polled[0].revents)
		what |= TS_TOP_TYPED;
	return what;
}

size_t ts_top_terminal_read(void *buffer, size_t bytes)
{
	ssize_t got = read(STDIN_FILENO, buffer, bytes);

	if (got > 0)
		return (size_t)got;
	/* The terminal is gone. */
	if (got == 0 || (errno != EINTR && errno != EAGAIN))
		has_hung_up = true;
	return 0;
}

void ts_top_terminal_write(const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes && !end_signal) {
		ssize_t done = write(STDOUT_FILENO, at, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN) {
			struct pollfd polled = { .fd = STDOUT_FILENO, .events = POLLOUT };

			poll(&polled, 1, 100);
			continue;
		}
		if (done <= 0) {
			has_hung_up = true;
			return;
		}
		at += done;
		bytes -= (size_t)done;
	}
}

void ts_top_terminal_suspend(void)
{
	leave();
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	/* Continues here. */
	handle(SIGTSTP, on_signal, 0);
	enter();
	has_continued = 0;
}

int ts_top_terminal_signal(void)
{
	return end_signal == SIGINT ? 0 : end_signal;
}
