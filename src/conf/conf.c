#include "conf/conf.h"

#include "base/file.h"
#include "conf/list.h"
#include "conf/option.h"
#include "conf/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

static enum err_code read_password(int fd, char *out, size_t cap, size_t *n, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_errno(e, errno, "expected a readable file for coordinator.password_file, found");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID,
                       "expected a regular file for coordinator.password_file, "
                       "found another kind");
    if (file_read(fd, out, cap, n))
        return err_errno(e, errno, "expected a readable file for coordinator.password_file, found");
    return ERR_OK;
}

/* Without the line end that editors and `echo` put there. */
static enum err_code trim_password(char *out, size_t n, struct err *e)
{
    if (n > 0 && out[n - 1] == '\n')
        n--;
    if (n > 0 && out[n - 1] == '\r')
        n--;
    if (n == 0 || n > CONF_PASSWORD_MAX)
        return err_set(e, ERR_RANGE, "expected 1..%u bytes in coordinator.password_file, found %s",
                       CONF_PASSWORD_MAX, n ? "more" : "none");
    if (memchr(out, '\0', n))
        return err_set(e, ERR_INVALID, "expected text in coordinator.password_file, found a NUL");
    out[n] = '\0';
    return ERR_OK;
}

enum err_code conf_password(const struct conf *c, char out[CONF_PASSWORD_MAX + 1], struct err *e)
{
    char quoted[CONF_QUOTE_MAX], text[CONF_PASSWORD_MAX + 3]; /* with "\r\n" and one too many */
    size_t n = 0;
    out[0] = '\0';
    if (!c->coordinator_password_file[0])
        return ERR_OK;
    int fd = open(c->coordinator_password_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_errno(e, errno,
                         "expected a readable file for coordinator.password_file, found %s",
                         conf_quote(quoted, span_str(c->coordinator_password_file)));
    enum err_code rc = read_password(fd, text, sizeof text, &n, e);
    (void)close(fd);
    if (!rc)
        rc = trim_password(text, n, e);
    if (!rc)
        memcpy(out, text, strlen(text) + 1);
    explicit_bzero(text, sizeof text);
    return rc;
}
