/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the backend gets between a program and its driver: as a layer, whose table the loader
 * requests (CL/cl_layer.h), or through the table that opencl_preload.c passes in. Also stops it at
 * exit, while the driver still responds.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/calls/opencl_calls.h"

struct ocl ocl;
__thread uint32_t ocl_depth __attribute__((tls_model("initial-exec")));

/* A recorder requested this backend. Set by start(), before everything else. */
static bool is_started;

/* ---- the table ---- */

/* What loaders get. Entries that are NULL in the next table are NULL here, too. */
static cl_icd_dispatch table;

#define ENTRY_BYTES sizeof(void *)
#define TABLE_ENTRIES (sizeof(cl_icd_dispatch) / ENTRY_BYTES)

static const cl_icd_dispatch hooks = {
#define OCL_INT(how, name, parameters, arguments) .name = hook_##name,
#define OCL_POINTER(type, name, parameters, arguments) .name = hook_##name,
#define OCL_VALUE(type, name, parameters, arguments) .name = hook_##name,
#define OCL_VOID(name, parameters, arguments) .name = hook_##name,
#define OCL_MAKES(type, name, parameters, arguments, kind, what) .name = hook_##name,
#define OCL_RETAIN(name, type, kind) .name = hook_##name,
#define OCL_RELEASE(name, type, kind) .name = hook_##name,
#define OCL_COMMAND(name, parameters, arguments, what, kind, copy_kind) .name = hook_##name,
#define OCL_WINDOWS(name)
#include "backends/opencl/calls/opencl_calls.def"
};

static const struct {
	const char *name;
	size_t offset;
} hook_names[] = {
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

static void *entry_at(const cl_icd_dispatch *of, size_t offset)
{
	void *function;

	memcpy(&function, (const char *)of + offset, sizeof(function));
	return function;
}

void *ocl_hook(const char *name)
{
	for (size_t i = 0; i < sizeof(hook_names) / sizeof(hook_names[0]); i++)
		if (!strcmp(hook_names[i].name, name))
			return entry_at(&ocl.next, hook_names[i].offset)
				       ? entry_at(&hooks, hook_names[i].offset)
				       : NULL;
	return NULL;
}

/* The loader's table may be shorter or longer than ours. */
static void fill_table(const cl_icd_dispatch *next, size_t entries)
{
	size_t bytes = entries < TABLE_ENTRIES ? entries * ENTRY_BYTES : sizeof(table);

	memcpy(&ocl.next, next, bytes);
	for (size_t offset = 0; offset < sizeof(table); offset += ENTRY_BYTES) {
		void *function = entry_at(&ocl.next, offset), *hook = entry_at(&hooks, offset);

		if (function && hook)
			function = hook;
		memcpy((char *)&table + offset, &function, sizeof(function));
	}
}

/* The loader must stay loaded: our thread may call it at any time, and a program may close it. */
static void keep_loader(void)
{
	Dl_info info;
	void *function = entry_at(&ocl.next, offsetof(cl_icd_dispatch, clGetPlatformIDs));

	if (function && dladdr(function, &info) && info.dli_fname)
		dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void get_in(const cl_icd_dispatch *next, size_t entries, bool by_preload)
{
	fill_table(next, entries);
	ocl.by_preload = by_preload;
	ocl.replayable = ts_replay_settings()->mode != TS_REPLAY_OFF;
	keep_loader();
	__atomic_store_n(&ocl.active, 1, __ATOMIC_RELEASE);
}

/* ---- as a layer ---- */

__attribute__((visibility("default"))) cl_int CL_API_CALL
clGetLayerInfo(cl_layer_info param_name, size_t param_value_size, void *param_value,
	       size_t *param_value_size_ret)
{
	static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	static const char layer_name[] = "tracesmith";
	const void *answer = param_name == CL_LAYER_API_VERSION ? (const void *)&version
								: layer_name;
	size_t bytes = param_name == CL_LAYER_API_VERSION ? sizeof(version) : sizeof(layer_name);

	if (param_name != CL_LAYER_API_VERSION && param_name != CL_LAYER_NAME)
		return CL_INVALID_VALUE;
	if (param_value && param_value_size < bytes)
		return CL_INVALID_VALUE;
	if (param_value)
		memcpy(param_value, answer, bytes);
	if (param_value_size_ret)
		*param_value_size_ret = bytes;
	return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clInitLayer(cl_uint num_entries, const cl_icd_dispatch *target_dispatch, cl_uint *num_entries_ret,
	    const cl_icd_dispatch **layer_dispatch_ret)
{
	if (!target_dispatch || !num_entries_ret || !layer_dispatch_ret)
		return CL_INVALID_VALUE;
	if (!is_started || __atomic_load_n(&ocl.active, __ATOMIC_ACQUIRE)) {
		/* Nothing is recorded, or another loader of this process uses the layer already. */
		*num_entries_ret = num_entries;
		*layer_dispatch_ret = target_dispatch;
		return CL_SUCCESS;
	}
	get_in(target_dispatch, num_entries, false);
	*num_entries_ret = (cl_uint)TABLE_ENTRIES;
	*layer_dispatch_ret = &table;
	return CL_SUCCESS;
}

/* ---- by preload ---- */

const cl_icd_dispatch *ts_opencl_preload(const cl_icd_dispatch *next)
{
	if (!is_started || __atomic_load_n(&ocl.active, __ATOMIC_ACQUIRE))
		return NULL;
	get_in(next, TABLE_ENTRIES, true);
	return &table;
}

/* ---- exit ---- */

/*
 * May run more than once: it is registered again whenever the driver may have registered a handler,
 * and the last one runs first. Later calls of the program are still forwarded and recorded, but
 * their commands are not collected.
 */
static void exiting(void)
{
	static uint32_t is_over;

	if (__atomic_exchange_n(&is_over, 1, __ATOMIC_ACQ_REL))
		return;
	if (ocl.replayable)
		stream_stop();
	ocl_helper_stop();
}

void ocl_at_exit(void)
{
	atexit(exiting);
}

/* ---- the backend ---- */

static void fork_in_child(void)
{
	ocl_objects_forked();
	ocl_events_forked();
	ocl_helper_forked();
}

/* Again in a forked child that emits. */
static int start(void)
{
	static bool watches_forks;

	if (!watches_forks)
		pthread_atfork(NULL, NULL, fork_in_child);
	watches_forks = true;
	if (__atomic_load_n(&ocl.active, __ATOMIC_ACQUIRE))
		ocl_emit_again();
	is_started = true;
	return 0;
}

/*
 * No stop function: the exit handler has stopped the backend, or the driver may be gone and must
 * not be called.
 */
const struct ts_backend ts_opencl_backend = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_opencl_backend),
	.name = "opencl",
	.summary = "OpenCL calls and commands",
	.start = start,
};
