/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device files of accelerators, and which processes have them open or mapped. A file is known by
 * its device number (that of a node in /dev here, or of a driver that /proc/devices names), so
 * that a container may call it what it likes; by its name where that does not help.
 */
#ifndef TS_SAMPLE_METRICS_DEVICE_FILES_H
#define TS_SAMPLE_METRICS_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

struct ts_device_file {
	char vendor[16]; /* "NVIDIA", "Ascend", "AMD", "Intel", ... */
	char name[32];   /* behind "/dev/": "nvidia0", "dri/renderD128" */
	char bus[20];    /* PCI address, lower case; "" */
	int64_t number;  /* at its maker's tools; TS_METRICS_UNKNOWN: of all, or not known */
	bool is_render;  /* programs that only draw have it open, too */
};

struct ts_device_node {
	dev_t device;
	struct ts_device_file file;
};

struct ts_device_range {
	unsigned int major, first, last; /* minor numbers */
	size_t kind;
};

struct ts_device_table {
	struct ts_device_node *nodes;
	size_t node_count, node_capacity;
	struct ts_device_range *ranges;
	size_t range_count, range_capacity;
};

/* All that is there, by /dev and /proc/devices. */
int ts_device_table_init(struct ts_device_table *table, struct ts_error *err);
void ts_device_table_release(struct ts_device_table *table);

/* Parts of the above. `devices`: what /proc/devices says. An empty table is a zeroed one. */
int ts_device_table_add_node(struct ts_device_table *table, dev_t device,
			     const struct ts_device_file *file);
int ts_device_table_add_drivers(struct ts_device_table *table, const char *devices);

/* False: it is no accelerator's. `path` is absolute. */
bool ts_device_table_find(const struct ts_device_table *table, const char *path, dev_t device,
			  struct ts_device_file *ret_file);

/* True where a node or a driver of this maker is there. */
bool ts_device_table_has(const struct ts_device_table *table, const char *vendor);

/*
 * Calls `found` for each accelerator's file that the process has open (again for each descriptor),
 * or, where there is none, mapped. 0, or a negative errno: -EACCES where it may not be looked at,
 * -ENOENT where it is gone.
 */
int ts_process_device_files(const struct ts_device_table *table, pid_t pid,
			    void (*found)(void *context, const struct ts_device_file *file),
			    void *context);

/* Its second half, with a text of mappings: how many there are. */
unsigned int ts_mapped_device_files(const struct ts_device_table *table, pid_t pid,
				    const char *maps_path,
				    void (*found)(void *context, const struct ts_device_file *file),
				    void *context);

/* True where it has one of this maker. */
bool ts_process_has_device(const struct ts_device_table *table, pid_t pid, const char *vendor);

#endif
