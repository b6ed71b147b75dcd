/* SPDX-License-Identifier: Apache-2.0 */
/* Handwritten call frame information: each instruction, the end of a row, and malformed tables. */
#include "base/memory.h"
#include "code/elf.h"
#include "code/local/cfi.h"

#include <elf.h>

#include "code/local/cursor.h"
#include "unit/runner.h"

#define FRAMES_ADDRESS 0x100000u
#define FUNCTION 0x4000u
#define FUNCTION_BYTES 0x100u

/* A .eh_frame under construction. */
struct fixture {
	uint8_t bytes[4096];
	size_t count;
	size_t record; /* start of the open record */
	struct ts_cfi cfi;
};

static void add(struct fixture *fixture, const void *bytes, size_t count)
{
	memcpy(fixture->bytes + fixture->count, bytes, count);
	fixture->count += count;
}

static void add_u32(struct fixture *fixture, uint32_t value)
{
	add(fixture, &value, sizeof(value));
}

static void open_record(struct fixture *fixture)
{
	fixture->record = fixture->count;
	add_u32(fixture, 0);
}

static void close_record(struct fixture *fixture)
{
	uint32_t bytes;

	while ((fixture->count - fixture->record) % 8 != 4)
		fixture->bytes[fixture->count++] = 0; /* nop */
	bytes = (uint32_t)(fixture->count - fixture->record - 4);
	memcpy(fixture->bytes + fixture->record, &bytes, sizeof(bytes));
}

/* "zR": pc-relative addresses, as compilers write them. cfa = r7 + 8, r16 at cfa - 8. */
static void add_common(struct fixture *fixture, const char *letters)
{
	static const uint8_t factors[] = { 1 /* code */, 0x78 /* data: -8 */, 16 };
	static const uint8_t augmentation[] = { 1, 0x1b };
	static const uint8_t program[] = { 0x0c, 7, 8, 0x80 | 16, 1 };

	open_record(fixture);
	add_u32(fixture, 0);
	add(fixture, "\1", 1);
	add(fixture, letters, strlen(letters) + 1);
	add(fixture, factors, sizeof(factors));
	if (*letters == 'z')
		add(fixture, augmentation, sizeof(augmentation));
	add(fixture, program, sizeof(program));
	close_record(fixture);
}

static void add_frame(struct fixture *fixture, uint64_t start, const uint8_t *program, size_t bytes)
{
	open_record(fixture);
	add_u32(fixture, (uint32_t)fixture->count);
	add_u32(fixture, (uint32_t)(start - (FRAMES_ADDRESS + fixture->count)));
	add_u32(fixture, FUNCTION_BYTES);
	add(fixture, "", 1);
	add(fixture, program, bytes);
	close_record(fixture);
}

static struct fixture *make(const char *letters, const uint8_t *program, size_t bytes)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	TS_CHECK(fixture != NULL);
	add_common(fixture, letters);
	add_frame(fixture, FUNCTION, program, bytes);
	fixture->cfi = (struct ts_cfi){ .machine = EM_X86_64,
					.make_entries = ts_cfi_make_entries,
					.frames = fixture->bytes,
					.frames_bytes = fixture->count,
					.frames_address = FRAMES_ADDRESS };
	return fixture;
}

static void free_fixture(struct fixture *fixture)
{
	ts_cfi_release(&fixture->cfi);
	free(fixture);
}

/* Runs a program up to an address of the function. */
static bool run(const uint8_t *program, size_t bytes, uint64_t offset, struct ts_cfi_row *ret_row)
{
	struct fixture *fixture = make("zR", program, bytes);
	bool is_found = ts_cfi_find(&fixture->cfi, FUNCTION + offset, ret_row);

	free_fixture(fixture);
	return is_found;
}

#define RUN(row, offset, ...) \
	run((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), offset, row)

static void check_rule(const struct ts_cfi_rule *rule, enum ts_cfi_kind kind, int64_t value)
{
	TS_CHECK_INT(rule->kind, kind);
	TS_CHECK_INT(rule->value, value);
}

