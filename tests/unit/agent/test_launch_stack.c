/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks by number: their dictionary entries, stable numbers, and stacks for which there is no
 * room.
 */
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unwind.h>

#include "agent/launch_stack.h"
#include "unit/agent/agent_support.h"

#define MOST_FRAMES 4000

static volatile unsigned int sink;

/* ---- the dictionary ---- */

/* Finds the entry of a number; its bytes are at *ret_at. */
static struct ts_live_site entry_of(uint32_t number, const char **ret_at)
{
	const char *at = (const char *)agent_control() + TS_LIVE_DICTIONARY;
	const char *end = at + agent_control()->dictionary_used;
	struct ts_live_site site;

	TS_CHECK(number > 0);
	for (; at < end; at += site.bytes) {
		memcpy(&site, at, sizeof(site));
		if (--number == 0) {
			*ret_at = at;
			return site;
		}
	}
	TS_CHECK(!"the dictionary has no such entry");
	return (struct ts_live_site){ 0 };
}

struct frames {
	size_t count;
	uint64_t words[MOST_FRAMES]; /* innermost first */
};

static void read_stack(uint32_t number, struct frames *ret_frames)
{
	ret_frames->count = 0;
	while (number) {
		const char *at;
		struct ts_live_site site = entry_of(number, &at);

		TS_CHECK_INT(site.kind, TS_LIVE_CODE_STACK);
		TS_CHECK_INT(site.bytes, 24);
		TS_CHECK_INT(site.name_bytes + site.category_bytes + site.fields, 0);
		TS_CHECK(site.line < number); /* the parent precedes it, so the loop ends */
		TS_CHECK(ret_frames->count < MOST_FRAMES);
		memcpy(&ret_frames->words[ret_frames->count++], at + sizeof(site), 8);
		number = site.line;
	}
}

static const char *outermost_name(uint32_t number, char *buffer, size_t bytes)
{
	static struct frames frames;

	read_stack(number, &frames);
	return agent_site_name((uint32_t)(frames.words[frames.count - 1] >> 32), buffer, bytes);
}

/* ---- the compiler's unwinder ---- */

static _Unwind_Reason_Code add_pc(struct _Unwind_Context *context, void *to)
{
	struct frames *frames = to;
	uint64_t pc = (uint64_t)_Unwind_GetIP(context);

	if (pc && frames->count < MOST_FRAMES)
		frames->words[frames->count++] = pc;
	return _URC_NO_REASON;
}

static void check_module(uint32_t entry, const struct ts_local_unwind_module *expected)
{
	char text[1024], program[1024];
	struct ts_live_module where;
	struct ts_live_site site;
	const char *at;
	size_t length;

	site = entry_of(entry, &at);
	TS_CHECK_INT(site.kind, TS_LIVE_CODE_MODULE);
	TS_CHECK_INT(site.bytes % 8, 0);
	agent_site_name(entry, text, sizeof(text));
	if (expected->path[0]) {
		TS_CHECK_STR(text, expected->path);
	} else {
		ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);

		TS_CHECK(bytes > 0);
		program[bytes] = 0;
		TS_CHECK_STR(text, program);
	}
	TS_CHECK_INT(site.category_bytes, 2 * expected->build_id_bytes);
	length = sizeof(site) + site.name_bytes + site.category_bytes;
	memcpy(&where, at + (length + 7) / 8 * 8, sizeof(where));
	TS_CHECK_INT(where.start, expected->start);
	TS_CHECK_INT(where.bytes, expected->bytes);
}

/* Compares the frames of a number with return addresses. */
static void check_frames(uint32_t number, const uint64_t *pcs, size_t count)
{
	static struct frames frames;
	struct ts_local_unwind_module module;

	read_stack(number, &frames);
	TS_CHECK_INT(frames.count, count);
	for (size_t i = 0; i < count; i++) {
		TS_CHECK(ts_local_unwind_find_module(pcs[i] - 1, &module));
		TS_CHECK_INT((uint32_t)frames.words[i], pcs[i] - 1 - module.bias);
		check_module((uint32_t)(frames.words[i] >> 32), &module);
	}
}

/* ---- tests ---- */

__attribute__((noinline)) static uint32_t take_stack(void)
{
	uint32_t number = ts_accelerator_stack();

	sink++;
	return number;
}

TS_TEST(none_unless_asked_for)
{
	agent_begin("enabled=1");
	TS_CHECK_INT(ts_accelerator_stack(), 0);
	TS_CHECK_INT(agent_control()->pool, TS_LIVE_POOL);
	agent_end(true);
}

