/*
 * sidflakectl, the operator's tool: its commands.
 */
#include "ctl/args.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ON_POOL "coordinator pool password-file"
#define OF_EPOCH                                                                                   \
    "The epoch is that of the pool at --coordinator, or of the sidecar at --connect;\n"            \
    "without either, and without --epoch, that of a pool made without another.\n"

/* clang-format off */
static const struct ctl_command commands[] = {
    {"pool", "init", ctl_pool_init,
     ON_POOL " fresh after-loss workers epoch uuid if-missing horizon first-horizon mature-after"
             " max-skew grace replicas settle ahead json", "", 0, 0,
     "Make a pool",
     "Which is true of its ID space has to be said: --fresh, --after-loss or\n"
     "--workers. On a terminal it is asked otherwise.\n"},
    {"pool", "status", ctl_pool_status, ON_POOL " json", "", 0, 0,
     "Counts, identity, parameters, clock skew, warnings", NULL},
    {"pool", "list", ctl_pool_list, ON_POOL " sort reverse json", "", 0, 0,
     "Each workerId held: holder, age, range left, ceiling", NULL},
    {"pool", "check", ctl_pool_check, ON_POOL " repair json", "", 0, 0,
     "What is doubled, lost or orphaned; exit 1 if any", NULL},
    {"pool", "release", ctl_pool_release, ON_POOL " worker yes even-if-alive json", "", 0, 0,
     "Take back the workerId of a dead holder",
     "It keeps its range, so that a holder that lives after all repeats nothing.\n"
     "Of one that was renewed a moment ago it asks twice: --yes alone is not enough.\n"},
    {"pool", "set", ctl_pool_set, ON_POOL " settle json", "", 0, 0,
     "Change what can be changed: --settle",
     "A shorter one counts once the one before it has passed.\n"},
    {"pool", "reopen", ctl_pool_reopen, ON_POOL " nothing-lost yes json", "", 0, 0,
     "Say that a coordinator which came back lost nothing",
     "New sidecars then get workerIds at once. Taken four renewals after it came\n"
     "back, and not where a sidecar knows more than it. Wrongly said it repeats\n"
     "IDs of sidecars that cannot reach the coordinator.\n"},
    {"pool", "close", ctl_pool_close, ON_POOL " moved yes json", "", 0, 0,
     "No more grants and renewals, before a pool moves",
     "With --moved, pool open does not take it back by mistake. Asks first, unless it\n"
     "is closed already.\n"},
    {"pool", "open", ctl_pool_open, ON_POOL " moved-back horizon max-skew ahead yes json", "", 0, 0,
     "Take pool close or drain back",
     "Where the pool was made again elsewhere and lives there, IDs would repeat: that\n"
     "one has to be closed first, and --moved-back to be said: sidecars that run go\n"
     "on, new ones wait until all that it granted has ended, by --horizon, --max-skew\n"
     "and --ahead of that one, or for a day. Refused without it where the pool was\n"
     "closed with --moved, or a sidecar was heard since that knows more.\n"},
    {"pool", "drain", ctl_pool_drain, ON_POOL " moved timeout yes json", "", 0, 0,
     "Close, and wait until nobody issues IDs of it",
     "Exit status 0: every holder has returned its workerId, or its range has\n"
     "ended; 1: not so when the timeout had passed; 130: broken off by Ctrl-C.\n"
     "The pool stays closed until pool open; the same command goes on waiting, and\n"
     "closes the pool again where it was opened meanwhile. Asks first, unless it\n"
     "is closed already.\n"},
    {NULL, "decode", ctl_decode, "epoch " ON_POOL " connect user json", "ID...", 1, -1,
     "Time, workerId and sequence of IDs", OF_EPOCH},
    {NULL, "range", ctl_range, "from to epoch " ON_POOL " connect user json", "", 0, 0,
     "Smallest and largest ID of a time span", "For WHERE id BETWEEN.\n" OF_EPOCH},
    {NULL, "next", ctl_next, "connect prefix count user password-file json", "NAME", 1, 1,
     "An ID, or -n of them", NULL},
    {NULL, "ping", ctl_ping, "connect user password-file json", "", 0, 0,
     "Exit 0 when IDs can be had", "Spends none.\n"},
    {NULL, "top", ctl_top, "connect user " ON_POOL " count delay once no-color", "", 0, 0,
     "A sidecar, or with --coordinator a pool, live",
     "A pool has to be named by --coordinator, whatever the environment has.\n"
     "q ends it, space looks again at once; of a pool, s sorts by another column,\n"
     "r the other way round. Where stdout is no terminal, one look is printed as\n"
     "plain text, or -n of them.\n"},
    {NULL, "passwd", ctl_passwd, "names upstream keys", "NAME", 1, 1,
     "A line for the file of users",
     "The password is read without echo, or from standard input.\n"},
};
/* clang-format on */

