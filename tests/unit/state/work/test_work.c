/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader: what is joined, which part is kept, how ranks and lanes are numbered, what counts as
 * an anomaly.
 */
#include "unit/state/work/work_support.h"

static const struct ts_work_options everything = { .load_flags = TS_WORK_SLICES | TS_WORK_FLOWS |
								 TS_WORK_DETAILS,
						   .from_step = TS_ABSENT,
						   .to_step = TS_ABSENT,
						   .from = TS_ABSENT,
						   .to = TS_ABSENT };

TS_TEST(commands_find_their_calls)
{
	struct loaded l;
	const struct ts_work *work;

	/*
	 * The second kernel begins before its call; the third's call is missing; the last call has
	 * no kernel.
	 */
	load_events(&l, &everything,
		    CALL("10", "2", "5") CALL("20", "2", "6") CALL("30", "2", "7")
			    KERNEL("a", "7", "15", "4", "5") KERNEL("b", "7", "19", "4", "6")
				    KERNEL("c", "7", "40", "4", "99"),
		    NULL);
	work = l.work;
	TS_CHECK_INT(work->command_count, 3);
	TS_CHECK_INT(work->calls[work->commands[0].call].correlation, 5);
	TS_CHECK_INT(work->commands[0].issued, 10000);
	TS_CHECK_INT(work->calls[0].command, 0);
	TS_CHECK(work->commands[1].flags & TS_COMMAND_EARLY);
	TS_CHECK_INT(work->early_commands, 1);
	TS_CHECK_INT(work->earliest_ns, 1000);
	TS_CHECK_INT(work->commands[2].call, TS_WORK_NONE);
	TS_CHECK_INT(work->commands[2].issued, TS_ABSENT);
	TS_CHECK_INT(work->commands_without_call, 1);
	TS_CHECK_INT(work->calls_without_command, 1);
	unload(&l);
}

TS_TEST(a_graph_has_many_commands)
{
	struct loaded l;
	const struct ts_work *work;
	uint32_t order[3] = { 0 }, n = 0;

	load_events(&l, &everything,
		    NAMED_CALL("cudaGraphLaunch", "10", "2", "5") KERNEL("a", "7", "30", "4", "5")
			    KERNEL("b", "8", "20", "4", "5") KERNEL("c", "7", "25", "7", "5"),
		    NULL);
	work = l.work;
	TS_CHECK_INT(work->calls[0].command_count, 3);
	for (uint32_t c = work->calls[0].command; c != TS_WORK_NONE;
	     c = ts_work_next_of_call(work, c)) {
		TS_CHECK(work->commands[c].flags & TS_COMMAND_SHARES_CALL);
		order[n++] = c;
	}
	TS_CHECK_INT(n, 3);
	TS_CHECK_STR(ts_work_text(work, work->commands[order[0]].name), "b");
	TS_CHECK_STR(ts_work_text(work, work->commands[order[1]].name), "c");
	TS_CHECK_STR(ts_work_text(work, work->commands[order[2]].name), "a");
	TS_CHECK_INT(work->concurrent_commands, 1); /* a begins while c runs */
	unload(&l);
}

TS_TEST(of_two_calls_with_one_correlation_that_counts_which_enqueues)
{
	struct loaded l;

	load_events(&l, &everything,
		    NAMED_CALL("cudaStreamIsCapturing", "5", "1", "5")
			    NAMED_CALL("cudaMemcpyAsync", "10", "2", "5")
				    KERNEL("a", "7", "30", "4", "5"),
		    NULL);
	TS_CHECK_INT(l.work->commands[0].issued, 10000);
	TS_CHECK_INT(l.work->shared_calls, 1);
	unload(&l);
}

TS_TEST(commands_out_of_order)
{
	struct loaded l;

	load_events(&l, &everything,
		    CALL("10", "1", "5") CALL("20", "1", "6") KERNEL("late", "7", "50", "4", "5")
			    KERNEL("soon", "7", "30", "4", "6"),
		    NULL);
	TS_CHECK_INT(l.work->disordered_commands, 1);
	TS_CHECK(l.work->commands[1].flags & TS_COMMAND_DISORDERED);
	unload(&l);
}

