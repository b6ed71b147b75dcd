/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of kernels. Programs repeat them with other parameters, so the texts of configurations
 * are kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_arena.h"
#include "backends/cuda/stream/cuda_code.h"
#include "base/local/hash.h"
#include "base/local/macros.h"

#define ATTRIBUTES_AT_MOST 16u
#define CONFIGURATIONS 1024u /* whose texts are kept */
#define BLOCK_BYTES 32768u
#define LINE_BYTES 64u /* of parameters, compared at once */
#define LINE_WORDS (LINE_BYTES / sizeof(uint64_t))
#define SEEN_LEAST 192u /* fewer are looked at as fast as they are compared */

/* What the text says, without bytes that have no meaning, so that it can be compared. */
struct launch_key {
	uint32_t grid[3], block[3], shared_bytes, is_cooperative, attribute_count, padding;
	struct cuda_launch_attribute attributes[ATTRIBUTES_AT_MOST];
};
struct configuration {
	char *details;
	size_t key_bytes;
	struct launch_key key; /* as much as is in use */
};

/* ---- attributes ---- */

/* CUlaunchAttributeID */
enum {
	ATTRIBUTE_IGNORE = 0,
	ATTRIBUTE_ACCESS_POLICY = 1,
	ATTRIBUTE_HOST_WAITS = 3, /* how it waits */
	ATTRIBUTE_CLUSTER = 4,
	ATTRIBUTE_CLUSTER_SCHEDULING = 5,
	ATTRIBUTE_PROGRAMMATIC_SERIALIZATION = 6,
	ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
	ATTRIBUTE_PRIORITY = 8,
	ATTRIBUTE_SYNC_DOMAIN_MAP = 9,
	ATTRIBUTE_SYNC_DOMAIN = 10,
	ATTRIBUTE_PREFERRED_CLUSTER = 11,
	ATTRIBUTE_COMPLETION_EVENT = 12,
	ATTRIBUTE_CARVEOUT = 14,
	ATTRIBUTE_NVLINK_SCHEDULING = 16,
};

uint32_t launch_attribute_bytes(uint32_t id)
{
	switch (id) {
	case ATTRIBUTE_ACCESS_POLICY:
		return 32;
	case ATTRIBUTE_CLUSTER:
	case ATTRIBUTE_PREFERRED_CLUSTER:
		return 12;
	case ATTRIBUTE_SYNC_DOMAIN_MAP:
		return 2;
	case CUDA_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case ATTRIBUTE_HOST_WAITS:
	case ATTRIBUTE_CLUSTER_SCHEDULING:
	case ATTRIBUTE_PROGRAMMATIC_SERIALIZATION:
	case ATTRIBUTE_PRIORITY:
	case ATTRIBUTE_SYNC_DOMAIN:
	case ATTRIBUTE_CARVEOUT:
	case ATTRIBUTE_NVLINK_SCHEDULING:
		return 4;
	default:
		return 0;
	}
}

static const char *attribute_name(uint32_t id)
{
	return id == 13 ? "device-updatable kernel node" : "unknown";
}

/* It names an event that the launch records. */
static bool is_event(const struct cuda_launch_attribute *attribute)
{
	return attribute->id == ATTRIBUTE_PROGRAMMATIC_EVENT ||
	       attribute->id == ATTRIBUTE_COMPLETION_EVENT;
}

static bool make_key(struct launch_key *key, const struct cuda_launch_config *config,
		     bool is_cooperative)
{
	memset(key, 0, offsetof(struct launch_key, attributes));
	memcpy(key->grid, config->grid, sizeof(key->grid));
	memcpy(key->block, config->block, sizeof(key->block));
	key->shared_bytes = config->shared_bytes;
	key->is_cooperative = is_cooperative;
	for (uint32_t i = 0; config->attributes && i < config->attribute_count; i++) {
		const struct cuda_launch_attribute *from = &config->attributes[i];
		struct cuda_launch_attribute *to = &key->attributes[key->attribute_count];
		uint32_t bytes = launch_attribute_bytes(from->id);

		if (from->id == ATTRIBUTE_IGNORE || is_event(from))
			continue;
		if (!bytes || key->attribute_count == ATTRIBUTES_AT_MOST) {
			capture_fail("launch attribute %u (%s)", from->id,
				     attribute_name(from->id));
			return false;
		}
		*to = (struct cuda_launch_attribute){ .id = from->id };
		memcpy(to->value, from->value, bytes);
		key->attribute_count++;
	}
	return true;
}

