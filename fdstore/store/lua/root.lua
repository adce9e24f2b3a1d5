-- Opens or creates the root process of a tree. Its numbers go on from those of a removed tree of this name.
-- KEYS  1 tree  2 its process record  3 answer of this operation
-- ARGV  1 answer field  2 process id  3 '1' if it must not exist yet  4 the effective limits (JSON)
--       5 program  6 bundle digest  7 bundle (JSON), or three times '' for none
--       8 the requested limits (JSON), '' if they are the same  9 '1' to keep below half of maxmemory
--       10 the format that the tree is written in  11 traceparent of its creator, '' for none
--       12 price of the model (JSON, '' for none)  13 the least number of its first descriptor
--       14 and of its first child
-- ->    ok 'created'|'found' limits | unsafe policy | taken | collecting
local done = answered(KEYS[3], ARGV[1], 2)
if done then
  return done
end
local tree, process, id = KEYS[1], KEYS[2], ARGV[2]
-- both exist only after a torn log restored half a collection, see common.lua
if redis.call('EXISTS', tree .. ':collecting') == 1 and redis.call('EXISTS', tree) == 0 then
  return { 'collecting' }
end
if redis.call('EXISTS', process) == 1 then
  if ARGV[3] == '1' then
    return { 'taken' }
  end
  return { 'ok', 'found', redis.call('HGET', tree, 'limits') }
end

local refused = evicts()
if refused then
  return refused
end
-- replace the digits in both texts: Lua would format a large number with an exponent
local limits, asked = ARGV[4], ARGV[8]
if ARGV[9] == '1' then
  local half = half_of_memory()
  if half and cjson.decode(asked ~= '' and asked or limits).tree_bytes > half then
    local bounded = string.format('"tree_bytes":%.0f', half)
    limits, asked = string.gsub(limits, '"tree_bytes":%d+', bounded), string.gsub(asked, '"tree_bytes":%d+', bounded)
  end
end
local now = stamp(seconds_now())
redis.call('HSET', tree, 'created_at', now, 'used_at', now, 'checked_at', now, 'bytes', 0, 'fds', 0,
  'processes', 1, 'live', 1, 'limits', limits, 'format', ARGV[10],
  unpack(asked ~= '' and { 'limits_asked', asked } or {}))
redis.call('ZADD', tree .. ':processes', now, id)
if ARGV[5] ~= '' then
  redis.call('HSET', tree .. ':programs', ARGV[6], ARGV[7])
end
local earlier = redis.call('HMGET', tree .. ':earlier:numbers', 'next_fd', 'next_child')
local first = string.format('%.0f', math.max(1, counted(earlier[1]), counted(ARGV[13])))
local next_child = math.max(1, counted(earlier[2]), counted(ARGV[14]))
redis.call('HSET', process, 'state', 'open', 'attempt', 0, 'losses', 0, 'program', ARGV[5], 'bundle', ARGV[6],
  'next_fd', first, 'next_child', string.format('%.0f', next_child), 'started_at', now,
  unpack(set_only({ 'first_fd', first ~= '1' and first or '', 'traceparent', ARGV[11], 'price', ARGV[12] })))
return answer(KEYS[3], ARGV[1], { 'ok', 'created', limits })
