/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and libraries: which image each was loaded from. An image in read-only memory of a file
 * is referenced, as it stays there as long as the module does; others are copied.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/stream/cuda_code.h"
#include "base/local/macros.h"

#define IMAGE_AT_MOST ((uint64_t)4 << 30)
#define MODULE_SLOTS 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture_module *modules;             /* newest first */
static struct capture_module *slots[MODULE_SLOTS]; /* by handle: the newest of that slot */

static uint32_t slot_of(const void *handle)
{
	return (uint32_t)((uintptr_t)handle * 0x9e3779b97f4a7c15u >> 52) % MODULE_SLOTS;
}

struct capture_module *module_next(struct capture_module *after)
{
	return after ? after->next : __atomic_load_n(&modules, __ATOMIC_ACQUIRE);
}

bool module_is_live(const struct capture_module *module)
{
	return !__atomic_load_n(&module->is_gone, __ATOMIC_ACQUIRE) &&
	       !(module->context && module->context->is_gone);
}

/* A library outlives contexts that used it. */
static bool is_handle(const struct capture_module *module, const void *handle)
{
	return !module->base &&
	       (module->handle == handle ||
		__atomic_load_n(&module->alias, __ATOMIC_ACQUIRE) == handle) &&
	       (module->is_library ? !__atomic_load_n(&module->is_gone, __ATOMIC_ACQUIRE)
				   : module_is_live(module));
}

struct capture_module *module_of(void *handle)
{
	struct capture_module *module = __atomic_load_n(&slots[slot_of(handle)], __ATOMIC_ACQUIRE);

	if (module && is_handle(module, handle))
		return module;
	for (module = module_next(NULL); module; module = module->next)
		if (is_handle(module, handle))
			return module;
	return NULL;
}

void module_alias(void *handle, struct capture_module *library)
{
	__atomic_store_n(&library->alias, handle, __ATOMIC_RELEASE);
	__atomic_store_n(&slots[slot_of(handle)], library, __ATOMIC_RELEASE);
}

/* ---- images ---- */

struct search {
	uintptr_t address, end;
	bool is_found;
};

static int look_at_file(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD && !(part->p_flags & PF_W) &&
		    search->address >= start && search->end <= start + part->p_filesz)
			search->is_found = true;
	}
	return search->is_found;
}

static bool is_constant_memory(const void *image, uint64_t bytes)
{
	struct search search = { (uintptr_t)image, (uintptr_t)image + bytes, false };

	dl_iterate_phdr(look_at_file, &search);
	return search.is_found;
}

static void set_image(struct capture_module *module, const void *image)
{
	uint32_t magic;
	void *copy;

	memcpy(&magic, image, 1); /* PTX may be shorter than a word */
	if ((magic & 0xff) == (TS_FATBIN_WRAPPER_MAGIC & 0xff)) {
		memcpy(&magic, image, sizeof(magic));
		if (magic == TS_FATBIN_WRAPPER_MAGIC)
			memcpy(&image, (const char *)image + 8, sizeof(image));
	}
	module->image_bytes = image ? ts_image_length(image) : 0;
	if (!module->image_bytes || module->image_bytes > IMAGE_AT_MOST) {
		snprintf(module->refused, sizeof(module->refused), "unknown format of a module");
		return;
	}
	module->kind = ts_image_kind(image, module->image_bytes);
	if (is_constant_memory(image, module->image_bytes)) {
		module->image = image;
		return;
	}
	copy = malloc(module->image_bytes);
	if (!copy) {
		snprintf(module->refused, sizeof(module->refused),
			 "no memory to keep an image of %llu bytes",
			 (unsigned long long)module->image_bytes);
		return;
	}
	module->image = memcpy(copy, image, module->image_bytes);
	module->owns_image = true;
}

