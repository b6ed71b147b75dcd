/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for CUPTI, for machines without a GPU. It has one subscriber and one pair of buffer
 * callbacks, fills buffers with records of a version's length, completes them when a test says so,
 * and returns buffers whose records are complete. Records behave as measured with CUPTI: the
 * correlation is set at once, kind and times on completion.
 */
#include "cuda/stand_in_cupti.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "code/cuda/local/cupti_abi.h"

#define EXPORTED __attribute__((visibility("default")))
#define BUFFERS 256
#define RECORDS 65536
#define DOMAINS 8
#define NUMBERS 1024

#define CUPTI_FUNCTION(name, parameters) EXPORTED int cupti##name parameters;
CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION

static uint32_t call(const struct stand_in_work *work);
static void complete(uint32_t count, uint64_t start, uint64_t end);
static void complete_one(uint32_t index, uint64_t start, uint64_t end);
static void resource(uint32_t number, const void *data);
static void graph_node(void *node, void *original);
static bool is_called_back(uint32_t domain, uint32_t number);

static struct stand_in_cupti state = {
	.version = 130001,
	.kernel_bytes = 216,
	.copy_bytes = 96,
	.peer_bytes = 96,
	.fill_bytes = 88,
	.call = call,
	.complete = complete,
	.complete_one = complete_one,
	.resource = resource,
	.graph_node = graph_node,
	.is_called_back = is_called_back,
};

/* For buffers and records. Held in their callbacks, but not in others. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static cupti_callback subscriber;
static void *subscriber_data;
static uint8_t is_on[DOMAINS][NUMBERS];
static cupti_requested requested;
static cupti_completed completed;
static uint32_t last_correlation;

static struct buffer {
	uint8_t *memory; /* NULL: not used */
	size_t bytes, valid;
	uint32_t incomplete;
} buffers[BUFFERS];
static struct buffer *filling;

static struct record {
	struct buffer *in;
	uint8_t *at;
	uint32_t kind;
	bool is_complete;
} records[RECORDS];
static uint32_t record_count, complete_count;

EXPORTED struct stand_in_cupti *stand_in_cupti(void)
{
	return &state;
}

static bool await(const uint32_t *what, uint32_t count)
{
	for (uint32_t tries = 0; __atomic_load_n(what, __ATOMIC_ACQUIRE) < count; tries++) {
		if (tries == 4000)
			return false;
		usleep(5000);
	}
	return true;
}

EXPORTED bool stand_in_await(uint32_t count, uint32_t looks)
{
	return await(&state.walked, count) &&
	       await(&state.looks, __atomic_load_n(&state.looks, __ATOMIC_ACQUIRE) + looks);
}

/* ---- records ---- */

static size_t length_of(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return state.kernel_bytes;
	case CUPTI_KIND_MEMCPY:
		return state.copy_bytes;
	case CUPTI_KIND_MEMCPY2:
		return state.peer_bytes;
	default:
		return state.fill_bytes;
	}
}

static struct buffer *make_buffer(void)
{
	size_t most;

	for (int i = 0; i < BUFFERS; i++) {
		struct buffer *buffer = &buffers[i];

		if (buffer->memory)
			continue;
		*buffer = (struct buffer){ 0 };
		requested(&buffer->memory, &buffer->bytes, &most);
		state.outstanding += buffer->memory != NULL;
		return buffer->memory ? buffer : NULL;
	}
	return NULL;
}

static void put(uint8_t *to, size_t at, const void *value, size_t bytes)
{
	memcpy(to + at, value, bytes);
}

static void put_u32(uint8_t *to, size_t at, uint32_t value)
{
	put(to, at, &value, sizeof(value));
}

static void put_kernel(uint8_t *to, const struct stand_in_work *work, uint32_t correlation)
{
	uint16_t registers = 32;

	put(to, CUPTI_KERNEL_REGISTERS, &registers, sizeof(registers));
	put_u32(to, CUPTI_KERNEL_CONTEXT, 1);
	put_u32(to, CUPTI_KERNEL_STREAM, 7);
	put_u32(to, CUPTI_KERNEL_CORRELATION, correlation);
	put(to, CUPTI_KERNEL_NAME, &work->name, sizeof(work->name));
	for (size_t i = 0; i < 3; i++) {
		put_u32(to, CUPTI_KERNEL_GRID + 4 * i, i ? 1 : work->grid);
		put_u32(to, CUPTI_KERNEL_BLOCK + 4 * i, i ? 1 : 128);
	}
	put_u32(to, CUPTI_KERNEL_STATIC_SHARED, 1000);
	put_u32(to, CUPTI_KERNEL_DYNAMIC_SHARED, 24);
	put(to, CUPTI_KERNEL_NODE, &work->node, sizeof(work->node));
	put_u32(to, CUPTI_KERNEL_GRAPH, work->graph);
}

