# sidflake: `make help` lists the targets.
#
# VARIANT  release (default), debug, san (ASan + UBSan), tsan, fuzz (libFuzzer, clang only). Each has
#          its own build/VARIANT, or build/VARIANT-clang where CC is clang.
# ARCH     another architecture that Debian has: arm64. By gcc's cross compiler, into build/VARIANT-arm64,
#          with the libraries of tools/sysroot; what is built runs under qemu-user.
# CFLAGS CPPFLAGS LDFLAGS LDLIBS belong to the user and the distribution; ours (P_*) come first.

VERSION := 0.1.0
VARIANT ?= release
ARCH ?=
WERROR ?= 0
V ?= 0

CC ?= cc
AR ?= ar
INSTALL ?= install

prefix ?= /usr/local
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
sysconfdir ?= /etc
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/sidflake
unitdir ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d
bashdir ?= $(prefix)/share/bash-completion/completions
zshdir ?= $(prefix)/share/zsh/site-functions

# Another architecture has its own compiler, whatever the environment says of this one's.
TRIPLET_arm64 := aarch64-linux-gnu
TRIPLET := $(TRIPLET_$(ARCH))
SYSROOT :=
EMULATOR :=
ifneq ($(ARCH),)
ifeq ($(TRIPLET),)
$(error ARCH must be arm64 or nothing, found "$(ARCH)")
endif
CPU := $(firstword $(subst -, ,$(TRIPLET)))
SYSROOT := build/sysroot-$(ARCH)
CC := $(TRIPLET)-gcc --sysroot=$(SYSROOT)
AR := $(TRIPLET)-ar
EMULATOR := qemu-$(CPU)-static -L $(CURDIR)/$(SYSROOT)
endif

CLANG := $(findstring clang,$(notdir $(CC)))
SUFFIX := $(CLANG:%=-%)$(ARCH:%=-%)
B := build/$(VARIANT)$(SUFFIX)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2);)

ifeq ($(filter $(VARIANT),release debug san tsan fuzz),)
$(error VARIANT must be release, debug, san, tsan or fuzz, found "$(VARIANT)")
endif

.DELETE_ON_ERROR:
.PHONY: all
all: programs

# ---- flags -------------------------------------------------------------------------------------

REQUIRED := -std=c11 -D_GNU_SOURCE -Isrc -pthread -DSIDFLAKE_VERSION='"$(VERSION)"'

WARN_WANTED := -Wall -Wextra -Wformat=2 -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wcast-align -Wwrite-strings -Wundef -Wvla \
	-Wimplicit-fallthrough -Wnull-dereference -Wduplicated-cond -Wlogical-op -Wno-missing-field-initializers \
	-Werror=implicit -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=format-security

HARDEN_WANTED := -fstack-protector-strong -fstack-clash-protection -fcf-protection=full \
	-mbranch-protection=standard -ftrivial-auto-var-init=zero -fno-delete-null-pointer-checks \
	-fno-strict-overflow -fno-strict-aliasing -fstrict-flex-arrays=3 -fPIE

HARDEN_LD_WANTED := -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,nodlopen -Wl,--as-needed

SAN_WANTED := -fsanitize=address,undefined

# What this compiler and target take, probed once per compiler and kept in a file. Targets that build
# nothing need no compiler.
empty :=
PROBED := build/probed-$(subst /,_,$(subst $(empty) $(empty),_,$(strip $(CC)))).mk
BUILDLESS := clean distclean help lint format deps run test dist uninstall deb rpm image alerts release

$(PROBED): tools/probe-flags Makefile
	@mkdir -p build
	@CC='$(CC)' tools/probe-flags 'P_WARN=$(WARN_WANTED)' 'P_HARDEN=$(HARDEN_WANTED)' \
		'LD:P_HARDEN_LD=$(HARDEN_LD_WANTED)' 'LD:P_SAN=$(SAN_WANTED)' >$@.new && mv $@.new $@

ifneq ($(filter-out $(BUILDLESS),$(or $(MAKECMDGOALS),all)),)
MISSING := $(if $(wildcard $(PROBED)),,$(shell CC='$(CC)' CPPFLAGS='$(CPPFLAGS)' ARCH='$(ARCH)' tools/check-build 2>&1))
ifneq ($(MISSING),)
$(error $(MISSING))
endif
include $(PROBED)
endif

