/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact times of kernels, copies and fills, from CUPTI, as recordings have them: events around a
 * command measure some microseconds more. Used if CUPTI is installed, nobody else uses it in this
 * process, and commands run concurrently; else times are those of events.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ns.h"
#include "base/text.h"
#include "code/cuda/local/cupti_abi.h"
#include "replay/targets/cuda/cuda_session.h"

#define BUFFER_BYTES ((size_t)1 << 20)
#define OLDEST_VERSION 17 /* CUDA 11.6: records have all fields that we read */
/* Drivers other than NVIDIA's (stand-ins for tests) do not work with CUPTI. */
#define NVIDIA_DRIVER "/proc/driver/nvidia/version"

extern char **environ;

enum what { KERNEL, COPY, FILL, OTHER };

struct record {
	enum what what;
	uint32_t correlation, graph;
	uint64_t start, end, node;
	uint64_t bytes;   /* of a copy or fill */
	const char *name; /* of a kernel */
};

/* Where records of a kind have their fields. */
static const struct layout {
	uint32_t kind;
	enum what what;
	size_t correlation, node, graph;
} layouts[] = {
	{ CUPTI_KIND_CONCURRENT_KERNEL, KERNEL, CUPTI_KERNEL_CORRELATION, CUPTI_KERNEL_NODE,
	  CUPTI_KERNEL_GRAPH },
	{ CUPTI_KIND_MEMCPY, COPY, CUPTI_COPY_CORRELATION, CUPTI_COPY_NODE, CUPTI_COPY_GRAPH },
	{ CUPTI_KIND_MEMCPY2, COPY, CUPTI_PEER_CORRELATION, CUPTI_PEER_NODE, CUPTI_PEER_GRAPH },
	{ CUPTI_KIND_MEMSET, FILL, CUPTI_FILL_CORRELATION, CUPTI_FILL_NODE, CUPTI_FILL_GRAPH },
};
/* A copy or fill is looked for among so many: some of ours lie between those of the program. */
#define MOST_SKIPPED 64

/* CUPTI is one for the process, and its callbacks have no context. */
static struct {
	struct cupti_functions cupti;
	pthread_mutex_t lock;
	struct record *records;
	size_t count, capacity;
	bool is_on, has_failed;
} activity = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- CUPTI ---- */

static const char *const libraries[] = {
	"libcupti.so.13",
	"/usr/local/cuda/lib64/libcupti.so.13",
	"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
	"libcupti.so.12",
	"/usr/local/cuda/lib64/libcupti.so.12",
	"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
};

/* A CUPTI newer than the driver does not work with it. */
static bool fits(const char *library, int driver)
{
	size_t length = strlen(library);

	return strtol(library + length - 2, NULL, 10) <= driver / 1000;
}

/* Another profiler, or an agent that records this replay: CUPTI serves one. */
static bool is_taken(void)
{
	for (char **at = environ; *at; at++)
		if (ts_starts_with(*at, "NSYS_") || ts_starts_with(*at, "NV_NSIGHT_") ||
		    ts_starts_with(*at, "CUDA_INJECTION64_PATH="))
			return true;
	for (size_t i = 0; i < TS_ARRAY_SIZE(libraries); i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);

		if (library) {
			dlclose(library);
			return true;
		}
	}
	return false;
}

static bool find_functions(void *library)
{
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
#define CUPTI_FUNCTION(name, parameters) { "cupti" #name, offsetof(struct cupti_functions, name) },
		CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION
	};
	const struct cupti_functions *cupti = &activity.cupti;

	for (size_t i = 0; i < TS_ARRAY_SIZE(functions); i++) {
		void *symbol = dlsym(library, functions[i].name);

		memcpy((char *)&activity.cupti + functions[i].offset, &symbol, sizeof(symbol));
	}
	return cupti->GetVersion && cupti->GetTimestamp && cupti->ActivityRegisterCallbacks &&
	       cupti->ActivityEnable && cupti->ActivityDisable && cupti->ActivityFlushAll &&
	       cupti->ActivityGetNextRecord;
}

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
	void *memory = NULL;

	*most = 0;
	*bytes = posix_memalign(&memory, 8, BUFFER_BYTES) ? 0 : BUFFER_BYTES;
	*buffer = *bytes ? memory : NULL;
}

static uint64_t number_at(const uint8_t *record, size_t at, size_t bytes)
{
	uint64_t number = 0;

	memcpy(&number, record + at, bytes);
	return number;
}

static const struct layout *layout_of(const uint8_t *record)
{
	uint32_t kind = (uint32_t)number_at(record, CUPTI_AT_KIND, 4);

	for (size_t i = 0; i < TS_ARRAY_SIZE(layouts); i++)
		if (layouts[i].kind == kind)
			return &layouts[i];
	return NULL;
}

