/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only streams of CUDA have (docs/cuda-replay.md, section 4): grids and attributes of
 * launches, parameters that are addresses, settings, nodes of graphs, address spaces.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "replay/describe/describe.h"
#include "replay/stream/stream_internal.h"

/* Bytes of a parameter that are searched for addresses, and addresses that are shown of it. */
#define MOST_PARAMETER 4096u
#define MOST_ADDRESSES 8u

/* Names of numbers of the driver: CUlaunchAttributeID, CUfunction_attribute, CUlimit. */
static const char *const launch_attributes[] = {
	[1] = "access_policy_window",
	[2] = "cooperative",
	[3] = "synchronization_policy",
	[4] = "cluster_dimension",
	[5] = "cluster_scheduling_policy_preference",
	[6] = "programmatic_stream_serialization",
	[7] = "programmatic_event",
	[8] = "priority",
	[9] = "mem_sync_domain_map",
	[10] = "mem_sync_domain",
	[11] = "preferred_cluster_dimension",
	[12] = "launch_completion_event",
	[13] = "device_updatable_kernel_node",
	[14] = "preferred_shared_memory_carveout",
	[16] = "nvlink_util_centric_scheduling",
};
static const char *const function_attributes[] = {
	[8] = "max_dynamic_shared_size_bytes",      [9] = "preferred_shared_memory_carveout",
	[10] = "cluster_size_must_be_set",          [11] = "required_cluster_width",
	[12] = "required_cluster_height",           [13] = "required_cluster_depth",
	[14] = "non_portable_cluster_size_allowed", [15] = "cluster_scheduling_policy_preference",
};
static const char *const limits[] = {
	"stack_size",
	"printf_fifo_size",
	"malloc_heap_size",
	"dev_runtime_sync_depth",
	"dev_runtime_pending_launch_count",
	"max_l2_fetch_granularity",
	"persisting_l2_cache_size",
	"shmem_size",
	"cig_enabled",
	"cig_shmem_fallback_enabled",
};

#define NAME_OF(names, id) ((id) < TS_ARRAY_SIZE(names) ? (names)[id] : NULL)

bool ts_replay_has_addresses(const struct ts_replay_stream *stream)
{
	return stream->space_count > 0;
}

/* Details that were parsed when the stream was loaded: nothing in them is malformed. */
static void parse(const char *json, struct ts_arena *arena, struct ts_replay_details *details)
{
	ts_replay_details_parse(details, arena, json, strlen(json), NULL);
}

/* ---- places ---- */

void ts_replay_describe_place(const struct ts_replay_stream *stream, uint32_t memory,
			      uint64_t offset, struct ts_text *out)
{
	const struct ts_replay_object_info *info = &stream->objects[memory];

	ts_text_printf(out, "memory %" PRIu64, info->number);
	if (info->flags & TS_REPLAY_GLOBAL)
		ts_text_printf(out, " '%s'", info->name);
	if (offset)
		ts_text_printf(out, ts_replay_is_paged(info) ? "+0x%" PRIx64 : "+%" PRIu64, offset);
}

/* ---- parameters ---- */

struct address {
	uint64_t at, offset;
	uint32_t memory;
};

/* Words of a parameter that are addresses; `ret_bytes` has its first bytes. */
static uint32_t find_addresses(const struct ts_replay_stream *stream,
			       const struct ts_replay_command_info *command,
			       const struct ts_replay_arg *arg, unsigned char bytes[MOST_PARAMETER],
			       uint64_t *ret_bytes, struct address addresses[MOST_ADDRESSES])
{
	uint64_t size = TS_MIN(arg->size, (uint64_t)MOST_PARAMETER);
	uint32_t count = 0;

	*ret_bytes = 0;
	if (!command->blob.id || arg->at > command->blob.bytes ||
	    size > command->blob.bytes - arg->at ||
	    ts_reader_blob_read(stream->reader, command->blob.id, arg->at, bytes, size, NULL))
		return 0;
	*ret_bytes = size;
	for (uint64_t at = 0; at + 8 <= size && count < MOST_ADDRESSES; at += 8) {
		struct address *address = &addresses[count];
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		address->at = at;
		count += ts_replay_locate(stream, word, &address->memory, &address->offset);
	}
	return count;
}

static void parameter(const struct ts_replay_stream *stream,
		      const struct ts_replay_command_info *command, const struct ts_replay_arg *arg,
		      struct ts_text *out)
{
	struct address addresses[MOST_ADDRESSES];
	unsigned char bytes[MOST_PARAMETER];
	uint64_t size;
	uint32_t count = find_addresses(stream, command, arg, bytes, &size, addresses);

