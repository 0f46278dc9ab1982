#include "daemon/state_page.h"

#include "base/log.h"

static enum pagefile_worth worth_of(const struct conf *c)
{
    return conf_is_fixed(c) && !c->coordinator_static_unsafe ? PAGEFILE_KNOWS_ALONE
                                                             : PAGEFILE_SAVES_WAITING;
}

static const char *without(const struct conf *c)
{
    return conf_is_fixed(c)
               ? "no state page: IDs are repeated if the clock steps back over a restart"
               : "no state page: a restart will cost a workerId";
}

static enum err_code needed(enum err_code r, struct err *e)
{
    struct err why = *e;
    return err_set(e, r,
                   "static:N: expected a state_dir that keeps the last time of an ID, or "
                   "coordinator.static_unsafe; found: %.400s",
                   why.text);
}

/* Without a state page a restart costs a workerId, no more: so only a second process is an error.
 * But nobody except the page knows up to which time a static workerId was used. */
enum err_code state_page_open(struct pagefile *f, const struct conf *c, const char *owner,
                              const struct pagefile_left *left, struct err *e)
{
    enum pagefile_worth worth = worth_of(c);
    enum err_code r = pagefile_inherit(f, c->state_dir, owner, worth, left, e);
    if (r == ERR_BUSY)
        return r;
    if (r && worth == PAGEFILE_KNOWS_ALONE)
        return needed(r, e);
    if (r) {
        log_warn(without(c), kv_str("why", e->text));
        struct err why = *e;
        r = pagefile_memory(f, true, e);
        f->why = why;
        return r;
    }
    pagefile_guard(f);
    if (f->found && f->verdict != PAGE_OWN)
        log_warn("state page set aside", kv_str("file", f->path), kv_str("why", f->why.text));
    return ERR_OK;
}

enum err_code state_page_test(const struct conf *c, const char *owner, bool *warned, struct err *e)
{
    enum pagefile_worth worth = worth_of(c);
    enum err_code r = pagefile_test(c->state_dir, owner, worth, e);
    *warned = false;
    if (r == ERR_OK || r == ERR_NOMEM)
        return r;
    if (worth == PAGEFILE_KNOWS_ALONE)
        return needed(r, e);
    struct err why = *e;
    *warned = true;
    (void)err_set(e, r, "state_dir: %s: %.400s", without(c), why.text);
    return ERR_OK;
}
