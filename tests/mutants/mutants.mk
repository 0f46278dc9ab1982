# Mutants, included by the Makefile.
#
# make mutants [M=PATTERN] [SCHEDULES=n]    breaks the code in one place at a time; a test must notice

.PHONY: mutants
mutants: | test-deps
	@tests/mutants/run $(if $(M),--match '$(M)') $(if $(SCHEDULES),--schedules $(SCHEDULES))
