#!lua name=holdfast
-- Holdfast: a distributed lock as one Redis Functions library. The contract for callers is README.md beside this file.
--
-- One hash per lock is everything there is (DEL, eviction and expiry take all of it or nothing):
--   owner, until, fence   who holds it, the lease's end (ms, server clock), the fencing token
--   channel               where the holder can be told that the lock was broken (absent or '': nowhere)
--   state                 'head tail waiters turn_us top holds': the queue, the last token of a reserved run, the ids of a
--                         reentrant owner's holds as netstrings (none: just the unnamed one). Absent for a plain lock that
--                         nobody waits for: one field, so that the common case reads little
--   w:<n>, at:<owner>     the waiter at place n of the ring, and where in the ring an owner waits

local VERSION = '1.0.0'

local PROVISIONAL_MS = 2000       -- a lock handed over must be confirmed within this, so a dead waiter costs no whole lease
local LINE_MS = 60000             -- how long the line outlives the last lease when nobody calls
local MAX_TTL_MS = 31536000000    -- a year
local MAX_BYTES = 512             -- owner, channel, reason
local MAX_HOLD_BYTES = 64
local MAX_HOLDS = 1024
local MAX_BLOCK = 1000000
local MAX_FENCE = 2 ^ 53 - 1
local MAX_WAITERS = 10000
local MAX_SPAN = 2 * MAX_WAITERS + 128 -- places of the ring, holes included: see close_holes
local MAX_EXACT = 200             -- places, holes included, up to which a position is counted exactly
local BATCH = 500                 -- arguments per call: well below Lua's limit for unpack

-- The last token this server gave out, for all locks: with TIME a hybrid logical clock (Kulkarni et al., OPODIS 2014).
-- Memory only: a restart, a failover or FUNCTION LOAD REPLACE starts it again from TIME.
local last = 0

-- redis.call and redis.pcall do not exist while a library loads, so they are looked up at the first call; once, because that
-- costs as much as checking the arguments does.
local call, try
call = function(...)
  call = redis.call
  return call(...)
end
try = function(...)
  try = redis.pcall
  return try(...)
end

---- errors and arguments -------------------------------------------------------------------------------------------

local function fail(text)
  error({ holdfast = text }, 0)
end

-- Nothing of Lua's own reaches the caller: what the body raises becomes an error reply with a stable first word.
local function guard(body)
  return function(keys, args)
    local ok, reply = pcall(body, keys, args)
    if ok then return reply end
    local text = type(reply) == 'table' and (reply.holdfast or reply.err) or reply
    if type(reply) == 'table' and reply.holdfast then return redis.error_reply(text) end
    text = tostring(text):gsub(' script: .*$', ''):gsub('^@?user_function:%d+: ', ''):gsub('[\r\n]', ' ')
    return redis.error_reply('HFSERVER ' .. text)
  end
end

local function only_key(keys)
  if #keys ~= 1 then fail('HFARG exactly one key is needed, the lock') end
  if keys[1] == '' then fail('HFARG key must not be empty') end
  return keys[1]
end

local function arity(args, least, most, names)
  if #args < least or #args > most then fail('HFARG wrong number of arguments, expected: ' .. names) end
end

local function bytes(value, name, least, most)
  if #value < least or #value > most then
    fail('HFARG ' .. name .. ' must have ' .. least .. ' to ' .. most .. ' bytes')
  end
  return value
end

local function integer(value, name, most)
  local n = #value <= 16 and value:find('^[1-9]%d*$') and tonumber(value)
  if not n or n > most then fail(string.format('HFARG %s must be an integer from 1 to %.0f', name, most)) end
  return n
end

local function owner_arg(value)
  if value ~= '' and #value <= MAX_BYTES then return value end
  return bytes(value, 'owner', 1, MAX_BYTES)
end


