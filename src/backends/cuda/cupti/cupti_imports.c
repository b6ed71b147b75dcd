/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other users of CUPTI in a program that loaded this library late: its libraries, such as
 * PyTorch's, are bound to the real CUPTI already. Their import slots get our functions
 * (cupti_sharing.c) instead. Functions that are looked up with dlsym() are not.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/cupti/cupti_device.h"

#if defined(__x86_64__)
#define IS_IMPORT(type) ((type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_JUMP_SLOT)
#else
#define IS_IMPORT(type) ((type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_JUMP_SLOT)
#endif

#define PREFIX "cupti"
#define LIBRARY "libcupti.so"
#define IMPORTERS 32
#define NAME_BYTES 1024

static bool was_redirected; /* atomic */

/* What the dynamic linker reads of a library. */
struct object {
	Elf64_Addr base;
	uintptr_t read_only_from, read_only_to; /* after its relocation */
	const Elf64_Sym *symbols;
	const char *names;
	const Elf64_Rela *tables[2]; /* of functions, and of all else */
	size_t counts[2];
	bool imports; /* it was linked with CUPTI */
};

/* glibc has added the base to these, other linkers have not. */
static const void *at(const struct object *object, Elf64_Addr address)
{
	return (const void *)(address < object->base ? object->base + address : address);
}

static void read_dynamic(struct object *object, const Elf64_Dyn *dynamic)
{
	for (const Elf64_Dyn *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			object->symbols = at(object, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_STRTAB)
			object->names = at(object, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_JMPREL)
			object->tables[0] = at(object, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_PLTRELSZ)
			object->counts[0] = entry->d_un.d_val / sizeof(Elf64_Rela);
		else if (entry->d_tag == DT_RELA)
			object->tables[1] = at(object, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_RELASZ)
			object->counts[1] = entry->d_un.d_val / sizeof(Elf64_Rela);
	}
	for (const Elf64_Dyn *entry = dynamic; object->names && entry->d_tag != DT_NULL; entry++)
		object->imports |=
			entry->d_tag == DT_NEEDED &&
			!strncmp(object->names + entry->d_un.d_val, LIBRARY, strlen(LIBRARY));
}

static void read_segments(struct object *object, const struct dl_phdr_info *info)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *segment = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_DYNAMIC) {
			read_dynamic(object, (const Elf64_Dyn *)from);
		} else if (segment->p_type == PT_GNU_RELRO) {
			object->read_only_from = from & -page;
			object->read_only_to = (from + segment->p_memsz) & -page;
		}
	}
}

/* A thread that calls the function meanwhile calls either. */
static void set_slot(const struct object *object, void **slot, void *ours)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = (uintptr_t)slot & -(uintptr_t)bytes;
	bool is_read_only = page >= object->read_only_from && page < object->read_only_to;

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == ours ||
	    (is_read_only && mprotect((void *)page, bytes, PROT_READ | PROT_WRITE)))
		return;
	__atomic_store_n(slot, ours, __ATOMIC_RELEASE);
	if (is_read_only)
		mprotect((void *)page, bytes, PROT_READ);
	__atomic_store_n(&was_redirected, true, __ATOMIC_RELAXED);
}

static void redirect(const struct object *object, const Elf64_Rela *import)
{
	const Elf64_Sym *symbol = &object->symbols[ELF64_R_SYM(import->r_info)];
	const char *name = object->names + symbol->st_name;
	void *ours;

	if (!IS_IMPORT(ELF64_R_TYPE(import->r_info)) || symbol->st_shndx != SHN_UNDEF ||
	    strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return;
	ours = cuda_other_tool(name);
	if (ours)
		set_slot(object, (void **)(object->base + import->r_offset), ours);
}

static void redirect_all(const struct object *object)
{
	for (size_t i = 0; object->symbols && i < 2; i++)
		for (size_t k = 0; object->tables[i] && k < object->counts[i]; k++)
			redirect(object, &object->tables[i][k]);
}

/* ---- all libraries ---- */

/* Names of those that import CUPTI's functions; "": the program itself. */
struct importers {
	size_t count;
	char names[IMPORTERS][NAME_BYTES];
};

static int note_importer(struct dl_phdr_info *info, size_t bytes, void *to)
{
	struct object object = { .base = info->dlpi_addr };
	struct importers *importers = to;
	const char *name = info->dlpi_name ? info->dlpi_name : "";

	(void)bytes;
	read_segments(&object, info);
	if (object.imports && importers->count < IMPORTERS && strlen(name) < NAME_BYTES)
		memcpy(importers->names[importers->count++], name, strlen(name) + 1);
	return 0;
}

static int redirect_one(struct dl_phdr_info *info, size_t bytes, void *name)
{
	struct object object = { .base = info->dlpi_addr };

	(void)bytes;
	if (strcmp(info->dlpi_name ? info->dlpi_name : "", name) != 0)
		return 0;
	read_segments(&object, info);
	redirect_all(&object);
	return 1;
}

/*
 * dl_iterate_phdr() also shows libraries that another thread is loading, whose slots the dynamic
 * linker has yet to fill. dlopen() waits for that.
 */
static void redirect_importers(struct importers *importers)
{
	dl_iterate_phdr(note_importer, importers);
	for (size_t i = 0; i < importers->count; i++) {
		char *name = importers->names[i];
		void *handle = dlopen(*name ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);

		if (!handle)
			continue;
		dl_iterate_phdr(redirect_one, name);
		dlclose(handle);
	}
}

static int note_loaded(struct dl_phdr_info *info, size_t bytes, void *loaded)
{
	(void)bytes;
	*(unsigned long long *)loaded = info->dlpi_adds;
	return 1;
}

unsigned long long cuda_libraries_loaded(void)
{
	unsigned long long loaded = 0;

	dl_iterate_phdr(note_loaded, &loaded);
	return loaded;
}

void cuda_redirect_imports(void)
{
	static unsigned long long seen; /* atomic */
	unsigned long long loaded = cuda_libraries_loaded();
	struct importers *importers;
	int saved = errno;

	if (__atomic_exchange_n(&seen, loaded, __ATOMIC_ACQ_REL) != loaded) {
		importers = calloc(1, sizeof(*importers));
		if (importers)
			redirect_importers(importers);
		free(importers);
	}
	errno = saved;
}

bool cuda_imports_were_redirected(void)
{
	return __atomic_load_n(&was_redirected, __ATOMIC_RELAXED);
}
