/*
 * Errors: a small code for the caller to act on, and a text for a person to read.
 *
 * Invariants
 *   - ERR_OK is 0; every other code means that the call changed nothing it was asked to produce.
 *   - A text names what was expected and what was found, without a final newline or full stop.
 *   - Lower layers return errors; one layer logs them.
 */
#ifndef SIDFLAKE_BASE_ERR_H
#define SIDFLAKE_BASE_ERR_H

#include <stdarg.h>

/* The result of a call that can fail. Every caller must look at it. */
enum err_code {
    ERR_OK = 0,
    ERR_INVALID,     /* the input is not of the form it must have */
    ERR_RANGE,       /* the form is right, the value is out of bounds */
    ERR_IO,          /* the system refused: the text carries strerror */
    ERR_NOMEM,       /* an allocation failed */
    ERR_TIMEOUT,     /* no answer within the time allowed */
    ERR_NOT_FOUND,   /* the thing asked for does not exist */
    ERR_EXISTS,      /* the thing to be made exists already */
    ERR_BUSY,        /* somebody else holds it */
    ERR_CORRUPT,     /* stored data fails its own checks */
    ERR_UNSUPPORTED, /* well-formed, but not offered here */
};

/* bytes of text, NUL included; longer texts are cut. A command for a pool at a coordinator's URL,
 * of several servers, fits. */
#define ERR_TEXT_MAX 1536

/* Filled by the call that fails; unspecified after one that succeeds. Owned by the caller. */
struct err {
    enum err_code code;
    char text[ERR_TEXT_MAX];
};

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* Stores code and text in e (which may be NULL: then only the code is wanted) and returns code.
 * e->text may be among the arguments. */
enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* As err_set with ERR_IO, or ERR_BUSY for an address in use; appends ": " and strerror(errnum). */
enum err_code err_errno(struct err *e, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
