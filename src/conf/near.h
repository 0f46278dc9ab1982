/*
 * What somebody may have meant who named no option.
 */
#ifndef SIDFLAKE_CONF_NEAR_H
#define SIDFLAKE_CONF_NEAR_H

#include "base/span.h"

/* Each puts " (did you mean X?)" into out, or nothing, where nothing is near. Returns out. */
#define CONF_NEAR_MAX 96

/* path: "GROUP.KEY", "KEY" or "GROUP"; near is also the same key of another group. */
char *conf_near(char out[CONF_NEAR_MAX], struct span path);
/* The X alone, in mem; empty: nothing is near. */
struct span conf_near_meant(char mem[CONF_NEAR_MAX], struct span path);
/* The name of a variable. */
char *conf_near_env(char out[CONF_NEAR_MAX], struct span name);

#endif