static void add_triple(struct stream_text *text, const char *name, const uint32_t *values)
{
	stream_text_open(text, name, '[');
	for (int i = 0; i < 3; i++)
		stream_text_item(text, values[i]);
	stream_text_close(text, '[');
}

static void add_attributes(struct stream_text *text, const struct launch_key *key)
{
	stream_text_open(text, "attributes", '[');
	for (uint32_t i = 0; i < key->attribute_count; i++) {
		const struct cuda_launch_attribute *attribute = &key->attributes[i];
		uint32_t bytes = launch_attribute_bytes(attribute->id);
		char digits[2 * sizeof(attribute->value) + 1];

		for (uint32_t j = 0; j < bytes; j++)
			snprintf(digits + 2 * j, 3, "%02x", attribute->value[j]);
		stream_text_open(text, NULL, '[');
		stream_text_item(text, attribute->id);
		stream_text_element(text, digits);
		stream_text_close(text, '[');
	}
	stream_text_close(text, '[');
}

static void add_key(struct stream_text *text, const struct launch_key *key)
{
	add_triple(text, "grid", key->grid);
	add_triple(text, "block", key->block);
	stream_text_uint(text, "shared", key->shared_bytes);
	if (key->is_cooperative)
		stream_text_true(text, "cooperative");
	if (key->attribute_count)
		add_attributes(text, key);
}

bool capture_launch_details(struct stream_text *text, const struct cuda_launch_config *config,
			    bool is_cooperative)
{
	struct launch_key key;

	if (!make_key(&key, config, is_cooperative))
		return false;
	add_key(text, &key);
	return true;
}

static struct configuration *keep(const struct launch_key *key, size_t bytes, const char *details)
{
	struct configuration *kept = malloc(offsetof(struct configuration, key) + bytes);

	if (!kept)
		return NULL;
	kept->details = strdup(details);
	if (!kept->details) {
		free(kept);
		return NULL;
	}
	kept->key_bytes = bytes;
	memcpy(&kept->key, key, bytes);
	return kept;
}

/* Attributes do not count: programs set few. */
static size_t slot_of(const struct cuda_launch_config *config, bool is_cooperative)
{
	static const uint64_t odd[] = { UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xBF58476D1CE4E5B9),
					UINT64_C(0x94D049BB133111EB) };
	uint64_t hash = config->shared_bytes + is_cooperative * odd[0];

	for (int i = 0; i < 3; i++)
		hash += (config->grid[i] + ((uint64_t)config->block[i] << 32)) * odd[i];
	return (size_t)(ts_hash_mix64(hash) % CONFIGURATIONS);
}

/* Most launches have no attributes: then no key is made. */
static bool is_plainly(const struct launch_key *key, const struct cuda_launch_config *config,
		       bool is_cooperative)
{
	if (key->attribute_count || (config->attributes && config->attribute_count) ||
	    key->shared_bytes != config->shared_bytes || key->is_cooperative != is_cooperative)
		return false;
	for (int i = 0; i < 3; i++)
		if (key->grid[i] != config->grid[i] || key->block[i] != config->block[i])
			return false;
	return true;
}

/* The text of a configuration, kept for the next launch; NULL: the window has failed. */
static const char *details_of(const struct cuda_launch_config *config, bool is_cooperative)
{
	static struct configuration *configurations[CONFIGURATIONS]; /* capture_lock */
	static struct stream_text text;
	struct configuration **slot = &configurations[slot_of(config, is_cooperative)];
	struct configuration *found = *slot;
	struct launch_key key;
	const char *details;
	size_t bytes;

	if (found && is_plainly(&found->key, config, is_cooperative))
		return found->details;
	if (!make_key(&key, config, is_cooperative))
		return NULL;
	bytes = offsetof(struct launch_key, attributes) +
		key.attribute_count * sizeof(key.attributes[0]);
	if (found && found->key_bytes == bytes && !memcmp(&found->key, &key, bytes))
		return found->details;
	stream_text_begin(&text);
	add_key(&text, &key);
	details = stream_text_end(&text);
	found = details ? keep(&key, bytes, details) : NULL;
	if (!found)
		return details;
	if (*slot) {
		free((*slot)->details);
		free(*slot);
	}
	*slot = found;
	return found->details;
}

/* ---- parameters ---- */

