/*
 * The commands for a coordinator that logs tell, so that they work as they stand, wherever and by
 * whomever they are typed.
 */
#ifndef SIDFLAKE_COORD_ADVICE_H
#define SIDFLAKE_COORD_ADVICE_H

#include "base/buf.h"
#include "ids/layout.h"

/* "sidflakectl"; for an SQLite file as this process's user, whose the file is or is to be. Root may
 * do anything, and leaves files to the owner of their directory, so that nobody has to become it:
 * where no sudo is, as in the image, the command is root's or already that user's. */
void advice_put_tool(struct buf *b, const char *url);

/* Whether what is there can be lost in part without a trace, so that a sequence is made there with
 * --max-rate or --on-loss only. */
bool advice_forgets(const char *url);

/* The URL as a word of the shell; the path of an SQLite file from the root on. */
void advice_put_url(struct buf *b, const char *url);

/* The path of a file as a word of the shell, from the root on; as it stands where there is no such
 * file, which then is a word for one. */
void advice_put_file(struct buf *b, const char *file);

/* When such a command is right; another URL or pool may be mistyped. */
#define ADVICE_WHEN_FRESH                                                                          \
    "if its applications never had IDs, from another URL or pool either, else with the command "   \
    "that the log of a sidecar which used it has"

/* " --fresh", for a pool init; where sentinels fail over " --replicas N" with it, which has to be
 * said and is refused until a number stands for N. */
void advice_put_fresh(struct buf *b, const char *url);

/* " --layout NAME", for a pool init; nothing where it is the usual one, which need not be said. */
void advice_put_layout(struct buf *b, const struct layout *l);

/* false: a log would escape it, or what a shell or the text around it has it quoted by, and nobody
 * could copy the command from there. */
bool advice_may_be_logged(const char *word);

#endif
