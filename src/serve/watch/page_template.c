#include "serve/watch/page_template.h"

static struct span entity(char c)
{
    switch (c) {
    case '&':
        return SPAN("&amp;");
    case '<':
        return SPAN("&lt;");
    case '>':
        return SPAN("&gt;");
    case '"':
        return SPAN("&quot;");
    case '\'':
        return SPAN("&#39;");
    default:
        return (struct span){NULL, 0};
    }
}

/* Escapes what stands in out from `start` on. */
static void escape(struct buf *out, size_t start)
{
    size_t grows = 0;
    for (size_t i = start; i < out->n; i++) {
        struct span e = entity(out->p[i]);
        grows += e.n > 0 ? e.n - 1 : 0;
    }
    if (out->failed || grows == 0 || !buf_room(out, grows))
        return;
    /* From the end, so that nothing is written over before it is read. */
    size_t to = out->n + grows;
    for (size_t from = out->n; from > start; from--) {
        char c = out->p[from - 1];
        struct span e = entity(c);
        to -= e.n > 0 ? e.n : 1;
        if (e.n > 0)
            memcpy(out->p + to, e.p, e.n);
        else
            out->p[to] = c;
    }
    buf_took(out, grows);
}

/* Cuts the text before the next tag, and what the tag says. false: there is no tag; *before is all
 * that was left. */
static bool next_tag(struct span *text, struct span *before, struct span *tag)
{
    const char *open = memmem(text->p, text->n, "{{", 2);
    const char *end = open ? memmem(open, text->n - (size_t)(open - text->p), "}}", 2) : NULL;
    *before = *text;
    if (!end)
        return false;
    before->n = (size_t)(open - text->p);
    *tag = span_of(open + 2, (size_t)(end - open) - 2);
    *text = span_skip(*text, (size_t)(end + 2 - text->p));
    return true;
}

static bool opens(struct span tag)
{
    return tag.n > 0 && (tag.p[0] == '#' || tag.p[0] == '^');
}

/* The inside of a section that was just opened; *text goes on behind its end. false: it has none.
 */
static bool cut_section(struct span *text, struct span name, struct span *inside)
{
    struct span before, tag;
    size_t depth = 0;
    inside->p = text->p;
    while (next_tag(text, &before, &tag)) {
        if (opens(tag))
            depth++;
        if (tag.n == 0 || tag.p[0] != '/' || depth-- > 0)
            continue;
        inside->n = (size_t)(tag.p - 2 - inside->p);
        return span_eq(span_skip(tag, 1), name);
    }
    return false;
}

static void put(const struct page_template *t, struct span text, struct buf *out, unsigned depth);

static void put_section(const struct page_template *t, struct span tag, struct span inside,
                        struct buf *out, unsigned depth)
{
    struct span name = span_skip(tag, 1);
    bool inverted = tag.p[0] == '^';
    int more = t->item(t->arg, name, 0);
    if (more < 0 || depth == 0)
        out->failed = true;
    if (inverted && more == 0)
        put(t, inside, out, depth - 1);
    for (size_t i = 1; !inverted && more > 0 && !out->failed; i++) {
        put(t, inside, out, depth - 1);
        more = t->item(t->arg, name, i);
    }
}

static void put(const struct page_template *t, struct span text, struct buf *out, unsigned depth)
{
    struct span before, tag, inside;
    while (next_tag(&text, &before, &tag) && !out->failed) {
        size_t start = out->n + before.n;
        buf_put_span(out, before);
        if (opens(tag) && cut_section(&text, span_skip(tag, 1), &inside))
            put_section(t, tag, inside, out, depth);
        else if (!opens(tag) && t->put(t->arg, tag, out))
            escape(out, start);
        else
            out->failed = true;
    }
    buf_put_span(out, before);
}

void page_template_put(const struct page_template *t, struct span text, struct buf *out)
{
    put(t, text, out, TEMPLATE_DEPTH);
}
