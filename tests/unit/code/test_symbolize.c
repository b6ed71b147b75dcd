/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of this program itself, whose functions and lines the compiler knows; then with the file
 * stripped, split, moved, deleted, replaced, and damaged in a thousand ways.
 */
#include "code/symbolize.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/dwarf.h"
#include "code/elf.h"
#include "code/maps.h"
#include "unit/runner.h"

#define MAX_SYMBOLS 8

/* Symbols found for one address. */
struct report {
	size_t count;
	struct {
		char name[64], file[256];
		int64_t line;
	} symbols[MAX_SYMBOLS];
};

struct location {
	uint64_t address;
	int line;
};

/* ---- known addresses in this program ---- */

/* An address on the line of this macro. */
#if defined(__x86_64__)
#define CURRENT_ADDRESS(address) __asm__ volatile("leaq -1(%%rip), %0" : "=r"(address))
#else
#define CURRENT_ADDRESS(address) __asm__ volatile("adr %0, ." : "=r"(address))
#endif

static inline __attribute__((always_inline)) uint64_t symbol_test_inner(int *line)
{
	uint64_t address_here;

	*line = __LINE__ + 1;
	CURRENT_ADDRESS(address_here);
	return address_here;
}

static inline __attribute__((always_inline)) uint64_t symbol_test_middle(int *line)
{
	return symbol_test_inner(line);
}

__attribute__((noinline)) struct location symbol_test_outer(void);
struct location symbol_test_outer(void)
{
	struct location location;

	location.address = symbol_test_middle(&location.line);
	return location;
}

/* ---- queries ---- */

static void read_self(char *path, size_t bytes, char *build_id, uint64_t *ret_bias)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	const struct ts_map_range *range;
	TS_AUTO(ts_elf) elf = NULL;
	ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	TS_CHECK(length > 0 && fd >= 0);
	path[length] = '\0';
	TS_CHECK_INT(ts_elf_open(&elf, fd, "self", NULL), 0);
	close(fd);
	snprintf(build_id, 129, "%s", ts_elf_build_id(elf));
	TS_CHECK_INT(ts_maps_read(&maps, getpid(), NULL), 0);
	range = ts_maps_find(&maps, (uintptr_t)symbol_test_outer);
	TS_CHECK(range != NULL);
	TS_CHECK(ts_elf_bias(elf, range->start, range->file_offset, true, ret_bias));
}

static int keep(void *context, const struct ts_symbolize_module *module, size_t address,
		const struct ts_symbol *symbols, size_t count, struct ts_error *err)
{
	struct report *report = (struct report *)context + address;

	(void)module;
	(void)err;
	report->count = TS_MIN(count, MAX_SYMBOLS);
	for (size_t i = 0; i < report->count; i++) {
		snprintf(report->symbols[i].name, sizeof(report->symbols[i].name), "%s",
			 symbols[i].name);
		snprintf(report->symbols[i].file, sizeof(report->symbols[i].file), "%s",
			 symbols[i].file);
		report->symbols[i].line = symbols[i].line;
	}
	return 0;
}

