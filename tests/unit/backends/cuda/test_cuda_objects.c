/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, contexts and streams of a program, on a driver that only knows which context is current:
 * who is who, what the stream says of them, and which streams are waited for. The sources run
 * inside programs, so they are included here.
 */
#include "unit/runner.h"

#include <stdarg.h>

#include "backends/cuda/stream/cuda_objects.c" /* NOLINT(bugprone-suspicious-include) */
#include "base/local/stream_text.c"            /* NOLINT(bugprone-suspicious-include) */

/* ---- the driver ---- */

/* Handles of contexts are pointers to these; handles of streams, too. */
struct fake_context {
	int device;
	unsigned int flags;
};
struct fake_stream {
	struct fake_context *context;
	unsigned int flags;
	int priority;
	unsigned int busy; /* so many queries say that it is not empty */
	int capture;       /* what the driver says of it */
	unsigned int queries;
};

static struct fake_context first = { .device = 0, .flags = 8 }, second = { .device = 1 };
static struct fake_stream defaults; /* all default streams */
static __thread struct fake_context *current[4];
static __thread unsigned int depth;
static unsigned int questions; /* about the current context */
static unsigned int synchronized;
static bool is_active; /* the primary context */

static struct fake_stream *stream_at(void *handle)
{
	return (uintptr_t)handle <= CUDA_STREAM_PER_THREAD ? &defaults : handle;
}

static int get_current(void **context)
{
	questions++;
	*context = depth ? current[depth - 1] : NULL;
	return 0;
}

static int get_context_device(int *device)
{
	*device = current[depth - 1]->device;
	return 0;
}

static int get_context_flags(unsigned int *flags)
{
	*flags = current[depth - 1]->flags;
	return 0;
}

static int push(void *context)
{
	TS_CHECK(depth < 4);
	current[depth++] = context;
	return 0;
}

static int pop(void **context)
{
	TS_CHECK(depth > 0);
	*context = current[--depth];
	return 0;
}

static int synchronize(void)
{
	synchronized++;
	return 0;
}

static int get_limit(size_t *value, int limit)
{
	*value = (size_t)(limit + 1) * 1000 + (size_t)current[depth - 1]->device;
	return limit == 5 ? CUDA_NOT_SUPPORTED : 0;
}

static int get_stream_context(void *stream, void **context)
{
	*context = stream_at(stream)->context;
	return *context ? 0 : CUDA_INVALID_HANDLE;
}

static int get_stream_flags(void *stream, unsigned int *flags)
{
	*flags = stream_at(stream)->flags;
	return 0;
}

static int get_stream_priority(void *stream, int *priority)
{
	*priority = stream_at(stream)->priority;
	return 0;
}

static int query_stream(void *stream)
{
	struct fake_stream *found = stream_at(stream);

	TS_CHECK(!found->capture);
	found->queries++;
	if (!found->busy)
		return 0;
	found->busy--;
	return CUDA_NOT_READY;
}

static int finish_stream_of(void *stream)
{
	struct fake_stream *found = stream_at(stream);

	TS_CHECK(!found->capture);
	found->busy = 0;
	return 0;
}

/* Complete after some questions, whatever comes behind it. */
static unsigned int event_left, events;

static int create_event(void **event, unsigned int flags)
{
	*event = &event_left;
	events++;
	return 0;
}

static int record_event(void *event, void *stream)
{
	TS_CHECK(!stream_at(stream)->capture);
	event_left = 3;
	return 0;
}

static int query_event(void *event)
{
	return event_left-- ? CUDA_NOT_READY : 0;
}

static int destroy_event(void *event)
{
	events--;
	return 0;
}

static int is_capturing(void *stream, int *status)
{
	*status = stream_at(stream)->capture;
	return 0;
}

static int get_device_name(char *name, int bytes, int device)
{
	snprintf(name, (size_t)bytes, "GPU %d", device);
	return 0;
}

static int get_uuid(void *uuid, int device)
{
	for (int i = 0; i < 16; i++)
		((uint8_t *)uuid)[i] = (uint8_t)(16 * i + device);
	return 0;
}

