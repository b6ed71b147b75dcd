/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device activity (src/backends/cuda) on a stand-in for CUPTI: layouts by version, buffers,
 * windows, graphs, fork and exit.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "cuda/played.h"

/* ---- start ---- */

TS_TEST(begins_with_four_kinds_and_one_subscription)
{
	uint32_t kinds = 0;

	begin();
	begin();
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
	TS_CHECK_INT(cupti_played->subscriptions, 1);
	TS_CHECK_INT(cupti_played->registered, 1);
	for (uint32_t kind = 0; kind < 128; kind++)
		kinds += cupti_played->kinds[kind];
	TS_CHECK_INT(kinds, 4);
	TS_CHECK(cupti_played->kinds[CUPTI_KIND_CONCURRENT_KERNEL]);
	TS_CHECK(!cupti_played->kinds[CUPTI_KIND_KERNEL] &&
		 !cupti_played->kinds[CUPTI_KIND_DRIVER]);
	TS_CHECK_INT(cupti_played->zeroed, 1);
	TS_CHECK(cupti_played->timestamp == cuda_clock_timestamp);
	TS_CHECK(strstr(fact, "\"state\": \"on\"") != NULL);
	TS_CHECK(strstr(fact, "130001") != NULL);
	TS_CHECK(cuda_cupti("cuptiFinalize") != NULL);
}

/*
 * Inside callbacks the dynamic linker's lock may be held by another thread that waits for the
 * driver.
 */
TS_TEST(functions_are_found_once)
{
	uint32_t requested_before;

	begin();
	requested_before = symbols_requested;
	TS_CHECK(requested_before > 0);
	TS_CHECK(cuda_cupti("cuptiPCSamplingEnable") != NULL);
	TS_CHECK(cuda_cupti("cuptiPCSamplingGetData") != NULL);
	TS_CHECK(cuda_cupti("cuptiGetCubinCrc") != NULL);
	TS_CHECK(cuda_cupti_mapped("cuptiActivityEnable") != NULL);
	TS_CHECK(cuda_cupti("cuptiNothing") == NULL);
	TS_CHECK_INT(symbols_requested, requested_before);
}

TS_TEST(a_kernel_is_an_operation)
{
	uint32_t correlation, context = 0;
	const struct ts_gpu_op *op = &ops[0].op;

	begin();
	correlation = launch(33);
	TS_CHECK(correlation != 0);
	cupti_played->complete(1, 1000, 3000);
	await_ops(1);
	TS_CHECK_STR(ops[0].name, "_Z6kernelPf");
	TS_CHECK_STR(ops[0].category, "kernel");
	TS_CHECK_INT(op->kind, TS_GPU_OP_KERNEL);
	TS_CHECK_INT(op->correlation, correlation);
	TS_CHECK_INT(op->start, 1000);
	TS_CHECK_INT(op->end, 3000);
	TS_CHECK_INT(op->queued, TS_UNKNOWN);
	TS_CHECK_INT(op->grid[0], 33);
	TS_CHECK_INT(op->block[0], 128);
	TS_CHECK_INT(op->registers, 32);
	TS_CHECK_INT(op->shared_bytes, 1024);
	TS_CHECK_INT(op->stream, 7);
	TS_CHECK_INT(op->context, 1);
	TS_CHECK_INT(stream_count, 1);
	TS_CHECK(clock_count >= 1);
	TS_CHECK_INT(cuda_stream_number((void *)13, &context), 13);
	TS_CHECK_INT(context, 5);
}

TS_TEST(copies_and_fills_have_the_names_of_torch_profiler)
{
	begin();
	launch_as(&(struct stand_in_work){ .kind = CUPTI_KIND_MEMCPY, .number = COPY });
	launch_as(&(struct stand_in_work){ .kind = CUPTI_KIND_MEMCPY2, .number = COPY });
	launch_as(&(struct stand_in_work){ .kind = CUPTI_KIND_MEMSET, .number = COPY });
	cupti_played->complete(3, 10, 20);
	await_ops(3);
	TS_CHECK_STR(ops[0].name, "Memcpy HtoD (Pageable -> Device)");
	TS_CHECK_STR(ops[0].category, "gpu_memcpy");
	TS_CHECK_INT(ops[0].op.copy_kind, TS_COPY_HOST_TO_DEVICE);
	TS_CHECK_INT(ops[0].op.bytes, 4096);
	TS_CHECK_STR(ops[1].name, "Memcpy PtoP (Device -> Device)");
	TS_CHECK_INT(ops[1].op.correlation, 2);
	TS_CHECK_STR(ops[2].name, "Memset (Device)");
	TS_CHECK_STR(ops[2].category, "gpu_memset");
	TS_CHECK_INT(ops[2].op.kind, TS_GPU_OP_FILL);
}

