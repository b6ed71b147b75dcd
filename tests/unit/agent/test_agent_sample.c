/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as the agent writes them: words of records, functions in the dictionary, and what happens
 * when there is no room.
 */
#include <pthread.h>

#include <tracesmith/sample.h>

#include "agent/embedded.h"
#include "unit/agent/agent_support.h"

#define FRAMES_AT_MOST 6000

/* A recorder's area has a larger dictionary. */
static void host_begin(void)
{
	snprintf(agent_folder, sizeof(agent_folder), "%s/ts-agent-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	TS_CHECK(mkdtemp(agent_folder) != NULL);
	setenv("TRACESMITH_LIVE_DIR", agent_folder, 1);
	TS_CHECK_INT(ts_agent_host(1234, 0, false), 0);
}

static struct ts_sample sample_of(const uint64_t *frames, uint32_t count)
{
	return (struct ts_sample){ .size = sizeof(struct ts_sample),
				   .pid = 77,
				   .start_time = 88,
				   .tid = 99,
				   .state = TS_SAMPLE_STATE_KNOWN,
				   .weight_ns = 1000,
				   .frames = frames,
				   .count = count };
}

TS_TEST(a_sample_has_all_its_words)
{
	static struct ts_emit_site site = TS_SAMPLE_SITE("python", "sampler");
	uint64_t frames[3], from = ts_now();
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *record;
	char name[64];

	agent_begin("");
	frames[0] = ts_code_frame(ts_code(TS_CODE_PYTHON, "main", "/a.py", 1), 5);
	frames[1] = ts_code_frame(ts_code(TS_CODE_PYTHON, "work", "/a.py", 9), 10);
	frames[2] = ts_code_frame(ts_code(TS_CODE_NATIVE, "gemm", "/lib.so", 0), 0xabcdef);
	TS_CHECK(frames[0] >> 32 && frames[1] >> 32 > frames[0] >> 32);
	for (int i = 0; i < 3; i++) {
		struct ts_sample sample = sample_of(frames, 3);

		sample.time = i == 1 ? from : 0;
		if (i == 2)
			sample.pid = 0;
		ts_sample(&site, &sample, NULL, 0);
	}
	agent_open_reader(&reader);
	agent_drain(&reader);
	for (unsigned int i = 0; i < 2; i++) {
		record = agent_find(&reader, TS_LIVE_SAMPLE, i, &head);
		TS_CHECK(record != NULL);
		TS_CHECK_INT(head.words, 2 + 4 + 1 + 3);
		TS_CHECK_INT(head.flags, TS_LIVE_FLAG_SUBJECT | TS_LIVE_FLAG_STACK);
		TS_CHECK_STR(agent_site_name(head.site, name, sizeof(name)), "python");
		TS_CHECK(i ? record[1] == from : record[1] >= from);
		TS_CHECK_INT(record[2], (uint64_t)TS_METRICS_PROCESS << 56 | 77);
		TS_CHECK_INT(record[3], 88);
		TS_CHECK_INT(record[4], (uint64_t)TS_SAMPLE_STATE_KNOWN << 32 | 99);
		TS_CHECK_INT(record[5], 1000);
		TS_CHECK_INT(record[6], 3);
		TS_CHECK(memcmp(record + 7, frames, sizeof(frames)) == 0);
	}
	record = agent_find(&reader, TS_LIVE_SAMPLE, 2, &head);
	TS_CHECK(record != NULL);
	TS_CHECK_INT(head.flags, TS_LIVE_FLAG_STACK);
	TS_CHECK_INT(record[4], 3);
	TS_CHECK_STR(agent_site_name((uint32_t)(frames[1] >> 32), name, sizeof(name)), "work");
	agent_close_reader(&reader);
	agent_end(true);
}

/* Arguments known to the site or passed with the sample; strings are cut before frames are. */
TS_TEST(a_sample_may_have_arguments)
{
	static const struct ts_emit_field fields[] = { { "task", TS_EMIT_STRING },
						       { "n", TS_EMIT_INT } };
	static struct ts_emit_site known = { 0, "python", "sampler", fields, 0, 9, 32, 0, 2, 1 };
	static struct ts_emit_site plain = TS_SAMPLE_SITE("python", "sampler");
	struct ts_emit_arg args[2] = { { .key = "task", .type = TS_EMIT_STRING },
				       { .key = "n", .type = TS_EMIT_INT } };
	static uint64_t frames[1000];
	static char text[9000];
	struct ts_sample sample = sample_of(frames, 1000);
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at, *record;
	char buffer[64];

	memset(text, 'x', sizeof(text) - 1);
	args[0].value.string = "Task-1";
	args[1].value.integer = 42;
	agent_begin("");
	ts_sample(&known, &sample, args, 2);
	ts_sample(&plain, &sample, args, 2);
	args[0].value.string = text;
	ts_sample(&known, &sample, args, 2);
	agent_open_reader(&reader);
	agent_drain(&reader);
	at = agent_find(&reader, TS_LIVE_SAMPLE, 0, &head) + 6;
	TS_CHECK(head.site != 0);
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "Task-1");
	TS_CHECK_INT(*at++, 42);
	TS_CHECK_INT(*at++, 1000);
	at = agent_find(&reader, TS_LIVE_SAMPLE, 1, &head) + 6;
	TS_CHECK_INT(head.site, 0);
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "python");
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "sampler");
	TS_CHECK_INT(*at++, 2);
	TS_CHECK_INT(*at++, TS_EMIT_STRING);
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "task");
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "Task-1");
	TS_CHECK_INT(*at++, TS_EMIT_INT);
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "n");
	TS_CHECK_INT(*at++, 42);
	TS_CHECK_INT(*at++, 1000);
	record = agent_find(&reader, TS_LIVE_SAMPLE, 2, &head);
	at = record + 6;
	TS_CHECK_INT(agent_string(&at, buffer, sizeof(buffer))[0], 'x');
	TS_CHECK_INT(*at++, 42);
	TS_CHECK_INT(*at++, 1000);
	TS_CHECK_INT(at + 1000 - record, head.words);
	TS_CHECK_INT(agent_control()->strings_cut, 1);
	agent_close_reader(&reader);
	agent_end(true);
}

