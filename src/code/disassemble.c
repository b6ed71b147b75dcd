/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs nvdisasm or cuobjdump on a cubin and parses the output, which both print alike: an address
 * between comment marks, then the instruction up to a semicolon. Run time and output are limited.
 */
#include "code/disassemble.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/subprocess.h"
#include "base/temporary.h"
#include "base/text.h"

#define LIMIT_NS INT64_C(30000000000)
#define MOST_BYTES ((size_t)64 << 20)
#define PATH_BYTES 4096

struct line {
	uint64_t address;
	const char *text;
};

struct ts_disassembly {
	struct ts_text output; /* split into lines in place */
	struct line *lines;
	size_t count, capacity;
};

/* ---- parsing the output ---- */

/* Parses the address before the end of a comment mark; *ret_end: the text after it. */
static bool take_address(const char *at, uint64_t *ret_address, const char **ret_end)
{
	uint64_t address = 0;
	unsigned int digits = 0;

	for (; isxdigit((unsigned char)*at) && digits < 16; at++, digits++)
		address = address * 16 +
			  (uint64_t)(isdigit((unsigned char)*at)
					     ? *at - '0'
					     : tolower((unsigned char)*at) - 'a' + 10);
	if (digits < 4 || at[0] != '*' || at[1] != '/')
		return false;
	*ret_address = address;
	*ret_end = at + 2;
	return true;
}

/* Adds an instruction line; false: not an instruction, or no memory. */
static bool add_line(struct ts_disassembly *disassembly, char *text)
{
	const char *begin;
	uint64_t address;
	char *end;

	text += strspn(text, " \t");
	if (text[0] != '/' || text[1] != '*' || !take_address(text + 2, &address, &begin))
		return false;
	begin += strspn(begin, " \t");
	end = strchr(begin, ';');
	if (!end)
		return false;
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	if (ts_grow_array((void **)&disassembly->lines, &disassembly->capacity,
			  disassembly->count + 1, sizeof(*disassembly->lines)))
		return false;
	disassembly->lines[disassembly->count++] =
		(struct line){ .address = address, .text = begin };
	return true;
}

/*
 * Of lines with equal addresses the first in the output wins: later ones belong to other functions.
 */
static int compare_lines(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	if (left->address != right->address)
		return TS_COMPARE(left->address, right->address);
	return TS_COMPARE(left->text, right->text);
}

static void read_lines(struct ts_disassembly *disassembly)
{
	char *at = disassembly->output.data, *end;

	for (; at && *at; at = end) {
		end = strchr(at, '\n');
		if (end)
			*end++ = '\0';
		add_line(disassembly, at);
	}
	ts_sort(disassembly->lines, disassembly->count, sizeof(*disassembly->lines), compare_lines);
}

/* ---- running the disassembler ---- */

/* The file needs a name: disassemblers read a path. */
static int write_file(char *path, size_t path_bytes, const void *image, size_t bytes,
		      struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	int rc;

	snprintf(path, path_bytes, "%s/tracesmith-cubin-XXXXXX", ts_temporary_directory());
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return ts_error_errno(err, errno, "cannot create a temporary file in '%s'",
				      ts_temporary_directory());
	rc = ts_write_all(fd, image, bytes, err);
	if (rc)
		unlink(path);
	return rc;
}

