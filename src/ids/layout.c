/*
 * Layouts as texts: as people write them, and as identities have them. Both are one grammar, of
 * fields from the highest bit down:
 *
 *    time:39,unit=10ms sequence:8 worker:16      t39*10.s8.w16
 */
#include "ids/layout.h"

#include "base/buf.h"
#include "base/dec.h"

#include <string.h>

const struct layout layout_usual = {.time_bits = LAYOUT_TIME_BITS,
                                    .worker_bits = LAYOUT_WORKER_BITS,
                                    .sequence_bits = LAYOUT_SEQUENCE_BITS,
                                    .time_shift = LAYOUT_WORKER_BITS + LAYOUT_SEQUENCE_BITS,
                                    .worker_shift = LAYOUT_SEQUENCE_BITS,
                                    .unit_ms = 1};

#define TEXT_OF_(bits) #bits
#define TEXT_OF(bits)  TEXT_OF_(bits)

static const char usual_name[] =
    TEXT_OF(LAYOUT_TIME_BITS) "." TEXT_OF(LAYOUT_WORKER_BITS) "." TEXT_OF(LAYOUT_SEQUENCE_BITS);

/* Instagram's and Discord's time has one bit more, which is the sign of a signed 64-bit number and
 * not set before 2046 and 2084. */
const struct layout_preset layout_presets[] = {
    {"sidflake", "time:38 worker:15 sequence:10", "the usual one: 8.7 years, 32,768 workerIds"},
    {"twitter", "time:41 worker:5+5 sequence:12", "Twitter's Snowflake (2010): 69 years"},
    {"discord", "time:41 worker:5+5 sequence:12", "Discord's, described in its API's reference"},
    {"instagram", "time:40 worker:13 sequence:10", "Instagram's (2012): 34 years"},
    {"sonyflake", "time:39,unit=10ms sequence:8 worker:16", "Sonyflake's: 174 years"},
    {"baidu", "time:28,unit=1s worker:22 sequence:13", "Baidu's uid-generator: 8.5 years"},
    {"js53", "time:38,unit=10ms worker:8 sequence:7", "53 bits, exact as a double: 87 years"},
    {"rack", "time:41 worker:2+8 sequence:12", "racks and servers: 69 years"},
    {NULL, NULL, NULL},
};

