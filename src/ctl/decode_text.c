/*
 * sidflakectl decode --template, --seq: takes texts apart that a sequence's numbers were written
 * as.
 */
#include "ctl/seq.h"

#include "coord/seq_template.h"

#include <stdlib.h>
#include <string.h>

/* What a sequence's numbers are, or were, written by; the latest first. */
struct forms {
    struct template v[1 + SEQ_KEPT_MAX];
    unsigned n;
};

/* ---- which templates ---------------------------------------------------------------------------
 */

static bool has(const char *template, const char *part)
{
    return strstr(template, part) != NULL;
}

/* Of a template alone, whose sequence begins anew as often as it can tell, unless --reset says. */
static int said(const struct ctl_args *a, struct forms *out)
{
    const char *text = a->seq.words.template;
    struct template_frame f = {.name = span_str(a->seq.name ? a->seq.name : ""), .subs = true};
    enum period_reset first = has(text, "@{date") ? PERIOD_HOUR : PERIOD_NEVER;
    enum period_reset last = has(text, "@{date") ? PERIOD_YEAR : PERIOD_NEVER;
    struct err e;
    if (!a->seq.name && has(text, "@{name"))
        return ctl_fail(CTL_USAGE, "decode: expected --seq NAME as well, for @{name}");
    if (a->seq.words.reset && !period_reset_parse(span_str(a->seq.words.reset), &first))
        return ctl_fail(CTL_USAGE,
                        "decode: --reset: expected never, hour, day, month or year, found \"%s\"",
                        a->seq.words.reset);
    if (a->seq.words.reset)
        last = first;
    for (enum period_reset r = first; r <= last; r++) {
        f.reset = (enum template_reset)r;
        if (template_parse(&out->v[0], span_str(text), &f, &e) == ERR_OK) {
            out->n = 1;
            return CTL_OK;
        }
    }
    return ctl_fail(CTL_USAGE, "decode: %s", e.text);
}

static void add(const char *name, struct seq_definition *d, const char *text, struct forms *out)
{
    struct err e;
    (void)snprintf(d->template, sizeof d->template, "%s", text);
    if (out->n < sizeof out->v / sizeof *out->v &&
        seq_template_parse(name, d, d->start, &out->v[out->n], &e) == ERR_OK)
        out->n++;
}

/* Of a sequence that its pool has. */
static int kept(const struct ctl_args *a, struct ctl_session *s, struct forms *out)
{
    const char *name = a->seq.name;
    struct seq_counters c;
    struct seq_rows rows = {.n = 0};
    enum coord_status r = seq_show(s->coord, s->pool.identity, name, &c, &s->reply);
    if (r == COORD_OK)
        r = seq_templates(s->coord, s->pool.identity, name, &rows, &s->reply);
    struct seq_definition d = c.sequence.definition, was = d;
    int status = r == COORD_OK ? CTL_OK : ctl_session_fail(a, r, &s->reply);
    if (!status && !c.found)
        status = ctl_fail(CTL_BAD, "decode: expected a sequence, found none named \"%s\"", name);
    if (!status && d.template[0])
        add(name, &was, d.template, out);
    for (size_t i = rows.n; i-- > 0 && !status;)
        add(name, &was, rows.v[i].value, out);
    if (!status && out->n == 0)
        status = ctl_fail(CTL_BAD,
                          "decode: expected a sequence with a template that is known here, found "
                          "\"%s\" without",
                          name);
    seq_rows_clear(&rows);
    if (r == COORD_OK)
        free(c.v);
    return status;
}

static int find_forms(struct ctl_args *a, struct forms *out)
{
    struct ctl_session s;
    if (a->connect || a->has_epoch)
        return ctl_fail(CTL_USAGE,
                        "decode: expected --coordinator with --seq, or --template, found "
                        "--connect or --epoch, which are about IDs");
    if (a->seq.words.template)
        return said(a, out);
    if (!a->coordinator)
        return ctl_fail(CTL_USAGE, "decode: expected --coordinator URL with --seq, whose pool has "
                                   "its templates, or --template, found neither");
    int status = ctl_seq_open(a, &s, a->seq.name);
    if (status)
        return status;
    status = kept(a, &s, out);
    coord_free(s.coord);
    return status;
}

