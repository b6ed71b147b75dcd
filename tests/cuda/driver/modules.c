/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: modules and libraries. Images are those of nvcc: cubins, fat binaries and
 * PTX; of functions it takes the name and the parameters, of variables all.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/cuda/local/page_kernels.h"
#include "cuda/driver/driver.h"

struct variable {
	struct variable *next;
	char *name;
	uint64_t address, bytes;
};
struct module {
	struct context *context;
	struct function *functions;
	struct variable *variables;
	uint64_t globals[4];
	size_t global_count;
	bool is_library, is_gone;
};

static struct handles module_handles = HANDLES, function_handles = HANDLES;
static struct handles kernel_handles = HANDLES;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct function *add_function(struct module *module, const char *name, size_t length)
{
	struct function *function = calloc(1, sizeof(*function));

	function->name = strndup(name, length);
	function->module = module;
	function->code = kernel_find(function->name);
	function->attributes[0] = 1024;
	function->attributes[4] = 32;
	function->attributes[5] = 90;
	function->attributes[6] = settings.compute;
	function->attributes[8] = 49152;
	function->next = module->functions;
	module->functions = function;
	handles_add(&function_handles, function);
	handles_add(&kernel_handles, &function->other);
	return function;
}

static void add_variable(struct module *module, const char *name, size_t length, uint64_t address,
			 uint64_t bytes)
{
	struct variable *variable = calloc(1, sizeof(*variable));

	variable->name = strndup(name, length);
	variable->address = address;
	variable->bytes = bytes;
	variable->next = module->variables;
	module->variables = variable;
}

static void add_parameter(struct function *function, uint32_t index, uint32_t offset, uint32_t size)
{
	if (index >= MOST_PARAMETERS)
		return;
	function->offsets[index] = offset;
	function->sizes[index] = size;
	if (index >= function->param_count)
		function->param_count = index + 1;
	if (offset + size > function->param_bytes)
		function->param_bytes = offset + size;
}

/* ---- cubins ---- */

struct elf {
	const uint8_t *image;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	uint64_t addresses[256]; /* of sections with variables */
};

static const char *section_name(const struct elf *elf, size_t section)
{
	return (const char *)elf->image + elf->sections[elf->header->e_shstrndx].sh_offset +
	       elf->sections[section].sh_name;
}

static void read_parameters(const struct elf *elf, size_t section, struct function *function)
{
	const uint8_t *at = elf->image + elf->sections[section].sh_offset;
	const uint8_t *end = at + elf->sections[section].sh_size;

	while (at + 4 <= end) {
		uint16_t value;

		memcpy(&value, at + 2, sizeof(value));
		if (at[0] == 4 && at[1] == 0x17) {
			uint16_t index, offset;
			uint32_t packed;

			memcpy(&index, at + 8, sizeof(index));
			memcpy(&offset, at + 10, sizeof(offset));
			memcpy(&packed, at + 12, sizeof(packed));
			add_parameter(function, index, offset, packed >> 18);
		}
		at += at[0] == 4 ? 4u + value : 4u;
	}
}

static bool has_variables(const char *name)
{
	return !strcmp(name, ".nv.global") || !strcmp(name, ".nv.global.init") ||
	       !strcmp(name, ".nv.constant3");
}

static int map_section(struct module *module, struct elf *elf, size_t section)
{
	const Elf64_Shdr *header = &elf->sections[section];
	int error;

	if (!header->sh_size || module->global_count >= 4)
		return 0;
	error = globals_map(module->context, header->sh_size, &elf->addresses[section]);
	if (error)
		return error;
	module->globals[module->global_count++] = elf->addresses[section];
	if (header->sh_type != SHT_NOBITS)
		memory_write(elf->addresses[section], elf->image + header->sh_offset,
			     header->sh_size);
	return 0;
}

