/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fatbins: their entries, and contents that are packed with LZ4 or zstd. */
#include "code/cuda/local/fatbin.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/macros.h"
#include "code/local/cursor.h"

#define EM_CUDA 190
#define ENTRY_PTX 1u
#define ENTRY_CUBIN 2u
#define ENTRY_LEAST 48u /* the header up to its flags */
#define ENTRY_PACKED 64u
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define PLAIN_AT_MOST ((uint64_t)1 << 30)
#define LZ4_AT_MOST 255u /* bytes out of one byte in */

const char *ts_image_kind_name(enum ts_image_kind kind)
{
	return kind == TS_IMAGE_FATBIN  ? "fatbin"
	       : kind == TS_IMAGE_CUBIN ? "cubin"
	       : kind == TS_IMAGE_PTX   ? "ptx"
					: "unknown";
}

static uint32_t word_at(const void *image)
{
	uint32_t word;

	memcpy(&word, image, sizeof(word));
	return word;
}

static bool may_be_ptx(const uint8_t *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (text[i] != '\t' && text[i] != '\n' && text[i] != '\r' && text[i] != ' ')
			return text[i] == '.' || text[i] == '/';
	return false;
}

enum ts_image_kind ts_image_kind(const void *image, size_t bytes)
{
	uint32_t magic = bytes >= sizeof(magic) ? word_at(image) : 0;

	if (magic == TS_FATBIN_WRAPPER_MAGIC)
		return TS_IMAGE_WRAPPER;
	if (magic == TS_FATBIN_MAGIC)
		return TS_IMAGE_FATBIN;
	if (bytes >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG))
		return TS_IMAGE_CUBIN;
	return may_be_ptx(image, bytes) ? TS_IMAGE_PTX : TS_IMAGE_UNKNOWN;
}

/* ---- length ---- */

static uint64_t cubin_length(const uint8_t *image)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	uint64_t length, sections;

	memcpy(&header, image, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_CUDA)
		return 0;
	length = sizeof(header);
	if (header.e_phnum)
		length = TS_MAX(length,
				header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize);
	if (!header.e_shoff || header.e_shentsize != sizeof(section))
		return length;
	memcpy(&section, image + header.e_shoff, sizeof(section));
	sections = header.e_shnum ? header.e_shnum : section.sh_size;
	length = TS_MAX(length, header.e_shoff + sections * sizeof(section));
	for (uint64_t i = 0; i < sections; i++) {
		memcpy(&section, image + header.e_shoff + i * sizeof(section), sizeof(section));
		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL)
			length = TS_MAX(length, section.sh_offset + section.sh_size);
	}
	return length;
}

uint64_t ts_image_length(const void *image)
{
	const uint8_t *bytes = image;
	uint16_t header;
	uint64_t payload;

	/* One byte at a time: an empty text ends at once. */
	if (bytes[0] == 0x50 && bytes[1] == 0xed && bytes[2] == 0x55 && bytes[3] == 0xba) {
		memcpy(&header, bytes + 6, sizeof(header));
		memcpy(&payload, bytes + 8, sizeof(payload));
		return header + payload;
	}
	if (bytes[0] == ELFMAG0 && bytes[1] == ELFMAG1 && bytes[2] == ELFMAG2 &&
	    bytes[3] == ELFMAG3)
		return cubin_length(bytes);
	payload = strlen(image);
	return may_be_ptx(image, payload) ? payload + 1 : 0;
}

/* ---- entries ---- */

