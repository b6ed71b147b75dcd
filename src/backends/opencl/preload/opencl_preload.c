/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL calls by name, for loaders without layers (docs/replay.md, 3.1): libtracesmith-opencl.so,
 * preloaded. The first call decides where calls go.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "backends/opencl/opencl_internal.h"

#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR (-1001)
#endif

/* The loader's functions; those that it lacks are NULL. */
static cl_icd_dispatch next;
/* Where calls go: `next`, or the hooks. NULL: not decided yet. */
static const cl_icd_dispatch *way;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* This thread is deciding: what the loader calls meanwhile goes to `next`. */
static __thread bool is_deciding __attribute__((tls_model("initial-exec")));
/*
 * Code of the loader and of the agent. Oclgrind's functions call each other by name, so that they
 * reach ours from inside of a call: those are not calls of the program.
 */
static struct module {
	uintptr_t begin, end; /* of its segments */
} inner[2];

static const struct {
	const char *name;
	size_t offset;
} entries[] = {
#define NAMED(name) { #name, offsetof(cl_icd_dispatch, name) },
#define OCL_INT(how, name, parameters, arguments) NAMED(name)
#define OCL_POINTER(type, name, parameters, arguments) NAMED(name)
#define OCL_VALUE(type, name, parameters, arguments) NAMED(name)
#define OCL_VOID(name, parameters, arguments) NAMED(name)
#define OCL_MAKES(type, name, parameters, arguments, kind, what) NAMED(name)
#define OCL_RETAIN(name, type, kind) NAMED(name)
#define OCL_RELEASE(name, type, kind) NAMED(name)
#define OCL_COMMAND(name, parameters, arguments, what, kind, copy_kind) NAMED(name)
#define OCL_WINDOWS(name)
#include "backends/opencl/calls/opencl_calls.def"
};

/*
 * A loader that was loaded with a plugin is not in the program's global scope: looks it up by name.
 */
static void find_next(void)
{
	void *loader = dlsym(RTLD_NEXT, "clGetPlatformIDs")
			       ? RTLD_NEXT
			       : dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);

	for (size_t i = 0; loader && i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *function = dlsym(loader, entries[i].name);

		memcpy((char *)&next + entries[i].offset, &function, sizeof(function));
	}
}

struct search {
	uintptr_t address;
	struct module module;
};

static int look_at_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;
	struct module module = { UINTPTR_MAX, 0 };

	(void)size;
	for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		module.begin = begin < module.begin ? begin : module.begin;
		if (begin + segment->p_memsz > module.end)
			module.end = begin + segment->p_memsz;
	}
	if (search->address < module.begin || search->address >= module.end)
		return 0;
	search->module = module;
	return 1;
}

/* The module with that function; an empty range if there is none. */
static struct module module_of(const void *function)
{
	struct search search = { .address = (uintptr_t)function };

	dl_iterate_phdr(look_at_module, &search);
	return search.module;
}

static bool is_inner(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	return (at >= inner[0].begin && at < inner[0].end) ||
	       (at >= inner[1].begin && at < inner[1].end);
}

/*
 * A loader with layers has loaded them when its first call returns. If ours is among them, it has
 * the hooks, and we only forward.
 */
static void decide(void)
{
	const cl_icd_dispatch *hooks = NULL;
	cl_uint count = 0;

	is_deciding = true;
	find_next();
	if (next.clGetPlatformIDs) {
		next.clGetPlatformIDs(0, NULL, &count);
		hooks = ts_opencl_preload(&next);
		inner[0] = module_of((const void *)next.clGetPlatformIDs);
		inner[1] = module_of((const void *)ts_opencl_preload);
	}
	is_deciding = false;
	__atomic_store_n(&way, hooks ? hooks : &next, __ATOMIC_RELEASE);
}

/* `caller`: an address in the code that calls us. */
static const cl_icd_dispatch *choose(const void *caller)
{
	const cl_icd_dispatch *chosen = __atomic_load_n(&way, __ATOMIC_ACQUIRE);

	if (chosen)
		return is_inner(caller) ? &next : chosen;
	if (is_deciding)
		return &next;
	pthread_mutex_lock(&lock);
	if (!__atomic_load_n(&way, __ATOMIC_ACQUIRE))
		decide();
	pthread_mutex_unlock(&lock);
	return way;
}

/* ---- the names ---- */

/* For functions that the loader lacks; without any loader, there are no platforms. */
static cl_int missing(void)
{
	return next.clGetPlatformIDs ? CL_INVALID_OPERATION : CL_PLATFORM_NOT_FOUND_KHR;
}

/*
 * Exports our function under that name. It has another name in C, because headers declare this one.
 */
#define NAME(type, name, parameters)                               \
	type CL_API_CALL preload_##name parameters __asm__(#name); \
	type CL_API_CALL preload_##name parameters

#define OCL_INT(how, name, parameters, arguments)                                    \
	NAME(cl_int, name, parameters)                                               \
	{                                                                            \
		const cl_icd_dispatch *chosen = choose(__builtin_return_address(0)); \
                                                                                     \
		return chosen->name ? chosen->name arguments : missing();            \
	}
#define OCL_POINTER(type, name, parameters, arguments)                               \
	NAME(type, name, parameters)                                                 \
	{                                                                            \
		const cl_icd_dispatch *chosen = choose(__builtin_return_address(0)); \
                                                                                     \
		if (chosen->name)                                                    \
			return chosen->name arguments;                               \
		if (ret_error)                                                       \
			*ret_error = missing();                                      \
		return NULL;                                                         \
	}
#define OCL_MAKES(type, name, parameters, arguments, kind, what) \
	OCL_POINTER(type, name, parameters, arguments)
#define OCL_VALUE(type, name, parameters, arguments)                                 \
	NAME(type, name, parameters)                                                 \
	{                                                                            \
		const cl_icd_dispatch *chosen = choose(__builtin_return_address(0)); \
                                                                                     \
		return chosen->name ? chosen->name arguments : NULL;                 \
	}
#define OCL_VOID(name, parameters, arguments)                                        \
	NAME(void, name, parameters)                                                 \
	{                                                                            \
		const cl_icd_dispatch *chosen = choose(__builtin_return_address(0)); \
                                                                                     \
		if (chosen->name)                                                    \
			chosen->name arguments;                                      \
	}
#define OCL_RETAIN(name, type, kind) OCL_INT(HAND, name, (type handle), (handle))
#define OCL_RELEASE(name, type, kind) OCL_INT(HAND, name, (type handle), (handle))
#define OCL_COMMAND(name, parameters, arguments, what, kind, copy_kind) \
	OCL_INT(HAND, name, parameters, arguments)
#define OCL_WINDOWS(name)
#include "backends/opencl/calls/opencl_calls.def"
