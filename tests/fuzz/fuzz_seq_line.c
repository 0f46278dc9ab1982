/*
 * Any bytes as a line of sequences.define: refused with a reason, or a definition that can be. Then
 * its text is read as the same again, and so is what sidflakectl shows of it, as a line.
 */
#include "feed.h"

#include "coord/seq_options.h"
#include "coord/seq_rows.h"
#include "ctl/seq.h"

enum {
    REFUSED,
    READ,
    SKIPS,
    COUNTS_DOWN,
    PERIODS,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected a line that is refused, found none",
        "expected a definition, found none",
        "expected a sequence that skips, found none",
        "expected a sequence that counts down, found none",
        "expected a sequence with periods, found none",
    };
    return feed_unreached(names, PLACES);
}

static int64_t max_index(const struct seq_create *in)
{
    return seq_max_index(&in->definition, in->max);
}

static void check_numbers(const struct seq_definition *d, int64_t max)
{
    feed_must(max >= 0 && max <= seq_last_index(d) && max < SEQ_INDEX_MAX, "it has numbers");
    for (unsigned i = 0; i < 64; i++) {
        int64_t index = max >> i, number = seq_number(d, index);
        feed_must(number >= -SEQ_NUMBER_MAX && number <= SEQ_NUMBER_MAX, "each is a number");
        feed_must(seq_index_from(d, number) == index, "each number has one index");
        feed_must(seq_has_index(d->start, d->increment, index), "it has each of its indices");
    }
}

/* As a store keeps it. */
static void check_text(const struct seq_definition *d)
{
    struct seq_definition again;
    char text[SEQ_TEXT_MAX], twice[SEQ_TEXT_MAX];
    (void)seq_definition_text(text, d);
    feed_must(strlen(text) + 1 < SEQ_TEXT_MAX, "its text has room");
    feed_must(seq_definition_parse(span_str(text), &again), "its text is a definition");
    feed_must(strcmp(text, seq_definition_text(twice, &again)) == 0, "and says the same");
}

/* As sidflakectl seq show prints it. */
static void check_shown(const char *name, const struct seq_create *in)
{
    char options[SEQ_OPTIONS_MAX], line[SEQ_OPTIONS_MAX + SEQ_NAME_MAX], got[SEQ_NAME_MAX];
    char text[2][SEQ_TEXT_MAX];
    struct seq_create again = {0};
    struct err e = {.text = ""};
    (void)seq_options_text(options, &in->definition, max_index(in));
    (void)snprintf(line, sizeof line, "%s %s", name, options);
    enum err_code code = seq_line_read(span_str(line), got, &again, &e);
    if (code)
        (void)fprintf(stderr, "line \"%s\": %s\n", line, e.text);
    feed_must(code == ERR_OK && strcmp(got, name) == 0, "what is shown is a line of that name");
    feed_must(strcmp(seq_definition_text(text[0], &in->definition),
                     seq_definition_text(text[1], &again.definition)) == 0 &&
                  max_index(&again) == max_index(in),
              "what is shown makes the same again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seq_create in = {0};
    struct seq_definition odd;
    struct err e = {.text = ""};
    char name[SEQ_NAME_MAX] = "";
    struct span line = span_of((const char *)data, size);
    if (seq_definition_parse(line, &odd))
        check_text(&odd);
    if (seq_line_read(line, name, &in, &e)) {
        feed_must(e.text[0] != '\0', "what is refused is explained");
        feed_reached(REFUSED);
        return 0;
    }
    const struct seq_definition *d = &in.definition;
    feed_must(in.name == name && seq_is_name(span_str(name)), "it has a name");
    feed_must(!in.reuse && !in.no_older, "no line gives up numbers");
    feed_must(seq_check(d, in.max, &e) == ERR_OK, "it can be");
    feed_reached(READ);
    if (d->loss == SEQ_LOSS_SKIP)
        feed_reached(SKIPS);
    if (d->increment < 0)
        feed_reached(COUNTS_DOWN);
    if (d->reset != PERIOD_NEVER)
        feed_reached(PERIODS);
    check_numbers(d, max_index(&in));
    check_text(d);
    check_shown(name, &in);
    return 0;
}