-- Leases come in few lengths: those of five digits or less are checked once.
local known_ttl = {}
local function ttl_arg(value)
  local ttl = known_ttl[value]
  if not ttl then
    ttl = integer(value, 'ttl_ms', MAX_TTL_MS)
    if #value <= 5 then known_ttl[value] = ttl end
  end
  return ttl
end

local function channel_arg(value) return bytes(value, 'channel', 0, MAX_BYTES) end

-- A reserved run must be shorter than its lease, one token per microsecond: so a lease that just runs out leaves a clock
-- that is past the run, and the next token is higher without anything having to remember the run.
local function block_arg(value, ttl)
  if not value then return 1 end
  return integer(value, 'fence_block', math.min(MAX_BLOCK, ttl * 1000))
end

---- time and tokens ------------------------------------------------------------------------------------------------

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- A number given to a call is formatted as a floating point number, which costs several times as much.
-- '%d' is a C long: 64 bits on all but 32-bit builds. (Looked up at the first call: while it loads, a library has no string.)
local integer_format
local function integer_text(n)
  integer_format = integer_format or string.format('%d', 2 ^ 53) == '9007199254740992' and '%d' or '%.0f'
  return string.format(integer_format, n)
end

local function ms(us) return (us - us % 1000) / 1000 end

local function next_fence(us, above)
  local fence = us
  if fence <= last then fence = last + 1 end
  if fence <= above then fence = above + 1 end
  last = fence
  return fence
end

-- A run of tokens that reaches past its lease is not outlived by the clock, so it must be remembered: its first token was
-- ahead of the clock already, or the lease was made shorter.
local function remember(top, ends)
  if top > last and top >= (ends + 1) * 1000 then last = top end
end

-- The last token of a run that counts: all of it, unless its owner says how far it came.
local function used_top(fence, top, used)
  return used and math.max(fence, math.min(top, used)) or top
end

---- holds: a set of ids --------------------------------------------------------------------------------------------

local UNNAMED = '0:'

local function netstring(id) return #id .. ':' .. id end

-- Returns how many ids there are, and from where to where `wanted` stands (nil: it does not).
local function scan_holds(holds, wanted)
  local n, at, from, to = 0, 1, nil, nil
  while at <= #holds do
    local size, start = holds:match('^(%d+):()', at)
    if not size then break end
    local stop = start + size - 1
    if holds:sub(start, stop) == wanted then from, to = at, stop end
    n, at = n + 1, stop + 1
  end
  return n, from, to
end

local function count_holds(lock)
  return lock.holds and (scan_holds(lock.holds)) or 1
end

---- reading a lock -------------------------------------------------------------------------------------------------

-- A plain SET by another service is a lock too: held by its value until its TTL ends.
local function read_foreign(key, problem)
  if not problem:find('^WRONGTYPE') then error(problem, 0) end
  if call('TYPE', key).ok ~= 'string' then fail('HFTYPE the key holds something that is not a lock') end
  return { foreign = true, owner = call('GETRANGE', key, 0, MAX_BYTES - 1), pttl = call('PTTL', key), count = 0 }
end

-- The fields of a lock as they are stored. `owner`: also where in the line it waits.
local function fields(key, owner)
  if owner then
    return try('HMGET', key, 'owner', 'until', 'fence', 'state', 'at:' .. owner)
  end
  return try('HMGET', key, 'owner', 'until', 'fence', 'state')
end

local function not_a_lock() fail('HFTYPE the key holds a hash that is not a lock') end

-- What those fields mean. Returns nil if there is no lock.
local function parse(key, v)
  if v.err then return read_foreign(key, v.err) end
  if not v[1] and call('EXISTS', key) == 0 then return nil end
  local lock = { owner = v[1], ends = tonumber(v[2]), fence = tonumber(v[3]), head = 0, tail = 0, count = 0, turn = 0,
    at = tonumber(v[5]) }
  if not (lock.owner and lock.ends and lock.fence) then not_a_lock() end
  lock.top = lock.fence
  if v[4] then
    local head, tail, count, turn, top, holds = v[4]:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
    if not head or tail - head > MAX_SPAN then not_a_lock() end
    lock.head, lock.tail, lock.count, lock.turn = tonumber(head), tonumber(tail), tonumber(count), tonumber(turn)
    lock.top, lock.holds = tonumber(top), holds ~= '' and holds or nil
  end
  return lock
