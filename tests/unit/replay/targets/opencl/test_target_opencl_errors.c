/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opencl target when something is missing or wrong: devices, modules, messages; and memory that
 * comes and goes.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

#include "unit/replay/targets/opencl/target_opencl_support.h"

#ifdef TS_HAVE_OPENCL
#include "replay/targets/opencl/opencl_session.h"
#endif

static const char source[] = "kernel void twice(global uint *v) {\n"
			     "	v[get_global_id(0)] = v[get_global_id(0)] * 2 + 1;\n"
			     "}\n";

/* A launch of `twice` from a module with this source; returns its capture. */
static uint32_t launch_twice(struct fixture *fixture, uint32_t module, uint64_t local)
{
	uint32_t function = fixture_function(fixture, module, "twice");
	uint32_t memory = fixture_memory(fixture, NULL, 4096);
	struct ts_replay_arg arg = fixture_memory_arg(fixture, memory);

	fixture_launch(fixture, fixture->queue, function, 64, local, &arg, 1, NULL, 0);
	return fixture_read(fixture, fixture->queue, memory, 0, 4);
}

static void check_message(const struct fixture *fixture, const char *part)
{
	if (!strstr(fixture->err.message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", fixture->err.message,
			     part);
}

static uint32_t first_value(const struct fixture *fixture, uint32_t capture)
{
	return *(const uint32_t *)fixture->content[capture];
}

/* ---- devices ---- */

TS_TEST(a_device_that_is_not_there)
{
	struct fixture *fixture = fixture_start("");

	launch_twice(fixture, fixture_module(fixture, source), 0);
	fixture->replay.options.device = "no such thing";
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "'no such thing'");
	check_message(fixture, "devices are 0 '");
	fixture->replay.options.device = "7";
	TS_CHECK_INT(ts_replay_target_opencl.open(&fixture->replay, &fixture->replay.session,
						  &fixture->err),
		     TS_ECAP);
	check_message(fixture, "no such OpenCL device: '7'");
	fixture_end(fixture);
}

#ifdef TS_HAVE_OPENCL
/* Some loaders ignore the variables for root. */
static bool sees_platforms(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
	cl_int (*get)(cl_uint, cl_platform_id *, cl_uint *) =
		library ? (cl_int(*)(cl_uint, cl_platform_id *, cl_uint *))dlsym(library,
										 "clGetPlatformIDs")
			: NULL;
	cl_uint count = 0;

	return get && !get(0, NULL, &count) && count;
}

TS_TEST(no_platform)
{
	struct fixture *fixture;

	setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
	setenv("OPENCL_VENDOR_PATH", "/nonexistent", 1);
	if (sees_platforms())
		ts_test_skip("this OpenCL loader ignores OCL_ICD_VENDORS");
	fixture = fixture_start("");
	launch_twice(fixture, fixture_module(fixture, source), 0);
	fixture->replay.plan.order = fixture->order;
	fixture->replay.plan.kept = fixture->kept;
	fixture->replay.plan.count = fixture->stream.command_count;
	TS_CHECK_INT(ts_replay_target_opencl.open(&fixture->replay, &fixture->replay.session,
						  &fixture->err),
		     TS_ECAP);
	check_message(fixture, "no OpenCL ");
	fixture_end(fixture);
}
#endif

/* Opens for a device recorded under this name; returns the target's description of its device. */
static struct fixture *open_on(const char *recorded, const char *requested)
{
	struct fixture *fixture = fixture_start(recorded);

	setenv("POCL_DEVICES", "pthread basic", 1);
	launch_twice(fixture, fixture_module(fixture, source), 0);
	fixture->replay.options.device = requested;
	if (fixture_open(fixture))
		ts_test_skip("two devices of PoCL are needed");
	return fixture;
}

static const char *device_text(const struct fixture *fixture)
{
	return ts_replay_target_opencl.device(fixture->replay.session);
}

