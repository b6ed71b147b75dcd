/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of modules: found in their images, because a program asks for few of them. Only those
 * of modules in use: to ask for an address makes the driver load a module.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_arena.h"
#include "backends/cuda/stream/cuda_code.h"
#include "base/local/macros.h"

#define GLOBALS_AT_MOST (1u << 20)
#define PIECE_BYTES ((uint64_t)1 << 20)

/* All of this is protected by capture_lock. By address. */
static struct capture_global **all;
static size_t all_count, all_capacity;

/* ---- by address ---- */

static int by_address(const void *a, const void *b)
{
	const struct capture_global *left = *(struct capture_global *const *)a,
				    *right = *(struct capture_global *const *)b;

	return TS_COMPARE(left->address, right->address);
}

static bool list_globals(struct capture_module *module)
{
	size_t need = all_count + module->global_count;
	struct capture_global **grown;

	if (need > GLOBALS_AT_MOST)
		return false;
	if (need > all_capacity) {
		grown = realloc(all, need * 2 * sizeof(*all));
		if (!grown)
			return false;
		all = grown;
		all_capacity = need * 2;
	}
	for (size_t i = 0; i < module->global_count; i++)
		all[all_count++] = &module->globals[i];
	if (module->global_count)
		qsort(all, all_count, sizeof(*all), by_address);
	return true;
}

void globals_unload(struct capture_module *module)
{
	size_t kept = 0;

	for (size_t i = 0; i < all_count; i++)
		if (all[i]->module != module)
			all[kept++] = all[i];
	all_count = kept;
	capture_addresses_changed();
}

struct capture_global *capture_global_at(uint64_t address)
{
	size_t low = 0, high = all_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle]->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address - all[low - 1]->address < all[low - 1]->bytes ? all[low - 1] : NULL;
}

size_t capture_globals(struct capture_global ***ret_globals)
{
	*ret_globals = all;
	return all_count;
}

/* ---- one module ---- */

static bool find_global(const struct capture_module *module, const char *name, uint64_t *address,
			size_t *bytes)
{
	*address = *bytes = 0;
	return !(module->is_library ? cu.LibraryGetGlobal(address, bytes, module->handle, name)
				    : cu.ModuleGetGlobal(address, bytes, module->handle, name)) &&
	       *address && *bytes;
}

/* Strings and such: neither code nor host can write them, and nothing else points there. */
static bool is_internal(const char *name)
{
	return name[0] == '$' || !strncmp(name, "__unnamed_", strlen("__unnamed_"));
}

/*
 * Variables that the driver does not know by name are constants of the compiler. Their pointers
 * are found when a replay meets one.
 */
static bool find_globals(struct capture_module *module, const struct ts_code_facts *facts)
{
	if (module->globals)
		return true;
	module->globals = calloc(facts->variable_count + 1, sizeof(*module->globals));
	if (!module->globals)
		return false;
	for (size_t i = 0; i < facts->variable_count; i++) {
		struct capture_global *global = &module->globals[module->global_count];
		size_t bytes;

		if (is_internal(facts->variables[i].name) ||
		    !find_global(module, facts->variables[i].name, &global->address, &bytes))
			continue;
		global->bytes = bytes;
		global->name = facts->variables[i].name;
		global->module = module;
		module->global_count++;
	}
	return list_globals(module);
}

/* Room in the details: names are only to show. */
#define POINTERS_AT_MOST 120u
#define POINTER_NAME_BYTES 40u

/* Words that hold addresses of functions, as the driver placed them. */
static void add_pointers(struct stream_text *text, const struct capture_global *global)
{
	const struct ts_code_facts *facts = &global->module->facts;
	uint32_t count = 0;

	for (size_t i = 0; i < facts->pointer_count && count < POINTERS_AT_MOST; i++) {
		if (strcmp(facts->pointers[i].variable, global->name))
			continue;
		if (!count++)
			stream_text_open(text, "functions", '[');
		stream_text_open(text, NULL, '[');
		stream_text_item(text, facts->pointers[i].offset);
		stream_text_part(text, NULL, facts->pointers[i].function, POINTER_NAME_BYTES);
		stream_text_close(text, '[');
	}
	if (count)
		stream_text_close(text, '[');
}

