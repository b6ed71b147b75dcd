/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers, segments and sections of ELF files. A file is mapped, so that it survives being replaced
 * and needs no descriptor. Since a mapped file may be truncated, and touching the missing part
 * would kill us, only the kernel reads it: process_vm_readv() on ourselves fails where we would
 * crash. Symbols are in elf_symbols.c.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "code/elf_internal.h"

/* Beyond any known file; more than this is damage. */
#define MAX_SEGMENTS 4096u
#define MAX_SECTIONS 65536u
#define MAX_SECTION_BYTES ((uint64_t)1 << 30)
#define MAX_NOTES 256u

/* ---- bytes of the file ---- */

static bool copy_mapped(const uint8_t *from, uint8_t *to, size_t bytes)
{
	pid_t self = getpid();

	while (bytes > 0) {
		struct iovec local = { .iov_base = to, .iov_len = bytes };
		struct iovec remote = { .iov_base = (void *)(uintptr_t)from, .iov_len = bytes };
		ssize_t got = process_vm_readv(self, &local, 1, &remote, 1, 0);

		if (got <= 0)
			return false;
		from += got;
		to += got;
		bytes -= (size_t)got;
	}
	return true;
}

static bool fetch(const struct ts_elf *elf, uint64_t offset, void *to, size_t bytes)
{
	if (offset > elf->image_bytes || bytes > elf->image_bytes - offset)
		return false;
	if (elf->is_mapped)
		return copy_mapped(elf->image + offset, to, bytes);
	memcpy(to, elf->image + offset, bytes);
	return true;
}

/* A new array from the file; NULL: out of bounds, or no memory. */
static void *fetch_array(const struct ts_elf *elf, uint64_t offset, size_t count, size_t item_bytes)
{
	void *items;

	if (offset > elf->image_bytes || count > (elf->image_bytes - offset) / item_bytes)
		return NULL;
	items = ts_alloc_array(count, item_bytes);
	if (items && !fetch(elf, offset, items, count * item_bytes)) {
		free(items);
		return NULL;
	}
	return items;
}

/* ---- sections ---- */

static bool is_in_file(const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL;
}

const uint8_t *ts_elf_copy_section(const struct ts_elf *elf, size_t index, size_t *ret_bytes)
{
	const Elf64_Shdr *section;
	struct ts_elf_copy *copy;

	if (index >= elf->section_count)
		return NULL;
	section = &elf->sections[index];
	copy = &elf->copies[index];
	if (!copy->is_tried && is_in_file(section) && !(section->sh_flags & SHF_COMPRESSED) &&
	    section->sh_size <= MAX_SECTION_BYTES)
		copy->bytes = fetch_array(elf, section->sh_offset, section->sh_size, 1);
	copy->is_tried = true;
	*ret_bytes = copy->bytes ? section->sh_size : 0;
	return copy->bytes;
}

static bool has_name(const struct ts_elf *elf, const Elf64_Shdr *section, const char *name)
{
	size_t bytes, length = strlen(name) + 1;
	const uint8_t *names = ts_elf_copy_section(elf, elf->header.e_shstrndx, &bytes);

	return names && section->sh_name < bytes && length <= bytes - section->sh_name &&
	       memcmp(names + section->sh_name, name, length) == 0;
}

static bool find_section(const struct ts_elf *elf, const char *name, size_t *ret_index)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		if (elf->sections[i].sh_type != SHT_NULL &&
		    has_name(elf, &elf->sections[i], name)) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

bool ts_elf_section(const struct ts_elf *elf, const char *name, struct ts_elf_range *ret_range)
{
	const Elf64_Shdr *section;
	size_t index;

	if (!find_section(elf, name, &index))
		return false;
	section = &elf->sections[index];
	*ret_range = (struct ts_elf_range){
		.address = section->sh_addr,
		.bytes = section->sh_size,
		.file_offset = section->sh_offset,
		.file_bytes = is_in_file(section) ? section->sh_size : 0,
	};
	return true;
}

const void *ts_elf_section_bytes(const struct ts_elf *elf, const char *name, size_t *ret_bytes)
{
	size_t index;

	if (!find_section(elf, name, &index))
		return NULL;
	return ts_elf_copy_section(elf, index, ret_bytes);
}

/* ---- segments ---- */

