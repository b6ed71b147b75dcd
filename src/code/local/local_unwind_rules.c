/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes unwind rules from the tables of loaded modules, found through the loader's list, and keeps
 * them in a table that all threads read and write.
 */
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/local/macros.h"
#include "code/local/cfi.h"
#include "code/local/cursor.h"
#include "code/local/local_unwind.h"
#include "code/local/registers.h"

#define LOOK_AGAIN_NS INT64_C(5000000)
#define MAX_OFFSET (UINT64_C(0xfffff) * 8)
#define BREG 0x70u /* DW_OP_breg0 */
#define DEREF 0x06u
#define NOTE_BUILD_ID 3u

struct ts_local_unwind_table *ts_local_unwind_table;
uint64_t ts_local_unwind_unloads;

/* ---- what is loaded ---- */

static uint64_t seen_unloads, seen_loads; /* atomic; the loader's count */
static int64_t looked_ns;                 /* atomic */

static void note_counts(const struct dl_phdr_info *info)
{
	uint64_t before = __atomic_exchange_n(&seen_unloads, info->dlpi_subs, __ATOMIC_ACQ_REL);

	__atomic_store_n(&seen_loads, info->dlpi_adds, __ATOMIC_RELAXED);
	if (before != info->dlpi_subs)
		__atomic_fetch_add(&ts_local_unwind_unloads, 1, __ATOMIC_ACQ_REL);
}

static int look_at_first(struct dl_phdr_info *info, size_t bytes, void *context)
{
	(void)bytes;
	(void)context;
	note_counts(info);
	return 1;
}

/*
 * Code at an address that used to belong to another library would be mistaken for it. New code
 * mostly has new return addresses, which lead to the loader; this check covers the rest.
 */
void ts_local_unwind_check_modules(void)
{
	int64_t before = __atomic_load_n(&looked_ns, __ATOMIC_RELAXED), now_ns;
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	now_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	if (__builtin_expect(now_ns - before < LOOK_AGAIN_NS, 1) ||
	    !__atomic_compare_exchange_n(&looked_ns, &before, now_ns, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	dl_iterate_phdr(look_at_first, NULL);
}

uint64_t ts_local_unwind_loads(void)
{
	return __atomic_load_n(&seen_loads, __ATOMIC_RELAXED);
}

static const ElfW(Phdr) * segment_of(const struct dl_phdr_info *info, uint64_t address)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD &&
		    address - info->dlpi_addr - header->p_vaddr < header->p_memsz)
			return header;
	}
	return NULL;
}

static const void *in_memory(const struct dl_phdr_info *info, uint64_t address)
{
	return (const void *)(uintptr_t)(info->dlpi_addr + address);
}

/* ---- rows ---- */

struct search {
	uint64_t address;
	struct ts_cfi_row *row;
	const uint8_t *expressions;
	bool is_found;
};

/* The segment at a file address. False: none. */
static bool find_segment(const struct dl_phdr_info *info, uint64_t address,
			 struct ts_cfi_segment *ret_segment)
{
	const ElfW(Phdr) *load = segment_of(info, info->dlpi_addr + address);

	if (load)
		*ret_segment = (struct ts_cfi_segment){ in_memory(info, load->p_vaddr),
							load->p_vaddr, load->p_filesz };
	return load != NULL;
}

static void search_module(const struct dl_phdr_info *info, struct search *search)
{
	struct ts_cfi_segment segment, frames;
	uint64_t address;
	struct ts_cfi cfi;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_GNU_EH_FRAME)
			continue;
		if (!find_segment(info, header->p_vaddr, &segment) ||
		    !ts_cfi_frames_address(in_memory(info, header->p_vaddr), header->p_vaddr,
					   &segment, &address) ||
		    !find_segment(info, address, &frames))
			return;
		ts_cfi_init_mapped(&cfi, in_memory(info, header->p_vaddr), header->p_vaddr,
				   &segment, &frames);
		search->is_found =
			ts_cfi_find(&cfi, search->address - info->dlpi_addr, search->row);
		search->expressions = cfi.frames;
		return;
	}
}

/* A row without a CFA rule: the kernel's signal frame has a fixed layout. */
static void search_sigreturn(struct search *search)
{
#if defined(__aarch64__)
	uint64_t code;

	memcpy(&code, (const void *)(uintptr_t)(search->address + 1), sizeof(code));
	if (code != TS_SIGRETURN_CODE)
		return;
	*search->row = (struct ts_cfi_row){ .return_register = TS_REGISTER_PC, .is_signal = true };
	search->is_found = true;
#else
	(void)search;
#endif
}

static int search_one(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct search *search = context;

	(void)bytes;
	if (!segment_of(info, search->address))
		return 0;
	search_module(info, search);
	if (!search->is_found && segment_of(info, search->address + 8))
		search_sigreturn(search);
	return 1;
}

/*
 * glibc 2.35's lookup, which takes no lock and does not iterate over all libraries. Its struct, for
 * builds with older headers.
 */
