/*
 * The composition root: builds the parts, wires them, runs the loop, and tears down in reverse.
 *
 *            keeper thread                        serving loop
 *   coord <-- lease --mails--> bridge (bridge.h) --> issuer <-- services <-- net
 *             page <--------------- marks -----------'
 */
#ifndef SIDFLAKE_DAEMON_APP_H
#define SIDFLAKE_DAEMON_APP_H

#include "conf/conf.h"
#include "daemon/heir.h"

/* How the program was started. All must outlive the call. */
struct app_start {
    const char *file; /* for a reload, as conf_load takes them: … */
    char *const *sets;
    size_t nsets;
    char *const *envp;
    char *const *argv; /* for an upgrade: of main */
    struct heir *heir; /* what a program before left; cleared as soon as it is taken over */
};

/* Runs the daemon with a configuration until a signal stops it. Returns the process's exit status:
 * 0 after a stop, 1 where it could not start, 78 where the configuration cannot be carried out. */
int app_run(const struct conf *c, const struct app_start *s);

/* Whether app_run would come to its end: builds the parts, as far as that disturbs nobody, and says
 * in c->warnings what it would go on without. A rehearsal (heir.h) also listens for a moment, on
 * addresses that the program that asks does not listen on. */
enum err_code app_rehearse(struct conf *c, struct heir *h, struct err *e) MUST_CHECK;

#endif