TS_TEST(device_by_number_and_by_name)
{
	struct fixture *first = open_on("GeForce", "0"), *second = open_on("GeForce", "1"), *named;

	TS_CHECK(strcmp(device_text(first), device_text(second)) != 0);
	TS_CHECK(strstr(device_text(second), "; recorded on GeForce"));
	named = open_on("GeForce", strstr(device_text(second), "pthread") ? "PTHREAD-" : "Basic-");
	TS_CHECK_STR(device_text(named), device_text(second));
	TS_CHECK_INT(fixture_run(named), 0);
	fixture_end(first);
	fixture_end(second);
	fixture_end(named);
}

/* Without a choice, the device of the same name is used, wherever it is in the list. */
TS_TEST(device_of_the_same_name)
{
	struct fixture *second = open_on("", "1"), *same;
	const char *text = device_text(second) + strlen("opencl: ");
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)(strrchr(text, '(') - 1 - text), text);
	same = open_on(name, NULL);
	TS_CHECK(strstr(device_text(same), name) != NULL);
	TS_CHECK(strstr(device_text(same), "recorded on") == NULL);
	fixture_end(second);
	fixture_end(same);
}

/* ---- modules ---- */

TS_TEST(source_that_does_not_build)
{
	struct fixture *fixture = fixture_start("");

	launch_twice(
		fixture,
		fixture_module(fixture, "kernel void twice(global uint *v) { v[0] = wrong; }\n"),
		0);
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "kernel 'twice' does not build on '");
	check_message(fixture, "wrong");
	fixture_end(fixture);
}

TS_TEST(kernel_that_is_not_in_its_module)
{
	struct fixture *fixture = fixture_start("");

	launch_twice(fixture,
		     fixture_module(fixture, "kernel void other(global uint *v) { v[0] = 1; }\n"),
		     0);
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "kernel 'twice': CL_INVALID_KERNEL_NAME on '");
	fixture_end(fixture);
}

TS_TEST(source_that_includes)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module =
		fixture_module(fixture, "#include \"/etc/hostname\"\nkernel void twice() {}\n");

	launch_twice(fixture, module, 0);
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "kernel 'twice': its source includes files");
	check_message(fixture, "no binary of it for '");
	fixture_end(fixture);
}

/* What the check of a source cannot see, the compiler does not have. */
TS_TEST(source_that_pastes_a_way_to_files)
{
	static const struct {
		const char *source, *message;
	} cases[] = {
		{ "#define HAS(x) __has_##x\n#if HAS(include)(\"/etc/passwd\")\n#endif\n",
		  "__has_include" },
		{ "#define ASM(x) __as##x\nvoid f(void) { ASM(m__)(\".incbin \\\"/etc/passwd\\\"\"); "
		  "}\n",
		  "a_replay_does_not_compile_inline_assembly" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct fixture *fixture = fixture_start("");

		launch_twice(fixture, fixture_module(fixture, cases[i].source), 0);
		TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
		check_message(fixture, cases[i].message);
		fixture_end(fixture);
	}
}

/* Unknown pragmas are ignored; this one would be an error. */
TS_TEST(pragmas_cannot_be_pasted)
{
	struct fixture *fixture = fixture_start("");
	uint32_t result = launch_twice(
		fixture,
		fixture_module(fixture, "#define DO(x) _Prag##x\nDO(ma)(\"GCC error \\\"a\\\"\")\n"
					"kernel void twice(global uint *v) { v[0] = 5; }\n"),
		0);

	fixture_run_twice(fixture);
	TS_CHECK_INT(first_value(fixture, result), 5);
	fixture_end(fixture);
}

TS_TEST(macro_that_would_be_split_into_options)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source);

	fixture->objects[module].options = "-D \"A=x -I/etc\"";
	launch_twice(fixture, module, 0);
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture,
		      "its build options may name files (-D \"A=x -I/etc\"), and the trace");
	fixture_end(fixture);
}

TS_TEST(options_that_name_files_are_left_out)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module =
		fixture_module(fixture, "kernel void twice(global uint *v) { v[0] = N; }\n");
	uint32_t result;

	fixture->objects[module].options = "-I/nowhere -DN=5 -include /nowhere/x.h";
	result = launch_twice(fixture, module, 0);
	fixture_run_twice(fixture);
	TS_CHECK_INT(first_value(fixture, result), 5);
	fixture_end(fixture);
}