/* One address of one binary. */
static enum ts_symbolize_state symbolize_with_patience(int64_t patience_ns, const char *path,
						       const char *build_id, const char *folder,
						       uint64_t address, struct report *report)
{
	struct ts_symbolize_module module = {
		.path = path, .build_id = build_id, .addresses = &address, .count = 1
	};
	const struct ts_symbolize_options options = {
		.folders = &folder,
		.folder_count = folder ? 1 : 0,
		.recorded_ns = INT64_MAX,
		.patience_ns = patience_ns,
		.found = keep,
		.context = report,
	};
	struct ts_error err;

	*report = (struct report){ 0 };
	if (ts_symbolize(&module, 1, &options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(module.named, report->count > 0);
	return module.state;
}

static enum ts_symbolize_state symbolize(const char *path, const char *build_id, const char *folder,
					 uint64_t address, struct report *report)
{
	return symbolize_with_patience(0, path, build_id, folder, address, report);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* ---- the program as built ---- */

TS_TEST(inlined_functions_have_names_and_lines)
{
	struct location location = symbol_test_outer();
	char path[4096], build_id[129];
	struct report report;
	uint64_t bias;

	read_self(path, sizeof(path), build_id, &bias);
	if (symbolize(path, build_id, NULL, location.address - bias, &report) != TS_SYMBOLIZE_LINES)
		ts_test_skip("no libdw, or built without debug information");
	TS_CHECK_INT(report.count, 3);
	TS_CHECK_STR(report.symbols[0].name, "symbol_test_inner");
	TS_CHECK_STR(report.symbols[1].name, "symbol_test_middle");
	TS_CHECK_STR(report.symbols[2].name, "symbol_test_outer");
	TS_CHECK_INT(report.symbols[0].line, location.line);
	for (size_t i = 0; i < 3; i++)
		TS_CHECK(ends_with(report.symbols[i].file, "unit/code/test_symbolize.c"));
	TS_CHECK(report.symbols[2].line > report.symbols[1].line);
}

TS_TEST(what_is_no_code_has_no_name)
{
	char path[4096], build_id[129];
	struct report report;
	uint64_t bias;

	read_self(path, sizeof(path), build_id, &bias);
	TS_CHECK(symbolize(path, build_id, NULL, UINT64_MAX, &report) >= TS_SYMBOLIZE_FUNCTIONS);
	TS_CHECK_INT(report.count, 0);
	symbolize(path, build_id, NULL, UINT64_C(1) << 40, &report);
	TS_CHECK_INT(report.count, 0);
}

/* ---- other files ---- */

struct scene {
	char folder[64], path[4096], build_id[129];
	struct location location;
};

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
	char command[10000];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	if (system(command) != 0)
		ts_test_fail(__FILE__, __LINE__, "failed: %s", command);
}

static void need_objcopy(void)
{
	if (system("command -v objcopy >/dev/null") != 0)
		ts_test_skip("no objcopy on this machine");
}

static void make_scene(struct scene *scene)
{
	uint64_t bias;

	snprintf(scene->folder, sizeof(scene->folder), "/tmp/tracesmith-symbols-XXXXXX");
	TS_CHECK(mkdtemp(scene->folder) != NULL);
	read_self(scene->path, sizeof(scene->path), scene->build_id, &bias);
	if (!*scene->build_id)
		ts_test_skip("this linker makes no build ids");
	scene->location = symbol_test_outer();
	scene->location.address -= bias;
}

static void remove_scene(const struct scene *scene)
{
	run("rm -r '%s'", scene->folder);
}

TS_TEST(debug_files_are_found_by_build_id)
{
	struct scene scene;
	char stripped[128], debug[128];
	struct report report;

	need_objcopy();
	make_scene(&scene);
	snprintf(stripped, sizeof(stripped), "%s/program", scene.folder);
	run("objcopy --strip-all '%s' '%s' 2>/dev/null", scene.path, stripped);
	TS_CHECK_INT(symbolize(stripped, scene.build_id, NULL, scene.location.address, &report),
		     TS_SYMBOLIZE_FUNCTIONS);
	TS_CHECK_INT(report.count, 0);
	run("mkdir -p '%s/debug/.build-id/%.2s' && objcopy --only-keep-debug '%s' '%s/debug/.build-id/%.2s/%s.debug'",
	    scene.folder, scene.build_id, scene.path, scene.folder, scene.build_id,
	    scene.build_id + 2);
	snprintf(debug, sizeof(debug), "%s/debug", scene.folder);
	symbolize(stripped, scene.build_id, debug, scene.location.address, &report);
	TS_CHECK(report.count > 0);
	TS_CHECK_STR(report.symbols[report.count - 1].name, "symbol_test_outer");
	/* Also without the binary. */
	TS_CHECK_INT(unlink(stripped), 0);
	symbolize(stripped, scene.build_id, debug, scene.location.address, &report);
	TS_CHECK(report.count > 0);
	remove_scene(&scene);
}

TS_TEST(binaries_are_found_in_folders_by_name)
{
	struct scene scene;
	struct report report;

	make_scene(&scene);
	run("cp '%s' '%s/moved'", scene.path, scene.folder);
	TS_CHECK_INT(
		symbolize("/nowhere/moved", scene.build_id, NULL, scene.location.address, &report),
		TS_SYMBOLIZE_NO_FILE);
	TS_CHECK(symbolize("/nowhere/moved", scene.build_id, scene.folder, scene.location.address,
			   &report) >= TS_SYMBOLIZE_FUNCTIONS);
	TS_CHECK(report.count > 0);
	TS_CHECK_STR(report.symbols[report.count - 1].name, "symbol_test_outer");
	remove_scene(&scene);
}

TS_TEST(another_build_is_refused)
{
	struct scene scene;
	struct report report;

	make_scene(&scene);
	scene.build_id[0] = scene.build_id[0] == 'a' ? 'b' : 'a';
	TS_CHECK_INT(symbolize(scene.path, scene.build_id, NULL, scene.location.address, &report),
		     TS_SYMBOLIZE_OTHER_BUILD);
	TS_CHECK_INT(report.count, 0);
	/* A build id cannot lead out of the folder. */
	TS_CHECK_INT(symbolize("/nowhere", "../../../../etc/passwd", scene.folder, 0, &report),
		     TS_SYMBOLIZE_NO_FILE);
	remove_scene(&scene);
}

TS_TEST(files_without_a_build_id_must_be_old)
{
	struct scene scene;
	struct report report;
	struct ts_symbolize_module module = { .count = 1, .build_id = "" };
	struct ts_symbolize_options options = { .recorded_ns = 1,
						.found = keep,
						.context = &report };
	char plain[128];

	need_objcopy();
	make_scene(&scene);
	snprintf(plain, sizeof(plain), "%s/plain", scene.folder);
	run("objcopy --remove-section .note.gnu.build-id '%s' '%s' 2>/dev/null", scene.path, plain);
	module.path = plain;
	module.addresses = &scene.location.address;
	TS_CHECK_INT(ts_symbolize(&module, 1, &options, NULL), 0);
	TS_CHECK_INT(module.state, TS_SYMBOLIZE_CHANGED);
	options.recorded_ns = INT64_MAX;
	TS_CHECK_INT(ts_symbolize(&module, 1, &options, NULL), 0);
	TS_CHECK(module.state >= TS_SYMBOLIZE_FUNCTIONS);
	remove_scene(&scene);
}

/* ---- damage ---- */

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state >> 33;
}

static char *read_all(const char *path, size_t *ret_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	char *bytes;
	size_t done = 0;

	TS_CHECK(fd >= 0 && !fstat(fd, &about));
	*ret_bytes = (size_t)about.st_size;
	bytes = malloc(*ret_bytes);
	TS_CHECK(bytes != NULL);
	while (done < *ret_bytes) {
		ssize_t got = read(fd, bytes + done, *ret_bytes - done);

		TS_CHECK(got > 0);
		done += (size_t)got;
	}
	close(fd);
	return bytes;
}

static void write_all(const char *path, const char *bytes, size_t count)
{
	FILE *file = fopen(path, "wbe");

	TS_CHECK(file != NULL);
	TS_CHECK_INT(fwrite(bytes, 1, count, file), count);
	TS_CHECK_INT(fclose(file), 0);
}

#define DAMAGES 24
#define SHORT_PATIENCE_NS INT64_C(1000000000)

/* Workers may die or be killed; this process survives, and later results are right. */
TS_TEST(damaged_files_do_no_harm)
{
	struct scene scene;
	char path[128];
	size_t bytes;
	uint64_t state = 42;
	struct report report;
	char *image;

	make_scene(&scene);
	snprintf(path, sizeof(path), "%s/damaged", scene.folder);
	image = read_all(scene.path, &bytes);
	for (int i = 0; i < DAMAGES; i++) {
		char *copy = malloc(bytes);

		TS_CHECK(copy != NULL);
		memcpy(copy, image, bytes);
		for (size_t k = 0; k < 1 + bytes / 2000; k++)
			copy[4096 + next_random(&state) % (bytes - 4096)] =
				(char)next_random(&state);
		write_all(path, copy, i % 4 ? bytes : next_random(&state) % bytes);
		symbolize_with_patience(SHORT_PATIENCE_NS, path, scene.build_id, NULL,
					scene.location.address, &report);
		free(copy);
	}
	write_all(path, image, bytes);
	TS_CHECK(symbolize(path, scene.build_id, NULL, scene.location.address, &report) >=
		 TS_SYMBOLIZE_FUNCTIONS);
	TS_CHECK(report.count > 0);
	free(image);
	remove_scene(&scene);
}

/* A trace may name anything. */
TS_TEST(what_is_no_file_is_not_opened)
{
	struct report report;

	TS_CHECK_INT(symbolize("/dev/zero", "", NULL, 0, &report), TS_SYMBOLIZE_NO_FILE);
	TS_CHECK_INT(symbolize("/tmp", "", NULL, 0, &report), TS_SYMBOLIZE_NO_FILE);
	TS_CHECK_INT(symbolize("[vdso]", "", NULL, 0, &report), TS_SYMBOLIZE_NO_FILE);
	TS_CHECK_INT(symbolize("", "", NULL, 0, &report), TS_SYMBOLIZE_NO_FILE);
	TS_CHECK_INT(symbolize("/usr/lib/gone.so (deleted)", "ab12cd34", NULL, 0, &report),
		     TS_SYMBOLIZE_NO_FILE);
}
