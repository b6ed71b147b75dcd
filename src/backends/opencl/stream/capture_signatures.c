/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a module's functions, where the driver does not describe them: by a private build
 * of the same source with -cl-kernel-arg-info, whose result is kept in files, since a build can
 * take seconds and programs build the same sources in every run.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/cache_files.h"
#include "base/local/hash.h"
#include "base/local/macros.h"

/* Of the files: add one if the layout changes, or the number or meaning of a kind. */
#define SIGNATURES_VERSION "2"
#define MOST_PARAMETERS 4096u

/* Drivers add these to the options of every build. */
static const char *const variables[] = { "POCL_EXTRA_BUILD_FLAGS", "AMD_OCL_BUILD_OPTIONS",
					 "AMD_OCL_BUILD_OPTIONS_APPEND" };

static struct {
	char directory[PATH_MAX]; /* "": no cache */
	uint64_t environment;     /* hash of the values of `variables` */
	atomic_uint built, cached;
} self;

void stream_signatures_start(void)
{
	struct ts_hash_stream hash;

	ts_hash_stream_init(&hash);
	for (size_t i = 0; i < TS_ARRAY_SIZE(variables); i++) {
		const char *value = getenv(variables[i]);

		ts_hash_stream_add(&hash, value ? value : "", value ? strlen(value) + 1 : 0);
		ts_hash_stream_add(&hash, "\n", 1);
	}
	self.environment = ts_hash_stream_digest(&hash);
	atomic_store(&self.built, 0);
	atomic_store(&self.cached, 0);
	ts_cache_locate("kernel-arguments", self.directory, sizeof(self.directory));
}

void stream_signatures_stop(void)
{
	char json[80];

	if (atomic_load(&self.built) + atomic_load(&self.cached) == 0)
		return;
	snprintf(json, sizeof(json), "{\"private_builds\": %u, \"from_cache\": %u}",
		 atomic_load(&self.built), atomic_load(&self.cached));
	ts_accelerator_fact("opencl_arguments", json);
}

void stream_signatures_free(struct stream_signature *signatures)
{
	while (signatures) {
		struct stream_signature *next = signatures->next;

		free(signatures->name);
		free(signatures);
		signatures = next;
	}
}

/* NULL: no memory. */
static struct stream_signature *signature_new(const char *name, uint32_t count)
{
	struct stream_signature *signature;

	signature = calloc(1, sizeof(*signature) + count * sizeof(signature->parameters[0]));
	if (!signature)
		return NULL;
	signature->count = count;
	signature->name = strdup(name);
	if (!signature->name) {
		free(signature);
		return NULL;
	}
	return signature;
}

/* ---- the cache ---- */

/* A part of what the signatures depend on; its end is part of the hash. */
static void add_part(struct ts_hash_stream hashes[2], const void *data, size_t bytes)
{
	uint64_t length = bytes;

	for (int i = 0; i < 2; i++) {
		ts_hash_stream_add(&hashes[i], &length, sizeof(length));
		ts_hash_stream_add(&hashes[i], data, bytes);
	}
}

static void add_text(struct ts_hash_stream hashes[2], const char *text)
{
	add_part(hashes, text, strlen(text));
}

static struct ts_cache_key module_key(const struct stream_module *module,
				      const struct stream_device *device)
{
	struct ts_hash_stream hashes[2];
	struct ts_cache_key key;

	for (int i = 0; i < 2; i++) {
		ts_hash_stream_init(&hashes[i]);
		/* Two different functions: the second begins with something else. */
		ts_hash_stream_add(&hashes[i], i ? "b" : "a", 1);
	}
	add_text(hashes, SIGNATURES_VERSION);
	add_part(hashes, &self.environment, sizeof(self.environment));
	add_text(hashes, device->platform);
	add_text(hashes, device->vendor);
	add_text(hashes, device->name);
	add_text(hashes, device->version);
	add_text(hashes, device->driver);
	add_text(hashes, module->options ? module->options : "");
	add_part(hashes, module->source, module->source_bytes);
	for (int i = 0; i < 2; i++)
		key.halves[i] = ts_hash_stream_digest(&hashes[i]);
	return key;
}

/*
 * Do the signatures depend on nothing but what the key has? A source that a replay refuses may
 * include files.
 */
static bool is_cacheable(const struct stream_module *module)
{
	return self.directory[0] && module->device_count && !module->is_refused &&
	       (!module->options ||
		(!strstr(module->options, "-include") && !strstr(module->options, "-imacros")));
}

/*
 * For each function its name, the number of its parameters (4 bytes), and for each of these its
 * kind (1 byte), name and type. Strings end with a 0.
 */
struct packed {
	size_t used, size;
	char *data;
};

static bool pack(struct packed *packed, const void *data, size_t bytes)
{
	if (bytes > packed->size - packed->used)
		return false;
	memcpy(packed->data + packed->used, data, bytes);
	packed->used += bytes;
	return true;
}

static bool pack_signature(struct packed *packed, const struct stream_signature *signature)
{
	bool fits = pack(packed, signature->name, strlen(signature->name) + 1) &&
		    pack(packed, &signature->count, sizeof(signature->count));

	for (uint32_t i = 0; i < signature->count && fits; i++) {
		const struct stream_parameter *parameter = &signature->parameters[i];

		fits = pack(packed, &parameter->kind, 1) &&
		       pack(packed, parameter->name, strlen(parameter->name) + 1) &&
		       pack(packed, parameter->type, strlen(parameter->type) + 1);
	}
	return fits;
}

