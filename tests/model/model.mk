# The model of the lease protocol, included by the Makefile.
#
# make model [BOUNDS=large]    every state within small bounds, or larger ones; each rule taken away

BOUNDS ?= small
.PHONY: model
model: | test-deps
	@tests/model/run $(if $(filter large,$(BOUNDS)),--large)

# Nothing of it is built by a variant.
ifeq ($(filter san tsan,$(VARIANT)),)
UNIT_BIN += tests/model/run
endif
