/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays of handmade traces on a target that computes in memory and can be made to fail: captures,
 * comparisons, reports, and the file of -o.
 */
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "replay/check/check.h"
#include "replay/replay.h"
#include "replay/stream/stream_internal.h"
#include "unit/replay/replay_fixture.h"
#include "unit/runner.h"

#define WORDS 64
#define BYTES (WORDS * 4)

/* ---- the target ---- */

struct ts_replay_session {
	struct ts_replay *replay;
	uint32_t *memory[64]; /* by object */
	uint32_t host[WORDS];
};

/* What fails: in which runs, at which command, from which word on, by how much. */
static struct {
	unsigned int from_run;
	uint64_t command;
	uint32_t word, add;
	bool fails_to_open, forgets;
	uint64_t unknown_object, unknown_command; /* what the device does not support */
	unsigned int runs, opened;
} trouble;

static int refuse_object(struct ts_replay *replay, struct ts_error *err)
{
	const struct ts_replay_stream *stream = replay->stream;

	for (uint32_t i = 0; trouble.unknown_object && i < stream->object_count; i++) {
		if (stream->objects[i].number != trouble.unknown_object ||
		    stream->objects[i].unreplayable)
			continue;
		ts_error_set(err, TS_ECAP, "object %" PRIu64 " does not exist here",
			     trouble.unknown_object);
		ts_replay_reject_object(replay, i, err);
		return TS_ECAP;
	}
	return TS_OK;
}

static int refuse_command(struct ts_replay *replay, uint32_t index, struct ts_error *err)
{
	if (replay->stream->commands[index].sequence != trouble.unknown_command ||
	    replay->plan.kept[index] == TS_REPLAY_ORDER)
		return TS_OK;
	ts_error_set(err, TS_ECAP, "command %" PRIu64 ", launch of 'mix_': too many work items",
		     trouble.unknown_command);
	ts_replay_reject_command(replay, index, err);
	return TS_ECAP;
}

static int open_session(struct ts_replay *replay, struct ts_replay_session **ret_session,
			struct ts_error *err)
{
	struct ts_replay_session *session;

	trouble.opened++;
	if (trouble.fails_to_open && !replay->options.replacement_count)
		return ts_error_set(err, TS_EFORMAT, "it does not build");
	if (refuse_object(replay, err))
		return TS_ECAP;
	session = calloc(1, sizeof(*session));
	TS_CHECK(session && replay->stream->object_count <= TS_ARRAY_SIZE(session->memory));
	session->replay = replay;
	*ret_session = session;
	return TS_OK;
}

static void close_session(struct ts_replay_session *session)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(session->memory); i++)
		free(session->memory[i]);
	free(session);
}

static const char *describe(const struct ts_replay_session *session)
{
	TS_CHECK(session->replay);
	return "fake: memory";
}

static void restore(struct ts_replay_session *session)
{
	const struct ts_replay_stream *stream = session->replay->stream;
	struct ts_error err;

	for (uint32_t i = 0; i < stream->object_count; i++) {
		const struct ts_replay_object_info *object = &stream->objects[i];

		free(session->memory[i]);
		session->memory[i] = NULL;
		if (object->kind != TS_OBJECT_MEMORY)
			continue;
		session->memory[i] = calloc(1, object->bytes);
		TS_CHECK(session->memory[i]);
		if (object->blob.id)
			TS_CHECK_INT(ts_replay_blob_read(session->replay->reader, &object->blob,
							 session->memory[i], &err),
				     0);
	}
}

static void launch(struct ts_replay_session *session, const struct ts_replay_command_info *command)
{
	const struct ts_replay_stream *stream = session->replay->stream;
	uint32_t *to = session->memory[command->args[0].memory], *from, by;
	struct ts_error err;

	if (!strcmp(stream->objects[command->object].name, "step_")) {
		for (uint64_t i = 0; i < command->global[0]; i++)
			to[i] = to[i] * 3 + 1;
		return;
	}
	from = session->memory[command->args[1].memory];
	TS_CHECK_INT(ts_replay_blob_read(session->replay->reader, &command->blob, &by, &err), 0);
	for (uint64_t i = 0; i < command->global[0]; i++)
		to[i] ^= from[i] + by;
}

