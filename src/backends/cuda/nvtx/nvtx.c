/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that NVTX v3 calls (docs/cuda.md, section 4.1). Every library that uses NVTX has
 * its own copy of it, which loads this library through NVTX_INJECTION64_PATH at its first call and
 * lets it fill in its function table.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tracesmith/accelerator.h>

#include "backends/cuda/cuda_internal.h"
#include "backends/cuda/nvtx/nvtx.h"

#define NVTX_VERSION_3 3u

/* ---- arguments to events ---- */

/* `buffer` holds the text if it was wide. */
static struct nvtx_event plain(enum nvtx_kind kind, int type, union nvtx_text text, char *buffer)
{
	return (struct nvtx_event){ .kind = kind,
				    .domain = nvtx_domain_of(NULL),
				    .name = nvtx_name_of(type, text, buffer) };
}

/* Attributes of an unknown older version have nothing that we can use. */
static struct nvtx_event rich(enum nvtx_kind kind, const void *domain,
			      const struct nvtx_attributes *attributes, char *buffer)
{
	struct nvtx_event event = { .kind = kind, .domain = nvtx_domain_of(domain) };
	bool is_known = attributes && attributes->size >= sizeof(*attributes);
	union nvtx_text none = { NULL };

	event.name = is_known ? nvtx_name_of(attributes->text_type, attributes->text, buffer)
			      : nvtx_name_of(0, none, buffer);
	if (is_known)
		nvtx_values_of(event.domain, attributes, &event.values);
	return event;
}

static struct nvtx_event ascii(enum nvtx_kind kind, const char *text)
{
	return plain(kind, NVTX_TEXT_ASCII, (union nvtx_text){ .ascii = text }, NULL);
}

static struct nvtx_event wide(enum nvtx_kind kind, const wchar_t *text, char *buffer)
{
	return plain(kind, NVTX_TEXT_WIDE, (union nvtx_text){ .wide = text }, buffer);
}

/* ---- marks ---- */

static void mark(const struct nvtx_event *event)
{
	if (ts_enabled())
		nvtx_emit(event);
}

static void mark_a(const char *text)
{
	struct nvtx_event event = ascii(NVTX_KIND_INSTANT, text);

	mark(&event);
}

static void mark_w(const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_event event = wide(NVTX_KIND_INSTANT, text, buffer);

	mark(&event);
}

static void domain_mark_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_event event = rich(NVTX_KIND_INSTANT, domain, attributes, buffer);

	mark(&event);
}

static void mark_ex(const struct nvtx_attributes *attributes)
{
	domain_mark_ex(NULL, attributes);
}

/* ---- ranges of a thread ---- */

static int push_a(const char *text)
{
	struct nvtx_event event = ascii(NVTX_KIND_BEGIN, text);

	return nvtx_push(&event);
}

static int push_w(const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_event event = wide(NVTX_KIND_BEGIN, text, buffer);

	return nvtx_push(&event);
}

static int domain_push_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_event event = rich(NVTX_KIND_BEGIN, domain, attributes, buffer);

	return nvtx_push(&event);
}

static int push_ex(const struct nvtx_attributes *attributes)
{
	return domain_push_ex(NULL, attributes);
}

static int domain_pop(const void *domain)
{
	return nvtx_pop(nvtx_domain_of(domain));
}

static int pop(void)
{
	return domain_pop(NULL);
}

/* ---- ranges across threads ---- */

static uint64_t start_a(const char *text)
{
	struct nvtx_event event = ascii(NVTX_KIND_SPAN, text);

	return nvtx_start(&event);
}

static uint64_t start_w(const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_event event = wide(NVTX_KIND_SPAN, text, buffer);

	return nvtx_start(&event);
}

static uint64_t domain_start_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_event event = rich(NVTX_KIND_SPAN, domain, attributes, buffer);

	return nvtx_start(&event);
}

static uint64_t start_ex(const struct nvtx_attributes *attributes)
{
	return domain_start_ex(NULL, attributes);
}

static void end(uint64_t id)
{
	nvtx_end(id);
}

static void domain_end(const void *domain, uint64_t id)
{
	nvtx_end(id);
}

