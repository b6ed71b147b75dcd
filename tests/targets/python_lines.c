/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares our line table decoding with Python's, which tests/python/lines.py writes to standard
 * input. Prints what was compared, and the first differences. Exits with 1 on a difference, or if
 * there was too little to compare.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/local/python_objects.h"

#define TABLE_BYTES (1u << 20)
#define SHOWN 10

struct comparison {
	uint8_t *table;
	size_t bytes;
	unsigned int format;
	int32_t first_line;
	uint64_t codes, instructions, wrong;
};

static size_t from_hex(const char *hex, uint8_t *bytes, size_t capacity)
{
	size_t count = 0;

	while (count < capacity && isxdigit((unsigned char)hex[2 * count]) &&
	       isxdigit((unsigned char)hex[2 * count + 1])) {
		const char digits[] = { hex[2 * count], hex[2 * count + 1], '\0' };

		bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return count;
}

/* The next number of a line; false: there is none. */
static bool take(const char **line, int64_t *ret_number)
{
	char *end;

	*ret_number = strtoll(*line, &end, 10);
	if (end == *line)
		return false;
	*line = end;
	return true;
}

static bool begin_code(struct comparison *comparison, const char *line)
{
	int64_t format, first_line;

	if (!take(&line, &format) || !take(&line, &first_line))
		return false;
	comparison->format = (unsigned int)format;
	comparison->first_line = (int32_t)first_line;
	line += strspn(line, " ");
	comparison->bytes = from_hex(line, comparison->table, TABLE_BYTES);
	comparison->codes++;
	return true;
}

static void compare_instruction(struct comparison *comparison, uint32_t offset, int32_t expected)
{
	int32_t found = ts_python_line((enum ts_python_lines)comparison->format, comparison->table,
				       comparison->bytes, comparison->first_line, offset);

	comparison->instructions++;
	if (found != expected && comparison->wrong++ < SHOWN)
		printf("code %" PRIu64 " from line %" PRId32 ", offset %" PRIu32 ": line %" PRId32
		       ", not %" PRId32 "\n",
		       comparison->codes, comparison->first_line, offset, found, expected);
}

static bool compare(struct comparison *comparison, const char *line)
{
	int64_t offset, end, expected;

	if (!take(&line, &offset) || !take(&line, &end) || !take(&line, &expected))
		return false;
	for (; offset < end; offset += 2)
		compare_instruction(comparison, (uint32_t)offset, (int32_t)expected);
	return true;
}

int main(void)
{
	struct comparison comparison = { .table = malloc(TABLE_BYTES) };
	char *line = NULL;
	size_t capacity = 0;
	bool is_inside = false, is_sound = comparison.table;

	while (is_sound && getline(&line, &capacity, stdin) > 0) {
		if (line[0] == '\n')
			is_inside = false;
		else if (is_inside)
			is_sound = compare(&comparison, line);
		else
			is_sound = is_inside = begin_code(&comparison, line);
	}
	printf("%" PRIu64 " code objects, %" PRIu64 " instructions, %" PRIu64
	       " with another line\n",
	       comparison.codes, comparison.instructions, comparison.wrong);
	free(line);
	free(comparison.table);
	if (!is_sound)
		puts("the input is not that of lines.py");
	return !is_sound || comparison.wrong || comparison.instructions < 10000;
}
