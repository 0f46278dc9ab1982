#include "coord/seq_rows.h"

#include "base/buf.h"
#include "base/dec.h"
#include "coord/outcome.h"

#include <stdlib.h>

#define STATE_NUMBERS   14
#define COUNTER_NUMBERS 7 /* without the token */

/* ---- characters ------------------------------------------------------------------------------ */

static bool all(struct span s, size_t max, const char *marks, bool any)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool printable = c > ' ' && c <= '~';
        if (!(any ? printable : word || (c != '\0' && strchr(marks, c))))
            return false;
    }
    return s.n > 0 && s.n < max;
}

bool seq_is_name(struct span s)
{
    return all(s, SEQ_NAME_MAX, "_.-", false);
}

bool seq_is_sub(struct span s)
{
    return all(s, SEQ_SUB_MAX, "", true);
}

bool seq_is_period(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '-' && s.p[i] != 'T')
            return false;
    }
    return s.n > 3 && s.n < PERIOD_LABEL_MAX;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_number(struct buf *b, int64_t v)
{
    if (b->n > 0)
        buf_put_char(b, ' ');
    buf_put_i64(b, v);
}

static void put_text(struct buf *b, const char *text)
{
    buf_put_char(b, ' ');
    buf_put_str(b, *text ? text : "-");
}

static char *finish(struct buf *b)
{
    b->p[b->failed ? 0 : b->n] = '\0';
    return b->p;
}

char *seq_state_key(char *out, const char *name)
{
    struct buf b;
    buf_init(&b, out, SEQ_KEY_MAX - 1);
    buf_put_str(&b, "seq ");
    buf_put_str(&b, name);
    return finish(&b);
}

char *seq_counter_key(char *out, const char *name, int64_t gen, const char *period, const char *sub)
{
    struct buf b;
    buf_init(&b, out, SEQ_KEY_MAX - 1);
    buf_put_str(&b, "num ");
    buf_put_str(&b, name);
    put_number(&b, gen);
    put_text(&b, period);
    if (*sub)
        put_text(&b, sub);
    return finish(&b);
}

char *seq_template_key(char *out, const char *name, int64_t n)
{
    struct buf b;
    buf_init(&b, out, SEQ_KEY_MAX - 1);
    buf_put_str(&b, "tpl ");
    buf_put_str(&b, name);
    put_number(&b, n);
    return finish(&b);
}

char *seq_faith_write(char *out, const struct seq_faith *f)
{
    struct buf b;
    buf_init(&b, out, SEQ_ROW_MAX - 1);
    put_number(&b, f->from);
    put_number(&b, f->to);
    put_number(&b, f->lost);
    return finish(&b);
}

char *seq_state_write(char *out, const struct seq_state *s)
{
    const int64_t v[STATE_NUMBERS] = {
        s->gen, s->turn, s->ok,   s->bturn,   s->bt_ms,        s->base,        s->max,
        s->top, s->seen, s->subs, s->dropped, s->revoked.turn, s->revoked.era, s->revoked.from,
    };
    struct buf b;
    buf_init(&b, out, SEQ_ROW_MAX - 1);
    for (size_t i = 0; i < STATE_NUMBERS; i++)
        put_number(&b, v[i]);
    put_text(&b, s->per);
    put_text(&b, s->mark);
    put_text(&b, s->text);
    return finish(&b);
}

char *seq_counter_write(char *out, const struct seq_counter *c)
{
    char token[COORD_TOKEN_TEXT];
    struct buf b;
    buf_init(&b, out, SEQ_ROW_MAX - 1);
    put_number(&b, c->era);
    put_number(&b, c->next);
    put_number(&b, c->n);
    put_text(&b, c->taken ? coord_token_text(token, c->token) : "");
    put_number(&b, c->lo);
    put_number(&b, c->hi);
    put_number(&b, c->turn);
    put_number(&b, c->gaps);
    return finish(&b);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool take_number(struct span *rest, int64_t *out)
{
    struct span s = span_cut(rest, ' ');
    return s.p && dec_canonical_i64(s, out) && *out >= 0 && *out <= COORD_NUMBER_MAX;
}

static bool take_numbers(struct span *rest, int64_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!take_number(rest, &out[i]))
            return false;
    }
    return true;
}

static void copy(char *out, struct span s)
{
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
}

/* A period, or "-". */
static bool take_period(struct span *rest, char out[PERIOD_LABEL_MAX])
{
    struct span s = span_cut(rest, ' ');
    out[0] = '\0';
    if (s.p && span_eq(s, SPAN("-")))
        return true;
    if (!s.p || !seq_is_period(s))
        return false;
    copy(out, s);
    return true;
}

