/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises accelerator device files and finds who has them open. To add a vendor, add a line to
 * its table. Control nodes that every monitor opens (nvidiactl, davinci_manager, hl_controlD) are
 * left out on purpose.
 */
#include "sample/metrics/device_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/procfs.h"
#include "base/text.h"

/* ---- vendors ---- */

#define NUMBERED 1u    /* only digits follow */
#define BELOW 2u       /* anything below that directory */
#define RENDER 4u      /* graphics programs have it too */
#define BY_PCI 8u      /* the vendor is that of the PCI device */
#define NOT_ITS 16u    /* its digits are not a device number */
#define GROUP 32u      /* a VFIO group of PCI devices, which may be anything */
#define NVIDIA_GPU 64u /* its digits are NVIDIA's minor number */

struct kind {
	const char *vendor;
	const char *path;         /* after "/dev/" */
	const char *driver;       /* in /proc/devices, or NULL */
	unsigned int first, last; /* range of the driver's minor numbers */
	unsigned int flags;
};

static const struct kind kinds[] = {
	{ "NVIDIA", "nvidia", "nvidia", 0, 253, NUMBERED | NOT_ITS | NVIDIA_GPU },
	{ "NVIDIA", "nvidia", "nvidia-frontend", 0, 253, NUMBERED | NOT_ITS | NVIDIA_GPU },
	{ "NVIDIA", "nvidia-uvm", "nvidia-uvm", 0, 0, 0 }, /* CUDA, but not NVML */
	{ "NVIDIA", "nvgpu/igpu0/", NULL, 0, 0, BELOW },
	{ "Ascend", "davinci", NULL, 0, 0, NUMBERED },
	{ "Ascend", "devmm_svm", NULL, 0, 0, 0 },
	{ "AMD", "kfd", "kfd", 0, 0, 0 },
	{ "Hygon", "mkfd", "mkfd", 0, 0, 0 },
	{ "DRM", "dri/renderD", "drm", 128, 255, NUMBERED | NOT_ITS | RENDER | BY_PCI },
	{ "accel", "accel/accel", "accel", 0, 255, NUMBERED | BY_PCI },
	{ "Google", "accel", NULL, 0, 0, NUMBERED },
	{ "Google", "apex_", "apex", 0, 255, NUMBERED },
	{ "Intel", "hl", NULL, 0, 0, NUMBERED },
	{ "AWS", "neuron", "neuron", 0, 255, NUMBERED },
	{ "Cambricon", "cambricon_dev", NULL, 0, 0, NUMBERED },
	{ "Cambricon", "cambricon_ipcm", NULL, 0, 0, NUMBERED },
	{ "Moore Threads", "mtgpu.", NULL, 0, 0, NUMBERED },
	{ "Moore Threads", "mtgpu", NULL, 0, 0, NUMBERED },
	{ "Iluvatar", "iluvatar", NULL, 0, 0, NUMBERED },
	{ "MetaX", "mxcd", NULL, 0, 0, 0 },
	{ "Kunlunxin", "xpu", NULL, 0, 0, NUMBERED },
	{ "Enflame", "gcu", NULL, 0, 0, NUMBERED },
	{ "Tenstorrent", "tenstorrent/", "tenstorrent", 0, 255, NUMBERED },
	{ "Graphcore", "ipu", NULL, 0, 0, NUMBERED },
	{ "Hailo", "hailo", "hailo", 0, 255, NUMBERED },
	{ "Rockchip", "rknpu", NULL, 0, 0, 0 },
	{ "Microsoft", "dxg", NULL, 0, 0, 0 }, /* any GPU, in WSL */
	{ "VFIO", "vfio/", NULL, 0, 0, NUMBERED | NOT_ITS | GROUP },
};

/* Directories of /dev with such nodes. */
static const char *const folders[] = {
	"", "dri/", "accel/", "tenstorrent/", "vfio/", "nvgpu/igpu0/"
};

