# `make` alone lists the verbs.
PREFIX ?= /usr/local
DESTDIR ?=
# VPP's clients look for descriptions of messages in /usr/share/vpp/api and nowhere else by
# themselves; who may not write there has them below PREFIX.
APIDIR ?= $(if $(or $(DESTDIR),$(filter 0,$(shell id -u))),/usr/share/vpp/api,$(PREFIX)/share/vpp/api)
UNITDIR ?= $(PREFIX)/lib/systemd/system
# Seconds per fuzz target.
TIME ?= 60
CARGO ?= cargo
# Built with the features of the whole workspace, so that nothing is compiled twice.
XTASK = $(CARGO) build --quiet --workspace --bin xtask && $(or $(CARGO_TARGET_DIR),target)/debug/xtask
RELEASE = $(or $(CARGO_TARGET_DIR),target)/release

.PHONY: help build demo demo-bgp demo-picture graph-picture test test-long lint bench bench-full bench-names bench-docs bench-accept profile sharing soak chaos fuzz doc install setup setup-test setup-long setup-bench clean

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## build thalweg and thalctl, optimised
	$(CARGO) build --release -p thalweg --bins

demo: setup build ## a router between two hosts, in namespaces (KEEP=1 leaves it running)
	$(RELEASE)/thalweg demo $(if $(KEEP),--keep)

demo-bgp: build ## full routes of two providers by BIRD and FRR, a failure and restarts (ROUTES=100000, DAEMON=bird|frr)
	@scripts/setup.sh demo-bgp
	$(RELEASE)/thalweg demo bgp $(if $(ROUTES),--routes $(ROUTES)) $(if $(DAEMON),--daemon $(DAEMON))

demo-picture: setup build ## draw the demo's screen into docs/demo.svg
	$(RELEASE)/thalweg demo --plain --picture docs/demo.svg

# Phases of the long list that call programs of its own.
test: $(if $(strip $(LONG) $(foreach phase,guard psample fuzz,$(findstring $(phase),$(ONLY)))),setup-long,setup-test)
test: ## most tests, side by side; ONLY="words" selects, BUSY=1, REPEAT=n, JOBS=n, PAUSE=1
	$(XTASK) test $(if $(LONG),--long) $(if $(BUSY),--busy) $(if $(REPEAT),--repeat $(REPEAT)) \
		$(if $(JOBS),--jobs $(JOBS)) $(if $(PAUSE),--pause) $(ONLY)

test-long: setup-long ## the tests that `make test` leaves out: levels, fuzzing, soak, emulation, measuring
	$(MAKE) test LONG=1
	$(MAKE) soak SOAK=2

lint: setup ## formatting, clippy, documentation, and habits (SUBJECTS=no: without those of commits)
	$(XTASK) tidy $(if $(filter no,$(SUBJECTS)),--no-subjects)
	$(CARGO) update --manifest-path fuzz/Cargo.toml --workspace --locked --quiet
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace --test smoke -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

bench: bench-names setup-bench build ## measure for 20 to 60 minutes; a report in target/bench
	$(CARGO) run --release -p thalweg-bench-report -- run $(ONLY)

bench-full: bench-names setup-bench build ## the same with more and longer rounds (ONLY="words" selects benchmarks)
	$(CARGO) run --release -p thalweg-bench-report -- run --full $(ONLY)

bench-names: # before anything is built, which takes minutes
	@scripts/bench-names.sh $(ONLY)

bench-docs: ## put the last run's tables into docs/performance.md and docs/performance-tables.md
	$(CARGO) run --release -p thalweg-bench-report -- docs

bench-accept: setup-long ## accept the packet path's present instructions per packet
	$(CARGO) bench -p thalweg-bench-pg --bench instructions -- accept

# Symbol names that distinguish the code of nodes need a separate build.
profile: ## a flame graph of a worker in target/bench (CASE=l2|bridge|macs|ip4|hosts|hops|internet)
	@scripts/setup.sh profile
	$(CARGO) run --release -p thalweg-bench-report --target-dir $(or $(CARGO_TARGET_DIR),target)/profile \
		--config 'build.rustflags=["-Csymbol-mangling-version=v0"]' -- profile $(CASE)

sharing: setup-long ## whether two workers write cache lines that the other touches (twenty minutes)
	$(CARGO) run --release -p thalweg-bench-pg --example thalweg-sharing

soak: setup-test build ## churn through translation and rules for SOAK=30 minutes; in the end nothing may be held
	$(CARGO) run --release -p thalweg-smoke --bin thalweg-soak -- $(or $(SOAK),30)

chaos: setup-test build ## random commands under random packets for MINUTES=10; SEED=n is the first seed
	$(CARGO) run -p thalweg-smoke --bin thalweg-chaos -- --all --minutes $(or $(MINUTES),10) \
		$(if $(SEED),--seed $(SEED))

fuzz: ## fuzz every parser, TIME seconds each
	TIME=$(TIME) scripts/fuzz.sh

doc: ## build the documentation of the code
	$(CARGO) doc --workspace --no-deps

graph-picture: build ## draw docs/graph.svg, the graph of a router that this starts (needs graphviz)
	scripts/graph-picture.sh

install: build ## install to $(DESTDIR)$(PREFIX)/bin, the API's description and a unit for systemd
	scripts/install-programs.sh $(RELEASE) $(DESTDIR)$(PREFIX)/bin thalweg thalctl
	$(RELEASE)/thalweg api json --dir $(DESTDIR)$(APIDIR)
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@PREFIX@|$(PREFIX)|' contrib/systemd/thalweg.service >$(DESTDIR)$(UNITDIR)/thalweg.service
	chmod 644 $(DESTDIR)$(UNITDIR)/thalweg.service

setup: ## install the four programs that the demo calls (as root), or say which are missing
	@scripts/setup.sh

setup-test: ## as setup, and what `make test` calls
	@scripts/setup.sh test

setup-long: ## as setup-test, and what `make test-long` calls
	@scripts/setup.sh long

setup-bench: ## as setup-test, and fetch what the benchmarks compare with
	@scripts/setup.sh bench

clean: ## remove what was built
	$(CARGO) clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts
