/*
 * A session as bytes, for the program that takes the place of this one (net/carry.c).
 */
#include "serve/redis/redis.h"

#include <assert.h>
#include <stdlib.h>

#define PACKED 2 /* version of what follows it */

static_assert(sizeof(void *) != 8 || sizeof(struct rds_session) == 160,
              "a field came or went: is it packed, and PACKED another?");

/* A request that is too large and half read through; what its end will say is not known yet. */
static void pack_swallow(const struct rds_rest *rest, struct buf *parcel)
{
    parcel_put_u64(parcel, rest != NULL);
    if (!rest)
        return;
    parcel_put_u64(parcel, rest->swallow.args_left);
    parcel_put_u64(parcel, rest->swallow.bytes_left);
    parcel_put_bytes(parcel, span_of(rest->swallow.header, rest->swallow.header_n));
}

static bool unpack_swallow(struct rds_session *ses, struct span *in)
{
    struct resp_swallow s = {.header_n = 0};
    struct span header;
    uint64_t there;
    if (!parcel_get_upto(in, 1, &there))
        return false;
    if (!there)
        return true;
    if (!parcel_get_u64(in, &s.args_left) || !parcel_get_u64(in, &s.bytes_left) ||
        !parcel_get_bytes(in, &header) || header.n >= sizeof s.header) /* it has not ended */
        return false;
    memcpy(s.header, header.p, header.n);
    s.header_n = (uint8_t)header.n;
    ses->rest = calloc(1, sizeof *ses->rest);
    if (ses->rest)
        ses->rest->swallow = s;
    return ses->rest != NULL;
}

/* Where keys stand in a request that is passed on. Before that was told nobody could judge what
 * follows of it: such a connection is not taken over. */
static void pack_keys(const struct rds_session *ses, struct buf *parcel)
{
    if (!ses->rest || !ses->rest->passed_on)
        return;
    parcel_put_u64(parcel, ses->rest->argc);
    parcel_put_u64(parcel, ses->rest->ranges);
    for (uint32_t i = 0; i < ses->rest->ranges; i++) {
        parcel_put_u64(parcel, ses->rest->key[i].from);
        parcel_put_u64(parcel, ses->rest->key[i].to);
        parcel_put_u64(parcel, ses->rest->key[i].step);
    }
    parcel_put_u64(parcel, ses->rest->owed);
}

static bool unpack_keys(const struct rds_session *ses, struct span *in)
{
    struct rds_rest *rest = ses->rest;
    uint64_t argc, ranges, from, to, step, owed = 1;
    if (!rest || !rest->passed_on)
        return true;
    if (!parcel_get_upto(in, INT32_MAX, &argc) || rest->swallow.args_left > argc ||
        !parcel_get_upto(in, RESP_RANGES, &ranges))
        return false;
    rest->argc = (uint32_t)argc;
    rest->ranges = (uint32_t)ranges;
    for (uint32_t i = 0; i < ranges; i++) {
        if (!parcel_get_upto(in, UINT32_MAX, &from) || !parcel_get_upto(in, UINT32_MAX, &to) ||
            !parcel_get_upto(in, UINT32_MAX, &step) || step == 0)
            return false;
        rest->key[i] = (struct resp_range){(uint32_t)from, (uint32_t)to, (uint32_t)step};
    }
    if (in->n > 0 && !parcel_get_upto(in, 1, &owed)) /* versions before took it for granted */
        return false;
    rest->owed = owed;
    return true;
}

/* Bits of what a session has to do with the upstream. */
enum there_bit {
    THERE_MULTI = 1 << 0,
    THERE_IDS = 1 << 1,
    THERE_WATCHING = 1 << 2,
    THERE_NEWS = 1 << 3,
    THERE_LAPSED = 1 << 4,
    THERE_TUNNEL = 1 << 5,
    THERE_STREAMS = 1 << 6,
    THERE_ASKED = 7, /* the first of two bits; a HELLO is under way */
    THERE_UNSAID = 9,
    THERE_ALL = (1 << 11) - 1
};

static uint64_t there_bits(const struct rds_there *t)
{
    return (t->multi ? THERE_MULTI : 0u) | (t->ids ? THERE_IDS : 0u) |
           (t->watching ? THERE_WATCHING : 0u) | (t->news ? THERE_NEWS : 0u) |
           (t->lapsed ? THERE_LAPSED : 0u) | (t->tunnel ? THERE_TUNNEL : 0u) |
           (uint64_t)t->asked << THERE_ASKED | (uint64_t)t->unsaid << THERE_UNSAID;
}

/* The MGET under way is not forwarded yet, for else it would not be carried: it is begun anew, and
 * the IDs that it has drawn are nobody's. */
