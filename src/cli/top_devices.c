/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that a process uses, as a short text: "NV0-3,7". Must not know where they are from. */
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

static int compare_used(const struct ts_top_used_device *a, const struct ts_top_used_device *b)
{
	int order = strcmp(a->vendor, b->vendor);

	return order ? order : (a->number > b->number) - (a->number < b->number);
}

void ts_top_device_list_add(struct ts_top_device_list *list, const char *vendor, int64_t number)
{
	struct ts_top_used_device device = {
		.number = number < 0 || number > INT32_MAX ? -1 : (int32_t)number,
	};
	size_t place = 0;

	snprintf(device.vendor, sizeof(device.vendor), "%s", vendor ? vendor : "");
	while (place < list->count && compare_used(&list->devices[place], &device) < 0)
		place++;
	if ((place < list->count && !compare_used(&list->devices[place], &device)) ||
	    list->count == TS_TOP_PROCESS_DEVICES)
		return;
	memmove(&list->devices[place + 1], &list->devices[place],
		(list->count - place) * sizeof(device));
	list->devices[place] = device;
	list->count++;
}

/* The last of those that follow each other without a gap. */
static size_t end_of_range(const struct ts_top_device_list *list, size_t at)
{
	const struct ts_top_used_device *devices = list->devices;

	while (at + 1 < list->count && devices[at].number >= 0 &&
	       devices[at + 1].number == devices[at].number + 1 &&
	       !strcmp(devices[at].vendor, devices[at + 1].vendor))
		at++;
	return at;
}

static int print_range(char *buffer, size_t size, const struct ts_top_used_device *first,
		       const struct ts_top_used_device *last)
{
	if (first->number < 0)
		return snprintf(buffer, size, "?");
	if (first == last)
		return snprintf(buffer, size, "%d", (int)first->number);
	return snprintf(buffer, size, "%d-%d", (int)first->number, (int)last->number);
}

const char *ts_top_device_list_format(const struct ts_top_device_list *list, char *buffer,
				      size_t size)
{
	const char *vendor = NULL;
	size_t used = 0;

	snprintf(buffer, size, "-");
	for (size_t i = 0; i < list->count && used + 1 < size; i++) {
		const struct ts_top_used_device *first = &list->devices[i];

		if (!vendor || strcmp(vendor, first->vendor))
			used += (size_t)snprintf(buffer + used, size - used, "%s%.2s",
						 vendor ? " " : "", first->vendor);
		else
			used += (size_t)snprintf(buffer + used, size - used, ",");
		vendor = first->vendor;
		i = end_of_range(list, i);
		if (used < size)
			used += (size_t)print_range(buffer + used, size - used, first,
						    &list->devices[i]);
	}
	return buffer;
}
