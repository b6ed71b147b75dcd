/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information of ELF files: finds .eh_frame, and builds a sorted table if the file has
 * none. Not for tables in our own memory, which must work without a heap.
 */
#include "code/elf.h"
#include "code/local/cfi.h"

#define MAX_ENTRIES (1u << 24)

static int compare_entries(const void *a, const void *b)
{
	const struct ts_cfi_entry *left = a, *right = b;

	return TS_COMPARE(left->start, right->start);
}

void ts_cfi_make_entries(struct ts_cfi *cfi)
{
	struct ts_cfi_entry entry;
	size_t offset = 0;

	cfi->is_indexed = true;
	while (ts_cfi_next(cfi, &offset, &entry)) {
		if (cfi->entry_count == MAX_ENTRIES ||
		    ts_grow_array((void **)&cfi->entries, &cfi->entry_capacity,
				  cfi->entry_count + 1, sizeof(*cfi->entries)))
			break;
		cfi->entries[cfi->entry_count++] = entry;
	}
	ts_sort(cfi->entries, cfi->entry_count, sizeof(*cfi->entries), compare_entries);
}

void ts_cfi_init(struct ts_cfi *cfi, const struct ts_elf *elf)
{
	struct ts_elf_range frames, header;
	size_t header_bytes = 0;
	const uint8_t *bytes;

	*cfi = (struct ts_cfi){ .machine = ts_elf_machine(elf),
				.make_entries = ts_cfi_make_entries };
	if (!ts_elf_section(elf, ".eh_frame", &frames))
		return;
	cfi->frames = ts_elf_section_bytes(elf, ".eh_frame", &cfi->frames_bytes);
	cfi->frames_address = frames.address;
	if (!ts_elf_section(elf, ".eh_frame_hdr", &header))
		return;
	bytes = ts_elf_section_bytes(elf, ".eh_frame_hdr", &header_bytes);
	cfi->header_address = header.address;
	if (bytes)
		ts_cfi_read_header(cfi, bytes, header_bytes);
}

void ts_cfi_release(struct ts_cfi *cfi)
{
	free(cfi->entries);
	*cfi = (struct ts_cfi){ 0 };
}
