# Mutants, included by the Makefile.
#
# make mutants [M=PATTERN] [SCHEDULES=n]    breaks the code in one place at a time; a test must notice

.PHONY: mutants
mutants:
	@tools/install-deps build test
	@tests/mutants/run $(if $(M),--match '$(M)') $(if $(SCHEDULES),--schedules $(SCHEDULES))
