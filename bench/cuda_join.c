/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_join [--launches N] [--rounds N]: measures the cost per launch of joining launches to device
 * times with CUPTI: a bare launch, activities only, a callback that stores the correlation id, and
 * external correlation around each launch, interleaved, on an empty kernel. Then four threads
 * launch on one stream, each launch with a different grid, which shows whether both methods join
 * correctly. Needs a GPU but no CUDA headers; opens libcuda and libcupti. Exit code 77: no GPU.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../src/code/cuda/local/cupti_abi.h"

#define SKIPPED 77
#define MOST_ROUNDS 1000
#define THREADS 4
#define LAUNCHES_A_THREAD 5000
#define GRIDS (THREADS * LAUNCHES_A_THREAD + 1)
#define CORRELATIONS (1u << 22)
#define BUFFER_BYTES 16384u
#define LAUNCH_NUMBER 307 /* cuLaunchKernel's, as in cuda_calls.def */
#define CUSTOM_KIND 3

enum mode { BARE, ACTIVITY, CALLBACK, EXTERNAL, MODES };
static const char *const mode_names[MODES] = { "bare", "activity", "callback", "external" };

static const char source[] = ".version 7.0\n"
			     ".target sm_75\n"
			     ".address_size 64\n"
			     ".visible .entry empty() { ret; }\n";

static struct {
	int (*Init)(unsigned int flags);
	int (*DeviceGet)(int *device, int number);
	int (*DevicePrimaryCtxRetain)(void **context, int device);
	int (*CtxSetCurrent)(void *context);
	int (*CtxSynchronize)(void);
	int (*ModuleLoadData)(void **module, const void *image);
	int (*ModuleGetFunction)(void **function, void *module, const char *name);
	int (*StreamCreate)(void **stream, unsigned int flags);
	int (*LaunchKernel)(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
			    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			    void *stream, void **parameters, void **extra);
} driver;

static struct {
	struct cupti_functions known;
	int (*EnableDriverApi)(uint32_t number, uint8_t on);
	int (*Push)(uint32_t kind, uint64_t id);
	int (*Pop)(uint32_t kind, uint64_t *id);
} cupti;

static void *context, *function, *stream, *subscriber;
static __thread volatile uint32_t last_correlation;
static uint32_t grid_of_launch[CORRELATIONS]; /* by correlation, as the launching thread knows it */
static uint32_t grid_of_external[CORRELATIONS]; /* the same, as reported by CUPTI */
static uint32_t grid_of_kernel[CORRELATIONS];   /* what ran */
static bool keeps_records;

/* ---- libraries ---- */

static bool open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		return false;
#define FIND(name, exported)                                 \
	do {                                                 \
		void *found = dlsym(library, exported);      \
		memcpy(&driver.name, &found, sizeof(found)); \
		if (!found)                                  \
			return false;                        \
	} while (0)
	FIND(Init, "cuInit");
	FIND(DeviceGet, "cuDeviceGet");
	FIND(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
	FIND(CtxSetCurrent, "cuCtxSetCurrent");
	FIND(CtxSynchronize, "cuCtxSynchronize");
	FIND(ModuleLoadData, "cuModuleLoadData");
	FIND(ModuleGetFunction, "cuModuleGetFunction");
	FIND(StreamCreate, "cuStreamCreate");
	FIND(LaunchKernel, "cuLaunchKernel");
#undef FIND
	return true;
}

static void *find_cupti(void)
{
	static const char *const paths[] = {
		"libcupti.so.13",
		"/usr/local/cuda/lib64/libcupti.so.13",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
		"libcupti.so.12",
		"/usr/local/cuda/lib64/libcupti.so.12",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
		"libcupti.so",
	};
	const char *named = getenv("CUPTI_LIBRARY");
	void *library = named ? dlopen(named, RTLD_NOW) : NULL;

	for (size_t i = 0; !library && i < sizeof(paths) / sizeof(paths[0]); i++)
		library = dlopen(paths[i], RTLD_NOW);
	return library;
}

static bool open_cupti(void)
{
	void *library = find_cupti(), *found;

	if (!library)
		return false;
#define CUPTI_FUNCTION(name, parameters)       \
	found = dlsym(library, "cupti" #name); \
	memcpy(&cupti.known.name, &found, sizeof(found));
	CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION
	found = dlsym(library, "cuptiActivityEnableDriverApi");
	memcpy(&cupti.EnableDriverApi, &found, sizeof(found));
	found = dlsym(library, "cuptiActivityPushExternalCorrelationId");
	memcpy(&cupti.Push, &found, sizeof(found));
	found = dlsym(library, "cuptiActivityPopExternalCorrelationId");
	memcpy(&cupti.Pop, &found, sizeof(found));
	return cupti.known.Subscribe && cupti.Push && cupti.Pop;
}

/* ---- CUPTI callbacks ---- */

static void requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	*buffer = calloc(1, BUFFER_BYTES);
	*bytes = *buffer ? BUFFER_BYTES : 0;
	*most_records = 0;
}