static const struct {
	unsigned int id;
	const char *vendor;
} pci_vendors[] = {
	{ 0x10de, "NVIDIA" },        { 0x1002, "AMD" },       { 0x1022, "AMD" },
	{ 0x8086, "Intel" },         { 0x1da3, "Intel" },     { 0x19e5, "Ascend" },
	{ 0x1ae0, "Google" },        { 0x17cb, "Qualcomm" },  { 0x1d94, "Hygon" },
	{ 0x1ed5, "Moore Threads" }, { 0xcabc, "Cambricon" }, { 0x1e3e, "Iluvatar" },
	{ 0x9999, "MetaX" },         { 0x1d22, "Kunlunxin" }, { 0x1e36, "Enflame" },
	{ 0x1e52, "Tenstorrent" },   { 0x1d0f, "AWS" },
};

/* ---- classification ---- */

static bool is_number(const char *text, int64_t *ret_number)
{
	return isdigit((unsigned char)text[0]) && !ts_parse_int64(text, strlen(text), ret_number);
}

/* `name`: after "/dev/". */
static bool has_kind(const struct kind *kind, const char *name, int64_t *ret_number)
{
	size_t length = strlen(kind->path);

	*ret_number = TS_METRICS_UNKNOWN;
	if (strncmp(name, kind->path, length) != 0)
		return false;
	if (kind->flags & NUMBERED)
		return is_number(name + length, ret_number);
	return kind->flags & BELOW ? name[length] != '\0' : name[length] == '\0';
}

static void set_vendor(struct ts_device_file *file, const char *vendor)
{
	snprintf(file->vendor, sizeof(file->vendor), "%s", vendor);
}

/* Of the PCI device with this sysfs directory. */
static bool set_vendor_of_pci(struct ts_device_file *file, const char *folder)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "%s/vendor", folder);
	if (ts_procfs_read_line(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(pci_vendors); i++)
		if (strtoul(text, NULL, 16) == pci_vendors[i].id) {
			set_vendor(file, pci_vendors[i].vendor);
			return true;
		}
	return false;
}

/* The PCI device of a node: /sys/dev/char/226:128/device -> ../../../0000:03:00.0. */
static void resolve_pci(struct ts_device_file *file, dev_t device)
{
	char path[80], target[256];
	const char *name;
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device", major(device), minor(device));
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return;
	target[length] = '\0';
	name = strrchr(target, '/');
	if (name && strchr(name, ':'))
		snprintf(file->bus, sizeof(file->bus), "%.19s", name + 1);
	set_vendor_of_pci(file, path);
}

/* PCI classes: displays and accelerators. */
static bool is_accelerator_class(const char *folder)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "%s/class", folder);
	return ts_procfs_read_line(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	       (strncmp(text, "0x03", 4) == 0 || strncmp(text, "0x12", 4) == 0);
}

/* A device passed through to a virtual machine. False: not an accelerator. */
static bool resolve_group(struct ts_device_file *file, int64_t group)
{
	char path[64], folder[96];
	const struct dirent *entry;
	bool found = false;
	DIR *devices;

	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/devices", (int)group);
	devices = opendir(path);
	while (devices && !found && (entry = readdir(devices))) {
		snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%.19s", entry->d_name);
		found = strchr(entry->d_name, ':') && is_accelerator_class(folder);
		if (found) {
			set_vendor_of_pci(file, folder);
			snprintf(file->bus, sizeof(file->bus), "%.19s", entry->d_name);
		}
	}
	if (devices)
		closedir(devices);
	return found;
}

/*
 * The GPU with this minor number, and its index by PCI address, which is how NVIDIA's tools count.
 */
