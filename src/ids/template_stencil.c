#include "ids/template_stencil.h"

/* Where the steps that matter stand. */
struct places {
    const struct template_step *check; /* behind seq; NULL: none */
    size_t seq, seq_n, check_at;
};

/* All but seq are as long in every text, and so seq has what is left. */
static bool find(const struct template *t, size_t n, struct places *p)
{
    unsigned seqs = 0, checks = 0;
    size_t at = 0;
    *p = (struct places){.seq_n = n};
    for (unsigned i = 0; i < t->n; i++)
        p->seq_n -= t->step[i].kind == TEMPLATE_SEQ ? 0 : t->step[i].most;
    for (unsigned i = 0; i < t->n; i++) {
        const struct template_step *s = &t->step[i];
        if (s->kind == TEMPLATE_SEQ) {
            p->seq = at;
            seqs += s->base == 10 ? 1 : 2;
            at += p->seq_n;
            continue;
        }
        if (s->kind == TEMPLATE_CHECK && seqs > 0) {
            p->check = s;
            p->check_at = at;
            checks++;
        } else if (s->kind > TEMPLATE_HOURS && s->kind != TEMPLATE_CHECK) {
            return false;
        }
        at += s->most;
    }
    return seqs == 1 && checks <= 1 && p->seq_n >= 2;
}

static void make_check(struct template_stencil *s, const struct places *p)
{
    bool of_seq = p->check->of < TEMPLATE_STEPS;
    size_t from = of_seq ? p->seq : 0, to = of_seq ? p->seq + p->seq_n : p->check_at;
    s->check = p->check->check;
    if (check_digit_begin(&s->check, span_of(s->text + from, s->two - from), &s->state))
        from = s->two;
    s->check_at = (uint8_t)p->check_at;
    s->check_from = (uint8_t)from;
    s->check_n = (uint8_t)(to - from);
}

void template_stencil_make(struct template_stencil *s, const struct template *t,
                           const struct template_values *v, struct span text)
{
    struct places p;
    int64_t first = v->number - v->number % 100;
    if (text.n > TEMPLATE_STENCIL_MAX || !find(t, text.n, &p) ||
        (first == 0 && t->flex < t->n)) /* they have one digit, or two */
        return;
    *s = (struct template_stencil){
        .of = t, .n = (uint8_t)text.n, .two = (uint8_t)(p.seq + p.seq_n - 2), .first = first};
    memcpy(s->period, v->period, TEMPLATE_PERIOD_MAX);
    memcpy(s->text, text.p, text.n);
    if (p.check)
        make_check(s, &p);
}
