/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables of cubins: one made by nvcc (tests/data/cubin), and one assembled here byte by byte,
 * with the row that NVIDIA's assembler omits. Then both truncated and damaged at every offset.
 */
#include "code/cubin.h"

#include <elf.h>
#include <stdio.h>

#include "unit/runner.h"

#define MAX_BYTES 65536

static char image[MAX_BYTES];

static size_t read_data(void)
{
	char path[4096];
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/data/cubin/lines.cubin", getenv("TS_SOURCE"));
	file = fopen(path, "rb");
	TS_CHECK(file != NULL);
	bytes = fread(image, 1, sizeof(image), file);
	fclose(file);
	TS_CHECK(bytes > 1000 && bytes < sizeof(image));
	return bytes;
}

static struct ts_cubin *open_image(size_t bytes)
{
	struct ts_cubin *cubin = NULL;
	struct ts_error err;

	if (ts_cubin_open(&cubin, image, bytes, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return cubin;
}

/* "file:line function < file:line" */
static const char *locations_of(const struct ts_cubin *cubin, const char *function, uint64_t offset)
{
	static char text[1024];
	struct ts_cubin_location locations[8];
	size_t count = ts_cubin_locations(cubin, function, offset, locations, 8), length = 0;

	text[0] = 0;
	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s:%u%s%s",
					   i ? " < " : "", locations[i].file, locations[i].line,
					   locations[i].function ? " " : "",
					   locations[i].function ? locations[i].function : "");
	return text;
}

TS_TEST(lines_of_nvcc)
{
	const char *scale = "_Z5scaleIfEvPT_PKS0_i";
	TS_AUTO(ts_cubin) cubin = open_image(read_data());
	size_t symbol = 0, count = 0, cursor = 0;
	uint64_t address = 1;

	while (ts_cubin_function_next(cubin, &cursor))
		count++;
	TS_CHECK_INT(count, 3);
	TS_CHECK(ts_cubin_has_lines(cubin));
	TS_CHECK_STR(locations_of(cubin, scale, 0), "/example/lines.cu:11");
	TS_CHECK_STR(locations_of(cubin, scale, 0x80), "/example/lines.cu:16");
	TS_CHECK_STR(locations_of(cubin, scale, 0xe0),
		     "/example/lines.cu:7 _Z6middlef < /example/lines.cu:16");
	TS_CHECK_STR(locations_of(cubin, scale, 0x150),
		     "/example/inner.h:8 _Z5innerff < /example/lines.cu:7 _Z6middlef < "
		     "/example/lines.cu:16");
	TS_CHECK_STR(locations_of(cubin, scale, 0x190), "/example/lines.cu:17");
	TS_CHECK_STR(locations_of(cubin, scale, 0x280), "");
	TS_CHECK_STR(locations_of(cubin, "plain", 0x10), "/example/lines.cu:26");
	/* A function inside another one's section. */
	TS_CHECK(ts_cubin_find(cubin, "$plain$_Z6calledf", &symbol, &address));
	TS_CHECK_INT(address, 0xa0);
	TS_CHECK_STR(locations_of(cubin, "$plain$_Z6calledf", 0), "/example/lines.cu:21");
	TS_CHECK_STR(locations_of(cubin, "nothing", 0), "");
	TS_CHECK(!ts_cubin_find(cubin, "nothing", &symbol, &address));
}

/* ---- a handmade cubin ---- */

struct builder {
	size_t bytes;
};

static size_t put(struct builder *to, const void *data, size_t bytes)
{
	size_t at = to->bytes;

	TS_CHECK(at + bytes < sizeof(image));
	memcpy(image + at, data, bytes);
	to->bytes += (bytes + 7) & ~(size_t)7;
	return at;
}

static const char names[] =
	"\0.strtab\0.symtab\0.debug_line\0.debug_str\0.rela.debug_line\0.text.k\0k";
enum {
	NAME_STRTAB = 1,
	NAME_SYMTAB = 9,
	NAME_LINE = 17,
	NAME_STR = 29,
	NAME_RELA = 40,
	NAME_TEXT = 57,
	NAME_K = 65,
};

/* A file except for its line program. */
static size_t build(const uint8_t *lines, size_t line_bytes, size_t address_at)
{
	static const char strings[] = "outer\0inner";
	struct builder to = { 0 };
	Elf64_Phdr segment = { .p_type = PT_LOAD };
	Elf64_Sym symbols[2] = { { 0 },
				 { .st_name = NAME_K,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = 6,
				   .st_size = 0x100 } };
	Elf64_Rela fix = { .r_offset = address_at, .r_info = ELF64_R_INFO(1, 2) };
	Elf64_Ehdr header = { .e_machine = 190,
			      .e_phentsize = sizeof(segment),
			      .e_phnum = 1,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = 7,
			      .e_shstrndx = 1 };
	Elf64_Shdr sections[7] = { { 0 } };

	memset(image, 0, sizeof(image));
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	put(&to, &header, sizeof(header));
	header.e_phoff = put(&to, &segment, sizeof(segment));
	sections[1] = (Elf64_Shdr){ .sh_name = NAME_STRTAB,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = put(&to, names, sizeof(names)),
				    .sh_size = sizeof(names) };
	sections[2] = (Elf64_Shdr){ .sh_name = NAME_SYMTAB,
				    .sh_type = SHT_SYMTAB,
				    .sh_link = 1,
				    .sh_entsize = sizeof(Elf64_Sym),
				    .sh_offset = put(&to, symbols, sizeof(symbols)),
				    .sh_size = sizeof(symbols) };
	sections[3] = (Elf64_Shdr){ .sh_name = NAME_LINE,
				    .sh_type = SHT_PROGBITS,
				    .sh_offset = put(&to, lines, line_bytes),
				    .sh_size = line_bytes };
	sections[4] = (Elf64_Shdr){ .sh_name = NAME_STR,
				    .sh_type = SHT_PROGBITS,
				    .sh_offset = put(&to, strings, sizeof(strings)),
				    .sh_size = sizeof(strings) };
	sections[5] = (Elf64_Shdr){ .sh_name = NAME_RELA,
				    .sh_type = SHT_RELA,
				    .sh_info = 3,
				    .sh_entsize = sizeof(fix),
				    .sh_offset = put(&to, &fix, sizeof(fix)),
				    .sh_size = sizeof(fix) };
	sections[6] = (Elf64_Shdr){ .sh_name = NAME_TEXT, .sh_type = SHT_NOBITS, .sh_size = 0x100 };
	header.e_shoff = put(&to, sections, sizeof(sections));
	memcpy(image, &header, sizeof(header));
	return to.bytes;
}

/* Fills in the sizes of a program and its header; tables follow `version`. */
static size_t program(uint8_t *lines, unsigned int version, const uint8_t *code, size_t code_bytes,
		      size_t *ret_code_at)
{
	static const uint8_t fixed[] = { 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1 };
	static const uint8_t fixed_4[] = { 1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1 };
	static const uint8_t old[] = "d\0\0a.cu\0\1\0\0b.h\0\1\0\0";
	/* One directory as text; files: text, number of the directory, a hash. */
	static const uint8_t new[] = "\1\1\x08\1d\0\3\1\x08\2\x0b\5\x1e\2"
				     "a.cu\0\0"
				     "0123456789abcdef"
				     "b.h\0\0"
				     "0123456789abcdef";
	const uint8_t *tables = version >= 5 ? new : old;
	size_t table_bytes = version >= 5 ? sizeof(new) - 1 : sizeof(old);
	uint32_t at = 4, header_at;

	lines[at++] = (uint8_t)version;
	lines[at++] = 0;
	if (version >= 5) {
		lines[at++] = 8;
		lines[at++] = 0;
	}
	header_at = at;
	at += 4;
	if (version >= 4) {
		memcpy(lines + at, fixed_4, sizeof(fixed_4));
		at += sizeof(fixed_4);
	} else {
		memcpy(lines + at, fixed, sizeof(fixed));
		at += sizeof(fixed);
	}
	memcpy(lines + at, tables, table_bytes);
	at += (uint32_t)table_bytes;
	memcpy(lines + header_at, &(uint32_t){ at - header_at - 4 }, 4);
	memcpy(lines + at, code, code_bytes);
	*ret_code_at = at;
	at += (uint32_t)code_bytes;
	memcpy(lines, &(uint32_t){ at - 4 }, 4);
	return at;
}

/*
 * Row 1: line 7. Row 2: line 9 of a.cu. Then the row of "inner", inlined there at line 9 of b.h, is
 * omitted and not counted: row 3 is the next.
 */
static size_t build_left_out(unsigned int version)
{
	uint8_t first = version >= 5 ? 0 : 1, second = version >= 5 ? 1 : 2;
	const uint8_t code[] = {
		0, 9,      2,    0,    0,    0, 0, 0, 0,    0, 0, /* address */
		4, first,  3,    6,    1,                         /* line 7 at 0 */
		3, 2,      2,    0x20, 1,                         /* line 9 at 0x20 */
		4, second, 0,    3,    0x90, 2, 6, /* inner, called by row 2: omitted */
		4, first,  0,    3,    0x90, 0, 0, 3, 1,    2, 0x20, 1, /* line 10 at 0x40 */
		0, 3,      0x90, 3,    0,    3, 1, 2, 0x10, 1, /* outer, called by row 3: line 11 at
								  0x50 */
		2, 0x20,   0,    1,    1
	}; /* ends at 0x70 */
	uint8_t lines[512] = { 0 };
	size_t code_at, bytes = program(lines, version, code, sizeof(code), &code_at);

	return build(lines, bytes, code_at + 3);
}

static void check_left_out(unsigned int version)
{
	TS_AUTO(ts_cubin) cubin = open_image(build_left_out(version));

	TS_CHECK_STR(locations_of(cubin, "k", 0x10), "d/a.cu:7");
	TS_CHECK_STR(locations_of(cubin, "k", 0x20), "d/b.h:9 inner < d/a.cu:9");
	TS_CHECK_STR(locations_of(cubin, "k", 0x3f), "d/b.h:9 inner < d/a.cu:9");
	TS_CHECK_STR(locations_of(cubin, "k", 0x40), "d/a.cu:10");
	TS_CHECK_STR(locations_of(cubin, "k", 0x50), "d/a.cu:11 outer < d/a.cu:10");
	TS_CHECK_STR(locations_of(cubin, "k", 0x70), "");
}

TS_TEST(rows_that_are_left_out)
{
	for (unsigned int version = 2; version <= 5; version++)
		check_left_out(version);
}

/* ---- damage ---- */

static void look_up(size_t bytes)
{
	struct ts_cubin_location locations[4];
	struct ts_cubin *cubin = NULL;
	const char *name;
	size_t cursor = 0;

	if (ts_cubin_open(&cubin, image, bytes, NULL))
		return;
	for (size_t i = 0; i < 8 && (name = ts_cubin_function_next(cubin, &cursor)); i++)
		for (uint64_t offset = 0; offset < 0x200; offset += 0x40) {
			size_t count = ts_cubin_locations(cubin, name, offset, locations, 4);

			for (size_t k = 0; k < count; k++)
				TS_CHECK(strlen(locations[k].file) < MAX_BYTES);
		}
	ts_cubin_close(cubin);
}

TS_TEST(damaged)
{
	size_t bytes = build_left_out(2);

	for (size_t i = 0; i <= bytes; i++)
		look_up(i);
	for (size_t i = 0; i < bytes; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			image[i] = (char)(image[i] ^ 1 << bit);
			look_up(bytes);
			image[i] = (char)(image[i] ^ 1 << bit);
		}
}

TS_TEST(damaged_of_nvcc)
{
	size_t bytes = read_data();

	for (size_t i = 0; i < bytes; i += 7)
		look_up(i);
	for (size_t i = 0; i < bytes; i++) {
		image[i] = (char)~image[i];
		look_up(bytes);
		image[i] = (char)~image[i];
	}
}

TS_TEST(not_a_cubin)
{
	struct ts_cubin *cubin = NULL;
	struct ts_error err;
	size_t bytes = read_data();

	image[offsetof(Elf64_Ehdr, e_machine)] = 62;
	TS_CHECK_INT(ts_cubin_open(&cubin, image, bytes, &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, "not CUDA device code");
	TS_CHECK_INT(ts_cubin_open(&cubin, "text", 4, &err), TS_EFORMAT);
}
