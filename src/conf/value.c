#include "conf/value.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/dec.h"
#include "base/timefmt.h"
#include "conf/list.h"
#include "conf/text.h"

#include <assert.h>
#include <stdlib.h>

static_assert(sizeof(enum conf_auth) == sizeof(unsigned), "enums are set as unsigned");
static_assert(sizeof(enum conf_ping) == sizeof(unsigned), "enums are set as unsigned");
static_assert(sizeof(enum conf_on_stop) == sizeof(unsigned), "enums are set as unsigned");
static_assert(sizeof(enum log_level) == sizeof(unsigned), "enums are set as unsigned");
static_assert(sizeof(enum log_format) == sizeof(unsigned), "enums are set as unsigned");

#define MASK    "***"
#define URL_MAX 1024 /* bytes, by the table */

struct type {
    const char *name;
    const char *expected; /* before the range in messages */
    size_t size;          /* of the field where bytes can be compared; 0: it points elsewhere */
    enum err_code (*set)(const struct conf_option *o, void *field, struct span text);
    void (*put)(const struct conf_option *o, const void *field, FILE *out);
    void (*range)(const struct conf_option *o, struct buf *out);
};

/* ---- lists ------------------------------------------------------------------------------------
 */

static void put_list(const struct conf_option *o, const void *field, FILE *out)
{
    const struct conf_list *l = field;
    (void)o;
    (void)fputc('[', out);
    for (size_t i = 0; i < l->n; i++) {
        (void)fputs(i ? ", " : "", out);
        conf_text_put_yaml(span_str(l->item[i]), out);
    }
    (void)fputc(']', out);
}

/* ---- strings ----------------------------------------------------------------------------------
 */

static bool string_ok(const struct conf_option *o, struct span text)
{
    return conf_text_clean(text) && (!o->ok || o->ok(text));
}

static enum err_code set_string(const struct conf_option *o, void *field, struct span text)
{
    char **string = field;
    if (!string_ok(o, text))
        return ERR_INVALID;
    if (text.n < (size_t)o->min || text.n > (size_t)o->max)
        return ERR_RANGE;
    char *copy = strndup(text.n ? text.p : "", text.n);
    if (!copy)
        return ERR_NOMEM;
    free(*string);
    *string = copy;
    return ERR_OK;
}

static void put_string(const struct conf_option *o, const void *field, FILE *out)
{
    char *const *string = field;
    struct span text = span_str(*string);
    struct span secret = conf_text_password(text);
    if (conf_option_id(o) != CONF_COORDINATOR_URL || secret.n == 0) {
        conf_text_put_yaml(text, out);
        return;
    }
    char masked[URL_MAX + sizeof MASK];
    struct buf b;
    buf_init(&b, masked, sizeof masked);
    buf_put(&b, text.p, (size_t)(secret.p - text.p));
    BUF_PUT_LIT(&b, MASK);
    buf_put_str(&b, secret.p + secret.n);
    conf_text_put_yaml(buf_span(&b), out);
}

static void range_what(const struct conf_option *o, struct buf *out)
{
    buf_put_str(out, o->what);
}

/* ---- words ------------------------------------------------------------------------------------
 */

static enum err_code set_bool(const struct conf_option *o, void *field, struct span text)
{
    bool yes = span_eq_nocase(text, SPAN("true"));
    (void)o;
    if (!yes && !span_eq_nocase(text, SPAN("false")))
        return ERR_INVALID;
    *(bool *)field = yes;
    return ERR_OK;
}

static void put_bool(const struct conf_option *o, const void *field, FILE *out)
{
    (void)o;
    (void)fputs(*(const bool *)field ? "true" : "false", out);
}

static void range_bool(const struct conf_option *o, struct buf *out)
{
    (void)o;
    BUF_PUT_LIT(out, "true|false");
}

static enum err_code set_enum(const struct conf_option *o, void *field, struct span text)
{
    for (unsigned i = 0; o->names[i]; i++) {
        if (span_eq(text, span_str(o->names[i]))) {
            memcpy(field, &i, sizeof i);
            return ERR_OK;
        }
    }
    return ERR_INVALID;
}

