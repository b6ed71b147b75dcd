/* SPDX-License-Identifier: Apache-2.0 */
/* See lost_text.h. */
#include "cli/common/lost_text.h"

#include <stdio.h>

#include "base/text.h"

const char *ts_lost_text(char *buffer, size_t bytes, uint64_t lost, uint64_t unknown,
			 const char *one, const char *many)
{
	char number[TS_FORMAT_BYTES];

	if (lost)
		snprintf(buffer, bytes, "%s %s lost%s",
			 ts_format_count(number, sizeof(number), (int64_t)lost),
			 lost == 1 ? one : many, unknown ? ", and an unknown number more" : "");
	else if (unknown)
		snprintf(buffer, bytes, "an unknown number of %s lost", many);
	else
		snprintf(buffer, bytes, "nothing lost");
	return buffer;
}
