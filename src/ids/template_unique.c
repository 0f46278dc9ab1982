/*
 * What a template has to be so that no text is written twice: text to steps, steps to values, and
 * values to period, sub and number, each has to be a function.
 */
#include "ids/template_steps.h"

#include <inttypes.h>

static bool has(const struct template *t, enum template_kind kind)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->step[i].kind == kind)
            return true;
    return false;
}

/* ---- the numbers ------------------------------------------------------------------------------
 */

static enum err_code check_numbers(const struct template *t, const struct template_frame *of,
                                   struct err *e)
{
    int64_t lowest = of->first < of->last ? of->first : of->last;
    if (of->cycle)
        return err_set(e, ERR_INVALID,
                       "template: expected a sequence without --cycle, whose numbers come again, "
                       "and their texts with them, found one with it");
    if (lowest < 0)
        return err_set(e, ERR_INVALID,
                       "template: expected numbers that are not negative, found those down to "
                       "%" PRId64 ": --start and --max say which there are",
                       lowest);
    if (!has(t, TEMPLATE_SEQ))
        return err_set(e, ERR_INVALID,
                       "template: expected @{seq}, found none: all numbers would be written the "
                       "same");
    if (of->first > t->last_number)
        return err_set(e, ERR_RANGE,
                       "template: expected @{seq} wide enough for the first number, %" PRId64
                       ", found one for numbers up to %" PRId64,
                       of->first, t->last_number);
    return ERR_OK;
}

/* ---- the period -------------------------------------------------------------------------------
 */

static enum err_code check_period(const struct template *t, const struct template_frame *of,
                                  struct err *e)
{
    static const char *const wanted[TEMPLATE_RESETS] = {
        [TEMPLATE_HOUR] = "hour: @{date,...} with %Y, %m, %d and %H, or %Y, %j and %H",
        [TEMPLATE_DAY] = "day: @{date,...} with %Y, %m and %d, or %Y and %j",
        [TEMPLATE_MONTH] = "month: @{date,...} with %Y and %m",
        [TEMPLATE_YEAR] = "year: @{date,...} with %Y",
    };
    bool days = of->reset == TEMPLATE_MONTH || has(t, TEMPLATE_DAYS);
    bool told = of->reset == TEMPLATE_YEAR || (has(t, TEMPLATE_MONTHS) && days) ||
                has(t, TEMPLATE_YEARDAYS);
    if (of->reset == TEMPLATE_HOUR)
        told = told && has(t, TEMPLATE_HOURS);
    if (of->reset == TEMPLATE_NEVER || (told && has(t, TEMPLATE_YEARS)))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "template: expected for --reset %s, found less: numbers begin anew in each "
                   "period, and their texts would repeat",
                   wanted[of->reset]);
}

/* ---- where one part ends, and the next begins --------------------------------------------------
 */

static bool is_variable(const struct template_step *s)
{
    return s->least < s->most;
}

static enum err_code check_end(const struct template *t, unsigned i, struct err *e)
{
    const struct template_step *s = &t->step[i], *literal = s + 1, *next = s + 2;
    const char *name = template_kind_name((enum template_kind)s->kind);
    if (literal->kind != TEMPLATE_LITERAL)
        return err_set(e, ERR_INVALID,
                       "template: expected text between @{%s} and @{%s}, or width=, found "
                       "neither: where the first ends could not be told",
                       name, template_kind_name((enum template_kind)literal->kind));
    char c = t->text[literal->text];
    if (template_chars_has(&s->chars, c) || template_chars_has(&next->chars, c))
        return err_set(e, ERR_INVALID,
                       "template: expected behind @{%s} text that begins with what neither it nor "
                       "@{%s} can have, or width=, found '%c': where the first ends could not be "
                       "told",
                       name, template_kind_name((enum template_kind)next->kind), c);
    return ERR_OK;
}

/* The last one of variable width ends at a fixed distance from the end of the text; those before,
 * behind which there is another one, at literals. */
static enum err_code check_ends(struct template *t, struct err *e)
{
    t->flex = t->n;
    for (unsigned i = 0; i < t->n; i++)
        if (is_variable(&t->step[i]))
            t->flex = (uint8_t)i;
    for (unsigned i = 0; i < t->flex && t->flex < t->n; i++)
        if (is_variable(&t->step[i]) && check_end(t, i, e))
            return e->code;
    return ERR_OK;
}

/* ---- check digits -----------------------------------------------------------------------------
 */

static bool meets(const struct template_chars *set, char from, char to)
{
    for (int c = from; c <= to; c++)
        if (template_chars_has(set, (char)c))
            return true;
    return false;
}

/* It is over at least one part, and of none passes over letters. */
static enum err_code check_digits(const struct template *t, unsigned at, struct err *e)
{
    const struct template_step *check = &t->step[at];
    bool letters = check_digit_takes_letters(&check->check), counts = false;
    const char *name = check_kind_name(check->check.kind);
    unsigned from = check->of < TEMPLATE_STEPS ? check->of : 0;
    unsigned to = check->of < TEMPLATE_STEPS ? check->of + 1u : at;
    for (unsigned i = from; i < to; i++) {
        const struct template_step *s = &t->step[i];
        if (meets(&s->chars, 'a', 'z') || (!letters && meets(&s->chars, 'A', 'Z')))
            return err_set(e, ERR_INVALID,
                           "template: expected before @{check,%s} parts of digits%s alone, found "
                           "@{%s} with %sletters%s",
                           name, letters ? " and capital letters" : "",
                           template_kind_name((enum template_kind)s->kind), letters ? "small " : "",
                           letters ? "" : ", which want mod37-2 or mod97-10");
        counts = counts || meets(&s->chars, '0', '9') || meets(&s->chars, 'A', 'Z');
    }
    if (counts)
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "template: expected before @{check,%s} a part that it is over, found none",
                   name);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

enum err_code template_unique(struct template *t, const struct template_frame *of, struct err *e)
{
    enum err_code code = check_numbers(t, of, e);
    if (!code)
        code = check_period(t, of, e);
    if (!code)
        code = check_ends(t, e);
    for (unsigned i = 0; i < t->n && !code; i++)
        if (t->step[i].kind == TEMPLATE_CHECK)
            code = check_digits(t, i, e);
    if (code)
        return code;
    size_t longest = template_longest(t, TEMPLATE_NUMBER_MAX);
    if (longest > TEMPLATE_OUT_MAX)
        return err_set(e, ERR_RANGE,
                       "template: expected at most %d characters in what it writes, found up to "
                       "%zu",
                       TEMPLATE_OUT_MAX, longest);
    t->longest = (uint8_t)longest;
    return ERR_OK;
}