static uint32_t word(const uint8_t *record, size_t at)
{
	uint32_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static void keep(const uint8_t *record)
{
	uint32_t kind = word(record, CUPTI_AT_KIND);

	if (kind == CUPTI_KIND_CONCURRENT_KERNEL)
		grid_of_kernel[word(record, CUPTI_KERNEL_CORRELATION) % CORRELATIONS] =
			word(record, CUPTI_KERNEL_GRID);
	else if (kind == CUPTI_KIND_EXTERNAL_CORRELATION) /* kind, kind, id (8), correlation */
		grid_of_external[word(record, 16) % CORRELATIONS] = word(record, 8);
}

static void completed(void *of, uint32_t id, uint8_t *buffer, size_t bytes, size_t valid)
{
	void *record = NULL;

	(void)of, (void)id, (void)bytes;
	while (keeps_records && !cupti.known.ActivityGetNextRecord(buffer, valid, &record))
		keep(record);
	free(buffer);
}

static void called_back(void *data, uint32_t domain, uint32_t number, const void *what)
{
	const struct cupti_call *call = what;

	(void)data, (void)domain, (void)number;
	if (call->site == CUPTI_ENTER)
		last_correlation = call->correlation;
}

/* ---- modes ---- */

static void switch_kind(uint32_t kind, bool on)
{
	if (on)
		cupti.known.ActivityEnable(kind);
	else
		cupti.known.ActivityDisable(kind);
}

/* External correlation needs records of calls: of launches only, if CUPTI can limit them. */
static void switch_calls(bool on)
{
	if (cupti.EnableDriverApi)
		cupti.EnableDriverApi(LAUNCH_NUMBER, on);
	else
		switch_kind(CUPTI_KIND_DRIVER, on);
	switch_kind(CUPTI_KIND_EXTERNAL_CORRELATION, on);
}

static void switch_mode(enum mode mode, bool on)
{
	if (mode == BARE)
		return;
	switch_kind(CUPTI_KIND_CONCURRENT_KERNEL, on);
	switch_kind(CUPTI_KIND_MEMCPY, on);
	switch_kind(CUPTI_KIND_MEMSET, on);
	if (mode == CALLBACK)
		cupti.known.EnableCallback(on, subscriber, CUPTI_DOMAIN_DRIVER, LAUNCH_NUMBER);
	if (mode == EXTERNAL)
		switch_calls(on);
}

static void launch(unsigned int grid)
{
	driver.LaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static void launch_in(enum mode mode, unsigned int grid)
{
	uint64_t id;

	if (mode != EXTERNAL) {
		launch(grid);
		return;
	}
	cupti.Push(CUSTOM_KIND, grid);
	launch(grid);
	cupti.Pop(CUSTOM_KIND, &id);
}

/* ---- costs ---- */

static double figures[MODES][MOST_ROUNDS];

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double measure(enum mode mode, unsigned int launches)
{
	double start, took;

	switch_mode(mode, true);
	for (unsigned int i = 0; i < 100; i++)
		launch_in(mode, 1);
	driver.CtxSynchronize();
	start = now_ns();
	for (unsigned int i = 0; i < launches; i++)
		launch_in(mode, 1);
	took = (now_ns() - start) / launches;
	driver.CtxSynchronize();
	switch_mode(mode, false);
	cupti.known.ActivityFlushAll(CUPTI_FLUSH_FORCED);
	return took;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct interval {
	double median, low, high;
};

/* The median and its 95 % interval, by ranks. */
static struct interval interval_of(double *values, unsigned int count)
{
	double half = 0.98; /* 1.96 / 2 */
	unsigned int reach = 1;

	while ((double)reach * reach < half * half * count)
		reach++;
	qsort(values, count, sizeof(*values), compare);
	return (struct interval){
		values[count / 2], values[count / 2 > reach ? count / 2 - reach : 0],
		values[count / 2 + reach < count ? count / 2 + reach : count - 1]
	};
}

/* The difference of each round to another mode of the same round. */
static struct interval over(enum mode mode, int base, unsigned int rounds)
{
	double values[MOST_ROUNDS];

	for (unsigned int i = 0; i < rounds; i++)
		values[i] = figures[mode][i] - (base < 0 ? 0 : figures[base][i]);
	return interval_of(values, rounds);
}

/* ---- joins ---- */

static enum mode joining;

static void *launch_many(void *thread)
{
	unsigned int first = (unsigned int)(uintptr_t)thread * LAUNCHES_A_THREAD + 1;

	driver.CtxSetCurrent(context);
	for (unsigned int i = 0; i < LAUNCHES_A_THREAD; i++) {
		last_correlation = 0;
		launch_in(joining, first + i);
		if (last_correlation)
			grid_of_launch[last_correlation % CORRELATIONS] = first + i;
	}
	return NULL;
}

/*
 * Counts kernels whose grid is not that of the launch they were joined to, or that were not joined.
 */
static unsigned int count_wrong(enum mode mode, unsigned int *ret_kernels)
{
	const uint32_t *expected_grid = mode == CALLBACK ? grid_of_launch : grid_of_external;
	pthread_t threads[THREADS];
	unsigned int wrong = 0, kernels = 0;

	memset(grid_of_kernel, 0, sizeof(grid_of_kernel));
	keeps_records = true;
	joining = mode;
	switch_mode(mode, true);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, launch_many, (void *)i))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	driver.CtxSynchronize();
	switch_mode(mode, false);
	cupti.known.ActivityFlushAll(CUPTI_FLUSH_FORCED);
	for (size_t i = 0; i < CORRELATIONS; i++) {
		kernels += grid_of_kernel[i] != 0;
		wrong += grid_of_kernel[i] && grid_of_kernel[i] != expected_grid[i];
	}
	*ret_kernels = kernels;
	return wrong;
}

/* ---- */

static int begin(void)
{
	void *module;
	int device;

	if (!open_driver() || driver.Init(0) || driver.DeviceGet(&device, 0)) {
		printf("skip: no CUDA device\n");
		return SKIPPED;
	}
	if (!open_cupti()) {
		printf("skip: no CUPTI\n");
		return SKIPPED;
	}
	if (cupti.known.Subscribe(&subscriber, called_back, NULL) ||
	    cupti.known.ActivityRegisterCallbacks(requested, completed)) {
		printf("skip: CUPTI is in use, or not allowed\n");
		return SKIPPED;
	}
	if (driver.DevicePrimaryCtxRetain(&context, device) || driver.CtxSetCurrent(context) ||
	    driver.ModuleLoadData(&module, source) ||
	    driver.ModuleGetFunction(&function, module, "empty") ||
	    driver.StreamCreate(&stream, 1)) {
		fprintf(stderr, "the kernel cannot be loaded\n");
		return 1;
	}
	return 0;
}

static void print_costs(unsigned int rounds)
{
	for (enum mode mode = BARE; mode < MODES; mode++) {
		struct interval all = over(mode, -1, rounds);
		struct interval more = over(mode, mode > ACTIVITY ? ACTIVITY : BARE, rounds);

		printf("%-9s %8.0f ns a launch [%.0f, %.0f]; over %s %+.0f [%+.0f, %+.0f]\n",
		       mode_names[mode], all.median, all.low, all.high,
		       mode_names[mode > ACTIVITY ? ACTIVITY : BARE], more.median, more.low,
		       more.high);
	}
}

static void print_result(unsigned int rounds, const unsigned int *wrong,
			 const unsigned int *kernels)
{
	printf("result: {\"figures\": {\"rounds\": %u", rounds);
	for (enum mode mode = BARE; mode < MODES; mode++) {
		struct interval all = over(mode, -1, rounds);
		struct interval more = over(mode, mode > ACTIVITY ? ACTIVITY : BARE, rounds);

		printf(", \"%s_ns\": %.1f, \"%s_more_ns\": [%.1f, %.1f, %.1f]", mode_names[mode],
		       all.median, mode_names[mode], more.median, more.low, more.high);
	}
	printf(", \"callback_joined\": %u, \"callback_wrong\": %u, \"external_joined\": %u, "
	       "\"external_wrong\": %u}}\n",
	       kernels[0], wrong[0], kernels[1], wrong[1]);
}

int main(int argc, char **argv)
{
	unsigned int launches = 2000, rounds = 30, wrong[2], kernels[2];
	int result;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--launches"))
			launches = (unsigned int)strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (unsigned int)strtoul(argv[i + 1], NULL, 10);
	}
	if (!launches || !rounds || rounds > MOST_ROUNDS)
		return 2;
	result = begin();
	if (result)
		return result;
	for (unsigned int round = 0; round <= rounds; round++)
		for (enum mode mode = BARE; mode < MODES; mode++) {
			double took = measure(mode, launches);

			if (round) /* the first is a warm-up */
				figures[mode][round - 1] = took;
		}
	print_costs(rounds);
	wrong[0] = count_wrong(CALLBACK, &kernels[0]);
	wrong[1] = count_wrong(EXTERNAL, &kernels[1]);
	print_result(rounds, wrong, kernels);
	return wrong[0] || kernels[0] != GRIDS - 1;
}