static void resolve_nvidia(struct ts_device_file *file, int64_t wanted)
{
	DIR *gpus = opendir("/proc/driver/nvidia/gpus");
	const struct dirent *entry;

	while (gpus && !file->bus[0] && (entry = readdir(gpus))) {
		char path[96], text[1024];
		const char *line;

		snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%.19s/information",
			 entry->d_name);
		if (ts_procfs_read_line(AT_FDCWD, path, text, sizeof(text)) <= 0)
			continue;
		line = strstr(text, "Device Minor:");
		if (line && strtol(line + strlen("Device Minor:"), NULL, 10) == wanted)
			snprintf(file->bus, sizeof(file->bus), "%.19s", entry->d_name);
	}
	if (gpus)
		closedir(gpus);
}

/* False: not an accelerator after all. */
static bool describe(const struct kind *kind, const char *name, int64_t number, dev_t device,
		     struct ts_device_file *ret_file)
{
	memset(ret_file, 0, sizeof(*ret_file));
	set_vendor(ret_file, kind->vendor);
	snprintf(ret_file->name, sizeof(ret_file->name), "%s", name);
	ret_file->number = (kind->flags & (NUMBERED | NOT_ITS)) == NUMBERED ? number
									    : TS_METRICS_UNKNOWN;
	ret_file->is_render = (kind->flags & RENDER) != 0;
	if (kind->flags & BY_PCI)
		resolve_pci(ret_file, device);
	if (kind->flags & NVIDIA_GPU)
		resolve_nvidia(ret_file, number);
	return !(kind->flags & GROUP) || resolve_group(ret_file, number);
}

/* ---- the table ---- */

int ts_device_table_add_node(struct ts_device_table *table, dev_t device,
			     const struct ts_device_file *file)
{
	if (ts_grow_array((void **)&table->nodes, &table->node_capacity, table->node_count + 1,
			  sizeof(*table->nodes)))
		return TS_ENOMEM;
	table->nodes[table->node_count++] = (struct ts_device_node){ device, *file };
	return TS_OK;
}

static int add_range(struct ts_device_table *table, unsigned int major_number, size_t kind)
{
	if (ts_grow_array((void **)&table->ranges, &table->range_capacity, table->range_count + 1,
			  sizeof(*table->ranges)))
		return TS_ENOMEM;
	table->ranges[table->range_count++] =
		(struct ts_device_range){ major_number, kinds[kind].first, kinds[kind].last, kind };
	return TS_OK;
}

int ts_device_table_add_drivers(struct ts_device_table *table, const char *devices)
{
	int rc = TS_OK;

	for (const char *line = devices; line && !rc; line = ts_procfs_next_line(line)) {
		uint64_t number;
		const char *name = ts_procfs_scan_number(line, &number);
		size_t length;

		if (strncmp(line, "Block", 5) == 0)
			break;
		if (!name || *name != ' ')
			continue;
		length = strcspn(++name, "\n");
		for (size_t i = 0; i < TS_ARRAY_SIZE(kinds) && !rc; i++)
			if (kinds[i].driver && strlen(kinds[i].driver) == length &&
			    memcmp(kinds[i].driver, name, length) == 0)
				rc = add_range(table, (unsigned int)number, i);
	}
	return rc;
}

static const struct kind *kind_of_path(const char *path, int64_t *ret_number)
{
	if (strncmp(path, "/dev/", 5) != 0)
		return NULL;
	for (size_t i = 0; i < TS_ARRAY_SIZE(kinds); i++)
		if (has_kind(&kinds[i], path + 5, ret_number))
			return &kinds[i];
	return NULL;
}

static int add_folder(struct ts_device_table *table, const char *folder)
{
	const struct dirent *entry;
	int rc = TS_OK;
	char path[64];
	DIR *nodes;

	snprintf(path, sizeof(path), "/dev/%s", folder);
	nodes = opendir(path);
	while (nodes && !rc && (entry = readdir(nodes))) {
		struct ts_device_file file;
		const struct kind *kind;
		struct stat status;
		char node[300];
		int64_t number;

		snprintf(node, sizeof(node), "/dev/%s%s", folder, entry->d_name);
		kind = kind_of_path(node, &number);
		if (kind && !stat(node, &status) && S_ISCHR(status.st_mode) &&
		    describe(kind, node + 5, number, status.st_rdev, &file))
			rc = ts_device_table_add_node(table, status.st_rdev, &file);
	}
	if (nodes)
		closedir(nodes);
	return rc;
}

