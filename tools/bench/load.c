/*
 * The load generator: drives one server with one kind of request, and prints what it measured as
 * one line of JSON.
 */
#include "base/dec.h"
#include "base/timefmt.h"
#include "drive.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define KEYS_MAX 1000

static const char usage[] =
    "Usage: load -a ADDRESS -k KIND [OPTION]...\n"
    "  -a tcp://HOST:PORT | unix:///PATH\n"
    "  -k mc-get | mc-set | mc-cas | resp-get | resp-text | resp-incr | resp-lpop\n"
    "  -K KEY          (id:orders)\n"
    "  -N KEYS         requests have so many keys in turn: KEY#0, KEY#1 ... (1: KEY)\n"
    "  -n COUNT        keys of each get, IDs of each LPOP (1)\n"
    "  -c CONNECTIONS  (1)\n"
    "  -d DEPTH        requests sent at once on each connection (1)\n"
    "  -t DURATION     as 500ms, 10s (1s)\n"
    "  -w DURATION     warm-up, not counted (0)\n"
    "  -r REQUESTS     end after so many, if that is earlier\n"
    "  -e DURATION     one connection: a batch each so often\n"
    "  -C count | full | unique   how replies are checked (count)\n";

static bool read_u32(const char *text, uint32_t max, uint32_t *out)
{
    uint64_t v;
    if (!dec_u64(span_str(text), &v) || v < 1 || v > max)
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool read_ns(const char *text, int64_t *out)
{
    if (!timefmt_parse_duration(span_str(text), out) || *out > INT64_MAX / 1000)
        return false;
    *out *= 1000;
    return true;
}

static bool read_check(const char *text, enum drive_check *out)
{
    static const char *const names[] = {"count", "full", "unique"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum drive_check)i;
            return true;
        }
    }
    return false;
}

struct arguments {
    struct drive_conf conf;
    const char *kind, *key;
    struct shape *shapes;
    uint32_t count;
    uint32_t keys;
};

static bool read_option(struct arguments *a, int option, struct err *e)
{
    struct drive_conf *c = &a->conf;
    switch (option) {
    case 'a':
        return addr_parse(span_str(optarg), &c->to, e) == ERR_OK;
    case 'k':
        a->kind = optarg;
        return true;
    case 'K':
        a->key = optarg;
        return true;
    case 'N':
        return read_u32(optarg, KEYS_MAX, &a->keys);
    case 'n':
        return read_u32(optarg, SHAPE_COUNT_MAX, &a->count);
    case 'c':
        return read_u32(optarg, 60000, &c->connections);
    case 'd':
        return read_u32(optarg, DRIVE_DEPTH_MAX, &c->depth);
    case 't':
        return read_ns(optarg, &c->length_ns);
    case 'w':
        return read_ns(optarg, &c->warmup_ns);
    case 'r':
        return dec_u64(span_str(optarg), &c->requests);
    case 'e':
        return read_ns(optarg, &c->every_ns);
    case 'C':
        return read_check(optarg, &c->check);
    default:
        return false;
    }
}

/* One for each key. false: there are no such. */
static bool make_shapes(struct arguments *a)
{
    char key[SHAPE_KEY_MAX + 1];
    a->conf.shapes = a->shapes = calloc(a->keys, sizeof *a->shapes);
    if (!a->shapes)
        return false;
    for (uint32_t *i = &a->conf.nshapes; *i < a->keys; ++*i) {
        int n = a->keys == 1 ? snprintf(key, sizeof key, "%s", a->key)
                             : snprintf(key, sizeof key, "%s#%u", a->key, *i);
        if (n < 0 || (size_t)n >= sizeof key ||
            !shape_init(&a->shapes[*i], a->kind, span_of(key, (size_t)n), a->count))
            return false;
    }
    return true;
}

/* Of this process, so far. */
static double cpu_us(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void print_result(const struct drive_result *r)
{
    double seconds = r->seconds > 0 ? r->seconds : 1;
    printf("{\"all\": %ju, \"load_us\": %.3f, ", (uintmax_t)r->all,
           cpu_us() / (double)(r->all > 0 ? r->all : 1));
    printf("\"requests\": %ju, \"seconds\": %.6f, \"rate\": %.1f, \"ids_rate\": %.1f, ",
           (uintmax_t)r->requests, r->seconds, (double)r->requests / seconds,
           (double)r->ids / seconds);
    printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, ", latency_us(&r->latency, 0.5),
           latency_us(&r->latency, 0.99), latency_us(&r->latency, 0.999));
    printf("\"p9999_us\": %.2f, \"max_us\": %.2f, ", latency_us(&r->latency, 0.9999),
           (double)r->latency.max_ns / 1000);
    printf("\"checked\": %ju, \"duplicates\": %ju, \"outside\": %ju}\n", (uintmax_t)r->checked,
           (uintmax_t)r->duplicates, (uintmax_t)r->outside);
}

int main(int argc, char **argv)
{
    static struct drive_result result;
    struct arguments a = {.conf = {.connections = 1, .depth = 1, .length_ns = 1000000000},
                          .key = "id:orders",
                          .count = 1,
                          .keys = 1};
    struct err e = {.text = ""};
    int option;
    while ((option = getopt(argc, argv, "a:k:K:N:n:c:d:t:w:r:e:C:")) != -1)
        if (!read_option(&a, option, &e))
            return fprintf(stderr, "%s%s%s", usage, e.text, e.text[0] ? "\n" : ""), 2;
    if (a.conf.every_ns > 0 && a.conf.connections != 1)
        return fprintf(stderr, "load: -e wants one connection, found %u\n", a.conf.connections), 2;
    if (optind != argc || !a.kind || !a.conf.to.host[0] || !make_shapes(&a))
        return fprintf(stderr, "%s", usage), 2;
    enum err_code r = drive(&a.conf, &result, &e);
    for (uint32_t i = 0; i < a.conf.nshapes; i++)
        shape_clear(&a.shapes[i]);
    free(a.shapes);
    if (r)
        return fprintf(stderr, "load: %s\n", e.text), 1;
    print_result(&result);
    return 0;
}
