/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information through libdw, opened with dlopen(). */
#include "code/dwarf.h"

#include "tracesmith_config.h"

#ifdef TS_HAVE_LIBDW

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <pthread.h>
#include <stdlib.h>

/* Large programs have tens of thousands of units; more than this is damage. */
#define MAX_UNITS 4000000u
#define MAX_RANGES 1000000

/* The functions used of the library, which is not linked since not every machine has it. */
#define FUNCTIONS(X)            \
	X(dwarf_begin)          \
	X(dwarf_end)            \
	X(dwarf_nextcu)         \
	X(dwarf_offdie)         \
	X(dwarf_ranges)         \
	X(dwarf_getsrc_die)     \
	X(dwarf_lineno)         \
	X(dwarf_linesrc)        \
	X(dwarf_getscopes)      \
	X(dwarf_getscopes_die)  \
	X(dwarf_tag)            \
	X(dwarf_diename)        \
	X(dwarf_attr)           \
	X(dwarf_attr_integrate) \
	X(dwarf_formstring)     \
	X(dwarf_formudata)      \
	X(dwarf_getsrcfiles)    \
	X(dwarf_filesrc)

static struct {
	bool is_loaded;
#define MEMBER(name) __typeof__(&name) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} dw;

static void find_library(void)
{
	void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	dw.is_loaded = library != NULL;
#define FIND(name)                                                                 \
	if (library) {                                                             \
		void *found = dlsym(library, #name);                               \
                                                                                   \
		/*                                                                 \
		 * Converts a data pointer to a function pointer, as POSIX allows. \
		 */                                                                \
		memcpy(&dw.name, &found, sizeof(found));                           \
		dw.is_loaded &= found != NULL;                                     \
	}
	FUNCTIONS(FIND)
#undef FIND
}

bool ts_dwarf_is_available(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_library);
	return dw.is_loaded;
}

/* Address range of a compilation unit. */
struct stretch {
	uint64_t start, end;
	Dwarf_Off unit; /* offset of its first entry */
};

struct ts_dwarf {
	Dwarf *dwarf;
	struct stretch *stretches; /* by start */
	size_t count, capacity;
};

/* ---- which unit an address is of ---- */

static int add_unit(struct ts_dwarf *dwarf, Dwarf_Off offset)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t at = 0;
	Dwarf_Die unit;

	if (!dw.dwarf_offdie(dwarf->dwarf, offset, &unit) ||
	    dw.dwarf_tag(&unit) != DW_TAG_compile_unit)
		return TS_OK;
	for (unsigned int i = 0; i < MAX_RANGES; i++) {
		at = dw.dwarf_ranges(&unit, at, &base, &start, &end);
		if (at <= 0)
			break;
		if (start >= end)
			continue;
		if (ts_grow_array((void **)&dwarf->stretches, &dwarf->capacity, dwarf->count + 1,
				  sizeof(*dwarf->stretches)))
			return TS_ENOMEM;
		dwarf->stretches[dwarf->count++] = (struct stretch){ start, end, offset };
	}
	return TS_OK;
}

static int compare_stretches(const void *left, const void *right)
{
	const struct stretch *a = left, *b = right;

	return a->start != b->start ? TS_COMPARE(a->start, b->start) : TS_COMPARE(a->unit, b->unit);
}

/* Not from .debug_aranges, which many compilers omit. */
static int list_units(struct ts_dwarf *dwarf, struct ts_error *err)
{
	Dwarf_Off offset = 0, next;
	size_t header_bytes;

	for (unsigned int i = 0; i < MAX_UNITS; i++) {
		if (dw.dwarf_nextcu(dwarf->dwarf, offset, &next, &header_bytes, NULL, NULL, NULL))
			break;
		if (add_unit(dwarf, offset + header_bytes))
			return ts_error_set(err, TS_ENOMEM, "no memory");
		if (next <= offset)
			break;
		offset = next;
	}
	ts_sort(dwarf->stretches, dwarf->count, sizeof(*dwarf->stretches), compare_stretches);
	return dwarf->count ? TS_OK : ts_error_set(err, TS_ENOTFOUND, "no debug information");
}

