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
    "Epoch and layout are those of the pool at --coordinator, or of the sidecar at\n"              \
    "--connect; else --epoch and --layout, or those of a pool made without.\n"

/* clang-format off */
static const struct ctl_command commands[] = {
    {"pool", "init", ctl_pool_init,
     ON_POOL " fresh after-loss workers epoch layout uuid if-missing horizon first-horizon mature-after"
             " max-skew grace replicas settle least-settle ahead json", "", 0, 0,
     "Make a pool",
     "Which is true of its ID space has to be said: --fresh, --after-loss or\n"
     "--workers. On a terminal it is asked otherwise.\n"
     "--layout: sidflake, twitter, discord, instagram, sonyflake, baidu, js53, rack,\n"
     "or fields from the highest bit down, \"time:41 worker:5+5 sequence:12\", with\n"
     "the time in ms or in units, time:39,unit=10ms, and zero:N for bits that are\n"
     "always 0.\n"},
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
    {"pool", "reopen", ctl_pool_reopen, ON_POOL " nothing-lost clock-was-ahead yes json", "", 0, 0,
     "Say what a coordinator cannot know, so that the pool goes on",
     "--nothing-lost: it came back with all that it knew. New sidecars then get\n"
     "workerIds at once. Taken four renewals after it came back, and not where a\n"
     "sidecar knows more than it. Wrongly said it repeats IDs of sidecars that\n"
     "cannot reach the coordinator.\n"
     "--clock-was-ahead: its clock is right, and was ahead, so that it is behind a\n"
     "time that it has shown, and grants nothing. Wrongly said, while it is behind,\n"
     "IDs may repeat if the coordinator loses its latest writes.\n"},
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
    {"seq", "create", ctl_seq_create,
     ON_POOL " start increment max cycle order reset timezone subs max-subs max-rate on-loss"
             " template date-back begins new reuse no-older-data yes json", "NAME", 1, 1,
     "Make a sequence",
     "On a coordinator that may forget what it granted (Redis) one of --max-rate and\n"
     "--on-loss has to be said; without, it is told what each means. --max-rate: at\n"
     "least twice the peak. All but --max and --template is for good: another rate\n"
     "is another name. With a template --date-back is 400d.\n"
     "In a pool that was reopened --begins, as seq show had it, or --new is needed.\n"},
    {"seq", "alter", ctl_seq_alter, ON_POOL " max template json", "NAME", 1, 1,
     "Raise --max, or write numbers by another --template",
     "The template differs from all that it had in a literal at a fixed place, so\n"
     "that none writes another's texts. Earlier versions of the sidecar, which know\n"
     "no templates, give out no more numbers of a sequence that has one.\n"},
    {"seq", "set", ctl_seq_set, ON_POOL " sub period back no-older-data yes json", "NAME N", 2, 2,
     "Go on at N, which is ahead, or with --back behind",
     "Blocks that sidecars hold are revoked once they ask for more: until then they\n"
     "are given out. --back asks first. A negative N stands behind --: set NAME -- -5\n"},
    {"seq", "drop", ctl_seq_drop, ON_POOL " yes json", "NAME", 1, 1,
     "End a sequence; its name stays taken",
     "What sidecars hold they give out until they ask for more.\n"},
    {"seq", "list", ctl_seq_list, ON_POOL " json", "", 0, 0,
     "Each sequence: state, highest number, definition", NULL},
    {"seq", "show", ctl_seq_show, ON_POOL " sub period json", "NAME", 1, 1,
     "A sequence: definition, counters, can numbers be had", NULL},
    {"seq", "gaps", ctl_seq_gaps, ON_POOL " json", "NAME", 1, 1,
     "How many numbers each counter has skipped",
     "By the line, set and reopen. What sidecars hold, or lost with their state\n"
     "directory, is granted and not skipped: the coordinator cannot tell it.\n"},
    {"seq", "reserve", ctl_seq_reserve, ON_POOL " sub period json", "NAME N", 2, 2,
     "Take N numbers in a row, up to 1000000", NULL},
    {"seq", "reopen", ctl_seq_reopen, ON_POOL " above yes json", "NAME", 1, 1,
     "Say how far it was, where grants stopped after a loss",
     "Grants go on behind --above N, and what sidecars were granted before the loss\n"
     "behind it is revoked once they ask for more. Said too low, numbers repeat.\n"},
    {"seq", "check", ctl_seq_check, ON_POOL " json", "[NAME]...", 0, -1,
     "Whether each has numbers; exit 1 if one has none", NULL},
    {"seq", "sweep", ctl_seq_sweep, ON_POOL " before json", "NAME", 1, 1,
     "Delete counters that are over", "Those of what was dropped, and of periods that are closed.\n"},
    {NULL, "decode", ctl_decode, "epoch layout " ON_POOL " connect user seq template reset json",
     "ID...", 1, -1, "Time, workerId and sequence of IDs, or the parts of texts",
     OF_EPOCH
     "Texts are those of a sequence's template: of --seq, as its pool has it, with\n"
     "those that it had before, or of --template. Exit 1 where one is none, or its\n"
     "check digit is wrong.\n"},
    {NULL, "range", ctl_range, "from to epoch layout " ON_POOL " connect user json", "", 0, 0,
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
                "Looks after pools of workerIds and sequences, and asks running sidecars.\n",
                out);
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct ctl_command *c = &commands[i];
        const char *heading =
            c->group
                ? (c->group[0] == 'p'
                       ? "Pools; all take --coordinator URL [--pool NAME] [--password-file FILE]"
                       : "Sequences; all take the same")
            : ctl_takes(c, "epoch")   ? "IDs"
            : ctl_takes(c, "connect") ? "Sidecars; all take --connect ADDRESS"
                                      : "Users";
        if (strcmp(heading, group) != 0)
            (void)fprintf(out, "\n%s:\n", heading);
        group = heading;
        (void)fprintf(out, "  %s%s%-*s %s\n", c->group ? c->group : "", c->group ? " " : "",
                      13 - (c->group ? (int)strlen(c->group) + 1 : 0), c->name, c->about);
    }
    (void)fputs("\n  -V, --version   -h, --help; also after each command, for its options\n"
                "\n"
                "The environment gives defaults: SIDFLAKE_COORDINATOR_URL and\n"
                "SIDFLAKE_COORDINATOR_POOL. Exit status: 0; 1 not as it should be, or refused;\n"
                "2 wrong arguments; 3 no answer.\n",
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

/* The words that may stand in the place of one: of a group, or NULL: the first ones. */
static size_t words_of(const char *group, const char *names[COMMANDS])
{
    size_t n = 0;
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct ctl_command *c = &commands[i];
        if (group && c->group && strcmp(group, c->group) == 0)
            names[n++] = c->name;
        else if (!group && (!c->group || n == 0 || strcmp(names[n - 1], c->group) != 0))
            names[n++] = c->group ? c->group : c->name;
    }
    return n;
}

static int unknown(int argc, char **argv)
{
    const char *names[COMMANDS];
    size_t n = words_of(argv[1], names);
    const char *group = n > 0 ? argv[1] : "", *gap = n > 0 ? " " : "";
    if (n > 0 && asks_about_group(argc, argv))
        return overview(argc == 2 ? stderr : stdout);
    const char *word = n > 0 ? argv[2] : argv[1];
    if (n == 0)
        n = words_of(NULL, names);
    const char *meant = ctl_meant(word, names, n);
    if (!meant)
        return ctl_fail(CTL_USAGE, "no such command: %s%s%s; see sidflakectl --help", group, gap,
                        word);
    return ctl_fail(CTL_USAGE, "no such command: %s%s%s; did you mean %s%s%s?", group, gap, word,
                    group, gap, meant);
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
    (void)signal(SIGXFSZ, SIG_IGN); /* as a full disk is said */
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
        return ctl_fail(CTL_USAGE, "%s %s: expected --coordinator URL", c->group, c->name);
    return c->run(&a);
}
