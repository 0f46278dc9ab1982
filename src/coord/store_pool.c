/* The numbers of a pool's row, in an order for stores that keep each in a column or a field. */
#include "coord/store.h"

#include <string.h>

bool store_pool_unpack(struct store_pool *out, const int64_t v[STORE_POOL_NUMBERS])
{
    struct coord_params *params = &out->p.params;
    if (v[12] > UINT16_MAX || v[13] >= COORD_WORKERS || v[14] >= COORD_WORKERS)
        return false;
    out->era = v[0];
    out->p.topen_ms = v[1];
    out->p.floor_ms = v[2];
    out->p.floor_short_ms = v[3];
    out->p.tmax_ms = v[4];
    out->p.closed = v[5] != 0;
    out->p.moved = v[5] == COORD_CLOSED_MOVED;
    out->adopt = v[6] != 0;
    params->horizon_ms = v[7];
    params->first_horizon_ms = v[8];
    params->mature_after_ms = v[9];
    params->max_skew_ms = v[10];
    params->grace_ms = v[11];
    params->replicas = (uint32_t)v[12];
    params->worker_from = (uint16_t)v[13];
    params->worker_to = (uint16_t)v[14];
    out->p.born_ms = v[15];
    memcpy(&out->p.later, v + STORE_POOL_NUMBERS - COORD_LATERS, sizeof out->p.later);
    return true;
}

void store_pool_pack(const struct store_pool *in, int64_t v[STORE_POOL_NUMBERS])
{
    const struct coord_params *params = &in->p.params;
    const int64_t all[STORE_POOL_NUMBERS] = {
        in->era,
        in->p.topen_ms,
        in->p.floor_ms,
        in->p.floor_short_ms,
        in->p.tmax_ms,
        in->p.moved ? COORD_CLOSED_MOVED : in->p.closed,
        in->adopt,
        params->horizon_ms,
        params->first_horizon_ms,
        params->mature_after_ms,
        params->max_skew_ms,
        params->grace_ms,
        params->replicas,
        params->worker_from,
        params->worker_to,
        in->p.born_ms,
    };
    memcpy(v, all, sizeof all);
    memcpy(v + STORE_POOL_NUMBERS - COORD_LATERS, &in->p.later, sizeof in->p.later);
}