/* The header of an entry, from its first byte; everything is checked against `left`. */
static bool read_entry(const uint8_t *at, size_t left, struct ts_image_piece *piece,
		       size_t *ret_whole)
{
	struct ts_cursor cursor = { .at = at, .end = at + left };
	uint16_t kind = ts_cursor_u16(&cursor);
	uint32_t header_bytes, packed_bytes;
	uint64_t payload, flags, plain;

	ts_cursor_u16(&cursor); /* version */
	header_bytes = ts_cursor_u32(&cursor);
	payload = ts_cursor_u64(&cursor);
	packed_bytes = ts_cursor_u32(&cursor);
	ts_cursor_skip(&cursor, 8); /* where options are; version of the code */
	piece->architecture = ts_cursor_u32(&cursor);
	ts_cursor_skip(&cursor, 8); /* a name */
	flags = ts_cursor_u64(&cursor);
	ts_cursor_skip(&cursor, 8);
	plain = ts_cursor_u64(&cursor);
	if (header_bytes < ENTRY_LEAST || header_bytes > left || payload > left - header_bytes)
		return false;
	piece->kind = kind == ENTRY_PTX     ? TS_IMAGE_PTX
		      : kind == ENTRY_CUBIN ? TS_IMAGE_CUBIN
					    : TS_IMAGE_UNKNOWN;
	piece->packing = flags & FLAG_LZ4    ? TS_IMAGE_LZ4
			 : flags & FLAG_ZSTD ? TS_IMAGE_ZSTD
					     : TS_IMAGE_PLAIN;
	piece->data = at + header_bytes;
	piece->bytes = payload;
	piece->plain_bytes = payload;
	*ret_whole = header_bytes + payload;
	if (piece->packing == TS_IMAGE_PLAIN)
		return true;
	if (header_bytes < ENTRY_PACKED || packed_bytes > payload)
		return false;
	if (packed_bytes)
		piece->bytes = packed_bytes;
	piece->plain_bytes = plain;
	return true;
}

static bool next_entry(const uint8_t *image, size_t bytes, size_t *cursor,
		       struct ts_image_piece *piece)
{
	uint16_t header;
	uint64_t payload;
	size_t end, whole;

	if (bytes < 16)
		return false;
	memcpy(&header, image + 6, sizeof(header));
	memcpy(&payload, image + 8, sizeof(payload));
	if (header < 16 || header > bytes)
		return false;
	end = payload < bytes - header ? header + (size_t)payload : bytes;
	if (!*cursor)
		*cursor = header;
	if (*cursor >= end || !read_entry(image + *cursor, end - *cursor, piece, &whole))
		return false;
	*cursor += whole;
	return true;
}

bool ts_image_next(const void *image, size_t bytes, size_t *cursor,
		   struct ts_image_piece *ret_piece)
{
	enum ts_image_kind kind = ts_image_kind(image, bytes);

	*ret_piece = (struct ts_image_piece){ 0 };
	if (kind == TS_IMAGE_FATBIN)
		return next_entry(image, bytes, cursor, ret_piece);
	if (*cursor || (kind != TS_IMAGE_CUBIN && kind != TS_IMAGE_PTX))
		return false;
	*cursor = bytes;
	*ret_piece = (struct ts_image_piece){
		.kind = kind, .data = image, .bytes = bytes, .plain_bytes = bytes
	};
	return bytes > 0;
}

/* ---- unpacking ---- */

/* A length that continues in further bytes while they are 255. */
static bool take_length(struct ts_cursor *from, size_t *length)
{
	uint8_t byte;

	if (*length < 15)
		return true;
	do {
		byte = ts_cursor_u8(from);
		*length += byte;
	} while (byte == 255 && !from->is_bad);
	return !from->is_bad;
}

bool ts_lz4_unpack(void *to, size_t to_bytes, const void *packed, size_t from_bytes)
{
	const uint8_t *begin = packed;
	struct ts_cursor from = { .at = begin, .end = begin + from_bytes };
	uint8_t *out = to;
	size_t used = 0;

	while (ts_cursor_left(&from)) {
		uint8_t token = ts_cursor_u8(&from);
		size_t length = token >> 4, distance;

		if (!take_length(&from, &length) || length > ts_cursor_left(&from) ||
		    length > to_bytes - used)
			return false;
		memcpy(out + used, from.at, length);
		from.at += length;
		used += length;
		if (!ts_cursor_left(&from))
			return used == to_bytes; /* the last sequence has literals only */
		distance = ts_cursor_u16(&from);
		length = token & 15;
		if (from.is_bad || !take_length(&from, &length))
			return false;
		length += 4;
		if (!distance || distance > used || length > to_bytes - used)
			return false;
		for (; length; length--, used++) /* may overlap: the result is repeated */
			out[used] = out[used - distance];
	}
	return used == to_bytes;
}

