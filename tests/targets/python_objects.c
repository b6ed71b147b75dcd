/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_objects COMMAND...: starts a Python with tests/python/objects.py, reads objects from its
 * memory, and compares them with what the script printed. Prints differences and the number of
 * comparisons. Exits with 1 on a difference, and with 77 for a pre-release version, whose offsets
 * must be refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/error.h>

#include "base/text.h"
#include "python/local/python_objects.h"

struct comparison {
	struct ts_python_memory memory;
	struct ts_python_layout layout;
	struct ts_python_process_view view;
	uint64_t modules;
	/* The requested thread, and what was found of it. */
	uint64_t thread_id, native_id;
	char name[256];
	bool is_main;
	unsigned int compared, wrong;
	bool is_refused;
};

#define FIELDS 6

static uint64_t hex(const char *text)
{
	return strtoull(text, NULL, 16);
}

static void check(struct comparison *comparison, const char *what, const char *found,
		  const char *expected)
{
	comparison->compared++;
	if (!strcmp(found, expected))
		return;
	comparison->wrong++;
	printf("%s: '%s', not '%s'\n", what, found, expected);
}

static void check_number(struct comparison *comparison, const char *what, uint64_t found,
			 uint64_t expected)
{
	char texts[2][32];

	snprintf(texts[0], sizeof(texts[0]), "%" PRIx64, found);
	snprintf(texts[1], sizeof(texts[1]), "%" PRIx64, expected);
	check(comparison, what, texts[0], texts[1]);
}

/* ---- one kind of line each ---- */

static bool set_version(struct comparison *comparison, char **fields)
{
	char runtime[TS_PYTHON_DEBUG_OFFSETS_BYTES];
	unsigned int minor = (unsigned int)strtoul(fields[1], NULL, 10);
	uint64_t version;

	if (minor < 13)
		return ts_python_layout_of_version(&comparison->layout, minor, fields[2][0] == '1');
	if (!ts_python_memory_read(&comparison->memory, hex(fields[3]), runtime, sizeof(runtime)))
		return false;
	if (!ts_python_layout_of_runtime(&comparison->layout, runtime, sizeof(runtime), &version))
		return true;
	comparison->is_refused = strcmp(fields[4], "final") != 0;
	return comparison->is_refused;
}

static bool check_repr(struct comparison *comparison, char **fields)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_python_repr(&comparison->view, hex(fields[1]), 4096, &text);
	check(comparison, "repr", ts_text_cstr(&text), fields[2]);
	return true;
}

static bool check_text(struct comparison *comparison, char **fields)
{
	char buffer[4096], shown[2 * sizeof(buffer)] = "-";
	int bytes = ts_python_read_text(&comparison->view, hex(fields[1]), buffer, sizeof(buffer));

	if (bytes < 0)
		strcpy(shown, "none");
	for (int i = 0; i < bytes; i++)
		sprintf(shown + 2 * i, "%02x", (unsigned char)buffer[i]);
	check(comparison, "text", shown, fields[2]);
	return true;
}

static bool check_find(struct comparison *comparison, char **fields)
{
	check_number(comparison, fields[2],
		     ts_python_dict_find(&comparison->view, hex(fields[1]), fields[2]),
		     hex(fields[3]));
	return true;
}

static bool check_attribute(struct comparison *comparison, char **fields)
{
	check_number(comparison, fields[2],
		     ts_python_attribute(&comparison->view, hex(fields[1]), fields[2]),
		     hex(fields[3]));
	return true;
}

static bool count_pair(void *context, uint64_t key, uint64_t value)
{
	unsigned int *count = context;

	*count += key && value;
	return true;
}

static bool check_each(struct comparison *comparison, char **fields)
{
	unsigned int count = 0;

	if (!ts_python_dict_each(&comparison->view, hex(fields[1]), SIZE_MAX, count_pair, &count))
		count = UINT32_MAX;
	check_number(comparison, "pairs of a dict", count, strtoull(fields[2], NULL, 10));
	return true;
}

static bool check_code(struct comparison *comparison, char **fields)
{
	struct ts_python_code_identity identity;
	struct ts_python_code_text text;
	uint8_t copy[1024], table[4096];
	uint64_t address = hex(fields[1]);

	if (comparison->layout.code.bytes > sizeof(copy) ||
	    !ts_python_memory_read(&comparison->memory, address, copy,
				   comparison->layout.code.bytes) ||
	    !ts_python_code_identify(&comparison->layout, address, 0, copy, &identity) ||
	    !ts_python_code_read(&comparison->view, &identity, &text, table, sizeof(table)))
		return false;
	check(comparison, "name of a code", text.name, fields[2]);
	check(comparison, "file of a code", text.file, fields[3]);
	check_number(comparison, "first line of a code", (uint64_t)identity.first_line,
		     strtoull(fields[4], NULL, 10));
	check_number(comparison, "a code has instructions", text.instruction_bytes > 0, 1);
	/* Its only statement is on the next line. */
	check_number(comparison, "line of the last instruction",
		     (uint64_t)ts_python_line(comparison->layout.lines, table, text.table_bytes,
					      identity.first_line, text.instruction_bytes - 2),
		     (uint64_t)identity.first_line + 1);
	return true;
}

/* Since 3.11 a frame visible to Python is an object that points to the real one. */
static uint64_t frame_at(struct comparison *comparison, uint64_t object)
{
	uint64_t frame = object;

	if (comparison->layout.frames != TS_PYTHON_FRAME_OBJECTS)
		ts_python_memory_read_pointer(&comparison->memory,
					      object + comparison->layout.object.bytes + 8, &frame);
	return frame;
}

