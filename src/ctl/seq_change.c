/*
 * sidflakectl seq alter, set, drop, reopen, reserve, sweep: what changes a sequence by one word.
 */
#include "ctl/seq.h"

#include "base/dec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints what is there of "name, sub, period" with more, which it frees. */
static int print_counter(const struct ctl_args *a, const char *period, json_t *more)
{
    json_t *j = json_pack("{s:s, s:s?, s:s?}", "name", a->rest[0], "sub", a->seq.sub, "period",
                          *period ? period : NULL);
    if (json_object_update(j, more)) {
        json_decref(j);
        j = NULL;
    }
    json_decref(more);
    return ctl_print_json(CTL_OK, j);
}

/* "orders", or "orders:acme of 2026-11-22" */
static const char *counter_name(const struct ctl_args *a, const char *period, char out[256])
{
    (void)snprintf(out, 256, "%s%s%s%s%s", a->rest[0], a->seq.sub ? ":" : "",
                   a->seq.sub ? a->seq.sub : "", *period ? " of " : "", period);
    return out;
}

static int read_second(const struct ctl_args *a, const char *command, const char *what,
                       int64_t *number)
{
    if (seq_number_read(span_str(a->rest[1]), number))
        return CTL_OK;
    return ctl_fail(CTL_USAGE, "%s: expected %s, " SEQ_NUMBER_EXPECTED ", found \"%s\"", command,
                    what, a->rest[1]);
}

/* ---- alter -------------------------------------------------------------------------------------
 */

static int alter_template(struct ctl_session *s, const char *name)
{
    struct seq_grant g;
    const struct ctl_args *a = s->args;
    const char *template = a->seq.words.template;
    enum coord_status r =
        seq_alter_template(s->coord, s->pool.identity, name, template, &g, &s->reply);
    int status = ctl_seq_close(s, r, name, &g, SEQ_DONE, SEQ_KEPT);
    if (status)
        return status;
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:s, s:s}", "name", name, "template", template));
    (void)printf("sequence \"%s\": its numbers are written by %s; sidecars learn it with the next "
                 "numbers that they ask for\n",
                 name, template);
    return ctl_flush(CTL_OK);
}

int ctl_seq_alter(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_grant g;
    const char *name = a->rest[0];
    if (a->seq.words.has_max == (a->seq.words.template != NULL))
        return ctl_fail(CTL_USAGE, "seq alter: expected --max M or --template TEXT, one of them");
    int status = ctl_seq_open(a, &s, name);
    if (status)
        return status;
    if (a->seq.words.template)
        return alter_template(&s, name);
    enum coord_status r = seq_alter(s.coord, s.pool.identity, name, a->seq.words.max, &g, &s.reply);
    if (r == COORD_OK && g.how == SEQ_LOWER) {
        coord_free(s.coord);
        return ctl_fail(
            CTL_BAD, "sequence \"%s\": expected a max %s its own, %" PRId64 ", found %" PRId64 "%s",
            name, g.definition.cycle ? "that is" : "behind", ctl_seq_at(&g.definition, g.max),
            a->seq.words.max, g.definition.cycle ? ": one that cycles keeps its max" : "");
    }
    status = ctl_seq_close(&s, r, name, &g, SEQ_DONE, SEQ_DONE);
    if (status)
        return status;
    int64_t max = ctl_seq_at(&g.definition, g.max);
    if (a->json)
        return ctl_print_json(CTL_OK,
                              json_pack("{s:s, s:I}", "name", name, "max", (json_int_t)max));
    (void)printf("sequence \"%s\": its max is %" PRId64 "\n", name, max);
    return ctl_flush(CTL_OK);
}

/* ---- set ----------------------------------------------------------------------------------------
 */

static int check_set(const struct ctl_args *a)
{
    char question[256];
    if (a->seq.back && !a->seq.words.no_older)
        return ctl_fail(CTL_USAGE,
                        "--back: expected --no-older-data as well, your word that no data from "
                        "before this ever come back, since they would be taken for newer ones");
    if (a->seq.words.no_older && !a->seq.back)
        return ctl_fail(CTL_USAGE, "--no-older-data: expected with --back, found without");
    (void)snprintf(question, sizeof question,
                   "Set \"%.64s\" to %s, though numbers behind it may have been given out? They "
                   "repeat.",
                   a->rest[0], a->rest[1]);
    return a->seq.back ? ctl_confirm(a, "seq set", question) : CTL_OK;
}

/* Which number is the next was not asked. */
static int beyond_max(struct ctl_session *s, int64_t number, const struct seq_grant *g)
{
    coord_free(s->coord);
    return ctl_fail(CTL_BAD,
                    "sequence \"%s\": expected a number from its start, %" PRId64
                    ", to its max, %" PRId64 ", found %" PRId64 "; `seq alter --max` raises that",
                    s->args->rest[0], ctl_seq_at(&g->definition, 0),
                    ctl_seq_at(&g->definition, g->max), number);
}

