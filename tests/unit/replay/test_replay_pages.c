/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page hashes, other legal orders and races, on a target that computes in memory: each page is a
 * number, and a launch reads one page and changes another.
 */
#include <unistd.h>

#include "base/text.h"
#include "replay/replay.h"
#include "replay/stream/stream_internal.h"
#include "unit/replay/replay_cuda_fixture.h"
#include "unit/runner.h"

#define PAGES 4 /* mapped by the fixture */
#define MOST 64 /* commands */

/* ---- the target ---- */

struct ts_replay_session {
	struct ts_replay *replay;
	uint64_t pages[PAGES], hashes[PAGES];
	bool is_new;
};

/* What varies, and how often. */
static struct {
	uint32_t runs;
	uint32_t vary_from; /* nondeterministic launches, from this run on */
	bool is_rare;       /* only in half of the runs */
	uint32_t gap;       /* another result than recorded: bits of page 2 */
	bool is_fragile;    /* fails in another order */
} fake;

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 31) * 0x9e3779b97f4a7c15u;
	return value ^ value >> 29;
}

/* A launch: pages that it changes and reads, and whether it varies. */
#define OF(to, from, varies) (CUDA_ARENA + (uint64_t)((to) | (from) << 4 | (varies) << 8))

static void launch(uint64_t *pages, uint64_t what, uint64_t sequence, uint32_t run)
{
	uint64_t *to = &pages[what & 15], from = pages[what >> 4 & 15];

	*to = mix(*to + mix(from + sequence));
	if (what >> 8 & 1 && run >= fake.vary_from && (!fake.is_rare || mix(run + 77) & 1))
		*to += run;
}

static int open_session(struct ts_replay *replay, struct ts_replay_session **ret_session,
			struct ts_error *err)
{
	*ret_session = calloc(1, sizeof(**ret_session));
	(*ret_session)->replay = replay;
	return TS_OK;
}

static void close_session(struct ts_replay_session *session)
{
	free(session);
}

static const char *describe(const struct ts_replay_session *session)
{
	return session ? "fake: pages" : "";
}

static uint32_t arena(const struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->replay->stream->object_count; i++)
		if (session->replay->stream->objects[i].number == CUDA_MEMORY)
			return i;
	ts_test_fail(__FILE__, __LINE__, "no arena");
}

static int deliver_pages(struct ts_replay_session *session, uint32_t capture, bool all,
			 const struct ts_replay_outcome *outcome, struct ts_error *err)
{
	struct ts_replay_page pages[PAGES];
	uint64_t count = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		if (!all && session->pages[i] == session->hashes[i])
			continue;
		pages[count++] = (struct ts_replay_page){
			.memory = arena(session),
			.offset = i * TS_REPLAY_PAGE,
			.hash = session->pages[i],
		};
	}
	memcpy(session->hashes, session->pages, sizeof(session->pages));
	return outcome->pages(outcome->context, capture, pages, count, err);
}

static int deliver_content(struct ts_replay_session *session, uint32_t capture,
			   const struct ts_replay_outcome *outcome, struct ts_error *err)
{
	const struct ts_replay_range *range = &session->replay->captures[capture].range;
	uint64_t *all = calloc(PAGES, TS_REPLAY_PAGE);
	int rc;

	/* At byte 64 of each page. */
	for (uint32_t i = 0; i < PAGES; i++)
		all[i * TS_REPLAY_PAGE / 8 + 8] = session->pages[i];
	TS_CHECK(range->offset + range->bytes <= PAGES * TS_REPLAY_PAGE);
	rc = outcome->content(outcome->context, capture, (char *)all + range->offset, err);
	free(all);
	return rc;
}

