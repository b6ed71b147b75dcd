/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, which name the commands that run them, and their arguments. */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/calls/opencl_calls.h"

/* Names can have any length. */
static struct ts_emit_site *site_of(cl_kernel kernel)
{
	struct ts_emit_site *site = NULL;
	size_t bytes = 0;
	char *name;

	if (ocl.next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, NULL, &bytes) !=
		    CL_SUCCESS ||
	    !bytes)
		return NULL;
	name = malloc(bytes);
	if (name && ocl.next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, bytes, name, NULL) ==
			    CL_SUCCESS)
		site = ocl_kernel_site(name);
	free(name);
	return site;
}

static struct ocl_object *add_kernel(cl_kernel handle, struct ts_emit_site *site)
{
	struct ocl_object *kernel = ocl_add(OCL_KERNEL, handle);

	if (kernel)
		kernel->site = site;
	return kernel;
}

struct ocl_object *ocl_kernel(cl_kernel handle)
{
	struct ocl_object *kernel = ocl_find(OCL_KERNEL, handle);
	struct ts_emit_site *site;

	if (kernel || !handle)
		return kernel;
	/* If it is not a kernel, the driver reports that. */
	site = site_of(handle);
	return site ? add_kernel(handle, site) : NULL;
}

static void created_kernel(cl_kernel handle, cl_program program, const char *name)
{
	struct ocl_object *kernel = add_kernel(handle, ocl_kernel_site(name));

	if (kernel && ocl.replayable)
		stream_created_kernel(kernel, ocl_find(OCL_PROGRAM, program), name, NULL);
}

cl_kernel CL_API_CALL hook_clCreateKernel(cl_program program, const char *kernel_name,
					  cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_kernel kernel;

	OCL_BEGIN(&call, "clCreateKernel");
	kernel = ocl.next.clCreateKernel(program, kernel_name, &error);
	ocl_emit_call(&call, error);
	if (kernel)
		created_kernel(kernel, program, kernel_name);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return kernel;
}

cl_int CL_API_CALL hook_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels,
						 cl_kernel *kernels, cl_uint *num_kernels_ret)
{
	struct ocl_call call;
	cl_uint count = 0;
	cl_int result;

	OCL_BEGIN(&call, "clCreateKernelsInProgram");
	result = ocl.next.clCreateKernelsInProgram(program, num_kernels, kernels, &count);
	ocl_emit_call(&call, result);
	for (cl_uint i = 0; result == CL_SUCCESS && kernels && i < count && i < num_kernels; i++) {
		const struct ts_emit_site *site = site_of(kernels[i]);

		if (site)
			created_kernel(kernels[i], program, site->name);
	}
	ocl_end(&call);
	if (result == CL_SUCCESS && num_kernels_ret)
		*num_kernels_ret = count;
	return result;
}

cl_kernel CL_API_CALL hook_clCloneKernel(cl_kernel source_kernel, cl_int *ret_error)
{
	struct ocl_object *source, *clone = NULL;
	cl_int error = CL_SUCCESS;
	struct ocl_call call;
	cl_kernel kernel;

	OCL_BEGIN(&call, "clCloneKernel");
	kernel = ocl.next.clCloneKernel(source_kernel, &error);
	ocl_emit_call(&call, error);
	source = ocl_kernel(source_kernel);
	if (kernel && source)
		clone = add_kernel(kernel, source->site);
	if (clone && ocl.replayable)
		stream_created_kernel(clone, NULL, source->site ? source->site->name : "", source);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return kernel;
}

/* ---- arguments ---- */

cl_int CL_API_CALL hook_clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
				       const void *arg_value)
{
	struct ocl_object *object;
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clSetKernelArg(kernel, arg_index, arg_size, arg_value);
	OCL_BEGIN(&call, "clSetKernelArg");
	result = ocl.next.clSetKernelArg(kernel, arg_index, arg_size, arg_value);
	ocl_emit_call(&call, result);
	if (ocl.replayable && result == CL_SUCCESS) {
		object = ocl_find(OCL_KERNEL, kernel);
		if (object)
			stream_set_argument(object, arg_index, arg_size, arg_value);
	}
	ocl_end(&call);
	return result;
}

cl_int CL_API_CALL hook_clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
						 const void *arg_value)
{
	struct ocl_object *object;
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clSetKernelArgSVMPointer(kernel, arg_index, arg_value);
	OCL_BEGIN(&call, "clSetKernelArgSVMPointer");
	result = ocl.next.clSetKernelArgSVMPointer(kernel, arg_index, arg_value);
	ocl_emit_call(&call, result);
	if (ocl.replayable && result == CL_SUCCESS) {
		object = ocl_find(OCL_KERNEL, kernel);
		if (object)
			stream_set_argument_svm(object, arg_index, arg_value);
	}
	ocl_end(&call);
	return result;
}

cl_int CL_API_CALL hook_clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info name, size_t size,
					    const void *value)
{
	struct ocl_object *object;
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clSetKernelExecInfo(kernel, name, size, value);
	OCL_BEGIN(&call, "clSetKernelExecInfo");
	result = ocl.next.clSetKernelExecInfo(kernel, name, size, value);
	ocl_emit_call(&call, result);
	if (ocl.replayable && result == CL_SUCCESS) {
		object = ocl_find(OCL_KERNEL, kernel);
		if (object)
			stream_set_exec_info(object, name, size, value);
	}
	ocl_end(&call);
	return result;
}