TS_TEST(the_rules_at_the_begin)
{
	struct ts_cfi_row row;

	TS_CHECK(RUN(&row, 0, 0));
	TS_CHECK_INT(row.start, FUNCTION);
	TS_CHECK_INT(row.end, FUNCTION + FUNCTION_BYTES);
	TS_CHECK_INT(row.return_register, 16);
	TS_CHECK(!row.is_signal && !row.is_signed);
	check_rule(&row.frame, TS_CFI_REGISTER, 8);
	TS_CHECK_INT(row.frame.reg, 7);
	check_rule(&row.rules[16], TS_CFI_AT, -8);
	TS_CHECK_INT(row.rules[6].kind, TS_CFI_SAME);
}

/* push rbp; mov rbp, rsp */
TS_TEST(rules_change_on_the_way)
{
	struct ts_cfi_row row;

#define PROLOGUE 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6
	TS_CHECK(RUN(&row, 0, PROLOGUE));
	TS_CHECK_INT(row.frame.value, 8);
	TS_CHECK(RUN(&row, 1, PROLOGUE));
	TS_CHECK_INT(row.frame.value, 16);
	TS_CHECK_INT(row.frame.reg, 7);
	check_rule(&row.rules[6], TS_CFI_AT, -16);
	TS_CHECK(RUN(&row, 3, PROLOGUE));
	TS_CHECK_INT(row.frame.reg, 7);
	TS_CHECK(RUN(&row, 4, PROLOGUE));
	TS_CHECK_INT(row.frame.reg, 6);
	TS_CHECK_INT(row.frame.value, 16);
	TS_CHECK(RUN(&row, FUNCTION_BYTES - 1, PROLOGUE));
	TS_CHECK_INT(row.frame.reg, 6);
}

TS_TEST(distances_of_all_sizes)
{
	struct ts_cfi_row row;

#define WIDE 0x02, 0x10, 0x0e, 16, 0x03, 0x10, 0, 0x0e, 24, 0x04, 0x10, 0, 0, 0, 0x0e, 32
	TS_CHECK(RUN(&row, 0x0f, WIDE));
	TS_CHECK_INT(row.frame.value, 8);
	TS_CHECK(RUN(&row, 0x10, WIDE));
	TS_CHECK_INT(row.frame.value, 16);
	TS_CHECK(RUN(&row, 0x20, WIDE));
	TS_CHECK_INT(row.frame.value, 24);
	TS_CHECK(RUN(&row, 0x30, WIDE));
	TS_CHECK_INT(row.frame.value, 32);
}

TS_TEST(remembered_and_restored)
{
	struct ts_cfi_row row;

	TS_CHECK(RUN(&row, 0, 0x0e, 64, 0x83, 3, 0x0a, 0x0e, 8, 0xc3, 0x0b));
	TS_CHECK_INT(row.frame.value, 64);
	check_rule(&row.rules[3], TS_CFI_AT, -24);
	TS_CHECK(RUN(&row, 0, 0x83, 3, 0xc3)); /* back to the CIE's rule: none */
	TS_CHECK_INT(row.rules[3].kind, TS_CFI_SAME);
	TS_CHECK(RUN(&row, 0, 0x90, 3, 0xd0)); /* and there: cfa - 8 */
	check_rule(&row.rules[16], TS_CFI_AT, -8);
	TS_CHECK(!RUN(&row, 0, 0x0b)); /* empty stack of states */
	TS_CHECK(!RUN(&row, 0, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a));
}