static const char three_steps[] = SLICE("user_annotation", "ProfilerStep#1", "1", "0", "100")
	SLICE("user_annotation", "ProfilerStep#2", "1", "100", "100")
		SLICE("user_annotation", "ProfilerStep#3", "1", "200", "100") CALL("50", "1", "1")
			CALL("150", "1", "2") CALL("250", "1", "3")
				KERNEL("one", "7", "210", "5", "1")
					KERNEL("two", "7", "220", "5", "2")
						KERNEL("three", "7", "260", "5", "3")
							KERNEL("before", "7", "1", "5", "77");

/*
 * The last step is ignored: what it submitted, not what ran in it. Work submitted before the
 * recording is in no step.
 */
TS_TEST(the_last_step_is_left_out)
{
	struct loaded l;

	load_events(&l, &everything, three_steps, NULL);
	TS_CHECK_INT(l.work->ranks[0].steps_in_trace, 3);
	TS_CHECK_INT(l.work->step_count, 2);
	TS_CHECK_INT(l.work->command_count, 2);
	TS_CHECK_INT(l.work->dropped_commands, 2);
	TS_CHECK_INT(l.work->call_count, 2);
	TS_CHECK_INT(l.work->commands[0].start, 210000);
	TS_CHECK_INT(l.work->steps[l.work->commands[1].step].number, 2);
	unload(&l);
}

TS_TEST(all_or_some_steps_on_demand)
{
	struct ts_work_options options = everything;
	struct loaded l;

	options.all = true;
	load_events(&l, &options, three_steps, NULL);
	TS_CHECK_INT(l.work->command_count, 4);
	unload(&l);
	options = everything;
	options.from_step = options.to_step = 3;
	load_events(&l, &options, three_steps, NULL);
	TS_CHECK_INT(l.work->command_count, 1);
	TS_CHECK_STR(ts_work_text(l.work, l.work->commands[0].name), "three");
	unload(&l);
	options.from_step = options.to_step = 9;
	load_events(&l, &options, three_steps, NULL);
	TS_CHECK_INT(l.work->command_count + l.work->call_count + l.work->slice_count, 0);
	unload(&l);
}

/* The device's spans of steps begin later than the steps. Only HTA uses them. */
TS_TEST(the_last_step_begins_on_the_host)
{
	struct ts_work_options options = everything;
	struct loaded l;
	TS_SCOPED(ts_text) text = { 0 };

	ts_text_printf(&text, "%s%s", three_steps,
		       SLICE("gpu_user_annotation", "ProfilerStep#3", "7", "259", "7"));
	load_events(&l, &options, text.data, NULL);
	TS_CHECK_INT(l.work->ranks[0].steps_in_trace, 3);
	TS_CHECK_INT(l.work->step_count, 2);
	TS_CHECK_INT(l.work->command_count, 2);
	TS_CHECK_INT(l.work->call_count, 2);
	unload(&l);
	options.rounding = TS_ROUNDING_HTA;
	load_events(&l, &options, text.data, NULL);
	TS_CHECK_INT(l.work->step_count, 3);
	TS_CHECK_INT(l.work->command_count, 3);
	unload(&l);
}

TS_TEST(a_part_by_time)
{
	struct ts_work_options options = everything;
	struct loaded l;

	options.from = 100000;
	options.to = 199999;
	load_events(&l, &options, three_steps, NULL);
	TS_CHECK_INT(l.work->command_count, 1);
	TS_CHECK_INT(l.work->commands[0].start, 220000);
	unload(&l);
}

