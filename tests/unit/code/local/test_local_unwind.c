/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stacks of the calling thread, compared frame by frame with _Unwind_Backtrace(), and stacks
 * that cannot be followed to the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "code/local/local_unwind.h"
#include "unit/runner.h"

/* Variable-length arrays are what is tested. */
#pragma GCC diagnostic ignored "-Wvla"

#define MAX_FRAMES 512
#define STACKS 100000u

/* ---- comparing ---- */

struct taken {
	uint64_t pcs[MAX_FRAMES];
	size_t count;
};

/* The pc of an interrupted frame counts as one byte after its instruction, as in local_unwind.h. */
static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *to)
{
	struct taken *taken = to;
	int is_before = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &is_before);

	if (pc && taken->count < MAX_FRAMES)
		taken->pcs[taken->count++] = pc + (uint64_t)(is_before != 0);
	return _URC_NO_REASON;
}

static enum ts_local_unwind_end seen_end;
static size_t seen_count;
static uint64_t seen_last;
static unsigned int compared, differing, with_end[TS_LOCAL_UNWIND_TOO_DEEP + 1];

static void print_difference(const struct taken *theirs, const struct ts_local_unwind_stack *ours)
{
	printf("theirs %zu, ours %zu, end %d\n", theirs->count, ours->count, (int)ours->end);
	for (size_t i = 0; i < theirs->count || i < ours->count; i++)
		printf("%3zu %012llx %012llx\n", i,
		       i < theirs->count ? (unsigned long long)theirs->pcs[i] : 0,
		       i < ours->count ? (unsigned long long)ours->pcs[i] : 0);
}

static __thread struct ts_local_unwind_last last_taken;
static __thread bool is_taking; /* handlers that interrupt it remember nothing */

/* With and without the remembered stack: the result is the same. */
static void take_both(const struct ts_local_unwind_registers *captured,
		      struct ts_local_unwind_stack *ours)
{
	static __thread uint64_t frames_buffer[MAX_FRAMES];
	uint64_t stack_buffer[MAX_FRAMES];
	struct ts_local_unwind_stack plain = { .pcs = is_taking ? stack_buffer : frames_buffer,
					       .capacity = MAX_FRAMES };
	bool is_nested = is_taking;

	is_taking = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ours->last = is_nested ? NULL : &last_taken;
	ts_local_unwind_walk(captured, ours);
	ts_local_unwind_walk(captured, &plain);
	TS_CHECK_INT(ours->count, plain.count);
	TS_CHECK_INT(ours->end, plain.end);
	TS_CHECK(ours->hash == plain.hash);
	TS_CHECK(!memcmp(ours->pcs, plain.pcs, plain.count * sizeof(*plain.pcs)));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	is_taking = is_nested;
}

/* Their first frame is this function, which ours omits. */
__attribute__((noinline)) static enum ts_local_unwind_end compare_stacks(void)
{
	uint64_t pcs[MAX_FRAMES];
	struct ts_local_unwind_stack ours = { .pcs = pcs, .capacity = MAX_FRAMES };
	struct taken theirs = { .count = 0 };
	struct ts_local_unwind_registers captured;

	_Unwind_Backtrace(add_frame, &theirs);
	ts_local_unwind_capture(&captured);
	take_both(&captured, &ours);
	theirs.count--;
	memmove(theirs.pcs, theirs.pcs + 1, theirs.count * sizeof(*theirs.pcs));
	__atomic_fetch_add(&compared, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&with_end[ours.end], 1, __ATOMIC_RELAXED);
	if (theirs.count != ours.count ||
	    memcmp(theirs.pcs, ours.pcs, ours.count * sizeof(*ours.pcs)) != 0) {
		if (__atomic_fetch_add(&differing, 1, __ATOMIC_RELAXED) < 3)
			print_difference(&theirs, &ours);
	}
	return ours.end;
}

/* ---- functions of many shapes that call each other ---- */

struct path {
	uint64_t random;
	unsigned int left;   /* remaining calls */
	unsigned int wanted; /* stacks */
};

static volatile unsigned int sink;

