/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps the Python frames of the calling thread to dictionary entries and line numbers. A cache
 * finds known frames by code object and instruction, and detects code objects that reuse an
 * address.
 */
#include <sys/mman.h>

#include <tracesmith/sample.h>

#include "agent/agent_python_internal.h"

#define MOST_STEPS (4 * PYTHON_MOST_DEPTH) /* including frames that are not Python's */
#define FRAME_SLOTS 8192u                  /* powers of two */
#define TEXT_SLOTS 16384u /* more than the functions from which programs call accelerators */
#define TEXT_PROBES 64u
#define PRINT_BYTES 64u /* hashed at each end of a line table */
/* co_version exists in 3.12 to 3.14; in other versions the word is constant as well. */
#define OLDEST_WITH_NUMBERS 12u
#define NUMBER_BEHIND_FIRST_LINE 24u
#define MOST_COPIES 4096u /* of instructions, one a thread */

/* A known frame. `version` is odd while the slot changes. */
struct frame_slot {
	uint64_t version;
	uint64_t code, instruction;
	uint64_t print; /* distinguishes the code object from another one at its address */
	uint64_t word;
} __attribute__((aligned(64)));

/* A function, identified by its texts, since its code objects come and go. */
struct text_slot {
	uint64_t hash; /* 0: free */
	uint64_t number;
};

static struct tables {
	struct frame_slot frames[FRAME_SLOTS];
	struct text_slot texts[TEXT_SLOTS];
} * tables;

bool agent_python_remember(void)
{
	if (!tables)
		tables = agent_memory(sizeof(*tables));
	return tables != NULL;
}

/* For a child that could not copy its parent's dictionary. Does not free memory still in use. */
void agent_python_forget(void)
{
	struct tables *empty = tables ? agent_memory(sizeof(*empty)) : NULL;

	if (empty)
		__atomic_store_n(&tables, empty, __ATOMIC_RELEASE);
	else if (tables)
		__atomic_store_n(&agent_python.state, PYTHON_OFF, __ATOMIC_RELEASE);
}

/* ---- functions and lines ---- */

