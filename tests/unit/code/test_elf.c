/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files, using this program itself: functions and variables must be where the file says. Then
 * files that are truncated, damaged, or shrink while they are open.
 */
#include "code/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/maps.h"
#include "unit/runner.h"

/* Clang's AddressSanitizer would count the padding behind it as a part of the symbol. */
#if defined(__clang__)
__attribute__((no_sanitize("address")))
#endif
int elf_test_variable = 42;
int elf_test_empty[1000];
int elf_test_function(int value);

__attribute__((noinline)) int elf_test_function(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

static struct ts_elf *open_self(void)
{
	struct ts_elf *elf = NULL;
	struct ts_error err;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	TS_CHECK(fd >= 0);
	if (ts_elf_open(&elf, fd, "self", &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	close(fd);
	return elf;
}

/* The load bias of this program, from the mapping of its code. */
static uint64_t self_bias(const struct ts_elf *elf)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	const struct ts_map_range *range;
	uint64_t bias = 0;

	TS_CHECK_INT(ts_maps_read(&maps, getpid(), NULL), 0);
	range = ts_maps_find(&maps, (uintptr_t)elf_test_function);
	TS_CHECK(range != NULL && range->is_executable);
	TS_CHECK(ts_elf_bias(elf, range->start, range->file_offset, true, &bias));
	return bias;
}

TS_TEST(symbols_are_where_they_are)
{
	TS_AUTO(ts_elf) elf = open_self();
	uint64_t bias = self_bias(elf);
	struct ts_elf_range range;

	TS_CHECK(ts_elf_symbol(elf, "elf_test_function", &range));
	TS_CHECK_INT(range.address + bias, (uintptr_t)elf_test_function);
	TS_CHECK(ts_elf_symbol(elf, "elf_test_variable", &range));
	TS_CHECK_INT(range.address + bias, (uintptr_t)&elf_test_variable);
	TS_CHECK_INT(range.bytes, sizeof(elf_test_variable));
	TS_CHECK_INT(range.file_bytes, sizeof(elf_test_variable));
	TS_CHECK(ts_elf_symbol(elf, "elf_test_empty", &range));
	TS_CHECK_INT(range.address + bias, (uintptr_t)elf_test_empty);
	TS_CHECK_INT(range.file_bytes, 0); /* .bss */
	TS_CHECK(!ts_elf_symbol(elf, "elf_test_functio", &range));
	TS_CHECK(!ts_elf_symbol(elf, "", &range));
}

TS_TEST(variables_are_in_a_data_segment)
{
	TS_AUTO(ts_elf) elf = open_self();
	uint64_t address = (uintptr_t)&elf_test_variable - self_bias(elf), of_offset;
	struct ts_elf_range symbol, segment;
	bool is_found = false;

	for (size_t i = 0; ts_elf_data_segment(elf, i, &segment); i++)
		is_found |= address >= segment.address && address - segment.address < segment.bytes;
	TS_CHECK(is_found);
	TS_CHECK(ts_elf_symbol(elf, "elf_test_variable", &symbol));
	TS_CHECK(ts_elf_address_of_offset(elf, symbol.file_offset, &of_offset));
	TS_CHECK_INT(of_offset, address);
}

TS_TEST(functions_are_found_by_address)
{
	TS_AUTO(ts_elf) elf = open_self();
	uint64_t address = (uintptr_t)elf_test_function - self_bias(elf), start = 0;
	const char *name = NULL;

	TS_CHECK(ts_elf_function_at(elf, address, &name, &start));
	TS_CHECK_STR(name, "elf_test_function");
	TS_CHECK_INT(start, address);
	TS_CHECK(ts_elf_function_at(elf, address + 1, &name, &start));
	TS_CHECK_STR(name, "elf_test_function");
	if (ts_elf_function_at(elf, address - 1, &name, &start))
		TS_CHECK(strcmp(name, "elf_test_function") != 0);
	TS_CHECK(!ts_elf_function_at(elf, 1, &name, &start));
}

/* As in glibc: two global names, one of them for its own calls. */
int __elf_test_plain(int value);
int __GI_elf_test_plain(int value);

__attribute__((noinline)) int __elf_test_plain(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 2;
}
int __GI_elf_test_plain(int value) __attribute__((alias("__elf_test_plain")));

TS_TEST(the_alias_of_a_library_for_itself_comes_last)
{
	TS_AUTO(ts_elf) elf = open_self();
	uint64_t address = (uintptr_t)__elf_test_plain - self_bias(elf), start = 0;
	const char *name = NULL;

	TS_CHECK(ts_elf_function_at(elf, address, &name, &start));
	TS_CHECK_STR(name, "__elf_test_plain");
}

TS_TEST(sections_have_their_bytes)
{
	TS_AUTO(ts_elf) elf = open_self();
	struct ts_elf_range range;
	const uint8_t *bytes;
	size_t count = 0;
	uint64_t address;

	TS_CHECK(ts_elf_section(elf, ".data", &range));
	bytes = ts_elf_section_bytes(elf, ".data", &count);
	TS_CHECK(bytes != NULL);
	TS_CHECK_INT(count, range.bytes);
	address = (uintptr_t)&elf_test_variable - self_bias(elf);
	TS_CHECK(address >= range.address && address - range.address < count);
	TS_CHECK_INT(bytes[address - range.address], 42);
	TS_CHECK(ts_elf_section(elf, ".bss", &range));
	TS_CHECK_INT(range.file_bytes, 0);
	TS_CHECK(ts_elf_section_bytes(elf, ".bss", &count) == NULL);
	TS_CHECK(!ts_elf_section(elf, ".nothing", &range));
	TS_CHECK(ts_elf_section_bytes(elf, ".nothing", &count) == NULL);
}

/* ---- malformed files ---- */

static uint8_t *read_self(size_t *ret_bytes)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat about;
	uint8_t *bytes;

	TS_CHECK(fd >= 0 && fstat(fd, &about) == 0);
	bytes = malloc((size_t)about.st_size);
	TS_CHECK(bytes != NULL);
	for (size_t at = 0; at < (size_t)about.st_size;) {
		ssize_t got = read(fd, bytes + at, (size_t)about.st_size - at);

		TS_CHECK(got > 0);
		at += (size_t)got;
	}
	close(fd);
	*ret_bytes = (size_t)about.st_size;
	return bytes;
}

/* Calls everything; results do not matter. */
static void query_all(const uint8_t *image, size_t bytes)
{
	TS_AUTO(ts_elf) elf = NULL;
	struct ts_elf_range range;
	const char *name;
	uint64_t start;
	size_t count;

	if (ts_elf_open_image(&elf, image, bytes, "damaged", NULL))
		return;
	ts_elf_symbol(elf, "elf_test_function", &range);
	ts_elf_section_bytes(elf, ".eh_frame", &count);
	ts_elf_function_at(elf, 0x1234, &name, &start);
	ts_elf_address_of_offset(elf, 0x1234, &start);
}

TS_TEST(cut_files_have_less)
{
	size_t bytes;
	TS_AUTO_FREE uint8_t *image = read_self(&bytes);
	struct ts_elf *elf = NULL;
	struct ts_error err;

	TS_CHECK_INT(ts_elf_open_image(&elf, image, 0, "empty", &err), TS_EFORMAT);
	TS_CHECK_INT(ts_elf_open_image(&elf, image, 63, "cut", &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, "'cut': not a 64-bit ELF file");
	for (size_t cut = 64; cut < bytes; cut += bytes / 50)
		query_all(image, cut);
}

TS_TEST(damaged_files_do_no_harm)
{
	size_t bytes;
	TS_AUTO_FREE uint8_t *image = read_self(&bytes);
	Elf64_Ehdr header;

	memcpy(&header, image, sizeof(header));
	srand(1);
	for (int round = 0; round < 60; round++) {
		/* In the section and file headers, which hold lengths. */
		size_t at = round % 2 ? header.e_shoff + (size_t)rand() % (bytes - header.e_shoff)
				      : (size_t)rand() % 1024;
		uint8_t before = image[at];

		image[at] = (uint8_t)rand();
		query_all(image, bytes);
		image[at] = before;
	}
}

TS_TEST(others_are_told_apart)
{
	size_t bytes;
	TS_AUTO_FREE uint8_t *image = read_self(&bytes);
	struct ts_elf *elf = NULL;

	image[EI_CLASS] = ELFCLASS32;
	TS_CHECK_INT(ts_elf_open_image(&elf, image, bytes, "32", NULL), TS_EFORMAT);
	image[EI_CLASS] = ELFCLASS64;
	image[EI_DATA] ^= 3;
	TS_CHECK_INT(ts_elf_open_image(&elf, image, bytes, "other order", NULL), TS_EFORMAT);
	image[EI_DATA] ^= 3;
	image[0] = 'M';
	TS_CHECK_INT(ts_elf_open_image(&elf, image, bytes, "no ELF", NULL), TS_EFORMAT);
}

/* Reading a mapped page beyond the end of the file would kill this process. */
TS_TEST(a_file_that_shrinks_is_survived)
{
	size_t bytes, count;
	TS_AUTO_FREE uint8_t *image = read_self(&bytes);
	TS_AUTO(ts_elf) elf = NULL;
	struct ts_elf_range range;
	const char *name;
	uint64_t start;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	TS_CHECK(fd >= 0 && write(fd, image, bytes) == (ssize_t)bytes);
	TS_CHECK_INT(ts_elf_open(&elf, fd, "memory", NULL), 0);
	TS_CHECK(ts_elf_section(elf, ".data", &range));
	TS_CHECK(ftruncate(fd, 4096) == 0);
	close(fd);
	TS_CHECK(ts_elf_section(elf, ".data", &range)); /* headers were read at open */
	TS_CHECK(ts_elf_section_bytes(elf, ".data", &count) == NULL);
	TS_CHECK(!ts_elf_symbol(elf, "elf_test_function", &range));
	TS_CHECK(!ts_elf_function_at(elf, 0x1234, &name, &start));
}

TS_TEST(what_is_no_file_is_refused)
{
	struct ts_elf *elf = NULL;
	struct ts_error err;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	TS_CHECK_INT(ts_elf_open(&elf, fd, "/dev/null", &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, "'/dev/null': not an ELF file");
	close(fd);
}