static void store(const struct stream_signature *signatures, struct ts_cache_key key)
{
	struct packed packed = { .size = TS_CACHE_ENTRY_BYTES };
	bool fits = true;

	packed.data = malloc(packed.size);
	if (!packed.data)
		return;
	for (; signatures && fits; signatures = signatures->next)
		fits = pack_signature(&packed, signatures);
	if (fits)
		ts_cache_store(self.directory, key, packed.data, packed.used);
	free(packed.data);
}

/* NULL: there is no string. */
static const char *unpack_text(struct packed *packed)
{
	const char *text = packed->data + packed->used;
	size_t bytes = strnlen(text, packed->size - packed->used) + 1;

	if (bytes > packed->size - packed->used)
		return NULL;
	packed->used += bytes;
	return text;
}

static bool unpack_name(struct packed *packed, char *to, size_t size)
{
	const char *text = unpack_text(packed);

	if (!text || strlen(text) >= size)
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

static bool unpack_parameter(struct packed *packed, struct stream_parameter *parameter)
{
	if (packed->used == packed->size)
		return false;
	parameter->kind = (uint8_t)packed->data[packed->used++];
	return parameter->kind < STREAM_ARG_KINDS &&
	       unpack_name(packed, parameter->name, sizeof(parameter->name)) &&
	       unpack_name(packed, parameter->type, sizeof(parameter->type));
}

static struct stream_signature *unpack_signature(struct packed *packed)
{
	const char *name = unpack_text(packed);
	struct stream_signature *signature = NULL;
	uint32_t count = 0;

	if (name && packed->size - packed->used >= sizeof(count)) {
		memcpy(&count, packed->data + packed->used, sizeof(count));
		packed->used += sizeof(count);
		if (count <= MOST_PARAMETERS)
			signature = signature_new(name, count);
	}
	for (uint32_t i = 0; signature && i < count; i++) {
		if (!unpack_parameter(packed, &signature->parameters[i])) {
			stream_signatures_free(signature);
			signature = NULL;
		}
	}
	return signature;
}

/* All of it, or nothing. */
static struct stream_signature *unpack_all(char *data, size_t bytes)
{
	struct packed packed = { .data = data, .size = bytes };
	struct stream_signature *all = NULL;

	while (packed.used < packed.size) {
		struct stream_signature *signature = unpack_signature(&packed);

		if (!signature) {
			stream_signatures_free(all);
			return NULL;
		}
		signature->next = all;
		all = signature;
	}
	return all;
}

static struct stream_signature *load(struct ts_cache_key key)
{
	size_t bytes = 0;
	char *data = ts_cache_load(self.directory, key, &bytes);
	struct stream_signature *signatures = data ? unpack_all(data, bytes) : NULL;

	free(data);
	return signatures;
}

/* ---- a private build ---- */

static void keep_signature(struct stream_module *module, cl_kernel kernel)
{
	struct stream_signature *signature;
	cl_uint count = 0;
	char name[512] = "";

	ocl.next.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
	if (ocl.next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL))
		return;
	signature = signature_new(name, count);
	if (!signature)
		return;
	for (cl_uint i = 0; i < count; i++)
		stream_query_parameter(kernel, i, &signature->parameters[i]);
	signature->next = module->signatures;
	module->signatures = signature;
}

static void keep_signatures(struct stream_module *module, cl_program program)
{
	cl_kernel *kernels;
	cl_uint count = 0;

	if (ocl.next.clCreateKernelsInProgram(program, 0, NULL, &count) || count == 0)
		return;
	kernels = calloc(count, sizeof(cl_kernel));
	if (kernels &&
	    ocl.next.clCreateKernelsInProgram(program, count, kernels, NULL) == CL_SUCCESS) {
		for (cl_uint i = 0; i < count; i++) {
			keep_signature(module, kernels[i]);
			ocl.next.clReleaseKernel(kernels[i]);
		}
	}
	free(kernels);
}

/* For one device: they have the same signatures. */
static cl_int build(cl_program program, const struct stream_module *module, const char *options)
{
	cl_device_id device = module->device_count ? module->devices[0]->handle : NULL;

	return ocl.next.clBuildProgram(program, device ? 1 : 0, device ? &device : NULL, options,
				       NULL, NULL);
}

/* Neither the program nor the hooks see it. */
static void build_privately(const struct ocl_stream *stream, struct stream_module *module)
{
	static const char more[] = " -cl-kernel-arg-info";
	const char *options = module->options ? module->options : "";
	size_t bytes = strlen(options) + sizeof(more);
	char *all = malloc(bytes);
	const char *source = module->source;
	cl_program program = NULL;

	if (all && stream->parent)
		program = ocl.next.clCreateProgramWithSource(stream->parent->handle, 1, &source,
							     &module->source_bytes, NULL);
	if (program) {
		snprintf(all, bytes, "%s%s", options, more);
		atomic_fetch_add(&self.built, 1);
		if (build(program, module, all) == CL_SUCCESS)
			keep_signatures(module, program);
		ocl.next.clReleaseProgram(program);
	}
	free(all);
}

static void learn(const struct ocl_stream *stream, struct stream_module *module)
{
	struct ts_cache_key key = { { 0, 0 } };
	bool has_key;

	if (!module->source || strcmp(module->from, "source") != 0)
		return;
	has_key = is_cacheable(module);
	if (has_key) {
		key = module_key(module, &module->devices[0]->as.device);
		module->signatures = load(key);
	}
	if (module->signatures) {
		atomic_fetch_add(&self.cached, 1);
		return;
	}
	build_privately(stream, module);
	if (module->signatures && has_key)
		store(module->signatures, key);
}

void stream_module_learn(struct ocl_stream *stream)
{
	struct stream_module *module = &stream->as.module;

	pthread_mutex_lock(&module->lock);
	if (!module->was_learned)
		learn(stream, module);
	module->was_learned = true;
	pthread_mutex_unlock(&module->lock);
}