TS_TEST(every_kind_of_rule)
{
	struct ts_cfi_row row;

	TS_CHECK(RUN(&row, 0, 0x05, 3, 4));
	check_rule(&row.rules[3], TS_CFI_AT, -32);
	TS_CHECK(RUN(&row, 0, 0x07, 16));
	TS_CHECK_INT(row.rules[16].kind, TS_CFI_UNDEFINED);
	TS_CHECK(RUN(&row, 0, 0x07, 3, 0x08, 3));
	TS_CHECK_INT(row.rules[3].kind, TS_CFI_SAME);
	TS_CHECK(RUN(&row, 0, 0x09, 3, 12));
	TS_CHECK_INT(row.rules[3].kind, TS_CFI_REGISTER);
	TS_CHECK_INT(row.rules[3].reg, 12);
	TS_CHECK(RUN(&row, 0, 0x11, 3, 0x7e));
	check_rule(&row.rules[3], TS_CFI_AT, 16);
	TS_CHECK(RUN(&row, 0, 0x12, 6, 0x7e));
	TS_CHECK_INT(row.frame.value, 16);
	TS_CHECK(RUN(&row, 0, 0x13, 0x7d));
	TS_CHECK_INT(row.frame.value, 24);
	TS_CHECK_INT(row.frame.reg, 7);
	TS_CHECK(RUN(&row, 0, 0x14, 7, 2));
	check_rule(&row.rules[7], TS_CFI_SUM, -16);
	TS_CHECK(RUN(&row, 0, 0x15, 7, 0x7e));
	check_rule(&row.rules[7], TS_CFI_SUM, 16);
	TS_CHECK(RUN(&row, 0, 0x10, 3, 2, 0x77, 0));
	TS_CHECK_INT(row.rules[3].kind, TS_CFI_AT_EXPRESSION);
	TS_CHECK_INT(row.rules[3].bytes, 2);
	TS_CHECK(RUN(&row, 0, 0x16, 3, 2, 0x77, 0));
	TS_CHECK_INT(row.rules[3].kind, TS_CFI_EXPRESSION);
	TS_CHECK(RUN(&row, 0, 0x0f, 2, 0x77, 0));
	TS_CHECK_INT(row.frame.kind, TS_CFI_EXPRESSION);
	TS_CHECK(RUN(&row, 0, 0x2e, 16)); /* GNU_args_size */
	TS_CHECK(RUN(&row, 0, 0x2f, 3, 2));
	check_rule(&row.rules[3], TS_CFI_AT, 16);
	TS_CHECK(RUN(&row, 0, 0x05, 64, 4)); /* a vector register: not tracked */
}

TS_TEST(signed_return_addresses)
{
	struct ts_cfi_row row;

	TS_CHECK(RUN(&row, 3, 0x44, 0x2d));
	TS_CHECK(!row.is_signed);
	TS_CHECK(RUN(&row, 4, 0x44, 0x2d));
	TS_CHECK(row.is_signed);
	TS_CHECK(RUN(&row, 8, 0x44, 0x2d, 0x44, 0x2d));
	TS_CHECK(!row.is_signed);
}

TS_TEST(signal_frames)
{
	struct fixture *fixture = make("zRS", (const uint8_t[]){ 0 }, 1);
	struct ts_cfi_row row;

	TS_CHECK(ts_cfi_find(&fixture->cfi, FUNCTION, &row));
	TS_CHECK(row.is_signal);
	free_fixture(fixture);
}

TS_TEST(addresses_outside_have_no_row)
{
	struct ts_cfi_row row;

	TS_CHECK(!RUN(&row, (uint64_t)-1, 0));
	TS_CHECK(RUN(&row, FUNCTION_BYTES - 1, 0));
	TS_CHECK(!RUN(&row, FUNCTION_BYTES, 0));
}

TS_TEST(many_functions_in_any_order)
{
	struct fixture *fixture = make("zR", (const uint8_t[]){ 0x0e, 8 }, 2);
	struct ts_cfi_row row;

	for (uint8_t i = 10; i > 0; i--)
		add_frame(fixture, FUNCTION + i * 0x1000u, (const uint8_t[]){ 0x0e, i }, 2);
	fixture->cfi.frames_bytes = fixture->count;
	for (uint8_t i = 10; i > 0; i--) {
		TS_CHECK(ts_cfi_find(&fixture->cfi, FUNCTION + i * 0x1000u + 5, &row));
		TS_CHECK_INT(row.frame.value, i);
		TS_CHECK(!ts_cfi_find(&fixture->cfi, FUNCTION + i * 0x1000u - 5, &row));
	}
	free_fixture(fixture);
}

TS_TEST(nonsense_is_refused)
{
	struct ts_cfi_row row;
	struct fixture *fixture;

	TS_CHECK(!RUN(&row, 0, 0x3f));                   /* no such instruction */
	TS_CHECK(!RUN(&row, 0, 0x0c, 40, 8));            /* no such register */
	TS_CHECK(!RUN(&row, 0, 0x0f, 100, 0x77));        /* an expression beyond the end */
	TS_CHECK(!RUN(&row, 0, 0x0f, 1, 0x50, 0x0e, 8)); /* an offset to an invalid register */
	for (size_t cut = 1; cut < 60; cut++) {
		fixture = make("zR", (const uint8_t[]){ 0x0e, 16 }, 2);
		fixture->cfi.frames_bytes -= TS_MIN(cut, fixture->cfi.frames_bytes);
		TS_CHECK(!ts_cfi_find(&fixture->cfi, FUNCTION, &row));
		free_fixture(fixture);
	}
}