/* ---- names ---- */

static void domain_category_a(const void *domain, uint32_t id, const char *text)
{
	struct nvtx_name name =
		nvtx_name_of(NVTX_TEXT_ASCII, (union nvtx_text){ .ascii = text }, NULL);

	nvtx_name_category(nvtx_domain_of(domain), id, &name);
}

static void domain_category_w(const void *domain, uint32_t id, const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_name name =
		nvtx_name_of(NVTX_TEXT_WIDE, (union nvtx_text){ .wide = text }, buffer);

	nvtx_name_category(nvtx_domain_of(domain), id, &name);
}

static void category_a(uint32_t id, const char *text)
{
	domain_category_a(NULL, id, text);
}

static void category_w(uint32_t id, const wchar_t *text)
{
	domain_category_w(NULL, id, text);
}

static const void *register_a(const void *domain, const char *text)
{
	struct nvtx_name name =
		nvtx_name_of(NVTX_TEXT_ASCII, (union nvtx_text){ .ascii = text }, NULL);

	return nvtx_register(&name);
}

static const void *register_w(const void *domain, const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_name name =
		nvtx_name_of(NVTX_TEXT_WIDE, (union nvtx_text){ .wide = text }, buffer);

	return nvtx_register(&name);
}

static const void *create_a(const char *text)
{
	return nvtx_domain_named(text);
}

static const void *create_w(const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];

	return nvtx_domain_named(
		nvtx_name_of(NVTX_TEXT_WIDE, (union nvtx_text){ .wide = text }, buffer).text);
}

/* A thread can only name itself: a name set by another thread is ignored. */
static void name_thread(uint32_t thread, const char *name)
{
	int saved_errno = errno;

	if (thread == (uint32_t)syscall(SYS_gettid))
		ts_thread_name(name);
	errno = saved_errno;
}

static void thread_a(uint32_t thread, const char *text)
{
	name_thread(thread, text);
}

static void thread_w(uint32_t thread, const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];

	name_thread(thread,
		    nvtx_name_of(NVTX_TEXT_WIDE, (union nvtx_text){ .wide = text }, buffer).text);
}

/* ---- streams ---- */

/* The device of the thread's context, and so of its streams. */
static int current_device(void)
{
	int (*get_device)(int *) = (int (*)(int *))cuda_driver("cuCtxGetDevice");
	int device = 0;

	cuda_thread.is_ours++;
	if (!get_device || get_device(&device))
		device = -1;
	cuda_thread.is_ours--;
	return device;
}

static void name_stream(void *stream, const char *name)
{
	struct ts_accelerator_queue queue = { .size = sizeof(queue),
					      .priority = TS_UNKNOWN,
					      .name = name };
	int saved_errno = errno, device;

	queue.stream = cuda_stream_number(stream, &queue.context);
	device = queue.stream != UINT32_MAX ? current_device() : -1;
	if (device >= 0) {
		queue.device = (uint32_t)device;
		ts_accelerator_stream(&queue);
	}
	errno = saved_errno;
}

static void stream_a(void *stream, const char *text)
{
	name_stream(stream, text);
}

static void stream_w(void *stream, const wchar_t *text)
{
	char buffer[NVTX_TEXT_BYTES];

	name_stream(stream,
		    nvtx_name_of(NVTX_TEXT_WIDE, (union nvtx_text){ .wide = text }, buffer).text);
}

/* Another way to name a stream or thread; the handle has no other use. */
static const void *resource_create(const void *domain, const struct nvtx_resource *resource)
{
	char buffer[NVTX_TEXT_BYTES];
	struct nvtx_name name;

	if (!resource || resource->size < sizeof(*resource))
		return NULL;
	name = nvtx_name_of(resource->text_type, resource->text, buffer);
	if (resource->type == NVTX_RESOURCE_THREAD)
		name_thread((uint32_t)resource->identifier.number, name.text);
	else if (resource->type == NVTX_RESOURCE_CU_STREAM ||
		 resource->type == NVTX_RESOURCE_CUDA_STREAM)
		name_stream((void *)(uintptr_t)resource->identifier.number, name.text);
	return nvtx_register(&name);
}

