--[[
The lease of workerIds, as one script: every operation is atomic, its work bounded, and a range is
recorded before it is handed out.

The one idea: an ID contains its time. Each holder of a workerId W issues only inside the range of
times (lo, hi] that it was granted, and all ranges ever granted for one W are disjoint:

       hwm(W) ---------------------------------------------------> time (Unix ms)
    ...====] first holder ]====] second holder ]=====] third ...
                          ^ lo of the second = hwm when it claimed
    hwm only rises, but for a clean return, which lowers it to the last time really used.

So no lease has a deadline and no clock but this server's is believed. What is left is a table that
forgets or rewinds. It shows by a changed run_id or replication id, or by a holder whose n is above
the table's. Then the pool is REOPENED: every record written before counts as stale, which raises
its hwm to a floor above all that may have been granted and lost:

    fl   long floor: nobody can have been granted more (T + A + 2S)
    fs   short floor, for records that say free: a tenure lost with the last writes is younger than
         D0, so it had a range of A0 only (T + A0 + 2S); where that cannot be shown, fs = fl

KEYS  1 hash: identity era topen fl fs fp tmax closed adopt A A0 D0 S G K from to, and per workerId
        "era hwm token t0 n" (token "-": free; no field: free since the pool was made)
      2 list of free workerIds (a hint)   3 zset of held ones by hwm (a hint)   4 hash W -> holder
ARGV  1 operation   2 identity ("uuid|epoch|bits") that the caller is pinned to   3 nonce of a CONFIRM
      that K replicas acknowledged, or empty   4... arguments
Times are Unix ms, durations ms. Replies are flat arrays of strings: status, T, then what the status
carries; the statuses stand at the end of this file, beside the operations.
]]

local H, FREE, EXP, WHO = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local op, identity, nonce = ARGV[1], ARGV[2], ARGV[3]
local REAP_MAX, POP_MAX = 32, 64

local function int(x)
    return string.format('%.0f', x)
end

local function clock()
    local t = redis.call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

local T = clock()

-- Two things change when a server restarts, fails over or loads another data set.
-- 40 hexadecimal digits, not all of them 0: what hides them may well give a constant instead.
local function id_in(section, field)
    local id = string.match(redis.call('INFO', section), field .. ':(%x+)')
    return id and #id == 40 and string.find(id, '[^0]') and id
end

local function fingerprint()
    local run, repl = id_in('server', 'run_id'), id_in('replication', 'master_replid')
    return run and repl and run .. repl
end

-- A server that hides them is refused, be there a pool or not: it could not be told from another, nor
-- from its own past.
local told, fp = pcall(fingerprint)
if not (told and fp) then
    local why = type(fp) == 'table' and fp.err or fp
    return {'NOINFO', int(T), why and tostring(why) or 'no such field of 40 digits'}
end

-- With replicas: the T of a CONFIRM that K of them acknowledged to this very server, or nil.
local of, at = string.match(nonce, '^(%x+)@(%d+)$')
local confirmed = of == fp and tonumber(at) or nil

local function confirm(K)
    return {'CONFIRM', int(T), fp .. '@' .. int(T), int(K)}
end

