/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When windows of the command stream open, close and fail, with a client that only keeps a diary;
 * what the trace says is read from the channel.
 */
#include <pthread.h>

#include "agent/replay_channel.h"
#include "base/text.h"
#include "unit/agent/agent_support.h"

#define PATIENT "replayable=1;window_timeout=600000000000"
#define IMPATIENT "replayable=1;window_timeout=1" /* the first attempt is the last */

/* ---- the client ---- */

static struct {
	char diary[1024];
	const char *blocked, *unfinished, *open_fails, *close_fails; /* reasons, or NULL */
	void (*while_opening)(void), (*while_closing)(void), (*while_ending)(void);
	bool is_used, starts_anew;
	uint64_t pieces;
	unsigned int asked;
} client = { .pieces = UINT64_MAX };

/* "open opened ", with reasons: "ended:failed(why) " */
static void note(const char *what, const char *why)
{
	size_t length = strlen(client.diary);

	snprintf(client.diary + length, sizeof(client.diary) - length, why ? "%s(%s) " : "%s ",
		 what, why);
}

static bool is_blocked(char *why, size_t bytes)
{
	client.asked++;
	if (client.blocked)
		snprintf(why, bytes, "%s", client.blocked);
	return client.blocked;
}

static bool finish(int64_t deadline_ns, char *why, size_t bytes)
{
	TS_CHECK(deadline_ns > 0);
	if (client.unfinished)
		snprintf(why, bytes, "%s", client.unfinished);
	return !client.unfinished;
}

static bool is_unused(void)
{
	return !client.is_used;
}

static const char *open_window(char *why, size_t bytes, uint64_t *ret_snapshot_bytes)
{
	TS_CHECK(ts_replay_is_opening() && !ts_replay_is_open());
	note("open", NULL);
	*ret_snapshot_bytes = 77;
	if (client.while_opening)
		client.while_opening();
	if (!client.open_fails)
		return NULL;
	snprintf(why, bytes, "%s", client.open_fails);
	return why;
}

static void opened(void)
{
	TS_CHECK(ts_replay_is_open() && !ts_replay_is_opening());
	note("opened", NULL);
}

static const char *close_window(char *why, size_t bytes)
{
	TS_CHECK(ts_replay_is_open());
	note("close", NULL);
	if (client.while_closing)
		client.while_closing();
	if (!client.close_fails)
		return NULL;
	snprintf(why, bytes, "%s", client.close_fails);
	return why;
}

static uint64_t pieces(void)
{
	return client.pieces;
}

static void ended(enum ts_replay_end how, const char *why)
{
	static const char *const names[] = {
		[TS_REPLAY_END_CLOSED] = "closed",
		[TS_REPLAY_END_UNCHECKED] = "unchecked",
		[TS_REPLAY_END_NOT_OPENED] = "not opened",
		[TS_REPLAY_END_FAILED] = "failed",
	};

	TS_CHECK(!ts_replay_is_open());
	note(names[how], why);
	if (client.while_ending)
		client.while_ending();
}

static bool forked(void)
{
	note("forked", NULL);
	return client.starts_anew;
}

static const struct ts_replay_client fake = {
	.size = sizeof(fake),
	.is_blocked = is_blocked,
	.finish = finish,
	.is_unused = is_unused,
	.open = open_window,
	.opened = opened,
	.close = close_window,
	.pieces = pieces,
	.ended = ended,
	.forked = forked,
};

/* What it wrote since the last time. */
static void check_diary(const char *expected)
{
	TS_CHECK_STR(client.diary, expected);
	client.diary[0] = 0;
}

/* ---- the program ---- */

static struct agent_reader reader;
static struct agent_cursor cursor;

static void begin(const char *settings)
{
	agent_begin(settings);
	TS_CHECK(ts_replay_start(&fake));
	agent_open_reader(&reader);
	cursor = (struct agent_cursor){ .reader = &reader };
}

static void end(void)
{
	agent_close_reader(&reader);
	agent_end(true);
}

static void want(bool is_wanted)
{
	__atomic_store_n(&agent_control()->enabled, is_wanted ? TS_LIVE_ENABLED : 0,
			 __ATOMIC_RELEASE);
}

