/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of modules and libraries, loaded from memory as the recorded program loaded them; their
 * functions, with attributes, and globals, with their addresses in this process.
 */
#include <inttypes.h>
#include <string.h>

#include "code/cuda/local/fatbin.h"
#include "replay/targets/cuda/cuda_session.h"

#define MOST_JIT_OPTIONS 32

/* Options of the compiler that are numbers: the others are pointers of the recorded process. */
static const uint8_t jit_numbers[] = { 0,  1,  7,  8,  9,  10, 11, 12, 13, 14,
				       15, 20, 21, 22, 23, 24, 30, 31, 32, 33 };
static const uint8_t function_attributes[] = { 8, 9, 11, 12, 13, 14, 15 };

static bool is_listed(const uint8_t *list, size_t count, uint64_t id)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == id)
			return true;
	return false;
}

/* ---- modules ---- */

static int collect_jit(struct ts_replay_session *session, uint32_t module, int *options,
		       void **values, struct ts_error *err)
{
	const struct ts_cuda_details *details = &session->objects[module].details;

	if (details->jit_count > MOST_JIT_OPTIONS)
		return ts_error_set(err, TS_EFORMAT, "it has too many compiler options");
	for (uint32_t i = 0; i < details->jit_count; i++) {
		const struct ts_cuda_pair *pair = &details->jit[i];

		if (pair->bytes || !is_listed(jit_numbers, sizeof(jit_numbers), pair->id))
			return ts_error_set(err, TS_ECAP,
					    "compiler option %" PRIu64 " cannot be replayed",
					    pair->id);
		options[i] = (int)pair->id;
		/* The driver takes numbers in place of pointers. */
		values[i] = (void *)(uintptr_t)pair->number;
	}
	return TS_OK;
}

/* Does the image have code for the device? */
static int check_image(struct ts_replay_session *session, uint32_t module, const void *image,
		       uint64_t bytes, struct ts_error *err)
{
	uint32_t context = ts_cuda_info(session, module)->parent;
	const struct ts_cuda_device *device = &session->devices[session->objects[context].device];
	enum ts_image_kind kind = ts_image_kind(image, bytes);
	uint32_t architecture = 0;

	/* A wrapper holds an address of the recorded process. */
	if (kind == TS_IMAGE_UNKNOWN || kind == TS_IMAGE_WRAPPER)
		return ts_error_set(err, TS_EFORMAT,
				    "its code is neither a fatbin nor a cubin nor "
				    "PTX");
	kind = ts_image_select(image, bytes, (unsigned int)device->compute[0],
			       (unsigned int)device->compute[1], &architecture);
	if (kind == TS_IMAGE_UNKNOWN)
		return ts_error_set(err, TS_ECAP,
				    "it has no code for compute capability %d.%d ('%s'), and no "
				    "PTX that could be compiled for it",
				    device->compute[0], device->compute[1], device->name);
	session->has_compiled |= kind == TS_IMAGE_PTX;
	return TS_OK;
}

static int load_image(struct ts_replay_session *session, uint32_t module, const void *image,
		      struct ts_error *err)
{
	struct ts_cuda_object *object = &session->objects[module];
	uint32_t context = ts_cuda_info(session, module)->parent;
	int options[MOST_JIT_OPTIONS], rc, code;
	void *values[MOST_JIT_OPTIONS];

	rc = collect_jit(session, module, options, values, err);
	if (rc)
		return rc;
	code = ts_cuda_enter(session, session->objects[context].handle);
	if (!code && object->details.is_library)
		code = session->cu.LibraryLoadData(&object->handle, image, options, values,
						   object->details.jit_count, NULL, NULL, 0);
	else if (!code)
		code = session->cu.ModuleLoadDataEx(&object->handle, image,
						    object->details.jit_count, options, values);
	if (code)
		return ts_cuda_fail(session, code, err, "its code cannot be loaded");
	object->is_owned = true;
	return TS_OK;
}