static int deliver(struct ts_replay_session *session, uint32_t position,
		   const struct ts_replay_outcome *outcome, struct ts_error *err)
{
	const struct ts_replay *replay = session->replay;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < replay->capture_count; i++) {
		const struct ts_replay_capture *capture = &replay->captures[i];

		if (capture->position != position)
			continue;
		if (!capture->is_pages) {
			rc = deliver_content(session, i, outcome, err);
			continue;
		}
		rc = deliver_pages(session, i, session->is_new || position == replay->plan.count,
				   outcome, err);
		session->is_new = false;
	}
	return rc;
}

static void execute(struct ts_replay_session *session, uint32_t index)
{
	const struct ts_replay_command_info *command = &session->replay->stream->commands[index];
	uint64_t block[2];
	struct ts_error err;

	if (command->kind != TS_COMMAND_LAUNCH ||
	    session->replay->plan.kept[index] == TS_REPLAY_ORDER)
		return;
	TS_CHECK_INT(ts_replay_blob_read(session->replay->reader, &command->blob, block, &err), 0);
	launch(session->pages, block[0] - CUDA_ARENA, command->sequence + 100 * command->node,
	       fake.runs);
}

static int run_session(struct ts_replay_session *session, unsigned int number,
		       struct ts_replay_outcome *outcome, struct ts_error *err)
{
	const struct ts_replay_plan *plan = &session->replay->plan;
	int rc = TS_OK;

	for (uint32_t i = 0; i < PAGES; i++)
		session->pages[i] = i + (i == 2 ? fake.gap : 0);
	session->is_new = true;
	if (fake.is_fragile && outcome->order)
		return ts_error_set(err, TS_ECAP, "command 7: illegal address");
	for (uint32_t i = 0; !rc && i < plan->count; i++) {
		uint32_t position = outcome->order ? outcome->order[i] : i;

		execute(session, plan->order[position]);
		rc = deliver(session, position, outcome, err);
	}
	if (!rc)
		rc = deliver(session, plan->count, outcome, err);
	fake.runs++;
	return rc;
}

static const struct ts_replay_target target = {
	.name = "fake",
	.needs = TS_REPLAY_NEEDS_STREAM,
	.can = TS_REPLAY_CAN_ALL | TS_REPLAY_CAN_HASH_PAGES | TS_REPLAY_CAN_REORDER,
	.open = open_session,
	.run = run_session,
	.device = describe,
	.close = close_session,
};

/* ---- traces ---- */

static struct fixture_trace fixture;
static char path[64];
static uint64_t state[PAGES], before[PAGES];
static bool is_recorded, is_first;

static void begin(bool has_checks)
{
	snprintf(path, sizeof(path), "/tmp/tracesmith-pages-%d.sbt", getpid());
	fixture_open(&fixture, path);
	cuda_objects(&fixture);
	cuda_begin(&fixture, 1, 0);
	memset(&fake, 0, sizeof(fake));
	is_recorded = has_checks;
	is_first = true;
	for (uint32_t i = 0; i < PAGES; i++)
		state[i] = before[i] = i;
}

static void check_state(int64_t sequence, bool all, const char *why)
{
	uint64_t pairs[PAGES][2];
	int64_t count = 0;

	for (uint64_t i = 0; i < PAGES; i++) {
		if (!all && state[i] == before[i])
			continue;
		pairs[count][0] = i * TS_REPLAY_PAGE;
		pairs[count++][1] = state[i];
	}
	memcpy(before, state, sizeof(state));
	cuda_pages(&fixture, sequence, CUDA_MEMORY, (const uint64_t(*)[2])pairs, count, why);
}

static int64_t add_launch(int64_t queue, uint64_t what)
{
	int64_t sequence = cuda_launch(&fixture, queue, what, "");

	launch(state, what - CUDA_ARENA, (uint64_t)sequence, 0);
	if (is_recorded)
		check_state(sequence, is_first, "each");
	is_first = false;
	return sequence;
}

static void end(bool has_final)
{
	if (has_final)
		check_state(fixture.sequence, true, "final");
	fixture_finish(&fixture, 1, NULL);
	fixture_close(&fixture);
}