static void put_memory(uint8_t *to, const struct stand_in_work *work, uint32_t correlation)
{
	uint64_t bytes = 4096;
	bool is_peer = work->kind == CUPTI_KIND_MEMCPY2;

	put(to, CUPTI_MEMORY_BYTES, &bytes, sizeof(bytes));
	put_u32(to, CUPTI_MEMORY_CONTEXT, 1);
	put_u32(to, CUPTI_MEMORY_STREAM, 7);
	put_u32(to, is_peer ? CUPTI_PEER_CORRELATION : CUPTI_COPY_CORRELATION, correlation);
	if (work->kind == CUPTI_KIND_MEMSET) {
		uint16_t device = 3;

		put(to, CUPTI_FILL_MEMORY, &device, sizeof(device));
		return;
	}
	to[CUPTI_COPY_KIND] = is_peer ? CUPTI_COPY_PTOP : CUPTI_COPY_HTOD;
	to[CUPTI_COPY_FROM] = is_peer ? 3 : 1;
	to[CUPTI_COPY_TO] = 3;
}

static void make_record(const struct stand_in_work *work, uint32_t correlation)
{
	size_t bytes = length_of(work->kind);
	uint8_t *at;

	if (!filling || filling->valid + bytes > filling->bytes)
		filling = make_buffer();
	if (!filling || record_count == RECORDS) {
		state.dropped++;
		return;
	}
	at = filling->memory + filling->valid;
	if (work->kind == CUPTI_KIND_CONCURRENT_KERNEL)
		put_kernel(at, work, correlation);
	else
		put_memory(at, work, correlation);
	records[record_count++] = (struct record){ filling, at, work->kind, false };
	filling->valid += bytes;
	filling->incomplete++;
}

static void complete_record(struct record *record, uint64_t start, uint64_t end)
{
	if (record->is_complete)
		return;
	put(record->at, CUPTI_AT_START, &start, sizeof(start));
	put(record->at, CUPTI_AT_END, &end, sizeof(end));
	put_u32(record->at, CUPTI_AT_KIND, record->kind);
	record->in->incomplete--;
	record->is_complete = true;
}

static void complete(uint32_t count, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&lock);
	for (; count && complete_count < record_count; count--)
		complete_record(&records[complete_count++], start, end);
	pthread_mutex_unlock(&lock);
}

static void complete_one(uint32_t index, uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&lock);
	complete_record(&records[index], start, end);
	pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

static void call_back(uint32_t domain, uint32_t number, const void *data)
{
	if (subscriber && is_on[domain][number])
		subscriber(subscriber_data, domain, number, data);
}

static bool is_called_back(uint32_t domain, uint32_t number)
{
	return is_on[domain][number];
}

static uint32_t call(const struct stand_in_work *work)
{
	int result = work->result;
	struct cupti_call data = { .site = CUPTI_ENTER,
				   .function = "stand-in",
				   .correlation = __atomic_add_fetch(&last_correlation, 1,
								     __ATOMIC_RELAXED),
				   .result = &result };

	call_back(CUPTI_DOMAIN_DRIVER, work->number, &data);
	pthread_mutex_lock(&lock);
	if (work->kind && state.kinds[work->kind])
		make_record(work, data.correlation);
	pthread_mutex_unlock(&lock);
	data.site = CUPTI_EXIT;
	call_back(CUPTI_DOMAIN_DRIVER, work->number, &data);
	return data.correlation;
}

static void resource(uint32_t number, const void *data)
{
	call_back(CUPTI_DOMAIN_RESOURCE, number, data);
}

static void graph_node(void *node, void *original)
{
	struct cupti_graph graph = { .node = node, .original_node = original };
	struct cupti_resource of = { .descriptor = &graph };

	resource(original ? CUPTI_NODE_CLONED : CUPTI_NODE_CREATED, &of);
}

/* ---- CUPTI's functions ---- */

static void called(void)
{
	__atomic_add_fetch(&state.late, state.finalized != 0, __ATOMIC_RELAXED);
}

int cuptiGetVersion(uint32_t *version)
{
	*version = state.version;
	return CUPTI_OK;
}

int cuptiGetResultString(uint32_t result, const char **text)
{
	*text = result ? "an error of the \"stand-in\"" : "";
	return CUPTI_OK;
}

int cuptiGetTimestamp(uint64_t *ns)
{
	called();
	*ns = state.timestamp ? state.timestamp() : 1;
	return CUPTI_OK;
}

int cuptiSubscribe(void **ret_subscriber, cupti_callback callback, void *data)
{
	if (state.subscribe_result)
		return state.subscribe_result;
	if (subscriber)
		return CUPTI_OTHER_SUBSCRIBER;
	subscriber = callback;
	subscriber_data = data;
	*ret_subscriber = &subscriber;
	state.subscriptions++;
	return CUPTI_OK;
}

int cuptiSubscribe_v2(void **ret_subscriber, cupti_callback callback, void *data, void *parameters)
{
	(void)parameters;
	return cuptiSubscribe(ret_subscriber, callback, data);
}

int cuptiUnsubscribe(void *of)
{
	if (of != &subscriber)
		return CUPTI_INVALID_PARAMETER;
	subscriber = NULL;
	return CUPTI_OK;
}

