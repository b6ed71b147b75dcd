/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names. A log has numbers only; the section xray_instr_map of the instrumented program
 * lists its sleds, grouped by function, and functions are numbered from 1 in that order.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "code/demangle.h"
#include "code/elf.h"
#include "import/xray/xray.h"

#define SLED_BYTES 32u
#define DENSE_IDS (1u << 20)
/*
 * Since LLVM 20 the upper bits are the library; 0 is the program. No program has 16 million
 * functions.
 */
#define LIBRARY_SHIFT 24
#define FUNCTION_MASK ((1u << LIBRARY_SHIFT) - 1)

/* ---- the binary ---- */

static uint32_t relative_type(const struct ts_elf *elf)
{
	switch (ts_elf_machine(elf)) {
	case EM_AARCH64:
		return R_AARCH64_RELATIVE;
	case EM_X86_64:
		return R_X86_64_RELATIVE;
	case EM_PPC64:
		return R_PPC64_RELATIVE;
	case EM_RISCV:
		return R_RISCV_RELATIVE;
	default:
		return UINT32_MAX;
	}
}

/* Relocations of the map (position-independent programs of old compilers): location to address. */
static int read_relocations(const struct ts_elf *elf, const struct ts_elf_range *map,
			    struct ts_map *ret_indices)
{
	size_t bytes = 0;
	const char *data = ts_elf_section_bytes(elf, ".rela.dyn", &bytes);
	uint32_t type = relative_type(elf);

	for (size_t at = 0; data && bytes - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela relocation;

		memcpy(&relocation, data + at, sizeof(relocation));
		if (ELF64_R_TYPE(relocation.r_info) == type &&
		    relocation.r_offset - map->address < map->bytes &&
		    ts_map_put(ret_indices, relocation.r_offset, (uint64_t)relocation.r_addend))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* The function that a sled belongs to. */
static uint64_t function_of(const char *sled, uint64_t address, const struct ts_map *entities)
{
	uint64_t function;

	memcpy(&function, sled + 8, sizeof(function));
	/* From version 2 on addresses are relative to their location. */
	if ((uint8_t)sled[18] >= 2)
		return function + address + 8;
	if (!function)
		ts_map_get(entities, address + 8, &function);
	return function;
}

static int read_map(struct ts_xray *x, const char *data, size_t bytes,
		    const struct ts_elf_range *range)
{
	struct ts_xray_names *names = &x->names;
	struct ts_map entities;
	uint64_t last = 0;
	int rc;

	ts_map_init(&entities);
	rc = read_relocations(names->elf, range, &entities);
	for (size_t at = 0; !rc && bytes - at >= SLED_BYTES; at += SLED_BYTES) {
		uint64_t function = function_of(data + at, range->address + at, &entities);

		if (names->address_count && function == last)
			continue;
		rc = ts_grow_array((void **)&names->addresses, &names->address_capacity,
				   names->address_count + 1, sizeof(*names->addresses));
		if (!rc)
			names->addresses[names->address_count++] = function;
		last = function;
	}
	ts_map_release(&entities);
	return rc ? ts_xray_out_of_memory(x) : TS_OK;
}

int ts_xray_names_start(struct ts_xray *x)
{
	const char *path = x->import->options.binary;
	struct ts_elf_range range;
	const char *data;
	size_t bytes;
	int fd, rc;

	ts_map_init(&x->names.others);
	if (!path)
		return TS_OK;
	fd = ts_io_open(path, O_RDONLY, 0);
	if (fd < 0)
		return ts_error_errno(x->err, errno, "binary '%s'", path);
	rc = ts_elf_open(&x->names.elf, fd, path, x->err);
	close(fd);
	if (rc)
		return rc;
	data = ts_elf_section_bytes(x->names.elf, "xray_instr_map", &bytes);
	if (!data || !ts_elf_section(x->names.elf, "xray_instr_map", &range))
		return ts_error_set(
			x->err, TS_ENOTFOUND,
			"binary '%s': has no section xray_instr_map; give --binary the program that wrote "
			"the log, as clang -fxray-instrument linked it",
			path);
	return read_map(x, data, bytes, &range);
}

void ts_xray_names_release(struct ts_xray *x)
{
	ts_elf_close(x->names.elf);
	ts_map_release(&x->names.others);
	free(x->names.addresses);
	free(x->names.dense);
}

/* ---- names ---- */

static uint32_t string_of(struct ts_xray *x, const char *text)
{
	return ts_import_string(x->import, text, strlen(text));
}

/* Named by number: the log has nothing else. */
static uint32_t number_name(struct ts_xray *x, uint32_t function)
{
	char text[64];

	if (function >> LIBRARY_SHIFT)
		snprintf(text, sizeof(text), "function %u of library %u", function & FUNCTION_MASK,
			 function >> LIBRARY_SHIFT);
	else
		snprintf(text, sizeof(text), "function %u", function);
	return string_of(x, text);
}

static int find_name(struct ts_xray *x, uint32_t function, uint32_t *ret_name)
{
	struct ts_xray_names *names = &x->names;
	const char *symbol;
	uint64_t start, address;
	char *plain;

	*ret_name = 0;
	if (!names->elf || function >> LIBRARY_SHIFT) {
		*ret_name = number_name(x, function);
		return TS_OK;
	}
	if (function == 0 || function > names->address_count)
		return ts_error_set(
			x->err, TS_EFORMAT,
			"input '%s': function %u is not in '%s', which has %zu: it is not the "
			"program that wrote the log, or was rebuilt since; give --binary the "
			"right program, or omit it",
			x->import->path, function, x->import->options.binary, names->address_count);
	address = names->addresses[function - 1];
	if (!ts_elf_function_at(names->elf, address, &symbol, &start) || start != address) {
		*ret_name = number_name(x, function);
		return TS_OK;
	}
	plain = ts_demangle(symbol);
	*ret_name = string_of(x, plain ? plain : symbol);
	free(plain);
	return TS_OK;
}

static int keep_dense(struct ts_xray_names *names, uint32_t function, uint32_t name)
{
	if (ts_grow_array((void **)&names->dense, &names->dense_capacity, (size_t)function + 1,
			  sizeof(*names->dense)))
		return TS_ENOMEM;
	if (names->dense_count <= function) {
		memset(names->dense + names->dense_count, 0,
		       (function + 1 - names->dense_count) * sizeof(*names->dense));
		names->dense_count = (size_t)function + 1;
	}
	names->dense[function] = name;
	return TS_OK;
}

int ts_xray_name_new(struct ts_xray *x, uint32_t function, uint32_t *ret_name)
{
	struct ts_xray_names *names = &x->names;
	uint64_t known;
	int rc;

	if (function >= DENSE_IDS && ts_map_get(&names->others, function, &known)) {
		*ret_name = (uint32_t)known;
		return TS_OK;
	}
	rc = find_name(x, function, ret_name);
	if (rc || !*ret_name)
		return rc ? rc : ts_writer_status(x->writer, x->err);
	rc = function < DENSE_IDS ? keep_dense(names, function, *ret_name)
				  : ts_map_put(&names->others, function, *ret_name);
	return rc ? ts_xray_out_of_memory(x) : TS_OK;
}
