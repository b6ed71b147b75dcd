/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opencl target when something is missing or wrong: devices, modules, messages; and memory that
 * comes and goes.
 */
#include <dlfcn.h>

#include "unit/replay/targets/opencl/target_opencl_support.h"

#ifdef TS_HAVE_OPENCL
#include "replay/targets/opencl/opencl_session.h"
#endif

static const char source[] = "kernel void twice(global uint *v) {\n"
			     "	v[get_global_id(0)] = v[get_global_id(0)] * 2 + 1;\n"
			     "}\n";

/* A launch of `twice` from a module with this source; returns its capture. */
static uint32_t launch_twice(struct made *made, uint32_t module, uint64_t local)
{
	uint32_t function = made_function(made, module, "twice");
	uint32_t memory = made_memory(made, NULL, 4096);
	struct ts_replay_arg arg = made_memory_arg(made, memory);

	made_launch(made, made->queue, function, 64, local, &arg, 1, NULL, 0);
	return made_read(made, made->queue, memory, 0, 4);
}

static void check_says(const struct made *made, const char *part)
{
	if (!strstr(made->err.message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", made->err.message, part);
}

static uint32_t first_word(const struct made *made, uint32_t capture)
{
	return *(const uint32_t *)made->content[capture];
}

/* ---- devices ---- */

TS_TEST(a_device_that_is_not_there)
{
	struct made *made = made_start("");

	launch_twice(made, made_module(made, source), 0);
	made->replay.options.device = "no such thing";
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "'no such thing'");
	check_says(made, "devices are 0 '");
	made->replay.options.device = "7";
	TS_CHECK_INT(ts_replay_target_opencl.open(&made->replay, &made->replay.session, &made->err),
		     TS_ECAP);
	check_says(made, "no such OpenCL device: '7'");
	made_end(made);
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
	struct made *made;

	setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
	setenv("OPENCL_VENDOR_PATH", "/nonexistent", 1);
	if (sees_platforms())
		ts_test_skip("this OpenCL loader ignores OCL_ICD_VENDORS");
	made = made_start("");
	launch_twice(made, made_module(made, source), 0);
	made->replay.plan.order = made->order;
	made->replay.plan.kept = made->kept;
	made->replay.plan.count = made->stream.command_count;
	TS_CHECK_INT(ts_replay_target_opencl.open(&made->replay, &made->replay.session, &made->err),
		     TS_ECAP);
	check_says(made, "no OpenCL ");
	made_end(made);
}
#endif

/* Opens for a device recorded under this name; returns the target's description of its device. */
static struct made *open_on(const char *recorded, const char *requested)
{
	struct made *made = made_start(recorded);

	setenv("POCL_DEVICES", "pthread basic", 1);
	launch_twice(made, made_module(made, source), 0);
	made->replay.options.device = requested;
	if (made_open(made))
		ts_test_skip("two devices of PoCL are needed");
	return made;
}

static const char *device_text(const struct made *made)
{
	return ts_replay_target_opencl.device(made->replay.session);
}

TS_TEST(device_by_number_and_by_name)
{
	struct made *first = open_on("GeForce", "0"), *second = open_on("GeForce", "1"), *named;

	TS_CHECK(strcmp(device_text(first), device_text(second)) != 0);
	TS_CHECK(strstr(device_text(second), "; recorded on GeForce"));
	named = open_on("GeForce", strstr(device_text(second), "pthread") ? "PTHREAD-" : "Basic-");
	TS_CHECK_STR(device_text(named), device_text(second));
	TS_CHECK_INT(made_run(named), 0);
	made_end(first);
	made_end(second);
	made_end(named);
}

/* Without a choice, the device of the same name is used, wherever it is in the list. */
TS_TEST(device_of_the_same_name)
{
	struct made *second = open_on("", "1"), *same;
	const char *text = device_text(second) + strlen("opencl: ");
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)(strrchr(text, '(') - 1 - text), text);
	same = open_on(name, NULL);
	TS_CHECK(strstr(device_text(same), name) != NULL);
	TS_CHECK(strstr(device_text(same), "recorded on") == NULL);
	made_end(second);
	made_end(same);
}

/* ---- modules ---- */

TS_TEST(source_that_does_not_build)
{
	struct made *made = made_start("");

	launch_twice(made,
		     made_module(made, "kernel void twice(global uint *v) { v[0] = wrong; }\n"), 0);
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "kernel 'twice' does not build on '");
	check_says(made, "wrong");
	made_end(made);
}

TS_TEST(kernel_that_is_not_in_its_module)
{
	struct made *made = made_start("");

	launch_twice(made, made_module(made, "kernel void other(global uint *v) { v[0] = 1; }\n"),
		     0);
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "kernel 'twice': CL_INVALID_KERNEL_NAME on '");
	made_end(made);
}

TS_TEST(source_that_includes)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, "#include \"/etc/hostname\"\nkernel void twice() {}\n");

	launch_twice(made, module, 0);
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "kernel 'twice': its source includes files");
	check_says(made, "no binary of it for '");
	made_end(made);
}

