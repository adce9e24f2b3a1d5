-- Reads the state of a process's programs (see python_state.py): its head, and as many of its fields as fit.
-- KEYS python tree
-- ARGV call most_bytes:number
--   call        a call: its snapshot and answers are read if it runs
--   most_bytes  the bytes after which only names are returned
-- ->    ok head|'' {name, value, ...} {names of the other fields...}: those of the session are in the state of the
--       process that the head names, if it names one
local head = redis.call('HGET', python, 'head')
if not head then
  return { 'ok', '', {}, {} }
end
local state, names = python_head(python), {}
local key_session = python_key_of_session(tree, python, state)
local function add_chunks(key, version, count)
  count = version and version ~= '' and counted(count) or 0
  if count > redis.call('HLEN', key) then
    error(key .. ' has fewer pieces than its head says')
  end
  for i = 0, count - 1 do
    names[#names + 1] = version .. '/' .. i
  end
end
if state.call == call then
  local answers = python_answers(state)
  for _, name in ipairs(redis.call('HKEYS', python)) do
    if string.sub(name, 1, #answers) == answers then
      names[#names + 1] = name
    end
  end
  add_chunks(python, state.snapshot, state.snapshot_chunks)
end
local first_of_session = #names + 1
add_chunks(key_session, state.session, state.session_chunks)
local found, others, left = {}, {}, most_bytes
for i, name in ipairs(names) do
  local key_of_field = python
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
