/* Driver for hiredis; see README.md. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS 64

static redisContext *connected(const char *address)
{
    char host[64];
    int port;
    redisContext *c;

    if (address[0] == '/')
        c = redisConnectUnix(address);
    else if (sscanf(address, "%63[^:]:%d", host, &port) == 2)
        c = redisConnect(host, port);
    else
        return NULL;
    return c && !c->err ? c : NULL;
}

static void print(const redisReply *r, const char *between)
{
    switch (r->type) {
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < r->elements; i++)
            print(r->element[i], i ? "\t" : between);
        break;
    case REDIS_REPLY_INTEGER:
        printf("%si:%lld", between, r->integer);
        break;
    case REDIS_REPLY_NIL:
        printf("%sn:", between);
        break;
    default:
        printf("%s%c:%s", between, r->type == REDIS_REPLY_ERROR ? 'e' : 's', r->str);
    }
}

/* hiredis leaves it to its user to connect anew. */
static void answer(redisContext *c, int argc, const char **argv)
{
    redisReply *r = redisCommandArgv(c, argc, argv, NULL);

    if (r) {
        print(r, "");
        freeReplyObject(r);
    } else {
        printf("e:%s", c->errstr);
        redisReconnect(c);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static char line[4096];
    redisContext *c = argc == 3 ? connected(argv[2]) : NULL;

    if (!c)
        return 1;
    while (fgets(line, sizeof(line), stdin)) {
        const char *args[MAX_ARGS];
        char *rest = NULL;
        int n = 0;

        for (char *word = strtok_r(line, " \n", &rest); word && n < MAX_ARGS;
             word = strtok_r(NULL, " \n", &rest))
            args[n++] = word;
        answer(c, n, args);
    }
    redisFree(c);
    return 0;
}
