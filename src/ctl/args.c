/*
 * sidflakectl: options.
 */
#include "ctl/args.h"

#include "base/dec.h"
#include "base/distance.h"
#include "base/timefmt.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* How the text of an option is read. */
enum kind {
    KIND_TEXT,
    KIND_FLAG,
    KIND_TIME,
    KIND_DURATION,
    KIND_SECONDS, /* a duration, or a bare number of seconds */
    KIND_NUMBER,
    KIND_COUNTING, /* a number of a sequence, which may be negative */
    KIND_WORD,     /* coord/seq_options.h knows how */
    KIND_HELP,
    KIND_VERSION
};

/* One row an option. */
static const struct opt {
    const char *name;
    char letter; /* of the short form, or 0 */
    enum kind kind;
    size_t offset;     /* of its value in struct ctl_args */
    size_t said;       /* of a bool that says that it was given; 0: none */
    uint32_t min, max; /* KIND_NUMBER; KIND_SECONDS: ms */
    const char *value; /* what its value is called in --help; NULL: it has none */
    const char *help;
    const char *expect; /* what the text must be */
} opts[] = {
#define AT(field) offsetof(struct ctl_args, field)
    /* clang-format off */
    {"coordinator", 0, KIND_TEXT, AT(coordinator), 0, 0, 0, "URL",
     "pool and seq: else $SIDFLAKE_COORDINATOR_URL", NULL},
    {"pool", 0, KIND_TEXT, AT(pool), 0, 0, 0, "NAME",
     "else $SIDFLAKE_COORDINATOR_POOL, or default", NULL},
    {"password-file", 0, KIND_TEXT, AT(password_file), 0, 0, 0, "FILE",
     "it holds the password and nothing else", NULL},
    {"fresh", 0, KIND_FLAG, AT(fresh), 0, 0, 0, NULL,
     "nobody ever issued IDs of this ID space: no wait", NULL},
    {"after-loss", 0, KIND_FLAG, AT(after_loss), 0, 0, 0, NULL,
     "a pool was lost: its --workers rest first", NULL},
    {"workers", 0, KIND_TEXT, AT(workers), 0, 0, 0, "FROM-TO",
     "its workerIds; alone: never used before: no wait", NULL},
    {"epoch", 0, KIND_TIME, AT(epoch_ms), AT(has_epoch), 0, 0, "RFC3339",
     "time 0 of the IDs (2026-01-01T00:00:00Z)", "a time as in RFC 3339, such as 2026-01-01T00:00:00Z"},
    {"layout", 0, KIND_TEXT, AT(layout), 0, 0, 0, "LAYOUT",
     "bits of the IDs: a name, or fields (sidflake)", NULL},
    {"uuid", 0, KIND_TEXT, AT(uuid), 0, 0, 0, "UUID", "of the pool (at random)", NULL},
    {"if-missing", 0, KIND_FLAG, AT(if_missing), 0, 0, 0, NULL,
     "a pool that is there already is no error", NULL},
    {"horizon", 0, KIND_DURATION, AT(params.horizon_ms), AT(has_horizon), 0, 0, "1h",
     "longest range granted ahead, up to 24h", "a duration such as 1h"},
    {"first-horizon", 0, KIND_DURATION, AT(params.first_horizon_ms), 0, 0, 0, "30s",
     "the same for a young tenure", "a duration such as 30s"},
    {"mature-after", 0, KIND_DURATION, AT(params.mature_after_ms), 0, 0, 0, "120s",
     "age from which a tenure is not young", "a duration such as 2m"},
    {"max-skew", 0, KIND_DURATION, AT(params.max_skew_ms), AT(has_max_skew), 0, 0, "2s",
     "allowed difference of clocks", "a duration such as 2s"},
    {"grace", 0, KIND_DURATION, AT(params.grace_ms), 0, 0, 0, "60s",
     "rest of an expired workerId", "a duration such as 1m"},
    {"replicas", 0, KIND_NUMBER, AT(params.replicas), AT(has_replicas), 0, 100, "0",
     "that must acknowledge a grant", "a number from 0 to 100"},
    {"settle", 0, KIND_DURATION, AT(settle_ms), AT(has_settle), 0, 0, "TIME",
     "bet after a restart: see sidflakectl(1) (horizon)", "a duration such as 2m"},
    {"least-settle", 0, KIND_DURATION, AT(least_settle_ms), AT(has_least_settle), 0, 0, "TIME",
     "the shortest that the pool had before", "a duration such as 2m"},
    {"ahead", 0, KIND_DURATION, AT(ahead_ms), AT(has_ahead), 0, 0, "TIME",
     "farthest that any pool lost before granted ahead", "a duration such as 24h"},
    {"nothing-lost", 0, KIND_FLAG, AT(nothing_lost), 0, 0, 0, NULL,
     "the coordinator came back with all it knew", NULL},
    {"clock-was-ahead", 0, KIND_FLAG, AT(clock_was_ahead), 0, 0, 0, NULL,
     "the coordinator's clock was ahead, and is right", NULL},
    {"worker", 0, KIND_NUMBER, AT(worker), AT(has_worker), 0, COORD_WORKERS - 1, "N",
     "the workerId", "a workerId from 0 to 32767"},
    {"yes", 0, KIND_FLAG, AT(yes), 0, 0, 0, NULL, "do not ask", NULL},
    {"even-if-alive", 0, KIND_FLAG, AT(even_if_alive), 0, 0, 0, NULL,
     "not of one that renewed a moment ago, either", NULL},
    {"moved", 0, KIND_FLAG, AT(moved), 0, 0, 0, NULL,
     "it is made again at another coordinator", NULL},
    {"moved-back", 0, KIND_FLAG, AT(moved_back), 0, 0, 0, NULL,
     "it was, and is closed there: new sidecars wait", NULL},
    {"repair", 0, KIND_FLAG, AT(repair), 0, 0, 0, NULL, "mend what is wrong", NULL},
    {"sort", 0, KIND_TEXT, AT(sort), 0, 0, 0, "KEY",
     "worker, age, left, holder or ceiling (worker)", NULL},
    {"reverse", 0, KIND_FLAG, AT(reverse), 0, 0, 0, NULL, "largest first", NULL},
    {"timeout", 0, KIND_DURATION, AT(timeout_ms), AT(has_timeout), 0, 0, "TIME",
     "stop waiting after this long, such as 90m", "a duration such as 90m"},
    {"from", 0, KIND_TEXT, AT(from), 0, 0, 0, "RFC3339", "start of the time span", NULL},
    {"to", 0, KIND_TEXT, AT(to), 0, 0, 0, "RFC3339", "its last moment", NULL},
    {"connect", 0, KIND_TEXT, AT(connect), 0, 0, 0, "ADDRESS",
     "of the sidecar: see below", NULL},
    {"prefix", 0, KIND_TEXT, AT(prefix), 0, 0, 0, "PREFIX", "of its ID keys (id:)", NULL},
    {"user", 0, KIND_TEXT, AT(user), 0, 0, 0, "NAME", "to log in as, where that is required", NULL},
    {"names", 0, KIND_TEXT, AT(names), 0, 0, 0, "GLOB,...",
     "patterns of the ID names that it may have (any)", NULL},
    {"upstream", 0, KIND_TEXT, AT(upstream), 0, 0, 0, "WORD",
     "of the servers behind: none, read or all (none)", NULL},
    {"keys", 0, KIND_TEXT, AT(keys), 0, 0, 0, "GLOB,...",
     "patterns of the keys that it may use there (any)", NULL},
    {"count", 'n', KIND_NUMBER, AT(count), 0, 1, 1000000, "N",
     "how many", "a number from 1 to 1000000"},
    {"delay", 'd', KIND_SECONDS, AT(delay_ms), 0, 100, 3600000, "SECONDS",
     "between two looks (1)", "0.1 to 3600 seconds"},
    {"once", 0, KIND_FLAG, AT(once), 0, 0, 0, NULL, "print one look as plain text", NULL},
    {"no-color", 0, KIND_FLAG, AT(no_color), 0, 0, 0, NULL,
     "no colours on a terminal, either", NULL},
    {"start", 0, KIND_WORD, 0, 0, 0, 0, "N", "the first number (1)", NULL},
    {"increment", 0, KIND_WORD, 0, 0, 0, 0, "N",
     "from one number to the next; may be negative (1)", NULL},
    {"max", 0, KIND_WORD, 0, 0, 0, 0, "M",
     "the last; counting down, the lowest (2^53-1)", NULL},
    {"cycle", 0, KIND_WORD, 0, 0, 0, 0, NULL,
     "begin again behind the last; --order strict alone", NULL},
    {"order", 0, KIND_WORD, 0, 0, 0, 0, "WORD",
     "rising in each sidecar, or strict: over all", NULL},
    {"reset", 0, KIND_WORD, 0, 0, 0, 0, "WORD",
     "begin anew: never, hour, day, month, year (never)", NULL},
    {"timezone", 0, KIND_WORD, 0, 0, 0, 0, "ZONE",
     "of --reset: UTC or an offset such as +01:00 (UTC)", NULL},
    {"subs", 0, KIND_WORD, 0, 0, 0, 0, NULL,
     "a counter for each sub: seq:NAME:SUB", NULL},
    {"max-subs", 0, KIND_WORD, 0, 0, 0, 0, "N",
     "how many, in each period (100000)", NULL},
    {"max-rate", 0, KIND_WORD, 0, 0, 0, 0, "R",
     "after a loss numbers skip to where R a second led", NULL},
    {"on-loss", 0, KIND_WORD, 0, 0, 0, 0, "WORD",
     "refuse: grants stop; trust: nothing is ever lost", NULL},
    {"template", 0, KIND_WORD, 0, 0, 0, 0, "TEXT",
     "how its numbers are written, by no:NAME", NULL},
    {"date-back", 0, KIND_WORD, 0, 0, 0, 0, "SPAN",
     "how long periods that are over have numbers (0d)", NULL},
    {"begins", 0, KIND_WORD, 0, 0, 0, 0, "RFC3339",
     "nothing is granted before (now)", NULL},
    {"new", 0, KIND_WORD, 0, 0, 0, 0, NULL,
     "there was none of this name, before a loss either", NULL},
    {"reuse", 0, KIND_WORD, 0, 0, 0, 0, NULL,
     "of one that was dropped, behind its numbers", NULL},
    {"no-older-data", 0, KIND_WORD, 0, 0, 0, 0, NULL,
     "no older data of the coordinator ever come back", NULL},
    {"back", 0, KIND_FLAG, AT(seq.back), 0, 0, 0, NULL,
     "also to numbers that were given out: they repeat", NULL},
    {"sub", 0, KIND_TEXT, AT(seq.sub), 0, 0, 0, "SUB", "the counter of this sub", NULL},
    {"period", 0, KIND_TEXT, AT(seq.period), 0, 0, 0, "DATE",
     "that of this period, such as 2026-11-22 (now)", NULL},
    {"seq", 0, KIND_TEXT, AT(seq.name), 0, 0, 0, "NAME",
     "a text of this sequence, by its template", NULL},
    {"above", 0, KIND_COUNTING, AT(seq.above), AT(seq.has_above), 0, 0, "N",
     "no number behind this one was given out", SEQ_NUMBER_EXPECTED},
    {"before", 0, KIND_TEXT, AT(seq.before), 0, 0, 0, "DATE",
     "close its periods before this one for good", NULL},
    {"json", 0, KIND_FLAG, AT(json), 0, 0, 0, NULL, "answer in JSON", NULL},
    {"help", 'h', KIND_HELP, 0, 0, 0, 0, NULL, NULL, NULL},
    {"version", 'V', KIND_VERSION, 0, 0, 0, 0, NULL, NULL, NULL},
/* clang-format on */
#undef AT
};

