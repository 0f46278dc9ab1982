#!/usr/bin/lua5.1
-- Driver for the client of Lua; see README.md. Lua 5.1 has no integers: its numbers are exact up to
-- 2^53.

local redis = require('redis')
local address = arg[2]

local function connect()
    if address:sub(1, 1) == '/' then
        return redis.connect('unix://' .. address)
    end
    local host, port = address:match('^(.*):(%d+)$')
    return redis.connect(host, tonumber(port))
end

local function field(value)
    if value == nil then
        return 'n:'
    elseif type(value) == 'number' then
        return string.format(value > 2 ^ 53 and 'f:%.0f' or 'i:%.0f', value)
    end
    return (type(value) == 'boolean' and 'b:' or 's:') .. tostring(value)
end

-- An array with a hole in it does not know its length.
local function fields(value, n)
    local out = {}
    for i = 1, n do
        out[i] = field(value[i])
    end
    return table.concat(out, '\t')
end

local client = connect()
for line in io.lines() do
    local words = {}
    for word in line:gmatch('%S+') do
        words[#words + 1] = word
    end
    local verb = table.remove(words, 1)
    local ok, value = pcall(client[verb], client, unpack(words))
    if not ok then
        print('e:' .. tostring(value):gsub('%s+', ' '))
    elseif type(value) == 'table' then
        print(fields(value, verb == 'mget' and #words or #value))
    else
        print(field(value))
    end
    -- It leaves it to its user to connect anew.
    if not ok and tostring(value):find('connection error') then
        local again, anew = pcall(connect)
        client = again and anew or client
    end
    io.flush()
end