static void call(void)
{
	ts_replay_enter();
	TS_CHECK(ts_replay_leave());
}

/* A call with a command; its sequence number, 0 if no window is open. */
static uint64_t launch(void)
{
	struct ts_replay_command row = { .size = sizeof(row),
					 .kind = TS_COMMAND_LAUNCH,
					 .offset = INT64_MIN,
					 .other_offset = INT64_MIN,
					 .bytes = INT64_MIN };
	uint64_t sequence;

	ts_replay_enter();
	sequence = ts_replay_append_with(&row, "parameters", 10);
	TS_CHECK(ts_replay_leave());
	return sequence;
}

/* The next OPEN or CLOSE in the channel. NULL: there must not be one. */
static void check_trace(unsigned int kind, uint64_t sequence, const char *details)
{
	struct ts_live_record head;
	const uint64_t *record;
	char text[512];

	agent_drain(&reader);
	while ((record = agent_next(&cursor, &head))) {
		if (head.kind != TS_LIVE_COMMAND || record[3] == TS_COMMAND_LAUNCH)
			continue;
		if (!details)
			break;
		TS_CHECK_INT(record[3], kind);
		if (sequence)
			TS_CHECK_INT(record[2], sequence);
		record += 13;
		TS_CHECK_STR(agent_string(&record, text, sizeof(text)), details);
		return;
	}
	TS_CHECK(!record && !details);
}

static void check_open(const char *details)
{
	check_trace(TS_COMMAND_OPEN, 0, details);
}

/* After the command with that number; 0: any. */
static void check_close(uint64_t sequence, const char *details)
{
	check_trace(TS_COMMAND_CLOSE, sequence, details);
}

static void check_nothing_more(void)
{
	check_trace(0, 0, NULL);
}

/* ---- windows ---- */

TS_TEST(windows_open_and_close_in_the_next_call)
{
	uint64_t sequence;

	begin("enabled=0;" PATIENT);
	TS_CHECK_INT(launch(), 0);
	check_diary("");
	want(true);
	TS_CHECK(!ts_replay_is_open());
	client.pieces = 3;
	call();
	check_diary("open opened ");
	TS_CHECK(ts_replay_is_open() && ts_replay_window() == 1);
	check_open("{\"window\":1,\"snapshot_bytes\":77,\"from_start\":true,\"pieces\":3}");
	sequence = launch();
	TS_CHECK(sequence > 1);
	TS_CHECK_INT(launch(), sequence + 1);
	TS_CHECK_INT(ts_replay_last_sequence(), sequence + 1);
	want(false);
	TS_CHECK(ts_replay_is_open());
	TS_CHECK_INT(launch(), 0);
	check_diary("close closed ");
	check_close(sequence + 1, "{\"window\":1,\"pieces\":3}");
	call();
	/* The second one cannot begin with the process, and does not know its pieces yet. */
	want(true);
	client.pieces = UINT64_MAX;
	TS_CHECK(launch() > sequence + 1);
	TS_CHECK_INT(ts_replay_window(), 2);
	check_open("{\"window\":2,\"snapshot_bytes\":77}");
	check_diary("open opened ");
	check_nothing_more();
	end();
}

TS_TEST(a_window_from_the_start_does_not_wait_for_the_recorder)
{
	begin("enabled=0;from_start=1;" PATIENT);
	client.is_used = true;
	call();
	check_open("{\"window\":1,\"snapshot_bytes\":77}");
	/* Nobody has asked for its end until somebody asked for it. */
	call();
	TS_CHECK(ts_replay_is_open());
	want(true);
	call();
	want(false);
	call();
	check_diary("open opened close closed ");
	call();
	TS_CHECK(!ts_replay_is_open());
	end();
}

TS_TEST(nobody_asked_for_windows)
{
	begin("enabled=1;window_timeout=1");
	call();
	TS_CHECK_INT(launch(), 0);
	ts_replay_fail_window("nobody sees this");
	ts_replay_stop();
	TS_CHECK_INT(client.asked, 0);
	check_diary("");
	check_nothing_more();
	end();
}

