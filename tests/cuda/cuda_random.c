/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs with known results: launches, copies, fills, streams of all kinds, events,
 * allocations of all kinds, graphs, variables of modules, writes of the host. A model in C runs the
 * same in the order of the calls; commands that touch the same memory are ordered by events or by
 * the rules of the default stream. Exit code 1 if the device has another result.
 *
 *	cuda_random [--seeds A-B] [--threads N] [--operations N] [--without graphs|pinned]
 *
 * Several threads that capture graphs and copy to pinned memory at the same time may do what is not
 * captured (docs/cuda-replay.md, 2.2): they are to do without one of the two.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "cuda/work_driver.h"

WORK_IMAGE(kernels, TS_TESTS_CUDA "/work_kernels.fatbin");

#define WORDS 600u
#define BYTES (WORDS * 4)
#define BUFFERS 14
#define STREAMS 6
#define PAGE ((size_t)2 << 20)

enum kind { PLAIN, LARGE, ASYNC, POOL, VIRTUAL, PINNED, REGISTERED, KINDS };
struct buffer {
	bool is_live;
	enum kind kind;
	uint64_t base, address; /* of the allocation, of the words */
	unsigned long long handle;
	uint32_t *host; /* pinned, registered */
	uint32_t model[WORDS];
	void *written, *read[STREAMS]; /* events of the last commands; NULL: the host knows */
	int writer;
};

enum { FILL, ADD, MIX, COPY, SET8, SET32, RECTANGLE, POINTERS, WORKS };
struct work {
	int kind;
	struct buffer *to, *from, *other;
	uint32_t value;
};

struct program {
	uint64_t state;
	void *context, *module, *pool;
	void *streams[STREAMS];
	struct buffer buffers[BUFFERS];
	struct buffer table;   /* two addresses */
	struct buffer globals; /* `words` and `sums`: only for their order */
	uint64_t words[16], sums[16];
	void *events[4096];
	size_t event_count;
	uint64_t given;
};

static bool has_graphs = true, has_pinned = true;
static int threads = 1;
static pthread_rwlock_t captures = PTHREAD_RWLOCK_INITIALIZER;

static uint32_t draw(struct program *program, uint32_t below)
{
	uint64_t x = program->state += 0x9E3779B97F4A7C15;

	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return (uint32_t)((x ^ (x >> 31)) % below);
}

/* ---- order ---- */

/* 0: legacy, 1 and 2: blocking, 3 and 4: not, 5: of the thread, which is blocking, too */
static bool is_ordered(int before, int after)
{
	if (before == after)
		return true;
	return (before == 0 && after != 3 && after != 4) ||
	       (after == 0 && before != 3 && before != 4);
}

static void wait_event(struct program *program, int before, void *event, int after)
{
	if (event && !is_ordered(before, after))
		CHECK(cuStreamWaitEvent(program->streams[after], event, 0));
}

static void before_read(struct program *program, struct buffer *buffer, int stream)
{
	wait_event(program, buffer->writer, buffer->written, stream);
}

static void before_write(struct program *program, struct buffer *buffer, int stream)
{
	before_read(program, buffer, stream);
	for (int i = 0; i < STREAMS; i++)
		wait_event(program, i, buffer->read[i], stream);
}

static void *event_after(struct program *program, int stream)
{
	void *event = program->events[program->event_count++ % 4096];

	CHECK(cuEventRecord(event, program->streams[stream]));
	return event;
}

static void was_written(struct buffer *buffer, int stream, void *event)
{
	buffer->written = event;
	buffer->writer = stream;
	memset(buffer->read, 0, sizeof(buffer->read));
}

/* The host waits until nothing uses it. */
static void settle(struct buffer *buffer)
{
	if (buffer->written)
		CHECK(cuEventSynchronize(buffer->written));
	for (int i = 0; i < STREAMS; i++) {
		if (buffer->read[i])
			CHECK(cuEventSynchronize(buffer->read[i]));
		buffer->read[i] = NULL;
	}
	buffer->written = NULL;
}

/* ---- memory ---- */

