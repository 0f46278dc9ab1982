/*
 * The arguments of sidflakectl: a table of commands, each with the options that it takes, and a
 * table of options.
 *
 * Invariants
 *   - A command is known by its words; an option that it does not take is an error.
 *   - What --help says is told from the same two tables.
 */
#ifndef SIDFLAKE_CTL_ARGS_H
#define SIDFLAKE_CTL_ARGS_H

#include "ctl/ctl.h"

struct ctl_command {
    const char *group, *name; /* group NULL: the name alone */
    int (*run)(struct ctl_args *);
    const char *takes;      /* options, parted by spaces */
    const char *rest;       /* what the other arguments are called in its synopsis, or "" */
    int rest_min, rest_max; /* their number; max -1: any */
    const char *about;      /* one line */
    const char *more;       /* for its own --help, lines of at most 79; or NULL */
};

bool ctl_takes(const struct ctl_command *c, const char *option);

/* argv[0] is ignored. true: *a is filled, run the command; else *status is the exit status. */
bool ctl_parse(const struct ctl_command *c, int argc, char **argv, struct ctl_args *a, int *status);

/* Of n words, the one that a person who wrote `word` may have meant, or NULL: it differs in at most
 * a third of its letters. */
const char *ctl_meant(const char *word, const char *const *words, size_t n);

#endif
