-- Appends records to a process's journal at a known position, so that a repeat writes nothing twice, and counts
-- the models' answers among them. Each gets its time, `at_ms`. Without records it only returns the length and the
-- limit reached.
-- KEYS  1 process  2 its journal  3 tree
-- ARGV  1 attempt  2 position of the first record (0-based)  3 answers of models
--       4 their tokens: input, 5 output, 6 of the input those read from a cache, 7 written to one
--       8.. records (JSON)
-- ->    ok length [name limit used: a limit of model calls or tokens that the tree has reached] | gone
--       | fenced why
-- Whether this is what `stamped` made of the record, at any time.
local function is_stored(stored, record)
  return stored == stamped(record, string.match(string.sub(stored, -24), '"at_ms":(%d+)}$') or '')
end

local length = redis.call('LLEN', KEYS[2])
local position = tonumber(ARGV[2])
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local repeated = #ARGV > 7 and length == position + #ARGV - 7
  and is_stored(redis.call('LINDEX', KEYS[2], position), ARGV[8])
if not repeated and length ~= position then
  return { 'fenced', 'its journal has ' .. length .. ' records, not ' .. position .. ': another writer appended' }
end
if not repeated and #ARGV > 7 then
  if ARGV[3] ~= '0' then
    count_answers(KEYS[3], ARGV[3], ARGV[4] + ARGV[5])
    count_tokens(KEYS[1], { unpack(ARGV, 4, 7) })
  end
  local now = milliseconds_now()
  for i = 8, #ARGV do
    ARGV[i] = stamped(ARGV[i], now)
  end
  for i = 8, #ARGV, 2000 do -- Lua's stack holds some thousands
    length = redis.call('RPUSH', KEYS[2], unpack(ARGV, i, math.min(i + 1999, #ARGV)))
  end
end
local name, limit, used = budget_reached(KEYS[3])
if not name then
  name, limit, used = day_limit(KEYS[3])
end
return { 'ok', length, name, limit, used }