TS_TEST(a_collective_has_its_bytes)
{
	struct stand_in_work work = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .number = LAUNCH,
				      .name = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LLv",
				      .grid = 1 };

	begin();
	cuda_device_collective(launch_as(&work), 1 << 20);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
	TS_CHECK_INT(ops[0].op.kind, TS_GPU_OP_COLLECTIVE);
	TS_CHECK_INT(ops[0].op.bytes, 1 << 20);
}

TS_TEST(names_are_told_apart_by_their_text)
{
	char name[32] = "first";
	struct stand_in_work work = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL, .number = LAUNCH, .name = name, .grid = 1
	};

	begin();
	launch_as(&work);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
	/* A module was unloaded, another one has its name at the same address. */
	memcpy(name, "second", sizeof("second"));
	launch_as(&work);
	cupti_played->complete(1, 30, 40);
	await_ops(2);
	TS_CHECK_STR(ops[0].name, "first");
	TS_CHECK_STR(ops[1].name, "second");
}

/* ---- buffers ---- */

TS_TEST(the_complete_begin_of_a_held_buffer_is_read_once)
{
	begin();
	cupti_played->keeps_going = true;
	for (uint32_t i = 1; i <= 3; i++)
		launch(i);
	cupti_played->complete(2, 100, 200);
	await_ops(2);
	TS_CHECK_INT(cupti_played->outstanding, 1);
	let_helper_look();
	TS_CHECK_INT(ops_now(), 2);
	cupti_played->complete(1, 300, 400);
	await_ops(3);
	launch(4);
	cupti_played->complete(1, 500, 600);
	cupti_played->keeps_going = false;
	await_ops(4);
	let_helper_look();
	TS_CHECK_INT(ops_now(), 4);
	for (uint32_t i = 0; i < 4; i++)
		TS_CHECK_INT(ops[i].op.grid[0], i + 1);
	TS_CHECK_INT(cupti_played->outstanding, 0);
	TS_CHECK_INT(cupti_played->forced, 0);
}

/*
 * A kernel runs for a long time on another stream: it does not delay later ones, once its name is
 * known.
 */
TS_TEST(what_is_behind_a_kernel_that_runs_on_is_read)
{
	begin();
	cupti_played->keeps_going = true;
	for (uint32_t i = 1; i <= 5; i++)
		launch(i);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
	cupti_played->complete_one(2, 30, 40);
	cupti_played->complete_one(4, 50, 60);
	await_ops(3);
	TS_CHECK_INT(ops[1].op.grid[0], 3);
	TS_CHECK_INT(ops[2].op.grid[0], 5);
	cupti_played->complete(4, 70, 80);
	cupti_played->keeps_going = false;
	await_ops(5);
	let_helper_look();
	TS_CHECK_INT(ops_now(), 5);
	TS_CHECK_INT(ops[3].op.grid[0], 2);
	TS_CHECK_INT(ops[4].op.grid[0], 4);
	TS_CHECK_INT(ops[3].op.end, 80);
}

/* A record holds the device's own clock until CUPTI has converted it. */
TS_TEST(a_time_that_is_not_converted_is_not_read)
{
	begin();
	cupti_played->keeps_going = true;
	launch(1);
	cupti_played->complete(1, UINT64_C(1) << 60, (UINT64_C(1) << 60) + 5);
	let_helper_look();
	TS_CHECK_INT(ops_now(), 0);
}

/* CUPTI has no times for some kernels: they ran all the same. */
TS_TEST(a_kernel_without_times_is_an_operation)
{
	begin();
	launch(1);
	cupti_played->complete(1, 0, 0);
	await_ops(1);
	TS_CHECK_INT(ops[0].op.start, TS_UNKNOWN);
	TS_CHECK_INT(ops[0].op.end, TS_UNKNOWN);
}

TS_TEST(thousands_of_records_in_many_buffers)
{
	begin();
	for (uint32_t i = 1; i <= 4000; i++)
		launch(i);
	TS_CHECK(cupti_played->outstanding > 50);
	cupti_played->complete(4000, 10, 20);
	await_ops(4000);
	for (uint32_t i = 0; i < 4000; i++)
		TS_CHECK_INT(ops[i].op.grid[0], i + 1);
	TS_CHECK_INT(lost, 0);
}

