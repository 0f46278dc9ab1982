#include "daemon/app.h"

#include "auth/auth.h"
#include "base/log.h"
#include "base/resident.h"
#include "base/timefmt.h"
#include "conf/address.h"
#include "conf/list.h"
#include "conf/protocol_options.h"
#include "daemon/behind.h"
#include "daemon/bridge_sequences.h"
#include "daemon/coordinator.h"
#include "daemon/descriptors.h"
#include "daemon/generators.h"
#include "daemon/guard.h"
#include "daemon/reload.h"
#include "daemon/self.h"
#include "daemon/state_page.h"
#include "daemon/supervisor.h"
#include "daemon/supplies.h"
#include "daemon/upgrade.h"
#include "lease/keeper.h"
#include "net/net.h"
#include "serve/access.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_CONFIG    78
#define DRAIN_GRACE_US INT64_C(3000000)
#define SETTINGS       12
#define CALL_MS        1000 /* so long is a call to the coordinator waited for at the end … */
#define HURRY_MS       100  /* … and where that is to be at once */

struct app {
    const struct conf *conf; /* in effect: main's, or: */
    struct conf reloaded;
    struct app_start start;

    struct serve serve;
    struct generators generators;
    struct bridge bridge;
    struct supervisor supervisor;
    struct upgrade upgrade;
    struct guard_ids uids, gids;
    struct net *net;
    struct coord *coord;
    struct pagefile page;
    struct supplies supplies;
    struct keeper *keeper;
    char coord_name[COORD_URL_MAX];
    char owner[COORD_URL_MAX + COORD_POOL_NAME_MAX]; /* of the state page: coordinator and pool */
    struct self self;
    struct serve_setting settings[SETTINGS];
    char setting_text[SETTINGS][TIMEFMT_MAX];
    atomic_bool logins_checked; /* since the loop looked last */
    unsigned stops;             /* signals to stop that came */
    struct descriptors room;
};

static void tell_oddities(const struct conf *c)
{
    for (size_t i = 0; i < c->warnings.n; i++)
        log_warn("configuration", kv_str("warning", c->warnings.item[i]));
}

static void settle(void *arg)
{
    bridge_settle(arg);
}

static struct net_config net_config(struct app *a)
{
    return (struct net_config){.clock = clock_system(),
                               .connections = a->room.connections,
                               .memory = a->conf->limits_memory,
                               .login_timeout_us = a->conf->limits_login_timeout_us,
                               .request_timeout_us = a->conf->limits_request_timeout_us,
                               .idle_timeout_us = a->conf->limits_idle_timeout_us,
                               .max_wait_us = a->conf->limits_max_wait_us,
                               .busy_poll_us = a->conf->listen_busy_poll_us,
                               .settle = settle,
                               .arg = &a->bridge};
}

/* ---- parts ------------------------------------------------------------------------------------
 */

static enum err_code open_coordinator(struct app *a, struct err *e)
{
    const struct conf *c = a->conf;
    self_describe(&a->self);
    (void)snprintf(a->serve.facts.host, sizeof a->serve.facts.host, "%s", a->self.host);
    enum err_code r = coordinator_open(c, a->self.who, a->start.heir, &a->coord, e);
    if (!r)
        r = coord_url_public(span_str(c->coordinator_url), a->coord_name, sizeof a->coord_name);
    (void)snprintf(a->owner, sizeof a->owner, "%s|%s", a->coord_name, c->coordinator_pool);
    return r;
}

static enum err_code open_page(struct app *a, struct err *e)
{
    return state_page_open(&a->page, a->conf, a->owner, &a->start.heir->page, e);
}

static enum err_code make_services(struct app *a, struct err *e)
{
    struct serve *s = &a->serve;
    const struct conf *c = a->conf;
    s->clock = clock_system();
    s->rng = rng_system();
    s->started_ms = clock_wall_ms(s->clock);
    s->started_mono_us = clock_mono_us(s->clock);
    (void)snprintf(s->facts.coordinator, sizeof s->facts.coordinator, "%s", a->coord_name);
    (void)snprintf(s->facts.pool, sizeof s->facts.pool, "%s", c->coordinator_pool);
    s->facts.wanted = c->workers_active + conf_spare(c);
    history_init(&s->history, s->started_mono_us);
    enum err_code r = generators_open(&a->generators, c, s, e);
    if (r)
        return r;
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        s->services[i] = protocol_table[i]->make(s);
        if (!s->services[i])
            return err_set(e, ERR_NOMEM, "no memory for the services");
    }
    return ERR_OK;
}

