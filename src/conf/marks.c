/*
 * Why the file is walked before libcyaml reads it: libcyaml ends at the first thing that is wrong,
 * says where it was only in lines of its log, and keeps no place of a value that it took. So
 * neither all errors of a file, in order and with what was perhaps meant, nor the line and column
 * of a value that only a later check refuses (an address given twice) can be had from it.
 */
#include "conf/marks.h"

#include "base/int64.h"

#include "conf/load.h"
#include "conf/near.h"
#include "conf/text.h"
#include "conf/value.h"

#include <stdlib.h>
#include <yaml.h>

struct walk {
    yaml_parser_t parser;
    yaml_event_t event; /* the one being looked at */
    bool has_event;
    struct conf_load *load;
    const char *name;
    struct span yaml;
    struct conf_marks *marks;
    struct conf_mark group[CONF_OPTIONS]; /* where the group that an option opens was seen */
    struct err *e;
};

static struct conf_mark mark_of(yaml_mark_t m)
{
    return (struct conf_mark){m.line + 1, m.column + 1};
}

static struct conf_mark here(const struct walk *w)
{
    return mark_of(w->event.start_mark);
}

enum err_code conf_marks_blame(const char *name, struct conf_mark at, enum err_code code,
                               struct err *e)
{
    if (!e)
        return code;
    struct err inner = *e;
    return err_set(e, code, "%s:%zu:%zu: %s", conf_text_name(name), at.line, at.column, inner.text);
}

static enum err_code blame_here(struct walk *w, enum err_code code)
{
    w->load->blamed = here(w);
    return conf_marks_blame(w->name, here(w), code, w->e);
}

/* The reader stops before there are marks: it tells the offset of the byte. */
static struct conf_mark mark_of_byte(struct span yaml, size_t offset)
{
    struct conf_mark at = {1, 1};
    for (size_t i = 0; i < offset && i < yaml.n; i++) {
        at.column++;
        if (yaml.p[i] == '\n')
            at = (struct conf_mark){at.line + 1, 1};
    }
    return at;
}

static enum err_code syntax_error(struct walk *w)
{
    const yaml_parser_t *p = &w->parser;
    const char *problem = p->problem ? p->problem : "no reason given";
    if (p->error == YAML_MEMORY_ERROR)
        return err_set(w->e, ERR_NOMEM, "no memory to read %s", conf_text_name(w->name));
    (void)err_set(w->e, ERR_INVALID, "expected well-formed YAML, found a syntax error (%s%s%s)",
                  problem, p->context ? " " : "", p->context ? p->context : "");
    struct conf_mark at = p->error == YAML_READER_ERROR ? mark_of_byte(w->yaml, p->problem_offset)
                                                        : mark_of(p->problem_mark);
    w->load->blamed = at;
    return conf_marks_blame(w->name, at, ERR_INVALID, w->e);
}

static void drop_event(struct walk *w)
{
    if (w->has_event)
        yaml_event_delete(&w->event);
    w->has_event = false;
}

static enum err_code next(struct walk *w)
{
    drop_event(w);
    if (!yaml_parser_parse(&w->parser, &w->event))
        return syntax_error(w);
    w->has_event = true;
    return ERR_OK;
}

/* To the end of what the event begins. For each token libyaml looks at every level around it, so
 * that what is deeper than anything of ours is the end, as an error of syntax is. */
static enum err_code skip(struct walk *w)
{
    enum err_code rc = ERR_OK;
    for (unsigned depth = 0; !rc; rc = next(w)) {
        yaml_event_type_t type = w->event.type;
        depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
        depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
        if (depth == 0)
            break;
        if (depth > CONF_DEPTH_MAX) {
            (void)err_set(w->e, ERR_RANGE, "expected at most %u levels in a value, found more",
                          CONF_DEPTH_MAX);
            return blame_here(w, ERR_RANGE);
        }
    }
    return rc;
}

/* The event begins a value that will not do: it is blamed, and passed over. */
static enum err_code wrong(struct walk *w, enum err_code code)
{
    enum err_code rc = conf_load_note(w->load, blame_here(w, code));
    return rc ? rc : skip(w);
}

/* The same for a key, and its value with it. */
static enum err_code wrong_key(struct walk *w)
{
    enum err_code rc = wrong(w, ERR_INVALID);
    if (!rc)
        rc = next(w);
    return rc ? rc : skip(w);
}

static struct span scalar(const struct walk *w)
{
    return span_of((const char *)w->event.data.scalar.value, w->event.data.scalar.length);
}

/* Plain scalars that YAML 1.1 reads as nothing at all. */
static bool is_null(const struct walk *w)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (w->event.type != YAML_SCALAR_EVENT || w->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_eq(scalar(w), span_str(words[i])))
            return true;
    return false;
}