FORTIFY := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
SANITIZE_san := $(SAN_WANTED) -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_tsan := -fsanitize=thread -fno-omit-frame-pointer
SANITIZE_fuzz := $(SANITIZE_san) -fsanitize=fuzzer-no-link

OPT_release = -O2 -g $(FORTIFY) $(P_HARDEN)
OPT_debug = -O0 -g3
OPT_san = -O1 -g $(SANITIZE_san)
OPT_tsan = -O1 -g $(SANITIZE_tsan)
OPT_fuzz = -O1 -g $(SANITIZE_fuzz)
LD_release = $(P_HARDEN_LD)

P_CFLAGS = $(REQUIRED) $(P_WARN) $(if $(filter 1,$(WERROR)),-Werror) $(OPT_$(VARIANT))
P_LDFLAGS = $(LD_$(VARIANT))
# Of sidflakectl alone, and of what tests it.
P_CTL_LDLIBS := -lncursesw
P_LDLIBS := -lcyaml -lyaml -lhiredis -lsqlite3 -ljansson -largon2 -lcrypt -lev -lm

COMPILE = $(CC) $(P_CFLAGS) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) $(P_CFLAGS) $(CFLAGS) $(P_LDFLAGS) $(LDFLAGS)
LIBS = $(P_LDLIBS) $(LDLIBS)

# Rewritten only when a flag changes: objects depend on it, and so are built anew then.
$(B)/flags: FORCE $(PROBED)
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(COMPILE) | $(LINK) $(LIBS))' | cmp -s - $@ || \
		printf '%s\n' '$(subst ','\'',$(COMPILE) | $(LINK) $(LIBS))' >$@

.PHONY: FORCE
FORCE:

# ---- programs ----------------------------------------------------------------------------------

PROGRAMS := sidflake sidflakectl
MAINS := src/daemon/main.c src/ctl/ctl.c
SRC := $(filter-out $(MAINS),$(sort $(wildcard src/*/*.c src/*/*/*.c)))
LUA := $(filter-out src/coord/periods.lua,$(sort $(wildcard src/*/*.lua)))
HTML := $(sort $(wildcard src/*/*/*.html))
EMBEDDED := $(LUA:src/%.lua=$(B)/gen/%_lua) $(HTML:src/%.html=$(B)/gen/%_html)
OBJ := $(SRC:%.c=$(B)/%.o) $(EMBEDDED:=.o)
LIB := $(B)/libsidflake.a

.PHONY: programs
programs: $(PROGRAMS:%=$(B)/%) $(if $(ARCH),,$(PROGRAMS:%=build/%))

$(B)/sidflake: $(B)/src/daemon/main.o $(LIB)
$(B)/sidflakectl: $(B)/src/ctl/ctl.o $(LIB)
$(B)/sidflakectl: private OWN_LIBS := $(P_CTL_LDLIBS)
$(PROGRAMS:%=$(B)/%):
	$(call say,LD,$@) $(LINK) -o $@ $^ $(OWN_LIBS) $(LIBS)

# build/sidflake and build/sidflakectl are those of the variant built last, of what runs here.
$(PROGRAMS:%=build/%): build/%: $(B)/% FORCE
	@[ "$$(readlink $@)" = $(notdir $(B))/$* ] || ln -sfn $(notdir $(B))/$* $@

# An archive is made anew when its list changes, too: an object whose source is gone must not linger.
# q, since r would take two objects of one name (auth/x.o, net/x.o) for the same.
$(B)/%.list: FORCE
	@mkdir -p $(@D)
	@echo '$(OBJECTS)' | cmp -s - $@ || echo '$(OBJECTS)' >$@

$(LIB:.a=.list): OBJECTS = $(OBJ)
$(LIB): $(OBJ) $(LIB:.a=.list)
	$(call say,AR,$@) rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<) $(COMPILE) $(INCLUDES) -MMD -MP -c -o $@ $<

embed = @mkdir -p $(@D) && printf '  %-7s %s\n' EMBED $< && \
	$1 | tools/embed $(basename $(notdir $@)) >$@.new && mv $@.new $@
# A server takes at most 16 KiB of a client that has not shown who it is, before it says so.
uncommented = sed -e '/^--\[\[/,/^\]\]/d' -e '/^ *--/d' -e '/^ *$$/d' -e 's/^ *//' -e "s/  *-- [^']*\$$//"
$(B)/gen/%_lua.c: src/%.lua tools/embed
	$(call embed,$(uncommented) $<)
