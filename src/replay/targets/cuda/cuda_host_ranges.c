/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the device reads and writes: mapped at its recorded addresses before the driver
 * starts, and registered with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "replay/targets/cuda/cuda_session.h"

/* Flags of cuMemHostRegister(): for all contexts, mapped, read only. */
#define REGISTER_KNOWN 11u
#define REGISTER_READ_ONLY 8u
#define REGISTER_ALLOCATED 3u
#define ALREADY_REGISTERED 712

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* ---- ranges of a window ---- */

static int add_registered(struct ts_replay_session *session, uint64_t address, uint64_t bytes,
			  unsigned int flags, struct ts_error *err)
{
	struct ts_cuda_registered *range;

	if (!bytes)
		return TS_OK;
	if (ts_grow_array((void **)&session->registered, &session->registered_capacity,
			  session->registered_count + 1, sizeof(*session->registered)))
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of host memory");
	range = &session->registered[session->registered_count++];
	*range = (struct ts_cuda_registered){ address, bytes, flags & REGISTER_KNOWN, false };
	return TS_OK;
}

static int list_space(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, memory);
	int rc = TS_OK;

	for (uint32_t i = 0; i < info->mapping_count && !rc; i++)
		rc = add_registered(session, info->mappings[i].offset, info->mappings[i].bytes,
				    info->mappings[i].is_registered ? info->mappings[i].flags
								    : REGISTER_ALLOCATED,
				    err);
	return rc;
}

static int list_alloc(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_command_info *command = &session->stream->commands[index];
	struct ts_cuda_details details;
	int rc;

	if (command->kind != TS_COMMAND_ALLOC || command->object == TS_REPLAY_NONE ||
	    !ts_cuda_is_host(session, command->object))
		return TS_OK;
	rc = ts_cuda_details_parse(&details, &session->arena, command->details, err);
	return rc ? rc
		  : add_registered(session, command->offset, command->bytes,
				   details.has_registered ? (unsigned int)details.registered
							  : REGISTER_ALLOCATED,
				   err);
}

static int by_address(const void *a, const void *b)
{
	const struct ts_cuda_registered *x = a, *y = b;

	return TS_COMPARE(x->address, y->address);
}

/*
 * What the program registered one after the other is registered all the time here: ranges that
 * overlap become one, since the driver refuses the second. It is read only if all of them were.
 */
static void merge_registered(struct ts_replay_session *session)
{
	struct ts_cuda_registered *ranges = session->registered, *last = NULL;
	size_t kept = 0;

	if (session->registered_count)
		ts_sort(ranges, session->registered_count, sizeof(*ranges), by_address);
	for (size_t i = 0; i < session->registered_count; i++) {
		const struct ts_cuda_registered range = ranges[i];

		if (!last || range.address >= last->address + last->bytes) {
			last = &ranges[kept++];
			*last = range;
			continue;
		}
		last->bytes = TS_MAX(last->bytes, range.address + range.bytes - last->address);
		last->flags = ((last->flags | range.flags) & ~REGISTER_READ_ONLY) |
			      (last->flags & range.flags & REGISTER_READ_ONLY);
	}
	session->registered_count = kept;
}

/* ---- mapping ---- */

/* What a range of addresses of this process holds: "[heap]", a file; "": unknown. */
static void find_occupant(uint64_t address, uint64_t bytes, char *name, size_t name_bytes)
{
	int file = ts_io_open("/proc/self/maps", O_RDONLY, 0);
	FILE *maps = file < 0 ? NULL : fdopen(file, "r");
	char line[512];

	name[0] = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		char *rest = line;
		uint64_t from = strtoull(rest, &rest, 16), to;

		to = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
		if (to <= address || from >= address + bytes)
			continue;
		/* Behind it: access, offset, device, inode, and what it is. */
		for (int i = 0; i < 4; i++) {
			rest += strspn(rest, " ");
			rest += strcspn(rest, " \n");
		}
		rest += strspn(rest, " ");
		line[strcspn(line, "\n")] = 0;
		snprintf(name, name_bytes, " by %.200s", *rest ? rest : "a mapping");
		break;
	}
	if (maps)
		fclose(maps);
	else if (file >= 0)
		close(file);
}

static int map_range(struct ts_replay_session *session, uint64_t address, uint64_t bytes,
		     struct ts_error *err)
{
	/* Addresses of a trace are not pointers of this process until they are mapped. */
	void *wanted = (void *)(uintptr_t)address;
	void *at = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	int error = errno;
	char name[256];

