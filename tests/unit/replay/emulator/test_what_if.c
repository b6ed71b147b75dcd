/* SPDX-License-Identifier: Apache-2.0 */
/* What-ifs: parsing, what they change, and properties of every model. */
#include "replay/emulator/what_if.h"

#include "unit/state/work/work_support.h"

static uint64_t seed = 7;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % limit);
}

/* ---- parsing ---- */

static int parse(struct ts_what_if *what_if, const char *text, struct ts_error *err)
{
	return ts_what_if_parse(what_if, &text, 1, err);
}

#define CHANGE(text, kind_, unit_, numerator_, denominator_)                        \
	do {                                                                        \
		struct ts_what_if what_if;                                          \
		struct ts_error err;                                                \
		TS_CHECK_INT(parse(&what_if, text, &err), 0);                       \
		TS_CHECK_INT(what_if.changes[0].kind, kind_);                       \
		TS_CHECK_INT(what_if.changes[0].unit, unit_);                       \
		TS_CHECK_INT(what_if.changes[0].numerator, numerator_);             \
		if (unit_ == TS_WHAT_IF_TIMES)                                      \
			TS_CHECK_INT(what_if.changes[0].denominator, denominator_); \
		ts_what_if_release(&what_if);                                       \
	} while (0)

TS_TEST(words)
{
	CHANGE("kernel:gemm*=0.5x", TS_WHAT_IF_KERNEL, TS_WHAT_IF_TIMES, 5, 10);
	CHANGE("kernel:*=12us", TS_WHAT_IF_KERNEL, TS_WHAT_IF_NS, 12000, 1);
	CHANGE("kernel:f<a==b>=1.5ms", TS_WHAT_IF_KERNEL, TS_WHAT_IF_NS, 1500000, 1);
	CHANGE("copy:*HtoD*=2x", TS_WHAT_IF_COPY, TS_WHAT_IF_TIMES, 2, 1);
	CHANGE("device-speed=2x", TS_WHAT_IF_DEVICE_SPEED, TS_WHAT_IF_TIMES, 2, 1);
	CHANGE("copy-bandwidth=25GB/s", TS_WHAT_IF_COPY_BANDWIDTH, TS_WHAT_IF_BYTES_S,
	       INT64_C(25000000000), 1);
	CHANGE("copy-bandwidth=1.5MiB/s", TS_WHAT_IF_COPY_BANDWIDTH, TS_WHAT_IF_BYTES_S, 1572864,
	       1);
	CHANGE("copy-bandwidth=0.5x", TS_WHAT_IF_COPY_BANDWIDTH, TS_WHAT_IF_TIMES, 5, 10);
	CHANGE("latency=2us", TS_WHAT_IF_LATENCY, TS_WHAT_IF_NS, 2000, 1);
	CHANGE("host-speed=1.25x", TS_WHAT_IF_HOST_SPEED, TS_WHAT_IF_TIMES, 125, 100);
	CHANGE("streams=4", TS_WHAT_IF_STREAMS, TS_WHAT_IF_COUNT, 4, 1);
	CHANGE("concurrency=2", TS_WHAT_IF_CONCURRENCY, TS_WHAT_IF_COUNT, 2, 1);
	CHANGE("policy=priority", TS_WHAT_IF_POLICY, TS_WHAT_IF_NAME, TS_EMULATOR_PRIORITY, 1);
	CHANGE("policy=shortest", TS_WHAT_IF_POLICY, TS_WHAT_IF_NAME, TS_EMULATOR_SHORTEST, 1);
}

