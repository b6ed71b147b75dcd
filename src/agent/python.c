/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the Python that this process has inside, as its structures lie in memory: no function of Python's is called but the one that gives
 * the calling thread's state, which needs no lock. The thread is inside a call, so that its frames hold still. Before the first stack is read in place,
 * one is read through the kernel: where what is known of this version is wrong, that fails, and the program goes on.
 */
#include "agent/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracesmith/error.h>
#include <tracesmith/sample.h>

#include "capture/python/walk.h"
#include "live/layout.h"

#define MOST_DEPTH 16384u
#define MOST_STEPS (4 * MOST_DEPTH) /* with frames that are none of Python's */
#define TABLE_BYTES 65536u
#define FRAME_SLOTS 8192u /* powers of two */
#define TEXT_SLOTS 16384u /* more than a dictionary has room for */
#define TEXT_PROBES 64u
#define MOST_CODE_BYTES 512u
#define CHECKED_FRAMES 512u
#define PRINT_BYTES 64u /* of each end of a line table */
/* co_version, in 3.12 to 3.14; elsewhere it would be something that does not change either. */
#define OLDEST_WITH_NUMBERS 12u
#define NUMBER_BEHIND_FIRST_LINE 24u
#define MOST_FAILURES 8u
#define MOST_COPIES 4096u /* of instructions, one a thread */

/* ---- what is known of it ---- */

enum python_state {
	PYTHON_MISSING, /* not in this process, so far */
	PYTHON_FOUND,
	PYTHON_CHECKED, /* read in place from now on */
	PYTHON_OFF,
};

/* The same in a forked child. */
static struct {
	uint32_t state; /* enum python_state */
	uint32_t lock;
	uint32_t failures;
	uint32_t unknown; /* version that is not known here, 0x0310, and not told of yet */
	void *(*this_thread)(void);
	uint64_t code_type, loop;
	uint16_t name; /* offset in a code object: of the qualified one, where the version has it */
	struct ts_python_layout layout;
} python;

/* A frame that was seen before. `version` is odd while it is changed. */
struct frame_slot {
	uint64_t version;
	uint64_t code, instruction;
	uint64_t print; /* what tells the code object from another one at its address */
	uint64_t word;
} __attribute__((aligned(64)));

/* A function, by its texts: code objects of it come and go. */
struct text_slot {
	uint64_t hash; /* 0: free */
	uint64_t number;
};

static struct tables {
	struct frame_slot frames[FRAME_SLOTS];
	struct text_slot texts[TEXT_SLOTS];
} * tables;

/* A thread's. */
struct room {
	bool is_busy;
	union {
		uint64_t frames[MOST_DEPTH]; /* filled from the end */
		struct ts_python_raw_frame raw[CHECKED_FRAMES];
	};
	uint8_t is_entry[MOST_DEPTH]; /* of each of them */
	uint8_t table[TABLE_BYTES];
};
static __thread struct room *room __attribute__((tls_model("initial-exec")));

uint32_t agent_python_parse(const char *text)
{
	uint32_t asked = 0;

	while (text && *text) {
		size_t length = strcspn(text, ",");

		if (length == 5 && !strncmp(text, "marks", length))
			asked |= AGENT_PYTHON_MARKS;
		else if (length == 5 && !strncmp(text, "calls", length))
			asked |= AGENT_PYTHON_CALLS;
		text += length + (text[length] == ',');
	}
	return asked;
}

/* ---- finding it ---- */

static uint64_t address_of(const char *symbol)
{
	return (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, symbol);
}

/* PY_VERSION_HEX's upper half, 0x030b; 0: not known. */
static unsigned int version_of(void)
{
	const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version");
	const char *(*text_of)(void);
	unsigned long major, minor;
	void *symbol;
	char *dot;

	if (number)
		return (unsigned int)(*number >> 16) & 0xffff;
	symbol = dlsym(RTLD_DEFAULT, "Py_GetVersion");
	memcpy(&text_of, &symbol, sizeof(text_of));
	if (!text_of)
		return 0;
	major = strtoul(text_of(), &dot, 10);
	minor = *dot == '.' ? strtoul(dot + 1, NULL, 10) : 0;
	return (unsigned int)(major << 8 | (minor & 0xff));
}