static int load_module(struct ts_replay_session *session, uint32_t module, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, module);
	char *image;
	int rc;

	if (info->parent == TS_REPLAY_NONE ||
	    ts_cuda_info(session, info->parent)->kind != TS_OBJECT_CONTEXT)
		return ts_error_set(err, TS_EFORMAT, "it has no context");
	if (!info->blob.id || !info->blob.bytes)
		return ts_error_set(err, TS_EFORMAT, "its code is not in the trace");
	/* The driver reads as far as headers and a final 0 say: some bytes more are ours. */
	image = ts_arena_alloc(&session->arena, info->blob.bytes + 64);
	if (!image)
		return ts_error_set(err, TS_ENOMEM, "no memory for its code");
	memset(image + info->blob.bytes, 0, 64);
	rc = ts_replay_blob_read(session->stream->reader, &info->blob, image, err);
	if (!rc)
		rc = check_image(session, module, image, info->blob.bytes, err);
	return rc ? rc : load_image(session, module, image, err);
}

/* ---- functions ---- */

static int find_function(struct ts_replay_session *session, uint32_t function)
{
	struct ts_cuda_object *object = &session->objects[function];
	const struct ts_cuda_object *module =
		&session->objects[ts_cuda_info(session, function)->parent];
	const char *name = ts_cuda_info(session, function)->name;
	void *kernel = NULL;
	int code;

	if (!module->details.is_library)
		return session->cu.ModuleGetFunction(&object->handle, module->handle, name);
	code = session->cu.LibraryGetKernel(&kernel, module->handle, name);
	return code ? code : session->cu.KernelGetFunction(&object->handle, kernel);
}

bool ts_cuda_is_function_attribute(uint64_t id)
{
	return is_listed(function_attributes, sizeof(function_attributes), id);
}

static int check_attributes(const struct ts_replay_session *session, uint32_t function,
			    struct ts_error *err)
{
	const struct ts_cuda_details *details = &session->objects[function].details;

	for (uint32_t i = 0; i < details->attribute_count; i++) {
		const struct ts_cuda_pair *pair = &details->attributes[i];

		if (pair->bytes || !ts_cuda_is_function_attribute(pair->id))
			return ts_error_set(err, TS_ECAP,
					    "its attribute %" PRIu64 " cannot be replayed",
					    pair->id);
	}
	return TS_OK;
}

int ts_cuda_set_function_attribute(struct ts_replay_session *session, uint32_t function, int id,
				   int value)
{
	void *handle = session->objects[function].handle;
	int now = 0;

	if (!session->cu.FuncGetAttribute(&now, id, handle) && now == value)
		return 0;
	return session->cu.FuncSetAttribute(handle, id, value);
}

int ts_cuda_set_function(struct ts_replay_session *session, uint32_t function)
{
	const struct ts_cuda_details *details = &session->objects[function].details;
	void *handle = session->objects[function].handle;
	int code = 0;

	for (uint32_t i = 0; i < details->attribute_count && !code; i++)
		code = ts_cuda_set_function_attribute(session, function,
						      (int)details->attributes[i].id,
						      (int)details->attributes[i].number);
	if (!code && details->cache)
		code = session->cu.FuncSetCacheConfig(handle, (int)details->cache);
	return code;
}

/* Bytes of parameters; 0: the driver does not say. */
static uint64_t param_bytes_of(struct ts_replay_session *session, void *function)
{
	size_t offset = 0, bytes = 0;
	uint64_t end = 0;

	for (size_t i = 0; !session->cu.FuncGetParamInfo(function, i, &offset, &bytes); i++)
		end = TS_MAX(end, (uint64_t)offset + bytes);
	return end;
}