/* The line may have raised it above what its record says: so it is asked once more. */
static int set_lower(struct ctl_session *s, int64_t number)
{
    const char *name = s->args->rest[0];
    struct seq_grant g;
    enum coord_status r = ctl_seq_look(s, name, &g);
    char why[CTL_SEQ_WHY_MAX];
    int status = CTL_BAD;
    if (r != COORD_OK)
        status = ctl_session_fail(s->args, r, &s->reply);
    else if (!*g.text)
        status = ctl_fail(CTL_BAD, "sequence \"%s\": %s", name, ctl_seq_why(s, name, &g, why));
    else
        (void)ctl_fail(CTL_BAD,
                       "sequence \"%s\": expected its next number or one behind it, %" PRId64
                       ", found %" PRId64 "; --back goes there all the same, and numbers repeat",
                       name, ctl_seq_at(&g.definition, g.next), number);
    coord_free(s->coord);
    return status;
}

int ctl_seq_set(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_grant g;
    char counter[256];
    struct seq_set in = {.name = a->rest[0],
                         .sub = a->seq.sub ? a->seq.sub : "",
                         .period = a->seq.period ? a->seq.period : "",
                         .back = a->seq.back,
                         .no_older = a->seq.words.no_older};
    int status = read_second(a, "seq set", "N", &in.number);
    if (status || (status = check_set(a)) || (status = ctl_seq_open(a, &s, in.name)))
        return status;
    enum coord_status r = seq_set(s.coord, s.pool.identity, &in, &g, &s.reply);
    if (r == COORD_OK && g.how == SEQ_LOWER)
        return set_lower(&s, in.number);
    if (r == COORD_OK && g.how == SEQ_USED_UP)
        return beyond_max(&s, in.number, &g);
    status = ctl_seq_close(&s, r, in.name, &g, SEQ_DONE, SEQ_DONE);
    if (status)
        return status;
    int64_t next = ctl_seq_at(&g.definition, g.next);
    if (a->json)
        return print_counter(a, g.period, json_pack("{s:I}", "next", (json_int_t)next));
    (void)printf("sequence \"%s\": the next number is %" PRId64
                 "; sidecars give out what they hold until they ask for more\n",
                 counter_name(a, g.period, counter), next);
    return ctl_flush(CTL_OK);
}

/* ---- drop ---------------------------------------------------------------------------------------
 */

int ctl_seq_drop(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_grant g;
    char question[256];
    const char *name = a->rest[0];
    (void)snprintf(
        question, sizeof question,
        "Drop sequence \"%.64s\"? No number of it is granted any more, and its name stays "
        "taken.",
        name);
    int status = ctl_confirm(a, "seq drop", question);
    if (status || (status = ctl_seq_open(a, &s, name)))
        return status;
    enum coord_status r = seq_drop(s.coord, s.pool.identity, name, &g, &s.reply);
    status = ctl_seq_close(&s, r, name, &g, SEQ_DONE, SEQ_DONE);
    if (status)
        return status;
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:s, s:b}", "name", name, "dropped", 1));
    (void)printf(
        "sequence \"%s\" is dropped; its name stays taken, and sidecars give out what they "
        "hold of it until they ask for more\n",
        name);
    return ctl_flush(CTL_OK);
}

#define KNOWN_MAX 128

/* ---- reopen
 * -------------------------------------------------------------------------------------- */

/* By whoever asks for numbers now the pool is reopened, where that is due. */
static int look(struct ctl_session *s)
{
    struct seq_grant now;
    enum coord_status r = ctl_seq_look(s, s->args->rest[0], &now);
    if (r == COORD_OK)
        r = coord_describe(s->coord, &s->pool, &s->reply);
    return r == COORD_OK ? CTL_OK : ctl_session_fail(s->args, r, &s->reply);
}

/* With what is known of how far it was, which goes to known: "" where that is not farther than is
 * said. */
static int confirm_reopen(struct ctl_session *s, const char *name, char known[KNOWN_MAX])
{
    struct seq_counters c;
    char question[640];
    known[0] = '\0';
    const struct ctl_args *a = s->args;
    int status = look(s);
    if (status)
        return status;
    enum coord_status r = seq_show(s->coord, s->pool.identity, name, &c, &s->reply);
    if (r != COORD_OK)
        return ctl_session_fail(a, r, &s->reply);
    free(c.v);
    const struct seq_info *v = &c.sequence;
    if (!c.found || v->unreadable)
        return CTL_OK; /* which is told below */
    if (v->top > seq_index_from(&v->definition, a->seq.above) + 1)
        (void)snprintf(known, KNOWN_MAX, ", or behind what a counter had by then, at most %s",
                       ctl_seq_highest(&v->definition, v->top));
    (void)snprintf(
        question, sizeof question,
        "Was no number of \"%.64s\" behind %" PRId64 " given out, by any of its counters? "
        "If one was, numbers repeat; and if one will be: a running sidecar, or one that starts "
        "with its sequences.page, gives out what it holds until it asks for more, and then "
        "loses what is behind that. "
        "Granted, as far as is known here: up to %s%s%s.",
        name, a->seq.above, ctl_seq_highest(&v->definition, v->top),
        v->seen > v->top ? "; by the word of a sidecar: up to " : "",
        v->seen > v->top ? ctl_seq_highest(&v->definition, v->seen) : "");
    return ctl_session_confirm_loss(s, "seq reopen", question, look);
}