	if (!size) {
		ts_text_append_char(out, '?');
	} else if (count && size == 8) {
		ts_replay_describe_place(stream, addresses[0].memory, addresses[0].offset, out);
	} else {
		ts_replay_describe_value("", bytes, arg->size, out);
		for (uint32_t i = 0; i < count; i++) {
			ts_text_append_str(out, i ? ", " : " [");
			ts_replay_describe_place(stream, addresses[i].memory, addresses[i].offset,
						 out);
			ts_text_printf(out, " at %" PRIu64, addresses[i].at);
		}
		ts_text_append_str(out, count ? "]" : "");
	}
}

void ts_replay_describe_parameters(const struct ts_replay_stream *stream,
				   const struct ts_replay_command_info *command,
				   struct ts_text *out)
{
	for (uint32_t i = 0; i < command->arg_count; i++) {
		ts_text_append_str(out, i ? ", " : "");
		parameter(stream, command, &command->args[i], out);
	}
}

static void parameter_json(const struct ts_replay_stream *stream,
			   const struct ts_replay_command_info *command,
			   const struct ts_replay_arg *arg, struct ts_text *out)
{
	struct address addresses[MOST_ADDRESSES];
	unsigned char bytes[MOST_PARAMETER];
	uint64_t size;
	uint32_t count = find_addresses(stream, command, arg, bytes, &size, addresses);

	ts_text_printf(out, "{\"kind\":\"bytes\",\"at\":%" PRIu64 ",\"bytes\":%" PRIu64 ",",
		       arg->at, arg->size);
	if (count) {
		ts_text_append_str(out, "\"addresses\":[");
		for (uint32_t i = 0; i < count; i++)
			ts_text_printf(out,
				       "%s{\"at\":%" PRIu64 ",\"memory\":%" PRIu64
				       ",\"offset\":%" PRIu64 "}",
				       i ? "," : "", addresses[i].at,
				       stream->objects[addresses[i].memory].number,
				       addresses[i].offset);
		ts_text_append_str(out, "],");
	}
	if (size)
		ts_replay_describe_value_json("", bytes, arg->size, out);
	out->length--;
	ts_text_append_char(out, '}');
}

void ts_replay_describe_parameters_json(const struct ts_replay_stream *stream,
					const struct ts_replay_command_info *command,
					struct ts_text *out)
{
	for (uint32_t i = 0; i < command->arg_count; i++) {
		ts_text_append_str(out, i ? "," : "");
		parameter_json(stream, command, &command->args[i], out);
	}
}

/* ---- geometry and attributes of launches ---- */

static void append_name(const char *name, uint64_t id, struct ts_text *out)
{
	if (name)
		ts_text_append_str(out, name);
	else
		ts_text_append_uint(out, id);
}

/* ---- values of attributes: bytes as the driver has them ---- */

#define CLUSTER_DIMENSION 4u
#define PREFERRED_CLUSTER_DIMENSION 11u

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to `most` bytes of hexadecimal digits; returns how many. */
static size_t read_hex(const char *text, unsigned char *to, size_t most)
{
	size_t count = 0;

	for (; count < most && text[0] && text[1]; text += 2) {
		int high = digit_of(text[0]), low = digit_of(text[1]);

		if (high < 0 || low < 0)
			break;
		to[count++] = (unsigned char)(high << 4 | low);
	}
	return count;
}

/* Numbers in the value of a launch attribute; 0: it is something else. */
static size_t numbers_of(const struct ts_replay_setting *setting, int32_t numbers[3])
{
	bool is_size = setting->id == CLUSTER_DIMENSION ||
		       setting->id == PREFERRED_CLUSTER_DIMENSION;
	size_t count = is_size ? 3 : 1, bytes = count * sizeof(*numbers);
	unsigned char value[12];

	switch (setting->id) {
	case 2:
	case 3:
	case CLUSTER_DIMENSION:
	case 5:
	case 6:
	case 8:
	case 10:
	case PREFERRED_CLUSTER_DIMENSION:
	case 14:
		break;
	default:
		return 0;
	}
	if (!setting->bytes || read_hex(setting->bytes, value, bytes) != bytes)
		return 0;
	memcpy(numbers, value, bytes);
	return count;
}

