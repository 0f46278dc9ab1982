/*
 * The daemon's arguments. What they come to is app's.
 *
 * Exit status: 0, 1 (no memory, standard output cannot be written), 2 (usage), 78 (configuration:
 * EX_CONFIG of sysexits.h), 74 (the state page is lost: EX_IOERR, see lease/mapguard.h), or what
 * app_run returns.
 */
#include "auth/users.h"
#include "conf/conf.h"
#include "conf/list.h"
#include "conf/protocol_options.h"
#include "daemon/app.h"
#include "daemon/coordinator.h"
#include "daemon/heir.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_OUTPUT 1
#define EXIT_USAGE  2
#define EXIT_CONFIG 78

static const char help_text[] =
    "Usage: sidflake [OPTION]...\n"
    "Gives out unique 64-bit IDs over the memcached and Redis protocols.\n"
    "\n"
    "  -c, --config FILE      read the configuration from FILE (YAML); without it,\n"
    "                         the built-in defaults hold\n"
    "      --set PATH=VALUE   override one option, as in --set limits.batch=64;\n"
    "                         may be repeated\n"
    "  -t, --test             check the configuration and exit\n"
    "      --dump-config      print the configuration in effect as YAML and exit\n"
    "      --help-config      list all options of the configuration and exit\n"
    "  -V, --version          print the version and exit\n"
    "  -h, --help             print this help and exit\n"
    "\n"
    "The environment sets options too: SIDFLAKE_LIMITS_BATCH=64 stands for\n"
    "limits.batch. The file overrides the defaults, the environment the file, and\n"
    "--set them all. A list takes its items separated by commas.\n"
    "\n"
    "By default it listens on 127.0.0.1: port 11212 for memcached, 6380 for Redis,\n"
    "9464 for HTTP. It stays in the foreground and logs to standard error.\n"
    "SIGTERM and SIGINT drain connections and stop, a second one stops at once;\n"
    "SIGHUP reads the configuration again; SIGUSR2 runs the program anew, as after\n"
    "an upgrade, without a gap: sockets, connections and workerIds are taken over.\n"
    "\n"
    "Exit status: 0 after a stop, 1 if it could not start or print, 2 for wrong\n"
    "arguments, 74 if the state page cannot be written to any more, 78 for a wrong\n"
    "configuration.\n"
    "\n"
    "Examples:\n"
    "  sidflake --set coordinator.url=redis://redis.example:6379/0\n"
    "  printf 'get id:orders\\r\\nquit\\r\\n' | nc 127.0.0.1 11212\n"
    "  redis-cli -p 6380 GET id:orders\n";

/* What to do, by rank: of several, the lowest is done. */
enum action {
    ACTION_HELP,
    ACTION_VERSION,
    ACTION_HELP_CONFIG,
    ACTION_DUMP,
    ACTION_TEST,
    ACTION_RUN
};

struct args {
    enum action action;
    const char *file; /* NULL: none */
    char **sets;      /* nsets strings of argv; the array is ours */
    size_t nsets;
};

enum {
    LONG_SET = 256,
    LONG_DUMP,
    LONG_HELP_CONFIG
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"set", required_argument, NULL, LONG_SET},
    {"test", no_argument, NULL, 't'},
    {"dump-config", no_argument, NULL, LONG_DUMP},
    {"help-config", no_argument, NULL, LONG_HELP_CONFIG},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct {
    int option;
    enum action action;
} actions[] = {{'h', ACTION_HELP},
               {'V', ACTION_VERSION},
               {LONG_HELP_CONFIG, ACTION_HELP_CONFIG},
               {LONG_DUMP, ACTION_DUMP},
               {'t', ACTION_TEST}};

static void rank(struct args *a, int option)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (actions[i].option == option && actions[i].action < a->action)
            a->action = actions[i].action;
}

/* found may carry a password, so it is quoted as everywhere. */
static int usage(const char *expected, const char *found)
{
    char quoted[CONF_QUOTE_MAX];
    if (expected)
        (void)fprintf(stderr, "sidflake: expected %s, found %s\n", expected,
                      conf_quote(quoted, span_str(found)));
    (void)fputs("Try 'sidflake --help'.\n", stderr);
    return EXIT_USAGE;
}

static int parse(struct args *a, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "c:tVh", long_options, NULL)) != -1) {
        if (option == '?')
            return usage(NULL, NULL); /* getopt has said what is wrong */
        if (option == 'c')
            a->file = optarg;
        if (option == LONG_SET) {
            if (!strchr(optarg, '='))
                return usage("PATH=VALUE after --set", optarg);
            a->sets[a->nsets++] = optarg;
        }
        rank(a, option);
    }
    return optind < argc ? usage("only options", argv[optind]) : 0;
}

/* Output that was cut short must not look like success: it may be somebody's new config file. */
static int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    perror("sidflake: standard output");
    return EXIT_OUTPUT;
}

static int say(enum action action)
{
    if (action == ACTION_HELP)
        (void)fputs(help_text, stdout);
    else if (action == ACTION_VERSION)
        (void)puts("sidflake " SIDFLAKE_VERSION);
    else
        conf_help(stdout);
    return finish_output();
}

