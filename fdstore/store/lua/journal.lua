-- Appends records to a process's journal at a known position, so that a repeat writes nothing twice, and counts
-- the models' answers among them. Without records it only returns the length and the limit reached.
-- KEYS  1 process  2 its journal  3 tree
-- ARGV  1 attempt  2 position of the first record (0-based)  3 answers of models  4 their tokens
--       5.. records (JSON)
-- ->    ok length [name limit: the daily limit that the tree has reached] | gone | fenced why
local length = redis.call('LLEN', KEYS[2])
local position = tonumber(ARGV[2])
local refused = refusal(KEYS[1], ARGV[1])
if refused then
  return refused
end
local repeated = #ARGV > 4 and length == position + #ARGV - 4 and redis.call('LINDEX', KEYS[2], position) == ARGV[5]
if not repeated and length ~= position then
  return { 'fenced', 'its journal has ' .. length .. ' records, not ' .. position .. ': another writer appended' }
end
if not repeated and #ARGV > 4 then
  if ARGV[3] ~= '0' then
    count_answers(KEYS[3], ARGV[3], ARGV[4])
  end
  for i = 5, #ARGV, 2000 do -- Lua's stack holds some thousands
    length = redis.call('RPUSH', KEYS[2], unpack(ARGV, i, math.min(i + 1999, #ARGV)))
  end
end
return { 'ok', length, day_limit(KEYS[3]) }