/* A list is in brackets, in text and in JSON. */
static bool append_numbers(const struct ts_replay_setting *setting, const char *between,
			   struct ts_text *out)
{
	int32_t numbers[3];
	size_t count = numbers_of(setting, numbers);

	ts_text_append_str(out, count > 1 ? "[" : "");
	for (size_t i = 0; i < count; i++)
		ts_text_printf(out, "%s%" PRId32, i ? between : "", numbers[i]);
	ts_text_append_str(out, count > 1 ? "]" : "");
	return count > 0;
}

static void append_value(const struct ts_replay_setting *setting, struct ts_text *out)
{
	if (append_numbers(setting, ", ", out))
		return;
	if (setting->bytes)
		ts_text_append_str(out, setting->bytes);
	else
		ts_text_append_int(out, setting->value);
}

static void append_size(const char *key, const uint64_t size[3], struct ts_text *out)
{
	ts_text_printf(out, "%s=[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", key, size[0], size[1],
		       size[2]);
}

static void read_launch(const struct ts_replay_command_info *command, struct ts_arena *arena,
			struct ts_replay_details *details, uint64_t grid[3])
{
	ts_arena_init(arena);
	parse(command->details, arena, details);
	for (int i = 0; i < 3; i++)
		grid[i] = command->local[i] ? command->global[i] / command->local[i] : 0;
}

void ts_replay_describe_grid(const struct ts_replay_command_info *command, struct ts_text *out)
{
	TS_SCOPED(ts_arena) arena = { 0 };
	struct ts_replay_details details;
	uint64_t grid[3];

	read_launch(command, &arena, &details, grid);
	append_size("grid", grid, out);
	append_size(", block", command->local, out);
	if (details.shared.value)
		ts_text_printf(out, ", shared=%" PRIu64, details.shared.value);
	if (details.is_cooperative)
		ts_text_append_str(out, ", cooperative=true");
	for (uint32_t i = 0; i < details.attribute_count; i++) {
		const struct ts_replay_setting *one = &details.attributes[i];

		ts_text_append_str(out, ", ");
		append_name(NAME_OF(launch_attributes, one->id), one->id, out);
		ts_text_append_char(out, '=');
		append_value(one, out);
	}
}

static void append_settings_json(const struct ts_replay_setting *settings, uint32_t count,
				 const char *const *names, size_t name_count, struct ts_text *out)
{
	ts_text_append_str(out, "\"attributes\":{");
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_setting *one = &settings[i];
		const char *name = one->id < name_count ? names[one->id] : NULL;

		ts_text_append_str(out, i ? ",\"" : "\"");
		append_name(name, one->id, out);
		ts_text_append_str(out, "\":");
		if (append_numbers(one, ",", out))
			continue;
		if (one->bytes)
			ts_text_append_json(out, one->bytes, strlen(one->bytes));
		else
			ts_text_append_int(out, one->value);
	}
	ts_text_append_str(out, "},");
}

static void append_size_json(const char *key, const uint64_t size[3], struct ts_text *out)
{
	ts_text_printf(out, "\"%s\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],", key, size[0], size[1],
		       size[2]);
}

void ts_replay_describe_grid_json(const struct ts_replay_command_info *command, struct ts_text *out)
{
	TS_SCOPED(ts_arena) arena = { 0 };
	struct ts_replay_details details;
	uint64_t grid[3];

	read_launch(command, &arena, &details, grid);
	append_size_json("grid", grid, out);
	append_size_json("block", command->local, out);
	ts_text_printf(out, "\"shared\":%" PRIu64 ",\"cooperative\":%s,", details.shared.value,
		       details.is_cooperative ? "true" : "false");
	append_settings_json(details.attributes, details.attribute_count, launch_attributes,
			     TS_ARRAY_SIZE(launch_attributes), out);
}

/* ---- settings ---- */

static const char *setting_name(const struct ts_replay_stream *stream,
				const struct ts_replay_command_info *command, uint64_t id)
{
	if (!command->what || command->object == TS_REPLAY_NONE)
		return NULL;
	if (!strcmp(command->what, "limit"))
		return NAME_OF(limits, id);
	if (strcmp(command->what, "attribute") != 0)
		return NULL;
	return stream->objects[command->object].kind == TS_OBJECT_FUNCTION
		       ? NAME_OF(function_attributes, id)
		       : NAME_OF(launch_attributes, id);
}

