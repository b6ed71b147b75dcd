/* SPDX-License-Identifier: Apache-2.0 */
/* Main loop of `top` on a terminal: waits for time, keys and signals; refreshes; draws. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/common/keys.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/top/top.h"
#include "cli/top/top_terminal.h"

/* The start of an escape sequence counts as the Escape key after this long. */
#define ESCAPE_NS INT64_C(100000000)
/*
 * The first rates come after the first interval; refreshed earlier, so that the screen fills soon.
 */
#define FIRST_NS INT64_C(300000000)

struct loop {
	struct ts_top_session session;
	struct ts_keys keys;
	int64_t due_ns;
};

static int fit_screen(struct loop *loop, struct ts_error *err)
{
	unsigned int rows, columns;

	ts_top_terminal_size(&rows, &columns);
	return ts_screen_resize(&loop->session.screen, rows, columns, err);
}

static void show(struct loop *loop)
{
	const struct ts_text *out;

	if (ts_top_view_arrange(&loop->session.view, loop->session.top))
		return;
	ts_top_draw(&loop->session);
	out = ts_screen_finish(&loop->session.screen);
	ts_top_terminal_write(out->data, out->length);
}

/* An error is shown and ignored: it may be gone at the next refresh. */
static void look(struct loop *loop)
{
	struct ts_top_session *session = &loop->session;
	struct ts_error err;

	if (ts_top_refresh(session->top, &err))
		snprintf(session->message, sizeof(session->message), "%.150s", err.message);
	session->looks_now = false;
	loop->due_ns = ts_clock_monotonic_ns() + session->top->delay_ns;
}

static void take_keys(struct loop *loop)
{
	unsigned char bytes[256];
	size_t count = ts_top_terminal_read(bytes, sizeof(bytes));

	for (size_t i = 0; i < count; i++) {
		uint32_t key = ts_keys_take(&loop->keys, bytes[i]);

		/* The next one may mean another row. */
		if (key && !ts_top_view_arrange(&loop->session.view, loop->session.top))
			ts_top_input(&loop->session, key);
	}
}

/* False: quit. */
static bool turn(struct loop *loop, struct ts_error *err)
{
	struct ts_top_session *session = &loop->session;
	int64_t left = TS_MAX(loop->due_ns - ts_clock_monotonic_ns(), 0);
	bool pending = ts_keys_pending(&loop->keys);
	unsigned int what = ts_top_terminal_wait(pending ? ESCAPE_NS : left);

	if (what & TS_TOP_ENDED)
		return false;
	if (what & TS_TOP_TYPED)
		take_keys(loop);
	else if (pending && !what)
		ts_top_input(session, ts_keys_flush(&loop->keys));
	if (what & TS_TOP_SUSPENDED)
		ts_top_terminal_suspend();
	if ((what & (TS_TOP_SUSPENDED | TS_TOP_RESIZED)) && fit_screen(loop, err))
		return false;
	if (session->looks_now || ts_clock_monotonic_ns() >= loop->due_ns)
		look(loop);
	if (!session->quits)
		show(loop);
	return !session->quits;
}

static int run(struct loop *loop, struct ts_error *err)
{
	int rc = ts_top_refresh(loop->session.top, err);

	if (!rc)
		rc = ts_top_terminal_open(err);
	if (rc)
		return rc;
	loop->due_ns = ts_clock_monotonic_ns() + TS_MIN(loop->session.top->delay_ns, FIRST_NS);
	rc = fit_screen(loop, err);
	if (rc)
		return rc;
	show(loop);
	*err = (struct ts_error){ .code = TS_OK };
	while (turn(loop, err))
		;
	return err->code;
}

int ts_top_run_screen(struct ts_top *top, const struct ts_top_view *view)
{
	struct loop loop = { .session = { .top = top, .view = *view } };
	struct ts_error err;
	int rc, number;

	/* On request, or as soon as there is some: of given processes. */
	loop.session.wants_pane = top->samples_python;
	top->samples_python |= top->requested_count > 0;
	if (top->samples_python)
		loop.session.pane = TS_TOP_PANE_FUNCTIONS;
	ts_screen_init(&loop.session.screen, ts_screen_wants_utf8(), ts_terminal_colour());
	rc = run(&loop, &err);
	ts_top_terminal_close();
	ts_screen_release(&loop.session.screen);
	ts_top_view_release(&loop.session.view);
	number = ts_top_terminal_signal();
	if (number) {
		signal(number, SIG_DFL);
		raise(number);
		return TS_EXIT_SIGNAL + number;
	}
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}