static void *read_file(const char *path, uint64_t *ret_bytes)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t used = 0;
	struct stat state;
	char *image = NULL;

	if (file < 0)
		return NULL;
	if (!fstat(file, &state) && S_ISREG(state.st_mode) &&
	    (uint64_t)state.st_size <= IMAGE_AT_MOST)
		image = calloc(1, (size_t)state.st_size + 1); /* PTX needs a NUL */
	while (image && used < (uint64_t)state.st_size) {
		ssize_t got = read(file, image + used, (uint64_t)state.st_size - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		used += (uint64_t)got;
	}
	close(file);
	*ret_bytes = used;
	return image;
}

static void set_file(struct capture_module *module, const char *path)
{
	uint64_t bytes = 0;
	char *image = read_file(path, &bytes);

	module->path = strdup(path);
	module->kind = image ? ts_image_kind(image, bytes) : TS_IMAGE_UNKNOWN;
	if (module->kind == TS_IMAGE_UNKNOWN || module->kind == TS_IMAGE_WRAPPER) {
		snprintf(module->refused, sizeof(module->refused),
			 "a module's file that cannot be read");
		free(image);
		return;
	}
	module->image = image;
	module->image_bytes = bytes + (module->kind == TS_IMAGE_PTX);
	module->owns_image = true;
}

/* ---- options ---- */

enum jit_class { JIT_REFUSED, JIT_NUMBER, JIT_HARMLESS };

/* By CUjit_option: values are numbers, pointers to texts, or where the driver answers. */
static enum jit_class jit_class(uint32_t id)
{
	switch (id) {
	case 0:  /* registers */
	case 1:  /* threads per block; the driver answers in its place */
	case 7:  /* optimization level */
	case 8:  /* target from context */
	case 9:  /* target */
	case 10: /* fallback strategy */
	case 11: /* debug information */
	case 13: /* line information */
	case 14: /* cache mode */
	case 15: /* new code generation */
	case 20: /* link-time optimization */
	case 21: /* flush denormals */
	case 22: /* division */
	case 23: /* square root */
	case 24: /* multiply-add */
	case 30: /* position-independent code */
	case 31: /* blocks per processor */
	case 32: /* threads per block, at most */
	case 33: /* override directives */
		return JIT_NUMBER;
	case 2: /* wall time */
	case 3: /* buffers of the log and their sizes */
	case 4:
	case 5:
	case 6:
	case 12: /* verbose log */
	case 16: /* internal */
	case 34: /* threads that compile */
		return JIT_HARMLESS;
	default:
		return JIT_REFUSED;
	}
}

/* Before the call: the driver writes answers into `values`. */
static void read_jit(struct capture_module *module, uint64_t count, const uint32_t *options,
		     void *const *values)
{
	for (uint64_t i = 0; options && values && i < count; i++) {
		enum jit_class class = jit_class(options[i]);

		if (class == JIT_HARMLESS)
			continue;
		if (class == JIT_REFUSED || module->jit_count == CODE_JIT_OPTIONS) {
			snprintf(module->refused, sizeof(module->refused), "JIT option %u",
				 options[i]);
			return;
		}
		module->jit[module->jit_count++] =
			(struct capture_jit_option){ options[i], (uint32_t)(uintptr_t)values[i] };
	}
}

static void read_library_options(struct capture_module *module, uint64_t count,
				 const uint32_t *options)
{
	for (uint64_t i = 0; options && i < count; i++)
		if (options[i] > 1) /* a table of host functions; that the image stays in memory */
			snprintf(module->refused, sizeof(module->refused), "library option %u",
				 options[i]);
}

/* ---- registry ---- */

