-- Notes that a tree is in use.
-- KEYS  1 tree
-- ->    ok | gone
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
note_use(KEYS[1])
return { 'ok' }
