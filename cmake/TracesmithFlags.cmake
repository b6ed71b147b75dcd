# SPDX-License-Identifier: Apache-2.0
# Compiler flags, as interface targets:
#   ts_warnings  warnings, for everything
#   ts_flags     warnings and sanitizers, for everything but the agent
#   ts_private   private headers, for src/ and its tests

if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# Assertions stay on in the default build; a Release build drops them.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
# The same objects go into the tool and into the agent's shared object.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(ts_warnings INTERFACE)
target_compile_options(ts_warnings INTERFACE
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
	-Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 -Wimplicit-fallthrough
	# Functions in tables rarely use all of their parameters.
	-Wno-unused-parameter
	# __FILE__ does not depend on the location of the source tree.
	-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
	$<$<BOOL:${TRACESMITH_WERROR}>:-Werror>)
add_library(ts_flags INTERFACE)
target_link_libraries(ts_flags INTERFACE ts_warnings)

set(sanitizers ${TRACESMITH_SANITIZE})
if(TRACESMITH_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
		message(FATAL_ERROR "TRACESMITH_FUZZ needs clang, not '${CMAKE_C_COMPILER}'")
	endif()
	# Coverage for libFuzzer does nothing in programs that are linked without it, so one tree
	# serves the tests and the fuzz targets.
	string(JOIN , sanitizers fuzzer-no-link ${TRACESMITH_SANITIZE})
endif()
if(sanitizers)
	# -O1 and line tables are enough for reports, and compile in two thirds of the time.
	target_compile_options(ts_flags INTERFACE
		-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
	target_link_options(ts_flags INTERFACE -fsanitize=${sanitizers})
	# Checked 128-bit arithmetic needs functions that libgcc lacks on some architectures.
	if(CMAKE_C_COMPILER_ID MATCHES Clang)
		target_link_options(ts_flags INTERFACE --rtlib=compiler-rt -unwindlib=libgcc)
	endif()
endif()

add_library(ts_private INTERFACE)
target_include_directories(ts_private INTERFACE
	${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
# Empty, so that a file with its own "#define _GNU_SOURCE" does not redefine it.
target_compile_definitions(ts_private INTERFACE _GNU_SOURCE=)
