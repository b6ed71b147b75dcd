/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file: makes every query and unwinds every function in its tables by one step,
 * over a stack of the same bytes. Must not crash, loop, or return data that is not in the file.
 */
#include <stdlib.h>
#include <string.h>

#include "code/elf.h"
#include "code/local/cfi.h"
#include "code/maps.h"
#include "lib/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_ENTRIES 64u

static volatile uint8_t touched; /* exactly sized, for sanitizers */

static void read_sections(const struct ts_elf *elf, size_t size)
{
	static const char *const names[] = { ".text",   ".eh_frame", ".eh_frame_hdr", ".symtab",
					     ".dynsym", ".bss",      ".note.nothing", "" };
	struct ts_elf_range range;

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		size_t bytes = 0;
		const uint8_t *content = ts_elf_section_bytes(elf, names[i], &bytes);

		check(bytes <= size, "a section larger than the file");
		if (content && bytes)
			touched = content[0] ^ content[bytes - 1];
		ts_elf_section(elf, names[i], &range);
	}
	for (size_t i = 0; ts_elf_data_segment(elf, i, &range); i++)
		check(i < 65536, "segments without end");
}

static void look_up_symbols(struct ts_elf *elf, uint64_t address)
{
	struct ts_elf_range range;
	const char *name = "";
	uint64_t start = 0, bias;

	ts_elf_symbol(elf, "main", &range);
	if (ts_elf_function_at(elf, address, &name, &start)) {
		check(start <= address && *name, "a function that is elsewhere");
		ts_elf_symbol(elf, name, &range);
	}
	ts_elf_address_of_offset(elf, address, &start);
	ts_elf_bias(elf, address, 0, address & 1, &bias);
	check(strlen(ts_elf_build_id(elf)) % 2 == 0, "half a byte");
}

static void evaluate(const struct ts_cfi *cfi, const struct ts_cfi_rule *rule,
		     const struct ts_unwind_registers *registers,
		     const struct ts_cfi_memory *memory)
{
	uint64_t first = 1, value;

	if (rule->kind != TS_CFI_EXPRESSION && rule->kind != TS_CFI_AT_EXPRESSION)
		return;
	check(rule->value >= 0 && (uint64_t)rule->value <= cfi->frames_bytes &&
		      rule->bytes <= cfi->frames_bytes - (uint64_t)rule->value,
	      "an expression outside of the table");
	ts_cfi_evaluate(cfi->frames + rule->value, rule->bytes, registers, memory, &first, &value);
}

static void look_up_row(struct ts_cfi *cfi, uint64_t address, const struct ts_cfi_memory *memory)
{
	struct ts_unwind_registers registers = { .known = UINT64_MAX };
	struct ts_cfi_row row;

	if (!ts_cfi_find(cfi, address, &row))
		return;
	check(address >= row.start && address < row.end, "rules of another function");
	check(row.return_register < TS_UNWIND_REGISTERS, "a register that is none");
	for (size_t i = 0; i < TS_UNWIND_REGISTERS; i++)
		registers.values[i] = memory->address + 8 * i;
	evaluate(cfi, &row.frame, &registers, memory);
	for (size_t i = 0; i < TS_UNWIND_REGISTERS; i++)
		evaluate(cfi, &row.rules[i], &registers, memory);
}

/* By its own table, or the file's. */
static void look_up_rows(struct ts_cfi *cfi, const uint8_t *data, size_t size)
{
	const struct ts_cfi_memory memory = { .bytes = data, .address = 0x7000, .count = size };

	for (size_t i = 0; i < TS_MIN(cfi->table_count, MOST_ENTRIES); i++) {
		int32_t start;

		memcpy(&start, cfi->table + 8 * i, sizeof(start));
		look_up_row(cfi, cfi->header_address + (uint64_t)(int64_t)start, &memory);
		look_up_row(cfi, cfi->header_address + (uint64_t)(int64_t)start + 20, &memory);
	}
	cfi->table_count = 0;
	look_up_row(cfi, 0x1000, &memory);
	for (size_t i = 0; i < TS_MIN(cfi->entry_count, MOST_ENTRIES); i++)
		look_up_row(cfi, cfi->entries[i].start + i, &memory);
}

static void read_maps(const uint8_t *data, size_t size)
{
	struct ts_maps maps;

	if (ts_maps_parse(&maps, (const char *)data, size, NULL))
		return;
	for (size_t i = 0; i < maps.count; i++)
		check(ts_maps_find(&maps, maps.ranges[i].start) == &maps.ranges[i],
		      "a range that is not found");
	ts_maps_release(&maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ts_elf *elf = NULL;
	struct ts_cfi cfi;

	read_maps(data, size);
	if (ts_elf_open_image(&elf, data, size, "fuzz", NULL))
		return 0;
	read_sections(elf, size);
	for (uint64_t address = 0; address < 0x5000; address += 0x400)
		look_up_symbols(elf, address);
	ts_cfi_init(&cfi, elf);
	look_up_rows(&cfi, data, size);
	ts_cfi_release(&cfi);
	ts_elf_close(elf);
	return 0;
}
