/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules (programs) and functions (kernels): sources and options from the first call on, and
 * binaries where a source is not enough: programs created from binaries, linked programs, and
 * sources that may name files, which a replay does not compile.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"
#include "code/local/opencl_c.h"

#define LOG_BYTES 2000u /* of a failed build */

/* ---- source ---- */

/* Does a replay refuse to compile this source? */
static bool is_refused(const char *source, size_t bytes)
{
	char *normal = malloc(bytes + 1);
	size_t length;
	bool refused = !normal || ts_opencl_c_normalize(source, bytes, normal, &length);

	free(normal);
	return refused;
}

static char *join(cl_uint count, const char **strings, const size_t *lengths, size_t *ret_bytes)
{
	size_t bytes = 0;
	char *text;

	for (cl_uint i = 0; i < count; i++)
		bytes += lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
	text = malloc(bytes + 1);
	*ret_bytes = bytes;
	if (!text)
		return NULL;
	text[bytes] = 0;
	bytes = 0;
	for (cl_uint i = 0; i < count; i++) {
		size_t length = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);

		memcpy(text + bytes, strings[i], length);
		bytes += length;
	}
	return text;
}

/* ---- creation and release ---- */

struct ocl_stream *stream_module_context(const struct ocl_object *program)
{
	const struct ocl_object *object = program->context;
	cl_context context = NULL;

	if (!object && ocl.next.clGetProgramInfo(program->handle, CL_PROGRAM_CONTEXT,
						 sizeof(context), &context, NULL) == CL_SUCCESS)
		object = ocl_find(OCL_CONTEXT, context);
	return stream_object_of(object);
}

static struct ocl_stream *new_module(struct ocl_object *program, const char *from)
{
	struct ocl_stream *stream =
		stream_object_new(OCL_PROGRAM, program->handle, stream_module_context(program));

	if (!stream)
		return NULL;
	stream->as.module.from = from;
	pthread_mutex_init(&stream->as.module.lock, NULL);
	program->stream = stream;
	return stream;
}

void stream_created_source(struct ocl_object *program, cl_uint count, const char **strings,
			   const size_t *lengths)
{
	struct ocl_stream *stream = new_module(program, "source");
	struct stream_module *module;

	if (!stream)
		return;
	module = &stream->as.module;
	module->source = join(count, strings, lengths, &module->source_bytes);
	if (!module->source)
		stream->unreplayable = strdup("a program without memory for its source");
	else
		module->is_refused = is_refused(module->source, module->source_bytes);
}

static void add_binary(struct stream_module *module, struct ocl_stream *device, const void *data,
		       size_t bytes)
{
	struct stream_binary *binary = &module->binaries[module->binary_count];

	binary->data = device && bytes ? malloc(bytes) : NULL;
	if (!binary->data)
		return;
	memcpy(binary->data, data, bytes);
	binary->bytes = bytes;
	binary->device = stream_object_hold(device);
	module->binary_count++;
}

void stream_created_binary(struct ocl_object *program, cl_uint count, const cl_device_id *devices,
			   const size_t *lengths, const unsigned char **binaries)
{
	struct ocl_stream *stream = new_module(program, "binary");

	if (!stream)
		return;
	stream->as.module.binaries = calloc(count, sizeof(struct stream_binary));
	for (cl_uint i = 0; stream->as.module.binaries && i < count; i++)
		add_binary(&stream->as.module, stream_device_of(devices[i]), binaries[i],
			   lengths[i]);
	if (stream->as.module.binary_count != count && !stream->unreplayable)
		stream->unreplayable = strdup("a program without memory for its binaries");
}

static void release_binaries(struct stream_module *module)
{
	for (uint32_t i = 0; i < module->binary_count; i++) {
		stream_object_drop(module->binaries[i].device);
		free(module->binaries[i].data);
	}
	free(module->binaries);
	module->binaries = NULL;
	module->binary_count = 0;
}

static void release_devices(struct stream_module *module)
{
	for (uint32_t i = 0; i < module->device_count; i++)
		stream_object_drop(module->devices[i]);
	free(module->devices);
	module->devices = NULL;
	module->device_count = 0;
}