static void insert(struct capture_module *module)
{
	pthread_mutex_lock(&lock);
	module->next = modules;
	__atomic_store_n(&modules, module, __ATOMIC_RELEASE);
	if (!module->base)
		__atomic_store_n(&slots[slot_of(module->handle)], module, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

/* Readers of the list may stand at it, so it keeps its successor. */
static void end(struct capture_module *module)
{
	for (struct capture_module *instance = module->instances; instance;
	     instance = instance->next_instance)
		end(instance);
	__atomic_store_n(&module->is_gone, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
	for (struct capture_module **at = &modules; *at; at = &(*at)->next) {
		if (*at != module)
			continue;
		__atomic_store_n(at, module->next, __ATOMIC_RELEASE);
		break;
	}
	pthread_mutex_unlock(&lock);
	functions_unload(module);
}

static void add(struct capture_module *module, void *handle)
{
	struct capture_module *old = module_of(handle);

	if (old) /* the driver reuses handles: it ended without our seeing it */
		end(old);
	module->handle = handle;
	insert(module);
}

static struct capture_module *new_module(bool is_library)
{
	struct capture_module *module = calloc(1, sizeof(*module));

	if (module)
		module->is_library = is_library;
	return module;
}

enum source { FROM_MEMORY, FROM_FILE };

/* The image is read when the driver has accepted it. */
static int finish(struct cuda_call *call, uintptr_t *args, struct capture_module *module,
		  enum source source)
{
	int result = cuda_invoke(call, args);
	void *const *handle = (void *const *)args[0];

	if (result || !module || !handle || !args[1]) {
		free(module);
		return result;
	}
	if (!module->is_library)
		module->context = capture_context_current();
	if (source == FROM_FILE)
		set_file(module, (const char *)args[1]);
	else
		set_image(module, (const void *)args[1]);
	add(module, *handle);
	return result;
}

static int load_data(struct cuda_call *call, uintptr_t *args)
{
	return finish(call, args, new_module(false), FROM_MEMORY);
}

static int load_data_options(struct cuda_call *call, uintptr_t *args)
{
	struct capture_module *module = new_module(false);

	if (module)
		read_jit(module, (uint32_t)args[2], (const uint32_t *)args[3],
			 (void *const *)args[4]);
	return finish(call, args, module, FROM_MEMORY);
}

static int load_file(struct cuda_call *call, uintptr_t *args)
{
	return finish(call, args, new_module(false), FROM_FILE);
}

static int load_library(struct cuda_call *call, uintptr_t *args, enum source source)
{
	struct capture_module *module = new_module(true);

	if (module) {
		read_jit(module, (uint32_t)args[4], (const uint32_t *)args[2],
			 (void *const *)args[3]);
		read_library_options(module, (uint32_t)args[7], (const uint32_t *)args[5]);
	}
	return finish(call, args, module, source);
}

static int load_library_data(struct cuda_call *call, uintptr_t *args)
{
	return load_library(call, args, FROM_MEMORY);
}

static int load_library_file(struct cuda_call *call, uintptr_t *args)
{
	return load_library(call, args, FROM_FILE);
}

static void forget(struct capture_module *module)
{
	globals_unload(module);
	for (struct capture_function *function = module->functions; function;
	     function = function->next) {
		free(function->seen);
		function->seen = NULL;
	}
	ts_code_facts_release(&module->facts);
	module->has_facts = false;
	if (module->owns_image)
		free((void *)(uintptr_t)module->image);
	module->image = NULL;
}

/* In an open window its object stays: earlier launches need it. */
static int unload(struct cuda_call *call, uintptr_t *args)
{
	struct capture_module *module = module_of((void *)args[0]);
	int result;

	capture_lock();
	result = cuda_invoke(call, args);
	if (!result && module) {
		end(module);
		for (struct capture_module *instance = module->instances; instance;
		     instance = instance->next_instance)
			forget(instance);
		forget(module);
	}
	capture_unlock();
	return result;
}

static int get_module(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);
	struct capture_module *library = module_of((void *)args[1]);

	if (!result && library && args[0])
		module_alias(*(void *const *)args[0], library);
	return result;
}

/* ---- in windows ---- */

static struct capture_module *new_instance(struct capture_module *base,
					   struct capture_context *context)
{
	struct capture_module *instance = new_module(true);

	if (!instance)
		return NULL;
	instance->base = base;
	instance->handle = base->handle;
	instance->context = context;
	instance->kind = base->kind;
	instance->image = base->image;
	instance->image_bytes = base->image_bytes;
	instance->path = base->path;
	memcpy(instance->refused, base->refused, sizeof(base->refused));
	memcpy(instance->jit, base->jit, sizeof(base->jit));
	instance->jit_count = base->jit_count;
	instance->next_instance = base->instances;
	__atomic_store_n(&base->instances, instance, __ATOMIC_RELEASE);
	return instance;
}

static struct capture_module *find_instance(struct capture_module *base,
					    const struct capture_context *context)
{
	struct capture_module *instance = __atomic_load_n(&base->instances, __ATOMIC_ACQUIRE);

	while (instance && instance->context != context)
		instance = instance->next_instance;
	return instance;
}

static struct capture_module *add_instance(struct capture_module *base,
					   struct capture_context *context)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	struct capture_module *instance;

	pthread_mutex_lock(&once);
	if (!base->context)
		__atomic_store_n(&base->context, context, __ATOMIC_RELEASE);
	instance = base->context == context ? base : find_instance(base, context);
	if (!instance) {
		instance = new_instance(base, context);
		if (instance)
			insert(instance);
	}
	pthread_mutex_unlock(&once);
	return instance;
}

struct capture_module *module_in(struct capture_module *module, struct capture_context *context)
{
	struct capture_module *base = module->base ? module->base : module, *found = base;

	if (module->is_library && context &&
	    __atomic_load_n(&base->context, __ATOMIC_ACQUIRE) != context) {
		found = find_instance(base, context);
		if (!found)
			found = add_instance(base, context);
	}
	if (found && !__atomic_load_n(&found->is_used, __ATOMIC_RELAXED))
		__atomic_store_n(&found->is_used, true, __ATOMIC_RELEASE);
	return found;
}

#define COMPUTE_MAJOR 75 /* CUdevice_attribute */
#define COMPUTE_MINOR 76

void module_compute(const struct capture_module *module, int *ret_major, int *ret_minor)
{
	int device = module->context ? module->context->device->ordinal : 0;

	*ret_major = *ret_minor = 0;
	cu.DeviceGetAttribute(ret_major, COMPUTE_MAJOR, device);
	cu.DeviceGetAttribute(ret_minor, COMPUTE_MINOR, device);
}

const struct ts_code_facts *module_facts(struct capture_module *module, char *why, size_t bytes)
{
	int major, minor;

	if (!module->has_facts) {
		if (!module->image) {
			snprintf(why, bytes, "%s",
				 module->refused[0] ? module->refused
						    : "a module whose image is not known");
			return NULL;
		}
		module_compute(module, &major, &minor);
		ts_code_facts_read(&module->facts, module->image, module->image_bytes,
				   (unsigned int)major, (unsigned int)minor);
		module->has_facts = true;
	}
	if (!module->facts.unknown)
		return &module->facts;
	snprintf(why, bytes, "code of a %s that cannot be read: %s",
		 module->is_library ? "library" : "module", module->facts.unknown);
	return NULL;
}

/* Why no window can have it; NULL: none. */
static const char *module_refused(struct capture_module *module, char *why, size_t bytes)
{
	const struct ts_code_facts *facts;

	if (module->refused[0])
		return module->refused;
	facts = module_facts(module, why, bytes);
	if (!facts)
		return why;
	for (size_t i = 0; i < facts->variable_count; i++) {
		if (!facts->variables[i].is_managed)
			continue;
		snprintf(why, bytes, "managed memory: variable '%s'", facts->variables[i].name);
		return why;
	}
	if (!facts->texture)
		return NULL;
	snprintf(why, bytes, "texture reference '%s'", facts->texture);
	return why;
}

const char *capture_modules_refused(void)
{
	static char why[256];

	for (struct capture_module *module = module_next(NULL); module; module = module->next) {
		const char *refused = module->is_used && module_is_live(module)
					      ? module_refused(module, why, sizeof(why))
					      : NULL;

		if (refused)
			return refused;
	}
	return NULL;
}

/* A library stays: it is loaded anew into other contexts. */
void capture_modules_context_gone(const struct capture_context *context)
{
	struct capture_module *module, *next;

	capture_lock();
	for (module = module_next(NULL); module; module = next) {
		next = module_next(module);
		if (module->context != context)
			continue;
		if (module->is_library) {
			globals_unload(module);
			continue;
		}
		end(module);
		forget(module);
	}
	capture_unlock();
}

static const char *details_of(const struct capture_module *module, struct stream_text *text)
{
	stream_text_begin(text);
	stream_text_string(text, "from", ts_image_kind_name(module->kind));
	if (module->is_library)
		stream_text_true(text, "library");
	if (module->jit_count)
		stream_text_open(text, "jit", '[');
	for (uint32_t i = 0; i < module->jit_count; i++) {
		stream_text_open(text, NULL, '[');
		stream_text_item(text, module->jit[i].id);
		stream_text_item(text, module->jit[i].value);
		stream_text_close(text, '[');
	}
	if (module->jit_count)
		stream_text_close(text, '[');
	if (module->path)
		stream_text_part(text, "path", module->path, 1024);
	return stream_text_end(text);
}

uint64_t module_number(struct capture_module *module)
{
	static struct stream_text text; /* capture_lock */
	struct ts_replay_object object = { .size = sizeof(object), .kind = TS_OBJECT_MODULE };
	char why[256];
	const char *refused;

	if (module->number)
		return module->number;
	module_in(module, module->context ? module->context : capture_context_current());
	refused = module_refused(module, why, sizeof(why));
	if (refused || !module->context) {
		capture_fail("%s", refused ? refused : "a module without a context");
		return 0;
	}
	object.parent = capture_context_number(module->context);
	if (module->base)
		module->blob = module->base->blob;
	if (!module->blob)
		module->blob = capture_blob(module->image, module->image_bytes);
	if (module->base)
		module->base->blob = module->blob;
	module->number = ts_replay_new_object();
	object.number = module->number;
	object.address = (uint64_t)(uintptr_t)module->handle;
	object.blob = module->blob;
	object.bytes = TS_UNKNOWN;
	object.details = details_of(module, &text);
	capture_object(&object);
	return module->number;
}

void capture_modules_forget(void)
{
	capture_launch_forget();
	for (struct capture_module *module = module_next(NULL); module; module = module->next) {
		module->number = 0;
		module->has_globals = false;
		for (struct capture_function *function = module->functions; function;
		     function = function->next)
			function->number = 0;
		for (size_t i = 0; i < module->global_count; i++)
			module->globals[i].number = 0;
	}
}

const struct cuda_handler_entry capture_module_handlers[] = {
	{ "cuModuleLoad", load_file, CAPTURE_ALWAYS },
	{ "cuModuleLoadData", load_data, CAPTURE_ALWAYS },
	{ "cuModuleLoadDataEx", load_data_options, CAPTURE_ALWAYS },
	{ "cuModuleLoadFatBinary", load_data, CAPTURE_ALWAYS },
	{ "cuLibraryLoadData", load_library_data, CAPTURE_ALWAYS },
	{ "cuLibraryLoadFromFile", load_library_file, CAPTURE_ALWAYS },
	{ "cuModuleUnload", unload, CAPTURE_ALWAYS },
	{ "cuLibraryUnload", unload, CAPTURE_ALWAYS },
	{ "cuLibraryGetModule", get_module, CAPTURE_ALWAYS },
	{ NULL, NULL, 0 },
};
