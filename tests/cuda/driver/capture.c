/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: capture of streams into graphs. */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver.h"

enum { MODE_GLOBAL, MODE_THREAD, MODE_RELAXED };

struct capture {
	struct capture *next;
	struct graph *graph;
	struct stream *origin, *joined[32];
	size_t joined_count;
	pthread_t thread;
	int mode;
	uint64_t id;
	bool is_over, is_invalid;
};

static struct capture *captures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int thread_mode;

int refuse_in_capture(void)
{
	int result = 0;

	pthread_mutex_lock(&lock);
	for (struct capture *each = captures; each; each = each->next) {
		bool is_own = pthread_equal(each->thread, pthread_self());

		if (thread_mode == MODE_RELAXED || each->mode == MODE_RELAXED)
			continue;
		if (is_own || (each->mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL)) {
			each->is_invalid = true;
			result = CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int refuse_to_wait(const struct context *context)
{
	int result = 0;

	pthread_mutex_lock(&lock);
	for (struct capture *each = captures; each; each = each->next) {
		if (each->origin->context != context)
			continue;
		each->is_invalid = true;
		result = CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static bool is_blocking_in(const struct stream *stream, const struct context *context)
{
	return stream->context == context && !(stream->flags & CUDA_STREAM_NON_BLOCKING);
}

/* Is a stream captured for which this one waits? `lock` is held. */
static bool waits_for(const struct stream *stream, const struct capture *capture)
{
	bool waits = is_blocking_in(capture->origin, stream->context);

	for (size_t i = 0; i < capture->joined_count; i++)
		waits = waits || is_blocking_in(capture->joined[i], stream->context);
	return stream->is_legacy && waits;
}

int refuse_default(const struct stream *stream)
{
	int result = 0;

	pthread_mutex_lock(&lock);
	for (struct capture *each = captures; each; each = each->next) {
		if (!waits_for(stream, each))
			continue;
		each->is_invalid = true;
		result = CAPTURE_IMPLICIT;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Nothing ends by this question. */
static bool is_default_unknown(const struct stream *stream)
{
	bool is_unknown = false;

	pthread_mutex_lock(&lock);
	for (struct capture *each = captures; each; each = each->next)
		is_unknown = is_unknown || waits_for(stream, each);
	pthread_mutex_unlock(&lock);
	return is_unknown;
}

API cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = thread_mode;

	if (*mode < MODE_GLOBAL || *mode > MODE_RELAXED)
		return INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return 0;
}

static void set_at(struct stream *stream, struct node *const *nodes, size_t count)
{
	struct node **at = calloc(count + 1, sizeof(at[0]));

	if (count)
		memcpy(at, nodes, count * sizeof(at[0]));
	free(stream->at);
	stream->at = at;
	stream->at_count = count;
}

static void add_at(struct stream *stream, struct node *const *nodes, size_t count)
{
	struct node **at = calloc(stream->at_count + count + 1, sizeof(at[0]));
	size_t total = stream->at_count;

	if (total)
		memcpy(at, stream->at, total * sizeof(at[0]));
	for (size_t i = 0; i < count; i++) {
		bool is_new = true;

		for (size_t j = 0; j < total; j++)
			is_new = is_new && at[j] != nodes[i];
		if (is_new)
			at[total++] = nodes[i];
	}
	free(stream->at);
	stream->at = at;
	stream->at_count = total;
}

static enum node_type type_of(enum op_kind kind)
{
	switch (kind) {
	case OP_LAUNCH:
		return NODE_KERNEL;
	case OP_COPY:
		return NODE_COPY;
	case OP_FILL:
		return NODE_FILL;
	case OP_HOST:
		return NODE_HOST;
	default:
		return NODE_EMPTY;
	}
}

int capture_add(struct stream *stream, struct op *op, struct node **ret_node)
{
	struct capture *capture = stream->capture;
	struct node *node;
	int error;

	if (capture->is_invalid) {
		op_release(op);
		return CAPTURE_INVALIDATED;
	}
	error = graph_add(capture->graph, stream->at, stream->at_count, type_of(op->kind), &node);
	if (error)
		return error;
	node->op = *op;
	memset(op, 0, sizeof(*op));
	set_at(stream, &node, 1);
	if (ret_node)
		*ret_node = node;
	return 0;
}

int capture_invalidate(const struct stream *stream)
{
	stream->capture->is_invalid = true;
	return CAPTURE_UNSUPPORTED;
}

int capture_event(struct event *event, struct stream *stream)
{
	event->capture = stream->capture;
	event->at = calloc(stream->at_count + 1, sizeof(event->at[0]));
	if (stream->at_count)
		memcpy(event->at, stream->at, stream->at_count * sizeof(event->at[0]));
	event->at_count = stream->at_count;
	return 0;
}

int capture_wait(struct stream *stream, struct event *event)
{
	struct capture *capture = event->capture;

	if (capture->is_over)
		return INVALID_VALUE;
	if (stream->capture && stream->capture != capture) {
		capture->is_invalid = stream->capture->is_invalid = true;
		return CAPTURE_MERGE;
	}
	if (stream->is_legacy) {
		capture->is_invalid = true;
		return CAPTURE_IMPLICIT;
	}
	if (!stream->capture) {
		if (capture->joined_count == 32)
			return OUT_OF_MEMORY;
		capture->joined[capture->joined_count++] = stream;
		stream->capture = capture;
		set_at(stream, NULL, 0);
	}
	add_at(stream, event->at, event->at_count);
	return 0;
}

static int begin(struct stream *on, int mode, struct graph *graph, struct node *const *after,
		 size_t count)
{
	static uint64_t id;
	struct capture *capture;

	if (!on)
		return INVALID_HANDLE;
	if (on->is_legacy)
		return CAPTURE_UNSUPPORTED;
	if (on->capture)
		return CAPTURE_UNSUPPORTED + 1;
	capture = calloc(1, sizeof(*capture));
	capture->graph = graph ? graph : graph_new();
	capture->origin = on;
	capture->thread = pthread_self();
	capture->mode = mode;
	pthread_mutex_lock(&lock);
	capture->id = ++id;
	capture->next = captures;
	captures = capture;
	pthread_mutex_unlock(&lock);
	on->capture = capture;
	set_at(on, after, count);
	return 0;
}

/* Events may still name it. */
static void forget(struct capture *capture)
{
	struct capture **at = &captures;

	pthread_mutex_lock(&lock);
	capture->is_over = true;
	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
	pthread_mutex_unlock(&lock);
}

static int end(struct stream *on, struct graph **graph)
{
	struct capture *capture;

	*graph = NULL;
	if (!on || !on->capture)
		return INVALID_VALUE;
	capture = on->capture;
	if (capture->origin != on)
		return CAPTURE_UNMATCHED;
	/* What other streams did must have joined the origin again. */
	for (size_t i = 0; i < capture->joined_count && !capture->is_invalid; i++) {
		struct stream *other = capture->joined[i];
		bool is_joined = false;

		for (size_t j = 0; j < other->at_count; j++) {
			for (struct node *node = capture->graph->first; node; node = node->next) {
				for (size_t k = 0; k < node->after_count; k++)
					is_joined = is_joined || node->after[k] == other->at[j];
			}
			for (size_t k = 0; k < on->at_count; k++)
				is_joined = is_joined || on->at[k] == other->at[j];
		}
		if (!is_joined && other->at_count)
			capture->is_invalid = true;
	}
	forget(capture);
	on->capture = NULL;
	for (size_t i = 0; i < capture->joined_count; i++)
		capture->joined[i]->capture = NULL;
	if (capture->is_invalid)
		return CAPTURE_INVALIDATED;
	*graph = capture->graph;
	return 0;
}

static int info(struct stream *on, int *status, uint64_t *id, struct graph **graph,
		struct node ***nodes, size_t *count)
{
	struct capture *capture;

	if (!on)
		return INVALID_HANDLE;
	if (is_default_unknown(on))
		return CAPTURE_IMPLICIT;
	capture = on->capture;
	*status = !capture ? 0 : capture->is_invalid ? 2 : 1;
	if (!capture)
		return 0;
	if (id)
		*id = capture->id;
	if (graph)
		*graph = capture->graph;
	if (nodes)
		*nodes = on->at;
	if (count)
		*count = on->at_count;
	return 0;
}

static int update(struct stream *on, struct node **nodes, size_t count, unsigned int flags)
{
	if (!on || !on->capture)
		return INVALID_VALUE;
	if (flags & 1)
		set_at(on, nodes, count);
	else
		add_at(on, nodes, count);
	return 0;
}

#define CAPTURE(suffix, is_per_thread)                                                          \
	API cuStreamBeginCapture_v2##suffix(void *stream, int mode)                             \
	{                                                                                       \
		return begin(stream_of(stream, is_per_thread), mode, NULL, NULL, 0);            \
	}                                                                                       \
	API cuStreamBeginCapture##suffix(void *stream)                                          \
	{                                                                                       \
		return begin(stream_of(stream, is_per_thread), MODE_GLOBAL, NULL, NULL, 0);     \
	}                                                                                       \
	API cuStreamBeginCaptureToGraph##suffix(void *stream, struct graph *graph,              \
						struct node *const *after, const void *edges,   \
						size_t count, int mode)                         \
	{                                                                                       \
		(void)edges;                                                                    \
		return begin(stream_of(stream, is_per_thread), mode, graph, after, count);      \
	}                                                                                       \
	API cuStreamEndCapture##suffix(void *stream, struct graph **graph)                      \
	{                                                                                       \
		return end(stream_of(stream, is_per_thread), graph);                            \
	}                                                                                       \
	API cuStreamIsCapturing##suffix(void *stream, int *status)                              \
	{                                                                                       \
		return info(stream_of(stream, is_per_thread), status, NULL, NULL, NULL, NULL);  \
	}                                                                                       \
	API cuStreamGetCaptureInfo_v2##suffix(void *stream, int *status, uint64_t *id,          \
					      struct graph **graph, struct node ***nodes,       \
					      size_t *count)                                    \
	{                                                                                       \
		return info(stream_of(stream, is_per_thread), status, id, graph, nodes, count); \
	}                                                                                       \
	API cuStreamGetCaptureInfo_v3##suffix(void *stream, int *status, uint64_t *id,          \
					      struct graph **graph, struct node ***nodes,       \
					      const void **edges, size_t *count)                \
	{                                                                                       \
		if (edges)                                                                      \
			*edges = NULL;                                                          \
		return info(stream_of(stream, is_per_thread), status, id, graph, nodes, count); \
	}                                                                                       \
	API cuStreamUpdateCaptureDependencies##suffix(void *stream, struct node **nodes,        \
						      size_t count, unsigned int flags)         \
	{                                                                                       \
		return update(stream_of(stream, is_per_thread), nodes, count, flags);           \
	}                                                                                       \
	API cuStreamUpdateCaptureDependencies_v2##suffix(void *stream, struct node **nodes,     \
							 const void *edges, size_t count,       \
							 unsigned int flags)                    \
	{                                                                                       \
		(void)edges;                                                                    \
		return update(stream_of(stream, is_per_thread), nodes, count, flags);           \
	}
CAPTURE(, false)
CAPTURE(_ptsz, true)