/* From the `extra` list; NULL: not there. */
static const void *extra_buffer(void **extra, size_t *ret_bytes)
{
	const void *buffer = NULL;

	*ret_bytes = 0;
	for (; extra && *extra != CUDA_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CUDA_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CUDA_LAUNCH_PARAM_BUFFER_SIZE)
			memcpy(ret_bytes, extra[1], sizeof(*ret_bytes));
		else
			return NULL;
	}
	return buffer;
}

bool capture_pack(struct capture_function *function, void **params, void **extra, void *block,
		  size_t most, uint32_t *ret_bytes)
{
	const char *buffer = NULL;
	size_t buffer_bytes = 0;
	uint32_t end = 0;

	if (!function_params(function))
		return false;
	*ret_bytes = function->param_bytes;
	if (function->param_bytes > most)
		return false;
	if (!function->param_count)
		return true;
	if (!params) {
		buffer = extra_buffer(extra, &buffer_bytes);
		if (!buffer)
			return false;
	}
	for (uint32_t i = 0; i < function->param_count; i++) {
		uint32_t offset = function->param_offsets[i], bytes = function->param_sizes[i];

		if (offset > end) /* padding has garbage in the program */
			memset((char *)block + end, 0, offset - end);
		end = TS_MAX(end, offset + bytes);
		if (params)
			memcpy((char *)block + offset, params[i], bytes);
		else if (offset + bytes <= buffer_bytes)
			memcpy((char *)block + offset, buffer + offset, bytes);
		else
			memset((char *)block + offset, 0, bytes);
	}
	return true;
}

/* ---- pointers to memory that is not captured ---- */

#define FOREIGN_AT_MOST 4u
#define FOREIGN_LEAST ((uint64_t)1 << 28) /* smaller words are numbers */
#define FOREIGN_END ((uint64_t)1 << 47)   /* no address */
#define POINTER_ATTRIBUTE_MEMORY_TYPE 2   /* CUpointer_attribute */
#define MEMORY_TYPE_DEVICE 2
#define REGION_SHIFT 16 /* devices have no smaller pages */
#define SETS 512u
#define WAYS 4u

/*
 * Words that were tested, as most repeat, also those that are remains of something else in the
 * padding of a parameter: regions of 64 KiB, by age, each with 1 if it is the driver's memory.
 */
static uint64_t tested[SETS][WAYS];
static uint64_t arena_begin, arena_bytes; /* of the arena that was seen last */

/* NULL: not tested. */
static const uint64_t *find_tested(const uint64_t *set, uint64_t region)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (set[i] >> 1 == region)
			return &set[i];
	return NULL;
}

static bool is_in_arena(uint64_t word)
{
	const struct capture_device *device = arena_device(word);

	if (device) {
		arena_begin = device->arena;
		arena_bytes = device->arena_bytes;
	}
	return device != NULL;
}

/* What is captured; this may change. */
static bool is_known(uint64_t word)
{
	return is_in_arena(word) || host_contains(word, 1) || capture_global_at(word);
}

static bool is_foreign(uint64_t word)
{
	uint64_t region = word >> REGION_SHIFT, *set;
	const uint64_t *found;
	unsigned int type = 0;

	if (word - FOREIGN_LEAST >= FOREIGN_END - FOREIGN_LEAST || word - arena_begin < arena_bytes)
		return false;
	set = tested[ts_hash_mix64(region) % SETS];
	found = find_tested(set, region);
	if (found)
		return (*found & 1) && !is_known(word);
	if (is_known(word))
		return false;
	memmove(set + 1, set, (WAYS - 1) * sizeof(*set));
	set[0] = region << 1;
	if (!cu.PointerGetAttribute(&type, POINTER_ATTRIBUTE_MEMORY_TYPE, word) &&
	    type == MEMORY_TYPE_DEVICE)
		set[0] |= 1;
	return set[0] & 1;
}

void capture_launch_forget(void)
{
	memset(tested, 0, sizeof(tested));
	arena_bytes = 0;
	capture_addresses_changed();
}

const char *capture_foreign(const char *details, const void *block, uint32_t bytes)
{
	static char longer[STREAM_DETAILS + 128]; /* capture_lock */
	uint32_t count = 0;
	size_t used = 0;

	for (uint32_t at = 0; at + 8 <= bytes && count < FOREIGN_AT_MOST; at += 8) {
		uint64_t word;

		memcpy(&word, (const char *)block + at, sizeof(word));
		if (!is_foreign(word))
			continue;
		if (!count)
			used = (size_t)snprintf(longer, sizeof(longer) - 96, "%s", details) - 1;
		used += (size_t)snprintf(longer + used, sizeof(longer) - used, "%s\"%llx\"",
					 count ? "," : ",\"foreign\":[", (unsigned long long)word);
		count++;
	}
	if (count)
		snprintf(longer + used, sizeof(longer) - used, "]}");
	return count ? longer : details;
}