/*
 * The pool is exhausted: CUPTI gets a spare buffer repeatedly; its records are counted, and never
 * another tool's.
 */
TS_TEST(spare_buffers_come_home)
{
	uint8_t *buffer;
	size_t bytes, most;

	begin();
	do
		cuda_buffers_requested(&buffer, &bytes, &most);
	while (bytes == 16384);
	TS_CHECK(buffer != NULL && cuda_buffers_has(buffer));
	cuda_buffers_completed(NULL, 0, buffer, bytes, 0);
	for (uint32_t i = 1; i <= 300; i++) {
		uint32_t held = cuda_buffers_held();

		launch(i);
		TS_CHECK_INT(cupti_played->outstanding, 1);
		TS_CHECK_INT(cuda_buffers_held(), held + 1);
		cupti_played->complete(1, 10, 20);
		cuda_device_flush();
		TS_CHECK_INT(cupti_played->outstanding, 0);
		TS_CHECK_INT(cuda_buffers_held(), held);
	}
	for (int i = 0; i < WAIT_TRIES && (lost < 300 || !*lost_reason); i++)
		usleep(5000);
	TS_CHECK_INT(lost, 300);
	TS_CHECK_STR(lost_reason, "all buffers for CUPTI were in use");
	TS_CHECK_INT(ops_now(), 0);
}

TS_TEST(what_a_context_did_is_asked_for_before_it_ends)
{
	uint32_t before;

	begin();
	launch(1);
	cupti_played->complete(1, 10, 20);
	before = cupti_played->flushes;
	cuda_device_flush();
	TS_CHECK(cupti_played->flushes > before);
	TS_CHECK_INT(cupti_played->outstanding, 0);
	await_ops(1);
}

TS_TEST(what_cupti_drops_is_lost)
{
	begin();
	cupti_played->dropped = 12;
	for (int i = 0; i < WAIT_TRIES && !lost; i++)
		usleep(5000);
	TS_CHECK_INT(lost, 12);
}

/* ---- layouts ---- */

static void read_layout(uint32_t version, size_t kernel, size_t copy)
{
	open_stand_in();
	cupti_played->version = version;
	cupti_played->kernel_bytes = kernel;
	cupti_played->copy_bytes = copy;
	begin();
	launch(1);
	launch_as(&(struct stand_in_work){ .kind = CUPTI_KIND_MEMCPY, .number = COPY });
	launch(2);
	cupti_played->complete(3, 10, 20);
	await_ops(3);
	/* The learned layout applies to the buffers that were held back. */
	cupti_played->keeps_going = true;
	launch(3);
	launch_as(&(struct stand_in_work){ .kind = CUPTI_KIND_MEMCPY, .number = COPY });
	launch(4);
	cupti_played->complete(3, 30, 40);
	await_ops(6);
	TS_CHECK_INT(ops[0].op.grid[0], 1);
	TS_CHECK_INT(ops[1].op.bytes, 4096);
	TS_CHECK_INT(ops[2].op.grid[0], 2);
	TS_CHECK_INT(ops[3].op.grid[0], 3);
	TS_CHECK_INT(ops[5].op.grid[0], 4);
	TS_CHECK_INT(ops[5].op.end, 40);
}

TS_TEST(layout_of_cuda_11_8)
{
	read_layout(18, 200, 88);
}

TS_TEST(layout_of_cuda_12_0)
{
	read_layout(19, 208, 88);
}

TS_TEST(layout_of_cuda_12_8)
{
	read_layout(26, 208, 96);
}

TS_TEST(layout_of_cuda_13_0)
{
	read_layout(130000, 216, 96);
}

TS_TEST(layout_of_a_newer_cuda_is_learned)
{
	read_layout(130300, 232, 104);
}

/* Its version implies another length than its records have. */
TS_TEST(layout_that_differs_from_its_version_is_learned)
{
	read_layout(130000, 208, 96);
}

TS_TEST(layout_that_is_not_known_is_refused)
{
	open_stand_in();
	cupti_played->version = 130400;
	cupti_played->kernel_bytes = 160;
	begin();
	launch(1);
	launch(2);
	cupti_played->complete(2, 10, 20);
	await_state(CUDA_DEVICE_OFF);
	TS_CHECK_INT(ops_now(), 0);
	for (int i = 0; i < WAIT_TRIES && !strstr(fact, "layout"); i++)
		usleep(5000);
	TS_CHECK(strstr(fact, "unknown record layout") != NULL);
	TS_CHECK(!cupti_played->kinds[CUPTI_KIND_CONCURRENT_KERNEL]);
	/* No correlation is announced without a record to follow. */
	TS_CHECK_INT(launch(3), 0);
}