static bool find_layout(unsigned int version)
{
	uint64_t runtime = address_of("_PyRuntime"), unused;
	unsigned int minor = version & 0xff;
	bool is_debug = address_of("_Py_NegativeRefcount") || address_of("_Py_RefTotal");

	if (version >> 8 != 3 || minor < TS_PYTHON_OLDEST_MINOR || minor > TS_PYTHON_NEWEST_MINOR)
		return false;
	if (minor <= 12)
		return ts_python_layout_of_version(&python.layout, minor, is_debug);
	return runtime &&
	       ts_python_layout_of_runtime(&python.layout, (const void *)(uintptr_t)runtime,
					   TS_PYTHON_DEBUG_OFFSETS_BYTES, &unused) == 0;
}

/* What became of it, once, as a fact of the process. */
static void tell(const char *what)
{
	char json[128];
	struct agent_note note = { .kind = TS_LIVE_FACT,
				   .text_count = 2,
				   .texts = { "python_stacks", json } };

	snprintf(json, sizeof(json), "\"%s\"", what);
	agent_tell(&ts_process_tracer, &note);
}

static void tell_unknown(void)
{
	uint32_t version = __atomic_exchange_n(&python.unknown, 0, __ATOMIC_RELAXED);
	char text[64];

	if (!version)
		return;
	snprintf(text, sizeof(text), "not read: Python %u.%u is not known", version >> 8 & 0xff,
		 version & 0xff);
	tell(text);
}

/* The lock is held. */
static void look(void)
{
	void *this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	uint64_t code_type = address_of("PyCode_Type");
	unsigned int version;

	if (!this_thread || !code_type)
		return;
	version = version_of();
	if (!find_layout(version)) {
		python.unknown = version | 0x10000;
		__atomic_store_n(&python.state, PYTHON_OFF, __ATOMIC_RELEASE);
		return;
	}
	memcpy(&python.this_thread, &this_thread, sizeof(python.this_thread));
	python.code_type = code_type;
	python.name = python.layout.code.qualified_name != TS_PYTHON_NONE &&
				      python.layout.code.qualified_name
			      ? python.layout.code.qualified_name
			      : python.layout.code.name;
	python.loop = address_of("_PyEval_EvalFrameDefault");
	__atomic_store_n(&python.state, PYTHON_FOUND, __ATOMIC_RELEASE);
}

