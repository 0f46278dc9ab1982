# The deterministic simulation, included by the Makefile.
#
# make sim SEEDS=100000 [FROM=n] [SQLITE=n] [JOBS=n]   that many schedules, on n processes; ALL=1 counts
#                                                      failures and goes on; TWIN=1 has the rules in C
#                                                      run what goes to Redis (tests/sim/twin.h)
# make sim FROM=1000000000 ...                         the same with sequences: seeds from there on have
#                                                      them, and the others are as they were without
# make sim SEED=n [MINIMAL=1]                          one, with its trace
# UNHEARD=1 with either                                a data set older than a short settle is put in
#                                                      place though not all holders can be heard: what
#                                                      a bet gives up, so some are expected to fail
# SIM_LUA=jit with either                              LuaJIT (libluajit-5.1-dev), for soaks

# Plain is the interpreter that Redis embeds.
SIM_LUA ?= plain
SIM_LUA_LIBS_plain := -llua5.1
SIM_LUA_INCLUDE_plain := -I$(SYSROOT)/usr/include/lua5.1
SIM_LUA_LIBS_jit := -lluajit-5.1
SIM_LUA_INCLUDE_jit := -I$(SYSROOT)/usr/include/luajit-2.1
ifeq ($(SIM_LUA_LIBS_$(SIM_LUA)),)
$(error SIM_LUA must be plain or jit, found "$(SIM_LUA)")
endif

SIM_SRC := $(filter-out tests/sim/sim.c tests/sim/check_redis.c,$(sort $(wildcard tests/sim/*.c)))
SIM_OBJ := $(SIM_SRC:%.c=$(B)/%.o)
SIM_BIN := $(B)/tests/sim/sim $(B)/tests/sim/check_redis

$(B)/tests/sim/%: INCLUDES := -Itests $(SIM_LUA_INCLUDE_$(SIM_LUA))

# Rewritten only when the interpreter changes.
$(B)/tests/sim/lua: FORCE
	@mkdir -p $(@D)
	@echo $(SIM_LUA) | cmp -s - $@ || echo $(SIM_LUA) >$@

$(B)/tests/sim/script.o $(SIM_BIN): $(B)/tests/sim/lua
$(SIM_OBJ) $(SIM_BIN:=.o): | unit-deps

# script.o stands in for coord/redis_peer.c, the connection to a server, so it comes before the library.
$(SIM_BIN): %: %.o $(SIM_OBJ) $(SUPPORT) $(LIB)
	$(call say,LD,$@) $(LINK) -o $@ $(filter-out %/lua,$^) $(SIM_LUA_LIBS_$(SIM_LUA)) $(LIBS)

# Not under sanitizers as a matter of course: they make it ten times slower.
ifeq ($(filter san tsan,$(VARIANT)),)
unit-programs: $(SIM_BIN)
UNIT_BIN += $(SIM_BIN)
endif
-include $(SIM_OBJ:.o=.d) $(SIM_BIN:=.d)

# JOBS has a default in the Makefile that is not meant for this.
SEEDS ?= 100000
SIM_SETTINGS = SEEDS=$(SEEDS) $(if $(filter command,$(origin JOBS)),JOBS=$(JOBS)) \
	$(foreach v,SEED MINIMAL FROM SQLITE TWIN ALL UNHEARD,$(if $($(v)),$(v)=$($(v))))
.PHONY: sim
sim: $(B)/tests/sim/sim
	$(SIM_SETTINGS) $(B)/tests/sim/sim
