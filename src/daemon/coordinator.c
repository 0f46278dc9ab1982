#include "daemon/coordinator.h"

#include "coord/redis_url.h"
#include "coord/seq_options.h"

#include <string.h>

enum err_code coordinator_open(const struct conf *c, const char *who, const struct heir *h,
                               struct coord **out, struct err *e)
{
    const char *file = c->coordinator_password_file;
    char password[PASSFILE_MAX + 1];
    enum err_code r = conf_password(c, password, e);
    for (unsigned tries = 0; r && r != ERR_NOMEM && h && heir_waits(h, &tries);)
        r = conf_password(c, password, e);
    if (r)
        return r;
    struct coord_options o = {.url = span_str(c->coordinator_url),
                              .pool = span_str(c->coordinator_pool),
                              .password = span_str(password),
                              .password_file = file[0] ? file : NULL,
                              .password_of = "coordinator.password_file",
                              .who = span_str(who),
                              .timeout_us = c->coordinator_timeout_us,
                              .clock = clock_system()};
    r = coord_open(&o, out, e);
    explicit_bzero(password, sizeof password);
    return r;
}

/* As if there were a password: whether one is needed, and given, is the whole configuration's. */
enum err_code coordinator_judge(struct span url, struct err *e)
{
    struct coord *coord;
    struct coord_options o = {.url = url,
                              .pool = SPAN("default"),
                              .password = SPAN("x"),
                              .timeout_us = 1000000,
                              .clock = clock_system()};
    enum err_code r = coord_open(&o, &coord, e);
    if (!r)
        coord_free(coord);
    return r;
}

enum err_code coordinator_judge_sequence(struct span line, struct err *e)
{
    char name[SEQ_NAME_MAX];
    struct seq_create create;
    return seq_line_read(line, name, &create, e);
}

enum err_code coordinator_check(const struct conf *c, struct err *e)
{
    struct coord *coord;
    enum err_code r = coordinator_open(c, "", NULL, &coord, e);
    if (!r)
        coord_free(coord);
    return r;
}

/* url: cleared of its password; the address lies in it. A Sentinel's says nothing of the store. */
static bool address_of_store(const struct conf *c, struct redis_url *url, struct conf_address *at)
{
    struct err e;
    bool read = !redis_url_parse(url, span_str(c->coordinator_url), &e);
    explicit_bzero(&url->password, sizeof url->password);
    if (!read || url->master[0])
        return false;
    struct span host = span_str(url->node[0].host);
    *at = (struct conf_address){
        .is_unix = url->node[0].port == 0, .host = host, .port = url->node[0].port, .path = host};
    return true;
}

bool coordinator_is_there(const struct conf *c, const struct conf_address *there)
{
    struct redis_url url;
    struct conf_address store;
    return address_of_store(c, &url, &store) && conf_address_reaches(there, &store);
}

bool coordinator_is_here(const struct conf *c, const struct conf_address *here)
{
    struct redis_url url;
    struct conf_address store;
    return address_of_store(c, &url, &store) && conf_address_reaches(&store, here);
}
