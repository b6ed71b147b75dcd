/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits one of everything: kinds, types, lengths, tracks, manual tracers, steps. The calling script
 * knows what to expect. `agent_values CASE`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/emit.h>

/* Strings of any length, and none. */
static void emit_string(size_t bytes)
{
	char *text = malloc(bytes + 1);

	if (!text)
		exit(2);
	memset(text, 'x', bytes);
	text[bytes] = 0;
	TS_INSTANT("string", "c", TS_INT("bytes", (int64_t)bytes), TS_STRING("text", text));
	free(text);
}

static void emit_strings(void)
{
	static const size_t lengths[] = { 0, 1, 3, 4, 5, 8191, 8192, 8193, 100000 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		emit_string(lengths[i]);
	TS_INSTANT("null", "c", TS_STRING("text", NULL));
	TS_INSTANT("bytes", "c", TS_STRING("text", "\xff\xfe\x80 \xc3("));
	TS_INSTANT("many", "c", TS_STRING("a", "1"), TS_INT("b", 2), TS_STRING("c", "three"),
		   TS_DOUBLE("d", 4.5), TS_BOOL("e", 5), TS_STRING("f", ""), TS_INT("g", -7),
		   TS_STRING("h", "8"));
}

static void emit_kinds(void)
{
	uint64_t start = ts_now();

	errno = 77;
	TS_SPAN_NS("span_ns", "k", 1500);
	TS_SPAN_MS("span_ms", "k", 1.5, TS_INT("a", 1));
	TS_SPAN_SINCE("span_since", "k", start, TS_STRING("s", "text"));
	TS_SPAN_AT("span_at", "k", 1000, 2000);
	TS_BEGIN("begin", "k", TS_BOOL("on", 1));
	TS_END();
	TS_COUNTER("counter", "k", TS_INT("used", INT64_MIN), TS_DOUBLE("load", 0.25));
	TS_INSTANT_ON(-3, "instant_on", "k");
	TS_SPAN_NS_ON(4, "span_ns_on", "k", 10, TS_STRING("s", "on a track"));
	TS_SPAN_MS_ON(5, "span_ms_on", "k", -1);
	ts_thread_name("worker \xc3\xa9");
	ts_thread_name(NULL);
	ts_step(41);
	if (errno != 77)
		exit(3);
}

static void emit_dynamic(struct ts_tracer *tracer)
{
	static char keys[40][8];
	struct ts_emit_arg args[40];

	for (int i = 0; i < 40; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key%d", i);
		args[i] = (struct ts_emit_arg){ keys[i], TS_EMIT_INT, { .integer = i } };
	}
	args[1] = (struct ts_emit_arg){ "real", TS_EMIT_DOUBLE, { .real = 2.5 } };
	args[2] = (struct ts_emit_arg){ "text", TS_EMIT_STRING, { .string = "value" } };
	args[3] = (struct ts_emit_arg){ "yes", TS_EMIT_BOOL, { .integer = 3 } };
	args[4] = (struct ts_emit_arg){ NULL, TS_EMIT_STRING, { .string = NULL } };
	errno = 77;
	ts_tracer_instant(tracer, "all", "d", TS_TRACK_THREAD, args, 32);
	ts_tracer_instant(tracer, "too_many", "d", 7, args, 40);
	ts_tracer_span(tracer, "now", NULL, TS_TIME_NOW, 5, TS_TRACK_THREAD, NULL, 0);
	ts_tracer_span(tracer, NULL, "d", 100, -5, 9, args, 1);
	ts_tracer_begin(tracer, "begin", "d", TS_TRACK_THREAD, args, 2);
	ts_tracer_end(tracer, TS_TRACK_THREAD);
	ts_tracer_counter(tracer, "counter", "d", args, 1);
	ts_tracer_step(tracer, 1);
	if (errno != 77)
		exit(3);
}

/*
 * A sampler's records about other subjects. Members that a kind does not use hold values that must
 * not be stored.
 */
static void emit_about(struct ts_tracer *tracer)
{
	static char model[10000];
	struct ts_metrics_device device = { .number = 0x12345,
					    .vendor = "Maker",
					    .model = "Fast",
					    .uuid = "GPU-1",
					    .bus = "0000:01:00.0",
					    .memory_bytes = INT64_C(1) << 40 };
	struct ts_emit_arg args[2] = { { "used", TS_EMIT_INT, { .integer = 5 } },
				       { "load", TS_EMIT_DOUBLE, { .real = 0.5 } } };

	errno = 77;
	ts_tracer_device(tracer, &device);
	for (int kind = TS_METRICS_SYSTEM; kind <= TS_METRICS_PROCESS_ON_DEVICE; kind++) {
		struct ts_metrics_subject subject = { .kind = (enum ts_metrics_kind)kind,
						      .device = 0x12345,
						      .pid = 1234567,
						      .start_time = UINT64_C(1) << 50 };

		ts_tracer_counter_of(tracer, &subject, "about", "m", args, 2);
	}
	memset(model, 'm', sizeof(model) - 1);
	device = (struct ts_metrics_device){ .number = 7,
					     .model = model,
					     .memory_bytes = TS_METRICS_UNKNOWN };
	ts_tracer_device(tracer, &device);
	if (errno != 77)
		exit(3);
}

static void emit_steps(long count)
{
	for (int64_t step = 0; step < count; step++) {
		ts_step(step);
		TS_INSTANT("e", "c", TS_INT("n", step));
	}
}

/* Several tracers at once; some never emit, some are closed twice or used afterwards. */
static void emit_by_hand(void)
{
	struct ts_tracer *first = ts_tracer_enabled("first.sbt");
	struct ts_tracer *second = ts_tracer_enabled("second.sbt");
	struct ts_tracer *unused = ts_tracer_enabled("unused.sbt");
	struct ts_tracer *off = ts_tracer_disabled();

	if (!ts_tracer_is_enabled(first) || ts_tracer_is_enabled(off) || ts_tracer_is_enabled(NULL))
		exit(4);
	emit_dynamic(first);
	emit_dynamic(off);
	emit_dynamic(NULL);
	for (int64_t i = 0; i < 3; i++) {
		struct ts_emit_arg arg = { "n", TS_EMIT_INT, { .integer = i } };

		ts_tracer_instant(second, "e", "c", TS_TRACK_THREAD, &arg, 1);
		TS_INSTANT("e", "c", TS_INT("n", i));
	}
	ts_tracer_close(second);
	ts_tracer_close(second);
	ts_tracer_instant(second, "late", "c", TS_TRACK_THREAD, NULL, 0);
	ts_tracer_close(unused);
	ts_tracer_close(NULL);
	ts_tracer_close(ts_tracer_process());
	if (ts_tracer_enabled(NULL) != off || ts_tracer_enabled("") != off)
		exit(4);
}

static void emit_plain(long count)
{
	for (int64_t i = 0; i < count; i++)
		TS_INSTANT("e", "c", TS_INT("n", i));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long count = argc > 2 ? strtol(argv[2], NULL, 10) : 10;

	if (!strcmp(what, "strings"))
		emit_strings();
	else if (!strcmp(what, "kinds"))
		emit_kinds();
	else if (!strcmp(what, "dynamic"))
		emit_dynamic(ts_tracer_process());
	else if (!strcmp(what, "about"))
		emit_about(ts_tracer_process());
	else if (!strcmp(what, "about_by_hand"))
		emit_about(ts_tracer_enabled("first.sbt"));
	else if (!strcmp(what, "about_off"))
		emit_about(ts_tracer_disabled());
	else if (!strcmp(what, "steps"))
		emit_steps(count);
	else if (!strcmp(what, "tracers"))
		emit_by_hand();
	else if (!strcmp(what, "plain"))
		emit_plain(count);
	else
		return 2;
	printf("%ld\n", (long)getpid());
	return 0;
}
