/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device table: a title, two header lines, and two lines per chip. Names come from a closed
 * list, and each row must have a value for each name. A query that the driver rejected is printed
 * as 0 with health OK, so some zeros mean no value.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "sample/metrics/ascend/npu_smi_internal.h"

#define LATER_CHIPS 10000 /* between chip numbers of an NPU, if none are printed */

static const char *const field_names[NPU_FIELD_COUNT] = {
	[NPU_POWER] = "Power(W)",
	[NPU_TEMPERATURE] = "Temp(C)",
	[NPU_HUGEPAGES] = "Hugepages-Usage(page)",
	[NPU_AICORE] = "AICore(%)",
	[NPU_UTILIZATION] = "NPU Util(%)",
	[NPU_MEMORY] = "Memory-Usage(MB)",
	[NPU_HBM] = "HBM-Usage(MB)",
};

/* ---- headers ---- */

/* "npu-smi 23.0.rc3    Version: 23.0.rc3". */
bool npu_parse_title(struct npu_parser *parser)
{
	struct npu_span rest = parser->cells[0], name = npu_next_word(&rest), version;

	npu_copy_text(parser->info->version, sizeof(parser->info->version), npu_next_word(&rest));
	rest = npu_trim(rest);
	if (!npu_starts_with(rest, "Version:"))
		return false;
	rest.at += strlen("Version:");
	rest.length -= strlen("Version:");
	version = npu_next_word(&rest);
	return parser->cell_count == 1 && npu_is_text(name, "npu-smi") && version.length &&
	       !npu_trim(rest).length;
}

static bool has_field(const struct npu_header *header, enum npu_field field)
{
	for (size_t i = 0; i < header->count; i++)
		if (header->fields[i] == field)
			return true;
	return false;
}

/* Removes the known name at the start of the text; NPU_FIELD_COUNT: unknown. */
static enum npu_field next_field(struct npu_span *text)
{
	*text = npu_trim(*text);
	for (int i = 0; i < NPU_FIELD_COUNT; i++) {
		size_t length = strlen(field_names[i]);

		if (!npu_starts_with(*text, field_names[i]) ||
		    (text->length > length && !npu_is_blank(text->at[length])))
			continue;
		text->at += length;
		text->length -= length;
		return (enum npu_field)i;
	}
	return NPU_FIELD_COUNT;
}

static bool parse_fields(struct npu_parser *parser, struct npu_header *header)
{
	struct npu_span text = parser->cells[parser->cell_count - 1];

	while (npu_trim(text).length) {
		enum npu_field field = next_field(&text);

		if (field == NPU_FIELD_COUNT || header->count == NPU_FIELDS ||
		    has_field(&parser->headers[0], field) || has_field(&parser->headers[1], field))
			return false;
		header->fields[header->count++] = field;
	}
	return header->count > 0;
}

bool npu_parse_header_1(struct npu_parser *parser)
{
	const struct npu_span *cells = parser->cells;

	parser->has_name_cell = parser->cell_count == 4;
	if (parser->has_name_cell) {
		if (!npu_has_words(cells[0], "NPU ID") || !npu_is_text(cells[1], "Name"))
			return false;
	} else if (parser->cell_count != 3 || !npu_has_words(cells[0], "NPU Name")) {
		return false;
	}
	return npu_is_text(cells[parser->cell_count - 2], "Health") &&
	       parse_fields(parser, &parser->headers[0]);
}

bool npu_parse_header_2(struct npu_parser *parser)
{
	const struct npu_span *cells = parser->cells;

	if (parser->cell_count != (parser->has_name_cell ? 4 : 3))
		return false;
	parser->has_pairs = npu_has_words(cells[0], "Chip Phy-ID");
	parser->has_device_numbers = parser->has_pairs || npu_has_words(cells[0], "Chip Device");
	if (parser->has_name_cell) {
		if (cells[0].length || cells[1].length)
			return false;
	} else if (!parser->has_device_numbers && !npu_is_text(cells[0], "Chip")) {
		return false;
	}
	return npu_is_text(cells[parser->cell_count - 2], "Bus-Id") &&
	       parse_fields(parser, &parser->headers[1]);
}