static void put_setting(struct app *a, size_t row, const char *name, unsigned v)
{
    (void)snprintf(a->setting_text[row], sizeof a->setting_text[row], "%u", v);
    a->settings[row] = (struct serve_setting){name, a->setting_text[row]};
}

static void put_duration(struct app *a, size_t row, const char *name, int64_t us)
{
    a->settings[row] = (struct serve_setting){name, timefmt_duration(a->setting_text[row], us)};
}

static void put_size(struct app *a, size_t row, const char *name, unsigned bytes)
{
    (void)snprintf(a->setting_text[row], sizeof a->setting_text[row], "%uKiB", bytes >> 10);
    a->settings[row] = (struct serve_setting){name, a->setting_text[row]};
}

static void give_slots(struct app *a)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct conf_protocol *p = conf_protocol_find(protocol_table[i]->name);
        unsigned slots = conf_protocol_slots(a->conf, p);
        a->serve.services[i]->slots = slots < a->room.slots ? slots : a->room.slots;
    }
}

/* What a reload may change, as the services see it. */
static void apply_limits(struct app *a)
{
    const struct conf *c = a->conf;
    struct serve *s = &a->serve;
    s->issuer.max_wait_us = c->limits_max_wait_us;
    s->issuer.batch = c->limits_batch;
    a->room = descriptors_fit(c);
    s->max_connections = a->room.connections;
    give_slots(a);
    s->ping_there = c->upstream_ping == CONF_PING_THERE;
    s->http_hosts = c->listen_http_hosts.item;
    s->nhttp_hosts = c->listen_http_hosts.n;
    put_setting(a, 0, "limits.connections", c->limits_connections);
    put_setting(a, 1, "limits.batch", c->limits_batch);
    put_duration(a, 2, "limits.idle_timeout", c->limits_idle_timeout_us);
    put_duration(a, 3, "limits.max_wait", c->limits_max_wait_us);
    put_duration(a, 4, "clock.wait_below", c->clock_wait_below_us);
    put_setting(a, 5, "workers.active", c->workers_active);
    put_setting(a, 6, "workers.spare", c->workers_spare);
    put_setting(a, 7, "maxconns", a->room.connections); /* memcached's name for it */
    put_setting(a, 8, "limits.http_connections", c->limits_http_connections);
    put_size(a, 9, "limits.memory", c->limits_memory);
    put_duration(a, 10, "limits.login_timeout", c->limits_login_timeout_us);
    put_duration(a, 11, "limits.request_timeout", c->limits_request_timeout_us);
    s->settings = a->settings;
    s->nsettings = SETTINGS;
}

/* One that guards itself gives out no IDs to other hosts unless they show who they are, or the
 * operator wants it. */
static enum access_mode mode_of(const struct app *a, const struct conf_address *at,
                                const struct conf_protocol *p)
{
    static const enum access_mode modes[] = {[CONF_AUTH_OFF] = ACCESS_OFF,
                                             [CONF_AUTH_ACCEPT_ANY] = ACCESS_ANY,
                                             [CONF_AUTH_REQUIRED] = ACCESS_REQUIRED};
    enum access_mode mode = modes[conf_address_auth(at, a->conf)];
    bool open = conf_address_local(at) || a->conf->listen_allow_unprotected;
    return p->guards_itself && mode != ACCESS_REQUIRED && !open ? ACCESS_CLOSED : mode;
}

/* A rehearsal stands beside the program that asked for it, which keeps its addresses meanwhile: one
 * that covers them, or is another protocol's by now, cannot be had before that has ended. */
static enum err_code not_listening(const struct app *a, enum err_code r, struct err *e)
{
    if (r != ERR_BUSY || a->start.heir->state != HEIR_REHEARSES)
        return r;
    return err_set(e, r, "%s; if this sidecar itself listens there, restart it instead", e->text);
}

static enum err_code listen_on(struct app *a, enum serve_protocol p, struct err *e)
{
    const struct conf_protocol *options = conf_protocol_find(serve_protocol_name(p));
    const struct conf_list *list = conf_protocol_listen(a->conf, options);
    for (size_t i = 0; i < list->n; i++) {
        char bound[160];
        struct conf_address at;
        if (!conf_address_parse(span_str(list->item[i]), &at))
            return err_set(e, ERR_INVALID, "expected an address, found %s", list->item[i]);
        struct net_door door = {.mode = a->conf->listen_socket_mode,
                                .tag = (uint8_t)mode_of(a, &at, options),
                                .uids = a->uids.id,
                                .gids = a->gids.id,
                                .nuids = a->uids.n,
                                .ngids = a->gids.n};
        enum err_code r =
            net_listen(a->net, at.bare, &door, a->serve.services[p], bound, sizeof bound, e);
        if (r)
            return not_listening(a, r, e);
        log_info("listening", kv_str("protocol", serve_protocol_name(p)), kv_str("address", bound));
    }
    return ERR_OK;
}

