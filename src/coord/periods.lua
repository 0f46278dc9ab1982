--[[
The periods of sequences that begin anew: a part of sequences.lua, put in its place by tools/join-lua.
period.h says what they are, and period.c has the same functions.
]]

local FORMS = { -- length of a label, lead, length
    hour = {13, 300000, DAY / 24},
    day = {10, 7200000, DAY},
    month = {7, 7200000, 31 * DAY},
    year = {4, DAY, 366 * DAY},
}

-- Days since 1970-01-01, of a year that begins in March.
local function days(y, m, d)
    if m > 2 then
        m = m - 3
    else
        y, m = y - 1, m + 9
    end
    return 365 * y + floor(y / 4) - floor(y / 100) + floor(y / 400) + floor((153 * m + 2) / 5) + d - 719469
end

local function label_at(d, ms)
    local t = ms + d.offset * 60000
    if t < 0 or t >= 253402300800000 then
        return nil
    end
    local all = floor(t / DAY) + 719468
    local a = all % 146097
    local y = floor((a - floor(a / 1460) + floor(a / 36524) - floor(a / 146096)) / 365)
    local b = a - (365 * y + floor(y / 4) - floor(y / 100))
    local m = floor((5 * b + 2) / 153)
    local text = string.format('%04d-%02d-%02dT%02d', floor(all / 146097) * 400 + y + (m >= 10 and 1 or 0),
        m < 10 and m + 3 or m - 9, b - floor((153 * m + 2) / 5) + 1, floor(t % DAY / 3600000))
    return string.sub(text, 1, FORMS[d.reset][1])
end

-- When its numbers may be granted, when it begins and when it ends; nil: not a label of that form.
local function period(d, label)
    local form = FORMS[d.reset]
    local whole = label .. string.sub('0000-01-01T00', #label + 1)
    local y, m, day, h = match(whole, '^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d)$')
    if not form or not y or #label ~= form[1] then
        return nil
    end
    y, m, day, h = tonumber(y), tonumber(m), tonumber(day), tonumber(h)
    if y < 1970 or m < 1 or m > 12 or h > 23 or day < 1 or day > days(y, m + 1, 1) - days(y, m, 1) then
        return nil
    end
    local first, length = days(y, m, day), form[3]
    if d.reset == 'month' then
        length = (days(y, m + 1, 1) - first) * DAY
    elseif d.reset == 'year' then
        length = (days(y + 1, 1, 1) - first) * DAY
    end
    local begins = first * DAY + h * 3600000 - d.offset * 60000
    return max(begins - form[2], 0), begins, begins + length
end