static unsigned int draw(struct path *path, unsigned int below)
{
	path->random = path->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned int)(path->random >> 33) % below;
}

static void go_on(struct path *path);

__attribute__((noinline)) static void plain(struct path *path)
{
	go_on(path);
	sink++;
}

__attribute__((noinline)) static void with_buffer(struct path *path)
{
	char frames_buffer[1500];

	memset(frames_buffer, (int)path->left, sizeof(frames_buffer));
	go_on(path);
	sink += (unsigned char)frames_buffer[path->left % sizeof(frames_buffer)];
}

__attribute__((noinline)) static void with_variable_buffer(struct path *path)
{
	size_t bytes = 1 + draw(path, 300);
	char frames_buffer[bytes];

	memset(frames_buffer, 1, bytes);
	go_on(path);
	sink += (unsigned char)frames_buffer[bytes / 2];
}

__attribute__((noinline)) static void with_alloca(struct path *path)
{
	char *frames_buffer = __builtin_alloca(16 + draw(path, 200));

	frames_buffer[8] = 1;
	go_on(path);
	sink += (unsigned char)frames_buffer[8];
}

/* On x86_64 the frame is then found through memory. */
__attribute__((noinline)) static void realigned(struct path *path)
{
	_Alignas(64) char frames_buffer[128];

	memset(frames_buffer, 2, sizeof(frames_buffer));
	go_on(path);
	sink += (unsigned char)frames_buffer[path->left % sizeof(frames_buffer)];
}

__attribute__((noinline)) static void realigned_and_variable(struct path *path)
{
	_Alignas(128) char frames_buffer[128];
	size_t bytes = 1 + draw(path, 100);
	char more[bytes];

	memset(frames_buffer, 2, sizeof(frames_buffer));
	memset(more, 3, bytes);
	go_on(path);
	sink += (unsigned char)frames_buffer[path->left % sizeof(frames_buffer)] +
		(unsigned char)more[bytes / 2];
}

__attribute__((noinline)) static void many_registers(struct path *path)
{
	unsigned int a = draw(path, 9), b = draw(path, 9), c = draw(path, 9), d = draw(path, 9);
	unsigned int e = draw(path, 9), f = draw(path, 9), g = draw(path, 9), h = draw(path, 9);

	go_on(path);
	sink += a * b + c * d + e * f + g * h;
	go_on(path);
	sink += a + b + c + d + e + f + g + h;
}

__attribute__((noinline)) static unsigned int ten_arguments(struct path *path, int a, int b, int c,
							    int d, int e, int f, int g, int h,
							    int i)
{
	go_on(path);
	return (unsigned int)(a + b + c + d + e + f + g + h + i);
}

