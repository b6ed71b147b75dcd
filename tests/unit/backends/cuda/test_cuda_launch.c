/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What parameters of launches point to: those that repeat from a function's last launch are not
 * looked at again. The source runs inside programs, so it is included here.
 */
#include "unit/runner.h"

#include "backends/cuda/stream/cuda_launch.c" /* NOLINT(bugprone-suspicious-include) */

#define WORDS 100
#define OURS UINT64_C(0x200000000000) /* memory of the arena */
#define DRIVERS UINT64_C(0x7f0000000000)

/* ---- the rest of the capture ---- */

static struct capture_device arena = { .arena = OURS, .arena_bytes = 1 << 20 };
static uint64_t looked_at[WORDS * 2];
static size_t looked_at_count;

void host_look_for_pointers(const void *data, uint64_t bytes)
{
	TS_CHECK(looked_at_count + bytes / 8 <= WORDS * 2);
	memcpy(looked_at + looked_at_count, data, bytes);
	looked_at_count += (size_t)(bytes / 8);
}

struct capture_device *arena_device(uint64_t address)
{
	return address - arena.arena < arena.arena_bytes ? &arena : NULL;
}

static int pointer_attribute(void *data, int attribute, uint64_t pointer)
{
	*(unsigned int *)data = MEMORY_TYPE_DEVICE;
	return pointer >= DRIVERS ? 0 : 1;
}

struct cuda_driver_functions cu;

bool host_contains(uint64_t address, uint64_t bytes)
{
	return false;
}

struct capture_global *capture_global_at(uint64_t address)
{
	return NULL;
}

void arena_mode_begin(struct arena_mode *mode)
{
}

void arena_mode_end(struct arena_mode *mode)
{
}

void capture_check_each(uint64_t sequence)
{
}

uint64_t capture_command_with(struct ts_replay_command *row, const void *data, uint64_t bytes)
{
	return 1;
}

struct capture_context *capture_context_current(void)
{
	return NULL;
}

struct capture_context *capture_context_next(struct capture_context *after)
{
	return NULL;
}

void capture_event_of_launch(const struct cuda_call *call, void *handle, uint64_t queue)
{
}

void capture_fail(const char *format, ...)
{
	TS_CHECK(!format);
}

struct capture_function *capture_function_in(struct capture_function *function,
					     struct capture_context *context)
{
	return function;
}

uint64_t capture_function_number(struct capture_function *function)
{
	return 1;
}

struct capture_function *capture_function_of(void *handle)
{
	return handle;
}

bool capture_is_captured(const struct cuda_call *call, uintptr_t handle)
{
	return false;
}

bool capture_is_open(void)
{
	return true;
}

void capture_lock(void)
{
}

void capture_unlock(void)
{
}

uint64_t capture_stream_number(const struct cuda_call *call, uintptr_t handle)
{
	return 1;
}

struct capture_stream *capture_stream_of(const struct cuda_call *call, uintptr_t handle)
{
	return NULL;
}

int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	return 0;
}

void function_alias(struct capture_function *kernel, void *function)
{
}

struct capture_function *function_find(void *handle)
{
	return handle;
}

bool function_params(struct capture_function *function)
{
	return true;
}

void host_emit_changes(void)
{
}

struct capture_module *module_in(struct capture_module *module, struct capture_context *context)
{
	return module;
}

void stream_text_begin(struct stream_text *text)
{
}

void stream_text_open(struct stream_text *text, const char *key, char bracket)
{
}

void stream_text_close(struct stream_text *text, char bracket)
{
}

void stream_text_element(struct stream_text *text, const char *value)
{
}

void stream_text_item(struct stream_text *text, uint64_t value)
{
}

void stream_text_true(struct stream_text *text, const char *key)
{
}

void stream_text_uint(struct stream_text *text, const char *key, uint64_t value)
{
}

const char *stream_text_end(struct stream_text *text)
{
	return "";
}

/* ---- tests ---- */

static uint64_t block[BLOCK_BYTES / sizeof(uint64_t)];
static struct capture_function function;

static void begin(void)
{
	cu.PointerGetAttribute = pointer_attribute;
	free(function.seen);
	function.seen = NULL;
	capture_launch_forget();
	for (uint64_t i = 0; i < WORDS; i++)
		block[i] = i % 2 ? OURS + 8 * i : i | i << 32;
}

/* Words that were looked at. */
static size_t look(uint32_t bytes, const char *expected)
{
	looked_at_count = 0;
	TS_CHECK_STR(look_for_pointers(&function, "{\"a\":1}", block, bytes), expected);
	return looked_at_count;
}

TS_TEST(only_what_has_changed_is_looked_at)
{
	const char *nothing = "{\"a\":1}";
	size_t lines = (WORDS + LINE_WORDS - 1) / LINE_WORDS;

	begin();
	TS_CHECK_INT(look(WORDS * 8, nothing), lines * LINE_WORDS);
	TS_CHECK_INT(look(WORDS * 8, nothing), 0);
	block[50]++;
	TS_CHECK_INT(look(WORDS * 8, nothing), LINE_WORDS);
	TS_CHECK_INT(looked_at[50 % LINE_WORDS], block[50]);
	TS_CHECK_INT(look(WORDS * 8, nothing), 0);
	/* What lies behind the parameters does not count. */
	block[WORDS] = DRIVERS;
	TS_CHECK_INT(look(WORDS * 8, nothing), 0);
	/* Memory may have been pinned where there was none. */
	capture_addresses_changed();
	TS_CHECK_INT(look(WORDS * 8, nothing), lines * LINE_WORDS);
	TS_CHECK_INT(look(WORDS * 8, nothing), 0);
	/* Another window. */
	capture_launch_forget();
	TS_CHECK_INT(look(WORDS * 8, nothing), lines * LINE_WORDS);
}

TS_TEST(few_parameters_are_looked_at_each_time)
{
	begin();
	TS_CHECK_INT(look(16, "{\"a\":1}"), 2);
	TS_CHECK_INT(look(16, "{\"a\":1}"), 2);
	TS_CHECK(!function.seen);
}

TS_TEST(the_drivers_memory_is_named_in_each_launch)
{
	static const char *const named = "{\"a\":1,\"foreign\":[\"7f0000000010\"]}";

	begin();
	block[77] = DRIVERS + 16;
	look(WORDS * 8, named);
	look(WORDS * 8, named);
	block[3]++;
	look(WORDS * 8, named);
	block[77] = OURS;
	look(WORDS * 8, "{\"a\":1}");
	TS_CHECK_INT(look(WORDS * 8, "{\"a\":1}"), 0);
}
