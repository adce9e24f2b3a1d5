-- Counts what was kept out of a context, or read back, by day, session and tool. Above MOST fields, old days, then
-- sessions, then tools are added together, so the hash stays small.
-- It expires long after the last count, for trees that an older version removes.
-- KEYS process savings calls
-- ARGV once session_label tool_label counts...
--   once           field that marks a tool call as counted, '' to count every time
--   counts         outputs, their chars and tokens kept out; reads, their chars and tokens
-- ->    ok | gone
local MOST, DAYS, COUNTS, KEPT_S = 1000, 30, 6, 31536000
local saved, day = savings, today()
if redis.call('EXISTS', process) == 0 then
  return { 'gone' }
end
if once ~= '' and redis.call('HSETNX', calls, once, day) == 0 then
  return { 'ok' }
end

local function add(field, counts)
  local before, sums = {}, {}
  for number in string.gmatch(redis.call('HGET', saved, field) or '', '%S+') do
    before[#before + 1] = number
  end
  for i = 1, COUNTS do
    sums[i] = string.format('%.0f', counted(before[i]) + counted(counts[i]))
  end
  redis.call('HSET', saved, field, table.concat(sums, ' '))
end

add(day .. '\t' .. session_label .. '\t' .. tool_label, { unpack(ARGV, counts_from, counts_from + COUNTS - 1) })
redis.call('EXPIRE', saved, KEPT_S)

local folds = {
  function(at, session, tool) return at < day - DAYS and 0 or at, at < day - DAYS and '' or session, tool end,
  function(at, session, tool) return at < day and 0 or at, at < day and '' or session, tool end,
  function(at, _, tool) return at, '', tool end,
  function(at, _, _) return at, '', 'other' end,
}
for _, fold in ipairs(folds) do
  if redis.call('HLEN', saved) > MOST then
    local all = redis.call('HGETALL', saved)
    for i = 1, #all, 2 do
      local at, session, tool = string.match(all[i], '^(%d+)\t(.-)\t(.*)$')
      local into = at and table.concat({ fold(tonumber(at), session, tool) }, '\t') or '0\t\tother'
      if into ~= all[i] then
        local counts = {}
        for number in string.gmatch(all[i + 1], '%S+') do
          counts[#counts + 1] = number
        end
        add(into, counts)
        redis.call('HDEL', saved, all[i])
      end
    end
  end
end
return { 'ok' }
