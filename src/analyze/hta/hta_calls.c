/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the calls that HTA knows. */
#include "analyze/hta/hta_calls.h"

#include "base/memory.h"

static const struct {
	const char *name;
	unsigned int uses;
} known[] = {
	{ "cudaLaunchKernel", TS_HTA_LAUNCH | TS_HTA_QUEUE },
	{ "cudaLaunchKernelExC", TS_HTA_LAUNCH | TS_HTA_QUEUE },
	{ "cudaMemcpyAsync", TS_HTA_LAUNCH | TS_HTA_QUEUE },
	{ "cudaMemsetAsync", TS_HTA_LAUNCH | TS_HTA_QUEUE },
	{ "runFunction - job_prep_and_submit_for_execution", TS_HTA_LAUNCH | TS_HTA_QUEUE },
	{ "cuLaunchKernel", TS_HTA_QUEUE },
	{ "cuLaunchKernelEx", TS_HTA_QUEUE },
	{ "hipLaunchKernel", TS_HTA_QUEUE },
	{ "hipExtModuleLaunchKernel", TS_HTA_QUEUE },
	{ "hipMemsetAsync", TS_HTA_QUEUE },
	{ "hipMemcpyAsync", TS_HTA_QUEUE },
	{ "hipMemcpyWithStream", TS_HTA_QUEUE },
};
_Static_assert(TS_ARRAY_SIZE(known) <= TS_HTA_CALLS_MAX, "names has room for all");

void ts_hta_calls_init(struct ts_hta_calls *calls, const struct ts_work *work, unsigned int use)
{
	calls->count = 0;
	for (size_t i = 0; i < TS_ARRAY_SIZE(known); i++) {
		uint32_t name = ts_work_find_text(work, known[i].name);

		if ((known[i].uses & use) && name)
			calls->names[calls->count++] = name;
	}
}
