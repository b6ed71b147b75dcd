/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The state machine on small traces drawn as timing diagrams, with their expected states:
 * docs/state.md, line by line.
 *
 * A character is 5 us. The usual latencies of a device about which little is known are then 4
 * characters from a call to its command, and 1 from one command to the next.
 *
 * T0 |aaa  ##|  a thread: calls, each a run of one letter; # is a synchronisation
 * t0 |     bb|  continues a thread's row
 * 7  |   AAA |  a stream: commands, each a run of one letter, issued by the call of that letter
 * =7 |..PRRR.|  the expected state of the stream at each instant
 * =D |..PRRR.|  ... of the device
 * @A |..PRRR |  ... of the command A
 *
 * R running, r running (peers), P dispatch pending, Q queue, E event, C copy engine, H host,
 * U unknown; idle: h host bound, d dependency, m launch missing, . nothing; a blank: the command
 * does not exist.
 */
/* clang-format on */
#include <ctype.h>
#include <stdio.h>

#include "unit/state/state_fixture.h"

#define TICK INT64_C(5000)
#define ROWS 16
#define LETTERS 26
#define STREAMS 3
#define THREADS 2
#define WIDTH 100

struct drawing {
	const char *rows[ROWS];
	const char *edges;     /* "AB": an event after A, for which B waits */
	const char *peers;     /* "AB": A and B are one collective on two ranks */
	const char *copies;    /* commands that copy to the device */
	const char *back;      /* commands that copy to the host */
	const char *callbacks; /* commands that call the host */
	const char *blocking;  /* calls that copy and wait */
	uint64_t violations;
};

struct drawn {
	struct fixture fixture;
	struct fixture_graph graph;
	struct ts_states *states;
	uint32_t calls[LETTERS];    /* by letter */
	uint32_t commands[LETTERS]; /* its first */
	uint32_t streams[10];       /* index by digit */
	size_t width;
};

static bool has(const char *letters, char letter)
{
	return letters && strchr(letters, letter);
}

static const char *time_of(const char *row)
{
	return strchr(row, '|') + 1;
}

/* The next run of one character at or after *at; false: the row ends. */
static bool next_run(const char *time, size_t *at, size_t *ret_length)
{
	while (time[*at] == ' ')
		++*at;
	for (*ret_length = 0; time[*at + *ret_length] == time[*at] && time[*at] != '|';)
		++*ret_length;
	return *ret_length > 0;
}

/* ---- from drawing to work ---- */

static void draw_calls(struct drawn *drawn, const struct drawing *drawing, const char *row)
{
	struct fixture *fixture = &drawn->fixture;
	uint32_t thread = (uint32_t)(row[1] - '0');
	size_t length;

	for (size_t at = 0; next_run(time_of(row), &at, &length); at += length) {
		char letter = time_of(row)[at];
		int64_t start = (int64_t)at * TICK, end = start + (int64_t)length * TICK;

		if (letter == '#')
			fixture_call(fixture, thread, TS_API_STREAM_SYNC, fixture->sync, start,
				     end);
		else if (has(drawing->blocking, letter))
			drawn->calls[letter - 'a'] = fixture_call(fixture, thread, TS_API_COPY,
								  fixture->blocking, start, end);
		else
			drawn->calls[letter - 'a'] = fixture_call(fixture, thread, TS_API_LAUNCH,
								  fixture->launch, start, end);
	}
}

static void draw_commands(struct drawn *drawn, const struct drawing *drawing, const char *row)
{
	uint32_t stream = drawn->streams[row[0] - '0'];
	size_t length;

	for (size_t at = 0; next_run(time_of(row), &at, &length); at += length) {
		char letter = time_of(row)[at];
		int64_t start = (int64_t)at * TICK, end = start + (int64_t)length * TICK;
		struct ts_work_command *command = fixture_command(
			&drawn->fixture, stream, drawn->calls[letter - 'A'], start, end);

		command->correlation = letter;
		if (has(drawing->copies, letter) || has(drawing->back, letter))
			command->kind = TS_GPU_OP_COPY;
		if (command->kind == TS_GPU_OP_COPY)
			command->copy_kind = has(drawing->copies, letter) ? TS_COPY_HOST_TO_DEVICE
									  : TS_COPY_DEVICE_TO_HOST;
		if (has(drawing->callbacks, letter))
			command->kind = TS_GPU_OP_HOST;
		if (has(drawing->peers, letter))
			command->class = TS_CLASS_COMMUNICATION;
	}
}

