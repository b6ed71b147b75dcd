/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections, symbols and relocations of cubins, and lookup of source locations. Line programs are
 * read in cubin_lines.c.
 */
#include "code/cubin_internal.h"

#define MACHINE_CUDA 190

/* ---- symbols ---- */

static const char *name_of(const struct ts_cubin *cubin, const Elf64_Sym *symbol)
{
	return symbol->st_name < cubin->name_bytes ? cubin->names + symbol->st_name : "";
}

static bool is_function(const struct ts_cubin *cubin, const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       *name_of(cubin, symbol);
}

static void read_symbols(struct ts_cubin *cubin)
{
	const struct ts_elf *elf = cubin->elf;

	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		const uint8_t *symbols, *names;
		size_t bytes, name_bytes;

		if (section->sh_type != SHT_SYMTAB || section->sh_entsize != sizeof(Elf64_Sym))
			continue;
		symbols = ts_elf_copy_section(elf, i, &bytes);
		names = ts_elf_copy_section(elf, section->sh_link, &name_bytes);
		if (!symbols || !names || !name_bytes || names[name_bytes - 1] != '\0')
			return;
		cubin->symbols = (const Elf64_Sym *)(const void *)symbols; /* from malloc() */
		cubin->symbol_count = bytes / sizeof(Elf64_Sym);
		cubin->names = (const char *)names;
		cubin->name_bytes = name_bytes;
		return;
	}
}

const char *ts_cubin_function_next(const struct ts_cubin *cubin, size_t *cursor)
{
	while (*cursor < cubin->symbol_count) {
		const Elf64_Sym *symbol = &cubin->symbols[(*cursor)++];

		if (is_function(cubin, symbol))
			return name_of(cubin, symbol);
	}
	return NULL;
}

static const Elf64_Sym *find_function(const struct ts_cubin *cubin, const char *name)
{
	for (size_t i = 0; i < cubin->symbol_count; i++)
		if (is_function(cubin, &cubin->symbols[i]) &&
		    strcmp(name_of(cubin, &cubin->symbols[i]), name) == 0)
			return &cubin->symbols[i];
	return NULL;
}

bool ts_cubin_find(const struct ts_cubin *cubin, const char *function, size_t *ret_symbol,
		   uint64_t *ret_address)
{
	const Elf64_Sym *symbol = find_function(cubin, function);

	if (!symbol)
		return false;
	*ret_symbol = (size_t)(symbol - cubin->symbols);
	*ret_address = symbol->st_value;
	return true;
}

/* ---- relocations of line tables ---- */

static int compare_fixes(const void *a, const void *b)
{
	const struct cubin_fix *left = a, *right = b;

	return TS_COMPARE(left->offset, right->offset);
}

/* Addresses in a cubin are relative to functions: a relocation table says which. */
static void read_fixes(struct ts_cubin *cubin, size_t index)
{
	size_t bytes, count;
	const uint8_t *table = ts_elf_copy_section(cubin->elf, index, &bytes);

	count = table ? bytes / sizeof(Elf64_Rela) : 0;
	cubin->fixes = count ? ts_alloc_array(count, sizeof(*cubin->fixes)) : NULL;
	if (!cubin->fixes)
		return;
	for (size_t i = 0; i < count; i++) {
		const Elf64_Sym *symbol;
		Elf64_Rela fix;

		memcpy(&fix, table + i * sizeof(fix), sizeof(fix));
		if (ELF64_R_SYM(fix.r_info) >= cubin->symbol_count)
			continue;
		symbol = &cubin->symbols[ELF64_R_SYM(fix.r_info)];
		cubin->fixes[cubin->fix_count++] =
			(struct cubin_fix){ .offset = fix.r_offset,
					    .value = symbol->st_value + (uint64_t)fix.r_addend,
					    .section = symbol->st_shndx };
	}
	ts_sort(cubin->fixes, cubin->fix_count, sizeof(*cubin->fixes), compare_fixes);
}

static void find_fixes(struct ts_cubin *cubin, uint64_t lines_offset)
{
	const struct ts_elf *elf = cubin->elf;

	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];

		if (section->sh_type == SHT_RELA && section->sh_info < elf->section_count &&
		    elf->sections[section->sh_info].sh_offset == lines_offset) {
			read_fixes(cubin, i);
			return;
		}
	}
}

