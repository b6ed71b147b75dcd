/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a process as a short text: "NV0-3,7". */
#include <stdio.h>
#include <string.h>

#include "cli/top/top.h"

/* A separator, two letters, two numbers. */
#define RANGE_BYTES 32u

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
	size_t position = 0;

	snprintf(device.vendor, sizeof(device.vendor), "%s", vendor ? vendor : "");
	while (position < list->count && compare_used(&list->devices[position], &device) < 0)
		position++;
	if ((position < list->count && !compare_used(&list->devices[position], &device)) ||
	    list->count == TS_TOP_PROCESS_DEVICES)
		return;
	memmove(&list->devices[position + 1], &list->devices[position],
		(list->count - position) * sizeof(device));
	list->devices[position] = device;
	list->count++;
}

/* The last of consecutive numbers. */
static size_t end_of_range(const struct ts_top_device_list *list, size_t at)
{
	const struct ts_top_used_device *devices = list->devices;

	while (at + 1 < list->count && devices[at].number >= 0 &&
	       devices[at + 1].number == devices[at].number + 1 &&
	       !strcmp(devices[at].vendor, devices[at + 1].vendor))
		at++;
	return at;
}

/* "0-3" for the first, ",5" or " AM0" for later ones; returns its length. */
static size_t print_range(char buffer[RANGE_BYTES], const char *vendor,
			  const struct ts_top_used_device *first,
			  const struct ts_top_used_device *last)
{
	bool is_same = vendor && !strcmp(vendor, first->vendor);
	int length = snprintf(buffer, RANGE_BYTES, "%s%.2s",
			      is_same  ? ","
			      : vendor ? " "
				       : "",
			      is_same ? "" : first->vendor);

	if (first->number < 0)
		length += snprintf(buffer + length, RANGE_BYTES - (size_t)length, "?");
	else
		length += snprintf(buffer + length, RANGE_BYTES - (size_t)length,
				   first == last ? "%d" : "%d-%d", (int)first->number,
				   (int)last->number);
	return (size_t)length;
}

const char *ts_top_device_list_format(const struct ts_top_device_list *list, char *buffer,
				      size_t size)
{
	const char *vendor = NULL;
	size_t used = 0;

	snprintf(buffer, size, "-");
	for (size_t i = 0; i < list->count; i++) {
		const struct ts_top_used_device *first = &list->devices[i];
		size_t last = end_of_range(list, i), length;
		char range[RANGE_BYTES];

		length = print_range(range, vendor, first, &list->devices[last]);
		/* All but the last leave space for a plus, which says that there are more. */
		if (used + length + (last + 1 < list->count) >= size) {
			snprintf(buffer + used, size - used, "+");
			break;
		}
		memcpy(buffer + used, range, length + 1);
		used += length;
		vendor = first->vendor;
		i = last;
	}
	return buffer;
}
