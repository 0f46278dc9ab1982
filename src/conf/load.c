#include "conf/load.h"

#include "base/file.h"
#include "conf/doc.h"
#include "conf/list.h"
#include "conf/near.h"
#include "conf/text.h"
#include "conf/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct conf_mark mark_of(const struct conf_load *l, enum conf_option_id id, size_t item)
{
    const struct conf_marks_of *of = &l->marks.of[id];
    return item < of->n ? of->item[item] : of->value;
}

enum err_code conf_load_blame(struct conf_load *l, enum conf_option_id id, size_t item,
                              enum err_code code)
{
    static const char *const sources[] = {[CONF_SOURCE_DEFAULT] = "default",
                                          [CONF_SOURCE_ENV] = "environment",
                                          [CONF_SOURCE_SET] = "--set"};
    char env[CONF_OPTION_ENV_MAX];
    const struct conf_option *o = &conf_options[id];
    enum conf_source source = l->source[id];
    l->blamed = source == CONF_SOURCE_FILE ? mark_of(l, id, item) : (struct conf_mark){0};
    if (source == CONF_SOURCE_FILE)
        return conf_marks_blame(l->name, l->blamed, code, l->e);
    struct err inner = *l->e;
    return err_set(l->e, code, "%s %s: %s", sources[source],
                   source == CONF_SOURCE_ENV ? conf_option_env(env, o) : o->path, inner.text);
}

enum err_code conf_load_note(struct conf_load *l, enum err_code rc)
{
    if (!l->errors || rc == ERR_OK || rc == ERR_NOMEM || l->errors->n > CONF_ERRORS_MAX)
        return rc;
    if (!l->first.code)
        l->first = *l->e;
    l->told[l->errors->n] = (struct conf_told){l->blamed, rc};
    l->blamed = (struct conf_mark){0};
    if (l->errors->n < CONF_ERRORS_MAX)
        return conf_list_add(l->errors, span_str(l->e->text), l->e);
    l->told[l->errors->n].at = (struct conf_mark){0};
    (void)err_set(l->e, rc, "more is wrong than these %u: the rest is not told", CONF_ERRORS_MAX);
    enum err_code kept = conf_list_add(l->errors, span_str(l->e->text), l->e);
    return kept ? kept : rc;
}

static bool stands_before(struct conf_mark a, struct conf_mark b)
{
    if (a.line == 0 || b.line == 0)
        return a.line > b.line;
    return a.line < b.line || (a.line == b.line && a.column < b.column);
}

/* The checks go over the options by what they mean; who reads of them goes over the file. */
static void put_in_order(struct conf_load *l)
{
    char **text = l->errors->item;
    for (size_t i = 1; i < l->errors->n; i++)
        for (size_t k = i; k > 0 && stands_before(l->told[k].at, l->told[k - 1].at); k--) {
            struct conf_told told = l->told[k];
            char *moved = text[k];
            l->told[k] = l->told[k - 1];
            text[k] = text[k - 1];
            l->told[k - 1] = told;
            text[k - 1] = moved;
        }
    (void)err_set(&l->first, l->told[0].code, "%s", text[0]);
}

void conf_load_doubt(struct conf_load *l, struct span words)
{
    for (size_t i = 0; i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        if (span_eq(words, span_str(o->path)) || (o->group && span_eq(words, span_str(o->group))))
            l->wrong[i] = true;
    }
}

/* ---- defaults ---------------------------------------------------------------------------------
 */

static enum err_code apply_defaults(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < CONF_OPTIONS && !rc; i++) {
        rc = conf_value_set(&conf_options[i], l->conf, span_str(conf_options[i].def), l->e);
        if (rc)
            return conf_load_blame(l, (enum conf_option_id)i, CONF_WHOLE_VALUE, rc);
    }
    return rc;
}

/* ---- file -------------------------------------------------------------------------------------
 */

static enum err_code apply_text(struct conf_load *l, const struct conf_option *o,
                                const struct conf_text *text)
{
    enum conf_option_id id = conf_option_id(o);
    enum err_code rc = ERR_OK;
    if (l->marks.of[id].value.line == 0)
        return ERR_OK;
    if (o->type != CONF_TYPE_LIST) {
        rc = conf_value_set(o, l->conf, span_str(text->text ? text->text : ""), l->e);
        return rc ? conf_load_blame(l, id, CONF_WHOLE_VALUE, rc) : ERR_OK;
    }
    conf_value_clear(o, l->conf);
    for (size_t i = 0; i < text->n; i++) {
        rc = conf_value_add(o, l->conf, span_str(text->item[i]), l->e);
        if (rc)
            return conf_load_blame(l, id, i, rc);
    }
    return ERR_OK;
}

/* What a disk that is full leaves of a file; read again that would be the defaults, which ask for
 * no users. */
static enum err_code refuse_nothing(struct conf_load *l)
{
    return err_set(
        l->e, ERR_INVALID,
        "%s: expected options, or {} for none, found an empty file: it may have been cut",
        conf_text_name(l->name));
}