/* ---- signals ----------------------------------------------------------------------------------
 */

static void enough(void *arg)
{
    net_break(((struct app *)arg)->net);
}

static void drained(void *arg)
{
    struct app *a = arg;
    net_after(a->net, DRAIN_GRACE_US, enough, a); /* what is given back needs an answer */
    bridge_let_go(&a->bridge);
    keeper_stop(a->keeper, a->conf->lease_on_stop == CONF_ON_STOP_RETURN);
}

static void on_stop(void *arg, int signo)
{
    struct app *a = arg;
    upgrade_cancel(&a->upgrade);
    supervisor_stopping(&a->supervisor);
    log_info("stopping", kv_str("signal", signo == SIGINT ? "SIGINT" : "SIGTERM"),
             kv_u64("connections", net_connections(a->net)));
    if (a->stops++ > 0)
        net_break(a->net);
    else
        net_drain(a->net, DRAIN_GRACE_US, drained, a);
}

/* Those who log in just now are asked again, of the new users; whose user is gone, or may less, is
 * out. */
static void replace_users(struct app *a, struct users *users)
{
    if (!a->serve.auth) {
        users_clear(users);
        return;
    }
    auth_replace(a->serve.auth, users);
    uint64_t closed = net_review(a->net);
    if (closed > 0)
        log_info("sessions of users who are gone, or may less, are closed",
                 kv_u64("number", closed));
}

static void reload(struct app *a)
{
    const struct app_start *s = &a->start;
    struct conf new;
    struct err e;
    if (conf_reload(&new, s->file, s->sets, s->nsets, s->envp, NULL, &e)) {
        log_error("reload refused, nothing changed", kv_str("why", e.text));
        return;
    }
    struct users users = {.n = 0};
    bool refused = reload_refuses(a->conf, &new);
    if (!refused &&
        (users_load(&users, new.auth_users_file, &e) || behind_greet(&a->serve, &new, &e))) {
        log_error("reload refused, nothing changed", kv_str("why", e.text));
        users_clear(&users);
        refused = true;
    }
    if (refused) {
        conf_clear(&new);
        return;
    }
    if (new.auth_users_file[0] && users.n == 0)
        log_warn("the users file names nobody: who has to log in cannot",
                 kv_str("file", new.auth_users_file));
    replace_users(a, &users);
    conf_clear(&a->reloaded);
    a->reloaded = new;
    a->conf = &a->reloaded;
    log_setup(a->conf->log_level, a->conf->log_format);
    tell_oddities(a->conf);
    guard_cores(a->conf);
    apply_limits(a);
    struct net_config nc = net_config(a);
    net_reconfigure(a->net, &nc);
    log_info("configuration reloaded");
}

static void on_reload(void *arg, int signo)
{
    (void)signo;
    struct app *a = arg;
    supervisor_reloading(&a->supervisor, clock_mono_us(clock_system()));
    reload(a);
    supervisor_reloaded(&a->supervisor);
}

static void on_upgrade(void *arg, int signo)
{
    (void)signo;
    struct app *a = arg;
    if (a->stops == 0)
        upgrade_ask(&a->upgrade);
}

static void on_child(void *arg, int signo)
{
    (void)signo;
    struct app *a = arg;
    upgrade_child(&a->upgrade);
}

/* ---- life -------------------------------------------------------------------------------------
 */

/* By the thread that checks passwords, too. */
static void checked(void *arg)
{
    struct app *a = arg;
    atomic_store(&a->logins_checked, true);
    net_notify(a->net);
}

static void mail_came(void *arg)
{
    struct app *a = arg;
    bool again = false;
    if (atomic_exchange(&a->logins_checked, false))
        again = access_answered(&a->serve);
    if (again) /* after what else there is to do */
        checked(a);
    bridge_take(&a->bridge);
    supervisor_holds(&a->supervisor, a->serve.facts.held, bridge_why(&a->bridge));
    if (a->bridge.finished)
        net_break(a->net);
    else if (a->bridge.paused)
        upgrade_paused(&a->upgrade, a->bridge.proven);
}

static void wake_loop(void *arg)
{
    net_notify(arg);
}