TS_TEST(damage_does_no_harm)
{
	struct ts_cfi_row row;

	srand(1);
	for (int round = 0; round < 5000; round++) {
		struct fixture *fixture = make("zR", (const uint8_t[]){ PROLOGUE, WIDE }, 24);

		for (int i = 0; i < 3; i++)
			fixture->bytes[(size_t)rand() % fixture->count] = (uint8_t)rand();
		ts_cfi_find(&fixture->cfi, FUNCTION + (unsigned int)rand() % 64, &row);
		free_fixture(fixture);
	}
}

/* ---- expressions ---- */

static bool evaluate(const uint8_t *expression, size_t bytes, uint64_t *ret_value)
{
	static const uint64_t words[] = { 0x1122334455667788u, 7 };
	const struct ts_cfi_memory memory = { .bytes = (const uint8_t *)words,
					      .address = 0x1000,
					      .count = sizeof(words) };
	struct ts_unwind_registers registers = { .known = 1u << 7 | 1u << 16 };
	uint64_t first = 100;

	registers.values[7] = 0x1000;
	registers.values[16] = 0x400b;
	return ts_cfi_evaluate(expression, bytes, &registers, &memory, &first, ret_value);
}

#define VALUE_IS(value_, ...)                                    \
	do {                                                     \
		const uint8_t code_[] = { __VA_ARGS__ };         \
		uint64_t got_;                                   \
		TS_CHECK(evaluate(code_, sizeof(code_), &got_)); \
		TS_CHECK_INT(got_, value_);                      \
	} while (0)

#define HAS_NO_VALUE(...)                                         \
	do {                                                      \
		const uint8_t code_[] = { __VA_ARGS__ };          \
		uint64_t got_;                                    \
		TS_CHECK(!evaluate(code_, sizeof(code_), &got_)); \
	} while (0)

TS_TEST(expressions)
{
	VALUE_IS(100, 0x96);
	VALUE_IS(5, 0x35);
	VALUE_IS(0x1008, 0x77, 8);
	VALUE_IS(7, 0x77, 8, 0x06);                /* deref */
	VALUE_IS(0x88, 0x77, 0, 0x94, 1);          /* deref_size */
	VALUE_IS(102, 0x23, 2);                    /* plus_uconst */
	VALUE_IS(98, 0x32, 0x1c);                  /* minus */
	VALUE_IS(-1, 0x09, 0xff);                  /* const1s */
	VALUE_IS(0xffff, 0x0a, 0xff, 0xff);        /* const2u */
	VALUE_IS(1, 0x32, 0x32, 0x29);             /* eq */
	VALUE_IS(100, 0x31, 0x16);                 /* swap */
	VALUE_IS(-1, 0x09, 0x80, 0x3a, 0x26);      /* shra */
	VALUE_IS(3, 0x30, 0x28, 1, 0, 0x33, 0x96); /* bra: not taken */
	VALUE_IS(2, 0x32, 0x31, 0x28, 1, 0, 0x35); /* bra: taken over a literal */
	/* As in PLT stubs: 8 more once the index is pushed, ((pc & 15) >= 11) << 3. */
	VALUE_IS(0x1010, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
}

TS_TEST(expressions_without_a_value)
{
	HAS_NO_VALUE(0x13);                   /* an empty stack */
	HAS_NO_VALUE(0x13, 0x13);             /* too few values */
	HAS_NO_VALUE(0x73, 0);                /* an unknown register */
	HAS_NO_VALUE(0x77, 16, 0x06);         /* unmapped memory */
	HAS_NO_VALUE(0x30, 0x1b);             /* division by zero */
	HAS_NO_VALUE(0x2f, 0xfd, 0xff);       /* endless loop */
	HAS_NO_VALUE(0x2f, 0xfc, 0xff);       /* before the beginning */
	HAS_NO_VALUE(0x2f, 5, 0);             /* beyond the end */
	HAS_NO_VALUE(0xff);                   /* no such operation */
	HAS_NO_VALUE(0x0e, 1, 2);             /* truncated */
	HAS_NO_VALUE(0x12, 0x2f, 0xfc, 0xff); /* growing without end */
}