__attribute__((noinline)) static void with_arguments_on_the_stack(struct path *path)
{
	sink += ten_arguments(path, 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

static __thread struct path *sorted_path;
static __thread unsigned int sorted_calls;

static int compare_numbers(const void *a, const void *b)
{
	if (sorted_calls++ == 2)
		go_on(sorted_path);
	return *(const int *)a - *(const int *)b;
}

/* Through library code. */
__attribute__((noinline)) static void by_qsort(struct path *path)
{
	int numbers[] = { 5, 3, 9, 1, 7, 2 };

	sorted_path = path;
	sorted_calls = 0;
	qsort(numbers, 6, sizeof(numbers[0]), compare_numbers);
	sink += (unsigned int)numbers[0];
}

__attribute__((noinline, noreturn)) static void never_returns(struct path *path, jmp_buf *back)
{
	go_on(path);
	longjmp(*back, 1);
}

__attribute__((noinline)) static void by_noreturn(struct path *path)
{
	jmp_buf back;

	if (!setjmp(back))
		never_returns(path, &back);
	sink++;
}

static void (*const shapes[])(struct path *path) = {
	plain,
	with_buffer,
	with_variable_buffer,
	with_alloca,
	realigned,
	realigned_and_variable,
	many_registers,
	with_arguments_on_the_stack,
	by_qsort,
	by_noreturn,
};

static void go_on(struct path *path)
{
	unsigned int which;

	if (path->wanted && draw(path, 3) == 0) {
		path->wanted--;
		compare_stacks();
	}
	if (!path->wanted || !path->left)
		return;
	path->left--;
	which = draw(path, sizeof(shapes) / sizeof(shapes[0]));
	shapes[which](path);
}

static void compare_many(uint64_t seed, unsigned int stacks)
{
	struct path path = { .random = seed, .wanted = stacks };

	while (path.wanted) {
		path.left = draw(&path, 60);
		go_on(&path);
	}
}

static void reset(void)
{
	compared = differing = 0;
	memset(with_end, 0, sizeof(with_end));
}

/* 100,000 in total; in parts, since emulators are slow. */
static void compare_part(uint64_t seed)
{
	reset();
	compare_many(seed, STACKS / 5);
	TS_CHECK_INT(compared, STACKS / 5);
	TS_CHECK_INT(differing, 0);
	TS_CHECK_INT(with_end[TS_LOCAL_UNWIND_COMPLETE], STACKS / 5);
}

TS_TEST(equal_to_the_compilers_own_1)
{
	compare_part(1);
}

TS_TEST(equal_to_the_compilers_own_2)
{
	compare_part(2);
}

TS_TEST(equal_to_the_compilers_own_3)
{
	compare_part(3);
}

TS_TEST(equal_to_the_compilers_own_4)
{
	compare_part(4);
}

TS_TEST(equal_to_the_compilers_own_5)
{
	compare_part(5);
}

/* ---- stacks similar to the previous one ---- */

#define LEVELS 24u
#define LIKE_THE_LAST 10000u

/*
 * What each level calls: outer frames stay, or are replaced by others of equal size, so that stack
 * pointers are the same.
 */
static unsigned char chosen[LEVELS];

static void go_down(struct path *path, unsigned int level);

#define TWIN(name, number)                                                                \
	__attribute__((noinline)) static void name(struct path *path, unsigned int level) \
	{                                                                                 \
		go_down(path, level);                                                     \
		sink += (number);                                                         \
	}
TWIN(first_twin, 1)
TWIN(second_twin, 2)
TWIN(third_twin, 3)

__attribute__((noinline)) static void with_alloca_below(struct path *path, unsigned int level)
{
	char *frames_buffer = __builtin_alloca(16 + 16 * draw(path, 4));

	frames_buffer[8] = 1;
	go_down(path, level);
	sink += (unsigned char)frames_buffer[8];
}

/* Its frame is found through memory or the frame pointer. */
__attribute__((noinline)) static void realigned_below(struct path *path, unsigned int level)
{
	_Alignas(64) char frames_buffer[64];
	size_t bytes = 1 + 16 * draw(path, 3);
	char more[bytes];

	memset(frames_buffer, 2, sizeof(frames_buffer));
	memset(more, 3, bytes);
	go_down(path, level);
	sink += (unsigned char)frames_buffer[level % sizeof(frames_buffer)] +
		(unsigned char)more[bytes / 2];
}

__attribute__((noinline)) static void again_and_again(struct path *path, unsigned int turns)
{
	if (turns)
		again_and_again(path, turns - 1);
	else
		compare_stacks();
	sink++;
}

static void go_down(struct path *path, unsigned int level)
{
	static void (*const below[])(struct path * path,
				     unsigned int level) = { first_twin, second_twin, third_twin,
							     with_alloca_below, realigned_below };

	if (level == LEVELS) {
		again_and_again(path, draw(path, 16) ? 0 : draw(path, 300));
		compare_stacks();
		return;
	}
	below[chosen[level]](path, level + 1);
	if (draw(path, LEVELS) == 0)
		compare_stacks();
}

TS_TEST(like_the_last_but_for_some_frames)
{
	struct path path = { .random = 11 };

	reset();
	while (compared < LIKE_THE_LAST) {
		/* Mostly the twins, where only a return address differs. */
		chosen[draw(&path, LEVELS)] =
			(unsigned char)(draw(&path, 4) ? draw(&path, 3) : draw(&path, 5));
		go_down(&path, 0);
	}
	TS_CHECK_INT(differing, 0);
	TS_CHECK_INT(with_end[TS_LOCAL_UNWIND_COMPLETE], compared);
}

/* From one call site, so that stacks are equal. */
__attribute__((noinline)) static uint64_t take_outermost(struct ts_local_unwind_last *last,
							 size_t frames_buffer)
{
	static uint64_t pcs[MAX_FRAMES];
	struct ts_local_unwind_stack stack = { .pcs = pcs,
					       .capacity = frames_buffer,
					       .last = last };
	struct ts_local_unwind_registers captured;

	ts_local_unwind_capture(&captured);
	ts_local_unwind_walk(&captured, &stack);
	seen_count = stack.count;
	seen_end = stack.end;
	return pcs[stack.count - 1];
}

enum change { NOTHING, A_FRAME, A_WORD, THE_GENERATION, THE_STACK, THE_BUFFER, CHANGES };

/* Changes the remembered stack, which shows whether it was used. */
TS_TEST(what_is_remembered_is_used_while_it_is_true)
{
	static struct ts_local_unwind_last last;
	volatile unsigned int changes = CHANGES;
	uint64_t outermost = 0, found;
	size_t count = 0;

	for (unsigned int change = NOTHING; change < changes; change++) {
		uint64_t *remembered = &last.pcs[TS_LOCAL_UNWIND_LAST_FRAMES - 1];
		bool is_used = change == A_FRAME;

		if (change != NOTHING) {
			TS_CHECK_INT(*remembered, outermost);
			*remembered = 42;
		}
		last.word[TS_LOCAL_UNWIND_LAST_WORDS - 1].value += change == A_WORD;
		last.generation += change == THE_GENERATION;
		last.bounds.high += change == THE_STACK ? 16 : 0;
		found = take_outermost(&last, change == THE_BUFFER ? count - 1 : MAX_FRAMES);
		if (change == NOTHING) {
			outermost = found;
			count = seen_count;
			continue;
		}
		TS_CHECK_INT(seen_end, change == THE_BUFFER ? TS_LOCAL_UNWIND_TOO_DEEP
							    : TS_LOCAL_UNWIND_COMPLETE);
		if (change != THE_BUFFER)
			TS_CHECK_INT(found, is_used ? 42 : outermost);
		if (is_used)
			*remembered = outermost;
	}
}

/* ---- threads ---- */

#define THREADS 4

static void *run_thread(void *seed)
{
	compare_many((uint64_t)(uintptr_t)seed, 2000);
	return NULL;
}

TS_TEST(in_threads)
{
	pthread_t threads[THREADS];

	reset();
	for (uintptr_t i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, run_thread, (void *)(i + 10)), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	TS_CHECK_INT(compared, THREADS * 2000);
	TS_CHECK_INT(differing, 0);
	TS_CHECK_INT(with_end[TS_LOCAL_UNWIND_COMPLETE], THREADS * 2000);
}

TS_TEST(in_a_child_that_a_thread_forked)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		reset();
		compare_many(3, 500);
		_exit(differing || with_end[TS_LOCAL_UNWIND_COMPLETE] != 500);
	}
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	TS_CHECK_INT(status, 0);
}