#define COMMANDS (sizeof commands / sizeof *commands)

static int overview(FILE *out)
{
    const char *group = "";
    (void)fputs("Usage: sidflakectl COMMAND [OPTION]...\n"
                "Looks after pools of workerIds, and asks running sidecars.\n",
                out);
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct ctl_command *c = &commands[i];
        const char *heading =
            c->group ? "Pools; all take --coordinator URL [--pool NAME] [--password-file FILE]"
            : ctl_takes(c, "epoch")   ? "IDs"
            : ctl_takes(c, "connect") ? "Sidecars; all take --connect ADDRESS"
                                      : "Users";
        if (strcmp(heading, group) != 0)
            (void)fprintf(out, "\n%s:\n", heading);
        group = heading;
        (void)fprintf(out, "  %s%s%-*s %s\n", c->group ? c->group : "", c->group ? " " : "",
                      c->group ? 8 : 13, c->name, c->about);
    }
    (void)fputs("\n  -V, --version   -h, --help; also after each command, for its options\n"
                "\n"
                "The environment gives defaults: SIDFLAKE_COORDINATOR_URL, "
                "SIDFLAKE_COORDINATOR_POOL.\n"
                "Exit status: 0; 1 not as it should be, or refused; 2 wrong arguments; 3 no "
                "answer.\n",
                out);
    return out == stdout ? ctl_flush(CTL_OK) : CTL_USAGE;
}

static const struct ctl_command *find_command(int argc, char **argv, int *used)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct ctl_command *c = &commands[i];
        const char *words[] = {c->group ? c->group : c->name, c->group ? c->name : NULL};
        *used = c->group ? 2 : 1;
        if (argc > *used && strcmp(argv[1], words[0]) == 0 &&
            (!words[1] || strcmp(argv[2], words[1]) == 0))
            return c;
    }
    return NULL;
}

/* Whether the arguments are the words of a group, with no command of it or with --help. */
static bool asks_about_group(int argc, char **argv)
{
    return argc == 2 || strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0;
}

static int unknown(int argc, char **argv)
{
    const char *names[COMMANDS + 1] = {"pool"};
    size_t n = 1;
    bool in_group = strcmp(argv[1], "pool") == 0;
    for (size_t i = 0; i < COMMANDS; i++)
        if (in_group == (commands[i].group != NULL))
            names[in_group ? i : n++] = commands[i].name;
    if (in_group && asks_about_group(argc, argv))
        return overview(argc == 2 ? stderr : stdout);
    const char *word = in_group ? argv[2] : argv[1];
    size_t of_group = 0;
    while (of_group < COMMANDS && commands[of_group].group)
        of_group++;
    const char *meant = ctl_meant(word, names, in_group ? of_group : n);
    if (!meant)
        return ctl_fail(CTL_USAGE, "no such command: %s%s; see sidflakectl --help",
                        in_group ? "pool " : "", word);
    return ctl_fail(CTL_USAGE, "no such command: %s%s; did you mean %s%s?", in_group ? "pool " : "",
                    word, in_group ? "pool " : "", meant);
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

int main(int argc, char **argv)
{
    int used = 0, status;
    struct ctl_args a = {.pool = getenv("SIDFLAKE_COORDINATOR_POOL"),
                         .prefix = "id:",
                         .delay_ms = 1000,
                         .params = coord_params_default};
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return overview(stderr);
    if (is_one_of(argv[1], "-h", "--help"))
        return overview(stdout);
    if (is_one_of(argv[1], "-V", "--version"))
        return puts("sidflakectl " SIDFLAKE_VERSION) < 0 ? CTL_BAD : ctl_flush(CTL_OK);
    const struct ctl_command *c = find_command(argc, argv, &used);
    if (!c)
        return unknown(argc, argv);
    argv[used] = argv[0];
    if (!ctl_parse(c, argc - used, argv + used, &a, &status))
        return status;
    /* top looks at a pool only where it is told to. */
    if (c->group && !a.coordinator)
        a.coordinator = getenv("SIDFLAKE_COORDINATOR_URL");
    if (c->group && !a.coordinator)
        return ctl_fail(CTL_USAGE, "pool %s: expected --coordinator URL", c->name);
    return c->run(&a);
}