static void put_enum(const struct conf_option *o, const void *field, FILE *out)
{
    unsigned i;
    memcpy(&i, field, sizeof i);
    (void)fputs(o->names[i], out);
}

static void range_enum(const struct conf_option *o, struct buf *out)
{
    for (unsigned i = 0; o->names[i]; i++) {
        buf_put_str(out, i ? "|" : "");
        buf_put_str(out, o->names[i]);
    }
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static enum err_code set_unsigned(const struct conf_option *o, void *field, int64_t v)
{
    if (v < o->min || v > o->max)
        return ERR_RANGE;
    *(unsigned *)field = (unsigned)v;
    return ERR_OK;
}

/* No leading zeros: some readers of YAML take 010 for eight. */
static enum err_code set_int(const struct conf_option *o, void *field, struct span text)
{
    int64_t v;
    return dec_canonical_i64(text, &v) ? set_unsigned(o, field, v) : ERR_INVALID;
}

static void put_int(const struct conf_option *o, const void *field, FILE *out)
{
    (void)o;
    (void)fprintf(out, "%u", *(const unsigned *)field);
}

static void range_int(const struct conf_option *o, struct buf *out)
{
    buf_printf(out, "%lld..%lld", (long long)o->min, (long long)o->max);
}

static const struct {
    struct span suffix;
    unsigned shift;
} sizes[] = {{{"MiB", 3}, 20}, {{"KiB", 3}, 10}};

#define SIZES (sizeof sizes / sizeof *sizes)

/* An integer and its unit. */
static enum err_code set_size(const struct conf_option *o, void *field, struct span text)
{
    for (size_t i = 0; i < SIZES; i++) {
        struct span unit = sizes[i].suffix;
        int64_t v;
        if (text.n <= unit.n || !span_eq(span_skip(text, text.n - unit.n), unit) ||
            !dec_canonical_i64(span_of(text.p, text.n - unit.n), &v) || v < 0)
            continue;
        return v > UINT32_MAX >> sizes[i].shift ? ERR_RANGE
                                                : set_unsigned(o, field, v << sizes[i].shift);
    }
    return ERR_INVALID;
}

static const char *size_text(char out[TIMEFMT_MAX], uint64_t v)
{
    size_t i = 0;
    while (i + 1 < SIZES && v % (UINT64_C(1) << sizes[i].shift) != 0)
        i++;
    (void)snprintf(out, TIMEFMT_MAX, "%llu%s", (unsigned long long)v >> sizes[i].shift,
                   sizes[i].suffix.p);
    return out;
}

static void put_size(const struct conf_option *o, const void *field, FILE *out)
{
    char text[TIMEFMT_MAX];
    (void)o;
    (void)fputs(size_text(text, *(const unsigned *)field), out);
}

static void range_size(const struct conf_option *o, struct buf *out)
{
    char text[TIMEFMT_MAX];
    buf_put_str(out, size_text(text, (uint64_t)o->min));
    BUF_PUT_LIT(out, "..");
    buf_put_str(out, size_text(text, (uint64_t)o->max));
}

static enum err_code set_mode(const struct conf_option *o, void *field, struct span text)
{
    int64_t v = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '7' || i == 8)
            return ERR_INVALID;
        v = v * 8 + (text.p[i] - '0');
    }
    return text.n ? set_unsigned(o, field, v) : ERR_INVALID;
}

static void put_mode(const struct conf_option *o, const void *field, FILE *out)
{
    (void)o;
    (void)fprintf(out, "\"%04o\"", *(const unsigned *)field);
}

static void range_mode(const struct conf_option *o, struct buf *out)
{
    buf_printf(out, "%llo..%#llo", (unsigned long long)o->min, (unsigned long long)o->max);
}

/* ---- times ------------------------------------------------------------------------------------
 */

static enum err_code set_duration(const struct conf_option *o, void *field, struct span text)
{
    int64_t us;
    if (!timefmt_parse_duration(text, &us))
        return ERR_INVALID;
    if (us < o->min || us > o->max)
        return ERR_RANGE;
    *(int64_t *)field = us;
    return ERR_OK;
}