static int get_device_attribute(int *value, int attribute, int device)
{
	*value = attribute == ATTRIBUTE_COMPUTE_MAJOR ? 9
		 : attribute == ATTRIBUTE_PAGEABLE    ? device
						      : 0;
	return 0;
}

static int get_memory(size_t *bytes, int device)
{
	*bytes = 5000;
	return 0;
}

static int get_version(int *version)
{
	*version = 13000;
	return 0;
}

static int get_state(int device, unsigned int *flags, int *active)
{
	*active = is_active;
	return 0;
}

struct cuda_driver_functions cu = {
	.CtxGetCurrent = get_current,
	.CtxGetDevice = get_context_device,
	.CtxGetFlags = get_context_flags,
	.CtxPushCurrent = push,
	.CtxPopCurrent = pop,
	.CtxSynchronize = synchronize,
	.CtxGetLimit = get_limit,
	.StreamGetCtx = get_stream_context,
	.StreamGetFlags = get_stream_flags,
	.StreamGetPriority = get_stream_priority,
	.StreamQuery = query_stream,
	.StreamSynchronize = finish_stream_of,
	.StreamIsCapturing = is_capturing,
	.EventCreate = create_event,
	.EventRecord = record_event,
	.EventQuery = query_event,
	.EventDestroy = destroy_event,
	.DeviceGetName = get_device_name,
	.DeviceGetUuid = get_uuid,
	.DeviceGetAttribute = get_device_attribute,
	.DeviceTotalMem = get_memory,
	.DriverGetVersion = get_version,
	.DevicePrimaryCtxGetState = get_state,
};

/* ---- the rest of the capture ---- */

uint32_t cuda_captures;
static unsigned int opened, numbers, memory_gone, modules_gone, forgotten, locked;
static bool has_no_arena, is_awaited;
static int64_t now;
static char prevented[128];
static uint64_t gone; /* the last object */
static struct {
	struct ts_replay_object object;
	char name[96], details[512];
} last;
static struct cuda_call plain = { .name = "plain" }, per_thread = { .name = "call_ptsz" };

/* What the driver answers to the call that a handler makes. */
static struct {
	int result;
	void *context, *stream; /* stored through the first argument; NULL */
	void (*check)(void);
} answer;

bool arena_open(struct capture_device *device)
{
	opened++;
	TS_CHECK(depth > 0 && current[depth - 1]->device == device->ordinal);
	return !has_no_arena;
}

void arena_mode_begin(struct arena_mode *mode)
{
}

void arena_mode_end(struct arena_mode *mode)
{
}

static unsigned int failures;

void capture_fail(const char *format, ...)
{
	(void)format;
	failures++;
}

void capture_prevent(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(prevented, sizeof(prevented), format, arguments);
	va_end(arguments);
}

/* No library of a driver: its release is not known. */
void *cuda_driver(const char *name)
{
	return (void *)get_version;
}

size_t capture_base_name(const char *name)
{
	const char *end = strstr(name, "_v");

	return end ? (size_t)(end - name) : strlen(name);
}

bool capture_is_per_thread(const struct cuda_call *call)
{
	return call == &per_thread;
}

static bool is_open;
static unsigned int snapshots; /* that were waited for */

bool capture_is_open(void)
{
	return is_open;
}

bool snapshot_give_memory_back(const struct capture_device *device)
{
	snapshots++;
	return true;
}

void capture_lock(void)
{
	locked++;
}

void capture_unlock(void)
{
	locked--;
}

void capture_object(const struct ts_replay_object *object)
{
	last.object = *object;
	snprintf(last.name, sizeof(last.name), "%s", object->name ? object->name : "");
	snprintf(last.details, sizeof(last.details), "%s", object->details);
}

void capture_gone(uint64_t number)
{
	gone = number;
}

void capture_memory_context_gone(struct capture_context *context)
{
	memory_gone++;
}

void capture_modules_context_gone(const struct capture_context *context)
{
	modules_gone++;
}

