package contract

// look reads how a call left a key: the end of its TTL and what that should be, the end of the lease,
// and how many waiting fields and marks of holes there are. Then it makes a provisional lease long, so that
// none ends by itself before the model knows, and lets all who wait have asked just now.
const look = `
local key, v = KEYS[1], redis.call('TYPE', KEYS[1]).ok
if v ~= 'hash' then return { v, redis.call('PEXPIRETIME', key), 0, 0, 0, 0, 0, 0 } end
local t = redis.call('TIME')
local now, n, marks, f = t[1] * 1000 + math.floor(t[2] / 1000), 0, 0, {}
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
  local name, value = all[i], all[i + 1]
  f[name] = value
  if name:find('^w:') and #value < 36 then
    marks = marks + 1
  elseif name:find('^w:') then
    n = n + 1
    redis.call('HSET', key, name, value:sub(1, 16) .. struct.pack('<d', now) .. value:sub(25))
  elseif name:find('^at:') then
    n = n + 1
  end
end
local state, ends = f.state, tonumber(f['until'])
local stays, line = ends, false
if state then
  local head, tail = struct.unpack('<dd', state)
  line = head < tail
  if #state > 48 then
    local kept, recorded = struct.unpack('<d', state, 65), struct.unpack('<d', state, 97)
    if kept > now then stays = math.max(stays, kept) end
    if recorded > now then stays = math.max(stays, recorded) end
  end
end
local ttl, expires = redis.call('PEXPIRETIME', key), line and math.max(stays, now) + 60000 or stays
if ends > 1 and ends <= now + 2001 then
  local later = line and math.max(stays, now + 600000) + 60000 or math.max(stays, now + 600000)
  redis.call('HSET', key, 'until', now + 600000)
  if state then redis.call('HSET', key, 'state', state:sub(1, 40) .. struct.pack('<d', later) .. state:sub(49)) end
  redis.call('PEXPIREAT', key, later)
end
return { v, ttl, expires, ends, n, ends - now, marks, line and 1 or 0 }`

// past lets something that the key remembers be over, the minimum or the record of a break, and sets
// the TTL as if that had never been.
const past = `
local state = redis.call('HGET', KEYS[1], 'state')
local function over(state, field)
  local from = 8 * (field - 1) + 1
  if struct.unpack('<d', state, from) == 0 then return state end
  return state:sub(1, from - 1) .. struct.pack('<d', 1) .. state:sub(from + 8)
end
if ARGV[1] == 'record' then state = over(state, 13) else state = over(over(state, 9), 10) end
local head, tail = struct.unpack('<dd', state)
local kept, recorded = struct.unpack('<d', state, 65), struct.unpack('<d', state, 97)
local t = redis.call('TIME')
local stays = math.max(tonumber(redis.call('HGET', KEYS[1], 'until')), kept, recorded)
if head < tail then stays = math.max(stays, t[1] * 1000 + math.floor(t[2] / 1000)) + 60000 end
redis.call('HSET', KEYS[1], 'state', state:sub(1, 40) .. struct.pack('<d', stays) .. state:sub(49))
return redis.call('PEXPIREAT', KEYS[1], stays)`

// seen is what look says.
type seen struct {
	kind                                                  string
	ttl, expires, ends, waiting, remaining, marks, hasRow int64
}

func parseLook(v any) (s seen, ok bool) {
	a, ok := v.([]any)
	if !ok || len(a) != 8 {
		return s, false
	}
	n := func(i int) int64 { x, _ := a[i].(int64); return x }
	s = seen{ttl: n(1), expires: n(2), ends: n(3), waiting: n(4), remaining: n(5), marks: n(6), hasRow: n(7)}
	s.kind, _ = a[0].(string)
	return s, true
}