/* Addresses in variables. */
static void relocate(struct elf *elf, const Elf64_Shdr *header, const Elf64_Sym *symbols)
{
	const Elf64_Rela *at = (const void *)(elf->image + header->sh_offset);

	if (!elf->addresses[header->sh_info])
		return;
	for (size_t i = 0; i < header->sh_size / sizeof(*at); i++) {
		const Elf64_Sym *symbol = &symbols[ELF64_R_SYM(at[i].r_info)];
		uint64_t address = elf->addresses[symbol->st_shndx & 255] + symbol->st_value +
				   (uint64_t)at[i].r_addend;

		memory_write(elf->addresses[header->sh_info] + at[i].r_offset, &address,
			     sizeof(address));
	}
}

static int load_cubin(struct module *module, const uint8_t *image)
{
	struct elf elf = { .image = image, .header = (const void *)image };
	const Elf64_Sym *symbols = NULL;
	size_t symbol_count = 0;
	const char *names = NULL;
	int error = 0;

	if (elf.header->e_machine != 190 || elf.header->e_shnum > 256)
		return INVALID_IMAGE;
	if ((int)(elf.header->e_flags >> 8 & 255) / 10 != settings.compute / 10)
		return NO_BINARY;
	elf.sections = (const void *)(image + elf.header->e_shoff);
	for (size_t i = 1; i < elf.header->e_shnum && !error; i++) {
		const char *name = section_name(&elf, i);

		if (has_variables(name))
			error = map_section(module, &elf, i);
		if (elf.sections[i].sh_type == SHT_SYMTAB) {
			symbols = (const void *)(image + elf.sections[i].sh_offset);
			symbol_count = elf.sections[i].sh_size / sizeof(*symbols);
			names = (const char *)image +
				elf.sections[elf.sections[i].sh_link].sh_offset;
		}
	}
	if (error)
		return error;
	for (size_t i = 1; i < elf.header->e_shnum; i++) {
		const char *name = section_name(&elf, i);

		if (!strncmp(name, ".nv.info.", 9))
			read_parameters(&elf, i, add_function(module, name + 9, strlen(name + 9)));
		if (elf.sections[i].sh_type == SHT_RELA && symbols)
			relocate(&elf, &elf.sections[i], symbols);
	}
	for (size_t i = 0; i < symbol_count; i++) {
		uint64_t section = elf.addresses[symbols[i].st_shndx & 255];

		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT && section)
			add_variable(module, names + symbols[i].st_name,
				     strlen(names + symbols[i].st_name),
				     section + symbols[i].st_value, symbols[i].st_size);
	}
	return 0;
}

/* ---- PTX ---- */

static uint32_t type_bytes(const char *type)
{
	const char *digits = type;

	while (*digits && !isdigit((unsigned char)*digits))
		digits++;
	return (uint32_t)strtoul(digits, NULL, 10) / 8;
}

static const char *after(const char *text, const char *word)
{
	const char *found = strstr(text, word);

	return found ? found + strlen(word) : NULL;
}

/* ".param .align 8 .b8 name[24]" or ".param .u64 .ptr .align 1 name" */
static const char *ptx_parameter(struct function *function, const char *at, const char *end)
{
	uint32_t size, alignment = 0, offset, index = function->param_count;
	char line[256];
	const char *stop = at;

	while (stop < end && *stop != ',' && *stop != ')')
		stop++;
	snprintf(line, sizeof(line), "%.*s", (int)(stop - at), at);
	for (const char *word = line; (word = strchr(word, '.')); word++) {
		if (!strncmp(word, ".align", 6))
			alignment = (uint32_t)strtoul(word + 6, NULL, 10);
		else if (strchr("ubfs", word[1]) && isdigit((unsigned char)word[2]) &&
			 !strchr(line, '$'))
			break;
	}
	size = 0;
	for (const char *word = line; (word = strchr(word, '.')); word++) {
		if (strchr("ubfs", word[1]) && isdigit((unsigned char)word[2]))
			size = type_bytes(word);
	}
	if (strchr(line, '['))
		size = (uint32_t)strtoul(strchr(line, '[') + 1, NULL, 10);
	if (!strchr(line, '['))
		alignment = size;
	if (!alignment)
		alignment = 1;
	offset = (function->param_bytes + alignment - 1) / alignment * alignment;
	add_parameter(function, index, offset, size);
	return stop;
}

