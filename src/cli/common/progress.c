/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress bar and signals. Handlers only record the signal; the work checks it at its next step
 * and ends cleanly, so that files stay valid. From then on a timer interrupts calls that wait
 * (base/io.h), and ends the program if the work takes no notice.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/terminal.h"

#define FIRST_SHOWN_NS INT64_C(1000000000)
#define REDRAW_NS INT64_C(100000000)
#define BAR_COLUMNS 24
/*
 * Ticks of the timer until the program ends: after a second Ctrl-C, or SIGTERM and SIGHUP, less
 * than a second; longer if the work is ending already and finishes its files. Ticks that a busy
 * machine is late for do not count.
 */
#define TICK_US 100000
#define LAST_TICKS 8
#define FINISHING_TICKS 100
/* After this many signals, exit at once. */
#define PATIENCE 3

static volatile sig_atomic_t stop_signal;
static volatile sig_atomic_t stop_count;
static volatile sig_atomic_t ticks_left; /* 0: no limit */
static volatile sig_atomic_t is_ending;  /* the work knows */
static bool bar_is_shown;

static void end_as(int number)
{
	ts_output_remove_parts();
	signal(number, SIG_DFL);
	raise(number);
}

static void on_tick(int number)
{
	(void)number;
	if (ticks_left > 0 && --ticks_left == 0)
		end_as((int)stop_signal);
}

static void on_signal(int number)
{
	const struct itimerval often = { { 0, TICK_US }, { 0, TICK_US } };

	stop_signal = number;
	if (++stop_count >= PATIENCE)
		end_as(number);
	else if (stop_count > 1 || number != SIGINT)
		ticks_left = LAST_TICKS;
	setitimer(ITIMER_REAL, &often, NULL);
}

/* Whoever asks takes notice, and gets the time to finish its files. */
int ts_stop_signal(void)
{
	if (!stop_signal)
		return 0;
	if (!is_ending && ticks_left > 0 && stop_count == 1)
		ticks_left = FINISHING_TICKS;
	is_ending = 1;
	return (int)stop_signal;
}

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

/*
 * nohup: ignored signals stay ignored, and handlers of a verb are its own. No SA_RESTART: calls
 * that wait are interrupted.
 */
static void set_handler(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler }, old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++) {
		if (!sigaction(numbers[i], NULL, &old) &&
		    (old.sa_handler == SIG_DFL || old.sa_handler == on_signal ||
		     old.sa_handler == end_as))
			sigaction(numbers[i], &action, NULL);
	}
}

static void catch_signals(void)
{
	struct sigaction tick = { .sa_handler = on_tick };

	sigemptyset(&tick.sa_mask);
	sigaction(SIGALRM, &tick, NULL);
	ts_io_set_stop(ts_stop_signal);
	set_handler(on_signal);
}

static void on_size_limit(int number)
{
	(void)number;
}

void ts_progress_guard(void)
{
	struct sigaction size_limit = { .sa_handler = on_size_limit };

	sigemptyset(&size_limit.sa_mask);
	/* Unlike an ignored signal, a program that a verb starts does not inherit it. */
	sigaction(SIGXFSZ, &size_limit, NULL);
	set_handler(end_as);
}

void ts_progress_start(struct ts_progress *progress, const char *label, enum ts_progress_unit unit)
{
	*progress = (struct ts_progress){
		.label = label,
		.unit = unit,
		.terminal = ts_terminal_stderr(),
		.begun_ns = ts_clock_monotonic_ns(),
	};
	catch_signals();
}

static void append_amount(struct ts_text *line, enum ts_progress_unit unit, uint64_t amount)
{
	static const char *const nouns[] = { [TS_PROGRESS_ROWS] = "row",
					     [TS_PROGRESS_COMMANDS] = "command",
					     [TS_PROGRESS_RUNS] = "run" };
	char number[TS_FORMAT_BYTES];

	if (unit == TS_PROGRESS_BYTES)
		ts_text_append_str(line, ts_format_bytes(number, sizeof(number), amount));
	else
		ts_text_append_str(line, TS_COUNTED(amount, nouns[unit]));
}

static void append_bar(struct ts_text *line, uint64_t done, uint64_t total)
{
	double part = total ? (double)done / (double)total : 0;
	int filled = (int)(TS_MIN(part, 1.0) * BAR_COLUMNS);

	ts_text_append_str(line, "  [");
	for (int i = 0; i < BAR_COLUMNS; i++)
		ts_text_append_char(line, i < filled ? '=' : i == filled ? '>' : ' ');
	ts_text_printf(line, "] %3d %%", (int)(TS_MIN(part, 1.0) * 100));
}

/* A line that wraps could not be erased. */
static void show_line(const struct ts_text *line)
{
	size_t length = TS_MIN(line->length, ts_terminal_stderr_width() - 1);

	fprintf(stderr, "\r\033[K%.*s", (int)ts_utf8_valid_prefix(line->data, length),
		line->data ? line->data : "");
	fflush(stderr);
	bar_is_shown = true;
}

static void draw(const struct ts_progress *progress, uint64_t done, uint64_t total, int64_t now_ns)
{
	double seconds = (double)(now_ns - progress->begun_ns) / 1e9;
	TS_SCOPED(ts_text) line = { 0 };

	ts_text_append_str(&line, progress->label);
	if (total)
		append_bar(&line, done, total);
	ts_text_append_str(&line, "  ");
	append_amount(&line, progress->unit, done);
	ts_text_append_str(&line, ", ");
	append_amount(&line, progress->unit, (uint64_t)((double)done / seconds));
	ts_text_append_str(&line, "/s");
	show_line(&line);
}

void ts_progress_show(const char *line)
{
	const struct ts_text text = { .data = (char *)line, .length = strlen(line) };

	if (ts_terminal_stderr())
		show_line(&text);
}

void ts_progress_phase(const char *what)
{
	TS_SCOPED(ts_text) line = { 0 };

	if (!ts_terminal_stderr())
		return;
	ts_text_printf(&line, "%s ...", what);
	show_line(&line);
}

int ts_progress_step(void *context, uint64_t done, uint64_t total)
{
	struct ts_progress *progress = context;
	int64_t now_ns;

	if (progress->terminal) {
		now_ns = ts_clock_monotonic_ns();
		if (now_ns - progress->begun_ns >= FIRST_SHOWN_NS &&
		    now_ns - progress->shown_ns >= REDRAW_NS) {
			draw(progress, done, total, now_ns);
			progress->shown_ns = now_ns;
		}
	}
	return ts_stop_signal() != 0;
}

void ts_progress_hide(void)
{
	if (!bar_is_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	bar_is_shown = false;
}

void ts_progress_stop(struct ts_progress *progress)
{
	progress->terminal = false;
	ts_progress_hide();
}

double ts_progress_seconds(const struct ts_progress *progress)
{
	return (double)(ts_clock_monotonic_ns() - progress->begun_ns) / 1e9;
}
