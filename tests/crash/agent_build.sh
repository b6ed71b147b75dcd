#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs built in many ways: strict C, C++, templates, libraries that are loaded and unloaded,
# allocators that emit.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

cc=$(command -v cc || command -v gcc) || { echo "skip: no C compiler"; exit 77; }
is_sanitized && { echo "skip: allocators and late libraries do not go with sanitizers"; exit 77; }
link=("-I$TS_SOURCE/include" "-L$TS_BUILD" "-Wl,-rpath,$TS_BUILD" -pthread)
mode=flight
export TRACESMITH_LIVE=1

run() { # expected sum of events, program
	rm -rf "$TRACESMITH_LIVE_DIR"
	timeout 300 "$2" >said || fail "$2: exit code $?: $(cat said)"
	holds "total == $1"
}

cat >events.c <<'END'
#include <tracesmith/emit.h>
int main(void)
{
	uint64_t start = ts_now();
	int i;

	for (i = 0; i < 2; i++)
		TS_INSTANT("plain", "c");
	if (i)
		TS_BEGIN("b", "c", TS_INT("i", i), TS_DOUBLE("d", 0.5), TS_STRING("s", "text"), TS_BOOL("t", i == 2));
	else
		TS_END();
	TS_END();
	TS_COUNTER("n", "c", TS_INT("a", 1), TS_INT("b", 2), TS_INT("c", 3), TS_INT("d", 4), TS_INT("e", 5), TS_INT("f", 6),
		   TS_INT("g", 7), TS_INT("h", 8));
	TS_SPAN_SINCE("since", "c", start);
	TS_SPAN_NS_ON(3, "on", "c", 10, TS_INT("x", (1, 2)));
	{
		TS_SCOPE("scope", "c", TS_INT("depth", 1));
		TS_SCOPE("inner", "c");
	}
	TS_STEP(1);
	return 0;
}
END
for compiler in "$cc" gcc clang; do
	command -v "$compiler" >/dev/null || continue
	for standard in c99 gnu99 c11 gnu11 c17; do
		"$compiler" -std=$standard -pedantic-errors -Wall -Wextra -Werror -Wno-unused-value events.c "${link[@]}" \
			-ltracesmith-agent -o events || fail "$compiler -std=$standard"
	done
	run 12 ./events
	holds '[event.name for event in one.events if event.kind == "begin"] == ["b", "scope", "inner"] and one.events[2].args == {"i": 2, "d": 0.5, "s": "text", "t": True}'
done

cat >events.cc <<'END'
#include <tracesmith/emit.h>
#include <string>
#include <thread>
template <typename T> T twice(T value)
{
	TS_SCOPE("twice", "template", TS_DOUBLE("value", static_cast<double>(value)));
	return value + value;
}
struct Noisy {
	const char *name;
	~Noisy() { TS_INSTANT("destroyed", "c", TS_STRING("name", name)); }
};
static Noisy global{ "global" };
thread_local Noisy local{ "local" };
inline void shared() { TS_INSTANT("inline", "c"); }
int main()
{
	std::string text(10, 'x');

	twice(1);
	twice(2.5);
	[&] { TS_INSTANT("lambda", "c", TS_STRING("text", text.c_str()), TS_BOOL("yes", true)); }();
	shared();
	try {
		TS_SCOPE("thrown", "c");
		throw 1;
	} catch (int) {
	}
	std::thread([] { (void)local.name; shared(); }).join();
	struct ts_emit_arg arg = { "n", TS_EMIT_INT, { 4 } };
	ts_tracer_instant(ts_tracer_process(), text.c_str(), nullptr, TS_TRACK_THREAD, &arg, 1);
	return 0;
}
END
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	for standard in c++11 c++17 gnu++20; do
		$compiler -std=$standard -pedantic-errors -Wall -Wextra -Werror events.cc "${link[@]}" -ltracesmith-agent -o events ||
			fail "$compiler -std=$standard"
		run 12 ./events
		holds 'sorted(event.args["name"] for event in one.events if event.name == "destroyed") == ["global", "local"]'
	done
done

