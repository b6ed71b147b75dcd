/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes use a GPU, how much memory they have there, and how busy they keep it. The
 * driver's lists have entries of several sizes under the same name, contain duplicates, and may use
 * pids of another namespace: inconsistent entries are dropped.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "sample/metrics/nvml/nvml.h"

/* Initial capacity; asking for the number first would cost the same again. */
#define FIRST_ENTRIES 128u
#define MAX_ENTRIES 65536u
#define MAX_FILES 65536u

/* ---- lists ---- */

unsigned int nvml_entry_bytes(const unsigned char *list, size_t list_bytes, unsigned int count)
{
	static const unsigned int lengths[] = { 16, 24, 32 };
	size_t end = list_bytes;

	while (end && list[end - 1] == NVML_FILL)
		end--;
	for (size_t i = 0; i < TS_ARRAY_SIZE(lengths); i++)
		if (count && end == (size_t)lengths[i] * count)
			return lengths[i];
	return 0;
}

static int add_entries(struct nvml *nvml, unsigned int count, unsigned int entry_bytes)
{
	if (ts_grow_array((void **)&nvml->entries, &nvml->entry_capacity, nvml->entry_count + count,
			  sizeof(*nvml->entries)))
		return NVML_UNKNOWN_ERROR;
	for (unsigned int i = 0; i < count; i++) {
		struct nvml_process process = { .gpu_instance = UINT32_MAX,
						.compute_instance = UINT32_MAX };

		memcpy(&process, nvml->list + (size_t)i * entry_bytes,
		       TS_MIN(entry_bytes, sizeof(process)));
		nvml->entries[nvml->entry_count++] = (struct nvml_entry){
			.pid = process.pid,
			.gpu_instance = process.gpu_instance,
			.compute_instance = process.compute_instance,
			.memory_bytes = process.memory_bytes,
		};
	}
	return NVML_OK;
}

/*
 * One call with capacity for `capacity` entries of any size; *ret_count is what it found or would
 * need.
 */
static int query_list(struct nvml *nvml, const struct nvml_gpu *gpu, enum nvml_process_kind kind,
		      unsigned int capacity, unsigned int *ret_count)
{
	size_t bytes = (size_t)capacity * NVML_PROCESS_BYTES_MOST;

	if (ts_grow_array((void **)&nvml->list, &nvml->list_capacity, bytes, 1))
		return NVML_UNKNOWN_ERROR;
	memset(nvml->list, NVML_FILL, bytes);
	*ret_count = capacity;
	return nvml->api.processes[kind](gpu->handle, ret_count, nvml->list);
}

static int list_processes(struct nvml *nvml, const struct nvml_gpu *gpu,
			  enum nvml_process_kind kind)
{
	unsigned int capacity = FIRST_ENTRIES, count = 0, entry_bytes;
	int code;

	if (!nvml->api.processes[kind])
		return NVML_FUNCTION_NOT_FOUND;
	code = query_list(nvml, gpu, kind, capacity, &count);
	if (code == NVML_INSUFFICIENT_SIZE && count < MAX_ENTRIES / 2) {
		/* More may start meanwhile. */
		capacity = count * 2 + 8;
		code = query_list(nvml, gpu, kind, capacity, &count);
	}
	if (code)
		return code;
	if (count > capacity)
		return NVML_UNKNOWN_ERROR;
	entry_bytes =
		nvml_entry_bytes(nvml->list, (size_t)capacity * NVML_PROCESS_BYTES_MOST, count);
	return add_entries(nvml, count, entry_bytes ? entry_bytes : nvml->api.process_bytes[kind]);
}

static void list_all(struct nvml *nvml, struct nvml_gpu *gpu)
{
	static const enum nvml_value values[NVML_PROCESS_KINDS] = {
		[NVML_COMPUTE] = NVML_VALUE_COMPUTE_PROCESSES,
		[NVML_GRAPHICS] = NVML_VALUE_GRAPHICS_PROCESSES,
		[NVML_MPS] = NVML_VALUE_MPS_PROCESSES,
	};

	nvml->entry_count = 0;
	for (unsigned int kind = 0; kind < NVML_PROCESS_KINDS; kind++)
		if (nvml_wants(nvml, gpu, values[kind]))
			nvml_got(nvml, gpu, values[kind], list_processes(nvml, gpu, kind));
}

