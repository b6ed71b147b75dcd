/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the Python runtime of a process: the symbol or section of _PyRuntime in the program or in
 * libpython, else by searching their data for what only a runtime looks like.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "code/elf.h"
#include "code/maps.h"
#include "python/reader/python_reader_internal.h"

#define SCAN_BYTES 65536u       /* bytes at once */
#define MAX_SCANNED (64u << 20) /* of one file's data */
#define MAX_BINARIES 16

/* A file that may contain a runtime. */
struct binary {
	const struct ts_map_range *range; /* executable */
	struct ts_elf *elf;
	uint64_t bias;
};

struct search {
	struct ts_python_memory *memory;
	pid_t pid;
	struct ts_maps maps;
	struct python_runtime *runtime_info;
	unsigned int version;   /* PY_VERSION_HEX; 0: unknown */
	bool is_starting;       /* there is a runtime, but not initialised yet */
	unsigned int old_minor; /* version of a Python without a runtime, by its name; 0: none */
	unsigned int old_major;
};

void ts_python_process_name(pid_t pid, char *buffer, size_t bytes)
{
	buffer[0] = '\0';
	ts_process_name(pid, buffer, bytes);
	if (!buffer[0])
		snprintf(buffer, bytes, "?");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- is it one ---- */

static bool is_address(uint64_t address)
{
	return address >= 4096 && address < UINT64_C(1) << 56 && !(address & 7);
}

int ts_python_probe(struct ts_python_memory *memory, const struct ts_python_layout *layout,
		    uint64_t runtime)
{
	uint64_t interpreter, thread, back;

	if (!ts_python_memory_read_pointer(memory, runtime + layout->runtime.interpreters_head,
					   &interpreter))
		return -1;
	if (!interpreter)
		return 0;
	if (!is_address(interpreter) ||
	    !ts_python_memory_read_pointer(memory, interpreter + layout->interpreter.threads_head,
					   &thread))
		return -1;
	if (!thread)
		return 0;
	if (!is_address(thread) ||
	    !ts_python_memory_read_pointer(memory, thread + layout->thread.interpreter, &back))
		return -1;
	return back == interpreter ? 1 : -1;
}

/* ---- which version ---- */

/* "3.9" of "libpython3.9.so.1.0", "python3.9-dbg", "python3.9d". */
static bool version_of_name(const char *name, unsigned int *ret_major, unsigned int *ret_minor)
{
	const char *at = strstr(name, "python");
	char *end;

	if (!at || !isdigit((unsigned char)at[6]))
		return false;
	*ret_major = (unsigned int)strtoul(at + 6, &end, 10);
	if (*end != '.' || !isdigit((unsigned char)end[1]))
		return false;
	*ret_minor = (unsigned int)strtoul(end + 1, NULL, 10);
	return *ret_major < 256 && *ret_minor < 256;
}

/* "3.9.2", "3.14.0rc2", "3.9.2+" as PY_VERSION_HEX. 0: not a version. */
static unsigned int version_of_text(const char *text, size_t length)
{
	unsigned int numbers[3] = { 0 }, level = 0xf, serial = 0, count = 0;
	size_t at = 0;

	for (; count < 3; count++) {
		size_t start = at;

		for (; at < length && isdigit((unsigned char)text[at]) && at - start < 3; at++)
			numbers[count] = numbers[count] * 10 + (unsigned int)(text[at] - '0');
		if (at == start || (count < 2 && (at >= length || text[at++] != '.')))
			return 0;
	}
	if (at < length && (text[at] == 'a' || text[at] == 'b' || text[at] == 'r')) {
		level = text[at] == 'a' ? 0xa : text[at] == 'b' ? 0xb : 0xc;
		at += text[at] == 'r' ? 2 : 1;
		for (; at < length && isdigit((unsigned char)text[at]); at++)
			serial = serial * 10 + (unsigned int)(text[at] - '0');
	}
	if (at < length && text[at] == '+')
		at++;
	if (at != length || numbers[0] != 3 || numbers[1] > 255 || numbers[2] > 255)
		return 0;
	return 3u << 24 | numbers[1] << 16 | numbers[2] << 8 | level << 4 | (serial & 0xf);
}

/*
 * The start of Py_GetVersion()'s text among the constants; linkers may merge it into the end of a
 * longer string. `minor` 0: any.
 */
static unsigned int version_in_constants(const struct ts_elf *elf, unsigned int minor)
{
	size_t bytes;
	const char *data = ts_elf_section_bytes(elf, ".rodata", &bytes);

	for (size_t at = 0; data && at + 5 < bytes;) {
		const char *text = memchr(data + at, '3', bytes - at - 5);
		const char *end;
		unsigned int version;

		if (!text)
			break;
		at = (size_t)(text - data) + 1;
		if (text[1] != '.' ||
		    (text > data && (isalnum((unsigned char)text[-1]) || text[-1] == '.')))
			continue;
		end = memchr(text, '\0', TS_MIN(bytes - at, (size_t)16));
		version = end ? version_of_text(text, (size_t)(end - text)) : 0;
		if (version && (!minor || (version >> 16 & 0xff) == minor))
			return version;
	}
	return 0;
}

static void find_version(struct search *search, const struct binary *binary)
{
	struct ts_elf_range symbol;
	unsigned int major, minor = 0;
	uint64_t word;

	search->version = 0;
	if (ts_elf_symbol(binary->elf, "Py_Version", &symbol) &&
	    ts_python_memory_read_pointer(search->memory, binary->bias + symbol.address, &word) &&
	    word >> 24 == 3)
		search->version = (unsigned int)word;
	if (search->version)
		return;
	if (version_of_name(base_name(binary->range->path), &major, &minor) && major != 3)
		return;
	search->version = version_in_constants(binary->elf, minor);
	if (!search->version && minor)
		search->version = 3u << 24 | minor << 16 | 0xf0;
}

/* ---- what is there ---- */

static void describe(struct search *search, const struct binary *binary, const char *found_by)
{
	static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	struct ts_python_info *about = &search->runtime_info->about;
	struct ts_python_layout *layout = &search->runtime_info->layout;
	unsigned int version = search->version, level = version >> 4 & 0xf;
	char serial[8] = "";
	struct ts_elf_range symbol;

	layout->is_debug = ts_elf_symbol(binary->elf, "_Py_NegativeRefcount", &symbol) ||
			   ts_elf_symbol(binary->elf, "_Py_RefTotal", &symbol);
	about->major = version >> 24;
	about->minor = version >> 16 & 0xff;
	about->patch = version >> 8 & 0xff;
	about->is_debug = layout->is_debug;
	about->is_free_threaded = layout->is_free_threaded;
	about->found_by = found_by;
	if (levels[level])
		snprintf(serial, sizeof(serial), "%s%u", levels[level], version & 0xf);
	snprintf(about->version, sizeof(about->version), "%u.%u.%u%s%s%s", about->major,
		 about->minor, about->patch, serial,
		 about->is_free_threaded ? " free-threaded" : "", about->is_debug ? " debug" : "");
	snprintf(about->binary, sizeof(about->binary), "%s", binary->range->path);
	if (ts_elf_symbol(binary->elf, "PyCode_Type", &symbol))
		search->runtime_info->code_type = binary->bias + symbol.address;
}

/* The layout of a possible runtime at an address. TS_ENOTFOUND: not a runtime. */
static int lay_out(struct search *search, const struct binary *binary, uint64_t runtime,
		   struct ts_error *err)
{
	uint8_t bytes[TS_PYTHON_DEBUG_OFFSETS_BYTES];
	struct ts_python_layout *layout = &search->runtime_info->layout;
	uint64_t runtime_version = 0;
	int status;

	if (!ts_python_memory_read(search->memory, runtime, bytes, sizeof(bytes)))
		return TS_ENOTFOUND;
	status = ts_python_layout_of_runtime(layout, bytes, sizeof(bytes), &runtime_version);
	if (runtime_version)
		search->version = (unsigned int)runtime_version;
	if (status == TS_OK)
		return TS_OK;
	if (!runtime_version)
		find_version(search, binary);
	if (!search->version)
		return TS_ENOTFOUND;
	if (status == TS_EFORMAT && !runtime_version &&
	    ts_python_layout_of_version(layout, search->version >> 16 & 0xff, false))
		return TS_OK;
	/* Since 3.13 the cookie is there as soon as the program is mapped. */
	if (status == TS_EFORMAT && (search->version >> 16 & 0xff) <= TS_PYTHON_NEWEST_MINOR &&
	    (search->version >> 16 & 0xff) >= TS_PYTHON_OLDEST_MINOR)
		return ts_error_set(
			err, TS_EFORMAT,
			"process %d runs Python %u.%u, whose runtime is not recognized: it may "
			"be patched or corrupt",
			(int)search->pid, search->version >> 24, search->version >> 16 & 0xff);
	return ts_error_set(
		err, TS_EVERSION,
		"process %d runs Python %u.%u, which is not supported (3.%d to 3.%d are)",
		(int)search->pid, search->version >> 24, search->version >> 16 & 0xff,
		TS_PYTHON_OLDEST_MINOR, TS_PYTHON_NEWEST_MINOR);
}

/* TS_OK: found; TS_ENOTFOUND: not there. */
static int try_at(struct search *search, const struct binary *binary, uint64_t runtime,
		  const char *found_by, struct ts_error *err)
{
	int status = lay_out(search, binary, runtime, err);
	int probe;

	if (status)
		return status;
	probe = ts_python_probe(search->memory, &search->runtime_info->layout, runtime);
	if (probe == 0)
		search->is_starting = true;
	if (probe <= 0)
		return TS_ENOTFOUND;
	search->runtime_info->runtime = runtime;
	describe(search, binary, found_by);
	return TS_OK;
}

/* ---- scanning ---- */

/* A runtime begins with its initialisation flags. */
static bool begins_with_flags(const uint8_t *copy)
{
	uint32_t set = 0;

	for (size_t i = 0; i < 4; i++) {
		uint32_t flag = ts_python_half_of(copy, 4 * i);

		if (flag > 1)
			return false;
		set += flag;
	}
	return set >= 2;
}

/*
 * Whether a runtime could begin at `at` in a copy: since 3.13 by its cookie, else by an interpreter
 * that is both first and main, followed by the next interpreter id.
 */
static bool looks_like(const struct ts_python_layout *layout, const uint8_t *copy, size_t at)
{
	uint64_t head;

	if (!layout)
		return memcmp(copy + at, TS_PYTHON_COOKIE, 8) == 0;
	head = ts_python_word_of(copy, at + layout->runtime.interpreters_head);
	return is_address(head) &&
	       head == ts_python_word_of(copy, at + layout->runtime.main_interpreter) &&
	       ts_python_word_of(copy, at + layout->runtime.main_interpreter + 8u) < 1000000 &&
	       begins_with_flags(copy + at);
}

static int scan_segment(struct search *search, const struct binary *binary,
			const struct ts_python_layout *layout, const struct ts_elf_range *segment,
			uint8_t *copy, struct ts_error *err)
{
	uint64_t start = (binary->bias + segment->address) & ~UINT64_C(4095);
	uint64_t end = binary->bias + segment->address + segment->bytes;
	size_t overlap = 64;

	if (end < start || end >= UINT64_C(1) << 56)
		return TS_ENOTFOUND;
	for (uint64_t at = start; at < end; at += SCAN_BYTES) {
		size_t bytes = (size_t)TS_MIN(end - at, (uint64_t)(SCAN_BYTES + overlap));

		if (!ts_python_memory_read(search->memory, at, copy, bytes))
			continue;
		for (size_t i = 0; i + overlap <= bytes; i += 8) {
			int status;

			if (!looks_like(layout, copy, i))
				continue;
			status = try_at(search, binary, at + i, "scan", err);
			if (status != TS_ENOTFOUND)
				return status;
		}
	}
	return TS_ENOTFOUND;
}

static int scan(struct search *search, const struct binary *binary, struct ts_error *err)
{
	TS_AUTO_FREE uint8_t *copy = malloc(SCAN_BYTES + 64);
	struct ts_python_layout layout;
	struct ts_elf_range segment;
	bool is_old;

	if (!copy)
		return ts_error_set(err, TS_ENOMEM, "no memory to search for Python");
	find_version(search, binary);
	if (!search->version)
		return TS_ENOTFOUND;
	is_old = ts_python_layout_of_version(&layout, search->version >> 16 & 0xff, false);
	for (size_t i = 0; ts_elf_data_segment(binary->elf, i, &segment); i++) {
		int status;

		if (segment.bytes > MAX_SCANNED)
			continue;
		status = scan_segment(search, binary, is_old ? &layout : NULL, &segment, copy, err);
		if (status != TS_ENOTFOUND)
			return status;
	}
	return TS_ENOTFOUND;
}

/* ---- binaries ---- */

static int try_binary(struct search *search, const struct binary *binary, struct ts_error *err)
{
	struct ts_elf_range range;
	int status;

	if (ts_elf_symbol(binary->elf, "_PyRuntime", &range)) {
		status = try_at(search, binary, binary->bias + range.address, "symbol", err);
		if (status != TS_ENOTFOUND || search->is_starting)
			return status;
	}
	if (ts_elf_section(binary->elf, ".PyRuntime", &range)) {
		status = try_at(search, binary, binary->bias + range.address, "section", err);
		if (status != TS_ENOTFOUND || search->is_starting)
			return status;
	}
	return scan(search, binary, err);
}

static int try_range(struct search *search, const struct ts_map_range *range, struct ts_error *err)
{
	TS_AUTO_FD int fd = ts_maps_open_file(search->pid, range);
	TS_AUTO(ts_elf) elf = NULL;
	struct binary binary = { .range = range };
	unsigned int major, minor;

	if (fd < 0 || ts_elf_open(&elf, fd, range->path, NULL) ||
	    !ts_elf_bias(elf, range->start, range->file_offset, true, &binary.bias))
		return TS_ENOTFOUND;
	binary.elf = elf;
	if (version_of_name(base_name(range->path), &major, &minor) &&
	    (major != 3 || minor < TS_PYTHON_OLDEST_MINOR)) {
		search->old_major = major;
		search->old_minor = minor;
	}
	return try_binary(search, &binary, err);
}

/* The program itself: executable mappings of /proc/PID/exe. */
static bool is_program(const struct search *search, const struct ts_map_range *range)
{
	char path[32], target[512];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)search->pid);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	if (range->is_deleted && length > 10)
		target[length - 10] = '\0'; /* " (deleted)" */
	return strcmp(target, range->path) == 0;
}

