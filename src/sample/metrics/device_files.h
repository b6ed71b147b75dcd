/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device files of accelerators, and which processes have them open or mapped. A file is identified
 * by its device number (of a node in our /dev, or of a driver in /proc/devices), so that containers
 * may rename it; else by its name.
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
	char name[32];   /* after "/dev/": "nvidia0", "dri/renderD128" */
	char bus[20];    /* PCI address, lower case; "" */
	int64_t number;  /* number in the vendor's tools; TS_METRICS_UNKNOWN: all, or unknown */
	bool is_render;  /* graphics programs open it too */
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

/* Everything in /dev and /proc/devices. */
int ts_device_table_init(struct ts_device_table *table, struct ts_error *err);
void ts_device_table_release(struct ts_device_table *table);

/* The steps of the above. `devices`: contents of /proc/devices. A zeroed table is empty. */
int ts_device_table_add_node(struct ts_device_table *table, dev_t device,
			     const struct ts_device_file *file);
int ts_device_table_add_drivers(struct ts_device_table *table, const char *devices);

/* False: not an accelerator. `path` is absolute. */
bool ts_device_table_find(const struct ts_device_table *table, const char *path, dev_t device,
			  struct ts_device_file *ret_file);

/* Whether there is a node or driver of this vendor. */
bool ts_device_table_has(const struct ts_device_table *table, const char *vendor);

/*
 * Calls `found` for each accelerator file that the process has open (once per descriptor), or if
 * there is none, mapped. 0, or a negative errno: -EACCES if access is denied, -ENOENT if it is
 * gone.
 */
int ts_process_device_files(const struct ts_device_table *table, pid_t pid,
			    void (*found)(void *context, const struct ts_device_file *file),
			    void *context);

/* The second half, from a text of mappings; returns the number found. */
unsigned int ts_mapped_device_files(const struct ts_device_table *table, pid_t pid,
				    const char *maps_path,
				    void (*found)(void *context, const struct ts_device_file *file),
				    void *context);

/* Whether it has one of this vendor. */
bool ts_process_has_device(const struct ts_device_table *table, pid_t pid, const char *vendor);

#endif