uint64_t capture_global_number(struct capture_global *global)
{
	static struct stream_text text; /* capture_lock */
	struct ts_replay_object object = { .size = sizeof(object),
					   .kind = TS_OBJECT_MEMORY,
					   .address = global->address,
					   .bytes = (int64_t)global->bytes,
					   .name = global->name };

	if (global->number)
		return global->number;
	object.parent = module_number(global->module);
	if (!object.parent)
		return 0;
	stream_text_begin(&text);
	stream_text_true(&text, "global");
	add_pointers(&text, global);
	object.details = stream_text_end(&text);
	object.number = ts_replay_new_object();
	global->number = object.number;
	capture_object(&object);
	return global->number;
}

static bool describe_globals(struct capture_module *module)
{
	char why[256];
	const struct ts_code_facts *facts = module_facts(module, why, sizeof(why));
	struct arena_mode mode;
	bool is_good;

	if (!facts) {
		capture_fail("%s", why);
		return false;
	}
	if (!facts->variable_count)
		return true;
	if (!module->context || !capture_context_push(module->context)) {
		capture_fail("variables of a module whose context is gone");
		return false;
	}
	arena_mode_begin(&mode);
	is_good = find_globals(module, facts);
	arena_mode_end(&mode);
	capture_context_pop();
	if (!is_good)
		capture_fail("no memory for variables of a module");
	for (size_t i = 0; is_good && i < module->global_count; i++)
		is_good = capture_global_number(&module->globals[i]) != 0;
	return is_good;
}

/* Nothing has run that could write it: this reads what the driver has loaded. */
static bool store_global(const struct capture_global *global, void *stream, void *buffer)
{
	for (uint64_t at = 0; at < global->bytes; at += PIECE_BYTES) {
		uint64_t bytes = TS_MIN(global->bytes - at, PIECE_BYTES);

		if (cu.MemcpyDtoHAsync(buffer, global->address + at, bytes, stream) ||
		    cu.StreamSynchronize(stream))
			return false;
		capture_piece(global->number, (int64_t)at, buffer, bytes);
		host_look_for_pointers(buffer, bytes);
	}
	return true;
}

/* In a stream of its own, because the default stream would wait for all work. */
static bool store_globals(struct capture_module *module)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	void *stream = NULL, *buffer = malloc(PIECE_BYTES);
	bool is_good = buffer && capture_context_push(module->context);

	if (!is_good) {
		free(buffer);
		return false;
	}
	/* Captures of other threads forbid these calls otherwise, and would end. */
	cu.ThreadExchangeStreamCaptureMode(&mode);
	is_good = !cu.StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
	for (size_t i = 0; is_good && i < module->global_count; i++)
		is_good = store_global(&module->globals[i], stream, buffer);
	if (stream)
		cu.StreamDestroy(stream);
	cu.ThreadExchangeStreamCaptureMode(&mode);
	capture_context_pop();
	free(buffer);
	return is_good;
}

bool globals_of_module(struct capture_module *module)
{
	if (module->has_globals)
		return true;
	module->has_globals = true; /* also if it fails: the window does */
	if (!describe_globals(module))
		return false;
	if (!module->global_count || store_globals(module))
		return true;
	capture_fail("variables of a module cannot be read");
	return false;
}

/* ---- when a window opens ---- */

void capture_globals_find(void)
{
	for (struct capture_module *module = module_next(NULL); module;
	     module = module_next(module)) {
		if (!__atomic_load_n(&module->is_used, __ATOMIC_ACQUIRE) || !module_is_live(module))
			continue;
		module->has_globals = true; /* the snapshot has their contents */
		if (!describe_globals(module))
			return;
	}
}

/* ---- addresses that the program asks for ---- */

/*
 * The address may be used by copies before any launch. A managed variable, which the CUDA runtime
 * asks for when it starts, makes windows impossible as long as its module is there.
 */
static int get_global(struct cuda_call *call, uintptr_t *args)
{
	struct capture_module *module;
	int result;

	capture_lock();
	result = cuda_invoke(call, args);
	module = result ? NULL : module_of((void *)args[2]);
	if (module)
		module = module_in(module, capture_context_current());
	if (module && capture_is_open())
		globals_of_module(module);
	capture_unlock();
	return result;
}

const struct cuda_handler_entry capture_global_handlers[] = {
	{ "cuModuleGetGlobal", get_global, CAPTURE_ALWAYS },
	{ "cuLibraryGetGlobal", get_global, CAPTURE_ALWAYS },
	{ "cuLibraryGetManaged", get_global, CAPTURE_ALWAYS },
	{ NULL, NULL, 0 },
};