typedef size_t (*zstd_function)(void *to, size_t to_bytes, const void *from, size_t from_bytes);

static zstd_function find_zstd(void)
{
	static zstd_function found;
	void *library;

	if (__atomic_load_n(&found, __ATOMIC_ACQUIRE))
		return found;
	library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library)
		__atomic_store_n(&found, (zstd_function)dlsym(library, "ZSTD_decompress"),
				 __ATOMIC_RELEASE);
	return found;
}

static const char *unpack(const struct ts_image_piece *piece, void *to)
{
	zstd_function zstd;

	if (piece->packing == TS_IMAGE_LZ4)
		return ts_lz4_unpack(to, piece->plain_bytes, piece->data, piece->bytes)
			       ? NULL
			       : "its LZ4 data is damaged";
	zstd = find_zstd();
	if (!zstd)
		return "libzstd.so.1 was not found";
	return zstd(to, piece->plain_bytes, piece->data, piece->bytes) == piece->plain_bytes
		       ? NULL
		       : "its zstd data is damaged";
}

const char *ts_image_unpack(const struct ts_image_piece *piece, void **ret_buffer,
			    const uint8_t **ret_data, size_t *ret_bytes)
{
	const char *why;
	void *buffer;

	*ret_buffer = NULL;
	*ret_data = piece->data;
	*ret_bytes = piece->bytes;
	if (piece->packing == TS_IMAGE_PLAIN)
		return NULL;
	if (!piece->plain_bytes || piece->plain_bytes > PLAIN_AT_MOST ||
	    (piece->packing == TS_IMAGE_LZ4 && piece->plain_bytes / LZ4_AT_MOST > piece->bytes))
		return "its size is not possible";
	buffer = malloc(piece->plain_bytes);
	if (!buffer)
		return "no memory to unpack it";
	why = unpack(piece, buffer);
	if (why) {
		free(buffer);
		return why;
	}
	*ret_buffer = buffer;
	*ret_data = buffer;
	*ret_bytes = piece->plain_bytes;
	return NULL;
}

/* ---- selection ---- */

/* Of a cubin that is an image itself: from its flags, whose layout depends on the ABI version. */
static uint32_t cubin_architecture(const uint8_t *image, size_t bytes)
{
	Elf64_Ehdr header;

	if (bytes < sizeof(header))
		return 0;
	memcpy(&header, image, sizeof(header));
	if (header.e_ident[EI_ABIVERSION] >= 8)
		return header.e_flags >> 8 & 0xff;
	return header.e_flags & 0xff;
}

static uint32_t architecture_of(const struct ts_image_piece *piece)
{
	if (piece->architecture || piece->kind != TS_IMAGE_CUBIN ||
	    piece->packing != TS_IMAGE_PLAIN)
		return piece->architecture;
	return cubin_architecture(piece->data, piece->bytes);
}

enum ts_image_kind ts_image_select(const void *image, size_t bytes, unsigned int major,
				   unsigned int minor, uint32_t *ret_architecture)
{
	struct ts_image_piece piece;
	uint32_t cubin = 0, ptx = 0;
	bool has_cubin = false, has_ptx = false;
	size_t cursor = 0;

	while (ts_image_next(image, bytes, &cursor, &piece)) {
		uint32_t architecture = architecture_of(&piece);

		if (piece.kind == TS_IMAGE_PTX && architecture <= major * 10 + minor) {
			has_ptx = true;
			ptx = TS_MAX(ptx, architecture);
		} else if (piece.kind == TS_IMAGE_CUBIN &&
			   (!architecture ||
			    (architecture / 10 == major && architecture % 10 <= minor))) {
			has_cubin = true;
			cubin = TS_MAX(cubin, architecture);
		}
	}
	*ret_architecture = has_cubin ? cubin : ptx;
	return has_cubin ? TS_IMAGE_CUBIN : has_ptx ? TS_IMAGE_PTX : TS_IMAGE_UNKNOWN;
}
