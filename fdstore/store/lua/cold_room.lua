-- Whether Redis has room for the pages of a cold content: it stays below a share of maxmemory with them. Reads only.
-- KEYS tree
-- ARGV size_bytes:number share:number
-- ->    ok '1'|'0'
local OVERHEAD = 1.1
local info = redis.pcall('INFO', 'memory')
local text = type(info) == 'string' and info or ''
local most, used = tonumber(string.match(text, 'maxmemory:(%d+)') or 0), tonumber(string.match(text, 'used_memory:(%d+)') or 0)
local fits = most == 0 or used + OVERHEAD * size_bytes < share * most
return { 'ok', fits and redis.call('EXISTS', tree) == 1 and '1' or '0' }
