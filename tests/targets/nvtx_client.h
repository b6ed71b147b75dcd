/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client side of NVTX v3, as far as nvtx_marks.h needs it, with NVTX's own names: for machines
 * without its headers, and for what these do not do. A copy of NVTX asks the library named by
 * NVTX_INJECTION64_PATH to fill its tables, once; without such a library its functions do nothing.
 */
#ifndef NVTX_CLIENT_H
#define NVTX_CLIENT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#define NVTX_VERSION 3
#define NVTX_COLOR_ARGB 1
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_MESSAGE_TYPE_REGISTERED 3
#define NVTX_PAYLOAD_TYPE_INT64 2
#define NVTX_PAYLOAD_TYPE_DOUBLE 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

typedef struct nvtxDomain *nvtxDomainHandle_t;
typedef struct nvtxString *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;

typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	union {
		uint64_t ullValue;
		int64_t llValue;
		double dValue;
	} payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;

typedef void (*client_function)(void);

enum { CORE_COUNT = 16, CORE2_COUNT = 16 };
static client_function client_core[CORE_COUNT], client_core2[CORE2_COUNT];
static client_function *client_core_slots[CORE_COUNT + 1];
static client_function *client_core2_slots[CORE2_COUNT + 1];

static int client_module(int module, client_function ***ret_table, unsigned int *ret_count)
{
	if (module != 1 && module != 5)
		return 0;
	*ret_table = module == 1 ? client_core_slots : client_core2_slots;
	*ret_count = CORE_COUNT;
	return 1;
}

static const void *client_export(uint32_t id)
{
	static const struct {
		size_t size;
		int (*module)(int, client_function ***, unsigned int *);
	} callbacks = { sizeof(callbacks), client_module };

	return id == 1 ? &callbacks : NULL;
}

static void client_begin(void)
{
	static int is_begun;
	const char *path = is_begun ? NULL : getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(const void *(*)(uint32_t)) =
		library ? (int (*)(const void *(*)(uint32_t)))dlsym(library,
								    "InitializeInjectionNvtx2")
			: NULL;

	if (is_begun)
		return;
	is_begun = 1;
	for (int i = 1; i < CORE_COUNT; i++) {
		client_core_slots[i] = &client_core[i];
		client_core2_slots[i] = &client_core2[i];
	}
	if (initialize)
		initialize(client_export);
}

/* Calls entry `number` as a function of that type, if there is one. */
#define CLIENT_CALL(table, number, type, otherwise, ...)           \
	do {                                                       \
		client_begin();                                    \
		if (table[number])                                 \
			return ((type)table[number])(__VA_ARGS__); \
		return otherwise;                                  \
	} while (0)
#define CLIENT_DO(table, number, type, ...)                 \
	do {                                                \
		client_begin();                             \
		if (table[number])                          \
			((type)table[number])(__VA_ARGS__); \
	} while (0)

static inline void nvtxMarkA(const char *text)
{
	CLIENT_DO(client_core, 2, void (*)(const char *), text);
}

static inline nvtxRangeId_t nvtxRangeStartA(const char *text)
{
	CLIENT_CALL(client_core, 5, nvtxRangeId_t(*)(const char *), 0, text);
}

static inline void nvtxRangeEnd(nvtxRangeId_t id)
{
	CLIENT_DO(client_core, 7, void (*)(nvtxRangeId_t), id);
}

static inline int nvtxRangePushA(const char *text)
{
	CLIENT_CALL(client_core, 9, int (*)(const char *), -2, text);
}

static inline int nvtxRangePushW(const wchar_t *text)
{
	CLIENT_CALL(client_core, 10, int (*)(const wchar_t *), -2, text);
}

static inline int nvtxRangePop(void)
{
	CLIENT_CALL(client_core, 11, int (*)(void), -2);
}

static inline void nvtxNameOsThreadA(uint32_t thread, const char *name)
{
	CLIENT_DO(client_core, 14, void (*)(uint32_t, const char *), thread, name);
}

static inline void nvtxDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	CLIENT_DO(client_core2, 1, void (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t *),
		  domain, event);
}

static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain,
					const nvtxEventAttributes_t *event)
{
	CLIENT_CALL(client_core2, 4, int (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t *), -2,
		    domain, event);
}

static inline int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
	CLIENT_CALL(client_core2, 5, int (*)(nvtxDomainHandle_t), -2, domain);
}

static inline void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category,
					   const char *name)
{
	CLIENT_DO(client_core2, 8, void (*)(nvtxDomainHandle_t, uint32_t, const char *), domain,
		  category, name);
}

static inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain,
							   const char *text)
{
	CLIENT_CALL(client_core2, 10, nvtxStringHandle_t(*)(nvtxDomainHandle_t, const char *), NULL,
		    domain, text);
}

static inline nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
	CLIENT_CALL(client_core2, 12, nvtxDomainHandle_t(*)(const char *), NULL, name);
}

#endif
