/*
 * The supplies that a configuration asks for: what the keeper runs.
 */
#ifndef SIDFLAKE_DAEMON_SUPPLIES_H
#define SIDFLAKE_DAEMON_SUPPLIES_H

#include "conf/conf.h"
#include "lease/sequences.h"
#include "lease/workers.h"

struct supplies {
    struct workers *workers;
    struct sequences *sequences;       /* NULL: there are none */
    struct seq_create *define;         /* of the configuration, with … */
    char (*define_name)[SEQ_NAME_MAX]; /* … their names */
    struct supply *list[SUPPLY_KINDS]; /* for the keeper: … */
    size_t n;                          /* … so many of them */
};

/* Takes over what the state page holds. coord_name: the coordinator's URL without secrets. It, conf
 * and page are not copied. On failure nothing is left behind. */
enum err_code supplies_init(struct supplies *s, const struct conf *c, const char *coord_name,
                            struct pagefile *page, struct err *e) MUST_CHECK;

/* After keeper_free. One that is all zero is allowed. */
void supplies_clear(struct supplies *s);

#endif
