/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that run on a real CUDA driver and on the stand-in in driver/: what they use of the
 * driver, and the images of their kernels.
 */
#ifndef TS_TESTS_CUDA_WORK_DRIVER_H
#define TS_TESTS_CUDA_WORK_DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tracesmith/emit.h>

#include "code/cuda/local/cuda_abi.h"

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxCreate_v2(void **context, unsigned int flags, int device);
int cuCtxCreate_v3(void **context, void *params, int count, unsigned int flags, int device);
int cuCtxDestroy_v2(void *context);
int cuCtxSetCurrent(void *context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSynchronize(void);
int cuCtxSetLimit(int limit, size_t value);
int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
			uint32_t *status);
int cuGetExportTable(const void **table, const void *id);

int cuMemGetInfo_v2(size_t *available, size_t *total);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height,
		       unsigned int element);
int cuMemFree_v2(uint64_t address);
int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream);
int cuMemFreeAsync(uint64_t address, void *stream);
int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream);
int cuMemPoolCreate(void **pool, const void *props);
int cuMemPoolDestroy(void *pool);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
int cuMemPoolTrimTo(void *pool, size_t bytes);
int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t hint,
			unsigned long long flags);
int cuMemAddressFree(uint64_t address, size_t bytes);
int cuMemCreate(unsigned long long *handle, size_t bytes, const struct cuda_allocation_prop *prop,
		unsigned long long flags);
int cuMemRelease(unsigned long long handle);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, unsigned long long handle,
	     unsigned long long flags);
int cuMemUnmap(uint64_t address, size_t bytes);
int cuMemSetAccess(uint64_t address, size_t bytes, const struct cuda_access *access, size_t count);
int cuMemRetainAllocationHandle(unsigned long long *handle, void *address);
int cuMemAllocHost_v2(void **address, size_t bytes);
int cuMemHostAlloc(void **address, size_t bytes, unsigned int flags);
int cuMemFreeHost(void *address);
int cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags);
int cuMemHostUnregister(void *address);
int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned int flags);
int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address);
int cuPointerGetAttribute(void *value, int attribute, uint64_t address);
int cuPointerGetAttributes(unsigned int count, const int *attributes, void **values,
			   uint64_t address);

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2_ptsz(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2_ptsz(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes);
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream);
int cuMemcpy2D_v2(const struct cuda_copy_2d *copy);
int cuMemcpy2DAsync_v2(const struct cuda_copy_2d *copy, void *stream);
int cuMemcpy3D_v2(const struct cuda_copy_3d *copy);
int cuMemcpy3DAsync_v2(const struct cuda_copy_3d *copy, void *stream);
int cuMemcpyBatchAsync_v2(const uint64_t *to, const uint64_t *from, const size_t *bytes,
			  size_t count, void *attributes, size_t *indices, size_t attribute_count,
			  void *stream);
int cuMemcpy3DBatchAsync_v2(size_t count, const struct cuda_copy_of_batch *copies,
			    unsigned long long flags, void *stream);
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream);
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream);
int cuMemsetD32_v2(uint64_t to, unsigned int value, size_t count);
int cuMemsetD32Async(uint64_t to, unsigned int value, size_t count, void *stream);
int cuMemsetD2D8_v2(uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height);
int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned int value, size_t width, size_t height,
		       void *stream);

int cuStreamCreate(void **stream, unsigned int flags);
int cuStreamCreateWithPriority(void **stream, unsigned int flags, int priority);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuStreamSynchronize_ptsz(void *stream);
int cuStreamQuery(void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned int flags);
int cuEventCreate(void **event, unsigned int flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventRecordWithFlags(void *event, void *stream, unsigned int flags);
int cuEventSynchronize(void *event);
int cuEventQuery(void *event);
int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data);
int cuStreamAddCallback(void *stream, void *call, void *data, unsigned int flags);
int cuStreamSetAttribute(void *stream, int attribute, const void *value);
int cuStreamWaitValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned int flags);
int cuStreamBatchMemOp_v2(void *stream, unsigned int count, void *operations, unsigned int flags);
int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned int flags);

