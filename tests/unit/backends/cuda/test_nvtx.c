/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX at its limits: unexpected export tables, more of everything than fits, many threads at once,
 * windows. The client's side is in this file; the agent is the real one.
 */
#include <errno.h>
#include <pthread.h>

#include "backends/cuda/cuda_internal.h"
#include "backends/cuda/nvtx/nvtx.h"
#include "unit/agent/agent_support.h"

int InitializeInjectionNvtx2(nvtx_export_table export_table);

/* ---- stubs for the rest of the library ---- */

__thread struct cuda_thread cuda_thread __attribute__((tls_model("initial-exec")));
static bool is_wanted = true;

bool cuda_is_wanted(void)
{
	return is_wanted;
}

bool cuda_is_forked(void)
{
	return false;
}

void *cuda_driver(const char *name)
{
	(void)name;
	return NULL;
}

uint32_t cuda_stream_number(void *stream, uint32_t *ret_context)
{
	(void)stream;
	*ret_context = 0;
	return UINT32_MAX;
}

/* ---- a copy of NVTX ---- */

#define CORE_COUNT 16u

static nvtx_function core[CORE_COUNT + 1], core2[CORE_COUNT + 1];
static nvtx_function *core_slots[CORE_COUNT + 1], *core2_slots[CORE_COUNT + 1];
static unsigned int reported_count = CORE_COUNT;
static size_t reported_size = sizeof(struct nvtx_callbacks);
static uint32_t reported_version;

static int get_module(int module, nvtx_function ***ret_table, unsigned int *ret_count)
{
	if (module != NVTX_MODULE_CORE && module != NVTX_MODULE_CORE2)
		return 0;
	*ret_table = module == NVTX_MODULE_CORE ? core_slots : core2_slots;
	*ret_count = reported_count;
	return 1;
}

static void set_tool(uint32_t version)
{
	reported_version = version;
}

static const void *get_table(uint32_t id)
{
	static struct nvtx_callbacks callbacks;
	static const struct nvtx_version version = { sizeof(version), 3, 0, set_tool };

	callbacks = (struct nvtx_callbacks){ reported_size, get_module };
	return id == NVTX_TABLE_CALLBACKS ? (const void *)&callbacks
	       : id == NVTX_TABLE_VERSION ? &version
					  : NULL;
}

static const void *get_nothing(uint32_t id)
{
	(void)id;
	return NULL;
}

static int begin_client(void)
{
	memset(core, 0, sizeof(core));
	memset(core2, 0, sizeof(core2));
	for (unsigned int i = 1; i < CORE_COUNT; i++) {
		core_slots[i] = &core[i];
		core2_slots[i] = &core2[i];
	}
	return InitializeInjectionNvtx2(get_table);
}

static int push(const char *text)
{
	return ((int (*)(const char *))core[NVTX_PUSH_A])(text);
}

static int pop(void)
{
	return ((int (*)(void))core[NVTX_POP])();
}

static void mark(const char *text)
{
	((void (*)(const char *))core[NVTX_MARK_A])(text);
}

static uint64_t start(const char *text)
{
	return ((uint64_t(*)(const char *))core[NVTX_START_A])(text);
}

static void end(uint64_t id)
{
	((void (*)(uint64_t))core[NVTX_END])(id);
}

static const void *create(const char *name)
{
	return ((const void *(*)(const char *))core2[NVTX_DOMAIN_CREATE_A])(name);
}

static const void *register_text(const char *text)
{
	return ((const void *(*)(const void *, const char *))core2[NVTX_REGISTER_A])(NULL, text);
}

static int domain_push(const void *domain, const struct nvtx_attributes *attributes)
{
	return ((int (*)(const void *, const struct nvtx_attributes *))core2[NVTX_DOMAIN_PUSH_EX])(
		domain, attributes);
}

static int domain_pop(const void *domain)
{
	return ((int (*)(const void *))core2[NVTX_DOMAIN_POP])(domain);
}

static struct nvtx_attributes registered(const void *handle)
{
	return (struct nvtx_attributes){ .version = 3,
					 .size = sizeof(struct nvtx_attributes),
					 .text_type = NVTX_TEXT_REGISTERED,
					 .text.registered = handle };
}

/* ---- initialization ---- */

