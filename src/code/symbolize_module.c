/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolizes the addresses of one binary: the body of a symbolize.c worker. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/demangle.h"
#include "code/dwarf.h"
#include "code/elf.h"
#include "code/symbolize_internal.h"

/* Symbol sources; each may be NULL. The separate debug file has more symbols than the binary. */
struct sources {
	struct ts_elf *elfs[2];
	struct ts_dwarf *dwarf;
};

static void append_item(struct ts_text *out, const char *name, const char *file, int64_t line)
{
	TS_AUTO_FREE char *plain = name ? ts_demangle(name) : NULL;
	const char *shown = plain ? plain : name ? name : "";
	struct ts_symbolize_item item = {
		.name_bytes = (uint32_t)strnlen(shown, TS_SYMBOLIZE_NAME_BYTES),
		.file_bytes = file ? (uint32_t)strnlen(file, TS_SYMBOLIZE_NAME_BYTES) : 0,
		.line = line,
	};

	ts_text_append(out, &item, sizeof(item));
	ts_text_append(out, shown, item.name_bytes);
	ts_text_append(out, file, item.file_bytes);
}

/* Functions without a size would extend beyond all code. */
static bool is_code(const struct ts_elf *elf, uint64_t address)
{
	struct ts_elf_range range;
	uint32_t flags;

	for (size_t i = 0; ts_elf_segment(elf, PT_LOAD, i, &flags, &range); i++)
		if (flags & PF_X && address >= range.address &&
		    address - range.address < range.bytes)
			return true;
	return false;
}

static const char *linker_name(const struct sources *sources, uint64_t address)
{
	const char *name;
	uint64_t start;

	for (size_t i = 0; i < TS_ARRAY_SIZE(sources->elfs); i++)
		if (sources->elfs[i] && is_code(sources->elfs[i], address) &&
		    ts_elf_function_at(sources->elfs[i], address, &name, &start))
			return name;
	return NULL;
}

static void append_address(struct ts_text *out, const struct sources *sources, uint64_t address)
{
	struct ts_dwarf_function functions[TS_SYMBOLIZE_DEPTH];
	uint32_t count = 0;
	const char *name;

	if (sources->dwarf)
		count = (uint32_t)ts_dwarf_functions_at(sources->dwarf, address, functions,
							TS_ARRAY_SIZE(functions));
	if (count == 0) {
		name = linker_name(sources, address);
		count = name != NULL;
		ts_text_append(out, &count, sizeof(count));
		if (name)
			append_item(out, name, NULL, 0);
		return;
	}
	/* The enclosing function may have no name: assembly. */
	if (!functions[count - 1].name)
		functions[count - 1].name = linker_name(sources, address);
	ts_text_append(out, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++)
		append_item(out, functions[i].name, functions[i].file, functions[i].line);
}

/* The binary itself may be complete: then the debug file is not needed. */
static void open_sources(const struct ts_symbolize_files *files, const char *name,
			 bool without_lines, struct sources *sources)
{
	const int fds[] = { files->debug, files->binary };

	for (size_t i = 0; i < TS_ARRAY_SIZE(fds); i++) {
		if (fds[i] < 0)
			continue;
		ts_elf_open(&sources->elfs[i], fds[i], name, NULL);
		if (!without_lines && !sources->dwarf)
			ts_dwarf_open(&sources->dwarf, fds[i], NULL);
	}
}

void ts_symbolize_module(const struct ts_symbolize_module *module,
			 const struct ts_symbolize_options *options, bool without_lines,
			 struct ts_text *out)
{
	struct sources sources = { 0 };
	struct ts_symbolize_files files;
	struct ts_symbolize_head head = { 0 };

	ts_symbolize_find(module, options, &files);
	open_sources(&files, module->path, without_lines, &sources);
	if (files.state == TS_SYMBOLIZE_FUNCTIONS && !sources.elfs[0] && !sources.elfs[1])
		files.state = TS_SYMBOLIZE_UNREADABLE;
	head.state = files.state;
	head.has_lines = sources.dwarf != NULL;
	ts_text_append(out, &head, sizeof(head));
	for (size_t i = 0; i < module->count && files.state == TS_SYMBOLIZE_FUNCTIONS; i++)
		append_address(out, &sources, module->addresses[i]);
	ts_dwarf_close(sources.dwarf);
	for (size_t i = 0; i < TS_ARRAY_SIZE(sources.elfs); i++)
		ts_elf_close(sources.elfs[i]);
	if (files.binary >= 0)
		close(files.binary);
	if (files.debug >= 0)
		close(files.debug);
}