static enum err_code apply_file(struct conf_load *l, struct span yaml)
{
    struct conf_doc *d = NULL;
    enum err_code rc = conf_marks_read(l, yaml);
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        if (l->marks.of[i].value.line)
            l->source[i] = CONF_SOURCE_FILE;
    if (rc || l->first.code)
        return rc;
    if (l->marks.empty && l->again)
        return refuse_nothing(l);
    if (l->marks.empty)
        return ERR_OK;
    rc = conf_doc_read(yaml, &d, l->e);
    if (rc)
        return conf_marks_blame(l->name, (struct conf_mark){1, 1}, rc, l->e);
    for (size_t i = 0; i < CONF_OPTIONS && !rc; i++)
        rc = apply_text(l, &conf_options[i], conf_doc_text(d, &conf_options[i]));
    conf_doc_free(d);
    return rc;
}

/* ---- --set ------------------------------------------------------------------------------------
 */

static enum err_code apply_set(struct conf_load *l, const char *set)
{
    char quoted[CONF_QUOTE_MAX], near[CONF_NEAR_MAX];
    struct span value = span_str(set);
    struct span path = span_cut(&value, '=');
    if (!value.p)
        return err_set(l->e, ERR_INVALID, "--set: expected PATH=VALUE, found %s",
                       conf_quote(quoted, path));
    const struct conf_option *o = conf_option_find(path);
    if (!o) {
        conf_load_doubt(l, conf_near_meant(near, path));
        return err_set(
            l->e, ERR_INVALID,
            "--set: expected the path of an option (--help-config lists them), found %s%s",
            conf_quote(quoted, path), conf_near(near, path));
    }
    l->source[conf_option_id(o)] = CONF_SOURCE_SET;
    enum err_code rc = conf_value_set(o, l->conf, value, l->e);
    l->wrong[conf_option_id(o)] |= rc != ERR_OK;
    return rc ? conf_load_blame(l, conf_option_id(o), CONF_WHOLE_VALUE, rc) : ERR_OK;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static enum err_code load(struct conf_load *l, struct span yaml, char *const *sets, size_t nsets,
                          char *const *envp)
{
    enum err_code rc = apply_defaults(l);
    if (!rc && l->name)
        rc = apply_file(l, yaml);
    if (!rc && envp)
        rc = conf_env_apply(l, envp);
    for (size_t i = 0; i < nsets && !rc; i++)
        rc = conf_load_note(l, apply_set(l, sets[i]));
    if (!rc && !l->cut)
        rc = conf_check(l);
    if (rc != ERR_NOMEM && l->first.code) {
        put_in_order(l);
        *l->e = l->first;
        return l->first.code;
    }
    return rc ? rc : conf_check_oddities(l);
}

static enum err_code load_text(struct conf *c, const char *name, bool again, struct span yaml,
                               char *const *sets, size_t nsets, char *const *envp,
                               struct conf_list *errors, struct err *e)
{
    struct err ignored;
    struct conf_load l = {
        .conf = c, .name = name, .again = again, .e = e ? e : &ignored, .errors = errors};
    memset(c, 0, sizeof *c);
    enum err_code rc = load(&l, yaml, sets, nsets, envp);
    conf_marks_clear(&l.marks);
    if (rc)
        conf_clear(c);
    return rc;
}

enum err_code conf_load_text(struct conf *c, const char *name, struct span yaml, char *const *sets,
                             size_t nsets, char *const *envp, struct conf_list *errors,
                             struct err *e)
{
    return load_text(c, name, false, yaml, sets, nsets, envp, errors, e);
}

/* again: by who cannot wait, and has read it before. */
static enum err_code read_file(const char *file, bool again, char *mem, size_t *n, struct err *e)
{
    const char *name = conf_text_name(file);
    int fd = open(file, O_RDONLY | O_CLOEXEC | (again ? O_NONBLOCK | O_NOCTTY : 0));
    enum err_code rc = ERR_OK;
    if (again && fd >= 0 && !file_is_regular(fd))
        rc = err_set(e, ERR_INVALID, "%s: expected a regular file, found another kind", name);
    else if (fd < 0 || file_read(fd, mem, CONF_FILE_MAX + 1, n))
        rc = err_errno(e, errno, "%s: expected a readable file, found", name);
    else if (*n > CONF_FILE_MAX)
        rc =
            err_set(e, ERR_RANGE, "%s: expected at most %u bytes, found more", name, CONF_FILE_MAX);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

static enum err_code load_file(struct conf *c, const char *file, bool again, char *const *sets,
                               size_t nsets, char *const *envp, struct conf_list *errors,
                               struct err *e)
{
    size_t n = 0;
    memset(c, 0, sizeof *c);
    if (!file)
        return conf_load_text(c, NULL, span_of(NULL, 0), sets, nsets, envp, errors, e);
    char *mem = malloc(CONF_FILE_MAX + 1);
    if (!mem)
        return err_set(e, ERR_NOMEM, "no memory to read %s", conf_text_name(file));
    enum err_code rc = read_file(file, again, mem, &n, e);
    if (!rc)
        rc = load_text(c, file, again, span_of(mem, n), sets, nsets, envp, errors, e);
    free(mem);
    return rc;
}

enum err_code conf_load(struct conf *c, const char *file, char *const *sets, size_t nsets,
                        char *const *envp, struct conf_list *errors, struct err *e)
{
    return load_file(c, file, false, sets, nsets, envp, errors, e);
}

enum err_code conf_reload(struct conf *c, const char *file, char *const *sets, size_t nsets,
                          char *const *envp, struct conf_list *errors, struct err *e)
{
    return load_file(c, file, true, sets, nsets, envp, errors, e);
}
