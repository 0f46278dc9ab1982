#include "lease/heard.h"

#include <stdlib.h>
#include <string.h>

struct heard_one {
    struct heard_one *after;
    int64_t max;
    char name[SEQ_NAME_MAX];
    char *text; /* NULL: it was dropped */
};

static struct heard_one *find(const struct heard *h, const char *name)
{
    struct heard_one *one = h->first;
    while (one && strcmp(one->name, name) != 0)
        one = one->after;
    return one;
}

/* Takes out and frees what *at is. */
static void forget(struct heard *h, struct heard_one **at)
{
    struct heard_one *one = *at;
    *at = one->after;
    free(one->text);
    free(one);
    h->n--;
}

static struct heard_one *add(struct heard *h, const char *name)
{
    struct heard_one *one = calloc(1, sizeof *one), **last = &h->first;
    if (!one)
        return NULL;
    while (h->n == HEARD_MAX && (*last)->after)
        last = &(*last)->after;
    if (h->n == HEARD_MAX)
        forget(h, last);
    memcpy(one->name, name, strlen(name) + 1);
    one->after = h->first;
    h->first = one;
    h->n++;
    return one;
}

void heard_note(struct heard *h, const char *name, const struct seq_grant *g)
{
    bool there = g->gen > 0 && *g->text && g->how != SEQ_DROPPED;
    struct heard_one *one = find(h, name);
    if ((g->gen == 0 && g->how != SEQ_DROPPED) || (!one && !there))
        return;
    one = one ? one : add(h, name);
    if (!one)
        return;
    one->max = g->max;
    if (there && one->text && strcmp(one->text, g->text) == 0)
        return;
    free(one->text);
    one->text = there ? strdup(g->text) : NULL;
}

bool heard_find(const struct heard *h, const char *name, struct seq_definition *out, int64_t *max)
{
    const struct heard_one *one = find(h, name);
    if (!one || !one->text || !seq_definition_parse(span_str(one->text), out))
        return false;
    *max = one->max;
    return true;
}

void heard_clear(struct heard *h)
{
    while (h->first)
        forget(h, &h->first);
}
