/* SPDX-License-Identifier: Apache-2.0 */
/* Finds AMD GPUs in sysfs, and the files of each. */
#include "sample/metrics/amd/amd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SENSORS_MOST 9u

/* ---- their files ---- */

static void set_path(struct amd_gpu *gpu, enum amd_file_id file, const char *path)
{
	snprintf(gpu->files[file].path, sizeof(gpu->files[file].path), "%s", path);
}

static void set_sensor(struct amd_gpu *gpu, enum amd_file_id file, const char *hwmon,
		       const char *name)
{
	char path[sizeof(gpu->files[file].path)];

	snprintf(path, sizeof(path), "hwmon/%.24s/%.24s", hwmon, name);
	set_path(gpu, file, path);
}

/* Sensors are identified by label: their numbers differ between devices. */
static void find_labelled(struct amd_gpu *gpu, const char *hwmon)
{
	static const struct {
		const char *prefix, *label;
		enum amd_file_id file;
	} sensors[] = {
		{ "temp", "edge", AMD_FILE_EDGE },
		{ "temp", "junction", AMD_FILE_HOTSPOT },
		{ "temp", "mem", AMD_FILE_MEMORY_TEMPERATURE },
		{ "freq", "sclk", AMD_FILE_COMPUTE_CLOCK },
		{ "freq", "mclk", AMD_FILE_MEMORY_CLOCK },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(sensors); i++) {
		for (unsigned int k = 1; k <= SENSORS_MOST; k++) {
			char path[96], label[16];

			snprintf(path, sizeof(path), "hwmon/%.24s/%s%u_label", hwmon,
				 sensors[i].prefix, k);
			if (ts_procfs_read_line(gpu->directory, path, label, sizeof(label)) < 0 ||
			    strcmp(label, sensors[i].label) != 0)
				continue;
			snprintf(path, sizeof(path), "%s%u_input", sensors[i].prefix, k);
			set_sensor(gpu, sensors[i].file, hwmon, path);
			break;
		}
	}
}

static bool is_ours(const struct amd_gpu *gpu, const char *hwmon)
{
	char path[96], name[16];

	snprintf(path, sizeof(path), "hwmon/%.24s/name", hwmon);
	return ts_procfs_read_line(gpu->directory, path, name, sizeof(name)) > 0 &&
	       strcmp(name, "amdgpu") == 0;
}

static void find_sensors(struct amd_gpu *gpu)
{
	int fd = openat(gpu->directory, "hwmon", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(list)) != NULL) {
		if (strncmp(entry->d_name, "hwmon", 5) != 0 || !is_ours(gpu, entry->d_name))
			continue;
		set_sensor(gpu, AMD_FILE_POWER_MEAN, entry->d_name, "power1_average");
		set_sensor(gpu, AMD_FILE_POWER_NOW, entry->d_name, "power1_input");
		find_labelled(gpu, entry->d_name);
		break;
	}
	closedir(list);
}

int amd_file_read(struct amd *amd, struct amd_gpu *gpu, enum amd_file_id file)
{
	struct amd_file *at = &gpu->files[file];
	int error;

	if (!at->path[0])
		return -ENOENT;
	/* Set here: the device may have moved in its array. */
	at->kept.path = at->path;
	error = ts_procfs_file_read(&at->kept, gpu->directory, &amd->text);
	/* Other errors are transient: a device being reset returns EPERM or EBUSY. */
	if (error == -ENOENT || error == -EOPNOTSUPP || error == -EINVAL || error == -EACCES)
		at->path[0] = '\0';
	return error;
}

bool amd_file_number(struct amd *amd, struct amd_gpu *gpu, enum amd_file_id file,
		     int64_t *ret_number)
{
	size_t length;

	if (amd_file_read(amd, gpu, file))
		return false;
	length = amd->text.length;
	/* A truncated number looks like a smaller one. */
	if (length < 2 || amd->text.data[length - 1] != '\n')
		return false;
	return ts_parse_int64(amd->text.data, length - 1, ret_number) == TS_OK;
}

/* ---- the devices ---- */

void amd_gpu_release(struct amd_gpu *gpu)
{
	for (size_t i = 0; i < AMD_FILES; i++)
		ts_procfs_file_close(&gpu->files[i].kept);
	if (gpu->directory >= 0)
		close(gpu->directory);
	gpu->directory = -1;
}