/* The frames of a record as a reader reconstructs them; omitted frames are 0. */
static uint64_t unfold(const uint64_t *at, uint64_t *frames)
{
	uint64_t stored = *at++, count = 0;

	for (uint64_t i = 0; i < stored; i++) {
		if (at[i] >> 32 == TS_LIVE_FRAMES_LEFT_OUT) {
			for (uint32_t k = 0; k < (uint32_t)at[i]; k++)
				frames[count++] = 0;
			continue;
		}
		frames[count++] = at[i];
	}
	return count;
}

static void check_deep(const char *settings, uint32_t depth, uint64_t outer, uint64_t inner)
{
	static struct ts_emit_site site = TS_SAMPLE_SITE("python", "sampler");
	static uint64_t frames[FRAMES_AT_MOST], found[FRAMES_AT_MOST];
	struct ts_sample sample = sample_of(frames, depth);
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *record;

	for (uint32_t i = 0; i < depth; i++)
		frames[i] = ts_code_frame(1, i + 1);
	site.header = 0;
	agent_begin(settings);
	ts_sample(&site, &sample, NULL, 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	record = agent_find(&reader, TS_LIVE_SAMPLE, 0, &head);
	TS_CHECK(record != NULL);
	TS_CHECK_INT(unfold(record + 6, found), depth);
	for (uint32_t i = 0; i < depth; i++)
		TS_CHECK_INT(found[i],
			     i < outer || i >= depth - inner ? ts_code_frame(1, i + 1) : 0);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(a_stack_of_1800_is_whole)
{
	check_deep("", 1800, 1800, 0);
}

TS_TEST(the_middle_of_a_deeper_one_is_left_out)
{
	check_deep("", 1801, 600, 1199);
}

TS_TEST(the_middle_of_a_very_deep_one_is_left_out)
{
	check_deep("", 5000, 600, 1199);
}

/* Smaller rings have smaller records. */
TS_TEST(small_rings_have_room_for_less)
{
	check_deep("budget=600000;", 1800, 168, 336);
}

TS_TEST(names_of_threads_of_others)
{
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char buffer[64];

	agent_begin("");
	ts_sample_thread(77, 88, 99, "Thread-1 (work)");
	agent_open_reader(&reader);
	agent_drain(&reader);
	at = agent_find(&reader, TS_LIVE_THREAD_OF, 0, &head) + 2;
	TS_CHECK_INT(*at++, (uint64_t)TS_METRICS_PROCESS << 56 | 77);
	TS_CHECK_INT(*at++, 88);
	TS_CHECK_INT(*at++, 99);
	TS_CHECK_STR(agent_string(&at, buffer, sizeof(buffer)), "Thread-1 (work)");
	agent_close_reader(&reader);
	agent_end(true);
}

/* Fills a dictionary; returns how many entries fit. */
static uint32_t fill_dictionary(void)
{
	char name[1000];
	uint32_t count = 0, code;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	while ((code = ts_code(TS_CODE_PYTHON, name, "/a.py", 1))) {
		TS_CHECK_INT(code, ++count);
		TS_CHECK(count < 100000);
	}
	return count;
}

TS_TEST(a_program_has_a_dictionary_of_a_megabyte)
{
	struct agent_reader reader;
	uint32_t count;

	agent_begin("");
	count = fill_dictionary();
	TS_CHECK(count > (1 << 20) / 1100 && count <= (1 << 20) / 1000);
	TS_CHECK(agent_control()->dictionary_used <= TS_LIVE_DICTIONARY_BYTES);
	agent_open_reader(&reader);
	agent_drain(&reader);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(a_recorder_has_a_larger_dictionary)
{
	static struct ts_emit_site site = TS_SAMPLE_SITE("python", "sampler");
	struct ts_sample sample;
	struct agent_reader reader;
	struct ts_live_record head;
	uint64_t frame;
	uint32_t count;

	host_begin();
	TS_CHECK_INT(agent_control()->role, TS_LIVE_RECORDER);
	TS_CHECK_INT(ts_live_dictionary_bytes(agent_control()), TS_LIVE_DICTIONARY_GREATEST);
	count = fill_dictionary();
	TS_CHECK(count > (16 << 20) / 1100 && count <= (16 << 20) / 1000);
	/* The site itself does not fit: the sample is stored without it. */
	frame = ts_code_frame(count, 3);
	sample = sample_of(&frame, 1);
	ts_sample(&site, &sample, NULL, 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK(agent_find(&reader, TS_LIVE_SAMPLE, 0, &head) != NULL);
	TS_CHECK_INT(head.site, 0);
	agent_close_reader(&reader);
	agent_end(true);
}

/* A forked child continues its parent's numbers. */
TS_TEST(codes_stay_over_a_fork)
{
	uint32_t first, second;
	char name[64];
	pid_t pid;

	agent_begin("");
	first = ts_code(TS_CODE_PYTHON, "first", "/a.py", 1);
	pid = fork();
	if (pid == 0) {
		second = ts_code(TS_CODE_PYTHON, "second", "/a.py", 1);
		TS_CHECK_INT(second, first + 1);
		TS_CHECK_STR(agent_site_name(first, name, sizeof(name)), "first");
		TS_CHECK_STR(agent_site_name(second, name, sizeof(name)), "second");
		agent_end(false);
		_exit(0);
	}
	agent_join_child(pid);
	TS_CHECK(agent_site_name(first + 1, name, sizeof(name)) == NULL);
	agent_end(true);
}

static struct ts_emit_site shared_site = TS_SAMPLE_SITE("python", "sampler");

static void *emit_many(void *unused)
{
	uint64_t frames[30] = { 0 };
	struct ts_sample sample = sample_of(frames, 30);

	(void)unused;
	for (unsigned int i = 0; i < 20000; i++) {
		frames[29] = i;
		ts_sample(&shared_site, &sample, NULL, 0);
	}
	return NULL;
}

/* More than fits: each is stored or counted. */
TS_TEST(all_are_stored_or_counted)
{
	struct agent_reader reader;
	pthread_t threads[2];

	agent_begin("budget=4000000;");
	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK(reader.dropped > 0);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_SAMPLE) + reader.dropped, 2 * 20000);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(nothing_is_stored_while_it_is_off)
{
	static struct ts_emit_site site = TS_SAMPLE_SITE("python", "sampler");
	struct ts_sample sample = sample_of(NULL, 5);
	struct agent_reader reader;
	struct ts_live_record head;

	agent_begin("enabled=0;");
	ts_sample(&site, &sample, NULL, 0);
	agent_control()->enabled = TS_LIVE_ENABLED;
	ts_sample(&site, &sample, NULL, 0);
	sample.size = 8;
	ts_sample(&site, &sample, NULL, 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_SAMPLE), 1);
	/* Missing frames count as none. */
	TS_CHECK_INT(agent_find(&reader, TS_LIVE_SAMPLE, 0, &head)[6], 0);
	agent_close_reader(&reader);
	agent_end(true);
}
