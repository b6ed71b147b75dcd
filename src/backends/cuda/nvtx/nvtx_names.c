/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Persistent NVTX strings: domains, registered strings, names of categories. Nothing is ever freed,
 * and each kind has a limit. Handles passed in by programs are validated.
 */
#include <string.h>
#include <sys/mman.h>

#include "backends/cuda/nvtx/nvtx.h"

#define KEPT_BYTES (8u << 20)
#define DOMAINS 256u
#define STRINGS 8192u /* powers of two */
#define CATEGORIES 1024u
#define PROBES 32u

/* ---- bytes ---- */

static struct {
	char *start; /* reserved once; MAP_FAILED: no memory */
	uint64_t used;
} kept;

static char *reserve(void)
{
	char *start = __atomic_load_n(&kept.start, __ATOMIC_ACQUIRE), *none = NULL;

	if (start)
		return start;
	start = mmap(NULL, KEPT_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (__atomic_compare_exchange_n(&kept.start, &none, start, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return start;
	if (start != MAP_FAILED)
		munmap(start, KEPT_BYTES);
	return none;
}

void *nvtx_keep(size_t bytes)
{
	char *start = reserve();
	uint64_t at;

	if (start == MAP_FAILED || bytes > KEPT_BYTES ||
	    __atomic_load_n(&kept.used, __ATOMIC_RELAXED) > KEPT_BYTES - bytes)
		return NULL;
	bytes = (bytes + 15) / 16 * 16;
	at = __atomic_fetch_add(&kept.used, bytes, __ATOMIC_RELAXED);
	return at + bytes <= KEPT_BYTES ? start + at : NULL;
}

static bool is_kept(const void *pointer, size_t bytes)
{
	const char *start = __atomic_load_n(&kept.start, __ATOMIC_ACQUIRE), *at = pointer;

	return start && start != MAP_FAILED && at >= start && at <= start + KEPT_BYTES - bytes &&
	       (uintptr_t)at % 16 == 0;
}

/* ---- texts ---- */

static uint64_t hash_of(const char *text, size_t length)
{
	uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15), word;

	for (; length >= sizeof(word); text += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, text, length);
	hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 29;
}

/* Truncates to fit; invalid characters become '?'. */
static uint32_t narrow(const wchar_t *wide, char *to)
{
	uint32_t used = 0;

	for (; *wide && used < NVTX_TEXT_BYTES - 5; wide++) {
		uint32_t code = (uint32_t)*wide;

		if (code < 0x80) {
			to[used++] = (char)code;
		} else if (code < 0x800) {
			to[used++] = (char)(0xc0 | code >> 6);
			to[used++] = (char)(0x80 | (code & 0x3f));
		} else if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
			to[used++] = '?';
		} else {
			if (code < 0x10000) {
				to[used++] = (char)(0xe0 | code >> 12);
			} else {
				to[used++] = (char)(0xf0 | code >> 18);
				to[used++] = (char)(0x80 | (code >> 12 & 0x3f));
			}
			to[used++] = (char)(0x80 | (code >> 6 & 0x3f));
			to[used++] = (char)(0x80 | (code & 0x3f));
		}
	}
	to[used] = '\0';
	return used;
}

struct string {
	uint64_t mark; /* STRING; identifies valid handles */
	struct nvtx_name name;
	char text[];
};
#define STRING UINT64_C(0x6e7674782d737472)

static const struct string *string_of(const void *handle)
{
	const struct string *string = handle;

	return is_kept(handle, sizeof(*string)) && string->mark == STRING ? string : NULL;
}

struct nvtx_name nvtx_name_of(int type, union nvtx_text text, char *buffer)
{
	struct nvtx_name name = { "", 0, 0 };
	const struct string *string;

	if (type == NVTX_TEXT_ASCII && text.ascii) {
		name.text = text.ascii;
		name.length = (uint32_t)strnlen(text.ascii, UINT32_MAX);
	} else if (type == NVTX_TEXT_WIDE && text.wide) {
		name.text = buffer;
		name.length = narrow(text.wide, buffer);
	} else if (type == NVTX_TEXT_REGISTERED) {
		string = string_of(text.registered);
		if (string)
			return string->name;
	}
	name.hash = hash_of(name.text, name.length);
	return name;
}

/* ---- registered strings ---- */

static struct string *strings[STRINGS];

static bool is_same(const struct string *string, const struct nvtx_name *name)
{
	return string->name.hash == name->hash && string->name.length == name->length &&
	       !memcmp(string->text, name->text, name->length);
}

static struct string *new_string(const struct nvtx_name *name)
{
	struct string *string = nvtx_keep(sizeof(*string) + name->length + 1);

	if (!string)
		return NULL;
	memcpy(string->text, name->text, name->length);
	string->text[name->length] = '\0';
	string->name = (struct nvtx_name){ string->text, name->length, name->hash };
	__atomic_store_n(&string->mark, STRING, __ATOMIC_RELEASE);
	return string;
}

const void *nvtx_register(const struct nvtx_name *name)
{
	struct string *created = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct string **slot = &strings[(name->hash + i) % STRINGS];
		struct string *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!found) {
			created = created ? created : new_string(name);
			if (!created)
				return NULL;
			if (__atomic_compare_exchange_n(slot, &found, created, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return created;
		}
		if (is_same(found, name))
			return found;
	}
	/* The table is full: the string is not shared. */
	return created ? created : new_string(name);
}

/* ---- domains ---- */

static const struct nvtx_domain default_domain = { "", "nvtx" };
static const struct nvtx_domain *domains[DOMAINS];

static const struct nvtx_domain *new_domain(const char *name)
{
	static const char prefix[] = "nvtx:";
	size_t length = strnlen(name, 200);
	struct nvtx_domain *domain = nvtx_keep(sizeof(*domain) + sizeof(prefix) + length);
	char *text;

	if (!domain)
		return NULL;
	text = (char *)(domain + 1);
	memcpy(text, prefix, sizeof(prefix) - 1);
	memcpy(text + sizeof(prefix) - 1, name, length);
	domain->category = text;
	domain->name = text + sizeof(prefix) - 1;
	return domain;
}

const struct nvtx_domain *nvtx_domain_named(const char *name)
{
	const struct nvtx_domain *created = NULL;

	if (!name || !*name)
		return &default_domain;
	for (uint32_t i = 0; i < DOMAINS; i++) {
		const struct nvtx_domain *found = __atomic_load_n(&domains[i], __ATOMIC_ACQUIRE);

		if (!found) {
			created = created ? created : new_domain(name);
			if (!created)
				break;
			if (__atomic_compare_exchange_n(&domains[i], &found, created, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return created;
		}
		if (!strncmp(found->name, name, 200))
			return found;
	}
	return &default_domain;
}

const struct nvtx_domain *nvtx_domain_of(const void *handle)
{
	if (!handle)
		return &default_domain;
	for (uint32_t i = 0; i < DOMAINS; i++) {
		const struct nvtx_domain *domain = __atomic_load_n(&domains[i], __ATOMIC_ACQUIRE);

		if (!domain || domain == handle)
			return domain ? domain : &default_domain;
	}
	return &default_domain;
}

/* ---- categories ---- */

struct category {
	const struct nvtx_domain *domain;
	uint32_t id;
	const char *name;
};
static struct category *categories[CATEGORIES];

static uint32_t hash_slot(const struct nvtx_domain *domain, uint32_t id)
{
	return (uint32_t)((uintptr_t)domain / 16 * 31 + id);
}

void nvtx_name_category(const struct nvtx_domain *domain, uint32_t id, const struct nvtx_name *name)
{
	const struct string *string = nvtx_register(name);
	struct category *created = NULL;

	if (!string)
		return;
	for (uint32_t i = 0; i < PROBES; i++) {
		struct category **slot = &categories[(hash_slot(domain, id) + i) % CATEGORIES];
		struct category *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!found) {
			created = created ? created : nvtx_keep(sizeof(*created));
			if (!created)
				return;
			*created = (struct category){ domain, id, string->text };
			if (__atomic_compare_exchange_n(slot, &found, created, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return;
		}
		if (found->domain == domain && found->id == id) {
			__atomic_store_n(&found->name, string->text, __ATOMIC_RELEASE);
			return;
		}
	}
}

const char *nvtx_category_name(const struct nvtx_domain *domain, uint32_t id)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		const struct category *found = __atomic_load_n(
			&categories[(hash_slot(domain, id) + i) % CATEGORIES], __ATOMIC_ACQUIRE);

		if (!found)
			return NULL;
		if (found->domain == domain && found->id == id)
			return __atomic_load_n(&found->name, __ATOMIC_ACQUIRE);
	}
	return NULL;
}
