#!lua name=holdfast
-- Holdfast: a distributed lock as one Redis Functions library. The contract is README.md.
--
-- One hash per lock is everything there is, so DEL, eviction and expiry take all of it or nothing:
--   owner, until, fence   who holds the lock, the end of the lease (ms), the fencing token
--   channel               where the holder hears of a break (absent or '': nowhere)
--   state                 'head tail waiters turn_us top holds[ guard]': the line, the last token
--                         of a reserved run, the number of hold ids (0: a plain lock), the guard
--                         (ms). Absent for a plain lock without all that: the common case reads
--                         little
--   holds                 the ids of a joinable lock's holds, as netstrings
--   w:<n>, at:<owner>     the waiter at place n of the line, and an owner's place
--
-- A call reads the lock, changes it in memory, writes it once, sets the expiry as its last write,
-- and publishes last of all. Whoever may write the key may write anything into it, so each field
-- is checked when it is read, and no loop depends on what it says.

local VERSION = '1.0.0'

local PROVISIONAL_MS = 2000       -- a lock handed over must be confirmed within this
local LINE_MS = 60000             -- how long the line outlives the lease when nobody calls
local POLL_MS = 5000              -- a waiter that cannot be told and has not asked for this is gone
local MAX_TTL_MS = 31536000000    -- a year
local MAX_BYTES = 512             -- owner, channel, reason
local MAX_HOLD_BYTES = 64
local ALL_HOLDS = '*'             -- no id: to holdfast_release, all of an owner's holds
local MAX_HOLDS = 128
local MAX_HOLDS_BYTES = MAX_HOLDS * (MAX_HOLD_BYTES + 3)
local MAX_BLOCK = 1000000
local MAX_WAITERS = 5000
local MAX_LOCKS = 100             -- of holdfast_acquire_all
local STEPS = 100                 -- places of the line that one call passes over
local SWEEP = 3                   -- places at the head where a join looks for dead waiters
local AHEAD_US = 60000000         -- how far ahead of TIME a key's token may push the server's
local MAX_FENCE = 2 ^ 53 - 1
local MAX_TOKEN = MAX_FENCE - 2 * MAX_BLOCK -- of a key: the next run must fit
local MAX_PLACE = 2 ^ 52
local MAX_MS = 10 ^ 14

-- The last token that this server gave out, for all locks: with TIME a hybrid logical clock
-- (Kulkarni et al., OPODIS 2014). Memory only: a restart, a failover or FUNCTION LOAD REPLACE
-- starts it again from TIME.
local last = 0

-- These do not exist while a library loads. Looking them up at each call would cost as much as
-- checking its arguments.
local call, try, format

local function look_up()
  call, try, format = redis.call, redis.pcall, string.format
  if format('%d', 2 ^ 53) == '9007199254740992' then return end
  format = function(form, ...) -- '%d' is a C long, of 32 bits on some builds
    form = form:gsub('%%d', '%%.0f')
    return string.format(form, ...)
  end
end

---- errors and arguments -------------------------------------------------------------------------

local function fail(problem)
  error({ holdfast = problem }, 0)
end

-- Nothing of Lua's own reaches the caller: an error becomes a reply with a stable first word.
local function shield(body)
  return function(keys, args)
    if not call then look_up() end
    local ok, reply = pcall(body, keys, args)
    if ok then return reply end
    local problem = type(reply) == 'table' and (reply.holdfast or reply.err) or reply
    if type(reply) == 'table' and reply.holdfast then return redis.error_reply(problem) end
    problem = tostring(problem):gsub(' script: .*$', ''):gsub('^@?user_function:%d+: ', '')
    return redis.error_reply('HFSERVER ' .. problem:gsub('[\r\n]', ' '))
  end
end

local function only_key(keys)
  if #keys ~= 1 then fail('HFARG exactly one key is needed, the lock') end
  if keys[1] == '' then fail('HFARG key must not be empty') end
  return keys[1]
end

local function several_keys(keys)
  local known = {}
  if #keys < 1 or #keys > MAX_LOCKS then
    fail('HFARG 1 to ' .. MAX_LOCKS .. ' keys are needed, the locks')
  end
  for _, key in ipairs(keys) do
    if key == '' then fail('HFARG key must not be empty') end
    if known[key] then fail('HFARG keys must differ') end
    known[key] = true
  end
end

local function arity(args, least, most, names)
  if #args < least or #args > most then
    fail('HFARG wrong number of arguments, expected: ' .. names)
  end
end

local function text_arg(value, name, least, most)
  if #value < least or #value > most then
    fail('HFARG ' .. name .. ' must have ' .. least .. ' to ' .. most .. ' bytes')
  end
  if not value:find('^%C*$') then
    fail('HFARG ' .. name .. ' must not contain control characters')
  end
  return value
end

local function integer_arg(value, name, most)
  local n = #value <= 16 and value:find('^[1-9]%d*$') and tonumber(value)
  if not n or n > most then
    fail(format('HFARG %s must be an integer from 1 to %d', name, most))
  end
  return n
end

local function owner_arg(value) return text_arg(value, 'owner', 1, MAX_BYTES) end

local function hold_arg(value, least)
  if value == ALL_HOLDS then fail("HFARG hold must not be '*', but for holdfast_release") end
  return text_arg(value, 'hold', least, MAX_HOLD_BYTES)
end

-- Leases come in few lengths: the first 1000 of up to five digits are checked once.
local known_ttl, known = {}, 0
local function ttl_arg(value)
  local ttl = known_ttl[value]
  if not ttl then
    ttl = integer_arg(value, 'ttl_ms', MAX_TTL_MS)
    if known < 1000 and #value <= 5 then known_ttl[value], known = ttl, known + 1 end
  end
  return ttl
end

