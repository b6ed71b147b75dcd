/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the file on this machine that is the recorded binary, and its debug information. The build
 * id decides, never a name alone.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "code/elf.h"
#include "code/symbolize_internal.h"

#define DEBUG_FOLDER "/usr/lib/debug"
#define MIN_BUILD_ID 6u /* digits */

/* Regular files only, opened without blocking: a trace may name anything. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat about;

	if (fd >= 0 && (fstat(fd, &about) || !S_ISREG(about.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool has_build_id(int fd, const char *path, const char *build_id)
{
	TS_AUTO(ts_elf) elf = NULL;

	return !ts_elf_open(&elf, fd, path, NULL) && strcmp(ts_elf_build_id(elf), build_id) == 0;
}

static bool is_younger(int fd, int64_t recorded_ns)
{
	struct stat about;

	return fstat(fd, &about) || (int64_t)about.st_mtim.tv_sec > recorded_ns / 1000000000;
}

/* Opens a file if it matches; else -1, and *state says what was wrong. */
static int open_if_same(const char *path, const char *build_id, enum ts_symbolize_state *state)
{
	int fd = open_file(path);

	if (fd < 0)
		return -1;
	if (has_build_id(fd, path, build_id))
		return fd;
	close(fd);
	*state = TS_SYMBOLIZE_OTHER_BUILD;
	return -1;
}

static int open_recorded(const struct ts_symbolize_module *module, int64_t recorded_ns,
			 enum ts_symbolize_state *state)
{
	int fd = open_if_same(module->path, module->build_id, state);

	if (fd >= 0 && !*module->build_id && is_younger(fd, recorded_ns)) {
		close(fd);
		*state = TS_SYMBOLIZE_CHANGED;
		return -1;
	}
	return fd;
}

/* ---- by build id ---- */

static int try_path(struct ts_text *path, const char *build_id)
{
	enum ts_symbolize_state state;

	return ts_text_status(path) ? -1 : open_if_same(ts_text_cstr(path), build_id, &state);
}

static int try_by_id(const char *folder, const char *build_id, const char *suffix)
{
	TS_SCOPED(ts_text) path = { 0 };

	ts_text_printf(&path, "%s/.build-id/%.2s/%s%s", folder, build_id, build_id + 2, suffix);
	return try_path(&path, build_id);
}

static int try_by_name(const char *folder, const char *name, const char *suffix,
		       const char *build_id)
{
	TS_SCOPED(ts_text) path = { 0 };

	ts_text_printf(&path, "%s/%s%s", folder, name, suffix);
	return try_path(&path, build_id);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int find_debug_in(const char *folder, const struct ts_symbolize_module *module)
{
	int fd = try_by_id(folder, module->build_id, ".debug");

	if (fd < 0)
		fd = try_by_name(folder, module->path, ".debug", module->build_id);
	if (fd < 0)
		fd = try_by_name(folder, base_name(module->path), ".debug", module->build_id);
	return fd;
}

static int find_binary_in(const char *folder, const struct ts_symbolize_module *module)
{
	int fd = try_by_id(folder, module->build_id, "");

	if (fd < 0)
		fd = try_by_name(folder, module->path, "", module->build_id);
	if (fd < 0)
		fd = try_by_name(folder, base_name(module->path), "", module->build_id);
	return fd;
}

/* It becomes part of a path: only digits allowed. */
static bool is_build_id(const char *text)
{
	size_t length = strlen(text);

	return length >= MIN_BUILD_ID && strspn(text, "0123456789abcdef") == length;
}

int ts_symbolize_open_debug(const char *path, const char *build_id)
{
	const struct ts_symbolize_module module = { .path = path, .build_id = build_id };
	const char *set = getenv(TS_SYMBOLIZE_PATH_VARIABLE);
	int fd = -1;

	if (!is_build_id(build_id))
		return -1;
	while (set && *set && fd < 0) {
		TS_SCOPED(ts_text) folder = { 0 };
		size_t length = strcspn(set, ":");

		ts_text_append(&folder, set, length);
		if (length && !ts_text_status(&folder))
			fd = find_debug_in(ts_text_cstr(&folder), &module);
		set += length + (set[length] == ':');
	}
	return fd < 0 ? find_debug_in(DEBUG_FOLDER, &module) : fd;
}

void ts_symbolize_find(const struct ts_symbolize_module *module,
		       const struct ts_symbolize_options *options,
		       struct ts_symbolize_files *ret_files)
{
	struct ts_symbolize_files *files = ret_files;

	*files = (struct ts_symbolize_files){ -1, -1, TS_SYMBOLIZE_NO_FILE };
	if (module->path[0] == '/')
		files->binary = open_recorded(module, options->recorded_ns, &files->state);
	if (is_build_id(module->build_id)) {
		for (size_t i = 0; i < options->folder_count && files->binary < 0; i++)
			files->binary = find_binary_in(options->folders[i], module);
		for (size_t i = 0; i < options->folder_count && files->debug < 0; i++)
			files->debug = find_debug_in(options->folders[i], module);
		if (files->debug < 0)
			files->debug = find_debug_in(DEBUG_FOLDER, module);
	}
	if (files->binary >= 0 || files->debug >= 0)
		files->state = TS_SYMBOLIZE_FUNCTIONS;
}