/* ---- opening ---- */

static void read_all_lines(struct ts_cubin *cubin)
{
	struct ts_elf_range range;
	size_t bytes = 0;
	const uint8_t *lines = ts_elf_section_bytes(cubin->elf, ".debug_line", &bytes);
	const char *strings = ts_elf_section_bytes(cubin->elf, ".debug_str", &cubin->string_bytes);

	if (strings && cubin->string_bytes && strings[cubin->string_bytes - 1] == '\0')
		cubin->strings = strings;
	cubin->line_strings =
		ts_elf_section_bytes(cubin->elf, ".debug_line_str", &cubin->line_string_bytes);
	if (!lines || !ts_elf_section(cubin->elf, ".debug_line", &range))
		return;
	find_fixes(cubin, range.file_offset);
	cubin_read_lines(cubin, lines, bytes);
}

int ts_cubin_open(struct ts_cubin **ret_cubin, const void *image, size_t bytes,
		  struct ts_error *err)
{
	TS_AUTO(ts_cubin) cubin = calloc(1, sizeof(*cubin));
	int error;

	if (!cubin)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	error = ts_elf_open_image(&cubin->elf, image, bytes, "cubin", err);
	if (error)
		return error;
	if (ts_elf_machine(cubin->elf) != MACHINE_CUDA)
		return ts_error_set(err, TS_EFORMAT, "not CUDA device code");
	read_symbols(cubin);
	read_all_lines(cubin);
	*ret_cubin = TS_STEAL(cubin);
	return TS_OK;
}

void ts_cubin_close(struct ts_cubin *cubin)
{
	if (!cubin)
		return;
	for (size_t i = 0; i < cubin->file_count; i++)
		free(cubin->files[i]);
	free(cubin->files);
	free(cubin->fixes);
	free(cubin->rows);
	free(cubin->sequences);
	ts_elf_close(cubin->elf);
	free(cubin);
}

bool ts_cubin_has_lines(const struct ts_cubin *cubin)
{
	return cubin->row_count > 0;
}

/* ---- source locations ---- */

/*
 * The last row at or before the address: of several rows at one address the last is the innermost.
 */
static const struct cubin_row *find_in(const struct ts_cubin *cubin,
				       const struct cubin_sequence *sequence, uint64_t address)
{
	const struct cubin_row *best = NULL;

	if (address >= sequence->end)
		return NULL;
	for (size_t i = 0; i < sequence->count; i++) {
		const struct cubin_row *row = &cubin->rows[sequence->first + i];

		if (row->address <= address && (!best || row->address >= best->address))
			best = row;
	}
	return best;
}

static const struct cubin_row *find_row(const struct ts_cubin *cubin, const Elf64_Sym *function,
					uint64_t offset)
{
	for (size_t i = 0; i < cubin->sequence_count; i++) {
		const struct cubin_sequence *sequence = &cubin->sequences[i];
		const struct cubin_row *row;

		if (sequence->section && sequence->section != function->st_shndx)
			continue;
		row = find_in(cubin, sequence, function->st_value + offset);
		if (row)
			return row;
	}
	return NULL;
}

size_t ts_cubin_locations(const struct ts_cubin *cubin, const char *function, uint64_t offset,
			  struct ts_cubin_location *ret_locations, size_t most)
{
	const Elf64_Sym *symbol = find_function(cubin, function);
	const struct cubin_row *row = symbol ? find_row(cubin, symbol, offset) : NULL;
	size_t count = 0;

	/* A row's caller precedes it, so this terminates. */
	while (row && count < most) {
		bool is_inlined = row->caller > 0;
		struct ts_cubin_location *location = &ret_locations[count++];

		location->file = row->file ? cubin->files[row->file - 1] : "";
		location->line = row->line;
		location->function = NULL;
		if (is_inlined)
			location->function = cubin->strings && row->function < cubin->string_bytes
						     ? cubin->strings + row->function
						     : "?";
		row = is_inlined ? &cubin->rows[row->caller - 1] : NULL;
	}
	return count;
}