static void keep_record(const uint8_t *from)
{
	const struct layout *layout = layout_of(from);
	struct record *record;

	if (!layout)
		return;
	if (ts_grow_array((void **)&activity.records, &activity.capacity, activity.count + 1,
			  sizeof(*activity.records))) {
		activity.has_failed = true;
		return;
	}
	record = &activity.records[activity.count++];
	*record = (struct record){
		.what = layout->what,
		.correlation = (uint32_t)number_at(from, layout->correlation, 4),
		.graph = (uint32_t)number_at(from, layout->graph, 4),
		.start = number_at(from, CUPTI_AT_START, 8),
		.end = number_at(from, CUPTI_AT_END, 8),
		.node = number_at(from, layout->node, 8),
	};
	/* The driver's, as long as the module is loaded. */
	if (layout->what == KERNEL)
		record->name = (const char *)(uintptr_t)number_at(from, CUPTI_KERNEL_NAME, 8);
	else
		record->bytes = number_at(from, CUPTI_MEMORY_BYTES, 8);
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	void *record = NULL;

	pthread_mutex_lock(&activity.lock);
	while (valid && !activity.cupti.ActivityGetNextRecord(buffer, valid, &record))
		keep_record(record);
	pthread_mutex_unlock(&activity.lock);
	free(buffer);
}

void ts_cuda_activity_open(struct ts_replay_session *session)
{
	uint32_t version = 0;
	void *library = NULL;
	int driver = 0;

	/* Only a process of its own may have CUPTI. */
	if (activity.is_on || !session->replay->options.monitor || ts_cuda_is_serial(session) ||
	    access(NVIDIA_DRIVER, F_OK) != 0 || is_taken() || session->cu.DriverGetVersion(&driver))
		return;
	for (size_t i = 0; i < TS_ARRAY_SIZE(libraries) && !library; i++)
		if (fits(libraries[i], driver))
			library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library || !find_functions(library) || activity.cupti.GetVersion(&version) ||
	    version < OLDEST_VERSION ||
	    activity.cupti.ActivityRegisterCallbacks(give_buffer, take_buffer))
		return;
	for (size_t i = 0; i < TS_ARRAY_SIZE(layouts); i++) {
		int code = activity.cupti.ActivityEnable(layouts[i].kind);

		activity.is_on |= layouts[i].what == KERNEL && !code;
	}
	session->has_activity = activity.is_on;
}

void ts_cuda_activity_close(struct ts_replay_session *session)
{
	if (!session->has_activity)
		return;
	for (size_t i = 0; i < TS_ARRAY_SIZE(layouts); i++)
		activity.cupti.ActivityDisable(layouts[i].kind);
	activity.cupti.ActivityFlushAll(0);
	pthread_mutex_lock(&activity.lock);
	free(TS_STEAL(activity.records));
	activity.count = activity.capacity = 0;
	pthread_mutex_unlock(&activity.lock);
	session->has_activity = activity.is_on = false;
}

/* ---- records ---- */

/* CUPTI's clock to the host's: from the shortest of some looks. */
static int64_t clock_offset(void)
{
	int64_t best = INT64_MAX, offset = 0;

	for (int i = 0; i < 5; i++) {
		int64_t before = ts_clock_monotonic_ns(), after;
		uint64_t now = 0;

		if (activity.cupti.GetTimestamp(&now))
			continue;
		after = ts_clock_monotonic_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		offset = ts_ns_sub(before + best / 2, (int64_t)now);
	}
	return offset;
}

void ts_cuda_activity_begin(struct ts_replay_session *session)
{
	if (!session->has_activity)
		return;
	activity.cupti.ActivityFlushAll(0);
	pthread_mutex_lock(&activity.lock);
	activity.count = 0;
	activity.has_failed = false;
	pthread_mutex_unlock(&activity.lock);
}

static int compare_records(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->what != y->what)
		return TS_COMPARE(x->what, y->what);
	if (x->correlation != y->correlation)
		return TS_COMPARE(x->correlation, y->correlation);
	return TS_COMPARE(x->node, y->node);
}

/* Is it the kernel of a step? Our own kernels have names of their own. */
static bool is_of(const struct ts_replay_session *session, const struct record *record,
		  uint32_t position)
{
	const char *name = ts_cuda_info(session, session->steps[position].command->object)->name;

	return record->what == KERNEL && record->name && !strcmp(record->name, name);
}

/* Copies and fills of graphs have no step of their own in the order of correlations. */
static bool is_own(const struct record *record)
{
	if (record->what != KERNEL)
		return record->graph != 0;
	return !record->name || !strcmp(record->name, TS_HASH_PAGES) ||
	       !strcmp(record->name, TS_MOVE_WORDS);
}

static size_t drop_own(struct record *records, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!is_own(&records[i]))
			records[kept++] = records[i];
	return kept;
}