-- Others publish there on the caller's behalf, so the caller must be allowed to do it itself. The
-- text of the first 1000 channels is checked once.
local known_channel, channels = {}, 0
local function channel_arg(value)
  if not known_channel[value] then
    text_arg(value, 'channel', 0, MAX_BYTES)
    if channels < 1000 then known_channel[value], channels = true, channels + 1 end
  end
  if value ~= '' and not redis.acl_check_cmd('SPUBLISH', value, '') then
    fail('HFARG channel must be one that the caller may publish to with SPUBLISH')
  end
  return value
end

local function block_arg(value, ttl)
  if not value then return 1 end
  return integer_arg(value, 'fence_block', math.min(MAX_BLOCK, ttl * 1000))
end

---- time and tokens ------------------------------------------------------------------------------

local seen = 0 -- the latest time: one below it is of a clock that was set back

local function clock()
  local t = call('TIME')
  local us = t[1] * 1000000 + t[2]
  if us > seen then seen = us end
  return us
end

local function ms(us) return (us - us % 1000) / 1000 end

-- Numbers are given to calls as text: redis.call formats them as floating point, which costs
-- several times as much.
local function digits(n) return format('%d', n) end

-- The number that a field says, or nil. tonumber alone accepts 'inf', '0x10' and '1e18' too.
local function number(value, most)
  local n = value and #value <= 16 and value:find('^%d+$') and tonumber(value)
  if n and n <= most then return n end
end

-- A token that a key says counts for all locks, unless it is far ahead of the clock.
local function note(token, us)
  if token > last and token <= us + AHEAD_US then last = token end
end

-- The next token: above all that this server gave out, and above this lock's own. What was used of a
-- run is not above the clock, unless that was set back: then it is above the end of any run.
local function next_fence(us, above)
  if us < seen and last < seen + MAX_BLOCK then last = seen + MAX_BLOCK end
  last = us > last and us or last + 1
  if last > above then return last end
  note(above + 1, us)
  return above + 1
end

-- A run is one token per microsecond from now on. So none of it is used before the clock is there,
-- and the next token is higher even where nothing remembers the run.
local function run_end(fence, block, us)
  return fence == us and fence + block - 1 or fence
end

---- guard: how long this server remembers -------------------------------------------------------

-- A failover or a restart loses locks, but not the leases that their holders count on. So a guarded
-- lock is granted only by a server whose memory is older than any lease can be: what it does not
-- know of by then has ended. A memory begins with these locals (a restart, a full resynchronisation,
-- FUNCTION LOAD) and with a replication id that is new to them (a promotion).
local born, history = 0, ''

local function age(us)
  local info = call('INFO', 'replication') -- some words in its lines are the choice of replicas
  if not info:find('\nrole:master', 1, true) then return 0 end -- a replica that may be written to
  local id = info:match('\nmaster_replid:(%x+)')
  if id ~= history or us < born then born, history = us, id end
  return us - born
end

-- For how many milliseconds yet nobody may be granted a lock with this guard. To ask lets the memory
-- begin: the sooner it does, the sooner it is old enough.
local function too_young(guard, us)
  if guard == 0 then return 0 end
  return math.max(0, guard - ms(age(us)))
end

local function guard_arg(value, ttl)
  if not value then return 0 end
  local guard = integer_arg(value, 'guard_ms', MAX_TTL_MS)
  if guard < ttl then fail('HFARG guard_ms must not be less than ttl_ms') end
  return guard
end

-- All that want a lock while it is guarded keep to its longest guard.
local function keep_to(lock, guard, ttl)
  lock.guard = math.max(lock.guard, guard)
  if lock.guard > 0 and ttl > lock.guard then
    fail(format('HFARG ttl_ms must not be more than the guard of the lock, %d', lock.guard))
  end
end

---- holds: a set of ids --------------------------------------------------------------------------

local function netstring(id) return #id .. ':' .. id end

-- Returns how many ids there are (nil: it is no such set), and from where to where `wanted` stands.
local function scan_holds(holds, wanted)
  local n, at, from, to = 0, 1, nil, nil
  if #holds > MAX_HOLDS_BYTES then return nil end
  while at <= #holds do
    local size, start = holds:match('^(%d+):()', at)
    local stop = size and start + size - 1
    if not stop or stop > #holds then return nil end
    if holds:sub(start, stop) == wanted then from, to = at, stop end
    n, at = n + 1, stop + 1
  end
  return n, from, to
end

local function has_hold(holds, id)
  local _, from = scan_holds(holds, id)
  return from ~= nil
end

-- Returns the set with an id, and how many it has.
local function add_hold(holds, id)
  local n, from = scan_holds(holds, id)
  if from then return holds, n end
  if n >= MAX_HOLDS then
    fail('HFFULL the lock has ' .. MAX_HOLDS .. ' holds, no more are possible')
  end
  return holds .. netstring(id), n + 1
end

-- Returns the set without an id, and how many it has; nil if the id was not there.
local function remove_hold(holds, id)
  local n, from, to = scan_holds(holds, id)
  if from then return holds:sub(1, from - 1) .. holds:sub(to + 1), n - 1 end
end

local function join_error(joinable)
  if joinable then
    fail('HFJOIN this owner has or waits for the lock with a hold id, so it needs one here')
  end
  fail('HFJOIN this owner has or waits for the lock without a hold id, so nobody can join it')
end

---- reading a lock -------------------------------------------------------------------------------

-- A plain SET by another service is a lock too: held by its value until its TTL ends.
local function read_foreign(key, problem)
  if not problem:find('^WRONGTYPE') then error(problem, 0) end
  if call('TYPE', key).ok ~= 'string' then
    fail('HFTYPE the key holds something that is not a lock')
  end
  local owner = call('GETRANGE', key, 0, MAX_BYTES - 1)
  return { foreign = true, owner = owner, pttl = call('PTTL', key) }
