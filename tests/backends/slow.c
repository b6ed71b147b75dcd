/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A third-party backend with a scripted source of metrics: behaves as `slow_mode`, which a test
 * finds with dlsym(), or $SLOW_MODE says. It has one device with one value, which counts samples.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/backend.h>

__attribute__((visibility("default"))) volatile char slow_mode[16];
__attribute__((visibility("default"))) volatile int slow_samples;
__attribute__((visibility("default"))) volatile int slow_closed;

static int is_mode(const char *mode)
{
	const char *given = slow_mode[0] ? (const char *)slow_mode : getenv("SLOW_MODE");

	return given && !strcmp(given, mode);
}

static enum ts_metrics_state open_it(void **ret_state, char *why, size_t why_bytes)
{
	while (is_mode("hang-open"))
		usleep(1000);
	if (is_mode("none"))
		return TS_METRICS_NONE;
	if (is_mode("broken")) {
		strncpy(why, "its door is locked: unlock it", why_bytes - 1);
		return TS_METRICS_BROKEN;
	}
	*ret_state = NULL;
	return TS_METRICS_READY;
}

static int sample(void *state, const struct ts_metrics_sink *sink)
{
	const struct ts_metrics_device device = { .number = 3,
						  .vendor = "Slow & Sons",
						  .model = "S1",
						  .uuid = "slow-0003",
						  .memory_bytes = 1 << 20 };
	const struct ts_metrics_subject subject = { .kind = TS_METRICS_DEVICE, .device = 3 };

	(void)state;
	while (is_mode("hang"))
		usleep(1000);
	if (is_mode("fail")) {
		sink->message(sink->context, "it fell off the bus: restart the machine");
		return 1;
	}
	if (!slow_samples)
		sink->device(sink->context, &device);
	slow_samples++;
	sink->integer(sink->context, &subject, "samples", "count", slow_samples);
	sink->real(sink->context, &subject, "power_W", "draw", 1.5);
	return 0;
}

static void close_it(void *state)
{
	(void)state;
	slow_closed++;
}

static const struct ts_metrics_source source = {
	.abi = TS_METRICS_ABI,
	.size = sizeof(source),
	.name = "slow",
	.summary = "does as it is told",
	.least_interval_ns = 1000000,
	.open = open_it,
	.sample = sample,
	.close = close_it,
};

__attribute__((visibility("default"))) const struct ts_backend ts_backend = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_backend),
	.name = "slow",
	.summary = "for tests",
	.metrics = &source,
};
