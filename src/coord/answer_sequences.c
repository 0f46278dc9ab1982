/* What the answers of sequences.lua mean. */
#include "coord/answer.h"
#include "coord/outcome.h"
#include "coord/seq_rows.h"

enum {
    G_HOW,
    G_TEXT,
    G_GEN,
    G_TURN,
    G_PERIOD,
    G_MAX,
    G_LO,
    G_HI,
    G_N,
    G_NEXT,
    G_WAIT,
    G_RTURN,
    G_RERA,
    G_RFROM
};
_Static_assert(G_RFROM + 1 == ANSWER_GRANT, "each field has its place");

/* The head of an answer of exactly fields, which can be nothing but OK. */
static enum coord_status begins(const struct answer *a, const struct answer_to *to, size_t fields,
                                struct coord_reply *r)
{
    enum coord_status s = answer_head(a, to, r);
    if (s > COORD_LOST)
        return s;
    if (s != COORD_OK)
        return answer_odd(a, 0, "OK", r);
    if (fields == 0 || a->n == fields)
        return COORD_OK;
    return outcome_refused(r, "answer of the script: expected %zu fields, found %zu", fields, a->n);
}

static bool how_of(struct span s, enum seq_how *out)
{
    for (enum seq_how h = SEQ_GRANTED; h < SEQ_HOWS; h++) {
        if (span_eq(s, span_str(seq_how_name(h)))) {
            *out = h;
            return true;
        }
    }
    return false;
}

static bool copied(struct span s, char *out, size_t cap)
{
    if (s.n >= cap || (s.n > 0 && memchr(s.p, '\0', s.n)))
        return false;
    if (s.n > 0)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

/* The fields from i on; asked: the definition that was meant, which is not told once more. */
static enum coord_status grant_at(const struct answer *a, size_t i, const char *asked,
                                  struct seq_grant *out, struct coord_reply *r)
{
    static const size_t texts = 1u << G_HOW | 1u << G_TEXT | 1u << G_PERIOD;
    int64_t v[ANSWER_GRANT] = {0};
    if (!how_of(a->f[i + G_HOW], &out->how))
        return answer_odd(a, i + G_HOW, "what it came to", r);
    for (size_t k = 0; k < ANSWER_GRANT; k++) {
        if (!(texts >> k & 1u) && !answer_number(a->f[i + k], &v[k]))
            return answer_odd(a, i + k, "a decimal number", r);
    }
    struct span text = a->f[i + G_TEXT];
    if (text.n == 0 && v[G_GEN] > 0)
        text = span_str(asked);
    if (!copied(text, out->text, sizeof out->text))
        return answer_odd(a, i + G_TEXT, "a definition", r);
    if (!copied(a->f[i + G_PERIOD], out->period, sizeof out->period))
        return answer_odd(a, i + G_PERIOD, "a period", r);
    out->gen = v[G_GEN];
    out->turn = v[G_TURN];
    out->max = v[G_MAX];
    out->lo = v[G_LO];
    out->hi = v[G_HI];
    out->n = v[G_N];
    out->next = v[G_NEXT];
    out->wait_ms = v[G_WAIT];
    out->revoked = (struct seq_revoked){v[G_RTURN], v[G_RERA], v[G_RFROM]};
    return COORD_OK;
}

enum coord_status answer_take(const struct answer *a, const struct answer_to *to,
                              const struct seq_want *items, struct seq_grant *out, size_t n,
                              struct seq_opening *opening, struct coord_reply *r)
{
    size_t first = ANSWER_HEAD + ANSWER_OPENING;
    enum coord_status s = begins(a, to, first + ANSWER_GRANT * n, r);
    if (s != COORD_OK)
        return s;
    opening->era = (int64_t)r->era;
    if (!answer_number(a->f[ANSWER_HEAD], &opening->topen_ms))
        return answer_odd(a, ANSWER_HEAD, "a time", r);
    if (!copied(a->f[ANSWER_HEAD + 1], opening->fingerprint, sizeof opening->fingerprint))
        return answer_odd(a, ANSWER_HEAD + 1, "a fingerprint", r);
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        s = grant_at(a, first + ANSWER_GRANT * i, items[i].text, &out[i], r);
    return s;
}

enum coord_status answer_back(const struct answer *a, const struct answer_to *to, enum seq_how *how,
                              size_t n, struct coord_reply *r)
{
    enum coord_status s = begins(a, to, ANSWER_HEAD + n, r);
    for (size_t i = 0; i < n && s == COORD_OK; i++) {
        if (!how_of(a->f[ANSWER_HEAD + i], &how[i]) || how[i] == SEQ_GRANTED)
            s = answer_odd(a, ANSWER_HEAD + i, "done or kept", r);
    }
    return s;
}

enum coord_status answer_order(const struct answer *a, const struct answer_to *to,
                               struct seq_grant *out, struct coord_reply *r)
{
    enum coord_status s = begins(a, to, ANSWER_HEAD + ANSWER_GRANT, r);
    return s == COORD_OK ? grant_at(a, ANSWER_HEAD, "", out, r) : s;
}

enum coord_status answer_rows(const struct answer *a, const struct answer_to *to, int64_t *cursor,
                              int64_t *told, struct seq_rows *out, struct coord_reply *r)
{
    size_t first = ANSWER_HEAD + ANSWER_ROWS;
    enum coord_status s = begins(a, to, 0, r);
    if (s != COORD_OK)
        return s;
    if (a->n < first || (a->n - first) % 2 != 0)
        return answer_odd(a, a->n, "a cursor, and rows of two fields", r);
    if (!answer_number(a->f[ANSWER_HEAD], cursor) || !answer_number(a->f[ANSWER_HEAD + 1], told))
        return answer_odd(a, ANSWER_HEAD, "a cursor", r);
    out->opening.era = (int64_t)r->era;
    for (size_t i = first; i < a->n; i += 2) {
        if (a->f[i].n >= SEQ_KEY_MAX || a->f[i + 1].n >= SEQ_ROW_MAX)
            continue; /* nobody can have asked for it */
        if (!seq_rows_add(out, a->f[i], a->f[i + 1]))
            return outcome_down(r, ERR_NOMEM, "no memory for a list, or more than %d rows",
                                SEQ_ROWS_MAX);
    }
    return COORD_OK;
}
