/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel arguments: tracks what is set, finds their kinds, and captures them at a launch. Kinds
 * come from the kernel itself, else from its module (capture_signatures.c), else from what the
 * value looks like.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

/* A function with longer details is stored without its parameters. */
#define PARAMETER_TEXT 7000

/* ---- setting arguments ---- */

static void clear(struct stream_argument *argument)
{
	if (argument->is_set && !argument->is_svm && !argument->is_null &&
	    argument->bytes > sizeof(argument->value))
		free(argument->value.more);
	argument->is_set = false;
}

static void set_value(struct stream_argument *argument, size_t bytes, const void *value)
{
	unsigned char *target = argument->value.bytes;

	clear(argument);
	argument->is_svm = false;
	argument->is_null = !value;
	argument->bytes = bytes;
	if (value && bytes > sizeof(argument->value)) {
		target = malloc(bytes);
		argument->value.more = target;
		if (!target)
			return;
	}
	if (value)
		memcpy(target, value, bytes);
	argument->is_set = true;
}

void stream_set_argument(struct ocl_object *kernel, cl_uint index, size_t bytes, const void *value)
{
	struct stream_function *function;

	if (!kernel->stream)
		return;
	function = &kernel->stream->as.function;
	pthread_mutex_lock(&function->lock);
	if (index < function->count)
		set_value(&function->arguments[index], bytes, value);
	pthread_mutex_unlock(&function->lock);
}

void stream_set_argument_svm(struct ocl_object *kernel, cl_uint index, const void *pointer)
{
	struct stream_function *function;

	if (!kernel->stream)
		return;
	function = &kernel->stream->as.function;
	pthread_mutex_lock(&function->lock);
	if (index < function->count) {
		struct stream_argument *argument = &function->arguments[index];

		clear(argument);
		argument->is_svm = argument->is_set = true;
		argument->is_null = false;
		argument->bytes = sizeof(void *);
		argument->value.pointer = pointer;
	}
	pthread_mutex_unlock(&function->lock);
}

static void set_pointers(struct stream_function *function, size_t bytes, const void *value)
{
	const void **pointers = bytes ? malloc(bytes) : NULL;

	if (pointers)
		memcpy(pointers, value, bytes);
	pthread_mutex_lock(&function->lock);
	free(function->pointers);
	function->pointers = pointers;
	function->pointer_count = bytes / sizeof(void *);
	pthread_mutex_unlock(&function->lock);
}

void stream_set_exec_info(struct ocl_object *kernel, cl_kernel_exec_info name, size_t bytes,
			  const void *value)
{
	if (!kernel->stream || !value)
		return;
	if (name == CL_KERNEL_EXEC_INFO_SVM_PTRS)
		set_pointers(&kernel->stream->as.function, bytes, value);
	if (name == CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM && bytes == sizeof(cl_bool))
		kernel->stream->as.function.reaches_all = *(const cl_bool *)value != CL_FALSE;
}

void stream_function_release(struct stream_function *function)
{
	for (uint32_t i = 0; i < function->count; i++)
		clear(&function->arguments[i]);
	free(function->arguments);
	free(function->pointers);
	free(function->name);
	pthread_mutex_destroy(&function->lock);
}

/* ---- kinds ---- */

static enum stream_argument_kind image_kind(cl_kernel kernel, cl_uint index)
{
	cl_kernel_arg_access_qualifier access = 0;

	ocl.next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access),
				    &access, NULL);
	return access == CL_KERNEL_ARG_ACCESS_READ_ONLY    ? STREAM_ARG_MEMORY_READ
	       : access == CL_KERNEL_ARG_ACCESS_WRITE_ONLY ? STREAM_ARG_MEMORY_WRITE
							   : STREAM_ARG_MEMORY;
}

static enum stream_argument_kind kind_by_type(cl_kernel kernel, cl_uint index)
{
	char type[64] = "";

	ocl.next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof(type), type,
				    NULL);
	type[sizeof(type) - 1] = 0;
	if (strcmp(type, "sampler_t") == 0)
		return STREAM_ARG_SAMPLER;
	if (strncmp(type, "image", 5) == 0 && strstr(type, "_t"))
		return image_kind(kernel, index);
	if (strcmp(type, "queue_t") == 0 || strcmp(type, "reserve_id_t") == 0)
		return STREAM_ARG_OTHER;
	return STREAM_ARG_BYTES;
}

/* UNKNOWN: the driver does not say. */
static enum stream_argument_kind query_kind(cl_kernel kernel, cl_uint index)
{
	cl_kernel_arg_address_qualifier address = 0;
	cl_kernel_arg_type_qualifier type = 0;
	enum stream_argument_kind by_type;

