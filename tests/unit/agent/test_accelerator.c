/* SPDX-License-Identifier: Apache-2.0 */
/* Accelerator calls, commands and their metadata, as bytes of the area. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "unit/agent/agent_support.h"

static struct ts_emit_site call_site = TS_CALL_SITE("clFinish", "opencl");
static struct ts_emit_site op_site = TS_GPU_OP_SITE("saxpy", "kernel");

static struct ts_gpu_op plain_op(void)
{
	return (struct ts_gpu_op){ .size = sizeof(struct ts_gpu_op),
				   .kind = 1,
				   .copy_kind = 2,
				   .device = 3,
				   .stream = 4,
				   .context = 5,
				   .correlation = 6,
				   .queued = 10,
				   .submitted = 20,
				   .start = 30,
				   .end = TS_UNKNOWN,
				   .grid = { 7, 8, 9 },
				   .block = { 11, 12, 13 },
				   .bytes = 4096 };
}

TS_TEST(call_is_a_record_of_its_site)
{
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *record;
	uint64_t start;
	char name[64];

	agent_begin("enabled=1");
	start = ts_now();
	errno = EXDEV;
	ts_accelerator_call(&call_site, start, 77, -5);
	ts_accelerator_call(&call_site, ts_now(), 78, 0);
	/* A call that begins after it ended. */
	ts_accelerator_call(&call_site, ts_now() + 1000000000, 79, 0);
	TS_CHECK_INT(errno, EXDEV);
	agent_open_reader(&reader);
	agent_drain(&reader);
	for (unsigned int i = 0; i < 3; i++) {
		record = agent_find(&reader, TS_LIVE_CALL, i, &head);
		TS_CHECK(record != NULL);
		TS_CHECK_INT(head.words, 5);
		TS_CHECK_INT(head.flags, TS_LIVE_FLAG_TICKS);
		TS_CHECK_STR(agent_site_name(head.site, name, sizeof(name)), "clFinish");
		TS_CHECK(record[1] > start);
		TS_CHECK(record[1] - record[2] >= start);
		TS_CHECK_INT(record[3], 77 + i);
		TS_CHECK_INT(record[4], i ? 0 : -5);
	}
	TS_CHECK_INT(record[2], 0);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_CALL), 3);
	agent_close_reader(&reader);
	agent_end(true);
}

#define OP_WORDS 11

/* Checks the words as documented in docs/live.md, not through the structs of live_records.h. */
static void check_op(const struct ts_live_record *head, const uint64_t *record, unsigned int listed,
		     unsigned int unlisted)
{
	const uint64_t *fixed = record + 2;

	TS_CHECK_INT(fixed[0], 6);
	TS_CHECK_INT(fixed[1], 3 | 1u << 24 | UINT64_C(2) << 32 | (uint64_t)listed << 40 |
				       (uint64_t)unlisted << 48);
	TS_CHECK_INT(fixed[2], 4 | UINT64_C(5) << 32);
	TS_CHECK_INT(fixed[3], 10);
	TS_CHECK_INT(fixed[4], 20);
	TS_CHECK_INT(fixed[5], 30);
	TS_CHECK_INT(fixed[6], INT64_MIN);
	TS_CHECK_INT(fixed[7], 7 | UINT64_C(8) << 32);
	TS_CHECK_INT(fixed[8], 9 | UINT64_C(11) << 32);
	TS_CHECK_INT(fixed[9], 12 | UINT64_C(13) << 32);
	TS_CHECK_INT(fixed[10], 4096);
	for (unsigned int i = 0; i < listed; i++)
		TS_CHECK_INT(fixed[OP_WORDS + i], 100 + i);
	TS_CHECK_INT(head->flags, 0);
}

TS_TEST(op_lists_what_it_waited_for)
{
	static const struct {
		unsigned int given, listed, unlisted;
	} cases[] = { { 0, 0, 0 }, { 3, 3, 0 }, { 32, 32, 0 }, { 40, 32, 8 } };
	struct ts_gpu_op op = plain_op();
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *record;
	uint64_t waits[40];
	char name[64];

	for (unsigned int i = 0; i < 40; i++)
		waits[i] = 100 + i;
	agent_begin("enabled=1");
	op.waits = waits;
	for (size_t i = 0; i < 4; i++) {
		op.wait_count = (uint16_t)cases[i].given;
		ts_accelerator_op(&op_site, &op);
	}
	/* A backend that was built against a smaller struct. */
	op.size = 16;
	ts_accelerator_op(&op_site, &op);
	op = plain_op();
	op.wait_count = 65535;
	ts_accelerator_op(&op_site, &op);
	agent_open_reader(&reader);
	agent_drain(&reader);
	for (unsigned int i = 0; i < 4; i++) {
		record = agent_find(&reader, TS_LIVE_GPU_OP, i, &head);
		TS_CHECK(record != NULL);
		TS_CHECK_INT(head.words, 2 + OP_WORDS + cases[i].listed);
		TS_CHECK_STR(agent_site_name(head.site, name, sizeof(name)), "saxpy");
		check_op(&head, record, cases[i].listed, cases[i].unlisted);
	}
	record = agent_find(&reader, TS_LIVE_GPU_OP, 4, &head);
	TS_CHECK(record != NULL);
	check_op(&head, record, 0, 65535);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_GPU_OP), 5);
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- metadata ---- */