static void copy(struct ts_replay_session *session, const struct ts_replay_command_info *command)
{
	struct ts_error err;
	uint8_t data[BYTES];

	if (command->other != TS_REPLAY_NONE)
		memcpy(data, (char *)session->memory[command->other] + command->other_offset,
		       command->bytes);
	else
		TS_CHECK_INT(
			ts_replay_blob_read(session->replay->reader, &command->blob, data, &err),
			0);
	if (command->object == TS_REPLAY_NONE)
		memcpy(session->host, data, command->bytes);
	else
		memcpy((char *)session->memory[command->object] + command->offset, data,
		       command->bytes);
}

static void execute(struct ts_replay_session *session, uint32_t index, unsigned int number)
{
	const struct ts_replay_command_info *command = &session->replay->stream->commands[index];

	if (session->replay->plan.kept[index] == TS_REPLAY_ORDER)
		return;
	if (command->kind == TS_COMMAND_LAUNCH)
		launch(session, command);
	else if (command->kind == TS_COMMAND_COPY)
		copy(session, command);
	if (trouble.command == command->sequence && number >= trouble.from_run)
		session->memory[command->args[0].memory][trouble.word] += trouble.add;
}

static int deliver(struct ts_replay_session *session, uint32_t position,
		   const struct ts_replay_outcome *outcome, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;

	for (uint32_t i = 0; i < replay->capture_count; i++) {
		const struct ts_replay_range *range = &replay->captures[i].range;
		int rc;

		if (replay->captures[i].position != position || (trouble.forgets && i == 1))
			continue;
		rc = outcome->content(outcome->context, i,
				      range->memory == TS_REPLAY_NONE
					      ? (char *)session->host
					      : (char *)session->memory[range->memory] +
							range->offset,
				      err);
		if (rc)
			return rc;
	}
	return TS_OK;
}

static int run_session(struct ts_replay_session *session, unsigned int number,
		       struct ts_replay_outcome *outcome, struct ts_error *err)
{
	const struct ts_replay_plan *plan = &session->replay->plan;
	int rc = TS_OK;

	trouble.runs++;
	restore(session);
	for (uint32_t i = 0; !rc && i < plan->count; i++) {
		rc = refuse_command(session->replay, plan->order[i], err);
		if (rc)
			return rc;
		execute(session, plan->order[i], number);
		outcome->times[i] = (struct ts_replay_times){ .called = 100 * i + 1000,
							      .returned = 100 * i + 1050,
							      .queued = 100 * i + 1010,
							      .submitted = 100 * i + 1020,
							      .start = 100 * i + 1060,
							      .end = 100 * i + 1090 - number };
		rc = deliver(session, i, outcome, err);
	}
	return rc ? rc : deliver(session, plan->count, outcome, err);
}

static const struct ts_replay_target target = {
	.name = "fake",
	.needs = TS_REPLAY_NEEDS_STREAM,
	.can = TS_REPLAY_CAN_ALL,
	.open = open_session,
	.run = run_session,
	.device = describe,
	.close = close_session,
};

/* ---- the trace: 2 write, 3 step on 10, 4 mix to 11, 5 step on 11, 6 read of 11 ---- */

static char path[64];

/* Checks: none, hashes, with contents, with contents that are not what was hashed. */
enum checks { NO_CHECKS, HASHES, CONTENTS, STALE_CONTENTS };

static void add_check(struct fixture_trace *fixture, enum checks checks, int64_t at, int64_t memory,
		      const uint32_t *content, const char *why)
{
	uint32_t stale[WORDS];

	memcpy(stale, content, BYTES);
	stale[5] += checks == STALE_CONTENTS;
	if (checks != NO_CHECKS)
		fixture_check_blob(fixture, at, memory, content, BYTES, why,
				   checks >= CONTENTS ? fixture_blob(fixture, stale, BYTES) : 0);
}