TS_TEST(none_while_events_are_off)
{
	agent_begin("enabled=0;stacks=native");
	TS_CHECK_INT(ts_accelerator_stack(), 0);
	/* Stacks for later use in a window are taken anyway. */
	TS_CHECK(ts_accelerator_stack_always() != 0);
	agent_end(true);
}

TS_TEST(frames_are_modules_and_addresses)
{
	static struct frames theirs;
	uint32_t number = 0;

	agent_begin("enabled=1;stacks=native");
	/* On one line, so that the two calls differ in the first frame only. */
	for (int i = 0; i < 2; i++) {
		theirs.count = 0;
		number = ts_accelerator_stack();
		_Unwind_Backtrace(add_pc, &theirs);
	}
	{
		static struct frames ours;
		struct ts_local_unwind_module module;

		read_stack(number, &ours);
		TS_CHECK_INT(ours.count, theirs.count);
		TS_CHECK(ts_local_unwind_find_module(theirs.words[0] - 1, &module));
		TS_CHECK_INT(ours.words[0] >> 32, ours.words[1] >> 32);
	}
	check_frames(entry_of(number, &(const char *){ NULL }).line, theirs.words + 1,
		     theirs.count - 1);
	TS_CHECK_INT(agent_control()->pool, TS_LIVE_DICTIONARY + TS_LIVE_DICTIONARY_GREATEST);
	agent_end(true);
}

/* All from one call site: the loop is not unrolled. */
__attribute__((noinline)) static void take_times(uint32_t *ret_numbers, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		ret_numbers[i] = take_stack();
		__asm__ volatile("" ::: "memory");
	}
}

TS_TEST(numbers_stay)
{
	volatile unsigned int count = 3;
	uint32_t numbers[3], other;
	uint64_t used;

	agent_begin("enabled=1;stacks=native");
	take_times(numbers, count);
	used = agent_control()->dictionary_used;
	TS_CHECK(numbers[0] != 0);
	TS_CHECK_INT(numbers[1], numbers[0]);
	TS_CHECK_INT(numbers[2], numbers[0]);
	other = take_stack();
	TS_CHECK(other != 0 && other != numbers[0]);
	/* Two new entries, take_stack() and this function: their callers already exist. */
	TS_CHECK_INT(agent_control()->dictionary_used - used, 2 * 24);
	agent_end(true);
}

TS_TEST(the_configuration_switches)
{
	agent_begin("enabled=1;stacks=all");
	TS_CHECK_INT(agent_control()->config[TS_CONFIG_STACKS], 3);
	TS_CHECK(take_stack() != 0);
	agent_control()->config[TS_CONFIG_STACKS] = 0;
	TS_CHECK_INT(take_stack(), 0);
	/* This process has no Python. */
	agent_control()->config[TS_CONFIG_STACKS] = TS_STACKS_PYTHON;
	TS_CHECK_INT(take_stack(), 0);
	agent_control()->config[TS_CONFIG_STACKS] = TS_STACKS_NATIVE;
	TS_CHECK(take_stack() != 0);
	agent_end(true);
}

TS_TEST(calls_have_stacks_by_themselves)
{
	static struct ts_emit_site site = TS_CALL_SITE("clFinish", "opencl");
	static struct frames frames;
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *record;

	agent_begin("enabled=1;stacks=native");
	for (unsigned int i = 0; i < 3; i++)
		ts_accelerator_call(&site, ts_now(), 7 + i, -1);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_CALL), 3);
	for (unsigned int i = 0; i < 3; i++) {
		record = agent_find(&reader, TS_LIVE_CALL, i, &head);
		TS_CHECK_INT(head.words, 6);
		TS_CHECK(head.flags & TS_LIVE_FLAG_STACK_IS);
		TS_CHECK_INT(record[3], 7 + i);
		TS_CHECK_INT(record[4], -1);
		read_stack((uint32_t)record[5], &frames);
		TS_CHECK(frames.count > 2);
	}
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- incomplete stacks ---- */

#if defined(__x86_64__)
static const unsigned char generated_code[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
						0x48, 0x83, 0xc4, 0x08, 0xc3 };
#else
static const unsigned int generated_code[] = { 0xa9bf7bfd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif

static uint32_t taken;

static void take_back(void)
{
	taken = ts_accelerator_stack();
	sink++;
}

TS_TEST(code_made_at_run_time_is_a_marker)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)(void (*function)(void));
	static struct frames frames;
	char text[64];

	agent_begin("enabled=1;stacks=native");
	TS_CHECK(code != MAP_FAILED);
	memcpy(code, generated_code, sizeof(generated_code));
	TS_CHECK_INT(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
	__builtin___clear_cache(code, code + sizeof(generated_code));
	memcpy(&call, &code, sizeof(call));
	call(take_back);
	read_stack(taken, &frames);
	TS_CHECK_INT(frames.count, 2);
	TS_CHECK_STR(outermost_name(taken, text, sizeof(text)), "[no unwind tables]");
	munmap(code, 4096);
	agent_end(true);
}

