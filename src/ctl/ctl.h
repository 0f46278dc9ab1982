/*
 * sidflakectl: what its files share.
 *
 * Exit status: 0; 1 the thing asked about is not as it should be, or the coordinator or sidecar
 * refused; 2 wrong arguments; 3 nobody answered; and 128 + n where signal n broke off a wait.
 *
 * Facts go to stdout, as text or with --json as one JSON document; everything else to stderr.
 */
#ifndef SIDFLAKE_CTL_CTL_H
#define SIDFLAKE_CTL_CTL_H

#include "base/err.h"
#include "base/passfile.h"
#include "base/span.h"
#include "coord/seq_options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ctl_exit {
    CTL_OK = 0,
    CTL_BAD = 1,
    CTL_USAGE = 2,
    CTL_DOWN = 3,
    CTL_SIGNAL = 128
};

/* The options of the seq commands alone. */
struct ctl_seq_args {
    struct seq_words words; /* of a definition, and for other commands max and no_older of them */
    const char *sub, *period, *before;
    const char *name; /* --seq: whose text it is */
    bool back, has_above;
    int64_t above;
};

/* The options of all commands; each takes those that its row in ctl.c names. */
struct ctl_args {
    const char *coordinator, *pool, *password_file, *connect, *prefix, *uuid, *layout;
    const char *workers, *from, *to, *sort, *user, *names, *upstream, *keys;
    bool nothing_lost, clock_was_ahead, has_settle, has_least_settle, has_ahead;
    bool fresh, after_loss, if_missing, repair, yes, json, reverse, once, no_color;
    bool moved, moved_back, even_if_alive;
    bool has_epoch, has_worker, has_timeout, has_horizon, has_max_skew, has_replicas;
    int64_t epoch_ms;
    int64_t timeout_ms;
    int64_t settle_ms, least_settle_ms, ahead_ms;
    int64_t delay_ms;
    uint32_t worker;
    uint32_t count; /* -n; 0: not given */
    struct coord_params params;
    struct ctl_seq_args seq;
    char **rest; /* nrest arguments that are no options */
    int nrest;
};

/* Each runs one command and returns the exit status; errors are told on stderr. */
int ctl_pool_init(struct ctl_args *a);
int ctl_pool_status(struct ctl_args *a);
int ctl_pool_list(struct ctl_args *a);
int ctl_pool_release(struct ctl_args *a);
int ctl_pool_check(struct ctl_args *a);
int ctl_pool_close(struct ctl_args *a);
int ctl_pool_open(struct ctl_args *a);
int ctl_pool_set(struct ctl_args *a);
int ctl_pool_reopen(struct ctl_args *a);
int ctl_pool_drain(struct ctl_args *a);
int ctl_seq_create(struct ctl_args *a);
int ctl_seq_alter(struct ctl_args *a);
int ctl_seq_set(struct ctl_args *a);
int ctl_seq_drop(struct ctl_args *a);
int ctl_seq_list(struct ctl_args *a);
int ctl_seq_show(struct ctl_args *a);
int ctl_seq_gaps(struct ctl_args *a);
int ctl_seq_reserve(struct ctl_args *a);
int ctl_seq_reopen(struct ctl_args *a);
int ctl_seq_check(struct ctl_args *a);
int ctl_seq_sweep(struct ctl_args *a);
int ctl_decode(struct ctl_args *a);
int ctl_decode_text(struct ctl_args *a); /* with --template, or --seq */
int ctl_range(struct ctl_args *a);
int ctl_next(struct ctl_args *a);
int ctl_ping(struct ctl_args *a);
int ctl_top(struct ctl_args *a);
int ctl_passwd(struct ctl_args *a);

/* Epoch and layout of the pool of the sidecar at --connect. CTL_OK, or the exit status, with the
 * reason told. */
int ctl_sidecar_space(const struct ctl_args *a, int64_t *epoch_ms, struct layout *layout);

/* --settle and --least-settle, where given, are such as that pool can have: CTL_OK, or the exit
 * status. */
int ctl_check_settle(const struct ctl_args *a, const struct coord_params *p);

/* "sidflakectl: " and the message on stderr; returns status. What is no character that shows, in
 * whatever others have said, becomes '?'. */
int ctl_fail(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Ends what was printed; CTL_BAD where stdout could not be written. */
int ctl_flush(int status);

/* Prints and frees; returns status, or CTL_BAD where stdout cannot be written or j is NULL. */
int ctl_print_json(int status, json_t *j);

/* A buffer that lives until the sixteenth call after. */
#define CTL_WORD_MAX 48
char *ctl_word(void);

/* A time as RFC 3339, a stretch of time as people say it ("3 h 12 min"), which is less than it is,
 * one as options take it ("5399s"), exactly, and a number with commas, each in a ctl_word. */
const char *ctl_time(int64_t unix_ms);
const char *ctl_span(int64_t ms);
const char *ctl_duration(int64_t ms);
const char *ctl_number(uint64_t n);

/* Text of somebody else's, cut to cap - 1 bytes; what is not printable ASCII becomes '?', for it
 * may speak to the terminal. Returns out. */
char *ctl_clean(char *out, size_t cap, struct span text);

/* A line of f without its end, cut to what out holds; false: none came, or one with a NUL. */
bool ctl_read_line(FILE *f, char *out, size_t cap);

/* Reads --password-file as base/passfile.h says, "" where there is none; returns CTL_OK or the exit
 * status. The caller wipes it. */
int ctl_password(const struct ctl_args *a, char out[PASSFILE_MAX + 1]);

/* Whether what the command, "pool release", does may be done: --yes was given, or the answer on the
 * terminal is yes. CTL_OK, or the exit status, with the reason told. */
int ctl_confirm(const struct ctl_args *a, const char *command, const char *question);
/* The same of a question that --yes does not answer, on a terminal. */
int ctl_ask(const char *question);

/* What is typed behind a question: a line, all of which is taken, so that nothing of it answers the
 * next one. false: none came, or one that out does not hold, or with a NUL. */
bool ctl_read_answer(char *out, size_t cap);

/* How far a work has come, on stderr: nothing in its first second; then on a terminal one line that
 * is written over, else a line every 10 s. */
struct ctl_progress {
    int64_t began_us, shown_us;
    bool terminal, quiet, drawn;
};

/* quiet: nothing is ever shown. */
void ctl_progress_begin(struct ctl_progress *p, bool quiet);
void ctl_progress_show(struct ctl_progress *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Takes the line away. */
void ctl_progress_end(struct ctl_progress *p);

#endif