static void put_duration(const struct conf_option *o, const void *field, FILE *out)
{
    char text[TIMEFMT_MAX];
    (void)o;
    (void)fputs(timefmt_duration(text, *(const int64_t *)field), out);
}

static void range_duration(const struct conf_option *o, struct buf *out)
{
    char text[TIMEFMT_MAX];
    buf_put_str(out, timefmt_duration(text, o->min));
    BUF_PUT_LIT(out, "..");
    buf_put_str(out, timefmt_duration(text, o->max));
}

static enum err_code set_time(const struct conf_option *o, void *field, struct span text)
{
    int64_t ms = CONF_EPOCH_OF_POOL;
    if (text.n > 0) {
        if (!timefmt_parse_rfc3339(text, &ms))
            return ERR_INVALID;
        if (ms < o->min || ms > clock_wall_ms(clock_system()))
            return ERR_RANGE;
    }
    *(int64_t *)field = ms;
    return ERR_OK;
}

static void put_time(const struct conf_option *o, const void *field, FILE *out)
{
    char text[TIMEFMT_MAX] = "";
    int64_t ms = *(const int64_t *)field;
    (void)o;
    if (ms != CONF_EPOCH_OF_POOL)
        (void)timefmt_rfc3339(text, ms);
    (void)fprintf(out, "\"%s\"", text);
}

static void range_time(const struct conf_option *o, struct buf *out)
{
    char text[TIMEFMT_MAX];
    buf_printf(out, "%s..now, or \"\"", timefmt_rfc3339(text, o->min));
}

/* ---- by type ----------------------------------------------------------------------------------
 */

static const struct type types[CONF_TYPES] = {
    [CONF_TYPE_STRING] = {"string", "", 0, set_string, put_string, range_what},
    [CONF_TYPE_LIST] = {"list", "", 0, NULL, put_list, range_what},
    [CONF_TYPE_BOOL] = {"bool", "", sizeof(bool), set_bool, put_bool, range_bool},
    [CONF_TYPE_INT] = {"int", "an integer ", sizeof(unsigned), set_int, put_int, range_int},
    [CONF_TYPE_DURATION] = {"duration", "a duration with its unit, ", sizeof(int64_t), set_duration,
                            put_duration, range_duration},
    [CONF_TYPE_SIZE] = {"size", "a size in KiB or MiB, ", sizeof(unsigned), set_size, put_size,
                        range_size},
    [CONF_TYPE_ENUM] = {"enum", "", sizeof(unsigned), set_enum, put_enum, range_enum},
    [CONF_TYPE_MODE] = {"mode", "an octal mode ", sizeof(unsigned), set_mode, put_mode, range_mode},
    [CONF_TYPE_TIME] = {"time", "a time ", sizeof(int64_t), set_time, put_time, range_time},
};

static void *field_of(const struct conf_option *o, struct conf *c)
{
    return (char *)c + o->offset;
}

static const void *const_field_of(const struct conf_option *o, const struct conf *c)
{
    return (const char *)c + o->offset;
}

const char *conf_value_type(const struct conf_option *o)
{
    return types[o->type].name;
}

char *conf_value_range(char out[CONF_VALUE_RANGE_MAX], const struct conf_option *o)
{
    struct buf b;
    buf_init(&b, out, CONF_VALUE_RANGE_MAX - 1);
    types[o->type].range(o, &b);
    out[b.n] = '\0';
    return out;
}

enum err_code conf_value_expected(const struct conf_option *o, enum err_code code,
                                  const char *found, struct err *e)
{
    char range[CONF_VALUE_RANGE_MAX];
    return err_set(e, code, "expected %s%s for %s, found %s", types[o->type].expected,
                   conf_value_range(range, o), o->path, found);
}

struct conf_judges conf_judges;

