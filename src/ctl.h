/*
 * sidflakectl: what its files share.
 *
 * Exit status: 0; 1 the thing asked about is not as it should be, or the coordinator or sidecar
 * refused; 2 wrong arguments; 3 nobody answered.
 */
#ifndef SIDFLAKE_CTL_H
#define SIDFLAKE_CTL_H

#include "base/err.h"
#include "coord/coord.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum ctl_exit {
    CTL_OK = 0,
    CTL_BAD = 1,
    CTL_USAGE = 2,
    CTL_DOWN = 3
};

/* The options of all commands; each takes those that its row in ctl.c names. */
struct ctl_args {
    const char *coordinator, *pool, *password_file, *connect, *prefix, *uuid;
    const char *workers, *from, *to;
    bool fresh, after_loss, if_missing, repair, yes, json;
    bool has_epoch, has_worker;
    int64_t epoch_ms;
    uint32_t worker;
    uint32_t count; /* -n */
    struct coord_params params;
    char **rest; /* nrest arguments that are no options */
    int nrest;
};

/* Each runs one command and returns the exit status; errors are told on stderr. */
int ctl_pool_init(struct ctl_args *a);
int ctl_pool_close(struct ctl_args *a);
int ctl_pool_status(struct ctl_args *a);
int ctl_pool_list(struct ctl_args *a);
int ctl_pool_release(struct ctl_args *a);
int ctl_pool_check(struct ctl_args *a);
int ctl_decode(struct ctl_args *a);
int ctl_range(struct ctl_args *a);
int ctl_next(struct ctl_args *a);
int ctl_ping(struct ctl_args *a);

/* "sidflakectl: " and the message on stderr; returns status. */
int ctl_fail(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Prints and frees; returns CTL_OK, or CTL_BAD where stdout cannot be written. */
int ctl_print_json(json_t *j);

/* A time as RFC 3339, and a stretch of time as people say it ("3 h 12 min"), in a buffer that lives
 * until the eighth call after. */
const char *ctl_time(int64_t unix_ms);
const char *ctl_span(int64_t ms);

/* Asks on the terminal; false where the answer is not yes. */
bool ctl_confirm(const char *question);

#endif
