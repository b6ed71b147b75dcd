/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL collectives: records the calls, and how many bytes the kernels that they launch move. Uses
 * the public interface of nccl.h, unchanged since NCCL 2.0. A process may have several NCCL
 * libraries; each caller gets its own. No lock: tables are filled by compare-and-swap.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "backends/cuda/calls/cuda_calls.h"

/* NCCL_CALL(name, arguments, position of the count; the type follows it; -1: no bytes) */
#define NCCL_CALLS                         \
	NCCL_CALL(ncclAllReduce, 7, 2)     \
	NCCL_CALL(ncclReduceScatter, 7, 2) \
	NCCL_CALL(ncclReduce, 8, 2)        \
	NCCL_CALL(ncclBroadcast, 7, 2)     \
	NCCL_CALL(ncclBcast, 6, 1)         \
	NCCL_CALL(ncclAllGather, 6, 2)     \
	NCCL_CALL(ncclAlltoAll, 6, 2)      \
	NCCL_CALL(ncclGather, 7, 2)        \
	NCCL_CALL(ncclScatter, 7, 2)       \
	NCCL_CALL(ncclSend, 6, 1)          \
	NCCL_CALL(ncclRecv, 6, 1)          \
	NCCL_CALL(ncclGroupStart, 0, -1)   \
	NCCL_CALL(ncclGroupEnd, 0, -1)

/* Wrappers per name, for as many NCCL libraries. Calls to further ones are not recorded. */
#define COPIES 4

enum collective_index {
#define NCCL_CALL(name, arguments, count) INDEX_##name,
	NCCL_CALLS
#undef NCCL_CALL
		COLLECTIVES
};

/* "Not supported" in NCCL: ncclInvalidUsage. */
#define NCCL_MISSING 5

struct collective {
	const char *name;
	int8_t count;   /* position */
	void *exported; /* what libraries are bound to by name */
	void *wrappers[COPIES];
	void *reals[COPIES]; /* what wrappers call; NULL: not in use yet */
	struct ts_emit_site site;
};
static struct collective collectives[COLLECTIVES];

/* Kernels are launched when the outermost group ends: bytes add up until then. */
struct collective_thread {
	uint32_t depth; /* of calls, and of open groups */
	uint32_t groups;
	int64_t bytes;
};
static __thread struct collective_thread this_thread __attribute__((tls_model("initial-exec")));

int64_t cuda_collective_bytes(void)
{
	return this_thread.bytes;
}

/* ncclDataType_t, in its order. */
static int64_t bytes_of(const struct collective *collective, const uintptr_t *args)
{
	static const uint8_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	uint64_t count, bytes;
	uint32_t type;

	if (collective->count < 0)
		return 0;
	count = args[collective->count];
	type = (uint32_t)args[collective->count + 1];
	if (type >= sizeof(sizes) || __builtin_mul_overflow(count, (uint64_t)sizes[type], &bytes) ||
	    bytes > INT64_MAX)
		return 0;
	return (int64_t)bytes;
}

static uint64_t enter(const struct collective *collective, const uintptr_t *args)
{
	if (collective == &collectives[INDEX_ncclGroupStart])
		this_thread.groups++;
	this_thread.depth++;
	this_thread.bytes += bytes_of(collective, args);
	if (this_thread.bytes && __atomic_load_n(&cuda_replaying, __ATOMIC_RELAXED))
		capture_collective(collective->name);
	return ts_now();
}

static void leave(struct collective *collective, uint64_t start, int result)
{
	struct ts_accelerator_call row = {
		.size = sizeof(row), .start = start, .end = ts_now(), .result = result
	};

	this_thread.depth--;
	if (collective == &collectives[INDEX_ncclGroupEnd] && this_thread.groups)
		this_thread.groups--;
	if (!this_thread.groups)
		this_thread.bytes = 0;
	if (!ts_enabled())
		return;
	row.stack = ts_accelerator_stack();
	ts_accelerator_call_with(&collective->site, &row);
}

/* Groups are tracked outside of windows, too. */
static inline bool counts(void)
{
	return __atomic_load_n(&cuda_wanted, __ATOMIC_RELAXED) && !this_thread.depth;
}