	if (at == wanted && session->host_maps) {
		session->host_maps[session->host_map_count++] =
			(struct ts_cuda_range){ address, bytes };
		return TS_OK;
	}
	/* Old kernels take the address as a hint. */
	if (at != MAP_FAILED)
		munmap(at, bytes);
	if (at == MAP_FAILED && error != EEXIST)
		return ts_error_errno(err, error,
				      "cannot map host memory at its recorded address 0x%" PRIx64
				      " (%" PRIu64 " bytes)",
				      address, bytes);
	find_occupant(address, bytes, name, sizeof(name));
	return ts_error_set(err, TS_ECAP,
			    "host memory at 0x%" PRIx64 " to 0x%" PRIx64
			    " is occupied in this process%s",
			    address, address + bytes, name);
}

/* They are pinned: more than this machine has would end other programs before it fails. */
static int check_host_room(const struct ts_cuda_ranges *all, struct ts_error *err)
{
	uint64_t need = 0, have = 2 * ts_cuda_host_bytes();
	char need_text[TS_FORMAT_BYTES], have_text[TS_FORMAT_BYTES];

	for (size_t i = 0; i < all->count; i++)
		if (__builtin_add_overflow(need, all->items[i].bytes, &need))
			need = UINT64_MAX;
	if (need <= have)
		return TS_OK;
	return ts_error_set(err, TS_ECAP,
			    "the window needs %s of pinned host memory; this machine has %s",
			    ts_format_bytes(need_text, sizeof(need_text), need),
			    ts_format_bytes(have_text, sizeof(have_text), have));
}

/* All pages of all ranges. */
static int map_all(struct ts_replay_session *session, struct ts_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct ts_cuda_ranges all = { 0 };
	int rc = TS_OK;

	for (size_t i = 0; i < session->registered_count && !rc; i++) {
		uint64_t from = session->registered[i].address / page * page, to;

		if (!from || __builtin_add_overflow(session->registered[i].address,
						    session->registered[i].bytes + page - 1, &to))
			rc = ts_error_set(err, TS_EFORMAT, "invalid range of host memory");
		else if (ts_cuda_ranges_add(&all, from, to / page * page - from))
			rc = ts_error_set(err, TS_ENOMEM, "no memory for host memory");
	}
	/* No end overflows. */
	if (!rc)
		merge_registered(session);
	if (!rc)
		rc = check_host_room(&all, err);
	session->host_maps =
		ts_arena_alloc_zeroed(&session->arena, all.count + 1, sizeof(*session->host_maps));
	if (!rc && !session->host_maps)
		rc = ts_error_set(err, TS_ENOMEM, "no memory for host memory");
	for (size_t i = 0; i < all.count && !rc; i++)
		rc = map_range(session, all.items[i].offset, all.items[i].bytes, err);
	free(all.items);
	return rc;
}

int ts_cuda_map_host(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (ts_cuda_info(session, i)->kind == TS_OBJECT_MEMORY &&
		    ts_cuda_is_host(session, i))
			rc = list_space(session, i, err);
	for (uint32_t i = 0; i < session->plan->count && !rc; i++)
		rc = list_alloc(session, session->plan->order[i], err);
	return rc ? rc : map_all(session, err);
}

int ts_cuda_register_host(struct ts_replay_session *session, struct ts_error *err)
{
	for (size_t i = 0; i < session->registered_count; i++) {
		struct ts_cuda_registered *range = &session->registered[i];
		int code = session->cu.MemHostRegister((void *)(uintptr_t)range->address,
						       range->bytes, range->flags);

		if (code && code != ALREADY_REGISTERED)
			return ts_cuda_fail(session, code, err,
					    "cannot register host memory at 0x%" PRIx64 " (%" PRIu64
					    " bytes)",
					    range->address, range->bytes);
		range->is_done = !code;
	}
	return TS_OK;
}

void ts_cuda_unmap_host(struct ts_replay_session *session)
{
	for (size_t i = 0; i < session->registered_count; i++)
		if (session->registered[i].is_done)
			session->cu.MemHostUnregister(
				(void *)(uintptr_t)session->registered[i].address);
	free(session->registered);
	for (size_t i = 0; i < session->host_map_count; i++)
		munmap((void *)(uintptr_t)session->host_maps[i].offset,
		       session->host_maps[i].bytes);
}
