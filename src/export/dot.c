/* SPDX-License-Identifier: Apache-2.0 */
/* To come. */
#include "export/export.h"

int ts_export_dot(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		  struct ts_error *err)
{
	return ts_error_set(err, TS_ECAP, "not built yet");
}
