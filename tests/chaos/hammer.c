/*
 * Asks one sidecar for IDs without a pause, over several connections and both protocols, and writes
 * down every ID that it received.
 *
 *   hammer --out FILE --sidecar N --resp PATH --memcached PATH [--resp-port P --memcached-port P]
 *          [--slow FACTOR]
 *
 * With ports, every second connection is TCP to 127.0.0.1. FACTOR multiplies the time between
 * batches. Runs until SIGTERM. On standard output:
 *
 *   gap KIND BEGIN_US LENGTH_US   a client had no ID for more than 250 ms; Unix microseconds
 *   bad KIND TEXT                 a reply that is neither IDs nor an error; the connection is
 * closed sum KIND requests N answered N refused N lost N connects N longest_us N at the end; lost:
 * the connection ended before the reply did
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#define TURN_US 100000 /* at most, so that an end is noticed */

static volatile sig_atomic_t stopping;

static void on_term(int signo)
{
    (void)signo;
    stopping = 1;
}

static void die(const char *doing, const char *what)
{
    (void)fprintf(stderr, "hammer: %s %s: %s\n", doing, what, strerror(errno));
    exit(2);
}

static void turn(struct client *clients)
{
    struct pollfd p[RECEIPT_KINDS];
    int64_t now = client_now_us(CLOCK_MONOTONIC);
    int64_t until = now + TURN_US;
    for (int i = 0; i < RECEIPT_KINDS; i++) {
        struct client *c = &clients[i];
        client_due(c, now);
        if (c->phase != CLIENT_CONNECTING && c->due_us < until)
            until = c->due_us;
        p[i] = (struct pollfd){.fd = c->fd, .events = client_wanted(c)};
    }
    int64_t left = until > now ? until - now : 0;
    struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)left * 1000};
    int n = ppoll(p, RECEIPT_KINDS, &ts, NULL);
    for (int i = 0; n > 0 && i < RECEIPT_KINDS; i++)
        client_ready(&clients[i], p[i].revents);
}

static void set_address(struct client *c, const char *path, unsigned port)
{
    if (port > 0) {
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)&c->address;
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        c->address_n = sizeof *in;
        return;
    }
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&c->address;
    un->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof un->sun_path) {
        errno = ENAMETOOLONG;
        die("address", path);
    }
    memcpy(un->sun_path, path, strlen(path) + 1);
    c->address_n = sizeof *un;
}

static int usage(FILE *to)
{
    (void)fputs("Usage: hammer --out FILE --sidecar N --resp PATH --memcached PATH\n"
                "              [--resp-port P --memcached-port P] [--slow FACTOR]\n"
                "Asks a sidecar for IDs until SIGTERM; receipts go to FILE.\n",
                to);
    return to == stdout ? 0 : 2;
}

struct arguments {
    const char *out, *resp, *memcached;
    unsigned sidecar, resp_port, memcached_port, slow;
};

/* 0, or an exit status + 1. */
static int parse(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {
        {"out", 1, NULL, 'o'},       {"sidecar", 1, NULL, 's'},   {"resp", 1, NULL, 'r'},
        {"memcached", 1, NULL, 'm'}, {"resp-port", 1, NULL, 'R'}, {"memcached-port", 1, NULL, 'M'},
        {"slow", 1, NULL, 'f'},      {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    const char *texts[128] = {0};
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h' || c == '?')
            return usage(c == 'h' ? stdout : stderr) + 1;
        texts[c] = optarg;
    }
    *a = (struct arguments){.out = texts['o'], .resp = texts['r'], .memcached = texts['m']};
    a->sidecar = texts['s'] ? (unsigned)strtoul(texts['s'], NULL, 10) : 0;
    a->resp_port = texts['R'] ? (unsigned)strtoul(texts['R'], NULL, 10) : 0;
    a->memcached_port = texts['M'] ? (unsigned)strtoul(texts['M'], NULL, 10) : 0;
    a->slow = texts['f'] ? (unsigned)strtoul(texts['f'], NULL, 10) : 1;
    if (!a->out || !a->resp || !a->memcached || optind != argc || a->slow == 0)
        return usage(stderr) + 1;
    return 0;
}

static void init(struct client *clients, struct receipt_file *out, const struct arguments *a)
{
    out->sidecar = (uint16_t)a->sidecar;
    out->fd = open(a->out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (out->fd < 0)
        die("opening", a->out);
    for (int i = 0; i < RECEIPT_KINDS; i++) {
        bool resp = client_is_resp((enum receipt_kind)i);
        unsigned port = resp ? a->resp_port : a->memcached_port;
        set_address(&clients[i], resp ? a->resp : a->memcached, i % 2 ? port : 0);
        client_init(&clients[i], (enum receipt_kind)i, out, (int)a->slow);
    }
}

int main(int argc, char **argv)
{
    static struct client clients[RECEIPT_KINDS];
    static struct receipt_file out;
    struct arguments a;
    int status = parse(argc, argv, &a);
    if (status)
        return status - 1;
    init(clients, &out, &a);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    for (unsigned turns = 0; !stopping; turns++) {
        turn(clients);
        if (turns % 256 == 0)
            receipt_flush(&out);
    }
    for (int i = 0; i < RECEIPT_KINDS; i++)
        client_finish(&clients[i]);
    receipt_flush(&out);
    return 0;
}
