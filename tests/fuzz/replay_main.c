/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files instead of libFuzzer: every file given, and every file in a given
 * directory, in sorted order. Prints each name before it runs, so that the last line before a crash
 * names the input. Skips missing directories, since git keeps no empty ones.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static unsigned long inputs;

static void die(const char *what, const char *path)
{
	fprintf(stderr, "cannot %s '%s': %s\n", what, path, strerror(errno));
	exit(2);
}

static void run_file(const char *path, size_t size)
{
	/* Exactly as large as the input, so that a sanitizer detects reads beyond it. */
	uint8_t *data = malloc(size ? size : 1);
	FILE *file = fopen(path, "rb");

	if (!data || !file)
		die("open", path);
	if (fread(data, 1, size, file) != size)
		die("read", path);
	fclose(file);

	printf("%s (%zu bytes)\n", path, size);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	inputs++;
}

static void run_path(const char *path);

static void run_folder(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	if (count < 0)
		die("list", path);
	for (int i = 0; i < count; i++) {
		char *child = NULL;

		if (entries[i]->d_name[0] != '.') {
			if (asprintf(&child, "%s/%s", path, entries[i]->d_name) < 0)
				die("list", path);
			run_path(child);
			free(child);
		}
		free(entries[i]);
	}
	free(entries);
}

static void run_path(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0) {
		if (errno == ENOENT)
			return;
		die("open", path);
	}
	if (S_ISDIR(status.st_mode))
		run_folder(path);
	else
		run_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	if (inputs == 0) {
		puts("skip: the corpus of this target is empty");
		return 77;
	}
	printf("%lu inputs\n", inputs);
	return 0;
}
