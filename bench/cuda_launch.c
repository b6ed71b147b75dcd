/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what recording for replay adds to a launch of a CUDA kernel that does nothing.
 *
 *	cuda_launch TOOL IMAGE [TURNS]   runs itself in turn without a recorder, recorded, and
 *					 replayable outside and inside of a window
 *	cuda_launch --run IMAGE          one of these runs: launches in batches, and waits
 *
 * IMAGE is tests/cuda/work_kernels.fatbin. The driver is the stand-in, with
 * LD_LIBRARY_PATH=build/tests/cuda/driver and STAND_IN_LAZY=1, under which launches are only queued
 * while they are measured; or a real one. The peer is what any capture has to do: to copy the
 * parameters and a record of the launch to shared memory, under a lock.
 *
 * A figure is the CPU time of the launching thread, in ns per launch, of a run's best batch;
 * medians over all turns, and of the differences to the run in the same turn that is recorded only.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BATCH 500
#define BATCHES 100
#define TURNS_AT_MOST 1000
#define PEER_BYTES ((size_t)1 << 24)
#define RECORD_BYTES 256 /* of a launch in the ring, with its parameters */

/* ---- one run ---- */

static struct {
	int (*init)(unsigned int flags);
	int (*device_get)(int *device, int ordinal);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*load)(void **module, const void *image);
	int (*find)(void **function, void *module, const char *name);
	int (*allocate)(uint64_t *address, size_t bytes);
	int (*launch)(void *function, unsigned int, unsigned int, unsigned int, unsigned int,
		      unsigned int, unsigned int, unsigned int shared, void *stream, void **params,
		      void **extra);
	int (*synchronize)(void);
} cuda;

static const struct {
	const char *name;
	void *to;
} functions[] = {
	{ "cuInit", &cuda.init },
	{ "cuDeviceGet", &cuda.device_get },
	{ "cuDevicePrimaryCtxRetain", &cuda.retain },
	{ "cuCtxSetCurrent", &cuda.set_current },
	{ "cuModuleLoadData", &cuda.load },
	{ "cuModuleGetFunction", &cuda.find },
	{ "cuMemAlloc_v2", &cuda.allocate },
	{ "cuLaunchKernel", &cuda.launch },
	{ "cuCtxSynchronize", &cuda.synchronize },
};

static void stop_if(int is_wrong, const char *what)
{
	if (is_wrong) {
		fprintf(stderr, "cuda_launch: %s: error %d\n", what, is_wrong);
		exit(1);
	}
}

static double read_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t most = 1 << 20;
	void *bytes = malloc(most);

	stop_if(!file || !bytes || !fread(bytes, 1, most, file), path);
	fclose(file);
	return bytes;
}

static void *begin(const char *image)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function;
	int device;

	stop_if(!driver, "dlopen libcuda.so.1");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *found = dlsym(driver, functions[i].name);

		stop_if(!found, functions[i].name);
		memcpy(functions[i].to, &found, sizeof(found));
	}
	stop_if(cuda.init(0), "cuInit");
	stop_if(cuda.device_get(&device, 0), "cuDeviceGet");
	stop_if(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain");
	stop_if(cuda.set_current(context), "cuCtxSetCurrent");
	stop_if(cuda.load(&module, read_file(image)), "cuModuleLoadData");
	stop_if(cuda.find(&function, module, "add"), "cuModuleGetFunction");
	return function;
}

/* Three pointers and a count, which is 0. */
static double launch_batch(void *function, uint64_t address)
{
	uint32_t count = 0;
	void *params[] = { &address, &address, &address, &count };
	double start = read_ns();

	for (int i = 0; i < BATCH; i++)
		stop_if(cuda.launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
			"cuLaunchKernel");
	start = (read_ns() - start) / BATCH;
	stop_if(cuda.synchronize(), "cuCtxSynchronize");
	return start;
}