end

local function not_a_lock() fail('HFTYPE the key holds a hash that is not a lock') end

local function has_line(lock) return lock.head < lock.tail end

-- When the key must go: a lease holds through the millisecond `ends`.
local function expiry(lock, now)
  if has_line(lock) then return math.max(lock.ends, now) + LINE_MS end
  return lock.ends + 1
end

local function parse_state(lock, state)
  if #state > 7 * 17 then not_a_lock() end
  local form = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(.*)$'
  local head, tail, count, turn, top, holds, rest = state:match(form)
  if not head then not_a_lock() end
  if rest ~= '' then
    lock.guard = number(rest:match('^ (.*)$'), MAX_TTL_MS)
    if not lock.guard then not_a_lock() end
  end
  head, tail, count, top = tonumber(head), tonumber(tail), tonumber(count), tonumber(top)
  turn, holds = tonumber(turn), tonumber(holds)
  if head > tail or tail > MAX_PLACE or turn > MAX_FENCE or top > MAX_TOKEN or top < lock.fence
    or holds > MAX_HOLDS then
    not_a_lock()
  end
  lock.head, lock.tail, lock.count = head, tail, math.min(count, tail - head)
  lock.turn, lock.top, lock.holds = turn, top, holds
end

-- What the fields of HMGET mean. Returns nil if there is no lock.
local function parse(key, v, caller)
  if v.err then return read_foreign(key, v.err) end
  if not v[1] and call('EXISTS', key) == 0 then return nil end
  local lock = { owner = v[1], ends = number(v[2], MAX_MS), fence = number(v[3], MAX_TOKEN),
    head = 0, tail = 0, count = 0, turn = 0, holds = 0, guard = 0,
    closed = 0, at = number(v[5], MAX_PLACE), state = v[4], steps = 0, caller = caller, changes = false }
  if not (lock.ends and lock.fence and v[1] and v[1] ~= '') or #v[1] > MAX_BYTES then
    not_a_lock()
  end
  lock.top = lock.fence
  if v[4] then parse_state(lock, v[4]) end
  lock.expires = expiry(lock, 0)
  return lock
end

local function read(key, caller)
  return parse(key, try('HMGET', key, 'owner', 'until', 'fence', 'state'), caller)
end

-- Also where in the line the caller is.
local function read_place(key, caller)
  return parse(key, try('HMGET', key, 'owner', 'until', 'fence', 'state', 'at:' .. caller), caller)
end

-- A field as this call will leave it.
local function field(key, lock, name)
  local value = nil
  if lock.changes then value = lock.changes[name] end
  if value == nil then return call('HGET', key, name) end
  return value
end

-- Changes a field in memory. false: it will be gone.
local function put(lock, name, value)
  if not lock.changes then lock.changes = {} end
  lock.changes[name] = value
end

local function read_holds(key, lock)
  local holds = field(key, lock, 'holds')
  if not holds or not scan_holds(holds) then not_a_lock() end
  return holds
end

---- writing a lock -------------------------------------------------------------------------------

local function guard_text(guard)
  return guard > 0 and ' ' .. digits(guard) or ''
end

local function state_text(lock)
  if not has_line(lock) and lock.top == lock.fence and lock.holds == 0 and lock.guard == 0 then
    return false
  end
  return format('%d %d %d %d %d %d', lock.head, lock.tail, lock.count, lock.turn, lock.top,
    lock.holds) .. guard_text(lock.guard)
end