int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadDataEx(void **module, const void *image, unsigned int count, int *options,
		       void **values);
int cuModuleLoad(void **module, const char *path);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name);
int cuLibraryLoadData(void **library, const void *image, int *options, void **values,
		      unsigned int count, int *library_options, void **library_values,
		      unsigned int library_count);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *library, const char *name);
int cuLibraryGetManaged(uint64_t *address, size_t *bytes, void *library, const char *name);
int cuKernelGetFunction(void **function, void *kernel);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
		   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		   void *stream, void **params, void **extra);
int cuLaunchKernel_ptsz(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			void *stream, void **params, void **extra);
int cuLaunchCooperativeKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
			      unsigned int bx, unsigned int by, unsigned int bz,
			      unsigned int shared, void *stream, void **params);
int cuLaunchKernelEx(const struct cuda_launch_config *config, void *function, void **params,
		     void **extra);

int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuStreamIsCapturing(void *stream, int *status);
int cuGraphCreate(void **graph, unsigned int flags);
int cuGraphDestroy(void *graph);
int cuGraphAddKernelNode_v2(void **node, void *graph, void *const *after, size_t count,
			    const struct cuda_kernel_node *params);
int cuGraphAddMemcpyNode(void **node, void *graph, void *const *after, size_t count,
			 const struct cuda_copy_3d *copy, void *context);
int cuGraphAddMemsetNode(void **node, void *graph, void *const *after, size_t count,
			 const struct cuda_fill_node *fill, void *context);
int cuGraphAddChildGraphNode(void **node, void *graph, void *const *after, size_t count,
			     void *child);
int cuGraphAddEmptyNode(void **node, void *graph, void *const *after, size_t count);
int cuGraphAddHostNode(void **node, void *graph, void *const *after, size_t count,
		       const void *host);
int cuGraphAddNode_v2(void **node, void *graph, void *const *after, const void *edges, size_t count,
		      void *params);
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node,
				      const struct cuda_kernel_node *params);
int cuGraphExecUpdate_v2(void *exec, void *graph, void *result);
int cuGraphExecDestroy(void *exec);
int cuGraphLaunch(void *exec, void *stream);

int cuArrayCreate_v2(void **array, const void *description);
int cuTexObjectCreate(void **texture, const void *resource, const void *description,
		      const void *view);
int cuSurfObjectCreate(void **surface, const void *resource);
int cuIpcGetMemHandle(void *handle, uint64_t address);
struct ipc_handle {
	char bytes[64];
};
int cuIpcOpenMemHandle_v2(uint64_t *address, struct ipc_handle handle, unsigned int flags);
int cuMemExportToShareableHandle(void *shareable, unsigned long long handle, int type,
				 unsigned long long flags);
int cuImportExternalMemory(void **memory, const void *description);
int cuImportExternalSemaphore(void **semaphore, const void *description);
int cuGreenCtxCreate(void **context, void *description, int device, unsigned int flags);
int cuMulticastCreate(unsigned long long *handle, const void *prop);
int cuCtxEnablePeerAccess(void *context, unsigned int flags);

/* A file of this folder, in the program: work_image and work_image_end. */
#define WORK_IMAGE(name, file)                                                                \
	__asm__(".section .rodata\n.balign 16\n.globl " #name "\n" #name ":\n.incbin \"" file \
		"\"\n.globl " #name "_end\n" #name "_end:\n.byte 0\n.previous\n");            \
	extern const char name[], name##_end[]

/* As compilers wrap an image. */
struct work_wrapper {
	uint32_t magic, version;
	const void *data;
	void *unused;
};
#define WORK_WRAPPER(image) \
	(&(const struct work_wrapper){ .magic = 0x466243B1, .version = 1, .data = image })

/* A step of the program, if it is recorded. */
#pragma weak ts_step
static inline void work_step(int64_t number)
{
	if (ts_step)
		TS_STEP(number);
}

#define CHECK(call)                                                                            \
	do {                                                                                   \
		int check_ = (call);                                                           \
                                                                                               \
		if (check_) {                                                                  \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, check_); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

#endif
