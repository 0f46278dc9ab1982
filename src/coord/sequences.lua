--[[
Sequences, as one script with what pool.lua begins every operation with: the pool's era, topen and
fingerprint are theirs, and so is its proof that a table was rewound.

A block of numbers is recorded before it is handed out, as a range of time is. What can be forgotten
is a counter, and a number has no time in it that would tell. So each counter has a LINE (line.h):

    L(T) = B - 1 + R × (T - b)            R: the rate of its definition; B: what may come at once

and nothing is granted before b, nor above the line at any time. What was granted by a table that is
lost lies below the line at the reopening, L(topen + 2S), and a counter that is touched after it for
the first time, or that has no record where one may have been lost, goes on above.

    a jump by less, from what the table says, repeats numbers: a second restore may bring another
    branch of the past. So does raising a counter above the highest number that a caller has seen,
    since other callers have seen higher ones.

A sequence without a line cannot skip. `refuse`: it stops at each reopening until an operator says
that nothing was lost, or above which number to go on. `trust`: it goes on, unless it shows that
something was lost. Each such stop is told by eras: `ok` and a counter's era say up to which one
nothing is missing.

Definitions never change, since L must be the same for all tables that there ever were: their text is
their identity. Only max rises.

KEYS, ARGV 1-4: pool.lua's. All rows are in its hash; seq_rows.h has their forms, and period.h periods.
]]

local TOP, DAY = 2^53 - 1, 86400000
local floor = math.floor

-- ---- rows ---------------------------------------------------------------------------------------

local WORDS = {per = 1, mark = 1, text = 1, token = 1, reset = 1, loss = 1, order = 1, cycle = 1, more = 1}
local STATE = {'gen', 'turn', 'ok', 'bturn', 'bt', 'base', 'max', 'top', 'seen', 'subs', 'dropped',
    'rturn', 'rera', 'rfrom', 'per', 'mark', 'text'}
local STATE_FORM = '^' .. string.rep('(%d+) ', 14) .. '(%S+) (%S+) (.+)$'
local COUNTER = {'era', 'next', 'n', 'token', 'lo', 'hi', 'turn', 'gaps'}
local COUNTER_FORM = '^(%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%d+)$'
local DEFINITION = {'start', 'increment', 'begins', 'rate', 'burst', 'subs', 'reset', 'offset', 'loss',
    'order', 'cycle', 'more'}
local DEFINITION_FORM = '^start=(%-?%d+) increment=(%-?%d+) begins=(%d+) rate=(%d+) burst=(%d+) ' ..
    'subs=(%d+) reset=(%l+) offset=(%-?%d+) loss=(%l+) order=(%l+) cycle=(%l+)(.*)$'
local FAITH = {'from', 'to', 'lost'}

-- nil: it is not of that form.
local function read(text, form, names)
    local v, r = {match(text or '', form)}, {}
    for i = 1, #names do
        local word, value = WORDS[names[i]], v[i]
        value = word and value or value and value + 0
        if not value or not word and (value > TOP or value < -TOP) then
            return nil
        end
        r[names[i]] = value
    end
    return r
end

-- What older ones have not, as `more`: hours that a period is open behind its end, and a template.
local function definition(text)
    local d = read(text, DEFINITION_FORM, DEFINITION)
    local back, template = match(d and d.more or '', '^ back=([1-9]%d*)(.*)$')
    template = match(template or d and d.more or '', '^ template=(%S+)$')
    if d and d.more ~= (back and ' back=' .. back or '') .. (template and ' template=' .. template or '') then
        return nil
    elseif d then
        d.back, d.template = tonumber(back or 0) * 3600000, template
    end
    return d
end

local function write(field, r, names)
    local v = {}
    for i = 1, #names do
        v[i] = WORDS[names[i]] and r[names[i]] or int(r[names[i]])
    end
    put(field, table.concat(v, ' '))
end

-- ---- periods ------------------------------------------------------------------------------------

