/*
 * A session as bytes, for the program that takes the place of this one (net/carry.c).
 */
#include "serve/memcached/memcached.h"

#include <assert.h>
#include <stdlib.h>

#define PACKED     2 /* version of what follows it, and of the states', verbs', results' numbers */
#define PACKED_OLD 1 /* in which who has an upstream is MCD_NEW; else the same */
#define ANSWER_MAX 2048 /* bytes of what a data block is answered with */

static_assert(sizeof(void *) != 8 || sizeof(struct mcd_session) == 96,
              "a field came or went: is it packed, and PACKED another?");

/* An answer is of use only while a block is under way; after it, it points to what is gone. */
bool mcd_pack(const struct net_service *svc, const void *session, struct buf *parcel)
{
    const struct mcd_session *s = session;
    bool answer = s->state == MCD_SWALLOW;
    bool through = s->state == MCD_THROUGH || s->state == MCD_BINARY_THROUGH;
    if (s->state > MCD_BINARY && !through) /* within what is being forwarded */
        return false;
    parcel_put_u64(parcel, PACKED);
    parcel_put_u64(parcel, s->done);
    parcel_put_u64(parcel, s->state);
    parcel_put_u64(parcel, s->swallow.left);
    parcel_put_u64(parcel, s->swallow.bad);
    parcel_put_u64(parcel, s->noreply);
    parcel_put_u64(parcel, s->passing);
    parcel_put_u64(parcel, s->verb);
    parcel_put_u64(parcel, s->result);
    parcel_put_u64(parcel, s->opcode);
    parcel_put_u64(parcel, s->error);
    parcel_put_bytes(parcel, span_of(s->opaque, sizeof s->opaque));
    access_pack(((const struct memcached *)svc)->serve, &s->access, parcel);
    parcel_put_bytes(parcel, answer ? s->answer : span_of(NULL, 0));
    return true;
}

/* A number of one byte, of at most max. */
static bool get_u8(struct span *in, uint8_t max, uint8_t *v)
{
    uint64_t wide;
    if (!parcel_get_upto(in, max, &wide))
        return false;
    *v = (uint8_t)wide;
    return true;
}

static bool get_flag(struct span *in, bool *v)
{
    uint64_t wide;
    if (!parcel_get_upto(in, 1, &wide))
        return false;
    *v = wide;
    return true;
}

/* Which protocol it speaks was decided by its first byte; the next one would not tell. Whether
 * there is an upstream is as it is by now. */
static bool get_state(const struct net_service *svc, struct span *in, uint8_t *state)
{
    bool there = svc->upstream;
    if (!get_u8(in, MCD_BINARY_THROUGH, state))
        return false;
    if (*state == MCD_THROUGH || *state == MCD_TEXT)
        *state = there ? MCD_THROUGH : MCD_TEXT;
    else if (*state == MCD_BINARY_THROUGH || *state == MCD_BINARY)
        *state = there ? MCD_BINARY_THROUGH : MCD_BINARY;
    return *state <= MCD_THROUGH || *state == MCD_BINARY_THROUGH;
}

static bool keep_answer(struct mcd_session *s, struct span answer)
{
    if (answer.n == 0)
        return true;
    s->kept = answer.n <= ANSWER_MAX ? malloc(answer.n) : NULL;
    if (!s->kept)
        return false;
    memcpy(s->kept, answer.p, answer.n);
    s->answer = span_of(s->kept, answer.n);
    return true;
}

bool mcd_unpack(struct net_service *svc, void *session, struct span in)
{
    const struct serve *serve = ((const struct memcached *)svc)->serve;
    struct mcd_session *s = session;
    struct span opaque, answer;
    uint64_t version, done;
    if (!parcel_get_upto(&in, PACKED, &version) || version < PACKED_OLD ||
        !parcel_get_upto(&in, NET_IN_MAX, &done) || !get_state(svc, &in, &s->state) ||
        !parcel_get_u64(&in, &s->swallow.left) || !get_flag(&in, &s->swallow.bad) ||
        !get_flag(&in, &s->noreply) || !get_flag(&in, &s->passing) ||
        !get_u8(&in, MC_VERB_COUNT - 1, &s->verb) || !get_u8(&in, SERVE_RESULTS - 1, &s->result) ||
        !get_u8(&in, UINT8_MAX, &s->opcode) || !get_u8(&in, UINT8_MAX, &s->error) ||
        !parcel_get_bytes(&in, &opaque) || opaque.n != sizeof s->opaque ||
        !access_unpack(serve, &s->access, &in) || !parcel_get_bytes(&in, &answer) || in.n > 0)
        return false;
    s->done = (size_t)done;
    memcpy(s->opaque, opaque.p, sizeof s->opaque);
    return keep_answer(s, answer);
}