TS_TEST(slices_know_what_is_around_them)
{
	struct loaded l;
	const struct ts_work *work;

	load_events(&l, &everything,
		    OP("outer", "0", "100") OP("first", "0", "40") OP("leaf", "10", "5")
			    OP("second", "50", "50"),
		    NULL);
	work = l.work;
	TS_CHECK_INT(work->slice_count, 4);
	TS_CHECK_STR(ts_work_text(work, work->slices[0].name), "outer");
	TS_CHECK_INT(work->slices[1].parent, 0);
	TS_CHECK_INT(work->slices[2].parent, 1);
	TS_CHECK_INT(work->slices[3].parent, 0);
	TS_CHECK_INT(ts_work_slice_at(work, 0, 12000), 2);
	TS_CHECK_INT(ts_work_slice_at(work, 0, 15000), 1); /* leaf has ended */
	TS_CHECK_INT(ts_work_slice_at(work, 0, 45000), 0);
	TS_CHECK_INT(ts_work_slice_at(work, 0, 100000), TS_WORK_NONE);
	TS_CHECK_INT(ts_work_slice_at(work, 0, -1), TS_WORK_NONE);
	unload(&l);
}

/* Traces without a rank are numbered in their given order. */
TS_TEST(ranks_come_by_number)
{
	struct loaded l = { 0 };
	const struct ts_work *work;

	l.readers[l.count++] =
		read_events(KERNEL("a", "7", "1", "1", "5") "{'ph':'M','name':'x'},", -1);
	l.readers[l.count++] =
		read_events(KERNEL("b", "7", "2", "1", "5") KERNEL("b", "9", "1", "1", "5"), -1);
	load_readers(&l, &everything);
	work = l.work;
	TS_CHECK_INT(work->rank_count, 2);
	TS_CHECK_INT(work->ranks[1].rank, 1);
	TS_CHECK_INT(work->ranks[0].command_count, 1);
	TS_CHECK_INT(work->ranks[1].first_command, 1);
	TS_CHECK_INT(work->ranks[1].stream_count, 2);
	TS_CHECK_INT(work->streams[work->ranks[1].first_stream].number, 7);
	TS_CHECK_INT(work->device_count, 2);
	/* One text, one name, over all traces. */
	TS_CHECK_STR(ts_work_text(work, work->commands[2].name), "b");
	unload(&l);
}

/* Three sources, as one recorder of a launcher writes them: the launcher, and ranks 1 and 0. */
static void put_job(struct ts_writer *writer, bool launcher_works)
{
	for (int64_t i = 0; i < 3; i++) {
		struct ts_source_row source = ts_source_none;
		struct ts_process_row process = ts_process_none;
		struct ts_thread_row thread = ts_thread_none;
		struct ts_device_row device = ts_device_none;
		struct ts_gpu_op_row op = ts_gpu_op_none;
		struct ts_slice_row slice = ts_slice_none;

		source.id = process.id = thread.id = device.id = i + 1;
		source.rank = i == 0 ? TS_ABSENT : 2 - i;
		ts_writer_add(writer, TS_TABLE_SOURCE, &source, NULL);
		process.source = device.source = source.id;
		ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL);
		thread.process = process.id;
		ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL);
		ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
		slice.start = op.start = 10 + i;
		slice.duration = op.duration = 1;
		slice.thread = thread.id;
		slice.name = op.name = ts_writer_string(writer, "work", 4);
		ts_writer_add(writer, TS_TABLE_SLICE, &slice, NULL);
		op.device = device.id;
		op.kind = TS_GPU_OP_KERNEL;
		if (i || launcher_works)
			ts_writer_add(writer, TS_TABLE_GPU_OP, &op, NULL);
	}
}

static void load_job(struct loaded *l, bool launcher_works)
{
	char path[] = "/tmp/tracesmith-XXXXXX";
	struct ts_writer *writer = begin_trace(path);

	put_job(writer, launcher_works);
	*l = (struct loaded){ .readers = { end_trace(writer, path) }, .count = 1 };
	load_readers(l, &everything);
}