static uint32_t choose_streams(struct drawn *drawn, const struct drawing *drawing)
{
	uint32_t count = 0;

	memset(drawn->streams, 0xff, sizeof(drawn->streams));
	for (size_t i = 0; i < ROWS && drawing->rows[i]; i++) {
		const char *row = drawing->rows[i];

		if (isdigit((unsigned char)row[0]) && drawn->streams[row[0] - '0'] == TS_WORK_NONE)
			drawn->streams[row[0] - '0'] = count++;
	}
	return count;
}

/* Calls of all rows, then commands, which refer to them. */
static void draw_work(struct drawn *drawn, const struct drawing *drawing)
{
	struct ts_work *work;

	memset(drawn->calls, 0xff, sizeof(drawn->calls));
	fixture_begin(&drawn->fixture, 1, THREADS, 1, choose_streams(drawn, drawing));
	fixture_entities(&drawn->fixture);
	work = drawn->fixture.work;
	drawn->width = strlen(time_of(drawing->rows[0])) - 1;
	work->ranks[0].to = (int64_t)drawn->width * TICK;
	for (size_t i = 0; i < ROWS && drawing->rows[i]; i++) {
		TS_CHECK_INT(strlen(time_of(drawing->rows[i])) - 1, drawn->width);
		if (toupper((unsigned char)drawing->rows[i][0]) == 'T')
			draw_calls(drawn, drawing, drawing->rows[i]);
	}
	for (size_t i = 0; i < ROWS && drawing->rows[i]; i++) {
		if (isdigit((unsigned char)drawing->rows[i][0]))
			draw_commands(drawn, drawing, drawing->rows[i]);
	}
	fixture_finish(&drawn->fixture);
	for (uint32_t i = work->command_count; i-- > 0;)
		drawn->commands[work->commands[i].correlation - 'A'] = i;
}

static void draw_graph(struct drawn *drawn, const struct drawing *drawing)
{
	fixture_graph_begin(&drawn->graph, drawn->fixture.work);
	for (const char *edge = drawing->edges; edge && *edge; edge += 2)
		fixture_graph_add(&drawn->graph,
				  (struct ts_edge){ .from = drawn->commands[edge[0] - 'A'],
						    .to = drawn->commands[edge[1] - 'A'],
						    .kind = TS_EDGE_EVENT });
	for (const char *pair = drawing->peers; pair && *pair; pair += 2)
		for (int i = 0; i < 2; i++)
			fixture_graph_add(
				&drawn->graph,
				(struct ts_edge){ .from = drawn->commands[pair[i] - 'A'],
						  .to = drawn->commands[pair[!i] - 'A'],
						  .kind = TS_EDGE_COLLECTIVE,
						  .flags = TS_EDGE_FROM_START | TS_EDGE_TO_END });
}

/* ---- from states to drawing ---- */

static char sign_of(unsigned int state, unsigned int reason)
{
	static const char reasons[] = ".QECHrUhdm.";

	_Static_assert(sizeof(reasons) - 1 == TS_REASON_COUNT, "a sign for each reason");
	if (state == TS_STATE_RUNNING)
		return reason == TS_REASON_PEERS ? 'r' : 'R';
	return state == TS_STATE_DISPATCH_PENDING ? 'P' : reasons[reason];
}

static void paint(char *line, int64_t start, int64_t end, char sign)
{
	TS_CHECK_INT(start % TICK, 0);
	TS_CHECK_INT(end % TICK, 0);
	memset(line + start / TICK, sign, (size_t)((end - start) / TICK));
}

static void paint_lane(const struct drawn *drawn, const struct ts_state_lane *lane, char *line)
{
	for (size_t i = 0; i < lane->count; i++) {
		const struct ts_state_interval *interval =
			&drawn->states->intervals[lane->first + i];

		paint(line, interval->start, interval->end,
		      sign_of(interval->state, interval->reason));
	}
}

static void paint_command(const struct drawn *drawn, uint32_t c, char *line)
{
	struct ts_command_phases phases;

	ts_command_phases(drawn->states, c, &phases);
	paint(line, phases.issued, phases.handed_on, 'P');
	paint(line, phases.handed_on, phases.released,
	      sign_of(TS_STATE_WAIT, drawn->states->commands[c].reason));
	paint(line, phases.released, phases.start, 'U');
	paint(line, phases.start, phases.joined, 'r');
	paint(line, phases.joined, phases.end, 'R');
}

static void check_row(const struct drawn *drawn, const char *row)
{
	char found[WIDTH] = "", expected[WIDTH] = "";

	TS_CHECK(drawn->width < WIDTH);
	memset(found, ' ', drawn->width);
	memcpy(expected, time_of(row), drawn->width);
	if (row[0] == '@')
		paint_command(drawn, drawn->commands[row[1] - 'A'], found);
	else if (row[1] == 'D')
		paint_lane(drawn, &drawn->states->lanes[0], found);
	else
		paint_lane(drawn, &drawn->states->lanes[1 + drawn->streams[row[1] - '0']], found);
	TS_CHECK_STR(found, expected);
}

