/* SPDX-License-Identifier: Apache-2.0 */
/* Demangles C++ names with the machine's libstdc++, opened with dlopen(). */
#include "code/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "code/demangle_internal.h"

#define MAX_BYTES 4096u     /* of a name; those of templates can be megabytes */
#define LONG_BYTES 65536u   /* of a name wanted in full */
#define MAX_SIZE (1u << 19) /* given to the library, which has no limit of its own */
#define RUST_HASH 19u       /* "::h" and 16 digits */

typedef char *demangle_function(const char *name, char *buffer, size_t *bytes, int *status);

static demangle_function *demangler;

static void find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

	if (library)
		demangler = (demangle_function *)dlsym(library, "__cxa_demangle");
}

/* Rust's legacy names are C++ names that end in a hash. */
static void cut_hash(char *name)
{
	size_t length = strlen(name);

	if (length > RUST_HASH && memcmp(name + length - RUST_HASH, "::h", 3) == 0 &&
	    strspn(name + length - RUST_HASH + 3, "0123456789abcdef") == RUST_HASH - 3)
		name[length - RUST_HASH] = '\0';
}

bool ts_can_demangle(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_demangler);
	return demangler != NULL;
}

static char *demangle(const char *name, size_t most)
{
	char *plain;

	if (strncmp(name, "_Z", 2) != 0 || strlen(name) > most)
		return NULL;
	if (!ts_can_demangle() || demangle_size(name) > MAX_SIZE)
		return NULL;
	plain = demangler(name, NULL, NULL, NULL);
	if (plain && strlen(plain) > most) {
		free(plain);
		return NULL;
	}
	if (plain)
		cut_hash(plain);
	return plain;
}

char *ts_demangle(const char *name)
{
	return demangle(name, MAX_BYTES);
}

char *ts_demangle_long(const char *name)
{
	return demangle(name, LONG_BYTES);
}