void capture_refused_forget(void)
{
	forgotten++;
}

void capture_stream_settings_describe(const struct capture_stream *stream, struct stream_text *text)
{
}

/* The fourth stream of its context, which is current. */
uint32_t cuda_stream_number(void *stream, uint32_t *ret_context)
{
	TS_CHECK(depth > 0);
	return stream == (void *)CUDA_STREAM_PER_THREAD ? UINT32_MAX : 4;
}

uint64_t ts_replay_new_object(void)
{
	return ++numbers;
}

int64_t ts_replay_clock_ns(void)
{
	return now;
}

void ts_replay_nap(int64_t ns)
{
	now += ns;
}

bool ts_replay_is_awaited(void)
{
	return is_awaited;
}

int cuda_invoke(struct cuda_call *called, const uintptr_t *args)
{
	if (answer.check)
		answer.check();
	if (answer.context)
		*(void **)args[0] = answer.context;
	if (answer.stream)
		*(void **)args[0] = answer.stream;
	return answer.result;
}

/* A call of the program. */
static void run(const char *name, uintptr_t *args)
{
	const struct cuda_handler_entry *entry = capture_object_handlers;

	while (entry->name && strcmp(entry->name, name) != 0)
		entry++;
	TS_CHECK(entry->name && entry->flags & CAPTURE_ALWAYS);
	TS_CHECK_INT(entry->run(&plain, args), answer.result);
	TS_CHECK_INT(locked, 0);
}

static struct capture_context *make_current(struct fake_context *context)
{
	depth = 0;
	push(context);
	return capture_context_current();
}

/* ---- contexts ---- */

TS_TEST(contexts_are_registered_when_they_are_seen)
{
	struct capture_context *a, *b;

	TS_CHECK(!capture_context_current());
	TS_CHECK(!capture_context_next(NULL));
	a = make_current(&first);
	TS_CHECK(a && a->handle == &first && a->device == capture_device_of(0));
	TS_CHECK_INT(a->flags, 8);
	b = make_current(&second);
	TS_CHECK(b != a && b->device == capture_device_of(1));
	TS_CHECK(make_current(&first) == a);
	TS_CHECK_INT(opened, 2);
	TS_CHECK_STR(a->device->name, "GPU 0");
	TS_CHECK(capture_context_next(NULL) == b && capture_context_next(b) == a);
	TS_CHECK(!capture_context_next(a));
	TS_CHECK(!capture_device_of(-1) && !capture_device_of(DEVICES));
}

TS_TEST(without_an_arena_there_are_no_windows)
{
	has_no_arena = true;
	make_current(&second);
	TS_CHECK_STR(prevented,
		     "no fixed address range was free, or device 1 has no virtual memory "
		     "management");
	prevented[0] = 0;
	make_current(&second);
	TS_CHECK_STR(prevented, "");
	TS_CHECK_INT(opened, 1);
}

static void create(const char *name, uintptr_t *args, const char *why)
{
	struct cuda_call call = { .name = name };

	prevented[0] = 0;
	TS_CHECK_INT(handle_create(&call, args), answer.result);
	TS_CHECK_STR(prevented, why);
}

TS_TEST(contexts_of_a_part_of_a_device_prevent_windows)
{
	struct create_params params = { &params, 1, NULL };
	uintptr_t handle, of_v3[] = { (uintptr_t)&handle, (uintptr_t)&params, 1 },
			  of_v4[] = { (uintptr_t)&handle, (uintptr_t)&params };

	make_current(&first);
	create("cuCtxCreate_v2", (uintptr_t[]){ (uintptr_t)&handle, 8, 1 }, "");
	create("cuCtxCreate_v3", (uintptr_t[]){ (uintptr_t)&handle, 0, 0 }, "");
	create("cuCtxCreate_v4", (uintptr_t[]){ (uintptr_t)&handle, 0 }, "");
	create("cuCtxCreate_v3", of_v3, "context with an execution affinity (cuCtxCreate)");
	create("cuCtxCreate_v4", of_v4, "context with an execution affinity (cuCtxCreate)");
	answer.result = CUDA_INVALID_VALUE;
	create("cuCtxCreate_v4", of_v4, "");
	answer.result = 0;
	params = (struct create_params){ .graphics = &params };
	create("cuCtxCreate_v4", of_v4, "context of a graphics interface (cuCtxCreate)");
}