/* What the event begins, for messages. */
static const char *found(const struct walk *w, char quoted[CONF_QUOTE_MAX])
{
    switch (w->event.type) {
    case YAML_SCALAR_EVENT:
        return is_null(w) ? "nothing" : conf_quote(quoted, scalar(w));
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_MAPPING_START_EVENT:
        return "a mapping";
    case YAML_ALIAS_EVENT:
        return "an alias";
    default:
        return "the end";
    }
}

/* "a, b, c": the keys that may stand in group. */
static void list_keys(const char *group, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        bool opens = !group && conf_option_opens(o);
        if ((opens || conf_option_in(o, group)) && n < cap)
            n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "",
                                  opens ? o->group : o->key);
    }
}

static enum err_code unknown_key(struct walk *w, const char *group)
{
    char keys[128], quoted[CONF_QUOTE_MAX], near[CONF_NEAR_MAX] = "", path[CONF_NEAR_MAX];
    list_keys(group, keys, sizeof keys);
    if (w->event.type == YAML_SCALAR_EVENT) {
        (void)snprintf(path, sizeof path, "%s%s%.*s", group ? group : "", group ? "." : "",
                       (int)min64((int64_t)scalar(w).n, (int64_t)sizeof path), scalar(w).p);
        conf_load_doubt(w->load, conf_near_meant(near, span_str(path)));
        (void)conf_near(near, span_str(path));
    }
    (void)err_set(w->e, ERR_INVALID, "expected one of %s%s%s, found %s%s", keys,
                  group ? " in " : "", group ? group : "", found(w, quoted), near);
    return wrong_key(w);
}

/* words: the option or group. */
static enum err_code seen_before(struct walk *w, struct conf_mark first, const char *words)
{
    char quoted[CONF_QUOTE_MAX];
    conf_load_doubt(w->load, span_str(words));
    (void)err_set(w->e, ERR_INVALID, "expected each key once, found %s again after line %zu",
                  found(w, quoted), first.line);
    return wrong_key(w);
}

/* A scalar without NUL: libcyaml would cut it there. */
static bool is_text(struct walk *w)
{
    bool scalar_event = w->event.type == YAML_SCALAR_EVENT;
    bool null_word = scalar_event && is_null(w) && scalar(w).n > 0;
    return scalar_event && !null_word && !memchr(scalar(w).p, '\0', scalar(w).n);
}

static enum err_code wrong_value(struct walk *w, const struct conf_option *o, enum err_code code)
{
    w->load->wrong[conf_option_id(o)] = true;
    return wrong(w, code);
}

/* The event is the value, or an item of a list. */
static enum err_code try(struct walk *w, const struct conf_option *o)
{
    char quoted[CONF_QUOTE_MAX];
    struct conf *c = w->load->conf;
    enum err_code rc = !is_text(w) ? conf_value_expected(o, ERR_INVALID, found(w, quoted), w->e)
                       : o->type == CONF_TYPE_LIST ? conf_value_add(o, c, scalar(w), w->e)
                                                   : conf_value_set(o, c, scalar(w), w->e);
    return rc ? wrong_value(w, o, rc) : ERR_OK;
}

static enum err_code walk_list(struct walk *w, const struct conf_option *o)
{
    struct conf_marks_of *of = &w->marks->of[conf_option_id(o)];
    char quoted[CONF_QUOTE_MAX];
    bool over = false;
    if (w->event.type != YAML_SEQUENCE_START_EVENT) {
        (void)err_set(w->e, ERR_INVALID, "expected a list for %s, found %s", o->path,
                      found(w, quoted));
        return wrong_value(w, o, ERR_INVALID);
    }
    of->item = calloc((size_t)o->max, sizeof *of->item);
    if (!of->item)
        return err_set(w->e, ERR_NOMEM, "no memory for %s", o->path);
    conf_value_clear(o, w->load->conf);
    for (;;) {
        enum err_code rc = next(w);
        if (rc || w->event.type == YAML_SEQUENCE_END_EVENT)
            return rc;
        if (over) {
            rc = skip(w);
        } else if (of->n == (size_t)o->max) {
            (void)err_set(w->e, ERR_RANGE, "expected at most %zu items for %s, found more", of->n,
                          o->path);
            over = true;
            rc = wrong_value(w, o, ERR_RANGE);
        } else {
            of->item[of->n++] = here(w);
            rc = try(w, o);
        }
        if (rc)
            return rc;
    }
}

/* The event is the key. */
static enum err_code walk_option(struct walk *w, const struct conf_option *o)
{
    struct conf_mark *value = &w->marks->of[conf_option_id(o)].value;
    if (value->line)
        return seen_before(w, *value, o->path);
    enum err_code rc = next(w);
    if (rc)
        return rc;
    *value = here(w);
    return o->type == CONF_TYPE_LIST ? walk_list(w, o) : try(w, o);
}

static enum err_code walk_mapping(struct walk *w, const char *group);

