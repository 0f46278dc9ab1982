/*
 * A configuration on its way in: the values so far, and where each of them came from, so that a
 * check that looks at several options can still blame the right place.
 */
#ifndef SIDFLAKE_CONF_LOAD_H
#define SIDFLAKE_CONF_LOAD_H

#include "base/err.h"
#include "conf/conf.h"
#include "conf/marks.h"
#include "conf/option.h"

/* Later ones win over earlier ones. */
enum conf_source {
    CONF_SOURCE_DEFAULT,
    CONF_SOURCE_FILE,
    CONF_SOURCE_ENV,
    CONF_SOURCE_SET
};

/* Of an error that is told. */
struct conf_told {
    struct conf_mark at; /* 0, 0: it is none of the file */
    enum err_code code;
};

struct conf_load {
    struct conf *conf;
    const char *name; /* of the file; NULL: there is none */
    bool again;       /* it was read before: nothing in it is an error */
    struct conf_marks marks;
    enum conf_source source[CONF_OPTIONS];      /* of the value in conf */
    bool wrong[CONF_OPTIONS];                   /* a value of it is, or may be: see conf_check */
    bool cut;                                   /* the file was not read to its end */
    struct err *e;                              /* never NULL */
    struct conf_list *errors;                   /* all of them; NULL: the first is the end */
    struct err first;                           /* of errors */
    struct conf_mark blamed;                    /* by the latest conf_load_blame */
    struct conf_told told[CONF_ERRORS_MAX + 1]; /* of each of errors that conf_load_note took */
};

#define CONF_WHOLE_VALUE SIZE_MAX

/* Puts before the text of l->e where the option's value came from; for an item of a list its index,
 * else CONF_WHOLE_VALUE. Returns code. */
enum err_code conf_load_blame(struct conf_load *l, enum conf_option_id id, size_t item,
                              enum err_code code);

/* rc, with its text in l->e, is the end, or, where all errors are wanted, goes to the others and is
 * ERR_OK. */
enum err_code conf_load_note(struct conf_load *l, enum err_code rc) MUST_CHECK;

/* The option that words name, or all of the group, as conf_option_find: what was written for it did
 * not reach it. words may name nothing. */
void conf_load_doubt(struct conf_load *l, struct span words);

/* What no single value shows: addresses given twice, options at odds with each other, a file of
 * passwords or users that cannot be read. Of options that are wrong it says nothing, since what
 * they were meant to be is not known. */
enum err_code conf_check(struct conf_load *l) MUST_CHECK;

/* Harmless oddities, into l->conf->warnings. */
enum err_code conf_check_oddities(struct conf_load *l) MUST_CHECK;

/* The environment's values, and warnings about variables that name no option. */
enum err_code conf_env_apply(struct conf_load *l, char *const *envp) MUST_CHECK;

#endif