/* ---- identity ---- */

bool nvml_is_user(const char *root, pid_t pid)
{
	static const char prefix[] = "/dev/nvidia";
	char path[512], target[sizeof(prefix)];
	unsigned int seen = 0;
	struct dirent *entry;
	bool found = false;
	DIR *files;

	snprintf(path, sizeof(path), "%s/proc/%d/fd", root, (int)pid);
	files = opendir(path);
	if (!files)
		return false;
	while (!found && seen++ < MAX_FILES && (entry = readdir(files)) != NULL) {
		ssize_t length =
			readlinkat(dirfd(files), entry->d_name, target, sizeof(target) - 1);

		found = length == sizeof(prefix) - 1 && memcmp(target, prefix, length) == 0;
	}
	closedir(files);
	return found;
}

static bool is_known_user(const struct nvml *nvml, pid_t pid, uint64_t start_time)
{
	for (size_t i = 0; i < nvml->user_count; i++)
		if (nvml->users[i].pid == pid && nvml->users[i].start_time == start_time)
			return true;
	return false;
}

static void remember_user(struct nvml *nvml, pid_t pid, uint64_t start_time)
{
	if (nvml->user_count >= MAX_ENTRIES)
		nvml->user_count = 0;
	if (ts_grow_array((void **)&nvml->users, &nvml->user_capacity, nvml->user_count + 1,
			  sizeof(*nvml->users)) == TS_OK)
		nvml->users[nvml->user_count++] = (struct nvml_user){ pid, start_time };
}

/*
 * Start time of the process that the driver means; false: not visible here. In our own pid
 * namespace the pid may be an outer one that belongs to somebody else here: the process must have
 * the driver open.
 */
static bool find_process(struct nvml *nvml, uint32_t pid, uint64_t *ret_start_time)
{
	if (pid > INT32_MAX || !ts_process_exists((pid_t)pid, ret_start_time))
		return false;
	if (!nvml->options.is_inner || is_known_user(nvml, (pid_t)pid, *ret_start_time))
		return true;
	if (!nvml_is_user(nvml->root, (pid_t)pid))
		return false;
	remember_user(nvml, (pid_t)pid, *ret_start_time);
	return true;
}

/* ---- utilization ---- */

static int by_pid_then_time(const void *a, const void *b)
{
	const struct nvml_process_use *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->timestamp_us > y->timestamp_us) - (x->timestamp_us < y->timestamp_us);
}

static int query_uses(struct nvml *nvml, const struct nvml_gpu *gpu, unsigned int *count)
{
	if (ts_grow_array((void **)&nvml->uses, &nvml->use_capacity, *count, sizeof(*nvml->uses)))
		return NVML_UNKNOWN_ERROR;
	return NVML_CALL(&nvml->api, process_use, gpu->handle, nvml->uses, count, gpu->last_use_us);
}

/*
 * Samples since the last time; implausible ones are dropped. The first time only sets the starting
 * point: it would be an average over all that the driver remembers.
 */
static void list_uses(struct nvml *nvml, struct nvml_gpu *gpu)
{
	uint64_t last_us = gpu->last_use_us;
	unsigned int capacity = FIRST_ENTRIES, count = capacity;
	int code;

	nvml->use_count = 0;
	/* Its pids are always those of the initial namespace. */
	if (nvml->options.is_inner || !nvml_wants(nvml, gpu, NVML_VALUE_PROCESS_USE))
		return;
	code = query_uses(nvml, gpu, &count);
	if (code == NVML_INSUFFICIENT_SIZE && count > capacity && count < MAX_ENTRIES) {
		capacity = count;
		code = query_uses(nvml, gpu, &count);
	}
	if (!nvml_got(nvml, gpu, NVML_VALUE_PROCESS_USE, code) || count > capacity)
		return;
	for (unsigned int i = 0; i < count; i++) {
		const struct nvml_process_use use = nvml->uses[i];

		if (use.timestamp_us <= last_us || use.compute > 100 || use.memory > 100)
			continue;
		gpu->last_use_us = TS_MAX(gpu->last_use_us, use.timestamp_us);
		if (last_us)
			nvml->uses[nvml->use_count++] = use;
	}
	if (nvml->use_count)
		qsort(nvml->uses, nvml->use_count, sizeof(*nvml->uses), by_pid_then_time);
}

