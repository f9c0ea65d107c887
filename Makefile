# The front door. Each target installs what it needs (tools/packages) on Debian and names it elsewhere.
# JOBS=N limits parallel compilation, WERROR=1 makes warnings errors (CI=true does too).
MAKEFLAGS += --no-print-directory
BUILD := build
PROGRAM := $(BUILD)/keda-gpu-scaler
NINJA := ninja $(if $(JOBS),-j$(JOBS)) --quiet
PREFIX ?= /usr

.PHONY: all demo test quick check e2e chart image image-test bench install format clean
all:
	@tools/install-packages build
	@tools/setup-build $(BUILD) --prefix=$(PREFIX)
	@$(NINJA) -C $(BUILD) keda-gpu-scaler nvmlsim/libnvidia-ml.so.1 enginesim/keda-gpu-scaler-enginesim

demo: all
	@$(PROGRAM) demo $(if $(ENGINE),--engine $(ENGINE)) $(ARGS)

# Unit and integration tests, real clients, checkers, seconds of fuzzing: under ASan and UBSan.
test:
	@tools/install-packages build test
	@tools/run-suites test

# After a change: build, layers, sizes, unit tests.
quick:
	@tools/install-packages build test
	@tools/run-suites quick

# Everything: test, TSan, clang with -Werror, clang-tidy, arm64, longer fuzzing.
check:
	@tools/install-packages build test cross
	@tools/run-suites check

# The real KEDA, etcd and kube-apiserver on loopback.
e2e: all
	@test/e2e/run

# The Helm chart, by the real Helm on a real API server.
chart: all
	@test/chart/run $(ARGS)

# The container image for amd64 and arm64 and its bill of materials, in build/image: docs/image.md.
image:
	@tools/install-packages build cross image
	@deploy/image/build $(ARCHES)

# The same, then what is in it is looked at and run.
image-test:
	@tools/install-packages build cross image image-test
	@test/image/run $(ARGS)

# Figures as ratios in one run: docs/BENCHMARKS.md.
bench: all
	@tools/install-packages bench
	@test/bench/run $(ARGS)

install: all
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild --quiet

format:
	@tools/install-packages test
	@tools/check_format --fix

clean:
	rm -rf build build-*
