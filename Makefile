# SPDX-License-Identifier: Apache-2.0
#
# Front end for CMake and Ninja: installs missing packages, configures and builds.
# Run "make help" for targets and settings.

PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 10
BOOTSTRAP    ?= yes
WERROR       ?= $(if $(filter true 1,$(CI)),1,0)
ifeq ($(origin CC),default)
CC := cc
endif

# Each compiler and each set of sanitizers has its own build directory:
# build, build/clang, build/san, build/clang-san, build/san-thread.
comma    := ,
empty    :=
space    := $(empty) $(empty)
compiler := $(filter-out cc gcc,$(notdir $(CC)))
san      := $(if $(SAN),$(patsubst san-address-undefined,san,san-$(subst $(comma),-,$(SAN))))
B        := build$(addprefix /,$(subst $(space),-,$(strip $(compiler) $(san))))

# The clang tree with sanitizers also has the fuzz targets.
fuzz_tree    := build/clang-san
fuzz_flags   := -DCMAKE_C_COMPILER=clang -DTRACESMITH_SANITIZE=address,undefined -DTRACESMITH_FUZZ=ON
tree_flags    = $(if $(filter $(fuzz_tree),$(B)),$(fuzz_flags),-DCMAKE_C_COMPILER=$(CC) -DTRACESMITH_SANITIZE=$(SAN))

machine  := $(shell uname -m)
other    := $(if $(filter x86_64,$(machine)),aarch64,x86_64)
# Unit tests that take minutes each under qemu, for thousands of cases of one kind.
slow_in_qemu := ^unit/(base/json_number|sbt/trace)$$

# What `configure` installs first: the build leaves out programs whose libraries are missing.
packages = build
test: packages += test $(if $(TS_LONG),programs python cross)

bootstrap = $(if $(filter yes,$(BOOTSTRAP)),scripts/bootstrap -q $(1) $(if $(findstring clang,$(CC)),clang))
# Runs each time, which is cheap. Prints only errors and a changed configuration.
configure = cmake -S . -B $(1) -G Ninja -DTRACESMITH_WERROR=$(WERROR) $(2) $(CMAKE_FLAGS) >/dev/null

.PHONY: all demo test test-long test-python-versions lint format bench cross fuzz wheel install clean help configure

all: configure ## build the tool, the library and the examples into build/ (default)
	@cmake --build $(B)

configure:
	@$(call bootstrap,$(packages))
	@$(call configure,$(B),$(tree_flags))

demo: all ## show what the tool does, in a minute
	@$(call bootstrap,demo)
	@scripts/demo $(B)

test: all ## build and run the tests; T=REGEX runs those that match
	@$(if $(TS_LONG),$(if $(filter yes,$(BOOTSTRAP)),scripts/programs-venv))
	@$(if $(TS_LONG),$(if $(filter yes,$(BOOTSTRAP)),scripts/python-versions bullseye || true))
	@$(if $(filter yes,$(BOOTSTRAP)),$(if $(SAN)$(if $(findstring package,$(T)),,$(T)),,scripts/package-venv))
	@scripts/test $(B) $(if $(T),-R '$(T)')

test-long: ## everything .ci/run does, at full length: all repetitions, full analysis, longer fuzzing (hours)
	@TS_LONG=1 .ci/run

test-python-versions: all ## test Python stacks on every CPython in Debian (as root; downloads them)
	@$(call bootstrap,test python)
	@scripts/python-versions || true
	@TS_PYTHON_FULL=1 TS_SOURCE=$(CURDIR) TS_BUILD=$(CURDIR)/$(B) TRACESMITH=$(CURDIR)/$(B)/tracesmith scripts/run-test-script tests/python/versions.sh

lint: ## format, static analysis, include order, scripts; TS_LONG=1: full-depth analysis
	@$(call bootstrap,build lint)
	@$(call configure,build/lint,-DCMAKE_C_COMPILER=clang)
	@scripts/lint build/lint

format: ## format all C files with clang-format
	@$(call bootstrap,lint)
	@git ls-files -z --cached --others --exclude-standard '*.[ch]' | xargs -0 clang-format -i

bench: all ## run the benchmarks, against the peers that are installed
	@bench/run $(B)

cross: ## build for the other architecture and run tests of base, model, sbt and live under qemu; TS_LONG=1: all
	@$(call bootstrap,build cross)
	@$(call configure,build/cross,-DCMAKE_TOOLCHAIN_FILE=cmake/$(other)-linux-gnu.cmake $(if $(TS_LONG),-DTRACESMITH_CROSS_TESTS='.*'))
	@cmake --build build/cross
	@scripts/test build/cross $(if $(T),-R '$(T)',$(if $(TS_LONG),,-E '$(slow_in_qemu)'))

fuzz: ## run each fuzz target for FUZZ_SECONDS over its corpus
	@$(call bootstrap,build clang)
	@$(call configure,$(fuzz_tree),$(fuzz_flags))
	@cmake --build $(fuzz_tree) --target libfuzzer
	@scripts/fuzz $(fuzz_tree) $(FUZZ_SECONDS)

wheel: ## build the Python wheels of a release, for x86_64 and aarch64, into build/wheel
	@scripts/wheel

install: all ## install below PREFIX (and DESTDIR)
	@DESTDIR='$(DESTDIR)' cmake --install $(B) --prefix '$(PREFIX)'

clean: ## remove all build output
	rm -rf build

help: ## this text
	@sed -n 's/^\([a-z-]*\):.*## /  make \1 /p' Makefile | awk '{ printf "  make %-21s", $$2; $$1 = $$2 = ""; print }'
	@echo
	@echo '  CC=clang                another compiler, in build/clang'
	@echo '  SAN=address,undefined   sanitizers, in build/san (also: SAN=thread)'
	@echo '  WERROR=1                treat warnings as errors; CI=true implies it'
	@echo '  CMAKE_FLAGS=-D...       passed to CMake, e.g. -DTRACESMITH_WITH_ZLIB=OFF'
	@echo '  BOOTSTRAP=no            do not install packages'
