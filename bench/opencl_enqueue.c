/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what recording adds to an empty OpenCL command.
 *
 *	opencl_enqueue TOOL [PAIRS]   runs itself in turn without a recorder, recorded, and
 *				      replayable outside of a window; as a peer, without a
 *				      recorder but requesting the times of all commands itself
 *	opencl_enqueue --run|--ask    one of these runs: enqueues empty kernels in batches and
 *				      waits for them
 *
 * The figures of a run are those of its best batch: wall and CPU time of the enqueuing thread, in
 * ns per command. Prints the medians over all runs, and the medians of the differences to the run
 * without a recorder in the same turn. If the peer is slow, the driver itself makes profiling
 * expensive.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 1000
#define BATCHES 60
#define PAIRS_AT_MOST 1000

/* ---- one run ---- */

static double read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void stop_if(cl_int error, const char *what)
{
	if (error != CL_SUCCESS) {
		fprintf(stderr, "opencl_enqueue: %s: error %d\n", what, error);
		exit(1);
	}
}

static cl_kernel make_kernel(cl_context context)
{
	const char *source = "kernel void nothing(void) { }\n";
	cl_int error;
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
	cl_kernel kernel;

	stop_if(error, "clCreateProgramWithSource");
	stop_if(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
	kernel = clCreateKernel(program, "nothing", &error);
	stop_if(error, "clCreateKernel");
	return kernel;
}

static void query_times(cl_event event)
{
	cl_ulong time;

	for (cl_profiling_info what = CL_PROFILING_COMMAND_QUEUED; what <= CL_PROFILING_COMMAND_END;
	     what++)
		stop_if(clGetEventProfilingInfo(event, what, sizeof(time), &time, NULL),
			"clGetEventProfilingInfo");
	clReleaseEvent(event);
}

static void run_batch(cl_command_queue queue, cl_kernel kernel, int queries, double *wall,
		      double *processor)
{
	static cl_event events[BATCH];
	const size_t one = 1;
	double wall_start, processor_start;

	wall_start = read_ns(CLOCK_MONOTONIC);
	processor_start = read_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < BATCH; i++)
		stop_if(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL,
					       queries ? &events[i] : NULL),
			"clEnqueueNDRangeKernel");
	stop_if(clFinish(queue), "clFinish");
	for (int i = 0; queries && i < BATCH; i++)
		query_times(events[i]);
	*wall = (read_ns(CLOCK_MONOTONIC) - wall_start) / BATCH;
	*processor = (read_ns(CLOCK_THREAD_CPUTIME_ID) - processor_start) / BATCH;
}

/* A GPU if available, else the first device. */
static void choose_device(cl_platform_id *ret_platform, cl_device_id *ret_device)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;

	stop_if(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
	for (cl_uint i = 0; i < count && i < 16; i++) {
		*ret_platform = platforms[i];
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_GPU, 1, ret_device, NULL) ==
		    CL_SUCCESS)
			return;
	}
	*ret_platform = platforms[0];
	stop_if(clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_ALL, 1, ret_device, NULL),
		"clGetDeviceIDs");
}

static int run(int queries)
{
	double best_wall = 1e18, best_processor = 1e18;
	cl_platform_id platform;
	cl_command_queue queue;
	cl_device_id device;
	cl_context context;
	cl_kernel kernel;
	cl_int error;

	choose_device(&platform, &device);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	stop_if(error, "clCreateContext");
	queue = clCreateCommandQueue(context, device, queries ? CL_QUEUE_PROFILING_ENABLE : 0,
				     &error);
	stop_if(error, "clCreateCommandQueue");
	kernel = make_kernel(context);
	for (int i = 0; i < BATCHES; i++) {
		double wall, processor;

		run_batch(queue, kernel, queries, &wall, &processor);
		best_wall = wall < best_wall ? wall : best_wall;
		best_processor = processor < best_processor ? processor : best_processor;
		/* Lets the recorder drain. */
		usleep(5000);
	}
	printf("figures %.0f %.0f\n", best_wall, best_processor);
	return 0;
}

/* ---- all runs ---- */

enum { PLAIN, QUERYING, RECORDED, REPLAYABLE, WAYS };

static const char *const names[WAYS] = { "without a recorder", "asking for times itself",
					 "recorded", "replayable, outside of a window" };
static double figures[WAYS][2][PAIRS_AT_MOST];

/* False if the run failed. */
static int run_way(const char *self, const char *tool, int way, double *ret_wall, double *ret_cpu)
{
	static const char *const options[WAYS] = { "", "", "",
						   "--replayable --window flag:/nonexistent" };
	static const char begin[] = "figures ";
	char command[4096], line[256], *at;
	int found = 0;
	FILE *output;

	if (way == PLAIN || way == QUERYING)
		snprintf(command, sizeof(command), "exec '%s' %s", self,
			 way == PLAIN ? "--run" : "--ask");
	else
		snprintf(command, sizeof(command),
			 "'%s' record %s -o /tmp/opencl_enqueue.%d.sbt -- '%s' --run 2>/dev/null; "
			 "rm -rf /tmp/opencl_enqueue.%d.sbt*",
			 tool, options[way], (int)getpid(), self, (int)getpid());
	output = popen(command, "r");
	while (output && fgets(line, sizeof(line), output)) {
		if (strncmp(line, begin, strlen(begin)) != 0)
			continue;
		*ret_wall = strtod(line + strlen(begin), &at);
		*ret_cpu = strtod(at, &at);
		found = *ret_wall > 0 && *ret_cpu > 0;
	}
	if (output)
		pclose(output);
	return found;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *values, const double *less, int count)
{
	double sorted[PAIRS_AT_MOST] = { 0 };

	for (int i = 0; i < count; i++)
		sorted[i] = values[i] - (less ? less[i] : 0);
	qsort(sorted, (size_t)count, sizeof(sorted[0]), compare);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

int main(int argc, char **argv)
{
	int pairs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 11;

	if (argc > 1 && (!strcmp(argv[1], "--run") || !strcmp(argv[1], "--ask")))
		return run(!strcmp(argv[1], "--ask"));
	if (argc < 2 || pairs < 1 || pairs > PAIRS_AT_MOST) {
		fprintf(stderr, "usage: opencl_enqueue TOOL [PAIRS]\n");
		return 2;
	}
	for (int i = 0; i < pairs; i++)
		for (int way = 0; way < WAYS; way++)
			if (!run_way(argv[0], argv[1], way, &figures[way][0][i],
				     &figures[way][1][i])) {
				fprintf(stderr, "opencl_enqueue: the run '%s' failed\n",
					names[way]);
				return 1;
			}
	printf("%-34s %10s %10s %10s %10s\n", "ns a command, medians", "passed", "added",
	       "processor", "added");
	for (int way = 0; way < WAYS; way++)
		printf("%-34s %10.0f %10.0f %10.0f %10.0f\n", names[way],
		       median(figures[way][0], NULL, pairs),
		       median(figures[way][0], figures[PLAIN][0], pairs),
		       median(figures[way][1], NULL, pairs),
		       median(figures[way][1], figures[PLAIN][1], pairs));
	return 0;
}