/* Names of template kernels are that long. */
TS_TEST(a_long_name_is_stored_whole)
{
	static char name[6001], found[sizeof(name) + 1];
	static struct ts_emit_site site = TS_GPU_OP_SITE(name, "kernel");
	struct ts_gpu_op op = plain_op();
	struct agent_reader reader;
	struct ts_live_record head;

	memset(name, 'k', sizeof(name) - 1);
	agent_begin("enabled=1");
	ts_accelerator_op(&site, &op);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK(agent_find(&reader, TS_LIVE_GPU_OP, 0, &head) != NULL);
	TS_CHECK_STR(agent_site_name(head.site, found, sizeof(found)), name);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(what_is_told_while_events_are_off)
{
	struct ts_accelerator_queue queue = { .size = sizeof(queue),
					      .device = 1,
					      .stream = 2,
					      .context = 3,
					      .priority = TS_UNKNOWN,
					      .name = "copies",
					      .out_of_order = true };
	struct ts_gpu_op op = plain_op();
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char text[64];

	agent_begin("enabled=0");
	ts_accelerator_call(&call_site, ts_now(), 1, 0);
	ts_accelerator_op(&op_site, &op);
	ts_accelerator_stream(&queue);
	ts_accelerator_clock(1, 1234, -5, 50, "bracket");
	ts_accelerator_lost("images", 3, "not captured");
	ts_accelerator_fact("opencl", "{\"layer\":true}");
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_CALL), 0);
	/* The command may have been submitted while recording was on. */
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_GPU_OP), 1);

	at = agent_find(&reader, TS_LIVE_STREAM_IS, 0, &head);
	TS_CHECK(at != NULL);
	TS_CHECK_INT(at[2], 1);
	TS_CHECK_INT(at[3], 2 | UINT64_C(3) << 32);
	TS_CHECK_INT(at[4], INT64_MIN);
	TS_CHECK_INT(at[5], 1);
	at += 6;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "copies");

	at = agent_find(&reader, TS_LIVE_DEVICE_CLOCK, 0, &head);
	TS_CHECK(at != NULL);
	TS_CHECK_INT(at[2], 1);
	TS_CHECK_INT(at[3], 1234);
	TS_CHECK_INT(at[4], -5);
	TS_CHECK_INT(at[5], 50);
	at += 6;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "bracket");

	at = agent_find(&reader, TS_LIVE_LOST, 0, &head);
	TS_CHECK(at != NULL);
	TS_CHECK_INT(at[2], 3);
	at += 3;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "images");
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "not captured");

	at = agent_find(&reader, TS_LIVE_FACT, 0, &head);
	TS_CHECK(at != NULL);
	at += 2;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "opencl");
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "{\"layer\":true}");
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(texts_that_are_missing_or_too_long_do_no_harm)
{
	struct ts_accelerator_queue queue = { .size = sizeof(queue) };
	static char longest[20000];
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char text[64];

	memset(longest, 'x', sizeof(longest) - 1);
	/* Rings of 16 KiB: a record may take a quarter of that. */
	agent_begin("enabled=1;budget=524288");
	ts_accelerator_stream(&queue);
	queue.size = 4;
	ts_accelerator_stream(&queue);
	ts_accelerator_clock(0, 1, 2, 3, NULL);
	ts_accelerator_lost(NULL, 1, NULL);
	ts_accelerator_lost(longest, 1, longest);
	/* Half a JSON value is worse than none. */
	ts_accelerator_fact("long", longest);
	ts_accelerator_fact(NULL, "1");
	ts_accelerator_fact("none", NULL);
	ts_accelerator_fact("last", "1");
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_STREAM_IS), 1);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_LOST), 2);
	at = agent_find(&reader, TS_LIVE_LOST, 1, &head);
	TS_CHECK_INT(head.words, 512);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_FACT), 1);
	at = agent_find(&reader, TS_LIVE_FACT, 0, &head) + 2;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "last");
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- sites created at run time ---- */

static struct ts_emit_site *new_site(unsigned int number, size_t length)
{
	struct ts_emit_site *site = calloc(1, sizeof(*site));
	char *name = malloc(length + 1);

	TS_CHECK(site && name);
	memset(name, 'k', length);
	name[length] = 0;
	memcpy(name, "kernel", 6);
	*site = (struct ts_emit_site)TS_GPU_OP_SITE(name, "kernel");
	site->line = number;
	return site;
}

static void free_site(struct ts_emit_site *site)
{
	free((void *)(uintptr_t)site->name);
	free(site);
}

