# Faults on the built programs, included by the Makefile.
#
# make chaos                       about a minute, as in make test
# make soak MINUTES=30 [SEED=n] [TOPOLOGY=redis|sqlite|replicated|recoveries|all] [SIDECARS=n]

CHAOS_BIN := $(B)/tests/chaos/hammer $(B)/tests/chaos/checker
CHAOS_SHIM := $(B)/tests/chaos/clockshim.so
CHAOS_PARTS := client receipt reply
CHAOS_RUN := tests/chaos/run

$(B)/tests/chaos/hammer: $(CHAOS_PARTS:%=$(B)/tests/chaos/%.o)
$(B)/tests/chaos/checker: $(B)/tests/chaos/receipt.o
$(CHAOS_BIN): %: %.o
	$(call say,LD,$@) $(LINK) -o $@ $^

# Preloaded into programs that are not ours: no sanitizers, and no flags for programs.
$(CHAOS_SHIM): tests/chaos/clockshim.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(REQUIRED) $(P_WARN) $(if $(filter 1,$(WERROR)),-Werror) -O2 -g -fPIC \
		-shared -o $@ $<

.PHONY: chaos-programs chaos soak
chaos-programs: programs $(CHAOS_BIN) $(CHAOS_SHIM)
test-programs: chaos-programs

chaos: chaos-programs | test-deps
	@SIDFLAKE_BUILD=$(B) $(CHAOS_RUN) $(if $(SEED),--seed $(SEED))

MINUTES ?= 30
soak: chaos-programs | test-deps
	@SIDFLAKE_BUILD=$(B) $(CHAOS_RUN) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) \
		$(if $(TOPOLOGY),--topology $(TOPOLOGY)) $(if $(SIDECARS),--sidecars $(SIDECARS))

-include $(CHAOS_BIN:=.d) $(CHAOS_PARTS:%=$(B)/tests/chaos/%.d)
