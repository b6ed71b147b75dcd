/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the lines of `npu-smi info` at '|' into cells and passes them to the current table. Rules
 * ("+---+") only separate; their shape is ignored.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "sample/metrics/ascend/npu_smi_internal.h"

/* ---- lines ---- */

static bool next_line(struct npu_parser *parser)
{
	const char *newline;

	if (parser->at == parser->end)
		return false;
	newline = memchr(parser->at, '\n', (size_t)(parser->end - parser->at));
	parser->line.at = parser->at;
	parser->line.length = (size_t)((newline ? newline : parser->end) - parser->at);
	parser->at = newline ? newline + 1 : parser->end;
	parser->line = npu_trim(parser->line);
	return true;
}

static bool is_rule(struct npu_span line)
{
	for (size_t i = 0; i < line.length; i++)
		if (!strchr("+-=", line.at[i]) || !line.at[i])
			return false;
	return line.length > 2 && line.at[0] == '+' && line.at[line.length - 1] == '+';
}

/* "| a | b |": false if the borders are missing, or there are too many cells. */
static bool cut_cells(struct npu_parser *parser)
{
	struct npu_span line = parser->line;

	parser->cell_count = 0;
	if (line.length < 2 || line.at[line.length - 1] != '|')
		return false;
	for (size_t from = 1; from < line.length && parser->cell_count < NPU_CELLS;) {
		const char *bar = memchr(line.at + from, '|', line.length - from);
		size_t until = (size_t)(bar - line.at);
		struct npu_span cell = { line.at + from, until - from };

		parser->cells[parser->cell_count++] = npu_trim(cell);
		from = until + 1;
		if (from == line.length)
			return true;
	}
	return false;
}

/* Error output instead of a table; the exit code may be 0. */
static bool is_complaint(struct npu_span line)
{
	return npu_starts_with(line, "Failed to ") || npu_starts_with(line, "dcmi mod") ||
	       npu_starts_with(line, "Usage: npu-smi") || npu_starts_with(line, "There is no NPU");
}

/* ---- all ---- */

static void drop_processes(struct npu_parser *parser, const char *what)
{
	struct ts_npu_info *info = parser->info;
	size_t used = strlen(info->message);
	char line[128];

	npu_copy_text(line, sizeof(line), parser->line);
	snprintf(info->message + used, sizeof(info->message) - used,
		 "%snpu-smi %s: '%s'; memory of processes is left out", used ? "; " : "", what,
		 line);
	info->has_processes = false;
	info->process_count = 0;
	parser->at = parser->end;
}

/* The process table; an unexpected line ends it. */
static void take_process_line(struct npu_parser *parser)
{
	bool fits;

	if (parser->expected == NPU_ROW_1) {
		parser->expected = NPU_PROCESS_ROW;
		parser->info->has_processes = true;
		fits = npu_parse_process_header(parser);
	} else {
		fits = parser->cell_count && (npu_is_none(parser) || npu_parse_process(parser));
	}
	if (!fits)
		drop_processes(parser,
			       "printed a table of processes that this version does not know");
}

/* False: unexpected. */
static bool take_line(struct npu_parser *parser)
{
	bool fits = false;

	switch (parser->expected) {
	case NPU_TITLE:
		fits = npu_parse_title(parser);
		break;
	case NPU_HEADER_1:
		fits = npu_parse_header_1(parser);
		break;
	case NPU_HEADER_2:
		fits = npu_parse_header_2(parser);
		break;
	case NPU_ROW_1:
		if (npu_begins_processes(parser)) {
			take_process_line(parser);
			return true;
		}
		fits = npu_parse_row_1(parser);
		break;
	case NPU_ROW_2:
		fits = npu_parse_row_2(parser);
		break;
	case NPU_PROCESS_ROW:
		take_process_line(parser);
		return true;
	}
	parser->expected = parser->expected == NPU_ROW_2 ? NPU_ROW_1 : parser->expected + 1;
	return fits;
}

static int refuse(struct npu_parser *parser, const char *what, struct ts_error *err)
{
	char line[160];

	npu_copy_text(line, sizeof(line), parser->line);
	return ts_error_set(err, TS_EFORMAT, "npu-smi %s: '%s'; values are left out", what, line);
}

static int take_lines(struct npu_parser *parser, struct ts_error *err)
{
	while (next_line(parser)) {
		struct npu_span line = parser->line;
		bool is_table = line.length && (line.at[0] == '|' || line.at[0] == '+');

		if (is_complaint(line))
			return refuse(parser, "complains", err);
		if (!is_table)
			continue;
		if (is_rule(line)) {
			parser->rule_seen = true;
			continue;
		}
		if (line.at[0] != '|' || !cut_cells(parser))
			parser->cell_count = 0;
		if ((!parser->cell_count && parser->expected != NPU_PROCESS_ROW) ||
		    !take_line(parser))
			return refuse(parser, "printed a table that this version does not know",
				      err);
		parser->rule_seen = false;
	}
	return TS_OK;
}

/* If the text just ends, what would have followed is unknown. */
static int check_end(struct npu_parser *parser, struct ts_error *err)
{
	char line[160];

	if (parser->expected == NPU_TITLE) {
		ts_npu_smi_complaint(parser->text, (size_t)(parser->end - parser->text), line,
				     sizeof(line));
		return line[0] ? ts_error_set(err, TS_EFORMAT, "npu-smi printed no table: '%s'",
					      line)
			       : ts_error_set(err, TS_EFORMAT, "npu-smi printed nothing");
	}
	if (parser->expected == NPU_PROCESS_ROW) {
		if (parser->info->has_processes && !parser->rule_seen)
			drop_processes(parser, "printed a table of processes that ends early");
		return TS_OK;
	}
	if (parser->expected != NPU_ROW_1 || !parser->rule_seen)
		return refuse(parser, "printed a table that ends early", err);
	if (!parser->info->chip_count)
		return ts_error_set(err, TS_EFORMAT, "npu-smi printed a table without devices");
	return TS_OK;
}

int ts_npu_smi_parse(const char *text, size_t bytes, struct ts_npu_info *ret_info,
		     struct ts_error *err)
{
	struct npu_parser parser = {
		.text = text, .at = text, .end = text + bytes, .info = ret_info
	};
	int rc;

	memset(ret_info, 0, sizeof(*ret_info));
	rc = take_lines(&parser, err);
	if (!rc)
		rc = check_end(&parser, err);
	if (rc)
		ts_npu_info_release(ret_info);
	return rc;
}

void ts_npu_info_release(struct ts_npu_info *info)
{
	free(info->chips);
	free(info->processes);
	memset(info, 0, sizeof(*info));
}

/* ---- in place of a table ---- */

bool ts_npu_smi_is_none(const char *text, size_t bytes)
{
	struct npu_parser parser = { .at = text, .end = text + bytes };

	while (next_line(&parser))
		if (npu_starts_with(parser.line, "There is no NPU") ||
		    npu_starts_with(parser.line, "Usage: npu-smi"))
			return true;
	return false;
}

void ts_npu_smi_complaint(const char *text, size_t bytes, char *ret_line, size_t line_bytes)
{
	struct npu_parser parser = { .at = text, .end = text + bytes };

	ret_line[0] = '\0';
	while (!ret_line[0] && next_line(&parser))
		if (parser.line.length && parser.line.at[0] != '|' && parser.line.at[0] != '+')
			npu_copy_text(ret_line, line_bytes, parser.line);
}
