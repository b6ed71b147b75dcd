/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of contexts, functions and streams that change how code runs (docs/cuda-replay.md, 4.2).
 * What was set before a window, or before its object is described, is part of that description.
 */
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"
#include "backends/cuda/stream/cuda_code.h"
#include "base/local/stream_text.h"

/* Attributes of streams that a replay sets (CUlaunchAttributeID). */
static const int stream_attributes[] = { 1, 3, 8, 9, 10, 16 };
#define ATTRIBUTE_WAITING 3 /* how the host waits */
#define ATTRIBUTE_PRIORITY 8
#define ATTRIBUTE_DOMAINS 9 /* of memory synchronization */
#define STREAM_ATTRIBUTE_COUNT (sizeof(stream_attributes) / sizeof(stream_attributes[0]))
#define ATTRIBUTE_BYTES 64u

/* `bytes` of a value as hexadecimal digits; 0: `value` as a number. */
static void append(const struct cuda_call *call, uint64_t object, const char *what, int64_t id,
		   int64_t value, const void *data, size_t bytes)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_SET);
	struct stream_text text;

	row.object = object;
	stream_text_begin(&text);
	stream_text_string(&text, "call", call->name);
	stream_text_string(&text, "what", what);
	if (id >= 0)
		stream_text_int(&text, "id", id);
	if (bytes)
		capture_text_bytes(&text, "value", data, bytes);
	else
		stream_text_int(&text, "value", value);
	row.details = stream_text_end(&text);
	capture_command(&row);
}

static int set_of_context(struct cuda_call *call, uintptr_t *args, const char *what, int64_t id,
			  int64_t value)
{
	struct capture_context *context = capture_context_current();
	int result;

	if (!capture_is_open() || !context)
		return cuda_invoke(call, args);
	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_)
		append(call, capture_context_number(context), what, id, value, NULL, 0);
	capture_unlock();
	return result;
}

/* limit, value */
static int set_limit(struct cuda_call *call, uintptr_t *args)
{
	uint32_t limit = (uint32_t)args[0];
	int result = set_of_context(call, args, "limit", (int)limit, (int64_t)args[1]);
	struct capture_context *context = capture_context_current();

	if (result == CUDA_SUCCESS_ && limit >= 32)
		capture_prevent("limit %u (%s)", limit, call->name);
	else if (result == CUDA_SUCCESS_ && context)
		context->limits |= 1u << limit;
	return result;
}

static int set_context_cache(struct cuda_call *call, uintptr_t *args)
{
	int result = set_of_context(call, args, "cache", -1, (int)args[0]);
	struct capture_context *context = capture_context_current();

	if (result == CUDA_SUCCESS_ && context)
		context->cache = (int)args[0];
	return result;
}

/* A function that is not described yet will be described with it. */
static int set_of_function(struct cuda_call *call, uintptr_t *args, void *handle, const char *what,
			   int64_t id, int value)
{
	struct capture_function *function = NULL;
	int result;

	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_) /* in a window also by a handle that was not seen before */
		function = capture_is_open() ? function_find(handle)
					     : capture_function_known(handle);
	if (result == CUDA_SUCCESS_ && id >= 0 && !capture_is_function_attribute((int)id))
		capture_prevent("function attribute %d (%s)", (int)id, call->name);
	if (function && id < 0)
		function->cache = value;
	if (function && function->number && capture_is_open())
		append(call, function->number, what, id, value, NULL, 0);
	capture_unlock();
	return result;
}

/* function, attribute, value */
static int set_function_attribute(struct cuda_call *call, uintptr_t *args)
{
	return set_of_function(call, args, (void *)args[0], "attribute", (int)args[1],
			       (int)args[2]);
}

/* attribute, value, kernel, device */
static int set_kernel_attribute(struct cuda_call *call, uintptr_t *args)
{
	return set_of_function(call, args, (void *)args[2], "attribute", (int)args[0],
			       (int)args[1]);
}

/* function or kernel, configuration */
static int set_function_cache(struct cuda_call *call, uintptr_t *args)
{
	return set_of_function(call, args, (void *)args[0], "cache", -1, (int)args[1]);
}

static bool is_stream_attribute(int id)
{
	for (size_t i = 0; i < STREAM_ATTRIBUTE_COUNT; i++) {
		if (stream_attributes[i] == id)
			return true;
	}
	return false;
}

