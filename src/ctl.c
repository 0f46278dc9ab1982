/*
 * sidflakectl, the operator's tool: arguments, and what the commands share.
 */
#include "ctl.h"

#include "base/dec.h"
#include "base/timefmt.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: sidflakectl COMMAND [OPTION]...\n"
    "Looks after pools of workerIds, and asks running sidecars.\n"
    "\n"
    "Pools; all take --coordinator URL [--pool NAME] [--password-file FILE]:\n"
    "  pool init     make a pool; say which is true of its ID space:\n"
    "                  --fresh           nobody ever issued IDs of it: no wait\n"
    "                  --after-loss      a pool was lost or restored: workerIds rest until\n"
    "                                    no earlier holder can still be issuing\n"
    "                  --workers FROM-TO only these workerIds, never used before: no wait\n"
    "                [--epoch RFC3339] [--uuid UUID] [--if-missing] [--horizon 1h]\n"
    "                [--first-horizon 30s] [--mature-after 120s] [--max-skew 2s]\n"
    "                [--grace 60s] [--replicas 0]\n"
    "  pool status   counts, identity, era, parameters, lifetime, clock skew [--json]\n"
    "  pool list     each workerId held: holder, age, range left, ceiling [--json]\n"
    "  pool release  --worker N: take back a dead holder's workerId [--yes]\n"
    "  pool check    what is doubled, lost or orphaned; exit 1 if any [--repair] [--json]\n"
    "  pool close    no more grants, before the pool moves to another server\n"
    "\n"
    "IDs:\n"
    "  decode ID...  time, workerId and sequence [--epoch RFC3339] [--json]\n"
    "  range         --from RFC3339 --to RFC3339 [--epoch RFC3339] [--json]: smallest and\n"
    "                largest ID of a time span, for WHERE id BETWEEN\n"
    "\n"
    "Sidecars; [--connect ADDRESS], by default tcp://127.0.0.1:11212:\n"
    "  next NAME     an ID, or with -n N several, one a line [--prefix id:]\n"
    "  ping          exit 0 when IDs can be had\n"
    "\n"
    "  -V, --version   -h, --help\n"
    "\n"
    "The environment gives defaults: SIDFLAKE_COORDINATOR_URL, SIDFLAKE_COORDINATOR_POOL.\n"
    "Exit status: 0; 1 not as it should be, or refused; 2 wrong arguments; 3 no answer.\n";

static const char version[] = "sidflakectl " SIDFLAKE_VERSION "\n";

/* ---- what the commands share ------------------------------------------------------------------
 */

int ctl_fail(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fputs("sidflakectl: ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    return status;
}

int ctl_print_json(json_t *j)
{
    int r = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(j);
    if (r == 0 && putchar('\n') != EOF && fflush(stdout) == 0)
        return CTL_OK;
    return ctl_fail(CTL_BAD, "cannot write to standard output");
}

static char *scratch(void)
{
    static char text[8][48];
    static unsigned turn;
    return text[turn++ % 8];
}

const char *ctl_time(int64_t unix_ms)
{
    return timefmt_rfc3339(scratch(), unix_ms);
}

const char *ctl_span(int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *name, *smaller;
        int64_t smaller_ms;
    } units[] = {
        {86400000, "d", "h", 3600000}, {3600000, "h", "min", 60000}, {60000, "min", "s", 1000}};
    char *out = scratch();
    const char *sign = ms < 0 ? "-" : "";
    int64_t v = ms < 0 ? -ms : ms;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (v < units[i].ms)
            continue;
        (void)snprintf(out, 48, "%s%lld %s %lld %s", sign, (long long)(v / units[i].ms),
                       units[i].name, (long long)(v % units[i].ms / units[i].smaller_ms),
                       units[i].smaller);
        return out;
    }
    (void)snprintf(out, 48, "%s%lld.%03lld s", sign, (long long)(v / 1000), (long long)(v % 1000));
    return out;
}