static enum err_code start_auth(struct app *a, struct err *e)
{
    struct users users;
    if (!a->conf->auth_users_file[0])
        return ERR_OK;
    enum err_code r = heir_users(a->start.heir, a->conf->auth_users_file, &users, e);
    if (!r)
        r = auth_new(&users, checked, a, &a->serve.auth, e);
    if (!r)
        auth_unpack(a->serve.auth, a->start.heir->logins);
    users_clear(&users);
    return r;
}

static enum err_code start_keeper(struct app *a, struct err *e)
{
    enum err_code r =
        supplies_init(&a->supplies, a->conf, a->coord_name, &a->page, &a->start.heir->blocks, e);
    if (r)
        return r;
    if (a->supplies.sequences)
        bridge_sequences_adopt(&a->generators.sequences, a->supplies.sequences);
    const struct keeper_options o = {
        .supplies = a->supplies.list,
        .nsupplies = a->supplies.n,
        .coord = a->coord,
        .clock = clock_system(),
        .notify = wake_loop,
        .arg = a->net,
    };
    r = keeper_start(&o, &a->keeper, e);
    a->bridge.keeper = a->keeper;
    return r;
}

static enum err_code start_net(struct app *a, struct err *e)
{
    const struct conf *c = a->conf;
    struct net_config nc = net_config(a);
    enum err_code r = net_new(&nc, &a->net, e);
    if (r)
        return r;
    a->serve.net = a->net;
    a->bridge =
        (struct bridge){.serve = &a->serve,
                        .ids = &a->generators.ids,
                        .sequences = generators_have_sequences(c) ? &a->generators.sequences : NULL,
                        .net = a->net,
                        .clock = clock_system(),
                        .want_active = c->workers_active,
                        .wait_below_ms = (c->clock_wait_below_us + 999) / 1000};
    bridge_init(&a->bridge);
    net_on_notify(a->net, mail_came, a);
    net_inherit(a->net, a->start.heir->records);
    guard_read_ids(&c->auth_allow_uids, false, &a->uids);
    guard_read_ids(&c->auth_allow_gids, true, &a->gids);
    if ((r = net_on_signal(a->net, SIGTERM, on_stop, a, e)) ||
        (r = net_on_signal(a->net, SIGINT, on_stop, a, e)) ||
        (r = net_on_signal(a->net, SIGHUP, on_reload, a, e)) ||
        (r = net_on_signal(a->net, SIGUSR2, on_upgrade, a, e)) ||
        (r = net_on_signal(a->net, SIGCHLD, on_child, a, e)) ||
        (r = behind_open(a->net, &a->serve, c, a->start.heir, e)))
        return r;
    return ERR_OK;
}

static enum err_code listen_all(struct app *a, struct err *e)
{
    enum err_code r = ERR_OK;
    for (unsigned p = 0; p < SERVE_PROTOCOLS && !r; p++)
        r = listen_on(a, (enum serve_protocol)p, e);
    return r;
}

/* In the order in which they need each other. *status is what a failure ends the process with. */
static enum err_code start(struct app *a, int *status, struct err *e)
{
    enum err_code r;
    r = open_coordinator(a, e);
    *status = r && r != ERR_NOMEM ? EXIT_CONFIG : EXIT_FAILURE;
    if (r)
        return r;
    log_info("starting", kv_str("version", SIDFLAKE_VERSION), kv_str("coordinator", a->coord_name),
             kv_str("pool", a->conf->coordinator_pool), kv_str("state_dir", a->conf->state_dir),
             kv_i64("pid", getpid()));
    if ((r = open_page(a, e)) || (r = make_services(a, e)))
        return r;
    apply_limits(a);
    if ((r = start_net(a, e)) || (r = listen_all(a, e)) || (r = start_auth(a, e)) ||
        (r = start_keeper(a, e)))
        return r;
    upgrade_init(&a->upgrade, &(struct upgrade_options){.argv = a->start.argv,
                                                        .file = a->start.file,
                                                        .conf = &a->conf,
                                                        .net = a->net,
                                                        .auth = a->serve.auth,
                                                        .keeper = a->keeper,
                                                        .page = &a->page,
                                                        .sequences = a->supplies.sequences,
                                                        .supervisor = &a->supervisor,
                                                        .clock = clock_system()});
    heir_signals();
    return ERR_OK;
}