TS_TEST(only_the_outermost_call_opens_a_window)
{
	begin("enabled=0;" PATIENT);
	ts_replay_enter();
	want(true);
	ts_replay_enter();
	ts_replay_step();
	TS_CHECK(!ts_replay_leave());
	TS_CHECK(ts_replay_leave());
	check_diary("");
	ts_replay_callback_begin();
	ts_replay_callback_begin();
	ts_replay_callback_end();
	TS_CHECK(ts_replay_in_callback());
	call();
	ts_replay_step();
	ts_replay_callback_end();
	TS_CHECK(!ts_replay_in_callback());
	check_diary("");
	/* A call that holds no gate opens it, too. */
	ts_replay_step();
	check_diary("open opened ");
	end();
}

TS_TEST(calls_pass_while_no_window_is_open_or_due)
{
	begin("enabled=0;" PATIENT);
	TS_CHECK(!ts_replay_pass()); /* this thread has no passage yet */
	call();
	TS_CHECK(ts_replay_pass());
	TS_CHECK(!ts_replay_pass());
	ts_replay_enter();
	TS_CHECK(!ts_replay_leave());
	/* It counts as inside: no window opens. */
	want(true);
	ts_replay_step();
	check_diary("");
	TS_CHECK(ts_replay_leave());
	TS_CHECK(!ts_replay_pass());
	check_diary("");
	call();
	check_diary("open opened ");
	TS_CHECK(!ts_replay_pass());
	want(false);
	TS_CHECK(!ts_replay_pass());
	call();
	check_diary("close closed ");
	TS_CHECK(ts_replay_pass());
	TS_CHECK(ts_replay_leave());
	end();
}

TS_TEST(a_call_knows_what_came_before_it)
{
	struct ts_replay_command row = { .size = sizeof(row), .kind = TS_COMMAND_LAUNCH };
	uint64_t before, sequence;

	begin("enabled=1;" PATIENT);
	before = launch();
	ts_replay_enter();
	TS_CHECK_INT(ts_replay_sequence_at_entry(), before);
	TS_CHECK(ts_replay_lock_window());
	sequence = ts_replay_append(&row);
	row.kind = TS_COMMAND_CHECK;
	row.sequence = sequence;
	TS_CHECK_INT(ts_replay_append(&row), sequence);
	ts_replay_unlock();
	/* A check is no command of its own. */
	TS_CHECK_INT(ts_replay_last_sequence(), before + 1);
	TS_CHECK_INT(ts_replay_sequence_at_entry(), before);
	ts_replay_leave();
	end();
}

/* ---- what opening waits for ---- */

TS_TEST(opening_waits_for_what_the_program_holds)
{
	unsigned int asked;

	begin("enabled=1;" PATIENT);
	client.blocked = "a stream capture is in progress";
	call();
	asked = client.asked;
	TS_CHECK(asked > 0);
	/* Each call asks again, and none waits. */
	TS_CHECK_INT(launch(), 0);
	TS_CHECK(client.asked > asked);
	check_diary("");
	client.blocked = NULL;
	TS_CHECK(launch() > 0);
	check_diary("open opened ");
	TS_CHECK_INT(ts_replay_window(), 1);
	end();
}

TS_TEST(opening_gives_up_with_the_reason)
{
	unsigned int asked;

	begin("enabled=1;" IMPATIENT);
	client.blocked = "a stream capture is in progress";
	call();
	check_diary("not opened(a stream capture is in progress) ");
	check_close(0, "{\"window\":1,\"failed\":\"a stream capture is in progress\"}");
	/* No second attempt until it was closed and asked for again. */
	client.blocked = NULL;
	asked = client.asked;
	TS_CHECK_INT(launch(), 0);
	TS_CHECK_INT(client.asked, asked);
	want(false);
	call();
	want(true);
	call();
	check_diary("open opened ");
	check_open("{\"window\":2,\"snapshot_bytes\":77}");
	end();
}

TS_TEST(opening_gives_up_when_queues_stay_full)
{
	begin("enabled=1;" IMPATIENT);
	client.unfinished = "stream 0x5 is not empty";
	call();
	check_diary("not opened(stream 0x5 is not empty) ");
	check_close(0, "{\"window\":1,\"failed\":\"stream 0x5 is not empty\"}");
	/* The gate is open again. */
	call();
	end();
}