#ifdef TS_HAVE_OPENCL
/* The name of the first device, and a binary of `source` for it. */
static size_t build_binary(char *name, unsigned char **ret_binary)
{
	struct ts_opencl_api api;
	cl_int (*get)(cl_program, cl_program_info, size_t, void *, size_t *);
	const char *text = source;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
	size_t bytes = 0;
	void *symbol;

	if (ts_opencl_api_open(&api, NULL) || api.clGetPlatformIDs(1, &platform, NULL) ||
	    api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		ts_test_skip("there is no OpenCL device");
	symbol = dlsym(api.library, "clGetProgramInfo");
	memcpy(&get, &symbol, sizeof(symbol));
	TS_CHECK_INT(api.clGetDeviceInfo(device, CL_DEVICE_NAME, 128, name, NULL), 0);
	context = api.clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	program = api.clCreateProgramWithSource(context, 1, &text, NULL, NULL);
	TS_CHECK_INT(api.clBuildProgram(program, 1, &device, "", NULL, NULL), 0);
	TS_CHECK_INT(get(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, NULL), 0);
	*ret_binary = malloc(bytes);
	TS_CHECK_INT(get(program, CL_PROGRAM_BINARIES, sizeof(*ret_binary), ret_binary, NULL), 0);
	api.clReleaseProgram(program);
	api.clReleaseContext(context);
	return bytes;
}

TS_TEST(module_from_a_binary)
{
	unsigned char *binary;
	struct ts_replay_binary stored = { 0 };
	struct fixture *fixture;
	uint32_t module, result;
	char name[128];
	size_t bytes;

	bytes = build_binary(name, &binary);
	fixture = fixture_start(name);
	module = fixture_module(fixture, NULL);
	stored.device = fixture->device;
	stored.blob = fixture_blob(fixture, binary, bytes);
	fixture->objects[module].binaries = &stored;
	fixture->objects[module].binary_count = 1;
	result = launch_twice(fixture, module, 0);
	fixture_run_twice(fixture);
	TS_CHECK_INT(first_value(fixture, result), 1);
	free(binary);
	fixture_end(fixture);
}

TS_TEST(binary_of_another_device)
{
	struct ts_replay_binary stored = { 0 };
	struct fixture *fixture = fixture_start("another device");
	uint32_t module = fixture_module(fixture, NULL);

	stored.device = fixture->device;
	stored.blob = fixture_blob(fixture, "binary", 6);
	fixture->objects[module].binaries = &stored;
	fixture->objects[module].binary_count = 1;
	launch_twice(fixture, module, 0);
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "kernel 'twice': its source is missing");
	fixture_end(fixture);
}

/* With a limit below the sum of all memory: it is allocated and freed as in the program. */
TS_TEST(a_buffer_that_no_device_has)
{
	struct fixture *fixture = fixture_start("");
	uint32_t memory = fixture_memory(fixture, NULL, 4096);
	uint32_t function = fixture_function(fixture, fixture_module(fixture, source), "twice");
	struct ts_replay_arg arg = fixture_memory_arg(fixture, memory);

	fixture->objects[memory].bytes = UINT64_C(1) << 60;
	fixture_launch(fixture, fixture->queue, function, 1, 0, &arg, 1, NULL, 0);
	TS_CHECK(fixture_open(fixture) != TS_OK);
	check_message(fixture, ": a buffer of 1152921504606846976 bytes cannot be created: CL_");
	fixture_end(fixture);
}

TS_TEST(memory_that_comes_and_goes)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 function = fixture_function(fixture, module, "twice");
	uint32_t results[6];

	ts_opencl_memory_limit = 3 * 4096;
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t initial[1024] = { [256] = i + 10 }, memory, alloc, release;
		struct ts_replay_arg arg;

		memory = fixture_memory(fixture, i % 2 ? initial : NULL, 4096);
		arg = fixture_memory_arg(fixture, memory);
		alloc = fixture_command(fixture, TS_COMMAND_ALLOC, NONE);
		fixture->commands[alloc].object = memory;
		fixture->objects[memory].created_by = alloc;
		/* All of it, then a part. */
		fixture_launch(fixture, fixture->queue, function, 1024, 0, &arg, 1, NULL, 0);
		arg.offset = 1024;
		arg.bytes = 1024;
		fixture_launch(fixture, fixture->queue, function, 256, 0, &arg, 1, NULL, 0);
		results[i] = fixture_read(fixture, fixture->queue, memory, 1024, 4);
		release = fixture_command(fixture, TS_COMMAND_FREE, NONE);
		fixture->commands[release].object = memory;
		fixture->objects[memory].freed_by = release;
	}
	fixture_run_twice(fixture);
	TS_CHECK(fixture->replay.session->is_lazy);
	for (uint32_t i = 0; i < 6; i++)
		TS_CHECK_INT(first_value(fixture, results[i]),
			     ((i % 2 ? i + 10 : 0) * 2 + 1) * 2 + 1);
	fixture_end(fixture);
}
#endif