void ts_replay_describe_setting(const struct ts_replay_stream *stream,
				const struct ts_replay_command_info *command, struct ts_text *out)
{
	TS_SCOPED(ts_arena) arena = { 0 };
	struct ts_replay_details details;

	ts_arena_init(&arena);
	parse(command->details, &arena, &details);
	ts_text_printf(out, "%s", command->what ? command->what : "?");
	if (!command->what || strcmp(command->what, "cache") != 0) {
		ts_text_append_char(out, ' ');
		append_name(setting_name(stream, command, details.setting.id), details.setting.id,
			    out);
	}
	ts_text_append_char(out, '=');
	append_value(&details.setting, out);
}

void ts_replay_describe_setting_json(const struct ts_replay_stream *stream,
				     const struct ts_replay_command_info *command,
				     struct ts_text *out)
{
	TS_SCOPED(ts_arena) arena = { 0 };
	struct ts_replay_details details;
	const char *name;

	ts_arena_init(&arena);
	parse(command->details, &arena, &details);
	name = setting_name(stream, command, details.setting.id);
	ts_text_printf(out, "\"id\":%" PRIu64 ",", details.setting.id);
	if (name)
		ts_replay_append_member(out, "setting", name);
	if (details.setting.bytes)
		ts_replay_append_member(out, "value", details.setting.bytes);
	else
		ts_text_printf(out, "\"value\":%" PRId64 ",", details.setting.value);
}

/* ---- objects ---- */

static uint64_t mapped_bytes(const struct ts_replay_object_info *memory)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < memory->mapping_count; i++)
		bytes += memory->mappings[i].bytes;
	return bytes;
}

static uint64_t piece_bytes(const struct ts_replay_object_info *memory)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < memory->piece_count; i++)
		bytes += memory->pieces[i].bytes;
	return bytes;
}

static void next(const char **before, struct ts_text *out)
{
	ts_text_append_str(out, *before);
	*before = ", ";
}

void ts_replay_describe_space(const struct ts_replay_object_info *info, const char **before,
			      struct ts_text *out)
{
	if (info->kind == TS_OBJECT_STREAM && info->flags & TS_REPLAY_LEGACY) {
		next(before, out);
		ts_text_append_str(out, "legacy default stream");
	}
	if (info->kind == TS_OBJECT_STREAM && info->flags & TS_REPLAY_NON_BLOCKING) {
		next(before, out);
		ts_text_append_str(out, "non-blocking");
	}
	if (info->kind == TS_OBJECT_GRAPH) {
		next(before, out);
		ts_text_append_str(out, TS_COUNTED(info->graph_nodes, "node"));
	}
	if (info->kind != TS_OBJECT_MEMORY || !ts_replay_is_paged(info))
		return;
	next(before, out);
	if (info->flags & TS_REPLAY_HOST)
		ts_text_append_str(out, "memory of the host");
	else
		ts_text_printf(out, "%" PRIu64 " bytes at 0x%" PRIx64, info->bytes, info->address);
	if (info->flags & TS_REPLAY_SPARSE)
		ts_text_printf(out, ", %" PRIu64 " bytes mapped", mapped_bytes(info));
	if (info->piece_count)
		ts_text_printf(out, ", %" PRIu64 " bytes with contents", piece_bytes(info));
}

void ts_replay_describe_space_json(const struct ts_replay_object_info *info, struct ts_text *out)
{
	if (info->kind == TS_OBJECT_STREAM && info->flags & TS_REPLAY_LEGACY)
		ts_text_append_str(out, "\"default\":\"legacy\",");
	if (info->kind == TS_OBJECT_STREAM && info->flags & TS_REPLAY_NON_BLOCKING)
		ts_text_append_str(out, "\"non_blocking\":true,");
	if (info->kind == TS_OBJECT_GRAPH)
		ts_text_printf(out, "\"nodes\":%" PRIu64 ",", info->graph_nodes);
	if (info->kind != TS_OBJECT_MEMORY || !ts_replay_is_paged(info))
		return;
	ts_text_printf(out, "\"space\":\"%s\",\"address\":%" PRIu64 ",",
		       info->flags & TS_REPLAY_HOST     ? "host"
		       : info->flags & TS_REPLAY_GLOBAL ? "global"
							: "device",
		       info->address);
	if (info->flags & TS_REPLAY_SPARSE)
		ts_text_printf(out, "\"mappings\":%" PRIu32 ",\"mapped_bytes\":%" PRIu64 ",",
			       info->mapping_count, mapped_bytes(info));
	ts_text_printf(out, "\"pieces\":%" PRIu32 ",\"piece_bytes\":%" PRIu64 ",",
		       info->piece_count, piece_bytes(info));
}
