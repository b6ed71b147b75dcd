/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that programs look up by name. For functions of the dispatch table they get our hooks.
 * Known extension functions are wrapped, with one wrapper for each address that a driver returned,
 * because platforms have their own. Others are forwarded and named in the trace.
 */
#include <string.h>

#include <tracesmith/schema.h>

#include "backends/opencl/calls/opencl_calls.h"

/*
 * Drivers that have a function of the same name; those of further drivers are forwarded and named
 * in the trace.
 */
#define SLOTS 3
#define FOR_EACH_SLOT(make, ...) make(0, __VA_ARGS__) make(1, __VA_ARGS__) make(2, __VA_ARGS__)

typedef void (*function)(void);

/* ---- wrappers ---- */

#define WRAP_INT(slot, name, parameters, arguments)                                       \
	static cl_int CL_API_CALL name##_##slot parameters                                \
	{                                                                                 \
		static struct ts_emit_site site = TS_CALL_SITE(#name, "opencl");          \
		cl_int(CL_API_CALL *next)                                                 \
			parameters = (cl_int(CL_API_CALL *) parameters)name##_next[slot]; \
		uint64_t start = ts_now();                                                \
		cl_int result = next arguments;                                           \
                                                                                          \
		ts_accelerator_call(&site, start, 0, result);                             \
		return result;                                                            \
	}

#define WRAP_POINTER(slot, type, name, parameters, arguments)                           \
	static type CL_API_CALL name##_##slot parameters                                \
	{                                                                               \
		static struct ts_emit_site site = TS_CALL_SITE(#name, "opencl");        \
		type(CL_API_CALL *next)                                                 \
			parameters = (type(CL_API_CALL *) parameters)name##_next[slot]; \
		cl_int error = CL_SUCCESS, *wanted = ret_error;                         \
		uint64_t start = ts_now();                                              \
		type created;                                                           \
                                                                                        \
		ret_error = &error;                                                     \
		created = next arguments;                                               \
		ts_accelerator_call(&site, start, 0, error);                            \
		ocl_give_error(wanted, error);                                          \
		return created;                                                         \
	}

#define WRAP_COMMAND(slot, name, parameters, arguments, what, kind, copy_kind)            \
	static cl_int CL_API_CALL name##_##slot parameters                                \
	{                                                                                 \
		cl_int(CL_API_CALL *next)                                                 \
			parameters = (cl_int(CL_API_CALL *) parameters)name##_next[slot]; \
		if (!ocl_is_watched())                                                    \
			return next arguments;                                            \
		struct ocl_command command = { .verb = OCL_OTHER };                       \
                                                                                          \
		OCL_SITES(&command, #name, what, "other", kind, copy_kind);               \
		ocl_give(&command, queue, wait_count, waits, event);                      \
		event = command.event_out;                                                \
		return ocl_given(&command, next arguments);                               \
	}

#define EXT_INT(name, parameters, arguments) \
	static function name##_next[SLOTS];  \
	FOR_EACH_SLOT(WRAP_INT, name, parameters, arguments)
#define EXT_POINTER(type, name, parameters, arguments) \
	static function name##_next[SLOTS];            \
	FOR_EACH_SLOT(WRAP_POINTER, type, name, parameters, arguments)
#define EXT_COMMAND(name, parameters, arguments, what, kind, copy_kind) \
	static function name##_next[SLOTS];                             \
	FOR_EACH_SLOT(WRAP_COMMAND, name, parameters, arguments, what, kind, copy_kind)
#include "backends/opencl/calls/opencl_extensions.def"

/* Queues created by an extension are ordinary queues. */
#define WRAP_QUEUE(slot, unused)                                                                 \
	static cl_command_queue CL_API_CALL clCreateCommandQueueWithPropertiesKHR_##slot(        \
		cl_context context, cl_device_id device, const cl_queue_properties *properties,  \
		cl_int *ret_error)                                                               \
	{                                                                                        \
		struct ocl_call call;                                                            \
		cl_command_queue queue;                                                          \
                                                                                                 \
		OCL_BEGIN(&call, "clCreateCommandQueueWithPropertiesKHR");                       \
		queue = ocl_queue_with_list(                                                     \
			&call, (ocl_make_queue)clCreateCommandQueueWithPropertiesKHR_next[slot], \
			context, device, properties, ret_error);                                 \
		ocl_end(&call);                                                                  \
		return queue;                                                                    \
	}
static function clCreateCommandQueueWithPropertiesKHR_next[SLOTS];
FOR_EACH_SLOT(WRAP_QUEUE, 0)

/*
 * A command buffer runs in the first of its queues; if none is given, in those that it was created
 * for, which we do not know.
 */
#define WRAP_COMMAND_BUFFER(slot, unused)                                                          \
	static cl_int CL_API_CALL clEnqueueCommandBufferKHR_##slot(                                \
		cl_uint num_queues, cl_command_queue *queues, void *buffer, cl_uint wait_count,    \
		const cl_event *waits, cl_event *event)                                            \
	{                                                                                          \
		cl_int(CL_API_CALL *next)(cl_uint, cl_command_queue *, void *, cl_uint,            \
					  const cl_event *, cl_event *) =                          \
			(cl_int(CL_API_CALL *)(cl_uint, cl_command_queue *, void *, cl_uint,       \
					       const cl_event *,                                   \
					       cl_event *))clEnqueueCommandBufferKHR_next[slot];   \
		if (!ocl_is_watched())                                                             \
			return next(num_queues, queues, buffer, wait_count, waits, event);         \
		struct ocl_command command = { .verb = OCL_OTHER };                                \
                                                                                                   \
		OCL_SITES(&command, "clEnqueueCommandBufferKHR", "command buffer", "other", GRAPH, \
			  UNKNOWN);                                                                \
		ocl_give(&command, num_queues &&queues ? queues[0] : NULL, wait_count, waits,      \
			 event);                                                                   \
		return ocl_given(&command, next(num_queues, queues, buffer, wait_count, waits,     \
						command.event_out));                               \
	}
static function clEnqueueCommandBufferKHR_next[SLOTS];
FOR_EACH_SLOT(WRAP_COMMAND_BUFFER, 0)

/* ---- by name ---- */

/* The next functions, and our wrapper for each. */
static const struct wrapper {
	const char *name;
	function *next;
	function wrappers[SLOTS];
} wrappers[] = {
#define WRAPPER(name) \
	{ #name, name##_next, { (function)name##_0, (function)name##_1, (function)name##_2 } },
#define EXT_INT(name, parameters, arguments) WRAPPER(name)
#define EXT_POINTER(type, name, parameters, arguments) WRAPPER(name)
#define EXT_COMMAND(name, parameters, arguments, what, kind, copy_kind) WRAPPER(name)
#include "backends/opencl/calls/opencl_extensions.def"
	WRAPPER(clCreateCommandQueueWithPropertiesKHR) WRAPPER(clEnqueueCommandBufferKHR)
};

/* Used by tools that query the loader; they neither call the device nor change anything. */
static const char *const harmless[] = { "clGetICDLoaderInfoOCLICD", "clIcdGetPlatformIDsKHR" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL: all slots are taken by other drivers. */
static function wrapper_for(const struct wrapper *wrapper, function next)
{
	function found = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < SLOTS && !found; i++) {
		if (!wrapper->next[i])
			wrapper->next[i] = next;
		if (wrapper->next[i] == next)
			found = wrapper->wrappers[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Each name once, as far as they fit. */
static bool is_named(const char *name)
{
	static char named[32][64];
	bool is_known = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]) && !is_known; i++) {
		is_known = !strncmp(named[i], name, sizeof(named[i]) - 1);
		if (!named[i][0]) {
			strncpy(named[i], name, sizeof(named[i]) - 1);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return is_known;
}

static void report_unknown(const char *name)
{
	char what[128] = "opencl function ";

	if (is_named(name))
		return;
	strncat(what, name, sizeof(what) - strlen(what) - 1);
	ts_accelerator_lost(what, 1, "unknown to this version");
	if (ocl.replayable)
		stream_unhandled(name);
}

void *ocl_extension(const char *name, void *address)
{
	void *hook = ocl_hook(name);
	function next, found = NULL;

	if (hook)
		return hook;
	memcpy(&next, &address, sizeof(next));
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]) && !found; i++)
		if (!strcmp(wrappers[i].name, name))
			found = wrapper_for(&wrappers[i], next);
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (!strcmp(harmless[i], name))
			return address;
	if (found)
		memcpy(&address, &found, sizeof(address));
	else
		report_unknown(name);
	return address;
}

void *CL_API_CALL hook_clGetExtensionFunctionAddress(const char *func_name)
{
	struct ocl_call call;
	void *address;

	OCL_BEGIN(&call, "clGetExtensionFunctionAddress");
	address = ocl.next.clGetExtensionFunctionAddress(func_name);
	ocl_emit_call(&call, CL_SUCCESS);
	if (address)
		address = ocl_extension(func_name, address);
	ocl_end(&call);
	return address;
}

void *CL_API_CALL hook_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								const char *func_name)
{
	struct ocl_call call;
	void *address;

	OCL_BEGIN(&call, "clGetExtensionFunctionAddressForPlatform");
	address = ocl.next.clGetExtensionFunctionAddressForPlatform(platform, func_name);
	ocl_emit_call(&call, CL_SUCCESS);
	if (address)
		address = ocl_extension(func_name, address);
	ocl_end(&call);
	return address;
}