/* ".global .align 8 .b8 name[32] = {1, 2};" or ".global .align 8 .u64 name = generic(other);" */
static int ptx_variable(struct module *module, const char *at)
{
	char name[128] = "", type[16] = "";
	const char *stop = strchr(at, ';'), *value, *text;
	uint32_t size = 1;
	uint64_t address, count = 1;
	int error;

	if (!stop)
		return INVALID_IMAGE;
	text = after(at, ".align");
	if (text && text < stop)
		at = text;
	text = strchr(at, '.');
	if (!text || text > stop || sscanf(text, "%15s %127[A-Za-z0-9_$]", type, name) != 2)
		return 0;
	size = type_bytes(type);
	text = strstr(text, name) + strlen(name);
	if (*text == '[')
		count = strtoull(text + 1, NULL, 0);
	error = globals_map(module->context, count * size, &address);
	if (error || module->global_count >= 4)
		return error ? error : INVALID_IMAGE;
	module->globals[module->global_count++] = address;
	add_variable(module, name, strlen(name), address, count * size);
	value = strchr(text, '=');
	if (!value || value > stop)
		return 0;
	if (strstr(value, "generic(") && strstr(value, "generic(") < stop) {
		char other[128] = "";
		uint64_t to;

		sscanf(strstr(value, "generic(") + 8, "%127[A-Za-z0-9_$]", other);
		to = module_global(module, other);
		memory_write(address, &to, sizeof(to));
		return 0;
	}
	for (uint64_t i = 0; i < count && value && value < stop; i++) {
		uint64_t number = strtoull(value + 1 + strspn(value + 1, " {"), NULL, 0);

		memory_write(address + i * size, &number, size);
		value = strchr(value + 1, ',');
	}
	return 0;
}

static int load_ptx(struct module *module, const char *text)
{
	const char *at = text;

	/* Variables before the first function; ".extern .global" is not used. */
	while (*at && strncmp(at, ".visible .entry", 15) && strncmp(at, ".entry", 6)) {
		const char *line = strchr(at, '\n');
		int error = 0;

		if (!strncmp(at, ".visible ", 9))
			at += 9;
		if (!strncmp(at, ".global ", 8) || !strncmp(at, ".const ", 7))
			error = ptx_variable(module, strchr(at, ' ') + 1);
		if (error)
			return error;
		if (!line)
			break;
		at = line + 1;
	}
	for (at = text; (at = strstr(at, ".entry")); at++) {
		char name[256];
		const char *end;
		struct function *function;

		if (sscanf(at + 6, " %255[A-Za-z0-9_$]", name) != 1)
			continue;
		function = add_function(module, name, strlen(name));
		at = strstr(at, name) + strlen(name);
		at += strspn(at, " \t\n");
		end = strchr(at, ')');
		if (*at != '(' || !end)
			continue;
		while (at < end && (at = strstr(at, ".param")) && at < end)
			at = ptx_parameter(function, at, end);
		if (!at)
			at = end;
	}
	return 0;
}

/* ---- fat binaries ---- */

struct fat_entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t bytes;
	uint32_t compressed_bytes, unknown;
	uint16_t minor, major;
	uint32_t compute;
	uint32_t name_offset, name_bytes;
	uint64_t flags;
	uint64_t zero;
	uint64_t plain_bytes;
};

static int load_image(struct module *module, const void *image, uint64_t bytes);

