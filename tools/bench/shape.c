#include "shape.h"

#include "base/buf.h"
#include "base/dec.h"

#include <stdlib.h>

#define TEXT_MAX ((size_t)32 * SHAPE_COUNT_MAX)
#define VALUE    "123456789012345678" /* of sets: as long as an ID */

static bool is_number(struct span s, uint64_t *v)
{
    return dec_u64(s, v);
}

/* ---- memcached --------------------------------------------------------------------------------
 */

static const char *check_value_line(struct span key, struct span text)
{
    uint64_t length;
    const char *expected = "VALUE KEY 0 LENGTH";
    if (!span_starts(text, SPAN("VALUE ")))
        return expected;
    text = span_skip(text, 6);
    if (!span_starts(text, key))
        return expected;
    text = span_skip(text, key.n);
    if (!span_starts(text, SPAN(" 0 ")))
        return expected;
    return is_number(span_skip(text, 3), &length) && length > 0 ? NULL : expected;
}

static const char *check_mc(const struct shape *s, uint32_t line, struct span text, uint64_t *id)
{
    if (line == 2 * s->count)
        return span_eq(text, SPAN("END")) ? NULL : "END";
    if (line % 2 == 0)
        return check_value_line(s->key[line / 2], text);
    return is_number(text, id) ? NULL : "a number";
}

static bool mc_has_id(const struct shape *s, uint32_t line)
{
    return line % 2 == 1 && line < 2 * s->count;
}

static bool has_none(const struct shape *s, uint32_t line)
{
    (void)s;
    (void)line;
    return false;
}

static const char *check_store(const struct shape *s, uint32_t line, struct span text, uint64_t *id)
{
    (void)line;
    (void)id;
    return span_eq(text, s->reply) ? NULL : s->reply.p;
}

static bool init_store(struct shape *s, struct buf *text, struct span key)
{
    bool cas = strcmp(s->kind, "mc-cas") == 0;
    buf_put_str(text, cas ? "cas " : "set ");
    buf_put_span(text, key);
    buf_put_str(text, cas ? " 0 0 18 1\r\n" : " 0 0 18\r\n");
    BUF_PUT_LIT(text, VALUE "\r\n");
    s->reply = cas ? SPAN("EXISTS") : SPAN("STORED");
    s->lines = 1;
    return s->count == 1;
}

/* Keys of many differ behind '#', which the sidecar ignores and memcached does not. */
static bool init_mc(struct shape *s, struct buf *text, struct span key)
{
    BUF_PUT_LIT(text, "get");
    for (uint32_t i = 0; i < s->count; i++) {
        size_t begin = text->n + 1;
        BUF_PUT_LIT(text, " ");
        buf_put_span(text, key);
        if (s->count > 1) {
            BUF_PUT_LIT(text, "#");
            buf_put_u64(text, i);
        }
        s->key[i] = span_of(text->p + begin, text->n - begin);
    }
    BUF_PUT_LIT(text, "\r\n");
    s->lines = 2 * s->count + 1;
    return true;
}

/* ---- Redis ------------------------------------------------------------------------------------
 */

static const char *check_prefixed(char type, struct span text, uint64_t *v)
{
    static const char *const expected[] = {"$LENGTH", ":NUMBER", "*COUNT"};
    if (text.n > 1 && text.p[0] == type && is_number(span_skip(text, 1), v))
        return NULL;
    return expected[type == '$' ? 0 : type == ':' ? 1 : 2];
}

static const char *check_bulk(const struct shape *s, uint32_t line, struct span text, uint64_t *id)
{
    uint64_t length;
    (void)s;
    if (line % 2 == 0)
        return check_prefixed('$', text, &length);
    return is_number(text, id) ? NULL : "a number";
}

/* Of a number that is written otherwise. */
static const char *check_text(const struct shape *s, uint32_t line, struct span text, uint64_t *id)
{
    return line % 2 == 0 ? check_bulk(s, line, text, id) : text.n > 0 ? NULL : "a text";
}

