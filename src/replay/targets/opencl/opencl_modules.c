/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and kernels: builds source that cannot name files; otherwise uses the stored binary for
 * a device of the same name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "code/local/opencl_c.h"
#include "replay/targets/opencl/opencl_options.h"
#include "replay/targets/opencl/opencl_session.h"

#define LOG_LINES 4
#define LOG_BYTES 320
#define TEXT_BYTES 224
#define VENDOR_NVIDIA 0x10deu

/* A module being built. */
struct build {
	struct ts_replay_session *session;
	uint32_t module, function;                   /* function: the one that needs the module */
	const struct ts_replay_replacement *instead; /* built in place of it; NULL */
	cl_context context;
	cl_device_id *devices; /* of the context */
	uint32_t device_count;
	char *options;
	char left_out[96];  /* rejected build options */
	bool misses_macros; /* those among them */
	bool is_simulated;  /* on Oclgrind */
};

/* For messages: "module 5, kernel 'saxpy'". */
static const char *module_text(const struct build *build, char *buffer, size_t bytes)
{
	const struct ts_replay_session *session = build->session;

	snprintf(buffer, bytes, "%s%s%smodule %" PRIu64 ", kernel '%s'", build->instead ? "'" : "",
		 build->instead ? build->instead->path : "", build->instead ? "': " : "",
		 ts_opencl_info(session, build->module)->number,
		 ts_opencl_info(session, build->function)->name);
	return buffer;
}

static int fail_build(const struct build *build, cl_int code, const char *what,
		      struct ts_error *err)
{
	char text[TEXT_BYTES];

	return ts_error_set(err, ts_opencl_error_code(code), "%s: %s: %s on '%s'",
			    module_text(build, text, sizeof(text)), what,
			    ts_opencl_error_name(code),
			    ts_opencl_device_name(build->session, build->module));
}

/* ---- failed builds ---- */

/* The first non-empty lines of a log, joined by "; ". */
static void first_lines(const char *log, char *out, size_t bytes)
{
	size_t used = 0;

	out[0] = 0;
	for (int lines = 0; *log && lines < LOG_LINES && used < bytes;) {
		size_t length = strcspn(log, "\r\n");

		if (strspn(log, " \t") < length) {
			used += (size_t)snprintf(out + used, bytes - used, "%s%.*s",
						 lines++ ? "; " : "", (int)length, log);
		}
		log += length;
		log += strspn(log, "\r\n");
	}
}

/* The compiler's messages; NULL: none. Caller frees. */
static char *read_log(const struct build *build, cl_program program)
{
	const struct ts_opencl_api *api = &build->session->api;
	size_t size = 0;

	for (uint32_t i = 0; i < build->device_count; i++) {
		TS_AUTO_FREE char *log = NULL;

		if (api->clGetProgramBuildInfo(program, build->devices[i], CL_PROGRAM_BUILD_LOG, 0,
					       NULL, &size) ||
		    !size)
			continue;
		log = ts_alloc_array(size + 1, 1);
		if (!log || api->clGetProgramBuildInfo(program, build->devices[i],
						       CL_PROGRAM_BUILD_LOG, size, log, NULL))
			continue;
		log[size] = 0;
		if (log[strspn(log, " \t\r\n")])
			return TS_STEAL(log);
	}
	return NULL;
}

/* A replacement is input of the user, who can correct it. */
static int fail_replacement(const struct build *build, const char *log, struct ts_error *err)
{
	const struct ts_replay_options *options = &build->session->replay->options;
	char text[TEXT_BYTES], lines[LOG_BYTES];

	first_lines(log, lines, sizeof(lines));
	if (options->build_log)
		options->build_log(options->context, log);
	return ts_error_set(err, TS_EFORMAT, "%s does not build on '%s'%s%s",
			    module_text(build, text, sizeof(text)),
			    ts_opencl_device_name(build->session, build->module),
			    options->build_log ? "" : ": ", options->build_log ? "" : lines);
}

