/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses packets. */
#include "import/perfetto/perfetto_unpack.h"

#include <zstd.h>

#include "import/common/input_stream.h"
#if __has_include("tracesmith_config.h")
#include "tracesmith_config.h"
#endif

#ifdef TS_HAVE_ZLIB
#include <zlib.h>
#endif

#define STEP ((size_t)256 << 10)

static int reserve(struct ts_text *out)
{
	if (out->length > TS_INPUT_STREAM_MAX_VALUE)
		return TS_EFORMAT;
	return ts_text_reserve(out, STEP) ? TS_OK : TS_ENOMEM;
}

#ifdef TS_HAVE_ZLIB
static int inflate_all(struct ts_text *out, const struct ts_proto_field *field)
{
	z_stream zlib = { .next_in = (unsigned char *)(uintptr_t)field->bytes,
			  .avail_in = (unsigned int)field->length };
	int rc = TS_OK, result = Z_OK;

	if (inflateInit(&zlib) != Z_OK)
		return TS_ENOMEM;
	while (!rc && result == Z_OK) {
		rc = reserve(out);
		if (rc)
			break;
		zlib.next_out = (unsigned char *)out->data + out->length;
		zlib.avail_out = (unsigned int)STEP;
		result = inflate(&zlib, Z_NO_FLUSH);
		out->length += STEP - zlib.avail_out;
	}
	inflateEnd(&zlib);
	return rc ? rc : result == Z_STREAM_END ? TS_OK : TS_EFORMAT;
}
#else
static int inflate_all(struct ts_text *out, const struct ts_proto_field *field)
{
	(void)out;
	(void)field;
	return TS_ECAP;
}
#endif

static int unpack_zstd(struct ts_text *out, const struct ts_proto_field *field)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();
	ZSTD_inBuffer in = { .src = field->bytes, .size = field->length };
	size_t rest = zstd ? ZSTD_initDStream(zstd) : 0;
	int rc = zstd ? TS_OK : TS_ENOMEM;

	while (!rc && rest && !ZSTD_isError(rest)) {
		ZSTD_outBuffer to = { .size = STEP };
		size_t before = in.pos;

		rc = reserve(out);
		if (rc)
			break;
		to.dst = out->data + out->length;
		rest = ZSTD_decompressStream(zstd, &to, &in);
		out->length += to.pos;
		if (rest && !to.pos && in.pos == before)
			rc = TS_EFORMAT;
	}
	if (!rc && ZSTD_isError(rest))
		rc = TS_EFORMAT;
	ZSTD_freeDStream(zstd);
	return rc;
}

int ts_perfetto_unpack(struct ts_text *out, const struct ts_proto_field *field)
{
	ts_text_clear(out);
	return field->number == 50 ? inflate_all(out, field) : unpack_zstd(out, field);
}