static void make_trace(enum checks checks)
{
	struct fixture_trace fixture;
	uint32_t a[WORDS], b[WORDS];
	int64_t at;

	snprintf(path, sizeof(path), "/tmp/tracesmith-replay-%d.sbt", getpid());
	for (uint32_t i = 0; i < WORDS; i++) {
		a[i] = i * 7;
		b[i] = i;
	}
	fixture_open(&fixture, path);
	fixture_objects(&fixture);
	fixture_memory(&fixture, 10, NULL, BYTES);
	fixture_memory(&fixture, 11, b, BYTES);
	fixture_begin(&fixture, 1);
	fixture_write(&fixture, FIXTURE_QUEUE, 10, 0, a, BYTES);
	at = fixture_step(&fixture, FIXTURE_QUEUE, 10, WORDS, ",\"event\":21");
	for (uint32_t i = 0; i < WORDS; i++) {
		a[i] = a[i] * 3 + 1;
		b[i] ^= a[i] + 5;
		b[i] = b[i] * 3 + 1;
	}
	add_check(&fixture, checks, at, 10, a, "each");
	fixture_mix(&fixture, FIXTURE_QUEUE_2, 11, 10, 5, WORDS, ",\"wait\":[21],\"event\":22");
	fixture_step(&fixture, FIXTURE_QUEUE_2, 11, WORDS, "");
	at = fixture_read(&fixture, FIXTURE_QUEUE_2, 11, 0, BYTES);
	add_check(&fixture, checks, at, 0, b, "read");
	add_check(&fixture, checks, at, 11, b, "final");
	fixture_finish(&fixture, 1, NULL);
	fixture_close(&fixture);
}

static struct ts_replay_options options_of(enum ts_replay_check_level check, unsigned int repeat)
{
	return (struct ts_replay_options){ .target = &target, .check = check, .repeat = repeat };
}

static struct ts_reader *reader;

static struct ts_replay *open_replay(const struct ts_replay_options *options)
{
	struct ts_replay *replay;
	struct ts_error err;

	if (ts_reader_open(&reader, path, &err) || ts_replay_open(&replay, reader, options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return replay;
}

static void close_replay(struct ts_replay *replay)
{
	ts_replay_close(replay);
	ts_reader_close(reader);
}

static struct ts_replay_report report_of(const struct ts_replay_options *options)
{
	struct ts_replay *replay = open_replay(options);
	struct ts_replay_report report;
	struct ts_error err;

	if (ts_replay_run(replay, &report, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	close_replay(replay);
	return report;
}

/* ---- verdicts ---- */

TS_TEST(all_equal)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 3);
	struct ts_replay_report report;

	make_trace(HASHES);
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text, "no difference in 3 runs, equals recording");
	TS_CHECK_INT(report.verdict, TS_REPLAY_EQUAL);
	TS_CHECK_INT(report.commands, 5);
	TS_CHECK_INT(report.checks, 3);
	/* Writes of 2 to 5, the read of 6, 10 and 11 at the end. */
	TS_CHECK_INT(report.compared_ranges, 7);
	/* Of the last run, which was the shortest. */
	TS_CHECK_INT(report.span_ns, 400 + 30 - 2);
	TS_CHECK(!report.differs);
	options.check = TS_REPLAY_CHECK_FINAL;
	report = report_of(&options);
	/* What a recorded check covers is always compared. */
	TS_CHECK_INT(report.compared_ranges, 4);
	options.check = TS_REPLAY_CHECK_NONE;
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_RAN);
	make_trace(NO_CHECKS);
	options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text, "ran once, nothing recorded to compare with");
	unlink(path);
}

TS_TEST(differs_from_the_recording)
{
	const struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 2);
	struct ts_replay_report report;

	make_trace(HASHES);
	trouble.command = 4;
	trouble.add = 1;
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text, "differs from recording");
	/* 4 has no check: 6 is the first to show the difference. */
	TS_CHECK_INT(report.command, 6);
	TS_CHECK_STR(report.buffer, "memory 11");
	TS_CHECK(!report.has_bytes);
	TS_CHECK_STR(report.between,
		     "equal at command 3, launch of 'step_'; different at command 6, "
		     "copy from memory 11");
	unlink(path);
}