static int fail_compile(const struct build *build, cl_program program, cl_int code,
			struct ts_error *err)
{
	TS_AUTO_FREE char *log = read_log(build, program);
	char text[TEXT_BYTES], lines[LOG_BYTES];

	if (build->instead && code == CL_BUILD_PROGRAM_FAILURE)
		return fail_replacement(build, log ? log : ts_opencl_error_name(code), err);
	first_lines(log ? log : ts_opencl_error_name(code), lines, sizeof(lines));
	return ts_error_set(err, ts_opencl_error_code(code), "%s does not build on '%s': %s%s%s%s",
			    module_text(build, text, sizeof(text)),
			    ts_opencl_device_name(build->session, build->module), lines,
			    build->left_out[0] ? " (build options left out: " : "", build->left_out,
			    build->left_out[0] ? ")" : "");
}

/* ---- building ---- */

static int compile(const struct build *build, cl_program program, cl_program *ret_program,
		   struct ts_error *err)
{
	const struct ts_replay *replay = build->session->replay;
	char text[TEXT_BYTES];
	cl_int code;
	int rc = TS_OK;

	ts_replay_monitor_enter(replay, TS_REPLAY_BUILDING, module_text(build, text, sizeof(text)));
	code = build->session->api.clBuildProgram(program, build->device_count, build->devices,
						  build->options, NULL, NULL);
	ts_replay_monitor_enter(replay, TS_REPLAY_OPENING, NULL);
	if (code) {
		rc = fail_compile(build, program, code, err);
		build->session->api.clReleaseProgram(program);
	} else {
		*ret_program = program;
	}
	return rc;
}

static int build_source(const struct build *build, const char **parts, cl_uint count,
			cl_program *ret_program, struct ts_error *err)
{
	cl_int code;
	cl_program program = build->session->api.clCreateProgramWithSource(build->context, count,
									   parts, NULL, &code);

	if (!program)
		return fail_build(build, code, "its source was rejected", err);
	return compile(build, program, ret_program, err);
}

/* The stored binary for a device of this name; NULL: none. */
static const struct ts_replay_binary *find_binary(const struct build *build, cl_device_id device)
{
	const struct ts_replay_session *session = build->session;
	const struct ts_replay_object_info *info = ts_opencl_info(session, build->module);
	const char *name = "";

	for (uint32_t i = 0; i < session->device_count; i++)
		if (session->devices[i].id == device)
			name = session->devices[i].name;
	for (uint32_t i = 0; i < info->binary_count; i++) {
		uint32_t recorded = info->binaries[i].device;

		if (recorded != TS_REPLAY_NONE &&
		    !strcmp(ts_opencl_info(session, recorded)->name, name))
			return &info->binaries[i];
	}
	return NULL;
}

static int read_binaries(const struct build *build, struct ts_arena *arena,
			 const unsigned char **ret_binaries, size_t *ret_lengths, const char *why,
			 struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < build->device_count && !rc; i++) {
		const struct ts_replay_binary *binary = find_binary(build, build->devices[i]);
		unsigned char *data = NULL;
		char text[TEXT_BYTES];

		if (!binary)
			return ts_error_set(err, TS_ECAP,
					    "%s: %s, and the trace has no binary of it for '%s'",
					    module_text(build, text, sizeof(text)), why,
					    ts_opencl_device_name(build->session, build->module));
		data = ts_arena_alloc(arena, binary->blob.bytes);
		if (!data)
			return ts_error_set(err, TS_ENOMEM, "no memory for a binary");
		rc = ts_replay_blob_read(build->session->stream->reader, &binary->blob, data, err);
		ret_binaries[i] = data;
		ret_lengths[i] = binary->blob.bytes;
	}
	return rc;
}