static int test(const struct args *a, struct conf *c, struct heir *h)
{
    struct err e;
    enum err_code r = app_rehearse(c, h, &e);
    for (size_t i = 0; i < c->warnings.n; i++)
        (void)fprintf(stderr, "warning: %s\n", c->warnings.item[i]);
    if (r) {
        (void)fprintf(stderr, "%s\n", e.text);
        return r == ERR_NOMEM ? EXIT_FAILURE : EXIT_CONFIG;
    }
    (void)printf("%s: OK\n", a->file ? a->file : "defaults");
    if (h->state == HEIR_REHEARSES)
        (void)puts(HEIR_AGREES);
    return finish_output();
}

static int dump(const struct conf *c)
{
    conf_dump(c, stdout);
    return finish_output();
}

/* There are users, who must log in, and servers behind, which none of them may use. */
static bool is_in_vain(const struct conf *c, const struct users *users)
{
    for (size_t i = 0; i < users->n; i++)
        if (users->user[i].upstream != USER_NONE)
            return false;
    return conf_protocol_upstreams(c) > 0 && users->n > 0 && c->auth_mode == CONF_AUTH_REQUIRED;
}

/* Read again by whoever needs them: here only to be refused with the rest of the configuration, or
 * warned of. */
static enum err_code judge_users(const char *path, struct err *e)
{
    struct users users;
    enum err_code r = users_load(&users, path, e);
    users_clear(&users);
    return r;
}

static enum err_code warn_of_users(struct conf *c, struct err *e)
{
    struct users users;
    enum err_code r = users_load(&users, c->auth_users_file, e);
    if (!r && c->auth_users_file[0] && users.n == 0)
        r = conf_list_add(&c->warnings,
                          SPAN("auth.users_file: it names nobody: who has to log in cannot"), e);
    if (!r && is_in_vain(c, &users))
        r = conf_list_add(&c->warnings,
                          SPAN("auth.users_file: no user has upstream=read or upstream=all: nobody "
                               "may use the servers behind"),
                          e);
    users_clear(&users);
    return r;
}

/* The configuration was right a moment ago, when this program rehearsed: a service manager is to
 * try again. */
static int final(int status, const struct heir *h)
{
    return status == EXIT_CONFIG && h->state == HEIR_TAKES ? EXIT_FAILURE : status;
}

static enum err_code read_conf(struct conf *c, const struct args *a, bool again,
                               struct conf_list *errors, struct err *e)
{
    enum err_code r =
        (again ? conf_reload : conf_load)(c, a->file, a->sets, a->nsets, environ, errors, e);
    if (!r && (r = warn_of_users(c, e)))
        conf_clear(c);
    return r;
}

static int with_conf(const struct args *a, char *const *argv)
{
    struct conf c;
    struct heir h;
    struct err e;
    int status;
    heir_init(&h);
    struct conf_list errors = {.n = 0};
    conf_judges = (struct conf_judges){.url = coordinator_judge,
                                       .sequence = coordinator_judge_sequence,
                                       .coordinator = coordinator_check,
                                       .users = judge_users,
                                       .is_coordinator = coordinator_is_there,
                                       .is_own_coordinator = coordinator_is_here};
    /* What came through a pipe has been read by the program before: nothing is left of it. */
    bool again = h.state != HEIR_NONE || h.why.code;
    enum err_code rc = read_conf(&c, a, again, &errors, &e);
    for (unsigned tries = 0; rc && rc != ERR_NOMEM && heir_waits(&h, &tries);) {
        conf_list_clear(&errors);
        rc = read_conf(&c, a, again, &errors, &e);
    }
    for (size_t i = 0; i < errors.n; i++)
        (void)fprintf(stderr, "%s\n", errors.item[i]);
    if (rc && (errors.n == 0 || rc == ERR_NOMEM)) /* which is the end, and no error of the file */
        (void)fprintf(stderr, "%s\n", e.text);
    conf_list_clear(&errors);
    if (rc)
        return rc == ERR_NOMEM ? EXIT_FAILURE : final(EXIT_CONFIG, &h);
    if (a->action == ACTION_DUMP)
        status = dump(&c);
    else if (a->action == ACTION_TEST)
        status = test(a, &c, &h);
    else
        status = app_run(&c, &(struct app_start){.file = a->file,
                                                 .sets = a->sets,
                                                 .nsets = a->nsets,
                                                 .envp = environ,
                                                 .argv = argv,
                                                 .heir = &h});
    status = final(status, &h);
    heir_clear(&h);
    conf_clear(&c);
    return status;
}

int main(int argc, char **argv)
{
    struct args a = {.action = ACTION_RUN};
    (void)signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of write(2), like a full disk */
    a.sets = calloc((size_t)argc + 1, sizeof *a.sets);
    if (!a.sets) {
        perror("sidflake: arguments");
        return EXIT_OUTPUT;
    }
    int status = parse(&a, argc, argv);
    /* These load no configuration: help is wanted most when that is broken. */
    if (status == 0 && a.action <= ACTION_HELP_CONFIG)
        status = say(a.action);
    else if (status == 0)
        status = with_conf(&a, argv);
    free(a.sets);
    return status;
}