/* ---- values of a chip ---- */

/*
 * A number with at most three decimals, in thousandths. Also true if there is none:
 * TS_METRICS_UNKNOWN.
 */
static bool parse_thousandths(struct npu_span text, int64_t *ret_value)
{
	bool negative = text.length > 1 && text.at[0] == '-';
	const char *dot;
	int64_t integer, part = 0;

	*ret_value = TS_METRICS_UNKNOWN;
	if (npu_is_absent(text))
		return true;
	text.at += negative;
	text.length -= negative;
	dot = memchr(text.at, '.', text.length);
	if (dot) {
		struct npu_span decimals = { dot + 1, text.length - (size_t)(dot + 1 - text.at) };

		text.length = (size_t)(dot - text.at);
		if (decimals.length > 3 || !npu_parse_number(decimals, 1000, &part))
			return false;
		for (size_t i = decimals.length; i < 3; i++)
			part *= 10;
	}
	if (!npu_parse_number(text, INT64_C(1000000000000000), &integer))
		return false;
	*ret_value = (integer * 1000 + part) * (negative ? -1 : 1);
	return true;
}

/* The same without decimals. */
static bool parse_integer(struct npu_span text, int64_t *ret_value)
{
	if (memchr(text.at, '.', text.length) || !parse_thousandths(text, ret_value))
		return false;
	if (*ret_value != TS_METRICS_UNKNOWN)
		*ret_value /= 1000;
	return true;
}

/* "60478/65536". */
static bool parse_pair(struct npu_span text, int64_t ret_pair[2])
{
	const char *slash = memrchr(text.at, '/', text.length);
	struct npu_span used, total;

	ret_pair[0] = ret_pair[1] = TS_METRICS_UNKNOWN;
	if (npu_is_absent(text) || !slash)
		return npu_is_absent(text);
	used = (struct npu_span){ text.at, (size_t)(slash - text.at) };
	total = (struct npu_span){ slash + 1, text.length - used.length - 1 };
	return parse_integer(used, &ret_pair[0]) && parse_integer(total, &ret_pair[1]);
}

/* Reports the first of them; without the value, so that the text stays the same. */
static void note_dropped(struct npu_parser *parser, enum npu_field field)
{
	struct ts_npu_info *info = parser->info;

	if (!info->message[0])
		snprintf(info->message, sizeof(info->message),
			 "npu-smi printed an implausible '%s' of NPU %u; it is left out",
			 field_names[field], parser->chip.npu);
}

static void keep_between(struct npu_parser *parser, enum npu_field field, int64_t *value,
			 int64_t least, int64_t most)
{
	if (*value == TS_METRICS_UNKNOWN || (*value >= least && *value <= most))
		return;
	note_dropped(parser, field);
	*value = TS_METRICS_UNKNOWN;
}

/* A failed query is printed like this. */
static void drop_zero(int64_t *value)
{
	if (*value == 0)
		*value = TS_METRICS_UNKNOWN;
}

static bool take_pair(struct npu_parser *parser, enum npu_field field, struct npu_span text,
		      int64_t ret_pair[2])
{
	int64_t used, total;
	bool is_absent, can_be;

	if (!parse_pair(text, ret_pair))
		return false;
	used = ret_pair[0];
	total = ret_pair[1];
	/* 0 of 0: no such memory, or no answer. */
	is_absent = used == TS_METRICS_UNKNOWN || total == TS_METRICS_UNKNOWN ||
		    (used == 0 && total == 0);
	can_be = used >= 0 && total > 0 && used <= total;
	if (!is_absent && !can_be)
		note_dropped(parser, field);
	if (is_absent || !can_be)
		ret_pair[0] = ret_pair[1] = TS_METRICS_UNKNOWN;
	return true;
}

