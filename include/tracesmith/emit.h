/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits events from your own program, in C or C++. Link with -ltracesmith-agent, which depends only
 * on libc.
 *
 *	#include <tracesmith/emit.h>
 *
 *	TS_INSTANT("request", "server", TS_INT("tokens", n), TS_STRING("user", name));
 *	TS_SPAN_MS("attention", "layer", elapsed_ms, TS_INT("layer", 3));
 *	TS_BEGIN("decode", "engine"); ...; TS_END();
 *
 * Recording is off by default. To turn it on, without a change to the program:
 *
 *	tracesmith record -o t.sbt -- ./program        a recorder starts the program
 *	TRACESMITH_OUT=t.sbt ./program                 the program starts a recorder (t.json: Chrome
 *	                                               JSON; FERRUM_TRACE_OUT is an alias)
 *	TRACESMITH_LIVE=1 ./program                    the newest events stay in shared memory, for
 *	                                               `tracesmith record -p` or `recover`
 *
 * Or by the program itself: ts_start(), ts_stop().
 *
 * While recording is off, a call site costs a load and a branch. While it is on, an event takes a
 * few nanoseconds to store in shared memory, without a lock or a system call. Events survive
 * kill -9 of the program.
 *
 * The macros take names, categories and keys as string literals and register them once per call
 * site. The functions at the end take names built at run time and create separate tracers.
 * Unless noted otherwise, everything may be called from any thread, from signal handlers, and
 * before main().
 */
#ifndef TRACESMITH_EMIT_H
#define TRACESMITH_EMIT_H

/* The macros use `, ##__VA_ARGS__`, which every compiler accepts but -pedantic warns about. */
#ifdef __GNUC__
#pragma GCC system_header
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tracesmith/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_EMIT_API __attribute__((visibility("default")))

/* Called directly, without the PLT, if the compiler supports it. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define TS_EMIT_HOT __attribute__((visibility("default"), noplt))
#endif
#endif
#ifndef TS_EMIT_HOT
#define TS_EMIT_HOT TS_EMIT_API
#endif

/* ---- state ---- */

/* Private: read it through ts_enabled(). Never NULL. */
extern TS_EMIT_API const uint32_t *ts_emit_switch;

/* True while events are stored. The macros check it; call it only to avoid work of your own. */
static inline bool ts_enabled(void)
{
	return __builtin_expect(__atomic_load_n(ts_emit_switch, __ATOMIC_RELAXED) & 1u, 0);
}

/* ---- time ---- */

/*
 * The current time, in units that only TS_SPAN_SINCE understands: the CPU's counter where usable.
 */
TS_EMIT_API uint64_t ts_now(void);

/* ---- arguments: TS_INT("layer", 3), up to 8 an event ---- */

#define TS_INT(key, value) (1, key, ts_emit_int(value))
#define TS_DOUBLE(key, value) (2, key, ts_emit_double(value))
#define TS_STRING(key, value)                                              \
	(3, key, ts_emit_string(value)) /* copied; up to 8 KiB; NULL is "" \
					 */
#define TS_BOOL(key, value) (4, key, (uint64_t) !!(value))

/* ---- events ---- */

/* An instant. */
#define TS_INSTANT(name, category, ...) TS_EMIT_(4, 0, name, category, ##__VA_ARGS__)

