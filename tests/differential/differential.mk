# The sidecar held against real servers by random streams, included by the Makefile.
#
# make differential SECONDS=60 [MODE=text|meta|binary|resp[-users]] [SEED=n]   for each mode; SEED: of the first stream
# make differential SEED=n ROUNDS=1 MODE=text                         replays one
# make storm [STORM_CONNECTIONS=3000] [STORM_UPGRADES=6] [VARIANT=san]  the storm of test_storm.py

.PHONY: differential storm
differential: programs | test-deps
	@SIDFLAKE_BUILD=$(CURDIR)/$(B) tests/differential/run --seconds $(SECONDS) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(SEED),--seed $(SEED)) $(if $(FAILURES),--failures $(FAILURES)) $(MODE)

STORM_CONNECTIONS ?= 3000
STORM_UPGRADES ?= 6
STORM_SECONDS ?= 60
storm: programs | test-deps
	@SIDFLAKE_BUILD=$(CURDIR)/$(B) STORM_CONNECTIONS=$(STORM_CONNECTIONS) STORM_UPGRADES=$(STORM_UPGRADES) \
		STORM_SECONDS=$(STORM_SECONDS) $(if $(SEED),SEED=$(SEED)) tests/e2e/run -v "storm: "