/* stream, attribute, value. What is set while no window is open is described with the stream. */
static int set_stream_attribute(struct cuda_call *call, uintptr_t *args)
{
	int result;

	capture_lock();
	result = cuda_invoke(call, args);
	if (result == CUDA_SUCCESS_ && !is_stream_attribute((int)args[1]))
		capture_prevent("stream attribute %d", (int)args[1]);
	else if (result == CUDA_SUCCESS_ && capture_is_open())
		append(call, capture_stream_number(call, args[0]), "attribute", (int)args[1], 0,
		       (const void *)args[2], ATTRIBUTE_BYTES);
	capture_unlock();
	return result;
}

/* to, from */
static int copy_stream_attributes(struct cuda_call *call, uintptr_t *args)
{
	unsigned char value[ATTRIBUTE_BYTES];
	int result;

	if (!capture_is_open())
		return cuda_invoke(call, args);
	capture_lock();
	result = cuda_invoke(call, args);
	for (size_t i = 0; result == CUDA_SUCCESS_ && i < STREAM_ATTRIBUTE_COUNT; i++) {
		int id = stream_attributes[i];

		memset(value, 0, sizeof(value));
		if (cu.StreamGetAttribute((void *)args[0], id, value) == CUDA_SUCCESS_)
			append(call, capture_stream_number(call, args[0]), "attribute", id, 0,
			       value, sizeof(value));
	}
	capture_unlock();
	return result;
}

/*
 * Those that differ from a new stream's: the priority is in the description anyway, how the host
 * waits does not matter. The default streams have none, as far as the driver tells.
 */
void capture_stream_settings_describe(const struct capture_stream *stream, struct stream_text *text)
{
	static const unsigned char zeros[ATTRIBUTE_BYTES], domains[ATTRIBUTE_BYTES] = { 0, 1 };
	unsigned char value[ATTRIBUTE_BYTES];
	bool is_begun = false;

	for (size_t i = 0; stream->handle > CUDA_STREAM_PER_THREAD && i < STREAM_ATTRIBUTE_COUNT;
	     i++) {
		int id = stream_attributes[i];
		const unsigned char *usual = id == ATTRIBUTE_DOMAINS ? domains : zeros;

		if (id == ATTRIBUTE_WAITING || id == ATTRIBUTE_PRIORITY)
			continue;
		memset(value, 0, sizeof(value));
		if (cu.StreamGetAttribute((void *)stream->handle, id, value) != CUDA_SUCCESS_ ||
		    !memcmp(value, usual, sizeof(value)))
			continue;
		if (!is_begun)
			stream_text_open(text, "attributes", '[');
		is_begun = true;
		stream_text_open(text, NULL, '[');
		stream_text_int(text, NULL, id);
		capture_text_bytes(text, NULL, value, sizeof(value));
		stream_text_close(text, '[');
	}
	if (is_begun)
		stream_text_close(text, '[');
}

void capture_text_bytes(struct stream_text *text, const char *key, const void *data, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = data;
	char hex[2 * ATTRIBUTE_BYTES + 1];
	size_t used = 0;

	for (size_t i = 0; i < bytes && i < ATTRIBUTE_BYTES; i++) {
		hex[used++] = digits[from[i] >> 4];
		hex[used++] = digits[from[i] & 15];
	}
	hex[used] = '\0';
	if (key)
		stream_text_string(text, key, hex);
	else
		stream_text_element(text, hex);
}

const struct cuda_handler_entry capture_setting_handlers[] = {
	{ "cuCtxSetLimit", set_limit, CAPTURE_ALWAYS },
	{ "cuCtxSetCacheConfig", set_context_cache, CAPTURE_ALWAYS },
	{ "cuFuncSetAttribute", set_function_attribute, CAPTURE_ALWAYS },
	{ "cuKernelSetAttribute", set_kernel_attribute, CAPTURE_ALWAYS },
	{ "cuFuncSetCacheConfig", set_function_cache, CAPTURE_ALWAYS },
	{ "cuKernelSetCacheConfig", set_function_cache, CAPTURE_ALWAYS },
	{ "cuStreamSetAttribute", set_stream_attribute, CAPTURE_ALWAYS },
	{ "cuStreamCopyAttributes", copy_stream_attributes, 0 },
	{ 0 },
};
