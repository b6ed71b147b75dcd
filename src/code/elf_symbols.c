/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF symbols: .symtab and .dynsym, by name and by address. Tables are scanned linearly, ignoring
 * their hash indexes: lookups by name are rare, and for lookups by address functions are sorted
 * once.
 */
#include "code/elf_internal.h"

struct table {
	const Elf64_Sym *symbols;
	size_t count;
	const char *texts; /* NUL-terminated */
	size_t text_bytes;
};

static bool find_table(const struct ts_elf *elf, uint32_t type, struct table *ret_table)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		size_t bytes, text_bytes;
		const uint8_t *symbols, *texts;

		if (section->sh_type != type || section->sh_entsize != sizeof(Elf64_Sym))
			continue;
		symbols = ts_elf_copy_section(elf, i, &bytes);
		texts = ts_elf_copy_section(elf, section->sh_link, &text_bytes);
		if (!symbols || !texts || text_bytes == 0 || texts[text_bytes - 1] != '\0')
			return false; /* one of each kind; more would only waste memory */
		*ret_table = (struct table){
			.symbols = (const Elf64_Sym *)(const void *)symbols, /* from malloc() */
			.count = bytes / sizeof(Elf64_Sym),
			.texts = (const char *)texts,
			.text_bytes = text_bytes,
		};
		return true;
	}
	return false;
}

static const char *name_of(const struct table *table, const Elf64_Sym *symbol)
{
	return symbol->st_name < table->text_bytes ? table->texts + symbol->st_name : "";
}

/* ---- by name ---- */

static bool is_defined(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && (type == STT_NOTYPE || type == STT_OBJECT ||
						 type == STT_FUNC || type == STT_GNU_IFUNC);
}

static uint64_t file_offset_of(const struct ts_elf *elf, uint64_t address, uint64_t bytes,
			       uint64_t *ret_file_bytes)
{
	*ret_file_bytes = 0;
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];
		uint64_t offset = address - segment->p_vaddr;

		if (segment->p_type != PT_LOAD || address < segment->p_vaddr ||
		    offset >= segment->p_filesz)
			continue;
		*ret_file_bytes = TS_MIN(bytes, segment->p_filesz - offset);
		return segment->p_offset + offset;
	}
	return 0;
}

static bool find_name(const struct ts_elf *elf, const struct table *table, const char *name,
		      struct ts_elf_range *ret_range)
{
	for (size_t i = 0; i < table->count; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];

		if (!is_defined(symbol) || strcmp(name_of(table, symbol), name) != 0)
			continue;
		ret_range->address = symbol->st_value;
		ret_range->bytes = symbol->st_size;
		ret_range->file_offset = file_offset_of(elf, symbol->st_value, symbol->st_size,
							&ret_range->file_bytes);
		return true;
	}
	return false;
}

bool ts_elf_symbol(const struct ts_elf *elf, const char *name, struct ts_elf_range *ret_range)
{
	struct table table;

	return (find_table(elf, SHT_DYNSYM, &table) && find_name(elf, &table, name, ret_range)) ||
	       (find_table(elf, SHT_SYMTAB, &table) && find_name(elf, &table, name, ret_range));
}

/* ---- by address ---- */

static bool is_function(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC);
}

/* Aliases for calls inside glibc. */
#define GLIBC_INTERNAL "__GI_"

/* Of several names of one address, prefer plain and public ones. */
static unsigned int rank_of(const Elf64_Sym *symbol, const char *name)
{
	unsigned int binding = ELF64_ST_BIND(symbol->st_info);
	unsigned int rank = name[0] != '_'                                               ? 2
			    : strncmp(name, GLIBC_INTERNAL, strlen(GLIBC_INTERNAL)) != 0 ? 1
											 : 0;

	if (symbol->st_size > 0)
		rank += 16;
	if (binding == STB_GLOBAL)
		rank += 8;
	else if (binding == STB_WEAK)
		rank += 4;
	return rank;
}

static bool add_functions(struct ts_elf *elf, uint32_t type)
{
	struct table table;

	if (!find_table(elf, type, &table))
		return true;
	for (size_t i = 0; i < table.count; i++) {
		const Elf64_Sym *symbol = &table.symbols[i];
		const char *name = name_of(&table, symbol);
		uint64_t end;

		if (!is_function(symbol) || !*name ||
		    __builtin_add_overflow(symbol->st_value, symbol->st_size, &end))
			continue;
		if (ts_grow_array((void **)&elf->functions, &elf->function_capacity,
				  elf->function_count + 1, sizeof(*elf->functions)))
			return false;
		elf->functions[elf->function_count++] =
			(struct ts_elf_function){ .start = symbol->st_value,
						  .end = end,
						  .name = name,
						  .rank = rank_of(symbol, name) };
	}
	return true;
}

/* By address; the best name of an address first. */
static int compare_functions(const void *a, const void *b)
{
	const struct ts_elf_function *left = a, *right = b;

	if (left->start != right->start)
		return TS_COMPARE(left->start, right->start);
	if (left->rank != right->rank)
		return TS_COMPARE(right->rank, left->rank);
	return strcmp(left->name, right->name);
}

static void keep_best_names(struct ts_elf *elf)
{
	size_t kept = 0;

	for (size_t i = 0; i < elf->function_count; i++) {
		if (kept == 0 || elf->functions[kept - 1].start != elf->functions[i].start)
			elf->functions[kept++] = elf->functions[i];
	}
	elf->function_count = kept;
}

static void make_functions(struct ts_elf *elf)
{
	elf->has_functions = true;
	if (!add_functions(elf, SHT_SYMTAB) || !add_functions(elf, SHT_DYNSYM)) {
		elf->function_count = 0; /* no memory: half a table would give wrong names */
		return;
	}
	ts_sort(elf->functions, elf->function_count, sizeof(*elf->functions), compare_functions);
	keep_best_names(elf);
}

/* The last one that starts at or before the address. */
static const struct ts_elf_function *find_function(const struct ts_elf *elf, uint64_t address)
{
	size_t low = 0, high = elf->function_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (elf->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &elf->functions[low - 1] : NULL;
}

bool ts_elf_function_at(struct ts_elf *elf, uint64_t address, const char **ret_name,
			uint64_t *ret_start)
{
	const struct ts_elf_function *function;

	if (!elf->has_functions)
		make_functions(elf);
	function = find_function(elf, address);
	if (!function)
		return false;
	/* Assembly code has no size: assume it extends to the next symbol. */
	if (function->end != function->start && address >= function->end)
		return false;
	*ret_name = function->name;
	*ret_start = function->start;
	return true;
}