bool ctl_confirm(const char *question)
{
    char answer[8] = "";
    (void)fprintf(stderr, "%s [y/N] ", question);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* ---- arguments --------------------------------------------------------------------------------
 */

/* How the text of an option is read. */
enum kind {
    KIND_TEXT,
    KIND_FLAG,
    KIND_TIME,
    KIND_DURATION,
    KIND_NUMBER,
    KIND_HELP,
    KIND_VERSION
};

/* One row an option: its number in the masks of the commands is its place here. */
static const struct opt {
    const char *name;
    enum kind kind;
    size_t offset;      /* of its value in struct ctl_args */
    size_t said;        /* of a bool that says that it was given; 0: none */
    const char *expect; /* what the text must be */
    uint32_t min, max;  /* KIND_NUMBER */
} opts[] = {
#define AT(field) offsetof(struct ctl_args, field)
    {"coordinator", KIND_TEXT, AT(coordinator), 0, NULL, 0, 0},
    {"pool", KIND_TEXT, AT(pool), 0, NULL, 0, 0},
    {"password-file", KIND_TEXT, AT(password_file), 0, NULL, 0, 0},
    {"fresh", KIND_FLAG, AT(fresh), 0, NULL, 0, 0},
    {"after-loss", KIND_FLAG, AT(after_loss), 0, NULL, 0, 0},
    {"workers", KIND_TEXT, AT(workers), 0, NULL, 0, 0},
    {"epoch", KIND_TIME, AT(epoch_ms), AT(has_epoch),
     "a time as in RFC 3339, such as 2026-01-01T00:00:00Z", 0, 0},
    {"uuid", KIND_TEXT, AT(uuid), 0, NULL, 0, 0},
    {"if-missing", KIND_FLAG, AT(if_missing), 0, NULL, 0, 0},
    {"horizon", KIND_DURATION, AT(params.horizon_ms), 0, "a duration such as 1h", 0, 0},
    {"first-horizon", KIND_DURATION, AT(params.first_horizon_ms), 0, "a duration such as 30s", 0,
     0},
    {"mature-after", KIND_DURATION, AT(params.mature_after_ms), 0, "a duration such as 2m", 0, 0},
    {"max-skew", KIND_DURATION, AT(params.max_skew_ms), 0, "a duration such as 2s", 0, 0},
    {"grace", KIND_DURATION, AT(params.grace_ms), 0, "a duration such as 1m", 0, 0},
    {"replicas", KIND_NUMBER, AT(params.replicas), 0, "a number from 0 to 100", 0, 100},
    {"json", KIND_FLAG, AT(json), 0, NULL, 0, 0},
    {"worker", KIND_NUMBER, AT(worker), AT(has_worker), "a workerId from 0 to 32767", 0,
     COORD_WORKERS - 1},
    {"yes", KIND_FLAG, AT(yes), 0, NULL, 0, 0},
    {"repair", KIND_FLAG, AT(repair), 0, NULL, 0, 0},
    {"from", KIND_TEXT, AT(from), 0, NULL, 0, 0},
    {"to", KIND_TEXT, AT(to), 0, NULL, 0, 0},
    {"connect", KIND_TEXT, AT(connect), 0, NULL, 0, 0},
    {"prefix", KIND_TEXT, AT(prefix), 0, NULL, 0, 0},
    {"count", KIND_NUMBER, AT(count), 0, "a number from 1 to 1000000", 1, 1000000},
    {"help", KIND_HELP, 0, 0, NULL, 0, 0},
    {"version", KIND_VERSION, 0, 0, NULL, 0, 0},
#undef AT
};

#define OPTS (sizeof opts / sizeof *opts)

#define ON_POOL "coordinator pool password-file"

static const struct command {
    const char *group, *name; /* group NULL: the name alone */
    int (*run)(struct ctl_args *);
    const char *takes;      /* options, parted by spaces */
    int rest_min, rest_max; /* arguments that are no options; -1: any number */
} commands[] = {
    {"pool", "init", ctl_pool_init,
     ON_POOL " fresh after-loss workers epoch uuid if-missing horizon first-horizon mature-after"
             " max-skew grace replicas",
     0, 0},
    {"pool", "close", ctl_pool_close, ON_POOL, 0, 0},
    {"pool", "status", ctl_pool_status, ON_POOL " json", 0, 0},
    {"pool", "list", ctl_pool_list, ON_POOL " json", 0, 0},
    {"pool", "release", ctl_pool_release, ON_POOL " worker yes", 0, 0},
    {"pool", "check", ctl_pool_check, ON_POOL " repair json", 0, 0},
    {NULL, "decode", ctl_decode, "epoch json", 1, -1},
    {NULL, "range", ctl_range, "from to epoch json", 0, 0},
    {NULL, "next", ctl_next, "connect prefix count", 1, 1},
    {NULL, "ping", ctl_ping, "connect", 0, 0},
};

static bool takes(const struct command *c, const char *option)
{
    struct span rest = span_str(c->takes);
    while (rest.p)
        if (span_eq(span_cut(&rest, ' '), span_str(option)))
            return true;
    return false;
}

/* false: the text is not of the form that the option wants. */
static bool store(struct ctl_args *a, const struct opt *o, const char *text)
{
    char *to = (char *)a + o->offset;
    int64_t us;
    uint64_t number;
    if (o->said)
        *((bool *)a + o->said) = true;
    switch (o->kind) {
    case KIND_TEXT:
        memcpy(to, &text, sizeof text);
        return true;
    case KIND_FLAG:
        *(bool *)to = true;
        return true;
    case KIND_TIME:
        return timefmt_parse_rfc3339(span_str(text), (int64_t *)(void *)to);
    case KIND_DURATION:
        if (!timefmt_parse_duration(span_str(text), &us))
            return false;
        us /= 1000;
        memcpy(to, &us, sizeof us);
        return true;
    case KIND_NUMBER:
        if (!dec_u64(span_str(text), &number) || number < o->min || number > o->max)
            return false;
        *(uint32_t *)(void *)to = (uint32_t)number;
        return true;
    case KIND_HELP:
    case KIND_VERSION:
        break;
    }
    return false;
}

static const struct command *find_command(int argc, char **argv, int *used)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct command *c = &commands[i];
        const char *words[] = {c->group ? c->group : c->name, c->group ? c->name : NULL};
        *used = c->group ? 2 : 1;
        if (argc > *used && strcmp(argv[1], words[0]) == 0 &&
            (!words[1] || strcmp(argv[2], words[1]) == 0))
            return c;
    }
    return NULL;
}