bool seq_faith_read(struct span s, struct seq_faith *out)
{
    int64_t v[3];
    struct span rest = s;
    if (!take_numbers(&rest, v, 3) || rest.p)
        return false;
    *out = (struct seq_faith){v[0], v[1], v[2]};
    return true;
}

bool seq_state_read(struct span s, struct seq_state *out, struct seq_definition *d)
{
    int64_t v[STATE_NUMBERS];
    struct span rest = s;
    memset(out, 0, sizeof *out);
    if (!take_numbers(&rest, v, STATE_NUMBERS) || !take_period(&rest, out->per) ||
        !take_period(&rest, out->mark) || !rest.p || !seq_definition_parse(rest, d) || v[0] == 0)
        return false;
    out->gen = v[0];
    out->turn = v[1];
    out->ok = v[2];
    out->bturn = v[3];
    out->bt_ms = v[4];
    out->base = v[5];
    out->max = v[6];
    out->top = v[7];
    out->seen = v[8];
    out->subs = v[9];
    out->dropped = v[10];
    out->revoked = (struct seq_revoked){v[11], v[12], v[13]};
    copy(out->text, rest);
    return out->max <= seq_last_index(d) && out->top <= out->max + 1;
}

bool seq_counter_read(struct span s, struct seq_counter *out)
{
    int64_t v[COUNTER_NUMBERS];
    struct span rest = s;
    memset(out, 0, sizeof *out);
    if (!take_numbers(&rest, v, 3))
        return false;
    struct span token = span_cut(&rest, ' ');
    out->taken = !(token.p && span_eq(token, SPAN("-")));
    if (!token.p || (out->taken && !coord_token_parse(token, &out->token)) ||
        !take_numbers(&rest, v + 3, 4) || rest.p)
        return false;
    out->era = v[0];
    out->next = v[1];
    out->n = v[2];
    out->lo = v[3];
    out->hi = v[4];
    out->turn = v[5];
    out->gaps = v[6];
    return true;
}

static bool take_name(struct span *rest, const char *word, char *name)
{
    struct span s = span_cut(rest, ' ');
    if (!s.p || !span_eq(s, span_str(word)) || !rest->p)
        return false;
    s = span_cut(rest, ' ');
    if (!seq_is_name(s))
        return false;
    copy(name, s);
    return true;
}

bool seq_state_key_read(struct span key, char *name)
{
    struct span rest = key;
    return take_name(&rest, "seq", name) && !rest.p;
}

bool seq_counter_key_read(struct span key, char *name, struct seq_counter_info *out)
{
    struct span rest = key;
    out->sub[0] = '\0';
    if (!take_name(&rest, "num", name) || !take_number(&rest, &out->gen) ||
        !take_period(&rest, out->period))
        return false;
    if (rest.p && !seq_is_sub(rest))
        return false;
    if (rest.p)
        copy(out->sub, rest);
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

void seq_rows_clear(struct seq_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        free(rows->v[i].key);
    free(rows->v);
    rows->v = NULL;
    rows->n = 0;
}

bool seq_rows_add(struct seq_rows *rows, struct span key, struct span value)
{
    if (rows->n >= SEQ_ROWS_MAX)
        return false;
    if ((rows->n & (rows->n - 1)) == 0) { /* full: it has room for a power of two */
        size_t room = rows->n ? 2 * rows->n : 1;
        struct seq_row *v = realloc(rows->v, room * sizeof *v);
        if (!v)
            return false;
        rows->v = v;
    }
    char *text = malloc(key.n + value.n + 2);
    if (!text)
        return false;
    struct seq_row *row = &rows->v[rows->n++];
    row->key = text;
    row->value = text + key.n + 1;
    copy(row->key, key);
    copy(row->value, value);
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct seq_row *x = a, *y = b;
    return strcmp(x->key, y->key);
}

void seq_rows_sort(struct seq_rows *rows)
{
    size_t kept = 0;
    if (rows->n > 0)
        qsort(rows->v, rows->n, sizeof *rows->v, by_key);
    for (size_t i = 0; i < rows->n; i++) {
        if (kept > 0 && strcmp(rows->v[kept - 1].key, rows->v[i].key) == 0)
            free(rows->v[i].key);
        else
            rows->v[kept++] = rows->v[i];
    }
    rows->n = kept;
}