/*
 * libpython first, since the program has no runtime then; then the program, then anything with a
 * matching name.
 */
static int rank(const struct search *search, const struct ts_map_range *range)
{
	const char *name = base_name(range->path);

	if (!range->is_executable || !range->path[0] || range->path[0] == '[')
		return -1;
	if (strncmp(name, "libpython", 9) == 0)
		return 0;
	if (is_program(search, range))
		return 1;
	return strncmp(name, "python", 6) == 0 ? 2 : -1;
}

static int try_all(struct search *search, struct ts_error *err)
{
	for (int wanted = 0, tried = 0; wanted <= 2; wanted++) {
		uint64_t inode = 0;

		for (size_t i = 0; i < search->maps.count && tried < MAX_BINARIES; i++) {
			const struct ts_map_range *range = &search->maps.ranges[i];
			int status;

			if (rank(search, range) != wanted || range->inode == inode)
				continue;
			inode = range->inode;
			tried++;
			status = try_range(search, range, err);
			if (status != TS_ENOTFOUND)
				return status;
		}
	}
	return TS_ENOTFOUND;
}

/* ---- asyncio ---- */

/* asyncio's own task offsets, 3.14 on: words of its section. */
enum { TASK_NAME = 1, TASK_COROUTINE = 5, RUNNING_TASK = 11, OFFSET_WORDS = 13 };

