#include "lease/blocks_left.h"

#include "lease/blocks_slots.h"

int64_t blocks_left_in(const struct blocks *b, const struct blocks_slot *s)
{
    return s->state == PAGE_HELD ? s->hi - s->lo + 1 - blocks_given(b, s) : 0;
}

int64_t blocks_left_of(const struct blocks *b, uint32_t i)
{
    int64_t sum = 0;
    for (unsigned k = 0; k < BLOCKS_SLOTS; k++)
        sum += blocks_left_in(b, &b->counter[i].slot[k]);
    return sum;
}

int64_t blocks_left(const struct blocks *b, bool unproven)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < b->conf.counters; i++)
        for (unsigned k = 0; k < BLOCKS_SLOTS; k++) {
            const struct blocks_slot *s = &b->counter[i].slot[k];
            sum += !unproven || s->unproven ? blocks_left_in(b, s) : 0;
        }
    return sum;
}

void blocks_note_left(const struct blocks *b, const struct blocks_action *a, struct blocks_was *was)
{
    was->left = 0;
    for (size_t k = 0; k < a->nitems; k++)
        for (unsigned j = 0; j < BLOCKS_SLOTS; j++) {
            const struct blocks_slot *s = &b->counter[a->counter[k]].slot[j];
            was->handle[k][j] = s->handle;
            was->left += blocks_left_in(b, s);
        }
}

int64_t blocks_gone_since(const struct blocks *b, const struct blocks_action *a,
                          const struct blocks_was *was)
{
    int64_t left = 0;
    for (size_t k = 0; k < a->nitems; k++)
        for (unsigned j = 0; j < BLOCKS_SLOTS; j++) {
            const struct blocks_slot *s = &b->counter[a->counter[k]].slot[j];
            left += s->handle == was->handle[k][j] ? blocks_left_in(b, s) : 0;
        }
    return was->left - left;
}
