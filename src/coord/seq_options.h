/*
 * Definitions of sequences as people write them: the options of `sidflakectl seq create`, also as
 * one line, as in sequences.define:
 *
 *     orders --start 100 --max-rate 1000
 *
 * Pure.
 */
#ifndef SIDFLAKE_COORD_SEQ_OPTIONS_H
#define SIDFLAKE_COORD_SEQ_OPTIONS_H

#include "coord/seq_calls.h"

#define SEQ_SUBS_DEFAULT    100000
#define SEQ_BACK_DEFAULT_H  (400 * 24) /* of one with a template and periods */
#define SEQ_NUMBER_EXPECTED "a whole number, at most 2^53-1 from 0"

/* What was said of a definition; zero, and NULL, is what was not. Texts are the caller's. */
struct seq_words {
    const char *order, *reset, *timezone, *on_loss, *template, *date_back;
    bool cycle, subs, fresh, reuse, no_older;
    bool has_start, has_increment, has_max, has_rate, has_begins;
    int64_t start, increment, max, rate, begins_ms;
    uint32_t max_subs; /* 0: not said */
};

/* Notes what option `name`, without its dashes, says; text is ignored where it has no value, and
 * outlives *out else. ERR_INVALID says what it should have been. */
enum err_code seq_word_read(const char *name, const char *text, struct seq_words *out,
                            struct err *e) MUST_CHECK;

/* What the words come to; out->name is left as it is. ERR_INVALID or ERR_RANGE says what they
 * should have been. */
enum err_code seq_words_read(const struct seq_words *in, struct seq_create *out,
                             struct err *e) MUST_CHECK;

/* "NAME --option value ...": name has SEQ_NAME_MAX bytes, and out->name is it. */
enum err_code seq_line_read(struct span line, char *name, struct seq_create *out,
                            struct err *e) MUST_CHECK;

/* "--start 1 --increment 1 ...": the options by which it is made again as it is, for a shell and
 * for a line. out has SEQ_OPTIONS_MAX bytes, which are enough for a template of nothing but
 * apostrophes. max: highest index. Returns out. */
#define SEQ_OPTIONS_MAX 1536
char *seq_options_text(char *out, const struct seq_definition *d, int64_t max);

/* Whether a sequence can have this name: ERR_INVALID says what was expected. */
enum err_code seq_check_name(struct span name, struct err *e) MUST_CHECK;

/* "12" or "-12", up to SEQ_NUMBER_MAX either way. */
bool seq_number_read(struct span s, int64_t *out);

/* "UTC", "Z", "+01:00" or "-03:30", as minutes east of UTC. */
bool seq_zone_read(struct span s, int *offset_min);

/* "UTC", or as "+01:00"; out has SEQ_ZONE_MAX bytes. Returns out. */
#define SEQ_ZONE_MAX 8
char *seq_zone_text(char *out, int offset_min);

#endif
