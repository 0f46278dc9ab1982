#include "sim/script.h"

#include "coord/outcome.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The interpreter's heap. Blocks are cut off its end and never given back: each call begins with
 * the heap as it was once the script was loaded, which is faster than collecting its garbage, and
 * leaves nothing of one call to the next. Only pages that some call wrote to are put back. */
#define HEAP_BYTES   (4u << 20) /* one call of the largest pool takes a tenth of it */
#define HEAP_ALIGNED 16u
#define PAGE_BYTES   4096u
#define SPARE_TEXTS                                                                                \
    256 /* interned beforehand, so that no call has to grow the table of strings                   \
         */

static _Alignas(PAGE_BYTES) char heap[HEAP_BYTES];
static size_t heap_used;
static char *image; /* of the heap after loading */
static size_t image_pages;
static volatile sig_atomic_t written[HEAP_BYTES / PAGE_BYTES]; /* pages of the image, ever */

static lua_State *lua;
static int chunk[COURIER_TEXTS];
static struct dataset *store;
static struct script_target *target;

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "pool.lua: %s: %s\n", what, why);
    abort();
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *allocate(void *unused, void *old, size_t had, size_t n)
{
    size_t whole = (n + HEAP_ALIGNED - 1) & ~(size_t)(HEAP_ALIGNED - 1);
    (void)unused;
    if (n == 0)
        return NULL;
    if (old && n <= had)
        return old;
    if (whole > sizeof heap - heap_used)
        return NULL;
    void *fresh = heap + heap_used;
    heap_used += whole;
    if (old)
        memcpy(fresh, old, had);
    return fresh;
}

static char *page(size_t i)
{
    return heap + i * PAGE_BYTES;
}

