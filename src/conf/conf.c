#include "conf/conf.h"

#include "conf/list.h"
#include "conf/option.h"
#include "conf/text.h"
#include "conf/value.h"

#include <stdlib.h>

void conf_clear(struct conf *c)
{
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        conf_value_clear(&conf_options[i], c);
    conf_list_clear(&c->warnings);
}

size_t conf_diff(const struct conf *a, const struct conf *b, const char *paths[CONF_OPTIONS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        if (!conf_value_equal(&conf_options[i], a, b))
            paths[n++] = conf_options[i].path;
    return n;
}

/* ---- --dump-config ----------------------------------------------------------------------------
 */

void conf_dump(const struct conf *c, FILE *out)
{
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        if (conf_option_opens(o))
            (void)fprintf(out, "%s:\n", o->group);
        (void)fprintf(out, "%s%s: ", o->group ? "  " : "", o->key);
        conf_value_put(o, c, out);
        (void)fputc('\n', out);
    }
}

/* ---- --help-config ----------------------------------------------------------------------------
 */

/* The default as the file writes it, by way of a configuration that holds nothing else. */
static char *default_text(const struct conf_option *o)
{
    struct conf c = {.warnings = {NULL, 0}};
    char *text = NULL;
    size_t n = 0;
    FILE *mem = open_memstream(&text, &n);
    if (mem && conf_value_set(o, &c, span_str(o->def), NULL) == ERR_OK)
        conf_value_put(o, &c, mem);
    conf_value_clear(o, &c);
    if (mem && fclose(mem) == 0)
        return text;
    free(text);
    return NULL;
}

void conf_help(FILE *out)
{
    static const char row[] = "%-25s  %-8s  %-35s  %-76s  %s\n";
    char range[CONF_VALUE_RANGE_MAX];
    (void)fprintf(out, row, "# PATH", "TYPE", "DEFAULT", "RANGE", "MEANING");
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        char *def = default_text(o);
        (void)fprintf(out, row, o->path, conf_value_type(o), def ? def : "-",
                      conf_value_range(range, o), o->help);
        free(def);
    }
}

/* ---- the password -----------------------------------------------------------------------------
 */

enum err_code conf_password(const struct conf *c, char out[PASSFILE_MAX + 1], struct err *e)
{
    const char *path = c->coordinator_password_file;
    out[0] = '\0';
    return *path ? passfile_read(path, "coordinator.password_file", false, out, e) : ERR_OK;
}

const char *conf_password_word(const struct conf *c)
{
    bool in_url = conf_text_password(span_str(c->coordinator_url)).n > 0;
    return c->coordinator_password_file[0] || !in_url ? c->coordinator_password_file : "FILE";
}

bool conf_is_ahead(const struct conf *c)
{
    return c->ids_overflow == CONF_OVERFLOW_BORROW || c->clock_on_rollback == CONF_ROLLBACK_HOLD;
}

bool conf_is_fixed(const struct conf *c)
{
    return strncmp(c->coordinator_url, "static:", 7) == 0;
}

unsigned conf_spare(const struct conf *c)
{
    return conf_is_fixed(c) ? 0 : c->workers_spare;
}