TS_TEST(what_was_never_opened_was_closed_too_early)
{
	begin("enabled=1;" PATIENT);
	client.blocked = "user event 3 is not complete";
	call();
	want(false);
	call();
	check_diary(
		"not opened(it was closed before it could be opened: user event 3 is not complete) ");
	check_close(0, "{\"window\":1,\"failed\":\"it was closed before it could be opened: "
		       "user event 3 is not complete\"}");
	/* That took one call; the next window opens. */
	client.blocked = NULL;
	call();
	want(true);
	call();
	check_diary("open opened ");
	end();
}

/* ---- failures ---- */

TS_TEST(a_client_that_cannot_open)
{
	begin("enabled=1;" PATIENT);
	client.open_fails = "it has 5 GiB, more than --snapshot-limit";
	call();
	check_diary("open not opened(it has 5 GiB, more than --snapshot-limit) ");
	check_close(0, "{\"window\":1,\"failed\":\"it has 5 GiB, more than --snapshot-limit\"}");
	call();
	check_diary("");
	check_nothing_more();
	end();
}

static void fail_twice(void)
{
	ts_replay_fail_window("texture reference 'x'");
	ts_replay_fail_window("another reason");
}

TS_TEST(a_failure_while_it_opens)
{
	begin("enabled=1;" PATIENT);
	client.while_opening = fail_twice;
	call();
	check_diary("open not opened(texture reference 'x') ");
	check_close(0, "{\"window\":1,\"failed\":\"texture reference 'x'\"}");
	/* It is forgotten when the next one opens. */
	client.while_opening = NULL;
	want(false);
	call();
	want(true);
	call();
	check_diary("open opened ");
	end();
}

TS_TEST(a_failure_in_a_call_ends_the_window)
{
	uint64_t sequence;

	begin("enabled=1;" PATIENT);
	ts_replay_fail_window("there is no window yet");
	sequence = launch();
	check_diary("open opened ");
	ts_replay_enter();
	ts_replay_fail_window("host function (cuLaunchHostFunc)");
	TS_CHECK(!ts_replay_is_open() && !ts_replay_lock_window());
	ts_replay_fail_window("another reason");
	ts_replay_leave();
	check_diary("failed(host function (cuLaunchHostFunc)) ");
	check_open("{\"window\":1,\"snapshot_bytes\":77,\"from_start\":true}");
	check_close(sequence, "{\"window\":1,\"failed\":\"host function (cuLaunchHostFunc)\"}");
	/* Neither does it come back, nor is it closed once more. */
	TS_CHECK_INT(launch(), 0);
	want(false);
	call();
	check_diary("");
	check_nothing_more();
	want(true);
	TS_CHECK(launch() > sequence);
	TS_CHECK_INT(ts_replay_window(), 2);
	end();
}

TS_TEST(a_window_that_cannot_be_replayed_says_so_at_its_end)
{
	begin("enabled=1;" PATIENT);
	call();
	client.close_fails = "capture gap";
	want(false);
	call();
	check_diary("open opened close closed(capture gap) ");
	check_open("{\"window\":1,\"snapshot_bytes\":77,\"from_start\":true}");
	check_close(0, "{\"window\":1,\"failed\":\"capture gap\"}");
	end();
}

/* ---- closing ---- */

TS_TEST(closing_waits_and_commands_still_count)
{
	uint64_t sequence;

	begin("enabled=1;" PATIENT);
	call();
	client.blocked = "a stream capture is in progress";
	want(false);
	sequence = launch();
	TS_CHECK(sequence > 0 && ts_replay_is_open());
	/* Asked for again: it is still to be closed first. */
	want(true);
	client.blocked = NULL;
	TS_CHECK_INT(launch(), 0);
	check_diary("open opened close closed ");
	check_open("{\"window\":1,\"snapshot_bytes\":77,\"from_start\":true}");
	check_close(sequence, "{\"window\":1}");
	TS_CHECK(launch() > sequence);
	TS_CHECK_INT(ts_replay_window(), 2);
	end();
}