/* The event is the key. A group without content, its options commented out, is as good as none. */
static enum err_code walk_group(struct walk *w, const struct conf_option *first)
{
    char quoted[CONF_QUOTE_MAX];
    struct conf_mark *seen = &w->group[conf_option_id(first)];
    if (seen->line)
        return seen_before(w, *seen, first->group);
    *seen = here(w);
    enum err_code rc = next(w);
    if (rc || is_null(w))
        return rc;
    if (w->event.type == YAML_MAPPING_START_EVENT)
        return walk_mapping(w, first->group);
    conf_load_doubt(w->load, span_str(first->group));
    (void)err_set(w->e, ERR_INVALID, "expected a mapping of options for %s, found %s", first->group,
                  found(w, quoted));
    return wrong(w, ERR_INVALID);
}

/* The row of the key, or at the top level the first row of the group of that name. */
static const struct conf_option *row_of(const struct walk *w, const char *group, bool *opens)
{
    if (w->event.type != YAML_SCALAR_EVENT)
        return NULL;
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        *opens = !group && conf_option_opens(o);
        if ((*opens || conf_option_in(o, group)) &&
            span_eq(scalar(w), span_str(*opens ? o->group : o->key)))
            return o;
    }
    return NULL;
}

static enum err_code walk_mapping(struct walk *w, const char *group)
{
    for (;;) {
        bool opens = false;
        enum err_code rc = next(w);
        if (rc || w->event.type == YAML_MAPPING_END_EVENT)
            return rc;
        const struct conf_option *o = row_of(w, group, &opens);
        rc = !o ? unknown_key(w, group) : opens ? walk_group(w, o) : walk_option(w, o);
        if (rc)
            return rc;
    }
}

static enum err_code walk_root(struct walk *w)
{
    char quoted[CONF_QUOTE_MAX];
    if (w->event.type == YAML_MAPPING_START_EVENT)
        return walk_mapping(w, NULL);
    w->marks->empty = is_null(w);
    if (w->marks->empty)
        return ERR_OK;
    (void)err_set(w->e, ERR_INVALID, "expected a mapping of options, found %s", found(w, quoted));
    return blame_here(w, ERR_INVALID);
}

/* Stream start, at most one document, stream end. */
static enum err_code walk_stream(struct walk *w)
{
    bool seen = false;
    w->marks->empty = true;
    for (;;) {
        enum err_code rc = next(w);
        if (rc || w->event.type == YAML_STREAM_END_EVENT)
            return rc;
        if (w->event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (seen) {
            (void)err_set(w->e, ERR_INVALID, "expected one document, found a second");
            return blame_here(w, ERR_INVALID);
        }
        seen = true;
        w->marks->empty = false;
        rc = next(w);
        if (!rc)
            rc = walk_root(w);
        if (rc)
            return rc;
    }
}

/* libyaml compares each directive with all before it, before there is an event. One begins a line,
 * and no byte of what ends lines in UTF-8 is printable ASCII; in UTF-16 every % may be one. */
static bool too_many_directives(struct span yaml, struct conf_mark *excess)
{
    bool wide = yaml.n > 0 && (yaml.p[0] == '\xfe' || yaml.p[0] == '\xff');
    unsigned n = 0;
    for (size_t i = 0; i < yaml.n; i++) {
        bool begins = wide || i == 0 || yaml.p[i - 1] < ' ' || yaml.p[i - 1] > '~';
        if (yaml.p[i] != '%' || !begins || n++ < CONF_DIRECTIVES_MAX)
            continue;
        *excess = mark_of_byte(yaml, i);
        return true;
    }
    return false;
}

enum err_code conf_marks_read(struct conf_load *l, struct span yaml)
{
    struct conf_mark excess;
    struct walk w = {.load = l, .name = l->name, .yaml = yaml, .marks = &l->marks, .e = l->e};
    l->marks = (struct conf_marks){.empty = false};
    if (too_many_directives(yaml, &excess)) {
        (void)err_set(l->e, ERR_RANGE, "expected at most %u lines that begin with %%, found more",
                      CONF_DIRECTIVES_MAX);
        l->cut = true;
        l->blamed = excess;
        return conf_load_note(l, conf_marks_blame(l->name, excess, ERR_RANGE, l->e));
    }
    if (!yaml_parser_initialize(&w.parser))
        return err_set(l->e, ERR_NOMEM, "no memory to read %s", conf_text_name(l->name));
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)(yaml.n ? yaml.p : ""), yaml.n);
    enum err_code rc = walk_stream(&w);
    l->cut = rc != ERR_OK;
    rc = conf_load_note(l, rc);
    drop_event(&w);
    yaml_parser_delete(&w.parser);
    return rc;
}

void conf_marks_clear(struct conf_marks *m)
{
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        free(m->of[i].item);
    *m = (struct conf_marks){.empty = false};
}
