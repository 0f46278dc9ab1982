#include "lease/templates.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct templates_one {
    struct templates_one *after;
    char name[SEQ_NAME_MAX], text[SEQ_TEXT_MAX];
    bool is; /* of the form that it must have */
    struct template template;
};

/* What cannot be read is said once: nobody may have been able to make it. */
static void fill(struct templates_one *one, const char *name, const struct seq_definition *d)
{
    struct err e;
    one->is = !seq_template_parse(name, d, d->start, &one->template, &e);
    if (!one->is)
        log_warn("template of a sequence cannot be used", kv_str("sequence", name),
                 kv_str("why", e.text));
}

const struct template *templates_find(struct templates *t, const char *name,
                                      const struct seq_definition *d, const char *text)
{
    struct templates_one *one = t->first;
    if (!d->template[0])
        return NULL;
    while (one && (strcmp(one->name, name) != 0 || strcmp(one->text, text) != 0))
        one = one->after;
    if (!one) {
        one = calloc(1, sizeof *one);
        if (!one)
            return NULL;
        memcpy(one->name, name, strlen(name) + 1);
        memcpy(one->text, text, strlen(text) + 1);
        fill(one, name, d);
        one->after = t->first;
        t->first = one;
    }
    return one->is ? &one->template : NULL;
}

void templates_clear(struct templates *t)
{
    while (t->first) {
        struct templates_one *one = t->first;
        t->first = one->after;
        free(one);
    }
}