end

local function read(key, owner)
  return parse(key, fields(key, owner))
end

---- the line: a ring of waiters ------------------------------------------------------------------------------------

local function place(n) return string.format('w:%.0f', n) end

local function state(lock)
  return string.format('%.0f %.0f %.0f %.0f %.0f ', lock.head, lock.tail, lock.count, lock.turn, lock.top) .. (lock.holds or '')
end

local function plain(lock)
  return lock.count == 0 and lock.top == lock.fence and not lock.holds
end

local function pack_waiter(owner, ttl, block, channel)
  return string.format('%.0f %.0f %d ', ttl, block, #channel) .. channel .. owner
end

local function unpack_waiter(entry)
  local ttl, block, size, start = entry:match('^(%d+) (%d+) (%d+) ()')
  if not ttl then return nil end
  local stop = start + size
  return { ttl = tonumber(ttl), block = tonumber(block), channel = entry:sub(start, stop - 1), owner = entry:sub(stop) }
end

-- Calls visit(place, entry) for every waiter from place `from` up to, not including, `to`.
local function each_waiter(key, from, to, visit)
  for first = from, to - 1, BATCH do
    local names = {}
    for n = first, math.min(first + BATCH, to) - 1 do names[#names + 1] = place(n) end
    local entries = call('HMGET', key, unpack(names))
    for i = 1, #names do
      if entries[i] then visit(first + i - 1, entries[i]) end
    end
  end
end

-- Waiters that left are holes in the ring; when they are most of it, close them up. Amortised, a constant cost per leave.
local function close_holes(key, lock)
  if lock.tail - lock.head <= 2 * lock.count + 64 then return end
  local n = lock.head
  each_waiter(key, lock.head, lock.tail, function(at, entry)
    if at ~= n then
      call('HDEL', key, place(at))
      call('HSET', key, place(n), entry, 'at:' .. unpack_waiter(entry).owner, n)
    end
    n = n + 1
  end)
  lock.tail = n
end

-- Exact for all whose turn may come soon; far back in a line with holes it would cost a look at every place, so it is at most
-- what it seems there.
local function position(key, lock)
  local far = lock.at - lock.head + 1
  if lock.tail - lock.head == lock.count then return far end
  if far > MAX_EXACT then return math.min(far, lock.count) end
  local n = 1
  each_waiter(key, lock.head, lock.at, function() n = n + 1 end)
  return n
end

local function set_state(key, lock)
  if plain(lock) then
    call('HDEL', key, 'state')
  else
    call('HSET', key, 'state', state(lock))
  end
  if lock.count == 0 then call('PEXPIREAT', key, lock.ends) end
end

-- SPUBLISH says how many connections got the message: none, or a channel that cannot be used from here (another slot,
-- no permission), means that nobody can be told.
local function tell(channel, message)
  local got = try('SPUBLISH', channel, message)
  return type(got) == 'number' and got > 0
end

-- Gives the lock to the first waiter that can be told, provisionally: until it confirms (renew, wait or acquire) the lease
-- is short. A waiter without a channel polls; it is given the lock untold. Returns false, and the key is gone, if nobody is left.
local function hand_over(key, lock, us)
  local drop, n, served = {}, lock.head, false
  local held = us - lock.fence
  if held > 0 then lock.turn = lock.turn == 0 and held or math.floor((7 * lock.turn + held) / 8) end
  while n < lock.tail do
    local entry = call('HGET', key, place(n))
    local waiter = entry and unpack_waiter(entry)
    n = n + 1
    if entry then
      drop[#drop + 1] = place(n - 1)
      if waiter then drop[#drop + 1] = 'at:' .. waiter.owner end
      lock.count = math.max(0, lock.count - 1)
    end
    if waiter then
      local fence = next_fence(us, lock.top)
      local ends = ms(us) + math.min(waiter.ttl, PROVISIONAL_MS)
      if waiter.channel == '' or tell(waiter.channel, string.format('%.0f %.0f ', fence, ends) .. waiter.owner) then
        lock.owner, lock.ends, lock.fence, lock.top = waiter.owner, ends, fence, fence + waiter.block - 1
        lock.channel, lock.holds, lock.head = waiter.channel, nil, n
        remember(lock.top, ends)
        served = true
        break
      end
    end
    if #drop >= BATCH then
      call('HDEL', key, unpack(drop))
      drop = {}
    end
  end
  if not served then
    call('DEL', key)
    if lock.top > last then last = lock.top end
    return false
  end
  if plain(lock) then drop[#drop + 1] = 'state' end
  call('HSET', key, 'owner', lock.owner, 'until', integer_text(lock.ends), 'fence', integer_text(lock.fence), 'channel',
    lock.channel, 'state', state(lock))
  call('HDEL', key, unpack(drop))
  call('PEXPIREAT', key, lock.count == 0 and lock.ends or lock.ends + LINE_MS)
  return true
end

---- taking and giving back -----------------------------------------------------------------------------------------

-- The lock is free: write the owner.
local function take(key, us, owner, ttl, block, hold)
  local fence = next_fence(us, 0)
  local ends = ms(us) + ttl
  remember(fence + block - 1, ends)
  local token, time = integer_text(fence), integer_text(ends)
  if block > 1 or hold ~= '' then
    local lock = { head = 0, tail = 0, count = 0, turn = 0, top = fence + block - 1, holds = hold ~= '' and netstring(hold) }
    call('HSET', key, 'owner', owner, 'until', time, 'fence', token, 'state', state(lock))
  else
    call('HSET', key, 'owner', owner, 'until', time, 'fence', token)
  end
  local set = try('PEXPIREAT', key, time) -- last: it deletes the key if a lease of 1 ms is over already
  if set ~= 1 then -- an ACL may forbid it, and an error undoes nothing: no key may stay without a TTL
    try('DEL', key)
    error(set.err, 0)
  end
  return { 1, fence, ttl, 1 }
end

-- The caller holds the lock already: a repeat, or one more hold. It writes, so that a WAIT after it covers it.
local function hold_on(key, lock, us, ttl, hold)
  local n = 1
  lock.ends = ms(us) + ttl
  if lock.holds or hold ~= '' then
    local holds = lock.holds or UNNAMED
    local count, from = scan_holds(holds, hold)
    n = count
    if not from then
      if count >= MAX_HOLDS then fail('HFFULL the lock has ' .. MAX_HOLDS .. ' holds, no more are possible') end
      n, holds = count + 1, holds .. netstring(hold)
    end
    lock.holds = holds
    call('HSET', key, 'until', lock.ends, 'state', state(lock))
  else
    call('HSET', key, 'until', lock.ends)
  end
  call('PEXPIREAT', key, lock.count == 0 and lock.ends or lock.ends + LINE_MS)
  remember(lock.top, lock.ends)
  return { 1, lock.fence, ttl, n }
end

-- Nobody holds it any more: to the next in line, else gone. Returns true if the next one has it.
local function give_back(key, lock, us)
  if lock.count > 0 then return hand_over(key, lock, us) end
  call('DEL', key)
  if lock.top > last then last = lock.top end
  return false
end

-- A lease that has ended is given back before anything else. Returns the lock as it is then, nil if it is free.
local function settle(key, lock, us)
  if not lock or lock.foreign or ms(us) <= lock.ends then return lock end
  if give_back(key, lock, us) then return lock end
end

local function busy(lock, us)
  if not lock then return { 0, 0, '', 0 } end
  if lock.foreign then return { 0, lock.pttl, lock.owner, 0 } end
  return { 0, lock.ends - ms(us), lock.owner, lock.count }
end

local function acquire(key, owner, ttl, block, hold)
  if try('HLEN', key) == 0 then return take(key, clock(), owner, ttl, block, hold) end
  local lock, us = read(key), clock()
  lock = settle(key, lock, us)
  if not lock then return take(key, us, owner, ttl, block, hold) end
  if lock.owner == owner and not lock.foreign then return hold_on(key, lock, us, ttl, hold) end
  return busy(lock, us)
end

---- the functions --------------------------------------------------------------------------------------------------

-- holdfast_acquire
-- Take the lock if it is free. Never waits, never overtakes the line.
-- KEYS    lock
-- ARGV    owner, ttl_ms [, fence_block]
-- Reply   1, fence, ttl_ms, holds | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFFULL HFTYPE HFSERVER
-- Repeat  safe: the same owner gets the same fence again and the lease starts anew
local function holdfast_acquire(keys, args)
  local key = only_key(keys)
  arity(args, 2, 3, 'owner, ttl_ms [, fence_block]')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  return acquire(key, owner, ttl, block_arg(args[3], ttl), '')
end

-- holdfast_acquire_reentrant
-- Take the lock, or add a hold to the one that this owner has. The lock is free when every hold is released.
-- KEYS    lock
-- ARGV    owner, ttl_ms, hold
-- Reply   1, fence, ttl_ms, holds | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFFULL HFTYPE HFSERVER
-- Repeat  safe: holds are a set of ids, the same id counts once
local function holdfast_acquire_reentrant(keys, args)
  local key = only_key(keys)
  arity(args, 3, 3, 'owner, ttl_ms, hold')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  return acquire(key, owner, ttl, 1, bytes(args[3], 'hold', 1, MAX_HOLD_BYTES))
end

-- holdfast_renew
-- Start the lease anew, and confirm a lock that was handed over. Never revives an ended lease.
-- KEYS    lock
-- ARGV    owner, ttl_ms [, channel]
-- Reply   1, fence, ttl_ms, holds | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: it only starts the lease anew
local function holdfast_renew(keys, args)
  local key = only_key(keys)
  arity(args, 2, 3, 'owner, ttl_ms [, channel]')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  local channel = args[3] and channel_arg(args[3])
  local lock, us = read(key), clock()
  local mine = lock and not lock.foreign and lock.owner == owner and ms(us) <= lock.ends
  lock = settle(key, lock, us)
  if not mine then return busy(lock, us) end
  lock.ends = ms(us) + ttl
  if channel then
    call('HSET', key, 'until', lock.ends, 'channel', channel)
  else
    call('HSET', key, 'until', lock.ends)
  end
  call('PEXPIREAT', key, lock.count == 0 and lock.ends or lock.ends + LINE_MS)
  remember(lock.top, lock.ends)
  call('HLEN', key) -- a read after the writes: client tracking, where the caller has it, covers the key from here on
  return { 1, lock.fence, ttl, count_holds(lock) }
end

-- holdfast_release
-- Give back one hold (without an id, or with '': the unnamed one). The last one frees the lock, or hands it to the next in
-- line. Who reserved a run of tokens says the last one it used, last_fence: the rest of the run is not skipped then.
-- KEYS    lock
-- ARGV    owner [, hold [, last_fence]]
-- Reply   1, 0 | 1, holds | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: the second reply says 'not yours' or, with other holds left, how many
local function holdfast_release(keys, args)
  local key = only_key(keys)
  arity(args, 1, 3, 'owner [, hold [, last_fence]]')
  local owner = owner_arg(args[1])
  local hold = args[2] and bytes(args[2], 'hold', 0, MAX_HOLD_BYTES) or ''
  local used = args[3] and integer(args[3], 'last_fence', MAX_FENCE)
  local v = fields(key)
  -- The common case: nothing but an owner and a lease. Without a line the key ends with the lease, so there is no need
  -- to ask the time.
  local fence = tonumber(v[3])
  if v[1] == owner and v[2] and fence and not v[4] and hold == '' then
    call('DEL', key)
    if fence > last then last = fence end
    return { 1, 0 }
  end
  local lock = parse(key, v)
  if not lock or lock.foreign then return busy(lock) end
  local us = clock()
  local mine = lock.owner == owner and ms(us) <= lock.ends
  lock = settle(key, lock, us)
  if not mine then return busy(lock, us) end
  local holds = lock.holds or UNNAMED
  local count, from, to = scan_holds(holds, hold)
  if not from then return { 1, count } end
  if count == 1 then
    lock.top = used_top(lock.fence, lock.top, used)
    give_back(key, lock, us)
    return { 1, 0 }
  end
  lock.holds = holds:sub(1, from - 1) .. holds:sub(to + 1)
  call('HSET', key, 'state', state(lock))
  return { 1, count - 1 }
end

-- holdfast_wait
-- Take the lock, or join the line for it; asked again, say how the line stands. Whoever gives the lock back writes the first
-- in line as its owner and publishes 'fence until_ms owner' on that waiter's channel ('': none, the waiter polls by asking again).
-- With max_wait_ms, nobody joins whose turn is expected later than that: position is then what it would have been, negative.
-- KEYS    lock
-- ARGV    owner, ttl_ms, channel [, fence_block [, max_wait_ms]]
-- Reply   1, fence, ttl_ms, holds | 0, pttl_ms, owner, position, server_ms
-- Errors  HFARG HFFULL HFTYPE HFSERVER
-- Repeat  safe: one place in the line per owner; the owner of the lock gets the same fence again, for a whole lease
local function holdfast_wait(keys, args)
  local key = only_key(keys)
  arity(args, 3, 5, 'owner, ttl_ms, channel [, fence_block [, max_wait_ms]]')
  local owner, ttl, channel = owner_arg(args[1]), ttl_arg(args[2]), channel_arg(args[3])
  local block = block_arg(args[4], ttl)
  local max_wait = args[5] and integer(args[5], 'max_wait_ms', MAX_TTL_MS)
  local lock, us = read(key, owner), clock()
  lock = settle(key, lock, us)
  if not lock then return take(key, us, owner, ttl, block, '') end
  if lock.at and lock.at < lock.head then lock.at = nil end -- it could not be told just now, and lost its place
  if lock.foreign then return { 0, lock.pttl, lock.owner, 0, ms(us) } end
  if lock.owner == owner then return hold_on(key, lock, us, ttl, '') end
  local pttl = lock.ends - ms(us)
  local entry = pack_waiter(owner, ttl, block, channel)
  if lock.at then
    call('HSET', key, place(lock.at), entry)
    return { 0, pttl, lock.owner, position(key, lock), ms(us) }
  end
  if max_wait and lock.turn * (lock.count + 1) > max_wait * 1000 then
    return { 0, pttl, lock.owner, -(lock.count + 1), ms(us) }
  end
  if lock.count >= MAX_WAITERS then fail('HFFULL the line has ' .. MAX_WAITERS .. ' waiters, no more are possible') end
  if lock.count == 0 then
    lock.head, lock.tail = 0, 0
  else
    close_holes(key, lock)
  end
  lock.at, lock.tail, lock.count = lock.tail, lock.tail + 1, lock.count + 1
  call('HSET', key, place(lock.at), entry, 'at:' .. owner, lock.at, 'state', state(lock))
  if lock.count == 1 then call('PEXPIREAT', key, lock.ends + LINE_MS) end
  return { 0, pttl, lock.owner, lock.count, ms(us) }
end

-- holdfast_leave
-- Give up waiting. If the lock was handed over meanwhile (the messages crossed), it goes to the next in line; with scope
-- 'line' it is left alone, for an owner string that several share: a grant that nobody confirms lapses.
-- KEYS    lock
-- ARGV    owner [, scope]
-- Reply   1 | 0
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: the second reply is 0
local function holdfast_leave(keys, args)
  local key = only_key(keys)
  arity(args, 1, 2, 'owner [, scope]')
  local owner = owner_arg(args[1])
  if args[2] and args[2] ~= 'line' then fail("HFARG scope must be 'line' or absent") end
  local lock = read(key, owner)
  if not lock or lock.foreign then return { 0 } end
  local us = clock()
  local waited = lock.at
  lock = settle(key, lock, us)
  if not lock then return { waited and 1 or 0 } end
  if lock.owner == owner then
    if args[2] then return { waited and 1 or 0 } end
    give_back(key, lock, us)
    return { 1 }
  end
  if not waited then return { 0 } end
  if call('HDEL', key, place(lock.at), 'at:' .. owner) == 0 then return { 1 } end
  lock.count = lock.count - 1
  if lock.at == lock.tail - 1 then lock.tail = lock.at end
  if lock.at == lock.head then lock.head = lock.at + 1 end
  set_state(key, lock)
  return { 1 }
end

-- holdfast_break
-- Take the lock from whoever has it: for operators. It goes to the next in line. The holder is told, if it left a channel:
-- 'broken fence owner_bytes owner reason' (owner_bytes: the length of owner).
-- KEYS    lock
-- ARGV    [reason]
-- Reply   1, owner, fence | 0, '', 0
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  not safe: it breaks the next holder's lock
local function holdfast_break(keys, args)
  local key = only_key(keys)
  arity(args, 0, 1, '[reason]')
  local reason = bytes(args[1] or '', 'reason', 0, MAX_BYTES)
  local lock = read(key)
  if not lock then return { 0, '', 0 } end
  if lock.foreign then
    call('DEL', key)
    return { 1, lock.owner, 0 }
  end
  local us = clock()
  if ms(us) > lock.ends then
    give_back(key, lock, us)
    return { 0, '', 0 }
  end
  local owner, fence, channel = lock.owner, lock.fence, call('HGET', key, 'channel')
  give_back(key, lock, us)
  if channel and channel ~= '' then
    tell(channel, string.format('broken %.0f %d ', fence, #owner) .. owner .. ' ' .. reason)
  end
  return { 1, owner, fence }
end

-- holdfast_inspect
-- Who holds the lock and how many wait. Changes nothing. fence is 0 for a plain string of another service.
-- KEYS    lock
-- ARGV    -
-- Reply   held, owner, holds, fence, pttl_ms, waiters
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: no writes
local function holdfast_inspect(keys, args)
  local key = only_key(keys)
  arity(args, 0, 0, 'none')
  local lock = read(key)
  if not lock then return { 0, '', 0, 0, 0, 0 } end
  if lock.foreign then return { 1, lock.owner, 1, 0, lock.pttl, 0 } end
  local left = lock.ends - ms(clock())
  if left < 0 then return { 0, '', 0, 0, 0, lock.count } end
  return { 1, lock.owner, count_holds(lock), lock.fence, left, lock.count }
end

-- holdfast_version
-- The version of the loaded library.
-- KEYS    -
-- ARGV    -
-- Reply   version
-- Errors  HFARG
-- Repeat  safe: no writes
local function holdfast_version(keys, args)
  if #keys > 1 then fail('HFARG at most one key is possible, to choose the node') end
  arity(args, 0, 0, 'none')
  return VERSION
end

local function register(name, body, ...)
  redis.register_function{ function_name = name, callback = guard(body), flags = { ... } }
end

register('holdfast_acquire', holdfast_acquire)
register('holdfast_acquire_reentrant', holdfast_acquire_reentrant)
register('holdfast_renew', holdfast_renew, 'allow-oom')
register('holdfast_release', holdfast_release, 'allow-oom')
register('holdfast_wait', holdfast_wait)
register('holdfast_leave', holdfast_leave, 'allow-oom')
register('holdfast_break', holdfast_break, 'allow-oom')
register('holdfast_inspect', holdfast_inspect, 'no-writes')
register('holdfast_version', holdfast_version, 'no-writes')
