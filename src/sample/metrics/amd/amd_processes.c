/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of processes on AMD GPUs, from the compute driver (KFD). Graphics allocations are not
 * included.
 */
#include "sample/metrics/amd/amd.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

/* ---- ids of devices ---- */

/* "0000:03:00.0"; the upper bits of the location identify a partition. */
static void write_bus(char *buffer, size_t bytes, uint64_t domain, uint64_t location)
{
	snprintf(buffer, bytes, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIx64,
		 domain & 0xffffffff, location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
}

static void add_part(struct amd *amd, const char *bus, uint64_t id)
{
	for (size_t i = 0; i < amd->count; i++) {
		struct amd_gpu *gpu = &amd->gpus[i];

		if (strcmp(gpu->bus, bus) == 0 && gpu->node_id_count < AMD_NODES_MOST)
			gpu->node_ids[gpu->node_id_count++] = id;
	}
}

static void read_node(struct amd *amd, int nodes, const char *name)
{
	static const char *const keys[] = { "domain", "location_id" };
	struct ts_procfs_file file = { .fd = -1 };
	uint64_t numbers[TS_ARRAY_SIZE(keys)];
	char path[300], bus[32];
	int64_t id;

	snprintf(path, sizeof(path), "%s/gpu_id", name);
	/* CPUs are nodes too, without such an id. */
	if (!ts_procfs_read_number(nodes, path, &id) || id <= 0)
		return;
	snprintf(path, sizeof(path), "%s/properties", name);
	file.path = path;
	if (ts_procfs_file_read(&file, nodes, &amd->text) == 0) {
		ts_procfs_scan_keys(amd->text.data, keys, numbers, TS_ARRAY_SIZE(keys));
		if (numbers[1] != TS_NO_VALUE) {
			write_bus(bus, sizeof(bus), numbers[0] == TS_NO_VALUE ? 0 : numbers[0],
				  numbers[1]);
			add_part(amd, bus, (uint64_t)id);
		}
	}
	ts_procfs_file_close(&file);
}

void amd_find_nodes(struct amd *amd)
{
	char path[sizeof(amd->root) + 48];
	struct dirent *entry;
	DIR *nodes;

	snprintf(path, sizeof(path), "%s/class/kfd/kfd/topology/nodes", amd->root);
	nodes = opendir(path);
	if (!nodes)
		return;
	while ((entry = readdir(nodes)) != NULL)
		if (entry->d_name[0] != '.')
			read_node(amd, dirfd(nodes), entry->d_name);
	closedir(nodes);
}

/* ---- processes ---- */

/* Total of all partitions; false if one is unreadable. */
static bool sum_memory(const struct amd_gpu *gpu, int processes, const char *pid,
		       int64_t *ret_bytes)
{
	*ret_bytes = 0;
	for (unsigned int i = 0; i < gpu->node_id_count; i++) {
		char path[300];
		int64_t bytes;

		snprintf(path, sizeof(path), "%s/vram_%" PRIu64, pid, gpu->node_ids[i]);
		if (!ts_procfs_read_number(processes, path, &bytes) || bytes < 0 ||
		    __builtin_add_overflow(*ret_bytes, bytes, ret_bytes))
			return false;
	}
	return true;
}

/* KFD lists every process for all devices: one without memory does not use this one. */
static void read_process(struct amd *amd, const struct amd_gpu *gpu, int processes,
			 const char *name)
{
	struct ts_metrics_subject subject = {
		.kind = TS_METRICS_PROCESS_ON_DEVICE,
		.device = gpu->number,
	};
	int64_t pid, bytes;

	if (ts_parse_int64(name, strlen(name), &pid) || pid <= 0 || pid > INT32_MAX ||
	    !sum_memory(gpu, processes, name, &bytes) || bytes == 0)
		return;
	if (gpu->memory_bytes != TS_METRICS_UNKNOWN && bytes > gpu->memory_bytes)
		return;
	subject.pid = (int32_t)pid;
	/* Entries outlive their processes for a while. */
	if (ts_process_exists((pid_t)pid, &subject.start_time))
		amd->sink->integer(amd->sink->context, &subject, "memory_bytes", "used", bytes);
}

void amd_read_processes(struct amd *amd, struct amd_gpu *gpu)
{
	char path[sizeof(amd->root) + 32];
	struct dirent *entry;
	DIR *processes;

	if (gpu->node_id_count == 0)
		return;
	if (amd->is_inner) {
		amd_message(
			amd,
			"processes on AMD GPUs are not shown in a container: the driver reports host pids (record from the host)");
		return;
	}
	snprintf(path, sizeof(path), "%s/class/kfd/kfd/proc", amd->root);
	processes = opendir(path);
	if (!processes)
		return;
	while ((entry = readdir(processes)) != NULL)
		if (entry->d_name[0] != '.')
			read_process(amd, gpu, dirfd(processes), entry->d_name);
	closedir(processes);
}