/* Python packages that bundle one: Triton's, and NVIDIA's own. */
static bool find_in_packages(const char *root, const char *inside, const char *name, char *ret_path,
			     size_t bytes)
{
	static const char *const folders[] = { "triton/backends/nvidia/bin", "nvidia/*/bin" };
	bool is_found = false;

	for (size_t i = 0; !is_found && i < TS_ARRAY_SIZE(folders); i++) {
		char pattern[PATH_BYTES];
		glob_t found = { 0 };

		snprintf(pattern, sizeof(pattern), "%s/%s/%s/%s", root, inside, folders[i], name);
		is_found = !glob(pattern, 0, NULL, &found) && found.gl_pathc > 0 &&
			   !access(found.gl_pathv[0], X_OK);
		if (is_found)
			snprintf(ret_path, bytes, "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	return is_found;
}

/*
 * Searches Python's package folders: the active environment's, the user's, the system's. Paths from
 * the trace are not trusted.
 */
static bool find_bundled(const char *name, char *ret_path, size_t bytes)
{
	static const char *const variables[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };
	static const char *const roots[] = { "/usr/local", "/usr", "/opt/conda", "/opt/venv" };
	const char *home = getenv("HOME");
	char local[PATH_BYTES];

	for (size_t i = 0; i < TS_ARRAY_SIZE(variables); i++) {
		const char *root = getenv(variables[i]);

		if (root && *root == '/' &&
		    find_in_packages(root, "lib/python3*/site-packages", name, ret_path, bytes))
			return true;
	}
	snprintf(local, sizeof(local), "%s/.local", home ? home : "");
	if (home && *home == '/' &&
	    find_in_packages(local, "lib/python3*/site-packages", name, ret_path, bytes))
		return true;
	for (size_t i = 0; i < TS_ARRAY_SIZE(roots); i++)
		if (find_in_packages(roots[i], "lib/python3*/*-packages", name, ret_path, bytes))
			return true;
	return false;
}

static bool find_program(const char *name, char *ret_path, size_t bytes)
{
	char home[PATH_BYTES] = "/usr/local/cuda/bin";
	const char *const places[] = { home, "/usr/local/cuda/bin", "/opt/cuda/bin", NULL };
	const char *set = getenv("CUDA_HOME");

	if (set && *set)
		snprintf(home, sizeof(home), "%s/bin", set);
	return ts_subprocess_find(name, places, ret_path, bytes) ||
	       find_bundled(name, ret_path, bytes);
}

bool ts_disassembler_find(char *ret_path, size_t bytes, bool *ret_is_nvdisasm)
{
	*ret_is_nvdisasm = find_program("nvdisasm", ret_path, bytes);
	return *ret_is_nvdisasm || find_program("cuobjdump", ret_path, bytes);
}

static int run(struct ts_disassembly *disassembly, const char *const *arguments,
	       struct ts_error *err)
{
	struct ts_subprocess program = { .arguments = arguments,
					 .limit_ns = LIMIT_NS,
					 .max_bytes = MOST_BYTES };
	struct ts_subprocess_result result;
	char how[128];
	int rc = ts_subprocess_run(&program, &result, err);

	/* Output before a limit is usable. */
	if (!rc && !ts_subprocess_succeeded(&result) && !result.cut)
		rc = ts_error_set(err, TS_ECAP, "'%s' %s", arguments[0],
				  ts_subprocess_describe_end(&result, how, sizeof(how)));
	if (!rc) {
		disassembly->output = result.output;
		result.output = (struct ts_text){ 0 };
		ts_text_cstr(&disassembly->output);
		if (!ts_text_status(&disassembly->output))
			read_lines(disassembly);
	}
	ts_subprocess_result_release(&result);
	return rc;
}

int ts_disassemble(struct ts_disassembly **ret_disassembly, const void *image, size_t bytes,
		   const char *function, size_t symbol, struct ts_error *err)
{
	TS_AUTO(ts_disassembly) disassembly = calloc(1, sizeof(*disassembly));
	char program[PATH_BYTES], path[PATH_BYTES], number[24];
	bool is_nvdisasm;
	int rc;

	if (!disassembly)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (!ts_disassembler_find(program, sizeof(program), &is_nvdisasm))
		return ts_error_set(err, TS_ENOTFOUND,
				    "neither nvdisasm nor cuobjdump is in PATH, $CUDA_HOME/bin, "
				    "/usr/local/cuda/bin or a Python package");
	rc = write_file(path, sizeof(path), image, bytes, err);
	if (rc)
		return rc;
	snprintf(number, sizeof(number), "%zu", symbol);
	if (is_nvdisasm)
		rc = run(disassembly,
			 (const char *const[]){ program, "-c", "-fun", number, path, NULL }, err);
	else
		rc = run(disassembly,
			 (const char *const[]){ program, "-sass", "-fun", function, path, NULL },
			 err);
	unlink(path);
	if (!rc)
		*ret_disassembly = TS_STEAL(disassembly);
	return rc;
}

void ts_disassembly_free(struct ts_disassembly *disassembly)
{
	if (!disassembly)
		return;
	ts_text_release(&disassembly->output);
	free(disassembly->lines);
	free(disassembly);
}

const char *ts_disassembly_at(const struct ts_disassembly *disassembly, uint64_t address)
{
	size_t low = 0, high = disassembly->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (disassembly->lines[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < disassembly->count && disassembly->lines[low].address == address
		       ? disassembly->lines[low].text
		       : NULL;
}