TS_TEST(too_old)
{
	open_stand_in();
	cupti_played->version = 12;
	begin();
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_OFF);
	TS_CHECK(strstr(fact, "too old") != NULL);
	TS_CHECK_INT(cupti_played->subscriptions, 0);
}

/* ---- windows ---- */

TS_TEST(what_is_given_outside_of_a_window_is_not_told)
{
	begin();
	launch(1);
	__atomic_store_n(&is_enabled, 0, __ATOMIC_SEQ_CST);
	cupti_played->call(&(struct stand_in_work){ .kind = CUPTI_KIND_CONCURRENT_KERNEL,
						    .number = LAUNCH,
						    .name = "outside",
						    .grid = 2 });
	__atomic_store_n(&is_enabled, 1, __ATOMIC_SEQ_CST);
	launch(3);
	cupti_played->complete(3, 10, 20);
	await_ops(2);
	let_helper_look();
	TS_CHECK_INT(ops_now(), 2);
	TS_CHECK_INT(ops[1].op.grid[0], 3);
}

TS_TEST(a_call_during_which_a_window_opens_counts)
{
	uint32_t correlation;

	begin();
	__atomic_store_n(&is_enabled, 0, __ATOMIC_SEQ_CST);
	correlation = launch(1);
	__atomic_store_n(&is_enabled, 1, __ATOMIC_SEQ_CST);
	cuda_device_given(correlation);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
}

TS_TEST(kinds_are_off_while_nothing_is_wanted)
{
	begin();
	__atomic_store_n(&is_enabled, 0, __ATOMIC_SEQ_CST);
	await_state(CUDA_DEVICE_IDLE);
	TS_CHECK(!cupti_played->kinds[CUPTI_KIND_CONCURRENT_KERNEL]);
	TS_CHECK(!cupti_played->is_called_back(CUPTI_DOMAIN_DRIVER, LAUNCH));
	TS_CHECK(cupti_played->is_called_back(CUPTI_DOMAIN_RESOURCE, CUPTI_NODE_CREATED));
	cuda_device_prepare();
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_IDLE);
	__atomic_store_n(&is_enabled, 1, __ATOMIC_SEQ_CST);
	cuda_device_prepare();
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_ON);
	launch(1);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
}

/* ---- calls that no wrapper saw, graphs, resources ---- */

TS_TEST(a_call_past_the_wrappers_is_recorded)
{
	begin();
	cupti_played->call(&(struct stand_in_work){ .number = LAUNCH, .result = 3 });
	TS_CHECK_INT(call_count, 1);
	TS_CHECK_INT(last_call.result, 3);
	TS_CHECK_INT(last_call.correlation, 0); /* it failed */
	TS_CHECK(last_call.stack != 0 && last_call.start != 0);
	cupti_played->call(&(struct stand_in_work){ .number = LAUNCH });
	TS_CHECK_INT(last_call.correlation, 2);
	/* Calls of wrappers and our own are not. */
	launch(1);
	cuda_thread.is_ours++;
	cupti_played->call(&(struct stand_in_work){ .number = LAUNCH });
	cuda_thread.is_ours--;
	TS_CHECK_INT(call_count, 2);
}

static void *node(uintptr_t id)
{
	return (void *)id;
}

TS_TEST(kernels_of_graphs_have_the_stack_of_their_capture)
{
	struct stand_in_work work = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .number = LAUNCH,
				      .name = "captured",
				      .grid = 1,
				      .graph = 9,
				      .node = 1003 };

	begin();
	cuda_thread.depth++;
	cuda_thread.node = 0;
	cupti_played->graph_node(node(1000), NULL);
	TS_CHECK_INT(cuda_thread.node, 1000);
	/* Another record of the same call: both have its stack. */
	cupti_played->graph_node(node(1001), NULL);
	cuda_thread.depth--;
	TS_CHECK_INT(cuda_thread.node, 1001);
	TS_CHECK(cuda_thread.stack != 0);
	cuda_device_captured(cuda_thread.node, cuda_thread.stack);
	/* Instantiated, and the instance cloned again. */
	cupti_played->graph_node(node(1002), node(1000));
	cupti_played->graph_node(node(1003), node(1002));
	launch_as(&work);
	work.node = 4711;
	launch_as(&work);
	cupti_played->complete(2, 10, 20);
	await_ops(2);
	TS_CHECK_INT(ops[0].op.stack, cuda_graphs_stack(1001));
	TS_CHECK(ops[0].op.stack != 0);
	TS_CHECK_INT(ops[0].op.graph, 9);
	TS_CHECK_INT(ops[0].op.graph_node, 1003);
	TS_CHECK_INT(ops[1].op.stack, 0);
}