bool ts_elf_segment(const struct ts_elf *elf, uint32_t type, size_t index, uint32_t *ret_flags,
		    struct ts_elf_range *ret_range)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];

		if (segment->p_type != type || index-- > 0)
			continue;
		*ret_flags = segment->p_flags;
		*ret_range = (struct ts_elf_range){
			.address = segment->p_vaddr,
			.bytes = segment->p_memsz,
			.file_offset = segment->p_offset,
			.file_bytes = segment->p_filesz,
		};
		return true;
	}
	return false;
}

bool ts_elf_data_segment(const struct ts_elf *elf, size_t index, struct ts_elf_range *ret_range)
{
	struct ts_elf_range range;
	uint32_t flags;

	for (size_t i = 0; ts_elf_segment(elf, PT_LOAD, i, &flags, &range); i++) {
		if ((flags & PF_W) && index-- == 0) {
			*ret_range = range;
			return true;
		}
	}
	return false;
}

bool ts_elf_address_of_offset(const struct ts_elf *elf, uint64_t file_offset, uint64_t *ret_address)
{
	struct ts_elf_range range;
	uint32_t flags;

	for (size_t i = 0; ts_elf_segment(elf, PT_LOAD, i, &flags, &range); i++) {
		if (file_offset < range.file_offset ||
		    file_offset - range.file_offset >= range.file_bytes)
			continue;
		*ret_address = range.address + (file_offset - range.file_offset);
		return true;
	}
	return false;
}

/* Full pages are mapped: an offset may precede the segment's first byte within its page. */
static bool is_in_pages(const struct ts_elf_range *range, uint64_t file_offset)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = range->file_offset & ~(page - 1);

	return file_offset >= first &&
	       file_offset - first < range->file_bytes + (range->file_offset - first);
}

bool ts_elf_bias(const struct ts_elf *elf, uint64_t start, uint64_t file_offset, bool is_executable,
		 uint64_t *ret_bias)
{
	struct ts_elf_range range;
	uint32_t flags;

	for (size_t i = 0; ts_elf_segment(elf, PT_LOAD, i, &flags, &range); i++) {
		if (!!(flags & PF_X) != is_executable || !is_in_pages(&range, file_offset))
			continue;
		/* Wraps around correctly if the offset precedes the segment. */
		*ret_bias = start - (range.address + (file_offset - range.file_offset));
		return true;
	}
	return false;
}

/* ---- build id ---- */