void stream_module_release(struct stream_module *module)
{
	release_binaries(module);
	release_devices(module);
	stream_signatures_free(module->signatures);
	free(module->source);
	free(module->options);
	free(module->log);
	pthread_mutex_destroy(&module->lock);
}

/* ---- results of a build ---- */

static cl_device_id *get_devices(cl_program program, cl_uint *ret_count)
{
	cl_device_id *devices;
	cl_uint count = 0;

	if (ocl.next.clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof(count), &count,
				      NULL) ||
	    count == 0)
		return NULL;
	devices = calloc(count, sizeof(cl_device_id));
	if (devices && ocl.next.clGetProgramInfo(program, CL_PROGRAM_DEVICES,
						 count * sizeof(cl_device_id), devices, NULL)) {
		free(devices);
		devices = NULL;
	}
	*ret_count = devices ? count : 0;
	return devices;
}

static void keep_devices(struct stream_module *module, const cl_device_id *devices, cl_uint count)
{
	release_devices(module);
	module->devices = calloc(count, sizeof(struct ocl_stream *));
	for (cl_uint i = 0; module->devices && i < count; i++) {
		struct ocl_stream *device = stream_device_of(devices[i]);

		if (device)
			module->devices[module->device_count++] = stream_object_hold(device);
	}
}

/* One buffer for all binaries, and their offsets. */
static void keep_binaries(struct stream_module *module, cl_program program,
			  const cl_device_id *devices, cl_uint count)
{
	size_t *sizes = calloc(count, sizeof(size_t));
	unsigned char **targets = calloc(count, sizeof(unsigned char *)), *all = NULL;

	if (sizes && targets &&
	    ocl.next.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof(size_t),
				      sizes, NULL) == CL_SUCCESS) {
		size_t sum = 0;

		for (cl_uint i = 0; i < count; i++)
			sum += sizes[i];
		all = malloc(sum + 1);
	}
	for (cl_uint i = 0, at = 0; all && i < count; at += sizes[i++])
		targets[i] = all + at;
	release_binaries(module);
	module->binaries = calloc(count, sizeof(struct stream_binary));
	if (all && module->binaries &&
	    ocl.next.clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof(unsigned char *),
				      targets, NULL) == CL_SUCCESS) {
		for (cl_uint i = 0; i < count; i++)
			add_binary(module, stream_device_of(devices[i]), targets[i], sizes[i]);
	}
	free(all);
	free(targets);
	free(sizes);
}

static void keep_log(struct stream_module *module, cl_program program, cl_device_id device)
{
	size_t bytes = 0;

	free(module->log);
	module->log = NULL;
	if (ocl.next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL,
					   &bytes) ||
	    bytes == 0 || bytes > 1u << 24)
		return;
	module->log = calloc(1, bytes + 1);
	if (module->log)
		ocl.next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes,
					       module->log, NULL);
}

static enum stream_build build_state(cl_program program, cl_device_id device, cl_int result)
{
	cl_build_status status = CL_BUILD_ERROR;
	cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_EXECUTABLE;

	ocl.next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
				       &status, NULL);
	if (status == CL_BUILD_IN_PROGRESS)
		return STREAM_GIVEN;
	if (result != CL_SUCCESS || status == CL_BUILD_ERROR)
		return STREAM_FAILED;
	if (ocl.next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BINARY_TYPE, sizeof(type),
					   &type, NULL) == CL_SUCCESS &&
	    (type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT ||
	     type == CL_PROGRAM_BINARY_TYPE_LIBRARY))
		return STREAM_COMPILED;
	return STREAM_BUILT;
}

static bool needs_binaries(const struct stream_module *module)
{
	return module->is_refused || strcmp(module->from, "linked") == 0;
}

/* ---- emitting ---- */

bool stream_module_is_emitted(const struct ocl_stream *stream)
{
	return stream->unreplayable || stream->as.module.build != STREAM_UNBUILT;
}