TS_TEST(closing_gives_up_and_leaves_it_unchecked)
{
	begin("enabled=1;" IMPATIENT);
	call();
	client.unfinished = "stream 0x5 is not empty";
	want(false);
	call();
	check_diary("open opened unchecked ");
	check_open("{\"window\":1,\"snapshot_bytes\":77,\"from_start\":true}");
	check_close(0, "{\"window\":1,\"unchecked\":\"stream 0x5 is not empty\"}");
	client.unfinished = NULL;
	want(true);
	call();
	check_diary("open opened ");
	end();
}

TS_TEST(the_end_of_the_program_closes_it)
{
	begin("enabled=1;" PATIENT);
	/* Inside a call of its own, as exit() in a callback is. */
	ts_replay_enter();
	ts_replay_stop();
	ts_replay_leave();
	check_diary("open opened close closed ");
	TS_CHECK_INT(launch(), 0);
	TS_CHECK_INT(ts_replay_window(), 1);
	check_diary("");
	end();
}

TS_TEST(the_end_of_the_program_comes_before_the_window)
{
	begin("enabled=1;" PATIENT);
	client.blocked = "a stream capture is in progress";
	call();
	ts_replay_stop();
	check_diary("not opened(a stream capture is in progress) ");
	call();
	check_diary("");
	end();
}

/* ---- several threads ---- */

static struct {
	pthread_t thread;
	uint32_t about_to_enter, is_inside, may_leave;
	bool is_callback, passes;
} other;