/*
 * NVIDIA's tools count visible devices by PCI address; if all of the machine's GPUs are visible, so
 * can we.
 */
static void number_nvidia(struct ts_device_table *table)
{
	for (size_t i = 0; i < table->node_count; i++) {
		struct ts_device_file *file = &table->nodes[i].file;
		int64_t rank = 0;

		if (strcmp(file->vendor, "NVIDIA") != 0 || !file->bus[0] || file->is_render)
			continue;
		for (size_t k = 0; k < table->node_count; k++) {
			const struct ts_device_file *other = &table->nodes[k].file;

			rank += strcmp(other->vendor, "NVIDIA") == 0 && !other->is_render &&
				other->bus[0] && strcmp(other->bus, file->bus) < 0;
		}
		file->number = rank;
	}
}

int ts_device_table_init(struct ts_device_table *table, struct ts_error *err)
{
	char devices[8192];
	int rc = TS_OK;

	memset(table, 0, sizeof(*table));
	for (size_t i = 0; i < TS_ARRAY_SIZE(folders) && !rc; i++)
		rc = add_folder(table, folders[i]);
	if (!rc && ts_procfs_read_line(AT_FDCWD, "/proc/devices", devices, sizeof(devices)) > 0)
		rc = ts_device_table_add_drivers(table, devices);
	if (!rc) {
		number_nvidia(table);
		return TS_OK;
	}
	ts_device_table_release(table);
	return ts_error_set(err, rc, "no memory for a list of device files");
}

void ts_device_table_release(struct ts_device_table *table)
{
	free(table->nodes);
	free(table->ranges);
	memset(table, 0, sizeof(*table));
}

/* A node that our /dev does not have, by its driver. */
static bool find_by_driver(const struct ts_device_table *table, const char *name, dev_t device,
			   struct ts_device_file *ret_file)
{
	for (size_t i = 0; i < table->range_count; i++) {
		const struct ts_device_range *range = &table->ranges[i];
		int64_t number = (int64_t)minor(device) - range->first;

		if (range->major == major(device) && number >= 0 && minor(device) <= range->last)
			return describe(&kinds[range->kind], name, number, device, ret_file);
	}
	return false;
}

bool ts_device_table_find(const struct ts_device_table *table, const char *path, dev_t device,
			  struct ts_device_file *ret_file)
{
	const char *name = strncmp(path, "/dev/", 5) == 0 ? path + 5 : path;
	const struct kind *kind;
	int64_t number;

	for (size_t i = 0; i < table->node_count; i++)
		if (table->nodes[i].device == device) {
			*ret_file = table->nodes[i].file;
			return true;
		}
	if (find_by_driver(table, name, device, ret_file))
		return true;
	kind = kind_of_path(path, &number);
	return kind && describe(kind, name, number, device, ret_file);
}

bool ts_device_table_has(const struct ts_device_table *table, const char *vendor)
{
	for (size_t i = 0; i < table->node_count; i++)
		if (strcmp(table->nodes[i].file.vendor, vendor) == 0)
			return true;
	for (size_t i = 0; i < table->range_count; i++)
		if (strcmp(kinds[table->ranges[i].kind].vendor, vendor) == 0)
			return true;
	return false;
}

/* ---- open and mapped files ---- */

struct look {
	const struct ts_device_table *table;
	pid_t pid;
	void (*found)(void *context, const struct ts_device_file *file);
	void *context;
	unsigned int count;
};

/* In /dev, but not one that every program opens. */
static bool may_be_device(const char *path)
{
	static const char *const common[] = { "null", "pts/",   "shm/", "tty",    "urandom",
					      "zero", "random", "ptmx", "console" };

	if (strncmp(path, "/dev/", 5) != 0)
		return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(common); i++)
		if (strncmp(path + 5, common[i], strlen(common[i])) == 0)
			return false;
	return true;
}

