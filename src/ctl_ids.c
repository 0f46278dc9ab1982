/*
 * sidflakectl decode, range, next, ping: IDs, and the sidecars that give them out.
 */
#include "ctl.h"

#include "base/dec.h"
#include "base/timefmt.h"
#include "ids/layout.h"
#include "net/addr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_US INT64_C(2000000)

/* ---- arithmetic -------------------------------------------------------------------------------
 */

static int64_t epoch_of(const struct ctl_args *a)
{
    return a->has_epoch ? a->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS;
}

int ctl_decode(struct ctl_args *a)
{
    json_t *list = json_array();
    for (int i = 0; i < a->nrest; i++) {
        struct layout_parts p;
        uint64_t id;
        if (!dec_u64(span_str(a->rest[i]), &id) || !layout_decompose(id, &p)) {
            json_decref(list);
            return ctl_fail(CTL_USAGE,
                            "decode: expected an ID from 0 to 9223372036854775807, found "
                            "\"%s\"",
                            a->rest[i]);
        }
        int64_t ms = epoch_of(a) + p.time;
        if (a->json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:I, s:i, s:i}", "id", a->rest[i], "time",
                                            ctl_time(ms), "unix_ms", (json_int_t)ms, "worker",
                                            (int)p.worker, "sequence", (int)p.sequence));
        else
            (void)printf("%s time=%s unix_ms=%lld worker=%u sequence=%u\n", a->rest[i],
                         ctl_time(ms), (long long)ms, p.worker, p.sequence);
    }
    if (a->json)
        return ctl_print_json(list);
    json_decref(list);
    return CTL_OK;
}

int ctl_range(struct ctl_args *a)
{
    int64_t from, to, epoch = epoch_of(a);
    char lo[24], hi[24];
    if (!a->from || !timefmt_parse_rfc3339(span_str(a->from), &from))
        return ctl_fail(CTL_USAGE, "range: expected --from RFC3339, found \"%s\"",
                        a->from ? a->from : "");
    if (!a->to || !timefmt_parse_rfc3339(span_str(a->to), &to))
        return ctl_fail(CTL_USAGE, "range: expected --to RFC3339, found \"%s\"",
                        a->to ? a->to : "");
    if (from > to || from < epoch || to > layout_end_ms(epoch))
        return ctl_fail(CTL_USAGE, "range: expected %s <= --from <= --to <= %s, found %s and %s",
                        ctl_time(epoch), ctl_time(layout_end_ms(epoch)), ctl_time(from),
                        ctl_time(to));
    (void)snprintf(lo, sizeof lo, "%llu", (unsigned long long)layout_compose(from - epoch, 0, 0));
    (void)snprintf(
        hi, sizeof hi, "%llu",
        (unsigned long long)layout_compose(to - epoch, LAYOUT_WORKERS - 1, LAYOUT_SEQUENCES - 1));
    if (a->json)
        return ctl_print_json(json_pack("{s:s, s:s}", "smallest", lo, "largest", hi));
    (void)printf("%s %s\n", lo, hi);
    return CTL_OK;
}

/* ---- asking a sidecar -------------------------------------------------------------------------
 */

/* A line of the answer without its end; false: none came. */
static bool read_line(FILE *f, char *line, size_t cap)
{
    if (!fgets(line, (int)cap, f))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

/* Sends "COMMAND PREFIX NAME", the last two as one word. */
static bool ask(FILE *f, const char *command, const char *prefix, const char *name)
{
    return fprintf(f, "%s %s%s\r\n", command, prefix, name) > 0 && fflush(f) == 0;
}

static int open_sidecar(const struct ctl_args *a, FILE **out)
{
    struct addr addr;
    struct err e;
    int fd;
    if (addr_parse(span_str(a->connect), &addr, &e))
        return ctl_fail(CTL_USAGE, "--connect: %s", e.text);
    if (addr_connect(&addr, TIMEOUT_US, &fd, &e))
        return ctl_fail(CTL_DOWN, "%s", e.text);
    *out = fdopen(fd, "r+");
    if (*out)
        return CTL_OK;
    (void)close(fd);
    return ctl_fail(CTL_DOWN, "no memory for a connection");
}

/* "GET key" is a request of memcached's protocol and an inline one of Redis's; the first line of
 * the answer tells which of the two it is. */
static int next_one(FILE *f, const struct ctl_args *a)
{
    char line[512], id[512];
    if (!ask(f, "get", a->prefix, a->rest[0]) || !read_line(f, line, sizeof line))
        return ctl_fail(CTL_DOWN, "%s: no answer", a->connect);
    if (strcmp(line, "END") == 0 || strcmp(line, "$-1") == 0)
        return ctl_fail(CTL_BAD, "\"%s%s\" is no ID of this sidecar", a->prefix, a->rest[0]);
    bool memcached = strncmp(line, "VALUE ", 6) == 0;
    if (!memcached && line[0] != '$')
        return ctl_fail(CTL_BAD, "%s", line);
    if (!read_line(f, id, sizeof id) || (memcached && !read_line(f, line, sizeof line)))
        return ctl_fail(CTL_DOWN, "%s: the answer was cut short", a->connect);
    return puts(id) < 0 ? CTL_BAD : CTL_OK;
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
    for (uint32_t i = 0; i < a->count && status == CTL_OK; i++)
        status = next_one(f, a);
    (void)fclose(f);
    return status;
}

/* Spends no ID: both protocols tell in their statistics whether one could be had. */
int ctl_ping(struct ctl_args *a)
{
    static const char stat[] = "STAT sidflake_ready ";
    static const char info[] = "sidflake_ready:";
    char line[1024];
    FILE *f;
    int status = open_sidecar(a, &f);
    if (status)
        return status;
    const char *ready = NULL;
    bool asked = ask(f, "stats", "", "");
    while (asked && !ready && read_line(f, line, sizeof line)) {
        if (strncmp(line, "-ERR unknown command", 20) == 0)
            asked = ask(f, "info", "", "sidflake");
        else if (strncmp(line, stat, sizeof stat - 1) == 0)
            ready = line + sizeof stat - 1;
        else if (strncmp(line, info, sizeof info - 1) == 0)
            ready = line + sizeof info - 1;
        else if (strcmp(line, "END") == 0)
            break;
    }
    (void)fclose(f);
    if (!ready)
        return ctl_fail(CTL_DOWN, "%s: no answer that a sidecar gives", a->connect);
    return ready[0] == '1' ? CTL_OK : ctl_fail(CTL_BAD, "no ID can be had now");
}
