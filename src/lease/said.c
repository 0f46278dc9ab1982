#include "lease/said.h"

#include "base/fnv.h"

#include <stdio.h>
#include <string.h>

#define UNKNOWN_MS 1000 /* between two names that are unknown */

/* What to do about it; NULL: nothing is to be said. %s: the name. */
static const char *const advice[BLOCKS_REFUSALS] = {
    [SEQ_CLOSED] = "the period that was asked for is over",
    [SEQ_USED_UP] = "its max allows no more: sidflakectl seq alter %s --max M",
    [SEQ_STOPPED] =
        "the store may have forgotten grants: sidflakectl pool reopen --nothing-lost, or "
        "sidflakectl seq reopen %s --above N",
    [SEQ_UNKNOWN] = "there is none: sidflakectl seq create %s",
    [SEQ_DROPPED] = "it was dropped: sidflakectl seq create %s --reuse",
    [SEQ_DIFFERS] = "it has another definition than it had here: sidflakectl seq show %s",
    [SEQ_NO_SUBS] = "it has no subs: seq:%s alone can be asked for",
    [SEQ_TOO_MANY_SUBS] = "it has as many subs as it may have: sidflakectl seq show %s",
    [SEQ_NO_PERIOD] = "what was asked for is no period of it",
    [SEQ_UNREADABLE] = "its rows in the store cannot be read: sidflakectl seq check",
    [SEQ_UNSAID] = "this store can forget: expected max_rate or on_loss in its definition",
    [SEQ_NO_BEGIN] = "the pool was reopened: expected in its definition when it begins, or "
                     "sidflakectl seq create %s --new",
    [BLOCKS_BACK] =
        "the store gives numbers that were given out here before: sidflakectl seq show %s",
};

static bool is_known(const struct said *s, uint64_t name, unsigned how)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->v[i].name == name && s->v[i].how == how)
            return true;
    return false;
}

bool said_is_news(struct said *s, const char *name, unsigned how)
{
    uint64_t hash = fnv64_str(name);
    if (is_known(s, hash, how))
        return false;
    s->v[s->next].name = hash;
    s->v[s->next].how = how;
    s->next = (s->next + 1) % SAID_MAX;
    s->n = s->n < SAID_MAX ? s->n + 1 : SAID_MAX;
    return true;
}

/* Of a literal with one %s at most. */
static const char *text_of(char *out, size_t cap, const char *form, const char *name)
{
    const char *gap = strstr(form, "%s");
    int before = gap ? (int)(gap - form) : (int)strlen(form);
    (void)snprintf(out, cap, "%.*s%s%s", before, form, gap ? name : "", gap ? gap + 2 : "");
    return out;
}

void said_refused(struct said *s, const char *name, unsigned how, int64_t mono)
{
    char text[256];
    if (how == SEQ_UNKNOWN &&
        (is_known(s, fnv64_str(name), how) || !log_limit_pass(&s->unknown, mono, UNKNOWN_MS, NULL)))
        return;
    if (how >= BLOCKS_REFUSALS || !advice[how] || !said_is_news(s, name, how))
        return;
    bool unknown = how == SEQ_UNKNOWN || how == SEQ_DROPPED;
    log_write(unknown ? LOG_LVL_WARN : LOG_LVL_ERROR,
              unknown ? "unknown sequence" : "sequence refused",
              LOG_KVS(kv_str("sequence", name),
                      kv_str("why", text_of(text, sizeof text, advice[how], name))));
}

void said_served(struct said *s, const char *name)
{
    uint64_t hash = fnv64_str(name);
    bool any = false;
    for (unsigned i = 0; i < s->n; i++) {
        if (s->v[i].name != hash)
            continue;
        any = true;
        s->v[i].name = 0;
    }
    if (any)
        log_info("sequence served again", kv_str("sequence", name));
}

void said_mails(struct said *s, const struct blocks *b, int64_t mono)
{
    for (unsigned m = 0; m < b->nmail; m++) {
        const struct blocks_mail *mail = &b->mail[m];
        const char *name = b->counter[mail->counter].of.name;
        if (mail->kind == BLOCKS_MAIL_REFUSED)
            said_refused(s, name, mail->how, mono);
        else if (mail->kind == BLOCKS_MAIL_GRANT || mail->kind == BLOCKS_MAIL_OWN)
            said_served(s, name);
    }
}

void said_impossible(struct said *s, const struct defined_one *d, const char *why)
{
    if (said_is_news(s, d->create.name, BLOCKS_REFUSALS))
        log_error("sequence cannot be made", kv_str("sequence", d->create.name),
                  kv_str("why", why));
}

void said_defined(struct said *s, const struct defined_one *d, const struct seq_grant *g,
                  int64_t mono)
{
    const char *name = d->create.name;
    char text[SEQ_TEXT_MAX];
    if (g->how == SEQ_DONE)
        log_info("sequence made", kv_str("sequence", name), kv_str("definition", d->text));
    if (d->state == DEFINED_SO)
        said_served(s, name);
    else if (d->state == DEFINED_REFUSED && g->how != SEQ_DIFFERS)
        said_refused(s, name, g->how, mono);
    else if (d->state == DEFINED_REFUSED && said_is_news(s, name, SEQ_DIFFERS))
        log_error("sequence refused: it is another one than the configuration defines",
                  kv_str("sequence", name),
                  kv_str("expected", seq_definition_text(text, &d->create.definition)),
                  kv_str("found", g->text));
}
