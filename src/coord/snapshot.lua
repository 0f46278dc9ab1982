--[[
All that the keys of a pool hold at one moment, for who shows and checks it. It only reads, so a server
that is full answers it, too, which refuses whatever stands behind a MULTI.

KEYS   as pool.lua's
ARGV   fields of the hash
Reply: their values, nil where there is none; the list; the zset; fields and values of the holders; TIME
]]

local fields = {}
for i = 1, #ARGV, 1000 do -- in pieces, since unpack() has a limit
    for _, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))) do
        fields[#fields + 1] = value
    end
end
return {fields, redis.call('LRANGE', KEYS[2], 0, -1), redis.call('ZRANGE', KEYS[3], 0, -1),
    redis.call('HGETALL', KEYS[4]), redis.call('TIME')}
