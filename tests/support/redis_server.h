/*
 * A private redis-server for tests: its own directory, Unix socket and TCP port; it dies with the
 * test.
 *
 * Invariants
 *   - Only servers that were started here are signalled, by process id.
 *   - server_free removes the directory and everything in it.
 */
#ifndef SIDFLAKE_TESTS_SUPPORT_REDIS_SERVER_H
#define SIDFLAKE_TESTS_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SERVER_ARGS_MAX 8

struct server {
    char dir[64];
    char socket[96];
    int port;
    pid_t pid; /* 0: not running */
    bool aof;  /* appendonly yes, appendfsync always; else nothing is kept */
    const char *args[SERVER_ARGS_MAX + 1]; /* more options, NULL-terminated */
};

/* False where there is no redis-server on this host: the caller skips its tests. */
bool server_available(void);

/* Starts one and waits until it answers. args may be NULL; the strings must outlive the server.
 * Aborts the test program where it does not come up. */
void server_start(struct server *s, bool aof, const char *const *args);

/* SIGKILL, and waits. */
void server_kill(struct server *s);

/* Starts it again after server_kill, in the same place. */
void server_again(struct server *s);

/* Makes s a replica of master, or a master itself where that is NULL. Aborts where it refuses. */
void server_follow(const struct server *s, const struct server *master);

/* Waits until s has n replicas that are in step. Aborts after 10 s. */
void server_wait_followed(const struct server *s, size_t n);

/* redis+unix://… of its socket. Returns out. */
#define SERVER_URL_MAX 128
char *server_url(const struct server *s, char out[SERVER_URL_MAX]);

void server_signal(const struct server *s, int signal);
void server_free(struct server *s);

/* One command over the Unix socket; the reply as text into out (arrays: one element a line). False
 * where there is no reply, or an error, whose text is in out all the same. */
bool server_command(const struct server *s, char *out, size_t cap, int argc,
                    const char *const *argv);

/* The same for commands given in place: SERVER_DO(&s, out, "SET", "a", "1"). */
#define SERVER_DO(s, out, ...)                                                                     \
    server_command((s), (out), sizeof(out),                                                        \
                   (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)),       \
                   (const char *const[]){__VA_ARGS__})

#endif
