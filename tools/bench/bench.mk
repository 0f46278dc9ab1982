# The bench: `make bench`. Included by the Makefile, behind its own rules; uses $(B), $(LIB), $(LINK).
#
#   make bench                  all rows, under a quarter of an hour, and the plot
#   make bench BENCH=--quick    what CI prints: every row, briefly
#   make bench BENCH='--only pipeline,memory'
#
# Programs are built as $(VARIANT) says; numbers of another than release mean little.

BENCH ?=
BENCH_PROGRAMS := $(addprefix $(B)/tools/bench/,load bare inproc claims takes count_malloc.so)
bench_objects = $(addprefix $(B)/tools/bench/,$(addsuffix .o,$(1)))

$(B)/tools/bench/load: $(call bench_objects,load drive shape latency idset) $(LIB)
$(B)/tools/bench/bare: $(call bench_objects,bare) $(LIB)
$(B)/tools/bench/inproc: $(call bench_objects,inproc) $(LIB)
$(B)/tools/bench/claims: $(call bench_objects,claims) $(LIB)
$(B)/tools/bench/takes: $(call bench_objects,takes) $(LIB)
$(filter-out %.so,$(BENCH_PROGRAMS)):
	$(call say,LD,$@) $(LINK) -o $@ $^ $(LIBS)

# malloc's callers must not be told what it does, and it must not be told that it calls itself.
$(B)/tools/bench/count_malloc.so: tools/bench/count_malloc.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<) $(COMPILE) -fPIC -fno-builtin -shared -o $@ $<

.PHONY: bench bench-programs
bench-programs: $(B)/sidflake $(B)/sidflakectl $(BENCH_PROGRAMS)

bench:
	@tools/install-deps build bench
	@$(MAKE) --no-print-directory $(PARALLEL) bench-programs
	@tools/bench/bench --build $(B) $(BENCH)

-include $(patsubst %,$(B)/tools/bench/%.d,load drive shape latency idset bare inproc claims takes)