/* ---- replaced kernels ---- */

TS_TEST(replaced_kernel)
{
	static const char other[] = "kernel void twice(global uint *v) { v[0] = 1234; }\n";
	struct ts_replay_replacement replacement = { "twice", "other.cl", other,
						     sizeof(other) - 1 };
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture,
					 "kernel void twice(global uint *v) { v[0] = 1; }\n"
					 "kernel void keep(global uint *v) { v[0]++; }\n");
	uint32_t memory = fixture_memory(fixture, NULL, 64), result;
	struct ts_replay_arg arg = fixture_memory_arg(fixture, memory);

	fixture_launch(fixture, fixture->queue, fixture_function(fixture, module, "twice"), 1, 0,
		       &arg, 1, NULL, 0);
	fixture_launch(fixture, fixture->queue, fixture_function(fixture, module, "keep"), 1, 0,
		       &arg, 1, NULL, 0);
	result = fixture_read(fixture, fixture->queue, memory, 0, 4);
	fixture->replay.options.replacements = &replacement;
	fixture->replay.options.replacement_count = 1;
	fixture_run_twice(fixture);
	TS_CHECK_INT(first_value(fixture, result), 1235);
	fixture_end(fixture);
}

TS_TEST(replacement_that_does_not_fit)
{
	static const char other[] = "kernel void something(global uint *v) { v[0] = 1234; }\n";
	static const char bad[] = "kernel void twice(\n";
	struct ts_replay_replacement replacement = { "twice", "other.cl", other,
						     sizeof(other) - 1 };
	struct fixture *fixture = fixture_start("");

	launch_twice(fixture, fixture_module(fixture, source), 0);
	fixture->replay.options.replacements = &replacement;
	fixture->replay.options.replacement_count = 1;
	TS_CHECK_INT(fixture_open(fixture), TS_ENOTFOUND);
	check_message(fixture, "'other.cl': there is no kernel 'twice' in it");
	replacement.source = bad;
	replacement.bytes = sizeof(bad) - 1;
	TS_CHECK_INT(ts_replay_target_opencl.open(&fixture->replay, &fixture->replay.session,
						  &fixture->err),
		     TS_EFORMAT);
	check_message(fixture, "'other.cl': module ");
	fixture_end(fixture);
}

/* ---- commands ---- */

TS_TEST(error_names_the_command)
{
	struct fixture *fixture = fixture_start("");

	fixture_command(fixture, TS_COMMAND_LOAD, NONE);
	/* 64 is not a multiple of 48 in OpenCL C 1.2. */
	launch_twice(fixture, fixture_module(fixture, source), 1 << 20);
	TS_CHECK_INT(fixture_open(fixture), 0);
	TS_CHECK_INT(fixture_run(fixture), TS_ECAP);
	check_message(fixture, "command 2, launch of 'twice': CL_INVALID_WORK_");
	check_message(fixture, " on '");
	/* The session remains usable and can be closed. */
	TS_CHECK_INT(fixture_run(fixture), TS_ECAP);
	fixture_end(fixture);
}

#ifdef TS_HAVE_OPENCL
static cl_command_queue failing_queue;
static cl_int (*real_finish)(cl_command_queue queue);

static cl_int fail_finish(cl_command_queue queue)
{
	cl_int code = real_finish(queue);

	return queue == failing_queue ? CL_OUT_OF_RESOURCES : code;
}