static bool bulk_has_id(const struct shape *s, uint32_t line)
{
    (void)s;
    return line % 2 == 1;
}

static const char *check_integer(const struct shape *s, uint32_t line, struct span text,
                                 uint64_t *id)
{
    (void)s;
    (void)line;
    return check_prefixed(':', text, id);
}

static bool integer_has_id(const struct shape *s, uint32_t line)
{
    (void)s;
    (void)line;
    return true;
}

static const char *check_array(const struct shape *s, uint32_t line, struct span text, uint64_t *id)
{
    uint64_t count;
    if (line > 0)
        return check_bulk(s, line - 1, text, id);
    if (check_prefixed('*', text, &count) || count != s->count)
        return "*COUNT, as asked for";
    return NULL;
}

static bool array_has_id(const struct shape *s, uint32_t line)
{
    (void)s;
    return line > 0 && line % 2 == 0;
}

static void put_bulk(struct buf *text, struct span s)
{
    BUF_PUT_LIT(text, "$");
    buf_put_u64(text, s.n);
    BUF_PUT_LIT(text, "\r\n");
    buf_put_span(text, s);
    BUF_PUT_LIT(text, "\r\n");
}

static bool init_get(struct shape *s, struct buf *text, struct span key)
{
    BUF_PUT_LIT(text, "*2\r\n$3\r\nGET\r\n");
    put_bulk(text, key);
    s->lines = 2;
    return s->count == 1;
}

static bool init_incr(struct shape *s, struct buf *text, struct span key)
{
    BUF_PUT_LIT(text, "*2\r\n$4\r\nINCR\r\n");
    put_bulk(text, key);
    s->lines = 1;
    return s->count == 1;
}

static bool init_lpop(struct shape *s, struct buf *text, struct span key)
{
    char count[DEC_U64_MAX];
    size_t n = dec_put_u64(count, s->count);
    BUF_PUT_LIT(text, "*3\r\n$4\r\nLPOP\r\n");
    put_bulk(text, key);
    put_bulk(text, span_of(count, n));
    s->lines = 2 * s->count + 1;
    return true;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static const struct {
    struct shape shape;
    bool (*init)(struct shape *s, struct buf *text, struct span key);
} shapes[] = {
    {{.kind = "mc-get", .check = check_mc, .has_id = mc_has_id}, init_mc},
    {{.kind = "mc-set", .check = check_store, .has_id = has_none}, init_store},
    {{.kind = "mc-cas", .check = check_store, .has_id = has_none}, init_store},
    {{.kind = "resp-get", .check = check_bulk, .has_id = bulk_has_id}, init_get},
    {{.kind = "resp-text", .check = check_text, .has_id = has_none}, init_get},
    {{.kind = "resp-incr", .check = check_integer, .has_id = integer_has_id}, init_incr},
    {{.kind = "resp-lpop", .check = check_array, .has_id = array_has_id}, init_lpop},
};

bool shape_init(struct shape *s, const char *kind, struct span key, uint32_t count)
{
    if (count < 1 || count > SHAPE_COUNT_MAX || key.n < 1 || key.n > SHAPE_KEY_MAX)
        return false;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct buf text;
        if (strcmp(shapes[i].shape.kind, kind) != 0)
            continue;
        char *mem = malloc(TEXT_MAX);
        if (!mem)
            return false;
        buf_init(&text, mem, TEXT_MAX);
        *s = shapes[i].shape;
        s->count = count;
        bool made = shapes[i].init(s, &text, key) && !text.failed;
        s->text = buf_span(&text);
        if (!made)
            shape_clear(s);
        return made;
    }
    return false;
}

void shape_clear(struct shape *s)
{
    free((void *)(uintptr_t)s->text.p); /* a span is read only, but this one is ours */
    s->text = (struct span){NULL, 0};
}