static void check_nondeterministic(const struct ts_replay_report *report)
{
	TS_CHECK_STR(report->verdict_text, "nondeterministic");
	TS_CHECK_INT(report->command, 4);
	TS_CHECK_STR(report->kernel, "mix_");
	TS_CHECK_STR(report->command_text, "command 4, launch of 'mix_'");
	TS_CHECK_INT(report->buffer_number, 11);
	TS_CHECK(report->has_bytes);
	TS_CHECK_INT(report->first_byte, 9 * 4 + 1);
	TS_CHECK_INT(report->bytes_differing, 1);
}

TS_TEST(differs_from_run_to_run)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 4);
	struct ts_replay_report report;

	make_trace(HASHES);
	trouble.command = 4;
	trouble.from_run = 2;
	trouble.word = 9;
	trouble.add = 256;
	report = report_of(&options);
	check_nondeterministic(&report);
	TS_CHECK_STR(report.values, "");
	options.value_type = "u32";
	report = report_of(&options);
	check_nondeterministic(&report);
	/* 9 ^ (9 * 7 * 3 + 1 + 5) */
	TS_CHECK_STR(report.values, "u32 9: 202 in one run, 458 in another");
	unlink(path);
}

/* Content that does not fit is fetched by further runs. */
TS_TEST(content_is_fetched)
{
	const struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 2);
	struct ts_replay *replay;
	struct ts_replay_report report;
	struct ts_error err;

	make_trace(HASHES);
	trouble.command = 4;
	trouble.word = 9;
	trouble.add = 256;
	trouble.from_run = 1;
	replay = open_replay(&options);
	TS_CHECK(replay->checker->keeps);
	replay->checker->keeps = false;
	TS_CHECK_INT(ts_replay_run(replay, &report, &err), 0);
	close_replay(replay);
	/* Further runs agree with the second one, so there is no reference: three were tried. */
	TS_CHECK_INT(trouble.runs, 5);
	TS_CHECK_INT(report.command, 4);
	TS_CHECK(!report.has_bytes);
	unlink(path);
}

TS_TEST(a_tolerance)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 2);
	struct ts_replay_report report;

	make_trace(NO_CHECKS);
	trouble.command = 5;
	trouble.from_run = 1;
	trouble.word = 3;
	trouble.add = 4;
	options.value_type = "i32";
	options.tolerance.ulp = 3;
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_NONDETERMINISTIC);
	options.tolerance.ulp = 4;
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_AGREES);
	unlink(path);
}

/* With contents, a difference from the recording has bytes and values, and a tolerance applies. */
TS_TEST(recorded_contents)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	struct ts_replay_report report;

	make_trace(CONTENTS);
	trouble.command = 5;
	trouble.word = 3;
	trouble.add = 256;
	options.value_type = "u32";
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text, "differs from recording");
	TS_CHECK_INT(report.command, 6);
	TS_CHECK_INT(report.first_byte, 3 * 4 + 1);
	TS_CHECK_INT(report.bytes_differing, 1);
	/* (3 ^ (3 * 7 * 3 + 1 + 5)) * 3 + 1 = 211 */
	TS_CHECK_STR(report.values, "u32 3: 211 recorded, 467 replayed");
	TS_CHECK_INT(report.checks, 3);
	TS_CHECK_INT(report.kept_checks, 3);
	TS_CHECK_INT(report.different_checks, 2);
	options.tolerance = (struct ts_value_tolerance){ .absolute = 256, .text = "abs=256" };
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text,
		     "no difference in 1 run, equals recording within abs=256");
	TS_CHECK_INT(report.verdict, TS_REPLAY_EQUAL);
	TS_CHECK_INT(report.near_checks, 2);
	TS_CHECK_INT(report.different_checks, 0);
	options.tolerance.absolute = 255;
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	unlink(path);
}

