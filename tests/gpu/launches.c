/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches small kernels with only the CUDA driver, for the tests and benchmarks in this folder.
 * Needs no CUDA headers: the driver is opened at run time.
 *
 *	launches count N         N empty launches, one thread
 *	launches threads T N     T threads, one stream, each launch with a different grid: launch
 *				 i of thread t has 1 + i * T + t blocks
 *	launches kinds N         N launches each by cuLaunchKernel, cuLaunchCooperativeKernel and
 *				 cuLaunchKernelEx in turn, N <= 200; launch i of kind k has
 *				 1 + i * 3 + k blocks
 *	launches backlog FILE    endless; kernels take 200 us, so that a thousand launches are
 *				 pending; FILE (struct progress) has what returned and completed
 *	launches serve           reads numbers; makes that many launches and answers with seconds,
 *				 until the end of input; after "window 1" and "window 0" they are
 *				 between cuProfilerStart and Stop, or not; after "direct 1"
 *				 they call the driver's function and no wrapper, until
 *				 "direct 0"
 *
 * Exit code 77 without a device.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77
#define THREADS_AT_MOST 64
#define SPIN_NS 200000
#define EVENTS 64 /* maximum pending */
#define LAUNCHES_A_EVENT 16

static const char source[] = ".version 7.0\n"
			     ".target sm_75\n"
			     ".address_size 64\n"
			     ".visible .entry empty(.param .u64 a, .param .u32 b) { ret; }\n"
			     ".visible .entry spin(.param .u64 length)\n"
			     "{\n"
			     "	.reg .u64 %begin, %now, %length;\n"
			     "	.reg .pred %more;\n"
			     "	ld.param.u64 %length, [length];\n"
			     "	mov.u64 %begin, %globaltimer;\n"
			     "again:\n"
			     "	mov.u64 %now, %globaltimer;\n"
			     "	sub.u64 %now, %now, %begin;\n"
			     "	setp.lt.u64 %more, %now, %length;\n"
			     "	@%more bra again;\n"
			     "	ret;\n"
			     "}\n";

/* As the driver declares it (CUlaunchConfig, CUDA 11.8). */
struct launch_config {
	unsigned int grid_x, grid_y, grid_z;
	unsigned int block_x, block_y, block_z;
	unsigned int shared_bytes;
	void *stream;
	void *attributes;
	unsigned int attribute_count;
};

static struct {
	int (*init)(unsigned int flags);
	int (*device_get)(int *device, int number);
	int (*context_retain)(void **context, int device);
	int (*context_set)(void *context);
	int (*synchronize)(void);
	int (*module_load)(void **module, const void *image);
	int (*module_function)(void **function, void *module, const char *name);
	int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		      unsigned int block_x, unsigned int block_y, unsigned int block_z,
		      unsigned int shared_bytes, void *stream, void **parameters, void **extra);
	int (*launch_cooperative)(void *function, unsigned int grid_x, unsigned int grid_y,
				  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				  unsigned int block_z, unsigned int shared_bytes, void *stream,
				  void **parameters);
	int (*launch_ex)(const struct launch_config *config, void *function, void **parameters,
			 void **extra); /* NULL: a driver before 11.8 */
	int (*stream_create)(void **stream, unsigned int flags);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_record)(void *event, void *stream);
	int (*event_synchronize)(void *event);
	int (*profiler_start)(void);
	int (*profiler_stop)(void);
} cuda;

static void *context, *empty, *spin;
static void *driver; /* the library */

static void check(int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s gave %d\n", what, code);
		exit(1);
	}
}

/* A function of the library itself: dlsym() may return a wrapper. */
static void *own_function(void *library, const char *name)
{
	const uint32_t *hashes = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	struct link_map *map = NULL;
	uint32_t hash = 5381;

	check(dlinfo(library, RTLD_DI_LINKMAP, &map), "dlinfo");
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		const void *at = (const void *)entry->d_un.d_ptr;

		if (entry->d_tag == DT_SYMTAB)
			symbols = at;
		else if (entry->d_tag == DT_STRTAB)
			names = at;
		else if (entry->d_tag == DT_GNU_HASH)
			hashes = at;
	}
	check(!symbols || !names || !hashes, "the driver's table of functions");
	for (const char *at = name; *at; at++)
		hash = hash * 33 + (unsigned char)*at;
	const uint32_t *buckets = hashes + 4 + hashes[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chains = buckets + hashes[0];

	for (uint32_t i = buckets[hash % hashes[0]]; i >= hashes[1]; i++) {
		if (!strcmp(names + symbols[i].st_name, name))
			return (void *)(map->l_addr + symbols[i].st_value);
		if (chains[i - hashes[1]] & 1)
			break;
	}
	check(1, name);
	return NULL;
}

