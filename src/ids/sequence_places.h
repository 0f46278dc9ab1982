/*
 * What the files of the table of sequences share, and nobody else includes.
 */
#ifndef SIDFLAKE_IDS_SEQUENCE_PLACES_H
#define SIDFLAKE_IDS_SEQUENCE_PLACES_H

#include "ids/sequence_table.h"

static inline uint32_t sequence_place_of(const struct sequence_generator *s)
{
    return (uint32_t)(s - s->table->place);
}

/* The open place of that counter; NULL: there is none. */
struct sequence_generator *sequence_places_find(const struct sequence_table *t,
                                                const struct sequence_name *of);

/* Opens one; head: of the sequence whose period it is; NULL: of one that nobody knows yet. NULL:
 * none can be had now, and one is being closed for it if one can be. */
struct sequence_generator *sequence_places_open(struct sequence_table *t,
                                                const struct sequence_name *of,
                                                const struct sequence_generator *head);

/* So many, at most, are of names that nobody is known to have made. */
uint32_t sequence_places_unknown_max(const struct sequence_table *t);

/* What it has in hand is a gap. */
void sequence_places_close(struct sequence_generator *s);

/* It has something to tell. */
void sequence_places_queue(struct sequence_generator *s);

/* What was told of it may be so no more, and nothing else would ask: it is, now and then. */
void sequence_places_look_again(struct sequence_generator *s, int64_t mono);

/* The coordinator has said that the sequence of that counter has no subs. */
void sequence_places_note_subless(const struct sequence_generator *s);

/* There is such a counter, or there is none, as far as is known. */
void sequence_places_set_live(struct sequence_generator *s, bool live);

/* There is such a sequence, whatever is known of its counter: from now on it has a row. */
void sequence_places_show(struct sequence_generator *s);

/* Closes the live one that was not used for longest, but not this one. make_room: where those that
 * are live have taken the others' share. */
void sequence_places_evict(struct sequence_table *t, const struct sequence_generator *but);
void sequence_places_make_room(struct sequence_table *t, const struct sequence_generator *but);

/* sequence_period.c: the place of the present period of a head; a cause: there is none yet. */
enum sequence_cause sequence_period_present(struct sequence_generator *head, int64_t mono,
                                            struct sequence_generator **out);

/* Fills in when its own period is. false: it is no label of such a period. */
bool sequence_period_fill(struct sequence_generator *s, int reset, int offset_min);

/* Whether its own period, which the request has named, has not begun; *until_mono: then it has. */
bool sequence_period_is_ahead(const struct sequence_generator *s, int64_t mono,
                              int64_t *until_mono);

#endif
