/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live handles: their kind, attributes and users.
 *
 * Finding an object takes no lock: chains are changed by single stores, and an object's memory
 * stays an object forever. An object that is reused during a lookup may lead into another chain, so
 * a lookup that finds nothing is repeated under the lock.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl_internal.h"

#define BUCKETS 16384u
#define OBJECTS_AT_ONCE 16

static struct ocl_object *buckets[BUCKETS];
static struct ocl_object *spare[OCL_KINDS];
static struct ocl_object *first[OCL_KINDS], *last[OCL_KINDS];
static uint32_t live[OCL_KINDS], numbers[OCL_KINDS];
static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ocl_object **bucket_of(enum ocl_kind kind, const void *handle)
{
	uint64_t hash = ((uint64_t)(uintptr_t)handle >> 4) + (uint64_t)kind;

	return &buckets[hash * UINT64_C(0x9e3779b97f4a7c15) >> 50];
}

/* ---- finding ---- */

static struct ocl_object *walk(enum ocl_kind kind, const void *handle)
{
	struct ocl_object *object = __atomic_load_n(bucket_of(kind, handle), __ATOMIC_ACQUIRE);

	while (object && (__atomic_load_n(&object->handle, __ATOMIC_RELAXED) != handle ||
			  object->kind != kind))
		object = __atomic_load_n(&object->next, __ATOMIC_ACQUIRE);
	return object;
}

struct ocl_object *ocl_find(enum ocl_kind kind, const void *handle)
{
	struct ocl_object *object;

	if (!handle || !__atomic_load_n(&live[kind], __ATOMIC_RELAXED))
		return NULL;
	object = walk(kind, handle);
	if (!object) {
		pthread_mutex_lock(&objects_lock);
		object = walk(kind, handle);
		pthread_mutex_unlock(&objects_lock);
	}
	return object;
}

/* ---- memory ---- */

/* A callback may take a queue's lock on a thread that holds it. */
static void init_locks(struct ocl_object *object)
{
	pthread_mutexattr_t twice;

	pthread_mutexattr_init(&twice);
	pthread_mutexattr_settype(&twice, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&object->lock, &twice);
	pthread_mutexattr_destroy(&twice);
	pthread_mutex_init(&object->looking, NULL);
	pthread_mutex_init(&object->pending_lock, NULL);
}

static bool make_more(enum ocl_kind kind)
{
	struct ocl_object *objects = calloc(OBJECTS_AT_ONCE, sizeof(*objects));

	for (int i = 0; objects && i < OBJECTS_AT_ONCE; i++) {
		objects[i].kind = kind;
		init_locks(&objects[i]);
		objects[i].behind = spare[kind];
		spare[kind] = &objects[i];
	}
	return spare[kind] != NULL;
}

/* Clears everything except kind, locks, and the chain, which another thread may be reading. */
static void clear(struct ocl_object *object)
{
	object->references = 1;
	object->users = 0;
	object->is_gone = false;
	object->before = object->behind = NULL;
	object->context = object->device = NULL;
	object->stream = NULL;
	object->properties = 0;
	object->property_list = NULL;
	object->property_count = 0;
	object->out_of_order = object->has_times = false;
	object->since_look = 0;
	object->site = NULL;
	object->bytes = 0;
	object->clock = NULL;
	object->description = NULL;
}

static struct ocl_object *take(enum ocl_kind kind)
{
	struct ocl_object *object;

	if (!spare[kind] && !make_more(kind))
		return NULL;
	object = spare[kind];
	spare[kind] = object->behind;
	clear(object);
	return object;
}

static void drop_locked(struct ocl_object *object);

/* The object has no users any more. */
static void give_back(struct ocl_object *object)
{
	drop_locked(object->context);
	drop_locked(object->device);
	free(object->property_list);
	free(object->description);
	object->property_list = NULL;
	object->description = NULL;
	object->behind = spare[object->kind];
	spare[object->kind] = object;
}

/* Two deep at most: queue, context. */
static void drop_locked(struct ocl_object *object) /* NOLINT(misc-no-recursion) */
{
	if (object && --object->users == 0 && object->is_gone)
		give_back(object);
}

/* ---- adding and releasing ---- */

static void link_object(struct ocl_object *object)
{
	struct ocl_object **bucket = bucket_of(object->kind, object->handle);

	object->before = last[object->kind];
	if (object->before)
		object->before->behind = object;
	else
		first[object->kind] = object;
	last[object->kind] = object;
	__atomic_store_n(&object->next, *bucket, __ATOMIC_RELAXED);
	__atomic_store_n(bucket, object, __ATOMIC_RELEASE);
	__atomic_fetch_add(&live[object->kind], 1, __ATOMIC_RELEASE);
}