static bool is_set(uint32_t *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void await(uint32_t *flag)
{
	while (!is_set(flag))
		ts_replay_nap(100000);
}

static void *call_in_thread(void *unused)
{
	if (other.is_callback)
		ts_replay_callback_begin();
	set(&other.about_to_enter);
	if (other.passes) {
		call();
		TS_CHECK(ts_replay_pass());
	} else {
		ts_replay_enter();
	}
	set(&other.is_inside);
	await(&other.may_leave);
	ts_replay_leave();
	if (other.is_callback)
		ts_replay_callback_end();
	return unused;
}

static void start_other(bool is_callback)
{
	other.is_callback = is_callback;
	TS_CHECK_INT(pthread_create(&other.thread, NULL, call_in_thread, NULL), 0);
}

static void end_other(void)
{
	set(&other.may_leave);
	TS_CHECK_INT(pthread_join(other.thread, NULL), 0);
}

static void check_opening_waits(void)
{
	begin("enabled=0;" PATIENT);
	start_other(false);
	await(&other.is_inside);
	want(true);
	call();
	check_diary("");
	end_other();
	/* Later calls try again, though not each of them. */
	while (!ts_replay_is_open())
		call();
	check_diary("open opened ");
	end();
}

TS_TEST(opening_waits_for_calls_of_other_threads)
{
	check_opening_waits();
}

TS_TEST(opening_waits_for_calls_that_pass)
{
	other.passes = true;
	check_opening_waits();
}

static struct {
	uint32_t is_ready, may_try, has_tried;
	bool passed;
} late;

static void *pass_late(void *unused)
{
	call();
	set(&late.is_ready);
	await(&late.may_try);
	late.passed = ts_replay_pass();
	set(&late.has_tried);
	if (late.passed)
		ts_replay_leave();
	return unused;
}

static void let_late_try(void)
{
	set(&late.may_try);
	await(&late.has_tried);
}

/* The window counts as closed, but its end is still handled with the gate closed. */
TS_TEST(nobody_passes_while_the_end_of_a_window_is_handled)
{
	pthread_t thread;

	client.while_ending = let_late_try;
	begin("enabled=0;" PATIENT);
	TS_CHECK_INT(pthread_create(&thread, NULL, pass_late, NULL), 0);
	await(&late.is_ready);
	want(true);
	call();
	want(false);
	call();
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	TS_CHECK(!late.passed);
	check_diary("open opened close closed ");
	end();
}

TS_TEST(opening_gives_up_when_a_call_does_not_return)
{
	begin("enabled=0;" IMPATIENT);
	start_other(false);
	await(&other.is_inside);
	want(true);
	call();
	check_diary("not opened(1 calls did not return) ");
	end_other();
	end();
}

/* Were it not for the gate, the thread would have time to come in. */
static void let_other_try(void)
{
	start_other(false);
	await(&other.about_to_enter);
	ts_replay_nap(20000000);
	TS_CHECK(!is_set(&other.is_inside));
}

TS_TEST(other_threads_wait_while_it_opens)
{
	begin("enabled=1;" PATIENT);
	client.while_opening = let_other_try;
	call();
	await(&other.is_inside);
	TS_CHECK(ts_replay_is_open());
	end_other();
	check_diary("open opened ");
	end();
}

static void wait_for_callback(void)
{
	start_other(true);
	/* On a very busy machine its second may have passed already. */
	while (!ts_replay_is_awaited() && !is_set(&other.is_inside))
		ts_replay_nap(100000);
	await(&other.is_inside);
	TS_CHECK(!ts_replay_is_awaited());
}

/* The driver may need that thread to go on. */
TS_TEST(a_callback_does_not_wait_forever)
{
	begin("enabled=1;" PATIENT);
	client.while_opening = wait_for_callback;
	call();
	check_diary("open not opened(a callback of the driver could not wait) ");
	end_other();
	end();
}

/* ---- other clients, processes and recorders ---- */

TS_TEST(two_clients_get_no_windows)
{
	static struct ts_replay_client second;

	begin("enabled=1;" PATIENT);
	call();
	TS_CHECK(ts_replay_start(&fake));
	TS_CHECK(ts_replay_is_open());
	second = fake;
	TS_CHECK(!ts_replay_start(&second));
	check_diary("open opened failed(the program uses two interfaces to devices) ");
	want(false);
	call();
	want(true);
	call();
	check_diary("not opened(the program uses two interfaces to devices) ");
	end();
}

static void check_child(bool starts_anew)
{
	pid_t pid;

	client.starts_anew = starts_anew;
	client.diary[0] = 0;
	/* In a call, while another thread, which the child does not have, is in one, too. */
	ts_replay_enter();
	pid = fork();
	if (!pid) {
		check_diary("forked ");
		TS_CHECK(!ts_replay_is_open());
		TS_CHECK(ts_replay_leave());
		call();
		check_diary(starts_anew ? "open opened " : "");
		TS_CHECK_INT(ts_replay_is_open(), starts_anew);
		agent_end(false);
		_exit(0);
	}
	ts_replay_leave();
	agent_join_child(pid);
	TS_CHECK(ts_replay_is_open());
}

TS_TEST(a_child_begins_anew_or_has_no_windows)
{
	begin("enabled=1;" PATIENT);
	call();
	start_other(false);
	await(&other.is_inside);
	check_child(true);
	check_child(false);
	end_other();
	end();
}

TS_TEST(a_recorder_that_stores_nothing)
{
	begin("enabled=1;mode=flight;" PATIENT);
	call();
	check_diary("open not opened ");
	TS_CHECK(!ts_replay_is_open());
	end();
}

TS_TEST(a_window_ends_when_the_stream_is_broken)
{
	static char much[1 << 20];

	agent_channel_patience_ns = 1000000;
	begin("enabled=1;budget=262144;" PATIENT);
	TS_CHECK(launch() > 0);
	/* More than the channel holds, and nobody reads. */
	TS_CHECK(ts_replay_lock());
	ts_replay_blob(much, sizeof(much));
	ts_replay_unlock();
	TS_CHECK(ts_replay_is_broken());
	TS_CHECK(!ts_replay_lock_window());
	TS_CHECK(!ts_replay_is_open());
	TS_CHECK_INT(launch(), 0);
	want(false);
	call();
	check_diary("open opened ");
	end();
}

/* ---- a thread that is to end ---- */

static void *call_when_cancelled(void *argument)
{
	pthread_cancel(pthread_self());
	call();
	*(bool *)argument = true;
	pthread_testcancel();
	return NULL;
}

/* Not while it opens a window: nobody would ever open the gate again. */
TS_TEST(a_cancelled_thread_finishes_what_it_opens)
{
	bool has_called = false;
	pthread_t thread;
	void *result;

	client.while_opening = pthread_testcancel;
	begin(PATIENT);
	want(true);
	TS_CHECK_INT(pthread_create(&thread, NULL, call_when_cancelled, &has_called), 0);
	TS_CHECK_INT(pthread_join(thread, &result), 0);
	TS_CHECK(has_called && result == PTHREAD_CANCELED);
	TS_CHECK(launch() > 0);
	check_diary("open opened ");
	end();
}

static void *stop_when_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	ts_replay_stop();
	pthread_testcancel();
	return unused;
}