/* ---- signals ---- */

/* qemu starts handlers with a stack that is not aligned as compilers expect. */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void
handle(int number)
{
	(void)number;
	compare_stacks();
}

static void set_handler(int number, int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	TS_CHECK_INT(sigaction(number, &action, NULL), 0);
}

TS_TEST(through_signals)
{
	reset();
	set_handler(SIGUSR1, 0);
	for (unsigned int i = 0; i < 200; i++)
		raise(SIGUSR1);
	TS_CHECK_INT(compared, 200);
	TS_CHECK_INT(differing, 0);
	TS_CHECK_INT(with_end[TS_LOCAL_UNWIND_COMPLETE], 200);
}

TS_TEST(through_signals_on_a_stack_of_their_own)
{
	static char frames_buffer[65536];
	stack_t stack = { .ss_sp = frames_buffer, .ss_size = sizeof(frames_buffer) };

	reset();
	TS_CHECK_INT(sigaltstack(&stack, NULL), 0);
	set_handler(SIGUSR1, SA_ONSTACK);
	for (unsigned int i = 0; i < 200; i++)
		raise(SIGUSR1);
	TS_CHECK_INT(compared, 200);
	TS_CHECK_INT(differing, 0);
	TS_CHECK_INT(with_end[TS_LOCAL_UNWIND_COMPLETE], 200);
	stack.ss_flags = SS_DISABLE;
	TS_CHECK_INT(sigaltstack(&stack, NULL), 0);
}