TS_TEST(a_context_takes_its_streams_along)
{
	struct fake_stream of_first = { .context = &first }, of_second = { .context = &second };
	struct capture_context *a = make_current(&first), *b = make_current(&second);
	struct capture_stream *kept;
	uint64_t number;

	capture_stream_of(&plain, (uintptr_t)&of_first);
	kept = capture_stream_of(&plain, (uintptr_t)&of_second);
	capture_objects_describe();
	number = a->number;
	run("cuCtxDestroy", (uintptr_t[]){ (uintptr_t)&first });
	TS_CHECK(a->is_gone && capture_context_next(NULL) == b && !capture_context_next(b));
	TS_CHECK(capture_stream_next(NULL) == kept && !capture_stream_next(kept));
	TS_CHECK(gone == number && !a->number);
	TS_CHECK_INT(memory_gone, 1);
	TS_CHECK_INT(modules_gone, 1);
	TS_CHECK_INT(forgotten, 0);
	/* Another one at the same address is another one. */
	TS_CHECK(make_current(&first) != a);
	/* A call that failed ends nothing; one of an unknown context neither. */
	answer.result = CUDA_INVALID_CONTEXT;
	run("cuCtxDestroy", (uintptr_t[]){ (uintptr_t)&second });
	answer.result = 0;
	run("cuCtxDestroy", (uintptr_t[]){ 0x1234 });
	TS_CHECK_INT(memory_gone, 1);
	run("cuCtxDestroy", (uintptr_t[]){ (uintptr_t)&second });
	run("cuCtxDestroy", (uintptr_t[]){ (uintptr_t)&first });
	TS_CHECK_INT(forgotten, 1);
}

TS_TEST(attached_contexts_end_with_their_last_user)
{
	struct capture_context *context = make_current(&first);
	uintptr_t handle, attached[] = { (uintptr_t)&handle, 0 },
			  of_first[] = { (uintptr_t)&first };

	run("cuCtxAttach", attached);
	run("cuCtxAttach", attached);
	run("cuCtxDetach", of_first);
	run("cuCtxDetach", of_first);
	TS_CHECK(!context->is_gone && !memory_gone);
	run("cuCtxDetach", of_first);
	TS_CHECK(context->is_gone);
	TS_CHECK_INT(memory_gone, 1);
}

TS_TEST(primary_contexts_end_with_their_last_user)
{
	uintptr_t handle, retain[] = { (uintptr_t)&handle, 1 }, release[] = { 1 }, other[] = { 0 };
	struct capture_context *context;

	answer.context = &second;
	run("cuDevicePrimaryCtxRetain", retain);
	answer.context = NULL;
	context = capture_context_next(NULL);
	TS_CHECK(context && context->handle == &second && context->is_primary);
	/* Its device was opened, though it is not current. */
	TS_CHECK_INT(opened, 1);
	TS_CHECK_INT(depth, 0);
	is_active = true;
	run("cuDevicePrimaryCtxRelease", release);
	run("cuDevicePrimaryCtxReset", other);
	TS_CHECK(!context->is_gone);
	is_active = false;
	run("cuDevicePrimaryCtxRelease", release);
	TS_CHECK(context->is_gone);
	answer.context = &second;
	run("cuDevicePrimaryCtxRetain", retain);
	answer.context = NULL;
	context = capture_context_next(NULL);
	run("cuDevicePrimaryCtxReset", release);
	TS_CHECK(context && context->is_gone && !capture_context_next(NULL));
}

static unsigned int expected_snapshots;

static void check_snapshots(void)
{
	TS_CHECK_INT(snapshots, expected_snapshots);
}