/* A span that ends now and has this duration. */
#define TS_SPAN_NS(name, category, duration_ns, ...) \
	TS_EMIT_LEADING_(1, 0, name, category, ts_emit_int(duration_ns), ##__VA_ARGS__)
#define TS_SPAN_MS(name, category, duration_ms, ...) \
	TS_EMIT_LEADING_(1, 0, name, category, ts_emit_ms(duration_ms), ##__VA_ARGS__)

/* A span from an earlier ts_now() until now. */
#define TS_SPAN_SINCE(name, category, start, ...) \
	TS_EMIT_LEADING_(1, 1, name, category, ts_now() - (start), ##__VA_ARGS__)

/* A span with an explicit start in CLOCK_MONOTONIC ns (C++ steady_clock, Rust Instant). */
#define TS_SPAN_AT(name, category, start_ns, duration_ns, ...)                                   \
	TS_EMIT_LEADING2_(1, 2, name, category, ts_emit_int(duration_ns), ts_emit_int(start_ns), \
			  ##__VA_ARGS__)

/* A span that is open until the matching TS_END() of the same thread; spans nest. */
#define TS_BEGIN(name, category, ...) TS_EMIT_(2, 0, name, category, ##__VA_ARGS__)
#define TS_END() TS_EMIT_(3, 0, "", "")

/*
 * New values of counters that are drawn together: TS_COUNTER("memory", "gpu", TS_INT("used_MB",
 * n)).
 */
#define TS_COUNTER(name, category, ...) TS_EMIT_(5, 0, name, category, ##__VA_ARGS__)

/*
 * The same on an explicit track (a layer, a sub-operation; 0: the engine itself) instead of the
 * thread.
 */
#define TS_INSTANT_ON(track, name, category, ...) \
	TS_EMIT_LEADING_(4, 4, name, category, ts_emit_int(track), ##__VA_ARGS__)
#define TS_SPAN_NS_ON(track, name, category, duration_ns, ...)                                \
	TS_EMIT_LEADING2_(1, 4, name, category, ts_emit_int(duration_ns), ts_emit_int(track), \
			  ##__VA_ARGS__)
#define TS_SPAN_MS_ON(track, name, category, duration_ms, ...)                               \
	TS_EMIT_LEADING2_(1, 4, name, category, ts_emit_ms(duration_ms), ts_emit_int(track), \
			  ##__VA_ARGS__)

/* A step (of training, of decoding) begins: windows by step open and close here. Cheap when off. */
#define TS_STEP(number) ts_step(number)
TS_EMIT_API void ts_step(int64_t number);

/*
 * Names the calling thread in traces; pthread_setname_np() works too, before the thread's first
 * event.
 */
TS_EMIT_API void ts_thread_name(const char *name);

/*
 * Waits until all events so far are in the file: 0; -1 if there is no recorder, or it took more
 * than five seconds. Emitting continues meanwhile. Not from a signal handler. Called automatically
 * at exit.
 */
TS_EMIT_API int ts_flush(void);

/* ---- starting at run time ---- */

#define TS_START_REDACT 1u /* strings in arguments are not stored */

struct ts_start_options {
	size_t size;          /* of this struct, as the caller was compiled */
	const char *output;   /* the file to write, with %r, %h, %p, %q{}; NULL: flight mode */
	uint64_t budget;      /* bytes of shared memory; 0: the default */
	uint32_t flags;       /* TS_START_* */
	uint32_t reserved;    /* 0 */
	const char *backends; /* names to start, separated by commas; NULL: none */
	char *ret_why;        /* set to the reason of -EINVAL, or ""; may be NULL */
	size_t why_bytes;
};

/*
 * Starts the process-wide tracer at run time, as TRACESMITH_OUT or TRACESMITH_LIVE do at startup.
 * With an output, a recorder process writes the file, for this process and the children that it
 * forks from now on. Without one, shared memory keeps the newest events, at least 10,000 per
 * thread, for `record -p`, `view -p` or `recover`; a later ts_start() with an output writes a file
 * that begins with them. May be called again after ts_stop(). Returns 0, or a negative errno:
 * -EBUSY: the process is already being recorded; -EINVAL: the output cannot be used as a name;
 * -ENOENT: the tool `tracesmith` was not found; -ETXTBSY: another recording is writing that file;
 * -EPERM: a setuid program; others: no shared memory. Do not call it from signal handlers.
 */
TS_EMIT_API int ts_start(const struct ts_start_options *options);

/*
 * Stops the tracer that ts_start() started, also in children. With an output, it returns when the
 * file is complete, including events of children. ret_notice (may be NULL) is set to a message of
 * the recorder to its user, such as that it wrote to another file, or "". Returns 0, or a negative
 * errno: -ESRCH: ts_start() has not been called; -EPIPE: the recorder exited early, and `recover`
 * gets the events; -ETIMEDOUT: it is still writing. Do not call it from signal handlers.
 */
TS_EMIT_API int ts_stop(char *ret_notice, size_t bytes);

/*
 * The path of the output of ts_start(): absolute, with patterns expanded, and with the extension
 * .sbt if it had none. Returns 0, -ESRCH or -ENOSPC.
 */
TS_EMIT_API int ts_start_output(char *ret_path, size_t bytes);

/*
 * The value of TRACESMITH_AGENT. Programs that are executed with it and use the agent belong to
 * this recording. Returns 0, -ESRCH if there is no recording, or -ENOSPC.
 */
TS_EMIT_API int ts_start_environment(char *ret_text, size_t bytes);

/* A span until the end of the block. */
#ifdef __cplusplus
#define TS_SCOPE(name, category, ...)                      \
	TS_BEGIN(name, category, ##__VA_ARGS__);           \
	struct TS_EMIT_JOIN_(ts_scope_type_, __LINE__) {   \
		~TS_EMIT_JOIN_(ts_scope_type_, __LINE__)() \
		{                                          \
			TS_END();                          \
		}                                          \
	} TS_EMIT_JOIN_(ts_scope_, __LINE__)
#else
#define TS_SCOPE(name, category, ...)                                                     \
	TS_BEGIN(name, category, ##__VA_ARGS__);                                          \
	__attribute__((cleanup(ts_emit_scope_end), unused)) char TS_EMIT_JOIN_(ts_scope_, \
									       __LINE__) = 0
#endif

/* ---- functions: names built at run time, separate tracers ---- */

struct ts_tracer;

enum ts_emit_type {
	TS_EMIT_INT = 1,
	TS_EMIT_DOUBLE = 2,
	TS_EMIT_STRING = 3,
	TS_EMIT_BOOL = 4,
};

struct ts_emit_arg {
	const char *key;
	enum ts_emit_type type;
	union {
		int64_t integer; /* and booleans */
		double real;
		const char *string;
	} value;
};

#define TS_TRACK_THREAD INT64_MIN /* the calling thread's own track */
#define TS_TIME_NOW INT64_MIN     /* a span that ends now */
/*
 * The first of 65,536 tracks that are shown as "async 0" and so on. They are for coroutines, which
 * take turns on a thread, so that their spans do not nest.
 */
#define TS_TRACK_ASYNC (INT64_C(1) << 41)

/*
 * A tracer with its own output, besides the process-wide one: starts a recorder for it. NULL or ""
 * gives a disabled one. Never returns NULL. ts_tracer_process() is the process-wide one; do not
 * close it.
 */
TS_EMIT_API struct ts_tracer *ts_tracer_enabled(const char *path);
TS_EMIT_API struct ts_tracer *ts_tracer_disabled(void);
TS_EMIT_API struct ts_tracer *ts_tracer_process(void);
TS_EMIT_API bool ts_tracer_is_enabled(struct ts_tracer *tracer);
/* Like ts_flush(). */
TS_EMIT_API int ts_tracer_flush(struct ts_tracer *tracer);
/* Flushes, ends its recording, and frees it. No thread may use it any more. Accepts NULL. */
TS_EMIT_API void ts_tracer_close(struct ts_tracer *tracer);

/*
 * All texts are copied; NULL is "". At most 32 arguments. `start_ns`: CLOCK_MONOTONIC, or
 * TS_TIME_NOW.
 */
TS_EMIT_API void ts_tracer_span(struct ts_tracer *tracer, const char *name, const char *category,
				int64_t start_ns, int64_t duration_ns, int64_t track,
				const struct ts_emit_arg *args, unsigned int arg_count);
TS_EMIT_API void ts_tracer_begin(struct ts_tracer *tracer, const char *name, const char *category,
				 int64_t track, const struct ts_emit_arg *args,
				 unsigned int arg_count);
TS_EMIT_API void ts_tracer_end(struct ts_tracer *tracer, int64_t track);
TS_EMIT_API void ts_tracer_instant(struct ts_tracer *tracer, const char *name, const char *category,
				   int64_t track, const struct ts_emit_arg *args,
				   unsigned int arg_count);
TS_EMIT_API void ts_tracer_counter(struct ts_tracer *tracer, const char *name, const char *category,
				   const struct ts_emit_arg *args, unsigned int arg_count);
TS_EMIT_API void ts_tracer_step(struct ts_tracer *tracer, int64_t number);

/*
 * Values of another subject: the machine, a process, a device, a process on a device. They belong
 * to that subject, not to the calling thread. Describe a device before its first values.
 */
TS_EMIT_API void ts_tracer_device(struct ts_tracer *tracer, const struct ts_metrics_device *device);
TS_EMIT_API void ts_tracer_counter_of(struct ts_tracer *tracer,
				      const struct ts_metrics_subject *subject, const char *name,
				      const char *category, const struct ts_emit_arg *args,
				      unsigned int arg_count);

/* ---- implementation of the macros; do not use directly ---- */

struct ts_emit_field {
	const char *key;
	uint32_t type;
};

/* A call site. The library fills `header`; everything else is constant. */
struct ts_emit_site {
	uint64_t header; /* first word of its records once registered, else 0 */
	const char *name;
	const char *category;
	const struct ts_emit_field *fields;
	uint32_t line;
	uint8_t kind;
	uint8_t flags;
	uint8_t leading_words; /* words before the arguments */
	uint8_t field_count;
	uint8_t strings; /* of the arguments */
};

/* One word per value; strings are passed by address. */
TS_EMIT_HOT void ts_emit_0(struct ts_emit_site *site);
TS_EMIT_HOT void ts_emit_1(struct ts_emit_site *site, uint64_t word);
TS_EMIT_HOT void ts_emit_2(struct ts_emit_site *site, uint64_t first, uint64_t second);
TS_EMIT_HOT void ts_emit_words(struct ts_emit_site *site, const uint64_t *words);

static inline uint64_t ts_emit_int(int64_t value)
{
	return (uint64_t)value;
}

static inline uint64_t ts_emit_double(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

static inline uint64_t ts_emit_string(const char *value)
{
	return (uint64_t)(uintptr_t)value;
}

static inline uint64_t ts_emit_ms(double milliseconds)
{
	return milliseconds > 0 && milliseconds < 9e12 ? (uint64_t)(milliseconds * 1e6) : 0;
}

#define TS_EMIT_JOIN2_(a, b) a##b
#define TS_EMIT_JOIN_(a, b) TS_EMIT_JOIN2_(a, b)

/* `zero` precedes the dots, since strict compilers drop a comma only after a named parameter. */
#define TS_EMIT_COUNT_(zero, ...) TS_EMIT_COUNT2_(zero, ##__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define TS_EMIT_COUNT2_(x, a, b, c, d, e, f, g, h, n, ...) n

#define TS_EMIT_MAP_0_(m)
#define TS_EMIT_MAP_1_(m, a) m a
#define TS_EMIT_MAP_2_(m, a, ...) m a TS_EMIT_MAP_1_(m, __VA_ARGS__)
#define TS_EMIT_MAP_3_(m, a, ...) m a TS_EMIT_MAP_2_(m, __VA_ARGS__)
#define TS_EMIT_MAP_4_(m, a, ...) m a TS_EMIT_MAP_3_(m, __VA_ARGS__)
#define TS_EMIT_MAP_5_(m, a, ...) m a TS_EMIT_MAP_4_(m, __VA_ARGS__)
#define TS_EMIT_MAP_6_(m, a, ...) m a TS_EMIT_MAP_5_(m, __VA_ARGS__)
#define TS_EMIT_MAP_7_(m, a, ...) m a TS_EMIT_MAP_6_(m, __VA_ARGS__)
#define TS_EMIT_MAP_8_(m, a, ...) m a TS_EMIT_MAP_7_(m, __VA_ARGS__)
#define TS_EMIT_MAP_(m, ...)                                                            \
	TS_EMIT_JOIN_(TS_EMIT_JOIN_(TS_EMIT_MAP_, TS_EMIT_COUNT_(0, ##__VA_ARGS__)), _) \
	(m, ##__VA_ARGS__)

#define TS_EMIT_FIELD_(type, key, word) { key, type },
#define TS_EMIT_VALUE_(type, key, word) word,
#define TS_EMIT_IS_STRING_(type, key, word) +((type) == 3)

/* leading: words before the arguments, as lists without parentheses; leading_count of them. */
#define TS_EMIT_SITE_(kind, flags, name, category, leading_count, ...)                            \
	static const struct ts_emit_field ts_fields_[] = { TS_EMIT_MAP_(TS_EMIT_FIELD_,           \
									##__VA_ARGS__){ 0, 0 } }; \
	static struct ts_emit_site ts_site_ = { 0,                                                \
						name,                                             \
						category,                                         \
						ts_fields_,                                       \
						__LINE__,                                         \
						kind,                                             \
						flags,                                            \
						leading_count,                                    \
						TS_EMIT_COUNT_(0, ##__VA_ARGS__),                 \
						(0 TS_EMIT_MAP_(TS_EMIT_IS_STRING_,               \
								##__VA_ARGS__)) }

/* Decided at compile time: only one call remains. */
#define TS_EMIT_SEND_(site, words, count, strings)                 \
	do {                                                       \
		if ((strings) || (count) > 2)                      \
			ts_emit_words((site), (words));            \
		else if ((count) == 2)                             \
			ts_emit_2((site), (words)[0], (words)[1]); \
		else if ((count) == 1)                             \
			ts_emit_1((site), (words)[0]);             \
		else                                               \
			ts_emit_0(site);                           \
	} while (0)

#define TS_EMIT_STRINGS_(zero, ...) (zero TS_EMIT_MAP_(TS_EMIT_IS_STRING_, ##__VA_ARGS__))

#define TS_EMIT_(kind, flags, name, category, ...)                                            \
	do {                                                                                  \
		if (ts_enabled()) {                                                           \
			TS_EMIT_SITE_(kind, flags, name, category, 0, ##__VA_ARGS__);         \
			const uint64_t ts_words_[] = {                                        \
				TS_EMIT_MAP_(TS_EMIT_VALUE_, ##__VA_ARGS__) 0, 0              \
			};                                                                    \
			TS_EMIT_SEND_(&ts_site_, ts_words_, TS_EMIT_COUNT_(0, ##__VA_ARGS__), \
				      TS_EMIT_STRINGS_(0, ##__VA_ARGS__));                    \
		}                                                                             \
	} while (0)

#define TS_EMIT_LEADING_(kind, flags, name, category, leading, ...)                               \
	do {                                                                                      \
		if (ts_enabled()) {                                                               \
			TS_EMIT_SITE_(kind, flags, name, category, 1, ##__VA_ARGS__);             \
			const uint64_t ts_words_[] = {                                            \
				leading, TS_EMIT_MAP_(TS_EMIT_VALUE_, ##__VA_ARGS__) 0, 0         \
			};                                                                        \
			TS_EMIT_SEND_(&ts_site_, ts_words_, 1 + TS_EMIT_COUNT_(0, ##__VA_ARGS__), \
				      TS_EMIT_STRINGS_(0, ##__VA_ARGS__));                        \
		}                                                                                 \
	} while (0)

#define TS_EMIT_LEADING2_(kind, flags, name, category, leading, other, ...)                       \
	do {                                                                                      \
		if (ts_enabled()) {                                                               \
			TS_EMIT_SITE_(kind, flags, name, category, 2, ##__VA_ARGS__);             \
			const uint64_t ts_words_[] = {                                            \
				leading, other, TS_EMIT_MAP_(TS_EMIT_VALUE_, ##__VA_ARGS__) 0, 0  \
			};                                                                        \
			TS_EMIT_SEND_(&ts_site_, ts_words_, 2 + TS_EMIT_COUNT_(0, ##__VA_ARGS__), \
				      TS_EMIT_STRINGS_(0, ##__VA_ARGS__));                        \
		}                                                                                 \
	} while (0)

static inline void ts_emit_scope_end(const char *unused)
{
	(void)unused;
	TS_END();
}

#ifdef __cplusplus
}
#endif

#endif