/*
 * Interrupts at any instruction, with frames half set up or half torn down. Each signal requests
 * the next, so slow machines make progress.
 */
static void request_signal(long after_us)
{
	struct itimerval once = { { 0, 0 }, { 0, after_us } };

	setitimer(ITIMER_REAL, &once, NULL);
}

#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void
handle_alarm(int number)
{
	(void)number;
	compare_stacks();
	request_signal(100 + compared % 37);
}

/*
 * Clang 14 emits no unwind rules for epilogues on aarch64, not even in its runtime: after
 * __asan_allocas_unpoison() has restored the stack pointer, its rule still is CFA = sp + 16.
 * libgcc, our reference, takes the marker of AddressSanitizer's stack frames (0x41b58ab3) for the
 * return address, and crashes when it reads the code there.
 */
#if defined(__clang__) && defined(__aarch64__)
#define IS_REFERENCE_BROKEN __has_feature(address_sanitizer)
#else
#define IS_REFERENCE_BROKEN 0
#endif

TS_TEST(interrupted_anywhere)
{
	struct sigaction action = { .sa_handler = handle_alarm, .sa_flags = SA_RESTART };
	struct path path = { .random = 7 };

	if (IS_REFERENCE_BROKEN)
		ts_test_skip("libgcc's unwinder crashes in epilogues of clang's "
			     "AddressSanitizer, which have no unwind rules");
	reset();
	TS_CHECK_INT(sigaction(SIGALRM, &action, NULL), 0);
	request_signal(100);
	while (__atomic_load_n(&compared, __ATOMIC_RELAXED) < 1000) {
		path.left = 30;
		while (path.left--)
			shapes[draw(&path, 8)](&path);
	}
	request_signal(0);
	TS_CHECK_INT(differing, 0);
}

/* ---- ends of stacks ---- */

/* Only the frame's own page of a foreign stack is read: the frame must be small. */
__attribute__((noinline)) static void look(void)
{
	static uint64_t pcs[MAX_FRAMES];
	struct ts_local_unwind_stack stack = { .pcs = pcs,
					       .capacity = MAX_FRAMES,
					       .last = &last_taken };
	struct ts_local_unwind_registers captured;

	ts_local_unwind_capture(&captured);
	ts_local_unwind_walk(&captured, &stack);
	seen_end = stack.end;
	seen_count = stack.count;
	seen_last = stack.count ? pcs[stack.count - 1] : 0;
}

/* The buffer is to be on this stack: AddressSanitizer could move it to another one. */
__attribute__((noinline, no_sanitize("address"))) static void look_from_below(unsigned int depth)
{
	char frames_buffer[512];

	memset(frames_buffer, (int)depth, sizeof(frames_buffer));
	if (depth)
		look_from_below(depth - 1);
	else
		look();
	sink += (unsigned char)frames_buffer[depth % sizeof(frames_buffer)];
}

static ucontext_t fibre_context, main_context;

static void run_fibre(void)
{
	look_from_below(20);
	swapcontext(&fibre_context, &main_context);
}