TS_TEST(a_snapshot_is_done_before_its_context_ends)
{
	make_current(&first);
	answer.check = check_snapshots;
	run("cuDevicePrimaryCtxRelease", (uintptr_t[]){ 0 });
	is_open = true;
	expected_snapshots = 1;
	run("cuDevicePrimaryCtxRelease", (uintptr_t[]){ 0 });
	expected_snapshots = 2;
	run("cuDevicePrimaryCtxReset", (uintptr_t[]){ 0 });
	run("cuCtxDestroy", (uintptr_t[]){ 0x1234 });
	expected_snapshots = 3;
	run("cuCtxDestroy", (uintptr_t[]){ (uintptr_t)&first });
}

/* ---- streams ---- */

static struct capture_stream *thread_stream;

static void *find_thread_stream(void *context)
{
	make_current(context);
	thread_stream = capture_stream_of(&per_thread, 0);
	TS_CHECK(capture_stream_of(&plain, CUDA_STREAM_PER_THREAD) == thread_stream);
	return NULL;
}

TS_TEST(default_streams_are_told_apart)
{
	struct capture_stream *legacy, *own;
	pthread_t thread;

	TS_CHECK(!capture_stream_of(&plain, 0));
	make_current(&first);
	legacy = capture_stream_of(&plain, 0);
	TS_CHECK(legacy && legacy->handle == CUDA_STREAM_LEGACY);
	TS_CHECK(capture_stream_of(&per_thread, CUDA_STREAM_LEGACY) == legacy);
	own = capture_stream_of(&per_thread, 0);
	TS_CHECK(own && own != legacy && own->handle == CUDA_STREAM_PER_THREAD);
	TS_CHECK_INT(pthread_create(&thread, NULL, find_thread_stream, &first), 0);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	TS_CHECK(thread_stream != own && thread_stream->context == own->context);
	/* Each context has its own. */
	make_current(&second);
	TS_CHECK(capture_stream_of(&plain, 0) != legacy);
	TS_CHECK(capture_stream_of(&per_thread, 0) != own);
	make_current(&first);
	TS_CHECK(capture_stream_of(&plain, 0) == legacy);
	TS_CHECK(capture_stream_of(&per_thread, 0) == own);
}

TS_TEST(the_driver_is_not_asked_where_there_is_one_context)
{
	struct capture_stream *legacy;
	unsigned int before;

	make_current(&first);
	legacy = capture_stream_of(&plain, 0);
	before = questions;
	TS_CHECK(capture_stream_of(&plain, 0) == legacy);
	TS_CHECK_INT(questions, before);
	make_current(&second);
	before = questions;
	TS_CHECK(capture_stream_of(&plain, 0) != legacy);
	TS_CHECK(questions > before);
}

TS_TEST(streams_belong_to_their_context_not_to_the_current_one)
{
	struct fake_stream given = { .context = &second, .flags = 1, .priority = -3 };
	uintptr_t handle = 0, args[] = { (uintptr_t)&handle, 1 };
	struct fake_stream unknown = { 0 };
	struct capture_stream *stream;

	make_current(&first);
	answer.stream = &given;
	run("cuStreamCreate", args);
	stream = capture_stream_next(NULL);
	TS_CHECK(stream && stream->handle == (uintptr_t)&given);
	TS_CHECK(stream->context->handle == &second && stream->context->device->ordinal == 1);
	TS_CHECK_INT(stream->flags, 1);
	TS_CHECK_INT(stream->priority, -3);
	TS_CHECK(capture_stream_of(&per_thread, (uintptr_t)&given) == stream);
	TS_CHECK(!capture_stream_of(&plain, (uintptr_t)&unknown));
	TS_CHECK(!capture_stream_number(&plain, (uintptr_t)&unknown));
	TS_CHECK_INT(depth, 1);
}

static void check_locked(void)
{
	TS_CHECK(locked > 0);
}