static void pack_there(const struct net_service *svc, const struct rds_session *ses,
                       struct buf *parcel)
{
    static const struct rds_there none;
    const struct rds_there *t = ses->there ? ses->there : &none;
    parcel_put_u64(parcel, ses->passes);
    parcel_put_u64(parcel, there_bits(t) | (ses->watches ? THERE_WATCHING : 0u) |
                               (ses->rest && ses->rest->passed_on ? THERE_STREAMS : 0u));
    parcel_put_u64(parcel, t->mute);
    parcel_put_u64(parcel, svc->upstream != NULL); /* versions before wrote other numbers, or 0 */
}

/* A server behind has come, or is gone: what a client is in the middle of was said to the other.
 * From a server it would miss what it has subscribed to here; and a transaction that holds IDs
 * would have them from there. */
static bool is_amid(const struct rds_session *ses, uint64_t bits, uint64_t mute)
{
    return ses->multi || ses->subs || bits != 0 || mute != RDS_LOUD;
}

static bool unpack_there(const struct net_service *svc, struct rds_session *ses, struct span *in)
{
    uint64_t passes, bits, mute, behind;
    if (!parcel_get_upto(in, 1, &passes) || !parcel_get_upto(in, THERE_ALL, &bits) ||
        !parcel_get_upto(in, RDS_MUTE_NEXT, &mute) || !parcel_get_u64(in, &behind))
        return false;
    bool was = behind > 0 || (bits & ~(uint64_t)THERE_WATCHING) || mute != RDS_LOUD;
    bool is = svc->upstream;
    if (was != is && is_amid(ses, bits, mute))
        return false;
    ses->passes = is && passes;
    ses->watches = !is && bits & THERE_WATCHING;
    if (!is || (bits == 0 && mute == RDS_LOUD))
        return true;
    ses->there = calloc(1, sizeof *ses->there);
    if (!ses->there)
        return false;
    *ses->there = (struct rds_there){.multi = bits & THERE_MULTI,
                                     .ids = bits & THERE_IDS,
                                     .watching = bits & THERE_WATCHING,
                                     .news = bits & THERE_NEWS,
                                     .lapsed = bits & THERE_LAPSED,
                                     .tunnel = bits & THERE_TUNNEL,
                                     .mute = (uint8_t)mute,
                                     .asked = bits >> THERE_ASKED & 3,
                                     .unsaid = bits >> THERE_UNSAID & 3};
    if (ses->rest)
        ses->rest->passed_on = bits & THERE_STREAMS;
    return ses->there->asked != 1 && ses->there->unsaid != 1 &&
           (ses->rest || !(bits & THERE_STREAMS));
}

bool rds_pack(const struct net_service *svc, const void *session, struct buf *parcel)
{
    const struct rds_session *ses = session;
    parcel_put_u64(parcel, PACKED);
    parcel_put_u64(parcel, ses->id);
    parcel_put_u64(parcel, (uint64_t)ses->since_ms);
    parcel_put_u64(parcel, ses->done);
    parcel_put_u64(parcel, ses->proto);
    parcel_put_u64(parcel, ses->db);
    parcel_put_bytes(parcel, span_of(ses->name, ses->name_n));
    access_pack(((const struct rds_service *)(const void *)svc)->serve, &ses->access, parcel);
    rds_multi_pack(ses, parcel);
    rds_subs_pack(ses, parcel);
    pack_swallow(ses->rest, parcel);
    pack_there(svc, ses, parcel);
    pack_keys(ses, parcel);
    return true;
}

static bool unpack_numbers(struct rds_session *ses, struct span *in)
{
    uint64_t version, since_ms, done, proto, db;
    struct span name;
    if (!parcel_get_u64(in, &version) || version != PACKED || !parcel_get_u64(in, &ses->id) ||
        !parcel_get_upto(in, INT64_MAX, &since_ms) || !parcel_get_upto(in, UINT32_MAX, &done) ||
        !parcel_get_upto(in, 3, &proto) || !parcel_get_upto(in, RDS_DBS - 1, &db) ||
        !parcel_get_bytes(in, &name) || name.n > RDS_NAME_MAX)
        return false;
    ses->since_ms = (int64_t)since_ms;
    ses->done = (uint32_t)done;
    ses->proto = (uint8_t)proto;
    ses->db = (uint8_t)db;
    rds_set_name(ses, name);
    return ses->id == 0 || proto >= 2;
}

bool rds_unpack(struct net_service *net, void *session, struct span packed)
{
    struct rds_service *svc = (struct rds_service *)(void *)net;
    struct rds_session *ses = session;
    if (!unpack_numbers(ses, &packed) || !access_unpack(svc->serve, &ses->access, &packed) ||
        !rds_multi_unpack(ses, &packed) || !rds_subs_unpack(ses, &packed) ||
        !unpack_swallow(ses, &packed) || !unpack_there(net, ses, &packed) ||
        !unpack_keys(ses, &packed))
        return false;
    if (ses->id > svc->clients) /* a CLIENT ID is given out once */
        svc->clients = ses->id;
    return packed.n == 0;
}