/* FNV-1a. */
static uint64_t add_hash(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/*
 * The function's dictionary entry, added if needed. Two threads may both add it, which is harmless.
 */
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

/* Start of this thread's copy of the instructions, in free-threaded builds. */
static uint64_t first_instruction(struct ts_python_memory *memory,
				  const struct ts_python_raw_frame *frame,
				  const struct ts_python_code_text *text)
{
	uint64_t array, count, address;

	if (!frame->code_index || agent_python.layout.code.thread_instructions == TS_PYTHON_NONE)
		return text->instructions;
	if (frame->code_index >= MOST_COPIES ||
	    !ts_python_memory_read_pointer(
		    memory, frame->code + agent_python.layout.code.thread_instructions, &array) ||
	    !ts_python_memory_read_pointer(memory, array, &count) || frame->code_index >= count ||
	    !ts_python_memory_read_pointer(memory, array + 8 + (uint64_t)frame->code_index * 8,
					   &address))
		return 0;
	return address;
}

int64_t agent_python_line(struct ts_python_memory *memory, const struct ts_python_raw_frame *frame,
			  const struct ts_python_code_text *text, const uint8_t *table,
			  int32_t first_line)
{
	uint64_t first = first_instruction(memory, frame, text);
	int64_t offset =
		ts_python_instruction_offset(&agent_python.layout, first, frame->instruction);

	if (agent_python.layout.frames != TS_PYTHON_FRAME_OBJECTS && offset < 0 &&
	    frame->instruction + 2 != first)
		return -1;
	if (text->instruction_bytes && offset >= (int64_t)text->instruction_bytes)
		return -1;
	if (offset < 0)
		return first_line;
	return ts_python_line(agent_python.layout.lines, table, text->table_bytes, first_line,
			      (uint32_t)offset);
}

static uint64_t make_frame_word(struct core *core, const struct ts_python_raw_frame *frame,
				const struct ts_python_code_identity *identity)
{
	struct ts_python_memory memory = { .pid = 0 };
	struct ts_python_process_view view = { .memory = &memory,
					       .layout = &agent_python.layout,
					       .code_type = agent_python.code_type };
	struct ts_python_code_text text;
	int64_t line;

	if (!ts_python_code_read(&view, identity, &text, agent_python_buffer->table,
				 sizeof(agent_python_buffer->table)))
		return ts_code_frame(0, 0);
	line = agent_python_line(&memory, frame, &text, agent_python_buffer->table,
				 identity->first_line);
	return ts_code_frame(number_of(core, &text, identity->first_line),
			     line > 0 ? (uint32_t)line : 0);
}

/* ---- cache of known frames ---- */

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

/* A sum of words and a sum of these sums: any changed word or order changes them. */
struct print {
	uint64_t sum, sums;
};

static inline void add_word(struct print *print, uint64_t word)
{
	print->sum += word;
	print->sums += print->sum;
}

/* Two words at a time, without dependencies between them. */
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

/* Adds the text's length and the hash that Python stores with it. */
static inline void add_text(struct print *print, uint64_t text)
{
	uint64_t at = text + agent_python.layout.unicode.length;

	add_word(print, word_at(at));
	add_word(print, word_at(at + 8));
}

/*
 * Programs that generate code at run time reuse the same addresses, even for names and lines. From
 * 3.12 on each code object has a number of its own. Before that the line table is part of the
 * print, except for the middle of long tables.
 */
static void add_content(struct print *print, const struct ts_python_code_identity *identity)
{
	uint64_t bytes = word_at(identity->line_table + agent_python.layout.object.var_size);
	uint64_t table = identity->line_table + agent_python.layout.bytes.bytes;

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

/* 0: none, or there were more than 2^32. */
static inline uint32_t version_number(const struct ts_python_code_identity *identity)
{
	uint32_t version = 0;

	if (agent_python.layout.minor >= OLDEST_WITH_NUMBERS)
		memcpy(&version,
		       (const char *)(uintptr_t)identity->address +
			       agent_python.layout.code.first_line + NUMBER_BEHIND_FIRST_LINE,
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

/*
 * Reads the slot between two reads of its version, which are equal and even if nobody changed the
 * slot meanwhile.
 */
static inline bool find_frame_word(struct frame_slot *slot, const struct ts_python_raw_frame *frame,
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

/* Skips a slot that another thread is changing. */
static void cache_frame_word(struct frame_slot *slot, const struct ts_python_raw_frame *frame,
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

/* As ts_python_code_identify(), for a layout that was checked. */
static inline bool identify(uint64_t code, struct ts_python_code_identity *ret_identity)
{
	*ret_identity = (struct ts_python_code_identity){
		.address = code,
		.name = word_at(code + agent_python.name),
		.file = word_at(code + agent_python.layout.code.file),
		.line_table = word_at(code + agent_python.layout.code.line_table),
		.first_line =
			*(const int32_t *)(uintptr_t)(code + agent_python.layout.code.first_line),
	};
	return word_at(code + agent_python.layout.object.type) == agent_python.code_type &&
	       is_address(ret_identity->name) && is_address(ret_identity->file) &&
	       is_address(ret_identity->line_table) && ret_identity->first_line >= 0;
}

__attribute__((noinline)) static uint64_t new_frame_word(
	struct core *core, const struct ts_python_raw_frame *frame,
	const struct ts_python_code_identity *identity, uint64_t print)
{
	uint64_t word = make_frame_word(core, frame, identity);

	cache_frame_word(slot_of(frame), frame, print, word);
	return word;
}

/* False: the frame does not run a code object. */
static inline bool frame_word(struct core *core, const struct ts_python_raw_frame *frame,
			      uint64_t *ret_word)
{
	struct ts_python_code_identity identity;
	uint64_t print;

	if (!identify(frame->code, &identity))
		return false;
	print = print_of(&identity);
	if (AGENT_UNLIKELY(!find_frame_word(slot_of(frame), frame, print, ret_word)))
		*ret_word = new_frame_word(core, frame, &identity, print);
	return true;
}

/* ---- a stack ---- */

static uint64_t innermost(uint64_t thread)
{
	uint64_t frame = word_at(thread + agent_python.layout.thread.frame);

	if (agent_python.layout.frames != TS_PYTHON_CFRAME)
		return frame;
	return is_address(frame) ? word_at(frame + agent_python.layout.cframe.current_frame) : 0;
}

uint32_t agent_python_walk(struct core *core, uint64_t thread)
{
	uint64_t at = innermost(thread), previous;
	uint32_t depth = 0;

	for (uint32_t step = 0; at; step++) {
		struct ts_python_raw_frame frame;
		enum ts_python_frame_kind kind;

		if (!is_address(at) || step >= MOST_STEPS || depth == PYTHON_MOST_DEPTH)
			return 0;
		kind = ts_python_frame_parse(&agent_python.layout, at, (const void *)(uintptr_t)at,
					     &frame, &previous);
		if (kind == TS_PYTHON_FRAME_BAD)
			return 0;
		if (kind == TS_PYTHON_FRAME_SHIM) {
			if (depth)
				agent_python_buffer->is_entry[PYTHON_MOST_DEPTH - depth] = 1;
		} else if (is_address(frame.code)) {
			agent_python_buffer->is_entry[PYTHON_MOST_DEPTH - 1 - depth] =
				frame.flags & TS_PYTHON_RAW_ENTRY;
			depth += frame_word(
				core, &frame,
				&agent_python_buffer->frames[PYTHON_MOST_DEPTH - 1 - depth]);
		}
		at = previous;
	}
	return depth;
}
