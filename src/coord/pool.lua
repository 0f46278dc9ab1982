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
         D0, so it had a range of A0 only (T + A0 + 2S); where that cannot be shown, a bet on
         `settle` (below), or where the pool makes none, fs = fl

What is bet on settle, operators' words, whose clock counts and other pools' holders: see rules.h.

KEYS  1 hash: identity era topen fl fs fp tmax closed adopt A A0 D0 S G K from to, those of LATER, and
        per workerId "era hwm token t0 n" (token "-": free; no field: free since the pool was made)
      2 list of free workerIds (a hint)   3 zset of held ones by hwm (a hint)   4 hash W -> holder
ARGV  1 operation   2 identity ("uuid|epoch|bits") that the caller is pinned to   3 nonce of a CONFIRM
      that K replicas acknowledged, or empty   4 the caller's clock   5... arguments
Times are Unix ms, durations ms. Replies are arrays of strings: status, T, what goes with the status
(below). What is not between the marks {{ and }} is put before sequences.lua, too (tools/join-lua).
]]

local H, FREE, EXP, WHO = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local op, identity, nonce = ARGV[1], ARGV[2], ARGV[3]
local caller = tonumber(ARGV[4])
local REAP_MAX, POP_MAX = 32, 64
local call, max, min, match = redis.call, math.max, math.min, string.match

-- As the store's other readers take it; nil: what tonumber takes for one, such as nan, would undo floors.
local function number(text)
    local n = match(text or '', '^%d+$') and tonumber(text)
    return n and n < 2^53 and n or nil
end

local texts = {} -- of numbers, most of which are written more than once
local function int(x)
    texts[x] = texts[x] or string.format('%.0f', x)
    return texts[x]
end

local function clock()
    local t = call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

local T = clock()

-- Changes when a server restarts, fails over or loads other data: 40 digits, and not a constant of 0.
local function id_in(info, field)
    local _, before = string.find(info, field, 1, true)
    local id = before and match(info, '^%x+', before + 1)
    return id and #id == 40 and string.find(id, '[^0]') and id
end

local replication
local function fingerprint()
    replication = call('INFO', 'replication')
    local run, repl = id_in(call('INFO', 'server'), 'run_id:'), id_in(replication, 'master_replid:')
    return run and repl and run .. repl
end

-- A server that hides them is refused: it could not be told from another, nor from its own past.
local told, fp = pcall(fingerprint)
if not (told and fp) then
    return {'NOINFO', int(T), tostring(type(fp) == 'table' and fp.err or fp or 'no field of 40 digits')}
end

-- A replica that may be written to would grant from its copy of the pool what its master grants, too.
if match(replication, 'role:(%a+)') ~= 'master' then
    local host, port = match(replication, 'master_host:(%S+)%s+master_port:(%d+)')
    return {'REPLICA', int(T), host and host .. ':' .. port or 'nobody'}
end

-- With replicas: the T of a CONFIRM that K of them acknowledged to this very server, or nil.
local of, at = match(nonce, '^(%x+)@(%d+)$')
local confirmed = of == fp and tonumber(at) or nil

local function confirm(K)
    return {'CONFIRM', int(T), fp .. '@' .. int(T), int(K)}
end

