#include "sim/script.h"

#include "coord/courier.h"
#include "coord/outcome.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

static lua_State *lua;
static int chunk = LUA_NOREF;
static struct dataset *store;

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "pool.lua: %s: %s\n", what, why);
    abort();
}

/* ---- redis.call ------------------------------------------------------------------------------ */

/* Numbers become text as Redis makes it; tostring would cut them to 14 digits. */
static struct span argument(lua_State *l, int i, char digits[32])
{
    size_t n = 0;
    if (lua_type(l, i) == LUA_TNUMBER) {
        double v = lua_tonumber(l, i);
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

static int push_reply(lua_State *l, const struct dataset_reply *r)
{
    if (r->kind == DATASET_ARRAY) {
        lua_createtable(l, (int)r->n, 0);
        for (size_t i = 0; i < r->n; i++) {
            push_text(l, r->item[i].nil, r->item[i].text);
            lua_rawseti(l, -2, (int)i + 1);
        }
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
    struct span argv[DATASET_ARGS_MAX];
    char digits[DATASET_ARGS_MAX][32];
    int argc = lua_gettop(l);
    if (argc < 1 || argc > DATASET_ARGS_MAX)
        die("redis.call", "expected 1 to 200 arguments");
    for (int i = 0; i < argc; i++)
        argv[i] = argument(l, i + 1, digits[i]);
    if (!store || !dataset_command(store, (size_t)argc, argv, &reply))
        die("redis.call", argv[0].p);
    return push_reply(l, &reply);
}

/* ---- the script ------------------------------------------------------------------------------ */

void script_open(const char *text, size_t n)
{
    lua = luaL_newstate();
    if (!lua)
        die("interpreter", "no memory");
    luaL_openlibs(lua);
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, redis_call);
    lua_setfield(lua, -2, "call");
    lua_setglobal(lua, "redis");
    if (luaL_loadbuffer(lua, text, n, "@pool.lua") != 0)
        die("does not compile", lua_tostring(lua, -1));
    chunk = luaL_ref(lua, LUA_REGISTRYINDEX);
}

void script_close(void)
{
    lua_close(lua);
    lua = NULL;
    chunk = LUA_NOREF;
}

void script_on(struct dataset *s)
{
    store = s;
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

void script_run(size_t nkeys, const struct span *keys, size_t nargs, const struct span *args,
                struct answer *out)
{
    lua_settop(lua, 0);
    set_list("KEYS", nkeys, keys);
    set_list("ARGV", nargs, args);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, chunk);
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

/* argv: EVALSHA, SHA1, number of keys, keys, arguments. */
enum coord_status courier_script(struct courier *c, int argc, const char **argv, size_t *len,
                                 struct answer *a, struct coord_reply *r)
{
    struct span s[COURIER_ARGS_MAX];
    (void)c;
    (void)r;
    for (int i = 0; i < argc; i++)
        s[i] = span_of(argv[i], len[i]);
    size_t first = 3 + COURIER_KEYS;
    script_run(COURIER_KEYS, s + 3, (size_t)argc - first, s + first, a);
    return COORD_OK;
}

enum coord_status courier_end(struct courier *c, enum coord_status s)
{
    (void)c;
    return s;
}

enum coord_status courier_snapshot(struct courier *c, const struct answer_to *to,
                                   struct coord_snapshot *out, struct coord_reply *r)
{
    (void)c;
    (void)to;
    (void)out;
    return outcome_refused(r, "snapshot: expected none in a simulation, found one");
}
