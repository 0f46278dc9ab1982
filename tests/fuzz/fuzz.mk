# Fuzzing, included by the Makefile. clang and libFuzzer, with ASan and UBSan.
#
# make fuzz [SECONDS=60] [JOBS=2]    all targets, SECONDS each, JOBS at a time; ends with a table
# make fuzz F='resp page'            some of them
# make fuzz-merge F=resp             adds what build/corpus/resp has found to the tree, minimised
#
# Inputs that a run finds are kept in build/corpus and are where the next one goes on; reproducers
# of crashes are in build/fuzz.

SECONDS ?= 60
FUZZ_JOBS ?= $(if $(findstring command,$(origin JOBS)),$(JOBS),1)
F ?= $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
FUZZ_CC = $(if $(CLANG),'$(CC)',clang)
FUZZ_CHOSEN = $(F:%=build/fuzz-clang/tests/fuzz/fuzz_%)

# Of the test's own code only the targets are to be explored: transcripts and the like cost time.
$(SUPPORT_OBJ): SANITIZE_fuzz := $(SANITIZE_san)

.PHONY: fuzz fuzz-merge fuzz-chosen
fuzz-chosen:
	@tools/install-deps build fuzz
	@$(MAKE) --no-print-directory VARIANT=fuzz CC=$(FUZZ_CC) $(PARALLEL) $(FUZZ_CHOSEN)

fuzz: fuzz-chosen
	@tests/fuzz/run --seconds $(SECONDS) --jobs $(FUZZ_JOBS) $(FUZZ_CHOSEN)

fuzz-merge: fuzz-chosen
	@tests/fuzz/run --merge $(FUZZ_CHOSEN)