/* Last, so that nothing is asked for before there is somebody to answer. */
static void take_over(struct app *a)
{
    struct heir *h = a->start.heir;
    mail_came(a); /* grants that are proven, before anybody waits for them */
    uint64_t lost, n = net_adopt(a->net, a->serve.services, SERVE_PROTOCOLS, &lost);
    if (h->why.code)
        log_warn("what the program before left cannot be used", kv_str("why", h->why.text));
    if (lost > 0)
        log_warn("connections that cannot be taken over are closed", kv_u64("number", lost),
                 kv_str("from", h->version));
    if (h->state == HEIR_TAKES)
        log_info("upgraded in place", kv_str("from", h->version), kv_str("to", SIDFLAKE_VERSION),
                 kv_u64("connections", n),
                 kv_str("workerIds", a->page.proven ? "taken over" : "as after a restart"),
                 kv_i64("paused_us", clock_mono_us(clock_system()) - h->left_us));
    heir_clear(h);
}

/* The coordinator is being asked, and takes its time. What that needs goes with the process, as
 * where it is killed. */
static void leave(void)
{
    log_warn("the coordinator's answer is not waited for");
    _exit(EXIT_SUCCESS);
}

static void stop(struct app *a)
{
    if (a->keeper) {
        struct supply_mail mail;
        struct keeper_report report;
        struct workers_report workers;
        void *const reports[SUPPLY_KINDS] = {[SUPPLY_WORKERS] = &workers};
        keeper_stop(a->keeper, false);
        keeper_stop(a->keeper, false); /* the second one: without waiting for releases */
        (void)keeper_take(a->keeper, &mail, 1, &report, reports);
        log_info("stopped", kv_u64("ids_issued", generators_issued(&a->serve)),
                 kv_u64("workers_kept", workers.held));
        if (a->stops > 0 && !keeper_ends(a->keeper, a->stops > 1 ? HURRY_MS : CALL_MS))
            leave();
        keeper_free(a->keeper);
    }
    heir_block(); /* one more signal is no other end */
    auth_free(a->serve.auth);
    a->serve.auth = NULL;
    net_free(a->net);
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++)
        free(a->serve.services[i]);
    names_clear(&a->serve.issuer.names);
    generators_clear(&a->generators);
    supplies_clear(&a->supplies); /* whose pages the marks are in */
    print_tidy(a->serve.prints, INT64_MAX);
    pagefile_close(&a->page);
    coord_free(a->coord);
    supervisor_clear(&a->supervisor);
    conf_clear(&a->reloaded);
}

/* Beside a program that may be running: of what that one holds nothing is opened, but its page to
 * be read. So there are no supplies, which lock their files; nothing else can keep them from being.
 */
static enum err_code rehearse(struct app *a, struct conf *c, struct err *e)
{
    bool warned, heir = a->start.heir->state == HEIR_REHEARSES;
    enum err_code r = open_coordinator(a, e);
    if (!r && heir)
        r = heir_check_space(c, a->owner, e);
    if (!r)
        r = heir_check_page(a->start.heir, c->state_dir, e);
    if (r || (r = state_page_test(c, a->owner, &warned, e)))
        return r;
    if (warned && (r = conf_list_add(&c->warnings, span_str(e->text), e)))
        return r;
    if ((r = make_services(a, e)))
        return r;
    apply_limits(a);
    if ((r = start_net(a, e)) || (heir && (r = listen_all(a, e))))
        return r;
    return start_auth(a, e);
}

enum err_code app_rehearse(struct conf *c, struct heir *h, struct err *e)
{
    struct app *a = calloc(1, sizeof *a);
    if (!a)
        return err_set(e, ERR_NOMEM, "no memory");
    *a = (struct app){.conf = c, .start.heir = h, .page.fd = -1, .supervisor.fd = -1};
    log_setup(LOG_LVL_ERROR, c->log_format);
    enum err_code r = rehearse(a, c, e);
    stop(a);
    free(a);
    return r;
}

int app_run(const struct conf *c, const struct app_start *s)
{
    struct err e;
    int status;
    struct app *a = calloc(1, sizeof *a);
    if (!a) {
        log_error("cannot start", kv_str("why", "no memory"));
        return EXIT_FAILURE;
    }
    *a = (struct app){.conf = c, .start = *s, .page.fd = -1};
    supervisor_init(&a->supervisor);
    log_setup(c->log_level, c->log_format);
    tell_oddities(c);
    (void)signal(SIGPIPE, SIG_IGN);
    guard_cores(c);
    if (start(a, &status, &e)) {
        log_error("cannot start", kv_str("why", e.text));
    } else {
        status = EXIT_SUCCESS;
        take_over(a);
        supervisor_started(&a->supervisor, a->net);
        resident_trim();
        net_run(a->net);
    }
    stop(a);
    free(a);
    return status;
}