static void emit_load(const struct ocl_stream *stream)
{
	const struct stream_module *module = &stream->as.module;
	struct stream_text text;
	struct ts_replay_command row = stream_row(TS_COMMAND_LOAD);

	row.object = stream->number;
	stream_text_begin(&text);
	stream_text_string(&text, "call",
			   strcmp(module->from, "linked") == 0 ? "clLinkProgram"
							       : "clBuildProgram");
	if (module->options)
		stream_text_part(&text, "options", module->options, 4000);
	if (module->build == STREAM_FAILED) {
		stream_text_int(&text, "result", module->result);
		if (module->log)
			stream_text_part(&text, "log", module->log, LOG_BYTES);
	}
	row.details = stream_text_end(&text);
	ts_replay_append(&row);
}

/* Emits its row, again if the window has one, and what was done to it. */
static void emit_module(struct ocl_stream *stream)
{
	if (!ts_replay_is_open() || !ts_replay_lock_window())
		return;
	stream->window = 0;
	stream_object_emit(stream, 0);
	if (stream->as.module.build == STREAM_BUILT || stream->as.module.build == STREAM_FAILED)
		emit_load(stream);
	ts_replay_unlock();
}

static void emit_binaries(const struct stream_module *module, struct stream_text *text)
{
	stream_text_open(text, "binaries", '[');
	for (uint32_t i = 0; i < module->binary_count; i++) {
		uint64_t blob = ts_replay_blob(module->binaries[i].data, module->binaries[i].bytes);

		stream_text_open(text, NULL, '{');
		stream_text_uint(text, "device", module->binaries[i].device->number);
		stream_text_uint(text, "blob", blob);
		stream_text_close(text, '{');
	}
	stream_text_close(text, '[');
}

void stream_module_emit(struct ocl_stream *stream, struct stream_text *text)
{
	struct stream_module *module = &stream->as.module;

	stream_text_string(text, "from", module->from);
	if (module->options)
		stream_text_string(text, "options", module->options);
	stream_text_open(text, "devices", '[');
	for (uint32_t i = 0; i < module->device_count; i++)
		stream_text_item(text, module->devices[i]->number);
	stream_text_close(text, '[');
	if (module->build == STREAM_COMPILED)
		stream_text_true(text, "compiled");
	if (module->build == STREAM_FAILED) {
		char failed[32];

		snprintf(failed, sizeof(failed), "build error %" PRId32, module->result);
		stream_text_string(text, "failed", failed);
	}
	if (module->source && module->source_window != ts_replay_window()) {
		module->source_blob = ts_replay_blob(module->source, module->source_bytes);
		module->source_window = ts_replay_window();
	}
	if (module->binary_count)
		emit_binaries(module, text);
}

/* ---- builds ---- */

static void look_at_build(struct ocl_stream *stream)
{
	struct stream_module *module = &stream->as.module;
	cl_uint count = 0;
	cl_device_id *devices = get_devices(stream->handle, &count);

	if (!devices)
		return;
	module->build = build_state(stream->handle, devices[0], module->result);
	keep_devices(module, devices, count);
	if (module->build == STREAM_FAILED) {
		if (module->result == CL_SUCCESS)
			module->result = CL_BUILD_PROGRAM_FAILURE;
		keep_log(module, stream->handle, devices[0]);
	} else if (module->build == STREAM_BUILT && needs_binaries(module)) {
		keep_binaries(module, stream->handle, devices, count);
		/* The files that it may include are still there now. */
		if (ts_replay_is_open())
			stream_module_learn(stream);
	}
	free(devices);
}

void stream_module_settle(struct ocl_stream *stream)
{
	if (stream->as.module.build != STREAM_GIVEN)
		return;
	look_at_build(stream);
	if (stream->as.module.build != STREAM_GIVEN)
		emit_module(stream);
}

/* Functions created from the earlier build keep their module: this build is another one. */
static struct ocl_stream *replace_module(struct ocl_object *program)
{
	struct ocl_stream *old = program->stream;
	const struct stream_module *from = &old->as.module;
	struct ocl_stream *stream = new_module(program, from->from);
	struct stream_module *module;

