/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL functions that a replay calls, loaded at run time: the tool does not link OpenCL or need
 * it to start.
 */
#ifndef TS_REPLAY_TARGETS_OPENCL_OPENCL_API_H
#define TS_REPLAY_TARGETS_OPENCL_OPENCL_API_H

#define CL_TARGET_OPENCL_VERSION 300
/* clCreateCommandQueue(), clCreateSampler(): every driver has them. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <tracesmith/error.h>

/* Required functions: OpenCL 1.2. */
#define TS_OPENCL_CALLS(X)              \
	X(clGetPlatformIDs)             \
	X(clGetPlatformInfo)            \
	X(clGetDeviceIDs)               \
	X(clGetDeviceInfo)              \
	X(clCreateContext)              \
	X(clReleaseContext)             \
	X(clCreateCommandQueue)         \
	X(clReleaseCommandQueue)        \
	X(clCreateBuffer)               \
	X(clCreateSubBuffer)            \
	X(clCreateImage)                \
	X(clGetImageInfo)               \
	X(clCreateSampler)              \
	X(clReleaseSampler)             \
	X(clReleaseMemObject)           \
	X(clCreateProgramWithSource)    \
	X(clCreateProgramWithBinary)    \
	X(clBuildProgram)               \
	X(clGetProgramBuildInfo)        \
	X(clReleaseProgram)             \
	X(clCreateKernel)               \
	X(clGetKernelInfo)              \
	X(clSetKernelArg)               \
	X(clReleaseKernel)              \
	X(clEnqueueNDRangeKernel)       \
	X(clEnqueueReadBuffer)          \
	X(clEnqueueReadBufferRect)      \
	X(clEnqueueWriteBuffer)         \
	X(clEnqueueWriteBufferRect)     \
	X(clEnqueueCopyBuffer)          \
	X(clEnqueueCopyBufferRect)      \
	X(clEnqueueFillBuffer)          \
	X(clEnqueueReadImage)           \
	X(clEnqueueWriteImage)          \
	X(clEnqueueCopyImage)           \
	X(clEnqueueCopyImageToBuffer)   \
	X(clEnqueueCopyBufferToImage)   \
	X(clEnqueueFillImage)           \
	X(clEnqueueMarkerWithWaitList)  \
	X(clEnqueueBarrierWithWaitList) \
	X(clCreateUserEvent)            \
	X(clSetUserEventStatus)         \
	X(clWaitForEvents)              \
	X(clGetEventInfo)               \
	X(clGetEventProfilingInfo)      \
	X(clReleaseEvent)               \
	X(clFlush)                      \
	X(clFinish)

/* OpenCL 2.0: shared virtual memory. NULL with an older loader. */
#define TS_OPENCL_SVM_CALLS(X)      \
	X(clSVMAlloc)               \
	X(clSVMFree)                \
	X(clSetKernelArgSVMPointer) \
	X(clSetKernelExecInfo)      \
	X(clEnqueueSVMMemcpy)       \
	X(clEnqueueSVMMemFill)

struct ts_opencl_api {
	void *library;
#define TS_OPENCL_MEMBER(name) __typeof__(name) *name;
	TS_OPENCL_CALLS(TS_OPENCL_MEMBER)
	TS_OPENCL_SVM_CALLS(TS_OPENCL_MEMBER)
#undef TS_OPENCL_MEMBER
};

/*
 * Loads all functions; TS_ECAP if the loader is missing or too old. The loader is never unloaded:
 * drivers leave threads and exit handlers behind.
 */
int ts_opencl_api_open(struct ts_opencl_api *ret_api, struct ts_error *err);

/* "CL_INVALID_WORK_GROUP_SIZE"; "an error without a name" for unknown codes. */
const char *ts_opencl_error_name(cl_int code);

/* The nearest TraceSmith error: TS_ENOMEM or TS_ECAP. */
int ts_opencl_error_code(cl_int code);

#endif
