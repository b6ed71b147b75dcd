/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of a module's functions in the cache. The source is part of the agent, so it is
 * included here; the driver is never called.
 */
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_OPENCL

#include "backends/opencl/stream/capture_signatures.c" /* NOLINT(bugprone-suspicious-include) */

struct ocl ocl;

void stream_query_parameter(cl_kernel kernel, cl_uint index, struct stream_parameter *parameter)
{
	(void)kernel;
	(void)index;
	(void)parameter;
}

void ts_accelerator_fact(const char *key, const char *json)
{
	(void)key;
	(void)json;
}

static struct stream_signature *example(void)
{
	struct stream_signature *first = signature_new("add", 2), *second = signature_new("f", 0);

	first->parameters[0] = (struct stream_parameter){ STREAM_ARG_MEMORY, "to", "float4*" };
	first->parameters[1] = (struct stream_parameter){ STREAM_ARG_BYTES, "", "int" };
	first->next = second;
	return first;
}

static struct packed pack_example(void)
{
	struct packed packed = { .size = 4096 };
	struct stream_signature *signatures = example();

	packed.data = malloc(packed.size);
	for (const struct stream_signature *each = signatures; each; each = each->next)
		TS_CHECK(pack_signature(&packed, each));
	stream_signatures_free(signatures);
	return packed;
}

TS_TEST(what_is_packed_is_unpacked)
{
	struct packed packed = pack_example();
	struct stream_signature *all = unpack_all(packed.data, packed.used);

	TS_CHECK(all && all->next && !all->next->next);
	TS_CHECK_STR(all->name, "f");
	TS_CHECK_INT(all->count, 0);
	TS_CHECK_STR(all->next->name, "add");
	TS_CHECK_INT(all->next->count, 2);
	TS_CHECK_INT(all->next->parameters[0].kind, STREAM_ARG_MEMORY);
	TS_CHECK_STR(all->next->parameters[0].name, "to");
	TS_CHECK_STR(all->next->parameters[0].type, "float4*");
	TS_CHECK_STR(all->next->parameters[1].type, "int");
	stream_signatures_free(all);
	free(packed.data);
}

/* Any bytes: all of it, or nothing, and no byte beyond the end is read. */
TS_TEST(damaged_content_is_refused)
{
	struct packed packed = pack_example();

	for (size_t bytes = 0; bytes < packed.used; bytes++) {
		char *exact = malloc(bytes + !bytes);

		memcpy(exact, packed.data, bytes);
		stream_signatures_free(unpack_all(exact, bytes));
		for (size_t i = 0; i < bytes; i++) {
			exact[i] = (char)(exact[i] ^ 0x81);
			stream_signatures_free(unpack_all(exact, bytes));
			exact[i] = (char)(exact[i] ^ 0x81);
		}
		free(exact);
	}
	/* A kind that does not exist; a name that is too long for its place. */
	packed.data[sizeof("add") + 4] = STREAM_ARG_KINDS;
	TS_CHECK(!unpack_all(packed.data, packed.used));
	packed.data[sizeof("add") + 4] = STREAM_ARG_BYTES;
	memset(packed.data + sizeof("add") + 5, 'x', 200);
	packed.data[sizeof("add") + 205] = 0;
	TS_CHECK(!unpack_all(packed.data, 400));
	free(packed.data);
}

TS_TEST(more_than_fits_is_not_packed)
{
	char small[8];
	struct packed packed = { .data = small, .size = sizeof(small) };
	struct stream_signature *signatures = example();

	TS_CHECK(!pack_signature(&packed, signatures));
	TS_CHECK(packed.used <= packed.size);
	stream_signatures_free(signatures);
}

/* Whatever decides what a build gives is part of the key; text cannot move between its parts. */
TS_TEST(keys_differ)
{
	static struct stream_device device = { .name = "d", .platform = "p", .driver = "1" };
	char source[] = "kernel void f() {}";
	struct stream_module module = { .source = source, .source_bytes = sizeof(source) - 1 };
	struct ts_cache_key keys[6];

	keys[0] = module_key(&module, &device);
	device.driver[0] = '2';
	keys[1] = module_key(&module, &device);
	strcpy(device.platform, "pd");
	device.name[0] = 0;
	keys[2] = module_key(&module, &device);
	module.options = (char[]){ "-DX" };
	keys[3] = module_key(&module, &device);
	source[3] = 'x';
	keys[4] = module_key(&module, &device);
	setenv("POCL_EXTRA_BUILD_FLAGS", "-DY", 1);
	stream_signatures_start();
	keys[5] = module_key(&module, &device);
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < i; j++)
			TS_CHECK(keys[i].halves[0] != keys[j].halves[0] &&
				 keys[i].halves[1] != keys[j].halves[1]);
}

/* A build that reads files depends on more than the key has. */
TS_TEST(builds_that_read_files_are_not_cached)
{
	struct stream_module module = { .device_count = 1 };

	setenv("TRACESMITH_CACHE_DIR", "/d", 1);
	stream_signatures_start();
	TS_CHECK(is_cacheable(&module));
	module.options = (char[]){ "-I include -DX" };
	TS_CHECK(is_cacheable(&module));
	module.options = (char[]){ "-DX -include y.h" };
	TS_CHECK(!is_cacheable(&module));
	module.options = NULL;
	module.is_refused = true;
	TS_CHECK(!is_cacheable(&module));
	module.is_refused = false;
	setenv("TRACESMITH_CACHE_DIR", "", 1);
	stream_signatures_start();
	TS_CHECK(!is_cacheable(&module));
}

#else

TS_TEST(no_opencl)
{
	ts_test_skip("this build has no OpenCL");
}

#endif
