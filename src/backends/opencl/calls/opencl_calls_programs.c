/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: their origin and how they are built. Tracked only in replayable recordings. */
#include <stdlib.h>

#include "backends/opencl/calls/opencl_calls.h"

static struct ocl_object *add_program(cl_context context, cl_program handle)
{
	return handle && ocl.replayable ? ocl_add_in(context, OCL_PROGRAM, handle) : NULL;
}

cl_program CL_API_CALL hook_clCreateProgramWithSource(cl_context context, cl_uint count,
						      const char **strings, const size_t *lengths,
						      cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_object *object;
	struct ocl_call call;
	cl_program program;

	OCL_BEGIN(&call, "clCreateProgramWithSource");
	program = ocl.next.clCreateProgramWithSource(context, count, strings, lengths, &error);
	ocl_emit_call(&call, error);
	object = add_program(context, program);
	if (object)
		stream_created_source(object, count, strings, lengths);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return program;
}

cl_program CL_API_CALL hook_clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
						      const cl_device_id *device_list,
						      const size_t *lengths,
						      const unsigned char **binaries,
						      cl_int *binary_status, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_object *object;
	struct ocl_call call;
	cl_program program;

	OCL_BEGIN(&call, "clCreateProgramWithBinary");
	program = ocl.next.clCreateProgramWithBinary(context, num_devices, device_list, lengths,
						     binaries, binary_status, &error);
	ocl_emit_call(&call, error);
	object = add_program(context, program);
	if (object)
		stream_created_binary(object, num_devices, device_list, lengths, binaries);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return program;
}

/* ---- builds, which may call back when done ---- */

typedef void(CL_CALLBACK *notify_function)(cl_program, void *);

/* Passed to the driver instead of the program's own. */
struct notice {
	notify_function notify;
	void *user_data;
	char *options; /* NULL: none */
	bool is_link;
};

static void free_notice(struct notice *notice)
{
	if (notice)
		free(notice->options);
	free(notice);
}

static cl_int build_result(cl_program program)
{
	cl_device_id device = NULL;
	cl_build_status status = CL_BUILD_SUCCESS;
	size_t bytes = 0;
	cl_device_id devices[128];

	if (ocl.next.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(devices), devices,
				      &bytes) == CL_SUCCESS &&
	    bytes >= sizeof(device))
		device = devices[0];
	ocl.next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
				       &status, NULL);
	return status == CL_BUILD_ERROR ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

static void CL_CALLBACK built(cl_program program, void *user_data)
{
	struct notice *notice = user_data;
	struct ocl_object *object;

	ts_replay_callback_begin();
	stream_enter();
	object = ocl_find(OCL_PROGRAM, program);
	if (object && notice->is_link)
		stream_linked(object, notice->options);
	else if (object)
		stream_built(object, notice->options, build_result(program));
	stream_leave();
	notice->notify(program, notice->user_data);
	ts_replay_callback_end();
	free_notice(notice);
}

/* NULL: the program passed no callback, the recording is not replayable, or no memory. */
static struct notice *make_notice(notify_function notify, void *user_data, const char *options,
				  bool is_link)
{
	struct notice *notice = notify && ocl.replayable ? calloc(1, sizeof(*notice)) : NULL;
	size_t bytes = 0;

	if (!notice)
		return NULL;
	notice->notify = notify;
	notice->user_data = user_data;
	notice->is_link = is_link;
	while (options && options[bytes])
		bytes++;
	notice->options = options ? malloc(bytes + 1) : NULL;
	for (size_t i = 0; notice->options && i <= bytes; i++)
		notice->options[i] = options[i];
	return notice;
}

/*
 * Without a notice, the build is done when the call returns; with one, unless it was refused,
 * built() has been or will be called.
 */
static void end_build(cl_program program, const char *options, cl_int result, struct notice *notice)
{
	struct ocl_object *object = ocl.replayable ? ocl_find(OCL_PROGRAM, program) : NULL;

	if (notice && result == CL_SUCCESS)
		return;
	if (object)
		stream_built(object, options, result);
}

cl_int CL_API_CALL hook_clBuildProgram(cl_program program, cl_uint num_devices,
				       const cl_device_id *device_list, const char *options,
				       void(CL_CALLBACK *pfn_notify)(cl_program, void *),
				       void *user_data)
{
	struct notice *notice = make_notice(pfn_notify, user_data, options, false);
	struct ocl_call call;
	cl_int result;

	OCL_BEGIN(&call, "clBuildProgram");
	result = ocl.next.clBuildProgram(program, num_devices, device_list, options,
					 notice ? built : pfn_notify, notice ? notice : user_data);
	ocl_emit_call(&call, result);
	end_build(program, options, result, notice);
	ocl_at_exit();
	ocl_end(&call);
	return result;
}

cl_int CL_API_CALL hook_clCompileProgram(cl_program program, cl_uint num_devices,
					 const cl_device_id *device_list, const char *options,
					 cl_uint num_input_headers, const cl_program *input_headers,
					 const char **header_include_names,
					 void(CL_CALLBACK *pfn_notify)(cl_program, void *),
					 void *user_data)
{
	struct notice *notice = make_notice(pfn_notify, user_data, options, false);
	struct ocl_call call;
	cl_int result;

	OCL_BEGIN(&call, "clCompileProgram");
	result = ocl.next.clCompileProgram(
		program, num_devices, device_list, options, num_input_headers, input_headers,
		header_include_names, notice ? built : pfn_notify, notice ? notice : user_data);
	ocl_emit_call(&call, result);
	end_build(program, options, result, notice);
	ocl_at_exit();
	ocl_end(&call);
	return result;
}

/* The program is known only when the call returns; a callback that came before found nothing. */
cl_program CL_API_CALL hook_clLinkProgram(cl_context context, cl_uint num_devices,
					  const cl_device_id *device_list, const char *options,
					  cl_uint num_input_programs,
					  const cl_program *input_programs,
					  void(CL_CALLBACK *pfn_notify)(cl_program, void *),
					  void *user_data, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_object *object;
	struct ocl_call call;
	cl_program program;

	OCL_BEGIN(&call, "clLinkProgram");
	program = ocl.next.clLinkProgram(context, num_devices, device_list, options,
					 num_input_programs, input_programs, pfn_notify, user_data,
					 &error);
	ocl_emit_call(&call, error);
	object = add_program(context, program);
	if (object)
		stream_linked(object, options);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return program;
}
