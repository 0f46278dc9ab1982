# Hostile clients, included by the Makefile.
#
# make hostile [ONLY=name] [SECONDS=n]    all attacks, or those whose name contains ONLY; a table at
#                                         the end, and its figures in build/hostile.json
# tests/hostile/run --table FILE.json     writes that table into tests/README.md and the man page

HOSTILE_BIN := $(B)/tests/hostile/swarm $(B)/tests/hostile/guests

$(HOSTILE_BIN): %: %.o $(B)/tests/hostile/place.o
	$(call say,LD,$@) $(LINK) -o $@ $^

.PHONY: hostile-programs hostile
hostile-programs: programs $(HOSTILE_BIN)
test-programs: hostile-programs
e2e: hostile-programs

# SECONDS has another default elsewhere: only what was asked for counts.
HOSTILE_SECONDS := $(if $(findstring command,$(origin SECONDS)),$(SECONDS))
hostile: hostile-programs | test-deps
	@SIDFLAKE_BUILD=$(B) tests/hostile/run --json build/hostile.json \
		$(if $(ONLY),--only '$(ONLY)') $(if $(HOSTILE_SECONDS),--seconds $(HOSTILE_SECONDS))

-include $(HOSTILE_BIN:=.d) $(B)/tests/hostile/place.d
