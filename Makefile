# The commands of the project; `make help` lists them. The build itself is CMake's: see CMakePresets.json.
SETUP ?= tools/setup
PREFIX ?= install
CMAKE_OPTIONS ?=  # such as -DTRIREME_CUDA=ON
# ThreadSanitizer of older compilers cannot live with much address randomisation; switched off where the system lets us.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.DEFAULT_GOAL := build
.PHONY: help setup build run test fast asan tsan format install clean

help:     ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1\t/' | expand -t 16

setup:    ## install missing packages (needs root only if there are any)
	@$(SETUP)

build: setup    ## configure and build; the binary is build/release/trireme
	cmake --preset release $(CMAKE_OPTIONS)
	cmake --build --preset release

run: setup    ## build the program and benchmark ResNet-50 on this machine
	cmake --preset release $(CMAKE_OPTIONS)
	cmake --build --preset release --target trireme_cli
	build/release/trireme bench

test: build    ## build and run every test
	ctest --preset release

fast: build    ## build and run the fast tests only
	ctest --preset fast

asan: setup    ## run every test under the address and undefined-behaviour sanitizers
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan

tsan: setup    ## run the tests that support it under the thread sanitizer
	cmake --preset tsan
	$(FIXED_ADDRESSES) cmake --build --preset tsan
	$(FIXED_ADDRESSES) ctest --preset tsan

format:    ## format all sources (clang-format)
	@tools/format

install: build    ## install library, headers and binary into PREFIX (default: ./install)
	cmake --install build/release --prefix $(PREFIX)

clean:    ## remove everything that was built
	rm -rf build