/* A hash is what counts: contents that do not belong to it are no reference. */
TS_TEST(contents_that_do_not_apply)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	struct ts_replay_report report;

	make_trace(STALE_CONTENTS);
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_EQUAL);
	trouble.command = 5;
	trouble.word = 5;
	trouble.add = 1;
	options.value_type = "u32";
	options.tolerance = (struct ts_value_tolerance){ .ulp = 1000, .text = "ulp=1000" };
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	TS_CHECK(!report.has_bytes);
	make_trace(HASHES);
	report = report_of(&options);
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	TS_CHECK_STR(report.note,
		     "this check has a hash only, so no tolerance applies: record with "
		     "'--keep-contents'");
	unlink(path);
}

/* The recorded kernels run first: results of the others are compared with theirs, byte by byte. */
TS_TEST(replaced_kernels)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 2);
	const struct ts_replay_replacement replacement = { "mix_", "new.cl", "source", 6 };
	struct ts_replay_report report;

	make_trace(HASHES);
	options.replacements = &replacement;
	options.replacement_count = 1;
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text, "no difference in 2 runs, equals recording");
	TS_CHECK_INT(trouble.opened, 2);
	TS_CHECK_INT(trouble.runs, 3);
	trouble.fails_to_open = true;
	trouble.command = 4;
	trouble.add = 1;
	report = report_of(&options);
	TS_CHECK_STR(
		report.note,
		"the recorded kernels do not run here, so there is nothing to compare with: it does not build");
	TS_CHECK_INT(report.command, 6);
	TS_CHECK(!report.has_bytes);
	unlink(path);
}

TS_TEST(content_that_is_missing)
{
	const struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 1);
	struct ts_replay *replay;
	struct ts_replay_report report;
	struct ts_error err;

	make_trace(HASHES);
	trouble.forgets = true;
	replay = open_replay(&options);
	TS_CHECK_INT(ts_replay_run(replay, &report, &err), TS_EIO);
	close_replay(replay);
	unlink(path);
}

/* ---- what cannot be replayed ---- */

static void check_skipped(const struct ts_replay_report *report, const char *reason)
{
	TS_CHECK_STR(report->verdict_text,
		     "no difference in 1 run, equals recording in 1 of 3 checks; 2 depend on 1 "
		     "skipped command");
	TS_CHECK_INT(report->verdict, TS_REPLAY_EQUAL);
	/* 4 cannot run, 5 depends on it; 6 reads what they left. */
	TS_CHECK_INT(report->commands, 3);
	TS_CHECK_INT(report->skipped, 1);
	TS_CHECK_INT(report->dependent, 1);
	TS_CHECK_INT(report->checks, 1);
	TS_CHECK_INT(report->unknown_checks, 2);
	TS_CHECK_INT(report->first_skipped[0].command, 4);
	TS_CHECK_STR(report->first_skipped[0].text, "command 4, launch of 'mix_'");
	TS_CHECK_STR(report->first_skipped[0].reason, reason);
}

TS_TEST(what_the_device_does_not_support_is_skipped)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	struct ts_replay_report report;

	make_trace(HASHES);
	options.skip_unsupported = true;
	trouble.unknown_object = FIXTURE_MIX;
	report = report_of(&options);
	check_skipped(&report, "object 7 does not exist here");
	TS_CHECK_INT(trouble.opened, 2);
	TS_CHECK_INT(trouble.runs, 1);
	trouble.unknown_object = 0;
	trouble.unknown_command = 4;
	report = report_of(&options);
	check_skipped(&report, "too many work items");
	trouble.unknown_command = 2;
	report = report_of(&options);
	TS_CHECK_STR(report.verdict_text,
		     "ran once, nothing to compare with: 3 checks depend on 1 skipped command");
	TS_CHECK_INT(report.verdict, TS_REPLAY_AGREES);
	/* Memory that does not exist: neither do its checks. */
	trouble.unknown_command = 0;
	trouble.unknown_object = 11;
	report = report_of(&options);
	TS_CHECK_INT(report.skipped, 3);
	TS_CHECK_INT(report.checks, 1);
	TS_CHECK_INT(report.unknown_checks, 2);
	unlink(path);
}

