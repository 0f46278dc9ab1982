#include "lease/said.h"

#include "base/fnv.h"
#include "coord/advice.h"
#include "coord/seq_options.h"

#include <stdio.h>
#include <string.h>

#define FEW        16    /* so many lines are news to an operator, … */
#define CLIENTS_MS 1000  /* … with so much between two that are whatever clients think of; … */
#define MORE_MS    10000 /* … more of them have no others make room for them in what is shown */
#define AGAIN_MS   60000 /* from saying that one is refused to saying so again */

/* Whose business it is. */
enum whose {
    OPERATORS, /* a sequence is refused */
    UNKNOWN,   /* there is no such sequence */
    MISTAKEN   /* a client asks it for what it can't have; others are served meanwhile */
};

static const struct {
    enum log_level level;
    const char *text;
    bool limited;
} lines[] = {
    [OPERATORS] = {LOG_LVL_ERROR, "sequence refused", false},
    [UNKNOWN] = {LOG_LVL_WARN, "unknown sequence", true},
    [MISTAKEN] = {LOG_LVL_WARN, "sequence asked for what it cannot have", true},
};

/* What is wrong, and a command that mends it, or tells more. No why: nothing is to be said. */
static const struct advice {
    const char *why;  /* what ends with ": " goes on with the command */
    const char *what; /* the command; NULL: there is none */
    const char *more; /* behind the name */
    enum whose whose;
    const char *other; /* between the word that nothing was lost, which comes first, and what */
    bool makes;        /* and so says what happens after a loss, where that has to be said */
} advice[BLOCKS_REFUSALS] = {
    [SEQ_CLOSED] = {"the period that was asked for is over", NULL, "", MISTAKEN},
    [SEQ_USED_UP] = {"its max allows no more: ", "seq alter", " --max M"},
    [SEQ_STOPPED] = {"the coordinator may have forgotten grants: that it has not is said by ",
                     "seq reopen", " --above N", .other = ", how far this one was by "},
    [SEQ_FORGOTTEN] =
        {"the coordinator may have forgotten grants: how far this one was is said by ",
         "seq reopen", " --above N"},
    [SEQ_UNKNOWN] = {"there is none: ", "seq create", "", UNKNOWN, .makes = true},
    [SEQ_DROPPED] = {"it was dropped: where no older data of the coordinator ever come back, ",
                     "seq create", " --reuse --no-older-data", UNKNOWN, .makes = true},
    [SEQ_DIFFERS] = {"it has another definition than it had here: ", "seq show", ""},
    [SEQ_NO_SUBS] = {"it was made without --subs: it alone can be asked for: ", "seq show", "",
                     MISTAKEN},
    [SEQ_TOO_MANY_SUBS] = {"it has as many subs as it may have: ", "seq show", ""},
    [SEQ_NO_PERIOD] = {"what was asked for is no period of it: ", "seq show", "", MISTAKEN},
    [SEQ_UNREADABLE] = {"its rows at the coordinator cannot be read: ", "seq check", ""},
    [SEQ_UNSAID] = {"this coordinator can forget: expected --max-rate or --on-loss in its "
                    "definition, as explained by ",
                    "seq create", ""},
    [SEQ_NO_BEGIN] = {"the pool was reopened: expected in its definition --begins, as it was "
                      "before, or of now where there was none; of one that is there tells ",
                      "seq show", ""},
    [BLOCKS_BACK] = {"the coordinator gives numbers that were given out here before: ", "seq show",
                     ""},
};

static const struct advice late = {"more numbers of it are asked for than its --max-rate lets "
                                   "anybody have; that never changes, and "
                                   "another rate is another sequence: ",
                                   "seq show", ""};

/* A command is told whole or not at all. */
static bool put_command(const struct said *s, const char *what, const char *name, const char *more,
                        struct buf *b)
{
    struct buf whole = *b;
    buf_put_char(&whole, '`');
    recovery_put_tool(&whole, what, &s->at);
    buf_put_operand(&whole, name, more);
    buf_put_char(&whole, '`');
    if (!whole.failed)
        *b = whole;
    else
        buf_printf(b, "%s in sidflakectl(1)", what);
    return !whole.failed;
}

/* One that the coordinator had, and has no more: as it was here. false: that is not known, or
 * nobody could copy it from a log. */
static bool put_lost(const struct said *s, const struct heard *h, const char *name, struct buf *b)
{
    char options[1 + SEQ_OPTIONS_MAX] = " ";
    struct seq_definition d;
    struct buf whole = *b;
    int64_t max;
    if (!h || !heard_find(h, name, &d, &max) || !advice_may_be_logged(d.template))
        return false;
    (void)seq_options_text(options + 1, &d, max);
    BUF_PUT_LIT(&whole, "there is none any more: as it was here it is made by ");
    if (!put_command(s, "seq create", name, options, &whole))
        return false;
    *b = whole;
    return true;
}

static void put_advice(const struct said *s, const struct advice *a, const char *name,
                       struct buf *b)
{
    buf_put_str(b, a->why);
    if (a->other) {
        (void)put_command(s, "pool reopen --nothing-lost", "", "", b);
        buf_put_str(b, a->other);
    }
    if (!a->what)
        return;
    char more[64];
    bool says = a->makes && advice_forgets(s->at.url);
    (void)snprintf(more, sizeof more, "%s%s", a->more, says ? " --max-rate R" : "");
    if (put_command(s, a->what, name, more, b) && says)
        BUF_PUT_LIT(b, ", or --on-loss in place of --max-rate");
}