static int make_function(struct ts_replay_session *session, uint32_t function, struct ts_error *err)
{
	uint32_t module = ts_cuda_info(session, function)->parent;
	uint32_t context = ts_cuda_info(session, module)->parent;
	int code = ts_cuda_enter(session, session->objects[context].handle), rc;

	if (!code)
		code = find_function(session, function);
	if (code)
		return ts_cuda_fail(session, code, err, "it is not in its module");
	/* Else it is loaded by its first launch. Drivers before CUDA 12.4 do not have this. */
	code = session->cu.FuncLoad(session->objects[function].handle);
	if (code && code != CUDA_NOT_FOUND && code != CUDA_NOT_SUPPORTED)
		return ts_cuda_fail(session, code, err, "it cannot be loaded");
	session->objects[function].param_bytes =
		param_bytes_of(session, session->objects[function].handle);
	rc = check_attributes(session, function, err);
	if (rc)
		return rc;
	code = ts_cuda_set_function(session, function);
	return code ? ts_cuda_fail(session, code, err, "its attributes") : TS_OK;
}

/* ---- globals ---- */

static int find_global(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, memory);
	struct ts_cuda_object *object = &session->objects[memory];
	const struct ts_cuda_object *module = &session->objects[info->parent];
	uint32_t context = ts_cuda_info(session, info->parent)->parent;
	size_t bytes = 0;
	int code = ts_cuda_enter(session, session->objects[context].handle);

	object->device = session->objects[context].device;
	if (!code && module->details.is_library)
		code = session->cu.LibraryGetGlobal(&object->address, &bytes, module->handle,
						    info->name);
	else if (!code)
		code = session->cu.ModuleGetGlobal(&object->address, &bytes, module->handle,
						   info->name);
	if (code)
		return ts_cuda_fail(session, code, err, "it is not in its module");
	if (bytes != info->bytes)
		return ts_error_set(err, TS_EFORMAT,
				    "it has %zu bytes in this process, %" PRIu64
				    " in the recording",
				    bytes, info->bytes);
	if (ts_cuda_ranges_add(&object->mapped, 0, bytes))
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of globals");
	return TS_OK;
}

/* ---- all of them ---- */

static int make_object(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, index);

	switch (info->kind) {
	case TS_OBJECT_MODULE:
		ts_replay_monitor_enter(session->replay, TS_REPLAY_BUILDING, info->name);
		return load_module(session, index, err);
	case TS_OBJECT_FUNCTION:
		return make_function(session, index, err);
	default:
		return info->flags & TS_REPLAY_GLOBAL ? find_global(session, index, err) : TS_OK;
	}
}

static int make_kind(struct ts_replay_session *session, enum ts_object_kind kind,
		     struct ts_error *err)
{
	int failure = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_replay_object_info *info = ts_cuda_info(session, i);
		int rc;

		if (info->kind != kind || !session->objects[i].is_needed)
			continue;
		rc = make_object(session, i, err);
		if (!rc)
			continue;
		ts_error_prefix(err, "%s %" PRIu64 "%s%s%s", ts_enum_name("object_kind", kind),
				info->number, info->name && info->name[0] ? " '" : "",
				info->name ? info->name : "",
				info->name && info->name[0] ? "'" : "");
		failure = rc;
		if (rc == TS_ENOMEM || !ts_replay_reject_object(session->replay, i, err))
			break;
	}
	return failure;
}

int ts_cuda_load_images(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = make_kind(session, TS_OBJECT_MODULE, err);

	ts_replay_monitor_enter(session->replay, TS_REPLAY_OPENING, NULL);
	/* The same compiler for the same device gives the same code. */
	if (session->has_compiled && session->is_elsewhere)
		ts_cuda_note(session, "PTX is compiled here, so results may differ");
	if (!rc)
		rc = make_kind(session, TS_OBJECT_FUNCTION, err);
	if (!rc)
		rc = make_kind(session, TS_OBJECT_MEMORY, err);
	return rc;
}

void ts_cuda_free_images(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		struct ts_cuda_object *object = &session->objects[i];

		if (ts_cuda_info(session, i)->kind != TS_OBJECT_MODULE || !object->is_owned)
			continue;
		if (object->details.is_library)
			session->cu.LibraryUnload(object->handle);
		else
			session->cu.ModuleUnload(object->handle);
	}
}
