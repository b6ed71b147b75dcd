/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the image that was dumped as a PNG. */
#include <inttypes.h>
#include <unistd.h>

#include "base/io.h"
#include "base/output.h"
#include "cli/common/report.h"
#include "cli/replay/replay_show.h"
#include "replay/check/pixels.h"

/* NULL: it is not an image. */
static const struct ts_replay_image *find_image(const struct ts_replay *replay)
{
	const struct ts_replay_stream *stream = replay->stream;

	for (uint32_t i = 0; i < stream->object_count; i++)
		if (stream->objects[i].number == replay->options.dump_memory &&
		    stream->objects[i].kind == TS_OBJECT_MEMORY)
			return stream->objects[i].image;
	return NULL;
}

static int write_file(const struct ts_pixels *pixels, const char *path, struct ts_error *err)
{
	struct ts_output_part part = { 0 };
	int fd = -1, rc = ts_output_part_init(&part, path, err);

	if (!rc)
		rc = ts_output_part_open(&part, &fd, err);
	if (!rc) {
		rc = ts_png_write(fd, &pixels->png, err);
		if (rc)
			ts_error_prefix(err, "'%s'", path);
	}
	if (fd >= 0)
		close(fd);
	if (!rc)
		rc = ts_output_part_commit(&part, err);
	ts_output_part_release(&part);
	return rc;
}

int ts_replay_write_png(const struct ts_replay_shown *shown, const char *path, bool quiet,
			struct ts_error *err)
{
	const struct ts_replay_image *image = find_image(shown->replay);
	struct ts_pixels pixels = { 0 };
	uint64_t bytes = 0;
	const void *content = ts_replay_dump(shown->replay, &bytes);
	int rc;

	if (!image || !content)
		return ts_error_set(err, TS_EINVAL,
				    "memory %" PRIu64
				    " is not an image: --png needs one (--list shows which are)",
				    shown->replay->options.dump_memory);
	rc = ts_pixels_init(&pixels, image, content, err);
	if (!rc)
		rc = write_file(&pixels, path, err);
	if (!rc && !quiet && pixels.is_scaled)
		ts_report_note("'%s': 0 is %g, 65535 is %g", path, pixels.low, pixels.high);
	ts_pixels_release(&pixels);
	return rc;
}