static void write_hex(char *to, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

/* Notes consist of words: name size, content size, type; then both, each padded to a word. */
static bool find_build_id(const uint8_t *notes, size_t bytes, char *ret_id, size_t most)
{
	for (size_t i = 0; i < MAX_NOTES && bytes >= 12; i++) {
		uint32_t words[3];
		size_t name, content;

		memcpy(words, notes, sizeof(words));
		name = ((size_t)words[0] + 3) & ~(size_t)3;
		content = ((size_t)words[1] + 3) & ~(size_t)3;
		notes += sizeof(words);
		bytes -= sizeof(words);
		if (name > bytes || content > bytes - name)
			return false;
		if (words[2] == NT_GNU_BUILD_ID && words[0] == 4 && words[1] <= most &&
		    memcmp(notes, "GNU", 4) == 0) {
			write_hex(ret_id, notes + name, words[1]);
			return true;
		}
		notes += name + content;
		bytes -= name + content;
	}
	return false;
}

static void read_build_id(struct ts_elf *elf)
{
	struct ts_elf_range range;
	uint32_t flags;
	bool is_found = false;

	for (size_t i = 0; !is_found && ts_elf_segment(elf, PT_NOTE, i, &flags, &range); i++) {
		TS_AUTO_FREE uint8_t *notes = NULL;

		if (range.file_bytes > 65536)
			continue;
		notes = fetch_array(elf, range.file_offset, range.file_bytes, 1);
		is_found = notes && find_build_id(notes, range.file_bytes, elf->build_id,
						  (sizeof(elf->build_id) - 1) / 2);
	}
}

const char *ts_elf_build_id(const struct ts_elf *elf)
{
	return elf->build_id;
}

uint16_t ts_elf_machine(const struct ts_elf *elf)
{
	return elf->header.e_machine;
}

/* ---- opening ---- */

static bool is_ours(const Elf64_Ehdr *header)
{
	const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
									      : ELFDATA2MSB;

	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == order;
}

static void read_segments(struct ts_elf *elf)
{
	size_t count = elf->header.e_phnum;

	if (elf->header.e_phentsize != sizeof(Elf64_Phdr) || count > MAX_SEGMENTS)
		return;
	elf->segments = fetch_array(elf, elf->header.e_phoff, count, sizeof(Elf64_Phdr));
	elf->segment_count = elf->segments ? count : 0;
}

/* A file runs without sections: damaged ones are ignored. */
static void read_sections(struct ts_elf *elf)
{
	size_t count = elf->header.e_shnum;

	if (elf->header.e_shentsize != sizeof(Elf64_Shdr) || count > MAX_SECTIONS ||
	    elf->header.e_shoff == 0)
		return;
	elf->sections = fetch_array(elf, elf->header.e_shoff, count, sizeof(Elf64_Shdr));
	elf->copies = elf->sections ? calloc(count ? count : 1, sizeof(*elf->copies)) : NULL;
	elf->section_count = elf->copies ? count : 0;
}

static int read_headers(struct ts_elf *elf, struct ts_error *err)
{
	if (!fetch(elf, 0, &elf->header, sizeof(elf->header)) || !is_ours(&elf->header))
		return ts_error_set(err, TS_EFORMAT, "'%s': not a 64-bit ELF file", elf->name);
	read_segments(elf);
	if (elf->segment_count == 0)
		return ts_error_set(err, TS_EFORMAT, "'%s': ELF file without loadable segments",
				    elf->name);
	read_sections(elf);
	read_build_id(elf);
	return TS_OK;
}

static int map_file(struct ts_elf *elf, int fd, struct ts_error *err)
{
	struct stat about;
	void *image;

	if (fstat(fd, &about) != 0)
		return ts_error_errno(err, errno, "'%s'", elf->name);
	if (!S_ISREG(about.st_mode) || about.st_size < (off_t)sizeof(elf->header))
		return ts_error_set(err, TS_EFORMAT, "'%s': not an ELF file", elf->name);
	image = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		return ts_error_errno(err, errno, "'%s': cannot map the file", elf->name);
	elf->image = image;
	elf->image_bytes = (size_t)about.st_size;
	elf->is_mapped = true;
	return TS_OK;
}

static int copy_image(struct ts_elf *elf, const void *image, size_t bytes, struct ts_error *err)
{
	uint8_t *copy = ts_alloc_array(bytes, 1);

	if (!copy)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (bytes)
		memcpy(copy, image, bytes);
	elf->image = copy;
	elf->image_bytes = bytes;
	return TS_OK;
}

static struct ts_elf *new_elf(const char *name)
{
	struct ts_elf *elf = calloc(1, sizeof(*elf));

	if (!elf)
		return NULL;
	elf->name = strdup(name);
	if (!elf->name) {
		free(elf);
		return NULL;
	}
	return elf;
}

int ts_elf_open(struct ts_elf **ret_elf, int fd, const char *name, struct ts_error *err)
{
	TS_AUTO(ts_elf) elf = new_elf(name);
	int error;

	if (!elf)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	error = map_file(elf, fd, err);
	if (!error)
		error = read_headers(elf, err);
	if (!error)
		*ret_elf = TS_STEAL(elf);
	return error;
}

int ts_elf_open_image(struct ts_elf **ret_elf, const void *image, size_t bytes, const char *name,
		      struct ts_error *err)
{
	TS_AUTO(ts_elf) elf = new_elf(name);
	int error;

	if (!elf)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	error = copy_image(elf, image, bytes, err);
	if (!error)
		error = read_headers(elf, err);
	if (!error)
		*ret_elf = TS_STEAL(elf);
	return error;
}

void ts_elf_close(struct ts_elf *elf)
{
	if (!elf)
		return;
	for (size_t i = 0; i < elf->section_count; i++)
		free(elf->copies[i].bytes);
	if (elf->is_mapped)
		munmap((void *)(uintptr_t)elf->image, elf->image_bytes);
	else
		free((void *)(uintptr_t)elf->image);
	free(elf->functions);
	free(elf->copies);
	free(elf->sections);
	free(elf->segments);
	free(elf->name);
	free(elf);
}