static int load_entry(struct module *module, const struct fat_entry *entry)
{
	const void *data = (const char *)entry + entry->header_bytes;
	int result;

	if (entry->flags & 0x8000) {
		void *library = dlopen("libzstd.so.1", RTLD_NOW);
		size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
		void *plain = calloc(1, entry->plain_bytes + 1), *found;

		found = library ? dlsym(library, "ZSTD_decompress") : NULL;
		memcpy(&decompress, &found, sizeof(found));
		if (!decompress || decompress(plain, entry->plain_bytes, data,
					      entry->compressed_bytes) != entry->plain_bytes)
			return INVALID_IMAGE;
		result = load_image(module, plain, entry->plain_bytes);
		free(plain);
		return result;
	}
	return entry->flags & 0x2000 ? INVALID_IMAGE : load_image(module, data, entry->bytes);
}

/* The code for this device, else the PTX. */
static int load_fat(struct module *module, const uint8_t *image)
{
	const struct fat_entry *ptx = NULL, *code = NULL;
	uint64_t bytes;
	uint16_t header;
	const uint8_t *at, *end;

	memcpy(&header, image + 6, sizeof(header));
	memcpy(&bytes, image + 8, sizeof(bytes));
	at = image + header;
	end = at + bytes;
	while (at + sizeof(struct fat_entry) <= end) {
		const struct fat_entry *entry = (const void *)at;

		if (entry->kind == 2 && (int)entry->compute / 10 == settings.compute / 10 &&
		    (int)entry->compute <= settings.compute)
			code = entry;
		if (entry->kind == 1 && (int)entry->compute <= settings.compute)
			ptx = entry;
		at += entry->header_bytes + entry->bytes;
	}
	return code ? load_entry(module, code) : ptx ? load_entry(module, ptx) : NO_BINARY;
}

static int load_image(struct module *module, const void *image, uint64_t bytes)
{
	uint32_t magic;
	char *text;
	int result;

	memcpy(&magic, image, sizeof(magic));
	if (magic == 0x466243B1) {
		const void *data;

		memcpy(&data, (const char *)image + 8, sizeof(data));
		return load_fat(module, data);
	}
	if (magic == 0xBA55ED50)
		return load_fat(module, image);
	if (magic == 0x464C457F)
		return load_cubin(module, image);
	if (!isprint((unsigned char)*(const char *)image) &&
	    !isspace((unsigned char)*(const char *)image))
		return INVALID_IMAGE;
	text = bytes ? strndup(image, bytes) : strdup(image);
	result = strstr(text, ".version") ? load_ptx(module, text) : INVALID_IMAGE;
	free(text);
	return result;
}