	if (!stream)
		return old;
	module = &stream->as.module;
	module->source = from->source ? malloc(from->source_bytes + 1) : NULL;
	if (module->source)
		memcpy(module->source, from->source, from->source_bytes + 1);
	module->source_bytes = module->source ? from->source_bytes : 0;
	module->is_refused = from->is_refused;
	if (strcmp(from->from, "binary") == 0) {
		module->binaries = calloc(from->binary_count, sizeof(struct stream_binary));
		for (uint32_t i = 0; module->binaries && i < from->binary_count; i++)
			add_binary(module, from->binaries[i].device, from->binaries[i].data,
				   from->binaries[i].bytes);
	}
	if (old->unreplayable)
		stream->unreplayable = strdup(old->unreplayable);
	stream_object_drop(old);
	return stream;
}

void stream_built(struct ocl_object *program, const char *options, cl_int result)
{
	struct ocl_stream *stream = program->stream;

	if (!stream)
		return;
	if (stream->as.module.build != STREAM_UNBUILT)
		stream = replace_module(program);
	free(stream->as.module.options);
	stream->as.module.options = options && options[0] ? strdup(options) : NULL;
	stream->as.module.result = result;
	stream->as.module.build = STREAM_GIVEN;
	look_at_build(stream);
	if (stream->as.module.build != STREAM_GIVEN)
		emit_module(stream);
}

void stream_linked(struct ocl_object *program, const char *options)
{
	if (new_module(program, "linked"))
		stream_built(program, options, CL_SUCCESS);
}

/* ---- functions ---- */

static bool copy_argument(struct stream_argument *to, const struct stream_argument *from)
{
	*to = *from;
	if (!from->is_set || from->is_svm || from->is_null || from->bytes <= sizeof(to->value))
		return true;
	to->value.more = malloc(from->bytes);
	if (!to->value.more) {
		to->is_set = false;
		return false;
	}
	memcpy(to->value.more, from->value.more, from->bytes);
	return true;
}

static void copy_settings(struct stream_function *to, struct stream_function *from)
{
	pthread_mutex_lock(&from->lock);
	for (uint32_t i = 0; i < to->count && i < from->count; i++)
		copy_argument(&to->arguments[i], &from->arguments[i]);
	to->reaches_all = from->reaches_all;
	to->pointers = from->pointers ? malloc(from->pointer_count * sizeof(void *)) : NULL;
	to->pointer_count = from->pointer_count;
	if (to->pointers)
		memcpy(to->pointers, from->pointers, from->pointer_count * sizeof(void *));
	pthread_mutex_unlock(&from->lock);
}

static bool fill_function(struct stream_function *function, cl_kernel kernel, const char *name)
{
	cl_uint count = 0;

	pthread_mutex_init(&function->lock, NULL);
	function->name = strdup(name ? name : "");
	ocl.next.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
	function->arguments = calloc((size_t)count + 1, sizeof(struct stream_argument));
	function->count = function->arguments ? count : 0;
	return function->name && function->arguments;
}

void stream_created_kernel(struct ocl_object *kernel, struct ocl_object *program, const char *name,
			   const struct ocl_object *cloned_from)
{
	struct ocl_stream *module = stream_object_of(program);
	struct ocl_stream *stream;

	if (cloned_from && cloned_from->stream)
		module = cloned_from->stream->parent;
	if (module)
		stream_module_settle(module);
	stream = stream_object_new(OCL_KERNEL, kernel->handle, module);
	if (!stream)
		return;
	/* Without memory for its arguments, it is unknown. */
	if (!fill_function(&stream->as.function, kernel->handle, name)) {
		stream_object_drop(stream);
		return;
	}
	if (!module)
		stream->unreplayable = strdup("an unknown program");
	else if (module->unreplayable)
		stream->unreplayable = strdup(module->unreplayable);
	if (cloned_from && cloned_from->stream)
		copy_settings(&stream->as.function, &cloned_from->stream->as.function);
	kernel->stream = stream;
	stream_object_lock_and_emit(stream);
}