	if (!ocl.next.clGetKernelArgInfo ||
	    ocl.next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
					sizeof(address), &address, NULL))
		return STREAM_ARG_UNKNOWN;
	ocl.next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type),
				    &type, NULL);
	if (type & CL_KERNEL_ARG_TYPE_PIPE)
		return STREAM_ARG_OTHER;
	by_type = kind_by_type(kernel, index);
	if (by_type != STREAM_ARG_BYTES)
		return by_type;
	if (address == CL_KERNEL_ARG_ADDRESS_LOCAL)
		return STREAM_ARG_LOCAL;
	if (address == CL_KERNEL_ARG_ADDRESS_CONSTANT)
		return STREAM_ARG_MEMORY_READ;
	if (address == CL_KERNEL_ARG_ADDRESS_GLOBAL)
		return (type & CL_KERNEL_ARG_TYPE_CONST) ? STREAM_ARG_MEMORY_READ
							 : STREAM_ARG_MEMORY;
	return STREAM_ARG_BYTES;
}

static void query_text(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, char *to,
		       size_t size)
{
	char text[1024] = "";

	if (!ocl.next.clGetKernelArgInfo ||
	    ocl.next.clGetKernelArgInfo(kernel, index, what, sizeof(text), text, NULL))
		text[0] = 0;
	text[size - 1] = 0;
	memcpy(to, text, size);
}

void stream_query_parameter(cl_kernel kernel, cl_uint index, struct stream_parameter *parameter)
{
	parameter->kind = (uint8_t)query_kind(kernel, index);
	query_text(kernel, index, CL_KERNEL_ARG_NAME, parameter->name, sizeof(parameter->name));
	query_text(kernel, index, CL_KERNEL_ARG_TYPE_NAME, parameter->type,
		   sizeof(parameter->type));
}

static void kinds_of_module(struct ocl_stream *stream, struct stream_function *function)
{
	struct stream_module *module = &stream->as.module;
	const struct stream_signature *signature;

	stream_module_learn(stream);
	pthread_mutex_lock(&module->lock);
	for (signature = module->signatures; signature; signature = signature->next) {
		if (signature->count != function->count ||
		    strcmp(signature->name, function->name) != 0)
			continue;
		for (uint32_t i = 0; i < function->count; i++)
			function->arguments[i].kind = signature->parameters[i].kind;
	}
	pthread_mutex_unlock(&module->lock);
}

/* NULL: not known, or being learned. The module is locked otherwise. */
static const struct stream_signature *lock_signature(struct stream_module *module, const char *name)
{
	const struct stream_signature *signature;

	/* The channel is locked: a build must not hold it up. */
	if (pthread_mutex_trylock(&module->lock))
		return NULL;
	for (signature = module->signatures; signature; signature = signature->next)
		if (strcmp(signature->name, name) == 0)
			return signature;
	pthread_mutex_unlock(&module->lock);
	return NULL;
}

static void describe_parameter(const struct stream_parameter *parameter, struct stream_text *text)
{
	stream_text_open(text, NULL, '{');
	if (parameter->name[0])
		stream_text_string(text, "name", parameter->name);
	if (parameter->type[0])
		stream_text_string(text, "type", parameter->type);
	stream_text_close(text, '{');
}

/* Names and types of arguments are for people: without space for them, they are left out. */
void stream_function_describe(struct ocl_stream *stream, struct stream_text *text)
{
	const struct stream_function *function = &stream->as.function;
	struct stream_module *module = stream->parent ? &stream->parent->as.module : NULL;
	const struct stream_signature *signature = module ? lock_signature(module, function->name)
							  : NULL;
	size_t used;

	stream_text_uint(text, "args", function->count);
	used = text->used;
	stream_text_open(text, "parameters", '[');
	for (uint32_t i = 0; i < function->count && !text->is_full; i++) {
		struct stream_parameter parameter;

		if (signature && i < signature->count)
			parameter = signature->parameters[i];
		else
			stream_query_parameter(stream->handle, i, &parameter);
		describe_parameter(&parameter, text);
	}
	stream_text_close(text, '[');
	if (signature)
		pthread_mutex_unlock(&module->lock);
	if (text->is_full || text->used > PARAMETER_TEXT) {
		text->used = used;
		text->is_full = false;
	}
}

static void learn_kinds(struct ocl_stream *stream)
{
	struct stream_function *function = &stream->as.function;
	bool all_known = true;

	if (function->knows_kinds)
		return;
	function->knows_kinds = true;
	for (uint32_t i = 0; i < function->count; i++) {
		function->arguments[i].kind = (uint8_t)query_kind(stream->handle, i);
		all_known = all_known && function->arguments[i].kind != STREAM_ARG_UNKNOWN;
	}
	if (!all_known && stream->parent) {
		kinds_of_module(stream->parent, function);
		stream_object_emit_again(stream);
	}
}

