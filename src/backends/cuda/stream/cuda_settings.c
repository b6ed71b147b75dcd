/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of contexts, functions and streams that change how kernels run. */
#include "backends/cuda/stream/cuda_capture.h"

void capture_stream_settings_describe(const struct capture_stream *stream, struct stream_text *text)
{
	(void)stream;
	(void)text;
}

const struct cuda_handler_entry capture_setting_handlers[] = { { NULL, NULL, 0 } };
