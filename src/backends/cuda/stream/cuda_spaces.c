/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as the stream names it (docs/cuda-replay.md, 4.1): one object for each arena, with what is
 * mapped in it, and where an address lies.
 */
#include <stdlib.h>

#include "backends/cuda/stream/cuda_arena.h"

#pragma weak host_contains
#pragma weak host_space_number

/* Of "mapped", in one record. */
#define RANGES_AT_MOST 150

static void describe(struct capture_device *device, const struct arena_mapping *mappings,
		     size_t count, bool is_first)
{
	struct ts_replay_object object = { .size = sizeof(object), .kind = TS_OBJECT_MEMORY };
	struct stream_text text;

	stream_text_begin(&text);
	stream_text_true(&text, "sparse");
	stream_text_string(&text, "space", "device");
	stream_text_open(&text, "mapped", '[');
	for (size_t i = 0; i < count; i++) {
		stream_text_open(&text, NULL, '[');
		stream_text_uint(&text, NULL, mappings[i].address - device->arena);
		stream_text_uint(&text, NULL, mappings[i].bytes);
		stream_text_close(&text, '[');
	}
	stream_text_close(&text, '[');
	if (!is_first)
		stream_text_true(&text, "more");
	object.number = device->arena_number;
	object.parent = device->number;
	object.address = device->arena;
	object.bytes = (int64_t)device->arena_bytes;
	object.details = stream_text_end(&text);
	capture_object(&object);
}

static uint64_t arena_number(struct capture_device *device)
{
	struct arena_mapping *mappings;
	size_t count, at = 0;

	if (device->arena_number || !device->arena)
		return device->arena_number;
	capture_device_number(device);
	device->arena_number = ts_replay_new_object();
	count = arena_mappings(device, &mappings);
	do {
		size_t part = count - at < RANGES_AT_MOST ? count - at : RANGES_AT_MOST;

		describe(device, mappings + at, part, !at);
		at += part;
	} while (at < count);
	free(mappings);
	return device->arena_number;
}

void capture_memory_describe(void)
{
	for (int i = 0; i < ARENAS_AT_MOST; i++) {
		struct capture_device *device = capture_device_of(i);

		if (device && arena_of(device))
			arena_number(device);
	}
}

void capture_memory_forget(void)
{
	for (int i = 0; i < ARENAS_AT_MOST; i++) {
		struct capture_device *device = capture_device_of(i);

		if (device)
			device->arena_number = 0;
	}
}

static void append(uint32_t kind, struct capture_device *device, uint64_t address, uint64_t bytes)
{
	struct ts_replay_command row = capture_row(kind);

	row.object = device->arena_number;
	row.offset = (int64_t)(address - device->arena);
	row.bytes = (int64_t)bytes;
	capture_command(&row);
}

void capture_mapped(struct capture_device *device, uint64_t address, uint64_t bytes)
{
	if (device->arena_number)
		append(TS_COMMAND_ALLOC, device, address, bytes);
	else
		arena_number(device); /* has what is mapped already */
}

void capture_unmapped(struct capture_device *device, uint64_t address, uint64_t bytes)
{
	if (device->arena_number)
		append(TS_COMMAND_FREE, device, address, bytes);
}

bool capture_locate(uint64_t address, uint64_t bytes, uint64_t *ret_object, int64_t *ret_offset)
{
	struct capture_device *device = arena_device(address);
	struct capture_global *global;

	if (device) {
		*ret_object = arena_number(device);
		*ret_offset = (int64_t)(address - device->arena);
		return true;
	}
	if (host_contains && host_contains(address, bytes)) {
		*ret_object = host_space_number();
		*ret_offset = (int64_t)address;
		return true;
	}
	global = capture_global_at(address);
	if (!global || bytes > global->address + global->bytes - address)
		return false;
	*ret_object = capture_global_number(global);
	*ret_offset = (int64_t)(address - global->address);
	return true;
}