-- Writes all changes at once. The expiry comes last, because it may delete the key.
local function save(key, lock, us)
  if lock.gone then
    call('DEL', key)
    return
  end
  if not lock.changes then return end
  local state = state_text(lock)
  if state ~= lock.state then lock.changes.state, lock.state = state, state end
  local set, cut = {}, {}
  for name, value in pairs(lock.changes) do
    if value then
      set[#set + 1] = name
      set[#set + 1] = value
    else
      cut[#cut + 1] = name
    end
  end
  lock.changes = false
  if #cut > 0 then call('HDEL', key, unpack(cut)) end
  if #set > 0 then call('HSET', key, unpack(set)) end
  local expires = expiry(lock, ms(us))
  if expires ~= lock.expires then
    call('PEXPIREAT', key, digits(expires))
    lock.expires = expires
  end
end

---- the line: places that only grow --------------------------------------------------------------

-- Who leaves in the middle leaves a hole: a place without a field. Holes side by side are one run,
-- with '>last' at its first place and '<first' at its last, so that a run is one step.

local function place(n) return 'w:' .. digits(n) end

local function pack_waiter(w)
  return format('%d %d %d %d %d ', w.ttl, w.block, w.asked, #w.holds, #w.channel)
    .. w.holds .. w.channel .. w.owner
end

local function unpack_waiter(entry)
  if #entry > MAX_HOLDS_BYTES + 3 * MAX_BYTES then return nil end
  local ttl, block, asked, holds, channel, at = entry:match('^(%d+) (%d+) (%d+) (%d+) (%d+) ()')
  if not ttl then return nil end
  ttl, block, asked = tonumber(ttl), tonumber(block), tonumber(asked)
  holds, channel = tonumber(holds), tonumber(channel)
  local size = #entry - at - holds - channel + 1 -- of the owner
  if ttl > MAX_TTL_MS or block < 1 or block > MAX_BLOCK or asked > MAX_MS or channel > MAX_BYTES
    or size < 1 or size > MAX_BYTES then
    return nil
  end
  local w = { ttl = ttl, block = block, asked = asked, owner = entry:sub(-size), holds = '' }
  w.channel = entry:sub(at + holds, -size - 1)
  if holds > 0 then w.holds = entry:sub(at, at + holds - 1) end
  return w
end

-- Returns the waiter at a place, or nil for a hole, and the place behind it. Always further on.
local function look(key, lock, n)
  local entry = field(key, lock, place(n))
  local waiter = entry and unpack_waiter(entry)
  if waiter then return waiter, n + 1 end
  local to = entry and number(entry:match('^>(%d+)$'), lock.tail - 1)
  return nil, to and to > n and to + 1 or n + 1
end

-- Returns the caller's own entry and its place, if it is in the line.
local function find(key, lock)
  local n = lock.at
  if not n or n < lock.head or n >= lock.tail then return nil end
  local waiter = look(key, lock, n)
  if waiter and waiter.owner == lock.caller and scan_holds(waiter.holds) then return waiter, n end
end

-- Takes a waiter out of the line, wherever it is, and makes one run of the holes around it.
local function unlink(key, lock, n, owner)
  local first, past = n, n + 1
  if n > lock.head then
    local left = field(key, lock, place(n - 1))
    local from = left and number(left:match('^<(%d+)$'), n - 1)
    if not left then first = n - 1 elseif from and from >= lock.head then first = from end
  end
  if past < lock.tail then
    local right, behind = look(key, lock, past)
    if not right then past = behind end
  end
  for _, inner in ipairs({ n - 1, n, n + 1 }) do
    if inner >= first and inner < past then put(lock, place(inner), false) end
  end
  put(lock, place(first), false)
  put(lock, place(past - 1), false)
  put(lock, 'at:' .. owner, false)
  lock.count = math.max(0, lock.count - 1)
  if first == lock.head then
    lock.head = past
  elseif past == lock.tail then
    lock.tail = first
  elseif past - first > 1 then
    put(lock, place(first), '>' .. digits(past - 1))
    put(lock, place(past - 1), '<' .. digits(first))
  end
end

-- How many connections to this server hear the channel. SPUBLISH must not be asked that: what
-- nobody here gets is sent to subscribers at replicas all the same.
local function subscribers(channel)
  if channel == '' then return 0 end
  local got = try('PUBSUB', 'SHARDNUMSUB', channel)
  return tonumber(got[2]) or 0
end

-- Reports whether a waiter would learn that the lock is its own: it asks just now, it polls, or it
-- can be told.
local function reachable(lock, waiter, us)
  if waiter.owner == lock.caller then return true end
  if waiter.channel == '' then return ms(us) - waiter.asked <= POLL_MS end
  return subscribers(waiter.channel) > 0
end

-- Behind a lock that is renewed for long, dead waiters would fill the line.
local function sweep(key, lock, us)
  if us - lock.fence <= POLL_MS * 1000 then return end
  local n = lock.head
  for _ = 1, SWEEP do
    if n >= lock.tail then return end
    local waiter, behind = look(key, lock, n)
    if waiter and ms(us) - waiter.asked > POLL_MS and not reachable(lock, waiter, us) then
      unlink(key, lock, n, waiter.owner)
    end
    n = behind
  end
end

-- Exact for the first 100 waiters. Further back it is a bound, and never sounds nearer than that.
local function position(key, lock, mine)
  local far, n, before = mine - lock.head + 1, lock.head, 0
  if lock.tail - lock.head == lock.count then return far end
  for _ = 1, 2 * STEPS do -- a waiter has one run of holes before it at most
    if n >= mine then return before + 1 end
    local waiter, behind = look(key, lock, n)
    if waiter then before = before + 1 end
    n = behind
  end
  return math.max(STEPS + 1, math.min(lock.count, far))
end

---- taking, handing over, giving back ------------------------------------------------------------

-- Gives the lock to a waiter, provisionally: the lease is short until it is confirmed.
local function give(lock, waiter, holds, us)
  local fence, joinable = next_fence(us, lock.top), holds > 0
  if joinable or lock.holds > 0 then put(lock, 'holds', joinable and waiter.holds) end
  lock.owner, lock.fence, lock.top = waiter.owner, fence, run_end(fence, waiter.block, us)
  lock.ends = ms(us) + math.min(waiter.ttl, PROVISIONAL_MS)
  lock.holds = holds
  put(lock, 'owner', lock.owner)
  put(lock, 'until', digits(lock.ends))
  put(lock, 'fence', digits(fence))
  put(lock, 'channel', waiter.channel)
  if waiter.owner ~= lock.caller and waiter.channel ~= '' then lock.tell = waiter.channel end
end

-- The lock is nobody's any more: it goes to the first in line that is reachable. If one call does
-- not find one, the lock stays ended, with a shorter line, and with the whole line as long as the
-- server's memory is too young for its guard. `used` is the last token of a run that
-- its owner used; if it does not say, one for each microsecond, or all if the clock was set back.
local function pass_on(key, lock, us, used)
  lock.tell = nil
  if not used and us >= seen and us >= lock.fence then used = us end
  lock.top = math.max(lock.fence, math.min(lock.top, used or lock.top))
  local held = us - lock.fence
  if held > 0 and lock.ends > 0 then
    lock.turn = lock.turn == 0 and held or math.floor((7 * lock.turn + held) / 8)
  end
  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0
  while lock.closed == 0 and has_line(lock) and lock.steps < STEPS do
    local waiter, behind = look(key, lock, lock.head)
    put(lock, place(lock.head), false)
    if behind > lock.head + 1 then put(lock, place(behind - 1), false) end
    lock.head, lock.steps = behind, lock.steps + 1
    if waiter then
      put(lock, 'at:' .. waiter.owner, false)
      lock.count = math.max(0, lock.count - 1)
      local holds = reachable(lock, waiter, us) and scan_holds(waiter.holds)
      if holds then return give(lock, waiter, holds, us) end
    end
  end
  note(lock.top, us)
  lock.gone = not has_line(lock)
  if lock.holds > 0 then put(lock, 'holds', false) end
  put(lock, 'until', '0')
  lock.ends, lock.holds = 0, 0
end

-- Writes the lock, then tells who got it. An error of SPUBLISH (a channel of another slot, or one
-- that this caller may not use) told nobody: the lock goes on. An answer, even 0, told somebody.
local function commit(key, lock, us)
  save(key, lock, us)
  while lock.tell do
    local message = format('%d %d %d ', lock.fence, lock.ends, lock.top - lock.fence + 1)
    local told = try('SPUBLISH', lock.tell, message .. lock.owner)
    if type(told) == 'number' then return end
    pass_on(key, lock, us)
    save(key, lock, us)
  end
end

-- A lease that has ended is passed on before anything else. Returns nil if the lock is free.
local function settle(key, lock, us)
  if not lock or lock.foreign or ms(us) <= lock.ends then return lock end
  pass_on(key, lock, us)
  if not lock.gone then return lock end
  save(key, lock, us)
end

local function held_by(lock, owner)
  return lock and not lock.foreign and lock.ends > 0 and lock.owner == owner
end

-- Gives back a hold, and with the last one the lock. Returns how many are left, nil if it was
-- not there.
local function give_back(key, lock, us, hold, used)
  local holds, left = '', 0
  if hold == ALL_HOLDS then
    left = 0
  elseif lock.holds > 0 then
    holds, left = remove_hold(read_holds(key, lock), hold)
    if not holds then return nil end
  elseif hold ~= '' then
    return nil
  end
  if left == 0 then
    pass_on(key, lock, us, used)
  else
    put(lock, 'holds', holds)
    lock.holds = left
  end
  return left
end

-- No call ends a joinable lock's lease earlier than one of its holds was promised. That is also so
-- for the only hold: the call may be a late one of a hold that was given back.
local function prolong(lock, us, ttl)
  local ends = ms(us) + ttl
  if lock.holds == 0 or ends > lock.ends then lock.ends = ends end
  put(lock, 'until', digits(lock.ends))
end

local function yours(lock, ttl)
  return { 1, lock.fence, ttl, math.max(1, lock.holds), lock.top - lock.fence + 1 }
end

local function busy(lock, us)
  if not lock then return { 0, 0, '', 0 } end
  if lock.foreign then return { 0, lock.pttl, lock.owner, 0 } end
  if lock.ends == 0 then return { 0, lock.closed, '', lock.count } end
  return { 0, lock.ends - ms(us), lock.owner, lock.count }
end

-- The lock is free: write the owner.
local function take(key, us, owner, ttl, block, hold, channel, guard, closed)
  if closed > 0 then return { 0, closed, '', 0 } end
  local fence, ends = next_fence(us, 0), ms(us) + ttl
  local top, token, time = run_end(fence, block, us), digits(fence), digits(ends)
  local suffix = guard_text(guard)
  if hold ~= '' then
    call('HSET', key, 'owner', owner, 'until', time, 'fence', token, 'channel', channel,
      'state', format('0 0 0 0 %d 1', top) .. suffix, 'holds', netstring(hold))
  elseif top > fence or guard > 0 then
    call('HSET', key, 'owner', owner, 'until', time, 'fence', token, 'channel', channel,
      'state', format('0 0 0 0 %d 0', top) .. suffix)
  elseif channel ~= '' then
    call('HSET', key, 'owner', owner, 'until', time, 'fence', token, 'channel', channel)
  else
    call('HSET', key, 'owner', owner, 'until', time, 'fence', token)
  end
  local set = try('PEXPIREAT', key, digits(ends + 1))
  if set ~= 1 then -- an ACL may forbid it, and nothing is undone: no key may stay without a TTL
    if type(try('DEL', key)) ~= 'number' then
      try('HDEL', key, 'owner', 'until', 'fence', 'channel', 'holds', 'state')
    end
    error(type(set) == 'table' and set.err or 'PEXPIREAT failed', 0)
  end
  return { 1, fence, ttl, 1, top - fence + 1 }
end

-- The caller holds the lock already: a repeat, or one more hold. It writes, so that a WAIT after
-- it covers it. One more hold is a grant: its owner may have given the lock back before a failover,
-- and this server not know.
local function hold_on(key, lock, us, ttl, block, hold, channel, guard)
  local joinable = lock.holds > 0
  if joinable ~= (hold ~= '') then join_error(joinable) end
  keep_to(lock, guard, ttl)
  if joinable then
    local holds, n = add_hold(read_holds(key, lock), hold)
    if n ~= lock.holds then
      local closed = too_young(lock.guard, us)
      if closed > 0 then return { 0, closed, lock.owner, lock.count } end
      put(lock, 'holds', holds)
    end
    lock.holds = n
  end
  prolong(lock, us, ttl)
  if lock.fence <= us then lock.top = math.max(lock.top, lock.fence + block - 1) end
  if channel ~= '' then put(lock, 'channel', channel) end
  commit(key, lock, us)
  return yours(lock, ttl)
end

-- Starts the lease anew, if the owner has the lock: with fence, that token; with hold, that hold.
-- With raised, the token becomes that, if it is lower.
local function renew(key, owner, ttl, channel, fence, hold, raised)
  local lock, us = read(key, owner), clock()
  if raised and raised > us + AHEAD_US then
    fail('HFARG raised must be no more than 60 s ahead of the clock of this server')
  end
  lock = settle(key, lock, us)
  -- A memory that has forgotten the lock begins here: its vote counts again when that is old enough.
  if raised and not held_by(lock, owner) then age(us) end
  if not lock or lock.foreign then return busy(lock, us) end
  local mine = held_by(lock, owner) and (not fence or fence == lock.fence)
  if mine and hold then mine = lock.holds > 0 and has_hold(read_holds(key, lock), hold) end
  if mine then
    keep_to(lock, 0, ttl)
    too_young(lock.guard, us)
    prolong(lock, us, ttl)
    if channel then put(lock, 'channel', channel) end
    if raised and raised > lock.fence then
      lock.fence, lock.top = raised, math.max(raised, lock.top)
      put(lock, 'fence', digits(raised))
    end
    if raised then note(lock.top, us) end
  end
  commit(key, lock, us)
  if not mine then return busy(lock, us) end
  call('HLEN', key) -- a read after the writes: client tracking covers the key from here on
  return yours(lock, ttl)
end

local function acquire(key, owner, ttl, block, hold, guard)
  local none, us = try('HLEN', key) == 0, clock()
  local closed = too_young(guard, us)
  local lock = not none and settle(key, read(key, owner), us)
  if not lock then return take(key, us, owner, ttl, block, hold, '', guard, closed) end
  if held_by(lock, owner) then return hold_on(key, lock, us, ttl, block, hold, '', guard) end
  if not lock.foreign then commit(key, lock, us) end
  return busy(lock, us)
end

-- Whether a plain lock is the caller's already, or nobody's, so that it can be taken. Nothing that
-- could still refuse it is left for later. Returns the lock, and the reply if it is another's.
local function available(key, lock, us, owner, ttl, guard, closed)
  lock = settle(key, lock, us)
  if not lock then return nil, closed > 0 and { 0, closed, '', 0 } end
  if held_by(lock, owner) then
    if lock.holds > 0 then join_error(true) end
    keep_to(lock, guard, ttl)
    return lock
  end
  if not lock.foreign then commit(key, lock, us) end
  return lock, busy(lock, us)
end

-- Puts the caller into the line, or keeps it there: its last call counts. Returns its position.
local function queue(key, lock, us, w, hold, max_wait)
  local old, n = find(key, lock)
  if old then
    if (old.holds ~= '') ~= (hold ~= '') then join_error(old.holds ~= '') end
    if hold ~= '' then w.holds = add_hold(old.holds, hold) end
    put(lock, place(n), pack_waiter(w))
    return position(key, lock, n)
  end
  sweep(key, lock, us)
  local turn = lock.closed * 1000 + lock.turn * (lock.count + 1)
  if max_wait and turn > max_wait * 1000 then return -(lock.count + 1) end
  if lock.count >= MAX_WAITERS or lock.tail >= MAX_PLACE then
    fail('HFFULL the line has ' .. MAX_WAITERS .. ' waiters, no more are possible')
  end
  if not has_line(lock) then lock.head, lock.tail, lock.count = 0, 0, 0 end
  if hold ~= '' then w.holds = netstring(hold) end
  put(lock, place(lock.tail), pack_waiter(w))
  put(lock, 'at:' .. w.owner, digits(lock.tail))
  lock.tail, lock.count = lock.tail + 1, lock.count + 1
  return lock.count
end

-- Takes the caller's hold id out of its entry in the line, and with the last one the entry.
local function unqueue(key, lock, hold)
  local waiter, n = find(key, lock)
  if not waiter or (waiter.holds ~= '') ~= (hold ~= '') then return false end
  if hold ~= '' then
    local holds, left = remove_hold(waiter.holds, hold)
    if not holds then return false end
    if left > 0 then
      waiter.holds = holds
      put(lock, place(n), pack_waiter(waiter))
      return true
    end
  end
  unlink(key, lock, n, waiter.owner)
  return true
end

---- the functions --------------------------------------------------------------------------------

-- holdfast_acquire
-- Takes the lock if it is free. Never waits, never overtakes the line.
-- KEYS    lock
-- ARGV    owner, ttl_ms [, fence_block [, guard_ms]]
-- Reply   1, fence, ttl_ms, holds, fence_block | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFJOIN HFTYPE HFSERVER
-- Repeat  safe: the same owner gets the same fence again and the lease starts anew
local function holdfast_acquire(keys, args)
  local key = only_key(keys)
  arity(args, 2, 4, 'owner, ttl_ms [, fence_block [, guard_ms]]')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  return acquire(key, owner, ttl, block_arg(args[3], ttl), '', guard_arg(args[4], ttl))
end

-- holdfast_acquire_reentrant
-- Takes the lock as a joinable one, or adds a hold to the one that this owner has. The lock is
-- free when every hold is released.
-- KEYS    lock
-- ARGV    owner, ttl_ms, hold [, guard_ms]
-- Reply   1, fence, ttl_ms, holds, fence_block | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFFULL HFJOIN HFTYPE HFSERVER
-- Repeat  safe: holds are a set of ids, the same id counts once
local function holdfast_acquire_reentrant(keys, args)
  local key = only_key(keys)
  arity(args, 3, 4, 'owner, ttl_ms, hold [, guard_ms]')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  return acquire(key, owner, ttl, 1, hold_arg(args[3], 1), guard_arg(args[4], ttl))
end

-- holdfast_acquire_all
-- Takes several plain locks in one step, if all of them are free, or none of them. Never waits, never
-- overtakes a line. Each has an owner, a lease and a token of its own. In Cluster the keys must be in
-- one hash slot.
-- KEYS    lock [lock ...]
-- ARGV    ttl_ms, guard_ms, owner [owner ...]
-- Reply   1, ttl_ms, fence [fence ...] | 0, pttl_ms, owner, waiters, number
-- Errors  HFARG HFJOIN HFTYPE HFSERVER
-- Repeat  safe: the same owners get the same fences again and the leases start anew
local function holdfast_acquire_all(keys, args)
  several_keys(keys)
  arity(args, 3, 102, 'ttl_ms, guard_ms, owner [owner ...]')
  if #args ~= #keys + 2 then fail('HFARG owner is needed for each of the keys') end
  local ttl = ttl_arg(args[1])
  local guard = args[2] ~= '' and guard_arg(args[2], ttl) or 0
  for n = 1, #keys do owner_arg(args[n + 2]) end
  local us = clock()
  local closed, locks, reply, steps = too_young(guard, us), {}, { 1, ttl }, 0
  for n, key in ipairs(keys) do
    local found = read(key, args[n + 2])
    if found then found.steps = steps end -- all lines together are passed over no further than one
    local lock, refusal = available(key, found, us, args[n + 2], ttl, guard, closed)
    if found then steps = found.steps end
    if refusal then
      refusal[5] = n
      return refusal
    end
    locks[n] = lock or false
  end
  for n, key in ipairs(keys) do
    local got = locks[n] and hold_on(key, locks[n], us, ttl, 1, '', '', guard)
      or take(key, us, args[n + 2], ttl, 1, '', '', guard, 0)
    reply[n + 2] = got[2]
  end
  return reply
end

-- holdfast_renew
-- Starts the lease anew, and confirms a lock that was handed over. Never revives an ended lease.
-- With fence, only the lock with that token is renewed, not a later one of the same owner. With hold,
-- only a joinable lock that has it.
-- KEYS    lock
-- ARGV    owner, ttl_ms [, channel [, fence [, hold]]]
-- Reply   1, fence, ttl_ms, holds, fence_block | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: it only starts the lease anew
local function holdfast_renew(keys, args)
  local key = only_key(keys)
  arity(args, 2, 5, 'owner, ttl_ms [, channel [, fence [, hold]]]')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  local channel = args[3] and channel_arg(args[3])
  local fence = args[4] and integer_arg(args[4], 'fence', MAX_FENCE)
  local hold = args[5] and hold_arg(args[5], 1)
  return renew(key, owner, ttl, channel, fence, hold)
end

-- holdfast_raise
-- A renewal for a lock that is held on several servers at once: it also makes the token raised, if
-- it is lower. The tokens that this server gives out later are then above it, although another
-- server gave it.
-- KEYS    lock
-- ARGV    owner, ttl_ms, raised [, channel]
-- Reply   1, fence, ttl_ms, holds, fence_block | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: a token is never lowered
local function holdfast_raise(keys, args)
  local key = only_key(keys)
  arity(args, 3, 4, 'owner, ttl_ms, raised [, channel]')
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  local raised = integer_arg(args[3], 'raised', MAX_FENCE)
  local channel = args[4] and channel_arg(args[4])
  return renew(key, owner, ttl, channel, nil, nil, raised)
end

-- holdfast_release
-- Gives back one hold of a joinable lock ('*': all of them), or a plain lock (no hold, or ''). The
-- last one frees the lock, or hands it to the next in line. With last_fence, the last token that was
-- used of a reserved run, the next holder's token is above that one, not above the whole run.
-- KEYS    lock
-- ARGV    owner [, hold [, last_fence]]
-- Reply   1, 0 | 1, holds | 0, pttl_ms, owner, waiters
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: the second reply says 'not yours' or, with other holds left, how many
local function holdfast_release(keys, args)
  local key = only_key(keys)
  arity(args, 1, 3, 'owner [, hold [, last_fence]]')
  local owner, hold = args[1], args[2] or ''
  local used = args[3] and integer_arg(args[3], 'last_fence', MAX_FENCE)
  local v = try('HMGET', key, 'owner', 'until', 'fence', 'state')
  -- The common case: nothing but an owner and a lease. Without a line the key ends with the lease,
  -- so there is no need to ask the time.
  if v[1] == owner and hold == '' and not v[4] then
    local fence = number(v[3], MAX_TOKEN)
    if fence and v[2] then
      call('DEL', key)
      if fence > last then note(fence, clock()) end
      return { 1, 0 }
    end
  end
  owner_arg(owner)
  if hold ~= ALL_HOLDS then hold_arg(hold, 0) end
  local lock = parse(key, v, owner)
  if not lock or lock.foreign then return busy(lock) end
  local us = clock()
  lock = settle(key, lock, us)
  if not lock then return busy(lock) end
  local mine, left = held_by(lock, owner), nil
  if mine then left = give_back(key, lock, us, hold, used) end
  commit(key, lock, us)
  if not mine then return busy(lock, us) end
  return { 1, left or math.max(1, lock.holds) }
end

-- holdfast_wait
-- Takes the lock, or joins the line for it. Asked again, it says how the line stands. The lock is
-- handed to the first in line by writing it in as the owner and publishing
-- 'fence until_ms fence_block owner' on its channel ('': none, the waiter polls by asking again).
-- With max_wait_ms, nobody joins whose turn is expected later than that: position is then what it
-- would have been, negative. With hold, the lock is joinable.
-- KEYS    lock
-- ARGV    owner, ttl_ms, channel [, fence_block [, max_wait_ms [, hold [, guard_ms]]]]
-- Reply   1, fence, ttl_ms, holds, fence_block | 0, pttl_ms, owner, position, server_ms, fence, subscribers
-- Errors  HFARG HFFULL HFJOIN HFTYPE HFSERVER
-- Repeat  safe: one place in the line per owner; the owner of the lock gets the same fence again, for a whole lease
local function holdfast_wait(keys, args)
  local key = only_key(keys)
  arity(args, 3, 7, 'owner, ttl_ms, channel [, fence_block [, max_wait_ms [, hold [, guard_ms]]]]')
  local owner, ttl, channel = owner_arg(args[1]), ttl_arg(args[2]), channel_arg(args[3])
  local block = block_arg(args[4], ttl)
  local max_wait = args[5] and integer_arg(args[5], 'max_wait_ms', MAX_TTL_MS)
  local hold, guard = args[6] and hold_arg(args[6], 0) or '', guard_arg(args[7], ttl)
  local lock, us = read_place(key, owner), clock()
  local closed, reply = too_young(guard, us), nil
  lock = settle(key, lock, us)
  if not lock then
    reply = take(key, us, owner, ttl, block, hold, channel, guard, closed)
  elseif held_by(lock, owner) then
    reply = hold_on(key, lock, us, ttl, block, hold, channel, guard)
  end
  if reply and reply[1] == 1 then return reply end
  local here = subscribers(channel)
  if reply then
    local late = max_wait and reply[2] > max_wait
    return { 0, reply[2], reply[3], late and -1 or 0, ms(us), 0, here }
  end
  if lock.foreign then return { 0, lock.pttl, lock.owner, 0, ms(us), 0, here } end
  keep_to(lock, guard, ttl)
  local w = { owner = owner, ttl = ttl, block = block, channel = channel, holds = '' }
  w.asked = ms(us)
  local at = queue(key, lock, us, w, hold, max_wait)
  commit(key, lock, us)
  reply = busy(lock, us)
  return { 0, reply[2], reply[3], at, ms(us), lock.fence, here }
end

-- holdfast_leave
-- Gives up waiting. If the lock was handed over meanwhile (the messages crossed), it is given back
-- and goes to the next in line; with fence only if its token is that one, and then the reply is of that.
-- KEYS    lock
-- ARGV    owner [, hold [, fence]]
-- Reply   1 | 0
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: the second reply is 0
local function holdfast_leave(keys, args)
  local key = only_key(keys)
  arity(args, 1, 3, 'owner [, hold [, fence]]')
  local owner = owner_arg(args[1])
  local hold = args[2] and hold_arg(args[2], 0) or ''
  local fence = args[3] and integer_arg(args[3], 'fence', MAX_FENCE)
  local lock = read_place(key, owner)
  if not lock or lock.foreign then return { 0 } end
  local us = clock()
  -- Who names a token asks what became of that: a place in line is not it.
  local left = unqueue(key, lock, hold) and not fence
  lock = settle(key, lock, us)
  if held_by(lock, owner) and (not fence or lock.fence == fence) then
    left = give_back(key, lock, us, hold) ~= nil or left
  end
  if lock then commit(key, lock, us) end
  return { left and 1 or 0 }
end

-- holdfast_break
-- Takes the lock from its holder, for operators. It goes to the next in line. The holder is told,
-- if it left a channel: 'broken fence owner_bytes owner reason' (owner_bytes: the length of owner).
-- KEYS    lock
-- ARGV    [reason]
-- Reply   1, owner, fence | 0, '', 0
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  not safe: it breaks the next holder's lock
local function holdfast_break(keys, args)
  local key = only_key(keys)
  arity(args, 0, 1, '[reason]')
  local reason = text_arg(args[1] or '', 'reason', 0, MAX_BYTES)
  local lock = read(key)
  if not lock then return { 0, '', 0 } end
  if lock.foreign then
    call('DEL', key)
    return { 1, lock.owner, 0 }
  end
  local us = clock()
  local owner, fence, held = lock.owner, lock.fence, ms(us) <= lock.ends
  local channel = held and call('HGET', key, 'channel')
  pass_on(key, lock, us)
  commit(key, lock, us)
  if not held then return { 0, '', 0 } end
  if channel and channel ~= '' and #channel <= MAX_BYTES then
    try('SPUBLISH', channel, format('broken %d %d ', fence, #owner) .. owner .. ' ' .. reason)
  end
  return { 1, owner, fence }
end

-- holdfast_inspect
-- Says who holds the lock and how many wait. Changes nothing. fence is 0 for a plain string of
-- another service.
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
  return { 1, lock.owner, math.max(1, lock.holds), lock.fence, left, lock.count }
end

-- holdfast_memory
-- Since when this server remembers, for those that load the library: FUNCTION LOAD REPLACE makes it
-- forget. With what it said before that, it remembers again, if it is the same process with the
-- same replication id. Only who may load the library may say that.
-- KEYS    -
-- ARGV    [run_id, replid, since_us]
-- Reply   run_id, replid, since_us
-- Errors  HFARG HFSERVER
-- Repeat  safe
local function holdfast_memory(keys, args)
  if #keys > 1 then fail('HFARG at most one key is possible, to choose the node') end
  arity(args, 0, 3, '[run_id, replid, since_us]')
  local run, id, since = args[1], args[2], args[3]
  if run then since = integer_arg(since or '', 'since_us', MAX_FENCE) end
  if since and not redis.acl_check_cmd('FUNCTION', 'LOAD', '') then
    fail('HFARG since_us is only for those who may use FUNCTION LOAD')
  end
  age(clock())
  local process = call('INFO', 'server'):match('\nrun_id:(%x+)')
  if since and run == process and id == history then born = math.min(born, since) end
  return { process, history, digits(born) }
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
  redis.register_function{ function_name = name, callback = shield(body), flags = { ... } }
end

register('holdfast_acquire', holdfast_acquire)
register('holdfast_acquire_reentrant', holdfast_acquire_reentrant)
register('holdfast_renew', holdfast_renew, 'allow-oom')
register('holdfast_raise', holdfast_raise, 'allow-oom')
register('holdfast_release', holdfast_release, 'allow-oom')
register('holdfast_wait', holdfast_wait)
register('holdfast_leave', holdfast_leave, 'allow-oom')
register('holdfast_break', holdfast_break, 'allow-oom')
register('holdfast_inspect', holdfast_inspect, 'no-writes')
register('holdfast_acquire_all', holdfast_acquire_all)
register('holdfast_memory', holdfast_memory, 'allow-oom')
register('holdfast_version', holdfast_version, 'no-writes')
