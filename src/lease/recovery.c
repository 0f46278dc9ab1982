#include "lease/recovery.h"

#include "base/timefmt.h"
#include "coord/advice.h"

static void put_duration(struct buf *b, const char *option, int64_t ms)
{
    char text[TIMEFMT_MAX];
    buf_put_str(b, option);
    buf_put_str(b, timefmt_duration(text, ms * 1000));
}

static void put_params(struct buf *b, const struct coord_params *p, int64_t settle_ms,
                       int64_t least_ms, int64_t ahead_ms)
{
    BUF_PUT_LIT(b, " --workers ");
    buf_put_u64(b, p->worker_from);
    buf_put_char(b, '-');
    buf_put_u64(b, p->worker_to);
    put_duration(b, " --horizon ", p->horizon_ms);
    put_duration(b, " --first-horizon ", p->first_horizon_ms);
    put_duration(b, " --mature-after ", p->mature_after_ms);
    put_duration(b, " --max-skew ", p->max_skew_ms);
    put_duration(b, " --grace ", p->grace_ms);
    BUF_PUT_LIT(b, " --replicas ");
    buf_put_u64(b, p->replicas);
    if (settle_ms > 0)
        put_duration(b, " --settle ", settle_ms);
    if (least_ms > 0)
        put_duration(b, " --least-settle ", least_ms);
    if (ahead_ms > 0)
        put_duration(b, " --ahead ", ahead_ms);
}

static void put_epoch(struct buf *b, int64_t epoch_ms)
{
    char epoch[TIMEFMT_MAX];
    BUF_PUT_LIT(b, " --epoch ");
    buf_put_str(b, timefmt_rfc3339(epoch, epoch_ms));
}

static void put_identity(struct buf *b, const char *identity, int64_t epoch_ms,
                         const struct layout *layout)
{
    BUF_PUT_LIT(b, " --uuid ");
    buf_put_span(b, span_of(identity, COORD_UUID_TEXT - 1));
    put_epoch(b, epoch_ms);
    advice_put_layout(b, layout);
}

void recovery_put_pool(struct buf *b, const struct coord_pool *p, int64_t now_ms)
{
    int64_t settle_ms = coord_pool_settle(p, now_ms), ahead_ms = coord_pool_ahead(p, now_ms);
    int64_t least_ms = coord_pool_least_settle(p);
    put_identity(b, p->identity, p->epoch_ms, &p->layout);
    put_params(b, &p->params, settle_ms < p->params.horizon_ms ? settle_ms : 0,
               least_ms < settle_ms ? least_ms : 0,
               ahead_ms > coord_reach(&p->params) ? ahead_ms : 0);
    b->failed |= ahead_ms > COORD_AHEAD_MAX_MS;
}

void recovery_put_place(struct buf *b, const struct recovery_place *at)
{
    BUF_PUT_LIT(b, " --coordinator ");
    advice_put_url(b, at->url);
    if (at->password_file && at->password_file[0]) {
        BUF_PUT_LIT(b, " --password-file ");
        advice_put_file(b, at->password_file);
    }
    BUF_PUT_LIT(b, " --pool ");
    buf_put_word(b, at->pool);
}

void recovery_put_tool(struct buf *b, const char *what, const struct recovery_place *at)
{
    advice_put_tool(b, at->url);
    buf_put_char(b, ' ');
    buf_put_str(b, what);
    recovery_put_place(b, at);
    b->failed |= !advice_may_be_logged(at->url) || !advice_may_be_logged(at->pool) ||
                 (at->password_file && !advice_may_be_logged(at->password_file));
}

void recovery_put_word(struct buf *b, const struct recovery_place *at)
{
    recovery_put_tool(b, "pool reopen --nothing-lost", at);
}

void recovery_put_command(struct buf *b, const struct lease *l, const struct recovery_place *at)
{
    struct layout layout;
    int64_t epoch_ms;
    struct err e;
    recovery_put_tool(b, "pool init", at);
    if (!l->last_identity[0] || coord_identity_read(l->last_identity, &epoch_ms, &layout, &e)) {
        if (l->conf.epoch_pinned) /* it would take no pool of another one */
            put_epoch(b, l->conf.epoch_ms);
        if (l->conf.layout_pinned)
            advice_put_layout(b, &l->conf.layout);
        return;
    }
    BUF_PUT_LIT(b, " --after-loss");
    put_identity(b, l->last_identity, epoch_ms, &layout);
    if (l->last_known)
        put_params(b, &l->last_params, l->last_settle_ms, l->last_least_ms, l->last_ahead_ms);
    b->failed |= l->last_ahead_ms > COORD_AHEAD_MAX_MS;
}
