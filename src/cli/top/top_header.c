/* SPDX-License-Identifier: Apache-2.0 */
/* Texts above the table. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/top/top.h"

/* A note of this length has been truncated. */
#define NOTE_FULL (sizeof(((struct ts_top *)0)->note) - 1)

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
	double busy = top->system[TS_TOP_CPU_USER] + top->system[TS_TOP_CPU_SYSTEM] +
		      (isnan(steal) ? 0 : steal);

	/* The parts are rounded: together they may be slightly more than the whole. */
	return busy > 100 ? 100 : busy;
}

void ts_top_format_host(char *buffer, size_t size)
{
	char host[65] = "", hour[16] = "";
	time_t now = time(NULL);
	struct tm local;

	gethostname(host, sizeof(host) - 1);
	if (localtime_r(&now, &local))
		strftime(hour, sizeof(hour), "%H:%M:%S", &local);
	snprintf(buffer, size, "%s  %s", host, hour);
}

/* Position of a message in a note, whose end may be truncated; NULL: not in it. */
static char *find_message(char *note, const char *text)
{
	size_t length = strlen(text), left = strlen(note);
	bool is_cut = left >= NOTE_FULL;

	for (char *at = note; length && left; at++, left--) {
		bool begins = at == note ||
			      (at[-1] == ' ' && at - note >= 2 && strchr(";:", at[-2]));

		if (begins && (left >= length || is_cut) &&
		    !strncmp(at, text, TS_MIN(length, left)))
			return at;
	}
	return NULL;
}

void ts_top_shorten_note(char *note, const struct ts_top_message *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *at = find_message(note, messages[i].text), *end;
		size_t source = strlen(messages[i].source);

		if (!at)
			continue;
		end = at + strnlen(at, strlen(messages[i].text));
		/* "source: text; more" becomes "more". */
		if ((size_t)(at - note) >= source + 2 && !strncmp(at - 2, ": ", 2) &&
		    !strncmp(at - 2 - source, messages[i].source, source))
			at -= source + 2;
		if (!strncmp(end, "; ", 2))
			end += 2;
		else if (at - note >= 2 && !strncmp(at - 2, "; ", 2))
			at -= 2;
		memmove(at, end, strlen(end) + 1);
	}
}