/* The last component of a link target; false if missing or too long. */
static bool link_name(int directory, const char *path, char *buffer, size_t bytes)
{
	char target[512];
	ssize_t length = readlinkat(directory, path, target, sizeof(target) - 1);
	const char *name;

	if (length <= 0)
		return false;
	target[length] = '\0';
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	if (strlen(name) >= bytes)
		return false;
	memcpy(buffer, name, strlen(name) + 1);
	return true;
}

static void describe(struct amd_gpu *gpu)
{
	char text[sizeof(gpu->model)];

	if (ts_procfs_read_line(gpu->directory, "product_name", gpu->model, sizeof(gpu->model)) <=
	    0) {
		gpu->model[0] = '\0';
		if (ts_procfs_read_line(gpu->directory, "device", text, sizeof(text)) > 0)
			snprintf(gpu->model, sizeof(gpu->model), "AMD %.32s", text);
	}
	/* In ROCm's format. */
	if (ts_procfs_read_line(gpu->directory, "unique_id", text, sizeof(text)) > 0)
		snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%.40s", text);
	if (!ts_procfs_read_number(gpu->directory, "mem_info_vram_total", &gpu->memory_bytes) ||
	    gpu->memory_bytes <= 0)
		gpu->memory_bytes = TS_METRICS_UNKNOWN;
}

static void set_paths(struct amd_gpu *gpu)
{
	for (size_t i = 0; i < AMD_FILES; i++)
		gpu->files[i].kept.fd = -1;
	set_path(gpu, AMD_FILE_STATUS, "power/runtime_status");
	set_path(gpu, AMD_FILE_TABLE, "gpu_metrics");
	set_path(gpu, AMD_FILE_COMPUTE_USE, "gpu_busy_percent");
	set_path(gpu, AMD_FILE_MEMORY_USE, "mem_busy_percent");
	set_path(gpu, AMD_FILE_VRAM_USED, "mem_info_vram_used");
	set_path(gpu, AMD_FILE_GTT_USED, "mem_info_gtt_used");
	find_sensors(gpu);
}

/*
 * A card of the driver. Partitions of a device are cards too, but not PCI devices: they have no
 * vendor and no sensors.
 */
static bool open_card(struct amd_gpu *gpu, int cards, const char *card)
{
	char path[300], vendor[16], driver[32];

	memset(gpu, 0, sizeof(*gpu));
	gpu->directory = -1;
	snprintf(path, sizeof(path), "%s/device", card);
	if (!link_name(cards, path, gpu->bus, sizeof(gpu->bus)))
		return false;
	gpu->directory = openat(cards, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (gpu->directory < 0 ||
	    ts_procfs_read_line(gpu->directory, "vendor", vendor, sizeof(vendor)) < 0 ||
	    strcmp(vendor, "0x1002") != 0 ||
	    !link_name(gpu->directory, "driver", driver, sizeof(driver)) ||
	    strcmp(driver, "amdgpu") != 0) {
		amd_gpu_release(gpu);
		return false;
	}
	set_paths(gpu);
	describe(gpu);
	return true;
}

/* "card0", but not its connectors "card0-DP-1". */
static bool is_card(const char *name)
{
	return strncmp(name, "card", 4) == 0 && name[4] &&
	       strspn(name + 4, "0123456789") == strlen(name + 4);
}

static int by_bus(const void *a, const void *b)
{
	const struct amd_gpu *x = a, *y = b;

	return strcmp(x->bus, y->bus);
}

static int add_cards(struct amd *amd, DIR *cards)
{
	struct dirent *entry;

	while ((entry = readdir(cards)) != NULL) {
		struct amd_gpu gpu;

		if (!is_card(entry->d_name) || !open_card(&gpu, dirfd(cards), entry->d_name))
			continue;
		if (ts_grow_array((void **)&amd->gpus, &amd->capacity, amd->count + 1,
				  sizeof(*amd->gpus))) {
			amd_gpu_release(&gpu);
			return TS_ENOMEM;
		}
		amd->gpus[amd->count++] = gpu;
	}
	return TS_OK;
}

int amd_find_gpus(struct amd *amd)
{
	char path[sizeof(amd->root) + 16];
	int result;
	DIR *cards;

	snprintf(path, sizeof(path), "%s/class/drm", amd->root);
	cards = opendir(path);
	if (!cards)
		return TS_OK;
	result = add_cards(amd, cards);
	closedir(cards);
	/* The order of ROCm's tools. */
	if (amd->count)
		qsort(amd->gpus, amd->count, sizeof(*amd->gpus), by_bus);
	for (size_t i = 0; i < amd->count; i++)
		amd->gpus[i].number = (uint32_t)i;
	return result;
}
