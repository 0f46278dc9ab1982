/*
 * sidflakectl next, ping: asking a running sidecar.
 */
#include "ctl/ctl.h"

#include "base/dec.h"
#include "net/addr.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX 1024 /* bytes of a line */
#define TIMEOUT_US INT64_C(2000000)
#define ADDRESS    "tcp://127.0.0.1:11212"

static const char *address_of(const struct ctl_args *a)
{
    return a->connect ? a->connect : ADDRESS;
}

/* Sends "COMMAND PREFIX NAME", the last two as one word. */
static bool ask(FILE *f, const char *command, const char *prefix, const char *name)
{
    return fprintf(f, "%s %s%s\r\n", command, prefix, name) > 0 && fflush(f) == 0;
}

static bool wants_login(const char *line)
{
    return strncmp(line, "-NOAUTH", 7) == 0 || strcmp(line, "CLIENT_ERROR unauthenticated") == 0;
}

static int expect_user(const struct ctl_args *a)
{
    return ctl_fail(CTL_BAD, "%s: expected --user NAME --password-file FILE", address_of(a));
}

/* Logs in as both protocols want it; which one it is, the answer to PING tells. Where no login is
 * wanted none is sent: for memcached it is a `set`, and what is behind would store the password. */
static int log_in(const struct ctl_args *a, FILE *f)
{
    char line[512], shown[512], password[PASSFILE_MAX + 1];
    int status = ctl_password(a, password);
    if (status == CTL_OK && !password[0])
        status = ctl_fail(CTL_USAGE, "--user: expected --password-file FILE, too");
    if (status)
        return status;
    bool said = ask(f, "ping", "", "") && ctl_read_line(f, line, sizeof line);
    bool redis = said && (line[0] == '+' || line[0] == '-');
    bool wanted = said && wants_login(line);
    size_t user_n = strlen(a->user), n = strlen(password);
    if (wanted && redis)
        said = fprintf(f, "*3\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", user_n, a->user, n,
                       password) > 0;
    else if (wanted)
        said = fprintf(f, "set login 0 0 %zu\r\n%s %s\r\n", user_n + 1 + n, a->user, password) > 0;
    explicit_bzero(password, sizeof password);
    if (said && !wanted)
        return CTL_OK;
    if (!said || fflush(f) || !ctl_read_line(f, line, sizeof line))
        return ctl_fail(CTL_DOWN, "%s: no answer", address_of(a));
    bool ok = strcmp(line, redis ? "+OK" : "STORED") == 0;
    return ok ? CTL_OK : ctl_fail(CTL_BAD, "%s", ctl_clean(shown, sizeof shown, span_str(line)));
}

static int open_sidecar(const struct ctl_args *a, FILE **out)
{
    struct addr addr;
    struct err e;
    int fd;
    if (addr_parse(span_str(address_of(a)), &addr, &e))
        return ctl_fail(CTL_USAGE, "--connect: %s", e.text);
    if (addr_connect(&addr, TIMEOUT_US, &fd, &e))
        return ctl_fail(CTL_DOWN, "%s%s", e.text,
                        a->connect ? "" : "; --connect says where the sidecar listens");
    *out = fdopen(fd, "r+");
    if (*out) {
        int status = a->user ? log_in(a, *out) : CTL_OK;
        if (status)
            (void)fclose(*out);
        return status;
    }
    (void)close(fd);
    return ctl_fail(CTL_DOWN, "no memory for a connection");
}

/* "GET key" is a request of memcached's protocol and an inline one of Redis's; the first line of
 * the answer tells which of the two it is. CTL_OK: id is the digits. */
static int next_one(FILE *f, const struct ctl_args *a, char id[512])
{
    char line[512];
    uint64_t number;
    if (!ask(f, "get", a->prefix, a->rest[0]) || !ctl_read_line(f, line, sizeof line))
        return ctl_fail(CTL_DOWN, "%s: no answer", address_of(a));
    if (strcmp(line, "END") == 0 || strcmp(line, "$-1") == 0)
        return ctl_fail(CTL_BAD, "\"%s%s\" is no ID of this sidecar", a->prefix, a->rest[0]);
    bool memcached = strncmp(line, "VALUE ", 6) == 0;
    if (!memcached && line[0] != '$')
        return wants_login(line) ? expect_user(a)
                                 : ctl_fail(CTL_BAD, "%s", ctl_clean(id, 512, span_str(line)));
    if (!ctl_read_line(f, id, 512) || (memcached && !ctl_read_line(f, line, sizeof line)))
        return ctl_fail(CTL_DOWN, "%s: the answer was cut short", address_of(a));
    if (!dec_u64(span_str(id), &number))
        return ctl_fail(CTL_BAD, "%s: expected an ID, found \"%s\"", address_of(a),
                        ctl_clean(line, sizeof line, span_str(id)));
    return CTL_OK;
}

