/* SPDX-License-Identifier: Apache-2.0 */
/* Shared virtual memory: allocations, and commands on it. */
#include <stdlib.h>

#include <tracesmith/schema.h>

#include "backends/opencl/calls/opencl_calls.h"

void *CL_API_CALL hook_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
				  cl_uint alignment)
{
	struct ocl_object *memory;
	struct ocl_call call;
	void *address;

	if (!ocl_is_watched())
		return ocl.next.clSVMAlloc(context, flags, size, alignment);
	OCL_BEGIN(&call, "clSVMAlloc");
	address = ocl.next.clSVMAlloc(context, flags, size, alignment);
	ocl_emit_call(&call, address ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE);
	memory = address && ocl.replayable ? ocl_add_in(context, OCL_SVM, address) : NULL;
	if (memory) {
		memory->bytes = size;
		stream_created_svm(memory, flags, size);
	}
	ocl_end(&call);
	return address;
}

void CL_API_CALL hook_clSVMFree(cl_context context, void *svm_pointer)
{
	struct ocl_call call;

	OCL_BEGIN(&call, "clSVMFree");
	ocl_release(OCL_SVM, svm_pointer);
	call.start = ts_now();
	ocl.next.clSVMFree(context, svm_pointer);
	ocl_emit_call(&call, CL_SUCCESS);
	ocl_end(&call);
}

/* ---- freed by a command ---- */

typedef void(CL_CALLBACK *free_function)(cl_command_queue, cl_uint, void *[], void *);

/* Passed to the driver instead of the program's own. */
struct notice {
	free_function free_them;
	void *user_data;
};

static void CL_CALLBACK called_back(cl_command_queue queue, cl_uint count, void *pointers[],
				    void *user_data)
{
	struct notice notice = *(struct notice *)user_data;

	free(user_data);
	ts_replay_callback_begin();
	notice.free_them(queue, count, pointers, notice.user_data);
	ts_replay_callback_end();
}

/* A program that passes its own function frees them itself, with clSVMFree(). */
static void forget(cl_uint count, void *const *pointers)
{
	for (cl_uint i = 0; i < count; i++)
		ocl_release(OCL_SVM, pointers[i]);
}

static cl_int enqueue_free(struct ocl_command *command, cl_command_queue queue, void *pointers[],
			   free_function free_them, void *user_data, cl_uint wait_count)
{
	struct notice *notice = free_them && ocl.replayable ? malloc(sizeof(*notice)) : NULL;
	cl_int result;

	if (notice)
		*notice = (struct notice){ free_them, user_data };
	result = ocl.next.clEnqueueSVMFree(
		queue, command->pointer_count, pointers, notice ? called_back : free_them,
		notice ? notice : user_data, wait_count, command->waits, command->event_out);
	if (result != CL_SUCCESS)
		free(notice);
	return result;
}

cl_int CL_API_CALL
hook_clEnqueueSVMFree(cl_command_queue queue, cl_uint num_svm_pointers, void *svm_pointers[],
		      void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint, void *[], void *),
		      void *user_data, cl_uint wait_count, const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueSVMFree(queue, num_svm_pointers, svm_pointers,
						 pfn_free_func, user_data, wait_count, waits,
						 event);
	struct ocl_command command = { .verb = OCL_SVM_FREE,
				       .pointer_count = num_svm_pointers,
				       .pointers = svm_pointers };
	cl_int result;

	OCL_SITES(&command, "clEnqueueSVMFree", "free SVM", "host", HOST, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	result = enqueue_free(&command, queue, svm_pointers, pfn_free_func, user_data, wait_count);
	ocl_given(&command, result);
	if (result == CL_SUCCESS && !pfn_free_func && svm_pointers)
		forget(num_svm_pointers, svm_pointers);
	return result;
}

/* ---- commands ---- */

cl_int CL_API_CALL hook_clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking_copy,
					   void *dst_ptr, const void *src_ptr, size_t size,
					   cl_uint wait_count, const cl_event *waits,
					   cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueSVMMemcpy(queue, blocking_copy, dst_ptr, src_ptr, size,
						   wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_SVM_COPY,
				       .blocking = blocking_copy,
				       .host = dst_ptr,
				       .host_source = src_ptr,
				       .bytes = size };

	OCL_SITES(&command, "clEnqueueSVMMemcpy", "copy SVM", "copy", COPY, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueSVMMemcpy(queue, ocl_blocks(&command), dst_ptr, src_ptr,
						     size, wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueSVMMemFill(cl_command_queue queue, void *svm_ptr,
					    const void *pattern, size_t pattern_size, size_t size,
					    cl_uint wait_count, const cl_event *waits,
					    cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueSVMMemFill(queue, svm_ptr, pattern, pattern_size, size,
						    wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_SVM_FILL,
				       .host = svm_ptr,
				       .host_source = pattern,
				       .pattern_bytes = pattern_size,
				       .bytes = size };

	OCL_SITES(&command, "clEnqueueSVMMemFill", "fill SVM", "fill", FILL, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueSVMMemFill(queue, svm_ptr, pattern, pattern_size, size,
						      wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking_map,
					cl_map_flags flags, void *svm_ptr, size_t size,
					cl_uint wait_count, const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueSVMMap(queue, blocking_map, flags, svm_ptr, size,
						wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_SVM_MAP,
				       .blocking = blocking_map,
				       .map_flags = flags,
				       .host = svm_ptr,
				       .bytes = size };

	OCL_SITES(&command, "clEnqueueSVMMap", "map SVM", "copy", COPY, DEVICE_TO_HOST);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command,
			 ocl.next.clEnqueueSVMMap(queue, ocl_blocks(&command), flags, svm_ptr, size,
						  wait_count, waits, command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueSVMUnmap(cl_command_queue queue, void *svm_ptr, cl_uint wait_count,
					  const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueSVMUnmap(queue, svm_ptr, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_SVM_UNMAP, .host = svm_ptr };

	OCL_SITES(&command, "clEnqueueSVMUnmap", "unmap SVM", "copy", COPY, HOST_TO_DEVICE);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueSVMUnmap(queue, svm_ptr, wait_count, waits,
							      command.event_out));
}

cl_int CL_API_CALL hook_clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint num_svm_pointers,
					       const void **svm_pointers, const size_t *sizes,
					       cl_mem_migration_flags flags, cl_uint wait_count,
					       const cl_event *waits, cl_event *event)
{
	if (!ocl_is_watched())
		return ocl.next.clEnqueueSVMMigrateMem(queue, num_svm_pointers, svm_pointers, sizes,
						       flags, wait_count, waits, event);
	struct ocl_command command = { .verb = OCL_SVM_MIGRATE };

	OCL_SITES(&command, "clEnqueueSVMMigrateMem", "migrate SVM", "copy", COPY, UNKNOWN);
	ocl_give(&command, queue, wait_count, waits, event);
	return ocl_given(&command, ocl.next.clEnqueueSVMMigrateMem(
					   queue, num_svm_pointers, svm_pointers, sizes, flags,
					   wait_count, waits, command.event_out));
}
