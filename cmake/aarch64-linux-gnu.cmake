# SPDX-License-Identifier: Apache-2.0
# Cross build for aarch64 with Debian's cross compiler and multiarch libraries; qemu runs the tests.
# scripts/bootstrap cross installs all of it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