/* Without information: guesses by the value. */
static enum stream_argument_kind guess_kind(struct stream_frozen *frozen,
					    const struct stream_argument *argument)
{
	void *handle = NULL;

	frozen->is_ambiguous = true;
	if (argument->is_null)
		return STREAM_ARG_LOCAL;
	if (argument->bytes != sizeof(handle))
		return STREAM_ARG_BYTES;
	memcpy(&handle, argument->value.bytes, sizeof(handle));
	if (!handle)
		return STREAM_ARG_BYTES;
	if (ocl_find(OCL_MEMORY, handle))
		return STREAM_ARG_MEMORY;
	if (ocl_find(OCL_SAMPLER, handle))
		return STREAM_ARG_SAMPLER;
	return STREAM_ARG_BYTES;
}

/* ---- capture at a launch ---- */

/* Offsets in the block have the largest alignment that a value can need. */
static bool add_to_block(struct stream_frozen *frozen, const struct stream_argument *argument,
			 size_t *ret_at)
{
	size_t at = (frozen->block_bytes + 15) & ~(size_t)15;
	size_t needed = at + argument->bytes;
	const void *value = argument->bytes > sizeof(argument->value) ? argument->value.more
								      : argument->value.bytes;

	if (needed > frozen->block_capacity) {
		unsigned char *block = realloc(frozen->block, 2 * needed);

		if (!block)
			return false;
		frozen->block = block;
		frozen->block_capacity = 2 * needed;
	}
	memset(frozen->block + frozen->block_bytes, 0, at - frozen->block_bytes);
	memcpy(frozen->block + at, value, argument->bytes);
	frozen->block_bytes = needed;
	*ret_at = at;
	return true;
}

static void freeze_bytes(struct stream_frozen *frozen, const struct stream_argument *argument)
{
	size_t at = 0;

	if (!argument->is_set || argument->is_null || !add_to_block(frozen, argument, &at))
		stream_unreplayable(frozen, "kernels with an unknown argument value",
				    "the value of an argument is unknown");
	stream_text_string(&frozen->text, "kind", "bytes");
	stream_text_uint(&frozen->text, "at", at);
	stream_text_uint(&frozen->text, "size", argument->bytes);
}

/* What is usual is left out, so that a launch with many buffers fits into its details. */
static void describe_use(struct stream_text *text, uint64_t offset, uint8_t kind)
{
	if (offset)
		stream_text_uint(text, "offset", offset);
	if (kind == STREAM_ARG_MEMORY_READ)
		stream_text_string(text, "access", "read");
	if (kind == STREAM_ARG_MEMORY_WRITE)
		stream_text_string(text, "access", "write");
}

/* An image is named by its own number, even if it is a view. */
static void describe_memory(struct stream_text *text, const struct ocl_stream *view,
			    const struct ocl_stream *root, uint64_t offset, uint8_t kind)
{
	if (view->as.memory.image) {
		stream_text_uint(text, "object", view->number);
		describe_use(text, 0, kind);
		return;
	}
	stream_text_uint(text, "object", root->number);
	if (view->as.memory.bytes != root->as.memory.bytes - offset)
		stream_text_uint(text, "bytes", view->as.memory.bytes);
	describe_use(text, offset, kind);
}

static const char *why_not(const struct ocl_stream *view, const struct ocl_stream *root)
{
	if (view && view->unreplayable)
		return view->unreplayable;
	return root && root->unreplayable ? root->unreplayable : "unknown memory";
}

static void freeze_memory(struct stream_frozen *frozen, const struct stream_argument *argument,
			  uint32_t index, uint8_t kind)
{
	cl_mem handle = NULL;
	const struct ocl_object *object;
	struct ocl_stream *view, *root;
	uint64_t offset;

	stream_text_string(&frozen->text, "kind", "memory");
	if (!argument->is_null && argument->bytes == sizeof(handle))
		memcpy(&handle, argument->value.bytes, sizeof(handle));
	if (!handle) {
		stream_text_uint(&frozen->text, "object", 0);
		return;
	}
	object = ocl_find(OCL_MEMORY, handle);
	view = stream_object_of(object);
	root = stream_memory_root(handle, &offset);
	if (!view || !root || view->unreplayable || root->unreplayable) {
		stream_unreplayable(frozen, "kernels with memory that cannot be replayed",
				    "argument %u is %s", index, why_not(view, root));
		return;
	}
	describe_memory(&frozen->text, view, root, offset, kind);
	stream_use(frozen, root, offset, view->as.memory.bytes, kind != STREAM_ARG_MEMORY_READ);
}