#define ROWS     256 /* above all letters */
#define WORD_MAX 24  /* letters of one that may be meant */
#define OPTS     (sizeof opts / sizeof *opts)

static bool has_word(const char *list, const char *word)
{
    struct span rest = span_str(list);
    while (rest.p)
        if (span_eq(span_cut(&rest, ' '), span_str(word)))
            return true;
    return false;
}

bool ctl_takes(const struct ctl_command *c, const char *option)
{
    return has_word(c->takes, option);
}

/* ---- --help ------------------------------------------------------------------------------------
 */

static int help(const struct ctl_command *c)
{
    (void)printf("Usage: sidflakectl %s%s%s%s%s%s\n%s.\n", c->group ? c->group : "",
                 c->group ? " " : "", c->name, *c->takes ? " [OPTION]..." : "", *c->rest ? " " : "",
                 c->rest, c->about);
    if (c->more)
        (void)printf("\n%s", c->more);
    (void)puts("");
    for (size_t i = 0; i < OPTS; i++) {
        const struct opt *o = &opts[i];
        char left[40];
        if (!ctl_takes(c, o->name))
            continue;
        (void)snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
                       o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
                       o->value ? " " : "", o->value ? o->value : "");
        (void)printf("  %-27s %s\n", left, o->help);
    }
    if (ctl_takes(c, "connect"))
        (void)printf("\nADDRESS: %s.\n",
                     ctl_takes(c, "epoch") ? "tcp://HOST:PORT or unix:///PATH of memcached's or "
                                             "Redis's\nprotocol"
                     : c->run == ctl_top
                         ? "http://HOST:PORT or unix:///PATH of its HTTP listener,\n"
                           "by default http://127.0.0.1:9464"
                         : "tcp://HOST:PORT or unix:///PATH of memcached's or Redis's\n"
                           "protocol, by default tcp://127.0.0.1:11212");
    return ctl_flush(CTL_OK);
}

