/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binaries of one process: tracks its mappings, and opens a file when a stack first leads into
 * it.
 */
#include "code/unwind.h"

#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "code/native_internal.h"

/*
 * How long the mappings are trusted when an address is not in them; doubles each time that was
 * right.
 */
#define FIRST_WAIT_NS INT64_C(100000000)
#define MAX_WAIT_NS INT64_C(10000000000)
#define MAX_IMAGE_BYTES (1u << 20) /* name of the vDSO in every process */

size_t ts_native_read(const struct ts_native_process *native, uint64_t address, void *to,
		      size_t bytes)
{
	struct iovec local = { .iov_base = to, .iov_len = bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = bytes };
	ssize_t got = process_vm_readv(native->pid, &local, 1, &remote, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* ---- modules ---- */

#define ANONYMOUS "[anonymous]" /* anonymous memory: generated code */

static bool is_anonymous(const struct ts_map_range *map)
{
	return map->inode == 0 && *map->path == '\0';
}

/* All such memory is one module, however often it comes and goes. */
static uint64_t bias_key(const struct ts_map_range *map)
{
	return is_anonymous(map) ? 0 : map->start - map->file_offset;
}

static struct ts_native_module *find_module(const struct ts_native_process *native,
					    const struct ts_map_range *map)
{
	for (size_t i = 0; i < native->module_count; i++) {
		struct ts_native_module *module = native->modules[i];

		if (module->inode == map->inode && module->device == map->device &&
		    module->bias_key == bias_key(map) &&
		    strcmp(module->path, is_anonymous(map) ? ANONYMOUS : map->path) == 0)
			return module;
	}
	return NULL;
}

static struct ts_native_module *add_module(struct ts_native_process *native,
					   const struct ts_map_range *map)
{
	const char *path = is_anonymous(map) ? ANONYMOUS : map->path;
	struct ts_native_module *module;

	if (ts_grow_array((void **)&native->modules, &native->module_capacity,
			  native->module_count + 1, sizeof(struct ts_native_module *)))
		return NULL;
	module = ts_arena_alloc_zeroed(&native->texts, 1, sizeof(*module));
	if (!module)
		return NULL;
	module->device = map->device;
	module->inode = map->inode;
	module->bias_key = bias_key(map);
	module->bias = module->bias_key; /* until its headers are read */
	module->build_id = "";
	module->path = ts_arena_strdup_len(&native->texts, path, strlen(path));
	if (!module->path)
		return NULL;
	native->modules[native->module_count++] = module;
	return module;
}

static int add_range(struct ts_native_process *native, const struct ts_map_range *map,
		     struct ts_error *err)
{
	struct ts_native_module *module = find_module(native, map);

	if (!module)
		module = add_module(native, map);
	if (!module || ts_grow_array((void **)&native->ranges, &native->range_capacity,
				     native->range_count + 1, sizeof(*native->ranges)))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	module->is_used = true;
	native->ranges[native->range_count++] =
		(struct ts_native_range){ .start = map->start,
					  .end = map->end,
					  .file_offset = map->file_offset,
					  .module = module };
	return TS_OK;
}

static void close_module(struct ts_native_module *module)
{
	ts_cfi_release(&module->cfi);
	ts_elf_close(module->elf);
	ts_elf_close(module->debug);
	module->elf = module->debug = NULL;
	module->is_debug_tried = false;
	module->is_tried = false;
}

static struct ts_elf *open_image(const struct ts_native_process *native,
				 const struct ts_native_range *range)
{
	size_t bytes = TS_MIN(range->end - range->start, MAX_IMAGE_BYTES);
	TS_AUTO_FREE uint8_t *image = ts_alloc_array(bytes, 1);
	struct ts_elf *elf = NULL;

	if (!image)
		return NULL;
	bytes = ts_native_read(native, range->start, image, bytes);
	return ts_elf_open_image(&elf, image, bytes, range->module->path, NULL) ? NULL : elf;
}

static struct ts_elf *open_file(const struct ts_native_process *native,
				const struct ts_native_range *range)
{
	const struct ts_native_module *module = range->module;
	struct ts_map_range map = { .start = range->start,
				    .end = range->end,
				    .file_offset = range->file_offset,
				    .device = module->device,
				    .inode = module->inode,
				    .path = module->path };
	TS_AUTO_FD int fd = ts_maps_open_file(native->pid, &map);
	struct ts_elf *elf = NULL;

	if (fd < 0 || ts_elf_open(&elf, fd, module->path, NULL))
		return NULL;
	return elf;
}

void ts_native_open_module(struct ts_native_process *native, const struct ts_native_range *range)
{
	struct ts_native_module *module = range->module;
	const char *id;

	if (module->is_tried)
		return;
	module->is_tried = true;
	module->elf = strcmp(module->path, "[vdso]") == 0 ? open_image(native, range)
							  : open_file(native, range);
	if (!module->elf)
		return;
	if (!ts_elf_bias(module->elf, range->start, range->file_offset, true, &module->bias)) {
		close_module(module);
		module->is_tried = true;
		return;
	}
	ts_cfi_init(&module->cfi, module->elf);
	module->is_python = ts_elf_symbol(module->elf, TS_PYTHON_LOOP, &module->loop);
	id = ts_elf_build_id(module->elf);
	id = ts_arena_strdup_len(&native->texts, id, strlen(id));
	if (id)
		module->build_id = id;
}

/* ---- what is mapped ---- */

/* Cached steps and calls are keyed by addresses, which may mean something else now. */
static void forget_steps(struct ts_native_process *native)
{
	ts_map_clear(&native->steps);
	ts_map_clear(&native->returns);
	ts_arena_clear(&native->step_texts);
}

static bool is_same(const struct ts_native_process *native, const struct ts_maps *maps)
{
	size_t at = 0;

	for (size_t i = 0; i < maps->count; i++) {
		const struct ts_map_range *map = &maps->ranges[i];
		const struct ts_native_range *range;

		if (!map->is_executable)
			continue;
		if (at == native->range_count)
			return false;
		range = &native->ranges[at++];
		if (range->start != map->start || range->end != map->end ||
		    range->module != find_module(native, map))
			return false;
	}
	return at == native->range_count;
}

static int take_maps(struct ts_native_process *native, const struct ts_maps *maps,
		     struct ts_error *err)
{
	int error = TS_OK;

	forget_steps(native);
	native->range_count = 0;
	for (size_t i = 0; i < native->module_count; i++)
		native->modules[i]->is_used = false;
	for (size_t i = 0; i < maps->count && !error; i++) {
		if (maps->ranges[i].is_executable)
			error = add_range(native, &maps->ranges[i], err);
	}
	for (size_t i = 0; i < native->module_count; i++) {
		if (!native->modules[i]->is_used)
			close_module(native->modules[i]);
	}
	return error;
}

int ts_native_process_refresh(struct ts_native_process *native, struct ts_error *err)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	int error = ts_maps_read(&maps, native->pid, err);

	native->renewed_ns = ts_clock_monotonic_ns();
	native->wait_ns = native->wait_ns ? TS_MIN(2 * native->wait_ns, MAX_WAIT_NS)
					  : FIRST_WAIT_NS;
	if (error || is_same(native, &maps))
		return error;
	native->wait_ns = FIRST_WAIT_NS;
	return take_maps(native, &maps, err);
}

const struct ts_native_range *ts_native_range_at(const struct ts_native_process *native,
						 uint64_t address)
{
	size_t low = 0, high = native->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (native->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == native->range_count || address < native->ranges[low].start)
		return NULL;
	return &native->ranges[low];
}

const struct ts_native_range *ts_native_range_refresh(struct ts_native_process *native,
						      uint64_t address)
{
	const struct ts_native_range *range = ts_native_range_at(native, address);

	if (range || ts_clock_monotonic_ns() - native->renewed_ns < native->wait_ns ||
	    ts_native_process_refresh(native, NULL))
		return range;
	return ts_native_range_at(native, address);
}

/* ---- opening ---- */

int ts_native_process_open(struct ts_native_process **ret_native, pid_t pid, struct ts_error *err)
{
	TS_AUTO(ts_native_process) native = calloc(1, sizeof(*native));
	int error;

	if (!native)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	native->pid = pid;
	error = ts_native_process_refresh(native, err);
	if (!error)
		*ret_native = TS_STEAL(native);
	return error;
}

void ts_native_process_close(struct ts_native_process *native)
{
	if (!native)
		return;
	for (size_t i = 0; i < native->module_count; i++)
		close_module(native->modules[i]);
	ts_map_release(&native->steps);
	ts_map_release(&native->returns);
	ts_pairmap_release(&native->codes);
	ts_arena_release(&native->step_texts);
	ts_arena_release(&native->texts);
	free(native->modules);
	free(native->ranges);
	free(native->stack);
	free(native);
}