static void report(struct look *look, const char *path, const struct stat *status)
{
	struct ts_device_file file;

	if (!S_ISCHR(status->st_mode) ||
	    !ts_device_table_find(look->table, path, status->st_rdev, &file))
		return;
	look->count++;
	look->found(look->context, &file);
}

static int look_at_descriptors(struct look *look)
{
	char path[64], target[256];
	const struct dirent *entry;
	DIR *descriptors;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)look->pid);
	descriptors = opendir(path);
	if (!descriptors)
		return -errno;
	while ((entry = readdir(descriptors))) {
		struct stat status;
		ssize_t length =
			readlinkat(dirfd(descriptors), entry->d_name, target, sizeof(target) - 1);

		if (length <= 0)
			continue;
		target[length] = '\0';
		if (may_be_device(target) &&
		    !fstatat(dirfd(descriptors), entry->d_name, &status, 0))
			report(look, target, &status);
	}
	closedir(descriptors);
	return 0;
}

/* "7f00-7f10 rw-s 00000000 00:05 123    /dev/nvidia-uvm": the path as the process sees it. */
static void look_at_mapping(struct look *look, const char *line)
{
	const char *path = strchr(line, '/');
	struct stat status;
	char rooted_path[320];

	if (!path || !may_be_device(path))
		return;
	snprintf(rooted_path, sizeof(rooted_path), "/proc/%d/root%s", (int)look->pid, path);
	if (!stat(rooted_path, &status))
		report(look, path, &status);
}

/* The complete lines of a text, each NUL-terminated; returns their length. */
static size_t look_at_mappings_in(struct look *look, char *text, size_t bytes)
{
	size_t from = 0;

	for (;;) {
		char *newline = memchr(text + from, '\n', bytes - from);

		if (!newline)
			return from;
		*newline = '\0';
		look_at_mapping(look, text + from);
		from = (size_t)(newline + 1 - text);
	}
}

static void look_at_mappings(struct look *look, const char *maps_path)
{
	TS_AUTO_FD int fd = open(maps_path, O_RDONLY | O_CLOEXEC);
	char buffer[32768];
	size_t held = 0;

	while (fd >= 0 && held < sizeof(buffer)) {
		ssize_t got = ts_read_some(fd, buffer + held, sizeof(buffer) - held);
		size_t done;

		if (got <= 0)
			return;
		held += (size_t)got;
		done = look_at_mappings_in(look, buffer, held);
		held -= done;
		memmove(buffer, buffer + done, held);
	}
}

unsigned int ts_mapped_device_files(const struct ts_device_table *table, pid_t pid,
				    const char *maps_path,
				    void (*found)(void *context, const struct ts_device_file *file),
				    void *context)
{
	struct look look = { .table = table, .pid = pid, .found = found, .context = context };

	look_at_mappings(&look, maps_path);
	return look.count;
}

int ts_process_device_files(const struct ts_device_table *table, pid_t pid,
			    void (*found)(void *context, const struct ts_device_file *file),
			    void *context)
{
	struct look look = { .table = table, .pid = pid, .found = found, .context = context };
	int rc = look_at_descriptors(&look);
	char path[64];

	/* Mappings survive the closing of the descriptor. */
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (!rc && !look.count && (table->node_count || table->range_count))
		look_at_mappings(&look, path);
	return rc;
}

struct wanted {
	const char *vendor;
	bool found;
};

static void note_vendor(void *context, const struct ts_device_file *file)
{
	struct wanted *wanted = context;

	wanted->found |= strcmp(file->vendor, wanted->vendor) == 0;
}

bool ts_process_has_device(const struct ts_device_table *table, pid_t pid, const char *vendor)
{
	struct wanted wanted = { .vendor = vendor };

	ts_process_device_files(table, pid, note_vendor, &wanted);
	return wanted.found;
}
