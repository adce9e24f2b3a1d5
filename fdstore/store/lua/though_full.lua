-- Runs a command on its key though Redis has no memory left: for what makes room, and what must go on meanwhile.
-- KEYS key
-- ARGV expire_s command arguments...
--   expire_s  when the key expires, in seconds from now, '' if the command decides
-- ->    what the command replies
redis.pcall('HDEL', key, '') -- removing first, as in write_end, if nothing: whatever the key is, it has no such field
local reply = redis.pcall(command, key, unpack(ARGV, arguments_from))
if expire_s ~= '' then
  redis.call('EXPIRE', key, expire_s)
end
return reply