TS_TEST(fibres_end_with_a_marker)
{
	size_t bytes = 65536;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TS_CHECK(memory != MAP_FAILED);
	look();
	TS_CHECK_INT(seen_end, TS_LOCAL_UNWIND_COMPLETE);
	TS_CHECK_INT(getcontext(&fibre_context), 0);
	fibre_context.uc_stack = (stack_t){ .ss_sp = memory, .ss_size = bytes };
	fibre_context.uc_link = NULL;
	makecontext(&fibre_context, run_fibre, 0);
	TS_CHECK_INT(swapcontext(&main_context, &fibre_context), 0);
	TS_CHECK_INT(seen_end, TS_LOCAL_UNWIND_OTHER_STACK);
	TS_CHECK(seen_count >= 1 && seen_count < 20);
	munmap(memory, bytes);
	look();
	TS_CHECK_INT(seen_end, TS_LOCAL_UNWIND_COMPLETE);
}

/* Calls the given function. */
#if defined(__x86_64__)
static const unsigned char generated_code[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
						0x48, 0x83, 0xc4, 0x08, 0xc3 };
#else
static const unsigned int generated_code[] = { 0xa9bf7bfd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif

TS_TEST(code_made_at_run_time_ends_with_a_marker)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)(void (*function)(void));

	TS_CHECK(code != MAP_FAILED);
	memcpy(code, generated_code, sizeof(generated_code));
	TS_CHECK_INT(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
	__builtin___clear_cache(code, code + sizeof(generated_code));
	memcpy(&call, &code, sizeof(call));
	call(look);
	TS_CHECK_INT(seen_end, TS_LOCAL_UNWIND_NO_TABLES);
	TS_CHECK_INT(seen_count, 1);
	TS_CHECK(seen_last > (uint64_t)(uintptr_t)code &&
		 seen_last < (uint64_t)(uintptr_t)code + 32);
	munmap(code, 4096);
}

TS_TEST(deep_stacks_keep_the_inner_frames)
{
	reset();
	look_from_below(2 * MAX_FRAMES);
	TS_CHECK_INT(seen_end, TS_LOCAL_UNWIND_TOO_DEEP);
	TS_CHECK_INT(seen_count, MAX_FRAMES);
}

/* ---- libraries that are loaded and unloaded ---- */

static void compare_back(void)
{
	compare_stacks();
}

static uint64_t call_back_from(const char *file)
{
	const char *build = getenv("TS_BUILD");
	void (*call_back)(void (*function)(void));
	char path[1024];
	void *library, *symbol;

	snprintf(path, sizeof(path), "%s/tests/lib/%s", build ? build : ".", file);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		printf("%s\n", dlerror());
	TS_CHECK(library != NULL);
	symbol = dlsym(library, "call_back");
	TS_CHECK(symbol != NULL);
	memcpy(&call_back, &symbol, sizeof(call_back));
	call_back(compare_back);
	TS_CHECK_INT(dlclose(library), 0);
	return (uint64_t)(uintptr_t)symbol;
}

TS_TEST(libraries_that_take_the_place_of_others)
{
	struct timespec pause = { 0, 20000000 };
	uint64_t before = ts_local_unwind_generation(), first;
	unsigned int same = 0;

	reset();
	compare_stacks(); /* anything it maps is mapped before the libraries */
	first = call_back_from("libcalled_back_small.so");
	for (unsigned int i = 0; i < 4; i++) {
		/* The same return addresses, if possible: unloading is noticed in time. */
		nanosleep(&pause, NULL);
		same += call_back_from(i % 2 ? "libcalled_back_small.so"
					     : "libcalled_back_large.so") == first;
	}
	printf("%u of 4 came to the same place\n", same);
	TS_CHECK_INT(compared, 6);
	TS_CHECK_INT(differing, 0);
	TS_CHECK(ts_local_unwind_generation() > before);
}

TS_TEST(modules_are_described)
{
	struct ts_local_unwind_module module;

	TS_CHECK(ts_local_unwind_find_module((uint64_t)(uintptr_t)look, &module));
	TS_CHECK_STR(module.path, "");
	TS_CHECK((uint64_t)(uintptr_t)look - module.start < module.bytes);
	TS_CHECK(ts_local_unwind_find_module((uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "getppid"),
					     &module));
	TS_CHECK(strstr(module.path, "libc.so") != NULL);
	TS_CHECK(module.build_id_bytes > 0);
	TS_CHECK(!ts_local_unwind_find_module(16, &module));
}
