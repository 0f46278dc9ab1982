/* A stub: it stands until the supply of blocks is here. */
#include "lease/sequences.h"

#include <stdlib.h>

struct sequences {
    struct supply supply;
    struct sequences_report report, shared;
};

static void tell(struct supply *s, const void *event)
{
    (void)s;
    (void)event;
}

static void hear(struct supply *s, int64_t mono)
{
    (void)s;
    (void)mono;
}

static bool stopped;

static void stop(struct supply *s, bool give_back, int64_t mono)
{
    (void)s;
    (void)give_back;
    (void)mono;
    stopped = true;
}

static enum supply_next next(struct supply *s, int64_t mono, int64_t *until)
{
    (void)s;
    (void)mono;
    *until = INT64_MAX;
    return stopped ? SUPPLY_FINISHED : SUPPLY_IDLE;
}

static bool proven(const struct supply *s)
{
    (void)s;
    return true;
}

static const void *report(struct supply *s)
{
    return &((struct sequences *)s)->report;
}

static const struct supply_kind kind = {.tell = tell,
                                        .hear = hear,
                                        .stop = stop,
                                        .next = next,
                                        .proven = proven,
                                        .report = report,
                                        .report_size = sizeof(struct sequences_report)};

enum err_code sequences_new(const struct sequences_options *o, int64_t mono, struct sequences **out,
                            struct err *e)
{
    (void)o;
    (void)mono;
    struct sequences *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_NOMEM, "no memory");
    stopped = false;
    s->supply.kind = &kind;
    s->supply.shared = &s->shared;
    *out = s;
    return ERR_OK;
}

struct supply *sequences_supply(struct sequences *s)
{
    return &s->supply;
}

const struct blocks_name *sequences_found(const struct sequences *s, uint32_t counter)
{
    (void)s;
    (void)counter;
    return NULL;
}

struct blocks_mail sequences_mail(const struct supply_mail *m)
{
    struct blocks_mail mail;
    memcpy(&mail, m->body, sizeof mail);
    return mail;
}

void sequences_free(struct sequences *s)
{
    free(s);
}