static bool try_lock(void)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(&python.lock, &none, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void unlock(void)
{
	__atomic_store_n(&python.lock, 0, __ATOMIC_RELEASE);
}

void agent_python_look(void)
{
	int saved_errno = errno;

	if (try_lock()) {
		if (python.state == PYTHON_MISSING)
			look();
		unlock();
	}
	errno = saved_errno;
}

/* ---- functions and lines ---- */

/* FNV-1a. */
static uint64_t add_hash(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/* The function's number in the dictionary, where it is put if need be. Two threads may both put it there, which does no harm. */
static uint32_t number_of(struct core *core, const struct ts_python_code_text *text,
			  int32_t first_line)
{
	uint64_t hash =
		add_hash(add_hash(UINT64_C(0xcbf29ce484222325) + (uint32_t)first_line, text->name),
			 text->file) |
		1;
	uint32_t number;

	for (uint64_t probe = 0; probe < TEXT_PROBES; probe++) {
		struct text_slot *slot = &tables->texts[(hash / 2 + probe) % TEXT_SLOTS];
		uint64_t found = 0;

		if (__atomic_compare_exchange_n(&slot->hash, &found, hash, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			found = hash;
		if (found != hash)
			continue;
		number = (uint32_t)__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE);
		if (!number) {
			number = agent_register_code(core, TS_CODE_PYTHON, text->name, text->file,
						     (uint32_t)first_line);
			__atomic_store_n(&slot->number, number, __ATOMIC_RELEASE);
		}
		return number;
	}
	return 0;
}

/* Where the copy of the instructions begins that this thread runs: free-threaded builds. */
static uint64_t first_instruction(struct ts_memory *memory, const struct ts_python_raw_frame *frame,
				  const struct ts_python_code_text *text)
{
	uint64_t array, count, address;

	if (!frame->code_index || python.layout.code.thread_instructions == TS_PYTHON_NONE)
		return text->instructions;
	if (frame->code_index >= MOST_COPIES ||
	    !ts_memory_read_pointer(memory, frame->code + python.layout.code.thread_instructions,
				    &array) ||
	    !ts_memory_read_pointer(memory, array, &count) || frame->code_index >= count ||
	    !ts_memory_read_pointer(memory, array + 8 + (uint64_t)frame->code_index * 8, &address))
		return 0;
	return address;
}

/* The line that a frame is at; -1: it is at none of this code. */
static int64_t line_of(struct ts_memory *memory, const struct ts_python_raw_frame *frame,
		       const struct ts_python_code_text *text, const uint8_t *table,
		       int32_t first_line)
{
	uint64_t first = first_instruction(memory, frame, text);
	int64_t offset = ts_python_instruction_offset(&python.layout, first, frame->instruction);

	if (python.layout.frames != TS_PYTHON_FRAME_OBJECTS && offset < 0 &&
	    frame->instruction + 2 != first)
		return -1;
	if (text->instruction_bytes && offset >= (int64_t)text->instruction_bytes)
		return -1;
	if (offset < 0)
		return first_line;
	return ts_python_line(python.layout.lines, table, text->table_bytes, first_line,
			      (uint32_t)offset);
}

static uint64_t make_word(struct core *core, const struct ts_python_raw_frame *frame,
			  const struct ts_python_code_identity *identity)
{
	struct ts_memory memory = { .pid = 0 };
	struct ts_python_process_view view = { .memory = &memory,
					       .layout = &python.layout,
					       .code_type = python.code_type };
	struct ts_python_code_text text;
	int64_t line;

	if (!ts_python_code_read(&view, identity, &text, room->table, sizeof(room->table)))
		return ts_code_frame(0, 0);
	line = line_of(&memory, frame, &text, room->table, identity->first_line);
	return ts_code_frame(number_of(core, &text, identity->first_line),
			     line > 0 ? (uint32_t)line : 0);
}

/* ---- frames that were seen before ---- */

static inline struct frame_slot *slot_of(const struct ts_python_raw_frame *frame)
{
	uint64_t mixed = (frame->code ^ frame->instruction * 31) * UINT64_C(0x9e3779b97f4a7c15);

	return &tables->frames[mixed >> 51];
}
static_assert(FRAME_SLOTS == 1u << (64 - 51), "as many bits");

static inline uint64_t word_at(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

/* Sums of words and of these sums: any word that changes changes them, as does another order. */
struct print {
	uint64_t sum, sums;
};

static inline void add_word(struct print *print, uint64_t word)
{
	print->sum += word;
	print->sums += print->sum;
}

/* Of two words at a time: nothing waits for what stands before it. */
typedef uint64_t lanes __attribute__((vector_size(16), aligned(1), may_alias));

static inline void add_bytes(struct print *print, uint64_t address, uint64_t bytes)
{
	lanes sum = { 0, 0 }, sums = { 0, 0 };
	uint64_t word = 0;

	for (; bytes >= sizeof(lanes); bytes -= sizeof(lanes), address += sizeof(lanes)) {
		sum += *(const lanes *)(uintptr_t)address;
		sums += sum;
	}
	add_word(print, sum[0] ^ sums[1]);
	add_word(print, sum[1] ^ sums[0] << 1);
	if (bytes >= 8) {
		add_word(print, word_at(address));
		address += 8;
		bytes -= 8;
	}
	memcpy(&word, (const void *)(uintptr_t)address, bytes);
	add_word(print, word);
}

/* Its length and the hash that Python keeps beside it. */
static inline void add_text(struct print *print, uint64_t text)
{
	uint64_t at = text + python.layout.unicode.length;

	add_word(print, word_at(at));
	add_word(print, word_at(at + 8));
}

/*
 * Programs that make code at run time have one after the other at the same addresses, names and lines included. From 3.12 on each has a number of its own;
 * before that the lines themselves are part of it, all but the middle of long tables.
 */
static void add_content(struct print *print, const struct ts_python_code_identity *identity)
{
	uint64_t bytes = word_at(identity->line_table + python.layout.object.var_size);
	uint64_t table = identity->line_table + python.layout.bytes.bytes;

	add_text(print, identity->name);
	add_text(print, identity->file);
	add_word(print, bytes);
	if (bytes <= 2 * PRINT_BYTES) {
		add_bytes(print, table, bytes);
		return;
	}
	add_bytes(print, table, PRINT_BYTES);
	add_bytes(print, table + bytes - PRINT_BYTES, PRINT_BYTES);
}

/* 0: it has none, or there were more than 2^32. */
static inline uint32_t version_number(const struct ts_python_code_identity *identity)
{
	uint32_t version = 0;

	if (python.layout.minor >= OLDEST_WITH_NUMBERS)
		memcpy(&version,
		       (const char *)(uintptr_t)identity->address + python.layout.code.first_line +
			       NUMBER_BEHIND_FIRST_LINE,
		       sizeof(version));
	return version;
}

static inline uint64_t print_of(const struct ts_python_code_identity *identity)
{
	struct print print = { .sum = identity->line_table, .sums = identity->name };
	uint32_t version = version_number(identity);

	add_word(&print, identity->file);
	add_word(&print, (uint64_t)identity->first_line << 32 | version);
	if (!version)
		add_content(&print, identity);
	return print.sum + print.sums * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t peek(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void poke(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Read between two looks at the version: they are equal and even where nobody has changed it meanwhile. */
static inline bool find_word(struct frame_slot *slot, const struct ts_python_raw_frame *frame,
			     uint64_t print, uint64_t *ret_word)
{
	uint64_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
	bool is_same = peek(&slot->code) == frame->code &&
		       peek(&slot->instruction) == frame->instruction &&
		       peek(&slot->print) == print;

	*ret_word = peek(&slot->word);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return is_same && !(version & 1) && peek(&slot->version) == version;
}

/* One that another thread is about to change is left alone. */
static void keep_word(struct frame_slot *slot, const struct ts_python_raw_frame *frame,
		      uint64_t print, uint64_t word)
{
	uint64_t version = peek(&slot->version);

	if ((version & 1) ||
	    !__atomic_compare_exchange_n(&slot->version, &version, version + 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	poke(&slot->code, frame->code);
	poke(&slot->instruction, frame->instruction);
	poke(&slot->print, print);
	poke(&slot->word, word);
	__atomic_store_n(&slot->version, version + 2, __ATOMIC_RELEASE);
}

static inline bool is_address(uint64_t address)
{
	return address >= 4096 && address < UINT64_C(1) << 56 && !(address & 7);
}

/* As ts_python_code_identify() has it, of a layout that was checked. */
static inline bool identify(uint64_t code, struct ts_python_code_identity *ret_identity)
{
	*ret_identity = (struct ts_python_code_identity){
		.address = code,
		.name = word_at(code + python.name),
		.file = word_at(code + python.layout.code.file),
		.line_table = word_at(code + python.layout.code.line_table),
		.first_line = *(const int32_t *)(uintptr_t)(code + python.layout.code.first_line),
	};
	return word_at(code + python.layout.object.type) == python.code_type &&
	       is_address(ret_identity->name) && is_address(ret_identity->file) &&
	       is_address(ret_identity->line_table) && ret_identity->first_line >= 0;
}

__attribute__((noinline)) static uint64_t new_word(struct core *core,
						   const struct ts_python_raw_frame *frame,
						   const struct ts_python_code_identity *identity,
						   uint64_t print)
{
	uint64_t word = make_word(core, frame, identity);

	keep_word(slot_of(frame), frame, print, word);
	return word;
}

/* False: what the frame runs is no code. */
static inline bool word_of(struct core *core, const struct ts_python_raw_frame *frame,
			   uint64_t *ret_word)
{
	struct ts_python_code_identity identity;
	uint64_t print;

	if (!identify(frame->code, &identity))
		return false;
	print = print_of(&identity);
	if (AGENT_UNLIKELY(!find_word(slot_of(frame), frame, print, ret_word)))
		*ret_word = new_word(core, frame, &identity, print);
	return true;
}

/* ---- a stack ---- */

static uint64_t innermost(uint64_t thread)
{
	uint64_t frame = word_at(thread + python.layout.thread.frame);

	if (python.layout.frames != TS_PYTHON_CFRAME)
		return frame;
	return is_address(frame) ? word_at(frame + python.layout.cframe.current_frame) : 0;
}

/* Its depth; the frames stand at the end of the room. 0: there is no stack that makes sense. */
static uint32_t walk(struct core *core, uint64_t thread)
{
	uint64_t at = innermost(thread), previous;
	uint32_t depth = 0;

	for (uint32_t step = 0; at; step++) {
		struct ts_python_raw_frame frame;
		enum ts_python_frame_kind kind;

		if (!is_address(at) || step >= MOST_STEPS || depth == MOST_DEPTH)
			return 0;
		kind = ts_python_frame_parse(&python.layout, at, (const void *)(uintptr_t)at,
					     &frame, &previous);
		if (kind == TS_PYTHON_FRAME_BAD)
			return 0;
		if (kind == TS_PYTHON_FRAME_SHIM) {
			if (depth)
				room->is_entry[MOST_DEPTH - depth] = 1;
		} else if (is_address(frame.code)) {
			room->is_entry[MOST_DEPTH - 1 - depth] = frame.flags & TS_PYTHON_RAW_ENTRY;
			depth += word_of(core, &frame, &room->frames[MOST_DEPTH - 1 - depth]);
		}
		at = previous;
	}
	return depth;
}

/* ---- the first one, through the kernel ---- */

static bool check_frame(struct ts_python_process_view *view,
			const struct ts_python_raw_frame *frame, uint8_t *table)
{
	struct ts_python_code_identity identity;
	struct ts_python_code_text text;
	uint8_t copy[MOST_CODE_BYTES];

	return python.layout.code.bytes <= sizeof(copy) &&
	       ts_memory_read(view->memory, frame->code, copy, python.layout.code.bytes) &&
	       ts_python_code_identify(&python.layout, frame->code, python.code_type, copy,
				       &identity) &&
	       ts_python_code_read(view, &identity, &text, table, TABLE_BYTES) && text.name[0] &&
	       line_of(view->memory, frame, &text, table, identity.first_line) >= 0;
}

static bool check_stack(uint64_t thread)
{
	struct ts_memory memory = { .pid = getpid() };
	struct ts_python_process_view view = { .memory = &memory,
					       .layout = &python.layout,
					       .code_type = python.code_type };
	bool is_whole;
	size_t depth = ts_python_walk(&view, thread, room->raw, CHECKED_FRAMES, &is_whole);

	if (!depth || (!is_whole && depth < CHECKED_FRAMES))
		return false;
	for (size_t i = 0; i < depth; i++)
		if (!check_frame(&view, &room->raw[i], room->table))
			return false;
	return true;
}

static void check(uint64_t thread)
{
	char text[64];

	if (!try_lock())
		return;
	if (python.state == PYTHON_FOUND && !tables)
		tables = agent_memory(sizeof(*tables));
	if (python.state == PYTHON_FOUND && tables && check_stack(thread)) {
		__atomic_store_n(&python.state, PYTHON_CHECKED, __ATOMIC_RELEASE);
		snprintf(text, sizeof(text), "3.%u", python.layout.minor);
		tell(text);
	} else if (python.state == PYTHON_FOUND && ++python.failures >= MOST_FAILURES) {
		__atomic_store_n(&python.state, PYTHON_OFF, __ATOMIC_RELEASE);
		tell("not read: frames are not where this version should have them");
	}
	unlock();
}

/* ---- taking one ---- */

static bool is_wanted(const struct core *core, uint32_t what)
{
	unsigned int word = what == AGENT_PYTHON_MARKS ? TS_CONFIG_PYTHON_MARKS
						       : TS_CONFIG_PYTHON_CALLS;

	return (agent_python_asked & what) &&
	       __atomic_load_n(&core->control->config[word], __ATOMIC_RELAXED);
}

/* The thread's state; 0: it has none, or nothing is known of Python. */
static uint64_t thread_state(void)
{
	uint32_t state = __atomic_load_n(&python.state, __ATOMIC_ACQUIRE);
	uint64_t thread;

	if (AGENT_UNLIKELY(python.unknown))
		tell_unknown();
	if (state != PYTHON_FOUND && state != PYTHON_CHECKED)
		return 0;
	thread = (uint64_t)(uintptr_t)python.this_thread();
	if (!thread)
		return 0;
	if (AGENT_UNLIKELY(!room)) {
		room = agent_memory(sizeof(*room));
		if (!room)
			return 0;
		agent_watch_thread(agent_writer);
	}
	return room->is_busy ? 0 : thread;
}

bool agent_python_frames(struct core *core, struct agent_python_stack *ret_stack)
{
	int saved_errno = errno;
	uint64_t thread = thread_state();
	uint32_t depth = 0;

	if (thread) {
		room->is_busy = true;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (AGENT_UNLIKELY(python.state == PYTHON_FOUND))
			check(thread);
		if (python.state == PYTHON_CHECKED)
			depth = walk(core, thread);
		*ret_stack = (struct agent_python_stack){ room->frames + MOST_DEPTH - depth,
							  room->is_entry + MOST_DEPTH - depth,
							  depth };
		if (!depth)
			agent_python_done();
	}
	errno = saved_errno;
	return depth != 0;
}

bool agent_python_take(struct core *core, uint32_t what, struct agent_stack *ret_stack)
{
	struct agent_python_stack stack;

	if (!is_wanted(core, what) || !agent_python_frames(core, &stack))
		return false;
	*ret_stack = (struct agent_stack){ stack.frames, stack.count };
	return true;
}

uint64_t agent_python_loop(void)
{
	return __atomic_load_n(&python.state, __ATOMIC_ACQUIRE) == PYTHON_CHECKED ? python.loop : 0;
}

void agent_python_done(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	room->is_busy = false;
}

void agent_python_thread_exit(void)
{
	struct room *own = room;

	room = NULL;
	if (own)
		munmap(own, sizeof(*own));
}