local latest, today = max(T, pool.tmax, pool.fence), max(T, behind and 0 or pool.tmax)
--<< periods.lua

-- ---- finding a counter --------------------------------------------------------------------------

-- What was read, or written since: several items may be of one sequence, and each is looked at twice.
local sequences, counters = {}, {}

-- looked: it is found. s: the sequence, d: its definition, c: the counter.
local function find(name, sub, label, text)
    local p = {name = name, sub = sub, seq = 'seq ' .. name,
        c = {era = 0, next = 0, n = 0, token = '-', lo = 0, hi = 0, turn = 0, gaps = 0}}
    local row = not sequences[name] and redis.call('HGET', H, p.seq)
    if not row and not sequences[name] then
        return 'unknown', p
    end
    local s = sequences[name] or read(row, STATE_FORM, STATE)
    local d = s and (s.d or s.gen > 0 and definition(s.text))
    if not d then
        return 'unreadable', p
    end
    s.d, sequences[name] = d, s
    p.s, p.d, p.skips = s, d, d.loss == 'skip'
    if s.dropped ~= 0 then
        return 'dropped', p
    elseif text ~= '' and text ~= s.text then
        return 'differs', p
    elseif sub ~= '' and d.subs == 0 then
        return 'no-subs', p
    end
    p.opens, p.ends, p.period = d.begins, math.huge, '-'
    if d.reset ~= 'never' then
        p.period = label ~= '' and label or label_at(d, today) or ''
        local opens, _, ends = period(d, p.period)
        p.opens, p.ends = opens, ends and ends + d.back
    end
    if not p.opens or d.reset == 'never' and label ~= '' then
        return 'no-period', p
    end
    p.field = table.concat({'num', name, int(s.gen), p.period, sub ~= '' and sub or nil}, ' ')
    row = not counters[p.field] and redis.call('HGET', H, p.field)
    local c = counters[p.field] or read(row, COUNTER_FORM, COUNTER)
    p.c, p.found, counters[p.field] = c or p.c, c ~= nil, c
    return (c or not row) and 'looked' or 'unreadable', p
end

