#include "coord/advice.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_file(const char *url)
{
    return strncmp(url, "sqlite:", 7) == 0;
}

bool advice_forgets(const char *url)
{
    return !is_file(url);
}

void advice_put_tool(struct buf *b, const char *url)
{
    char text[1024];
    struct passwd own, *found = NULL;
    if (is_file(url) && geteuid() != 0 && access("/usr/bin/sudo", X_OK) == 0) {
        BUF_PUT_LIT(b, "sudo -u ");
        if (getpwuid_r(geteuid(), &own, text, sizeof text, &found) == 0 && found)
            buf_put_word(b, own.pw_name);
        else
            buf_printf(b, "'#%u'", (unsigned)geteuid());
        buf_put_char(b, ' ');
    }
    BUF_PUT_LIT(b, "sidflakectl");
}

void advice_put_fresh(struct buf *b, const char *url)
{
    BUF_PUT_LIT(b, " --fresh");
    if (strncmp(url, "redis+sentinel:", 15) == 0)
        BUF_PUT_LIT(b, " --replicas N");
}

void advice_put_layout(struct buf *b, const struct layout *l)
{
    char name[LAYOUT_NAME_MAX];
    if (layout_equal(l, &layout_usual))
        return;
    BUF_PUT_LIT(b, " --layout ");
    buf_put_word(b, layout_name(name, l)); /* a * is a pattern to shells */
}

bool advice_may_be_logged(const char *word)
{
    while (*word >= ' ' && *word <= '~' && !strchr("'\"\\`", *word))
        word++;
    return *word == '\0';
}

/* lead, and the path from the root on, of one that does not begin there; false: it cannot be told.
 */
static bool from_root(const char *lead, const char *path, char *out, size_t cap)
{
    char cwd[PATH_MAX];
    if (*path == '/' || !getcwd(cwd, sizeof cwd))
        return false;
    (void)snprintf(out, cap, "%s%s%s%s", lead, cwd, cwd[1] ? "/" : "",
                   path + (strncmp(path, "./", 2) == 0 ? 2 : 0));
    return true;
}

void advice_put_url(struct buf *b, const char *url)
{
    char whole[2 * PATH_MAX];
    bool led = is_file(url) && from_root("sqlite://", url + 7, whole, sizeof whole);
    buf_put_word(b, led ? whole : url);
}

void advice_put_file(struct buf *b, const char *file)
{
    char whole[2 * PATH_MAX];
    bool led = access(file, F_OK) == 0 && from_root("", file, whole, sizeof whole);
    buf_put_word(b, led ? whole : file);
}