static struct ts_replay_report replay_with(const struct ts_replay_options *options)
{
	struct ts_replay_report report;
	struct ts_reader *reader;
	struct ts_replay *replay;
	struct ts_error err;

	fake.runs = 0;
	if (ts_reader_open(&reader, path, &err) || ts_replay_open(&replay, reader, options, &err) ||
	    ts_replay_run(replay, &report, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_replay_close(replay);
	ts_reader_close(reader);
	unlink(path);
	return report;
}

static struct ts_replay_report replay_it(enum ts_replay_check_level check, unsigned int repeat)
{
	struct ts_replay_options options = {
		.target = &target, .check = check, .repeat = repeat, .value_type = "u64"
	};

	return replay_with(&options);
}

/* ---- verdicts ---- */

TS_TEST(all_equal)
{
	struct ts_replay_report report;

	begin(true);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	add_launch(CUDA_STREAM, OF(1, 0, 0));
	add_launch(CUDA_STREAM_2, OF(2, 3, 0));
	end(true);
	report = replay_it(TS_REPLAY_CHECK_EACH, 4);
	TS_CHECK_STR(report.verdict_text, "no difference in 4 runs, equals recording");
	TS_CHECK_INT(report.checks, 4);
	TS_CHECK_INT(report.compared_ranges, 4);
	TS_CHECK_INT(report.reordered_runs, 2);
	TS_CHECK_INT(report.extra_runs, 0);
}

TS_TEST(differs_from_the_recording)
{
	struct ts_replay_report report;
	int64_t second;

	begin(true);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	fake.gap = 5;
	second = add_launch(CUDA_STREAM, OF(1, 2, 0));
	end(true);
	fake.gap = 0;
	/* What the first launch does not touch is compared with it, too. */
	begin(true);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	second = add_launch(CUDA_STREAM, OF(2, 1, 0));
	end(true);
	fake.gap = 5;
	report = replay_it(TS_REPLAY_CHECK_EACH, 2);
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	TS_CHECK_INT(report.command, second - 1);
	TS_CHECK_INT(report.address, CUDA_ARENA + 2 * TS_REPLAY_PAGE);
	TS_CHECK_INT(report.pages_differing, 1);
	TS_CHECK(!report.has_bytes);
	/* At the end, the same page. */
	begin(false);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	end(true);
	fake.gap = 5;
	report = replay_it(TS_REPLAY_CHECK_FINAL, 1);
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	TS_CHECK_INT(report.command, 0);
	TS_CHECK_STR(report.command_text, "the end");
	TS_CHECK_INT(report.address, CUDA_ARENA + 2 * TS_REPLAY_PAGE);
}

/* A kernel that varies, in either kind of check, is named; also where streams run concurrently. */
static void check_varying(enum ts_replay_check_level check, uint32_t from, unsigned int repeat)
{
	struct ts_replay_report report;
	int64_t sequence;

	begin(false);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	sequence = add_launch(CUDA_STREAM, OF(1, 0, 1));
	add_launch(CUDA_STREAM, OF(2, 1, 0));
	add_launch(CUDA_STREAM_2, OF(3, 3, 0));
	end(false);
	fake.vary_from = from;
	report = replay_it(check, repeat);
	TS_CHECK_INT(report.verdict, TS_REPLAY_NONDETERMINISTIC);
	TS_CHECK_STR(report.verdict_text, "nondeterministic");
	TS_CHECK_INT(report.command, sequence);
	TS_CHECK_STR(report.kernel, "kernel");
	TS_CHECK_STR(report.other_command_text, "");
	TS_CHECK_INT(report.pages_differing, 1);
	TS_CHECK(report.has_bytes);
	TS_CHECK(report.address - CUDA_ARENA - TS_REPLAY_PAGE - 64 < 8);
	TS_CHECK(!strncmp(report.values, "u64 at 0x200000200040: ", 23));
	TS_CHECK(report.varying_runs > 0);
}

TS_TEST(varying_kernels)
{
	check_varying(TS_REPLAY_CHECK_EACH, 0, 2);
	check_varying(TS_REPLAY_CHECK_FINAL, 0, 2);
	/* It is first seen in another order. */
	check_varying(TS_REPLAY_CHECK_EACH, 2, 4);
	check_varying(TS_REPLAY_CHECK_FINAL, 2, 4);
}

static void check_race(enum ts_replay_check_level check)
{
	struct ts_replay_report report;
	int64_t first, second;

	begin(false);
	add_launch(CUDA_STREAM, OF(0, 0, 0));
	first = add_launch(CUDA_STREAM, OF(1, 0, 0));
	add_launch(CUDA_FREE, OF(2, 2, 0));
	second = add_launch(CUDA_FREE, OF(3, 1, 0));
	add_launch(CUDA_FREE, OF(2, 3, 0));
	end(true);
	report = replay_it(check, 3);
	TS_CHECK_INT(report.verdict, TS_REPLAY_NONDETERMINISTIC);
	TS_CHECK_STR(report.verdict_text, "nondeterministic");
	TS_CHECK_INT(report.command, first);
	TS_CHECK_INT(report.other_command, second);
	TS_CHECK(strstr(report.command_text, "launch of 'kernel' (stream 3)"));
	TS_CHECK(strstr(report.other_command_text, "launch of 'kernel' (stream 5)"));
	TS_CHECK_INT(report.pages_differing, 2);
	TS_CHECK(report.has_bytes);
	TS_CHECK_INT(report.reordered_runs, 1);
}

TS_TEST(races)
{
	check_race(TS_REPLAY_CHECK_EACH);
	check_race(TS_REPLAY_CHECK_FINAL);
}

TS_TEST(a_failure_in_another_order)
{
	const struct ts_replay_options options = { .target = &target,
						   .check = TS_REPLAY_CHECK_FINAL,
						   .repeat = 4 };
	struct ts_replay_report report;
	struct ts_reader *reader;
	struct ts_replay *replay;
	struct ts_error err;

	begin(false);
	add_launch(CUDA_STREAM, OF(1, 0, 0));
	add_launch(CUDA_FREE, OF(3, 1, 0));
	end(true);
	fake.is_fragile = true;
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	TS_CHECK_INT(ts_replay_open(&replay, reader, &options, &err), 0);
	TS_CHECK_INT(ts_replay_run(replay, &report, &err), TS_ECAP);
	TS_CHECK_STR(err.message, "run 3, in another order of what runs concurrently: command 7: "
				  "illegal address");
	ts_replay_close(replay);
	ts_reader_close(reader);
	unlink(path);
}

/* An event orders them. */
TS_TEST(no_race)
{
	struct ts_replay_report report;

	begin(false);
	add_launch(CUDA_STREAM, OF(1, 0, 0));
	cuda_record(&fixture, CUDA_STREAM, 40);
	cuda_wait(&fixture, CUDA_FREE, 40);
	add_launch(CUDA_FREE, OF(3, 1, 0));
	end(true);
	report = replay_it(TS_REPLAY_CHECK_EACH, 6);
	TS_CHECK_STR(report.verdict_text, "no difference in 6 runs, equals recording");
	TS_CHECK_INT(report.reordered_runs, 0);
}

/* ---- contents, dumps and parts ---- */

TS_TEST(contents_of_the_recording)
{
	static uint64_t page[TS_REPLAY_PAGE / 8];
	struct ts_replay_report report;

	begin(false);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	check_state(fixture.sequence, true, "final");
	page[8] = state[2];
	fixture_command(&fixture,
			&(struct fixture_command){
				.kind = TS_COMMAND_CHECK,
				.sequence = fixture.sequence,
				.object = CUDA_MEMORY,
				.offset = 2 * CUDA_PAGE,
				.bytes = CUDA_PAGE,
				.blob = fixture_blob(&fixture, page, sizeof(page)),
				.details = "{\"why\":\"final\",\"hash\":\"0000000000000001\"}" });
	end(false);
	fake.gap = 5;
	report = replay_it(TS_REPLAY_CHECK_FINAL, 1);
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	TS_CHECK(report.has_bytes);
	TS_CHECK_INT(report.bytes_differing, 1);
	TS_CHECK_INT(report.address, CUDA_ARENA + 2 * TS_REPLAY_PAGE + 64);
	TS_CHECK_STR(report.values, "u64 at 0x200000400040: 2 recorded, 7 replayed");
	TS_CHECK_INT(report.extra_runs, 1);
}

static void dump(const struct ts_replay_options *options, uint64_t value, uint64_t bytes)
{
	struct ts_replay_report report;
	struct ts_reader *reader;
	struct ts_replay *replay;
	struct ts_error err;
	const uint64_t *data;
	uint64_t got = 0;

	fake.runs = 0;
	if (ts_reader_open(&reader, path, &err) || ts_replay_open(&replay, reader, options, &err) ||
	    ts_replay_run(replay, &report, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	data = ts_replay_dump(replay, &got);
	TS_CHECK_INT(got, bytes);
	TS_CHECK(data && *data == value);
	ts_replay_close(replay);
	ts_reader_close(reader);
}

static void refuse_dump(const struct ts_replay_options *options, const char *message)
{
	struct ts_reader *reader;
	struct ts_replay *replay;
	struct ts_error err;

	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	TS_CHECK_INT(ts_replay_open(&replay, reader, options, &err), TS_EINVAL);
	TS_CHECK_STR(err.message, message);
	ts_reader_close(reader);
}

TS_TEST(dumps)
{
	struct ts_replay_options options = { .target = &target, .repeat = 1 };
	uint64_t value;

	begin(false);
	options.dump_at = (uint64_t)add_launch(CUDA_STREAM, OF(0, 1, 0));
	value = state[0];
	add_launch(CUDA_STREAM, OF(0, 2, 0));
	end(true);
	options.dumps_address = true;
	options.dump_address = CUDA_ARENA + 64;
	options.dump_bytes = 16;
	dump(&options, value, 16);
	options.dump_bytes = 0;
	dump(&options, value, 4096);
	options.dump_address = CUDA_ARENA + 3 * TS_REPLAY_PAGE + 64;
	dump(&options, 3, 4096);
	options.dump_address = CUDA_ARENA + 4 * TS_REPLAY_PAGE - 8;
	dump(&options, 0, 8);
	options.dump_bytes = 9;
	refuse_dump(&options, "9 B at 0x2000007ffff8 are not memory of the replay after command 2");
	options.dump_address = CUDA_ARENA + 4 * TS_REPLAY_PAGE;
	options.dump_bytes = 0;
	refuse_dump(&options,
		    "what is at 0x200000800000 is not memory of the replay after command 2");
	options.dumps_address = false;
	options.dumps_argument = true;
	options.dump_address = 0;
	/* The parameter is the arena's address, plus the pages in its last bits. */
	dump(&options, 0, 4096);
	options.dump_address = 1;
	refuse_dump(&options, "command 2, launch of 'kernel': argument 1 has 4 bytes: it is not a "
			      "pointer");
	options.dump_address = 2;
	refuse_dump(&options, "command 2, launch of 'kernel': there is no argument 2; it has 2");
	unlink(path);
}

/* What launches read is not known: everything before a selection is included. */
TS_TEST(parts)
{
	struct ts_replay_options options = { .target = &target,
					     .repeat = 3,
					     .check = TS_REPLAY_CHECK_EACH,
					     .kernel = "kern*",
					     .kernel_number = 2 };
	struct ts_replay_report report;

	begin(true);
	add_launch(CUDA_STREAM_2, OF(3, 1, 0));
	cuda_record(&fixture, CUDA_STREAM_2, 40);
	add_launch(CUDA_STREAM, OF(0, 1, 0));
	add_launch(CUDA_STREAM, OF(1, 0, 0));
	end(true);
	report = replay_with(&options);
	TS_CHECK_STR(report.verdict_text, "no difference in 3 runs, equals recording");
	TS_CHECK_INT(report.requested, 1);
	TS_CHECK_INT(report.included, 1);
	TS_CHECK_STR(report.included_text, "1 launch before it: 2");
	TS_CHECK_INT(report.checks, 2);
	TS_CHECK_INT(report.compared_ranges, 3);
}

/* Nodes that the graph does not order race, too. */
TS_TEST(race_in_a_graph)
{
	static const uint64_t blocks[2][2] = { { OF(0, 1, 0), 7 }, { OF(1, 0, 0), 7 } };
	struct ts_replay_report report;

	for (int ordered = 0; ordered < 2; ordered++) {
		begin(false);
		cuda_graph(&fixture, CUDA_GRAPH, 2);
		for (int i = 0; i < 2; i++) {
			char details[128];

			snprintf(details, sizeof(details),
				 "{\"node\":%d,\"after\":[%s],\"grid\":[1,1,1],\"block\":[1,1,1]}",
				 i, i && ordered ? "0" : "");
			fixture_command(&fixture, &(struct fixture_command){
							  .kind = TS_COMMAND_LAUNCH,
							  .queue = CUDA_GRAPH,
							  .object = CUDA_KERNEL,
							  .blob = fixture_blob(&fixture, blocks[i],
									       sizeof(blocks[i])),
							  .details = details });
		}
		cuda_launch_graph(&fixture, CUDA_STREAM, CUDA_GRAPH);
		end(false);
		report = replay_it(TS_REPLAY_CHECK_EACH, 3);
		TS_CHECK_INT(report.verdict,
			     ordered ? TS_REPLAY_AGREES : TS_REPLAY_NONDETERMINISTIC);
		if (ordered)
			continue;
		TS_CHECK_STR(report.command_text,
			     "command 4, node 0, launch of 'kernel' (stream 3)");
		TS_CHECK_STR(report.other_command_text,
			     "command 4, node 1, launch of 'kernel' (stream 3)");
	}
}

/* ---- random programs ---- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

/* A program, and what it orders, by the plain definition. */
static struct {
	int64_t sequences[MOST];
	uint64_t what[MOST];
	bool ordered[MOST][MOST];
	uint32_t count;
} program;

static void close_orders(void)
{
	for (uint32_t k = 0; k < program.count; k++)
		for (uint32_t i = 0; i < program.count; i++)
			for (uint32_t j = 0; program.ordered[i][k] && j < program.count; j++)
				program.ordered[i][j] |= program.ordered[k][j];
}

/* Does their order matter? */
static bool conflicts(uint32_t i, uint32_t j)
{
	uint64_t a = program.what[i], b = program.what[j];

	if (!a || !b)
		return false;
	return (a & 15) == (b & 15) || (a & 15) == (b >> 4 & 15) || (b & 15) == (a >> 4 & 15);
}

static uint32_t index_of(uint64_t sequence)
{
	for (uint32_t i = 0; i < program.count; i++)
		if (program.sequences[i] == (int64_t)sequence)
			return i;
	ts_test_fail(__FILE__, __LINE__, "command %" PRIu64, sequence);
}

/* Three streams, events and waits of the host. Returns whether two commands race. */
static bool make_program(bool varies)
{
	static const int64_t queues[] = { CUDA_STREAM, CUDA_STREAM_2, CUDA_FREE };
	uint32_t last[3] = { MOST, MOST, MOST }, host = MOST, event = MOST, count = 4 + draw(40);
	uint32_t varying = draw(count / 2);
	bool races = false;

	memset(&program, 0, sizeof(program));
	begin(false);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t queue = draw(3), kind = draw(10);
		uint64_t what = draw(PAGES) | draw(PAGES) << 4 | 1 << 9;

		/* Streams of their own pages do not race. */
		if (varies)
			what = queue | queue << 4 | 1 << 9;
		program.count = i + 1;
		if (host != MOST)
			program.ordered[host][i] = true;
		if (last[queue] != MOST && (kind != 9 || i == varying))
			program.ordered[last[queue]][i] = true;
		if (varies && i == varying)
			kind = 0, what |= 1 << 8;
		if (kind == 7) {
			program.sequences[i] = cuda_record(&fixture, queues[queue], 40);
			event = i;
		} else if (kind == 8 && event != MOST) {
			program.sequences[i] = cuda_wait(&fixture, queues[queue], 40);
			program.ordered[event][i] = true;
		} else if (kind == 9) {
			program.sequences[i] = fixture_command(
				&fixture,
				&(struct fixture_command){ .kind = TS_COMMAND_SYNC,
							   .queue = queues[queue],
							   .details = "{\"what\":\"queue\"}" });
			if (last[queue] != MOST)
				program.ordered[last[queue]][i] = true;
			host = i;
			continue;
		} else {
			program.sequences[i] = add_launch(queues[queue], CUDA_ARENA + what);
			program.what[i] = what;
		}
		last[queue] = i;
	}
	end(true);
	close_orders();
	for (uint32_t i = 0; i < program.count; i++)
		for (uint32_t j = i + 1; j < program.count; j++)
			races |= conflicts(i, j) && !program.ordered[i][j];
	return races;
}

TS_TEST(random_programs)
{
	uint32_t seeds = getenv("TS_LONG") ? 5000 : 300, racing = 0, found = 0;

	for (uint32_t seed = 0; seed < seeds; seed++) {
		enum ts_replay_check_level check = seed % 2 ? TS_REPLAY_CHECK_EACH
							    : TS_REPLAY_CHECK_FINAL;
		struct ts_replay_report report;
		bool races;

		random_state = seed * 977 + 5;
		races = make_program(false);
		report = replay_it(check, 8);
		racing += races;
		if (report.verdict == TS_REPLAY_EQUAL)
			continue;
		found++;
		TS_CHECK_INT(report.verdict, TS_REPLAY_NONDETERMINISTIC);
		if (!races)
			ts_test_fail(__FILE__, __LINE__, "seed %" PRIu32 " has no race", seed);
		TS_CHECK(report.other_command > report.command && report.has_bytes);
		TS_CHECK(conflicts(index_of(report.command), index_of(report.other_command)));
		TS_CHECK(
			!program.ordered[index_of(report.command)][index_of(report.other_command)]);
	}
	/* Nearly all of them. */
	TS_CHECK(racing > seeds / 4);
	if (found * 100 < racing * 98)
		ts_test_fail(__FILE__, __LINE__, "found %" PRIu32 " of %" PRIu32 " races", found,
			     racing);
}

/* A kernel that varies is never called a race, and is named. */
TS_TEST(random_varying_programs)
{
	uint32_t seeds = getenv("TS_LONG") ? 2000 : 200, named = 0, seen = 0;

	for (uint32_t seed = 0; seed < seeds; seed++) {
		struct ts_replay_report report;
		uint32_t at;

		random_state = seed * 31 + 7;
		TS_CHECK(!make_program(true));
		fake.vary_from = draw(5);
		fake.is_rare = draw(2);
		report = replay_it(draw(2) ? TS_REPLAY_CHECK_EACH : TS_REPLAY_CHECK_FINAL, 8);
		if (report.verdict != TS_REPLAY_NONDETERMINISTIC)
			continue;
		seen++;
		TS_CHECK_STR(report.other_command_text, "");
		if (!report.command)
			continue;
		named++;
		at = index_of(report.command);
		TS_CHECK(program.what[at] >> 8 & 1);
	}
	TS_CHECK(seen > seeds / 2);
	if (named * 10 < seen * 9)
		ts_test_fail(__FILE__, __LINE__, "named %" PRIu32 " of %" PRIu32, named, seen);
}
