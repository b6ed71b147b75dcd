/* SPDX-License-Identifier: Apache-2.0 */
/* Another tool that uses CUPTI (late_tool.h): subscribes once, and takes all kernels of a session.
 */
#include <stdlib.h>
#include <string.h>

#include "code/cuda/local/cupti_abi.h"
#include "cuda/late_tool.h"
#include "cuda/stand_in_cupti.h"

#define CUPTI_FUNCTION(name, parameters) int cupti##name parameters;
CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION

/* Loading it takes milliseconds: so many slots must be relocated. */
__asm__(".pushsection .data.rel,\"aw\"\n"
	"many_slots: .rept 400000\n.quad many_slots\n.endr\n"
	".popsection");

static uint8_t buffer_memory[65536];
static size_t got;

static void called_back(void *data, uint32_t domain, uint32_t number, const void *what)
{
	(void)data, (void)domain, (void)number, (void)what;
}

static void requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	memset(buffer_memory, 0, sizeof(buffer_memory));
	*buffer = buffer_memory;
	*bytes = sizeof(buffer_memory);
	*most_records = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	(void)context, (void)stream, (void)bytes;
	if (buffer != buffer_memory)
		abort(); /* it is another's */
	got += valid;
}

static int subscribe(void)
{
	static void *subscriber;

	return cuptiSubscribe(&subscriber, called_back, NULL);
}

static int start(void)
{
	int result = cuptiActivityRegisterCallbacks(requested, completed);

	got = 0;
	return result ? result : cuptiActivityEnable(CUPTI_KIND_CONCURRENT_KERNEL);
}

static unsigned int stop(void)
{
	cuptiActivityDisable(CUPTI_KIND_CONCURRENT_KERNEL);
	cuptiActivityFlushAll(1);
	return (unsigned int)(got / stand_in_cupti()->kernel_bytes);
}

static void *enable(void)
{
	return (void *)(uintptr_t)cuptiActivityEnable;
}

extern struct late_tool late_tool;
__attribute__((visibility("default"))) struct late_tool late_tool = { subscribe, start, stop,
								      enable };