static void load_driver(void)
{
	static const struct {
		const char *name;
		void *target;
	} calls[] = {
		{ "cuInit", &cuda.init },
		{ "cuDeviceGet", &cuda.device_get },
		{ "cuDevicePrimaryCtxRetain", &cuda.context_retain },
		{ "cuCtxSetCurrent", &cuda.context_set },
		{ "cuCtxSynchronize", &cuda.synchronize },
		{ "cuModuleLoadData", &cuda.module_load },
		{ "cuModuleGetFunction", &cuda.module_function },
		{ "cuLaunchKernel", &cuda.launch },
		{ "cuLaunchCooperativeKernel", &cuda.launch_cooperative },
		{ "cuStreamCreate", &cuda.stream_create },
		{ "cuEventCreate", &cuda.event_create },
		{ "cuEventRecord", &cuda.event_record },
		{ "cuEventSynchronize", &cuda.event_synchronize },
		{ "cuProfilerStart", &cuda.profiler_start },
		{ "cuProfilerStop", &cuda.profiler_stop },
	};
	void *library = driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "skip: %s\n", dlerror());
		exit(SKIPPED);
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		*(void **)calls[i].target = dlsym(library, calls[i].name);
		check(!*(void **)calls[i].target, calls[i].name);
	}
	*(void **)&cuda.launch_ex = dlsym(library, "cuLaunchKernelEx");
}

