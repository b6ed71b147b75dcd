/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cubins: ELF files with NVIDIA's sections. .nv.info.KERNEL has attributes of a kernel,
 * .nv.callgraph pairs of symbols, in segments that begin with (0, -1) to (0, -4).
 */
#include "code/cuda/local/cubin_symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/local/cursor.h"

#define EM_CUDA 190
#define SYMBOL_TEXTURE 10
#define SYMBOL_SURFACE 11
#define SYMBOL_OBJECT 13 /* of code that is to be linked */
#define OTHER_MANAGED 0x04
#define OTHER_ENTRY 0x10

enum { INFO_EXTERNS = 0x0f, INFO_PARAM = 0x17, INFO_PARAM_LARGE = 0x45 };
#define INFO_HAS_BYTES 4 /* format: the value is a number of bytes that follow */

enum { GRAPH_CALLS = -1, GRAPH_TAKEN = -2, GRAPH_INDIRECT = -3 };

struct view {
	const uint8_t *image;
	size_t bytes;
	const uint8_t *sections; /* may be unaligned: read by section() */
	size_t section_count;
	const uint8_t *symbols;
	size_t symbol_count;
	const uint8_t *high_sections; /* section numbers that do not fit; NULL */
	const char *names, *section_names;
	size_t name_bytes, section_name_bytes;
};

static Elf64_Shdr section(const struct view *view, size_t index)
{
	Elf64_Shdr header;

	memcpy(&header, view->sections + index * sizeof(header), sizeof(header));
	return header;
}