/* ---- parameters that repeat ---- */

/*
 * Kernels for many tensors have 4 KB of parameters, most of them the same in each launch. Of those
 * that repeat from the function's last launch it is known that they point to nothing new.
 */
struct capture_seen {
	uint64_t version;
	uint64_t words[];
};

static uint64_t addresses_version = 1;

void capture_addresses_changed(void)
{
	__atomic_fetch_add(&addresses_version, 1, __ATOMIC_RELAXED);
}

static bool is_same_line(const uint64_t *line, const uint64_t *other)
{
	uint64_t differs = 0;

	for (unsigned int i = 0; i < LINE_WORDS; i++)
		differs |= line[i] ^ other[i];
	return !differs;
}

static bool has_foreign(const uint64_t *line)
{
	for (unsigned int i = 0; i < LINE_WORDS; i++)
		if (is_foreign(line[i]))
			return true;
	return false;
}

/* Lines that changed since the function's last launch; true: one points to the driver's memory. */
static bool look_at_changes(struct capture_seen *seen, const uint64_t *block, size_t lines)
{
	uint64_t version = __atomic_load_n(&addresses_version, __ATOMIC_RELAXED);
	bool is_known = seen->version == version, is_any = false;

	for (size_t i = 0; i < lines; i++) {
		const uint64_t *line = block + i * LINE_WORDS;
		uint64_t *before = seen->words + i * LINE_WORDS;

		if (is_known && is_same_line(line, before))
			continue;
		host_look_for_pointers(line, LINE_BYTES);
		is_any |= has_foreign(line);
		memcpy(before, line, LINE_BYTES);
	}
	seen->version = is_any ? 0 : version; /* each launch names what is foreign */
	return is_any;
}

/* The block has room for whole lines. The details as capture_foreign() gives them. */
static const char *look_for_pointers(struct capture_function *function, const char *details,
				     uint64_t *block, uint32_t bytes)
{
	size_t lines = (bytes + LINE_BYTES - 1) / LINE_BYTES;

	if (bytes >= SEEN_LEAST && !function->seen)
		function->seen = calloc(1, sizeof(*function->seen) + lines * LINE_BYTES);
	if (bytes >= SEEN_LEAST && function->seen) {
		memset((char *)block + bytes, 0, lines * LINE_BYTES - bytes);
		return look_at_changes(function->seen, block, lines)
			       ? capture_foreign(details, block, bytes)
			       : details;
	}
	host_look_for_pointers(block, bytes);
	return capture_foreign(details, block, bytes);
}

/* ---- launches ---- */

struct launch {
	struct cuda_launch_config config;
	bool is_cooperative;
	void *function;
	void **params, **extra;
	uintptr_t stream;
};

/* Before the driver's call: the function is described, what the host changed is stored. */
static bool prepare(const struct launch *launch, struct capture_function *function,
		    struct ts_replay_command *row, uint64_t *block, uint32_t *block_bytes)
{
	row->object = capture_function_number(function);
	row->details = row->object ? details_of(&launch->config, launch->is_cooperative) : NULL;
	if (!row->details)
		return false;
	if (!capture_pack(function, launch->params, launch->extra, block, BLOCK_BYTES,
			  block_bytes)) {
		capture_fail("launch of '%s' with parameters that cannot be read", function->name);
		return false;
	}
	row->details = look_for_pointers(function, row->details, block, *block_bytes);
	host_emit_changes();
	return true;
}

/*
 * Events of a launch may come as soon as its blocks say so, or run. In the stream they are recorded
 * behind it: those who wait for one begin later than they might, which the program allows.
 */
static void record_events(struct cuda_call *call, const struct cuda_launch_config *config,
			  uint64_t queue)
{
	for (uint32_t i = 0; config->attributes && i < config->attribute_count; i++) {
		void *event;

		memcpy(&event, config->attributes[i].value, sizeof(event));
		if (is_event(&config->attributes[i]) && event)
			capture_event_of_launch(call, event, queue);
	}
}