static bool check_locals(struct comparison *comparison, char **fields)
{
	TS_SCOPED(ts_text) text = { 0 };

	ts_python_frame_locals(&comparison->view, frame_at(comparison, hex(fields[1])),
			       hex(fields[2]), 65536, &text);
	check(comparison, "locals", ts_text_cstr(&text), fields[3]);
	return true;
}

static bool check_limited(struct comparison *comparison, char **fields)
{
	TS_SCOPED(ts_text) text = { 0 };
	size_t limit = strtoull(fields[3], NULL, 10);

	ts_python_frame_locals(&comparison->view, frame_at(comparison, hex(fields[1])),
			       hex(fields[2]), limit, &text);
	check_number(comparison, "locals within a limit",
		     text.length <= limit && text.length > limit / 2 &&
			     strstr(ts_text_cstr(&text), " more\"}") != NULL,
		     1);
	return true;
}

static bool set_modules(struct comparison *comparison, char **fields)
{
	comparison->modules = hex(fields[1]);
	return true;
}

static void take_thread(void *context, uint64_t thread_id, const char *name, bool is_main,
			uint64_t native_id)
{
	struct comparison *comparison = context;

	if (thread_id != comparison->thread_id)
		return;
	snprintf(comparison->name, sizeof(comparison->name), "%s", name);
	comparison->is_main = is_main;
	comparison->native_id = native_id;
}

static bool check_thread(struct comparison *comparison, char **fields)
{
	comparison->thread_id = strtoull(fields[1], NULL, 10);
	comparison->name[0] = '\0';
	if (!ts_python_thread_names(&comparison->view, comparison->modules, take_thread,
				    comparison))
		return false;
	check(comparison, "name of a thread", comparison->name, fields[4]);
	check_number(comparison, "main thread", comparison->is_main, fields[3][0] == '1');
	check_number(comparison, "native id", comparison->native_id, strtoull(fields[2], NULL, 10));
	return true;
}

static bool check_task(struct comparison *comparison, char **fields)
{
	char name[256];
	uint64_t thread = hex(fields[1]);

	ts_python_task_name(&comparison->view, comparison->modules, thread, name, sizeof(name));
	check(comparison, "task", name, fields[2]);
	/* As found when no table gives the offset. */
	comparison->layout.thread.running_task = TS_PYTHON_NONE;
	comparison->layout.task.coroutine = TS_PYTHON_NONE;
	memset(&comparison->view.found, 0, sizeof(comparison->view.found));
	ts_python_task_name(&comparison->view, comparison->modules, thread, name, sizeof(name));
	check(comparison, "task by search", name, fields[2]);
	return true;
}

static const struct {
	const char *word;
	bool (*check)(struct comparison *comparison, char **fields);
	size_t fields;
} kinds[] = {
	{ "version", set_version, 5 }, { "repr", check_repr, 3 },
	{ "text", check_text, 3 },     { "find", check_find, 4 },
	{ "each", check_each, 3 },     { "attribute", check_attribute, 4 },
	{ "code", check_code, 5 },     { "locals", check_locals, 4 },
	{ "thread", check_thread, 5 }, { "limited", check_limited, 4 },
	{ "task", check_task, 3 },     { "modules", set_modules, 2 },
};

static bool check_line(struct comparison *comparison, char *line)
{
	char *fields[FIELDS] = { NULL };
	size_t count = 0;

	line[strcspn(line, "\n")] = '\0';
	for (char *rest = line; rest && count < FIELDS;)
		fields[count++] = strsep(&rest, "\t");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(fields[0], kinds[i].word) && count >= kinds[i].fields &&
		    kinds[i].check(comparison, fields))
			return true;
	printf("cannot check '%s'\n", line);
	comparison->wrong++;
	return false;
}

/* ---- the program ---- */

static pid_t start(char **command, int *ret_in, int *ret_out)
{
	int in[2], out[2];
	pid_t pid;

	if (pipe(in) || pipe(out))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execvp(command[0], command);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return pid;
}

static bool compare(struct comparison *comparison, FILE *lines)
{
	char **list = NULL, *line = NULL;
	size_t capacity = 0, count = 0;
	bool is_complete = false;

	/* Reads everything first: until then the program still runs. */
	while (!is_complete && getline(&line, &capacity, lines) > 0) {
		is_complete = !strcmp(line, "end\n");
		list = realloc(list, (count + 1) * sizeof(*list));
		if (!list)
			abort();
		list[count++] = strdup(line);
	}
	for (size_t i = 0; i < count; i++) {
		if (is_complete && i + 1 < count && !comparison->is_refused)
			check_line(comparison, list[i]);
		free(list[i]);
	}
	free(list);
	free(line);
	return is_complete;
}

int main(int argc, char **argv)
{
	static struct comparison comparison;
	int in, out, status;
	bool is_complete;
	FILE *lines;

	if (argc < 2) {
		fputs("usage: python_objects PYTHON objects.py\n", stderr);
		return 2;
	}
	comparison.memory.pid = start(argv + 1, &in, &out);
	lines = comparison.memory.pid > 0 ? fdopen(out, "r") : NULL;
	if (!lines)
		return 2;
	comparison.view = (struct ts_python_process_view){ .memory = &comparison.memory,
							   .layout = &comparison.layout };
	is_complete = compare(&comparison, lines);
	close(in);
	fclose(lines);
	waitpid(comparison.memory.pid, &status, 0);
	if (is_complete && comparison.is_refused) {
		puts("skip: a version before its release, with other offsets");
		return 77;
	}
	if (!is_complete)
		puts("the program has not come to its end");
	printf("%u things compared, %u differ; %" PRIu64 " reads\n", comparison.compared,
	       comparison.wrong, comparison.memory.system_calls);
	return !is_complete || comparison.wrong || comparison.compared < 300;
}