static Elf64_Sym symbol(const struct view *view, size_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, view->symbols + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

/* Its bytes; NULL: none, or they are not in the file. */
static const uint8_t *contents(const struct view *view, const Elf64_Shdr *header, size_t *ret_bytes)
{
	if (header->sh_type == SHT_NOBITS || header->sh_offset > view->bytes ||
	    header->sh_size > view->bytes - header->sh_offset || !header->sh_size)
		return NULL;
	*ret_bytes = header->sh_size;
	return view->image + header->sh_offset;
}

/* A table of strings that ends with a NUL, so that each of them does. */
static const char *strings(const struct view *view, size_t index, size_t *ret_bytes)
{
	const uint8_t *text;
	Elf64_Shdr header;

	if (index >= view->section_count)
		return NULL;
	header = section(view, index);
	text = contents(view, &header, ret_bytes);
	return text && !text[*ret_bytes - 1] ? (const char *)text : NULL;
}

static const char *section_name(const struct view *view, const Elf64_Shdr *header)
{
	return header->sh_name < view->section_name_bytes ? view->section_names + header->sh_name
							  : "";
}

static const char *symbol_name(const struct view *view, const Elf64_Sym *of)
{
	return of->st_name < view->name_bytes ? view->names + of->st_name : "";
}

static uint32_t section_of(const struct view *view, size_t index, const Elf64_Sym *of)
{
	uint32_t high;

	if (of->st_shndx != SHN_XINDEX)
		return of->st_shndx < SHN_LORESERVE ? of->st_shndx : SHN_UNDEF;
	if (!view->high_sections)
		return SHN_UNDEF;
	memcpy(&high, view->high_sections + index * sizeof(high), sizeof(high));
	return high;
}

static bool find_symbols(struct view *view)
{
	size_t bytes = 0, high_bytes = 0, table = 0;
	Elf64_Shdr header;

	for (size_t i = 1; i < view->section_count && !view->symbols; i++) {
		header = section(view, i);
		if (header.sh_type != SHT_SYMTAB || header.sh_entsize != sizeof(Elf64_Sym))
			continue;
		view->symbols = contents(view, &header, &bytes);
		view->symbol_count = bytes / sizeof(Elf64_Sym);
		view->names = strings(view, header.sh_link, &view->name_bytes);
		table = i;
	}
	if (!view->symbols || !view->names || view->symbol_count > UINT32_MAX / 4)
		return false;
	for (size_t i = 1; i < view->section_count; i++) {
		header = section(view, i);
		if (header.sh_type != SHT_SYMTAB_SHNDX || header.sh_link != table)
			continue;
		view->high_sections = contents(view, &header, &high_bytes);
		if (high_bytes / sizeof(uint32_t) < view->symbol_count)
			view->high_sections = NULL;
	}
	return true;
}

static bool open_view(struct view *view, const uint8_t *image, size_t bytes)
{
	Elf64_Ehdr header;
	size_t names;

	*view = (struct view){ .image = image, .bytes = bytes };
	if (bytes < sizeof(header))
		return false;
	memcpy(&header, image, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != EM_CUDA || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    header.e_shoff > bytes || bytes - header.e_shoff < sizeof(Elf64_Shdr))
		return false;
	view->sections = image + header.e_shoff;
	view->section_count = 1;
	/* Large numbers are in the first section's header. */
	view->section_count = header.e_shnum ? header.e_shnum : section(view, 0).sh_size;
	names = header.e_shstrndx == SHN_XINDEX ? section(view, 0).sh_link : header.e_shstrndx;
	if (view->section_count > (bytes - header.e_shoff) / sizeof(Elf64_Shdr))
		return false;
	view->section_names = strings(view, names, &view->section_name_bytes);
	return view->section_names && find_symbols(view);
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* ---- attributes of kernels ---- */

struct attribute {
	uint8_t id;
	const uint8_t *data;
	size_t bytes;
};

static bool next_attribute(struct ts_cursor *info, struct attribute *ret_attribute)
{
	uint8_t format = ts_cursor_u8(info);
	uint16_t value;

	ret_attribute->id = ts_cursor_u8(info);
	value = ts_cursor_u16(info);
	ret_attribute->data = info->at;
	ret_attribute->bytes = 0;
	if (format == INFO_HAS_BYTES) {
		ret_attribute->bytes = value;
		ts_cursor_skip(info, value);
	}
	return !info->is_bad;
}

static bool add_param(struct ts_code_params *params, const struct attribute *attribute)
{
	struct ts_cursor cursor = { .at = attribute->data,
				    .end = attribute->data + attribute->bytes };
	uint32_t size;
	uint16_t ordinal, offset;

	ts_cursor_u32(&cursor); /* index */
	ordinal = ts_cursor_u16(&cursor);
	offset = ts_cursor_u16(&cursor);
	size = ts_cursor_u32(&cursor);
	if (attribute->id == INFO_PARAM)
		size >>= 18;
	if (cursor.is_bad || ordinal >= TS_CODE_PARAMS || size > UINT16_MAX)
		return false;
	params->offsets[ordinal] = offset;
	params->sizes[ordinal] = (uint16_t)size;
	if (ordinal >= params->count)
		params->count = ordinal + 1u;
	if (offset + size > params->bytes)
		params->bytes = offset + size;
	return true;
}

bool ts_cubin_params(struct ts_code_params *params, const char *kernel, const uint8_t *cubin,
		     size_t bytes)
{
	struct view view;

	memset(params, 0, sizeof(*params));
	if (!open_view(&view, cubin, bytes))
		return false;
	for (size_t i = 1; i < view.section_count; i++) {
		Elf64_Shdr header = section(&view, i);
		const char *name = section_name(&view, &header);
		struct ts_cursor info = { 0 };
		struct attribute attribute;
		size_t info_bytes;

		if (!starts_with(name, ".nv.info.") || strcmp(name + strlen(".nv.info."), kernel))
			continue;
		info.at = contents(&view, &header, &info_bytes);
		if (!info.at)
			return false;
		info.end = info.at + info_bytes;
		while (ts_cursor_left(&info) && next_attribute(&info, &attribute))
			if ((attribute.id == INFO_PARAM || attribute.id == INFO_PARAM_LARGE) &&
			    !add_param(params, &attribute))
				return false;
		return !info.is_bad;
	}
	return false;
}

/* ---- variables ---- */

static bool add_variable(struct ts_code_facts *facts, const struct view *view, size_t index,
			 const Elf64_Sym *of)
{
	uint32_t type = ELF64_ST_TYPE(of->st_info), number = section_of(view, index, of);
	const char *name = symbol_name(view, of), *in;
	bool is_constant;
	Elf64_Shdr header;

	if ((type == SYMBOL_TEXTURE || type == SYMBOL_SURFACE) && !facts->texture) {
		facts->texture = strdup(name);
		return facts->texture != NULL;
	}
	if ((type != STT_OBJECT && type != SYMBOL_OBJECT) || !of->st_size || !name[0] ||
	    number == SHN_UNDEF || number >= view->section_count)
		return true;
	header = section(view, number);
	in = section_name(view, &header);
	is_constant = !strcmp(in, ".nv.constant3");
	if (!is_constant && strcmp(in, ".nv.global") && strcmp(in, ".nv.global.init"))
		return true;
	if (!ts_code_add_variable(facts, name, strlen(name), of->st_size, is_constant,
				  of->st_other & OTHER_MANAGED))
		return false;
	facts->variables[facts->variable_count - 1].section = number;
	facts->variables[facts->variable_count - 1].offset = of->st_value;
	return true;
}

/* ---- addresses of functions in variables, of code that was compiled separately ---- */

enum { RELOCATION_64 = 0x02, RELOCATION_GENERIC_64 = 0x04, RELOCATION_FUNCTION_64 = 0x23 };

static int by_place(const void *a, const void *b)
{
	const struct ts_code_variable *left = a, *right = b;

	if (left->section != right->section)
		return left->section < right->section ? -1 : 1;
	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* The variables from `first` on are sorted by place. */
static const struct ts_code_variable *variable_at(const struct ts_code_facts *facts, size_t first,
						  uint32_t in, uint64_t offset)
{
	const struct ts_code_variable *found = NULL;
	size_t low = first, high = facts->variable_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ts_code_variable *variable = &facts->variables[middle];

		if (variable->section < in ||
		    (variable->section == in && variable->offset <= offset)) {
			found = variable;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found && found->section == in && found->bytes >= 8 &&
			       offset - found->offset <= found->bytes - 8
		       ? found
		       : NULL;
}

static bool add_pointer(struct ts_code_facts *facts, const struct view *view, size_t first,
			uint32_t in, const Elf64_Rela *relocation)
{
	uint32_t type = ELF64_R_TYPE(relocation->r_info);
	size_t index = ELF64_R_SYM(relocation->r_info);
	const struct ts_code_variable *variable;
	Elf64_Sym of;

	if ((type != RELOCATION_64 && type != RELOCATION_GENERIC_64 &&
	     type != RELOCATION_FUNCTION_64) ||
	    index >= view->symbol_count)
		return true;
	of = symbol(view, index);
	if (ELF64_ST_TYPE(of.st_info) != STT_FUNC)
		return true;
	variable = variable_at(facts, first, in, relocation->r_offset);
	return !variable ||
	       ts_code_add_pointer(facts, variable->name, relocation->r_offset - variable->offset,
				   symbol_name(view, &of));
}

static bool read_pointers(struct ts_code_facts *facts, const struct view *view, size_t first)
{
	if (facts->variable_count - first > 1)
		qsort(facts->variables + first, facts->variable_count - first,
		      sizeof(*facts->variables), by_place);
	for (size_t i = 1; i < view->section_count; i++) {
		Elf64_Shdr header = section(view, i);
		const char *name = section_name(view, &header);
		const uint8_t *relocations;
		size_t bytes = 0;

		if (header.sh_type != SHT_RELA ||
		    (strcmp(name, ".rela.nv.global.init") && strcmp(name, ".rela.nv.constant3")))
			continue;
		relocations = contents(view, &header, &bytes);
		for (size_t at = 0; relocations && at + sizeof(Elf64_Rela) <= bytes;
		     at += sizeof(Elf64_Rela)) {
			Elf64_Rela relocation;

			memcpy(&relocation, relocations + at, sizeof(relocation));
			if (!add_pointer(facts, view, first, header.sh_info, &relocation))
				return false;
		}
	}
	return true;
}

/* ---- calls ---- */

struct calls {
	const struct view *view;
	const char **why; /* of symbols, then of prototypes of indirect calls */
	size_t why_count;
	const char **section_why;
	struct ts_code_call *calls;
	size_t count, capacity;
	size_t callgraph; /* section; 0: none */
};

static void note_externs(struct calls *calls, const Elf64_Shdr *header,
			 const struct attribute *attribute)
{
	for (size_t at = 0; at + 4 <= attribute->bytes; at += 4) {
		uint32_t index;

		memcpy(&index, attribute->data + at, sizeof(index));
		if (index < calls->view->symbol_count &&
		    header->sh_info < calls->view->section_count && calls->why[index])
			calls->section_why[header->sh_info] = calls->why[index];
	}
}

/* Functions outside of the image that a kernel uses, also through others. */
static void read_externs(struct calls *calls, const Elf64_Shdr *header)
{
	struct ts_cursor info = { 0 };
	struct attribute attribute;
	size_t bytes;

	info.at = contents(calls->view, header, &bytes);
	if (!info.at)
		return;
	info.end = info.at + bytes;
	while (ts_cursor_left(&info) && next_attribute(&info, &attribute))
		if (attribute.id == INFO_EXTERNS)
			note_externs(calls, header, &attribute);
}

/* Functions whose address is taken are called where a function of that prototype is. */
static void read_callgraph(struct calls *calls, const Elf64_Shdr *header, size_t prototypes)
{
	size_t bytes, symbols = calls->view->symbol_count;
	const uint8_t *pairs = contents(calls->view, header, &bytes);
	int32_t segment = 0;

	for (size_t at = 0; pairs && at + 8 <= bytes; at += 8) {
		struct ts_code_call *call = &calls->calls[calls->count];
		uint32_t pair[2];

		memcpy(pair, pairs + at, sizeof(pair));
		if (!pair[0] && (int32_t)pair[1] < 0) {
			segment = (int32_t)pair[1];
			continue;
		}
		if (pair[0] >= symbols || calls->count == calls->capacity)
			continue;
		if (segment == GRAPH_CALLS && pair[1] < symbols)
			*call = (struct ts_code_call){ pair[0], pair[1] };
		else if (segment == GRAPH_TAKEN && pair[1] < prototypes)
			*call = (struct ts_code_call){ (uint32_t)symbols + pair[1], pair[0] };
		else if (segment == GRAPH_INDIRECT && pair[1] < prototypes)
			*call = (struct ts_code_call){ pair[0], (uint32_t)symbols + pair[1] };
		else
			continue;
		calls->count++;
	}
}

/* 0: there is none, or it is empty. */
static size_t find_callgraph(const struct view *view, size_t *ret_bytes)
{
	for (size_t i = 1; i < view->section_count; i++) {
		Elf64_Shdr header = section(view, i);

		if (!strcmp(section_name(view, &header), ".nv.callgraph"))
			return contents(view, &header, ret_bytes) ? i : 0;
	}
	return 0;
}

/* Marks what is outside and must not be called, then everything that reaches it. */
static bool spread(struct calls *calls, size_t prototypes)
{
	const struct view *view = calls->view;

	for (size_t i = 1; i < view->symbol_count; i++) {
		Elf64_Sym of = symbol(view, i);
		const char *name = symbol_name(view, &of);

		if (section_of(view, i, &of) == SHN_UNDEF || name[0] == '_' || name[0] == 'c')
			calls->why[i] = ts_code_function_refused(name, strlen(name));
	}
	for (size_t i = 1; i < view->section_count; i++) {
		Elf64_Shdr header = section(view, i);
		const char *name = section_name(view, &header);

		if (starts_with(name, ".nv.info."))
			read_externs(calls, &header);
		else if (i == calls->callgraph)
			read_callgraph(calls, &header, prototypes);
	}
	for (size_t i = 1; i < view->symbol_count; i++) {
		Elf64_Sym of = symbol(view, i);
		uint32_t in = section_of(view, i, &of);

		if (!calls->why[i] && ELF64_ST_TYPE(of.st_info) == STT_FUNC &&
		    in < view->section_count)
			calls->why[i] = calls->section_why[in];
	}
	return ts_code_spread(calls->why, calls->why_count, calls->calls, calls->count);
}

static bool add_refused(struct ts_code_facts *facts, const struct calls *calls)
{
	for (size_t i = 1; i < calls->view->symbol_count; i++) {
		Elf64_Sym of = symbol(calls->view, i);
		const char *name = symbol_name(calls->view, &of);

		if (calls->why[i] && ELF64_ST_TYPE(of.st_info) == STT_FUNC &&
		    of.st_other & OTHER_ENTRY && section_of(calls->view, i, &of) != SHN_UNDEF &&
		    !ts_code_add_refused(facts, name, strlen(name), calls->why[i]))
			return false;
	}
	return true;
}

static bool read_calls(struct ts_code_facts *facts, const struct view *view)
{
	/* Prototypes are offsets in a small section. */
	size_t bytes = 0, prototypes = (size_t)1 << 16;
	struct calls calls = { .view = view };
	bool is_good;

	calls.callgraph = find_callgraph(view, &bytes);
	calls.capacity = bytes / 8;
	calls.why_count = view->symbol_count + prototypes;
	calls.why = calloc(calls.why_count, sizeof(*calls.why));
	calls.section_why = calloc(view->section_count, sizeof(*calls.section_why));
	calls.calls = malloc((calls.capacity + 1) * sizeof(*calls.calls));
	is_good = calls.why && calls.section_why && calls.calls && spread(&calls, prototypes) &&
		  add_refused(facts, &calls);
	free(calls.why);
	free(calls.section_why);
	free(calls.calls);
	return is_good;
}

bool ts_cubin_facts(struct ts_code_facts *facts, const uint8_t *cubin, size_t bytes)
{
	size_t first = facts->variable_count;
	struct view view;

	if (!open_view(&view, cubin, bytes))
		return false;
	for (size_t i = 1; i < view.symbol_count; i++) {
		Elf64_Sym of = symbol(&view, i);

		if (!add_variable(facts, &view, i, &of))
			return false;
	}
	return read_pointers(facts, &view, first) && read_calls(facts, &view);
}
