#include "base/utf8.h"

static const struct {
    uint8_t mask, lead;
    uint8_t more; /* bytes that follow */
    uint32_t min; /* smaller ones have a shorter form */
} forms[] = {
    {0x80, 0x00, 0, 0}, {0xe0, 0xc0, 1, 0x80}, {0xf0, 0xe0, 2, 0x800}, {0xf8, 0xf0, 3, 0x10000}};

#define FORMS (sizeof forms / sizeof *forms)

bool utf8_take(struct span *s, uint32_t *rune)
{
    uint8_t first = (uint8_t)s->p[0];
    size_t f = 0;
    while (f < FORMS && (first & forms[f].mask) != forms[f].lead)
        f++;
    if (f == FORMS || s->n <= forms[f].more)
        return false;
    uint32_t r = first & (uint8_t)~forms[f].mask;
    for (size_t i = 1; i <= forms[f].more; i++) {
        uint8_t next = (uint8_t)s->p[i];
        if ((next & 0xc0) != 0x80)
            return false;
        r = r << 6 | (next & 0x3f);
    }
    if (r < forms[f].min || r > 0x10ffff || (r >= 0xd800 && r <= 0xdfff))
        return false;
    *s = span_skip(*s, forms[f].more + 1u);
    *rune = r;
    return true;
}

bool utf8_shows(uint32_t rune)
{
    static const struct {
        uint32_t from, to;
    } hidden[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},       /* controls */
        {0xad, 0xad},     {0x61c, 0x61c},     /* a soft hyphen, a mark of direction */
        {0x200b, 0x200f}, {0x2028, 0x202e},   /* no width, ends of lines, directions */
        {0x2060, 0x206f}, {0xfeff, 0xfeff},   /* joiners, directions, the byte order mark */
        {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}, /* annotations, tags */
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (rune >= hidden[i].from && rune <= hidden[i].to)
            return false;
    return true;
}

uint32_t utf8_take_shown(struct span *s)
{
    uint32_t rune;
    if (utf8_take(s, &rune))
        return utf8_shows(rune) ? rune : '?';
    *s = span_skip(*s, 1);
    return '?';
}