static int launch_in_window(struct cuda_call *call, uintptr_t *args, const struct launch *launch,
			    struct capture_function *function)
{
	static uint64_t block[BLOCK_BYTES / sizeof(uint64_t)]; /* capture_lock */
	struct ts_replay_command row = capture_row(TS_COMMAND_LAUNCH);
	uint32_t bytes = 0;
	bool is_ready;
	int result;

	capture_lock();
	is_ready = capture_is_open() && prepare(launch, function, &row, block, &bytes);
	result = cuda_invoke(call, args);
	if (is_ready && !result && capture_is_open()) {
		row.queue = capture_stream_number(call, launch->stream);
		capture_check_each(capture_command_with(&row, block, bytes));
		record_events(call, &launch->config, row.queue);
	}
	capture_unlock();
	return result;
}

/* The stream's, without asking for it where there is only one. */
static struct capture_context *context_of(const struct cuda_call *call, uintptr_t handle)
{
	struct capture_context *first = capture_context_next(NULL);
	struct capture_stream *stream;

	if (first && !capture_context_next(first))
		return first;
	stream = capture_stream_of(call, handle);
	return stream ? stream->context : capture_context_current();
}

/* A graph keeps the kernel's function, which the program never sees. */
void capture_function_used(struct capture_function *function)
{
	struct arena_mode mode;
	void *handle;

	if (!function->module->is_used)
		module_in(function->module, function->module->context ? function->module->context
								      : capture_context_current());
	if (!function->is_kernel)
		return;
	/* The launch may load the code during a capture, the question may not. */
	arena_mode_begin(&mode);
	if (!cu.KernelGetFunction(&handle, function->handle))
		function_alias(function, handle);
	arena_mode_end(&mode);
}

static int run(struct cuda_call *call, uintptr_t *args, const struct launch *launch)
{
	struct capture_function *function;
	bool is_captured;

	is_captured = capture_is_captured(call, launch->stream);
	if (!is_captured && !capture_is_open())
		return cuda_invoke(call, args);
	function = is_captured ? function_find(launch->function)
			       : capture_function_of(launch->function);
	if (function)
		function = capture_function_in(function, context_of(call, launch->stream));
	if (function && !is_captured)
		return launch_in_window(call, args, launch, function);
	if (function)
		capture_function_used(function);
	return cuda_invoke(call, args);
}

static void set_sizes(struct launch *launch, const uintptr_t *args)
{
	for (int i = 0; i < 3; i++) {
		launch->config.grid[i] = (uint32_t)args[1 + i];
		launch->config.block[i] = (uint32_t)args[4 + i];
	}
	launch->config.shared_bytes = (uint32_t)args[7];
	launch->stream = args[8];
	launch->function = (void *)args[0];
	launch->params = (void **)args[9];
}

static int launch_kernel(struct cuda_call *call, uintptr_t *args)
{
	struct launch launch = { .extra = (void **)args[10] };

	set_sizes(&launch, args);
	return run(call, args, &launch);
}

static int launch_cooperative(struct cuda_call *call, uintptr_t *args)
{
	struct launch launch = { .is_cooperative = true };

	set_sizes(&launch, args);
	return run(call, args, &launch);
}

static int launch_extended(struct cuda_call *call, uintptr_t *args)
{
	struct launch launch = { .function = (void *)args[1],
				 .params = (void **)args[2],
				 .extra = (void **)args[3] };

	if (!args[0])
		return cuda_invoke(call, args);
	memcpy(&launch.config, (const void *)args[0], sizeof(launch.config));
	launch.stream = (uintptr_t)launch.config.stream;
	return run(call, args, &launch);
}

static int launch_refused(struct cuda_call *call, uintptr_t *args)
{
	capture_fail("old or multi-device launch (%s)", call->name);
	return cuda_invoke(call, args);
}

const struct cuda_handler_entry capture_launch_handlers[] = {
	{ "cuLaunchKernel", launch_kernel, CAPTURE_IN_GRAPHS },
	{ "cuLaunchKernelEx", launch_extended, CAPTURE_IN_GRAPHS },
	{ "cuLaunchCooperativeKernel", launch_cooperative, CAPTURE_IN_GRAPHS },
	{ "cuLaunch", launch_refused, 0 },
	{ "cuLaunchGrid", launch_refused, 0 },
	{ "cuLaunchGridAsync", launch_refused, 0 },
	{ "cuLaunchCooperativeKernelMultiDevice", launch_refused, 0 },
	{ NULL, NULL, 0 },
};