static int build_binary(const struct build *build, struct ts_arena *arena, const char *why,
			cl_program *ret_program, struct ts_error *err)
{
	const unsigned char **binaries =
		ts_arena_alloc_zeroed(arena, build->device_count, sizeof(*binaries));
	size_t *lengths = ts_arena_alloc_zeroed(arena, build->device_count, sizeof(*lengths));
	cl_program program;
	cl_int code;
	int rc;

	if (!binaries || !lengths)
		return ts_error_set(err, TS_ENOMEM, "no memory for a binary");
	rc = read_binaries(build, arena, binaries, lengths, why, err);
	if (rc)
		return rc;
	program = build->session->api.clCreateProgramWithBinary(build->context, build->device_count,
								build->devices, lengths, binaries,
								NULL, &code);
	if (!program)
		return fail_build(build, code, "its binary was rejected", err);
	return compile(build, program, ret_program, err);
}

/* ---- source or binary ---- */

/* NVIDIA's assembler is that of PTX, which cannot include files. */
static bool may_assemble(const struct build *build)
{
	cl_uint vendor = 0;

	for (uint32_t i = 0; i < build->device_count; i++)
		if (build->session->api.clGetDeviceInfo(build->devices[i], CL_DEVICE_VENDOR_ID,
							sizeof(vendor), &vendor, NULL) ||
		    vendor != VENDOR_NVIDIA)
			return false;
	return true;
}

/*
 * Oclgrind shows lines of the text that it was given, which must then be the source alone: what
 * goes before it are options of its compiler, clang.
 */
#define NO_ASSEMBLY "a_replay_does_not_compile_inline_assembly"
#define PROLOGUE_OPTIONS                                                       \
	"-U__has_include -U__has_include_next -U__has_embed -D_Pragma(hint)= " \
	"-Dasm=" NO_ASSEMBLY " -D__asm=" NO_ASSEMBLY " -D__asm__=" NO_ASSEMBLY " "

static bool is_oclgrind(const struct build *build)
{
	const struct ts_replay_session *session = build->session;

	for (uint32_t i = 0; i < session->device_count; i++)
		if (session->devices[i].id == build->devices[0])
			return strcmp(session->devices[i].platform_name, "Oclgrind") == 0;
	return false;
}

static int build_recorded_source(const struct build *build, const char *source,
				 cl_program *ret_program, struct ts_error *err)
{
	const char *parts[] = { TS_OPENCL_C_PROLOGUE,
				may_assemble(build) ? "\n" : TS_OPENCL_C_NO_ASSEMBLY, "#line 1\n",
				source };

	if (build->is_simulated)
		return build_source(build, &source, 1, ret_program, err);
	return build_source(build, parts, TS_ARRAY_SIZE(parts), ret_program, err);
}

static int build_recorded(const struct build *build, struct ts_arena *arena,
			  cl_program *ret_program, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(build->session, build->module);
	char *source, *normal, why[160];
	const char *refused;
	size_t bytes;
	int rc;

	if (!info->blob.id)
		return build_binary(build, arena, "its source is missing", ret_program, err);
	source = ts_arena_alloc(arena, info->blob.bytes);
	normal = ts_arena_alloc(arena, info->blob.bytes + 1);
	if (!source || !normal)
		return ts_error_set(err, TS_ENOMEM, "no memory for a module");
	rc = ts_replay_blob_read(build->session->stream->reader, &info->blob, source, err);
	if (rc)
		return rc;
	refused = ts_opencl_c_normalize(source, info->blob.bytes, normal, &bytes);
	normal[bytes] = 0;
	if (!refused && !build->misses_macros)
		return build_recorded_source(build, normal, ret_program, err);
	if (refused)
		snprintf(why, sizeof(why), "its source %s", refused);
	else
		snprintf(why, sizeof(why), "its build options may name files (%s)",
			 build->left_out);
	return build_binary(build, arena, why, ret_program, err);
}

