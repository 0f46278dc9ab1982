#include "conf/doc.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdlib.h>

/* A level is an array with one place for each option, of which it fills those that belong to it:
 *
 *     level[] of the root   ── level[first option of "listen"].group ──▶ level[] of "listen"
 */
#define LEVEL_SIZE ((uint32_t)(CONF_OPTIONS * sizeof(struct conf_text)))

struct conf_doc {
    cyaml_schema_value_t top, entry;
    /* The root's fields and those of each group in turn, each sequence ended by a NULL key: an
     * option is in one of them, and there are fewer groups than options. */
    cyaml_schema_field_t fields[3 * CONF_OPTIONS + 1];
    struct conf_text *root;
};

static const struct conf_text absent;

static const cyaml_config_t config = {
    .mem_fn = cyaml_mem,
    .flags = CYAML_CFG_NO_ALIAS,
};

static uint32_t place_of(const struct conf_option *o, size_t member)
{
    return (uint32_t)((size_t)conf_option_id(o) * sizeof(struct conf_text) + member);
}

static cyaml_schema_value_t string_schema(enum cyaml_flag flags)
{
    return (cyaml_schema_value_t){.type = CYAML_STRING,
                                  .flags = flags,
                                  .data_size = sizeof(char),
                                  .string = {.min = 0, .max = CYAML_UNLIMITED}};
}

static cyaml_schema_value_t level_schema(const cyaml_schema_field_t *fields)
{
    return (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                  .flags = CYAML_FLAG_POINTER_NULL_STR | CYAML_FLAG_OPTIONAL,
                                  .data_size = LEVEL_SIZE,
                                  .mapping = {.fields = fields}};
}

static cyaml_schema_field_t option_field(const struct conf_doc *d, const struct conf_option *o)
{
    const enum cyaml_flag flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL;
    cyaml_schema_field_t f = {.key = o->key};
    if (o->type != CONF_TYPE_LIST) {
        f.data_offset = place_of(o, offsetof(struct conf_text, text));
        f.value = string_schema(flags);
        return f;
    }
    f.data_offset = place_of(o, offsetof(struct conf_text, item));
    f.count_offset = place_of(o, offsetof(struct conf_text, n));
    f.count_size = sizeof(uint32_t);
    f.value =
        (cyaml_schema_value_t){.type = CYAML_SEQUENCE,
                               .flags = flags,
                               .data_size = sizeof(char *),
                               .sequence = {.entry = &d->entry, .min = 0, .max = (uint32_t)o->max}};
    return f;
}

static cyaml_schema_field_t *put_group(struct conf_doc *d, cyaml_schema_field_t *next,
                                       const char *group)
{
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        if (conf_option_in(&conf_options[i], group))
            *next++ = option_field(d, &conf_options[i]);
    *next++ = (cyaml_schema_field_t)CYAML_FIELD_END;
    return next;
}

static void make_schema(struct conf_doc *d)
{
    const cyaml_schema_field_t *of_group[CONF_OPTIONS];
    cyaml_schema_field_t *next = d->fields;
    d->entry = string_schema(CYAML_FLAG_POINTER);
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        of_group[i] = next;
        if (conf_option_opens(&conf_options[i]))
            next = put_group(d, next, conf_options[i].group);
    }
    d->top = level_schema(next);
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        if (conf_option_opens(o))
            *next++ = (cyaml_schema_field_t){.key = o->group,
                                             .data_offset =
                                                 place_of(o, offsetof(struct conf_text, group)),
                                             .value = level_schema(of_group[i])};
    }
    (void)put_group(d, next, NULL);
}

enum err_code conf_doc_read(struct span yaml, struct conf_doc **out, struct err *e)
{
    void *root = NULL;
    struct conf_doc *d = calloc(1, sizeof *d);
    if (!d)
        return err_set(e, ERR_NOMEM, "no memory for the configuration");
    make_schema(d);
    errno = 0; /* libcyaml passes on that memory ran out as some error of the parser */
    cyaml_err_t rc =
        cyaml_load_data((const uint8_t *)yaml.p, yaml.n, &config, &d->top, &root, NULL);
    if (rc != CYAML_OK) {
        bool nomem = rc == CYAML_ERR_OOM || errno == ENOMEM;
        free(d);
        return nomem ? err_set(e, ERR_NOMEM, "no memory for the configuration")
                     : err_set(e, ERR_INVALID, "expected a configuration, found: %s",
                               cyaml_strerror(rc));
    }
    d->root = root;
    *out = d;
    return ERR_OK;
}

void conf_doc_free(struct conf_doc *d)
{
    if (!d)
        return;
    (void)cyaml_free(&config, &d->top, d->root, 0);
    free(d);
}

const struct conf_text *conf_doc_text(const struct conf_doc *d, const struct conf_option *o)
{
    const struct conf_text *level = d->root;
    if (level && o->group) {
        const struct conf_option *first = o;
        while (!conf_option_opens(first))
            first--;
        level = level[conf_option_id(first)].group;
    }
    return level ? &level[conf_option_id(o)] : &absent;
}
