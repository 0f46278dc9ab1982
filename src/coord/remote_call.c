/* A call of a script in Redis: its arguments, and how an answer comes to count. */
#include "coord/outcome.h"
#include "coord/remote.h"

#define REPAIR_MAX COORD_REPAIR_MAX /* workerIds per script */

/* ---- calls ---------------------------------------------------------------------------------- */

void remote_call_put(struct remote_call *c, struct span s)
{
    if (c->n == COURIER_ARGS_MAX) {
        c->text.failed = true;
        return;
    }
    buf_put_span(&c->text, s);
    c->at[++c->n] = c->text.n;
}

void remote_call_str(struct remote_call *c, const char *s)
{
    remote_call_put(c, span_str(s));
}

void remote_call_num(struct remote_call *c, int64_t v)
{
    char digits[24];
    struct buf b;
    buf_init(&b, digits, sizeof digits);
    buf_put_i64(&b, v);
    remote_call_put(c, buf_span(&b));
}

/* Numbers parted by spaces, as one argument. */
void remote_call_list(struct remote_call *c, const uint16_t *v, size_t n)
{
    char text[REPAIR_MAX * 6];
    struct buf b;
    buf_init(&b, text, sizeof text);
    for (size_t i = 0; i < n; i++) {
        buf_put_u64(&b, v[i]);
        buf_put_char(&b, ' ');
    }
    remote_call_put(c, buf_span(&b));
}

void remote_call_token(struct remote_call *c, struct coord_token t)
{
    char text[COORD_TOKEN_TEXT];
    remote_call_str(c, coord_token_text(text, t));
}

/* caller_ms: the caller's clock, at least 0; one that is set before 1970 counts as 1970. */
void remote_call_begin_at(struct remote_call *c, const struct remote *m, const char *op,
                          const char *identity, int64_t caller_ms)
{
    buf_init(&c->text, c->mem, sizeof c->mem);
    c->caller_ms = caller_ms > 0 ? caller_ms : 0;
    c->n = 0;
    c->at[0] = 0;
    remote_call_str(c, "EVALSHA");
    remote_call_str(c, ""); /* known once the script is loaded */
    remote_call_num(c, COURIER_KEYS);
    for (size_t i = 0; i < COURIER_KEYS; i++)
        remote_call_str(c, m->courier.key[i]);
    remote_call_str(c, op);
    remote_call_str(c, identity);
    remote_call_str(c, ""); /* the nonce: given where the server asks for one */
    remote_call_num(c, c->caller_ms);
}

void remote_call_begin(struct remote_call *c, const struct remote *m, const char *op,
                       const char *identity)
{
    remote_call_begin_at(c, m, op, identity, clock_wall_ms(m->courier.peer.clock));
}

static enum coord_status say(struct remote *m, const struct remote_call *c, const char **argv,
                             size_t *len, struct answer *a, struct answer_terms *terms,
                             struct coord_reply *r)
{
    a->n = 0; /* the one before is gone with its reply */
    enum coord_status s = courier_script(&m->courier, c->n, argv, len, a, r);
    return s == COORD_OK ? answer_terms(a, terms, r) : s;
}

/* An answer counts once the replicas that it names have it. Where they have not, *a is what does
 * not count, and empty where there was none. Who did not know of replicas, since he renews a page
 * before all else, says it again, with the same tokens: his server's history was not asked before.
 */
static enum coord_status ask(struct remote *m, const struct remote_call *c, const char **argv,
                             size_t *len, struct answer *a, struct answer_terms *terms,
                             struct coord_reply *r)
{
    enum coord_status s = say(m, c, argv, len, a, terms, r);
    if (s == COORD_OK && terms->acks > 0 && !courier_counts(&m->courier))
        s = say(m, c, argv, len, a, terms, r);
    if (s == COORD_OK && terms->acks > 0)
        s = courier_wait(&m->courier, terms->acks, r);
    return s;
}

/* What was waited for counts, or it would be told as a clock that differs. In digits of 24. */
static size_t stamp(struct remote_call *c, int64_t waited_ms, char *digits)
{
    struct buf b;
    c->caller_ms = c->caller_ms + waited_ms > 0 ? c->caller_ms + waited_ms : 0;
    buf_init(&b, digits, 24);
    buf_put_i64(&b, c->caller_ms);
    return b.n;
}

/* COORD_OK: *a is good until courier_end. */
enum coord_status remote_run(struct remote *m, struct remote_call *c, struct answer *a,
                             struct coord_reply *r)
{
    const char *argv[COURIER_ARGS_MAX];
    size_t len[COURIER_ARGS_MAX];
    char nonce[ANSWER_NONCE_MAX], caller[24];
    if (c->text.failed)
        return outcome_refused(r, "request: expected at most %d bytes, found more",
                               REMOTE_CALL_BYTES);
    for (int i = 0; i < c->n; i++) {
        argv[i] = c->mem + c->at[i];
        len[i] = c->at[i + 1] - c->at[i];
    }
    courier_start(&m->courier);
    int64_t began_ms = clock_wall_ms(m->courier.peer.clock);
    struct answer_terms terms;
    enum coord_status s = ask(m, c, argv, len, a, &terms, r);
    if (s == COORD_OK && terms.nonce.n > 0) {
        memcpy(nonce, terms.nonce.p, terms.nonce.n);
        argv[COURIER_ARG_NONCE] = nonce;
        len[COURIER_ARG_NONCE] = terms.nonce.n;
        argv[COURIER_ARG_CALLER] = caller;
        len[COURIER_ARG_CALLER] = stamp(c, clock_wall_ms(m->courier.peer.clock) - began_ms, caller);
        s = ask(m, c, argv, len, a, &terms, r);
    }
    if (s == COORD_OK && terms.nonce.n > 0)
        s = outcome_down(r, ERR_BUSY, "expected one server to answer twice, found another");
    return s;
}