-- What is asked of a take; and as a renewal's items, who of them knows more than the table. A caller's
-- count is of no use where a record may be gone for a good reason.
local items, wants = {}, {}
local function listen(w, same)
    local how, p = find(w.name, w.sub, w.label, '')
    local n = p.c.n
    if how ~= 'unknown' then
        if not p.s then
            return
        elseif p.s.gen ~= w.gen then
            n = p.s.gen < w.gen and -1 or nil
        elseif how ~= 'looked' or p.period < p.s.mark or w.label == '' and p.d.reset ~= 'never' then
            n = nil
        end
    end
    if n then
        items[#items + 1] = {r = {n = n, era = same and pool.era or -1}, n = w.n}
    end
end
if op == 'take' then
    local same = ARGV[5] == int(pool.era) and ARGV[6] == int(pool.topen) and ARGV[7] == pool.fp
    for i = 8, #ARGV, 11 do
        local w = {name = ARGV[i], sub = ARGV[i + 1], label = ARGV[i + 2], text = ARGV[i + 3],
            count = tonumber(ARGV[i + 4]), whole = ARGV[i + 5] == '1', token = ARGV[i + 7],
            gen = tonumber(ARGV[i + 8]), n = tonumber(ARGV[i + 9]), seen = tonumber(ARGV[i + 10])}
        wants[#wants + 1] = w
        if w.n > 0 then
            listen(w, same and ARGV[i + 6] == '0')
        end
    end
end

-- ---- what is there, for people: nothing is changed, not even reopened ---------------------------

local function head(...)
    return {'OK', int(T), int(pool.era), int(redis.call('LLEN', FREE)), int(K), '0', '0', ...}
end

-- One row; or, of a prefix that ends with a space, those of one page of the hash, from the one on that
-- was not told yet, as many as an answer holds.
local function rows(prefix, cursor, told)
    local one = string.sub(prefix, -1) ~= ' '
    local row = one and redis.call('HGET', H, prefix)
    if one then
        return head(unpack(row and {prefix, row} or {}))
    end
    local page = redis.call('HSCAN', H, cursor, 'MATCH', prefix .. '*', 'COUNT', 100)
    local out, found, from = head(), page[2], tonumber(told) * 2
    local last = min(#found, from + 100)
    for i = from + 1, last do
        out[#out + 1] = found[i]
    end
    out[#out - max(last - from, 0) - 1] = last < #found and cursor or page[1]
    out[#out - max(last - from, 0)] = last < #found and int(last / 2) or '0'
    return out
end
if op == 'rows' then -- prefix, cursor, rows told -> OK cursor told (key, value)...
    return rows(unpack(ARGV, 5))
end

--== what follows comes behind what every operation begins with

-- ---- what reopenings mean -----------------------------------------------------------------------

local faith = read(redis.call('HGET', H, 'seq'), '^(%d+) (%d+) (%d+)$', FAITH) or {from = 0, to = 0, lost = 0}

local function believe()
    local from, to, lost = faith.from, faith.to, faith.lost
    if pool.trust == WORD and to ~= pool.era then
        faith.from = to == pool.era - 1 and from or pool.era - 1
        faith.to = pool.era
    end
    if pool.more == pool.era or pool.cause > MOVED then
        faith.lost = pool.era
    end
    if faith.from ~= from or faith.to ~= to or faith.lost ~= lost then
        write('seq', faith, FAITH)
    end
end

-- Whether nothing of note can have been forgotten since an era; 0: since before the pool's first.
local function sound(p, era)
    if p.d.loss == 'trust' then
        return era >= max(faith.lost, 1)
    end
    return p.skips or era == pool.era or faith.to == pool.era and era >= faith.from
end

-- Why not: stopped, where the word that nothing was lost would be taken, and reach as far back.
local function halt(p, era)
    local word = p.d.loss ~= 'trust' and pool.era0 == pool.era and pool.more ~= pool.era
    return word and era >= (faith.to == pool.era - 1 and faith.from or pool.era - 1) and 'stopped' or 'forgotten'
end

if op == 'order' and skewed then
    return SKEW
elseif (op == 'take' or op == 'order') and pool.closed ~= 0 then
    return reply('CLOSED')
end
believe()

-- ---- what a counter's past allows ---------------------------------------------------------------

-- Exact: seconds and milliseconds apart.
local function line(p, ms)
    if ms < p.opens then
        return -1
    end
    local r, passed = p.d.rate, ms - p.opens
    return min(p.d.burst - 1 + floor(passed / 1000) * r + floor(r * (passed % 1000) / 1000), TOP)
end

local function line_when(p, index)
    local r, above = p.d.rate, index - (p.d.burst - 1)
    if above <= 0 then
        return p.opens
    end
    local s = floor(above / r)
    return min(p.opens + s * 1000 + math.ceil((above - s * r) * 1000 / r), TOP)
end

-- looked: `next` could be granted. A period's label says when its line begins, its end is judged by
-- the latest time that was seen, unless the clock is behind that. There is no record: nobody can have
-- been granted anything only where no table was lost since the counter began.
local function judge(p)
    local s, c, begins = p.s, p.c, max(p.d.begins, p.opens)
    if now < begins then
        return 'wait', c.next, begins - now
    elseif today >= p.ends or p.period < s.mark then
        return 'closed', c.next
    end
    local new = not p.found and (pool.era == 1 or pool.topen < begins - 2 * S)
    if not new and not sound(p, max(c.era, s.ok)) then
        return halt(p, max(c.era, s.ok)), c.next
    end
    local next = c.next
    if c.turn < s.bturn and begins <= s.bt + 2 * S then
        next = max(next, s.base)
    end
    if p.skips and not new and not fresh(c) then
        next = max(next, min(line(p, pool.topen + 2 * S), TOP - 1) + 1)
    end
    return 'looked', next
end

local function save_state(p)
    sequences[p.name] = p.s
    write(p.seq, p.s, STATE)
end

local function save(p)
    local c = p.c
    c.era, c.turn, c.n = pool.era, p.s.turn, c.n + 1
    counters[p.field] = c
    write(p.field, c, COUNTER)
end

-- how, definition where the caller has another one, gen turn period max lo hi n next wait, and what is
-- revoked: rturn rera rfrom.
local function tell(out, p, how, text, lo, hi, next, wait)
    local s = p.s or {text = '', gen = 0, turn = 0, max = 0, rturn = 0, rera = 0, rfrom = 0}
    local label = p.period ~= '-' and p.period or ''
    local told, n = {how, s.text ~= text and s.text or '', int(s.gen), int(s.turn), label,
        int(s.max), int(lo or 0), int(hi or 0), int(p.c.n), int(max(next or 0, p.c.next)),
        int(wait or 0), int(s.rturn), int(s.rera), int(s.rfrom)}, #out
    for i = 1, #told do
        out[n + i] = told[i]
    end
end

-- ---- take, and back ------------------------------------------------------------------------------

-- looked: from lo to hi, where count numbers are wanted, or as many as there are.
local function measure(p, lo, count, whole)
    local last, least = p.s.max, whole and count or 1
    if lo > last - least + 1 then
        if p.d.cycle ~= 'yes' or least > last + 1 then
            return 'used-up'
        end
        lo = 0
    end
    local top = p.skips and min(last, line(p, now)) or last
    if lo + least - 1 > top then
        return 'wait', nil, nil, line_when(p, lo + least - 1) - now
    end
    return 'looked', lo, min(lo + count - 1, top)
end

-- The latest period with how many subs it has, with this one; nil: they are too many.
local function count_sub(p)
    local per, subs = p.s.per, p.s.subs
    if p.found or p.sub == '' then
        return per, subs
    elseif p.period > per then
        per, subs = p.period, 0
    end
    return subs < p.d.subs and per or nil, subs + 1
end

-- A take that is repeated (the same token) gets what it got. What a caller has seen is for people.
local function take(out, w)
    local how, p = find(w.name, w.sub, w.label, w.text)
    if how ~= 'looked' then
        return tell(out, p, how, w.text)
    end
    local s, c = p.s, p.c
    if w.seen > s.top and w.seen > s.seen then
        s.seen = w.seen
        save_state(p)
    end
    if w.count > 0 and p.found and c.token == w.token and fresh(c) and c.turn == s.turn then
        return tell(out, p, 'again', w.text, c.lo, c.hi)
    end
    local next, lo, hi, wait, per, subs
    how, next, wait = judge(p)
    if how == 'looked' then
        how, lo, hi, wait = measure(p, next, max(w.count, 1), w.whole)
    end
    if how == 'looked' then
        per, subs = count_sub(p)
        how = per and how or 'too-many-subs'
    end
    if how ~= 'looked' or w.count == 0 then
        return tell(out, p, how, w.text, 0, 0, next, wait)
    end
    c.gaps, c.next = c.gaps + max(lo - c.next, 0), hi + 1
    c.token, c.lo, c.hi = w.token, lo, hi
    save(p)
    s.per, s.subs = per, subs
    if c.next > s.top or not p.found and p.sub ~= '' then
        s.top = max(s.top, c.next)
        save_state(p)
    end
    tell(out, p, 'granted', w.text, lo, hi)
end

if op == 'take' then -- era, topen, fingerprint of the caller's counts, (name, sub, period, text, count,
    -- whole, counted before, token, gen, n, seen)... -> OK topen fingerprint (what tell() says)...
    local out = reply('OK', int(pool.topen), fp)
    for _, w in ipairs(wants) do
        take(out, w)
    end
    return out
end

-- Taken back only from the top, of what was taken last. That is told by its token and the count of
-- changes: a counter may stand at the same number twice, and a late copy of a take that the line cuts
-- off may end where the first one did, below which there are others' blocks by then.
local function give_back(name, sub, label, token, gen, n, lo, hi)
    local how, p = find(name, sub, label, '')
    if how ~= 'looked' then
        return how
    end
    local s, c = p.s, p.c
    if not p.found or s.gen ~= tonumber(gen) or not fresh(c) or c.turn ~= s.turn or c.token ~= token
        or tonumber(n) ~= c.n or tonumber(hi) ~= c.next - 1 then
        return 'kept'
    end
    c.next, c.token = tonumber(lo), '-'
    save(p)
    return 'done'
end

if op == 'back' then -- (name, sub, period, token, gen, n, lo, hi)... -> OK how...
    local out = reply('OK')
    for i = 5, #ARGV, 8 do
        out[#out + 1] = give_back(unpack(ARGV, i, i + 7))
    end
    return out
end

-- ---- what operators do --------------------------------------------------------------------------

-- Highest index + 1 that any table may have granted by now, be it one that has no tombstone: by the
-- line, or since nothing is lost.
local function covered(p)
    local s, d, from, ms = p.s, p.d, p.d.begins, latest + 2 * S
    if d.reset ~= 'never' then
        from, ms = 0, FORMS[d.reset][2] + FORMS[d.reset][3] + d.back
    end
    return p.skips and max(s.top, min(line({opens = from, d = d}, ms), s.max) + 1) or s.top
end

-- A template that it had, and has no more, stays: no other may write its texts.
local function keep(p, d, kept)
    if p.d and p.d.template and p.d.template ~= d.template then
        put('tpl ' .. p.name .. ' ' .. kept, p.d.template)
    end
end

-- A tombstone is made again behind all that it covers, by who has seen it.
local function create(p, known, text, gen, last, base, new, top, kept)
    local d, s = definition(text), p.s
    if not d or known == 'unreadable' and not s then
        return 'unreadable'
    elseif d.loss == 'unsaid' then
        return 'unsaid'
    end
    local function begun(ms)
        return d.begins > 0 and text or (string.gsub(text, 'begins=0 ', 'begins=' .. int(ms) .. ' '))
    end
    if s and s.dropped == 0 then
        return begun(p.d.begins) == s.text and 'kept' or 'differs'
    elseif (s and s.gen or 0) ~= gen then
        return s and 'dropped' or 'unknown'
    elseif s and not sound(p, s.ok) then
        return halt(p, s.ok)
    elseif s and covered(p) > top then
        return 'dropped'
    elseif d.begins == 0 and pool.era > 1 and not new then
        return 'no-begin'
    end
    new = new or pool.era == 1 or pool.topen < (d.begins > 0 and d.begins or T) - 2 * S
    local turn = s and s.turn + 1 or 0
    keep(p, d, kept)
    p.s = {gen = gen + 1, turn = turn, ok = new and pool.era or 0, bturn = turn, bt = s and TOP or 0,
        base = base, max = last, top = base, seen = 0, subs = 0, dropped = 0, rturn = 0, rera = 0,
        rfrom = 0, per = '-', mark = '-', text = begun(T)}
    save_state(p)
    local how, first = find(p.name, '', '', '')
    if new and how == 'looked' then
        first.c.next = base
        save(first)
        p.period, p.c = first.period, first.c
    end
    return 'done'
end

-- With those before, for who has missed them. Turns have the time in them: one that was lost is earlier.
local function revoke(s, from)
    s.turn = max(s.turn + 1, T, pool.era > 1 and pool.topen + 3 * S or 0)
    s.rfrom = s.rturn > 0 and min(s.rfrom, from) or from
    s.rturn, s.rera = s.turn, TOP
end

local function set(p, index, back)
    local s, c = p.s, p.c
    local how, next, wait = judge(p)
    local per, subs = count_sub(p)
    if how ~= 'looked' then
        return how, wait
    elseif index > s.max then
        return 'used-up'
    elseif p.skips and index > line(p, now) then
        return 'wait', line_when(p, index) - now
    elseif index < next and not back then
        return 'lower'
    elseif not per then
        return 'too-many-subs'
    end
    s.per, s.subs = per, subs
    c.gaps, c.next, c.token = c.gaps + max(index - c.next, 0), index, '-'
    revoke(s, 0)
    s.top = max(s.top, index)
    save(p)
    save_state(p)
    return 'done'
end

local function drop(p)
    if not sound(p, p.s.ok) then
        return halt(p, p.s.ok)
    end
    p.s.top, p.s.dropped = covered(p), 1
    save_state(p)
    return 'done'
end

local function go_on(p, index)
    local s = p.s
    if p.skips then
        return 'not-stopped'
    elseif index > s.max + 1 then
        return 'used-up'
    end
    revoke(s, index)
    s.base = s.bt == TOP and max(s.base, index) or index -- made again: labels of before, by another clock, maybe
    s.bturn, s.bt, s.ok, s.seen, s.top = s.turn, max(s.bt, T), pool.era, 0, max(s.top, index)
    save_state(p)
    return 'done'
end

local function alter(p, index, text, kept)
    local d = text ~= '' and definition(text)
    if p.d.cycle == 'yes' or index < p.s.max then
        return 'lower'
    elseif text ~= '' and not d then
        return 'unreadable'
    elseif d then
        keep(p, d, kept)
        p.s.text, p.s.d = text, d
    end
    p.s.max = index
    save_state(p)
    return 'done'
end

-- A part of the hash, from a cursor on, which is answered.
local function sweep(p, label, cursor)
    local s = p.s
    if label ~= '' then
        local _, begins = period(p.d, label)
        if not begins then
            return 'no-period'
        elseif begins > today then
            return 'wait', begins - today
        elseif label > s.mark then
            s.mark = label
            save_state(p)
        end
    end
    local page = redis.call('HSCAN', H, cursor, 'MATCH', 'num ' .. p.name .. ' *', 'COUNT', 500)
    for i = 1, #page[2], 2 do
        local gen, per = match(page[2][i], '^num %S+ (%d+) (%S+)')
        if gen and (tonumber(gen) < s.gen or s.dropped ~= 0 or per < s.mark) then
            redis.call('HDEL', H, page[2][i])
        end
    end
    return 'done', nil, tonumber(page[1])
end

-- -> OK (what tell() says)
local function operate(verb, name, sub, label, text, gen, index, base, flag, top, kept, to)
    local is_set = verb == 'set'
    gen, index, flag = tonumber(gen), tonumber(index), flag == '1'
    local how, p = find(name, is_set and sub or '', is_set and label or '', verb ~= 'create' and text or '')
    local wait, rest
    if verb == 'create' then
        how = create(p, how, text, gen, index, tonumber(base), flag, tonumber(top), kept)
    elseif p.s and (how == 'looked' or not is_set and how ~= 'differs' and (how ~= 'dropped' or verb == 'sweep' or verb == 'reopen')) then
        if p.s.gen ~= gen then
            how = 'differs'
        elseif verb == 'alter' then
            how = alter(p, index, to, kept)
        elseif is_set then
            how, wait = set(p, index, flag)
        elseif verb == 'drop' then
            how = drop(p)
        elseif verb == 'reopen' then
            how = go_on(p, index)
        else
            how, wait, rest = sweep(p, label, int(index))
        end
    end
    local out = reply('OK')
    tell(out, p, how, '', 0, 0, rest, wait)
    out[#out - 4] = verb == 'sweep' and int(rest or 0) or out[#out - 4]
    return out
end

return op == 'order' and operate(unpack(ARGV, 5)) or {'BADOP', int(T), op}