/* As a thread that calls exit(), while the one that waits for it cancels it. */
TS_TEST(a_cancelled_thread_finishes_what_it_closes_at_exit)
{
	pthread_t thread;

	client.while_closing = pthread_testcancel;
	begin("enabled=1;" PATIENT);
	call();
	check_diary("open opened ");
	TS_CHECK_INT(pthread_create(&thread, NULL, stop_when_cancelled, NULL), 0);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	check_diary("close closed ");
	call();
	end();
}

static pthread_key_t late_key;

static void call_late(void *argument)
{
	ts_replay_enter();
	*(bool *)argument = ts_replay_leave();
}

static void *end_inside(void *argument)
{
	TS_CHECK_INT(pthread_setspecific(late_key, argument), 0);
	ts_replay_callback_begin();
	ts_replay_enter();
	pthread_exit(NULL);
}

/* As a thread that is cancelled while the driver waits: its destructors pass the gate again. */
TS_TEST(what_a_thread_calls_after_it_ended_inside_a_call_passes_the_gate)
{
	bool has_passed = false;
	pthread_t thread;

	begin(PATIENT);
	TS_CHECK_INT(pthread_key_create(&late_key, call_late), 0);
	TS_CHECK_INT(pthread_create(&thread, NULL, end_inside, &has_passed), 0);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	TS_CHECK(has_passed);
	/* And nobody waits for it. */
	want(true);
	call();
	check_diary("open opened ");
	end();
}

/* ---- many threads ---- */

#define LAUNCHERS 4u
#define OPENINGS 300u
#define LOOKS 1000u

static struct {
	uint32_t is_inside[LAUNCHERS][64]; /* by thread; each in a line of its own */
	uint32_t is_over;
	uint64_t openings;
} crowd;

static void check_nobody_is_inside(void)
{
	for (unsigned int i = 0; i < LAUNCHERS * LOOKS; i++)
		TS_CHECK(!__atomic_load_n(&crowd.is_inside[i % LAUNCHERS][0], __ATOMIC_RELAXED));
	crowd.openings++;
	client.diary[0] = 0;
}

static void *launch_often(void *argument)
{
	uint32_t *is_inside = argument;

	while (!__atomic_load_n(&crowd.is_over, __ATOMIC_RELAXED)) {
		if (!ts_replay_pass())
			ts_replay_enter();
		__atomic_store_n(is_inside, 1, __ATOMIC_RELAXED);
		__atomic_store_n(is_inside, 0, __ATOMIC_RELAXED);
		TS_CHECK(ts_replay_leave());
	}
	return NULL;
}

/* Threads come and go; whoever is inside is waited for, and nobody enters while it opens. */
TS_TEST(nobody_is_inside_while_it_opens)
{
	pthread_t threads[LAUNCHERS];

	client.while_opening = check_nobody_is_inside;
	begin(PATIENT);
	while (crowd.openings < OPENINGS) {
		uint64_t until = crowd.openings + OPENINGS / 10;

		crowd.is_over = 0;
		for (unsigned int i = 0; i < LAUNCHERS; i++)
			TS_CHECK_INT(pthread_create(&threads[i], NULL, launch_often,
						    &crowd.is_inside[i][0]),
				     0);
		while (__atomic_load_n(&crowd.openings, __ATOMIC_RELAXED) < until) {
			want(true);
			call();
			want(false);
			call();
		}
		__atomic_store_n(&crowd.is_over, 1, __ATOMIC_RELAXED);
		for (unsigned int i = 0; i < LAUNCHERS; i++)
			pthread_join(threads[i], NULL);
	}
	end();
}
