#include "conf/near.h"

#include "base/distance.h"
#include "conf/option.h"

#include <stdio.h>

#define NEAR 2 /* changes of one byte */

struct nearest {
    struct span found;
    size_t distance;
    char text[DISTANCE_MAX];
};

static void consider(struct nearest *n, const char *text)
{
    size_t d = distance_between(n->found, span_str(text));
    if (d == 0 || d >= n->distance) /* what it is is wrong, and not its name */
        return;
    n->distance = d;
    (void)snprintf(n->text, sizeof n->text, "%s", text);
}

/* Of a short name nearly everything is near. */
static bool is_near(const struct nearest *n)
{
    return n->distance <= NEAR && 2 * n->distance < n->found.n;
}

static char *tell(char out[CONF_NEAR_MAX], const struct nearest *n)
{
    out[0] = '\0';
    if (is_near(n))
        (void)snprintf(out, CONF_NEAR_MAX, " (did you mean %s?)", n->text);
    return out;
}

static struct span key_of(struct span path)
{
    struct span key = path;
    (void)span_cut(&key, '.');
    return key.p ? key : path;
}

static struct nearest nearest_to(struct span path)
{
    struct nearest n = {.found = path, .distance = SIZE_MAX};
    for (size_t i = 0; path.n <= DISTANCE_MAX && i < CONF_OPTIONS; i++) {
        const struct conf_option *o = &conf_options[i];
        consider(&n, o->path);
        if (conf_option_opens(o))
            consider(&n, o->group);
        bool same = span_eq(key_of(path), span_str(o->key)) && !span_eq(path, span_str(o->path));
        if (same && n.distance > NEAR) {
            n.distance = NEAR;
            (void)snprintf(n.text, sizeof n.text, "%s", o->path);
        }
    }
    return n;
}

char *conf_near(char out[CONF_NEAR_MAX], struct span path)
{
    struct nearest n = nearest_to(path);
    return tell(out, &n);
}

struct span conf_near_meant(char mem[CONF_NEAR_MAX], struct span path)
{
    struct nearest n = nearest_to(path);
    (void)snprintf(mem, CONF_NEAR_MAX, "%s", is_near(&n) ? n.text : "");
    return span_str(mem);
}

char *conf_near_env(char out[CONF_NEAR_MAX], struct span name)
{
    char env[CONF_OPTION_ENV_MAX];
    struct nearest n = {.found = name, .distance = SIZE_MAX};
    for (size_t i = 0; name.n <= DISTANCE_MAX && i < CONF_OPTIONS; i++)
        consider(&n, conf_option_env(env, &conf_options[i]));
    return tell(out, &n);
}