enum err_code conf_value_add(const struct conf_option *o, struct conf *c, struct span item,
                             struct err *e)
{
    char quoted[CONF_QUOTE_MAX];
    struct conf_list *l = field_of(o, c);
    if (!string_ok(o, item))
        return conf_value_expected(o, ERR_INVALID, conf_quote(quoted, item), e);
    if (l->n >= (size_t)o->max)
        return err_set(e, ERR_RANGE, "expected at most %lld items for %s, found more",
                       (long long)o->max, o->path);
    enum err_code rc = ERR_OK;
    if (conf_option_id(o) == CONF_SEQUENCES_DEFINE && conf_judges.sequence)
        rc = conf_judges.sequence(item, e);
    return rc ? rc : conf_list_add(l, item, e);
}

static struct span trim(struct span s)
{
    while (s.n && s.p[0] == ' ')
        s = span_skip(s, 1);
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

/* Else the first item would begin with the one, and the last end with the other. */
static bool is_bracketed(struct span s)
{
    return s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
}

/* Up to the next comma that is not one of a part of a template, @{...}. */
static struct span cut_item(struct span *rest)
{
    struct span item = {rest->p, 0};
    bool part = false;
    while (item.n < rest->n && (part || rest->p[item.n] != ',')) {
        bool opens = rest->p[item.n] == '{' && item.n > 0 && rest->p[item.n - 1] == '@';
        part = opens || (part && rest->p[item.n] != '}');
        item.n++;
    }
    *rest = item.n < rest->n ? span_skip(*rest, item.n + 1) : span_of(NULL, 0);
    return item;
}

/* Built aside, so that a bad item leaves the field as it was. */
static enum err_code set_list(const struct conf_option *o, struct conf *c, struct span text,
                              struct err *e)
{
    struct conf_list *l = field_of(o, c);
    struct conf_list before = *l;
    enum err_code rc = ERR_OK;
    struct span rest = trim(text);
    char quoted[CONF_QUOTE_MAX];
    if (is_bracketed(rest))
        return err_set(e, ERR_INVALID,
                       "expected items separated by commas, without brackets, for %s, found %s",
                       o->path, conf_quote(quoted, rest));
    *l = (struct conf_list){NULL, 0};
    if (rest.n == 0 || span_eq(rest, SPAN("[]"))) /* as in a file */
        rest.p = NULL;
    while (rest.p && !rc)
        rc = conf_value_add(o, c, trim(cut_item(&rest)), e);
    if (rc) {
        conf_list_clear(l);
        *l = before;
    } else {
        conf_list_clear(&before);
    }
    return rc;
}

enum err_code conf_value_set(const struct conf_option *o, struct conf *c, struct span text,
                             struct err *e)
{
    char quoted[CONF_QUOTE_MAX];
    if (o->type == CONF_TYPE_LIST)
        return set_list(o, c, text, e);
    enum err_code rc = types[o->type].set(o, field_of(o, c), text);
    if (rc == ERR_NOMEM)
        return err_set(e, rc, "no memory for %s", o->path);
    if (!rc && conf_option_id(o) == CONF_COORDINATOR_URL && conf_judges.url)
        return conf_judges.url(text, e);
    return rc ? conf_value_expected(o, rc, conf_quote(quoted, text), e) : ERR_OK;
}

void conf_value_clear(const struct conf_option *o, struct conf *c)
{
    void *field = field_of(o, c);
    if (o->type == CONF_TYPE_LIST) {
        conf_list_clear(field);
    } else if (o->type == CONF_TYPE_STRING) {
        free(*(char **)field);
        *(char **)field = NULL;
    } else {
        memset(field, 0, types[o->type].size);
    }
}

void conf_value_put(const struct conf_option *o, const struct conf *c, FILE *out)
{
    types[o->type].put(o, const_field_of(o, c), out);
}

bool conf_value_equal(const struct conf_option *o, const struct conf *a, const struct conf *b)
{
    const void *x = const_field_of(o, a), *y = const_field_of(o, b);
    if (o->type == CONF_TYPE_LIST)
        return conf_list_equal(x, y);
    if (o->type == CONF_TYPE_STRING)
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    return memcmp(x, y, types[o->type].size) == 0;
}