static void buffer_new(struct program *program, struct buffer *buffer)
{
	const struct cuda_allocation_prop prop = { .type = 1, .location = { 1, 0 } };
	const struct cuda_access access = { .location = { 1, 0 }, .flags = 3 };
	int stream = (int)draw(program, STREAMS);

	memset(buffer, 0, sizeof(*buffer));
	buffer->kind = (enum kind)draw(program, has_pinned ? KINDS : PINNED);
	switch (buffer->kind) {
	case PLAIN:
		CHECK(cuMemAlloc_v2(&buffer->base, BYTES));
		break;
	case LARGE:
		CHECK(cuMemAlloc_v2(&buffer->base, PAGE + 4096));
		break;
	case ASYNC:
		CHECK(cuMemAllocAsync(&buffer->base, BYTES, program->streams[stream]));
		break;
	case POOL:
		CHECK(cuMemAllocFromPoolAsync(&buffer->base, BYTES, program->pool,
					      program->streams[stream]));
		break;
	case VIRTUAL:
		CHECK(cuMemAddressReserve(&buffer->base, PAGE, 0, 0, 0));
		CHECK(cuMemCreate(&buffer->handle, PAGE, &prop, 0));
		CHECK(cuMemMap(buffer->base, PAGE, 0, buffer->handle, 0));
		CHECK(cuMemSetAccess(buffer->base, PAGE, &access, 1));
		break;
	case PINNED:
		CHECK(cuMemHostAlloc((void **)&buffer->host, BYTES, 2));
		buffer->base = (uintptr_t)buffer->host;
		break;
	default:
		if (posix_memalign((void **)&buffer->host, 4096, 4096))
			abort();
		CHECK(cuMemHostRegister_v2(buffer->host, 4096, 2));
		buffer->base = (uintptr_t)buffer->host;
		break;
	}
	buffer->address = buffer->base + (buffer->kind == LARGE ? PAGE - 1024 : 0);
	if (buffer->kind == ASYNC || buffer->kind == POOL)
		was_written(buffer, stream, event_after(program, stream));
	buffer->is_live = true;
	/* Its contents are not known yet. */
	before_write(program, buffer, stream);
	CHECK(cuMemsetD8Async(buffer->address, (unsigned char)stream, BYTES,
			      program->streams[stream]));
	was_written(buffer, stream, event_after(program, stream));
	memset(buffer->model, stream, BYTES);
}

static void buffer_free(struct program *program, struct buffer *buffer)
{
	int stream = (int)draw(program, STREAMS);

	if (!buffer->is_live)
		return;
	if (buffer->kind == ASYNC || buffer->kind == POOL) {
		before_write(program, buffer, stream);
		CHECK(cuMemFreeAsync(buffer->base, program->streams[stream]));
		buffer->is_live = false;
		return;
	}
	settle(buffer);
	switch (buffer->kind) {
	case VIRTUAL:
		CHECK(cuMemUnmap(buffer->base, PAGE));
		CHECK(cuMemRelease(buffer->handle));
		CHECK(cuMemAddressFree(buffer->base, PAGE));
		break;
	case PINNED:
		CHECK(cuMemFreeHost(buffer->host));
		break;
	case REGISTERED:
		CHECK(cuMemHostUnregister(buffer->host));
		free(buffer->host);
		break;
	default:
		CHECK(cuMemFree_v2(buffer->base));
		break;
	}
	buffer->is_live = false;
}

/* ---- work ---- */

