/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as OpenCL C. What is accepted has no directive that reads files, however it was
 * spelled, and is accepted again unchanged.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/local/opencl_c.h"
#include "lib/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool contains(const char *text, size_t bytes, const char *part)
{
	return memmem(text, bytes, part, strlen(part)) != NULL;
}

/* The word after "#" at the start of a line, in any part of the text. */
static void check_lines(const char *text, size_t bytes)
{
	static const char *const words[] = { "include", "import", "embed" };
	const char *end = text + bytes;

	for (const char *line = text; line < end; line++) {
		line += strspn(line, " \t");
		if (*line == '#' || (line[0] == '%' && line[1] == ':')) {
			line += *line == '#' ? 1 : 2;
			line += strspn(line, " \t");
			for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
				check(strncmp(line, words[i], strlen(words[i])) != 0,
				      "a directive that reads a file");
		}
		line = memchr(line, '\n', (size_t)(end - line));
		if (!line)
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *normal = malloc(size + 1), *again = malloc(size + 1);
	size_t bytes = 0, same = 0;

	check(normal && again, "no memory");
	if (!ts_opencl_c_normalize((const char *)data, size, normal, &bytes)) {
		check(bytes <= size, "a longer result");
		normal[bytes] = 0;
		check(!contains(normal, bytes, "\\\n"), "a spliced line");
		check(!contains(normal, bytes, "\?\?="), "a trigraph");
		check_lines(normal, bytes);
		check(!ts_opencl_c_normalize(normal, bytes, again, &same), "refused again");
		check(same == bytes && !memcmp(normal, again, bytes), "another result");
	}
	free(again);
	free(normal);
	return 0;
}