static cl_int fail_status(cl_event event, cl_event_info what, size_t bytes, void *value,
			  size_t *ret_bytes)
{
	(void)event, (void)what, (void)bytes, (void)ret_bytes;
	*(cl_int *)value = CL_OUT_OF_RESOURCES;
	return CL_SUCCESS;
}

/* What NVIDIA's driver answers after an invalid access. */
TS_TEST(failed_command_is_named)
{
	struct fixture *fixture = fixture_start("");
	struct ts_replay_session *session;

	launch_twice(fixture, fixture_module(fixture, source), 0);
	TS_CHECK_INT(fixture_open(fixture), 0);
	session = fixture->replay.session;
	failing_queue = session->objects[session->queues[0]].queue.handle;
	real_finish = session->api.clFinish;
	session->api.clFinish = fail_finish;
	session->api.clGetEventInfo = fail_status;
	TS_CHECK_INT(fixture_run(fixture), TS_ECAP);
	check_message(fixture, "command 1, launch of 'twice': failed with CL_OUT_OF_RESOURCES");
	check_message(fixture, "invalid access");
	fixture_end(fixture);
}

static cl_int fail_wait(cl_uint count, const cl_event *events)
{
	(void)count, (void)events;
	return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

/* The same if a read of what it wrote is the first to be waited for. */
TS_TEST(failed_command_is_named_by_a_read)
{
	for (int blocking = 0; blocking < 2; blocking++) {
		struct fixture *fixture = fixture_start("");

		launch_twice(fixture, fixture_module(fixture, source), 0);
		fixture->commands[fixture->stream.command_count - 1].blocking = blocking;
		TS_CHECK_INT(fixture_open(fixture), 0);
		fixture->replay.session->api.clWaitForEvents = fail_wait;
		fixture->replay.session->api.clGetEventInfo = fail_status;
		TS_CHECK_INT(fixture_run(fixture), TS_ECAP);
		check_message(fixture,
			      "command 1, launch of 'twice': failed with CL_OUT_OF_RESOURCES");
		fixture_end(fixture);
	}
}
#endif

TS_TEST(arguments_that_do_not_fit)
{
	struct fixture *fixture = fixture_start("");
	uint32_t function = fixture_function(fixture, fixture_module(fixture, source), "twice");
	struct ts_replay_arg arg = { .kind = TS_REPLAY_ARG_BYTES, .size = 2, .memory = NONE };

	fixture_launch(fixture, fixture->queue, function, 1, 0, &arg, 1, "ab", 2);
	TS_CHECK_INT(fixture_open(fixture), 0);
	TS_CHECK_INT(fixture_run(fixture), TS_ECAP);
	check_message(fixture, "command 1, launch of 'twice': CL_INVALID_ARG_");
	fixture_end(fixture);
}

TS_TEST(a_part_at_an_odd_place)
{
	struct fixture *fixture = fixture_start("");
	uint32_t function = fixture_function(fixture, fixture_module(fixture, source), "twice");
	uint32_t memory = fixture_memory(fixture, NULL, 4096);
	struct ts_replay_arg arg = fixture_memory_arg(fixture, memory);

	arg.offset = 4;
	arg.bytes = 8;
	fixture_launch(fixture, fixture->queue, function, 1, 0, &arg, 1, NULL, 0);
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "command 1, launch of 'twice': argument 0: a part of memory ");
	check_message(fixture, "CL_MISALIGNED_SUB_BUFFER_OFFSET");
	fixture_end(fixture);
}

TS_TEST(what_cannot_be_replayed)
{
	struct fixture *fixture = fixture_start("");
	uint32_t memory = fixture_memory(fixture, NULL, 64);
	uint32_t fill = fixture_fill(fixture, fixture->queue, memory, "a", 1, 64);

	fixture->objects[memory].unreplayable = "an image";
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture,
		      "command 1, fill of memory 4: memory 4 cannot be replayed: an image");
	fixture->objects[memory].unreplayable = NULL;
	fixture->commands[fill].unreplayable = "no idea";
	TS_CHECK_INT(ts_replay_target_opencl.open(&fixture->replay, &fixture->replay.session,
						  &fixture->err),
		     TS_ECAP);
	check_message(fixture, "it cannot be replayed: no idea");
	fixture_end(fixture);
}