# A library with call sites that is unloaded and loaded again; it loads the agent, late, which
# stays.
cat >plugin.c <<'END'
#include <tracesmith/emit.h>
void work(int n) { TS_INSTANT("plugin", "c", TS_INT("n", n)); TS_INSTANT("text", "c", TS_STRING("s", "abc")); }
END
cat >loader.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 50; i++) {
		void *library = dlopen("./plugin.so", RTLD_NOW);
		void (*work)(int) = library ? (void (*)(int))dlsym(library, "work") : NULL;
		pid_t pid;
		int status;

		if (!work)
			return 2;
		work(i);
		if (i % 10 == 0) {
			pid = fork();
			if (pid == 0) {
				work(i);
				dlclose(library);
				_exit(0);
			}
			if (waitpid(pid, &status, 0) != pid || status)
				return 3;
		}
		if (dlclose(library) || dlopen("./plugin.so", RTLD_NOW | RTLD_NOLOAD))
			return 4;
		/* The call sites are gone: nothing may look at them. */
		pid = i % 10 == 5 ? fork() : -1;
		if (pid == 0)
			_exit(0);
		if (pid > 0 && (waitpid(pid, &status, 0) != pid || status))
			return 3;
	}
	return 0;
}
END
"$cc" -fPIC -shared plugin.c "${link[@]}" -ltracesmith-agent -o plugin.so
"$cc" loader.c -ldl -o loader
run 110 ./loader

# A library whose constructor starts a thread that emits before the agent's constructor has run.
cat >early.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <tracesmith/emit.h>
#pragma weak ts_tracer_process
#pragma weak ts_tracer_instant
static void *emit(void *unused)
{
	ts_tracer_instant(ts_tracer_process(), "early", "c", TS_TRACK_THREAD, 0, 0);
	return unused;
}
__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, 0, emit, 0))
		pthread_join(thread, 0);
}
END
printf '#include <tracesmith/emit.h>\nint main(void) { TS_INSTANT("late", "c"); return 0; }\n' >late.c
"$cc" -fPIC -shared early.c "${link[@]}" -o early.so
"$cc" late.c "${link[@]}" -Wl,--no-as-needed ./early.so -ltracesmith-agent -o late
run 2 ./late

# An allocator that emits, also while the agent starts; and a first event in a handler that
# interrupted it.
cat >allocator.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <tracesmith/emit.h>
void *__libc_malloc(size_t bytes);
void __libc_free(void *memory);
static __thread int inside;
static volatile unsigned long count;
void *malloc(size_t bytes)
{
	void *memory = __libc_malloc(bytes);

	if (!inside++) {
		__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
		TS_INSTANT("malloc", "c", TS_INT("bytes", (int64_t)bytes));
	}
	inside--;
	return memory;
}
static void on_timer(int number)
{
	(void)number;
	__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	TS_INSTANT("timer", "c");
}
int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };

	inside = argc > 1; /* then the handler is the first to emit */
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (int i = 0; i < 300000; i++) {
		void *volatile memory = malloc((size_t)i % 5000);

		free(memory);
	}
	setitimer(ITIMER_PROF, &never, NULL);
	inside = 1;
	printf("%d %lu\n", (int)getpid(), count);
	return argc < 1 || !argv;
}
END
"$cc" -O2 allocator.c "${link[@]}" -ltracesmith-agent -o allocator
for argument in "" handler; do
	for budget in 100000 4000000; do
		rm -rf "$TRACESMITH_LIVE_DIR"
		# shellcheck disable=SC2086 # none, or one
		TRACESMITH_BUDGET=$budget timeout 300 ./allocator $argument >counts || fail "allocator $argument: exit code $?"
		read_areas "$TRACESMITH_LIVE_DIR" --counts counts
	done
done

# A static program has no loader, and so no agent.
printf '#include <stdio.h>\nint main(void) { puts("static"); return 0; }\n' >static.c
if "$cc" -static static.c -o static 2>/dev/null; then
	rm -rf "$TRACESMITH_LIVE_DIR"
	[ "$(LD_PRELOAD=$agent TRACESMITH_AGENT=session=5 ./static)" = static ] || fail "a static program says something else"
	[ ! -e "$TRACESMITH_LIVE_DIR" ] || fail "a static program has an area"
fi