/* The newest sample of a process; NULL: none. */
static const struct nvml_process_use *find_use(const struct nvml *nvml, uint32_t pid)
{
	const struct nvml_process_use *found = NULL;

	for (size_t i = 0; i < nvml->use_count && nvml->uses[i].pid <= pid; i++)
		if (nvml->uses[i].pid == pid)
			found = &nvml->uses[i];
	return found;
}

/*
 * Idle processes, and those without news from the driver, are not in the list: both are left out.
 */
static void give_use(const struct nvml *nvml, const struct ts_metrics_subject *subject)
{
	const struct nvml_process_use *use = find_use(nvml, (uint32_t)subject->pid);
	const struct ts_metrics_sink *sink = nvml->sink;

	if (!use)
		return;
	sink->integer(sink->context, subject, "utilization_percent", "compute", use->compute);
	sink->integer(sink->context, subject, "utilization_percent", "memory", use->memory);
}

/* ---- the rows ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct nvml_entry *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->gpu_instance != y->gpu_instance)
		return x->gpu_instance < y->gpu_instance ? -1 : 1;
	if (x->compute_instance != y->compute_instance)
		return x->compute_instance < y->compute_instance ? -1 : 1;
	return (x->memory_bytes > y->memory_bytes) - (x->memory_bytes < y->memory_bytes);
}

static bool is_same_entry(const struct nvml_entry *a, const struct nvml_entry *b)
{
	return a->pid == b->pid && a->gpu_instance == b->gpu_instance &&
	       a->compute_instance == b->compute_instance;
}

/*
 * Memory of the process whose entries start at `from`, *ret_end after them. A process that computes
 * and draws is listed twice with the same memory; one on several MIG instances has some on each.
 * False if one is unknown.
 */
static bool sum_memory(const struct nvml *nvml, size_t from, size_t *ret_end, uint64_t *ret_bytes)
{
	const struct nvml_entry *entries = nvml->entries;
	size_t i = from, count = nvml->entry_count;
	bool is_known = true;

	*ret_bytes = 0;
	while (i < count && entries[i].pid == entries[from].pid) {
		const struct nvml_entry *first = &entries[i];
		uint64_t bytes = NVML_NOT_AVAILABLE;

		/* Ascending, unknown last. */
		for (; i < count && is_same_entry(&entries[i], first); i++)
			if (entries[i].memory_bytes <= INT64_MAX / 2)
				bytes = entries[i].memory_bytes;
		if (bytes == NVML_NOT_AVAILABLE)
			is_known = false;
		else
			*ret_bytes += bytes;
	}
	*ret_end = i;
	return is_known;
}

/* At most what the device has. Drivers that report inner pids have no memory for them. */
static bool is_sound(const struct nvml *nvml, const struct nvml_gpu *gpu, uint64_t bytes)
{
	if (bytes > INT64_MAX || (nvml->options.is_inner && bytes == 0))
		return false;
	return gpu->memory_bytes == TS_METRICS_UNKNOWN || bytes <= (uint64_t)gpu->memory_bytes;
}

void nvml_read_processes(struct nvml *nvml, struct nvml_gpu *gpu)
{
	size_t next;

	list_all(nvml, gpu);
	if (!nvml->entry_count)
		return;
	list_uses(nvml, gpu);
	qsort(nvml->entries, nvml->entry_count, sizeof(*nvml->entries), compare_entries);
	for (size_t i = 0; i < nvml->entry_count; i = next) {
		struct ts_metrics_subject subject = {
			.kind = TS_METRICS_PROCESS_ON_DEVICE,
			.device = gpu->index,
			.pid = (int32_t)nvml->entries[i].pid,
		};
		uint64_t bytes;
		bool is_known = sum_memory(nvml, i, &next, &bytes);

		if (!find_process(nvml, nvml->entries[i].pid, &subject.start_time))
			continue;
		if (is_known && is_sound(nvml, gpu, bytes))
			nvml->sink->integer(nvml->sink->context, &subject, "memory_bytes", "used",
					    (int64_t)bytes);
		give_use(nvml, &subject);
	}
}
