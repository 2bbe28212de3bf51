# SPDX-License-Identifier: GPL-2.0
#
# Builds and tests smc_rs on any Debian host; `make help` lists what there is.
# The module is built for a stock Debian kernel inside a build root which
# scripts/setup makes, so the host's own kernel and compilers do not matter.

BUILD ?= $(if $(SMC_RS_BUILD),$(SMC_RS_BUILD),$(CURDIR)/build)
export SMC_RS_BUILD := $(abspath $(BUILD))

# The module keeps one processor busy, the programs the other.
all:
	@+$(MAKE) --no-print-directory -j2 module tools

help:
	@echo 'make demo     redis and iperf3 on TCP and over SMC-R, in a virtual machine'
	@echo 'make test     all tests, host and virtual machine'
	@echo 'make test-all all tests, also those on kernels of the project'"'"'s own, which are built first'
	@echo 'make interop  tests against the SMC that comes with the kernel, on a kernel that has it'
	@echo 'make programs runs programs that nobody here wrote, such as nginx and PostgreSQL, on SMC-R'
	@echo 'make check    the tests and checks that need no virtual machine'
	@echo 'make bench    measures; results go to $(BUILD)/bench'
	@echo 'make          builds the module and the tools'
	@echo 'make module   builds $(BUILD)/module/smc_rs.ko'
	@echo 'make tools    builds the programs, in $(BUILD)/bin'
	@echo 'make setup    fetches and builds what the other targets need'
	@echo 'make shell    a shell in the virtual machine'
	@echo 'make install  installs the module and the tools on this host (its kernel must be'
	@echo '              the one the module is built for); DESTDIR and PREFIX as usual'
	@echo 'make uninstall  takes that away again'
	@echo 'make clean    removes what was built from the checkout, not the cache'

setup:
	@scripts/setup --quiet

module: setup
	@scripts/build-module

tools: setup
	@scripts/build-tools

demo: all
	@selftests/vm --topology pair --timeout 900 -- /src/selftests/demo.sh

bench: all
	@selftests/bench.sh

# The runner ends with the line that counts everything: checks, host tests and
# tests in virtual machines.
test: all
	@scripts/test

check: module
	@scripts/check

# The same, and what needs kernels of the project's own.
test-all: all
	@scripts/setup --kernel reference
	@scripts/setup --kernel debug
	@scripts/setup --kernel kasan
	@scripts/test --all

# What continuous integration has the time for.
test-ci: all
	@scripts/setup --quiet --kernel reference
	@scripts/test --ci

programs: all
	@scripts/setup --quiet --programs
	@selftests/run --in programs

interop: tools
	@scripts/setup --quiet --kernel reference
	@selftests/run --in interop

# Writes Documentation/interop.rst from a run of all cells, or of those that CELLS names.
interop-table: tools
	@scripts/setup --quiet --kernel reference
	@RUN_LOGS=$(SMC_RS_BUILD)/interop selftests/run --in interop $(CELLS); status=$$?; \
		selftests/interop/table.py $(SMC_RS_BUILD)/interop && exit $$status

shell: all
	@selftests/vm -- bash

install: all
	@scripts/install

uninstall:
	@scripts/install --remove

clean:
	rm -rf $(SMC_RS_BUILD) target

.PHONY: all help setup module tools demo bench test test-all test-ci programs interop interop-table check shell install uninstall clean