TS_TEST(nothing_is_skipped_silently)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	struct ts_replay *replay;
	struct ts_replay_report report;
	struct ts_error err;

	make_trace(HASHES);
	trouble.unknown_object = FIXTURE_MIX;
	replay = open_replay(&options);
	TS_CHECK_INT(ts_replay_run(replay, &report, &err), TS_ECAP);
	TS_CHECK_STR(err.message, "object 7 does not exist here ('--skip-unsupported' goes on "
				  "without it)");
	close_replay(replay);
	/* Nothing is left of a selection. */
	options.skip_unsupported = true;
	options.kernel = "mix*";
	replay = open_replay(&options);
	TS_CHECK_INT(ts_replay_run(replay, &report, &err), TS_EFORMAT);
	TS_CHECK_STR(err.message,
		     "nothing is left to replay: command 4, launch of 'mix_': cannot be replayed: "
		     "object 7 does not exist here");
	close_replay(replay);
	unlink(path);
}

/* ---- parts ---- */

TS_TEST(parts)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_EACH, 1);
	struct ts_replay_report report;

	make_trace(HASHES);
	options.kernel = "mix*";
	report = report_of(&options);
	TS_CHECK_INT(report.requested, 1);
	TS_CHECK_INT(report.included, 2);
	TS_CHECK_STR(report.included_text, "1 copy and 1 launch before it: 2-3");
	TS_CHECK_INT(report.verdict, TS_REPLAY_EQUAL);
	options.kernel = NULL;
	options.from = "3";
	options.to = "4";
	report = report_of(&options);
	TS_CHECK_STR(report.included_text, "1 copy before it: 2");
	options.from = "0us";
	options.to = "1us";
	report = report_of(&options);
	TS_CHECK_INT(report.requested, 1);
	TS_CHECK_STR(report.included_text, "");
	/* Only what the first queue did: the other one is not needed. */
	options = options_of(TS_REPLAY_CHECK_EACH, 1);
	options.streams = "0";
	report = report_of(&options);
	TS_CHECK_INT(report.commands, 2);
	options.streams = "1,0";
	report = report_of(&options);
	TS_CHECK_INT(report.commands, 5);
	unlink(path);
}

TS_TEST(parts_that_are_not_there)
{
	static const struct {
		struct ts_replay_options options;
		int code;
		const char *message;
	} cases[] = {
		{ { .kernel = "none" },
		  TS_ENOTFOUND,
		  "nothing to replay: no launch of 'none' in that part; kernels of this window are "
		  "'step_', 'mix_'" },
		{ { .from = "7" },
		  TS_ENOTFOUND,
		  "nothing to replay: no command in that part; the window has commands 2 to 6" },
		{ { .from = "x" },
		  TS_EINVAL,
		  "'--from x' is neither a command number nor a time after the first command such as 1.5ms" },
		{ { .streams = "0,2" }, TS_EINVAL, "there is no stream 2; streams are 0, 1" },
		{ { .streams = "" }, TS_EINVAL, "there is no stream ; streams are 0, 1" },
		{ { .window = 2 }, TS_EINVAL, "there is no window 2; the trace has 1" },
		{ { .dump_at = 3, .dump_memory = 12 },
		  TS_EINVAL,
		  "there is no memory 12 after command 3; existing memory: 10, 11" },
		{ { .value_type = "f8" },
		  TS_EINVAL,
		  "'f8' is not a value type; types are f16, bf16, f32, f64, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, "
		  "u16, u32, u64" },
	};

	make_trace(HASHES);
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct ts_replay_options options = cases[i].options;
		struct ts_replay *replay = NULL;
		struct ts_error err;

		options.target = &target;
		options.repeat = 1;
		options.check = TS_REPLAY_CHECK_FINAL;
		TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
		TS_CHECK_INT(ts_replay_open(&replay, reader, &options, &err), cases[i].code);
		TS_CHECK_STR(err.message, cases[i].message);
		ts_reader_close(reader);
	}
	unlink(path);
}

