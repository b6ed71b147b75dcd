/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by handle: a kernel has a CUkernel, and a CUfunction in each context. All handles of a
 * kernel lead to one struct. Lookups take no lock: entries are only added, and a table that is full
 * is replaced by a larger copy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_arena.h"
#include "backends/cuda/stream/cuda_code.h"
#include "base/local/hash.h"
#include "base/local/macros.h"

#define FIRST_SLOTS 1024u
#define PARAM_BYTES_AT_MOST 32768u

struct entry {
	void *handle;
	struct capture_function *function; /* NULL: it was unloaded */
};

struct table {
	size_t slots, used;
	struct entry entries[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *table; /* replaced ones are not freed: somebody may read them */

/* ---- table ---- */

static struct entry *entry_of(struct table *in, void *handle)
{
	size_t at = ts_hash_mix64((uintptr_t)handle) & (in->slots - 1);

	for (;; at = (at + 1) & (in->slots - 1)) {
		void *found = __atomic_load_n(&in->entries[at].handle, __ATOMIC_ACQUIRE);

		if (!found || found == handle)
			return &in->entries[at];
	}
}

static bool grow(void)
{
	size_t slots = table ? table->slots * 2 : FIRST_SLOTS;
	struct table *grown = calloc(1, sizeof(*grown) + slots * sizeof(grown->entries[0]));

	if (!grown)
		return false;
	grown->slots = slots;
	for (size_t i = 0; table && i < table->slots; i++) {
		if (!table->entries[i].function)
			continue;
		*entry_of(grown, table->entries[i].handle) = table->entries[i];
		grown->used++;
	}
	__atomic_store_n(&table, grown, __ATOMIC_RELEASE);
	return true;
}

/* `lock` is held. */
static void insert(void *handle, struct capture_function *function)
{
	struct entry *entry;

	if ((!table || table->used * 2 >= table->slots) && !grow())
		return;
	entry = entry_of(table, handle);
	__atomic_store_n(&entry->function, function, __ATOMIC_RELEASE);
	if (entry->handle)
		return;
	table->used++;
	__atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
}

struct capture_function *capture_function_known(void *handle)
{
	struct table *in = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	struct entry *entry = in && handle ? entry_of(in, handle) : NULL;

	return entry && entry->handle ? __atomic_load_n(&entry->function, __ATOMIC_ACQUIRE) : NULL;
}

/* ---- registration ---- */

static struct capture_function *function_named(struct capture_module *module, const char *name)
{
	struct capture_function *function = module->functions;

	while (function && strcmp(function->name, name))
		function = function->next;
	return function;
}

/* `lock` is held. */
static struct capture_function *add_function(struct capture_module *module, const char *name,
					     void *handle, bool is_kernel)
{
	struct capture_function *function = function_named(module, name);

	if (function)
		return function;
	function = calloc(1, sizeof(*function));
	if (!function)
		return NULL;
	function->name = strdup(name);
	if (!function->name) {
		free(function);
		return NULL;
	}
	function->handle = handle;
	function->is_kernel = is_kernel;
	function->module = module;
	function->param_count = UINT32_MAX;
	function->next = module->functions;
	__atomic_store_n(&module->functions, function, __ATOMIC_RELEASE);
	return function;
}

void function_register(void *handle, bool is_kernel, struct capture_module *module,
		       const char *name)
{
	struct capture_function *function = capture_function_known(handle);

	if (!handle || (function && function->module == module && !strcmp(function->name, name)))
		return;
	pthread_mutex_lock(&lock);
	function = add_function(module, name, handle, is_kernel);
	if (function)
		insert(handle, function);
	pthread_mutex_unlock(&lock);
}

struct capture_function *capture_function_in(struct capture_function *function,
					     struct capture_context *context)
{
	struct capture_module *module = module_in(function->module, context);
	struct capture_function *found;

	if (!module || module == function->module)
		return module ? function : NULL;
	found = function_named(module, function->name);
	if (found)
		return found;
	pthread_mutex_lock(&lock);
	found = add_function(module, function->name, function->handle, function->is_kernel);
	pthread_mutex_unlock(&lock);
	return found;
}

void functions_unload(struct capture_module *module)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; table && i < table->slots; i++) {
		struct capture_function *function = table->entries[i].function;

		if (function && function->module == module)
			__atomic_store_n(&table->entries[i].function, NULL, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}

/* A library whose module has this handle: only of those that the driver has loaded anyway. */
static struct capture_module *library_of(void *handle)
{
	for (struct capture_module *module = module_next(NULL); module; module = module->next) {
		void *found = NULL;

		if (!module->is_library || module->base || !module_is_live(module) ||
		    module->alias || !(module->is_used || module->functions) ||
		    cu.LibraryGetModule(&found, module->handle) || !found)
			continue;
		module_alias(found, module);
		if (found == handle)
			return module;
	}
	return NULL;
}

/* A handle that came from an export table or a graph's node. */
static struct capture_function *resolve(void *handle)
{
	struct capture_module *module = NULL;
	const char *name = NULL;
	void *of = NULL;
	bool is_kernel = false;

	if (!cu.FuncGetModule(&of, handle) && !cu.FuncGetName(&name, handle)) {
		module = module_of(of);
		if (!module)
			module = library_of(of);
	} else if (!cu.KernelGetLibrary(&of, handle) && !cu.KernelGetName(&name, handle)) {
		is_kernel = true;
		module = module_of(of);
	}
	if (!module || !name)
		return NULL;
	function_register(handle, is_kernel, module, name);
	return capture_function_known(handle);
}

struct capture_function *function_find(void *handle)
{
	struct capture_function *function = capture_function_known(handle);
	struct arena_mode mode;

	if (function || !handle)
		return function;
	arena_mode_begin(&mode);
	function = resolve(handle);
	arena_mode_end(&mode);
	return function;
}

struct capture_function *capture_function_of(void *handle)
{
	struct capture_function *function = function_find(handle);

	if (!function)
		capture_fail("function %p of a module that was not seen", handle);
	return function;
}

/* ---- parameters ---- */

typedef int (*param_function)(void *handle, size_t index, size_t *offset, size_t *bytes);

/* The first index behind the last gives "invalid value". */
static int ask(param_function of, void *handle, struct ts_code_params *params)
{
	size_t offset, bytes;
	int result;

	params->count = params->bytes = 0;
	for (;;) {
		offset = bytes = 0;
		result = of(handle, params->count, &offset, &bytes);
		if (result)
			return result == CUDA_INVALID_VALUE ? 0 : result;
		if (params->count == TS_CODE_PARAMS || offset + bytes > PARAM_BYTES_AT_MOST)
			return CUDA_INVALID_VALUE;
		params->offsets[params->count] = (uint16_t)offset;
		params->sizes[params->count] = (uint16_t)bytes;
		params->bytes = TS_MAX(params->bytes, (uint32_t)(offset + bytes));
		params->count++;
	}
}

static bool find_params(const struct capture_function *function, struct ts_code_params *params)
{
	const struct capture_module *module = function->module;
	int major = 0, minor = 0;

	if (!ask(function->is_kernel ? cu.KernelGetParamInfo : cu.FuncGetParamInfo,
		 function->handle, params))
		return true;
	/* A driver before CUDA 12.4, or a handle of the other kind. */
	if (!ask(function->is_kernel ? cu.FuncGetParamInfo : cu.KernelGetParamInfo,
		 function->handle, params))
		return true;
	if (!module->image || !module->context)
		return false;
	module_compute(module, &major, &minor);
	return ts_code_params_read(params, function->name, module->image, module->image_bytes,
				   (unsigned int)major, (unsigned int)minor);
}

bool function_params(struct capture_function *function)
{
	static struct ts_code_params params; /* capture_lock */
	uint16_t *copy;

	if (function->param_count != UINT32_MAX)
		return true;
	if (!find_params(function, &params)) {
		capture_fail("parameters of kernel '%s' are not known", function->name);
		return false;
	}
	copy = malloc((params.count * 2u + 1) * sizeof(*copy));
	if (!copy) {
		capture_fail("no memory for parameters of kernel '%s'", function->name);
		return false;
	}
	memcpy(copy, params.offsets, params.count * sizeof(*copy));
	memcpy(copy + params.count, params.sizes, params.count * sizeof(*copy));
	function->param_offsets = copy;
	function->param_sizes = copy + params.count;
	function->param_bytes = params.bytes;
	function->param_count = params.count;
	return true;
}

/* ---- description ---- */

#define MAX_DYNAMIC_SHARED 8 /* CUfunction_attribute */
#define CARVEOUT 9
#define CLUSTER_WIDTH 11
#define CLUSTER_HEIGHT 12
#define CLUSTER_DEPTH 13
#define NON_PORTABLE_CLUSTER 14
#define CLUSTER_SCHEDULING 15

bool capture_is_function_attribute(int id)
{
	return id == MAX_DYNAMIC_SHARED || id == CARVEOUT ||
	       (id >= CLUSTER_WIDTH && id <= CLUSTER_SCHEDULING);
}

/* Settings of the program, or what the code says itself, which a replay has anyway. */
static void add_attributes(struct stream_text *text, const struct capture_function *function)
{
	static const struct {
		int id, normal;
	} attributes[] = { { MAX_DYNAMIC_SHARED, 0 }, { CARVEOUT, -1 },
			   { CLUSTER_WIDTH, 0 },      { CLUSTER_HEIGHT, 0 },
			   { CLUSTER_DEPTH, 0 },      { NON_PORTABLE_CLUSTER, 0 },
			   { CLUSTER_SCHEDULING, 0 } };
	void *handle = function->handle;

	/* What was set for the kernel counts for its function as well. */
	if (function->is_kernel && cu.KernelGetFunction(&handle, function->handle))
		return;
	stream_text_open(text, "attributes", '[');
	for (size_t i = 0; i < TS_ARRAY_SIZE(attributes); i++) {
		int value = attributes[i].normal;

		if (cu.FuncGetAttribute(&value, attributes[i].id, handle) ||
		    value == attributes[i].normal)
			continue;
		stream_text_open(text, NULL, '[');
		stream_text_int(text, NULL, attributes[i].id);
		stream_text_int(text, NULL, value);
		stream_text_close(text, '[');
	}
	stream_text_close(text, '[');
}

static const char *details_of(const struct capture_function *function, struct stream_text *text)
{
	stream_text_begin(text);
	stream_text_open(text, "params", '[');
	for (uint32_t i = 0; i < function->param_count; i++) {
		stream_text_open(text, NULL, '[');
		stream_text_item(text, function->param_offsets[i]);
		stream_text_item(text, function->param_sizes[i]);
		stream_text_close(text, '[');
	}
	stream_text_close(text, '[');
	add_attributes(text, function);
	if (function->cache)
		stream_text_int(text, "cache", function->cache);
	return stream_text_end(text);
}

/* Because of what the code calls. */
static bool is_refused(struct capture_function *function)
{
	const struct ts_code_facts *facts;
	char why[256];

	if (!function->refused) {
		facts = module_facts(function->module, why, sizeof(why));
		function->refused = facts ? ts_code_facts_refused(facts, function->name) : NULL;
	}
	if (function->refused)
		capture_fail("kernel '%s' %s", function->name, function->refused);
	return function->refused != NULL;
}

static uint64_t describe(struct capture_function *function)
{
	static struct stream_text text; /* capture_lock */
	struct ts_replay_object object = { .size = sizeof(object),
					   .kind = TS_OBJECT_FUNCTION,
					   .bytes = TS_UNKNOWN };

	object.parent = module_number(function->module);
	if (!object.parent || is_refused(function) || !function_params(function) ||
	    !globals_of_module(function->module))
		return 0;
	object.number = ts_replay_new_object();
	object.name = function->name;
	object.address = (uint64_t)(uintptr_t)function->handle;
	object.details = details_of(function, &text);
	if (!object.details) {
		capture_fail("kernel '%s' has too many parameters", function->name);
		return 0;
	}
	capture_object(&object);
	function->number = object.number;
	return function->number;
}

/* What the driver is asked makes it load code, which captures of other threads forbid. */
uint64_t capture_function_number(struct capture_function *function)
{
	struct arena_mode mode;
	uint64_t number;

	if (function->number)
		return function->number;
	arena_mode_begin(&mode);
	number = describe(function);
	arena_mode_end(&mode);
	return number;
}

/* ---- handlers ---- */

static int get_function(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct capture_module *module = result ? NULL : module_of((void *)args[1]);

	if (module && args[0] && args[2])
		function_register(*(void *const *)args[0], false, module, (const char *)args[2]);
	return result;
}

static int get_kernel(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct capture_module *module = result ? NULL : module_of((void *)args[1]);

	if (module && args[0] && args[2])
		function_register(*(void *const *)args[0], true, module, (const char *)args[2]);
	return result;
}

void function_alias(struct capture_function *kernel, void *function)
{
	function_register(function, false, kernel->module, kernel->name);
}

static int get_kernel_function(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct capture_function *kernel = result ? NULL : capture_function_known((void *)args[1]);

	if (kernel && args[0])
		function_alias(kernel, *(void *const *)args[0]);
	return result;
}

const struct cuda_handler_entry capture_function_handlers[] = {
	{ "cuModuleGetFunction", get_function, CAPTURE_ALWAYS },
	{ "cuLibraryGetKernel", get_kernel, CAPTURE_ALWAYS },
	{ "cuKernelGetFunction", get_kernel_function, CAPTURE_ALWAYS },
	{ NULL, NULL, 0 },
};