/* The first store to a page of the image. Any other fault comes again, and then is fatal. */
static void on_store(int signal, siginfo_t *info, void *unused)
{
    size_t i = ((uintptr_t)info->si_addr - (uintptr_t)heap) / PAGE_BYTES;
    (void)unused;
    if (i < image_pages && !written[i] &&
        mprotect(page(i), PAGE_BYTES, PROT_READ | PROT_WRITE) == 0)
        written[i] = 1;
    else
        (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void keep_image(void)
{
    struct sigaction act = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO};
    image_pages = (heap_used + PAGE_BYTES - 1) / PAGE_BYTES;
    heap_used = image_pages * PAGE_BYTES;
    image = malloc(heap_used);
    if (!image)
        die("image of the interpreter", "no memory");
    memcpy(image, heap, heap_used);
    if (sigaction(SIGSEGV, &act, NULL) != 0 || mprotect(heap, heap_used, PROT_READ) != 0)
        die("image of the interpreter", "cannot be protected");
}

static void restore_image(void)
{
    for (size_t i = 0, n; i < image_pages; i += n) {
        for (n = 1; i + n < image_pages && written[i + n] == written[i]; n++)
            ;
        if (written[i])
            memcpy(page(i), image + i * PAGE_BYTES, n * PAGE_BYTES);
    }
    heap_used = image_pages * PAGE_BYTES;
}

static void drop_image(void)
{
    (void)mprotect(heap, image_pages * PAGE_BYTES, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < image_pages; i++)
        written[i] = 0;
    free(image);
    image = NULL;
    image_pages = 0;
}

/* ---- whole numbers --------------------------------------------------------------------------- */

static bool whole(double v)
{
    return v >= 0 && v <= 9e15 && (double)(int64_t)v - v == 0 && !signbit(v);
}

static size_t digits_of(uint64_t v, char *end)
{
    char *at = end;
    do
        *--at = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    return (size_t)(end - at);
}

/* ---- redis.call ------------------------------------------------------------------------------ */

/* Numbers become text as Redis makes it; tostring would cut them to 14 digits. */
static struct span argument(lua_State *l, int i, char digits[32])
{
    size_t n = 0;
    if (lua_type(l, i) == LUA_TNUMBER) {
        double v = lua_tonumber(l, i);
        if (whole(v)) {
            n = digits_of((uint64_t)v, digits + 32);
            return span_of(digits + 32 - n, n);
        }
        int len = v >= -9e15 && v <= 9e15 && (double)(long long)v - v == 0
                      ? snprintf(digits, 32, "%lld", (long long)v)
                      : snprintf(digits, 32, "%.17g", v);
        return span_of(digits, (size_t)len);
    }
    if (lua_type(l, i) != LUA_TSTRING)
        die("argument of redis.call", "expected a string or a number");
    const char *s = lua_tolstring(l, i, &n);
    return span_of(s, n);
}

static void push_text(lua_State *l, bool nil, struct span s)
{
    if (nil)
        lua_pushboolean(l, 0);
    else
        lua_pushlstring(l, s.n ? s.p : "", s.n);
}

static void push_items(lua_State *l, const struct dataset_reply *r)
{
    lua_createtable(l, (int)r->n, 0);
    for (size_t i = 0; i < r->n; i++) {
        push_text(l, r->item[i].nil, r->item[i].text);
        lua_rawseti(l, -2, (int)i + 1);
    }
}

static int push_reply(lua_State *l, const struct dataset_reply *r)
{
    if (r->kind == DATASET_ARRAY) {
        push_items(l, r);
    } else if (r->kind == DATASET_PAGE) {
        lua_createtable(l, 2, 0);
        push_text(l, false, SPAN("0"));
        lua_rawseti(l, -2, 1);
        push_items(l, r);
        lua_rawseti(l, -2, 2);
    } else if (r->kind == DATASET_INT) {
        lua_pushnumber(l, (lua_Number)r->number);
    } else if (r->kind == DATASET_ERROR) {
        push_text(l, false, r->text);
        return lua_error(l);
    } else {
        push_text(l, r->kind == DATASET_NIL, r->text);
    }
    return 1;
}

static int redis_call(lua_State *l)
{
    static struct dataset_reply reply;
    static struct span argv[DATASET_ARGS_MAX];
    static char digits[DATASET_ARGS_MAX][32];
    int argc = lua_gettop(l);
    if (argc < 1 || argc > DATASET_ARGS_MAX)
        die("redis.call", "expected 1 to 200 arguments");
    for (int i = 0; i < argc; i++)
        argv[i] = argument(l, i + 1, digits[i]);
    if (!store || !dataset_command(store, (size_t)argc, argv, &reply))
        die("redis.call", argv[0].p);
    return push_reply(l, &reply);
}

/* ---- string.format and tonumber ---------------------------------------------------------------
 * The script turns one into the other dozens of times per call, and the library takes the long way.
 * Whole numbers are converted here, all else by the library; check_redis.c compares the two. */

/* Calls the library's function, which is upvalue 1, with the same arguments. */
static int call_library(lua_State *l)
{
    lua_pushvalue(l, lua_upvalueindex(1));
    lua_insert(l, 1);
    lua_call(l, lua_gettop(l) - 1, LUA_MULTRET);
    return lua_gettop(l);
}

static int format(lua_State *l)
{
    size_t n;
    char text[24], *end = text + sizeof text;
    if (lua_gettop(l) != 2 || lua_type(l, 1) != LUA_TSTRING || lua_type(l, 2) != LUA_TNUMBER)
        return call_library(l);
    const char *f = lua_tolstring(l, 1, &n);
    double v = lua_tonumber(l, 2);
    if (!span_eq(span_of(f, n), SPAN("%.0f")) || !whole(v))
        return call_library(l);
    n = digits_of((uint64_t)v, end);
    lua_pushlstring(l, end - n, n);
    return 1;
}

static int to_number(lua_State *l)
{
    size_t n = 0;
    uint64_t v = 0;
    const char *s =
        lua_gettop(l) == 1 && lua_type(l, 1) == LUA_TSTRING ? lua_tolstring(l, 1, &n) : NULL;
    size_t i = 0;
    while (i < n && s[i] >= '0' && s[i] <= '9' && i < 15)
        v = v * 10 + (uint64_t)(s[i++] - '0');
    if (n == 0 || i < n)
        return call_library(l);
    lua_pushnumber(l, (lua_Number)v);
    return 1;
}

/* Puts f in place of the function of that name in the table at the top of the stack. */
static void replace(lua_State *l, const char *name, lua_CFunction f)
{
    lua_getfield(l, -1, name);
    lua_pushcclosure(l, f, 1);
    lua_setfield(l, -2, name);
}

/* ---- the script ------------------------------------------------------------------------------ */

/* What a script in Redis has, and this one uses. */
static void open_libraries(void)
{
    static const struct {
        const char *name;
        lua_CFunction open;
    } libraries[] = {{"", luaopen_base},
                     {LUA_STRLIBNAME, luaopen_string},
                     {LUA_TABLIBNAME, luaopen_table},
                     {LUA_MATHLIBNAME, luaopen_math}};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_pushcfunction(lua, libraries[i].open);
        lua_pushstring(lua, libraries[i].name);
        lua_call(lua, 1, 0);
    }
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    replace(lua, "tonumber", to_number);
    lua_getfield(lua, -1, LUA_STRLIBNAME);
    replace(lua, "format", format);
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, redis_call);
    lua_setfield(lua, -2, "call");
    lua_setglobal(lua, "redis");
    lua_settop(lua, 0);
}