TS_TEST(tables_that_are_not_as_expected)
{
	agent_begin("enabled=1");
	TS_CHECK_INT(InitializeInjectionNvtx2(NULL), 0);
	TS_CHECK_INT(InitializeInjectionNvtx2(get_nothing), 0);
	reported_size = 4;
	TS_CHECK_INT(begin_client(), 0);
	reported_size = sizeof(struct nvtx_callbacks);
	is_wanted = false;
	TS_CHECK_INT(begin_client(), 0);
	TS_CHECK(!core[NVTX_PUSH_A]);
	is_wanted = true;
	/* An older NVTX with fewer functions gets those that it has. */
	reported_count = NVTX_PUSH_A + 1;
	TS_CHECK_INT(begin_client(), 1);
	TS_CHECK(core[NVTX_PUSH_A] && !core[NVTX_POP]);
	reported_count = CORE_COUNT;
	TS_CHECK_INT(begin_client(), 1);
	TS_CHECK(core[NVTX_POP] && core2[NVTX_DOMAIN_POP]);
	TS_CHECK_INT(reported_version, 3);
	agent_end(true);
}

/* ---- names ---- */

TS_TEST(only_names_that_come_again_are_in_the_dictionary)
{
	struct agent_reader reader;
	uint64_t used;
	char name[64];

	agent_begin("enabled=1;budget=67108864");
	TS_CHECK_INT(begin_client(), 1);
	push("once");
	pop();
	used = agent_control()->dictionary_used;
	errno = EXDEV;
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "aten::mm, seq = %d", i);
		TS_CHECK_INT(push(name), 0);
		TS_CHECK_INT(pop(), 0);
	}
	TS_CHECK_INT(errno, EXDEV);
	TS_CHECK_INT(agent_control()->dictionary_used, used);
	/* Names that repeat are limited as well. */
	for (int i = 0; i < 60000; i++) {
		snprintf(name, sizeof(name), "layer %d", i / 3);
		push(name);
		pop();
	}
	TS_CHECK(agent_control()->dictionary_used > used);
	TS_CHECK(agent_control()->dictionary_used < used + UINT64_C(4096) * 64);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_BEGIN) + reader.dropped / 2, 80001);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(registered_strings_domains_and_categories_beyond_their_limits)
{
	const void *first, *domains[400];
	struct nvtx_attributes event;
	char name[300];

	agent_begin("enabled=1;budget=67108864");
	TS_CHECK_INT(begin_client(), 1);
	first = register_text("first");
	TS_CHECK(first && register_text("first") == first && register_text("second") != first);
	for (int i = 0; i < 30000; i++) {
		const void *handle;

		snprintf(name, sizeof(name), "string %d", i);
		handle = register_text(name);
		event = registered(handle);
		TS_CHECK_INT(domain_push(NULL, &event), 0);
		TS_CHECK_INT(domain_pop(NULL), 0);
	}
	/* Handles that point into the middle of kept memory, too. */
	for (int i = 1; i < 64; i++) {
		event = registered((const char *)first + i);
		TS_CHECK_INT(domain_push(NULL, &event), 0);
		TS_CHECK_INT(domain_pop(NULL), 0);
	}
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	domains[0] = create(name);
	TS_CHECK(domains[0] && create(name) == domains[0]);
	for (int i = 1; i < 400; i++) {
		snprintf(name, sizeof(name), "domain %d", i);
		domains[i] = create(name);
		TS_CHECK(domains[i] != NULL);
	}
	event = registered(first);
	for (int i = 0; i < 100; i++)
		TS_CHECK_INT(domain_push(domains[i], &event), 0);
	for (int i = 0; i < 100; i++)
		TS_CHECK_INT(domain_pop(domains[i]), 0);
	for (uint32_t i = 0; i < 5000; i++)
		((void (*)(uint32_t, const char *))core[NVTX_CATEGORY_A])(i, "category");
	agent_end(true);
}

/* ---- ranges ---- */

TS_TEST(ranges_across_threads_beyond_their_limit)
{
	static uint64_t ids[2000];
	struct agent_reader reader;

	agent_begin("enabled=1;budget=67108864");
	TS_CHECK_INT(begin_client(), 1);
	for (int i = 0; i < 2000; i++) {
		ids[i] = start("async");
		TS_CHECK((ids[i] != 0) == (i < 1024));
	}
	for (int i = 0; i < 1024; i++)
		end(ids[i]);
	/* Already ended, or never started. */
	for (int i = 0; i < 2000; i++)
		end(ids[i]);
	end(UINT64_MAX);
	TS_CHECK(start("async") != ids[0]);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_SPAN), 1024);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_LOST), 976);
	agent_close_reader(&reader);
	agent_end(true);
}

#define THREADS 8
#define ROUNDS 3000