TS_TEST(a_full_dictionary_gives_the_dynamic_form)
{
	struct ts_emit_site late_call = TS_CALL_SITE("clLate", "opencl");
	struct ts_gpu_op op = plain_op();
	uint64_t waits[] = { 100, 101 };
	struct ts_emit_site *site = NULL;
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char text[64];

	agent_begin("enabled=1");
	for (unsigned int i = 0; (site = new_site(i, 1000)); i++) {
		if (!agent_register_site(ts_process_tracer.core, site))
			break;
		TS_CHECK(i < 2000);
		free_site(site);
	}
	TS_CHECK_INT(site->header, 0);
	TS_CHECK(site->line > 500);
	op.waits = waits;
	op.wait_count = 2;
	ts_accelerator_op(site, &op);
	/* The dictionary may still have room for this one. */
	while (agent_register_site(ts_process_tracer.core,
				   &(struct ts_emit_site)TS_CALL_SITE("clFiller", "opencl")))
		;
	ts_accelerator_call(&late_call, ts_now(), 9, 1);
	TS_CHECK_INT(late_call.header, 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	at = agent_find(&reader, TS_LIVE_GPU_OP, 0, &head);
	TS_CHECK(at != NULL);
	TS_CHECK_INT(head.site, 0);
	check_op(&head, at, 2, 0);
	at += 2 + OP_WORDS + 2;
	TS_CHECK(!strncmp(agent_string(&at, text, sizeof(text)), "kernelkkk", 9));
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "kernel");
	TS_CHECK_INT(*at, 0);
	at = agent_find(&reader, TS_LIVE_CALL, 0, &head);
	TS_CHECK(at != NULL);
	TS_CHECK_INT(head.site, 0);
	TS_CHECK_INT(head.flags, TS_LIVE_FLAG_TICKS);
	TS_CHECK(at[2] <= at[1]);
	TS_CHECK_INT(at[3], 9);
	TS_CHECK_INT(at[4], 1);
	at += 5;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "clLate");
	free_site(site);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(a_forked_child_keeps_the_numbers_of_sites)
{
	struct ts_emit_site *before = new_site(0, 10), *after = new_site(1, 11);
	struct ts_gpu_op op = plain_op();
	struct agent_reader reader;
	struct ts_live_record head;
	char text[64];
	pid_t pid;

	agent_begin("enabled=1");
	ts_accelerator_call(&call_site, ts_now(), 1, 0);
	ts_accelerator_op(before, &op);
	pid = fork();
	if (pid == 0) {
		ts_accelerator_op(before, &op);
		ts_accelerator_op(after, &op);
		agent_open_reader(&reader);
		agent_drain(&reader);
		TS_CHECK_INT(agent_count(&reader, TS_LIVE_CALL), 0);
		TS_CHECK(agent_find(&reader, TS_LIVE_GPU_OP, 0, &head) != NULL);
		TS_CHECK_STR(agent_site_name(head.site, text, sizeof(text)), "kernelkkkk");
		TS_CHECK(agent_find(&reader, TS_LIVE_GPU_OP, 1, &head) != NULL);
		TS_CHECK_STR(agent_site_name(head.site, text, sizeof(text)), "kernelkkkkk");
		agent_close_reader(&reader);
		_exit(0);
	}
	agent_join_child(pid);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_GPU_OP), 1);
	free_site(before);
	free_site(after);
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- many events ---- */

#define THREADS 4
#define EACH 20000u

static void *call_often(void *argument)
{
	uint64_t base = (uint64_t)(uintptr_t)argument * EACH;
	struct ts_gpu_op op = plain_op();

	for (unsigned int i = 0; i < EACH; i++) {
		ts_accelerator_call(&call_site, ts_now(), base + i, 0);
		if (i % 16 == 0)
			ts_accelerator_op(&op_site, &op);
	}
	return NULL;
}

/* What does not fit is counted: emitted = stored + dropped, exactly. */
TS_TEST(all_are_stored_or_counted)
{
	struct agent_reader reader;
	pthread_t threads[THREADS];
	uint64_t stored;

	/* Rings of 16 KiB, which cannot grow much. */
	agent_begin("enabled=1;budget=600000");
	for (uintptr_t i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, call_often, (void *)i), 0);
	agent_open_reader(&reader);
	for (unsigned int i = 0; i < 50; i++)
		agent_drain(&reader);
	for (unsigned int i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	agent_drain(&reader);
	stored = agent_count(&reader, TS_LIVE_CALL) + agent_count(&reader, TS_LIVE_GPU_OP);
	TS_CHECK(stored > 0);
	TS_CHECK_INT(stored + reader.dropped + agent_control()->lost_no_ring +
			     agent_control()->lost_nested,
		     THREADS * (EACH + EACH / 16));
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- time ---- */

TS_TEST(ticks_are_as_long_as_the_clock_says)
{
	struct timespec pause = { 0, 20000000 };
	uint64_t from_ns = ts_counter_monotonic_ns(), from = ts_now(), to, to_ns;
	int64_t ns;

	TS_CHECK_INT(ts_ticks_ns(0), 0);
	nanosleep(&pause, NULL);
	to = ts_now();
	to_ns = ts_counter_monotonic_ns();
	ns = ts_ticks_ns(to - from);
	/* The thread may be descheduled between the two readings at either end. */
	TS_CHECK(ns > 19000000 && ns < (int64_t)(to_ns - from_ns) * 11 / 10);
	TS_CHECK(ts_ticks_ns(UINT64_MAX) > 0);
}