/* One by one as they come: what was spent is told, should a later one fail. */
static int next_all(FILE *f, const struct ctl_args *a, uint32_t count)
{
    struct ctl_progress progress;
    char id[512];
    int status = CTL_OK;
    ctl_progress_begin(&progress, isatty(STDOUT_FILENO) == 1);
    if (a->json)
        (void)fputs("[", stdout);
    for (uint32_t i = 0; i < count && status == CTL_OK; i++) {
        status = next_one(f, a, id);
        if (status == CTL_OK && a->json)
            (void)printf("%s\n  {\"id\": \"%s\"}", i > 0 ? "," : "", id);
        else if (status == CTL_OK && puts(id) < 0)
            break;
        ctl_progress_show(&progress, "%s of %s IDs", ctl_number(i + 1), ctl_number(count));
    }
    ctl_progress_end(&progress);
    if (a->json)
        (void)fputs("\n]\n", stdout);
    return ctl_flush(status);
}

int ctl_next(struct ctl_args *a)
{
    FILE *f;
    if (strpbrk(a->rest[0], " \t\r\n") || strlen(a->rest[0]) > 200)
        return ctl_fail(CTL_USAGE,
                        "next: expected a name of up to 200 bytes without spaces, found "
                        "\"%s\"",
                        a->rest[0]);
    int status = open_sidecar(a, &f);
    if (status)
        return status;
    status = next_all(f, a, a->count > 0 ? a->count : 1);
    (void)fclose(f);
    return status;
}

static bool is_error(const char *line)
{
    return line[0] == '-' || strncmp(line, "SERVER_ERROR ", 13) == 0;
}

/* What memcached's protocol, or Redis's, calls a figure in the statistics of a sidecar. */
struct figure {
    const char *stat, *info;
};

/* Spends no ID, and is answered by sidflake, whatever is behind: both protocols tell in statistics
 * of its own what is asked here. CTL_OK: *value points into line. Else it was told why not. */
static int ask_figure(const struct ctl_args *a, const struct figure *what, char line[ANSWER_MAX],
                      const char **value)
{
    FILE *f;
    char shown[ANSWER_MAX];
    int status = open_sidecar(a, &f);
    if (status)
        return status;
    bool redis = false, wanted = false, asked = ask(f, "stats", "", "sidflake");
    *value = NULL;
    line[0] = '\0';
    while (asked && !*value && !wanted && ctl_read_line(f, line, ANSWER_MAX)) {
        wanted = wants_login(line);
        if (strncmp(line, what->stat, strlen(what->stat)) == 0)
            *value = line + strlen(what->stat);
        else if (strncmp(line, what->info, strlen(what->info)) == 0)
            *value = line + strlen(what->info);
        else if (line[0] == '-' && !redis && !wanted)
            asked = redis = ask(f, "info", "", "sidflake");
        else if (strcmp(line, "END") == 0 || strcmp(line, "ERROR") == 0 || line[0] == '-')
            break;
    }
    (void)fclose(f);
    if (*value)
        return CTL_OK;
    if (wanted)
        return expect_user(a);
    if (is_error(line))
        return ctl_fail(CTL_BAD, "%s: %s", address_of(a),
                        ctl_clean(shown, sizeof shown, span_str(line)));
    return ctl_fail(CTL_DOWN, "%s: no answer that a sidecar gives", address_of(a));
}

int ctl_sidecar_space(const struct ctl_args *a, int64_t *epoch_ms, struct layout *layout)
{
    static const struct figure identity = {"STAT sidflake_pool_identity ", "pool_identity:"};
    char line[ANSWER_MAX];
    const char *value;
    struct err e;
    int status = ask_figure(a, &identity, line, &value);
    if (status)
        return status;
    if (!*value)
        return ctl_fail(CTL_BAD, "%s: this sidecar has found no pool yet, and knows no epoch",
                        address_of(a));
    if (coord_identity_read(value, epoch_ms, layout, &e))
        return ctl_fail(CTL_BAD, "%s: %s", address_of(a), e.text);
    return CTL_OK;
}

int ctl_ping(struct ctl_args *a)
{
    static const struct figure is_ready = {"STAT sidflake_ready ", "sidflake_ready:"};
    char line[ANSWER_MAX];
    const char *value;
    int status = ask_figure(a, &is_ready, line, &value);
    if (status)
        return status;
    bool ready = value[0] == '1';
    if (a->json)
        return ctl_print_json(ready ? CTL_OK : CTL_BAD, json_pack("{s:b}", "ready", ready));
    return ready ? CTL_OK : ctl_fail(CTL_BAD, "no ID can be had now");
}
