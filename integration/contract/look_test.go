// SPDX-License-Identifier: Apache-2.0

package contract

// look reads how a call left a key: the end of its TTL and what that should be, the end of the lease,
// how many waiting fields and marks of holes there are, how long the value is, and the slots with the ends of their leases. Then it
// makes a provisional lease long, so that none ends by itself before the model knows, and lets all who wait
// have asked just now.
const look = `
local key, v = KEYS[1], redis.call('TYPE', KEYS[1]).ok
if v ~= 'hash' then return { v, redis.call('PEXPIRETIME', key), 0, 0, 0, 0, 0, 0 } end
local t = redis.call('TIME')
local now, n, marks, f, slots, last, later = t[1] * 1000 + math.floor(t[2] / 1000), 0, 0, {}, {}, 0, 0
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
    if value:find('^h') then slots.at = (slots.at or 0) + 1 else n = n + 1 end
  elseif name:find('^h:') then
    local ends, _, kept = struct.unpack('<ddd', value)
    slots[#slots + 1], slots[#slots + 2] = tonumber(name:sub(3)), ends
    last = math.max(last, ends, kept)
    if ends > 1 and ends <= now + 2001 then
      later = now + 600000
      redis.call('HSET', key, name, struct.pack('<d', later) .. value:sub(9))
    end
  end
end
local state, ends = f.state, tonumber(f['until'])
local stays, line = math.max(ends, last), false
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
local longer = f.crowd and math.max(0, struct.unpack('<d', f.crowd, 17) - stays) or 0
if ends > 1 and ends <= now + 2001 or later > 0 then
  if later > last then redis.call('HSET', key, 'crowd', f.crowd:sub(1, 16) .. struct.pack('<d', later) .. f.crowd:sub(25)) end
  if later == 0 then redis.call('HSET', key, 'until', now + 600000) end
  later = line and math.max(stays, now + 600000) + 60000 or math.max(stays, now + 600000)
  if state then redis.call('HSET', key, 'state', state:sub(1, 40) .. struct.pack('<d', later) .. state:sub(49)) end
  redis.call('PEXPIREAT', key, later)
end
return { v, ttl, expires, ends, n, ends - now, marks, line and 1 or 0, slots.at or 0, now, longer, #(f.value or ''), unpack(slots) }`

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
local crowd = redis.call('HGET', KEYS[1], 'crowd')
local stays = math.max(tonumber(redis.call('HGET', KEYS[1], 'until')), kept, recorded, crowd and struct.unpack('<d', crowd, 17) or 0)
if head < tail then stays = math.max(stays, t[1] * 1000 + math.floor(t[2] / 1000)) + 60000 end
redis.call('HSET', KEYS[1], 'state', state:sub(1, 40) .. struct.pack('<d', stays) .. state:sub(49))
return redis.call('PEXPIREAT', KEYS[1], stays)`

// slotPast lets the lease of a slot be over, or its minimum.
const slotPast = `
local name = 'h:' .. ARGV[1]
local h, crowd, one = redis.call('HGET', KEYS[1], name), redis.call('HGET', KEYS[1], 'crowd'), struct.pack('<d', 1)
if ARGV[2] == 'lease' then h = one .. h:sub(9) else h = h:sub(1, 16) .. one .. struct.pack('<d', 0) .. h:sub(33) end
return redis.call('HSET', KEYS[1], name, h, 'crowd', crowd:sub(1, 8) .. one .. crowd:sub(17))`

// seen is what look says.
type seen struct {
	kind                                                                    string
	ttl, expires, ends, waiting, remaining, marks, hasRow, slotOwners, when int64
	longer                                                                  int64 // the key stays, because one with a longer lease has left
	value                                                                   int64 // bytes of it and of its token
	slots                                                                   map[int]int64
}

func parseLook(v any) (s seen, ok bool) {
	a, ok := v.([]any)
	if !ok || len(a) < 8 {
		return s, false
	}
	n := func(i int) int64 {
		if i >= len(a) {
			return 0
		}
		x, _ := a[i].(int64)
		return x
	}
	s = seen{ttl: n(1), expires: n(2), ends: n(3), waiting: n(4), remaining: n(5), marks: n(6), hasRow: n(7),
		slotOwners: n(8), when: n(9), longer: n(10), value: n(11), slots: map[int]int64{}}
	for i := 12; i < len(a); i += 2 {
		s.slots[int(n(i))] = n(i + 1)
	}
	s.kind, _ = a[0].(string)
	return s, true
}
