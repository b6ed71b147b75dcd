/* SPDX-License-Identifier: Apache-2.0 */
/* The process table, which follows the device table. */
#include <string.h>

#include "base/memory.h"
#include "sample/metrics/ascend/npu_smi_internal.h"

#define TOOL_LISTS 8u /* maximum per chip */

bool npu_begins_processes(const struct npu_parser *parser)
{
	return parser->rule_seen && parser->info->chip_count &&
	       npu_starts_with(parser->cells[0], "NPU");
}

bool npu_parse_process_header(struct npu_parser *parser)
{
	static const char *const titles[] = { NULL, "Process id", "Process name",
					      "Process memory(MB)", "Process id in container" };
	const struct npu_span *cells = parser->cells;

	if (parser->cell_count != 4 && parser->cell_count != 5)
		return false;
	if (!npu_has_words(cells[0], parser->has_name_cell ? "NPU ID" : "NPU Chip"))
		return false;
	for (size_t i = 1; i < parser->cell_count; i++)
		if (!npu_has_words(cells[i], titles[i]))
			return false;
	parser->process_cells = parser->cell_count;
	return true;
}

bool npu_is_none(const struct npu_parser *parser)
{
	struct npu_span text = parser->cells[0];
	const char *prefix = "No running processes found in NPU ";
	int64_t number;

	if (parser->cell_count != 1 || !npu_starts_with(text, prefix))
		return false;
	text.at += strlen(prefix);
	text.length -= strlen(prefix);
	return npu_parse_number(text, UINT16_MAX, &number);
}

static struct ts_npu_chip *find_chip(struct ts_npu_info *info, int64_t npu, int64_t chip)
{
	for (size_t i = 0; i < info->chip_count; i++)
		if (info->chips[i].npu == npu && info->chips[i].chip == chip)
			return &info->chips[i];
	return NULL;
}

static bool add_process(struct ts_npu_info *info, const struct ts_npu_process *process)
{
	for (size_t i = 0; i < info->process_count; i++) {
		struct ts_npu_process *other = &info->processes[i];

		if (other->number != process->number || other->pid != process->pid)
			continue;
		if (other->used_mib == TS_METRICS_UNKNOWN ||
		    process->used_mib == TS_METRICS_UNKNOWN)
			other->used_mib = TS_METRICS_UNKNOWN;
		else
			other->used_mib += process->used_mib;
		return true;
	}
	if (info->process_count == TS_NPU_PROCESSES ||
	    ts_grow_array((void **)&info->processes, &info->process_capacity,
			  info->process_count + 1, sizeof(*info->processes)))
		return false;
	info->processes[info->process_count++] = *process;
	return true;
}

static bool parse_number_or_none(struct npu_span text, int64_t limit, int64_t *ret_number)
{
	*ret_number = TS_METRICS_UNKNOWN;
	return npu_is_absent(text) || npu_parse_number(text, limit, ret_number);
}

/* The name, the third cell, may contain bars, so later cells are counted from the end. */
bool npu_parse_process(struct npu_parser *parser)
{
	struct ts_npu_process process = { .inner_pid = TS_METRICS_UNKNOWN };
	struct npu_span id = parser->cells[0], word = npu_next_word(&id);
	size_t count = parser->cell_count, behind = parser->process_cells - 3;
	struct ts_npu_chip *found;
	int64_t npu, chip = 0;

	if (count < parser->process_cells || !npu_parse_number(word, UINT16_MAX, &npu))
		return false;
	word = npu_next_word(&id);
	if (npu_trim(id).length ||
	    (parser->has_name_cell ? word.length > 0 : !npu_parse_number(word, 1024, &chip)))
		return false;
	if (!npu_parse_number(parser->cells[1], INT32_MAX, &process.pid) || !process.pid ||
	    !parse_number_or_none(parser->cells[count - behind], INT64_C(1) << 40,
				  &process.used_mib))
		return false;
	if (behind == 2 &&
	    !parse_number_or_none(parser->cells[count - 1], INT32_MAX, &process.inner_pid))
		return false;
	found = find_chip(parser->info, npu, chip);
	if (!found) { /* a row of a chip that the first table does not have */
		parser->info->is_incomplete = true;
		return true;
	}
	if (++found->process_rows >= TOOL_LISTS)
		parser->info->is_incomplete = true;
	process.number = found->number;
	return add_process(parser->info, &process);
}