static void check(const struct drawing *drawing)
{
	bool graph = drawing->edges || drawing->peers;
	static struct drawn drawn;

	draw_work(&drawn, drawing);
	draw_graph(&drawn, drawing);
	TS_CHECK_INT(ts_states_new(&drawn.states, drawn.fixture.work,
				   graph ? &drawn.graph.graph : NULL, NULL),
		     0);
	for (size_t i = 0; i < ROWS && drawing->rows[i]; i++) {
		if (drawing->rows[i][0] == '=' || drawing->rows[i][0] == '@')
			check_row(&drawn, drawing->rows[i]);
	}
	TS_CHECK_INT(drawn.states->violations, drawing->violations);
	ts_states_free(drawn.states);
	ts_work_free(drawn.fixture.work);
}

#define CHECK_DRAWING(...) check(&(const struct drawing){ __VA_ARGS__ })

/* clang-format off: these are drawings */

/* ---- commands ---- */

TS_TEST(begins_as_soon_as_usual)
{
	CHECK_DRAWING(.rows = {
			      "T0 |  aa            |",
			      "7  |     AAAAA      |",
			      "@A |  PPPRRRRR      |",
			      "=7 |..PPPRRRRR......|",
			      "=D |..PPPRRRRR......|",
		      });
}

/* Four characters after the call are usual; beyond that they are not. */
TS_TEST(begins_later_than_usual)
{
	CHECK_DRAWING(.rows = {
			      "T0 |  aa            |",
			      "7  |          AAAAA |",
			      "@A |  PPPPUUUURRRRR |",
			      "=7 |..PPPPUUUURRRRR.|",
		      });
}

/* A long call is pending until it returns, however long that is. */
TS_TEST(long_call)
{
	CHECK_DRAWING(.rows = {
			      "T0 |  aaaaaaa       |",
			      "7  |           AAAA |",
			      "@A |  PPPPPPPUURRRR |",
		      });
}

TS_TEST(begins_before_the_call_returns)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aaaaaaaa       |",
			      "7  |    AAAAAAAA    |",
			      "@A | PPPRRRRRRRR    |",
			      "=7 |.PPPRRRRRRRR....|",
		      });
}

TS_TEST(blocking_copy)
{
	CHECK_DRAWING(.rows = {
		"T0 | aaaaaaaaaa bb  |",
		"7  |    AAAAA    BBB|",
		"@A | PPPRRRRR       |",
		"=7 |.PPPRRRRRddhPRRR|",
	}, .blocking = "a", .back = "A");
}

TS_TEST(queue)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aabbcc                |",
			      "7  |   AAAAAA BBBB   CCC   |",
			      "@A | PPRRRRRR              |",
			      "@B |   PPQQQQQRRRR         |",
			      "@C |     PPQQQQQQQQUURRR   |",
			      "=7 |.PPRRRRRRQRRRRQUURRR...|",
			      "=D |.PPRRRRRRQRRRRQUURRR...|",
		      });
}

/* Submitted after the previous one ended: not blocked. */
TS_TEST(queue_was_empty_when_handed_over)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aa   bbb            |",
			      "7  |   AAAAA    BBB      |",
			      "@B |      PPPPUURRR      |",
			      "=7 |.PPRRRRRPPUURRR......|",
		      });
}

TS_TEST(event)
{
	CHECK_DRAWING(.rows = {
		"T0 | aabb                |",
		"1  |   AAAAAAAAA         |",
		"2  |            BBBBB    |",
		"@B |   PPEEEEEEERRRRR    |",
		"=1 |.PPRRRRRRRRR.........|",
		"=2 |...PPEEEEEEERRRRR....|",
		"=D |.PPRRRRRRRRRRRRRR....|",
	}, .edges = "AB");
}

/* It waited for the last one to end; here that is the queue. */
TS_TEST(event_before_queue)
{
	CHECK_DRAWING(.rows = {
		"T0 | aabbcc              |",
		"1  |   AAAA              |",
		"2  |     BBBBBBB CCCC    |",
		"@C |     PPQQQQQQRRRR    |",
	}, .edges = "AC");
}

TS_TEST(copy_engine)
{
	CHECK_DRAWING(.rows = {
		"T0 | aabb                |",
		"1  |   AAAAAAAAA         |",
		"2  |            BBBBB    |",
		"@B |   PPCCCCCCCRRRRR    |",
	}, .copies = "AB");
	/* The other direction has its own engine. */
	CHECK_DRAWING(.rows = {
		"T0 | aabb                |",
		"1  |   AAAAAAAAA         |",
		"2  |            BBBBB    |",
		"@B |   PPPPUUUUURRRRR    |",
	}, .copies = "A", .back = "B");
	/* Both at once: there is more than one engine. */
	CHECK_DRAWING(.rows = {
		"T0 | aabb                |",
		"1  |   AAAAAAAAA         |",
		"2  |          BBBBB      |",
		"@B |   PPPPUUURRRRR      |",
	}, .copies = "AB");
}

