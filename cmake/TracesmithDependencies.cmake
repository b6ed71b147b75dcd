# SPDX-License-Identifier: Apache-2.0
# Finds libraries: zstd is required, the others set TS_HAVE_*. Defines the target ts_dependencies,
# and TS_PRIVATE_LIBS for the pkg-config file.

include(CheckCSourceCompiles)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(ts_dependencies INTERFACE)
target_link_libraries(ts_dependencies INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
set(TS_PRIVATE_LIBS "-lm -pthread")
foreach(library IN LISTS CMAKE_DL_LIBS)
	string(PREPEND TS_PRIVATE_LIBS "-l${library} ")
endforeach()

find_path(ZSTD_INCLUDE_DIR zstd.h)
find_library(ZSTD_LIBRARY zstd)
if(NOT ZSTD_INCLUDE_DIR OR NOT ZSTD_LIBRARY)
	message(FATAL_ERROR "zstd is required but was not found (Debian: libzstd-dev; scripts/bootstrap installs it)")
endif()
target_link_libraries(ts_dependencies INTERFACE ${ZSTD_LIBRARY})
target_include_directories(ts_private SYSTEM INTERFACE ${ZSTD_INCLUDE_DIR})
string(PREPEND TS_PRIVATE_LIBS "-lzstd ")

set(TS_HAVE_ZLIB OFF)
if(TRACESMITH_WITH_ZLIB)
	find_package(ZLIB QUIET)
	if(ZLIB_FOUND)
		set(TS_HAVE_ZLIB ON)
		target_link_libraries(ts_dependencies INTERFACE ${ZLIB_LIBRARIES})
		target_include_directories(ts_private SYSTEM INTERFACE ${ZLIB_INCLUDE_DIRS})
		string(PREPEND TS_PRIVATE_LIBS "-lz ")
	endif()
endif()

# Header only: compiled in, so that no library is needed at run time.
set(TS_HAVE_XXHASH OFF)
if(TRACESMITH_WITH_XXHASH)
	find_path(XXHASH_INCLUDE_DIR xxhash.h)
	if(XXHASH_INCLUDE_DIR)
		set(CMAKE_REQUIRED_INCLUDES ${XXHASH_INCLUDE_DIR})
		check_c_source_compiles("#define XXH_INLINE_ALL
			#include <xxhash.h>
			int main(void) { return (int)XXH3_64bits(\"\", 0); }" XXHASH_HAS_XXH3)
		unset(CMAKE_REQUIRED_INCLUDES)
		if(XXHASH_HAS_XXH3)
			set(TS_HAVE_XXHASH ON)
			target_include_directories(ts_private SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
		endif()
	endif()
endif()

# Databases of other tools (Nsight Systems, rocprofv3).
set(TS_HAVE_SQLITE OFF)
if(TRACESMITH_WITH_SQLITE)
	find_path(SQLITE_INCLUDE_DIR sqlite3.h)
	find_library(SQLITE_LIBRARY sqlite3)
	if(SQLITE_INCLUDE_DIR AND SQLITE_LIBRARY)
		set(TS_HAVE_SQLITE ON)
		target_link_libraries(ts_dependencies INTERFACE ${SQLITE_LIBRARY})
		target_include_directories(ts_private SYSTEM INTERFACE ${SQLITE_INCLUDE_DIR})
		string(PREPEND TS_PRIVATE_LIBS "-lsqlite3 ")
	endif()
endif()

# Headers for the backend and for replay, which open the loader at run time; the library for
# examples and tests.
set(TS_HAVE_OPENCL OFF)
set(TS_OPENCL_LIBRARY)
if(TRACESMITH_WITH_OPENCL)
	find_path(OPENCL_INCLUDE_DIR CL/cl_layer.h)
	find_library(OPENCL_LIBRARY OpenCL)
	if(OPENCL_INCLUDE_DIR)
		set(TS_HAVE_OPENCL ON)
		target_include_directories(ts_private SYSTEM INTERFACE ${OPENCL_INCLUDE_DIR})
		if(OPENCL_LIBRARY)
			set(TS_OPENCL_LIBRARY ${OPENCL_LIBRARY})
		endif()
	endif()
endif()

# CUDA headers are optional: if found, static asserts compare our constants and layouts with them.
# They have a separate target, because their directory also has headers of other libraries.
set(TS_HAVE_CUDA_HEADERS OFF)
add_library(ts_cuda_headers INTERFACE)
find_path(TS_CUDA_INCLUDE_DIR cupti.h HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
	PATH_SUFFIXES include extras/CUPTI/include)
find_path(TS_CUDA_DRIVER_INCLUDE_DIR cuda.h HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES include)
if(TS_CUDA_INCLUDE_DIR AND TS_CUDA_DRIVER_INCLUDE_DIR)
	set(CMAKE_REQUIRED_INCLUDES ${TS_CUDA_DRIVER_INCLUDE_DIR} ${TS_CUDA_INCLUDE_DIR})
	check_c_source_compiles("#include <cupti.h>
		int main(void) { return (int)sizeof(CUpti_ActivityKernel10); }" TS_CUDA_HEADERS_COMPILE)
	unset(CMAKE_REQUIRED_INCLUDES)
	if(TS_CUDA_HEADERS_COMPILE)
		set(TS_HAVE_CUDA_HEADERS ON)
		target_include_directories(ts_cuda_headers SYSTEM INTERFACE
			${TS_CUDA_DRIVER_INCLUDE_DIR} ${TS_CUDA_INCLUDE_DIR})
		target_compile_definitions(ts_cuda_headers INTERFACE TS_HAVE_CUDA_HEADERS=1)
	endif()
endif()

# Headers only, for source lines of native frames: the library is opened at run time.
set(TS_HAVE_LIBDW OFF)
if(TRACESMITH_WITH_LIBDW)
	find_path(LIBDW_INCLUDE_DIR elfutils/libdw.h)
	if(LIBDW_INCLUDE_DIR)
		set(TS_HAVE_LIBDW ON)
		target_include_directories(ts_private SYSTEM INTERFACE ${LIBDW_INCLUDE_DIR})
	endif()
endif()

# Printed once, and again when it changes.
set(summary "tracesmith ${PROJECT_VERSION}: ${CMAKE_SYSTEM_PROCESSOR}, ${CMAKE_C_COMPILER_ID} \
${CMAKE_C_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}, zlib ${TS_HAVE_ZLIB}, xxhash ${TS_HAVE_XXHASH}, SQLite ${TS_HAVE_SQLITE}, OpenCL ${TS_HAVE_OPENCL}, libdw ${TS_HAVE_LIBDW}, \
CUDA headers ${TS_HAVE_CUDA_HEADERS}, sanitizers '${sanitizers}'")
if(NOT summary STREQUAL TS_LAST_SUMMARY)
	message(NOTICE "${summary}")
	set(TS_LAST_SUMMARY "${summary}" CACHE INTERNAL "")
endif()