static void freeze_sampler(struct stream_frozen *frozen, const struct stream_argument *argument,
			   uint32_t index)
{
	cl_sampler handle = NULL;
	const struct ocl_object *object;

	if (!argument->is_null && argument->bytes == sizeof(handle))
		memcpy(&handle, argument->value.bytes, sizeof(handle));
	object = handle ? ocl_find(OCL_SAMPLER, handle) : NULL;
	stream_text_string(&frozen->text, "kind", "sampler");
	if (object && object->stream)
		stream_sampler_describe(&object->stream->as.sampler, &frozen->text);
	else
		stream_unreplayable(frozen, "kernels with unknown samplers",
				    "argument %u is an unknown sampler", index);
}

static void freeze_svm(struct stream_frozen *frozen, const struct stream_argument *argument,
		       uint32_t index)
{
	const void *pointer = argument->value.pointer;
	struct ocl_stream *memory;
	uint64_t offset = 0;

	stream_text_string(&frozen->text, "kind", "svm");
	memory = pointer ? stream_svm_find(pointer, &offset) : NULL;
	if (pointer && (!memory || memory->unreplayable))
		stream_unreplayable(frozen, "kernels with memory that cannot be replayed",
				    "argument %u is %s", index,
				    memory ? memory->unreplayable
					   : "an address outside SVM allocations");
	stream_text_uint(&frozen->text, "object", memory ? memory->number : 0);
	if (!memory)
		return;
	describe_use(&frozen->text, offset, argument->kind);
	stream_use(frozen, memory, 0, memory->as.memory.bytes,
		   argument->kind != STREAM_ARG_MEMORY_READ);
}

static void freeze_other(struct stream_frozen *frozen, uint32_t index)
{
	stream_text_string(&frozen->text, "kind", "other");
	stream_unreplayable(frozen, "kernels with pipes or device queues",
			    "argument %u is a pipe or a device queue", index);
}

static void freeze_argument(struct stream_frozen *frozen, const struct stream_argument *argument,
			    uint32_t index)
{
	uint8_t kind = argument->kind;

	if (argument->is_svm) {
		freeze_svm(frozen, argument, index);
		return;
	}
	if (kind == STREAM_ARG_UNKNOWN)
		kind = (uint8_t)guess_kind(frozen, argument);
	switch (kind) {
	case STREAM_ARG_MEMORY:
	case STREAM_ARG_MEMORY_READ:
	case STREAM_ARG_MEMORY_WRITE:
		freeze_memory(frozen, argument, index, kind);
		break;
	case STREAM_ARG_SAMPLER:
		freeze_sampler(frozen, argument, index);
		break;
	case STREAM_ARG_LOCAL:
		stream_text_string(&frozen->text, "kind", "local");
		stream_text_uint(&frozen->text, "size", argument->bytes);
		break;
	case STREAM_ARG_BYTES:
		freeze_bytes(frozen, argument);
		break;
	default:
		freeze_other(frozen, index);
		break;
	}
}

/* Memory that it may access without having it as an argument. */
static void freeze_indirect(struct stream_frozen *frozen, const struct stream_function *function)
{
	if (function->reaches_all)
		stream_unreplayable(frozen, "kernels that can access all host memory",
				    "it can access all host memory");
	else if (function->pointer_count && !function->pointers)
		stream_unreplayable(frozen, "kernels with memory that cannot be replayed",
				    "there was no memory for its SVM pointers");
	if (function->reaches_all || (function->pointer_count && !function->pointers))
		stream_text_true(&frozen->text, "unknown");
	if (!function->pointers)
		return;
	stream_text_open(&frozen->text, "indirect", '[');
	for (size_t i = 0; i < function->pointer_count; i++) {
		struct ocl_stream *memory = stream_svm_find(function->pointers[i], NULL);

		if (!memory || memory->unreplayable) {
			stream_unreplayable(frozen, "kernels with memory that cannot be replayed",
					    "it can access %s",
					    memory ? memory->unreplayable
						   : "an address outside SVM allocations");
			continue;
		}
		stream_text_item(&frozen->text, memory->number);
		stream_use(frozen, memory, 0, memory->as.memory.bytes, true);
	}
	stream_text_close(&frozen->text, '[');
}

void stream_freeze_arguments(struct stream_frozen *frozen, struct ocl_object *kernel)
{
	struct stream_function *function = &kernel->stream->as.function;

	pthread_mutex_lock(&function->lock);
	learn_kinds(kernel->stream);
	stream_text_open(&frozen->text, "args", '[');
	for (uint32_t i = 0; i < function->count; i++) {
		stream_text_open(&frozen->text, NULL, '{');
		freeze_argument(frozen, &function->arguments[i], i);
		stream_text_close(&frozen->text, '{');
	}
	stream_text_close(&frozen->text, '[');
	freeze_indirect(frozen, function);
	pthread_mutex_unlock(&function->lock);
}