static int start_build(struct build *build, struct ts_arena *arena, struct ts_error *err)
{
	const struct ts_replay_session *session = build->session;
	const struct ts_replay_object_info *info = ts_opencl_info(session, build->module);
	TS_SCOPED(ts_text) kept = { 0 }, left_out = { 0 }, options = { 0 };

	build->devices = ts_arena_alloc_zeroed(arena, session->device_count, sizeof(cl_device_id));
	if (!build->devices)
		return ts_error_set(err, TS_ENOMEM, "no memory for a module");
	build->context = session->objects[info->parent].context.handle;
	build->device_count = ts_opencl_context_devices(session, info->parent, build->devices);
	build->is_simulated = !build->instead && build->device_count && is_oclgrind(build);
	if (build->is_simulated)
		ts_text_printf(&options, "%s", PROLOGUE_OPTIONS);
	build->misses_macros = !ts_opencl_options_clean(info->options, &kept, &left_out);
	snprintf(build->left_out, sizeof(build->left_out), "%s", ts_text_cstr(&left_out));
	ts_text_printf(&options, "%s", ts_text_cstr(&kept));
	build->options = ts_arena_strdup_len(arena, ts_text_cstr(&options), options.length);
	if (!build->options || kept.failed || options.failed)
		return ts_error_set(err, TS_ENOMEM, "no memory for a module");
	return TS_OK;
}

/* Builds a recorded module, or its replacement. */
static int make_module(struct ts_replay_session *session, uint32_t function,
		       const struct ts_replay_replacement *instead, cl_program *ret_program,
		       struct ts_error *err)
{
	struct build build = { .session = session,
			       .function = function,
			       .instead = instead,
			       .module = ts_opencl_info(session, function)->parent };
	struct ts_arena arena = { 0 };
	int rc = start_build(&build, &arena, err);

	if (!rc && instead)
		rc = build_source(&build, (const char *[]){ instead->source }, 1, ret_program, err);
	else if (!rc)
		rc = build_recorded(&build, &arena, ret_program, err);
	ts_arena_release(&arena);
	return rc;
}

/* ---- kernels ---- */

/* The replacement of a function, by name. */
static const struct ts_replay_replacement *find_replacement(const struct ts_replay_session *session,
							    uint32_t function)
{
	const struct ts_replay_options *options = &session->replay->options;

	for (size_t i = 0; i < options->replacement_count; i++)
		if (!strcmp(options->replacements[i].kernel,
			    ts_opencl_info(session, function)->name))
			return &options->replacements[i];
	return NULL;
}

static struct ts_opencl_replaced *find_replaced(const struct ts_replay_session *session,
						uint32_t module,
						const struct ts_replay_replacement *by)
{
	for (size_t i = 0; i < session->replaced_count; i++) {
		struct ts_opencl_replaced *replaced = &session->replaced[i];

		if (replaced->module == module && (!by || replaced->by == by))
			return replaced;
	}
	return NULL;
}

static int make_replacement(struct ts_replay_session *session, uint32_t function,
			    struct ts_error *err)
{
	const struct ts_replay_replacement *by = find_replacement(session, function);
	struct ts_opencl_replaced replaced = { .module = ts_opencl_info(session, function)->parent,
					       .by = by };
	int rc;

	if (!by || find_replaced(session, replaced.module, by))
		return TS_OK;
	if (ts_grow_array((void **)&session->replaced, &session->replaced_capacity,
			  session->replaced_count + 1, sizeof(*session->replaced)))
		return ts_error_set(err, TS_ENOMEM, "no memory for a module");
	rc = make_module(session, function, by, &replaced.handle, err);
	if (!rc)
		session->replaced[session->replaced_count++] = replaced;
	return rc;
}

/* The recorded arguments must fit. Drivers report less, and only when the kernel is launched. */
static int check_parameters(const struct ts_replay_session *session, uint32_t function,
			    const char *path, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, function);
	cl_kernel kernel = session->objects[function].function.handle;
	cl_uint count;

	if (!info->parameter_count ||
	    session->api.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL) ||
	    count == info->parameter_count)
		return TS_OK;
	return ts_error_set(err, TS_EFORMAT, "'%s': kernel '%s' has %s, the recorded one has %u",
			    path, info->name, TS_COUNTED(count, "parameter"),
			    info->parameter_count);
}