/* ---- one text ----------------------------------------------------------------------------------
 */

/* By the first template that wrote it. What is wrong is told of one whose check digit is, else of
 * the latest. */
static enum err_code read_any(const struct forms *f, const char *text, struct template_reading *out,
                              struct err *e)
{
    struct err other;
    enum err_code first = ERR_OK;
    for (unsigned i = 0; i < f->n; i++) {
        enum err_code code = template_read(&f->v[i], span_str(text), out, &other);
        if (!code)
            return ERR_OK;
        if (!first || (code == ERR_CORRUPT && first != ERR_CORRUPT)) {
            first = code;
            *e = other;
        }
    }
    return first;
}

static bool is_shown(const struct template_part *p)
{
    return p->kind == TEMPLATE_ARG || p->kind == TEMPLATE_WORKER || p->kind == TEMPLATE_MS ||
           p->kind == TEMPLATE_RAND || p->kind == TEMPLATE_CHECK;
}

static json_t *part_json(const struct template_part *p)
{
    if (p->kind == TEMPLATE_WORKER)
        return json_integer((json_int_t)p->value);
    if (p->kind == TEMPLATE_MS)
        return json_string(ctl_time((int64_t)p->value));
    return json_stringn(p->text.p, p->text.n);
}

static json_t *reading_json(const struct ctl_args *a, const char *text,
                            const struct template_reading *r)
{
    json_t *args = json_object();
    json_t *sub = r->sub.n ? json_stringn(r->sub.p, r->sub.n) : json_null();
    json_t *j = json_pack("{s:s, s:s?, s:I, s:s?, s:o, s:o}", "text", text, "sequence", a->seq.name,
                          "number", (json_int_t)r->number, "period", *r->period ? r->period : NULL,
                          "sub", sub, "arguments", args);
    for (unsigned i = 0; i < r->n && j; i++) {
        const struct template_part *p = &r->part[i];
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)p->name.n, p->name.p);
        if (p->kind == TEMPLATE_ARG)
            json_object_set_new(args, name, part_json(p));
        else if (is_shown(p))
            json_object_set_new(j, template_kind_name(p->kind), part_json(p));
    }
    return j;
}

static void print_reading(const struct ctl_args *a, const char *text,
                          const struct template_reading *r)
{
    (void)printf("%s%s%s number=%lld", text, a->seq.name ? " sequence=" : "",
                 a->seq.name ? a->seq.name : "", (long long)r->number);
    if (*r->period)
        (void)printf(" period=%s", r->period);
    if (r->sub.n)
        (void)printf(" sub=%.*s", (int)r->sub.n, r->sub.p);
    for (unsigned i = 0; i < r->n; i++) {
        const struct template_part *p = &r->part[i];
        struct span name =
            p->kind == TEMPLATE_ARG ? p->name : span_str(template_kind_name(p->kind));
        if (!is_shown(p))
            continue;
        (void)printf(" %.*s=", (int)name.n, name.p);
        if (p->kind == TEMPLATE_WORKER)
            (void)printf("%llu", (unsigned long long)p->value);
        else if (p->kind == TEMPLATE_MS)
            (void)printf("%s", ctl_time((int64_t)p->value));
        else
            (void)printf("%.*s", (int)p->text.n, p->text.p);
    }
    (void)putchar('\n');
}

int ctl_decode_text(struct ctl_args *a)
{
    static struct forms f; /* tens of kilobytes */
    struct template_reading r;
    struct err e;
    int status = find_forms(a, &f);
    if (status)
        return status;
    json_t *list = json_array();
    for (int i = 0; i < a->nrest; i++) {
        const char *text = a->rest[i];
        if (read_any(&f, text, &r, &e))
            status = ctl_fail(CTL_BAD, "decode: \"%s\": %s", text, e.text);
        else if (a->json)
            json_array_append_new(list, reading_json(a, text, &r));
        else
            print_reading(a, text, &r);
    }
    if (a->json)
        return ctl_print_json(status, list);
    json_decref(list);
    return ctl_flush(status);
}
