/* SPDX-License-Identifier: Apache-2.0 */
/* Emits that fork() interrupts: the child's part of them is counted once, by the child. */
#include "agent/emit.h"
#include "agent/emit_inline.h"
#include "unit/agent/agent_support.h"

static void emit_one(void)
{
	TS_INSTANT("e", "c", TS_INT("n", 1));
}

/*
 * The two halves of ts_emit_0(), between which a signal handler may fork. The record has a size of
 * 16 bytes.
 */
static char *begin_emit(struct writer *writer)
{
	char *at;

	TS_CHECK(hot_enter(writer, agent_open_value(writer), 16, &at));
	return at;
}

static void end_emit(struct writer *writer, char *at)
{
	uint64_t words[2] = { ts_live_head(2, TS_LIVE_INSTANT, 0, 1),
			      ts_counter_read(writer->clock) };

	memcpy(at, words, sizeof(words));
	hot_commit(writer, agent_open_value(writer), at, sizeof(words));
}

/* Events in the area of this process, as a recorder reads them. */
static uint64_t stored(void)
{
	struct agent_reader reader;
	uint64_t events;

	agent_open_reader(&reader);
	agent_drain(&reader);
	events = agent_count(&reader, TS_LIVE_INSTANT);
	agent_close_reader(&reader);
	return events;
}

/* Also for a child that forks again before it leaves the emit. */
TS_TEST(a_child_counts_the_emit_that_it_was_forked_in)
{
	struct writer *writer;
	char *at;
	pid_t child, grandchild;

	agent_begin("enabled=1");
	emit_one();
	writer = agent_writer;
	at = begin_emit(writer);
	child = fork();
	if (child == 0) {
		grandchild = fork();
		end_emit(writer, at);
		emit_one();
		emit_one();
		TS_CHECK_INT(stored(), 2);
		TS_CHECK_INT(agent_control()->lost_nested, 1);
		if (grandchild)
			agent_join_child(grandchild);
		agent_end(false);
		_exit(0);
	}
	end_emit(writer, at);
	agent_join_child(child);
	TS_CHECK_INT(stored(), 2);
	TS_CHECK_INT(agent_control()->lost_nested, 0);
	agent_end(true);
}

/* The emit was complete, or had not begun to store anything, when a handler forked. */
TS_TEST(other_emits_are_not_counted)
{
	struct writer *writer;
	char *at;
	pid_t child;

	agent_begin("enabled=1");
	emit_one();
	writer = agent_writer;
	at = begin_emit(writer);
	end_emit(writer, at);
	writer->open = WRITER_CLOSED; /* as before the last instruction of the emit */
	child = fork();
	if (child == 0) {
		writer->open = agent_open_value(writer);
		emit_one();
		TS_CHECK_INT(stored(), 1);
		TS_CHECK_INT(agent_control()->lost_nested, 0);
		/* The losses of this process are not those of its children. */
		child = fork();
		if (child == 0) {
			emit_one();
			TS_CHECK_INT(agent_control()->lost_nested, 0);
			agent_end(false);
			_exit(0);
		}
		agent_join_child(child);
		agent_end(false);
		_exit(0);
	}
	writer->open = agent_open_value(writer);
	agent_join_child(child);
	TS_CHECK_INT(stored(), 2);
	agent_end(true);
}

/* The first event of the child is in a handler: the emit that it interrupted ends later. */
TS_TEST(an_emit_that_ends_later_is_counted_at_exit)
{
	struct writer *writer;
	char *at;
	pid_t child;

	agent_begin("enabled=1");
	emit_one();
	writer = agent_writer;
	at = begin_emit(writer);
	child = fork();
	if (child == 0) {
		emit_one();
		TS_CHECK_INT(agent_control()->lost_nested, 0);
		end_emit(writer, at);
		agent_exiting(&ts_process_tracer);
		TS_CHECK_INT(agent_control()->lost_nested, 1);
		agent_exiting(&ts_process_tracer);
		TS_CHECK_INT(agent_control()->lost_nested, 1);
		agent_end(false);
		_exit(0);
	}
	agent_join_child(child);
	/* A child that emits nothing else gets an area for its loss. */
	child = fork();
	if (child == 0) {
		end_emit(writer, at);
		agent_exiting(&ts_process_tracer);
		TS_CHECK_INT(agent_control()->lost_nested, 1);
		TS_CHECK_INT(stored(), 0);
		agent_end(false);
		_exit(0);
	}
	agent_join_child(child);
	end_emit(writer, at);
	agent_end(true);
}