TS_TEST(host_callback)
{
	CHECK_DRAWING(.rows = {
		"T0 | aabb                |",
		"7  |   AAAAAA BBB        |",
		"@B |   PPHHHHHRRR        |",
	}, .callbacks = "A");
}

TS_TEST(peers)
{
	CHECK_DRAWING(.rows = {
		"T0 | aabb                |",
		"1  |   AAAAAAAAA         |",
		"2  |        BBBB         |",
		"@A | PPrrrrrRRRR         |",
		"=1 |.PPrrrrrRRRR.........|",
		"=2 |...PPPPURRRR.........|",
		"=D |.PPrrrrrRRRR.........|",
	}, .peers = "AB");
}

/* ---- streams ---- */

TS_TEST(idle)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aa     #####  bb    |",
			      "7  |   AAAA          BBB |",
			      "=7 |.PPRRRRhdddddhhPPRRR.|",
			      "=D |.PPRRRRhdddddhhPPRRR.|",
		      });
	/* Waits of other threads do not matter. */
	CHECK_DRAWING(.rows = {
			      "T0 | aa            bb    |",
			      "T1 |        #####        |",
			      "7  |   AAAA          BBB |",
			      "=7 |.PPRRRRhhhhhhhhPPRRR.|",
		      });
	/* It waits when the gap begins, and when it ends. */
	CHECK_DRAWING(.rows = {
			      "T0 | aa ####### ###bb    |",
			      "7  |   AAAA          BBB |",
			      "=7 |.PPRRRRddddhdddPPRRR.|",
		      });
}

TS_TEST(device_is_as_its_streams)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aa            bb      |",
			      "T1 |cc #######     dd      |",
			      "1  |   AAAA          BBB   |",
			      "2  |  CC             DD    |",
			      "=1 |.PPRRRRhhhhhhhhPPRRR...|",
			      "=2 |PPRRddddddhhhhhPPRR....|",
			      "=D |PPRRRRRhhhhhhhhPPRRR...|",
		      });
}

TS_TEST(no_commands)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aa ##|",
			      "7  |      |",
			      "=7 |......|",
			      "=D |......|",
		      });
}

/* ---- anomalies ---- */

TS_TEST(launch_missing)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aa                  |",
			      "7  |   AAAA   BBB        |",
			      "@B |          RRR        |",
			      "=7 |.PPRRRRmmmRRR........|",
		      });
}

/* B may have been in the queue before A ended: that C was issued later says nothing about the host.
 */
TS_TEST(launch_missing_before_a_known_one)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aa        cc           |",
			      "7  |   AAAA        BBBCCC   |",
			      "@B |               RRR      |",
			      "@C |           PPQQQQQRRR   |",
			      "=7 |.PPRRRRmmmmPPQQRRRRRR...|",
		      });
}

TS_TEST(early_command)
{
	CHECK_DRAWING(.rows = {
			      "T0 |  aaaa  |",
			      "7  | AAAA   |",
			      "@A | RRRR   |",
			      "=7 |.RRRR...|",
		      });
}

/* B was submitted first and begins last: the stream waits for it from then on. */
TS_TEST(out_of_order)
{
	CHECK_DRAWING(.rows = {
			      "T0 | bb                  |",
			      "T1 |    aa               |",
			      "7  |       AAAA    BBB   |",
			      "@B | PPQQQQQQQQQUUURRR   |",
			      "=7 |.PPQQQQRRRRQUUURRR...|",
		      });
}

TS_TEST(at_once)
{
	CHECK_DRAWING(.rows = {
		"T0 | aabbcc              |",
		"7  |   AAAAAAAAAA        |",
		"7  |        BBB     CCC  |",
		"@A | PPRRRRRRRRRR        |",
		"@B |   PPPPURRR          |",
		"@C |     PPQQQQQQQUURRR  |",
		"=7 |.PPRRRRRRRRRRQUURRR..|",
	}, .violations = 1);
}

/* One call, many commands: they may run concurrently. */
TS_TEST(graph)
{
	CHECK_DRAWING(.rows = {
			      "T0 | aaa                 |",
			      "7  |    AAA AAAA  AAA    |",
			      "7  |          AAA        |",
			      "=7 |.PPPRRRQRRRRRQRRR....|",
		      });
}
/* clang-format on */