static void start_device(void)
{
	void *module;
	int device;

	load_driver();
	if (cuda.init(0) || cuda.device_get(&device, 0)) {
		fprintf(stderr, "skip: no CUDA device\n");
		exit(SKIPPED);
	}
	check(cuda.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
	check(cuda.context_set(context), "cuCtxSetCurrent");
	check(cuda.module_load(&module, source), "cuModuleLoadData");
	check(cuda.module_function(&empty, module, "empty"), "cuModuleGetFunction");
	check(cuda.module_function(&spin, module, "spin"), "cuModuleGetFunction");
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void launch_empty(unsigned int blocks, void *stream)
{
	uint64_t first = 0;
	uint32_t second = 0;
	void *parameters[] = { &first, &second };

	check(cuda.launch(empty, blocks, 1, 1, 32, 1, 1, 0, stream, parameters, NULL),
	      "cuLaunchKernel");
}

/* ns of this many launches, until the last has ended. */
static uint64_t launch_many(long count)
{
	uint64_t start = now_ns();

	for (long i = 0; i < count; i++)
		launch_empty(1, NULL);
	check(cuda.synchronize(), "cuCtxSynchronize");
	return now_ns() - start;
}

/* ---- launching ---- */

#define KINDS 3
#define KINDS_AT_MOST 200 /* all blocks of a cooperative launch must fit on the device */

static void launch_kinds(long count)
{
	uint64_t first = 0;
	uint32_t second = 0;
	void *parameters[] = { &first, &second };
	struct launch_config config = {
		.grid_y = 1, .grid_z = 1, .block_x = 32, .block_y = 1, .block_z = 1
	};

	for (long i = 0; i < count; i++) {
		unsigned int blocks = (unsigned int)(1 + i * KINDS);

		launch_empty(blocks, NULL);
		check(cuda.launch_cooperative(empty, blocks + 1, 1, 1, 32, 1, 1, 0, NULL,
					      parameters),
		      "cuLaunchCooperativeKernel");
		config.grid_x = blocks + 2;
		if (cuda.launch_ex)
			check(cuda.launch_ex(&config, empty, parameters, NULL), "cuLaunchKernelEx");
	}
	check(cuda.synchronize(), "cuCtxSynchronize");
}

/* ---- threads ---- */

struct launcher {
	pthread_t thread;
	unsigned int number, of;
	long count;
	void *stream;
	pthread_barrier_t *start;
	long tid;
};

static void *run_launcher(void *argument)
{
	struct launcher *launcher = argument;

	launcher->tid = syscall(SYS_gettid);
	check(cuda.context_set(context), "cuCtxSetCurrent");
	pthread_barrier_wait(launcher->start);
	for (long i = 0; i < launcher->count; i++)
		launch_empty((unsigned int)(1 + i * launcher->of + launcher->number),
			     launcher->stream);
	return NULL;
}

/* Prints which thread is which: "thread NUMBER TID". */
static void launch_by_threads(unsigned int threads, long count)
{
	struct launcher launchers[THREADS_AT_MOST];
	pthread_barrier_t start;
	void *stream;

	check(cuda.stream_create(&stream, 1), "cuStreamCreate");
	pthread_barrier_init(&start, NULL, threads);
	for (unsigned int i = 0; i < threads; i++) {
		launchers[i] = (struct launcher){ .number = i,
						  .of = threads,
						  .count = count,
						  .stream = stream,
						  .start = &start };
		check(pthread_create(&launchers[i].thread, NULL, run_launcher, &launchers[i]),
		      "pthread_create");
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(launchers[i].thread, NULL);
		printf("thread %u %ld\n", i, launchers[i].tid);
	}
	check(cuda.synchronize(), "cuCtxSynchronize");
}

/* ---- a backlog, to be killed in ---- */

#define PROGRESS_STEPS 65536

/* The program's view of itself, in a file that outlives it. Times are of CLOCK_REALTIME. */
struct progress {
	uint64_t launched; /* launches that returned */
	uint64_t steps;    /* number of entries below */
	struct {
		uint64_t time_ns; /* when it was known */
		uint64_t ended;   /* launches that the device had finished */
	} step[PROGRESS_STEPS];
};

static struct {
	struct progress *progress;
	void *events[EVENTS];
	uint64_t recorded; /* events; the one of launch (i + 1) * LAUNCHES_A_EVENT is i % EVENTS */
} backlog;

static void *watch_events(void *argument)
{
	struct progress *progress = backlog.progress;

	check(cuda.context_set(context), "cuCtxSetCurrent");
	for (uint64_t i = 0; i < PROGRESS_STEPS; i++) {
		while (__atomic_load_n(&backlog.recorded, __ATOMIC_ACQUIRE) <= i)
			usleep(200);
		check(cuda.event_synchronize(backlog.events[i % EVENTS]), "cuEventSynchronize");
		progress->step[i].ended = (i + 1) * LAUNCHES_A_EVENT;
		progress->step[i].time_ns = now_ns();
		__atomic_store_n(&progress->steps, i + 1, __ATOMIC_RELEASE);
	}
	return argument;
}

static void launch_backlog(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t length = SPIN_NS;
	void *parameters[] = { &length }, *stream;
	pthread_t watcher;

	check(fd < 0 || ftruncate(fd, sizeof(struct progress)), "ftruncate");
	backlog.progress =
		mmap(NULL, sizeof(struct progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(backlog.progress == MAP_FAILED, "mmap");
	check(cuda.stream_create(&stream, 1), "cuStreamCreate");
	for (int i = 0; i < EVENTS; i++)
		check(cuda.event_create(&backlog.events[i], 2), "cuEventCreate");
	check(pthread_create(&watcher, NULL, watch_events, NULL), "pthread_create");
	for (uint64_t i = 0; i < (uint64_t)PROGRESS_STEPS * LAUNCHES_A_EVENT; i++) {
		check(cuda.launch(spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL),
		      "cuLaunchKernel");
		__atomic_store_n(&backlog.progress->launched, i + 1, __ATOMIC_RELEASE);
		if ((i + 1) % LAUNCHES_A_EVENT)
			continue;
		/*
		 * An event that is recorded again before it was waited for would report a later
		 * launch.
		 */
		while (backlog.recorded >=
		       __atomic_load_n(&backlog.progress->steps, __ATOMIC_ACQUIRE) + EVENTS)
			usleep(200);
		check(cuda.event_record(backlog.events[backlog.recorded % EVENTS], stream),
		      "cuEventRecord");
		__atomic_store_n(&backlog.recorded, backlog.recorded + 1, __ATOMIC_RELEASE);
	}
	pthread_join(watcher, NULL);
}

/* ---- commands ---- */

static long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	check(end == text || value < 1, text);
	return value;
}

static void serve(void)
{
	char line[64];

	launch_many(20000);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "window ", 7)) {
			check(line[7] == '1' ? cuda.profiler_start() : cuda.profiler_stop(),
			      "cuProfilerStart or Stop");
			/* It opens, with all that has to be stored first, at the next calls. */
			launch_many(2000);
			printf("0\n");
			fflush(stdout);
			continue;
		}
		if (!strncmp(line, "direct ", 7)) {
			*(void **)&cuda.launch = line[5] == '1'
							 ? own_function(driver, "cuLaunchKernel")
							 : dlsym(driver, "cuLaunchKernel");
			printf("0\n");
		} else {
			printf("%.9f\n", (double)launch_many(number(line)) / 1e9);
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "count") && argc == 3) {
		long count = number(argv[2]);

		start_device();
		printf("%.1f ns a launch\n", (double)launch_many(count) / (double)count);
	} else if (!strcmp(what, "threads") && argc == 4 && number(argv[2]) <= THREADS_AT_MOST) {
		start_device();
		launch_by_threads((unsigned int)number(argv[2]), number(argv[3]));
	} else if (!strcmp(what, "kinds") && argc == 3 && number(argv[2]) <= KINDS_AT_MOST) {
		start_device();
		launch_kinds(number(argv[2]));
	} else if (!strcmp(what, "backlog") && argc == 3) {
		start_device();
		launch_backlog(argv[2]);
	} else if (!strcmp(what, "serve")) {
		start_device();
		serve();
	} else {
		fprintf(stderr, "usage: launches count N|threads T N|kinds N|backlog FILE|serve\n");
		return 2;
	}
	return 0;
}
