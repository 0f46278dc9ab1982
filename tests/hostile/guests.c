/*
 * Good clients, each on a thread and a connection of its own, that ask one thing at a time and
 * pause, and what they come to see: latencies, errors, wrong values.
 *
 * Prints "ready" once all have been answered. Counts from the line "begin" on standard input until
 * its end; then each finishes the request under way, however long that takes up to PATIENCE_US, and
 * a line of JSON says what each kind saw. So a request that was stuck counts with its whole time.
 *
 * Invariants
 *   - Every reply is checked: an ID is greater than the one before, a value is the one that was
 * set.
 *   - After an error the connection is opened anew, as a client library would.
 */
#include "place.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_US INT64_C(10000000) /* without an answer: an error */
#define REST_US     50000             /* after an error */
#define WORD        256               /* bytes of a request, and of what an error says */
#define ROOM        8192              /* bytes of the longest reply that is kept */

struct settings {
    struct place redis, memcached, http;
    const char *user, *password; /* NULL: no login */
    unsigned logins; /* users u0, u1 ... that may log in once each, for the kind login */
    int64_t pause_us;
};

static struct settings settings = {.pause_us = 2000};
static atomic_bool counting, ending;
static atomic_uint answered; /* guests whose first request was answered, or failed */

struct guest {
    const struct kind *kind;
    pthread_t thread;
    int fd;
    char in[ROOM];
    size_t have;
    uint64_t number; /* of requests so far */
    uint64_t last_id;
    bool secret_set;
    char error[WORD]; /* the first one that counts */
    char why[WORD];   /* of this request */
    uint32_t *us;     /* latencies */
    size_t count, room;
    uint64_t errors, wrong;
};

struct kind {
    const char *name;
    bool (*ask)(struct guest *g); /* false: an error, named in g->why */
    int64_t pause_us;             /* 0: that of the settings */
    bool always;                  /* asked for by default */
};

__attribute__((format(printf, 2, 3))) static bool fails(struct guest *g, const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    vsnprintf(g->why, sizeof g->why, form, ap);
    va_end(ap);
    return false;
}

static void hang_up(struct guest *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    g->have = 0;
    g->secret_set = false;
}

static bool wait_for(struct guest *g, short events, int64_t until_us)
{
    int64_t left = until_us - place_now_us();
    struct pollfd p = {.fd = g->fd, .events = events};
    if (left > 0 && poll(&p, 1, (int)(left / 1000) + 1) > 0)
        return true;
    return fails(g, "no answer in %d s", (int)(PATIENCE_US / 1000000));
}