-- To the tail of the queue; in pieces, since unpack() has a limit.
local function enqueue(list)
    for i = 1, #list, 1000 do
        redis.call('RPUSH', FREE, unpack(list, i, math.min(i + 999, #list)))
    end
end

-- Replicas that are connected: to be promoted without having seen the latest grants.
local function standby()
    local n = string.match(redis.call('INFO', 'replication'), 'connected_slaves:(%d+)')
    return tonumber(n or 0)
end

local function init(mode, A, A0, D0, S, G, K, from, to, ahead, said)
    if redis.call('EXISTS', H) == 1 then
        return {'EXISTS', int(T)}
    end
    if tonumber(K) == 0 and said ~= '1' and standby() > 0 then
        return {'REPLICAS', int(T), int(standby())}
    end
    -- Its floors are stamped now, so the same holds as for a reopening: see CONFIRM below.
    if tonumber(K) > 0 and not confirmed then
        redis.call('HSET', WHO, 'confirm', int(T))
        return confirm(K)
    end
    -- A pool made after a loss is one that has been reopened already: era 2, and no record of era 1.
    -- What was lost may have had a longer horizon than this one has.
    local era, floor = 1, 0
    if mode == 'after-loss' then
        era, floor = 2, T + math.max(A + 2 * S, tonumber(ahead))
    end
    redis.call('DEL', FREE, EXP, WHO)
    redis.call('HSET', H, 'identity', identity, 'adopt', 1, 'era', era, 'topen', int(T),
        'fl', int(floor), 'fs', int(floor), 'fp', fp, 'tmax', int(T), 'closed', 0,
        'A', A, 'A0', A0, 'D0', D0, 'S', S, 'G', G, 'K', K, 'from', from, 'to', to, 'born', int(T),
        'sure', int(confirmed or 0))
    local all = {}
    for w = tonumber(from), tonumber(to) do
        all[#all + 1] = w
    end
    enqueue(all)
    return {'OK', int(T), int(era), int(to - from + 1), int(K)}
end

if op == 'init' then
    return init(unpack(ARGV, 4))
end

-- Every operation on an existing pool begins here.

local NAMES = {'identity', 'era', 'topen', 'fl', 'fs', 'fp', 'tmax', 'closed', 'adopt', 'sure',
    'A', 'A0', 'D0', 'S', 'G', 'K', 'from', 'to', 'born'}
local TEXT = {identity = true, fp = true}
local OPTIONAL = {adopt = true, sure = true}
local pool = {}
for i, value in ipairs(redis.call('HMGET', H, unpack(NAMES))) do
    local name = NAMES[i]
    pool[name] = value and (TEXT[name] and value or tonumber(value))
    if not pool[name] and not OPTIONAL[name] then
        if name == 'identity' and redis.call('EXISTS', H) == 0 then
            return {'NOPOOL', int(T)}
        end
        return {'CORRUPT', int(T), name}
    end
end
local A, A0, D0, S, K = pool.A, pool.A0, pool.D0, pool.S, pool.K

if op == 'describe' then
    local _, online = string.gsub(redis.call('INFO', 'replication'), 'state=online', '')
    return {'OK', int(T), int(pool.era), int(redis.call('LLEN', FREE)), '0', pool.identity,
        int(pool.topen), int(pool.fl), int(pool.fs), int(pool.tmax), int(pool.closed),
        int(A), int(A0), int(D0), int(S), int(pool.G), int(K), int(pool.from), int(pool.to),
        int(pool.born), int(redis.call('ZCARD', EXP)), int(online)}
end

local function put(...)
    redis.call('HSET', H, ...)
end

-- A pool made anew takes the uuid of the first holder that renews, as long as nobody has claimed
-- from it: so the holders of a lost pool go on, and another epoch or layout still is refused.
local function space(id)
    return string.match(id, '|.*')
end
local adopts = identity ~= pool.identity
if adopts and not (pool.adopt and op == 'renew' and space(identity) == space(pool.identity)) then
    return {'WRONGPOOL', int(T), pool.identity}
end

-- With replicas, an answer counts only after K of them have acknowledged all that was written before
-- it, so something is written before every answer. And a server that is new to the pool may be one
-- whose predecessor goes on granting with the replicas that still follow it. K replicas that
-- acknowledge a CONFIRM follow this server, so the predecessor's grants from then on count for
-- nothing, and those before have ceilings below the floors of a reopening with a T of now. Nothing
-- else may be written before: tmax tells how old the table is that this server began with.
if K > 0 then
    put('beat', int(T))
    if not confirmed and (fp ~= pool.fp or T - (pool.sure or 0) > D0 / 4) then
        return confirm(K)
    end
end
if adopts then
    put('identity', identity)
    redis.call('HDEL', H, 'adopt')
end

if T < pool.tmax - 2 * S then
    return {'REDISCLOCK', int(T), int(pool.tmax)}
end
if op == 'claim' and math.abs(tonumber(ARGV[4]) - T) > S then
    return {'SKEW', int(T), ARGV[4], int(S)}
end

local function owned(r)
    return r.token ~= '-'
end

local function in_pool(w)
    local number = string.match(w, '^%d+$') and tonumber(w)
    return number and int(number) == w and number >= pool.from and number <= pool.to
end

-- nil: not a workerId of this pool, or a record that cannot be read; it is never handed out.
local function get(w)
    if not in_pool(w) then
        return nil
    end
    local text = redis.call('HGET', H, w)
    if not text then
        return {w = w, era = 1, hwm = 0, token = '-', t0 = 0, n = 0}
    end
    local era, hwm, token, t0, n = string.match(text, '^(%d+) (%d+) (%S+) (%d+) (%d+)$')
    if not era then
        return nil
    end
    return {w = w, era = tonumber(era), hwm = tonumber(hwm), token = token, t0 = tonumber(t0),
        n = tonumber(n)}
end

local function fresh(r)
    return r.era == pool.era
end

local function high(r)
    if fresh(r) then
        return r.hwm
    end
    return math.max(r.hwm, owned(r) and pool.fl or pool.fs)
end

-- Writes r as a record of this era, one change on.
local function save(r)
    r.era, r.n = pool.era, r.n + 1
    put(r.w, table.concat({int(r.era), int(r.hwm), r.token, int(r.t0), int(r.n)}, ' '))
    if owned(r) then
        redis.call('ZADD', EXP, int(r.hwm), r.w)
    else
        redis.call('ZREM', EXP, r.w)
    end
end

local function set_free(r)
    r.hwm, r.token = high(r), '-'
    save(r)
    redis.call('RPUSH', FREE, r.w)
    redis.call('HDEL', WHO, r.w)
end

-- The items of a renewal, five arguments each.
local function renewals()
    local items = {}
    for i = 4, #ARGV, 5 do
        items[#items + 1] = {r = get(ARGV[i]), cur = ARGV[i + 1], nxt = ARGV[i + 2],
            hi = tonumber(ARGV[i + 3]), n = tonumber(ARGV[i + 4])}
    end
    return items
end
local items = op == 'renew' and renewals() or {}

local function rewound()
    for _, item in ipairs(items) do
        if item.r and fresh(item.r) and item.n > item.r.n then
            return true
        end
    end
    return false
end

-- tmax bounds the age of what a restart lost only where the table is an older state of itself. A
-- holder that knows more than a table whose server did not change proves something worse: long floor.
-- 4S: a clock that wanders within S of true time may have been fast at tmax, slow when a tenure that
-- was lost began, fast when that was renewed, and slow now.
local proof = fp == pool.fp and rewound()
if fp ~= pool.fp or proof then
    local whole = K > 0 and (pool.sure or 0) or pool.tmax
    local young = T - whole < D0 - 4 * S and not proof
    pool.era = pool.era + 1
    pool.topen = T
    pool.fl = math.max(pool.fl, T + A + 2 * S)
    pool.fs = math.max(pool.fs, young and T + A0 + 2 * S or pool.fl)
    put('fp', fp, 'era', int(pool.era), 'topen', int(pool.topen), 'fl', int(pool.fl),
        'fs', int(pool.fs))
end
if T > pool.tmax then
    put('tmax', int(T))
end
if confirmed and confirmed > (pool.sure or 0) then
    put('sure', int(confirmed))
end

-- status, T, era, length of the queue, K: the head of every answer from here on.
local function reply(status, ...)
    return {status, int(T), int(pool.era), int(redis.call('LLEN', FREE)), int(K), ...}
end

-- Held workerIds whose range ended more than G ago go back to the queue. G is politeness, not
-- safety: the next holder begins above hwm in any case.
local function reap()
    local limit = T - pool.G
    local due = redis.call('ZRANGEBYSCORE', EXP, '-inf', '(' .. int(limit), 'LIMIT', 0, REAP_MAX)
    for _, w in ipairs(due) do
        local r = get(w)
        if not r or not owned(r) then
            redis.call('ZREM', EXP, w)
        elseif high(r) < limit then
            set_free(r)
        else
            redis.call('ZADD', EXP, int(high(r)), w)
        end
    end
end

local function claim(caller, nxt, who)
    if pool.closed ~= 0 then
        return reply('CLOSED')
    end
    caller = tonumber(caller)
    reap()
    local soonest
    for _ = 1, math.min(POP_MAX, redis.call('LLEN', FREE)) do
        local w = redis.call('LPOP', FREE)
        local r = get(w)
        local floor = r and high(r)
        if r and not (owned(r) and fresh(r)) then
            if floor < caller then
                r.hwm, r.token, r.t0 = T + A0, nxt, T
                save(r)
                redis.call('HSET', WHO, w, who)
                redis.call('HDEL', H, 'adopt')
                return reply('OK', w, int(floor + 1), int(r.hwm), int(r.n), int(r.t0))
            end
            redis.call('RPUSH', FREE, w)
            soonest = math.min(soonest or floor, floor)
        end
    end
    if soonest then
        return reply('WAIT', int(soonest - caller + 1))
    end
    return reply('EXHAUSTED')
end

-- How a renewal was answered: renewed, again (its first reply was lost), reasserted, or LOST; and
-- the ceiling. That is what this renewal may have, not hwm: after a rewind hwm also covers what
-- others, or the same holder later, were granted by the table that was lost. Such a renewal may be
-- a late copy of one answered long ago, so it must not uncover any of that.
local function renew_one(item)
    local r = item.r
    if not r then
        return 'LOST'
    end
    local again = owned(r) and r.token == item.nxt and fresh(r)
    local how = again and 'again' or 'renewed'
    if not again and fresh(r) then
        if r.token ~= item.cur then
            return 'LOST'
        end
    elseif not again then
        -- Nobody else can have claimed above topen + 3S before now, nor been granted beyond the
        -- upper bound; and a table that knows later changes of W knows better than this holder.
        local later = r.n > item.n and r.token ~= item.nxt
        if later or item.hi < pool.topen + 3 * S or item.hi > pool.topen + A + 2 * S then
            return 'LOST'
        end
        r.hwm, r.t0, r.n = math.max(high(r), item.hi), T, math.max(r.n, item.n)
        how = 'reasserted'
    end
    local hi = math.max(math.min(r.hwm, item.hi), T + (T - r.t0 >= D0 and A or A0))
    if again then
        return how, math.min(r.hwm, hi)
    end
    r.hwm, r.token = math.max(r.hwm, hi), item.nxt
    save(r)
    return how, hi
end

local function renew()
    if pool.closed ~= 0 then
        return reply('CLOSED')
    end
    local out = reply('OK')
    for _, item in ipairs(items) do
        local how, hi = renew_one(item)
        local r = hi and item.r or {n = 0, t0 = 0}
        for _, value in ipairs({how, int(hi or 0), int(r.n), int(r.t0)}) do
            out[#out + 1] = value
        end
    end
    return out
end

-- last, where given, is at least lo - 1: what is above it was never used. Not so below fs where the
-- table was rewound: late copies of a renewal and a release may come from a holder before the one
-- whose young tenure was lost. (A tenure claimed in this era begins above fs.)
local function release(w, cur, nxt, last)
    local r = get(w)
    if not r or not fresh(r) or not owned(r) or (r.token ~= cur and r.token ~= nxt) then
        return reply('LOST')
    end
    if last ~= '' then
        r.hwm = math.min(r.hwm, math.max(tonumber(last), pool.fs))
    end
    set_free(r)
    return reply('OK')
end

-- An operator's word that W's holder is dead. Its range stays taken.
local function evict(w)
    local r = get(w)
    if not r or not owned(r) then
        return reply('LOST')
    end
    set_free(r)
    return reply('OK')
end

local function close()
    put('closed', 1)
    return reply('OK')
end

-- Makes the hints agree with the records of the workerIds named, and drops from the queue what is
-- none of the pool. The queue is walked once, however many there are: LREM would walk it for each.
local function repair(...)
    local named, back, kept = {}, {}, {}
    for w in string.gmatch(table.concat({...}, ' '), '%S+') do
        local r = not named[w] and get(w)
        if not named[w] then
            redis.call('ZREM', EXP, w)
        end
        if r and owned(r) then
            redis.call('ZADD', EXP, int(high(r)), w)
        elseif r then
            back[#back + 1] = w
        end
        named[w] = true
    end
    local queue = redis.call('LRANGE', FREE, 0, -1)
    for _, w in ipairs(queue) do
        if not named[w] and in_pool(w) then
            kept[#kept + 1] = w
        end
    end
    if #kept < #queue then
        redis.call('DEL', FREE)
        enqueue(kept)
    end
    enqueue(back)
    return reply('OK')
end

local OPERATIONS = {
    claim = claim,     -- caller's clock, next token, holder -> OK W lo hi n t0 | WAIT ms | EXHAUSTED
    renew = renew,     -- (W, token, next token, hi, n)...   -> OK (how hi n t0)...
    release = release, -- W, token, next token, last or ''   -> OK | LOST
    evict = evict,     -- W                                  -> OK | LOST
    close = close,     --                                    -> OK
    repair = repair,   -- W..., parted by spaces             -> OK
}
local run = OPERATIONS[op]
if not run then
    return {'BADOP', int(T), op}
end
return run(unpack(ARGV, 4))