static void *mark_much(void *number)
{
	const void *domain = create((intptr_t)number % 2 ? "odd" : "even");
	struct nvtx_attributes event = registered(register_text("registered"));
	char name[32];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t id = start("async");

		snprintf(name, sizeof(name), "name %d", i % 50);
		TS_CHECK_INT(push(name), 0);
		TS_CHECK_INT(domain_push(domain, &event), 0);
		mark(name);
		TS_CHECK_INT(domain_pop(domain), 0);
		TS_CHECK_INT(pop(), 0);
		end(id);
	}
	return NULL;
}

TS_TEST(many_threads_at_once)
{
	struct agent_reader reader;
	pthread_t threads[THREADS];

	agent_begin("enabled=1;budget=134217728");
	TS_CHECK_INT(begin_client(), 1);
	for (intptr_t i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, mark_much, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_BEGIN) + agent_count(&reader, TS_LIVE_END) +
			     agent_count(&reader, TS_LIVE_SPAN) +
			     agent_count(&reader, TS_LIVE_INSTANT) + reader.dropped,
		     6 * THREADS * ROUNDS);
	if (!reader.dropped)
		TS_CHECK_INT(agent_count(&reader, TS_LIVE_BEGIN),
			     agent_count(&reader, TS_LIVE_END));
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- windows ---- */

static bool is_open(void)
{
	return agent_control()->enabled & TS_LIVE_ENABLED;
}

static void *hold_often(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2000; i++) {
		push("step");
		TS_CHECK(is_open());
		pop();
	}
	return NULL;
}

TS_TEST(first_opens_and_last_closes)
{
	struct ts_live_window_record record;
	struct ts_live_record head;
	struct agent_reader reader;
	pthread_t threads[THREADS];
	const uint64_t *found, *text;
	char name[32];
	uint64_t id;

	agent_begin("enabled=0;window=nvtx:step");
	TS_CHECK_INT(begin_client(), 1);
	TS_CHECK(!is_open());
	push("other");
	mark("lost to the window");
	push("step");
	TS_CHECK(is_open());
	id = start("step");
	pop();
	TS_CHECK(is_open());
	end(id);
	TS_CHECK(!is_open());
	pop();
	TS_CHECK_INT(pop(), NVTX_NO_LEVEL);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_INSTANT), 0);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_BEGIN), 1);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_END), 1);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_WINDOW), 2);
	found = agent_find(&reader, TS_LIVE_WINDOW, 0, &head);
	memcpy(&record, found, sizeof(record));
	TS_CHECK_INT(record.action, TS_LIVE_WINDOW_OPEN);
	TS_CHECK_INT(record.cause, TS_LIVE_CAUSE_NVTX);
	text = found + sizeof(record) / 8;
	TS_CHECK_STR(agent_string(&text, name, sizeof(name)), "nvtx:step");
	for (int i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, hold_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	TS_CHECK(!is_open());
	agent_close_reader(&reader);
	agent_end(true);
}

static void *leave_open(void *unused)
{
	(void)unused;
	push("step");
	push("step");
	TS_CHECK(is_open());
	return NULL;
}

TS_TEST(thread_that_ends_inside_closes_it)
{
	pthread_t thread;

	agent_begin("enabled=0;window=nvtx:step");
	TS_CHECK_INT(begin_client(), 1);
	TS_CHECK_INT(pthread_create(&thread, NULL, leave_open, NULL), 0);
	pthread_join(thread, NULL);
	TS_CHECK(!is_open());
	agent_end(true);
}

TS_TEST(other_causes_do_not_open_it)
{
	agent_begin("enabled=0;window=cuda-profiler-api");
	TS_CHECK_INT(begin_client(), 1);
	push("step");
	ts_accelerator_window("nvtx", true);
	TS_CHECK(!is_open());
	cuda_profiler_switched(true);
	cuda_profiler_switched(true);
	TS_CHECK(is_open());
	cuda_profiler_switched(false);
	TS_CHECK(!is_open());
	cuda_profiler_switched(false);
	TS_CHECK(!is_open());
	pop();
	agent_end(true);
}

TS_TEST(child_that_is_forked_inside_has_not_opened_it)
{
	int status = 0;
	pid_t child;

	agent_begin("enabled=0;window=nvtx:step");
	TS_CHECK_INT(begin_client(), 1);
	push("step");
	TS_CHECK(is_open());
	child = fork();
	if (child == 0) {
		mark("nothing of it");
		ts_accelerator_window("nvtx", false);
		bool was_closed = !ts_enabled() || !is_open();

		pop();
		push("step");
		_exit(was_closed && is_open() ? 0 : 1);
	}
	TS_CHECK_INT(waitpid(child, &status, 0), child);
	TS_CHECK_INT(status, 0);
	TS_CHECK(is_open());
	pop();
	TS_CHECK(!is_open());
	agent_end(true);
}
