/*
 * The commands of Redis 7.0.15, as its COMMAND lists them: every name, arity, key range and flag;
 * subcommands are left out. The verb is ours, and so is the mark SHD, which says of a command:
 *
 *   - it has exactly one reply, whatever its args are,
 *   - it leaves nothing behind on its connection, and nothing there changes what it means,
 *   - it never waits for anything, and never has the server busy for long on its own,
 *   - its keys stand where the row says, and nowhere else,
 *   - it is not about the server (admin), about messages (pubsub), or kept from scripts (noscript).
 *
 * Only such commands go on the connection to the upstream that clients share; all others have
 * OWN. A unit test lists those that have SHD.
 *
 * Sorted by name (bytes of lower-case letters), for resp_lookup searches it by halves; a unit test
 * checks that. Included by resp_command.c alone.
 */
#ifndef SIDFLAKE_WIRE_RESP_COMMANDS_H
#define SIDFLAKE_WIRE_RESP_COMMANDS_H

#include "wire/resp.h"

#define W   RESP_F_WRITE
#define R   RESP_F_READONLY
#define OOM RESP_F_DENYOOM
#define ADM RESP_F_ADMIN
#define PUB RESP_F_PUBSUB
#define NOS RESP_F_NOSCRIPT
#define BLK RESP_F_BLOCKING
#define LDG RESP_F_LOADING
#define STL RESP_F_STALE
#define SKM RESP_F_SKIP_MONITOR
#define SKS RESP_F_SKIP_SLOWLOG
#define ASK RESP_F_ASKING
#define FST RESP_F_FAST
#define NOA RESP_F_NO_AUTH
#define NOM RESP_F_NO_MULTI
#define MOV RESP_F_MOVABLEKEYS
#define BSY RESP_F_ALLOW_BUSY
#define NAL RESP_F_NO_ASYNC_LOADING
#define NMK RESP_F_NO_MANDATORY_KEYS
#define SHD true
#define OWN false