TS_TEST(options_that_name_files_are_left_out)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, "kernel void twice(global uint *v) { v[0] = N; }\n");
	uint32_t result;

	made->objects[module].options = "-I/nowhere -DN=5 -include /nowhere/x.h";
	result = launch_twice(made, module, 0);
	made_run_twice(made);
	TS_CHECK_INT(first_word(made, result), 5);
	made_end(made);
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
	struct made *made;
	uint32_t module, result;
	char name[128];
	size_t bytes;

	bytes = build_binary(name, &binary);
	made = made_start(name);
	module = made_module(made, NULL);
	stored.device = made->device;
	stored.blob = made_blob(made, binary, bytes);
	made->objects[module].binaries = &stored;
	made->objects[module].binary_count = 1;
	result = launch_twice(made, module, 0);
	made_run_twice(made);
	TS_CHECK_INT(first_word(made, result), 1);
	free(binary);
	made_end(made);
}

TS_TEST(binary_of_another_device)
{
	struct ts_replay_binary stored = { 0 };
	struct made *made = made_start("another device");
	uint32_t module = made_module(made, NULL);

	stored.device = made->device;
	stored.blob = made_blob(made, "binary", 6);
	made->objects[module].binaries = &stored;
	made->objects[module].binary_count = 1;
	launch_twice(made, module, 0);
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "kernel 'twice': its source is missing");
	made_end(made);
}

/* With a limit below the sum of all memory: it is allocated and freed as in the program. */
TS_TEST(memory_that_comes_and_goes)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source),
		 function = made_function(made, module, "twice");
	uint32_t results[6];

	ts_opencl_memory_limit = 3 * 4096;
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t initial[1024] = { [256] = i + 10 }, memory, alloc, release;
		struct ts_replay_arg arg;

		memory = made_memory(made, i % 2 ? initial : NULL, 4096);
		arg = made_memory_arg(made, memory);
		alloc = made_command(made, TS_COMMAND_ALLOC, NONE);
		made->commands[alloc].object = memory;
		made->objects[memory].created_by = alloc;
		/* All of it, then a part. */
		made_launch(made, made->queue, function, 1024, 0, &arg, 1, NULL, 0);
		arg.offset = 1024;
		arg.bytes = 1024;
		made_launch(made, made->queue, function, 256, 0, &arg, 1, NULL, 0);
		results[i] = made_read(made, made->queue, memory, 1024, 4);
		release = made_command(made, TS_COMMAND_FREE, NONE);
		made->commands[release].object = memory;
		made->objects[memory].freed_by = release;
	}
	made_run_twice(made);
	TS_CHECK(made->replay.session->is_lazy);
	for (uint32_t i = 0; i < 6; i++)
		TS_CHECK_INT(first_word(made, results[i]), ((i % 2 ? i + 10 : 0) * 2 + 1) * 2 + 1);
	made_end(made);
}
#endif

/* ---- replaced kernels ---- */

TS_TEST(replaced_kernel)
{
	static const char other[] = "kernel void twice(global uint *v) { v[0] = 1234; }\n";
	struct ts_replay_replacement replacement = { "twice", "other.cl", other,
						     sizeof(other) - 1 };
	struct made *made = made_start("");
	uint32_t module = made_module(made, "kernel void twice(global uint *v) { v[0] = 1; }\n"
					    "kernel void keep(global uint *v) { v[0]++; }\n");
	uint32_t memory = made_memory(made, NULL, 64), result;
	struct ts_replay_arg arg = made_memory_arg(made, memory);

	made_launch(made, made->queue, made_function(made, module, "twice"), 1, 0, &arg, 1, NULL,
		    0);
	made_launch(made, made->queue, made_function(made, module, "keep"), 1, 0, &arg, 1, NULL, 0);
	result = made_read(made, made->queue, memory, 0, 4);
	made->replay.options.replacements = &replacement;
	made->replay.options.replacement_count = 1;
	made_run_twice(made);
	TS_CHECK_INT(first_word(made, result), 1235);
	made_end(made);
}

TS_TEST(replacement_that_does_not_fit)
{
	static const char other[] = "kernel void something(global uint *v) { v[0] = 1234; }\n";
	static const char bad[] = "kernel void twice(\n";
	struct ts_replay_replacement replacement = { "twice", "other.cl", other,
						     sizeof(other) - 1 };
	struct made *made = made_start("");

	launch_twice(made, made_module(made, source), 0);
	made->replay.options.replacements = &replacement;
	made->replay.options.replacement_count = 1;
	TS_CHECK_INT(made_open(made), TS_ENOTFOUND);
	check_says(made, "'other.cl': there is no kernel 'twice' in it");
	replacement.source = bad;
	replacement.bytes = sizeof(bad) - 1;
	TS_CHECK_INT(ts_replay_target_opencl.open(&made->replay, &made->replay.session, &made->err),
		     TS_ECAP);
	check_says(made, "'other.cl': module ");
	made_end(made);
}

