-- Counts what was kept out of a context, or read back, by day, session and tool. Above MOST fields, old days, then
-- sessions, then tools are added together, so the hash stays small.
-- It expires long after the last count, for trees that an older version removes.
-- KEYS  1 process  2 its savings  3 its calls
-- ARGV  1 the field of a tool call that is counted once, or ''  2 session  3 tool
--       4.. outputs, their chars and tokens kept out; reads, their chars and tokens
-- ->    ok | gone
local MOST, DAYS, COUNTS, KEPT_S = 1000, 30, 6, 31536000
local saved, day = KEYS[2], today()
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
if ARGV[1] ~= '' and redis.call('HSETNX', KEYS[3], ARGV[1], day) == 0 then
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

add(day .. '\t' .. ARGV[2] .. '\t' .. ARGV[3], { unpack(ARGV, 4, 3 + COUNTS) })
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
