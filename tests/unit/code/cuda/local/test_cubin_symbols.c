/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about device code: images that nvcc made of tests/data/cubin/facts.cu (seeds of the fuzz
 * target), the same damaged, and PTX written here.
 */
#include "code/cuda/local/cubin_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/cuda/local/fatbin.h"
#include "unit/runner.h"

#define MAX_BYTES 65536

static char image[MAX_BYTES + 1];
static size_t image_bytes;

static void load(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/fuzz_device_code/%s",
		 getenv("TS_SOURCE"), name);
	file = fopen(path, "rb");
	TS_CHECK(file != NULL);
	image_bytes = fread(image, 1, MAX_BYTES, file);
	fclose(file);
	TS_CHECK(image_bytes > 1000 && image_bytes < MAX_BYTES);
	image[image_bytes] = 0;
}

/* "name[bytes], ...; kernel why, ..." */
static const char *text_of(const struct ts_code_facts *facts)
{
	static char text[4096];
	size_t length = 0;

	text[0] = 0;
	for (size_t i = 0; i < facts->variable_count; i++) {
		const struct ts_code_variable *variable = &facts->variables[i];

		if (variable->name[0] == '$' || variable->name[0] == '_')
			continue; /* strings of the compiler */
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s[%d]%s%s ",
					   variable->name, (int)variable->bytes,
					   variable->is_constant ? "c" : "",
					   variable->is_managed ? "m" : "");
	}
	for (size_t i = 0; i < facts->refused_count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s",
					   i ? ", " : "- ", facts->refused[i].name,
					   strchr(facts->refused[i].why, ' ') + 1);
	return text;
}

static void check_facts(const char *name, const char *expected)
{
	struct ts_code_facts facts;

	load(name);
	ts_code_facts_read(&facts, image, image_bytes, 9, 0);
	if (facts.unknown && strstr(facts.unknown, "libzstd"))
		ts_test_skip("libzstd.so.1 is not installed");
	TS_CHECK_STR(facts.unknown, NULL);
	TS_CHECK_STR(text_of(&facts), expected);
	TS_CHECK_STR(ts_code_facts_refused(&facts, "calls"), "calls malloc or free on the device");
	TS_CHECK_STR(ts_code_facts_refused(&facts, "plain"), NULL);
	ts_code_facts_release(&facts);
}

#define VARIABLES "counter[4] functions[16] last[8] table[64]c weights[400] "
#define FREE_ON "malloc or free on the device"
#define CALLS "- allocates " FREE_ON ", calls " FREE_ON ", frees " FREE_ON

TS_TEST(cubin)
{
	check_facts("plain.cubin", VARIABLES CALLS);
}

TS_TEST(cubin_to_be_linked)
{
	check_facts("separate.cubin",
		    "counter[4] functions[16] last[8] managed[4]m table[64]c weights[400] " CALLS
		    ", launches kernels on the device, points malloc or free on the device");
}

/* Through functions, also those whose address is taken. */
TS_TEST(linked_cubin)
{
	check_facts("linked.cubin", VARIABLES CALLS ", points malloc or free on the device");
}

/* Those that the driver fills in; in code that was compiled at once they are offsets. */
TS_TEST(pointers_to_functions)
{
	struct ts_code_facts facts;

	load("linked.cubin");
	ts_code_facts_read(&facts, image, image_bytes, 9, 0);
	TS_CHECK_INT(facts.pointer_count, 2);
	for (size_t i = 0; i < 2; i++) {
		TS_CHECK_STR(facts.pointers[i].variable, "functions");
		TS_CHECK_INT(facts.pointers[i].offset, 8 * i);
		TS_CHECK_STR(facts.pointers[i].function, i ? "_Z4addsi" : "_Z5makesi");
	}
	ts_code_facts_release(&facts);
}

TS_TEST(fatbin_with_lz4)
{
	check_facts("lz4.fatbin", VARIABLES CALLS);
}

TS_TEST(fatbin_with_zstd)
{
	check_facts("zstd.fatbin", VARIABLES CALLS);
}

TS_TEST(ptx)
{
	check_facts("text.ptx",
		    "counter[0] functions[0] last[0] managed[0]m table[0]c weights[0] " CALLS
		    ", points malloc or free on the device");
}

TS_TEST(code_for_another_device)
{
	struct ts_code_facts facts;
	uint32_t architecture;

	load("lz4.fatbin");
	TS_CHECK_INT(ts_image_select(image, image_bytes, 9, 0, &architecture), TS_IMAGE_CUBIN);
	TS_CHECK_INT(architecture, 90);
	TS_CHECK_INT(ts_image_select(image, image_bytes, 12, 0, &architecture), TS_IMAGE_PTX);
	TS_CHECK_INT(ts_image_select(image, image_bytes, 8, 9, &architecture), TS_IMAGE_UNKNOWN);
	ts_code_facts_read(&facts, image, image_bytes, 8, 9);
	TS_CHECK_STR(facts.unknown, "it has no code for this device");
	ts_code_facts_release(&facts);
	load("zstd.fatbin");
	TS_CHECK_INT(ts_image_select(image, image_bytes, 8, 6, &architecture), TS_IMAGE_CUBIN);
	TS_CHECK_INT(architecture, 80);
	TS_CHECK_INT(ts_image_select(image, image_bytes, 7, 5, &architecture), TS_IMAGE_PTX);
	TS_CHECK_INT(ts_image_select(image, image_bytes, 7, 0, &architecture), TS_IMAGE_UNKNOWN);
	load("plain.cubin");
	TS_CHECK_INT(ts_image_select(image, image_bytes, 9, 0, &architecture), TS_IMAGE_CUBIN);
	TS_CHECK_INT(ts_image_select(image, image_bytes, 8, 0, &architecture), TS_IMAGE_UNKNOWN);
}