static void set_times(struct ts_replay_session *session, uint32_t position,
		      const struct record *record, int64_t offset)
{
	struct ts_replay_times *times = &session->outcome->times[position];

	/* 0: it was not measured. */
	if (!record->start || record->end < record->start)
		return;
	times->start = ts_ns_add((int64_t)record->start, offset);
	times->end = ts_ns_add((int64_t)record->end, offset);
}

/* The nodes of a launch have its correlation, and their own numbers in the order of creation. */
static size_t take_graph(struct ts_replay_session *session, uint32_t first,
			 const struct record *records, size_t count, int64_t offset)
{
	const struct ts_cuda_step *steps = session->steps;
	size_t taken = 0, of_launch = 0;
	bool fit = true;

	while (of_launch < count && records[of_launch].correlation == records[0].correlation)
		of_launch++;
	for (uint32_t i = first; i < steps[first].graph_end; i++)
		if (steps[i].launch)
			fit = fit && taken < of_launch && is_of(session, &records[taken++], i);
	taken = 0;
	for (uint32_t i = first; i < steps[first].graph_end && fit; i++)
		if (steps[i].launch)
			set_times(session, i, &records[taken++], offset);
	return of_launch;
}

/* Kernels in the order in which they were submitted, which is that of their correlations. */
static void take_kernels(struct ts_replay_session *session, const struct record *records,
			 size_t count, int64_t offset)
{
	size_t next = 0;

	for (uint32_t i = 0; i < session->plan->count && next < count; i++) {
		const struct ts_cuda_step *step = &session->steps[i];

		if (step->is_in_graph) {
			next += take_graph(session, i, records + next, count - next, offset);
			i = step->graph_end - 1;
		} else if (step->launch && !step->is_skipped) {
			if (!is_of(session, &records[next], i))
				return;
			set_times(session, i, &records[next++], offset);
		}
	}
}

static bool is_copy_or_fill(const struct ts_cuda_step *step, enum what what)
{
	return !step->is_skipped && !step->is_in_graph &&
	       step->command->kind == (what == COPY ? TS_COMMAND_COPY : TS_COMMAND_FILL);
}

/* The same for copies or fills, which are known by their bytes. */
static void take_memory(struct ts_replay_session *session, const struct record *records,
			size_t count, enum what what, int64_t offset)
{
	size_t next = 0;

	for (uint32_t i = 0; i < session->plan->count && next < count; i++) {
		uint64_t bytes = session->steps[i].command->bytes;
		size_t at = next;

		if (!is_copy_or_fill(&session->steps[i], what))
			continue;
		while (at < count && at - next < MOST_SKIPPED && records[at].bytes != bytes)
			at++;
		if (at == count || records[at].bytes != bytes)
			continue;
		set_times(session, i, &records[at], offset);
		next = at + 1;
	}
}

static void take_all(struct ts_replay_session *session, const struct record *records, size_t count,
		     int64_t offset)
{
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && records[end].what == records[i].what;)
			end++;
		if (records[i].what == KERNEL)
			take_kernels(session, records + i, end - i, offset);
		else
			take_memory(session, records + i, end - i, records[i].what, offset);
	}
}

void ts_cuda_activity_times(struct ts_replay_session *session)
{
	if (!session->has_activity || session->is_serial)
		return;
	activity.cupti.ActivityFlushAll(0);
	pthread_mutex_lock(&activity.lock);
	ts_sort(activity.records, activity.count, sizeof(*activity.records), compare_records);
	activity.count = drop_own(activity.records, activity.count);
	if (activity.count && !activity.has_failed)
		take_all(session, activity.records, activity.count, clock_offset());
	pthread_mutex_unlock(&activity.lock);
}

bool ts_cuda_activity_last(struct ts_replay_session *session, uint32_t position, int64_t *ret_ns)
{
	bool is_found = false;
	uint64_t latest = 0;

	if (!session->has_activity)
		return false;
	activity.cupti.ActivityFlushAll(0);
	pthread_mutex_lock(&activity.lock);
	for (size_t i = 0; i < activity.count; i++) {
		const struct record *record = &activity.records[i];

		if (!record->start || record->start < latest || record->end < record->start ||
		    !is_of(session, record, position))
			continue;
		latest = record->start;
		*ret_ns = (int64_t)(record->end - record->start);
		is_found = true;
	}
	pthread_mutex_unlock(&activity.lock);
	return is_found;
}

size_t ts_cuda_activity_mark(struct ts_replay_session *session)
{
	size_t mark;

	if (!session->has_activity)
		return 0;
	activity.cupti.ActivityFlushAll(0);
	pthread_mutex_lock(&activity.lock);
	mark = activity.count;
	pthread_mutex_unlock(&activity.lock);
	return mark;
}

void ts_cuda_activity_forget(struct ts_replay_session *session, size_t mark)
{
	if (!session->has_activity)
		return;
	activity.cupti.ActivityFlushAll(0);
	pthread_mutex_lock(&activity.lock);
	activity.count = TS_MIN(activity.count, mark);
	pthread_mutex_unlock(&activity.lock);
}