$(B)/gen/coord/sequences_lua.c: src/coord/sequences.lua src/coord/periods.lua src/coord/pool.lua tools/join-lua \
	tools/embed
	$(call embed,tools/join-lua src/coord/pool.lua src/coord/sequences.lua | $(uncommented))
$(B)/gen/%_html.c: src/%.html tools/embed
	$(call embed,cat $<)

$(EMBEDDED:=.o): %.o: %.c $(B)/flags
	$(call say,CC,$<) $(COMPILE) -MMD -MP -c -o $@ $<

# ---- tests -------------------------------------------------------------------------------------

UNIT_SRC := $(sort $(wildcard tests/unit/*/test_*.c))
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
SUPPORT_OBJ := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/support/*.c)))
SUPPORT := $(B)/tests/libsupport.a
E2E := $(wildcard tests/e2e/run)

# T=PATTERN... narrows the unit programs: make unit T='lease% net/test_conn'.
T ?= %
UNIT_CHOSEN = $(filter $(foreach t,$(T),$(B)/tests/unit/$(t) $(B)/tests/$(t)),$(UNIT_BIN))

# Fuzz targets are replayed with sanitizers where the compiler has them, and no emulator is between.
FUZZ_VARIANT = $(if $(filter san tsan debug,$(VARIANT)),$(VARIANT),$(if $(EMULATOR),debug,$(if $(P_SAN),san,debug)))
FUZZ_REPLAYS = $(FUZZ_SRC:%.c=build/$(FUZZ_VARIANT)$(SUFFIX)/%)

# What tests are built with, and run with: whichever target asks for them.
.PHONY: unit-deps test-deps
unit-deps test-deps:
	@tools/install-deps build $(@:-deps=)

$(UNIT_BIN:=.o) $(FUZZ_BIN:=.o) $(SUPPORT_OBJ): | unit-deps

$(B)/tests/%: INCLUDES := -Itests

$(SUPPORT:.a=.list): OBJECTS = $(SUPPORT_OBJ)
$(SUPPORT): $(SUPPORT_OBJ) $(SUPPORT:.a=.list)
	$(call say,AR,$@) rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

$(UNIT_BIN): %: %.o $(SUPPORT) $(LIB)
	$(call say,LD,$@) $(LINK) -o $@ $^ -lcmocka $(P_CTL_LDLIBS) $(LIBS)

FUZZ_MAIN := $(if $(filter fuzz,$(VARIANT)),,$(B)/tests/fuzz/replay_main.o)
$(FUZZ_BIN): %: %.o $(FUZZ_MAIN) $(SUPPORT) $(LIB)
	$(call say,LD,$@) $(LINK) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) -o $@ $^ $(P_CTL_LDLIBS) $(LIBS)

# Kept after the link, for the next one.
.SECONDARY: $(UNIT_BIN:=.o) $(FUZZ_BIN:=.o) $(EMBEDDED:=.c)

.PHONY: unit-programs fuzz-programs test-programs
unit-programs: $(UNIT_BIN)
fuzz-programs: $(FUZZ_BIN)
test-programs: programs unit-programs
	@$(MAKE) --no-print-directory VARIANT=$(FUZZ_VARIANT) fuzz-programs

JOBS := $(shell nproc 2>/dev/null || echo 2)
PARALLEL = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))

RUN_TESTS = tools/run-tests $(if $(filter san tsan,$(VARIANT))$(ARCH),--slow 3) $(if $(EMULATOR),--under '$(EMULATOR)')

.PHONY: test run-all unit quick quick-programs e2e replay
test:
	@tools/install-deps build test
	@$(MAKE) --no-print-directory $(PARALLEL) test-programs || { echo '0 passed, 1 failed'; exit 1; }
	@$(MAKE) --no-print-directory run-all

run-all:
	@$(RUN_TESTS) --unit $(UNIT_BIN) --fuzz $(FUZZ_REPLAYS) --e2e $(E2E) $(CHAOS_RUN)

e2e: programs | test-deps
	@$(RUN_TESTS) --e2e $(E2E)

replay:
	@$(MAKE) --no-print-directory VARIANT=$(FUZZ_VARIANT) fuzz-programs
	@$(RUN_TESTS) --fuzz $(FUZZ_REPLAYS)

include tests/fuzz/fuzz.mk

.PHONY: lint format
lint:
	@tools/install-deps build unit lint
	@tools/lint-selftest
	@tools/lint

format:
	find src tests tools -name node_modules -prune -o -name '*.[ch]' -print0 | xargs -0 clang-format -i

-include $(OBJ:.o=.d) $(MAINS:%.c=$(B)/%.d) $(UNIT_BIN:=.d) $(FUZZ_BIN:=.d) $(SUPPORT_OBJ:.o=.d) \
	$(B)/tests/fuzz/replay_main.d

include tests/sim/sim.mk
include tests/chaos/chaos.mk
include tests/differential/differential.mk
include tests/hostile/hostile.mk
include tests/model/model.mk
include tests/mutants/mutants.mk
include packaging/packaging.mk
include tools/bench/bench.mk

# Without those that wait for time to pass, or look far.
SLOW_UNITS := auth/test_auth coord/test_differential coord/test_differential_sequences \
	coord/test_redis coord/test_redis_peer coord/test_replicas coord/test_sentinel \
	coord/test_sqlite_back coord/test_sqlite_file lease/test_keeper lease/test_static_lives \
	net/test_blocked net/test_bounds net/test_conn net/test_cut net/test_feed net/test_find \
	net/test_idle net/test_memory net/test_own net/test_park net/test_probe net/test_sweep \
	net/test_turns net/test_upstream serve/test_weight
QUICK_BIN := $(filter-out $(SLOW_UNITS:%=$(B)/tests/unit/%),$(UNIT_SRC:%.c=$(B)/%))

# Nor, under qemu-user, these; T=NAME runs them all the same.
#   coord/test_sqlite    makes a pool of 32,768 in one call, which has its own limit of time
#   daemon/test_upgrade  runs itself as the next program, by execve(2), which the kernel cannot
#   serve/test_process   reads /proc/self/stat, where qemu-user makes memory up
NOT_EMULATED := coord/test_sqlite daemon/test_upgrade serve/test_process
EMULATED := $(filter-out $(NOT_EMULATED:%=$(B)/tests/unit/%),$(QUICK_BIN))
UNIT_RUN = $(if $(and $(EMULATOR),$(filter $(T),%)),$(EMULATED),$(UNIT_CHOSEN))

# Behind what is included, which adds to UNIT_BIN.
unit: $(UNIT_RUN)
	@$(RUN_TESTS) --unit $(UNIT_RUN)

quick:
	@$(MAKE) --no-print-directory $(PARALLEL) quick-programs
	@$(RUN_TESTS) --unit $(QUICK_BIN)
	@$(MAKE) --no-print-directory lint

quick-programs: $(QUICK_BIN)

# ---- for people --------------------------------------------------------------------------------

define TRY
sidflake starts here with conf/sidflake.dev.yaml, in the foreground. In another terminal:

  build/sidflakectl next orders                              an ID
  printf 'get id:orders\r\nquit\r\n' | nc 127.0.0.1 11212    memcached protocol
  redis-cli -p 6380 GET id:orders                            Redis protocol, or, without redis-cli:
  printf 'GET id:orders\r\nQUIT\r\n' | nc 127.0.0.1 6380
  redis-cli -p 6380 INCR seq:demo                            a number that counts: 1, 2, 3
  curl -s http://127.0.0.1:9464/metrics                      metrics; also /livez and /readyz
  http://127.0.0.1:9464/ in a browser                        status page

endef
export TRY

define HELP
make            build build/sidflake and build/sidflakectl
make run        install what the build needs, build, start sidflake in the foreground
make test       install what the tests need, build, run all tests
make unit       unit tests alone; T='lease% net/test_conn' narrows them
make quick      what takes less than a minute: most unit tests, and lint
make e2e        end-to-end tests alone, against real servers and clients
make sim        the deterministic simulation: SEEDS=100000 JOBS=2, or SEED=n to replay one
make model      the protocol, exhaustively, with spin; BOUNDS=large
make chaos      the built daemon under faults, a minute; make soak MINUTES=30 for long
make differential  random streams through the sidecar and to real servers: SECONDS=60 MODE=text SEED=n
make storm      3,000 hostile connections, six upgrades, bystanders; VARIANT=san
make hostile    what hostile clients cost others, a table; ONLY=name SECONDS=n
make mutants    breaks the code in many ways, one at a time: each must be noticed
make replay     the corpora of the fuzz targets
make fuzz       look for new inputs: all targets, SECONDS=60 each; F='resp page' (clang)
make bench      speed and memory, beside Redis and memcached: BENCH=--quick
make lint       layers, banned calls, headers, format, cppcheck, shellcheck
make format     format all C files
make install    to $$(DESTDIR)$$(prefix), prefix=/usr/local; uninstall takes it away again
make deps       install what the build needs; what else a target needs it installs itself
make dist       build/sidflake-$(VERSION).tar.gz of the last commit
make deb        Debian packages, below build/dist; make rpm and make image likewise
make check-files  what packaging says: versions, alerts, chart; make check-packaging installs it, too
make alerts     what is made from the alert rules: RUNBOOK_URL=https://...
make release    check, test, tag and pack the last commit, for both; packaging/version NEW before
make clean      remove build/

VARIANT=release|debug|san|tsan   CC=gcc|clang   WERROR=1   V=1 shows the commands
ARCH=arm64      with all, unit, deps, deb, rpm, image, check-packaging: for that one, units under qemu-user
endef
export HELP

.PHONY: run deps help
run:
	@tools/install-deps build
	@$(MAKE) --no-print-directory $(PARALLEL) programs
	@mkdir -p build/dev
	@printf '\n%s\n\n' "$$TRY"
	@exec build/sidflake -c conf/sidflake.dev.yaml

deps:
	$(if $(ARCH),@tools/sysroot $(ARCH))
	@tools/install-deps build $(if $(ARCH),cross)

help:
	@printf '%s\n' "$$HELP"

# ---- installation ------------------------------------------------------------------------------

MAN := $(wildcard packaging/man/*.[1-8])
man_path = $(mandir)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

# Files that are installed as they are, each with its place.
AS_IS := LICENSE:$(docdir)/LICENSE packaging/prometheus/RUNBOOK.md:$(docdir)/RUNBOOK.md \
	packaging/systemd/sidflake.sysusers:$(sysusersdir)/sidflake.conf \
	$(foreach p,$(PROGRAMS),packaging/completion/$(p):$(bashdir)/$(p) \
		packaging/completion/_$(p):$(zshdir)/_$(p)) \
	$(foreach m,$(MAN),$(m):$(call man_path,$(m)))
place = $(lastword $(subst :, ,$(1)))
UNIT_HERE = sed -e 's,/usr/sbin/,$(sbindir)/,' -e 's,/etc/sidflake,$(sysconfdir)/sidflake,'

.PHONY: install uninstall dist clean distclean
install: $(PROGRAMS:%=$(B)/%)
	$(INSTALL) -d -m 755 $(DESTDIR)$(sbindir) $(DESTDIR)$(bindir) $(DESTDIR)$(sysconfdir)/sidflake \
		$(DESTDIR)$(unitdir)
	$(INSTALL) -m 755 $(B)/sidflake $(DESTDIR)$(sbindir)/sidflake
	$(INSTALL) -m 755 $(B)/sidflakectl $(DESTDIR)$(bindir)/sidflakectl
	[ -e $(DESTDIR)$(sysconfdir)/sidflake/sidflake.yaml ] || \
		$(INSTALL) -m 644 conf/sidflake.yaml $(DESTDIR)$(sysconfdir)/sidflake/sidflake.yaml
	$(UNIT_HERE) packaging/systemd/sidflake.service >$(DESTDIR)$(unitdir)/sidflake.service
	chmod 644 $(DESTDIR)$(unitdir)/sidflake.service
	$(foreach f,$(AS_IS),$(INSTALL) -D -m 644 $(subst :, $(DESTDIR),$(f)) &&) :

# The configuration stays: it may have been changed.
uninstall:
	rm -f $(DESTDIR)$(sbindir)/sidflake $(DESTDIR)$(bindir)/sidflakectl \
		$(DESTDIR)$(unitdir)/sidflake.service $(foreach f,$(AS_IS),$(DESTDIR)$(call place,$(f)))
	-rmdir $(DESTDIR)$(docdir)

dist:
	@mkdir -p build
	git archive --prefix=sidflake-$(VERSION)/ -o build/sidflake-$(VERSION).tar.gz HEAD

clean distclean:
	rm -rf build