static double copy_batch(char *shared)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static size_t at;
	char record[RECORD_BYTES] = { 0 };
	double start = read_ns();

	for (int i = 0; i < BATCH; i++) {
		memcpy(record, &i, sizeof(i));
		pthread_mutex_lock(&lock);
		memcpy(shared + at, record, sizeof(record));
		__atomic_store_n(&at, (at + sizeof(record)) % PEER_BYTES, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
	}
	return (read_ns() - start) / BATCH;
}

static int run(const char *image)
{
	char *shared = mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	double best = 1e18, best_copy = 1e18;
	void *function = begin(image);
	uint64_t address;

	stop_if(shared == MAP_FAILED, "mmap");
	stop_if(cuda.allocate(&address, 4096), "cuMemAlloc");
	for (int i = 0; i < BATCHES; i++) {
		double launch = launch_batch(function, address), copy = copy_batch(shared);

		best = launch < best ? launch : best;
		best_copy = copy < best_copy ? copy : best_copy;
		/* Lets the recorder drain. */
		usleep(2000);
	}
	printf("figures %.1f %.1f\n", best, best_copy);
	return 0;
}

/* ---- all runs ---- */

enum { PLAIN, RECORDED, OUTSIDE, INSIDE, WAYS };

static const struct {
	const char *name, *options;
	int base; /* what it is compared with */
} ways[WAYS] = {
	{ "without a recorder", NULL, PLAIN },
	{ "recorded", "", PLAIN },
	{ "replayable, outside of a window", "--replayable --window flag:/nonexistent", PLAIN },
	{ "replayable, inside of a window", "--replayable", RECORDED },
};
static double figures[WAYS][TURNS_AT_MOST], copies[TURNS_AT_MOST];

/* False if the run failed. */
static int run_way(char **argv, int way, double *ret_launch, double *ret_copy)
{
	static const char begin_of_line[] = "figures ";
	char command[4096], line[256], *at;
	int found = 0;
	FILE *output;

	if (!ways[way].options)
		snprintf(command, sizeof(command), "exec '%s' --run '%s'", argv[0], argv[2]);
	else
		snprintf(command, sizeof(command),
			 "'%s' record -q %s --stacks none --no-symbols -o /tmp/cuda_launch.%d.sbt "
			 "-- '%s' --run '%s' 2>/dev/null; rm -rf /tmp/cuda_launch.%d.sbt*",
			 argv[1], ways[way].options, (int)getpid(), argv[0], argv[2],
			 (int)getpid());
	output = popen(command, "r");
	while (output && fgets(line, sizeof(line), output)) {
		if (strncmp(line, begin_of_line, strlen(begin_of_line)) != 0)
			continue;
		*ret_launch = strtod(line + strlen(begin_of_line), &at);
		*ret_copy = strtod(at, &at);
		found = *ret_launch > 0 && *ret_copy > 0;
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
	double sorted[TURNS_AT_MOST] = { 0 };

	for (int i = 0; i < count; i++)
		sorted[i] = values[i] - (less ? less[i] : 0);
	qsort(sorted, (size_t)count, sizeof(sorted[0]), compare);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

int main(int argc, char **argv)
{
	int turns = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 11;

	if (argc == 3 && !strcmp(argv[1], "--run"))
		return run(argv[2]);
	if (argc < 3 || turns < 1 || turns > TURNS_AT_MOST) {
		fprintf(stderr, "usage: cuda_launch TOOL IMAGE [TURNS]\n");
		return 2;
	}
	for (int i = 0; i < turns; i++)
		for (int way = 0; way < WAYS; way++)
			if (!run_way(argv, way, &figures[way][i], &copies[i])) {
				fprintf(stderr, "cuda_launch: the run '%s' failed\n",
					ways[way].name);
				return 1;
			}
	printf("%-34s %10s %10s\n", "ns a launch, medians", "processor", "added");
	for (int way = 0; way < WAYS; way++)
		printf("%-34s %10.1f %10.1f\n", ways[way].name, median(figures[way], NULL, turns),
		       median(figures[way], figures[ways[way].base], turns));
	printf("%-34s %10.1f\n", "a copy to shared memory, locked", median(copies, NULL, turns));
	return 0;
}