static void take_asyncio(struct search *search, const struct ts_map_range *range)
{
	struct ts_python_layout *layout = &search->runtime_info->layout;
	TS_AUTO_FD int fd = ts_maps_open_file(search->pid, range);
	TS_AUTO(ts_elf) elf = NULL;
	struct ts_elf_range section;
	uint64_t bias, words[OFFSET_WORDS];

	if (fd < 0 || ts_elf_open(&elf, fd, range->path, NULL) ||
	    !ts_elf_section(elf, ".AsyncioDebug", &section) || section.bytes < sizeof(words) ||
	    !ts_elf_bias(elf, range->start, range->file_offset, true, &bias) ||
	    !ts_python_memory_read(search->memory, bias + section.address, words, sizeof(words)))
		return;
	if (words[TASK_NAME] > 4096 || words[TASK_COROUTINE] > 4096 || words[RUNNING_TASK] > 16384)
		return;
	layout->task.name = (uint16_t)words[TASK_NAME];
	layout->task.coroutine = (uint16_t)words[TASK_COROUTINE];
	layout->thread.running_task = (uint16_t)words[RUNNING_TASK];
}

static void find_asyncio(struct search *search)
{
	if (search->runtime_info->layout.minor < 14)
		return;
	for (size_t i = 0; i < search->maps.count; i++) {
		const struct ts_map_range *range = &search->maps.ranges[i];

		if (range->is_executable && (strncmp(base_name(range->path), "_asyncio.", 9) == 0 ||
					     rank(search, range) >= 0))
			take_asyncio(search, range);
	}
}