/* clang-format off */
static const struct resp_cmd commands[] = {
    /* name, bytes, verb, arity, first key, last key, step, flags, shared */
    {"acl", 3, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"append", 6, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST, SHD},
    {"asking", 6, RESP_OTHER, 1, 0, 0, 0, FST, OWN},
    {"auth", 4, RESP_AUTH, -2, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY, OWN},
    {"bgrewriteaof", 12, RESP_OTHER, 1, 0, 0, 0, ADM | NOS | NAL, OWN},
    {"bgsave", 6, RESP_OTHER, -1, 0, 0, 0, ADM | NOS | NAL, OWN},
    {"bitcount", 8, RESP_OTHER, -2, 1, 1, 1, R, SHD},
    {"bitfield", 8, RESP_OTHER, -2, 1, 1, 1, W | OOM, SHD},
    {"bitfield_ro", 11, RESP_OTHER, -2, 1, 1, 1, R | FST, SHD},
    {"bitop", 5, RESP_OTHER, -4, 2, -1, 1, W | OOM, SHD},
    {"bitpos", 6, RESP_OTHER, -3, 1, 1, 1, R, SHD},
    {"blmove", 6, RESP_OTHER, 6, 1, 2, 1, W | OOM | NOS | BLK, OWN},
    {"blmpop", 6, RESP_OTHER, -5, 0, 0, 0, W | BLK | MOV, OWN},
    {"blpop", 5, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK, OWN},
    {"brpop", 5, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK, OWN},
    {"brpoplpush", 10, RESP_OTHER, 4, 1, 2, 1, W | OOM | NOS | BLK, OWN},
    {"bzmpop", 6, RESP_OTHER, -5, 0, 0, 0, W | BLK | MOV, OWN},
    {"bzpopmax", 8, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK | FST, OWN},
    {"bzpopmin", 8, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK | FST, OWN},
    {"client", 6, RESP_CLIENT, -2, 0, 0, 0, 0, OWN},
    {"cluster", 7, RESP_CLUSTER, -2, 0, 0, 0, 0, OWN},
    {"command", 7, RESP_COMMAND, -1, 0, 0, 0, LDG | STL, OWN},
    {"config", 6, RESP_CONFIG, -2, 0, 0, 0, 0, OWN},
    {"copy", 4, RESP_OTHER, -3, 1, 2, 1, W | OOM, SHD},
    {"dbsize", 6, RESP_DBSIZE, 1, 0, 0, 0, R | FST, SHD},
    {"debug", 5, RESP_DEBUG, -2, 0, 0, 0, ADM | NOS | LDG | STL, OWN},
    {"decr", 4, RESP_OTHER, 2, 1, 1, 1, W | OOM | FST, SHD},
    {"decrby", 6, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST, SHD},
    {"del", 3, RESP_OTHER, -2, 1, -1, 1, W, SHD},
    {"discard", 7, RESP_DISCARD, 1, 0, 0, 0, NOS | LDG | STL | FST | BSY, OWN},
    {"dump", 4, RESP_OTHER, 2, 1, 1, 1, R, SHD},
    {"echo", 4, RESP_ECHO, 2, 0, 0, 0, LDG | STL | FST, OWN},
    {"eval", 4, RESP_EVAL, -3, 0, 0, 0, NOS | STL | SKM | MOV | NMK, OWN},
    {"eval_ro", 7, RESP_EVAL, -3, 0, 0, 0, R | NOS | STL | SKM | MOV | NMK, OWN},
    {"evalsha", 7, RESP_EVAL, -3, 0, 0, 0, NOS | STL | SKM | MOV | NMK, OWN},
    {"evalsha_ro", 10, RESP_EVAL, -3, 0, 0, 0, R | NOS | STL | SKM | MOV | NMK, OWN},
    {"exec", 4, RESP_EXEC, 1, 0, 0, 0, NOS | LDG | STL | SKS, OWN},
    {"exists", 6, RESP_EXISTS, -2, 1, -1, 1, R | FST, SHD},
    {"expire", 6, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"expireat", 8, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"expiretime", 10, RESP_EXPIRETIME, 2, 1, 1, 1, R | FST, SHD},
    {"failover", 8, RESP_OTHER, -1, 0, 0, 0, ADM | NOS | STL, OWN},
    {"fcall", 5, RESP_EVAL, -3, 0, 0, 0, NOS | STL | SKM | MOV | NMK, OWN},
    {"fcall_ro", 8, RESP_EVAL, -3, 0, 0, 0, R | NOS | STL | SKM | MOV | NMK, OWN},
    {"flushall", 8, RESP_FLUSH, -1, 0, 0, 0, W, OWN},
    {"flushdb", 7, RESP_FLUSH, -1, 0, 0, 0, W, OWN},
    {"function", 8, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"geoadd", 6, RESP_OTHER, -5, 1, 1, 1, W | OOM, SHD},
    {"geodist", 7, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"geohash", 7, RESP_OTHER, -2, 1, 1, 1, R, SHD},
    {"geopos", 6, RESP_OTHER, -2, 1, 1, 1, R, SHD},
    {"georadius", 9, RESP_OTHER, -6, 1, 1, 1, W | OOM | MOV, OWN},
    {"georadius_ro", 12, RESP_OTHER, -6, 1, 1, 1, R, SHD},
    {"georadiusbymember", 17, RESP_OTHER, -5, 1, 1, 1, W | OOM | MOV, OWN},
    {"georadiusbymember_ro", 20, RESP_OTHER, -5, 1, 1, 1, R, SHD},
    {"geosearch", 9, RESP_OTHER, -7, 1, 1, 1, R, SHD},
    {"geosearchstore", 14, RESP_OTHER, -8, 1, 2, 1, W | OOM, SHD},
    {"get", 3, RESP_GET, 2, 1, 1, 1, R | FST, SHD},
    {"getbit", 6, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"getdel", 6, RESP_GETDEL, 2, 1, 1, 1, W | FST, SHD},
    {"getex", 5, RESP_GETEX, -2, 1, 1, 1, W | FST, SHD},
    {"getrange", 8, RESP_OTHER, 4, 1, 1, 1, R, SHD},
    {"getset", 6, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST, SHD},
    {"hdel", 4, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"hello", 5, RESP_HELLO, -1, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY, OWN},
    {"hexists", 7, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"hget", 4, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"hgetall", 7, RESP_OTHER, 2, 1, 1, 1, R, SHD},
    {"hincrby", 7, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST, SHD},
    {"hincrbyfloat", 12, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST, SHD},
    {"hkeys", 5, RESP_OTHER, 2, 1, 1, 1, R, SHD},
    {"hlen", 4, RESP_OTHER, 2, 1, 1, 1, R | FST, SHD},
    {"hmget", 5, RESP_OTHER, -3, 1, 1, 1, R | FST, SHD},
    {"hmset", 5, RESP_OTHER, -4, 1, 1, 1, W | OOM | FST, SHD},
    {"hrandfield", 10, RESP_OTHER, -2, 1, 1, 1, R, SHD},
    {"hscan", 5, RESP_OTHER, -3, 1, 1, 1, R, SHD},
    {"hset", 4, RESP_OTHER, -4, 1, 1, 1, W | OOM | FST, SHD},
    {"hsetnx", 6, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST, SHD},
    {"hstrlen", 7, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"hvals", 5, RESP_OTHER, 2, 1, 1, 1, R, SHD},
    {"incr", 4, RESP_INCR, 2, 1, 1, 1, W | OOM | FST, SHD},
    {"incrby", 6, RESP_INCRBY, 3, 1, 1, 1, W | OOM | FST, SHD},
    {"incrbyfloat", 11, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST, SHD},
    {"info", 4, RESP_INFO, -1, 0, 0, 0, LDG | STL, SHD},
    {"keys", 4, RESP_KEYS, 2, 0, 0, 0, R, OWN},
    {"lastsave", 8, RESP_OTHER, 1, 0, 0, 0, LDG | STL | FST, SHD},
    {"latency", 7, RESP_LATENCY, -2, 0, 0, 0, 0, OWN},
    {"lcs", 3, RESP_OTHER, -3, 1, 2, 1, R, SHD},
    {"lindex", 6, RESP_OTHER, 3, 1, 1, 1, R, SHD},
    {"linsert", 7, RESP_OTHER, 5, 1, 1, 1, W | OOM, SHD},
    {"llen", 4, RESP_OTHER, 2, 1, 1, 1, R | FST, SHD},
    {"lmove", 5, RESP_OTHER, 5, 1, 2, 1, W | OOM, SHD},
    {"lmpop", 5, RESP_OTHER, -4, 0, 0, 0, W | MOV, OWN},
    {"lolwut", 6, RESP_OTHER, -1, 0, 0, 0, R | FST, OWN},
    {"lpop", 4, RESP_LPOP, -2, 1, 1, 1, W | FST, SHD},
    {"lpos", 4, RESP_OTHER, -3, 1, 1, 1, R, SHD},
    {"lpush", 5, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST, SHD},
    {"lpushx", 6, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST, SHD},
    {"lrange", 6, RESP_OTHER, 4, 1, 1, 1, R, SHD},
    {"lrem", 4, RESP_OTHER, 4, 1, 1, 1, W, SHD},
    {"lset", 4, RESP_OTHER, 4, 1, 1, 1, W | OOM, SHD},
    {"ltrim", 5, RESP_OTHER, 4, 1, 1, 1, W, SHD},
    {"memory", 6, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"mget", 4, RESP_MGET, -2, 1, -1, 1, R | FST, SHD},
    {"migrate", 7, RESP_OTHER, -6, 3, 3, 1, W | MOV, OWN},
    {"module", 6, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"monitor", 7, RESP_MONITOR, 1, 0, 0, 0, ADM | NOS | LDG | STL, OWN},
    {"move", 4, RESP_OTHER, 3, 1, 1, 1, W | FST, OWN},
    {"mset", 4, RESP_OTHER, -3, 1, -1, 2, W | OOM, SHD},
    {"msetnx", 6, RESP_OTHER, -3, 1, -1, 2, W | OOM, SHD},
    {"multi", 5, RESP_MULTI, 1, 0, 0, 0, NOS | LDG | STL | FST | BSY, OWN},
    {"object", 6, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"persist", 7, RESP_OTHER, 2, 1, 1, 1, W | FST, SHD},
    {"pexpire", 7, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"pexpireat", 9, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"pexpiretime", 11, RESP_PEXPIRETIME, 2, 1, 1, 1, R | FST, SHD},
    {"pfadd", 5, RESP_OTHER, -2, 1, 1, 1, W | OOM | FST, SHD},
    {"pfcount", 7, RESP_OTHER, -2, 1, -1, 1, R, SHD},
    {"pfdebug", 7, RESP_OTHER, 3, 2, 2, 1, W | OOM | ADM, OWN},
    {"pfmerge", 7, RESP_OTHER, -2, 1, -1, 1, W | OOM, SHD},
    {"pfselftest", 10, RESP_OTHER, 1, 0, 0, 0, ADM, OWN},
    {"ping", 4, RESP_PING, -1, 0, 0, 0, FST, SHD},
    {"psetex", 6, RESP_OTHER, 4, 1, 1, 1, W | OOM, SHD},
    {"psubscribe", 10, RESP_PSUBSCRIBE, -2, 0, 0, 0, PUB | NOS | LDG | STL, OWN},
    {"psync", 5, RESP_SYNC, -3, 0, 0, 0, ADM | NOS | NOM | NAL, OWN},
    {"pttl", 4, RESP_PTTL, 2, 1, 1, 1, R | FST, SHD},
    {"publish", 7, RESP_OTHER, 3, 0, 0, 0, PUB | LDG | STL | FST, OWN},
    {"pubsub", 6, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"punsubscribe", 12, RESP_PUNSUBSCRIBE, -1, 0, 0, 0, PUB | NOS | LDG | STL, OWN},
    {"quit", 4, RESP_QUIT, -1, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY, OWN},
    {"randomkey", 9, RESP_RANDOMKEY, 1, 0, 0, 0, R, SHD},
    {"readonly", 8, RESP_READONLY, 1, 0, 0, 0, LDG | STL | FST, OWN},
    {"readwrite", 9, RESP_READONLY, 1, 0, 0, 0, LDG | STL | FST, OWN},
    {"rename", 6, RESP_OTHER, 3, 1, 2, 1, W, SHD},
    {"renamenx", 8, RESP_OTHER, 3, 1, 2, 1, W | FST, SHD},
    {"replconf", 8, RESP_SYNC, -1, 0, 0, 0, ADM | NOS | LDG | STL | BSY, OWN},
    {"replicaof", 9, RESP_OTHER, 3, 0, 0, 0, ADM | NOS | STL | NAL, OWN},
    {"reset", 5, RESP_RESET, 1, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY, OWN},
    {"restore", 7, RESP_OTHER, -4, 1, 1, 1, W | OOM, SHD},
    {"restore-asking", 14, RESP_OTHER, -4, 1, 1, 1, W | OOM | ASK, OWN},
    {"role", 4, RESP_OTHER, 1, 0, 0, 0, NOS | LDG | STL | FST, OWN},
    {"rpop", 4, RESP_RPOP, -2, 1, 1, 1, W | FST, SHD},
    {"rpoplpush", 9, RESP_OTHER, 3, 1, 2, 1, W | OOM, SHD},
    {"rpush", 5, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST, SHD},
    {"rpushx", 6, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST, SHD},
    {"sadd", 4, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST, SHD},
    {"save", 4, RESP_OTHER, 1, 0, 0, 0, ADM | NOS | NOM | NAL, OWN},
    {"scan", 4, RESP_SCAN, -2, 0, 0, 0, R, SHD},
    {"scard", 5, RESP_OTHER, 2, 1, 1, 1, R | FST, SHD},
    {"script", 6, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"sdiff", 5, RESP_OTHER, -2, 1, -1, 1, R, SHD},
    {"sdiffstore", 10, RESP_OTHER, -3, 1, -1, 1, W | OOM, SHD},
    {"select", 6, RESP_SELECT, 2, 0, 0, 0, LDG | STL | FST, OWN},
    {"set", 3, RESP_OTHER, -3, 1, 1, 1, W | OOM, SHD},
    {"setbit", 6, RESP_OTHER, 4, 1, 1, 1, W | OOM, SHD},
    {"setex", 5, RESP_OTHER, 4, 1, 1, 1, W | OOM, SHD},
    {"setnx", 5, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST, SHD},
    {"setrange", 8, RESP_OTHER, 4, 1, 1, 1, W | OOM, SHD},
    {"shutdown", 8, RESP_SHUTDOWN, -1, 0, 0, 0, ADM | NOS | LDG | STL | NOM | BSY, OWN},
    {"sinter", 6, RESP_OTHER, -2, 1, -1, 1, R, SHD},
    {"sintercard", 10, RESP_OTHER, -3, 0, 0, 0, R | MOV, OWN},
    {"sinterstore", 11, RESP_OTHER, -3, 1, -1, 1, W | OOM, SHD},
    {"sismember", 9, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"slaveof", 7, RESP_OTHER, 3, 0, 0, 0, ADM | NOS | STL | NAL, OWN},
    {"slowlog", 7, RESP_SLOWLOG, -2, 0, 0, 0, 0, OWN},
    {"smembers", 8, RESP_OTHER, 2, 1, 1, 1, R, SHD},
    {"smismember", 10, RESP_OTHER, -3, 1, 1, 1, R | FST, SHD},
    {"smove", 5, RESP_OTHER, 4, 1, 2, 1, W | FST, SHD},
    {"sort", 4, RESP_OTHER, -2, 1, 1, 1, W | OOM | MOV, OWN},
    {"sort_ro", 7, RESP_OTHER, -2, 1, 1, 1, R | MOV, OWN},
    {"spop", 4, RESP_SPOP, -2, 1, 1, 1, W | FST, SHD},
    {"spublish", 8, RESP_OTHER, 3, 1, 1, 1, PUB | LDG | STL | FST, OWN},
    {"srandmember", 11, RESP_SRANDMEMBER, -2, 1, 1, 1, R, SHD},
    {"srem", 4, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"sscan", 5, RESP_OTHER, -3, 1, 1, 1, R, SHD},
    {"ssubscribe", 10, RESP_SSUBSCRIBE, -2, 1, -1, 1, PUB | NOS | LDG | STL, OWN},
    {"strlen", 6, RESP_OTHER, 2, 1, 1, 1, R | FST, SHD},
    {"subscribe", 9, RESP_SUBSCRIBE, -2, 0, 0, 0, PUB | NOS | LDG | STL, OWN},
    {"substr", 6, RESP_OTHER, 4, 1, 1, 1, R, SHD},
    {"sunion", 6, RESP_OTHER, -2, 1, -1, 1, R, SHD},
    {"sunionstore", 11, RESP_OTHER, -3, 1, -1, 1, W | OOM, SHD},
    {"sunsubscribe", 12, RESP_SUNSUBSCRIBE, -1, 1, -1, 1, PUB | NOS | LDG | STL, OWN},
    {"swapdb", 6, RESP_OTHER, 3, 0, 0, 0, W | FST, OWN},
    {"sync", 4, RESP_SYNC, 1, 0, 0, 0, ADM | NOS | NOM | NAL, OWN},
    {"time", 4, RESP_TIME, 1, 0, 0, 0, LDG | STL | FST, SHD},
    {"touch", 5, RESP_OTHER, -2, 1, -1, 1, R | FST, SHD},
    {"ttl", 3, RESP_TTL, 2, 1, 1, 1, R | FST, SHD},
    {"type", 4, RESP_TYPE, 2, 1, 1, 1, R | FST, SHD},
    {"unlink", 6, RESP_OTHER, -2, 1, -1, 1, W | FST, SHD},
    {"unsubscribe", 11, RESP_UNSUBSCRIBE, -1, 0, 0, 0, PUB | NOS | LDG | STL, OWN},
    {"unwatch", 7, RESP_UNWATCH, 1, 0, 0, 0, NOS | LDG | STL | FST | BSY, OWN},
    {"wait", 4, RESP_OTHER, 3, 0, 0, 0, NOS, OWN},
    {"watch", 5, RESP_WATCH, -2, 1, -1, 1, NOS | LDG | STL | FST | BSY, OWN},
    {"xack", 4, RESP_OTHER, -4, 1, 1, 1, W | FST, SHD},
    {"xadd", 4, RESP_OTHER, -5, 1, 1, 1, W | OOM | FST, SHD},
    {"xautoclaim", 10, RESP_OTHER, -6, 1, 1, 1, W | FST, SHD},
    {"xclaim", 6, RESP_OTHER, -6, 1, 1, 1, W | FST, SHD},
    {"xdel", 4, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"xgroup", 6, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"xinfo", 5, RESP_OTHER, -2, 0, 0, 0, 0, OWN},
    {"xlen", 4, RESP_OTHER, 2, 1, 1, 1, R | FST, SHD},
    {"xpending", 8, RESP_OTHER, -3, 1, 1, 1, R, SHD},
    {"xrange", 6, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"xread", 5, RESP_OTHER, -4, 0, 0, 0, R | BLK | MOV, OWN},
    {"xreadgroup", 10, RESP_OTHER, -7, 0, 0, 0, W | BLK | MOV, OWN},
    {"xrevrange", 9, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"xsetid", 6, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST, SHD},
    {"xtrim", 5, RESP_OTHER, -4, 1, 1, 1, W, SHD},
    {"zadd", 4, RESP_OTHER, -4, 1, 1, 1, W | OOM | FST, SHD},
    {"zcard", 5, RESP_OTHER, 2, 1, 1, 1, R | FST, SHD},
    {"zcount", 6, RESP_OTHER, 4, 1, 1, 1, R | FST, SHD},
    {"zdiff", 5, RESP_OTHER, -3, 0, 0, 0, R | MOV, OWN},
    {"zdiffstore", 10, RESP_OTHER, -4, 1, 1, 1, W | OOM | MOV, OWN},
    {"zincrby", 7, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST, SHD},
    {"zinter", 6, RESP_OTHER, -3, 0, 0, 0, R | MOV, OWN},
    {"zintercard", 10, RESP_OTHER, -3, 0, 0, 0, R | MOV, OWN},
    {"zinterstore", 11, RESP_OTHER, -4, 1, 1, 1, W | OOM | MOV, OWN},
    {"zlexcount", 9, RESP_OTHER, 4, 1, 1, 1, R | FST, SHD},
    {"zmpop", 5, RESP_OTHER, -4, 0, 0, 0, W | MOV, OWN},
    {"zmscore", 7, RESP_OTHER, -3, 1, 1, 1, R | FST, SHD},
    {"zpopmax", 7, RESP_OTHER, -2, 1, 1, 1, W | FST, SHD},
    {"zpopmin", 7, RESP_OTHER, -2, 1, 1, 1, W | FST, SHD},
    {"zrandmember", 11, RESP_OTHER, -2, 1, 1, 1, R, SHD},
    {"zrange", 6, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"zrangebylex", 11, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"zrangebyscore", 13, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"zrangestore", 11, RESP_OTHER, -5, 1, 2, 1, W | OOM, SHD},
    {"zrank", 5, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"zrem", 4, RESP_OTHER, -3, 1, 1, 1, W | FST, SHD},
    {"zremrangebylex", 14, RESP_OTHER, 4, 1, 1, 1, W, SHD},
    {"zremrangebyrank", 15, RESP_OTHER, 4, 1, 1, 1, W, SHD},
    {"zremrangebyscore", 16, RESP_OTHER, 4, 1, 1, 1, W, SHD},
    {"zrevrange", 9, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"zrevrangebylex", 14, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"zrevrangebyscore", 16, RESP_OTHER, -4, 1, 1, 1, R, SHD},
    {"zrevrank", 8, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"zscan", 5, RESP_OTHER, -3, 1, 1, 1, R, SHD},
    {"zscore", 6, RESP_OTHER, 3, 1, 1, 1, R | FST, SHD},
    {"zunion", 6, RESP_OTHER, -3, 0, 0, 0, R | MOV, OWN},
    {"zunionstore", 11, RESP_OTHER, -4, 1, 1, 1, W | OOM | MOV, OWN},
};
/* clang-format on */

#undef W
#undef R
#undef OOM
#undef ADM
#undef PUB
#undef NOS
#undef BLK
#undef LDG
#undef STL
#undef SKM
#undef SKS
#undef ASK
#undef FST
#undef NOA
#undef NOM
#undef MOV
#undef BSY
#undef NAL
#undef NMK
#undef SHD
#undef OWN

#endif
