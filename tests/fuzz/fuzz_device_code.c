/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an image of device code: a fatbin, cubin or PTX. What is found in it has names that
 * end, and parameters within their block.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/cuda/local/cubin_symbols.h"
#include "code/cuda/local/fatbin.h"
#include "lib/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLAIN_AT_MOST ((size_t)16 << 20)

static void check_params(const char *kernel, const uint8_t *data, size_t size)
{
	static struct ts_code_params params;

	if (!ts_code_params_read(&params, kernel, data, size, 9, 0))
		return;
	check(params.count <= TS_CODE_PARAMS, "too many parameters");
	for (uint32_t i = 0; i < params.count; i++)
		check(params.offsets[i] + params.sizes[i] <= params.bytes,
		      "a parameter behind the block");
}

static void check_facts(const uint8_t *data, size_t size)
{
	struct ts_code_facts facts;

	ts_code_facts_read(&facts, data, size, 9, 0);
	for (size_t i = 0; i < facts.variable_count; i++)
		check(strlen(facts.variables[i].name) < size + PLAIN_AT_MOST, "a name without end");
	for (size_t i = 0; i < facts.refused_count; i++)
		check(ts_code_facts_refused(&facts, facts.refused[i].name) != NULL,
		      "a refused kernel that is not found");
	ts_code_facts_release(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ts_image_piece piece;
	size_t cursor = 0;

	/* Sizes are claims; memory for them is not what this is about. */
	while (ts_image_next(data, size, &cursor, &piece)) {
		check(piece.data >= data && piece.bytes <= (size_t)(data + size - piece.data),
		      "a piece outside of the image");
		if (piece.plain_bytes > PLAIN_AT_MOST)
			return 0;
	}
	check_facts(data, size);
	check_params("plain", data, size);
	check_params("takes_much", data, size);
	return 0;
}