struct found_object {
	unsigned long long flags;
	const void *start, *end;
	const struct link_map *map;
	const void *frames; /* .eh_frame_hdr */
	unsigned long long reserved[7];
};
extern int find_object(void *address, struct found_object *ret_object) __asm__("_dl_find_object")
	__attribute__((weak));

/* Its range may end with the code: search_module() finds a writable .eh_frame behind that. */
static void search_object(struct search *search)
{
	struct ts_cfi_segment segment;
	struct found_object object;
	struct ts_cfi cfi;
	uint64_t bias;

	if (!find_object || find_object((void *)(uintptr_t)search->address, &object) != 0 ||
	    !object.frames)
		return;
	bias = object.map->l_addr;
	segment = (struct ts_cfi_segment){ object.start, (uint64_t)(uintptr_t)object.start - bias,
					   (size_t)((const char *)object.end -
						    (const char *)object.start) };
	ts_cfi_init_mapped(&cfi, object.frames, (uint64_t)(uintptr_t)object.frames - bias, &segment,
			   &segment);
	search->is_found = ts_cfi_find(&cfi, search->address - bias, search->row);
	search->expressions = cfi.frames;
}

bool ts_local_unwind_find_row(uint64_t address, struct ts_cfi_row *ret_row,
			      const uint8_t **ret_expressions)
{
	struct search search = { .address = address, .row = ret_row };

	search_object(&search);
	if (!search.is_found)
		dl_iterate_phdr(search_one, &search);
	*ret_expressions = search.expressions;
	return search.is_found;
}

/* ---- rules ---- */

static uint64_t special(enum ts_local_unwind_special kind)
{
	return TS_LOCAL_UNWIND_SPECIAL | (uint64_t)kind << 2;
}

static bool is_offset(int64_t value)
{
	return value >= 0 && (uint64_t)value <= MAX_OFFSET && value % 8 == 0;
}

/* An expression that is fp + n, then `then` (0: nothing). */
static bool reads_fp(const struct ts_cfi_rule *rule, const uint8_t *expressions, uint8_t then,
		     int64_t *ret_offset)
{
	struct ts_cursor cursor = { .at = expressions + rule->value,
				    .end = expressions + rule->value + rule->bytes };

	if (ts_cursor_u8(&cursor) != BREG + TS_REGISTER_FP)
		return false;
	*ret_offset = ts_cursor_sleb(&cursor);
	if (then && ts_cursor_u8(&cursor) != then)
		return false;
	return !cursor.is_bad && cursor.at == cursor.end;
}

static bool pack_frame(const struct ts_cfi_rule *rule, const uint8_t *expressions, uint64_t *packed)
{
	int64_t offset = rule->value;

	if (rule->kind == TS_CFI_REGISTER && rule->reg == TS_REGISTER_SP)
		*packed |= TS_LOCAL_UNWIND_FROM_SP;
	else if (rule->kind == TS_CFI_REGISTER && rule->reg == TS_REGISTER_FP)
		*packed |= TS_LOCAL_UNWIND_FROM_FP;
	else if (rule->kind == TS_CFI_EXPRESSION && reads_fp(rule, expressions, DEREF, &offset)) {
		*packed |= TS_LOCAL_UNWIND_FROM_MEMORY;
		offset = -offset;
	} else
		return false;
	*packed |= (uint64_t)offset / 8 << 4;
	return is_offset(offset);
}

static bool pack_return(const struct ts_cfi_rule *rule, uint64_t *packed)
{
#if defined(__aarch64__)
	if (rule->kind == TS_CFI_SAME)
		return true;
#endif
	if (rule->kind != TS_CFI_AT || rule->value == 0 || !is_offset(-rule->value))
		return false;
	*packed |= (uint64_t)-rule->value / 8 << 24;
	return true;
}

static bool pack_pointer(const struct ts_cfi_rule *rule, const uint8_t *expressions,
			 uint64_t *packed)
{
	int64_t offset;

	if (rule->kind == TS_CFI_SAME || rule->kind == TS_CFI_UNDEFINED)
		return true;
	if (rule->kind == TS_CFI_AT) {
		offset = -rule->value;
		*packed |= TS_LOCAL_UNWIND_FP_SAVED << 2;
	} else if (rule->kind == TS_CFI_AT_EXPRESSION && reads_fp(rule, expressions, 0, &offset))
		*packed |= TS_LOCAL_UNWIND_FP_AT_FP << 2;
	else
		return false;
	if (!is_offset(offset))
		return false;
	*packed |= (uint64_t)offset / 8 << 44;
	return true;
}

/* The stack pointer is the CFA in everything except signal frames and assembly. */
static uint64_t pack(const struct ts_cfi_row *row, const uint8_t *expressions)
{
	uint64_t packed = 0;

	if (row->rules[row->return_register].kind == TS_CFI_UNDEFINED)
		return special(TS_LOCAL_UNWIND_OUTERMOST);
	if (row->is_signal || row->rules[TS_REGISTER_SP].kind != TS_CFI_SAME ||
	    !pack_frame(&row->frame, expressions, &packed) ||
	    !pack_return(&row->rules[row->return_register], &packed) ||
	    !pack_pointer(&row->rules[TS_REGISTER_FP], expressions, &packed))
		return special(TS_LOCAL_UNWIND_LARGE);
	return packed;
}