/* A graph captured before a window is launched inside it. */
TS_TEST(graphs_captured_while_nothing_is_wanted_have_stacks)
{
	begin();
	__atomic_store_n(&is_enabled, 0, __ATOMIC_SEQ_CST);
	await_state(CUDA_DEVICE_IDLE);
	cuda_thread.depth++;
	cupti_played->graph_node(node(1000), NULL);
	cupti_played->graph_node(node(1001), NULL);
	cuda_thread.depth--;
	cupti_played->graph_node(node(1002), node(1000));
	TS_CHECK(cuda_thread.stack != 0);
	TS_CHECK_INT(cuda_graphs_stack(1000), cuda_thread.stack);
	TS_CHECK_INT(cuda_graphs_stack(1002), cuda_thread.stack);
	/* One without a stack leaves the known one. */
	cuda_device_captured(1000, 0);
	TS_CHECK_INT(cuda_graphs_stack(1000), cuda_thread.stack);
}

TS_TEST(a_million_nodes_are_kept_and_the_oldest_forgotten)
{
	begin();
	for (uint64_t id = 1; id <= 1500000; id++)
		cuda_device_captured(id, (uint32_t)id);
	TS_CHECK_INT(cuda_graphs_stack(1500000), 1500000);
	TS_CHECK_INT(cuda_graphs_stack(1100000), 1100000);
	TS_CHECK_INT(cuda_graphs_stack(1), 0);
	TS_CHECK_INT(cuda_graphs_stack(0), 0);
}

TS_TEST(contexts_and_modules_go_to_instruction_samples)
{
	struct cupti_module module = { .id = 3, .bytes = 4, .image = "abc" };
	struct cupti_resource resource = { .context = node(1), .descriptor = &module };

	samples = true;
	begin();
	cupti_played->resource(CUPTI_CONTEXT_CREATED, &resource);
	cupti_played->resource(CUPTI_MODULE_LOADED, &resource);
	TS_CHECK_INT(contexts_emitted, 1);
	TS_CHECK_INT(modules_emitted, 1);
}

/* ---- the end ---- */

TS_TEST(the_end_flushes_once_and_waits_for_nobody)
{
	begin();
	launch(1);
	launch(2);
	cupti_played->complete(1, 10, 20);
	errno = EXDEV;
	cuda_device_end();
	TS_CHECK_INT(errno, EXDEV);
	/* The helper flushes; on a busy machine it is not waited for to the end. */
	for (int i = 0; i < WAIT_TRIES && !cupti_played->forced; i++)
		usleep(5000);
	await_ops(1);
	TS_CHECK_INT(cupti_played->forced, 1);
	TS_CHECK_INT(cupti_played->outstanding, 0);
	TS_CHECK_INT(cuda_device_state(), CUDA_DEVICE_OFF);
	TS_CHECK(!cupti_played->kinds[CUPTI_KIND_CONCURRENT_KERNEL]);
	cuda_device_end();
}

TS_TEST(a_child_touches_nothing)
{
	uint32_t flushes;
	int status;
	pid_t child;

	begin();
	launch(1);
	child = fork();
	if (!child) {
		is_forked = true;
		flushes = cupti_played->flushes;
		cuda_device_prepare();
		cuda_device_given(1);
		cuda_device_end();
		cupti_played->kinds[CUPTI_KIND_CONCURRENT_KERNEL] = 0;
		launch(2);
		_exit(cuda_device_state() != CUDA_DEVICE_FORKED || call_count ||
		      cupti_played->flushes != flushes ||
		      cuda_stream_number(NULL, NULL) != UINT32_MAX);
	}
	TS_CHECK(waitpid(child, &status, 0) == child);
	TS_CHECK(WIFEXITED(status));
	TS_CHECK_INT(WEXITSTATUS(status), 0);
	cupti_played->complete(1, 10, 20);
	await_ops(1);
}
