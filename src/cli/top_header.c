/* SPDX-License-Identifier: Apache-2.0 */
/* What stands above the table, as pieces of text. Must not know where they are shown. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/top.h"

void ts_top_format_device_name(const struct ts_top_device *device, char *buffer, size_t size)
{
	snprintf(buffer, size, "%s %u%s%s", device->vendor[0] ? device->vendor : "device",
		 ts_metrics_device_number(device->number), device->model[0] ? " " : "",
		 device->model);
}

static void append_unit(struct ts_text *out, double value, const char *unit)
{
	char text[32];

	if (!isnan(value))
		ts_text_printf(out, " %s", ts_top_format_unit(text, sizeof(text), value, unit));
}

static void append_memory(struct ts_text *out, double used, double total)
{
	char text[2][32];

	if (isnan(used) && isnan(total))
		return;
	ts_text_printf(out, " mem %s", ts_top_format_bytes(text[0], sizeof(text[0]), used));
	if (!isnan(total))
		ts_text_printf(out, "/%s", ts_top_format_bytes(text[1], sizeof(text[1]), total));
}

void ts_top_describe_device(const struct ts_top_device *device, const struct ts_top_subject *values,
			    struct ts_text *out)
{
	const double *value = values->values;

	append_memory(out, value[TS_TOP_DEVICE_MEMORY], device->memory_bytes);
	append_unit(out, value[TS_TOP_DEVICE_POWER], "W");
	append_unit(out, value[TS_TOP_DEVICE_TEMPERATURE], "C");
	append_unit(out, value[TS_TOP_DEVICE_CLOCK], "MHz");
	if (!isnan(value[TS_TOP_DEVICE_MEMORY_CLOCK])) {
		ts_text_append_str(out, " mem");
		append_unit(out, value[TS_TOP_DEVICE_MEMORY_CLOCK], "MHz");
	}
	if (values->throttled[0])
		ts_text_printf(out, " throttled: %s", values->throttled);
}

void ts_top_format_load(const struct ts_top *top, char *buffer, size_t size)
{
	if (isnan(top->load[0]) || isnan(top->load[1]) || isnan(top->load[2]))
		snprintf(buffer, size, "load -");
	else
		snprintf(buffer, size, "load %.2f %.2f %.2f", top->load[0], top->load[1],
			 top->load[2]);
}

double ts_top_busy_percent(const struct ts_top *top)
{
	double steal = top->system[TS_TOP_CPU_STEAL];

	return top->system[TS_TOP_CPU_USER] + top->system[TS_TOP_CPU_SYSTEM] +
	       (isnan(steal) ? 0 : steal);
}

void ts_top_format_place(char *buffer, size_t size)
{
	char host[65] = "", hour[16] = "";
	time_t now = time(NULL);
	struct tm local;

	gethostname(host, sizeof(host) - 1);
	if (localtime_r(&now, &local))
		strftime(hour, sizeof(hour), "%H:%M:%S", &local);
	snprintf(buffer, size, "%s  %s", host, hour);
}