TS_TEST(a_long_list_of_memory_ends_between_numbers)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	struct fixture_trace fixture;
	struct ts_replay *replay = NULL;
	struct ts_error err;

	snprintf(path, sizeof(path), "/tmp/tracesmith-replay-%d.sbt", getpid());
	fixture_open(&fixture, path);
	fixture_objects(&fixture);
	for (int64_t i = 0; i < 100; i++)
		fixture_memory(&fixture, 1000 + i, NULL, BYTES);
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 1000, WORDS, "");
	fixture_finish(&fixture, 1, NULL);
	fixture_close(&fixture);
	options.dump_at = 2;
	options.dump_memory = 12;
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	TS_CHECK_INT(ts_replay_open(&replay, reader, &options, &err), TS_EINVAL);
	TS_CHECK(strstr(err.message, ", 1033 ... (--list shows all)"));
	ts_reader_close(reader);
	unlink(path);
}

TS_TEST(a_dump)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 1);
	struct ts_replay *replay;
	struct ts_replay_report report;
	struct ts_error err;
	uint64_t bytes;
	const uint32_t *words;

	make_trace(HASHES);
	options.dump_at = 3;
	options.dump_memory = 10;
	replay = open_replay(&options);
	TS_CHECK_INT(ts_replay_run(replay, &report, &err), 0);
	words = ts_replay_dump(replay, &bytes);
	TS_CHECK_INT(bytes, BYTES);
	TS_CHECK_INT(words[5], 5 * 7 * 3 + 1);
	/* What follows is not run. */
	TS_CHECK_INT(report.commands, 2);
	close_replay(replay);
	unlink(path);
}

/* ---- -o ---- */

static uint64_t rows_of(struct ts_reader *trace, enum ts_table_id table)
{
	return ts_reader_rows(trace, table);
}

TS_TEST(a_replay_is_a_trace)
{
	struct ts_replay_options options = options_of(TS_REPLAY_CHECK_FINAL, 2);
	char output[80];
	struct ts_reader *trace;
	struct ts_batch *batch;
	struct ts_error err;

	make_trace(HASHES);
	snprintf(output, sizeof(output), "%s.again", path);
	options.output = output;
	report_of(&options);
	TS_CHECK_INT(ts_reader_open(&trace, output, &err), 0);
	TS_CHECK(ts_reader_state(trace)->finished);
	TS_CHECK_INT(rows_of(trace, TS_TABLE_GPU_OP), 5);
	TS_CHECK_INT(rows_of(trace, TS_TABLE_API_CALL), 5);
	TS_CHECK_INT(rows_of(trace, TS_TABLE_STREAM), 2);
	TS_CHECK_INT(ts_batch_new(&batch, trace, &err), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(trace); i++) {
		struct ts_gpu_op_row row;

		if (ts_reader_chunk(trace, i)->table != TS_TABLE_GPU_OP)
			continue;
		TS_CHECK_INT(ts_batch_read(batch, i, TS_MASK_ALL, &err), 0);
		ts_batch_row(batch, 2, &row);
		TS_CHECK_STR(ts_reader_string(trace, row.name).data, "mix_");
		TS_CHECK_INT(row.kind, TS_GPU_OP_KERNEL);
		TS_CHECK_INT(row.duration, 29);
		/* The first call is at the first submission. */
		TS_CHECK_INT(row.start - ts_reader_chunk(trace, i)->min_start, 200);
		TS_CHECK(row.shape);
	}
	ts_batch_free(batch);
	ts_reader_close(trace);
	unlink(output);
	/* A path that cannot be written: an error, and no file remains. */
	options.output = "/nowhere/out.sbt";
	{
		struct ts_replay *replay = open_replay(&options);
		struct ts_replay_report report;

		TS_CHECK(ts_replay_run(replay, &report, &err) != 0);
		close_replay(replay);
	}
	unlink(path);
}