__attribute__((noinline)) static void take_below(unsigned int depth)
{
	if (depth)
		take_below(depth - 1);
	else
		take_back();
	sink++;
}

TS_TEST(what_is_too_deep_keeps_its_inner_frames)
{
	static struct frames frames;
	char text[64];

	agent_begin("enabled=1;stacks=native");
	take_below(3000);
	read_stack(taken, &frames);
	TS_CHECK_INT(frames.count, TS_LIVE_FRAMES);
	TS_CHECK_STR(outermost_name(taken, text, sizeof(text)), "[too deep]");
	/* All but the first two and the marker are the same function. */
	TS_CHECK_INT(frames.words[10], frames.words[TS_LIVE_FRAMES - 2]);
	agent_end(true);
}

TS_TEST(a_full_dictionary_gives_none_and_says_so)
{
	volatile unsigned int turns = 2;
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char text[64];

	agent_begin("enabled=1;stacks=native;budget=600000");
	ts_accelerator_fact("ring", "1"); /* allocates the ring */
	for (unsigned int turn = 0; turn < turns; turn++) {
		/* The first stack stays known after the dictionary is full. */
		take_below(5);
		TS_CHECK(taken != 0);
		while (agent_register_code(ts_process_tracer.core, TS_LIVE_CODE_NATIVE, "filler",
					   NULL, turn))
			;
	}
	take_below(6);
	TS_CHECK_INT(taken, 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	at = agent_find(&reader, TS_LIVE_LOST, 0, &head);
	TS_CHECK(at != NULL);
	TS_CHECK_INT(at[2], 1);
	at += 3;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "stacks");
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- processes and threads ---- */

TS_TEST(a_forked_child_keeps_numbers)
{
	static struct frames first, second;
	volatile unsigned int turns = 2;
	pid_t pid = 0;
	uint32_t number;

	agent_begin("enabled=1;stacks=native");
	/* The same stack in both: one call, in a loop. */
	for (unsigned int turn = 0; turn < turns; turn++) {
		__asm__ volatile("" ::: "memory");
		number = take_stack();
		TS_CHECK(number != 0);
		if (turn == 0) {
			taken = number;
			read_stack(number, &first);
			pid = fork();
			continue;
		}
		TS_CHECK_INT(number, taken);
		read_stack(number, &second);
		TS_CHECK_INT(second.count, first.count);
		TS_CHECK(!memcmp(first.words, second.words, first.count * 8));
		/* Another stack, which only the child has. */
		if (pid == 0) {
			take_below(3);
			TS_CHECK(taken != 0);
			_exit(0);
		}
	}
	agent_join_child(pid);
	agent_end(true);
}

#define THREADS 4
#define DEPTHS 200

static uint32_t by_depth[THREADS][DEPTHS];

__attribute__((noinline)) static uint32_t number_below(unsigned int depth)
{
	uint32_t number = depth ? number_below(depth - 1) : ts_accelerator_stack();

	sink++;
	return number;
}

static void *take_often(void *which)
{
	for (unsigned int turn = 0; turn < 20; turn++) {
		for (unsigned int depth = 0; depth < DEPTHS; depth++) {
			uint32_t number = number_below(depth);

			TS_CHECK(number != 0);
			TS_CHECK(turn == 0 || number == by_depth[(uintptr_t)which][depth]);
			by_depth[(uintptr_t)which][depth] = number;
		}
	}
	return NULL;
}

TS_TEST(threads_have_the_same_numbers)
{
	static struct frames frames;
	pthread_t threads[THREADS];

	agent_begin("enabled=1;stacks=native");
	for (uintptr_t i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, take_often, (void *)i), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	for (unsigned int i = 1; i < THREADS; i++)
		TS_CHECK(!memcmp(by_depth[0], by_depth[i], sizeof(by_depth[0])));
	for (unsigned int depth = 1; depth < DEPTHS; depth += 33) {
		size_t count;

		read_stack(by_depth[0][depth - 1], &frames);
		count = frames.count;
		read_stack(by_depth[0][depth], &frames);
		TS_CHECK_INT(frames.count, count + 1);
	}
	agent_end(true);
}