TS_TEST(a_launcher_is_not_a_rank)
{
	struct loaded l;

	load_job(&l, false);
	TS_CHECK_INT(l.work->rank_count, 2);
	TS_CHECK_INT(l.work->ranks[0].rank, 0);
	TS_CHECK_INT(l.work->ranks[1].rank, 1);
	TS_CHECK_INT(l.work->ranks[0].command_count, 1);
	TS_CHECK_INT(l.work->ranks[0].thread_count, 1);
	TS_CHECK_INT(l.work->slice_count, 2);
	unload(&l);
}

/* Unless it has work of its own: then it has a number that no rank has. */
TS_TEST(what_is_besides_the_ranks_has_a_number)
{
	struct loaded l;

	load_job(&l, true);
	TS_CHECK_INT(l.work->rank_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		TS_CHECK_INT(l.work->ranks[i].rank, i);
		TS_CHECK_INT(l.work->ranks[i].command_count, 1);
	}
	unload(&l);
}

TS_TEST(synchronisations_have_operands)
{
	struct loaded l;
	const struct ts_work_sync *sync;

	load_events(
		&l, &everything,
		KERNEL("a", "20", "1", "1",
		       "5") "{'ph':'X','cat':'cuda_sync','name':'Stream Wait Event','pid':0,'tid':24,'ts':5,'dur':2,'args':"
			    "{'wait_on_stream':20,'wait_on_cuda_event_record_corr_id':1385,'wait_on_cuda_event_id':19,"
			    "'stream':24,'correlation':1389,'device':0}},"
			    "{'ph':'X','cat':'cuda_sync','name':'Event Sync','pid':0,'tid':-1,'ts':9,'dur':2,'args':"
			    "{'wait_on_stream':-1,'stream':-1,'correlation':1390,'device':0}},",
		NULL);
	TS_CHECK_INT(l.work->command_count, 1);
	TS_CHECK_INT(l.work->sync_count, 2);
	sync = &l.work->syncs[0];
	TS_CHECK_INT(sync->kind, TS_SYNC_STREAM_WAIT);
	TS_CHECK_INT(l.work->streams[sync->stream].number, 24);
	TS_CHECK_INT(l.work->streams[sync->on_stream].number, 20);
	TS_CHECK_INT(sync->record_correlation, 1385);
	TS_CHECK_INT(sync->event, 19);
	sync = &l.work->syncs[1];
	TS_CHECK_INT(sync->kind, TS_SYNC_EVENT);
	TS_CHECK_INT(sync->stream, TS_WORK_NONE);
	TS_CHECK_INT(sync->on_stream, TS_WORK_NONE);
	unload(&l);
}

/* Stream 7 of device 1 only has a synchronisation: it must not seem to have device 0's commands. */
TS_TEST(a_stream_without_commands_stands_in_its_place)
{
	struct loaded l;
	const struct ts_work_stream *streams;

	load_events(
		&l, &everything,
		KERNEL("a", "20", "1", "1", "5") KERNEL(
			"b", "20", "2", "8",
			"5") "{'ph':'X','cat':'cuda_sync','name':'Stream Sync','pid':1,'tid':7,'ts':9,'dur':2,'args':"
			     "{'stream':7,'correlation':1390,'device':1}},"
			     "{'ph':'X','cat':'kernel','name':'c','pid':1,'tid':9,'ts':5,'dur':2,'args':"
			     "{'device':1,'stream':9,'correlation':3}},",
		NULL);
	streams = l.work->streams;
	TS_CHECK_INT(l.work->stream_count, 3);
	TS_CHECK_INT(streams[1].number, 7);
	TS_CHECK_INT(streams[1].command_count, 0);
	TS_CHECK_INT(streams[1].first_command, 2);
	TS_CHECK_INT(streams[2].first_command, 2);
	unload(&l);
}