static int load(void **ret_module, const void *image, bool is_library)
{
	struct module *module = calloc(1, sizeof(*module));
	int error;

	if (!image)
		return INVALID_VALUE;
	module->context = current_context();
	module->is_library = is_library;
	if (!module->context && !is_library)
		return INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	error = load_image(module, image, 0);
	if (!error) {
		handles_add(&module_handles, module);
		*ret_module = module;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static int load_file(void **ret_module, const char *path, bool is_library)
{
	FILE *file = fopen(path, "rb");
	char *image = calloc(1, 1 << 20);
	int error = FILE_NOT_FOUND;

	if (file && fread(image, 1, (1 << 20) - 1, file) > 4)
		error = load(ret_module, image, is_library);
	if (file)
		fclose(file);
	free(image);
	return error;
}

static struct module *module_of(void *handle)
{
	struct module *module = handle;

	return handles_have(&module_handles, handle) && !module->is_gone ? module : NULL;
}

static int unload(void *handle)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	for (struct context *each = all_contexts; each; each = each->next)
		(void)wait_for_context(each);
	for (size_t i = 0; i < module->global_count; i++)
		globals_unmap(module->globals[i]);
	module->is_gone = true;
	return 0;
}

static struct function *find_function(struct module *module, const char *name)
{
	for (struct function *each = module->functions; each; each = each->next) {
		if (!strcmp(each->name, name) && !each->is_kernel)
			return each;
	}
	return NULL;
}

struct function *function_of(void *handle)
{
	struct function *function = NULL;

	if (handles_have(&function_handles, handle))
		function = handle;
	else if (handles_have(&kernel_handles, handle))
		function = (void *)((char *)handle - offsetof(struct function, other));
	return function && !function->module->is_gone ? function : NULL;
}

uint64_t module_global(struct module *module, const char *name)
{
	for (struct variable *each = module->variables; each; each = each->next) {
		if (!strcmp(each->name, name))
			return each->address;
	}
	return 0;
}

static int get_global(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	for (struct variable *each = module->variables; each; each = each->next) {
		if (strcmp(each->name, name))
			continue;
		if (address)
			*address = each->address;
		if (bytes)
			*bytes = each->bytes;
		return 0;
	}
	return NOT_FOUND;
}

/* ---- modules ---- */

API cuModuleLoadData(void **module, const void *image)
{
	return load(module, image, false);
}

API cuModuleLoadDataEx(void **module, const void *image, unsigned int count, int *options,
		       void **values)
{
	(void)count;
	(void)options;
	(void)values;
	return load(module, image, false);
}

API cuModuleLoadFatBinary(void **module, const void *image)
{
	return load(module, image, false);
}

API cuModuleLoad(void **module, const char *path)
{
	return load_file(module, path, false);
}

API cuModuleUnload(void *module)
{
	return unload(module);
}

API cuModuleGetFunction(void **function, void *handle, const char *name)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	*function = find_function(module, name);
	return *function ? 0 : NOT_FOUND;
}

API cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name)
{
	return get_global(address, bytes, module, name);
}

API cuModuleGetFunctionCount(unsigned int *count, void *handle)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	*count = 0;
	for (struct function *each = module->functions; each; each = each->next)
		++*count;
	return 0;
}

API cuModuleEnumerateFunctions(void **functions, unsigned int most, void *handle)
{
	struct module *module = module_of(handle);
	unsigned int count = 0;

	if (!module)
		return INVALID_HANDLE;
	for (struct function *each = module->functions; each && count < most; each = each->next)
		functions[count++] = each;
	return 0;
}

API cuModuleGetLoadingMode(int *mode)
{
	*mode = 1;
	return 0;
}

/* ---- libraries: a kernel's handle is not that of its function ---- */

API cuLibraryLoadData(void **library, const void *image, int *options, void **values,
		      unsigned int count, int *library_options, void **library_values,
		      unsigned int library_count)
{
	(void)options;
	(void)values;
	(void)count;
	(void)library_options;
	(void)library_values;
	(void)library_count;
	return load(library, image, true);
}

API cuLibraryLoadFromFile(void **library, const char *path, int *options, void **values,
			  unsigned int count, int *library_options, void **library_values,
			  unsigned int library_count)
{
	(void)options;
	(void)values;
	(void)count;
	(void)library_options;
	(void)library_values;
	(void)library_count;
	return load_file(library, path, true);
}

API cuLibraryUnload(void *library)
{
	return unload(library);
}

static struct function *kernel_of(void *handle)
{
	struct function *function = function_of(handle);

	return function && (void *)&function->other == handle ? function : NULL;
}

API cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
	struct module *module = module_of(library);
	struct function *function = module ? find_function(module, name) : NULL;

	if (!module || !module->is_library)
		return INVALID_HANDLE;
	*kernel = function ? (void *)&function->other : NULL;
	return function ? 0 : NOT_FOUND;
}

API cuLibraryGetKernelCount(unsigned int *count, void *library)
{
	return cuModuleGetFunctionCount(count, library);
}

API cuLibraryEnumerateKernels(void **kernels, unsigned int most, void *library)
{
	struct module *module = module_of(library);
	unsigned int count = 0;

	if (!module)
		return INVALID_HANDLE;
	for (struct function *each = module->functions; each && count < most; each = each->next)
		kernels[count++] = (void *)&each->other;
	return 0;
}

