/* SPDX-License-Identifier: Apache-2.0 */
/* Totals over network interfaces and disks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample/metrics/host/io_totals.h"

#define SHORTCUT_FIELDS 8u

/* ---- sums ---- */

static void begin(struct ts_io_totals *traffic)
{
	traffic->round++;
	for (size_t i = 0; i < TS_ARRAY_SIZE(traffic->sums); i++)
		traffic->sums[i] = (struct ts_io_totals_sum){ .is_good = true };
}

static struct ts_io_device *find(struct ts_io_totals *traffic, const char *name, size_t length)
{
	for (size_t i = 0; i < traffic->count; i++) {
		const char *known = traffic->carriers[i].name;

		if (strncmp(known, name, length) == 0 && !known[length])
			return &traffic->carriers[i];
	}
	return NULL;
}

static void add_new(struct ts_io_totals *traffic, const struct ts_procfs_traffic *text)
{
	struct ts_io_device *carrier;

	if (ts_grow_array((void **)&traffic->carriers, &traffic->capacity, traffic->count + 1,
			  sizeof(*traffic->carriers)))
		return;
	carrier = &traffic->carriers[traffic->count++];
	*carrier =
		(struct ts_io_device){ .round = traffic->round, .in = text->in, .out = text->out };
	memcpy(carrier->name, text->name, text->name_length);
	carrier->kind = traffic->kind->classify(carrier->name);
}

static void add(struct ts_io_totals *traffic, const struct ts_procfs_traffic *text)
{
	struct ts_io_device *carrier;
	struct ts_io_totals_sum *sum;

	/* The kernel's own names are shorter. */
	if (text->name_length >= TS_IO_DEVICE_NAME_BYTES)
		return;
	carrier = find(traffic, text->name, text->name_length);
	if (!carrier) {
		add_new(traffic, text);
		return;
	}
	if (carrier->round == traffic->round)
		return; /* listed twice: the first counts */
	sum = &traffic->sums[carrier->kind];
	if (text->in < carrier->in || text->out < carrier->out)
		sum->is_good = false;
	sum->in += text->in - carrier->in;
	sum->out += text->out - carrier->out;
	sum->carriers++;
	carrier->in = text->in;
	carrier->out = text->out;
	carrier->round = traffic->round;
}

static void forget_gone(struct ts_io_totals *traffic)
{
	for (size_t i = traffic->count; i-- > 0;) {
		if (traffic->carriers[i].round != traffic->round)
			traffic->carriers[i] = traffic->carriers[--traffic->count];
	}
}

static bool end(struct ts_io_totals *traffic, int64_t now_ns, double *ret_in, double *ret_out)
{
	const struct ts_io_totals_sum *sums = traffic->sums;
	enum ts_io_device_kind counted =
		sums[TS_IO_DEVICE_PHYSICAL].carriers ? TS_IO_DEVICE_PHYSICAL : TS_IO_DEVICE_VIRTUAL;
	double seconds = (double)(now_ns - traffic->at_ns) / 1e9;
	/* Other kinds may not have been read for some rounds. */
	bool is_good = sums[counted].carriers && sums[counted].is_good && seconds > 0 &&
		       (counted == traffic->counted || traffic->counted == TS_IO_DEVICE_IGNORED);

	traffic->at_ns = now_ns;
	if (sums[counted].carriers)
		traffic->counted = counted;
	if (!is_good)
		return false;
	*ret_in = (double)sums[counted].in / seconds;
	*ret_out = (double)sums[counted].out / seconds;
	return true;
}

/* ---- shortcuts ---- */

static void close_shortcuts(struct ts_io_totals *traffic)
{
	for (size_t i = 0; i < traffic->shortcut_count; i++)
		ts_procfs_file_close(&traffic->shortcuts[i].file);
	traffic->shortcut_count = 0;
}

/* In /sys a '/' of a name becomes '!'. */
static void name_in_sysfs(char *buffer, const char *name)
{
	snprintf(buffer, TS_IO_DEVICE_NAME_BYTES, "%s", name);
	for (char *slash = strchr(buffer, '/'); slash; slash = strchr(slash, '/'))
		*slash = '!';
}

static void add_shortcut(struct ts_io_totals *traffic, const char *name)
{
	struct ts_io_totals_shortcut *shortcut = &traffic->shortcuts[traffic->shortcut_count++];
	char sysfs_name[TS_IO_DEVICE_NAME_BYTES];

	memcpy(shortcut->name, name, sizeof(shortcut->name));
	name_in_sysfs(sysfs_name, name);
	snprintf(shortcut->path, sizeof(shortcut->path), "%s/%s/%s", traffic->kind->folder,
		 sysfs_name, traffic->kind->file);
	shortcut->file = (struct ts_procfs_file){ .path = shortcut->path, .fd = -1 };
}

static bool has_shortcut(const struct ts_io_totals *traffic, const char *name)
{
	for (size_t i = 0; i < traffic->shortcut_count; i++) {
		if (strcmp(traffic->shortcuts[i].name, name) == 0)
			return true;
	}
	return false;
}

