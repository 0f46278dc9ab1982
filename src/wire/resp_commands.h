/*
 * The commands of Redis 7.0.15, as its COMMAND lists them: every name, arity, key range and flag;
 * subcommands are left out. The verb is ours.
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

/* clang-format off */
static const struct resp_cmd commands[] = {
    /* name, bytes, verb, arity, first key, last key, step, flags */
    {"acl", 3, RESP_OTHER, -2, 0, 0, 0, 0},
    {"append", 6, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST},
    {"asking", 6, RESP_OTHER, 1, 0, 0, 0, FST},
    {"auth", 4, RESP_AUTH, -2, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY},
    {"bgrewriteaof", 12, RESP_OTHER, 1, 0, 0, 0, ADM | NOS | NAL},
    {"bgsave", 6, RESP_OTHER, -1, 0, 0, 0, ADM | NOS | NAL},
    {"bitcount", 8, RESP_OTHER, -2, 1, 1, 1, R},
    {"bitfield", 8, RESP_OTHER, -2, 1, 1, 1, W | OOM},
    {"bitfield_ro", 11, RESP_OTHER, -2, 1, 1, 1, R | FST},
    {"bitop", 5, RESP_OTHER, -4, 2, -1, 1, W | OOM},
    {"bitpos", 6, RESP_OTHER, -3, 1, 1, 1, R},
    {"blmove", 6, RESP_OTHER, 6, 1, 2, 1, W | OOM | NOS | BLK},
    {"blmpop", 6, RESP_OTHER, -5, 0, 0, 0, W | BLK | MOV},
    {"blpop", 5, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK},
    {"brpop", 5, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK},
    {"brpoplpush", 10, RESP_OTHER, 4, 1, 2, 1, W | OOM | NOS | BLK},
    {"bzmpop", 6, RESP_OTHER, -5, 0, 0, 0, W | BLK | MOV},
    {"bzpopmax", 8, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK | FST},
    {"bzpopmin", 8, RESP_OTHER, -3, 1, -2, 1, W | NOS | BLK | FST},
    {"client", 6, RESP_CLIENT, -2, 0, 0, 0, 0},
    {"cluster", 7, RESP_CLUSTER, -2, 0, 0, 0, 0},
    {"command", 7, RESP_COMMAND, -1, 0, 0, 0, LDG | STL},
    {"config", 6, RESP_CONFIG, -2, 0, 0, 0, 0},
    {"copy", 4, RESP_OTHER, -3, 1, 2, 1, W | OOM},
    {"dbsize", 6, RESP_DBSIZE, 1, 0, 0, 0, R | FST},
    {"debug", 5, RESP_DEBUG, -2, 0, 0, 0, ADM | NOS | LDG | STL},
    {"decr", 4, RESP_OTHER, 2, 1, 1, 1, W | OOM | FST},
    {"decrby", 6, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST},
    {"del", 3, RESP_OTHER, -2, 1, -1, 1, W},
    {"discard", 7, RESP_DISCARD, 1, 0, 0, 0, NOS | LDG | STL | FST | BSY},
    {"dump", 4, RESP_OTHER, 2, 1, 1, 1, R},
    {"echo", 4, RESP_ECHO, 2, 0, 0, 0, LDG | STL | FST},
    {"eval", 4, RESP_EVAL, -3, 0, 0, 0, NOS | STL | SKM | MOV | NMK},
    {"eval_ro", 7, RESP_EVAL, -3, 0, 0, 0, R | NOS | STL | SKM | MOV | NMK},
    {"evalsha", 7, RESP_EVAL, -3, 0, 0, 0, NOS | STL | SKM | MOV | NMK},
    {"evalsha_ro", 10, RESP_EVAL, -3, 0, 0, 0, R | NOS | STL | SKM | MOV | NMK},
    {"exec", 4, RESP_EXEC, 1, 0, 0, 0, NOS | LDG | STL | SKS},
    {"exists", 6, RESP_EXISTS, -2, 1, -1, 1, R | FST},
    {"expire", 6, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"expireat", 8, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"expiretime", 10, RESP_EXPIRETIME, 2, 1, 1, 1, R | FST},
    {"failover", 8, RESP_OTHER, -1, 0, 0, 0, ADM | NOS | STL},
    {"fcall", 5, RESP_EVAL, -3, 0, 0, 0, NOS | STL | SKM | MOV | NMK},
    {"fcall_ro", 8, RESP_EVAL, -3, 0, 0, 0, R | NOS | STL | SKM | MOV | NMK},
    {"flushall", 8, RESP_FLUSH, -1, 0, 0, 0, W},
    {"flushdb", 7, RESP_FLUSH, -1, 0, 0, 0, W},
    {"function", 8, RESP_OTHER, -2, 0, 0, 0, 0},
    {"geoadd", 6, RESP_OTHER, -5, 1, 1, 1, W | OOM},
    {"geodist", 7, RESP_OTHER, -4, 1, 1, 1, R},
    {"geohash", 7, RESP_OTHER, -2, 1, 1, 1, R},
    {"geopos", 6, RESP_OTHER, -2, 1, 1, 1, R},
    {"georadius", 9, RESP_OTHER, -6, 1, 1, 1, W | OOM | MOV},
    {"georadius_ro", 12, RESP_OTHER, -6, 1, 1, 1, R},
    {"georadiusbymember", 17, RESP_OTHER, -5, 1, 1, 1, W | OOM | MOV},
    {"georadiusbymember_ro", 20, RESP_OTHER, -5, 1, 1, 1, R},
    {"geosearch", 9, RESP_OTHER, -7, 1, 1, 1, R},
    {"geosearchstore", 14, RESP_OTHER, -8, 1, 2, 1, W | OOM},
    {"get", 3, RESP_GET, 2, 1, 1, 1, R | FST},
    {"getbit", 6, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"getdel", 6, RESP_GETDEL, 2, 1, 1, 1, W | FST},
    {"getex", 5, RESP_GETEX, -2, 1, 1, 1, W | FST},
    {"getrange", 8, RESP_OTHER, 4, 1, 1, 1, R},
    {"getset", 6, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST},
    {"hdel", 4, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"hello", 5, RESP_HELLO, -1, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY},
    {"hexists", 7, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"hget", 4, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"hgetall", 7, RESP_OTHER, 2, 1, 1, 1, R},
    {"hincrby", 7, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST},
    {"hincrbyfloat", 12, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST},
    {"hkeys", 5, RESP_OTHER, 2, 1, 1, 1, R},
    {"hlen", 4, RESP_OTHER, 2, 1, 1, 1, R | FST},
    {"hmget", 5, RESP_OTHER, -3, 1, 1, 1, R | FST},
    {"hmset", 5, RESP_OTHER, -4, 1, 1, 1, W | OOM | FST},
    {"hrandfield", 10, RESP_OTHER, -2, 1, 1, 1, R},
    {"hscan", 5, RESP_OTHER, -3, 1, 1, 1, R},
    {"hset", 4, RESP_OTHER, -4, 1, 1, 1, W | OOM | FST},
    {"hsetnx", 6, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST},
    {"hstrlen", 7, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"hvals", 5, RESP_OTHER, 2, 1, 1, 1, R},
    {"incr", 4, RESP_INCR, 2, 1, 1, 1, W | OOM | FST},
    {"incrby", 6, RESP_INCRBY, 3, 1, 1, 1, W | OOM | FST},
    {"incrbyfloat", 11, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST},
    {"info", 4, RESP_INFO, -1, 0, 0, 0, LDG | STL},
    {"keys", 4, RESP_KEYS, 2, 0, 0, 0, R},
    {"lastsave", 8, RESP_OTHER, 1, 0, 0, 0, LDG | STL | FST},
    {"latency", 7, RESP_LATENCY, -2, 0, 0, 0, 0},
    {"lcs", 3, RESP_OTHER, -3, 1, 2, 1, R},
    {"lindex", 6, RESP_OTHER, 3, 1, 1, 1, R},
    {"linsert", 7, RESP_OTHER, 5, 1, 1, 1, W | OOM},
    {"llen", 4, RESP_OTHER, 2, 1, 1, 1, R | FST},
    {"lmove", 5, RESP_OTHER, 5, 1, 2, 1, W | OOM},
    {"lmpop", 5, RESP_OTHER, -4, 0, 0, 0, W | MOV},
    {"lolwut", 6, RESP_OTHER, -1, 0, 0, 0, R | FST},
    {"lpop", 4, RESP_LPOP, -2, 1, 1, 1, W | FST},
    {"lpos", 4, RESP_OTHER, -3, 1, 1, 1, R},
    {"lpush", 5, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST},
    {"lpushx", 6, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST},
    {"lrange", 6, RESP_OTHER, 4, 1, 1, 1, R},
    {"lrem", 4, RESP_OTHER, 4, 1, 1, 1, W},
    {"lset", 4, RESP_OTHER, 4, 1, 1, 1, W | OOM},
    {"ltrim", 5, RESP_OTHER, 4, 1, 1, 1, W},
    {"memory", 6, RESP_OTHER, -2, 0, 0, 0, 0},
    {"mget", 4, RESP_MGET, -2, 1, -1, 1, R | FST},
    {"migrate", 7, RESP_OTHER, -6, 3, 3, 1, W | MOV},
    {"module", 6, RESP_OTHER, -2, 0, 0, 0, 0},
    {"monitor", 7, RESP_MONITOR, 1, 0, 0, 0, ADM | NOS | LDG | STL},
    {"move", 4, RESP_OTHER, 3, 1, 1, 1, W | FST},
    {"mset", 4, RESP_OTHER, -3, 1, -1, 2, W | OOM},
    {"msetnx", 6, RESP_OTHER, -3, 1, -1, 2, W | OOM},
    {"multi", 5, RESP_MULTI, 1, 0, 0, 0, NOS | LDG | STL | FST | BSY},
    {"object", 6, RESP_OTHER, -2, 0, 0, 0, 0},
    {"persist", 7, RESP_OTHER, 2, 1, 1, 1, W | FST},
    {"pexpire", 7, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"pexpireat", 9, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"pexpiretime", 11, RESP_PEXPIRETIME, 2, 1, 1, 1, R | FST},
    {"pfadd", 5, RESP_OTHER, -2, 1, 1, 1, W | OOM | FST},
    {"pfcount", 7, RESP_OTHER, -2, 1, -1, 1, R},
    {"pfdebug", 7, RESP_OTHER, 3, 2, 2, 1, W | OOM | ADM},
    {"pfmerge", 7, RESP_OTHER, -2, 1, -1, 1, W | OOM},
    {"pfselftest", 10, RESP_OTHER, 1, 0, 0, 0, ADM},
    {"ping", 4, RESP_PING, -1, 0, 0, 0, FST},
    {"psetex", 6, RESP_OTHER, 4, 1, 1, 1, W | OOM},
    {"psubscribe", 10, RESP_PSUBSCRIBE, -2, 0, 0, 0, PUB | NOS | LDG | STL},
    {"psync", 5, RESP_SYNC, -3, 0, 0, 0, ADM | NOS | NOM | NAL},
    {"pttl", 4, RESP_PTTL, 2, 1, 1, 1, R | FST},
    {"publish", 7, RESP_OTHER, 3, 0, 0, 0, PUB | LDG | STL | FST},
    {"pubsub", 6, RESP_OTHER, -2, 0, 0, 0, 0},
    {"punsubscribe", 12, RESP_PUNSUBSCRIBE, -1, 0, 0, 0, PUB | NOS | LDG | STL},
    {"quit", 4, RESP_QUIT, -1, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY},
    {"randomkey", 9, RESP_RANDOMKEY, 1, 0, 0, 0, R},
    {"readonly", 8, RESP_READONLY, 1, 0, 0, 0, LDG | STL | FST},
    {"readwrite", 9, RESP_READONLY, 1, 0, 0, 0, LDG | STL | FST},
    {"rename", 6, RESP_OTHER, 3, 1, 2, 1, W},
    {"renamenx", 8, RESP_OTHER, 3, 1, 2, 1, W | FST},
    {"replconf", 8, RESP_SYNC, -1, 0, 0, 0, ADM | NOS | LDG | STL | BSY},
    {"replicaof", 9, RESP_OTHER, 3, 0, 0, 0, ADM | NOS | STL | NAL},
    {"reset", 5, RESP_RESET, 1, 0, 0, 0, NOS | LDG | STL | FST | NOA | BSY},
    {"restore", 7, RESP_OTHER, -4, 1, 1, 1, W | OOM},
    {"restore-asking", 14, RESP_OTHER, -4, 1, 1, 1, W | OOM | ASK},
    {"role", 4, RESP_OTHER, 1, 0, 0, 0, NOS | LDG | STL | FST},
    {"rpop", 4, RESP_RPOP, -2, 1, 1, 1, W | FST},
    {"rpoplpush", 9, RESP_OTHER, 3, 1, 2, 1, W | OOM},
    {"rpush", 5, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST},
    {"rpushx", 6, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST},
    {"sadd", 4, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST},
    {"save", 4, RESP_OTHER, 1, 0, 0, 0, ADM | NOS | NOM | NAL},
    {"scan", 4, RESP_SCAN, -2, 0, 0, 0, R},
    {"scard", 5, RESP_OTHER, 2, 1, 1, 1, R | FST},
    {"script", 6, RESP_OTHER, -2, 0, 0, 0, 0},
    {"sdiff", 5, RESP_OTHER, -2, 1, -1, 1, R},
    {"sdiffstore", 10, RESP_OTHER, -3, 1, -1, 1, W | OOM},
    {"select", 6, RESP_SELECT, 2, 0, 0, 0, LDG | STL | FST},
    {"set", 3, RESP_OTHER, -3, 1, 1, 1, W | OOM},
    {"setbit", 6, RESP_OTHER, 4, 1, 1, 1, W | OOM},
    {"setex", 5, RESP_OTHER, 4, 1, 1, 1, W | OOM},
    {"setnx", 5, RESP_OTHER, 3, 1, 1, 1, W | OOM | FST},
    {"setrange", 8, RESP_OTHER, 4, 1, 1, 1, W | OOM},
    {"shutdown", 8, RESP_SHUTDOWN, -1, 0, 0, 0, ADM | NOS | LDG | STL | NOM | BSY},
    {"sinter", 6, RESP_OTHER, -2, 1, -1, 1, R},
    {"sintercard", 10, RESP_OTHER, -3, 0, 0, 0, R | MOV},
    {"sinterstore", 11, RESP_OTHER, -3, 1, -1, 1, W | OOM},
    {"sismember", 9, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"slaveof", 7, RESP_OTHER, 3, 0, 0, 0, ADM | NOS | STL | NAL},
    {"slowlog", 7, RESP_SLOWLOG, -2, 0, 0, 0, 0},
    {"smembers", 8, RESP_OTHER, 2, 1, 1, 1, R},
    {"smismember", 10, RESP_OTHER, -3, 1, 1, 1, R | FST},
    {"smove", 5, RESP_OTHER, 4, 1, 2, 1, W | FST},
    {"sort", 4, RESP_OTHER, -2, 1, 1, 1, W | OOM | MOV},
    {"sort_ro", 7, RESP_OTHER, -2, 1, 1, 1, R | MOV},
    {"spop", 4, RESP_SPOP, -2, 1, 1, 1, W | FST},
    {"spublish", 8, RESP_OTHER, 3, 1, 1, 1, PUB | LDG | STL | FST},
    {"srandmember", 11, RESP_SRANDMEMBER, -2, 1, 1, 1, R},
    {"srem", 4, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"sscan", 5, RESP_OTHER, -3, 1, 1, 1, R},
    {"ssubscribe", 10, RESP_SSUBSCRIBE, -2, 1, -1, 1, PUB | NOS | LDG | STL},
    {"strlen", 6, RESP_OTHER, 2, 1, 1, 1, R | FST},
    {"subscribe", 9, RESP_SUBSCRIBE, -2, 0, 0, 0, PUB | NOS | LDG | STL},
    {"substr", 6, RESP_OTHER, 4, 1, 1, 1, R},
    {"sunion", 6, RESP_OTHER, -2, 1, -1, 1, R},
    {"sunionstore", 11, RESP_OTHER, -3, 1, -1, 1, W | OOM},
    {"sunsubscribe", 12, RESP_SUNSUBSCRIBE, -1, 1, -1, 1, PUB | NOS | LDG | STL},
    {"swapdb", 6, RESP_OTHER, 3, 0, 0, 0, W | FST},
    {"sync", 4, RESP_SYNC, 1, 0, 0, 0, ADM | NOS | NOM | NAL},
    {"time", 4, RESP_TIME, 1, 0, 0, 0, LDG | STL | FST},
    {"touch", 5, RESP_OTHER, -2, 1, -1, 1, R | FST},
    {"ttl", 3, RESP_TTL, 2, 1, 1, 1, R | FST},
    {"type", 4, RESP_TYPE, 2, 1, 1, 1, R | FST},
    {"unlink", 6, RESP_OTHER, -2, 1, -1, 1, W | FST},
    {"unsubscribe", 11, RESP_UNSUBSCRIBE, -1, 0, 0, 0, PUB | NOS | LDG | STL},
    {"unwatch", 7, RESP_UNWATCH, 1, 0, 0, 0, NOS | LDG | STL | FST | BSY},
    {"wait", 4, RESP_OTHER, 3, 0, 0, 0, NOS},
    {"watch", 5, RESP_WATCH, -2, 1, -1, 1, NOS | LDG | STL | FST | BSY},
    {"xack", 4, RESP_OTHER, -4, 1, 1, 1, W | FST},
    {"xadd", 4, RESP_OTHER, -5, 1, 1, 1, W | OOM | FST},
    {"xautoclaim", 10, RESP_OTHER, -6, 1, 1, 1, W | FST},
    {"xclaim", 6, RESP_OTHER, -6, 1, 1, 1, W | FST},
    {"xdel", 4, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"xgroup", 6, RESP_OTHER, -2, 0, 0, 0, 0},
    {"xinfo", 5, RESP_OTHER, -2, 0, 0, 0, 0},
    {"xlen", 4, RESP_OTHER, 2, 1, 1, 1, R | FST},
    {"xpending", 8, RESP_OTHER, -3, 1, 1, 1, R},
    {"xrange", 6, RESP_OTHER, -4, 1, 1, 1, R},
    {"xread", 5, RESP_OTHER, -4, 0, 0, 0, R | BLK | MOV},
    {"xreadgroup", 10, RESP_OTHER, -7, 0, 0, 0, W | BLK | MOV},
    {"xrevrange", 9, RESP_OTHER, -4, 1, 1, 1, R},
    {"xsetid", 6, RESP_OTHER, -3, 1, 1, 1, W | OOM | FST},
    {"xtrim", 5, RESP_OTHER, -4, 1, 1, 1, W},
    {"zadd", 4, RESP_OTHER, -4, 1, 1, 1, W | OOM | FST},
    {"zcard", 5, RESP_OTHER, 2, 1, 1, 1, R | FST},
    {"zcount", 6, RESP_OTHER, 4, 1, 1, 1, R | FST},
    {"zdiff", 5, RESP_OTHER, -3, 0, 0, 0, R | MOV},
    {"zdiffstore", 10, RESP_OTHER, -4, 1, 1, 1, W | OOM | MOV},
    {"zincrby", 7, RESP_OTHER, 4, 1, 1, 1, W | OOM | FST},
    {"zinter", 6, RESP_OTHER, -3, 0, 0, 0, R | MOV},
    {"zintercard", 10, RESP_OTHER, -3, 0, 0, 0, R | MOV},
    {"zinterstore", 11, RESP_OTHER, -4, 1, 1, 1, W | OOM | MOV},
    {"zlexcount", 9, RESP_OTHER, 4, 1, 1, 1, R | FST},
    {"zmpop", 5, RESP_OTHER, -4, 0, 0, 0, W | MOV},
    {"zmscore", 7, RESP_OTHER, -3, 1, 1, 1, R | FST},
    {"zpopmax", 7, RESP_OTHER, -2, 1, 1, 1, W | FST},
    {"zpopmin", 7, RESP_OTHER, -2, 1, 1, 1, W | FST},
    {"zrandmember", 11, RESP_OTHER, -2, 1, 1, 1, R},
    {"zrange", 6, RESP_OTHER, -4, 1, 1, 1, R},
    {"zrangebylex", 11, RESP_OTHER, -4, 1, 1, 1, R},
    {"zrangebyscore", 13, RESP_OTHER, -4, 1, 1, 1, R},
    {"zrangestore", 11, RESP_OTHER, -5, 1, 2, 1, W | OOM},
    {"zrank", 5, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"zrem", 4, RESP_OTHER, -3, 1, 1, 1, W | FST},
    {"zremrangebylex", 14, RESP_OTHER, 4, 1, 1, 1, W},
    {"zremrangebyrank", 15, RESP_OTHER, 4, 1, 1, 1, W},
    {"zremrangebyscore", 16, RESP_OTHER, 4, 1, 1, 1, W},
    {"zrevrange", 9, RESP_OTHER, -4, 1, 1, 1, R},
    {"zrevrangebylex", 14, RESP_OTHER, -4, 1, 1, 1, R},
    {"zrevrangebyscore", 16, RESP_OTHER, -4, 1, 1, 1, R},
    {"zrevrank", 8, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"zscan", 5, RESP_OTHER, -3, 1, 1, 1, R},
    {"zscore", 6, RESP_OTHER, 3, 1, 1, 1, R | FST},
    {"zunion", 6, RESP_OTHER, -3, 0, 0, 0, R | MOV},
    {"zunionstore", 11, RESP_OTHER, -4, 1, 1, 1, W | OOM | MOV},
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

#endif