TS_TEST(pointers_inside_svm)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 memory = fixture_memory(fixture, NULL, 4096);
	struct ts_replay_range reached = { memory, 0, 4096 };

	fixture->objects[memory].flags = TS_REPLAY_HAS_SVM;
	fixture->objects[memory].address = 0x1000;
	launch_twice(fixture, module, 0);
	fixture->commands[0].reads = &reached;
	fixture->commands[0].read_count = 1;
	TS_CHECK_INT(fixture_open(fixture), TS_ECAP);
	check_message(fixture, "command 1, launch of 'twice': pointers inside SVM");
	fixture_end(fixture);
}

static int stop(void *context, const char *doing, uint64_t done, uint64_t total)
{
	return 1;
}

TS_TEST(stopped)
{
	struct fixture *fixture = fixture_start("");

	launch_twice(fixture, fixture_module(fixture, source), 0);
	fixture->replay.options.progress = stop;
	TS_CHECK_INT(fixture_open(fixture), 0);
	TS_CHECK_INT(fixture_run(fixture), TS_ECANCELED);
	fixture_end(fixture);
}

static int refuse(void *context, uint32_t capture, const void *data, struct ts_error *err)
{
	return ts_error_set(err, TS_EIO, "refused");
}

TS_TEST(content_that_is_refused)
{
	struct ts_replay_outcome outcome = { .content = refuse };
	struct fixture *fixture = fixture_start("");

	launch_twice(fixture, fixture_module(fixture, source), 0);
	TS_CHECK_INT(fixture_open(fixture), 0);
	outcome.times = fixture->times;
	TS_CHECK_INT(
		ts_replay_target_opencl.run(fixture->replay.session, 1, &outcome, &fixture->err),
		TS_EIO);
	TS_CHECK_STR(fixture->err.message, "refused");
	TS_CHECK_INT(fixture_run(fixture), 0);
	fixture_end(fixture);
}

/* A user event set to an error: commands that wait for it do not run, as in the recording. */
TS_TEST(user_event_with_an_error)
{
	struct fixture *fixture = fixture_start("");
	uint32_t memory = fixture_memory(fixture, NULL, 64), event = fixture_user_event(fixture),
		 fill;

	fill = fixture_fill(fixture, fixture->queue, memory, "a", 1, 64);
	fixture_user_wait(fixture, fill, event);
	fixture_set(fixture, event);
	fixture->commands[1].status = -5;
	TS_CHECK_INT(fixture_open(fixture), 0);
	TS_CHECK_INT(fixture_run(fixture), 0);
	TS_CHECK_INT(fixture->times[0].start, TS_ABSENT);
	fixture_end(fixture);
}

/* ---- faults ---- */

static char *page;
static uint32_t mended;

/* PoCL does this on x86-64, so that kernels may divide by zero: the faults that it expects. */
static void mend(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SEGV_ACCERR || info->si_addr != page) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	mprotect(page, 1, PROT_READ | PROT_WRITE);
	mended++;
}

static int fault(void *context, const char *doing, uint64_t done, uint64_t total)
{
	(void)context;
	(void)doing;
	(void)done;
	(void)total;
	*(volatile char *)page = 1;
	return 0;
}

TS_TEST(faults_that_a_driver_handles)
{
	struct sigaction handler = { .sa_sigaction = mend, .sa_flags = SA_SIGINFO }, before;
	struct fixture *fixture = fixture_start("");
	struct ts_replay_monitor monitor = { 0 };
	uint32_t result = launch_twice(fixture, fixture_module(fixture, source), 0);

	page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TS_CHECK(page != MAP_FAILED);
	fixture->replay.options.monitor = &monitor;
	fixture->replay.options.progress = fault;
	TS_CHECK_INT(fixture_open(fixture), TS_OK);
	sigemptyset(&handler.sa_mask);
	sigaction(SIGSEGV, &handler, &before);
	TS_CHECK_INT(fixture_run(fixture), TS_OK);
	TS_CHECK_INT(mended, 1);
	TS_CHECK_INT(first_value(fixture, result), 1);
	sigaction(SIGSEGV, &before, NULL);
	munmap(page, 1);
	fixture_end(fixture);
}