/* ---- values ------------------------------------------------------------------------------------
 */

/* "2", "0.5" or a duration, to ms. */
static bool read_seconds(struct span text, int64_t *ms)
{
    struct span rest = text;
    struct span whole = span_cut(&rest, '.');
    uint64_t s, f = 0;
    int64_t us;
    if (timefmt_parse_duration(text, &us)) {
        *ms = us / 1000;
        return true;
    }
    if (!dec_u64(whole, &s) || s > 100000 || rest.n > 3 || (rest.p && !dec_u64(rest, &f)))
        return false;
    for (size_t i = rest.n; i < 3; i++)
        f *= 10;
    *ms = (int64_t)(s * 1000 + f);
    return true;
}

/* false: the text is not of the form that the option wants. */
static bool store(struct ctl_args *a, const struct opt *o, const char *text)
{
    char *to = (char *)a + o->offset;
    int64_t v;
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
        if (!timefmt_parse_duration(span_str(text), &v))
            return false;
        v /= 1000;
        memcpy(to, &v, sizeof v);
        return true;
    case KIND_SECONDS:
        if (!read_seconds(span_str(text), &v) || v < o->min || v > o->max)
            return false;
        memcpy(to, &v, sizeof v);
        return true;
    case KIND_NUMBER:
        if (!dec_u64(span_str(text), &number) || number < o->min || number > o->max)
            return false;
        *(uint32_t *)(void *)to = (uint32_t)number;
        return true;
    case KIND_COUNTING:
        return seq_number_read(span_str(text), (int64_t *)(void *)to);
    case KIND_WORD:
    case KIND_HELP:
    case KIND_VERSION:
        break;
    }
    return false;
}