/* ---- the table ---- */

static struct ts_local_unwind_table *get_table(void)
{
	struct ts_local_unwind_table *table = __atomic_load_n(&ts_local_unwind_table,
							      __ATOMIC_ACQUIRE),
				     *none = NULL;

	if (table)
		return table;
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (table == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&ts_local_unwind_table, &none, table, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return table;
	munmap(table, sizeof(*table));
	return none;
}

/* Into a free slot, or replacing one that can be recomputed. */
static void keep(uint64_t pc, uint64_t key, uint64_t rule)
{
	struct ts_local_unwind_table *table = get_table();
	struct ts_local_unwind_slot *slots, *slot;

	if (!table)
		return;
	slots = table->slots[ts_local_unwind_bucket(pc)];
	slot = &slots[rule % 8191 % TS_LOCAL_UNWIND_WAYS];
	for (unsigned int i = 0; i < TS_LOCAL_UNWIND_WAYS; i++) {
		if (__atomic_load_n(&slots[i].check, __ATOMIC_RELAXED) == 0) {
			slot = &slots[i];
			break;
		}
	}
	__atomic_store_n(&slot->rule, rule, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->check, ts_local_unwind_check(key, rule), __ATOMIC_RELAXED);
}

/* An unknown address may become known when more is loaded. */
static uint64_t pack_unknown(void)
{
	return special(TS_LOCAL_UNWIND_UNKNOWN) | __atomic_load_n(&seen_loads, __ATOMIC_RELAXED)
							  << 4;
}

bool ts_local_unwind_is_stale(uint64_t rule)
{
	return (rule & 15) == special(TS_LOCAL_UNWIND_UNKNOWN) && rule != pack_unknown();
}

uint64_t ts_local_unwind_make_rule(uint64_t pc)
{
	const uint8_t *expressions;
	struct ts_cfi_row row;
	uint64_t rule;

	dl_iterate_phdr(look_at_first, NULL);
	rule = ts_local_unwind_find_row(pc - 1, &row, &expressions) ? pack(&row, expressions)
								    : pack_unknown();
	keep(pc, ts_local_unwind_key(pc, ts_local_unwind_generation()), rule);
	return rule;
}

/* ---- modules ---- */

struct module_search {
	uint64_t address;
	struct ts_local_unwind_module *module;
	bool is_found;
};

static void read_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * header,
			  struct ts_local_unwind_module *module)
{
	struct ts_cursor cursor = { .at = in_memory(info, header->p_vaddr) };
	ElfW(Nhdr) note;

	cursor.end = cursor.at + header->p_filesz;
	while (!cursor.is_bad && ts_cursor_left(&cursor) >= sizeof(note)) {
		const uint8_t *name;
		size_t bytes;

		ts_cursor_copy(&cursor, &note, sizeof(note));
		name = cursor.at;
		ts_cursor_skip(&cursor, ((uint64_t)note.n_namesz + 3) / 4 * 4);
		bytes = TS_MIN(note.n_descsz, sizeof(module->build_id));
		if (!cursor.is_bad && note.n_type == NOTE_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(name, "GNU", 4) && bytes <= ts_cursor_left(&cursor)) {
			memcpy(module->build_id, cursor.at, bytes);
			module->build_id_bytes = bytes;
			return;
		}
		ts_cursor_skip(&cursor, ((uint64_t)note.n_descsz + 3) / 4 * 4);
	}
}

static void describe(const struct dl_phdr_info *info, struct ts_local_unwind_module *module)
{
	uint64_t low = UINT64_MAX, high = 0;
	size_t length = info->dlpi_name ? strlen(info->dlpi_name) : 0;

	module->bias = info->dlpi_addr;
	length = TS_MIN(length, sizeof(module->path) - 1);
	if (length)
		memcpy(module->path, info->dlpi_name, length);
	module->path[length] = '\0';
	module->build_id_bytes = 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD) {
			low = TS_MIN(low, header->p_vaddr);
			high = TS_MAX(high, header->p_vaddr + header->p_memsz);
		} else if (header->p_type == PT_NOTE && module->build_id_bytes == 0 &&
			   segment_of(info, info->dlpi_addr + header->p_vaddr))
			read_build_id(info, header, module);
	}
	module->start = info->dlpi_addr + low;
	module->bytes = high - low;
}

static int look_for_module(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct module_search *search = context;

	(void)bytes;
	if (!segment_of(info, search->address))
		return 0;
	describe(info, search->module);
	search->is_found = true;
	return 1;
}

bool ts_local_unwind_find_module(uint64_t address, struct ts_local_unwind_module *ret_module)
{
	struct module_search search = { .address = address, .module = ret_module };

	dl_iterate_phdr(look_for_module, &search);
	return search.is_found;
}