/* ---- commands ---- */

TS_TEST(error_names_the_command)
{
	struct made *made = made_start("");

	made_command(made, TS_COMMAND_LOAD, NONE);
	/* 64 is not a multiple of 48 in OpenCL C 1.2. */
	launch_twice(made, made_module(made, source), 1 << 20);
	TS_CHECK_INT(made_open(made), 0);
	TS_CHECK_INT(made_run(made), TS_ECAP);
	check_says(made, "command 2, launch of 'twice': CL_INVALID_WORK_");
	check_says(made, " on '");
	/* The session remains usable and can be closed. */
	TS_CHECK_INT(made_run(made), TS_ECAP);
	made_end(made);
}

TS_TEST(arguments_that_do_not_fit)
{
	struct made *made = made_start("");
	uint32_t function = made_function(made, made_module(made, source), "twice");
	struct ts_replay_arg arg = { .kind = TS_REPLAY_ARG_BYTES, .size = 2, .memory = NONE };

	made_launch(made, made->queue, function, 1, 0, &arg, 1, "ab", 2);
	TS_CHECK_INT(made_open(made), 0);
	TS_CHECK_INT(made_run(made), TS_ECAP);
	check_says(made, "command 1, launch of 'twice': CL_INVALID_ARG_");
	made_end(made);
}

TS_TEST(a_part_at_an_odd_place)
{
	struct made *made = made_start("");
	uint32_t function = made_function(made, made_module(made, source), "twice");
	uint32_t memory = made_memory(made, NULL, 4096);
	struct ts_replay_arg arg = made_memory_arg(made, memory);

	arg.offset = 4;
	arg.bytes = 8;
	made_launch(made, made->queue, function, 1, 0, &arg, 1, NULL, 0);
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "command 1, launch of 'twice': argument 0: a part of memory ");
	check_says(made, "CL_MISALIGNED_SUB_BUFFER_OFFSET");
	made_end(made);
}

TS_TEST(what_cannot_be_replayed)
{
	struct made *made = made_start("");
	uint32_t memory = made_memory(made, NULL, 64);
	uint32_t fill = made_fill(made, made->queue, memory, "a", 1, 64);

	made->objects[memory].unreplayable = "an image";
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "command 1, fill of memory 4: memory 4 cannot be replayed: an image");
	made->objects[memory].unreplayable = NULL;
	made->commands[fill].unreplayable = "no idea";
	TS_CHECK_INT(ts_replay_target_opencl.open(&made->replay, &made->replay.session, &made->err),
		     TS_ECAP);
	check_says(made, "it cannot be replayed: no idea");
	made_end(made);
}

TS_TEST(pointers_inside_svm)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), memory = made_memory(made, NULL, 4096);
	struct ts_replay_range reached = { memory, 0, 4096 };

	made->objects[memory].flags = TS_REPLAY_HAS_SVM;
	made->objects[memory].address = 0x1000;
	launch_twice(made, module, 0);
	made->commands[0].reads = &reached;
	made->commands[0].read_count = 1;
	TS_CHECK_INT(made_open(made), TS_ECAP);
	check_says(made, "command 1, launch of 'twice': pointers inside SVM");
	made_end(made);
}

static int stop(void *context, const char *doing, uint64_t done, uint64_t total)
{
	return 1;
}

TS_TEST(stopped)
{
	struct made *made = made_start("");

	launch_twice(made, made_module(made, source), 0);
	made->replay.options.progress = stop;
	TS_CHECK_INT(made_open(made), 0);
	TS_CHECK_INT(made_run(made), TS_ECANCELED);
	made_end(made);
}

static int refuse(void *context, uint32_t capture, const void *data, struct ts_error *err)
{
	return ts_error_set(err, TS_EIO, "refused");
}

TS_TEST(content_that_is_refused)
{
	struct ts_replay_outcome outcome = { .content = refuse };
	struct made *made = made_start("");

	launch_twice(made, made_module(made, source), 0);
	TS_CHECK_INT(made_open(made), 0);
	outcome.times = made->times;
	TS_CHECK_INT(ts_replay_target_opencl.run(made->replay.session, 1, &outcome, &made->err),
		     TS_EIO);
	TS_CHECK_STR(made->err.message, "refused");
	TS_CHECK_INT(made_run(made), 0);
	made_end(made);
}

/* A user event set to an error: commands that wait for it do not run, as in the recording. */
TS_TEST(user_event_with_an_error)
{
	struct made *made = made_start("");
	uint32_t memory = made_memory(made, NULL, 64), event = made_user_event(made), fill;

	fill = made_fill(made, made->queue, memory, "a", 1, 64);
	made_user_wait(made, fill, event);
	made_set(made, event);
	made->commands[1].status = -5;
	TS_CHECK_INT(made_open(made), 0);
	TS_CHECK_INT(made_run(made), 0);
	TS_CHECK_INT(made->times[0].start, TS_ABSENT);
	made_end(made);
}