/* ---- initialization ---- */

struct entry {
	unsigned int number;
	nvtx_function function;
};
#define ENTRY(number, function)                   \
	{                                         \
		number, (nvtx_function)(function) \
	}

static const struct entry core[] = {
	ENTRY(NVTX_MARK_EX, mark_ex),
	ENTRY(NVTX_MARK_A, mark_a),
	ENTRY(NVTX_MARK_W, mark_w),
	ENTRY(NVTX_START_EX, start_ex),
	ENTRY(NVTX_START_A, start_a),
	ENTRY(NVTX_START_W, start_w),
	ENTRY(NVTX_END, end),
	ENTRY(NVTX_PUSH_EX, push_ex),
	ENTRY(NVTX_PUSH_A, push_a),
	ENTRY(NVTX_PUSH_W, push_w),
	ENTRY(NVTX_POP, pop),
	ENTRY(NVTX_CATEGORY_A, category_a),
	ENTRY(NVTX_CATEGORY_W, category_w),
	ENTRY(NVTX_THREAD_A, thread_a),
	ENTRY(NVTX_THREAD_W, thread_w),
	{ 0, NULL },
};

/* Domains and resources are never freed: destroying them does nothing. */
static const struct entry core2[] = {
	ENTRY(NVTX_DOMAIN_MARK_EX, domain_mark_ex),
	ENTRY(NVTX_DOMAIN_START_EX, domain_start_ex),
	ENTRY(NVTX_DOMAIN_END, domain_end),
	ENTRY(NVTX_DOMAIN_PUSH_EX, domain_push_ex),
	ENTRY(NVTX_DOMAIN_POP, domain_pop),
	ENTRY(NVTX_RESOURCE_CREATE, resource_create),
	ENTRY(NVTX_DOMAIN_CATEGORY_A, domain_category_a),
	ENTRY(NVTX_DOMAIN_CATEGORY_W, domain_category_w),
	ENTRY(NVTX_REGISTER_A, register_a),
	ENTRY(NVTX_REGISTER_W, register_w),
	ENTRY(NVTX_DOMAIN_CREATE_A, create_a),
	ENTRY(NVTX_DOMAIN_CREATE_W, create_w),
	{ 0, NULL },
};

static const struct entry cuda[] = {
	ENTRY(NVTX_CU_STREAM_A, stream_a),
	ENTRY(NVTX_CU_STREAM_W, stream_w),
	{ 0, NULL },
};

static const struct entry cudart[] = {
	ENTRY(NVTX_CUDA_STREAM_A, stream_a),
	ENTRY(NVTX_CUDA_STREAM_W, stream_w),
	{ 0, NULL },
};

static bool put_in(const struct nvtx_callbacks *callbacks, int module, const struct entry *entries)
{
	nvtx_function **table = NULL;
	unsigned int count = 0;

	if (!callbacks->module(module, &table, &count) || !table)
		return false;
	for (; entries->function; entries++)
		if (entries->number < count && table[entries->number])
			*table[entries->number] = entries->function;
	return true;
}

/*
 * Called by each copy of NVTX in the process, at its first call. 0: not recorded; its functions do
 * nothing.
 */
TS_EMIT_API int InitializeInjectionNvtx2(nvtx_export_table export_table);
int InitializeInjectionNvtx2(nvtx_export_table export_table)
{
	const struct nvtx_callbacks *callbacks;
	const struct nvtx_version *version;

	if (!export_table || !(cuda_is_wanted() || cuda_is_forked()))
		return 0;
	callbacks = export_table(NVTX_TABLE_CALLBACKS);
	version = export_table(NVTX_TABLE_VERSION);
	if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->module)
		return 0;
	if (version && version->size >= sizeof(*version) && version->set_tool)
		version->set_tool(NVTX_VERSION_3);
	nvtx_ranges_prepare();
	if (!put_in(callbacks, NVTX_MODULE_CORE, core))
		return 0;
	put_in(callbacks, NVTX_MODULE_CORE2, core2);
	put_in(callbacks, NVTX_MODULE_CUDA, cuda);
	put_in(callbacks, NVTX_MODULE_CUDART, cudart);
	return 1;
}