--{{ To the tail of the queue; in pieces, since unpack() has a limit.
local function enqueue(list)
    for i = 1, #list, 1000 do
        call('RPUSH', FREE, unpack(list, i, min(i + 999, #list)))
    end
end

local function init(mode, A, A0, D0, S, G, K, from, to, ahead, said, settle, least, adopt)
    if call('EXISTS', H) == 1 then
        return {'EXISTS', int(T)}
    end
    if math.abs(caller - T) > tonumber(S) then -- its floors and tmax are stamped now
        return {'SKEW', int(T), int(caller), int(S)}
    end
    -- Replicas that are connected may be promoted without having seen the latest grants.
    local standby = tonumber(match(replication, 'connected_slaves:(%d+)') or 0)
    if K == '0' and said ~= '1' and standby > 0 then
        return {'REPLICAS', int(T), int(standby)}
    end
    -- The same holds as for a reopening: see CONFIRM below.
    if K ~= '0' and not confirmed then
        call('HSET', WHO, 'confirm', int(T))
        return confirm(K)
    end
    -- Made after a loss, or of a range: reopened, with no record of era 1. The horizon may have been longer.
    local lost, era = mode == 'after-loss', mode == 'fresh' and 1 or 2
    local more = lost and tonumber(ahead) > A + 2 * S and tonumber(ahead) or 0
    local floor = int(lost and T + max(A + 2 * S, more) or 0)
    call('DEL', FREE, EXP, WHO)
    call('HSET', H, 'identity', identity, 'era', era, 'topen', int(T),
        'fl', floor, 'fs', floor, 'fp', fp, 'tmax', int(T), 'closed', 0,
        'A', A, 'A0', A0, 'D0', D0, 'S', S, 'G', G, 'K', K, 'from', from, 'to', to, 'born', int(T),
        'sure', int(confirmed or 0), 'settle', settle, 'least', least, 'ahead', int(more),
        unpack(adopt == '1' and {'adopt', 1} or {}))
    local all = {}
    for w = tonumber(from), tonumber(to) do
        all[#all + 1] = w
    end
    enqueue(all)
    return {'OK', int(T), int(era), int(to - from + 1), int(K)}
end

if op == 'init' then
    return init(unpack(ARGV, 5))
end

--}} Every operation on an existing pool begins here.

local NAMES = {'identity', 'era', 'topen', 'fl', 'fs', 'fp', 'tmax', 'closed', 'adopt', 'sure',
    'A', 'A0', 'D0', 'S', 'G', 'K', 'from', 'to', 'born',
    -- LATER: numbers that are 0 where they are missing, as in a pool made by a script of before
    'settle',                -- how long a bet lasts; 0: A, which is none
    'settle0', 'settle_t',   -- the one before, which counts until then
    'fl0', 'fs0', 'era0',    -- floors before the latest reopening, and the era that it began
    'more',                  -- the era in which a holder was heard that knows more than the table
    'trust',                 -- what fs rests on: BET, WORD, or 0
    'lent',                  -- until then ranges of before a bet may last
    'ahead',                 -- of T, what a holder's pool may have granted, where it is above ours
    'every',                 -- longest time between two renewals that a holder told
    'cause',                 -- of the latest reopening: MOVED, or what follows it; 2 is SQLite's
    'fence',                 -- tmax of a clock that was ahead, by an operator's word
    'least',                 -- shortest settle that was raised since; 0: none
    'leap', 'leapt',         -- how far T had gone ahead of all that was heard, and when that was seen
}
local LATER, BET, WORD = 20, 1, 2
local MOVED, HOLDER, STRANGER, BACK = 1, 3, 4, 5
local CLOSED, GONE = 1, 2 -- what `closed` is: GONE where the pool was made again elsewhere
local TEXT, OPTIONAL = {identity = true, fp = true}, {adopt = true, sure = true}
local pool = {}
local row = call('HMGET', H, unpack(NAMES))
for i = 1, #NAMES do
    local name, value = NAMES[i], row[i] or i >= LATER and '0'
    pool[name] = TEXT[name] and value or number(value)
    if not pool[name] and not OPTIONAL[name] then
        if name == 'identity' and call('EXISTS', H) == 0 then
            return {'NOPOOL', int(T)}
        end
        return {'CORRUPT', int(T), name}
    end
end
local A, A0, D0, S, K = pool.A, pool.A0, pool.D0, pool.S, pool.K

local function online()
    return select(2, string.gsub(replication, 'state=online', ''))
end

-- How far ahead of its time a table that was lost may have granted; more where a holder says so.
local function reach() return max(A + 2 * S, pool.ahead) end

-- So many lie at most so far apart, ms: 20 s, give or take a fifth, unless told else.
local function renewals(n) return n * max(pool.every, 24000) end

local function settle()
    local settle = pool.settle > 0 and pool.settle or A
    return T < pool.settle_t and max(settle, pool.settle0) or settle
end

local function fence() return pool.fence + reach() end -- nobody was granted more, whatever the clock was

-- Until when workerIds that are free rest if the pool is reopened now, and whether that is a bet; nil: they
-- rest as all others do.
local function rest(proof)
    local whole = K > 0 and (pool.sure or 0) or pool.tmax
    local sound = not proof and T >= fence()
    local young = T - whole < D0 - 4 * S and sound and T >= pool.lent
    local bet = not young and sound and max(settle(), A0) < A
    return (young and T + A0 + 2 * S) or (bet and T + max(settle(), A0) + 2 * S) or nil, bet
end

if op == 'describe' then
    local out = {'OK', int(T), int(pool.era), int(call('LLEN', FREE)), '0', pool.identity,
        int(pool.topen), int(pool.fl), int(pool.fs), int(pool.tmax), int(pool.closed), int(A), int(A0),
        int(D0), int(S), int(pool.G), int(K), int(pool.from), int(pool.to), int(pool.born)}
    for i = LATER, #NAMES do
        out[i + 1] = int(pool[NAMES[i]])
    end
    out[#out + 1], out[#out + 2] = int(call('ZCARD', EXP)), int(online())
    local floor = rest(false) or max(pool.fl, T + reach(), fence())
    out[#out + 1] = fp == pool.fp and '0' or int(max(pool.fs, floor))
    return out
end

local function put(...)
    call('HSET', H, ...)
end

-- A pool made anew under no uuid of before takes that of the first holder that renews, as long as
-- nobody has claimed from it: so the holders of a lost pool go on, and another epoch or layout still
-- is refused. One that comes later is refused, too, and heard: see hear_stranger.
local other = identity ~= pool.identity
if other and not (op == 'renew' and match(identity, '|.*') == match(pool.identity, '|.*')) then
    return {'WRONGPOOL', int(T), pool.identity}
end
local adopts = other and pool.adopt == 1
local stranger = other and not adopts

-- With replicas, an answer counts only after K of them have acknowledged all that was written before
-- it, so something is written before every answer. And a server that is new to the pool may be one
-- whose predecessor goes on granting with the replicas that still follow it. K that acknowledge a
-- CONFIRM follow this server, so the predecessor's grants from then on count for nothing, and those
-- before have ceilings below the floors of a reopening with a T of now. Nothing else may be written
-- before: tmax tells how old the table is; nor a claim where too few listen, which is taken in vain.
if K > 0 then
    put('beat', int(T))
    local unheard = op == 'claim' and online() < K
    if not confirmed and (fp ~= pool.fp or unheard or math.abs(T - (pool.sure or 0)) > D0 / 8) then
        return confirm(K)
    end
end
if adopts then
    put('identity', identity)
    call('HDEL', H, 'adopt')
end

local skewed, SKEW = math.abs(caller - T) > S, {'SKEW', int(T), int(caller), int(S)}
local behind, word = T < pool.tmax - 2 * S, op == 'clock-was-ahead'
-- For a clock that is not behind: what need not, see rules.h.
local waits = not ({renew = not skewed, release = true, take = true, back = true, order = true})[op]
if skewed and (word or op == 'claim' or op == 'settle' or op == 'nothing-lost' or op == 'unclose') then
    return SKEW
end
local now = T - caller > 2 * S and caller or T -- the time that is followed

local function owned(r) return r.token ~= '-' end
local function fresh(r) return r.era == pool.era end

local function in_pool(w)
    local n = number(w)
    return n and int(n) == w and n >= pool.from and n <= pool.to
end

--{{ nil: not a workerId of this pool, or a record that cannot be read; it is never handed out.
local function get(w)
    if not in_pool(w) then
        return nil
    end
    local text = call('HGET', H, w)
    if not text then
        return {w = w, era = 1, hwm = 0, token = '-', t0 = 0, n = 0}
    end
    local era, hwm, token, t0, n = match(text, '^(%d+) (%d+) (%S+) (%d+) (%d+)$')
    local r = {w = w, era = number(era), hwm = number(hwm), token = token, t0 = number(t0), n = number(n)}
    return r.era and r.hwm and r.t0 and r.n and r
end

local function high(r)
    return fresh(r) and r.hwm or max(r.hwm, owned(r) and pool.fl or pool.fs)
end

local function save(r)
    r.era, r.n = pool.era, r.n + 1
    put(r.w, table.concat({int(r.era), int(r.hwm), r.token, int(r.t0), int(r.n)}, ' '))
    if owned(r) then
        call('ZADD', EXP, int(r.hwm), r.w)
    else
        call('ZREM', EXP, r.w)
    end
end

local function set_free(r)
    r.hwm, r.token = high(r), '-'
    save(r)
    call('RPUSH', FREE, r.w)
    call('HDEL', WHO, r.w)
end

--}} Writes fields of the pool, given as name, number, ..., where they are others than before.
local function note(...)
    local given = {...}
    for i = 1, #given, 2 do
        if pool[given[i]] ~= given[i + 1] then
            pool[given[i]] = given[i + 1]
            put(given[i], int(given[i + 1]))
        end
    end
end

--{{ Behind the latest reopening somebody was granted more than the table takes for the most there is.
local function raise(ahead)
    local floor = max(pool.topen, pool.fence) + ahead
    note('more', pool.era, 'fl', max(pool.fl, floor), 'fs', max(pool.fs, floor))
end

-- A holder's pool may have been another one, and this one made anew after its loss. Only more is
-- learnt: one of a smaller pool, heard first, must not hide the others.
local function learn(ahead, every)
    note('every', max(pool.every, every))
    if ahead > reach() then
        note('ahead', ahead)
        raise(ahead)
    end
end

local items = {} -- of a renewal, five arguments each, behind the name of who renews
for i = 8, op == 'renew' and #ARGV or 0, 5 do
    items[#items + 1] = {r = get(ARGV[i]), cur = ARGV[i + 1], nxt = ARGV[i + 2],
        hi = tonumber(ARGV[i + 3]), n = tonumber(ARGV[i + 4])}
    waits = waits or not (items[#items].r and fresh(items[#items].r))
end

--}}== A holder knows more than the table, which takes its record for current, or which does not.
local function knows_more(current)
    for _, item in ipairs(items) do
        local r = item.r or {n = 0} -- of no workerId here: the pool was made again with others
        if fresh(r) == current and item.n > r.n then
            return true
        end
    end
    return false
end

local function reopen(proof, floor, cause)
    local short, bet = rest(proof)
    note('fl0', pool.fl, 'fs0', pool.fs, 'era0', pool.era + 1, 'trust', bet and BET or 0,
        'lent', bet and T + reach() or pool.lent, 'fl', max(pool.fl, floor, fence()))
    note('fs', max(pool.fs, short or pool.fl), 'era', pool.era + 1, 'topen', T, 'cause', cause)
    put('fp', fp)
end

-- Somebody was granted what this pool does not know of: while it is closed, by one made in its place.
local function hear_gone()
    note('closed', pool.closed == CLOSED and GONE or pool.closed)
end

-- A holder knows more than the table: where fs rests on trust, it does not any more.
local function hear_more()
    if pool.trust == WORD then -- what was freed since counts as current, and would have no floor
        reopen(true, pool.topen + reach(), HOLDER)
    end
    note('more', pool.era, 'trust', 0, 'fs', pool.trust == BET and max(pool.fs, pool.fl) or pool.fs)
    hear_gone()
end

--{{ A holder of another pool of this ID space: of one before, of one made since, or of none of our business.
local function hear_stranger(ahead)
    local most = max(reach(), ahead)
    local floor, top, later = pool.born + most, max(pool.topen, pool.fence) + most, false
    for _, item in ipairs(items) do
        later = later or (item.hi > floor and item.hi <= top)
        if item.hi > T then
            hear_gone()
        end
    end
    if fp ~= pool.fp or behind then
        return -- a new server reopens first, and the stranger asks again before that one's floors pass
    end
    if later then -- what the server came back with may be older than that pool
        raise(most)
        hear_more()
    end
    if T >= floor then
        return
    end
    for _, item in ipairs(items) do
        local r = item.r and item.hi <= floor and get(item.r.w)
        if r and pool.fs < floor then
            reopen(true, floor, STRANGER)
            note('more', pool.era)
        end
        if r and owned(r) and r.t0 <= floor - S then
            set_free(r)
        end
    end
end

if stranger then
    hear_stranger(tonumber(ARGV[5]))
    return {'WRONGPOOL', int(T), pool.identity}
end

--}} tmax bounds the age of what a restart lost only where the table is an older state of itself. A
-- holder that knows more than a table whose server did not change proves something worse: long floor.
-- 4S: a clock that wanders within S of true time may have been fast at tmax, slow when a tenure that
-- was lost began, fast when that was renewed, and slow now.
local proof = fp == pool.fp and knows_more(true)
if behind and word then
    note('fence', max(pool.fence, pool.tmax), 'tmax', T, 'sure', 0, 'topen', min(pool.topen, T))
elseif behind and (waits or fp ~= pool.fp or proof or knows_more(false)) then
    return {'REDISCLOCK', int(T), int(pool.tmax)}
end
if fp ~= pool.fp and skewed then return SKEW end
if fp ~= pool.fp or proof then
    reopen(proof, T + reach(), proof and HOLDER or MOVED)
end
-- How far T has gone ahead of who lives, unless nobody did; until those who live have had time to be heard.
local function leap() return math.abs(T - pool.leapt) < renewals(4) and pool.leap or 0 end
if T - pool.tmax > max(renewals(2), leap()) then note('leap', T - pool.tmax, 'leapt', T) end
if op == 'renew' then learn(tonumber(ARGV[5]), tonumber(ARGV[6])) end
if proof or knows_more(false) then
    hear_more()
end
note('tmax', max(pool.tmax, now))
if confirmed and min(confirmed, now) > (pool.sure or 0) then
    put('sure', int(min(confirmed, now)))
end

-- status, T, era, length of the queue, K: the head of every answer from here on.
local function reply(status, ...)
    return {status, int(T), int(pool.era), int(call('LLEN', FREE)), int(K), ...}
end

--{{ Held workerIds whose range ended more than G, politeness and not safety, ago go back to the queue.
-- As long as others are to be had, whom T may have gone ahead of is heard first.
local function reap(leapt)
    local limit = T - pool.G - leapt
    local due = call('ZRANGEBYSCORE', EXP, '-inf', '(' .. int(limit), 'LIMIT', 0, REAP_MAX)
    for _, w in ipairs(due) do
        local r = get(w)
        if not r or not owned(r) then
            call('ZREM', EXP, w)
        elseif high(r) < limit then
            set_free(r)
        else
            call('ZADD', EXP, int(high(r)), w)
        end
    end
end

local function claim(nxt, who, leapt)
    if pool.closed ~= 0 then return reply('CLOSED') end
    reap(leapt or leap())
    local soonest
    for _ = 1, min(POP_MAX, call('LLEN', FREE)) do
        local w = call('LPOP', FREE)
        local r = get(w)
        local floor = r and high(r)
        if r and not (owned(r) and fresh(r)) then
            if floor < caller then
                r.hwm, r.token, r.t0 = T + A0, nxt, T
                save(r)
                call('HSET', WHO, w, who)
                call('HDEL', H, 'adopt')
                return reply('OK', w, int(floor + 1), int(r.hwm), int(r.n), int(r.t0))
            end
            call('RPUSH', FREE, w)
            soonest = min(soonest or floor, floor)
        end
    end
    if not leapt and leap() > 0 then return claim(nxt, who, 0) end
    if soonest then
        return reply('WAIT', int(soonest - caller + 1))
    end
    local first = get(call('ZRANGEBYSCORE', EXP, '-inf', '(' .. int(2^53), 'LIMIT', 0, 1)[1] or '')
    return reply('EXHAUSTED', int(first and max(1, high(first) + pool.G - T + 1) or 0))
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
        -- Nobody else can have claimed above topen + 3S before now, but by a clock that was ahead,
        -- nor been granted beyond the upper bound; and a table that knows later changes of W, or of
        -- a range above this one, knows better than this holder.
        local later = r.n > item.n and r.token ~= item.nxt
            or r.hwm > item.hi and item.hi < max(pool.tmax, pool.fence) + 3 * S
        if later or item.hi < pool.topen + 3 * S or item.hi > pool.topen + reach() then
            return 'LOST'
        end
        r.hwm, r.t0, r.n = max(high(r), item.hi), T, max(r.n, item.n)
        how = 'reasserted'
    end
    -- By a clock that was ahead it would be young until then; as it is to be where tmax is.
    r.t0 = r.t0 > T + 2 * S and not behind and T or r.t0
    local hi = max(min(r.hwm, item.hi), now + (now - r.t0 >= D0 and A or A0))
    if again then
        return how, min(r.hwm, hi)
    end
    r.hwm, r.token = max(r.hwm, hi), item.nxt
    save(r)
    return how, hi
end

local function renew()
    if pool.closed ~= 0 then return reply('CLOSED') end
    local out = reply('OK', int(pool.settle), int(pool.from), int(pool.to), int(pool.born), int(pool.ahead))
    for _, item in ipairs(items) do
        local how, hi = renew_one(item)
        local who = item.r and call('HGET', WHO, item.r.w)
        if hi and who ~= ARGV[7] then -- lost, or of a process before this one
            call('HSET', WHO, item.r.w, ARGV[7])
        end
        how = not hi and who and (who == item.cur or who == item.nxt) and 'released' or how
        local r = hi and item.r or {n = 0, t0 = 0}
        for _, value in ipairs({how, int(hi or 0), int(r.n), int(r.t0)}) do
            out[#out + 1] = value
        end
    end
    return out
end

-- last, where given, is at least lo - 1: what is above it was never used. Not so below fs where the
-- table was rewound: late copies of a renewal and a release may come from a holder before the one
-- whose young tenure was lost. (A tenure claimed in this era begins above fs.) Nor where the record
-- has changed more often than by what its holder knows, and one renewal that it did not hear of: then
-- a late copy of its claim came, after another had W, of which its release knows nothing.
local function release(w, cur, nxt, last, n)
    local r = get(w)
    if not r or not fresh(r) or not owned(r) or (r.token ~= cur and r.token ~= nxt) then
        return reply('LOST')
    end
    if last ~= '' and r.n <= n + 1 then
        r.hwm = min(r.hwm, max(tonumber(last), pool.fs))
    end
    set_free(r)
    return reply('OK')
end

-- An operator's word that W's holder is dead. Its range stays taken; its token tells it, should it live.
local function evict(w)
    local r = get(w)
    if not r or not owned(r) then
        return reply('LOST')
    end
    local token = r.token
    set_free(r)
    call('HSET', WHO, w, token)
    return reply('OK')
end

-- moved: the pool is made again elsewhere. That stays true, however often it is closed.
local function close(moved)
    note('closed', (moved == '1' or pool.closed == GONE) and GONE or CLOSED)
    return reply('OK')
end

-- An operator's word that no other pool lives in this one's place. ahead, not 0: one did, which may
-- have granted as far ahead of its time, and is closed: all that it granted is lost to this table, as
-- by a rewind that was proven, and no word says otherwise.
local function unclose(ahead)
    ahead = tonumber(ahead)
    if pool.closed == GONE and ahead == 0 then
        return {'GONE', int(T)}
    end
    if pool.closed ~= 0 and ahead > 0 then
        note('ahead', ahead > reach() and ahead or pool.ahead)
        reopen(true, T + reach(), BACK)
        note('era0', 0)
    end
    note('closed', 0)
    return reply('OK')
end

-- Makes the hints agree with the records of the workerIds named, and drops from the queue what is
-- none of the pool. The queue is walked once, however many there are: LREM would walk it for each.
local function repair(...)
    local named, back, kept = {}, {}, {}
    for w in string.gmatch(table.concat({...}, ' '), '%S+') do
        local r = not named[w] and get(w)
        if not named[w] then
            call('ZREM', EXP, w)
        end
        if r and owned(r) then
            call('ZADD', EXP, int(high(r)), w)
        elseif r then
            back[#back + 1] = w
        end
        named[w] = true
    end
    local queue = call('LRANGE', FREE, 0, -1)
    for _, w in ipairs(queue) do
        if not named[w] and in_pool(w) then
            kept[#kept + 1] = w
        end
    end
    if #kept < #queue then
        call('DEL', FREE)
        enqueue(kept)
    end
    enqueue(back)
    return reply('OK')
end

-- An operator's: how long a bet lasts from now on. One that was said before goes on waiting.
local function set_settle(ms)
    local before, said = settle(), pool.settle > 0 and pool.settle or A
    ms = min(max(tonumber(ms), A0), A)
    if ms < said then
        note('settle0', before, 'settle_t', T + before + 2 * S)
    elseif ms >= before then
        note('settle0', 0, 'settle_t', 0)
    end
    note('settle', ms, 'least', ms > said and min(pool.least > 0 and pool.least or A, said) or pool.least)
    return reply('OK')
end

-- An operator's word that nothing was lost at the latest reopening.
local function nothing_lost()
    local from = pool.topen + renewals(4) + 2 * S
    if pool.more == pool.era then
        return {'MORE', int(T), int(pool.topen)}
    elseif pool.era0 ~= pool.era then
        return {'NONE', int(T), int(pool.topen)}
    elseif T < from then
        return {'EARLY', int(T), int(from)}
    end
    note('fl', pool.fl0, 'fs', pool.fs0, 'era0', 0, 'trust', WORD)
    return reply('OK')
end

local OPERATIONS = {
    claim = claim,     -- next token, holder -> OK W lo hi n t0 | WAIT ms | EXHAUSTED ms, 0: not known
    renew = renew,     -- A + 2S of the caller's pool, time between its renewals, holder,
                       -- (W, token, next token, hi, n)... -> OK settle from to born ahead (how hi n t0)...
    release = release, -- W, token, next token, last or '', n -> OK | LOST
    evict = evict,     -- W                                  -> OK | LOST
    close = close,     -- 1: made again elsewhere            -> OK
    unclose = unclose, -- A + 2S of who was there, or 0      -> OK | GONE
    repair = repair,   -- W..., parted by spaces             -> OK
    settle = set_settle,                 -- ms               -> OK
    ['nothing-lost'] = nothing_lost,     --                  -> OK | MORE topen | NONE topen | EARLY from
    ['clock-was-ahead'] = function()     --                  -> OK | NOTAHEAD
        return pool.fence > T and reply('OK') or {'NOTAHEAD', int(T)}
    end,
}
local run = OPERATIONS[op]
return run and run(unpack(ARGV, 5)) or {'BADOP', int(T), op}
