/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of an SBT file, byte for byte as in docs/format.md, and its limits. Little-endian
 * hosts only: the structures are read and written in place.
 */
#ifndef TS_SBT_SBT_LAYOUT_H
#define TS_SBT_SBT_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "SBT is read and written in place");

#define SBT_FILE_MAGIC "\x89SBT\r\n\x1a\n"
#define SBT_CHUNK_MAGIC "\x89SBTchk\n"
#define SBT_TRAILER_MAGIC "\x89SBTend\n"
#define SBT_MAGIC_BYTES 8

#define SBT_MAJOR 1
#define SBT_MINOR 0

struct sbt_file_header {
	uint8_t magic[SBT_MAGIC_BYTES];
	uint16_t major;
	uint16_t minor;
	uint32_t header_bytes;
	uint8_t trace_id[16];
	int64_t created_ns;
	uint64_t required;
	uint64_t reserved;
	uint64_t checksum; /* of everything before it */
};
static_assert(sizeof(struct sbt_file_header) == 64, "format.md, section 2");
static_assert(offsetof(struct sbt_file_header, checksum) == 56, "format.md, section 2");

struct sbt_chunk_header {
	uint8_t magic[SBT_MAGIC_BYTES];
	uint32_t header_bytes;
	uint32_t columns;
	uint64_t chunk_bytes;
	uint64_t sequence;
	uint16_t table;
	uint16_t flags;
	uint32_t rows;
	uint32_t clock;
	uint32_t values;
	int64_t min_start;
	int64_t max_start;
	int64_t max_end;
	uint64_t first_id;
	uint64_t directory_checksum;
	uint64_t checksum; /* of everything before it */
};
static_assert(sizeof(struct sbt_chunk_header) == 96, "format.md, section 3.1");
static_assert(offsetof(struct sbt_chunk_header, rows) == 36, "format.md, section 3.1");
static_assert(offsetof(struct sbt_chunk_header, min_start) == 48, "format.md, section 3.1");
static_assert(offsetof(struct sbt_chunk_header, checksum) == 88, "format.md, section 3.1");

#define SBT_FLAG_LONG 1
#define SBT_FLAG_FINAL 2

struct sbt_column {
	uint16_t column;
	uint8_t type;
	uint8_t encoding;
	uint32_t key;
	uint32_t count;
	uint32_t stored_bytes;
	int64_t base;
	uint64_t checksum; /* of the payload */
};
static_assert(sizeof(struct sbt_column) == 32, "format.md, section 3.2");
static_assert(offsetof(struct sbt_column, base) == 16, "format.md, section 3.2");

#define SBT_COLUMN_ARGUMENT 65535 /* sbt_column.column of an argument column */
#define SBT_TYPE_OF_COLUMN 16     /* sbt_column.type of others: this + enum ts_column_type */

struct sbt_trailer {
	uint8_t magic[SBT_MAGIC_BYTES];
	uint64_t index_offset;
	uint64_t file_bytes;
	uint64_t checksum; /* of everything before it */
};
static_assert(sizeof(struct sbt_trailer) == 32, "format.md, section 5");

enum sbt_layout {
	SBT_LAYOUT_CONST = 0,
	SBT_LAYOUT_PLANES = 1,
	SBT_LAYOUT_LOG = 2,
	SBT_LAYOUT_DICT = 3,
	SBT_LAYOUT_BYTES = 4,
};

enum sbt_transform {
	SBT_TRANSFORM_OFFSET = 0,
	SBT_TRANSFORM_DELTA = 1,
	SBT_TRANSFORM_ZIGZAG = 2,
};

#define SBT_ENCODING(layout, transform) ((uint8_t)((transform) << 4 | (layout)))
#define SBT_ENCODING_LAYOUT(encoding) ((encoding)&15u)
#define SBT_ENCODING_TRANSFORM(encoding) ((encoding) >> 4)

enum sbt_block_method {
	SBT_BLOCK_FILL = 0,
	SBT_BLOCK_RAW = 1,
	SBT_BLOCK_ZSTD = 2,
};

/* Section 7: a reader rejects anything beyond these before allocating for it. */
#define SBT_MAX_ROWS 131072u
#define SBT_MAX_VALUES 4194304u
#define SBT_MAX_COLUMNS 4096u
#define SBT_MAX_RAW_BYTES (256u << 20)
#define SBT_MAX_STORED_BYTES (512u << 20)
#define SBT_MAX_STRING_BYTES (64u << 20)

/*
 * Section 7, too: what a reader loads to resolve ids (texts, shapes, entities, clocks) is limited
 * in proportion to the file. Real traces need about 100 bytes per entry; hostile ones would take
 * any amount. A writer keeps its texts below half of that.
 */
#define SBT_BUDGET (UINT64_C(128) << 20)
#define SBT_BUDGET_A_BYTE UINT64_C(1024)
#define SBT_TEXT_BUDGET (UINT64_C(96) << 20)
#define SBT_TEXT_BUDGET_A_BYTE UINT64_C(512)
/* A text with its NUL and offset. */
#define SBT_TEXT_BYTES(length) ((uint64_t)(length) + 1 + sizeof(uint64_t))

/*
 * LOG with m mantissa bits: the largest class, and the largest word with a class (that fits a
 * byte).
 */
#define SBT_LOG_MAX_MANTISSA 3
static inline unsigned int sbt_log_max_class(unsigned int mantissa)
{
	return mantissa == 0 ? 64 : mantissa == 1 ? 127 : mantissa == 2 ? 251 : 255;
}

static inline uint64_t sbt_log_max_word(unsigned int mantissa)
{
	return mantissa <= 2 ? UINT64_MAX : (UINT64_C(1) << 34) - 1;
}

#endif
