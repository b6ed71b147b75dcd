/* SPDX-License-Identifier: Apache-2.0 */
/* Live handles of OpenCL. The source is part of the agent, so it is included here. */
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include "backends/opencl/calls/opencl_objects.c" /* NOLINT(bugprone-suspicious-include) */

struct ocl ocl;
static unsigned int gone;

void stream_gone(struct ocl_object *object)
{
	(void)object;
	gone++;
}

static void *handle_at(uintptr_t number)
{
	return (void *)(0x10000 + number * 0x40);
}

TS_TEST(objects_are_found_by_kind_and_handle)
{
	struct ocl_object *queue = ocl_add(OCL_QUEUE, handle_at(1));
	struct ocl_object *kernel = ocl_add(OCL_KERNEL, handle_at(1));

	TS_CHECK(queue && kernel && queue != kernel);
	TS_CHECK(ocl_find(OCL_QUEUE, handle_at(1)) == queue);
	TS_CHECK(ocl_find(OCL_KERNEL, handle_at(1)) == kernel);
	TS_CHECK(!ocl_find(OCL_MEMORY, handle_at(1)));
	TS_CHECK(!ocl_find(OCL_QUEUE, handle_at(2)));
	TS_CHECK(!ocl_find(OCL_QUEUE, NULL));
	TS_CHECK_INT(queue->number, 1);
	TS_CHECK_INT(ocl_add(OCL_QUEUE, handle_at(2))->number, 2);
}

TS_TEST(objects_go_with_the_last_reference)
{
	ocl.replayable = true;
	ocl_add(OCL_MEMORY, handle_at(1));
	ocl_retain(OCL_MEMORY, handle_at(1));
	TS_CHECK(!ocl_release(OCL_MEMORY, handle_at(1)));
	TS_CHECK_INT(gone, 0);
	TS_CHECK(ocl_release(OCL_MEMORY, handle_at(1)));
	TS_CHECK_INT(gone, 1);
	TS_CHECK(!ocl_find(OCL_MEMORY, handle_at(1)));
	TS_CHECK(!ocl_release(OCL_MEMORY, handle_at(1)));
	/* A reused handle is another object. */
	TS_CHECK_INT(ocl_add(OCL_MEMORY, handle_at(1))->number, 2);
}

TS_TEST(objects_that_are_held_stay)
{
	struct ocl_object *context = ocl_add(OCL_CONTEXT, handle_at(1)), *queue;

	queue = ocl_add_in(handle_at(1), OCL_QUEUE, handle_at(2));
	TS_CHECK(queue->context == context);
	TS_CHECK(ocl_release(OCL_CONTEXT, handle_at(1)));
	/* Its memory does not belong to another context while the queue exists. */
	TS_CHECK(ocl_add(OCL_CONTEXT, handle_at(3)) != context);
	TS_CHECK_INT(queue->context->number, 1);
	TS_CHECK(ocl_release(OCL_QUEUE, handle_at(2)));
	TS_CHECK(ocl_add(OCL_CONTEXT, handle_at(4)) == context);
}

static void collect(struct ocl_object *object, void *context)
{
	uint32_t *sum = context;

	*sum = *sum * 10 + object->number;
}

TS_TEST(objects_are_visited_in_the_order_of_their_making)
{
	uint32_t order = 0;

	for (uintptr_t i = 1; i <= 5; i++)
		ocl_add(OCL_PROGRAM, handle_at(i));
	ocl_release(OCL_PROGRAM, handle_at(1));
	ocl_release(OCL_PROGRAM, handle_at(3));
	ocl_add(OCL_PROGRAM, handle_at(3));
	ocl_each(OCL_PROGRAM, collect, &order);
	TS_CHECK_INT(order, 2456);
}

TS_TEST(kernels_of_one_name_have_one_site)
{
	char name[] = "gemm";
	struct ts_emit_site *site = ocl_kernel_site(name);

	name[0] = 'G';
	TS_CHECK_STR(site->name, "gemm");
	TS_CHECK(ocl_kernel_site("gemm") == site);
	TS_CHECK(ocl_kernel_site("Gemm") != site);
	TS_CHECK_STR(site->category, "kernel");
}

/* Entries that stay can be found at any time, while others in their chains come and go. */
static void *churn(void *number)
{
	uintptr_t base = (uintptr_t)number;

	for (unsigned int round = 0; round < 300; round++) {
		for (uintptr_t i = 0; i < 200; i++)
			ocl_add(OCL_EVENT, handle_at(base + i));
		for (uintptr_t i = 0; i < 200; i++)
			ocl_release(OCL_EVENT, handle_at(base + i));
	}
	return NULL;
}

TS_TEST(objects_are_found_while_others_come_and_go)
{
	pthread_t threads[2];

	for (uintptr_t i = 0; i < 100; i++)
		ocl_add(OCL_EVENT, handle_at(i));
	pthread_create(&threads[0], NULL, churn, (void *)1000);
	pthread_create(&threads[1], NULL, churn, (void *)500000);
	for (unsigned int round = 0; round < 2000; round++)
		for (uintptr_t i = 0; i < 100; i++)
			TS_CHECK(ocl_find(OCL_EVENT, handle_at(i)));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	TS_CHECK(!ocl_find(OCL_EVENT, handle_at(1000)));
}

#else

TS_TEST(objects_need_headers)
{
	ts_test_skip("built without OpenCL");
}

#endif