/* For all physical ones, or for none. */
static void make_shortcuts(struct ts_io_totals *traffic)
{
	size_t real = 0, known = 0;

	for (size_t i = 0; i < traffic->count; i++) {
		if (traffic->carriers[i].kind != TS_IO_DEVICE_PHYSICAL)
			continue;
		real++;
		known += has_shortcut(traffic, traffic->carriers[i].name);
	}
	if (real == known && real == traffic->shortcut_count)
		return;
	close_shortcuts(traffic);
	for (size_t i = 0;
	     traffic->kind->folder && real <= TS_IO_TOTALS_SHORTCUTS && i < traffic->count; i++) {
		if (traffic->carriers[i].kind == TS_IO_DEVICE_PHYSICAL)
			add_shortcut(traffic, traffic->carriers[i].name);
	}
}

static bool read_shortcut(struct ts_io_totals *traffic, struct ts_io_totals_shortcut *shortcut,
			  struct ts_text *buffer)
{
	struct ts_procfs_traffic text = { .name = shortcut->name,
					  .name_length = strlen(shortcut->name) };
	uint64_t fields[SHORTCUT_FIELDS];

	if (ts_procfs_file_read(&shortcut->file, AT_FDCWD, buffer))
		return false;
	ts_procfs_scan_numbers(buffer->data, fields, SHORTCUT_FIELDS);
	text.in = fields[traffic->kind->in_field];
	text.out = fields[traffic->kind->out_field];
	if (text.in == TS_NO_VALUE || text.out == TS_NO_VALUE)
		return false;
	add(traffic, &text);
	return true;
}

/* ---- rounds ---- */

bool ts_io_totals_next(struct ts_io_totals *traffic, const char *text, int64_t now_ns,
		       double *ret_in, double *ret_out)
{
	struct ts_procfs_traffic one;

	begin(traffic);
	while (traffic->kind->next(&text, &one))
		add(traffic, &one);
	forget_gone(traffic);
	make_shortcuts(traffic);
	return end(traffic, now_ns, ret_in, ret_out);
}

bool ts_io_totals_next_short(struct ts_io_totals *traffic, struct ts_text *buffer, int64_t now_ns,
			     double *ret_in, double *ret_out)
{
	begin(traffic);
	for (size_t i = 0; i < traffic->shortcut_count; i++) {
		if (!read_shortcut(traffic, &traffic->shortcuts[i], buffer)) {
			/* It may be gone: the next round reads all and starts over. */
			ts_io_totals_release(traffic);
			return false;
		}
	}
	return end(traffic, now_ns, ret_in, ret_out);
}

void ts_io_totals_release(struct ts_io_totals *traffic)
{
	close_shortcuts(traffic);
	free(traffic->carriers);
	traffic->carriers = NULL;
	traffic->count = traffic->capacity = 0;
	traffic->counted = TS_IO_DEVICE_IGNORED;
}

/* ---- classification ---- */

static bool is_present(const char *folder, const char *name, const char *below)
{
	char path[TS_IO_DEVICE_NAME_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s%s", folder, name, below);
	return access(path, F_OK) == 0;
}

/* Bridges, bonds and similar repeat the traffic of the physical ones below. */
static enum ts_io_device_kind classify_interface(const char *name)
{
	if (strcmp(name, "lo") == 0)
		return TS_IO_DEVICE_IGNORED;
	return is_present("/sys/class/net", name, "/device") ? TS_IO_DEVICE_PHYSICAL
							     : TS_IO_DEVICE_VIRTUAL;
}

/* Made of other devices, or of memory. */
static bool is_virtual(const char *name)
{
	static const char *const prefixes[] = { "loop", "ram", "zram", "dm-", "md",
						"nbd",  "sr",  "fd",   "drbd" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

/* Partitions are not in /sys/block. Hidden paths of an NVMe namespace would count twice. */
static enum ts_io_device_kind classify_disk(const char *name)
{
	char sysfs_name[TS_IO_DEVICE_NAME_BYTES], path[TS_IO_DEVICE_NAME_BYTES + 64];
	int64_t is_hidden = 0;

	name_in_sysfs(sysfs_name, name);
	if (is_virtual(name) || !is_present("/sys/block", sysfs_name, ""))
		return TS_IO_DEVICE_IGNORED;
	snprintf(path, sizeof(path), "/sys/block/%s/hidden", sysfs_name);
	if (ts_procfs_read_number(AT_FDCWD, path, &is_hidden) && is_hidden)
		return TS_IO_DEVICE_IGNORED;
	return is_present("/sys/block", sysfs_name, "/device") ? TS_IO_DEVICE_PHYSICAL
							       : TS_IO_DEVICE_VIRTUAL;
}

/* /sys may show the interfaces of another network namespace, so no numbers are taken from it. */
const struct ts_io_totals_kind ts_io_totals_network = {
	.classify = classify_interface,
	.next = ts_procfs_network_next,
};

/* The numbers of /proc/diskstats, from the fourth on. */
const struct ts_io_totals_kind ts_io_totals_disks = {
	.classify = classify_disk,
	.next = ts_procfs_disk_next,
	.folder = "/sys/block",
	.file = "stat",
	.in_field = 2,
	.out_field = 6,
};