TS_TEST(collectives_say_what_they_do)
{
	struct loaded l;

	load_events(
		&l, &everything,
		"{'ph':'X','cat':'kernel','name':'ncclDevKernel_AllReduce','pid':0,'tid':9,'ts':5,'dur':2,'args':{'device':0,"
		"'stream':9,'correlation':3,'Collective name':'allreduce','Process Group Name':'0','Seq':12,"
		"'Group size':2,'In msg nelems':64,'dtype':'Float'}},",
		NULL);
	TS_CHECK_INT(l.work->collective_count, 1);
	TS_CHECK_INT(l.work->collectives[0].sequence, 12);
	TS_CHECK_INT(l.work->collectives[0].in_elements, 64);
	TS_CHECK_INT(l.work->collectives[0].out_elements, TS_ABSENT);
	TS_CHECK_STR(ts_work_text(l.work, l.work->collectives[0].operation), "allreduce");
	TS_CHECK_INT(l.work->commands[0].class, TS_CLASS_COMMUNICATION);
	unload(&l);
}

/*
 * HTA rounds starts up and ends down: a kernel of 0.3 us inside one microsecond gets a length of -1
 * us.
 */
TS_TEST(rounding_as_hta_does)
{
	struct ts_work_options options = everything;
	struct loaded l;

	options.rounding = TS_ROUNDING_HTA;
	load_events(&l, &options,
		    KERNEL("a", "7", "10.2", "0.3", "5") KERNEL("b", "7", "20.5", "3.0", "6"),
		    NULL);
	TS_CHECK_INT(l.work->commands[0].start, 11000);
	TS_CHECK_INT(l.work->commands[0].end, 10000);
	TS_CHECK_INT(l.work->commands[1].start, 21000);
	TS_CHECK_INT(l.work->commands[1].end, 23000);
	unload(&l);
}

TS_TEST(extreme_times_stay_comparable)
{
	struct loaded l;

	load_events(&l, &everything,
		    KERNEL("a", "7", "-9223372036854775", "9223372036854775", "5")
			    KERNEL("b", "7", "9223372036854775", "9223372036854775", "6"),
		    NULL);
	TS_CHECK_INT(l.work->commands[0].start, -(INT64_C(1) << 61));
	TS_CHECK_INT(l.work->commands[1].end, INT64_C(1) << 61);
	TS_CHECK(l.work->commands[1].end - l.work->commands[0].start > 0);
	unload(&l);
}

TS_TEST(words_of_calls)
{
	static const struct {
		const char *name;
		enum ts_api_kind kind;
		bool blocking;
	} cases[] = {
		{ "cudaLaunchKernelExC", TS_API_LAUNCH, false },
		{ "cuLaunchKernel", TS_API_LAUNCH, false },
		{ "hipExtModuleLaunchKernel", TS_API_LAUNCH, false },
		{ "cudaGraphLaunch", TS_API_GRAPH, false },
		{ "cudaMemcpy", TS_API_COPY, true },
		{ "cudaMemcpyAsync", TS_API_COPY, false },
		{ "hipMemcpyWithStream", TS_API_COPY, true },
		{ "cuMemcpyDtoH_v2", TS_API_COPY, true },
		{ "cudaMemsetAsync", TS_API_FILL, false },
		{ "cudaStreamWaitEvent", TS_API_STREAM_WAIT, false },
		{ "hipDeviceSynchronize", TS_API_DEVICE_SYNC, true },
		{ "cudaEventQuery", TS_API_QUERY, false },
		{ "clEnqueueNDRangeKernel", TS_API_LAUNCH, false },
		{ "clFinish", TS_API_STREAM_SYNC, true },
		{ "runFunction - job_prep_and_submit_for_execution", TS_API_LAUNCH, false },
		{ "cudaFuncSetAttribute", TS_API_OTHER, false },
		{ "cuda", TS_API_OTHER, false },
		{ "", TS_API_OTHER, false },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		const char *name = cases[i].name;

		if (ts_api_kind(name, strlen(name)) != cases[i].kind ||
		    ts_api_is_blocking(name, strlen(name)) != cases[i].blocking)
			ts_test_fail(__FILE__, __LINE__, "'%s' is taken for something else", name);
	}
}