static struct said_one *find(struct said *s, uint64_t name, unsigned how)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->v[i].name == name && s->v[i].how == how)
            return &s->v[i];
    return NULL;
}

/* o: where it was noted before; NULL: it was not. */
static void note(struct said *s, struct said_one *o, uint64_t name, unsigned how, int64_t mono)
{
    if (!o) {
        o = &s->v[s->next];
        s->next = (s->next + 1) % SAID_MAX;
        s->n = s->n < SAID_MAX ? s->n + 1 : SAID_MAX;
    }
    *o = (struct said_one){.name = name, .how = how, .again_at = mono + AGAIN_MS};
}

bool said_is_news(struct said *s, const char *name, unsigned how)
{
    uint64_t hash = fnv64_str(name);
    struct said_one *o = find(s, hash, how);
    if (o && !o->served)
        return false;
    note(s, o, hash, how, 0);
    return true;
}

/* h: NULL where it says nothing of the sequence. */
static void refused(struct said *s, const char *name, unsigned how, const struct heard *h,
                    int64_t mono)
{
    char text[LOG_LINE_MAX / 2];
    struct buf b;
    uint64_t hash = fnv64_str(name);
    struct said_one *o = find(s, hash, how);
    if (how >= BLOCKS_REFUSALS || !advice[how].why || (o && (!o->served || mono < o->again_at)))
        return;
    enum whose whose = advice[how].whose;
    int64_t every = s->n < FEW ? CLIENTS_MS : MORE_MS;
    if (lines[whose].limited && !log_limit_pass(&s->clients, mono, every, NULL))
        return;
    note(s, o, hash, how, mono);
    buf_init(&b, text, sizeof text - 1);
    if (how != SEQ_UNKNOWN || !put_lost(s, h, name, &b))
        put_advice(s, &advice[how], name, &b);
    text[b.n] = '\0';
    log_write(lines[whose].level, lines[whose].text,
              LOG_KVS(kv_str("sequence", name), kv_str("why", text)));
}

void said_refused(struct said *s, const char *name, unsigned how, int64_t mono)
{
    refused(s, name, how, NULL, mono);
}

/* It is again and again, and others have its numbers meanwhile. */
static void said_late(struct said *s, const char *name, int64_t rate, int64_t mono)
{
    char text[LOG_LINE_MAX / 2];
    struct buf b;
    uint64_t hash = fnv64_str(name);
    struct said_one *o = find(s, hash, SEQ_WAIT);
    if (o && mono < o->again_at) {
        o->again_at = mono + AGAIN_MS;
        return;
    }
    if (!log_limit_pass(&s->late, mono, s->n < FEW ? CLIENTS_MS : MORE_MS, NULL))
        return;
    note(s, o, hash, SEQ_WAIT, mono);
    buf_init(&b, text, sizeof text - 1);
    put_advice(s, &late, name, &b);
    text[b.n] = '\0';
    log_warn("sequence at its max rate", kv_str("sequence", name), kv_i64("rate", rate),
             kv_str("why", text));
}

void said_served(struct said *s, const char *name)
{
    uint64_t hash = fnv64_str(name);
    bool any = false;
    for (unsigned i = 0; i < s->n; i++) {
        struct said_one *o = &s->v[i];
        if (o->name != hash || o->served || o->how == SEQ_WAIT ||
            (o->how < BLOCKS_REFUSALS && advice[o->how].whose == MISTAKEN))
            continue;
        any = o->served = true;
    }
    if (any)
        log_info("sequence served again", kv_str("sequence", name));
}

/* What wants more in a row than its max leaves is refused alone, and told so. */
static bool is_refused(const struct blocks_mail *m)
{
    return m->kind == BLOCKS_MAIL_REFUSED && !(m->how == SEQ_USED_UP && m->hi > 1);
}

void said_mails(struct said *s, const struct blocks *b, int64_t mono)
{
    for (unsigned m = 0; m < b->nmail; m++) {
        const struct blocks_mail *mail = &b->mail[m];
        const char *name = b->counter[mail->counter].of.name;
        if (is_refused(mail) && mail->how == SEQ_WAIT && mail->lo > 0)
            said_late(s, name, mail->lo, mono);
        else if (is_refused(mail))
            refused(s, name, mail->how, &b->heard, mono);
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
    const struct seq_definition *wanted = &d->create.definition;
    int64_t max = d->create.has_max ? seq_max_index(wanted, d->create.max) : seq_last_index(wanted);
    char expected[SEQ_OPTIONS_MAX], found[SEQ_OPTIONS_MAX];
    if (g->how == SEQ_DONE)
        log_info("sequence made", kv_str("sequence", name), kv_str("definition", d->text));
    if (d->state == DEFINED_SO)
        said_served(s, name);
    else if (d->state == DEFINED_REFUSED && g->how != SEQ_DIFFERS)
        said_refused(s, name, g->how, mono);
    else if (d->state == DEFINED_REFUSED && said_is_news(s, name, SEQ_DIFFERS))
        log_error("sequence refused: it is another one than the configuration defines",
                  kv_str("sequence", name),
                  kv_str("expected", seq_options_text(expected, wanted, max)),
                  kv_str("found", seq_options_text(found, &g->definition, g->max)));
}