static bool parse_value(struct npu_parser *parser, enum npu_field field, struct npu_span text)
{
	struct ts_npu_chip *chip = &parser->chip;
	int64_t ignored[2];
	bool fits = true;

	switch (field) {
	case NPU_POWER:
		fits = parse_thousandths(text, &chip->power_mw);
		keep_between(parser, field, &chip->power_mw, 0, 5000 * 1000);
		drop_zero(&chip->power_mw);
		parser->power_is_shared = npu_is_text(text, "-");
		break;
	case NPU_TEMPERATURE:
		fits = parse_integer(text, &chip->temperature_c);
		keep_between(parser, field, &chip->temperature_c, -50, 150);
		drop_zero(&chip->temperature_c);
		break;
	case NPU_AICORE:
		fits = parse_integer(text, &chip->aicore_percent);
		keep_between(parser, field, &chip->aicore_percent, 0, 100);
		break;
	case NPU_UTILIZATION:
		fits = parse_integer(text, &chip->npu_percent);
		keep_between(parser, field, &chip->npu_percent, 0, 100);
		break;
	case NPU_MEMORY:
		fits = parser->found_memory = take_pair(parser, field, text, parser->memory);
		break;
	case NPU_HBM:
		fits = parser->found_hbm = take_pair(parser, field, text, parser->hbm);
		break;
	case NPU_HUGEPAGES:
		fits = parse_pair(text, ignored);
		break;
	case NPU_FIELD_COUNT:
		break;
	}
	return fits;
}

/* "0    / 0    60478/ 65536" without blanks inside values. False: too long. */
static bool join_pairs(struct npu_span text, char *buffer, size_t bytes, struct npu_span *ret_text)
{
	size_t used = 0;

	for (size_t i = 0; i < text.length; i++) {
		struct npu_span rest = { text.at + i, text.length - i };
		bool behind = used && buffer[used - 1] == '/';

		if (npu_is_blank(text.at[i]) && (behind || npu_starts_with(npu_trim(rest), "/")))
			continue;
		if (used == bytes)
			return false;
		buffer[used++] = text.at[i];
	}
	*ret_text = (struct npu_span){ buffer, used };
	return true;
}

/* One value per name. */
static bool parse_values(struct npu_parser *parser, const struct npu_header *header)
{
	char buffer[256];
	struct npu_span text;

	if (!join_pairs(parser->cells[parser->cell_count - 1], buffer, sizeof(buffer), &text))
		return false;
	for (size_t i = 0; i < header->count; i++) {
		struct npu_span word = npu_next_word(&text);

		if (!word.length || !parse_value(parser, header->fields[i], word))
			return false;
	}
	return !npu_trim(text).length;
}

/* ---- rows of a chip ---- */

static bool is_health(struct npu_span text)
{
	static const char *const states[] = { "OK", "Warning", "Alarm", "Critical", "UNKNOWN" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(states); i++)
		if (npu_is_text(text, states[i]))
			return true;
	return false;
}

static void begin_chip(struct npu_parser *parser)
{
	parser->chip = (struct ts_npu_chip){ .power_mw = TS_METRICS_UNKNOWN,
					     .temperature_c = TS_METRICS_UNKNOWN,
					     .aicore_percent = TS_METRICS_UNKNOWN,
					     .npu_percent = TS_METRICS_UNKNOWN,
					     .used_mib = TS_METRICS_UNKNOWN,
					     .total_mib = TS_METRICS_UNKNOWN };
	parser->power_is_shared = parser->found_memory = parser->found_hbm = false;
}

bool npu_parse_row_1(struct npu_parser *parser)
{
	struct npu_span id = parser->cells[0], number, model;
	struct ts_npu_chip *chip = &parser->chip;
	size_t cells = parser->has_name_cell ? 4 : 3;
	int64_t npu;

	begin_chip(parser);
	if (parser->cell_count != cells)
		return false;
	number = npu_next_word(&id);
	model = parser->has_name_cell ? parser->cells[1] : npu_trim(id);
	if (!npu_parse_number(number, UINT16_MAX, &npu) || (parser->has_name_cell && id.length) ||
	    !is_health(parser->cells[cells - 2]))
		return false;
	chip->npu = (uint32_t)npu;
	npu_copy_text(chip->model, sizeof(chip->model), model);
	npu_copy_text(chip->health, sizeof(chip->health), parser->cells[cells - 2]);
	return parse_values(parser, &parser->headers[0]);
}

