-- Runs commands of one key each atomically. Used only if the replies to a transaction are lost again and again:
-- text that passes through a script takes twice the time.
-- KEYS  one for each command
-- ARGV  for each command: its name, how many arguments follow, the arguments
-- ->    ok
local PART = 1000 -- arguments of one call; Lua's stack holds a few thousand values
local at = 1
for _, key in ipairs(KEYS) do
  local last = at + 1 + ARGV[at + 1]
  for first = at + 2, last, PART do
    redis.call(ARGV[at], key, unpack(ARGV, first, math.min(first + PART - 1, last)))
  end
  at = last + 1
end
return { 'ok' }
