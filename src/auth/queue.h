/*
 * Who is next: a queue of checks that is fair between the parties that ask.
 *
 *     party A  [fresh fresh fresh ...] [again]      each party in turn, whatever it has waiting;
 *     party B  [fresh]                              within it, who has had no wrong answer yet
 * first delayed  50 ms [x x] 100 ms [x] ... 1.6 s     who has had some waits first, whatever
 *                                                     others do
 *
 * Pure: it is given the time, and knows no thread.
 *
 * Invariants
 *   - A party with thousands of entries delays another one's by no more than one with a single one.
 *   - Of four entries of a party at least one is of those that come again, if there are any: nobody
 *     waits for ever.
 *   - Each call takes as long for any number of entries.
 */
#ifndef SIDFLAKE_AUTH_QUEUE_H
#define SIDFLAKE_AUTH_QUEUE_H

#include "base/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUEUE_DELAYS   6u             /* 50 ms and twice as long each time, up to 1.6 s */
#define QUEUE_DELAY_US INT64_C(50000) /* the shortest */

/* Connections with equal numbers are of one party. */
struct queue_peer {
    uint64_t id[2];
};

/* First in what waits. */
struct queue_entry {
    struct link place;
    struct queue_party *party;
    int64_t due_us; /* monotonic; 0: at once */
};

#define QUEUE_BUCKETS 256

struct queue {
    struct link turn; /* parties that have somebody ready */
    struct link delayed[QUEUE_DELAYS];
    struct queue_party *bucket[QUEUE_BUCKETS]; /* all that have anybody */
};

void queue_init(struct queue *q);

/* refused: wrong answers that it has had in a row. false: no memory. */
bool queue_put(struct queue *q, struct queue_entry *e, const struct queue_peer *peer,
               unsigned refused, int64_t now_us);

/* Takes out who is next; NULL: nobody is ready. */
struct queue_entry *queue_take(struct queue *q, int64_t now_us);

/* When the first of those that are delayed is ready; INT64_MAX: there is none. */
int64_t queue_due_us(const struct queue *q);

/* Takes out one that is in it. */
void queue_remove(struct queue *q, struct queue_entry *e);

/* Any that is in it; NULL: it is empty. */
struct queue_entry *queue_any(const struct queue *q);

#endif