static void check_refused(const char *text, const char *part)
{
	struct ts_what_if what_if;
	struct ts_error err;

	TS_CHECK_INT(parse(&what_if, text, &err), TS_EINVAL);
	if (!strstr(err.message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", part, err.message);
	ts_what_if_release(&what_if);
}

/* Errors list what is possible. */
TS_TEST(mistakes)
{
	check_refused("", "expected kernel:GLOB=0.5x");
	check_refused("speed=2x", "; expected");
	check_refused("kernel=2x", "; expected");
	check_refused("streams:a=2", "; expected");
	check_refused("kernel:a", "; expected");
	check_refused("kernel:a=", "'kernel' takes 0.5x or 12us, not ''");
	check_refused("kernel:a=12", "takes 0.5x or 12us, not '12'");
	check_refused("kernel:a=-1us", "takes");
	check_refused("kernel:a=2GB/s", "takes");
	check_refused("device-speed=2us", "'device-speed' takes 2x");
	check_refused("device-speed=0x", "takes");
	check_refused("device-speed=fast", "takes");
	check_refused("copy-bandwidth=25", "takes 2x or 25GB/s");
	check_refused("copy-bandwidth=0GB/s", "takes");
	check_refused("copy-bandwidth=999999999999999TB/s", "takes");
	check_refused("streams=0", "a number from 1 to 65536");
	check_refused("streams=1.5", "a number");
	check_refused("streams=65537", "a number");
	check_refused("streams=2x", "a number");
	check_refused("policy=lifo", "fifo, priority or shortest");
	check_refused("host-speed=12345678901234567890x", "takes");
}

/* ---- changes of a work ---- */

/* Two kernels, copies in both directions and within the device, a collective. */
#define GEMM CALL("0", "5", "1") KERNEL("gemm", "7", "10", "100", "1")
#define UPLOAD                                        \
	NAMED_CALL("cudaMemcpyAsync", "20", "5", "2") \
	COPY_OF("Memcpy HtoD (Pinned -> Device)", "7", "120", "50", "2")
#define MOVE                                          \
	NAMED_CALL("cudaMemcpyAsync", "30", "5", "3") \
	COPY_OF("Memcpy DtoD (Device -> Device)", "7", "180", "50", "3")
#define REDUCE CALL("40", "5", "4") KERNEL("ncclDevKernel_AllReduce", "8", "60", "30", "4")
#define RELU CALL("50", "5", "5") KERNEL("relu", "7", "240", "10", "5")
#define WAIT NAMED_CALL("cudaDeviceSynchronize", "60", "200", "6")
#define PROGRAM GEMM UPLOAD MOVE REDUCE RELU WAIT

struct changed {
	struct loaded loaded;
	struct ts_graph *graph;
	struct ts_emulator_observed observed;
	struct ts_emulator_model *model;
	struct ts_emulator_times times;
	struct ts_what_if what_if;
	int64_t span;
};

static void load_program(struct changed *changed, const char *events)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_error err;

	memset(changed, 0, sizeof(*changed));
	options.load_flags = TS_WORK_SLICES;
	options.all = true;
	load_events(&changed->loaded, &options, events, NULL);
	TS_CHECK_INT(ts_graph_new(&changed->graph, changed->loaded.work, TS_GRAPH_HOST, &err), 0);
	TS_CHECK_INT(ts_emulator_observe(&changed->observed, changed->graph, &err), 0);
}

/* Repeatedly on the same work. */
static int change(struct changed *changed, const char *const *texts, size_t count,
		  struct ts_error *err)
{
	struct ts_emulator_shape shape;
	int rc;

	ts_emulator_times_release(&changed->times);
	ts_emulator_model_free(changed->model);
	changed->model = NULL;
	ts_what_if_release(&changed->what_if);
	TS_CHECK_INT(ts_what_if_parse(&changed->what_if, texts, count, err), 0);
	shape = ts_what_if_shape(&changed->what_if);
	TS_CHECK_INT(ts_emulator_model_new(&changed->model, changed->loaded.work, changed->graph,
					   &changed->observed, &shape, err),
		     0);
	rc = ts_what_if_apply(&changed->what_if, changed->loaded.work, changed->model, err);
	if (rc)
		return rc;
	TS_CHECK_INT(ts_emulator_run(changed->model,
				     &(struct ts_emulator_run_options){
					     .policy = ts_what_if_policy(&changed->what_if) },
				     &changed->times, err),
		     0);
	changed->span = ts_emulator_span(changed->model, &changed->times);
	return TS_OK;
}

static void change_one(struct changed *changed, const char *text)
{
	struct ts_error err;

	if (change(changed, &text, text ? 1 : 0, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static void unload_program(struct changed *changed)
{
	ts_emulator_times_release(&changed->times);
	ts_emulator_model_free(changed->model);
	ts_what_if_release(&changed->what_if);
	ts_emulator_observed_release(&changed->observed);
	ts_graph_free(changed->graph);
	unload(&changed->loaded);
}

static int64_t duration_of(const struct changed *changed, const char *name)
{
	const struct ts_work *work = changed->loaded.work;

	for (uint32_t c = 0; c < work->command_count; c++)
		if (strstr(ts_work_text(work, work->commands[c].name), name))
			return changed->model->commands[c].duration;
	ts_test_fail(__FILE__, __LINE__, "no command '%s'", name);
}

TS_TEST(changes)
{
	struct changed changed;

	load_program(&changed, PROGRAM);
	change_one(&changed, "kernel:gemm=0.5x");
	TS_CHECK_INT(duration_of(&changed, "gemm"), 50000);
	TS_CHECK_INT(duration_of(&changed, "relu"), 10000);
	TS_CHECK_INT(changed.what_if.changes[0].changed, 1);
	change_one(&changed, "kernel:*=3us");
	TS_CHECK_INT(duration_of(&changed, "gemm"), 3000);
	TS_CHECK_INT(duration_of(&changed, "nccl"), 3000);
	TS_CHECK_INT(duration_of(&changed, "HtoD"), 50000);
	change_one(&changed, "copy:*HtoD*=2x");
	TS_CHECK_INT(duration_of(&changed, "HtoD"), 100000);
	TS_CHECK_INT(duration_of(&changed, "DtoD"), 50000);
	/* Collectives and copies to and from the host do not depend on the device. */
	change_one(&changed, "device-speed=4x");
	TS_CHECK_INT(duration_of(&changed, "gemm"), 25000);
	TS_CHECK_INT(duration_of(&changed, "DtoD"), 12500);
	TS_CHECK_INT(duration_of(&changed, "HtoD"), 50000);
	TS_CHECK_INT(duration_of(&changed, "nccl"), 30000);
	change_one(&changed, "copy-bandwidth=2x");
	TS_CHECK_INT(duration_of(&changed, "HtoD"), 25000);
	TS_CHECK_INT(duration_of(&changed, "DtoD"), 50000);
	/* 64 bytes. */
	change_one(&changed, "copy-bandwidth=64MB/s");
	TS_CHECK_INT(duration_of(&changed, "HtoD"), 1000);
	change_one(&changed, "latency=2us");
	for (uint32_t c = 0; c < changed.model->command_count; c++)
		TS_CHECK_INT(changed.model->commands[c].launch_ns, 2000);
	change_one(&changed, "concurrency=3");
	TS_CHECK_INT(changed.model->slots[TS_EMULATOR_KERNELS], 3);
	change_one(&changed, "streams=1");
	TS_CHECK_INT(changed.model->streams[0], changed.model->streams[4]);
	unload_program(&changed);
}

TS_TEST(a_name_that_nothing_has)
{
	static const char *const texts[] = { "kernel:gem=0.5x" };
	struct changed changed;
	struct ts_error err;

	load_program(&changed, PROGRAM);
	TS_CHECK_INT(change(&changed, texts, 1, &err), TS_ENOTFOUND);
	TS_CHECK(strstr(err.message, "no kernel of that name") != NULL);
	unload_program(&changed);
}

TS_TEST(several)
{
	static const char *const texts[] = { "kernel:gemm=0.5x", "device-speed=2x", "policy=fifo" };
	struct changed changed;
	struct ts_error err;
	char text[128];

	load_program(&changed, PROGRAM);
	TS_CHECK_INT(change(&changed, texts, 3, &err), 0);
	TS_CHECK_INT(duration_of(&changed, "gemm"), 25000);
	TS_CHECK_INT(duration_of(&changed, "relu"), 5000);
	ts_what_if_describe(&changed.what_if, text, sizeof(text));
	TS_CHECK_STR(text,
		     "kernel:gemm=0.5x (1 command), device-speed=2x (3 commands), policy=fifo");
	ts_what_if_describe(&changed.what_if, text, 20);
	TS_CHECK_STR(text, "kernel:gemm=0.5x (1");
	unload_program(&changed);
}

/* ---- properties of every program ---- */

static void random_program(struct ts_text *out, uint32_t streams)
{
	uint32_t host = 0, count = 5 + random_below(60);
	uint32_t done[4] = { 0 };

	for (uint32_t i = 1; i <= count; i++) {
		uint32_t s = random_below(streams), start, duration = 1 + random_below(40);
		bool copy = random_below(4) == 0;

		host += 1 + random_below(20);
		start = TS_MAX(host + 5, done[s] + 1);
		done[s] = start + duration;
		ts_text_printf(out,
			       "{'ph':'X','cat':'cuda_runtime','name':'%s','pid':1,'tid':1,"
			       "'ts':%u,'dur':1,'args':{'correlation':%u}},"
			       "{'ph':'X','cat':'%s','name':'%s','pid':0,'tid':%u,'ts':%u,'dur':%u,"
			       "'args':{'device':0,'stream':%u,'correlation':%u}},",
			       copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", host, i,
			       copy ? "gpu_memcpy" : "kernel",
			       copy ? "Memcpy HtoD (Pinned -> Device)" : "k", 7 + s, start,
			       duration, 7 + s, i);
		if (random_below(8) == 0) {
			for (uint32_t k = 0; k < 4; k++)
				start = TS_MAX(start, done[k]);
			ts_text_printf(out,
				       "{'ph':'X','cat':'cuda_runtime','name':"
				       "'cudaDeviceSynchronize','pid':1,'tid':1,'ts':%u,'dur':%u,"
				       "'args':{'correlation':%u}},",
				       host + 2, start + 3 - host, 1000 + i);
			host = start + 6;
		}
	}
}

static void load_random(struct changed *changed, uint32_t streams)
{
	TS_SCOPED(ts_text) text = { 0 };

	random_program(&text, streams);
	load_program(changed, ts_text_cstr(&text));
}

/* A factor of one changes nothing. */
TS_TEST(once_is_the_baseline)
{
	static const char *const ones[] = { "kernel:*=1x", "device-speed=1.0x", "copy-bandwidth=1x",
					    "latency=1x",  "host-speed=1.00x",  "policy=fifo" };

	for (int i = 0; i < 40; i++) {
		struct changed changed;
		struct ts_emulator_times baseline;
		struct ts_error err;
		uint32_t count;

		load_random(&changed, 3);
		change_one(&changed, NULL);
		count = changed.model->command_count;
		baseline = changed.times;
		changed.times = (struct ts_emulator_times){ 0 };
		if (change(&changed, ones, TS_ARRAY_SIZE(ones), &err))
			ts_test_fail(__FILE__, __LINE__, "%s", err.message);
		TS_CHECK(!memcmp(baseline.start, changed.times.start, 8 * count));
		TS_CHECK(!memcmp(baseline.end, changed.times.end, 8 * count));
		TS_CHECK(!memcmp(baseline.points, changed.times.points,
				 8 * changed.model->point_count));
		ts_emulator_times_release(&baseline);
		unload_program(&changed);
	}
}

/*
 * With one stream and first come, first served, faster work never takes longer. (With several it
 * may: Graham's anomalies.)
 */
TS_TEST(faster_is_not_slower)
{
	static const char *const factors[] = { "kernel:*=0x",    "kernel:*=0.25x", "kernel:*=0.5x",
					       "kernel:*=0.75x", "kernel:*=1x",    "kernel:*=2x",
					       "kernel:*=10x" };
	static const char *const hosts[] = { "host-speed=10x", "host-speed=2x", "host-speed=1x",
					     "host-speed=0.5x" };

	for (int i = 0; i < 40; i++) {
		struct changed changed;
		int64_t last = INT64_MIN;

		load_random(&changed, 1);
		for (size_t k = 0; k < TS_ARRAY_SIZE(factors); k++) {
			change_one(&changed, factors[k]);
			TS_CHECK(changed.span >= last);
			last = changed.span;
		}
		last = INT64_MIN;
		for (size_t k = 0; k < TS_ARRAY_SIZE(hosts); k++) {
			int64_t end = INT64_MIN;

			change_one(&changed, hosts[k]);
			for (uint32_t c = 0; c < changed.model->command_count; c++)
				end = TS_MAX(end, changed.times.end[c]);
			TS_CHECK(end >= last);
			last = end;
		}
		unload_program(&changed);
	}
}

TS_TEST(one_stream_serialises)
{
	for (int i = 0; i < 40; i++) {
		struct changed changed;
		int64_t sum = 0;

		load_random(&changed, 4);
		change_one(&changed, "streams=1");
		TS_CHECK_INT(changed.times.broken_waits, 0);
		for (uint32_t c = 0; c < changed.model->command_count; c++) {
			sum += changed.model->commands[c].duration;
			for (uint32_t d = 0; d < c; d++)
				TS_CHECK(changed.times.end[c] <= changed.times.start[d] ||
					 changed.times.end[d] <= changed.times.start[c]);
		}
		TS_CHECK(changed.span >= sum);
		unload_program(&changed);
	}
}