/*
 * Creates the kernel from the file given for it, else from another replacement of its module that
 * contains it. The handle stays NULL: neither.
 */
static int replaced_kernel(struct ts_replay_session *session, uint32_t function, cl_int *ret_code,
			   struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, function);
	const struct ts_opencl_replaced *replaced =
		find_replaced(session, info->parent, find_replacement(session, function));
	cl_kernel kernel =
		replaced ? session->api.clCreateKernel(replaced->handle, info->name, ret_code)
			 : NULL;

	session->objects[function].function.handle = kernel;
	return kernel ? check_parameters(session, function, replaced->by->path, err) : TS_OK;
}

static int recorded_kernel(struct ts_replay_session *session, uint32_t function,
			   cl_kernel *ret_kernel, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, function);
	struct ts_opencl_object *module = &session->objects[info->parent];
	cl_int code;
	int rc;

	if (!module->module) {
		rc = make_module(session, function, NULL, &module->module, err);
		if (rc)
			return rc;
	}
	*ret_kernel = session->api.clCreateKernel(module->module, info->name, &code);
	if (*ret_kernel)
		return TS_OK;
	return ts_error_set(err, ts_opencl_error_code(code), "kernel '%s': %s on '%s'", info->name,
			    ts_opencl_error_name(code), ts_opencl_device_name(session, function));
}

static int make_function(struct ts_replay_session *session, uint32_t function, struct ts_error *err)
{
	const struct ts_replay_replacement *by = find_replacement(session, function);
	struct ts_opencl_object *object = &session->objects[function];
	cl_int code = CL_SUCCESS;
	int rc = replaced_kernel(session, function, &code, err);

	if (rc || object->function.handle)
		return rc;
	if (by)
		return ts_error_set(err, TS_ENOTFOUND, "'%s': there is no kernel '%s' in it: %s",
				    by->path, by->kernel, ts_opencl_error_name(code));
	return recorded_kernel(session, function, &object->function.handle, err);
}

static bool is_needed_function(const struct ts_replay_session *session, uint32_t object)
{
	return session->objects[object].is_needed &&
	       ts_opencl_info(session, object)->kind == TS_OBJECT_FUNCTION;
}

/* A kernel, or if its module does not build, all kernels of that. */
static bool reject(struct ts_replay_session *session, uint32_t function, struct ts_error *err)
{
	uint32_t module = ts_opencl_info(session, function)->parent;

	return ts_replay_reject_object(session->replay,
				       session->objects[module].module ? function : module, err);
}

static int make_recorded(struct ts_replay_session *session, struct ts_error *err)
{
	int failure = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		uint32_t module = ts_opencl_info(session, i)->parent;
		int rc = TS_OK;

		if (is_needed_function(session, i) &&
		    !ts_opencl_info(session, module)->unreplayable)
			rc = make_function(session, i, err);
		if (!rc)
			continue;
		failure = rc;
		/* A replacement is input of the user, and can be corrected. */
		if (find_replacement(session, i) || !reject(session, i, err))
			break;
	}
	return failure;
}

int ts_opencl_make_functions(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (is_needed_function(session, i))
			rc = make_replacement(session, i, err);
	return rc ? rc : make_recorded(session, err);
}

void ts_opencl_free_functions(struct ts_replay_session *session)
{
	const struct ts_opencl_api *api = &session->api;

	for (uint32_t i = 0; session->objects && i < session->stream->object_count; i++) {
		struct ts_opencl_object *object = &session->objects[i];
		enum ts_object_kind kind = ts_opencl_info(session, i)->kind;

		if (!object->is_needed)
			continue;
		if (kind == TS_OBJECT_FUNCTION && object->function.handle)
			api->clReleaseKernel(object->function.handle);
		if (kind == TS_OBJECT_MODULE && object->module)
			api->clReleaseProgram(object->module);
	}
	for (size_t i = 0; i < session->replaced_count; i++)
		api->clReleaseProgram(session->replaced[i].handle);
	free(session->replaced);
}
