/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of device code: what a program gives to cuModuleLoadData() or cuLibraryLoadData(). A
 * "fatbin" holds cubins and PTX for several architectures, possibly compressed; a cubin or PTX
 * text can also be an image itself. Images are untrusted. Any thread may call this.
 */
#ifndef TS_CODE_CUDA_LOCAL_FATBIN_H
#define TS_CODE_CUDA_LOCAL_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TS_FATBIN_WRAPPER_MAGIC 0x466243b1u
#define TS_FATBIN_MAGIC 0xba55ed50u

enum ts_image_kind {
	TS_IMAGE_UNKNOWN,
	TS_IMAGE_FATBIN,
	TS_IMAGE_CUBIN,
	TS_IMAGE_PTX,
	TS_IMAGE_WRAPPER, /* points to a fatbin: `const void *` at byte 8 */
};
/* "fatbin", "cubin", "ptx": as in details of modules. */
const char *ts_image_kind_name(enum ts_image_kind kind);

/* By its first bytes. */
enum ts_image_kind ts_image_kind(const void *image, size_t bytes);

/*
 * The length of an image of which only the address is known, as the driver finds it: from its
 * headers; of PTX, with the NUL. 0: not an image. The memory must be what the driver has accepted.
 */
uint64_t ts_image_length(const void *image);

enum ts_image_packing { TS_IMAGE_PLAIN, TS_IMAGE_LZ4, TS_IMAGE_ZSTD };

/* A cubin or PTX in an image. */
struct ts_image_piece {
	enum ts_image_kind kind; /* CUBIN, PTX or UNKNOWN (such as NVVM) */
	uint32_t architecture;   /* 90: sm_90; 0: an image that does not say it */
	enum ts_image_packing packing;
	const uint8_t *data;
	size_t bytes;
	size_t plain_bytes; /* after unpacking */
};

/* The cursor starts at 0. False: no more, or the rest is malformed. */
bool ts_image_next(const void *image, size_t bytes, size_t *cursor,
		   struct ts_image_piece *ret_piece);

/*
 * Unpacks. `ret_buffer` is freed by the caller; NULL: the data lies in the image. Returns NULL, or
 * why it failed: "libzstd.so.1 was not found".
 */
const char *ts_image_unpack(const struct ts_image_piece *piece, void **ret_buffer,
			    const uint8_t **ret_data, size_t *ret_bytes);

/*
 * Which code of an image runs on a device of this compute capability: cubins of `architecture`, or
 * PTX that the driver compiles. UNKNOWN: none.
 */
enum ts_image_kind ts_image_select(const void *image, size_t bytes, unsigned int major,
				   unsigned int minor, uint32_t *ret_architecture);

/* LZ4 blocks. True: exactly `to_bytes` came out. */
bool ts_lz4_unpack(void *to, size_t to_bytes, const void *from, size_t from_bytes);

#endif