TS_TEST(lengths)
{
	static const char *const names[] = { "plain.cubin", "separate.cubin", "linked.cubin",
					     "lz4.fatbin", "zstd.fatbin" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		load(names[i]);
		TS_CHECK_INT(ts_image_length(image), image_bytes);
	}
	load("text.ptx");
	TS_CHECK_INT(ts_image_length(image), image_bytes + 1);
	TS_CHECK_INT(ts_image_length("neither of them"), 0);
	TS_CHECK_INT(ts_image_length(""), 0);
}

static void check_params(const char *name, const char *kernel, const char *expected)
{
	static struct ts_code_params params;
	char text[256] = "";
	size_t length = 0;

	load(name);
	TS_CHECK(ts_code_params_read(&params, kernel, image, image_bytes, 9, 0));
	for (uint32_t i = 0; i < params.count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%d+%d ",
					   params.offsets[i], params.sizes[i]);
	snprintf(text + length, sizeof(text) - length, "= %u", params.bytes);
	TS_CHECK_STR(text, expected);
}

TS_TEST(parameters)
{
	static struct ts_code_params params;

	check_params("plain.cubin", "plain", "0+8 8+4 12+1 16+16 = 32");
	check_params("linked.cubin", "plain", "0+8 8+4 12+1 16+16 = 32");
	check_params("separate.cubin", "takes_much", "0+4 4+20000 20008+8 = 20016");
	TS_CHECK(!ts_code_params_read(&params, "nothing", image, image_bytes, 9, 0));
}

/* ---- PTX ---- */

static const char *facts_of(const char *text)
{
	struct ts_code_facts facts;
	const char *result;

	ts_code_facts_read(&facts, text, strlen(text) + 1, 9, 0);
	result = text_of(&facts);
	ts_code_facts_release(&facts);
	return result;
}

TS_TEST(ptx_declarations)
{
	TS_CHECK_STR(facts_of(".version 9.0\n.target sm_90, debug\n.address_size 64\n"
			      ".extern .global .u32 elsewhere;\n"
			      "/* .global .u32 comment; */ // .global .u32 comment;\n"
			      ".visible .global .align 4 .b8 a[8] = {1, 2};\n"
			      ".weak .const .u32 b;\n"
			      ".global .attribute(.managed) .u32 c[2][3];\n"
			      ".pragma \".global .u32 pragma;\";\n"
			      ".global .texref t;\n"
			      ".global .u64 d = generic(a);\n"),
		     "a[0] b[0]c c[0]m d[0] ");
}

/* Calls through any number of functions; a function that is not called does not count. */
TS_TEST(ptx_calls)
{
	TS_CHECK_STR(
		facts_of(".version 9.0\n"
			 ".extern .func (.param .b32 r) malloc (.param .b64 a);\n"
			 ".func f1() { call malloc, (%rd1); }\n"
			 ".func (.reg .u32 r) f2(.reg .u32 x) { { call f1; } }\n"
			 ".func f3() { call f3; }\n"
			 ".entry k1() { call (r), f2, (%r1); }\n"
			 ".visible .entry k2(.param .u64 k2_param) .maxntid 1, 1, 1 { call f3; }\n"
			 ".entry k3() { call.uni free, (%rd1); }\n"
			 ".entry k4() { mov.u32 %malloc, 0; call vprintf; }\n"),
		"- k1 malloc or free on the device, k3 malloc or free on the device");
}

/* ---- damage ---- */

static void read_damaged(size_t bytes)
{
	static struct ts_code_params params;
	struct ts_code_facts facts;

	ts_code_facts_read(&facts, image, bytes, 9, 0);
	ts_code_facts_release(&facts);
	ts_code_params_read(&params, "plain", image, bytes, 9, 0);
}

static void damage(const char *name, size_t from, size_t to, size_t step)
{
	load(name);
	for (size_t at = from; at < to && at < image_bytes; at += step) {
		char saved = image[at];

		read_damaged(at);
		for (int bit = 0; bit < 8; bit += 3) {
			image[at] = (char)(saved ^ 1 << bit);
			read_damaged(image_bytes);
		}
		image[at] = saved;
	}
}

TS_TEST(damaged_images)
{
	damage("lz4.fatbin", 0, 2200, 3);
	damage("zstd.fatbin", 0, 300, 1);
	damage("text.ptx", 0, 3000, 7);
	damage("plain.cubin", 0, 64, 1);
	damage("plain.cubin", 64, MAX_BYTES, 97);
}

/* Section headers and symbols, wherever they are. */
TS_TEST(damaged_headers)
{
	uint64_t headers;

	load("linked.cubin");
	memcpy(&headers, image + 40, sizeof(headers));
	damage("linked.cubin", headers, headers + 40 * 64, 5);
}