int ctl_seq_reopen(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_grant g;
    char known[KNOWN_MAX];
    const char *name = a->rest[0];
    if (!a->seq.has_above)
        return ctl_fail(
            CTL_USAGE,
            "seq reopen: expected --above N, the highest number that was given out, or that "
            "a sidecar holds, running or not");
    int status = ctl_seq_open(a, &s, name);
    if (status)
        return status;
    status = confirm_reopen(&s, name, known);
    if (status) {
        coord_free(s.coord);
        return status;
    }
    enum coord_status r = seq_reopen(s.coord, s.pool.identity, name, a->seq.above, &g, &s.reply);
    if (r == COORD_OK && g.how == SEQ_USED_UP)
        return beyond_max(&s, a->seq.above, &g);
    status = ctl_seq_close(&s, r, name, &g, SEQ_DONE, SEQ_DONE);
    if (status)
        return status;
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:s, s:b, s:I}", "name", name, "reopened", 1,
                                                "above", (json_int_t)a->seq.above));
    (void)printf("sequence \"%s\": grants go on behind %" PRId64
                 "%s; what sidecars were granted before, behind %" PRId64
                 ", is revoked once they ask for more\n",
                 name, a->seq.above, known, a->seq.above);
    return ctl_flush(CTL_OK);
}

/* ---- reserve
 * -------------------------------------------------------------------------------------- */

static int tell_reserved(const struct ctl_args *a, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    int64_t first = ctl_seq_at(d, g->lo), last = ctl_seq_at(d, g->hi);
    char counter[256];
    if (a->json)
        return print_counter(a, g->period,
                             json_pack("{s:I, s:I, s:I, s:I}", "first", (json_int_t)first, "last",
                                       (json_int_t)last, "increment", (json_int_t)d->increment,
                                       "count", (json_int_t)(g->hi - g->lo + 1)));
    (void)printf("sequence \"%s\": %" PRId64 " to %" PRId64, counter_name(a, g->period, counter),
                 first, last);
    if (d->increment != 1)
        (void)printf(", by %" PRId64, d->increment);
    (void)puts("");
    return ctl_flush(CTL_OK);
}

int ctl_seq_reserve(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_grant g;
    uint64_t count;
    const char *name = a->rest[0];
    if (!dec_u64(span_str(a->rest[1]), &count) || count < 1 || count > SEQ_BLOCK_MAX)
        return ctl_fail(CTL_USAGE, "seq reserve: expected 1 to %d numbers, found \"%s\"",
                        SEQ_BLOCK_MAX, a->rest[1]);
    int status = ctl_seq_open(a, &s, name);
    if (status)
        return status;
    enum coord_status r =
        seq_reserve(s.coord, s.pool.identity, clock_wall_ms(clock_system()), name,
                    a->seq.sub ? a->seq.sub : "", a->seq.period ? a->seq.period : "",
                    (int64_t)count, coord_token_new(rng_system()), &g, &s.reply);
    status = ctl_seq_close(&s, r, name, &g, SEQ_GRANTED, SEQ_AGAIN);
    if (r == COORD_DOWN)
        (void)ctl_fail(CTL_DOWN, "the numbers may have been taken all the same: a gap");
    return status ? status : tell_reserved(a, &g);
}

/* ---- sweep
 * --------------------------------------------------------------------------------------- */

int ctl_seq_sweep(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_grant g;
    const char *name = a->rest[0];
    int status = ctl_seq_open(a, &s, name);
    if (status)
        return status;
    enum coord_status r =
        seq_sweep(s.coord, s.pool.identity, name, a->seq.before ? a->seq.before : "", &g, &s.reply);
    status = ctl_seq_close(&s, r, name, &g, SEQ_DONE, SEQ_DONE);
    if (status)
        return status;
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:s, s:b, s:s?}", "name", name, "swept", 1,
                                                "closed_before", a->seq.before));
    (void)printf("sequence \"%s\": counters that are over are deleted%s%s\n", name,
                 a->seq.before ? "; closed for good are periods before " : "",
                 a->seq.before ? a->seq.before : "");
    return ctl_flush(CTL_OK);
}