static int compile(struct span text, const char *name)
{
    if (luaL_loadbuffer(lua, text.p, text.n, name) != 0)
        die("does not compile", lua_tostring(lua, -1));
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

void script_open(struct span pool, struct span sequences)
{
    heap_used = 0;
    lua = lua_newstate(allocate, NULL);
    if (!lua)
        die("interpreter", "no memory");
    (void)lua_gc(lua, LUA_GCSTOP, 0);
    open_libraries();
    chunk[COURIER_POOL] = compile(pool, "@pool.lua");
    chunk[COURIER_SEQUENCES] = compile(sequences, "@sequences.lua");
    luaL_checkstack(lua, DATASET_ARGS_MAX, "no room for arguments");
    for (int i = 0; i < SPARE_TEXTS; i++) {
        (void)lua_pushfstring(lua, "spare %d", i);
        lua_pop(lua, 1);
    }
    keep_image();
}

void script_close(void)
{
    drop_image();
    lua = NULL;
}

void script_on(struct dataset *s)
{
    store = s;
}

struct script_target *script_to(struct script_target *t)
{
    struct script_target *before = target;
    target = t;
    return before;
}

struct dataset *script_data(void)
{
    if (!target)
        die("call", "expected a data set, found none");
    return target->data(target);
}

static void set_list(const char *name, size_t n, const struct span *items)
{
    lua_createtable(lua, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        push_text(lua, false, items[i]);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

/* A table of strings at the top of the stack, which keeps them alive. */
static void take_answer(struct answer *out)
{
    if (lua_type(lua, -1) != LUA_TTABLE)
        die("answer", "expected a table");
    size_t n = lua_objlen(lua, -1);
    if (n > ANSWER_FIELDS_MAX)
        die("answer", "expected at most ANSWER_FIELDS_MAX fields");
    for (out->n = 0; out->n < n; out->n++) {
        lua_rawgeti(lua, -1, (int)out->n + 1);
        if (lua_type(lua, -1) != LUA_TSTRING)
            die("answer", "expected strings alone");
        out->f[out->n].p = lua_tolstring(lua, -1, &out->f[out->n].n);
        lua_pop(lua, 1);
    }
}

void script_run(enum courier_text which, size_t nkeys, const struct span *keys, size_t nargs,
                const struct span *args, struct answer *out)
{
    restore_image();
    set_list("KEYS", nkeys, keys);
    set_list("ARGV", nargs, args);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, chunk[which]);
    if (lua_pcall(lua, 0, 1, 0) != 0)
        die("failed", lua_tostring(lua, -1));
    take_answer(out);
}

/* ---- in place of the connection -------------------------------------------------------------- */

void courier_drop(struct courier *c)
{
    (void)c;
}

void courier_clear(struct courier *c)
{
    (void)c;
}

bool courier_counts(struct courier *c)
{
    (void)c;
    return true;
}

void courier_start(struct courier *c)
{
    (void)c;
}

/* An answer outlives the calls that are made while it waits for its replicas. */
static struct {
    char text[ANSWER_FIELDS_MAX * 48];
} said[2];
static unsigned depth;

static void keep_answer(struct answer *a)
{
    char *at = said[depth].text, *end = at + sizeof said[depth].text;
    for (size_t i = 0; i < a->n; i++) {
        if (a->f[i].n > (size_t)(end - at))
            die("answer", "expected at most 48 bytes for each field");
        memcpy(at, a->f[i].p, a->f[i].n);
        a->f[i].p = at;
        at += a->f[i].n;
    }
}

/* argv: EVALSHA, SHA1, number of keys, keys, arguments. */
enum coord_status courier_script(struct courier *c, int argc, const char **argv, size_t *len,
                                 struct answer *a, struct coord_reply *r)
{
    struct span s[COURIER_ARGS_MAX];
    script_on(script_data());
    if (!store)
        return outcome_down(r, ERR_IO, "expected a master, found none");
    for (int i = 0; i < argc; i++)
        s[i] = span_of(argv[i], len[i]);
    size_t first = 3 + COURIER_KEYS;
    script_run(c->text, COURIER_KEYS, s + 3, (size_t)argc - first, s + first, a);
    keep_answer(a);
    return COORD_OK;
}

enum coord_status courier_wait(struct courier *c, uint32_t n, struct coord_reply *r)
{
    struct script_target *t = target;
    enum courier_text text = c->text;
    c->text = COURIER_POOL; /* of calls that are made meanwhile */
    depth++;
    bool enough = t->acknowledged(t, n);
    depth--;
    c->text = text;
    return enough ? COORD_OK : outcome_down(r, ERR_BUSY, "WAIT: expected more replicas");
}

enum coord_status courier_end(struct courier *c, enum coord_status s)
{
    (void)c;
    return s;
}

bool courier_risks(struct courier *c, unsigned *out)
{
    (void)c;
    *out = 0;
    return true;
}

enum coord_status courier_writes(struct courier *c, struct coord_reply *r)
{
    (void)c;
    (void)r;
    return COORD_OK;
}

enum coord_status courier_snapshot(struct courier *c, const struct answer_to *to,
                                   struct coord_snapshot *out, struct coord_reply *r)
{
    (void)c;
    (void)to;
    (void)out;
    return outcome_refused(r, "snapshot: expected none in a simulation, found one");
}