TS_TEST(a_handle_that_is_used_again_is_another_stream)
{
	struct fake_stream given = { .context = &first };
	uintptr_t args[] = { (uintptr_t)&given };
	struct capture_stream *stream;
	uint64_t number;

	make_current(&first);
	stream = capture_stream_of(&plain, args[0]);
	number = capture_stream_number(&plain, args[0]);
	answer.result = CUDA_INVALID_HANDLE;
	run("cuStreamDestroy", args);
	TS_CHECK(capture_stream_of(&plain, args[0]) == stream && !gone);
	answer.result = 0;
	/* Another thread could get the handle, and use it before it is known that it was free. */
	answer.check = check_locked;
	run("cuStreamDestroy", args);
	TS_CHECK_INT(gone, number);
	TS_CHECK(capture_stream_of(&plain, args[0]) != stream);
	TS_CHECK(capture_stream_number(&plain, args[0]) != number);
}

/* ---- descriptions ---- */

TS_TEST(objects_are_described_once_in_a_window)
{
	struct capture_context *context = make_current(&first);
	uint64_t device_number, context_number;

	device_number = capture_device_number(context->device);
	TS_CHECK_INT(last.object.kind, TS_OBJECT_DEVICE);
	TS_CHECK_INT(last.object.number, device_number);
	TS_CHECK_STR(last.name, "GPU 0");
	TS_CHECK_STR(last.details,
		     "{\"platform\":\"cuda\",\"index\":0,"
		     "\"uuid\":\"00102030405060708090a0b0c0d0e0f0\",\"compute\":[9,0],"
		     "\"driver\":13000,\"memory\":5000}");
	context->limits = 1u << 0 | 1u << 2 | 1u << 5 | 1u << 9 | 1u << 31;
	context->cache = 2;
	context_number = capture_context_number(context);
	TS_CHECK_INT(last.object.kind, TS_OBJECT_CONTEXT);
	TS_CHECK_INT(last.object.parent, device_number);
	TS_CHECK_STR(last.details, "{\"devices\":[1],\"flags\":8,\"limits\":[[0,1000],[2,3000],"
				   "[9,10000],[31,32000]],\"cache\":2}");
	capture_stream_number(&plain, 0);
	TS_CHECK_INT(last.object.kind, TS_OBJECT_STREAM);
	TS_CHECK_INT(last.object.parent, context_number);
	TS_CHECK_INT(last.object.address, CUDA_STREAM_LEGACY);
	TS_CHECK_STR(last.details, "{\"device\":1,\"index\":4,\"priority\":0,\"flags\":0,"
				   "\"default\":\"legacy\"}");
	TS_CHECK_INT(capture_stream_number(&plain, CUDA_STREAM_LEGACY), 3);
	TS_CHECK_INT(capture_context_number(context), context_number);
	TS_CHECK_INT(capture_device_number(context->device), device_number);
	TS_CHECK_INT(numbers, 3);
	/* Another window: new numbers, for streams that no command has named as well. */
	capture_objects_forget();
	capture_objects_describe();
	TS_CHECK_INT(numbers, 6);
	TS_CHECK_INT(last.object.kind, TS_OBJECT_STREAM);
	TS_CHECK_INT(capture_stream_number(&plain, 0), last.object.number);
	TS_CHECK_INT(depth, 1);
}

TS_TEST(primary_contexts_and_streams_of_threads_say_so)
{
	uintptr_t handle;

	answer.context = &second;
	run("cuDevicePrimaryCtxRetain", (uintptr_t[]){ (uintptr_t)&handle, 1 });
	make_current(&second);
	capture_device_number(capture_device_of(1));
	TS_CHECK(strstr(last.details, ",\"pageable\":true}") != NULL);
	capture_context_number(capture_context_current());
	TS_CHECK_STR(last.details, "{\"devices\":[1],\"primary\":true,\"flags\":0}");
	capture_stream_number(&per_thread, 0);
	TS_CHECK_STR(last.details,
		     "{\"device\":1,\"priority\":0,\"flags\":0,\"default\":\"thread\"}");
}

/* ---- waiting ---- */

