/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a text, its first argument, wherever a program can put one into its events, and a number
 * into watched variables; names of things begin with "stays".
 *
 *	secrets TEXT NUMBER [FILE FILE]    creates a file when done, and then waits for another one
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

#include "file_signals.h"
#include "nvtx_client.h"

static void emit_sites(const char *text, int64_t number)
{
	TS_INSTANT("stays_instant", "stays_category", TS_STRING("stays_key", text),
		   TS_INT("stays_number", 42));
	TS_INSTANT("stays_watched", "watch", TS_STRING("value", text), TS_INT("number", number),
		   TS_DOUBLE("real", (double)number));
	/* Without texts, and more than once, as the shortest way into a ring needs them. */
	for (int i = 0; i < 3; i++) {
		TS_INSTANT("stays_watched", "watch", TS_INT("number", number));
		TS_INSTANT("stays_watched", "watch", TS_INT("number", number),
			   TS_DOUBLE("real", (double)number));
	}
	TS_COUNTER("stays_counter", "stays_category", TS_INT("series", 1));
	TS_BEGIN("stays_span", "stays_category", TS_STRING("key", text));
	TS_END();
}

/* Names that are not known before, as bindings use them. */
static void emit_dynamic(const char *text, int64_t number)
{
	struct ts_emit_arg args[] = { { "text", TS_EMIT_STRING, { .string = text } },
				      { "number", TS_EMIT_INT, { .integer = number } } };

	ts_tracer_instant(ts_tracer_process(), "stays_dynamic", "stays_category", TS_TRACK_THREAD,
			  args, 1);
	ts_tracer_span(ts_tracer_process(), "stays_dynamic_span", "stays_category", TS_TIME_NOW, 10,
		       TS_TRACK_THREAD, args, 1);
	ts_tracer_instant(ts_tracer_process(), "stays_dynamic_watch", "watch", TS_TRACK_THREAD,
			  args, 2);
}

static void emit_nvtx(const char *text)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("stays_domain");
	nvtxEventAttributes_t event;

	memset(&event, 0, sizeof(event));
	event.version = NVTX_VERSION;
	event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	event.messageType = NVTX_MESSAGE_TYPE_ASCII;
	event.message.ascii = "stays_range";
	nvtxDomainNameCategoryA(domain, 7, text);
	event.category = 7;
	for (int i = 0; i < 3; i++) {
		nvtxDomainRangePushEx(domain, &event);
		nvtxDomainRangePop(domain);
	}
}

int main(int argc, char **argv)
{
	int64_t number;

	if (argc < 3)
		return 2;
	number = strtoll(argv[2], NULL, 10);
	pthread_setname_np(pthread_self(), "stays_thread");
	emit_sites(argv[1], number);
	emit_dynamic(argv[1], number);
	emit_nvtx(argv[1]);
	if (argc < 5)
		return 0;
	make_file(argv[3]);
	await_file(argv[4]);
	emit_sites(argv[1], number);
	emit_dynamic(argv[1], number);
	return 0;
}