API cuLibraryGetModule(void **module, void *library)
{
	*module = library;
	return module_of(library) ? 0 : INVALID_HANDLE;
}

API cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *library, const char *name)
{
	return get_global(address, bytes, library, name);
}

API cuLibraryGetManaged(uint64_t *address, size_t *bytes, void *library, const char *name)
{
	(void)address;
	(void)bytes;
	(void)name;
	return module_of(library) ? NOT_FOUND : INVALID_HANDLE;
}

API cuKernelGetFunction(void **function, void *kernel)
{
	struct function *found = kernel_of(kernel);

	*function = found;
	return found ? 0 : INVALID_HANDLE;
}

API cuKernelGetLibrary(void **library, void *kernel)
{
	struct function *found = kernel_of(kernel);

	if (found)
		*library = found->module;
	return found ? 0 : INVALID_HANDLE;
}

/* ---- functions; those of kernels take handles of kernels ---- */

static int get_param(struct function *function, size_t index, size_t *offset, size_t *bytes)
{
	if (!function)
		return INVALID_HANDLE;
	if (index >= function->param_count)
		return INVALID_VALUE;
	*offset = function->offsets[index];
	if (bytes)
		*bytes = function->sizes[index];
	return 0;
}

static struct function *plain_function(void *handle)
{
	struct function *function = function_of(handle);

	return function == handle ? function : NULL;
}

API cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
	return get_param(plain_function(function), index, offset, bytes);
}

API cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *bytes)
{
	return get_param(kernel_of(kernel), index, offset, bytes);
}

API cuFuncGetName(const char **name, void *function)
{
	struct function *found = plain_function(function);

	if (found)
		*name = found->name;
	return found ? 0 : INVALID_HANDLE;
}

API cuKernelGetName(const char **name, void *kernel)
{
	struct function *found = kernel_of(kernel);

	if (found)
		*name = found->name;
	return found ? 0 : INVALID_HANDLE;
}

API cuFuncGetModule(void **module, void *function)
{
	struct function *found = plain_function(function);

	if (found)
		*module = found->module;
	return found ? 0 : INVALID_HANDLE;
}

static int get_attribute(struct function *function, int *value, int attribute)
{
	if (!function)
		return INVALID_HANDLE;
	if (attribute < 0 || attribute > 16)
		return INVALID_VALUE;
	*value = function->attributes[attribute];
	return 0;
}

static int set_attribute(struct function *function, int attribute, int value)
{
	if (!function)
		return INVALID_HANDLE;
	if (attribute < 8 || attribute > 16)
		return INVALID_VALUE;
	function->attributes[attribute] = value;
	return 0;
}

API cuFuncGetAttribute(int *value, int attribute, void *function)
{
	return get_attribute(plain_function(function), value, attribute);
}

API cuFuncSetAttribute(void *function, int attribute, int value)
{
	return set_attribute(plain_function(function), attribute, value);
}

API cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
	(void)device;
	return get_attribute(kernel_of(kernel), value, attribute);
}

API cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
	(void)device;
	return set_attribute(kernel_of(kernel), attribute, value);
}

API cuFuncSetCacheConfig(void *function, int config)
{
	struct function *found = plain_function(function);

	if (found)
		found->cache = config;
	return found ? 0 : INVALID_HANDLE;
}

API cuKernelSetCacheConfig(void *kernel, int config, int device)
{
	struct function *found = kernel_of(kernel);

	(void)device;
	if (found)
		found->cache = config;
	return found ? 0 : INVALID_HANDLE;
}

API cuFuncIsLoaded(int *state, void *function)
{
	*state = 1;
	return plain_function(function) ? 0 : INVALID_HANDLE;
}

API cuFuncLoad(void *function)
{
	return plain_function(function) ? 0 : INVALID_HANDLE;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int block,
						size_t shared)
{
	(void)block;
	(void)shared;
	*count = 2;
	return function_of(function) ? 0 : INVALID_HANDLE;
}