static void unlink_object(struct ocl_object *object)
{
	struct ocl_object **at = bucket_of(object->kind, object->handle);

	while (*at != object)
		at = &(*at)->next;
	__atomic_store_n(at, object->next, __ATOMIC_RELEASE);
	*(object->before ? &object->before->behind : &first[object->kind]) = object->behind;
	*(object->behind ? &object->behind->before : &last[object->kind]) = object->before;
	__atomic_fetch_sub(&live[object->kind], 1, __ATOMIC_RELEASE);
}

struct ocl_object *ocl_add(enum ocl_kind kind, void *handle)
{
	struct ocl_object *object;

	pthread_mutex_lock(&objects_lock);
	object = take(kind);
	if (object) {
		object->number = ++numbers[kind];
		__atomic_store_n(&object->handle, handle, __ATOMIC_RELAXED);
		link_object(object);
	}
	pthread_mutex_unlock(&objects_lock);
	return object;
}

struct ocl_object *ocl_add_in(cl_context context, enum ocl_kind kind, void *handle)
{
	struct ocl_object *object = ocl_add(kind, handle);

	if (object) {
		object->context = ocl_find(OCL_CONTEXT, context);
		ocl_hold(object->context);
	}
	return object;
}

void ocl_retain(enum ocl_kind kind, void *handle)
{
	struct ocl_object *object = ocl_find(kind, handle);

	if (object)
		__atomic_fetch_add(&object->references, 1, __ATOMIC_RELAXED);
}

bool ocl_release(enum ocl_kind kind, void *handle)
{
	struct ocl_object *object = ocl_find(kind, handle);

	if (!object || __atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL))
		return false;
	if (ocl.replayable)
		stream_gone(object);
	pthread_mutex_lock(&objects_lock);
	unlink_object(object);
	__atomic_store_n(&object->is_gone, true, __ATOMIC_RELEASE);
	if (!object->users)
		give_back(object);
	pthread_mutex_unlock(&objects_lock);
	return true;
}

void ocl_each(enum ocl_kind kind, void (*visit)(struct ocl_object *object, void *context),
	      void *context)
{
	pthread_mutex_lock(&objects_lock);
	for (struct ocl_object *object = first[kind]; object; object = object->behind)
		visit(object, context);
	pthread_mutex_unlock(&objects_lock);
}

void ocl_hold(struct ocl_object *object)
{
	if (!object)
		return;
	pthread_mutex_lock(&objects_lock);
	object->users++;
	pthread_mutex_unlock(&objects_lock);
}

void ocl_drop(struct ocl_object *object)
{
	pthread_mutex_lock(&objects_lock);
	drop_locked(object);
	pthread_mutex_unlock(&objects_lock);
}

void ocl_objects_forked(void)
{
	pthread_mutex_init(&objects_lock, NULL);
	for (int kind = 0; kind < OCL_KINDS; kind++)
		for (struct ocl_object *object = first[kind]; object; object = object->behind)
			init_locks(object);
}

/* ---- names of kernels ---- */

#define NAME_BUCKETS 256u

/* Never freed: records refer to it by number. */
struct name {
	struct name *next;
	struct ts_emit_site site;
	char text[];
};

static struct name *names[NAME_BUCKETS];

/* FNV-1a */
static struct name **name_bucket(const char *text)
{
	uint32_t hash = 0x811c9dc5u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x01000193u;
	return &names[hash % NAME_BUCKETS];
}

static struct name *make_name(const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct name *name = malloc(sizeof(*name) + bytes);
	struct ts_emit_site site = TS_GPU_OP_SITE(NULL, "kernel");

	if (!name)
		return NULL;
	memcpy(name->text, text, bytes);
	site.name = name->text;
	name->site = site;
	return name;
}

struct ts_emit_site *ocl_kernel_site(const char *text)
{
	struct name **bucket = name_bucket(text), *name;

	pthread_mutex_lock(&objects_lock);
	for (name = *bucket; name && strcmp(name->text, text) != 0; name = name->next)
		;
	if (!name && (name = make_name(text))) {
		name->next = *bucket;
		*bucket = name;
	}
	pthread_mutex_unlock(&objects_lock);
	return name ? &name->site : NULL;
}