/* ---- parsing -----------------------------------------------------------------------------------
 */

/* Of a group, or none: "seq create", "next". */
static const char *called(const struct ctl_command *c)
{
    static char text[64];
    (void)snprintf(text, sizeof text, "%s%s%s", c->group ? c->group : "", c->group ? " " : "",
                   c->name);
    return text;
}

/* The options of getopt_long: val is ROWS + the row in opts, or the letter. */
static void make_long(struct option longs[OPTS + 1], char shorts[3 * OPTS + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < OPTS; i++) {
        const struct opt *o = &opts[i];
        bool bare = !o->value;
        longs[i] = (struct option){o->name, bare ? no_argument : required_argument, NULL,
                                   o->letter ? o->letter : ROWS + (int)i};
        if (o->letter)
            shorts[n++] = o->letter;
        if (o->letter && !bare)
            shorts[n++] = ':';
    }
    longs[OPTS] = (struct option){0};
    shorts[n] = '\0';
}

static const struct opt *row_of(int val)
{
    for (size_t i = 0; i < OPTS; i++)
        if (val == (opts[i].letter ? opts[i].letter : ROWS + (int)i))
            return &opts[i];
    return NULL;
}

static bool take(const struct ctl_command *c, const struct opt *o, struct ctl_args *a, int *status)
{
    if (!o && optopt >= '0' && optopt <= '9')
        (void)ctl_fail(CTL_USAGE, "a negative number stands behind --: seq set NAME -- -5");
    if (!o) /* getopt has said why */
        return false;
    if (o->kind == KIND_HELP) {
        *status = help(c);
        return false;
    }
    if (o->kind == KIND_VERSION) {
        (void)puts("sidflakectl " SIDFLAKE_VERSION);
        *status = ctl_flush(CTL_OK);
        return false;
    }
    if (!ctl_takes(c, o->name)) {
        (void)ctl_fail(CTL_USAGE, "%s does not take --%s; see sidflakectl %s --help", called(c),
                       o->name, called(c));
        return false;
    }
    struct err e;
    if (o->kind == KIND_WORD && seq_word_read(o->name, optarg, &a->seq.words, &e)) {
        (void)ctl_fail(CTL_USAGE, "%s", e.text);
        return false;
    }
    if (o->kind != KIND_WORD && !store(a, o, optarg)) {
        (void)ctl_fail(CTL_USAGE, "--%s: expected %s, found \"%s\"", o->name, o->expect, optarg);
        return false;
    }
    return true;
}