TS_TEST(words_of_kernels)
{
	static const struct {
		const char *name;
		enum ts_gpu_op_kind kind;
		enum ts_command_class truth, hta;
	} cases[] = {
		{ "ncclDevKernel_AllReduce", TS_GPU_OP_COLLECTIVE, TS_CLASS_COMMUNICATION,
		  TS_CLASS_COMMUNICATION },
		{ "Memcpy HtoD (Pinned -> Device)", TS_GPU_OP_COPY, TS_CLASS_MEMORY,
		  TS_CLASS_MEMORY },
		{ "volta_sgemm", TS_GPU_OP_KERNEL, TS_CLASS_COMPUTE, TS_CLASS_COMPUTE },
		/* HTA classifies every kernel whose name begins with "hip" as communication ... */
		{ "hipblaslt_gemm", TS_GPU_OP_KERNEL, TS_CLASS_COMPUTE, TS_CLASS_COMMUNICATION },
		/* ... those with "Sync", "Memcpy" or "dma" anywhere in it as nothing at all ... */
		{ "SyncBatchNormKernel", TS_GPU_OP_KERNEL, TS_CLASS_COMPUTE, TS_CLASS_OTHER },
		{ "batched_dma_gemm", TS_GPU_OP_KERNEL, TS_CLASS_COMPUTE, TS_CLASS_OTHER },
		/* ... and collectives other than NCCL's as computation. */
		{ "void vllm::cross_device_reduce_1stage<bf16, 8>", TS_GPU_OP_KERNEL,
		  TS_CLASS_COMMUNICATION, TS_CLASS_COMPUTE },
		{ "dma_copy", TS_GPU_OP_KERNEL, TS_CLASS_MEMORY, TS_CLASS_MEMORY },
		{ "job_exe", TS_GPU_OP_KERNEL, TS_CLASS_OTHER, TS_CLASS_OTHER },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		const char *name = cases[i].name;

		TS_CHECK_INT(ts_command_class(cases[i].kind, name, strlen(name)), cases[i].truth);
		TS_CHECK_INT(ts_command_class_hta(name, strlen(name)), cases[i].hta);
	}
}

TS_TEST(short_names_are_those_of_kernels_and_operators)
{
	struct ts_work_options options = everything;
	struct loaded l;
	const struct ts_work *work;

	options.short_names = true;
	load_events(&l, &options,
		    OP("my::op(int)", "1", "2") SLICE("user_annotation", "step(1)", "1", "5", "1")
			    KERNEL("void gemm<4, float>(float*)", "7", "10", "1",
				   "5") KERNEL("void gemm<8, half>(half*)", "7", "20", "1", "6")
				    COPY_OF("Memcpy HtoD (Pageable -> Device)", "7", "30", "1", "7")
					    KERNEL("cutlass::Kernel<cutlass_80_simt_sgemm>(int)",
						   "7", "40", "1", "8"),
		    NULL);
	work = l.work;
	TS_CHECK_STR(ts_work_text(work, work->slices[0].name), "my::op");
	TS_CHECK_STR(ts_work_text(work, work->slices[1].name), "step(1)");
	TS_CHECK_STR(ts_work_text(work, work->commands[0].name), "gemm");
	TS_CHECK_INT(work->commands[1].name, work->commands[0].name);
	TS_CHECK_STR(ts_work_text(work, work->commands[2].name),
		     "Memcpy HtoD (Pageable -> Device)");
	/* What a kernel is comes from its full name. */
	TS_CHECK_STR(ts_work_text(work, work->commands[3].name), "cutlass::Kernel");
	TS_CHECK(work->commands[3].flags & TS_COMMAND_SINGLE_PRECISION);
	TS_CHECK(!(work->commands[0].flags & TS_COMMAND_SINGLE_PRECISION));
	unload(&l);
}
