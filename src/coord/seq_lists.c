/* Sequences as the store has them, for people. */
#include "coord/outcome.h"
#include "coord/seq_rows.h"
#include "coord/seq_within.h"

#include <stdio.h>
#include <stdlib.h>

static void info_of(const struct seq_row *row, struct seq_info *out)
{
    struct seq_state s;
    out->unreadable = !seq_state_read(span_str(row->value), &s, &out->definition);
    if (out->unreadable)
        return;
    out->dropped = s.dropped != 0;
    memcpy(out->text, s.text, sizeof out->text);
    out->revoked = s.revoked;
    out->gen = s.gen;
    out->turn = s.turn;
    out->max = s.max;
    out->top = s.top;
    out->seen = s.seen;
    out->subs = s.subs;
    out->ok_era = s.ok;
    memcpy(out->closed, s.mark, sizeof out->closed);
}

enum coord_status seq_list(struct coord *c, const char *identity, struct seq_list *out,
                           struct coord_reply *r)
{
    struct seq_rows rows = {.n = 0};
    *out = (struct seq_list){.n = 0};
    if (!seq_may_ask(c, identity, NULL, r))
        return COORD_REFUSED;
    enum coord_status s = seq_read_rows(c, identity, "seq ", &rows, r);
    if (s == COORD_OK)
        out->v = calloc(rows.n + 1, sizeof *out->v);
    for (size_t i = 0; i < rows.n && out->v; i++) {
        struct seq_info *info = &out->v[out->n];
        if (!seq_state_key_read(span_str(rows.v[i].key), info->name))
            continue;
        info_of(&rows.v[i], info);
        out->n++;
    }
    seq_rows_clear(&rows);
    return s == COORD_OK && !out->v ? outcome_down(r, ERR_NOMEM, "no memory for a list") : s;
}

static bool counter_of(const struct seq_row *row, const char *name, int64_t era,
                       struct seq_counter_info *out)
{
    char found[SEQ_NAME_MAX];
    struct seq_counter c;
    memset(out, 0, sizeof *out);
    if (!seq_counter_key_read(span_str(row->key), found, out) || strcmp(found, name) != 0)
        return false;
    out->unreadable = !seq_counter_read(span_str(row->value), &c);
    if (out->unreadable)
        return true;
    out->stale = c.era != era;
    out->era = c.era;
    out->next = c.next;
    out->n = c.n;
    out->gaps = c.gaps;
    return true;
}

static enum coord_status read_counters(const struct seq_rows *rows, const char *name,
                                       struct seq_counters *out, struct coord_reply *r)
{
    out->v = calloc(rows->n + 1, sizeof *out->v);
    if (!out->v)
        return outcome_down(r, ERR_NOMEM, "no memory for a list");
    for (size_t i = 0; i < rows->n; i++)
        out->n += counter_of(&rows->v[i], name, rows->opening.era, &out->v[out->n]);
    return COORD_OK;
}

/* Of one that was never made before, and has neither subs nor periods, there is one counter: its
 * row is asked for by its key. Else a store may have to look through all that it has. */
static const char *counters_of(const struct seq_counters *of, char prefix[SEQ_KEY_MAX])
{
    const struct seq_info *s = &of->sequence;
    const struct seq_definition *d = &s->definition;
    if (of->found && !s->unreadable && s->gen == 1 && d->subs == 0 && d->reset == PERIOD_NEVER)
        return seq_counter_key(prefix, s->name, s->gen, "", "");
    (void)snprintf(prefix, SEQ_KEY_MAX, "num %s ", s->name);
    return prefix;
}

enum coord_status seq_show(struct coord *c, const char *identity, const char *name,
                           struct seq_counters *out, struct coord_reply *r)
{
    struct seq_rows rows = {.n = 0};
    char key[SEQ_KEY_MAX], prefix[SEQ_KEY_MAX];
    *out = (struct seq_counters){.n = 0};
    if (!seq_may_ask(c, identity, name, r))
        return COORD_REFUSED;
    enum coord_status s = seq_read_rows(c, identity, seq_state_key(key, name), &rows, r);
    for (size_t i = 0; i < rows.n && s == COORD_OK; i++) {
        out->found |= strcmp(rows.v[i].key, key) == 0;
        if (strcmp(rows.v[i].key, key) == 0)
            info_of(&rows.v[i], &out->sequence);
    }
    (void)snprintf(out->sequence.name, sizeof out->sequence.name, "%s", name);
    seq_rows_clear(&rows);
    if (s == COORD_OK)
        s = seq_read_rows(c, identity, counters_of(out, prefix), &rows, r);
    if (s == COORD_OK)
        s = read_counters(&rows, name, out, r);
    seq_rows_clear(&rows);
    return s;
}

enum coord_status seq_templates(struct coord *c, const char *identity, const char *name,
                                struct seq_rows *out, struct coord_reply *r)
{
    char prefix[SEQ_KEY_MAX];
    if (!seq_may_ask(c, identity, name, r))
        return COORD_REFUSED;
    (void)snprintf(prefix, sizeof prefix, "tpl %s ", name);
    return seq_read_rows(c, identity, prefix, out, r);
}
