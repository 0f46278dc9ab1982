#include "ids/generator.h"

#include "base/err.h"

const struct generator_cause generator_no_causes[1] = {{ISSUE_OK}};

unsigned generator_peek_none(struct generator *g, int64_t now_ms)
{
    (void)g;
    (void)now_ms;
    return 0;
}

const char *refusal_text(struct refusal r)
{
    static char text[ERR_TEXT_MAX + 64];
    struct buf b;
    buf_init(&b, text, sizeof text - 1);
    if (r.by && r.by->kind->causes[r.cause].say)
        r.by->kind->causes[r.cause].say(r.by, &b);
    text[b.n] = '\0';
    return text;
}

static const struct generator_figure *figure_by_page(const struct generator_kind *kind,
                                                     struct span name)
{
    for (unsigned i = 0; i < kind->nfigures; i++)
        if (kind->figures[i].page && span_eq(name, span_str(kind->figures[i].page)))
            return &kind->figures[i];
    return NULL;
}

const struct generator_figure *generators_figure_by_page(const struct generator *list,
                                                         struct span name,
                                                         const struct generator **of)
{
    const struct generator_figure *f = NULL;
    for (const struct generator *g = list; g && !f; g = g->after) {
        f = figure_by_page(g->kind, name);
        *of = g;
    }
    return f;
}

void generators_count(const struct generator *list, struct generator_counts *sum)
{
    *sum = (struct generator_counts){0};
    for (const struct generator *g = list; g; g = g->after) {
        struct generator_counts one;
        g->kind->count(g, &one);
        sum->issued += one.issued;
        sum->counted += one.counted;
        sum->exhausted += one.exhausted;
        sum->rollbacks += one.rollbacks;
        sum->rotations += one.rotations;
    }
}

static int64_t ceiling(const struct generator *g)
{
    struct generator_worker w;
    int64_t top = 0;
    for (unsigned i = 0; g->kind->worker && g->kind->worker(g, i, &w) && w.active; i++)
        top = w.hi_ms > top ? w.hi_ms : top;
    return top;
}

/* The earlier of two ends; 0: none. */
static int64_t sooner(int64_t a, int64_t b)
{
    return a > 0 && (b == 0 || a < b) ? a : b;
}

int64_t generators_ceiling(const struct generator *list)
{
    int64_t least = 0;
    for (const struct generator *g = list; g; g = g->after)
        least = sooner(ceiling(g), least);
    return least;
}

int64_t generators_until(const struct generator *list)
{
    int64_t least = 0;
    for (const struct generator *g = list; g; g = g->after)
        least = sooner(g->kind->until ? g->kind->until(g) : 0, least);
    return least;
}

bool generators_first(const struct generator *list, const struct generator *g)
{
    while (list->kind != g->kind)
        list = list->after;
    return list == g;
}

bool generators_worker(const struct generator *list, unsigned i, struct generator_worker *out)
{
    for (const struct generator *g = list; g; g = g->after)
        for (unsigned own = 0; g->kind->worker && g->kind->worker(g, own, out); own++)
            if (i-- == 0)
                return true;
    return false;
}