static int say(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) ? CTL_BAD : CTL_OK;
}

/* The options of getopt_long: val is 1 + the row in opts. */
static void make_long(struct option out[OPTS + 1])
{
    for (size_t i = 0; i < OPTS; i++) {
        bool bare = opts[i].kind == KIND_FLAG || opts[i].kind >= KIND_HELP;
        out[i] =
            (struct option){opts[i].name, bare ? no_argument : required_argument, NULL, 1 + (int)i};
    }
    out[OPTS] = (struct option){0};
}

static const struct opt *row_of(int val)
{
    const char *name = val == 'n' ? "count" : val == 'h' ? "help" : val == 'V' ? "version" : NULL;
    if (!name)
        return val >= 1 && val <= (int)OPTS ? &opts[val - 1] : NULL;
    for (size_t i = 0; i < OPTS; i++)
        if (strcmp(opts[i].name, name) == 0)
            return &opts[i];
    return NULL;
}

/* true: go on and run the command; else *status is the exit status. */
static bool parse(const struct command *c, int argc, char **argv, struct ctl_args *a, int *status)
{
    struct option longs[OPTS + 1];
    int val;
    make_long(longs);
    *status = CTL_USAGE;
    while ((val = getopt_long(argc, argv, "n:hV", longs, NULL)) != -1) {
        const struct opt *o = row_of(val);
        if (!o)
            return false; /* getopt has said why */
        if (o->kind >= KIND_HELP) {
            *status = say(o->kind == KIND_HELP ? usage : version);
            return false;
        }
        if (!takes(c, o->name)) {
            (void)ctl_fail(CTL_USAGE, "%s does not take --%s; see sidflakectl --help", c->name,
                           o->name);
            return false;
        }
        if (!store(a, o, optarg)) {
            (void)ctl_fail(CTL_USAGE, "--%s: expected %s, found \"%s\"", o->name, o->expect,
                           optarg);
            return false;
        }
    }
    a->rest = argv + optind;
    a->nrest = argc - optind;
    if (a->nrest >= c->rest_min && (c->rest_max < 0 || a->nrest <= c->rest_max))
        return true;
    (void)ctl_fail(CTL_USAGE, "%s: expected %d argument%s, found %d; see sidflakectl --help",
                   c->name, c->rest_min, c->rest_min == 1 ? "" : "s", a->nrest);
    return false;
}

int main(int argc, char **argv)
{
    int used = 0, status;
    struct ctl_args a = {.coordinator = getenv("SIDFLAKE_COORDINATOR_URL"),
                         .pool = getenv("SIDFLAKE_COORDINATOR_POOL"),
                         .connect = "tcp://127.0.0.1:11212",
                         .prefix = "id:",
                         .count = 1,
                         .params = coord_params_default};
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0))
        return say(usage);
    if (argc > 1 && (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0))
        return say(version);
    const struct command *c = find_command(argc, argv, &used);
    if (!c) {
        if (argc > 1)
            (void)ctl_fail(CTL_USAGE, "no such command: %s%s%s", argv[1], argc > 2 ? " " : "",
                           argc > 2 ? argv[2] : "");
        (void)fputs(usage, stderr);
        return CTL_USAGE;
    }
    argv[used] = argv[0];
    if (!parse(c, argc - used, argv + used, &a, &status))
        return status;
    if (takes(c, "coordinator") && !a.coordinator)
        return ctl_fail(CTL_USAGE, "pool %s: expected --coordinator URL", c->name);
    return c->run(&a);
}