bool layout_equal(const struct layout *a, const struct layout *b)
{
    return a->time_bits == b->time_bits && a->worker_bits == b->worker_bits &&
           a->sequence_bits == b->sequence_bits && a->time_shift == b->time_shift &&
           a->worker_shift == b->worker_shift && a->sequence_shift == b->sequence_shift &&
           a->worker_high == b->worker_high && a->unit_ms == b->unit_ms;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

enum {
    FIELD_TIME,
    FIELD_WORKER,
    FIELD_SEQUENCE,
    FIELD_ZERO,
    FIELDS
};

static const struct {
    const char *name;
    char letter;
    uint8_t most; /* bits */
} fields[FIELDS] = {
    [FIELD_TIME] = {"time", 't', 46},
    [FIELD_WORKER] = {"worker", 'w', LAYOUT_FIELD_MAX},
    [FIELD_SEQUENCE] = {"sequence", 's', LAYOUT_FIELD_MAX},
    [FIELD_ZERO] = {"zero", 'z', 62},
};

/* One field as it stands in the text. */
struct field {
    int kind; /* FIELDS: none of that name */
    uint64_t bits, high, unit_ms;
};

/* "10ms", "1s", or milliseconds. */
static bool read_unit(struct span s, uint64_t *ms)
{
    uint64_t times = 1;
    if (s.n > 2 && memcmp(s.p + s.n - 2, "ms", 2) == 0)
        s.n -= 2;
    else if (s.n > 1 && s.p[s.n - 1] == 's')
        s.n--, times = 1000;
    if (!dec_u64(s, ms) || *ms < 1 || *ms > LAYOUT_UNIT_MAX_MS / times)
        return false;
    *ms *= times;
    return true;
}

/* "5+5" or "10". */
static bool read_bits(struct span s, struct field *f)
{
    struct span low = s;
    struct span high = span_cut(&low, '+');
    f->high = 0;
    if (!low.p)
        return dec_u64(s, &f->bits);
    if (f->kind != FIELD_WORKER || !dec_u64(high, &f->high) || !dec_u64(low, &f->bits) ||
        f->high < 1 || f->bits < 1 || f->high > LAYOUT_FIELD_MAX || f->bits > LAYOUT_FIELD_MAX)
        return false;
    f->bits += f->high;
    return true;
}

/* "time:39,unit=10ms" */
static bool read_long(struct span s, struct field *f)
{
    struct span unit = s;
    struct span bits = span_cut(&unit, ',');
    struct span name = span_cut(&bits, ':');
    for (f->kind = 0; f->kind < FIELDS && !span_eq(name, span_str(fields[f->kind].name));)
        f->kind++;
    if (unit.p && (f->kind != FIELD_TIME || !span_starts(unit, SPAN("unit=")) ||
                   !read_unit(span_skip(unit, sizeof "unit=" - 1), &f->unit_ms)))
        return false;
    return f->kind < FIELDS && bits.p && read_bits(bits, f);
}

/* "t39*10" */
static bool read_short(struct span s, struct field *f)
{
    for (f->kind = 0; f->kind < FIELDS && (s.n == 0 || s.p[0] != fields[f->kind].letter);)
        f->kind++;
    if (f->kind == FIELDS)
        return false;
    struct span unit = span_skip(s, 1);
    struct span bits = span_cut(&unit, '*');
    if (unit.p && (f->kind != FIELD_TIME || !dec_u64(unit, &f->unit_ms) || f->unit_ms < 1 ||
                   f->unit_ms > LAYOUT_UNIT_MAX_MS))
        return false;
    return read_bits(bits, f);
}

#define EXPECTED                                                                                   \
    "layout: expected the name of one (`sidflakectl pool init --help` lists them) or fields from " \
    "the highest bit down, \"time:41 worker:5+5 sequence:12\""

static enum err_code wrong(struct err *e, struct span field)
{
    return err_set(e, ERR_INVALID, EXPECTED "; found \"%.*s\"", (int)(field.n < 64 ? field.n : 64),
                   field.p);
}

/* Puts the field below those before it. */
static enum err_code place(struct layout *l, const struct field *f, bool seen[FIELDS],
                           struct err *e)
{
    const char *name = fields[f->kind].name;
    if (f->bits < 1 || f->bits > fields[f->kind].most)
        return err_set(e, ERR_RANGE, "layout: expected %s of 1 to %u bits, found %llu", name,
                       fields[f->kind].most, (unsigned long long)f->bits);
    if (seen[f->kind] && f->kind != FIELD_ZERO)
        return err_set(e, ERR_INVALID, "layout: expected %s once, found it twice", name);
    if (f->kind == FIELD_WORKER || f->kind == FIELD_SEQUENCE)
        if (!seen[FIELD_TIME])
            return err_set(e, ERR_INVALID,
                           "layout: expected the time as the highest field, by which IDs sort; "
                           "found %s above it",
                           name);
    seen[f->kind] = true;
    unsigned shift = (unsigned)f->bits;
    if (l->time_shift + l->time_bits + shift > 63)
        return err_set(e, ERR_RANGE,
                       "layout: expected 63 bits at most, so that IDs are positive; "
                       "found more");
    l->time_shift = (uint8_t)(l->time_shift + shift);
    l->worker_shift = (uint8_t)(l->worker_shift + shift);
    l->sequence_shift = (uint8_t)(l->sequence_shift + shift);
    uint8_t *bits[FIELDS] = {&l->time_bits, &l->worker_bits, &l->sequence_bits};
    uint8_t *shifts[FIELDS] = {&l->time_shift, &l->worker_shift, &l->sequence_shift};
    if (f->kind == FIELD_ZERO)
        return ERR_OK;
    *bits[f->kind] = (uint8_t)f->bits;
    *shifts[f->kind] = 0;
    if (f->kind == FIELD_TIME)
        l->unit_ms = (uint16_t)f->unit_ms;
    if (f->kind == FIELD_WORKER)
        l->worker_high = (uint8_t)f->high;
    return ERR_OK;
}

static enum err_code parse_fields(struct span text, struct layout *l, struct err *e)
{
    bool seen[FIELDS] = {false}, is_short = !memchr(text.p, ':', text.n);
    struct span rest = text;
    *l = (struct layout){0};
    while (rest.p) {
        struct field f = {.unit_ms = 1};
        struct span one = span_cut(&rest, is_short ? '.' : ' ');
        if (!(is_short ? read_short(one, &f) : read_long(one, &f)))
            return wrong(e, one.n > 0 ? one : text);
        enum err_code r = place(l, &f, seen, e);
        if (r)
            return r;
    }
    for (int i = 0; i < FIELD_ZERO; i++)
        if (!seen[i])
            return err_set(e, ERR_INVALID, EXPECTED "; found no %s", fields[i].name);
    if (layout_lasts_ms(l) > LAYOUT_LASTS_MAX_MS)
        return err_set(e, ERR_RANGE,
                       "layout: expected a time that lasts 2^46 ms at most, 2,229 years; found %u "
                       "bits of %u ms",
                       l->time_bits, l->unit_ms);
    return ERR_OK;
}

enum err_code layout_parse(struct span text, struct layout *out, struct err *e)
{
    struct layout l;
    if (span_eq(text, span_str(usual_name))) {
        *out = layout_usual;
        return ERR_OK;
    }
    for (const struct layout_preset *p = layout_presets; p->name; p++)
        if (span_eq(text, span_str(p->name)))
            text = span_str(p->fields);
    if (text.n == 0)
        return wrong(e, text);
    enum err_code r = parse_fields(text, &l, e);
    if (!r)
        *out = l;
    return r;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

static void put_field(struct buf *b, const struct layout *l, int kind, unsigned bits, bool is_short)
{
    if (b->n > 0)
        buf_put_char(b, is_short ? '.' : ' ');
    if (is_short) {
        buf_put_char(b, fields[kind].letter);
    } else {
        buf_put_str(b, fields[kind].name);
        buf_put_char(b, ':');
    }
    if (kind == FIELD_WORKER && l->worker_high > 0) {
        buf_put_u64(b, l->worker_high);
        buf_put_char(b, '+');
        bits -= l->worker_high;
    }
    buf_put_u64(b, bits);
    if (kind != FIELD_TIME || l->unit_ms == 1)
        return;
    buf_put_str(b, is_short ? "*" : ",unit=");
    buf_put_u64(b, l->unit_ms);
    if (!is_short)
        BUF_PUT_LIT(b, "ms");
}

/* Zeros above the time are not written: they are no part of the number. */
static void put_fields(struct buf *b, const struct layout *l, bool is_short)
{
    bool worker_first = l->worker_shift > l->sequence_shift;
    const struct {
        int kind;
        unsigned bits, shift;
    } order[] = {
        {FIELD_TIME, l->time_bits, l->time_shift},
        {FIELD_WORKER, l->worker_bits, l->worker_shift},
        {FIELD_SEQUENCE, l->sequence_bits, l->sequence_shift},
    };
    const int at[] = {0, worker_first ? 1 : 2, worker_first ? 2 : 1};
    unsigned above = l->time_shift + l->time_bits;
    for (unsigned i = 0; i < 3; i++) {
        unsigned top = order[at[i]].shift + order[at[i]].bits;
        if (above > top)
            put_field(b, l, FIELD_ZERO, above - top, is_short);
        put_field(b, l, order[at[i]].kind, order[at[i]].bits, is_short);
        above = order[at[i]].shift;
    }
    if (above > 0)
        put_field(b, l, FIELD_ZERO, above, is_short);
    buf_put_char(b, '\0');
}

char *layout_name(char out[LAYOUT_NAME_MAX], const struct layout *l)
{
    struct buf b;
    if (layout_equal(l, &layout_usual))
        return memcpy(out, usual_name, sizeof usual_name);
    buf_init(&b, out, LAYOUT_NAME_MAX);
    put_fields(&b, l, true);
    return out;
}

char *layout_fields(char out[LAYOUT_FIELDS_MAX], const struct layout *l)
{
    struct buf b;
    buf_init(&b, out, LAYOUT_FIELDS_MAX);
    put_fields(&b, l, false);
    return out;
}
