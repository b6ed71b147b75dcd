/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of devices, contexts and streams: those of CUPTI, as in gpu_op. Each is emitted before
 * its first operation. Only for the buffer reader, except for cuda_stream_number().
 */
#include <errno.h>

#include "backends/cuda/cupti/cupti_device.h"

#define STREAMS \
	8192u /* a power of two; further ones are emitted repeatedly, which costs only bytes */
#define DEVICES 64u

static struct stream {
	uint32_t context, number, is_emitted;
} streams[STREAMS];
static uint64_t devices; /* one bit per device whose clock was emitted */
static bool must_again;  /* another recording began; atomic */

static bool is_stream_new(uint32_t context, uint32_t number)
{
	uint32_t at = (number * 2654435761u ^ context * 40503u) % STREAMS;

	for (uint32_t i = 0; i < STREAMS / 2; i++, at = (at + 1) % STREAMS) {
		struct stream *stream = &streams[at];

		if (stream->is_emitted && stream->context == context && stream->number == number)
			return false;
		if (!stream->is_emitted) {
			*stream = (struct stream){ context, number, 1 };
			return true;
		}
	}
	return true;
}

void cuda_contexts_again(void)
{
	__atomic_store_n(&must_again, true, __ATOMIC_RELEASE);
}

void cuda_contexts_emit(uint32_t device, uint32_t context, uint32_t stream)
{
	if (__atomic_load_n(&must_again, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&must_again, false, __ATOMIC_ACQ_REL)) {
		memset(streams, 0, sizeof(streams));
		devices = 0;
	}
	if (device < DEVICES && !(devices >> device & 1)) {
		devices |= UINT64_C(1) << device;
		cuda_clock_emit(device);
	}
	if (is_stream_new(context, stream))
		ts_accelerator_stream(
			&(struct ts_accelerator_queue){ .size = sizeof(struct ts_accelerator_queue),
							.device = device,
							.stream = stream,
							.context = context,
							.priority = TS_UNKNOWN });
}

uint32_t cuda_stream_number(void *stream, uint32_t *ret_context)
{
	static int (*current)(void **context);
	uint32_t number = UINT32_MAX, context = UINT32_MAX;
	void *handle = NULL;
	int saved = errno;

	if (!cuda_cupti_version() || !cupti.GetStreamId || !cupti.GetContextId ||
	    cuda_device_state() == CUDA_DEVICE_FORKED || cuda_cupti_is_ended())
		return UINT32_MAX;
	if (!current)
		current = (int (*)(void **))cuda_driver("cuCtxGetCurrent");
	cuda_thread.is_ours++;
	if (!current || current(&handle) || !handle || cupti.GetContextId(handle, &context) ||
	    cupti.GetStreamId(handle, stream, &number))
		number = UINT32_MAX;
	cuda_thread.is_ours--;
	errno = saved;
	if (number != UINT32_MAX && ret_context)
		*ret_context = context;
	return number;
}