/* ---- all of it ---- */

static int none_found(const struct search *search, struct ts_error *err)
{
	char name[64];

	ts_python_process_name(search->pid, name, sizeof(name));
	if (search->is_starting)
		return ts_error_set(
			err, TS_ENOTFOUND,
			"process %d (%s): its Python has not started yet, or has exited",
			(int)search->pid, name);
	if (search->old_major)
		return ts_error_set(
			err, TS_EVERSION,
			"process %d runs Python %u.%u, which is not supported (3.%d to 3.%d are)",
			(int)search->pid, search->old_major, search->old_minor,
			TS_PYTHON_OLDEST_MINOR, TS_PYTHON_NEWEST_MINOR);
	return ts_error_set(err, TS_ENOTFOUND, "no Python in process %d (%s)", (int)search->pid,
			    name);
}

/* Whether its memory is readable at all, by the first byte of its first mapping. */
static int check_access(struct search *search, struct ts_error *err)
{
	struct ts_python_memory_range range;
	uint8_t byte;
	int got;

	if (!search->maps.count) /* a zombie, or a kernel thread */
		return none_found(search, err);
	range = (struct ts_python_memory_range){ search->maps.ranges[0].start, &byte, 1 };
	got = ts_python_memory_read_ranges(search->memory, &range, 1);
	if (got == -EPERM || got == -EACCES || got == -ENOSYS)
		return ts_python_access_denied(search->pid, err);
	if (got == -ESRCH)
		return ts_error_set(err, TS_ENOTFOUND, "process %d has ended", (int)search->pid);
	return TS_OK;
}

int ts_python_find(struct ts_python_memory *memory, pid_t pid, struct python_runtime *ret_runtime,
		   struct ts_error *err)
{
	struct search search = { .memory = memory, .pid = pid, .runtime_info = ret_runtime };
	int status = ts_maps_read(&search.maps, pid, err);

	memset(ret_runtime, 0, sizeof(*ret_runtime));
	if (status == TS_ECAP)
		return ts_python_access_denied(pid, err);
	if (status)
		return status;
	status = check_access(&search, err);
	if (!status) {
		status = try_all(&search, err);
		if (status == TS_ENOTFOUND)
			status = none_found(&search, err);
		else if (!status)
			find_asyncio(&search);
	}
	ts_maps_release(&search.maps);
	return status;
}

void ts_python_find_asyncio(struct ts_python_memory *memory, pid_t pid,
			    struct python_runtime *runtime_info)
{
	struct search search = { .memory = memory, .pid = pid, .runtime_info = runtime_info };

	if (ts_maps_read(&search.maps, pid, NULL))
		return;
	find_asyncio(&search);
	ts_maps_release(&search.maps);
}