static bool dial(struct guest *g, const struct place *to)
{
    bool done;
    int64_t until = place_now_us() + PATIENCE_US;
    while ((g->fd = place_connect(to, 0, &done)) < 0 && errno == EAGAIN &&
           place_now_us() < until) /* a unix socket's backlog is full */
        usleep(1000);
    if (g->fd < 0)
        return fails(g, "connect: %s", strerror(errno));
    int why = 0;
    socklen_t len = sizeof why;
    if (!done && !wait_for(g, POLLOUT, until))
        return false;
    if (getsockopt(g->fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0 || why != 0)
        return fails(g, "connect: %s", strerror(why));
    return true;
}

static bool say(struct guest *g, const char *text, size_t len, int64_t until_us)
{
    while (len > 0) {
        ssize_t n = send(g->fd, text, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            if (!wait_for(g, POLLOUT, until_us))
                return false;
        } else if (n < 0) {
            return fails(g, "send: %s", strerror(errno));
        } else {
            text += n;
            len -= (size_t)n;
        }
    }
    return true;
}

/* Bytes of the reply that g->in begins with; 0: not all of it is here. */
static size_t whole(const struct guest *g)
{
    const char *eol = memmem(g->in, g->have, "\r\n", 2);
    if (!eol)
        return 0;
    size_t line = (size_t)(eol - g->in) + 2, all = line;
    if (g->in[0] == '$' && g->in[1] != '-')
        all += strtoul(g->in + 1, NULL, 10) + 2;
    if (strncmp(g->in, "VALUE ", 6) == 0) {
        const char *end = memmem(g->in, g->have, "\r\nEND\r\n", 7);
        return end ? (size_t)(end - g->in) + 7 : 0;
    }
    return all <= g->have ? all : 0;
}

/* Sends a request and reads its reply into g->in, a string then. */
static bool exchange(struct guest *g, const char *request)
{
    int64_t until = place_now_us() + PATIENCE_US;
    if (g->have > 0)
        return fails(g, "a reply that nobody asked for: %.60s", g->in);
    if (!say(g, request, strlen(request), until))
        return false;
    size_t n;
    while ((n = whole(g)) == 0) {
        if (g->have == sizeof g->in - 1)
            return fails(g, "a reply of more than %d bytes", ROOM);
        if (!wait_for(g, POLLIN, until))
            return false;
        ssize_t got = recv(g->fd, g->in + g->have, sizeof g->in - 1 - g->have, 0);
        if (got == 0)
            return fails(g, "closed");
        if (got < 0 && errno != EAGAIN)
            return fails(g, "recv: %s", strerror(errno));
        g->have += got > 0 ? (size_t)got : 0;
        g->in[g->have] = '\0';
    }
    if (n < g->have)
        return fails(g, "more than one reply: %.60s", g->in);
    g->have = 0;
    return true;
}

/* The same, where one reply alone is right. */
static bool expect(struct guest *g, const char *request, const char *reply)
{
    if (!exchange(g, request))
        return false;
    if (strcmp(g->in, reply) == 0)
        return true;
    g->wrong +=
        atomic_load(&counting) && g->in[0] != '-' && strncmp(g->in, "SERVER_ERROR", 12) != 0;
    return fails(g, "%.120s for %.60s", g->in, request);
}

static bool login_redis(struct guest *g, const char *user)
{
    char text[WORD];
    snprintf(text, sizeof text, "*3\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(user),
             user, strlen(settings.password), settings.password);
    return expect(g, text, "+OK\r\n");
}

static bool open_redis(struct guest *g)
{
    return g->fd >= 0 ||
           (dial(g, &settings.redis) && (!settings.user || login_redis(g, settings.user)));
}

static bool open_memcached(struct guest *g)
{
    char text[WORD];
    if (g->fd >= 0)
        return true;
    if (!dial(g, &settings.memcached))
        return false;
    if (!settings.user)
        return true;
    snprintf(text, sizeof text, "set auth 0 0 %zu\r\n%s %s\r\n",
             strlen(settings.user) + strlen(settings.password) + 1, settings.user,
             settings.password);
    return expect(g, text, "STORED\r\n");
}

/* It must be above the one before. */
static bool rises(struct guest *g, const char *what, uint64_t number)
{
    if (number <= g->last_id) {
        g->wrong++;
        return fails(g, "%s %ju after %ju", what, (uintmax_t)number, (uintmax_t)g->last_id);
    }
    g->last_id = number;
    return true;
}

/* The ID in the second line of the reply. */
static bool is_id(struct guest *g, const char *begins)
{
    const char *line = strchr(g->in, '\n');
    uint64_t id = line ? strtoull(line + 1, NULL, 10) : 0;
    if (strncmp(g->in, begins, strlen(begins)) != 0 || id == 0)
        return fails(g, "no ID: %.120s", g->in);
    return rises(g, "ID", id);
}

static bool ask_id_redis(struct guest *g)
{
    return open_redis(g) && exchange(g, "*2\r\n$3\r\nGET\r\n$4\r\nid:x\r\n") && is_id(g, "$");
}

static bool ask_id_memcached(struct guest *g)
{
    return open_memcached(g) && exchange(g, "get id:x\r\n") && is_id(g, "VALUE id:x 0 ");
}

/* The number in the only line of the reply. */
static bool is_number(struct guest *g)
{
    uint64_t number = g->in[0] == ':' ? strtoull(g->in + 1, NULL, 10) : 0;
    if (number == 0)
        return fails(g, "no number: %.120s", g->in);
    return rises(g, "number", number);
}

static bool ask_sequence(struct guest *g)
{
    return open_redis(g) && exchange(g, "*2\r\n$4\r\nINCR\r\n$8\r\nseq:good\r\n") && is_number(g);
}

/* Each waits for the coordinator. */
static bool ask_strict(struct guest *g)
{
    return open_redis(g) && exchange(g, "*2\r\n$4\r\nINCR\r\n$10\r\nseq:strict\r\n") &&
           is_number(g);
}

#define SECRET "guest-secret-%09ju" /* 22 bytes */

static void redis_set(char *text, const char *key, uintmax_t n)
{
    snprintf(text, WORD, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$22\r\n" SECRET "\r\n", strlen(key), key,
             n);
}

/* Sets a value in every other request, and reads it in the others. */
static bool ask_there_redis(struct guest *g)
{
    char text[WORD], want[WORD];
    uintmax_t n = g->number / 2;
    if (!open_redis(g))
        return false;
    if (g->number % 2 == 0 || !g->secret_set) {
        redis_set(text, "guest", n);
        return g->secret_set = expect(g, text, "+OK\r\n");
    }
    snprintf(want, sizeof want, "$22\r\n" SECRET "\r\n", n);
    return expect(g, "*2\r\n$3\r\nGET\r\n$5\r\nguest\r\n", want);
}

static bool ask_there_memcached(struct guest *g)
{
    char text[WORD];
    uintmax_t n = g->number / 2;
    if (!open_memcached(g))
        return false;
    if (g->number % 2 == 0 || !g->secret_set) {
        snprintf(text, sizeof text, "set guest 0 0 22\r\n" SECRET "\r\n", n);
        return g->secret_set = expect(g, text, "STORED\r\n");
    }
    snprintf(text, sizeof text, "VALUE guest 0 22\r\n" SECRET "\r\nEND\r\n", n);
    return expect(g, "get guest\r\n", text);
}

/* A client that needs a connection of its own behind sidflake, and a new one each time. */
static bool ask_own_redis(struct guest *g)
{
    char text[WORD];
    hang_up(g);
    redis_set(text, "own", g->number);
    return open_redis(g) && expect(g, "*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n", "+OK\r\n") &&
           expect(g, text, "+OK\r\n");
}

/* A user's first login, whose password has to be checked at length. */
static bool ask_login(struct guest *g)
{
    char user[32];
    hang_up(g);
    snprintf(user, sizeof user, "u%ju",
             (uintmax_t)g->number % (settings.logins + !settings.logins));
    return dial(g, &settings.redis) && login_redis(g, user);
}

static bool ask_livez(struct guest *g)
{
    static const char request[] =
        "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    hang_up(g);
    int64_t until = place_now_us() + PATIENCE_US;
    if (!dial(g, &settings.http) || !say(g, request, strlen(request), until))
        return false;
    while (!memmem(g->in, g->have, "\r\n", 2)) {
        ssize_t n = wait_for(g, POLLIN, until)
                        ? recv(g->fd, g->in + g->have, sizeof g->in - 1 - g->have, 0)
                        : 0;
        if (n <= 0)
            return g->why[0] ? false : fails(g, "closed");
        g->have += (size_t)n;
    }
    g->in[g->have] = '\0';
    return strncmp(g->in, "HTTP/1.1 200 ", 13) == 0 || fails(g, "%.40s", g->in);
}

static const struct kind kinds[] = {
    {"ids-redis", ask_id_redis, 0, true},       {"ids-memcached", ask_id_memcached, 0, true},
    {"there-redis", ask_there_redis, 0, false}, {"there-memcached", ask_there_memcached, 0, false},
    {"own-redis", ask_own_redis, 20000, false}, {"login", ask_login, 200000, false},
    {"ids-sequence", ask_sequence, 0, false},   {"strict", ask_strict, 0, false},
    {"livez", ask_livez, 500000, true},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static void count(struct guest *g, int64_t us, bool well)
{
    if (g->count == g->room) {
        uint32_t *more = realloc(g->us, (g->room = g->room * 2 + 1024) * sizeof *more);
        if (!more)
            abort();
        g->us = more;
    }
    g->us[g->count++] = (uint32_t)us;
    g->errors += !well;
    if (!well && !g->error[0])
        memcpy(g->error, g->why, sizeof g->error);
}

static void *guest_main(void *arg)
{
    struct guest *g = arg;
    bool first = true;
    while (!atomic_load(&ending)) {
        int64_t started = place_now_us();
        g->why[0] = '\0';
        bool well = g->kind->ask(g);
        g->number++;
        if (atomic_load(&counting))
            count(g, place_now_us() - started, well);
        if (!well)
            hang_up(g);
        if (first)
            atomic_fetch_add(&answered, 1);
        first = false;
        int64_t pause = g->kind->pause_us ? g->kind->pause_us : settings.pause_us;
        usleep((useconds_t)(well || pause > REST_US ? pause : REST_US));
    }
    hang_up(g);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t percentile(const struct guest *g, unsigned percent)
{
    return g->count ? g->us[(g->count - 1) * percent / 100] : 0;
}

static void report(struct guest *g, bool last)
{
    for (char *c = g->error; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = '.';
    if (g->count > 0)
        qsort(g->us, g->count, sizeof *g->us, by_size);
    printf("\"%s\": {\"requests\": %zu, \"errors\": %ju, \"wrong\": %ju, \"p50_us\": %u, "
           "\"p99_us\": %u, \"max_us\": %u, \"first_error\": \"%s\"}%s",
           g->kind->name, g->count, (uintmax_t)g->errors, (uintmax_t)g->wrong, percentile(g, 50),
           percentile(g, 99), percentile(g, 100), g->error, last ? "" : ", ");
}

static const char usage[] =
    "Usage: guests --redis ADDRESS --memcached ADDRESS --http ADDRESS [OPTION]...\n"
    "  --also KIND            there-redis, there-memcached, own-redis, login, ids-sequence or\n"
    "                         strict; again for more\n"
    "  --user NAME --password WORD   they log in first\n"
    "  --logins N             users u0, u1 ... that the kind login uses in turn\n"
    "  --pause US             between two requests (2000)\n"
    "ADDRESS: tcp:PORT or unix:PATH\n";

static bool read_option(int option, bool *wanted)
{
    switch (option) {
    case 'r':
        return place_parse(optarg, &settings.redis);
    case 'm':
        return place_parse(optarg, &settings.memcached);
    case 'h':
        return place_parse(optarg, &settings.http);
    case 'u':
        return (settings.user = optarg) != NULL;
    case 'p':
        return (settings.password = optarg) != NULL;
    case 'l':
        return (settings.logins = (unsigned)strtoul(optarg, NULL, 10)) > 0;
    case 'w':
        return (settings.pause_us = strtol(optarg, NULL, 10)) > 0;
    case 'a':
        for (size_t i = 0; i < KINDS; i++)
            if (strcmp(optarg, kinds[i].name) == 0)
                return wanted[i] = true;
        return false;
    default:
        return false;
    }
}

/* Waits for the word to begin, then for the end of the input. */
static void obey(unsigned guests)
{
    char line[WORD];
    for (int i = 0; i < 1000 && atomic_load(&answered) < guests; i++)
        usleep(10000);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        if (strcmp(line, "begin\n") == 0)
            atomic_store(&counting, true);
    atomic_store(&ending, true);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"redis", 1, NULL, 'r'},  {"memcached", 1, NULL, 'm'}, {"http", 1, NULL, 'h'},
        {"also", 1, NULL, 'a'},   {"user", 1, NULL, 'u'},      {"password", 1, NULL, 'p'},
        {"logins", 1, NULL, 'l'}, {"pause", 1, NULL, 'w'},     {NULL, 0, NULL, 0}};
    static struct guest guests[KINDS];
    bool wanted[KINDS], ok = true;
    unsigned n = 0;
    for (size_t i = 0; i < KINDS; i++)
        wanted[i] = kinds[i].always;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
        ok = read_option(o, wanted) && ok;
    if (!ok || !settings.redis.len || !settings.memcached.len || !settings.http.len) {
        fputs(usage, stderr);
        return 2;
    }
    for (size_t i = 0; i < KINDS; i++) {
        if (!wanted[i])
            continue;
        guests[n] = (struct guest){.kind = &kinds[i], .fd = -1};
        if (pthread_create(&guests[n].thread, NULL, guest_main, &guests[n]) != 0)
            return 2;
        n++;
    }
    obey(n);
    for (unsigned i = 0; i < n; i++)
        pthread_join(guests[i].thread, NULL);
    putchar('{');
    for (unsigned i = 0; i < n; i++)
        report(&guests[i], i == n - 1);
    puts("}");
    return 0;
}