static const struct stretch *find_stretch(const struct ts_dwarf *dwarf, uint64_t address)
{
	size_t low = 0, high = dwarf->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (dwarf->stretches[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= dwarf->stretches[low - 1].end)
		return NULL;
	return &dwarf->stretches[low - 1];
}

int ts_dwarf_open(struct ts_dwarf **ret_dwarf, int fd, struct ts_error *err)
{
	TS_AUTO(ts_dwarf) dwarf = NULL;
	int rc;

	if (!ts_dwarf_is_available())
		return ts_error_set(err, TS_ENOTFOUND, "libdw is not installed");
	dwarf = calloc(1, sizeof(*dwarf));
	if (!dwarf)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	dwarf->dwarf = dw.dwarf_begin(fd, DWARF_C_READ);
	if (!dwarf->dwarf)
		return ts_error_set(err, TS_ENOTFOUND, "no debug information");
	rc = list_units(dwarf, err);
	if (!rc)
		*ret_dwarf = TS_STEAL(dwarf);
	return rc;
}

void ts_dwarf_close(struct ts_dwarf *dwarf)
{
	if (!dwarf)
		return;
	if (dwarf->dwarf)
		dw.dwarf_end(dwarf->dwarf);
	free(dwarf->stretches);
	free(dwarf);
}

/* ---- the functions at an address ---- */

static const char *name_of(Dwarf_Die *function)
{
	static const unsigned int linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;
	const char *name;

	for (size_t i = 0; i < TS_ARRAY_SIZE(linkage); i++) {
		if (!dw.dwarf_attr_integrate(function, linkage[i], &attribute))
			continue;
		name = dw.dwarf_formstring(&attribute);
		if (name)
			return name;
	}
	if (!dw.dwarf_attr_integrate(function, DW_AT_name, &attribute))
		return dw.dwarf_diename(function);
	return dw.dwarf_formstring(&attribute);
}

/* Call site of an inlined function: the line to show for its caller. */
static void find_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct ts_dwarf_function *caller)
{
	Dwarf_Attribute attribute;
	Dwarf_Word line = 0, number = 0;
	Dwarf_Files *files;
	size_t count;

	if (dw.dwarf_attr(inlined, DW_AT_call_line, &attribute) &&
	    !dw.dwarf_formudata(&attribute, &line) && line <= INT32_MAX)
		caller->line = (int64_t)line;
	if (dw.dwarf_attr(inlined, DW_AT_call_file, &attribute) &&
	    !dw.dwarf_formudata(&attribute, &number) &&
	    !dw.dwarf_getsrcfiles(unit, &files, &count) && number < count)
		caller->file = dw.dwarf_filesrc(files, number, NULL, NULL);
}

static void find_line(Dwarf_Die *unit, uint64_t address, struct ts_dwarf_function *function)
{
	Dwarf_Line *line = dw.dwarf_getsrc_die(unit, address);
	int number;

	if (!line)
		return;
	function->file = dw.dwarf_linesrc(line, NULL, NULL);
	if (!dw.dwarf_lineno(line, &number) && number > 0)
		function->line = number;
}

/* From the innermost scope outwards to the enclosing function. */
static size_t list_functions(Dwarf_Die *unit, Dwarf_Die *scopes, int scope_count,
			     struct ts_dwarf_function *functions, size_t most)
{
	size_t count = 0;

	for (int i = 0; i < scope_count && count < most; i++) {
		int tag = dw.dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		functions[count++].name = name_of(&scopes[i]);
		if (tag == DW_TAG_subprogram)
			break;
		if (count < most)
			find_call(unit, &scopes[i], &functions[count]);
	}
	return count;
}

static size_t find_scopes(Dwarf_Die *unit, uint64_t address, struct ts_dwarf_function *functions,
			  size_t most)
{
	Dwarf_Die *scopes = NULL, *around = NULL;
	int count = dw.dwarf_getscopes(unit, address, &scopes);
	size_t found = 0;

	/* Those are lexical scopes; the inlining chain is needed. */
	if (count > 0)
		count = dw.dwarf_getscopes_die(&scopes[0], &around);
	if (count > 0)
		found = list_functions(unit, around, count, functions, most);
	free(scopes);
	free(around);
	return found;
}

size_t ts_dwarf_functions_at(struct ts_dwarf *dwarf, uint64_t address,
			     struct ts_dwarf_function *ret_functions, size_t most)
{
	const struct stretch *stretch = find_stretch(dwarf, address);
	size_t count;
	Dwarf_Die unit;

	if (!stretch || most == 0 || !dw.dwarf_offdie(dwarf->dwarf, stretch->unit, &unit))
		return 0;
	memset(ret_functions, 0, most * sizeof(*ret_functions));
	find_line(&unit, address, &ret_functions[0]);
	count = find_scopes(&unit, address, ret_functions, most);
	/* A line without a function: assembly. */
	return count ? count : ret_functions[0].file != NULL;
}

#else

bool ts_dwarf_is_available(void)
{
	return false;
}

int ts_dwarf_open(struct ts_dwarf **ret_dwarf, int fd, struct ts_error *err)
{
	(void)ret_dwarf;
	(void)fd;
	return ts_error_set(err, TS_ENOTFOUND, "this build has no libdw");
}

void ts_dwarf_close(struct ts_dwarf *dwarf)
{
	(void)dwarf;
}

size_t ts_dwarf_functions_at(struct ts_dwarf *dwarf, uint64_t address,
			     struct ts_dwarf_function *ret_functions, size_t most)
{
	(void)dwarf;
	(void)address;
	(void)ret_functions;
	(void)most;
	return 0;
}

#endif
