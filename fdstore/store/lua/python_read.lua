-- Reads the state of a process's programs (see python_state.py): its head, and as many of its fields as fit.
-- KEYS  1 its state  2 tree
-- ARGV  1 a call: its snapshot and answers are read if it runs  2 the bytes after which only names are returned
-- ->    ok head|'' {name, value, ...} {names of the other fields...}: those of the session are in the state of the
--       process that the head names, if it names one
local head = redis.call('HGET', KEYS[1], 'head')
if not head then
  return { 'ok', '', {}, {} }
end
local state, names = python_head(KEYS[1]), {}
local key_session = python_key_of_session(KEYS[2], KEYS[1], state)
local function add_chunks(key, version, count)
  count = version and version ~= '' and counted(count) or 0
  if count > redis.call('HLEN', key) then
    error(key .. ' has fewer pieces than its head says')
  end
  for i = 0, count - 1 do
    names[#names + 1] = version .. '/' .. i
  end
end
if state.call == ARGV[1] then
  local answers = python_answers(state)
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(name, 1, #answers) == answers then
      names[#names + 1] = name
    end
  end
  add_chunks(KEYS[1], state.snapshot, state.snapshot_chunks)
end
local first_of_session = #names + 1
add_chunks(key_session, state.session, state.session_chunks)
local found, others, left = {}, {}, tonumber(ARGV[2])
for i, name in ipairs(names) do
  local key_of_field = KEYS[1]
  if i >= first_of_session then
    key_of_field = key_session
  end
  local value = left > 0 and redis.call('HGET', key_of_field, name)
  if value then
    found[#found + 1] = name
    found[#found + 1] = value
    left = left - #value
  else
    others[#others + 1] = name -- also a missing one: the client notices
  end
end
return { 'ok', head, found, others }