/* Of an option that there is not; getopt has said so. */
static void suggest(const struct ctl_command *c, const char *found)
{
    char word[WORD_MAX + 1];
    const char *names[OPTS];
    size_t n = 0, length = strcspn(found, "=");
    if (length < 2 || length - 2 > WORD_MAX)
        return;
    memcpy(word, found + 2, length - 2);
    word[length - 2] = '\0';
    for (size_t i = 0; i < OPTS; i++)
        if (ctl_takes(c, opts[i].name))
            names[n++] = opts[i].name;
    const char *meant = ctl_meant(word, names, n);
    if (meant)
        (void)ctl_fail(CTL_USAGE, "did you mean --%s?", meant);
}

bool ctl_parse(const struct ctl_command *c, int argc, char **argv, struct ctl_args *a, int *status)
{
    struct option longs[OPTS + 1];
    char shorts[3 * OPTS + 1];
    int val;
    make_long(longs, shorts);
    *status = CTL_USAGE;
    while ((val = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (val == '?' && optopt == 0)
            suggest(c, argv[optind - 1]);
        if (!take(c, row_of(val), a, status))
            return false;
    }
    a->rest = argv + optind;
    a->nrest = argc - optind;
    if (a->nrest >= c->rest_min && (c->rest_max < 0 || a->nrest <= c->rest_max))
        return true;
    (void)ctl_fail(CTL_USAGE, "%s: expected %s%d argument%s, found %d; see sidflakectl %s --help",
                   called(c), c->rest_max < 0 ? "at least " : "", c->rest_min,
                   c->rest_min == 1 ? "" : "s", a->nrest, called(c));
    return false;
}

/* ---- what was meant ----------------------------------------------------------------------------
 */

const char *ctl_meant(const char *word, const char *const *words, size_t n)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance_between(span_str(word), span_str(words[i]));
        if (d < least && 3 * d <= strlen(words[i]) + 2) {
            least = d;
            best = words[i];
        }
    }
    return best;
}
