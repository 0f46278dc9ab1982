# The deterministic simulation, included by the Makefile.
#
# make sim SEEDS=100000 [FROM=n] [SQLITE=n]    that many schedules
# make sim SEED=n [MINIMAL=1]                  one, with its trace

SIM_LUA ?= -llua5.1
SIM_LUA_INCLUDE ?= -I/usr/include/lua5.1
SIM_SRC := $(filter-out tests/sim/sim.c tests/sim/check_redis.c,$(sort $(wildcard tests/sim/*.c)))
SIM_OBJ := $(SIM_SRC:%.c=$(B)/%.o)
SIM_BIN := $(B)/tests/sim/sim $(B)/tests/sim/check_redis

$(B)/tests/sim/%: INCLUDES := -Itests $(SIM_LUA_INCLUDE)

# script.o stands in for coord/redis.c, the connection to a server, so it comes before the library.
$(SIM_BIN): %: %.o $(SIM_OBJ) $(SUPPORT) $(LIB)
	$(call say,LD,$@) $(LINK) -o $@ $^ $(SIM_LUA) $(LIBS)

# Not under sanitizers as a matter of course: they make it ten times slower.
ifeq ($(filter san tsan,$(VARIANT)),)
unit-programs: $(SIM_BIN)
UNIT_BIN += $(SIM_BIN)
endif
-include $(SIM_OBJ:.o=.d) $(SIM_BIN:=.d)

SEEDS ?= 100000
.PHONY: sim
sim: $(B)/tests/sim/sim
	SEEDS=$(SEEDS) $(if $(SEED),SEED=$(SEED)) $(if $(MINIMAL),MINIMAL=$(MINIMAL)) \
		$(if $(FROM),FROM=$(FROM)) $(if $(SQLITE),SQLITE=$(SQLITE)) $(B)/tests/sim/sim
