/*
 * Foreign requests whose form is known. Of an application's requests most differ in their keys and
 * values alone: those that begin as one before them did are of the same command, with as many args,
 * and of these only the keys have to be looked at before they are forwarded.
 *
 *     *3\r\n$5\r\nLPUSH\r\n | $6\r\nmylist\r\n | $5\r\nvalue\r\n
 *     `------ head -------'   a key            any
 *
 * What is unusual in any way is left to redis_through.c, which notes the forms.
 */
#include "serve/redis/redis_through.h"

/* ---- noting -----------------------------------------------------------------------------------
 */

static const struct rds_form *form_of(struct rds_forms *forms, struct span in)
{
    for (unsigned i = 0; i < RDS_FORMS; i++) {
        const struct rds_form *f = &forms->form[(forms->at + i) % RDS_FORMS];
        if (f->n > 0 && span_starts(in, span_of(f->head, f->n))) {
            forms->at = (forms->at + i) % RDS_FORMS;
            return f;
        }
    }
    return NULL;
}

/* Commands that mean the same whatever the session has done before, in bytes that mean the same to
 * everybody. */
static bool stateless(const struct rds_call *c)
{
    return rds_may_share(c) && c->cmd->first == 1 && c->verb->at == RDS_PASS &&
           c->verb->when == 0 && !c->verb->subs;
}

void rds_note_form(struct rds_call *c)
{
    struct rds_forms *forms = &c->svc->forms;
    struct rds_form f = {.args = c->req->argc - 1, .command = rds_counted(c)};
    uint32_t from;
    if (!stateless(c) || form_of(forms, c->raw) ||
        !resp_keys(c->cmd, c->req->argc, &from, &f.last, &f.step))
        return;
    const char *name_end = c->req->argv[0].p + c->req->argv[0].n + sizeof "\r\n" - 1;
    f.n = (size_t)(name_end - c->raw.p);
    if (f.n > sizeof f.head)
        return;
    memcpy(f.head, c->raw.p, f.n);
    forms->form[forms->next] = f;
    forms->next = (forms->next + 1) % RDS_FORMS;
}

/* ---- forwarding -------------------------------------------------------------------------------
 */

bool rds_forwards(const struct rds_service *svc, const struct rds_session *ses,
                  const struct net_turn *turn)
{
    const struct rds_there *t = ses->there;
    bool plain = t && rds_is_plain(t) && !ses->multi && !ses->subs && !upstream_subscribed(turn);
    bool shares = upstream_owns(turn) || (ses->proto == 2 && ses->db == 0);
    return plain && ses->passes && shares && access_passes(svc->serve, &ses->access);
}

bool rds_forward(struct rds_service *svc, struct span in, struct net_turn *turn,
                 struct net_step *step)
{
    const struct rds_form *f = form_of(&svc->forms, in);
    struct span arg;
    if (!f)
        return false;
    size_t used = f->n;
    uint32_t key = 1;
    for (uint32_t i = 1; i <= f->args; i++) {
        if (!resp_next_bulk(in, &used, &arg))
            return false;
        bool is_key = i == key && i <= f->last;
        if (is_key && names_find(&svc->serve->issuer.names, arg))
            return false;
        key += is_key ? f->step : 0;
    }
    if (!upstream_forward(turn, UPSTREAM_TEXT, span_of(in.p, used), f->args, FRAME_RESP))
        return false;
    serve_count(svc->serve, SERVE_REDIS, f->command, SERVE_PASSED);
    *step = (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
    return true;
}
