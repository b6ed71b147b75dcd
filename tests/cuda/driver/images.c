/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: images as nvcc makes them, cubins and fat binaries. Of functions it takes
 * the name and the parameters, of variables all.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/modules.h"

/* ---- cubins ---- */

struct elf {
	const uint8_t *image;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	uint64_t addresses[256]; /* of sections with variables */
};

static const char *section_name(const struct elf *elf, size_t section)
{
	return (const char *)elf->image + elf->sections[elf->header->e_shstrndx].sh_offset +
	       elf->sections[section].sh_name;
}

static void read_parameters(const struct elf *elf, size_t section, struct function *function)
{
	const uint8_t *at = elf->image + elf->sections[section].sh_offset;
	const uint8_t *end = at + elf->sections[section].sh_size;

	while (at + 4 <= end) {
		uint16_t value;

		memcpy(&value, at + 2, sizeof(value));
		if (at[0] == 4 && at[1] == 0x17) {
			uint16_t index, offset;
			uint32_t packed;

			memcpy(&index, at + 8, sizeof(index));
			memcpy(&offset, at + 10, sizeof(offset));
			memcpy(&packed, at + 12, sizeof(packed));
			add_parameter(function, index, offset, packed >> 18);
		}
		at += at[0] == 4 ? 4u + value : 4u;
	}
}

static bool has_variables(const char *name)
{
	return !strcmp(name, ".nv.global") || !strcmp(name, ".nv.global.init") ||
	       !strcmp(name, ".nv.constant3");
}

static int map_section(struct module *module, struct elf *elf, size_t section)
{
	const Elf64_Shdr *header = &elf->sections[section];
	int error;

	if (!header->sh_size || module->global_count >= 4)
		return 0;
	error = globals_map(module->context, header->sh_size, &elf->addresses[section]);
	if (error)
		return error;
	module->globals[module->global_count++] = elf->addresses[section];
	if (header->sh_type != SHT_NOBITS)
		memory_write(elf->addresses[section], elf->image + header->sh_offset,
			     header->sh_size);
	return 0;
}

/* Addresses in variables. */
static void relocate(struct elf *elf, const Elf64_Shdr *header, const Elf64_Sym *symbols)
{
	const Elf64_Rela *at = (const void *)(elf->image + header->sh_offset);

	if (!elf->addresses[header->sh_info])
		return;
	for (size_t i = 0; i < header->sh_size / sizeof(*at); i++) {
		const Elf64_Sym *symbol = &symbols[ELF64_R_SYM(at[i].r_info)];
		uint64_t address = elf->addresses[symbol->st_shndx & 255] + symbol->st_value +
				   (uint64_t)at[i].r_addend;

		memory_write(elf->addresses[header->sh_info] + at[i].r_offset, &address,
			     sizeof(address));
	}
}

static int load_cubin(struct module *module, const uint8_t *image)
{
	struct elf elf = { .image = image, .header = (const void *)image };
	const Elf64_Sym *symbols = NULL;
	size_t symbol_count = 0;
	const char *names = NULL;
	int error = 0;

	if (elf.header->e_machine != 190 || elf.header->e_shnum > 256)
		return INVALID_IMAGE;
	if ((int)(elf.header->e_flags >> 8 & 255) / 10 != settings.compute / 10)
		return NO_BINARY;
	elf.sections = (const void *)(image + elf.header->e_shoff);
	for (size_t i = 1; i < elf.header->e_shnum && !error; i++) {
		const char *name = section_name(&elf, i);

		if (has_variables(name))
			error = map_section(module, &elf, i);
		if (elf.sections[i].sh_type == SHT_SYMTAB) {
			symbols = (const void *)(image + elf.sections[i].sh_offset);
			symbol_count = elf.sections[i].sh_size / sizeof(*symbols);
			names = (const char *)image +
				elf.sections[elf.sections[i].sh_link].sh_offset;
		}
	}
	if (error)
		return error;
	for (size_t i = 1; i < elf.header->e_shnum; i++) {
		const char *name = section_name(&elf, i);

		if (!strncmp(name, ".nv.info.", 9))
			read_parameters(&elf, i, add_function(module, name + 9, strlen(name + 9)));
		if (elf.sections[i].sh_type == SHT_RELA && symbols)
			relocate(&elf, &elf.sections[i], symbols);
	}
	for (size_t i = 0; i < symbol_count; i++) {
		uint64_t section = elf.addresses[symbols[i].st_shndx & 255];

		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT && section)
			add_variable(module, names + symbols[i].st_name,
				     strlen(names + symbols[i].st_name),
				     section + symbols[i].st_value, symbols[i].st_size);
	}
	return 0;
}

/* ---- fat binaries ---- */

struct fat_entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t bytes;
	uint32_t compressed_bytes, unknown;
	uint16_t minor, major;
	uint32_t compute;
	uint32_t name_offset, name_bytes;
	uint64_t flags;
	uint64_t zero;
	uint64_t plain_bytes;
};

static int load_entry(struct module *module, const struct fat_entry *entry)
{
	const void *data = (const char *)entry + entry->header_bytes;
	int result;

	if (entry->flags & 0x8000) {
		void *library = dlopen("libzstd.so.1", RTLD_NOW);
		size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
		void *plain = calloc(1, entry->plain_bytes + 1), *found;

		found = library ? dlsym(library, "ZSTD_decompress") : NULL;
		memcpy(&decompress, &found, sizeof(found));
		if (!decompress || decompress(plain, entry->plain_bytes, data,
					      entry->compressed_bytes) != entry->plain_bytes)
			return INVALID_IMAGE;
		result = load_image(module, plain, entry->plain_bytes);
		free(plain);
		return result;
	}
	return entry->flags & 0x2000 ? INVALID_IMAGE : load_image(module, data, entry->bytes);
}

/* The code for this device, else the PTX. */
static int load_fat(struct module *module, const uint8_t *image)
{
	const struct fat_entry *ptx = NULL, *code = NULL;
	uint64_t bytes;
	uint16_t header;
	const uint8_t *at, *end;

	memcpy(&header, image + 6, sizeof(header));
	memcpy(&bytes, image + 8, sizeof(bytes));
	at = image + header;
	end = at + bytes;
	while (at + sizeof(struct fat_entry) <= end) {
		const struct fat_entry *entry = (const void *)at;

		if (entry->kind == 2 && (int)entry->compute / 10 == settings.compute / 10 &&
		    (int)entry->compute <= settings.compute)
			code = entry;
		if (entry->kind == 1 && (int)entry->compute <= settings.compute)
			ptx = entry;
		at += entry->header_bytes + entry->bytes;
	}
	return code ? load_entry(module, code) : ptx ? load_entry(module, ptx) : NO_BINARY;
}

int load_image(struct module *module, const void *image, uint64_t bytes)
{
	uint32_t magic;
	char *text;
	int result;

	memcpy(&magic, image, sizeof(magic));
	if (magic == 0x466243B1) {
		const void *data;

		memcpy(&data, (const char *)image + 8, sizeof(data));
		return load_fat(module, data);
	}
	if (magic == 0xBA55ED50)
		return load_fat(module, image);
	if (magic == 0x464C457F)
		return load_cubin(module, image);
	if (!isprint((unsigned char)*(const char *)image) &&
	    !isspace((unsigned char)*(const char *)image))
		return INVALID_IMAGE;
	text = bytes ? strndup(image, bytes) : strdup(image);
	result = strstr(text, ".version") ? load_ptx(module, text) : INVALID_IMAGE;
	free(text);
	return result;
}
