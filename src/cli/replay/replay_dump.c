/* SPDX-License-Identifier: Apache-2.0 */
/* Shows memory after a command: values of a type, or a hex dump. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/replay/replay_show.h"
#include "replay/check/values.h"

#define BYTES_A_LINE 16u
#define COLUMNS 80u
#define LINES_SHOWN 64u

/* The first byte of sparse memory, as the program saw it; false: a memory object was dumped. */
static bool find_address(const struct ts_replay_shown *shown, uint64_t *ret_address)
{
	const struct ts_replay_options *options = &shown->replay->options;
	const struct ts_replay_range *range = ts_replay_dumped(shown->replay);

	if (!range || (!options->dumps_address && !options->dumps_argument))
		return false;
	*ret_address = shown->replay->stream->objects[range->memory].address + range->offset;
	return true;
}

void ts_replay_append_dumped(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_options *options = &shown->replay->options;
	uint64_t address;

	if (!find_address(shown, &address))
		ts_text_printf(out, "memory %" PRIu64, options->dump_memory);
	else if (options->dumps_argument)
		ts_text_printf(out, "argument %" PRIu64 ", 0x%" PRIx64, options->dump_address,
			       address);
	else
		ts_text_printf(out, "0x%" PRIx64, address);
	ts_text_printf(out, " after command %" PRIu64, options->dump_at);
}

/* How many of `count` are shown. */
static uint64_t limit_of(const struct ts_replay_shown *shown, uint64_t count, uint64_t line)
{
	if (shown->limit == 0)
		return count;
	return TS_MIN(count, shown->limit < 0 ? line * LINES_SHOWN : (uint64_t)shown->limit);
}

static void show_rest(struct ts_text *out, uint64_t rest, const char *what)
{
	char count[TS_FORMAT_BYTES];

	if (rest)
		ts_text_printf(out, "... and %s %s more (--limit 0 shows all)\n",
			       ts_format_count(count, sizeof(count), (int64_t)rest), what);
}

static void show_line(struct ts_text *out, const unsigned char *data, uint64_t at, uint64_t count)
{
	ts_text_printf(out, "%08" PRIx64 " ", at);
	for (uint64_t i = 0; i < BYTES_A_LINE; i++) {
		if (i == BYTES_A_LINE / 2)
			ts_text_append_char(out, ' ');
		if (i < count)
			ts_text_printf(out, " %02x", data[at + i]);
		else
			ts_text_append_str(out, "   ");
	}
	ts_text_append_str(out, "  |");
	for (uint64_t i = 0; i < count; i++)
		ts_text_append_char(out, isprint(data[at + i]) ? (char)data[at + i] : '.');
	ts_text_append_str(out, "|\n");
}

static void show_bytes(const struct ts_replay_shown *shown, const unsigned char *data,
		       uint64_t bytes, struct ts_text *out)
{
	uint64_t most = limit_of(shown, bytes, BYTES_A_LINE);

	for (uint64_t at = 0; at < most; at += BYTES_A_LINE) {
		show_line(out, data, at, TS_MIN(most - at, (uint64_t)BYTES_A_LINE));
		ts_stdout_drain(NULL);
	}
	show_rest(out, bytes - most, "bytes");
}

/* A power of two, so that positions are round numbers. */
static unsigned int values_a_line(const struct ts_value_type *type)
{
	unsigned int count = 16;

	while (count * (ts_value_width(type) + 1) + strlen("12345678:") > COLUMNS)
		count /= 2;
	return count;
}

static void show_values(const struct ts_replay_shown *shown, const struct ts_value_type *type,
			const unsigned char *data, uint64_t bytes, struct ts_text *out)
{
	unsigned int line = values_a_line(type);
	uint64_t count = bytes / type->bytes, most = limit_of(shown, count, line);
	char value[TS_VALUE_BYTES];

	for (uint64_t i = 0; i < most; i++) {
		if (i % line == 0)
			ts_text_printf(out, "%8" PRIu64 ":", i);
		ts_text_printf(out, " %*s", (int)ts_value_width(type),
			       ts_value_format(type, data + i * type->bytes, value));
		if (i % line == line - 1 || i + 1 == most) {
			ts_text_append_char(out, '\n');
			ts_stdout_drain(NULL);
		}
	}
	show_rest(out, count - most, "values");
	if (bytes % type->bytes)
		ts_text_printf(out, "... and %" PRIu64 " bytes that are not a complete value\n",
			       bytes % type->bytes);
}

void ts_replay_show_dump(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const char *name = shown->replay->options.value_type;
	uint64_t bytes = 0;
	const void *data = ts_replay_dump(shown->replay, &bytes);

	if (data && name)
		show_values(shown, ts_value_type_find(name), data, bytes, out);
	else if (data)
		show_bytes(shown, data, bytes, out);
}

void ts_replay_show_dump_json(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_options *options = &shown->replay->options;
	const struct ts_value_type *type =
		ts_value_type_find(options->value_type ? options->value_type : "u8");
	uint64_t bytes = 0, most, address;
	const unsigned char *data = ts_replay_dump(shown->replay, &bytes);

	if (!data)
		return;
	most = limit_of(shown, bytes / type->bytes, values_a_line(type));
	ts_text_printf(out, ",\"dump\":{\"command\":%" PRIu64, options->dump_at);
	if (find_address(shown, &address))
		ts_text_printf(out, ",\"address\":\"0x%" PRIx64 "\"", address);
	else
		ts_text_printf(out, ",\"buffer\":\"memory %" PRIu64 "\"", options->dump_memory);
	ts_text_printf(out, ",\"bytes\":%" PRIu64 ",\"as\":\"%s\",\"values\":[", bytes, type->name);
	for (uint64_t i = 0; i < most; i++) {
		if (i)
			ts_text_append_char(out, ',');
		ts_value_append_json(type, data + i * type->bytes, out);
	}
	ts_text_append_str(out, "]}");
}
