/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of CUDA: which code of their images ran on the recorded device. It is what a replay
 * needs, or PTX, which the driver of a replay compiles again.
 */
#include "replay/summary/module_facts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "code/cuda/local/fatbin.h"

/* Larger images are not looked at: a summary takes no longer than a moment. */
#define MOST_BYTES ((uint64_t)64 << 20)

void ts_replay_modules_release(struct ts_replay_modules *modules)
{
	ts_map_release(&modules->contexts);
	ts_map_release(&modules->devices);
	ts_map_release(&modules->images);
}

int ts_replay_modules_object(struct ts_replay_modules *modules, const struct ts_object_row *row,
			     const struct ts_replay_details *details)
{
	if (row->kind == TS_OBJECT_DEVICE && details->compute.count == 2 &&
	    details->compute.items[0] < 1000 && details->compute.items[1] < 10)
		return ts_map_put(&modules->devices, (uint64_t)row->id,
				  details->compute.items[0] * 10 + details->compute.items[1]);
	if (row->kind == TS_OBJECT_CONTEXT && row->parent > 0)
		return ts_map_put(&modules->contexts, (uint64_t)row->id, (uint64_t)row->parent);
	return TS_OK;
}

/* Compute capability of the device of a module, in tenths; 0: unknown. */
static uint64_t compute_of(const struct ts_replay_modules *modules, const struct ts_object_row *row)
{
	uint64_t device, compute;

	if (row->parent <= 0 || !ts_map_get(&modules->contexts, (uint64_t)row->parent, &device) ||
	    !ts_map_get(&modules->devices, device, &compute))
		return 0;
	return compute;
}

static enum ts_image_kind select_code(struct ts_reader *reader, int64_t blob, uint64_t compute)
{
	TS_AUTO_FREE void *image = NULL;
	uint32_t architecture;
	uint64_t bytes;

	if (ts_reader_blob_size(reader, blob, &bytes, NULL) || !bytes || bytes > MOST_BYTES)
		return TS_IMAGE_CUBIN;
	image = malloc((size_t)bytes);
	if (!image || ts_reader_blob_read(reader, blob, 0, image, (size_t)bytes, NULL))
		return TS_IMAGE_CUBIN;
	return ts_image_select(image, (size_t)bytes, (unsigned int)(compute / 10),
			       (unsigned int)(compute % 10), &architecture);
}

int ts_replay_modules_add(struct ts_replay_modules *modules, struct ts_reader *reader,
			  const struct ts_object_row *row)
{
	uint64_t compute = compute_of(modules, row);
	bool is_new = false;

	/* Every window describes the modules that it uses. */
	if (!compute || row->blob <= 0)
		return TS_OK;
	if (!ts_map_insert(&modules->images, (uint64_t)row->blob, &is_new))
		return TS_ENOMEM;
	if (!is_new)
		return TS_OK;
	modules->count++;
	modules->compute = modules->compute ? TS_MIN(modules->compute, compute) : compute;
	switch (select_code(reader, row->blob, compute)) {
	case TS_IMAGE_PTX:
		modules->ptx++;
		break;
	case TS_IMAGE_UNKNOWN:
		modules->unfit++;
		break;
	default:
		break;
	}
	return TS_OK;
}