#define W uintptr_t
#define TYPES_0 void
#define TYPES_6 W, W, W, W, W, W
#define TYPES_7 TYPES_6, W
#define TYPES_8 TYPES_6, W, W
#define PARAMETERS_0 void
#define PARAMETERS_6 W a, W b, W c, W d, W e, W f
#define PARAMETERS_7 PARAMETERS_6, W g
#define PARAMETERS_8 PARAMETERS_6, W g, W h
#define ARGUMENTS_0
#define ARGUMENTS_6 a, b, c, d, e, f
#define ARGUMENTS_7 ARGUMENTS_6, g
#define ARGUMENTS_8 ARGUMENTS_6, g, h
#define VALUES_0 0
#define VALUES_6 ARGUMENTS_6
#define VALUES_7 ARGUMENTS_7
#define VALUES_8 ARGUMENTS_8

#define WRAPPER(name, arguments, copy)                                                        \
	static int name##_##copy(PARAMETERS_##arguments)                                      \
	{                                                                                     \
		struct collective *collective = &collectives[INDEX_##name];                   \
		int (*real)(TYPES_##arguments) = (int (*)(TYPES_##arguments))__atomic_load_n( \
			&collective->reals[copy], __ATOMIC_ACQUIRE);                          \
		uint64_t start;                                                               \
		int result;                                                                   \
                                                                                              \
		if (!counts())                                                                \
			return real(ARGUMENTS_##arguments);                                   \
		start = enter(collective, (const uintptr_t[]){ VALUES_##arguments });         \
		result = real(ARGUMENTS_##arguments);                                         \
		leave(collective, start, result);                                             \
		return result;                                                                \
	}
#define NCCL_CALL(name, arguments, position) \
	WRAPPER(name, arguments, 0)          \
	WRAPPER(name, arguments, 1)          \
	WRAPPER(name, arguments, 2)          \
	WRAPPER(name, arguments, 3)
NCCL_CALLS
#undef NCCL_CALL

/* ---- the exported names ---- */

/*
 * A function of that name need not be NCCL's: until its owner is known, all argument registers are
 * preserved. Then jumps to the wrapper, or to the function itself. cuda_collective_target(number,
 * caller) returns the target.
 */
#if defined(__x86_64__)
#define EXPORTED_TYPE "@function"
#define EXPORTED_CODE                \
	"	endbr64\n"                 \
	"	movl $collective, %r11d\n" \
	"	jmp cuda_collective_go\n"
#define GO_CODE                          \
	"	pushq %rax\n"                  \
	"	pushq %rdi\n"                  \
	"	pushq %rsi\n"                  \
	"	pushq %rdx\n"                  \
	"	pushq %rcx\n"                  \
	"	pushq %r8\n"                   \
	"	pushq %r9\n"                   \
	"	.cfi_adjust_cfa_offset 56\n"   \
	"	subq $128, %rsp\n"             \
	"	.cfi_adjust_cfa_offset 128\n"  \
	"	movups %xmm0, 0(%rsp)\n"       \
	"	movups %xmm1, 16(%rsp)\n"      \
	"	movups %xmm2, 32(%rsp)\n"      \
	"	movups %xmm3, 48(%rsp)\n"      \
	"	movups %xmm4, 64(%rsp)\n"      \
	"	movups %xmm5, 80(%rsp)\n"      \
	"	movups %xmm6, 96(%rsp)\n"      \
	"	movups %xmm7, 112(%rsp)\n"     \
	"	movl %r11d, %edi\n"            \
	"	movq 128+56(%rsp), %rsi\n"     \
	"	call cuda_collective_target\n" \
	"	movq %rax, %r11\n"             \
	"	movups 0(%rsp), %xmm0\n"       \
	"	movups 16(%rsp), %xmm1\n"      \
	"	movups 32(%rsp), %xmm2\n"      \
	"	movups 48(%rsp), %xmm3\n"      \
	"	movups 64(%rsp), %xmm4\n"      \
	"	movups 80(%rsp), %xmm5\n"      \
	"	movups 96(%rsp), %xmm6\n"      \
	"	movups 112(%rsp), %xmm7\n"     \
	"	addq $128, %rsp\n"             \
	"	.cfi_adjust_cfa_offset -128\n" \
	"	popq %r9\n"                    \
	"	popq %r8\n"                    \
	"	popq %rcx\n"                   \
	"	popq %rdx\n"                   \
	"	popq %rsi\n"                   \
	"	popq %rdi\n"                   \
	"	popq %rax\n"                   \
	"	.cfi_adjust_cfa_offset -56\n"  \
	"	jmpq *%r11\n"
#elif defined(__aarch64__)
#define EXPORTED_TYPE "%function"
#define EXPORTED_CODE                   \
	"	hint #34\n" /* bti c */ \
	"	mov w16, #collective\n"       \
	"	b cuda_collective_go\n"
#define GO_CODE                          \
	"	stp x29, x30, [sp, #-224]!\n"  \
	"	.cfi_adjust_cfa_offset 224\n"  \
	"	.cfi_rel_offset x29, 0\n"      \
	"	.cfi_rel_offset x30, 8\n"      \
	"	mov x29, sp\n"                 \
	"	stp x0, x1, [sp, #16]\n"       \
	"	stp x2, x3, [sp, #32]\n"       \
	"	stp x4, x5, [sp, #48]\n"       \
	"	stp x6, x7, [sp, #64]\n"       \
	"	str x8, [sp, #80]\n"           \
	"	stp q0, q1, [sp, #96]\n"       \
	"	stp q2, q3, [sp, #128]\n"      \
	"	stp q4, q5, [sp, #160]\n"      \
	"	stp q6, q7, [sp, #192]\n"      \
	"	mov w0, w16\n"                 \
	"	mov x1, x30\n"                 \
	"	bl cuda_collective_target\n"   \
	"	mov x16, x0\n"                 \
	"	ldp x0, x1, [sp, #16]\n"       \
	"	ldp x2, x3, [sp, #32]\n"       \
	"	ldp x4, x5, [sp, #48]\n"       \
	"	ldp x6, x7, [sp, #64]\n"       \
	"	ldr x8, [sp, #80]\n"           \
	"	ldp q0, q1, [sp, #96]\n"       \
	"	ldp q2, q3, [sp, #128]\n"      \
	"	ldp q4, q5, [sp, #160]\n"      \
	"	ldp q6, q7, [sp, #192]\n"      \
	"	ldp x29, x30, [sp], #224\n"    \
	"	.cfi_adjust_cfa_offset -224\n" \
	"	.cfi_restore x29\n"            \
	"	.cfi_restore x30\n"            \
	"	br x16\n"
#endif

/* The second name is for us: the first may be bound to a library ahead of ours. */
#define NCCL_CALL(name, arguments, position)                      \
	".globl " #name "\n"                                      \
	".globl cuda_exported_" #name "\n"                        \
	".hidden cuda_exported_" #name "\n"                       \
	".type " #name ", " EXPORTED_TYPE "\n"                    \
	".p2align 4\n" #name ":\n"                                \
	"cuda_exported_" #name ":\n"                              \
	"	.cfi_startproc\n" EXPORTED_CODE "	.cfi_endproc\n" \
	".size " #name ", . - " #name "\n"                        \
	".set collective, collective + 1\n"
__asm__(".text\n"
	".type cuda_collective_go, " EXPORTED_TYPE "\n"
	".p2align 4\n"
	"cuda_collective_go:\n"
	"	.cfi_startproc\n" GO_CODE "	.cfi_endproc\n"
	".size cuda_collective_go, . - cuda_collective_go\n"
	".set collective, 0\n" NCCL_CALLS);
#undef NCCL_CALL

#define NCCL_CALL(name, arguments, position) \
	extern const char cuda_exported_##name[] __attribute__((visibility("hidden")));
NCCL_CALLS
#undef NCCL_CALL

static struct collective collectives[COLLECTIVES] = {
#define NCCL_CALL(name_, arguments, position)                                                      \
	[INDEX_##name_] = { .name = #name_,                                                        \
			    .count = position,                                                     \
			    .exported = (void *)cuda_exported_##name_,                             \
			    .wrappers = { (void *)name_##_0, (void *)name_##_1, (void *)name_##_2, \
					  (void *)name_##_3 },                                     \
			    .site = TS_CALL_SITE(#name_, "nccl") },
	NCCL_CALLS
#undef NCCL_CALL
};

/* ---- which NCCL ---- */

static int missing(void)
{
	return NCCL_MISSING;
}

/* Looks up a name in the library at this address and its dependencies. */
static void *symbol_in(const void *of, const char *name)
{
	struct link_map *map = NULL;
	void *library, *found;
	Dl_info info;

	if (!dladdr1(of, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return NULL;
	library = dlopen(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	if (!library)
		return NULL;
	found = cuda_symbol(library, name);
	dlclose(library);
	return found;
}

/* Names that programs used for their own functions before NCCL did. */
static bool is_new(const struct collective *collective)
{
	return collective == &collectives[INDEX_ncclAlltoAll] ||
	       collective == &collectives[INDEX_ncclGather] ||
	       collective == &collectives[INDEX_ncclScatter];
}

static bool is_of_nccl(const void *address)
{
	void *other = symbol_in(address, "ncclGetUniqueId");
	Dl_info address_info, other_info;

	return other && dladdr(address, &address_info) && dladdr(other, &other_info) &&
	       address_info.dli_fbase == other_info.dli_fbase;
}

/* The wrapper of a function that was found, else the function itself. */
static void *wrapper_of(struct collective *collective, void *address)
{
	if (is_new(collective) && !is_of_nccl(address))
		return address;
	for (size_t i = 0; i < COPIES; i++) {
		void *found = NULL;

		if (__atomic_compare_exchange_n(&collective->reals[i], &found, address, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		    found == address)
			return collective->wrappers[i];
	}
	return address;
}

struct order {
	uintptr_t first, second;
	bool is_first;
};

static int see_order(struct dl_phdr_info *info, size_t bytes, void *to)
{
	struct order *order = to;

	(void)bytes;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t size = info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		order->is_first = order->first - start < size;
		if (order->is_first || order->second - start < size)
			return 1;
	}
	return 0;
}

static bool is_loaded_before(const void *first, const void *second)
{
	struct order order = { (uintptr_t)first, (uintptr_t)second, false };

	dl_iterate_phdr(see_order, &order);
	return order.is_first;
}

/*
 * What a caller would be bound to without us: the globally visible function, else that of its own
 * library and its dependencies. One that became global after the caller was loaded came too late
 * for it.
 */
static void *visible_to(const struct collective *collective, const void *caller)
{
	void *global = cuda_symbol(RTLD_NEXT, collective->name);
	void *local = symbol_in(caller, collective->name);

	if (!local || local == collective->exported || local == global)
		return global;
	return global && is_loaded_before(global, caller) ? global : local;
}

/*
 * The caller is bound to us although it sees no NCCL: a library next to it has loaded one, or it
 * was a tail call from another library, and only the caller of that is known. Assume the usual
 * NCCL.
 */
static void *real_for(const struct collective *collective, const void *caller)
{
	void *found = visible_to(collective, caller);
	void *library;

	if (found)
		return found;
	library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	return library ? cuda_symbol(library, collective->name) : NULL;
}

/* ---- by name: targets by call address ---- */

#define TARGETS 1024u
#define PROBES 16u

struct target {
	uintptr_t key; /* 0: free */
	void *address; /* NULL: not written yet */
};
static struct target targets[TARGETS];

/* One call instruction may call several of them, through a pointer. */
static uintptr_t key_of(uint32_t number, uintptr_t caller)
{
	_Static_assert(COLLECTIVES <= 16, "a key has four bits for them");
	return caller << 4 | number;
}

static uint32_t hash_slot(uintptr_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 54) % TARGETS;
}

static void *recall(uintptr_t key)
{
	for (uint32_t i = 0, at = hash_slot(key); i < PROBES; i++, at = (at + 1) % TARGETS) {
		uintptr_t found = __atomic_load_n(&targets[at].key, __ATOMIC_ACQUIRE);

		if (found == key)
			return __atomic_load_n(&targets[at].address, __ATOMIC_ACQUIRE);
		if (!found)
			return NULL;
	}
	return NULL;
}

static void remember(uintptr_t key, void *address)
{
	for (uint32_t i = 0, at = hash_slot(key); i < PROBES; i++, at = (at + 1) % TARGETS) {
		uintptr_t found = 0;

		if (__atomic_compare_exchange_n(&targets[at].key, &found, key, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		    found == key) {
			__atomic_store_n(&targets[at].address, address, __ATOMIC_RELEASE);
			return;
		}
	}
}

static void *find_target(uint32_t number, uintptr_t caller)
{
	struct collective *collective = &collectives[number];
	void *found = real_for(collective, (const void *)caller);

	if (!found)
		return (void *)missing;
	found = wrapper_of(collective, found);
	remember(key_of(number, caller), found);
	return found;
}

__attribute__((visibility("hidden"), used)) void *cuda_collective_target(uint32_t number,
									 uintptr_t caller);
void *cuda_collective_target(uint32_t number, uintptr_t caller)
{
	void *target = recall(key_of(number, caller));
	int saved = errno;

	if (target)
		return target;
	target = find_target(number, caller);
	dlerror();
	errno = saved;
	return target;
}

/* ---- by dlsym() ---- */

void *cuda_collective_for(void *handle, const char *name, void *address, const void *caller)
{
	for (size_t i = 0; i < COLLECTIVES; i++) {
		struct collective *collective = &collectives[i];

		if (strcmp(collective->name, name))
			continue;
		if (address == collective->exported)
			address = handle == RTLD_DEFAULT ? visible_to(collective, caller)
							 : cuda_symbol(RTLD_NEXT, name);
		return address ? wrapper_of(collective, address) : NULL;
	}
	return address;
}