/* "0000:C1:00.0"; "NA": none. */
static bool parse_bus(struct npu_span text, char bus[static 20])
{
	static const char shape[] = "xxxx:xx:xx.x";

	bus[0] = '\0';
	if (npu_is_text(text, "NA"))
		return true;
	if (text.length < sizeof(shape) - 1 || text.length > sizeof(shape))
		return false;
	for (size_t i = 0; i < text.length; i++) {
		char wanted = i < sizeof(shape) - 1 ? shape[i] : 'x';
		bool is_digit = text.at[i] && strchr("0123456789abcdefABCDEF", text.at[i]);

		if (wanted == 'x' ? !is_digit : text.at[i] != wanted)
			return false;
	}
	npu_copy_text(bus, 20, text);
	return true;
}

static bool parse_chip_id(struct npu_parser *parser)
{
	struct npu_span id = parser->cells[0], word;
	struct ts_npu_chip *chip = &parser->chip;
	int64_t number = 0;

	if (parser->has_name_cell) {
		chip->number = chip->npu;
		return !id.length && !parser->cells[1].length;
	}
	word = npu_next_word(&id);
	if (!npu_parse_number(word, 1024, &number))
		return false;
	chip->chip = (uint32_t)number;
	number = chip->npu + LATER_CHIPS * number;
	word = npu_next_word(&id);
	if (parser->has_device_numbers && !npu_parse_number(word, UINT16_MAX, &number))
		return false;
	if ((!parser->has_device_numbers && word.length) || number > UINT16_MAX)
		return false;
	chip->number = (uint32_t)number;
	return !npu_trim(id).length;
}

/* Program memory: HBM, if the tool reports it. */
static void choose_memory(struct npu_parser *parser)
{
	const int64_t *pair = parser->found_hbm ? parser->hbm : parser->memory;
	struct ts_npu_chip *chip = &parser->chip;

	if (parser->found_hbm || parser->found_memory) {
		chip->used_mib = pair[0];
		chip->total_mib = pair[1];
	}
	chip->is_silent = chip->total_mib == TS_METRICS_UNKNOWN &&
			  chip->temperature_c == TS_METRICS_UNKNOWN &&
			  chip->power_mw == TS_METRICS_UNKNOWN;
	if (chip->is_silent)
		chip->aicore_percent = chip->npu_percent = TS_METRICS_UNKNOWN;
	chip->is_rated_power = strcmp(chip->model, "310") == 0;
	chip->is_npu_power = parser->has_pairs && chip->chip == 0;
}

/* False if another chip has its key or number. */
static bool add_chip(struct npu_parser *parser)
{
	struct ts_npu_info *info = parser->info;
	const struct ts_npu_chip *chip = &parser->chip;

	for (size_t i = 0; i < info->chip_count; i++) {
		struct ts_npu_chip *other = &info->chips[i];

		if (other->number == chip->number ||
		    (other->npu == chip->npu && other->chip == chip->chip))
			return false;
		if (other->npu == chip->npu && parser->power_is_shared)
			other->is_npu_power = true;
	}
	if (info->chip_count == TS_NPU_CHIPS ||
	    ts_grow_array((void **)&info->chips, &info->chip_capacity, info->chip_count + 1,
			  sizeof(*info->chips)))
		return false;
	info->chips[info->chip_count++] = *chip;
	return true;
}

bool npu_parse_row_2(struct npu_parser *parser)
{
	size_t cells = parser->has_name_cell ? 4 : 3;

	if (parser->cell_count != cells || !parse_chip_id(parser) ||
	    !parse_bus(parser->cells[cells - 2], parser->chip.bus) ||
	    !parse_values(parser, &parser->headers[1]))
		return false;
	choose_memory(parser);
	return add_chip(parser);
}