static uint32_t mixed(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

static void model(const struct work *work)
{
	uint32_t *to = work->to->model;
	const uint32_t *from = work->from->model, *other = work->other->model;

	for (uint32_t i = 0; i < WORDS; i++) {
		switch (work->kind) {
		case FILL:
			to[i] = work->value + i;
			break;
		case ADD:
			to[i] = from[i] + other[i];
			break;
		case MIX:
			to[i] = mixed(from[i] ^ mixed(to[i] + work->value + i));
			break;
		case SET8:
			to[i] = (work->value & 255) * 0x01010101;
			break;
		case SET32:
			to[i] = i < WORDS / 2 ? work->value : to[i];
			break;
		case POINTERS:
			to[i] = from[i] + 1;
			break;
		default:
			break;
		}
	}
	if (work->kind == COPY)
		memmove(to, from, BYTES);
	/* Rows of 16 of 24 words. */
	for (uint32_t row = 0; row < 20 && work->kind == RECTANGLE; row++)
		memmove(to + row * 24, from + row * 24 + 4, 64);
}

static void *function(struct program *program, const char *name)
{
	void *found;

	CHECK(cuModuleGetFunction(&found, program->module, name));
	return found;
}

static void launch(struct program *program, const char *name, int stream, void **params)
{
	CHECK(cuLaunchKernel(function(program, name), 1 + draw(program, 4), 1, 1, 64, 1, 1, 0,
			     program->streams[stream], params, NULL));
}

/* Only the calls. */
static void give(struct program *program, const struct work *work, int number)
{
	uint64_t to = work->to->address, from = work->from->address, other = work->other->address;
	uint64_t table = program->table.address, pair[2] = { to, from };
	uint32_t value = work->value, words = WORDS;
	void *stream = program->streams[number];
	const struct cuda_copy_2d rectangle = {
		.from_type = 4,
		.from_device = from,
		.from_pitch = 96,
		.from_x = 16,
		.to_type = 4,
		.to_device = to,
		.to_pitch = 96,
		.width = 64,
		.height = 20,
	};

	program->given++;
	switch (work->kind) {
	case FILL:
		launch(program, "fill", number, (void *[]){ &to, &value, &words });
		break;
	case ADD:
		launch(program, "add", number, (void *[]){ &to, &from, &other, &words });
		break;
	case MIX:
		launch(program, "mix", number, (void *[]){ &to, &from, &value, &words });
		break;
	case COPY:
		CHECK(cuMemcpyAsync(to, from, BYTES, stream));
		break;
	case SET8:
		CHECK(cuMemsetD8Async(to, (unsigned char)value, BYTES, stream));
		break;
	case SET32:
		CHECK(cuMemsetD32Async(to, value, WORDS / 2, stream));
		break;
	case RECTANGLE:
		CHECK(cuMemcpy2DAsync_v2(&rectangle, stream));
		break;
	default:
		CHECK(cuMemcpyHtoDAsync_v2(table, pair, sizeof(pair), stream));
		launch(program, "copy_through_pointer", number, (void *[]){ &table, &words });
		break;
	}
}

static struct buffer *pick(struct program *program)
{
	for (;;) {
		struct buffer *buffer = &program->buffers[draw(program, BUFFERS)];

		if (buffer->is_live)
			return buffer;
	}
}

static struct work draw_work(struct program *program, uint32_t kinds)
{
	struct work work;

	work.kind = (int)draw(program, kinds);
	work.to = pick(program);
	/* Copies and kernels whose threads read what others write need two buffers. */
	do {
		work.from = pick(program);
	} while (work.from == work.to);
	work.other = pick(program);
	work.value = draw(program, 1u << 31);
	return work;
}

static void wait_for_work(struct program *program, const struct work *work, int stream)
{
	before_write(program, work->to, stream);
	before_read(program, work->from, stream);
	before_read(program, work->other, stream);
	if (work->kind == POINTERS)
		before_write(program, &program->table, stream);
}

static void finish_work(struct program *program, const struct work *work, int stream, void *event)
{
	work->from->read[stream] = event;
	work->other->read[stream] = event;
	was_written(work->to, stream, event);
	if (work->kind == POINTERS)
		was_written(&program->table, stream, event);
}

static void do_work(struct program *program)
{
	struct work work = draw_work(program, WORKS);
	int stream = (int)draw(program, STREAMS);

	wait_for_work(program, &work, stream);
	give(program, &work, stream);
	model(&work);
	finish_work(program, &work, stream, event_after(program, stream));
}

/* To wait for a context ends all captures in it. */
static void finish_context(void)
{
	pthread_rwlock_wrlock(&captures);
	CHECK(cuCtxSynchronize());
	pthread_rwlock_unlock(&captures);
}

/* Other threads use the default stream, which ends captures of streams that it waits for. */
static int draw_captured(struct program *program)
{
	return threads > 1 ? 3 + (int)draw(program, 2) : 1 + (int)draw(program, STREAMS - 1);
}

/* Some work, captured in one or two streams, or a graph that was changed; it runs some times. */
static void do_graph(struct program *program)
{
	struct work works[8];
	size_t count = 2 + draw(program, 6);
	int stream = draw_captured(program), other = draw_captured(program);
	void *graph, *exec, *event, *back;
	uint64_t result[3];
	bool must_instantiate = true;

	for (size_t i = 0; i < count; i++)
		works[i] = draw_work(program, POINTERS);
	for (int round = 0; round < 1 + (int)draw(program, 2); round++) {
		CHECK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
		CHECK(cuEventCreate(&back, CUDA_EVENT_DISABLE_TIMING));
		pthread_rwlock_rdlock(&captures);
		CHECK(cuStreamBeginCapture_v2(program->streams[stream], 2));
		for (size_t i = 0; i < count; i++) {
			bool is_aside = other != stream && i == 1;

			works[i].value += (uint32_t)round;
			if (is_aside) {
				CHECK(cuEventRecord(event, program->streams[stream]));
				CHECK(cuStreamWaitEvent(program->streams[other], event, 0));
			}
			give(program, &works[i], is_aside ? other : stream);
			if (is_aside) {
				CHECK(cuEventRecord(back, program->streams[other]));
				CHECK(cuStreamWaitEvent(program->streams[stream], back, 0));
			}
		}
		CHECK(cuStreamEndCapture(program->streams[stream], &graph));
		pthread_rwlock_unlock(&captures);
		/* A driver may refuse an update; then the executable is as it was. */
		if (round && cuGraphExecUpdate_v2(exec, graph, result)) {
			finish_context();
			CHECK(cuGraphExecDestroy(exec));
			must_instantiate = true;
		}
		if (must_instantiate)
			CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		must_instantiate = false;
		CHECK(cuGraphDestroy(graph));
		CHECK(cuEventDestroy_v2(event));
		CHECK(cuEventDestroy_v2(back));
		for (uint32_t times = 1 + draw(program, 3); times; times--) {
			int in = (int)draw(program, STREAMS);
			void *done;

			for (size_t i = 0; i < count; i++)
				wait_for_work(program, &works[i], in);
			CHECK(cuGraphLaunch(exec, program->streams[in]));
			done = event_after(program, in);
			for (size_t i = 0; i < count; i++)
				model(&works[i]);
			/* Reads first: a write forgets them. */
			for (size_t i = 0; i < count; i++) {
				works[i].from->read[in] = done;
				works[i].other->read[in] = done;
			}
			for (size_t i = 0; i < count; i++)
				was_written(works[i].to, in, done);
			for (size_t i = 0; i < count; i++)
				program->given++;
		}
	}
	if (draw(program, 2))
		finish_context();
	CHECK(cuGraphExecDestroy(exec));
}

static bool same(const struct program *program, const struct buffer *buffer, const uint32_t *got)
{
	for (uint32_t i = 0; i < WORDS; i++) {
		if (got[i] == buffer->model[i])
			continue;
		fprintf(stderr, "buffer %zu (kind %d): word %u is %#x, not %#x\n",
			(size_t)(buffer - program->buffers), (int)buffer->kind, i, got[i],
			buffer->model[i]);
		return false;
	}
	return true;
}

/* Reads it in some way; false: it has other contents than the model. */
static bool do_read(struct program *program, struct buffer *buffer)
{
	uint32_t got[WORDS];
	int stream = (int)draw(program, STREAMS);

	if (buffer->host && draw(program, 2)) {
		if (buffer->written)
			CHECK(cuEventSynchronize(buffer->written));
		return same(program, buffer, buffer->host);
	}
	before_read(program, buffer, stream);
	CHECK(cuMemcpyAsync((uintptr_t)got, buffer->address, BYTES, program->streams[stream]));
	CHECK(cuStreamSynchronize(program->streams[stream]));
	return same(program, buffer, got);
}

static void do_write(struct program *program, struct buffer *buffer)
{
	uint32_t values[WORDS], from = draw(program, WORDS), seed = draw(program, 1u << 31);
	uint32_t count = 1 + draw(program, WORDS - from);
	int stream = (int)draw(program, STREAMS);

	for (uint32_t i = 0; i < count; i++)
		values[i] = mixed(seed + i);
	if (buffer->host) {
		/* Without a call. */
		settle(buffer);
		memcpy(buffer->host + from, values, count * sizeof(values[0]));
	} else {
		before_write(program, buffer, stream);
		CHECK(cuMemcpyHtoDAsync_v2(buffer->address + from * 4ull, values,
					   count * sizeof(values[0]), program->streams[stream]));
		was_written(buffer, stream, event_after(program, stream));
	}
	memcpy(buffer->model + from, values, count * sizeof(values[0]));
	memset(values, 0xcc, sizeof(values));
}

static bool do_globals(struct program *program)
{
	int stream = (int)draw(program, STREAMS);
	struct buffer *in = pick(program);
	uint64_t address, got[16];
	size_t bytes;

	before_write(program, &program->globals, stream);
	if (draw(program, 3)) {
		before_read(program, in, stream);
		launch(program, "add_to_global", stream, (void *[]){ &in->address });
		for (int i = 0; i < 16; i++) {
			uint64_t value;

			memcpy(&value, in->model + 2 * i, sizeof(value));
			program->words[i] += value;
			program->sums[i] += program->words[i];
		}
		in->read[stream] = event_after(program, stream);
		was_written(&program->globals, stream, in->read[stream]);
		return true;
	}
	CHECK(cuModuleGetGlobal_v2(&address, &bytes, program->module, "sums"));
	CHECK(cuMemcpyDtoHAsync_v2(got, address, sizeof(got), program->streams[stream]));
	CHECK(cuStreamSynchronize(program->streams[stream]));
	return !memcmp(got, program->sums, sizeof(got));
}

static bool operate(struct program *program)
{
	uint32_t what = draw(program, 100);
	struct buffer *buffer = pick(program);
	int stream = (int)draw(program, STREAMS);

	if (what < 55) {
		do_work(program);
	} else if (what < 65) {
		do_write(program, buffer);
	} else if (what < 72) {
		return do_read(program, buffer);
	} else if (what < 80) {
		return do_globals(program);
	} else if (what < 85) {
		if (has_graphs)
			do_graph(program);
	} else if (what < 92) {
		buffer_free(program, buffer);
		buffer_new(program, buffer);
	} else if (what < 97) {
		CHECK(cuStreamSynchronize(program->streams[stream]));
	} else {
		finish_context();
	}
	return true;
}

static uint32_t operations = 60;
static uint64_t first_seed = 1, last_seed = 10;
static void *context;
static int64_t step_count;

static bool run(struct program *program, uint64_t seed)
{
	static const uint64_t digits[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
	bool is_right = true;

	program->state = seed * 1000003;
	memset(&program->globals, 0, sizeof(program->globals));
	memcpy(program->words, digits, sizeof(digits));
	memset(program->sums, 0, sizeof(program->sums));
	CHECK(cuModuleLoadData(&program->module, kernels));
	for (size_t i = 0; i < BUFFERS; i++)
		buffer_new(program, &program->buffers[i]);
	for (uint32_t i = 0; i < operations && is_right; i++) {
		if (i % 10 == 0)
			work_step(__atomic_add_fetch(&step_count, 1, __ATOMIC_RELAXED));
		is_right = operate(program);
	}
	for (size_t i = 0; i < BUFFERS; i++) {
		is_right = is_right && do_read(program, &program->buffers[i]);
		buffer_free(program, &program->buffers[i]);
	}
	finish_context();
	CHECK(cuModuleUnload(program->module));
	return is_right;
}

static void *run_some(void *argument)
{
	/* CUmemPoolProps: type, handle types, location, ... */
	const uint32_t props[22] = { 1, 0, 1, 0 };
	struct program *program = calloc(1, sizeof(*program));
	bool is_right = true;

	CHECK(cuCtxSetCurrent(context));
	program->context = context;
	CHECK(cuMemPoolCreate(&program->pool, props));
	program->streams[0] = NULL;
	CHECK(cuStreamCreate(&program->streams[1], 0));
	CHECK(cuStreamCreate(&program->streams[2], 0));
	CHECK(cuStreamCreate(&program->streams[3], CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreateWithPriority(&program->streams[4], CUDA_STREAM_NON_BLOCKING, -1));
	program->streams[5] = (void *)CUDA_STREAM_PER_THREAD;
	for (size_t i = 0; i < 4096; i++)
		CHECK(cuEventCreate(&program->events[i], CUDA_EVENT_DISABLE_TIMING));
	CHECK(cuMemAlloc_v2(&program->table.address, 16));
	for (uint64_t seed = first_seed + (uintptr_t)argument; seed <= last_seed && is_right;
	     seed += (uint64_t)threads) {
		is_right = run(program, seed);
		printf("seed %llu: %s\n", (unsigned long long)seed, is_right ? "right" : "WRONG");
	}
	for (size_t i = 0; i < 4096; i++)
		CHECK(cuEventDestroy_v2(program->events[i]));
	return is_right ? NULL : program;
}

int main(int argc, char **argv)
{
	pthread_t ids[8];
	bool is_right = true;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seeds")) {
			first_seed = last_seed = strtoull(argv[i + 1], NULL, 10);
			if (strchr(argv[i + 1], '-'))
				last_seed = strtoull(strchr(argv[i + 1], '-') + 1, NULL, 10);
		} else if (!strcmp(argv[i], "--threads")) {
			threads = (int)strtol(argv[i + 1], NULL, 10);
		} else if (!strcmp(argv[i], "--operations")) {
			operations = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		} else if (!strcmp(argv[i], "--without")) {
			has_graphs = has_graphs && strcmp(argv[i + 1], "graphs");
			has_pinned = has_pinned && strcmp(argv[i + 1], "pinned");
		}
	}
	if (threads < 1 || threads > 8)
		return 2;
	if (cuInit(0)) {
		fprintf(stderr, "no CUDA device\n");
		return 77;
	}
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&ids[i], NULL, run_some, (void *)(intptr_t)i))
			return 2;
	}
	for (int i = 0; i < threads; i++) {
		void *wrong;

		pthread_join(ids[i], &wrong);
		is_right = is_right && !wrong;
	}
	return is_right ? 0 : 1;
}