int cuptiEnableCallback(uint32_t on, void *of, uint32_t domain, uint32_t number)
{
	if (of != &subscriber || domain >= DOMAINS || number >= NUMBERS)
		return CUPTI_INVALID_PARAMETER;
	is_on[domain][number] = on != 0;
	return CUPTI_OK;
}

int cuptiEnableDomain(uint32_t on, void *of, uint32_t domain)
{
	if (of != &subscriber || domain >= DOMAINS)
		return CUPTI_INVALID_PARAMETER;
	memset(is_on[domain], on != 0, sizeof(is_on[domain]));
	return CUPTI_OK;
}

int cuptiEnableAllDomains(uint32_t on, void *of)
{
	(void)on, (void)of;
	return CUPTI_INVALID_PARAMETER;
}

int cuptiGetCallbackState(uint32_t *on, void *of, uint32_t domain, uint32_t number)
{
	(void)of;
	*on = is_on[domain][number];
	return CUPTI_OK;
}

int cuptiActivityRegisterCallbacks(cupti_requested request, cupti_completed give)
{
	requested = request;
	completed = give;
	state.registered++;
	return CUPTI_OK;
}

int cuptiActivityRegisterTimestampCallback(cupti_timestamp timestamp)
{
	state.timestamp = timestamp;
	return timestamp ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

int cuptiActivityEnable(uint32_t kind)
{
	if (state.enable_result)
		return state.enable_result;
	state.kinds[kind] = 1;
	return CUPTI_OK;
}

int cuptiActivityEnableAndDump(uint32_t kind)
{
	return cuptiActivityEnable(kind);
}

int cuptiActivityDisable(uint32_t kind)
{
	state.kinds[kind] = 0;
	return CUPTI_OK;
}

int cuptiActivityEnableContext(void *context, uint32_t kind)
{
	(void)context;
	return cuptiActivityEnable(kind);
}

int cuptiActivityDisableContext(void *context, uint32_t kind)
{
	(void)context;
	return cuptiActivityDisable(kind);
}

int cuptiActivityFlushAll(uint32_t flag)
{
	called();
	__atomic_add_fetch(&state.flushing, 1, __ATOMIC_SEQ_CST);
	usleep(state.flush_us);
	pthread_mutex_lock(&lock);
	state.flushes++;
	state.forced += flag != 0;
	for (int i = 0; i < BUFFERS; i++) {
		struct buffer *buffer = &buffers[i];

		if (!buffer->memory || (!flag && (buffer->incomplete || state.keeps_going)))
			continue;
		if (filling == buffer)
			filling = NULL;
		state.outstanding--;
		completed(NULL, 0, buffer->memory, buffer->bytes, buffer->valid);
		buffer->memory = NULL;
	}
	pthread_mutex_unlock(&lock);
	__atomic_sub_fetch(&state.flushing, 1, __ATOMIC_SEQ_CST);
	return CUPTI_OK;
}

int cuptiActivityFlush(void *context, uint32_t stream, uint32_t flag)
{
	(void)context, (void)stream;
	return cuptiActivityFlushAll(flag);
}

int cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return CUPTI_OK;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *at)
{
	if (attribute == CUPTI_ATTRIBUTE_ZEROED && *bytes == 1)
		memcpy(&state.zeroed, at, 1);
	return CUPTI_OK;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record;
	uint32_t kind;

	called();
	if (at) {
		memcpy(&kind, at, sizeof(kind));
		at += length_of(kind);
	} else {
		at = buffer;
	}
	if (at >= buffer + valid)
		return CUPTI_LIMIT_REACHED;
	memcpy(&kind, at, sizeof(kind));
	if (!kind)
		return CUPTI_INVALID_KIND;
	*record = at;
	__atomic_add_fetch(&state.walked, 1, __ATOMIC_RELEASE);
	return CUPTI_OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	called();
	__atomic_add_fetch(&state.looks, 1, __ATOMIC_RELEASE);
	(void)context, (void)stream;
	*dropped = state.dropped;
	state.dropped = 0;
	return CUPTI_OK;
}

int cuptiGetContextId(void *context, uint32_t *id)
{
	called();
	*id = (uint32_t)(uintptr_t)context;
	return CUPTI_OK;
}

int cuptiGetDeviceId(void *context, uint32_t *id)
{
	(void)context;
	*id = 0;
	return CUPTI_OK;
}

int cuptiGetStreamId(void *context, void *stream, uint32_t *id)
{
	(void)context;
	called();
	*id = stream ? (uint32_t)(uintptr_t)stream : 7;
	return CUPTI_OK;
}

int cuptiGetGraphNodeId(void *node, uint64_t *id)
{
	*id = (uintptr_t)node;
	return CUPTI_OK;
}

int cuptiFinalize(void)
{
	state.overlapping += __atomic_load_n(&state.flushing, __ATOMIC_SEQ_CST);
	state.finalized++;
	subscriber = NULL;
	return CUPTI_OK;
}