TS_TEST(all_streams_of_all_contexts_are_waited_for)
{
	struct fake_stream slow = { .context = &first, .busy = 3 }, idle = { .context = &second };
	char why[64] = "";

	make_current(&first);
	make_current(&second);
	capture_stream_of(&plain, (uintptr_t)&slow);
	capture_stream_of(&plain, (uintptr_t)&idle);
	TS_CHECK(capture_contexts_finish(1000000, why, sizeof(why)));
	TS_CHECK_INT(slow.queries, 4);
	TS_CHECK_INT(idle.queries, 1);
	TS_CHECK_INT(synchronized, 2);
	TS_CHECK_INT(now, 3 * POLL_NS);
	TS_CHECK_INT(depth, 1);
}

TS_TEST(a_stream_that_stays_busy_is_named)
{
	struct fake_stream slow = { .context = &first, .busy = UINT32_MAX };
	char why[64] = "", expected[64];

	make_current(&first);
	capture_stream_of(&plain, (uintptr_t)&slow);
	snprintf(expected, sizeof(expected), "stream %p is not empty", (void *)&slow);
	TS_CHECK(!capture_contexts_finish(20 * POLL_NS, why, sizeof(why)));
	TS_CHECK_STR(why, expected);
	TS_CHECK_INT(now, 20 * POLL_NS);
	TS_CHECK_INT(synchronized, 0);
	/* Somebody waits for us who may be needed to end it. */
	is_awaited = true;
	slow.queries = 0;
	TS_CHECK(!capture_contexts_finish(INT64_MAX, why, sizeof(why)));
	TS_CHECK_INT(slow.queries, 1);
	TS_CHECK_INT(depth, 1);
}

TS_TEST(streams_that_cannot_be_asked_are_left_alone)
{
	struct fake_stream captured = { .context = &first, .capture = CUDA_CAPTURE_ACTIVE };
	struct fake_stream idle = { .context = &first };
	char why[64] = "";
	pthread_t thread;

	make_current(&first);
	/* Of another thread. */
	TS_CHECK_INT(pthread_create(&thread, NULL, find_thread_stream, &first), 0);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	capture_stream_of(&plain, (uintptr_t)&captured);
	capture_stream_of(&plain, (uintptr_t)&idle);
	cuda_captures = 1;
	/* query_stream() checks that it is not asked for one that is captured. */
	TS_CHECK(capture_contexts_finish(1000000, why, sizeof(why)));
	TS_CHECK_INT(defaults.queries, 0);
	TS_CHECK_INT(idle.queries, 1);
	idle.busy = 5;
	capture_stream_finish(capture_stream_of(&plain, (uintptr_t)&idle));
	TS_CHECK(!idle.busy && !failures);
	/* Others go on to fill it: only what it has now is waited for. */
	idle.busy = UINT32_MAX;
	TS_CHECK_INT(capture_context_finish_streams(
			     capture_stream_of(&plain, (uintptr_t)&idle)->context),
		     0);
	TS_CHECK(idle.busy && !events && !defaults.queries);
	/* Nor for one that a copy is waited for in. */
	capture_stream_finish(capture_stream_of(&plain, (uintptr_t)&captured));
	TS_CHECK_INT(failures, 1);
	/* That would end the capture. */
	TS_CHECK_INT(synchronized, 0);
}

TS_TEST(captured_streams)
{
	struct fake_stream stream = { .context = &first, .capture = CUDA_CAPTURE_ACTIVE };

	make_current(&first);
	TS_CHECK(!capture_any_capturing() && !capture_is_capturing((uintptr_t)&stream));
	cuda_captures = 1;
	TS_CHECK(capture_any_capturing() && capture_is_capturing((uintptr_t)&stream));
	defaults.capture = CUDA_CAPTURE_ACTIVE;
	/* Stream 0 is the one of the thread in some programs; the legacy one cannot be captured. */
	TS_CHECK(capture_is_captured(&per_thread, 0));
	TS_CHECK(!capture_is_captured(&plain, 0));
	TS_CHECK(!capture_is_captured(&plain, CUDA_STREAM_LEGACY));
	/* An invalidated capture adds no nodes. */
	stream.capture = 2;
	TS_CHECK(!capture_is_capturing((uintptr_t)&stream));
}
