#!lua name=holdfast
-- SPDX-License-Identifier: Apache-2.0
-- Holdfast: a distributed lock as one Redis Functions library. The contract is README.md.
--
-- One hash per lock is everything there is, so DEL, eviction and expiry take all of it or nothing:
--   owner, until, fence   who has the lock, the millisecond in which the lease is over (0: nobody
--                         has it), the fencing token
--   channel               where the holder waited, and is told to look (absent: nowhere)
--   state                 packed: the line, and what a plain lock has not (see LINE and MORE).
--                         Absent for a plain lock without a line: the common case reads little
--   holds                 the ids of a joinable lock's holds, as netstrings
--   w:<n>, at:<owner>     the waiter at place n of the line, and an owner's place
--   crowd, h:<n>          in place of an owner: which slots limited or shared holders have, and the
--                         holder of slot n (at:<owner> is its slot)
--   value                 what the last holder left for all while the minimum lasts: its token, a
--                         blank, bytes
--
-- The common calls are eight plain cases, each a function that goes straight down: plain_take,
-- plain_busy, plain_renew, plain_renew_line, plain_release, plain_hand_over, plain_join, plain_ask.
-- They come first, and give up (nil) on whatever is unusual before they write anything. All else
-- goes the long way: read the lock, change it in memory, write it once, set the expiry as the last
-- write, and publish last of all.
--
-- Whoever may write the key may write anything into it. So each field is checked when it is read,
-- and no loop depends on what it says.

local VERSION = '2.0.0'

local PROVISIONAL_MS = 2000       -- a lock handed over must be confirmed within this
local LINE_MS = 60000             -- how long the line outlives the lease when nobody calls
local SLACK_MS = 20000            -- by so much that may be off before it is written again
local POLL_MS = 5000              -- a waiter that cannot be told and has not asked for this is gone
local LONG_TURN_US = 1000000      -- in turns that take that long waiters ask seldom
local RECORD_MIN_MS = 10000       -- how long the record of a break stays: until the end of the
local RECORD_MAX_MS = 600000      -- broken lease, but no shorter and no longer than this
local MAX_TTL_MS = 31536000000    -- a year
local MAX_BYTES = 512             -- owner, channel, reason
local MAX_HOLD_BYTES = 64
local MAX_HOLDS = 128
local MAX_HOLDS_BYTES = MAX_HOLDS * (MAX_HOLD_BYTES + 3)
local MAX_TOKENS = 1000000        -- of a run
local MAX_WAITERS = 5000
local MAX_HOLDERS = 1000          -- of a limited or a shared lock
local SHARED = MAX_HOLDERS + 1    -- the limit of who shares
local MAX_VALUE = 65536
local ALL = '\0'                  -- no owner: all holders were broken
local STEPS = 100                 -- places of the line that one call passes over
local SWEEP = 3                   -- places at the head where a join looks for dead waiters
local AHEAD_US = 60000000         -- how far ahead of TIME a token may be that a key remembers
local MAX_FENCE = 2 ^ 53 - 1
local MAX_TOKEN = MAX_FENCE - 2 * MAX_TOKENS -- of a key: the next run must fit
local MAX_PLACE = 2 ^ 52
local MAX_MS = 10 ^ 14

-- Doubles: exact to 2^53 on every build, and quicker to pack than integers.
local LINE = '<dddddd'            -- head, tail, waiters, turn_us, top (the last token), expires
local LINE_BYTES = 48
local MORE = '<dddddddd'          -- holds, guard, kept (until when a minimum lasts), due (the same,
local MORE_BYTES = 64             -- until a grant is confirmed), longest (lease), broken (token),
                                  -- recorded (until), bytes of the reason; then reason, owner
local LINE_AND_MORE = LINE .. MORE:sub(2)
local ENTRY = '<ddddI2I2'         -- ttl, tokens (or less than 0: the limit), asked, minimum, bytes
local ENTRY_BYTES = 36            -- of holds and of the channel; then holds, channel, owner
local MAX_ENTRY = ENTRY_BYTES + MAX_HOLDS_BYTES + 2 * MAX_BYTES
local CROWD = '<ddd'              -- kind, when the first and the last slot can be free; then a
local CROWD_BYTES = 24            -- character for each slot: 1, it is taken
local SLOT = '<dddddI2'           -- until, fence, kept, due, longest, bytes of the channel; then
local SLOT_BYTES = 42             -- channel, owner

-- The last token that this server gave out, for all locks: with TIME a hybrid logical clock
-- (Kulkarni et al., OPODIS 2014). Memory only: a restart, a failover or FUNCTION LOAD REPLACE
-- starts it again from TIME. No key ever moves it.
local last = 0

-- These do not exist while a library loads. Looking them up at each call would cost as much as
-- checking its arguments.
local call, try, format, find, pack, unpack_, min, max

local function look_up()
  call, try, find, min, max = redis.call, redis.pcall, string.find, math.min, math.max
  format, pack, unpack_ = string.format, struct.pack, struct.unpack
  if format('%d', 2 ^ 53) == '9007199254740992' then return end
  format = function(form, ...) -- '%d' is a C long, of 32 bits on some builds
    return string.format((form:gsub('%%d', '%%.0f')), ...)
  end
end

---- errors and arguments -------------------------------------------------------------------------

local function fail(problem)
  error({ holdfast = problem }, 0)
end

local function text_arg(value, name, least, most)
  if #value < least or #value > most then
    fail('HFARG ' .. name .. ' must have ' .. least .. ' to ' .. most .. ' bytes')
  end
  if not find(value, '^%C*$') then fail('HFARG ' .. name .. ' must not contain control characters') end
  return value
end

local function integer_arg(value, name, most)
  local n = #value <= 16 and find(value, '^[1-9]%d*$') and tonumber(value)
  if not n or n > most then fail(format('HFARG %s must be an integer from 1 to %d', name, most)) end
  return n
end

local function expect(right, usage)
  if not right then fail('HFARG wrong number of arguments, expected: ' .. usage) end
end

local function owner_arg(value) return text_arg(value, 'owner', 1, MAX_BYTES) end

-- Leases and guards come in few lengths: 1000 of up to seven digits are checked once, and then others.
-- The plain cases know no others.
local known_ttl, ttls = {}, 0
local function ttl_arg(value, name)
  local ttl = known_ttl[value]
  if not ttl then
    ttl = integer_arg(value, name or 'ttl_ms', MAX_TTL_MS)
    if ttls == 1000 then known_ttl, ttls = {}, 0 end
    if #value <= 7 then known_ttl[value], ttls = ttl, ttls + 1 end
  end
  return ttl
end

-- Others publish there on the caller's behalf, so the caller must be allowed to do it itself.
local function channel_arg(value)
  text_arg(value, 'CHANNEL', 1, MAX_BYTES)
  if not redis.acl_check_cmd('SPUBLISH', value, '') then
    fail('HFARG CHANNEL must be one that the caller may publish to with SPUBLISH')
  end
  return value
end

---- options: words behind the fixed arguments ----------------------------------------------------

-- What the value of a word is: an integer from 1 to a bound, a text of so many bytes, or something
-- that is checked by a function. true: the word has no value.
local OPTIONS = {
  TOKENS = MAX_TOKENS, GUARD = ttl_arg, MINHOLD = MAX_TTL_MS, MAXWAIT = MAX_TTL_MS,
  FENCE = MAX_FENCE, RAISE = MAX_FENCE, LAST = MAX_FENCE, LIMIT = MAX_HOLDERS, SHARED = true,
  HOLD = { 1, MAX_HOLD_BYTES }, OWNER = { 1, MAX_BYTES }, REASON = { 0, MAX_BYTES },
  CHANNEL = channel_arg, ALL = true, FORGET = true, VALUE = true,
}

local function option(word, is, value)
  if not value then fail('HFARG ' .. word .. ' needs a value') end
  if type(is) == 'number' then return integer_arg(value, word, is) end
  if type(is) == 'table' then return text_arg(value, word, is[1], is[2]) end
  return is(value, word)
end

-- How a function is called: some fixed arguments, then the words that its usage has in capitals.
local function form(fixed, usage)
  local known = { fixed = fixed, usage = usage }
  for word in usage:gmatch('%u+') do known[word] = true end
  return known
end

-- What a call asks for, by word: one table for all calls, because each has ended before the next
-- begins.
local ask, asked = {}, {}

-- Reads the words from args into `ask`. No table is made.
local function options(args, expected)
  for n = #asked, 1, -1 do ask[asked[n]], asked[n] = nil, nil end
  expect(#args >= expected.fixed, expected.usage)
  local at = expected.fixed + 1
  while at <= #args do
    local word = args[at]
    if not expected[word] then word = word:upper() end
    local is = expected[word] and OPTIONS[word]
    if not is then
      if #word > 16 or not find(word, '^%w+$') then word = 'argument ' .. at end
      fail('HFOPTION ' .. word .. ' is not known, expected: ' .. expected.usage)
    end
    if ask[word] then fail('HFARG ' .. word .. ' must be given only once') end
    asked[#asked + 1] = word
    ask[word] = is == true or option(word, is, args[at + 1])
    at = at + (is == true and 1 or 2)
  end
  return ask
end

local function exclude(one, ...)
  for _, other in ipairs(ask[one] and { ... } or {}) do
    if ask[other] then fail('HFARG ' .. one .. ' is of no use with ' .. other) end
  end
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

-- Numbers are given to calls as text: redis.call formats them as floating point, which costs three
-- times as much.
local function digits(n) return format('%d', n) end

-- The number that a field says, or nil. tonumber alone accepts 'inf', '0x10' and '1e18' too.
local function number(value, most)
  local n = value and #value <= 16 and find(value, '^%d+$') and tonumber(value)
  if n and n <= most then return n end
end

-- The next token: above all that this server gave out, and above this lock's own. What was used of
-- a run is not above the clock, unless that was set back: then it is above the end of any run. A
-- token that a key says is that key's affair: it does not move `last`.
local function next_fence(us, above)
  if us < seen and last < seen + MAX_TOKENS then last = seen + MAX_TOKENS end
  last = us > last and us or last + 1
  return last > above and last or above + 1
end

-- A run is one token per microsecond from now on. So none of it is used before the clock is there,
-- and the next token is higher even where nothing remembers the run.
local function run_end(fence, tokens, us)
  return fence == us and fence + tokens - 1 or fence
end

---- guard: how long this server remembers -------------------------------------------------------

-- A failover or a restart loses locks, but not the leases that their holders count on. So a guarded
-- lock is granted only by a server whose memory is older than any lease can be: what it does not
-- know of by then has ended. A memory begins with these locals (a restart, a full
-- resynchronisation, FUNCTION LOAD) and with a replication id that is new to them (a promotion).
local born, history, looked = 0, '', 0

local function age(us)
  if us >= looked and us - looked < 10000 then return us - born end -- too soon for two changes
  local info = call('INFO', 'replication') -- some words in its lines are the choice of replicas
  if not info:find('\nrole:master', 1, true) then return 0 end -- a replica that may be written to
  local id = info:match('\nmaster_replid:(%x+)')
  if id ~= history or us < born then born, history = us, id end
  looked = us
  return us - born
end

-- For how many milliseconds yet nobody may be granted a lock with this guard. To ask lets the
-- memory begin: the sooner it does, the sooner it is old enough.
local function too_young(guard, us)
  if guard == 0 then return 0 end
  return max(0, guard - ms(age(us)))
end

-- A guarded lock keeps the longest guard and the longest lease that anybody asked for. So nobody's
-- call fails because of what another one asked.
local function longest_guard(lock, guard, ttl)
  guard = max(lock.guard, guard)
  return guard > 0 and max(guard, ttl) or 0
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

local function not_a_lock() fail('HFTYPE the key holds a hash that is not a lock') end

-- Returns the set with an id, and how many it has.
local function add_hold(holds, id)
  local n, from = scan_holds(holds, id)
  if not n then not_a_lock() end
  if from then return holds, n end
  if n >= MAX_HOLDS then fail('HFFULL the lock has ' .. MAX_HOLDS .. ' holds, no more are possible') end
  return holds .. netstring(id), n + 1
end

-- Returns the set without an id, and how many it has; nil if the id was not there.
local function remove_hold(holds, id)
  local n, from, to = scan_holds(holds, id)
  if not n then not_a_lock() end
  if from then return holds:sub(1, from - 1) .. holds:sub(to + 1), n - 1 end
end

local JOINABLE = { [true] = 'with a HOLD', [false] = 'without a HOLD' }

local function join_error(has, how)
  fail('HFJOIN this owner ' .. has .. ' the lock ' .. how .. ', not as it asks here')
end

---- reading a lock -------------------------------------------------------------------------------

-- What a lock is where its key says nothing else.
local PLAIN = { __index = { owner = '', ends = 0, fence = 0, head = 0, tail = 0, count = 0,
  turn = 0, top = 0, expires = 0, holds = 0, guard = 0, kept = 0, due = 0, longest = MAX_TTL_MS,
  broken = 0, recorded = 0, reason = '', victim = '', closed = 0, steps = 0,
  kind = 0, first = 0, final = 0, slots = '', taken = 0 } }

-- How many may have a lock at once: one, or several, who are all of one kind.
local KINDS = { [0] = 'exclusive', 'limited', 'shared' }

-- A plain SET by another service is a lock too: held by its value until its TTL ends.
local function read_foreign(key, problem)
  if not find(problem, '^WRONGTYPE') then error(problem, 0) end
  if call('TYPE', key).ok ~= 'string' then fail('HFTYPE the key holds something that is not a lock') end
  local owner = call('GETRANGE', key, 0, MAX_BYTES - 1)
  return setmetatable({ key = key, foreign = true, owner = owner, pttl = call('PTTL', key) }, PLAIN)
end

local function has_line(lock) return lock.head < lock.tail end

local function parse_state(lock, state)
  if #state < LINE_BYTES or #state > LINE_BYTES + MORE_BYTES + 2 * MAX_BYTES then not_a_lock() end
  local head, tail, count, turn, top, expires = unpack_(LINE, state)
  if not (head >= 0 and head <= tail and tail <= MAX_PLACE and count >= 0 and turn >= 0
    and turn <= MAX_FENCE and top >= lock.fence and top <= MAX_TOKEN and top % 1 == 0
    and expires >= 0 and expires <= MAX_MS) then
    not_a_lock()
  end
  lock.head, lock.tail, lock.count = head, tail, min(count, tail - head)
  lock.turn, lock.top, lock.expires = turn, top, expires
  if #state < LINE_BYTES + MORE_BYTES then return end
  local holds, guard, kept, due, longest, broken, recorded, bytes = unpack_(MORE, state, LINE_BYTES + 1)
  if not (holds >= 0 and holds <= MAX_HOLDS and guard >= 0 and guard <= MAX_TTL_MS and kept >= 0
    and kept <= MAX_MS and due >= 0 and due <= MAX_MS and longest >= 1 and longest <= MAX_TTL_MS
    and recorded >= 0 and recorded <= MAX_MS and bytes >= 0 and bytes <= MAX_BYTES) then
    not_a_lock()
  end
  lock.holds, lock.guard, lock.kept, lock.due, lock.longest = holds, guard, kept, due, longest
  if recorded == 0 then return end
  local from = LINE_BYTES + MORE_BYTES + 1
  lock.broken, lock.recorded = broken, recorded
  lock.reason, lock.victim = state:sub(from, from + bytes - 1), state:sub(from + bytes)
end

local function parse_crowd(lock, crowd)
  if not crowd or #crowd < CROWD_BYTES or #crowd > CROWD_BYTES + MAX_HOLDERS then not_a_lock() end
  local kind, first, final = unpack_(CROWD, crowd)
  local slots = crowd:sub(CROWD_BYTES + 1)
  if not ((kind == 1 or kind == 2) and first >= 0 and first <= MAX_MS and final >= 0
    and final <= MAX_MS and lock.ends == 0 and find(slots, '^[01]*$')) then
    not_a_lock()
  end
  lock.kind, lock.first, lock.final, lock.slots = kind, first, final, slots
  lock.expires = final
  lock.taken = select(2, slots:gsub('1', ''))
end

-- What the fields of HMGET mean. There is always a lock to work on: an absent one is nobody's.
local function parse(key, v, caller)
  if v.err then return read_foreign(key, v.err) end
  local owner = v[1]
  if not owner and not v[2] and call('EXISTS', key) == 0 then
    return setmetatable({ key = key, caller = caller, absent = true }, PLAIN)
  end
  local ends, fence = number(v[2], MAX_MS), number(v[3], MAX_TOKEN)
  if not (ends and fence) or owner == '' or #(owner or '') > MAX_BYTES then not_a_lock() end
  local lock = setmetatable({ key = key, caller = caller, owner = owner or '', ends = ends,
    fence = fence, top = fence, expires = ends, stated = v[4], at = number(v[5], MAX_PLACE) }, PLAIN)
  if not owner then parse_crowd(lock, call('HGET', key, 'crowd')) end
  if v[4] then parse_state(lock, v[4]) end
  return lock
end

local function fields(key) return try('HMGET', key, 'owner', 'until', 'fence', 'state') end

-- Also where in the line the caller is.
local function fields_and_place(key, caller)
  return try('HMGET', key, 'owner', 'until', 'fence', 'state', 'at:' .. caller)
end

local function read(key) return parse(key, fields(key)) end

-- A field of the line as this call will leave it.
local function field(lock, name)
  local value = nil
  if lock.changes then value = lock.changes[name] end
  if value == nil then return call('HGET', lock.key, name) end
  return value
end

-- Changes a field of the line in memory. false: it will be gone.
local function put(lock, name, value)
  if not lock.changes then lock.changes = {} end
  lock.changes[name] = value
end

local function read_holds(lock)
  return lock.ids or call('HGET', lock.key, 'holds') or not_a_lock()
end

---- writing a lock -------------------------------------------------------------------------------

-- Until when the key must stay: for its holder, a crowd, a minimum, the record of a break, a token that
-- neither the clock nor this server's memory will be above, the line.
local function expiry(lock, us)
  local top, token = lock.top, 0
  if top > us and top > last and top <= us + AHEAD_US + MAX_TOKENS then token = ms(top) + 1 end
  local stays = max(lock.ends, lock.kept, lock.recorded, token, lock.taken > 0 and lock.final or 0)
  if has_line(lock) then return max(stays, ms(us)) + LINE_MS end
  return stays
end

-- Nothing keeps the lock any more, and the value that was kept with it is gone.
local function end_minimum(lock)
  if lock.kept > 0 then put(lock, 'value', false) end
  lock.kept = 0
end

local function state_text(lock, now)
  if lock.recorded <= now then lock.broken, lock.recorded, lock.reason, lock.victim = 0, 0, '', '' end
  if lock.kept <= now then end_minimum(lock) end
  if lock.due <= now then lock.due = 0 end
  local more = lock.holds + lock.guard + lock.kept + lock.due + lock.recorded > 0
  if not (more or has_line(lock) or lock.top > lock.fence) then return false end
  local head, tail, count, turn, top = lock.head, lock.tail, lock.count, lock.turn, lock.top
  if not more then return pack(LINE, head, tail, count, turn, top, lock.expires) end
  return pack(LINE_AND_MORE, head, tail, count, turn, top, lock.expires, lock.holds, lock.guard,
    lock.kept, lock.due, lock.longest, lock.broken, lock.recorded, #lock.reason)
    .. lock.reason .. lock.victim
end

-- Makes the key. Nothing else undoes it, and it must not stay without a TTL (an ACL may forbid
-- PEXPIREAT).
local function create(key, expires, ...)
  call('HSET', key, ...)
  local done = try('PEXPIREAT', key, expires)
  if done == 1 then return end
  if type(try('DEL', key)) ~= 'number' then
    for n = 1, select('#', ...), 2 do try('HDEL', key, (select(n, ...))) end
  end
  error(type(done) == 'table' and done.err or 'PEXPIREAT failed', 0)
end

-- Puts a field with a value into one list, and the name of one without into the other.
local function change(set, cut, name, value)
  if not value or value == '' then
    cut[#cut + 1] = name
  else
    local n = #set
    set[n + 1], set[n + 2] = name, value
  end
end

-- Writes all changes at once: owner, until and fence if `writes` is set; channel and the hold ids
-- ('' for none) if they are; the fields of the line. The expiry comes last, because it may delete
-- the key. `grants`: it is set in any case, because somebody else may have moved it.
local function save(lock, us, grants)
  local key, now = lock.key, ms(us)
  if not lock.writes and not lock.changes then return end
  local stays = expiry(lock, us)
  if lock.ends == 0 and stays <= now then
    call('DEL', key)
    lock.absent, lock.writes, lock.changes = true, nil, nil
    return
  end
  local slack = has_line(lock) and SLACK_MS or 0
  local moves = grants or math.abs(stays - lock.expires) > slack
  if moves then lock.expires = stays end
  local set, cut, state = {}, {}, state_text(lock, now)
  local changes = lock.changes
  if lock.writes then
    set = { 'until', digits(lock.ends), 'fence', digits(lock.fence) }
    if lock.owner ~= '' then change(set, cut, 'owner', lock.owner) end
  end
  if lock.channel then change(set, cut, 'channel', lock.channel) end
  if lock.ids then change(set, cut, 'holds', lock.ids) end
  if state or lock.stated then change(set, cut, 'state', state) end
  if changes then
    if lock.kind > 0 then changes.crowd = pack(CROWD, lock.kind, lock.first, lock.final) .. lock.slots end
    for name, value in pairs(changes) do change(set, cut, name, value) end
  end
  if lock.absent then
    create(key, digits(stays), unpack(set))
  else
    if #cut > 0 then call('HDEL', key, unpack(cut)) end
    if #set > 0 then call('HSET', key, unpack(set)) end
    if moves then call('PEXPIREAT', key, digits(stays)) end
  end
  lock.absent, lock.writes, lock.changes, lock.channel, lock.ids = nil, nil, nil, nil, nil
  lock.stated = state
end

---- the line: places that only grow --------------------------------------------------------------

-- Who leaves in the middle leaves a hole: a place without a field. Holes side by side are one run,
-- with '>last' at its first place and '<first' at its last, so that a run is one step.

local function place(n) return format('w:%d', n) end

local function pack_waiter(w)
  return pack(ENTRY, w.ttl, w.limit and -w.limit or w.tokens, w.asked, w.minimum, #w.holds,
    #w.channel) .. w.holds .. w.channel .. w.owner
end

local function kind_of(limit) return limit and (limit == SHARED and 2 or 1) or 0 end

local function unpack_waiter(entry)
  if #entry <= ENTRY_BYTES or #entry > MAX_ENTRY then return nil end
  local ttl, tokens, since, minimum, holds, channel, at = unpack_(ENTRY, entry)
  local owner = at + holds + channel -- from here on
  local limit = tokens < 0 and -tokens or nil
  if limit then tokens = limit <= SHARED and 1 or 0 end
  if not (ttl >= 1 and ttl <= MAX_TTL_MS and tokens >= 1 and tokens <= MAX_TOKENS and tokens % 1 == 0
    and since >= 0 and since <= MAX_MS and minimum >= 0 and minimum <= MAX_TTL_MS
    and channel <= MAX_BYTES and owner <= #entry and #entry - owner < MAX_BYTES) then
    return nil
  end
  return { ttl = ttl, tokens = tokens, limit = limit, asked = since, minimum = minimum,
    holds = entry:sub(at, at + holds - 1), channel = entry:sub(at + holds, owner - 1),
    owner = entry:sub(owner) }
end

-- Returns the waiter at a place, or nil for a hole, and the place behind it. Always further on.
local function look(lock, n)
  local entry = field(lock, place(n))
  local waiter = entry and unpack_waiter(entry)
  if waiter then return waiter, n + 1 end
  local to = entry and #entry < ENTRY_BYTES and number(entry:match('^>(%d+)$'), lock.tail - 1)
  return nil, to and to > n and to + 1 or n + 1
end

-- Returns the caller's own entry and its place, if it is in the line.
local function find_caller(lock)
  local n = lock.at
  if not n or n < lock.head or n >= lock.tail then return nil end
  local waiter = look(lock, n)
  if waiter and waiter.owner == lock.caller and scan_holds(waiter.holds) then return waiter, n end
end

-- Takes a waiter out of the line, wherever it is, and makes one run of the holes around it.
local function unlink(lock, n, owner)
  local first, past = n, n + 1
  if n > lock.head then
    local left = field(lock, place(n - 1))
    local from = left and #left < ENTRY_BYTES and number(left:match('^<(%d+)$'), n - 1)
    if not left then first = n - 1 elseif from and from >= lock.head then first = from end
  end
  if past < lock.tail then
    local right, behind = look(lock, past)
    if not right then past = behind end
  end
  for inner = max(first, n - 1), min(past - 1, n + 1) do put(lock, place(inner), false) end
  put(lock, place(first), false)
  put(lock, place(past - 1), false)
  put(lock, 'at:' .. owner, false)
  lock.count = max(0, lock.count - 1)
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
  return tonumber(try('PUBSUB', 'SHARDNUMSUB', channel)[2]) or 0
end

-- Reports whether a waiter would learn that the lock is its own: it asks just now, it polls, or it
-- can be told.
local function reachable(lock, waiter, us)
  if waiter.owner == lock.caller then return true end
  if waiter.channel == '' then return ms(us) - waiter.asked <= POLL_MS end
  return subscribers(waiter.channel) > 0
end

-- Nobody can tell the waiter, or it has not asked for longer than `most` at all.
local function is_dead(lock, waiter, us, most)
  local silent = ms(us) - waiter.asked
  return silent > (most or silent) or silent > POLL_MS and not reachable(lock, waiter, us)
end

-- Behind a lock that is renewed for long, dead waiters would fill the line.
local function sweep(lock, us)
  if us - lock.fence <= POLL_MS * 1000 then return end
  local n = lock.head
  for _ = 1, SWEEP do
    if n >= lock.tail then return end
    local waiter, behind = look(lock, n)
    if waiter and is_dead(lock, waiter, us) then unlink(lock, n, waiter.owner) end
    n = max(behind, lock.head) -- that may have gone further with the holes behind it
  end
end

-- Exact for the first 100 waiters. Further back it is a bound, and never sounds nearer than that.
local function position(lock, mine)
  local far, n, before = mine - lock.head + 1, lock.head, 0
  if lock.tail - lock.head == lock.count then return far end
  for _ = 1, 2 * STEPS do -- a waiter has one run of holes before it at most
    if n >= mine then return before + 1 end
    local waiter, behind = look(lock, n)
    if waiter then before = before + 1 end
    n = behind
  end
  return max(STEPS + 1, min(lock.count, far))
end

---- a crowd: limited or shared holders -----------------------------------------------------------

-- While several may have the lock, nobody is its owner. Each holder has a slot, which is a lock in
-- small: what is said of a lock's lease, minimum and token is said of a slot too. One whose owner is
-- '' is kept by a minimum.

local function slot_name(n) return format('h:%d', n) end

local function unpack_slot(entry, n)
  if not entry or #entry < SLOT_BYTES or #entry > SLOT_BYTES + 2 * MAX_BYTES then return nil end
  local ends, fence, kept, due, longest, bytes, at = unpack_(SLOT, entry)
  if not (ends >= 0 and ends <= MAX_MS and fence >= 0 and fence <= MAX_TOKEN and fence % 1 == 0
    and kept >= 0 and kept <= MAX_MS and due >= 0 and due <= MAX_MS and longest >= 1
    and longest <= MAX_TTL_MS and bytes <= MAX_BYTES and at + bytes <= #entry + 1) then
    return nil
  end
  return { slot = n, ends = ends, fence = fence, kept = kept, due = due, longest = longest,
    channel = entry:sub(at, at + bytes - 1), owner = entry:sub(at + bytes) }
end

-- Writes a holder into its slot; one that has the lock alone is written with the lock.
local function put_holder(lock, mine)
  if mine == lock then return end
  put(lock, slot_name(mine.slot), pack(SLOT, mine.ends, mine.fence, mine.kept, mine.due,
    mine.longest, #mine.channel) .. mine.channel .. mine.owner)
  lock.first = min(lock.first, mine.owner == '' and mine.kept or mine.ends)
  lock.final = max(lock.final, mine.ends, mine.kept)
end

-- Ends a holder's time. Its slot is free then, or kept. One that has just got it is not told.
local function end_slot(lock, mine, us)
  local at = 'at:' .. mine.owner
  if field(lock, at) == 'h' .. digits(mine.slot) then put(lock, at, false) end -- else it came back
  if lock.tell then lock.tell[mine.slot] = nil end
  if mine.kept > ms(us) then
    mine.owner, mine.ends = '', 0
    return put_holder(lock, mine)
  end
  local n = mine.slot
  put(lock, slot_name(n), false)
  lock.slots, lock.taken = lock.slots:sub(1, n - 1) .. '0' .. lock.slots:sub(n + 1), lock.taken - 1
end

-- The holders of a crowd, as the key says; what this call changed is not in it.
local function holders(lock, from, to)
  local names, all = {}, {}
  for n = from, min(to, #lock.slots) do
    if lock.slots:byte(n) == 49 then names[#names + 1], all[#all + 1] = slot_name(n), n end
  end
  local entries = all[1] and call('HMGET', lock.key, unpack(names))
  for i, n in ipairs(all) do
    all[i] = unpack_slot(entries[i], n)
      or { slot = n, owner = '', channel = '', ends = 0, kept = 0, fence = 0 }
  end
  return all
end

-- Ends those whose lease is over, when there can be one: so many by one call, and the next goes on. Who
-- only reads counts all the others.
local function settle_crowd(lock, us, reads)
  local now, ended = ms(us), 0
  if lock.taken == 0 or now < lock.first then return end
  lock.first, lock.final = MAX_MS, 0
  for _, h in ipairs(holders(lock, 1, MAX_HOLDERS)) do
    local over = (reads and now >= h.ends or h.owner == '') and max(h.ends, h.kept) or h.ends
    if now < over or ended == STEPS then
      lock.first, lock.final = min(lock.first, max(over, now)), max(lock.final, h.ends, h.kept)
    elseif reads then
      lock.taken = lock.taken - 1
    else
      ended = ended + 1
      end_slot(lock, h, us)
    end
  end
  put(lock, 'crowd', true) -- what it is by then, when it is written
end

-- What a new holder has: the lowest slot that is free.
local function take_slot(lock, w, fence, ends)
  if lock.taken == 0 then
    lock.kind, lock.first, lock.final, lock.slots = kind_of(w.limit), MAX_MS, 0, ''
    lock.owner, lock.ends, lock.holds, lock.channel, lock.ids = '', 0, 0, '', ''
    put(lock, 'owner', false)
  end
  local n = find(lock.slots, '0', 1, true) or #lock.slots + 1
  lock.slots, lock.taken = lock.slots:sub(1, n - 1) .. '1' .. lock.slots:sub(n + 1), lock.taken + 1
  put(lock, 'at:' .. w.owner, 'h' .. digits(n))
  return { slot = n, owner = w.owner, fence = fence, ends = ends, longest = w.ttl, kept = 0, due = 0,
    channel = w.channel }
end

-- Who this owner is: the lock itself, if it has it alone, a slot, or nil. After settle.
local function holder(lock, us, owner)
  if lock.foreign then return nil end
  if lock.kind == 0 then return lock.ends > 0 and lock.owner == owner and lock or nil end
  local n = number((field(lock, 'at:' .. owner) or ''):match('^h(%d+)$'), #lock.slots)
  local mine = n and lock.slots:byte(n) == 49 and unpack_slot(field(lock, slot_name(n)), n)
  return mine and mine.owner == owner and ms(us) < mine.ends and mine or nil
end

-- Whether a request can have the lock beside those who have it.
local function fits(lock, w)
  return lock.taken == 0 or lock.kind == kind_of(w.limit) and lock.taken < min(w.limit, MAX_HOLDERS)
end

---- taking, handing over, giving back ------------------------------------------------------------

-- Makes somebody a holder, with so many holds, and returns it. Of one who had the lock alone before
-- nothing stays.
local function assign(lock, w, us, lease, holds)
  local fence, ends = next_fence(us, lock.top), ms(us) + lease + 1
  end_minimum(lock)
  lock.fence, lock.top, lock.due, lock.writes = fence, fence, 0, true
  if w.limit then return take_slot(lock, w, fence, ends) end
  if lock.kind > 0 then put(lock, 'crowd', false) end
  lock.kind, lock.owner, lock.ends, lock.longest, lock.holds = 0, w.owner, ends, w.ttl, holds
  lock.top, lock.channel, lock.ids = run_end(fence, w.tokens, us), w.channel, w.holds
  return lock
end

-- Gives the lock to a waiter, provisionally: the lease is short until it is confirmed, and a
-- minimum is due from now on, but begins only then.
local function give(lock, waiter, us, holds)
  local mine = assign(lock, waiter, us, min(waiter.ttl, PROVISIONAL_MS), holds)
  if waiter.minimum > 0 then mine.due = ms(us) + waiter.minimum + 1 end
  put_holder(lock, mine)
  if waiter.owner == lock.caller then return end
  lock.tell = lock.tell or {} -- also if nobody is told of this: the next in line may be
  if waiter.channel ~= '' then lock.tell[mine.slot or 0], mine.told = mine, waiter.channel end
end

-- How long the lock was held counts for what a turn is expected to take: an eighth of it.
local function learn(lock, held)
  if held <= 0 then return end
  lock.held = held
  lock.turn = lock.turn == 0 and math.floor(held) or math.floor((7 * lock.turn + held) / 8)
end

-- The lock is nobody's any more, or a crowd's. Unless it is kept, it goes to the first in line that
-- is reachable, and to those behind it that fit beside. One that does not fit keeps all behind it
-- waiting, but not when it is dead. If one call does not find one, the lock stays ended, with a
-- shorter line, and with the whole line as long as the server's memory is too young for its guard.
-- `used` is the last token of a run that its owner used; if it does not say, one for each
-- microsecond, or all if the clock was set back.
local function pass_on(lock, us, used)
  if lock.ends > 0 then
    lock.tell = nil
    if not used and us >= seen and us >= lock.fence then used = us end
    lock.top = max(lock.fence, min(lock.top, used or lock.top))
    learn(lock, min(us, lock.ends * 1000) - lock.fence)
    if lock.holds > 0 then lock.ids = '' end
    lock.ends, lock.due, lock.holds, lock.writes = 0, 0, 0, true
  end
  if ms(us) < lock.kept then return end
  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0
  while lock.closed == 0 and has_line(lock) and lock.steps < STEPS do
    local waiter, behind = look(lock, lock.head)
    local fit = waiter and fits(lock, waiter)
    if waiter and not fit and not is_dead(lock, waiter, us, 4 * POLL_MS) then return end
    put(lock, place(lock.head), false)
    if behind > lock.head + 1 then put(lock, place(behind - 1), false) end
    lock.head, lock.steps = behind, lock.steps + 1
    if waiter then
      put(lock, 'at:' .. waiter.owner, false)
      lock.count = max(0, lock.count - 1)
      local holds = scan_holds(waiter.holds)
      if fit and holds and reachable(lock, waiter, us) then give(lock, waiter, us, holds) end
      if lock.ends > 0 then return end
    end
  end
end

-- What a grant says, to the channel of the one that got it: how many tokens, or which slot.
local function grant_text(key, fence, ends, tokens, owner)
  local text = format('%d %d %d %d ', fence, ends, tokens, #owner) .. owner
  return #key <= MAX_BYTES and text .. ' ' .. key or text
end

-- Tells a holder, or a waiter, to look at its lock, if it has named a channel.
local function tell(h)
  return h.owner ~= '' and h.channel ~= '' and #h.channel <= MAX_BYTES
    and type(try('SPUBLISH', h.channel, 'look ' .. h.owner)) == 'number'
end

-- The first in line who hears is to ask, or the first of so many: after a long turn, and where turns are
-- long, because a dead one before it would keep the lock; when the lock is free, and nobody gets it yet;
-- and where one call cannot serve all. A message to nobody would go to the replicas all the same.
local function tell_next(lock, most)
  local n, told = lock.head, 0
  for _ = 1, most and 2 * most or STEPS do -- a waiter has one run of holes before it at most
    if n >= lock.tail or told == (most or 1) then return end
    local waiter, behind = look(lock, n)
    if waiter and (most or subscribers(waiter.channel) > 0) and tell(waiter) then told = told + 1 end
    n = behind
  end
end

-- Writes the lock, then tells who got it. An error of SPUBLISH (a channel of another slot, or one
-- that this caller may not use) told nobody: the lock goes on. An answer, even 0, told somebody.
local function commit(lock, us, grants)
  save(lock, us, grants)
  local long = lock.tell and max(lock.held or 0, lock.turn) > LONG_TURN_US
  while lock.tell do
    local granted, refused = lock.tell, false
    lock.tell = nil
    for n = 0, #lock.slots do -- 0: it has the lock alone
      local h = granted[n]
      local text = h and grant_text(lock.key, h.fence, h.ends, h.slot or h.top - h.fence + 1, h.owner)
      if h and type(try('SPUBLISH', h.told, text)) ~= 'number' then
        refused = true
        if h ~= lock then end_slot(lock, h, us) end
      end
    end
    if refused then
      pass_on(lock, us)
      save(lock, us)
    end
  end
  if long or lock.steps >= STEPS then tell_next(lock) end
end

-- A lease that has ended is passed on before anything else.
local function settle(lock, us)
  if lock.foreign or lock.absent or ms(us) < lock.ends then return end
  settle_crowd(lock, us)
  pass_on(lock, us)
end

-- Who has the lock for how long, and why the answer is no, in a word.
local function state_of(lock, us)
  local now = ms(us)
  if lock.foreign then return lock.owner, lock.pttl, 'foreign' end
  if now < lock.ends then return lock.owner, lock.ends - now, 'held' end
  if lock.taken > 0 and lock.closed == 0 then return '', lock.first - now, KINDS[lock.kind] end
  if now < lock.kept then return lock.owner, lock.kept - now, 'kept' end
  if lock.closed > 0 then return '', lock.closed, 'settling' end
  if has_line(lock) then return '', 0, 'serving' end
  return '', 0, 'free'
end

local function refuse(lock, us)
  local owner, pttl, why = state_of(lock, us)
  return { 0, pttl, owner, lock.count, why }
end

-- The answer to one who asks for a VALUE: what the last holder left, while it is kept. That takes
-- the reader out of the line.
local function kept_value(lock, us)
  local value = lock.ends == 0 and ms(us) < lock.kept and call('HGET', lock.key, 'value')
  local token = digits(lock.fence) .. ' '
  if not value or #value > #token + MAX_VALUE or value:sub(1, #token) ~= token then return nil end
  local mine, n = find_caller(lock)
  if mine then unlink(lock, n, mine.owner) end
  commit(lock, us)
  return { 0, lock.kept - ms(us), lock.owner, lock.count, 'done', value:sub(#token + 1) }
end

-- To one who thinks that the lock is its own: it hears that it was broken, while that is known.
local function disown(lock, us, owner, fence)
  local reply = refuse(lock, us)
  if ms(us) < lock.recorded and (fence and fence == lock.broken or not fence and owner == lock.victim
    or lock.victim == ALL and (fence or 0) < lock.broken) then
    reply[5] = lock.reason == '' and 'broken' or 'broken ' .. lock.reason
  end
  return reply
end

-- One integer, the token; more for who asked for more.
local function yours(lock, mine, w, run)
  if mine.slot then return { 1, mine.fence, mine.slot } end
  if w.holds ~= '' then return { 1, lock.fence, lock.holds } end
  if run then return { 1, lock.fence, lock.top - lock.fence + 1 } end
  return lock.fence
end

-- No call of the owner ends the lease earlier than another one was promised: it may be a late copy.
-- Where the longest lease that they asked for is known (by MORE), it ends no later than that from
-- now either: else the clock was set back since.
local function prolong(mine, us, ttl)
  local now = ms(us) + 1
  mine.longest, mine.writes = mine.longest < ttl and ttl or mine.longest, true
  mine.ends = min(max(mine.ends, now + ttl), now + mine.longest)
end

-- The first confirmation of a grant: its minimum begins, counted from the grant.
local function confirm(mine)
  if mine.due > 0 then mine.kept, mine.due = mine.due, 0 end
end

-- The caller holds the lock already: a repeat, or one more hold. It writes, so that a WAIT after
-- it covers it. One more hold is a grant: its owner may have given the lock back before a failover,
-- and this server not know. Returns the caller as a holder, or nil and the reply.
local function hold_on(lock, mine, us, w, guard)
  local joinable = lock.holds > 0
  if lock.kind ~= kind_of(w.limit) then join_error('has', KINDS[lock.kind]) end
  if joinable ~= (w.holds ~= '') then join_error('has', JOINABLE[joinable]) end
  guard = longest_guard(lock, guard, w.ttl)
  if joinable then
    local holds, n = add_hold(read_holds(lock), w.hold)
    if n ~= lock.holds then
      lock.closed = too_young(guard, us)
      if lock.closed > 0 then return nil, { 0, lock.closed, lock.owner, lock.count, 'settling' } end
      lock.ids = holds
    end
    lock.holds = n
  end
  lock.guard = guard
  prolong(mine, us, w.ttl)
  confirm(mine)
  if lock.fence <= us then lock.top = max(lock.top, lock.fence + w.tokens - 1) end
  if w.channel ~= '' then mine.channel = w.channel end
  put_holder(lock, mine)
  commit(lock, us, true)
  return mine
end

-- Takes the lock if it is free, or holds on to it. Returns the caller as a holder, or nil and perhaps
-- the reply.
local function try_take(lock, us, w, guard)
  -- Who cannot be told does not get it: then it can be the caller's.
  if lock.tell and not holder(lock, us, w.owner) then commit(lock, us) end
  local mine = holder(lock, us, w.owner)
  if mine then return hold_on(lock, mine, us, w, guard) end
  guard = longest_guard(lock, guard, w.ttl)
  local closed = too_young(guard, us) -- asked in any case: it lets the memory begin
  if lock.foreign or lock.ends > 0 or ms(us) < lock.kept or has_line(lock) or not fits(lock, w) then
    return nil
  end
  lock.closed = closed
  if closed > 0 then return nil end
  lock.guard = guard
  mine = assign(lock, w, us, w.ttl, w.hold and 1 or 0)
  if w.minimum > 0 then mine.kept = ms(us) + w.minimum + 1 end
  put_holder(lock, mine)
  commit(lock, us, true)
  return mine
end

-- Gives back a hold, and with the last one the lock. Returns how many are left, nil if it was
-- not there.
local function give_back(lock, mine, us, hold, all, used)
  local holds, left = '', 0
  if mine ~= lock then
    learn(lock, (us - mine.fence) / lock.taken)
    end_slot(lock, mine, us)
  end
  if not all and lock.holds > 0 then
    holds, left = remove_hold(read_holds(lock), hold)
    if not holds then return nil end
  end
  if left == 0 then
    pass_on(lock, us, used)
  else
    lock.ids, lock.holds, lock.writes = holds, left, true
  end
  return left
end

-- Takes the caller's hold id out of its entry in the line, and with the last one the entry.
local function unqueue(lock, hold)
  local waiter, n = find_caller(lock)
  if not waiter or (waiter.holds ~= '') ~= (hold ~= nil) then return false end
  if hold then
    local holds, left = remove_hold(waiter.holds, hold)
    if not holds then return false end
    if left > 0 then
      waiter.holds = holds
      put(lock, place(n), pack_waiter(waiter))
      return true
    end
  end
  unlink(lock, n, waiter.owner)
  return true
end

-- A caller that is in the line stays there, and its last call counts. Returns its place.
local function stay(lock, w)
  local old, n = find_caller(lock)
  if not old then return nil end
  local kind = kind_of(old.limit)
  if kind ~= kind_of(w.limit) then join_error('waits for', KINDS[kind]) end
  if (old.holds ~= '') ~= (w.holds ~= '') then join_error('waits for', JOINABLE[old.holds ~= '']) end
  if w.hold then w.holds = add_hold(old.holds, w.hold) end
  put(lock, place(n), pack_waiter(w))
  return n
end

-- Puts the caller into the line. Returns its position.
local function queue(lock, us, w, max_wait)
  sweep(lock, us)
  local shut = max(lock.closed, lock.kept - ms(us))
  if max_wait and shut * 1000 + lock.turn * (lock.count + 1) > max_wait * 1000 then
    return -(lock.count + 1)
  end
  if lock.count >= MAX_WAITERS or lock.tail >= MAX_PLACE then
    fail('HFFULL the line has ' .. MAX_WAITERS .. ' waiters, no more are possible')
  end
  if not has_line(lock) then lock.head, lock.tail, lock.count = 0, 0, 0 end
  put(lock, place(lock.tail), pack_waiter(w))
  put(lock, 'at:' .. w.owner, digits(lock.tail))
  lock.tail, lock.count = lock.tail + 1, lock.count + 1
  return lock.count
end

---- the functions --------------------------------------------------------------------------------

-- Whether it can be an owner, or a channel.
local function is_name(value) return #value <= MAX_BYTES and find(value, '^%C+$') end

-- What a call that takes the lock asks for.
local function wanted(args, hold)
  local w = { owner = owner_arg(args[1]), ttl = ttl_arg(args[2]), tokens = ask.TOKENS or 1,
    limit = ask.SHARED and SHARED or ask.LIMIT, minimum = ask.MINHOLD or 0,
    channel = ask.CHANNEL or '', hold = hold, holds = hold and netstring(hold) or '' }
  local guard = ask.GUARD or 0
  if ask.GUARD and guard < w.ttl then fail('HFARG GUARD must not be less than ttl_ms') end
  if w.tokens > w.ttl * 1000 then
    fail('HFARG TOKENS must not be more than 1000 for each ms of ttl_ms')
  end
  exclude('TOKENS', 'HOLD')
  exclude('MINHOLD', 'HOLD', 'TOKENS')
  exclude('LIMIT', 'HOLD', 'TOKENS', 'SHARED')
  exclude('SHARED', 'HOLD', 'TOKENS')
  exclude('VALUE', 'HOLD', 'TOKENS', 'LIMIT', 'SHARED')
  return w, guard
end

-- Takes the lock, or holds on to it. Who waits joins its line, or stays there.
local function acquire(key, args, v, hold, waits)
  local w, guard = wanted(args, hold)
  local lock, us = parse(key, v, w.owner), clock()
  w.asked = ms(us)
  local n = waits and stay(lock, w)
  settle(lock, us)
  local mine, reply = try_take(lock, us, w, guard)
  if mine then return yours(lock, mine, w, ask.TOKENS) end
  local done = ask.VALUE and kept_value(lock, us)
  if done then return done end
  -- There may be no line that the caller could be in.
  local at = ask.MAXWAIT and lock.closed > ask.MAXWAIT and -1 or 0
  if waits and not reply and not lock.foreign
    and (lock.ends > 0 or lock.taken > 0 or ms(us) < lock.kept or has_line(lock)) then
    local longest = longest_guard(lock, guard, w.ttl)
    lock.writes, lock.guard = lock.writes or longest > lock.guard, longest -- a grant may have written all
    at = n and position(lock, n) or queue(lock, us, w, ask.MAXWAIT)
  end
  commit(lock, us)
  reply = reply or refuse(lock, us)
  if waits then
    reply[4], reply[6], reply[7], reply[8] = at, ms(us) + 1, lock.fence, subscribers(w.channel)
  end
  return reply
end

-- Plain case: nobody has the lock, and nothing is remembered of it. With a guard or without.
local function plain_take(key, owner, ttl, guard)
  local us = clock()
  if guard and (guard < ttl or too_young(guard, us) > 0) then return nil end
  local fence, stays = next_fence(us, 0), ms(us) + ttl + 1
  local ends = digits(stays)
  if guard then
    create(key, ends, 'owner', owner, 'until', ends, 'fence', digits(fence), 'state',
      pack(LINE_AND_MORE, 0, 0, 0, 0, fence, stays, 0, guard, 0, 0, ttl, 0, 0, 0))
  else
    create(key, ends, 'owner', owner, 'until', ends, 'fence', digits(fence))
  end
  return fence
end

-- Plain case: somebody else holds the lock.
local function plain_busy(key, owner)
  local v, now = try('HMGET', key, 'owner', 'until', 'state'), ms(clock())
  local has, ends, state, waiters = v[1], number(v[2], MAX_MS), v[3], 0
  if not has or has == owner or #has > MAX_BYTES or not ends or now >= ends then return nil end
  if state then
    if #state < LINE_BYTES then return nil end
    waiters = select(3, unpack_(LINE, state))
  end
  return { 0, ends - now, has, waiters, 'held' }
end

-- holdfast_acquire
-- Takes the lock if it is free, or with LIMIT if fewer than n limited holders have it, with SHARED if
-- only others that share have it. Never waits, never overtakes the line.
-- KEYS    lock
-- ARGV    owner ttl_ms [LIMIT n | SHARED] [TOKENS n] [GUARD ms] [MINHOLD ms] [VALUE]
-- Reply   fence | 1, fence, tokens (with TOKENS) | 1, fence, slot (with LIMIT, SHARED) | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFJOIN HFOPTION HFTYPE HFSERVER
-- Repeat  safe: the same owner gets the same fence again and the lease starts anew
local ACQUIRE = form(2, 'owner ttl_ms [LIMIT n | SHARED] [TOKENS n] [GUARD ms] [MINHOLD ms] [VALUE]')
local function holdfast_acquire(key, args)
  local owner, ttl = args[1], known_ttl[args[2]]
  local guard = #args == 4 and args[3] == 'GUARD' and known_ttl[args[4]]
  if ttl and (guard or #args == 2) and is_name(owner) then
    local reply = try('HLEN', key) == 0 and plain_take(key, owner, ttl, guard)
      or not guard and plain_busy(key, owner)
    if reply then return reply end
  end
  options(args, ACQUIRE)
  return acquire(key, args, fields_and_place(key, owner))
end

-- holdfast_acquire_reentrant
-- Takes the lock as a joinable one, or adds a hold to the one that this owner has. The lock is free
-- when every hold is released.
-- KEYS    lock
-- ARGV    owner ttl_ms hold [GUARD ms]
-- Reply   1, fence, holds | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFFULL HFJOIN HFOPTION HFTYPE HFSERVER
-- Repeat  safe: holds are a set of ids, the same id counts once
local ACQUIRE_REENTRANT = form(3, 'owner ttl_ms hold [GUARD ms]')
local function holdfast_acquire_reentrant(key, args)
  options(args, ACQUIRE_REENTRANT)
  local hold = text_arg(args[3], 'hold', 1, MAX_HOLD_BYTES)
  return acquire(key, args, fields_and_place(key, args[1]), hold)
end

-- Plain case: renews a lease with waiters behind it. Reports whether it did.
local function plain_renew_line(key, state, ends, us)
  local head, tail, count, turn, top = unpack_(LINE, state)
  if not (head < tail and tail <= MAX_PLACE) or top > us and top > last then return false end
  local expires = ends + LINE_MS
  call('HSET', key, 'until', digits(ends), 'state', pack(LINE, head, tail, count, turn, top, expires))
  call('PEXPIREAT', key, digits(expires))
  return true
end

-- Plain case: renews a lease that runs, with the token that the caller names, if it does.
local function plain_renew(key, v, args)
  local ttl, n, state = known_ttl[args[2]], #args, v[4]
  local ends, fence = number(v[2], MAX_MS), number(v[3], MAX_TOKEN)
  if v[1] ~= args[1] or not ttl or not ends or not fence
    or n ~= 2 and (n ~= 4 or args[3] ~= 'FENCE' or args[4] ~= v[3]) then
    return nil
  end
  local us = clock()
  local now = ms(us)
  if now >= ends or fence > us and fence > last then return nil end
  ends = max(ends, now + ttl + 1)
  if not state then
    local text = digits(ends)
    call('HSET', key, 'until', text)
    call('PEXPIREAT', key, text)
  elseif #state ~= LINE_BYTES or not plain_renew_line(key, state, ends, us) then
    return nil
  end
  call('HLEN', key) -- as below
  return fence
end

-- holdfast_renew
-- Starts the lease anew, and confirms a lock that was handed over. Never revives an ended lease,
-- never shortens one. With FENCE, only the lock with that token is renewed, not a later one of the
-- same owner. With HOLD, only a joinable lock that has it. RAISE is for a lock that is held on
-- several servers at once: the token becomes at least that.
-- KEYS    lock
-- ARGV    owner ttl_ms [FENCE token] [HOLD id] [RAISE token]
-- Reply   fence | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFOPTION HFTYPE HFSERVER
-- Repeat  safe: it only starts the lease anew, and a token is never lowered
local RENEW = form(2, 'owner ttl_ms [FENCE token] [HOLD id] [RAISE token]')
local function holdfast_renew(key, args)
  local v = fields(key)
  local reply = plain_renew(key, v, args)
  if reply then return reply end
  options(args, RENEW)
  local owner, ttl = owner_arg(args[1]), ttl_arg(args[2])
  local fence, hold, raise = ask.FENCE, ask.HOLD, ask.RAISE
  local lock, us = parse(key, v, not fence and owner or nil), clock() -- a grant has another token
  if raise and raise > us + AHEAD_US then
    fail('HFARG RAISE must be no more than 60 s ahead of the clock of this server')
  end
  settle(lock, us)
  local mine = holder(lock, us, owner)
  -- A memory that forgot the lock begins here: its vote counts again when that is old enough.
  if raise and not mine then age(us) end
  if raise and mine and mine.slot then fail('HFARG RAISE is of no use with LIMIT or SHARED') end
  if mine and fence and fence ~= mine.fence and raise ~= mine.fence then mine = nil end -- or a repeat
  if mine and hold and (lock.holds == 0 or not select(2, scan_holds(read_holds(lock), hold))) then
    mine = nil
  end
  if mine then
    lock.guard = longest_guard(lock, 0, ttl)
    too_young(lock.guard, us)
    prolong(mine, us, ttl)
    confirm(mine)
    put_holder(lock, mine)
    if raise and raise > lock.fence then lock.fence, lock.top = raise, max(raise, lock.top) end
  end
  commit(lock, us, mine)
  if not mine then return disown(lock, us, owner, fence) end
  call('HLEN', key) -- a read after the writes: client tracking covers the key from here on
  return mine.fence
end

-- Plain case: hands on a lease that runs to the waiter at the head, who listens here and has no
-- holds and no minimum.
local function plain_hand_over(key, v)
  local head, tail, count, turn, top, expires = unpack_(LINE, v[4])
  local ends, fence, us = number(v[2], MAX_MS), number(v[3], MAX_TOKEN), clock()
  local now = ms(us)
  if not ends or not fence or now >= ends or us <= top or top < fence
    or not (head >= 0 and head < tail and tail <= MAX_PLACE and count >= 1 and turn >= 0) then
    return nil
  end
  local at_head = place(head)
  local w = unpack_waiter(try('HGET', key, at_head) or '')
  if not w or w.holds ~= '' or w.limit or w.minimum > 0 or subscribers(w.channel) == 0 then return nil end
  local held, was = us - fence, expires
  fence = next_fence(us, top)
  top, ends = run_end(fence, w.tokens, us), now + min(w.ttl, PROVISIONAL_MS) + 1
  local token, text = digits(fence), digits(ends)
  if head + 1 == tail and top == fence then -- it was the last one, and there is nothing to remember
    call('HDEL', key, at_head, 'at:' .. w.owner, 'state')
    call('HSET', key, 'owner', w.owner, 'until', text, 'fence', token, 'channel', w.channel)
    call('PEXPIREAT', key, text)
  else
    expires = head + 1 == tail and ends or ends + LINE_MS
    local moves = head + 1 == tail or math.abs(expires - was) > SLACK_MS
    turn = turn == 0 and held or math.floor((7 * turn + held) / 8)
    call('HDEL', key, at_head, 'at:' .. w.owner)
    call('HSET', key, 'owner', w.owner, 'until', text, 'fence', token, 'channel', w.channel,
      'state', pack(LINE, head + 1, tail, count - 1, turn, top, moves and expires or was))
    if moves then call('PEXPIREAT', key, digits(expires)) end
  end
  local told = try('SPUBLISH', w.channel, grant_text(key, fence, ends, top - fence + 1, w.owner))
  if max(held, turn) > LONG_TURN_US then tell_next({ key = key, head = head + 1, tail = tail }) end
  if type(told) ~= 'number' then -- nobody was told: it goes on to the next
    local lock = read(key)
    pass_on(lock, us)
    commit(lock, us)
  end
  return 1
end

-- Plain case: gives back a plain lock without a line, with a run or a guard or without. Its key
-- ends with the lease, so there is no need to ask the time, unless a token may be ahead of it.
local function plain_release(key, v, used)
  local state, top = v[4], number(v[3], MAX_TOKEN)
  if not top or not v[2] or v[2] == '0' then return nil end
  if state then
    if #state == LINE_BYTES + MORE_BYTES then -- a guard does not matter; a record is longer
      local holds, _, kept, due = unpack_(MORE, state, LINE_BYTES + 1)
      if holds ~= 0 or kept ~= 0 or due ~= 0 then return nil end
    elseif #state ~= LINE_BYTES then
      return nil
    end
    local head, tail = unpack_(LINE, state)
    if head ~= tail then return not used and #state == LINE_BYTES and plain_hand_over(key, v) end
    if used and used > top then top = used end
  end
  if top > last and top > clock() then return nil end
  call('DEL', key)
  return 1
end

-- holdfast_release
-- Gives back a plain lock, or with HOLD one hold of a joinable one, or with ALL all of its holds.
-- The last one frees the lock, or hands it to the next in line. A minimum is kept. LAST is the
-- last token of a run that was used: the next holder's token is above that one, not above the whole
-- run.
-- KEYS    lock
-- ARGV    owner [HOLD id | ALL] [LAST token]
-- Reply   1 | 1, holds (with HOLD) | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFJOIN HFOPTION HFTYPE HFSERVER
-- Repeat  safe: the second reply is a refusal or, with other holds left, how many
local RELEASE = form(1, 'owner [HOLD id | ALL] [LAST token]')
local function holdfast_release(key, args)
  local v = fields(key)
  local plain_used = #args == 3 and args[2] == 'LAST' and integer_arg(args[3], 'LAST', MAX_FENCE)
  if v[1] == args[1] and (#args == 1 or plain_used) then
    local reply = plain_release(key, v, plain_used)
    if reply then return reply end
  end
  options(args, RELEASE)
  exclude('HOLD', 'ALL', 'LAST')
  local owner, hold, all, used = owner_arg(args[1]), ask.HOLD, ask.ALL, ask.LAST
  local lock, us = parse(key, v, owner), clock()
  settle(lock, us)
  local mine = holder(lock, us, owner)
  if not mine or hold and lock.holds == 0 then
    commit(lock, us)
    return disown(lock, us, owner)
  end
  if (lock.holds > 0) ~= (all or hold ~= nil) then join_error('has', JOINABLE[lock.holds > 0]) end
  confirm(mine)
  local left = give_back(lock, mine, us, hold, all, used)
  commit(lock, us)
  if mine.kept > ms(us) and has_line(lock) then tell_next(lock) end -- of when to ask
  return hold and { 1, left or lock.holds } or 1
end

-- Plain case: a waiter asks again. It is written down at times only: each write goes to the
-- replicas, and makes the holder look at its key.
local function plain_ask(key, w, at, head, tail)
  local was = at >= head and at < tail and call('HGET', key, place(at)) or ''
  local mine = unpack_waiter(was)
  if not mine or mine.owner ~= w.owner or mine.holds ~= '' or mine.limit then return nil end
  if w.asked - mine.asked <= POLL_MS / 2 then w.asked = mine.asked end
  local entry = pack_waiter(w)
  if entry ~= was then call('HSET', key, place(at), entry) end
  return at - head + 1
end

-- Plain case: somebody holds the lock, and the caller joins a line without gaps at its tail.
local function plain_join(key, v, args)
  local owner, ttl, channel = args[1], known_ttl[args[2]], args[4]
  local state, ends, fence = v[4], number(v[2], MAX_MS), number(v[3], MAX_TOKEN)
  local tokens = #args == 4 and 1
    or #args == 6 and args[5] == 'TOKENS' and integer_arg(args[6], 'TOKENS', MAX_TOKENS)
  if not tokens or args[3] ~= 'CHANNEL' or not ttl or tokens > 1000 * ttl
    or not is_name(channel) or not v[1] or v[1] == owner or #v[1] > MAX_BYTES
    or not ends or not fence or state and #state ~= LINE_BYTES or not is_name(owner)
    or not redis.acl_check_cmd('SPUBLISH', channel, '') then
    return nil
  end
  local us, head, tail, count, turn, top, was = clock(), 0, 0, 0, 0, fence, 0
  local now = ms(us)
  if now >= ends then return nil end
  if state then
    head, tail, count, turn, top, was = unpack_(LINE, state)
    if not (head >= 0 and count >= 0 and tail - head == count and count < MAX_WAITERS
      and tail < MAX_PLACE and turn >= 0 and top >= fence) then
      return nil
    end
  end
  local nth, w = count + 1, { owner = owner, ttl = ttl, tokens = tokens, asked = now, minimum = 0,
    holds = '', channel = channel }
  if v[5] then
    nth = plain_ask(key, w, number(v[5], MAX_PLACE) or -1, head, tail)
    if not nth then return nil end
  else
    if us - fence > POLL_MS * 1000 then return nil end -- there may be dead ones to sweep
    if count == 0 then head, tail = 0, 0 end
    local expires = ends + LINE_MS
    local moves = count == 0 or math.abs(expires - was) > SLACK_MS
    call('HSET', key, place(tail), pack_waiter(w), 'at:' .. owner, digits(tail),
      'state', pack(LINE, head, tail + 1, count + 1, turn, top, moves and expires or was))
    if moves then call('PEXPIREAT', key, digits(expires)) end
  end
  return { 0, ends - now, v[1], nth, 'held', now + 1, fence, subscribers(channel) }
end

-- holdfast_wait
-- Takes the lock, or joins the line for it. Asked again, it says how the line stands. The lock is
-- handed to the first in line by writing it in as the owner and publishing a grant on its CHANNEL;
-- without one the waiter polls, by asking again. With MAXWAIT, nobody joins whose turn is expected
-- later than that: position is then what it would have been, negative. With HOLD, the lock is
-- joinable.
-- KEYS    lock
-- ARGV    owner ttl_ms [CHANNEL channel] [MAXWAIT ms] [LIMIT n | SHARED] [HOLD id] [TOKENS n] [GUARD ms] [MINHOLD ms] [VALUE]
-- Reply   as acquire and acquire_reentrant | 0, pttl_ms, owner, position, why, server_ms, fence, subscribers
-- Errors  HFARG HFFULL HFJOIN HFOPTION HFTYPE HFSERVER
-- Repeat  safe: one place in the line per owner; its owner gets the same fence again
local WAIT = form(2,
  'owner ttl_ms [CHANNEL channel] [MAXWAIT ms] [LIMIT n | SHARED] [HOLD id] [TOKENS n] [GUARD ms] [MINHOLD ms] [VALUE]')
local function holdfast_wait(key, args)
  local v = fields_and_place(key, args[1] or '')
  local reply = plain_join(key, v, args)
  if reply then return reply end
  options(args, WAIT)
  return acquire(key, args, v, ask.HOLD, true)
end

-- holdfast_finish
-- Gives back a lock with a value, which all get who ask for the VALUE: for keep_ms nobody else has
-- the lock. The first 300 in line are told to ask. With FENCE, only the lock with that token.
-- KEYS    lock
-- ARGV    owner value keep_ms [FENCE token]
-- Reply   1 | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFJOIN HFOPTION HFTYPE HFSERVER
-- Repeat  safe: it is 1 again while the value is kept
local FINISH = form(3, 'owner value keep_ms [FENCE token]')
local function holdfast_finish(key, args)
  options(args, FINISH)
  local owner, value, keep = owner_arg(args[1]), args[2], integer_arg(args[3], 'keep_ms', MAX_TTL_MS)
  if #value > MAX_VALUE then fail('HFARG value must have 0 to ' .. MAX_VALUE .. ' bytes') end
  local lock, us, fence = read(key), clock(), ask.FENCE
  settle(lock, us)
  local mine = holder(lock, us, owner)
  if not mine or fence and fence ~= mine.fence then
    if lock.owner == owner and (fence or lock.fence) == lock.fence and kept_value(lock, us) then return 1 end
    commit(lock, us)
    return disown(lock, us, owner, fence)
  end
  if mine.slot or lock.holds > 0 then
    fail('HFJOIN only who has the lock alone can give it back with a value')
  end
  confirm(mine)
  lock.kept = max(lock.kept, ms(us) + keep + 1)
  put(lock, 'value', digits(lock.fence) .. ' ' .. value)
  pass_on(lock, us)
  commit(lock, us, true)
  tell_next(lock, 3 * STEPS)
  return 1
end

-- holdfast_leave
-- Gives up waiting, or a lock that nobody worked under (a lost reply, a grant that crossed with
-- this): it goes to the next in line, and no minimum is kept. With FENCE, only a lock with that
-- token, and never a place in line.
-- KEYS    lock
-- ARGV    owner [HOLD id] [FENCE token]
-- Reply   1 | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFOPTION HFTYPE HFSERVER
-- Repeat  safe: the second reply is a refusal
local LEAVE = form(1, 'owner [HOLD id] [FENCE token]')
local function holdfast_leave(key, args)
  options(args, LEAVE)
  local owner, hold, fence = owner_arg(args[1]), ask.HOLD, ask.FENCE
  local lock, us = parse(key, fields_and_place(key, owner), owner), clock()
  local left = not fence and not lock.absent and unqueue(lock, hold)
  lock.caller = nil -- the reply tells nobody of a new grant: a message must
  settle(lock, us)
  local mine = holder(lock, us, owner)
  if mine and (not fence or mine.fence == fence) and (lock.holds > 0) == (hold ~= nil) then
    mine.kept = 0
    left = give_back(lock, mine, us, hold) ~= nil or left
  end
  commit(lock, us)
  if left and lock.ends == 0 and has_line(lock) and lock.steps < STEPS then tell_next(lock) end -- of when to ask
  return left and 1 or disown(lock, us, owner, fence)
end

-- Whom a break means: the one who has the lock alone, or of a crowd one or all.
local function whom(lock, us, owner)
  if lock.taken > 0 then
    return owner and { holder(lock, us, owner) } or holders(lock, 1, MAX_HOLDERS)
  end
  if ms(us) >= lock.ends or owner and owner ~= lock.owner then return {} end
  return { { owner = lock.owner, fence = lock.fence, ends = lock.ends,
    channel = call('HGET', lock.key, 'channel') or '' } }
end

-- holdfast_break
-- Takes the lock from its holder, or from all, for operators, or from this OWNER only. It goes to
-- the next in line, also where it was kept. The key remembers for 10 s to 10 min who was broken and
-- why, but not with FORGET, which drops an older record too.
-- KEYS    lock
-- ARGV    [OWNER owner] [REASON text | FORGET]
-- Reply   1, owner, fence | 0, pttl_ms, owner, waiters, why
-- Errors  HFARG HFOPTION HFTYPE HFSERVER
-- Repeat  safe with OWNER; without, it breaks the next holder's lock
local BREAK = form(0, '[OWNER owner] [REASON text | FORGET]')
local function holdfast_break(key, args)
  options(args, BREAK)
  exclude('FORGET', 'REASON')
  local lock, us = read(key), clock()
  settle_crowd(lock, us)
  local now, owner = ms(us), lock.taken > 0 and (ask.OWNER or '') or lock.owner
  if lock.foreign and (ask.OWNER or owner) == owner then
    call('DEL', key)
    return { 1, owner, 0 }
  end
  local victims, ends, worked = whom(lock, us, ask.OWNER), 0, false
  local fence = ask.OWNER and victims[1] and victims[1].fence or lock.fence
  local broken = #victims > 0
    or lock.ends <= now and now < lock.kept and (ask.OWNER or owner) == owner
  if broken then
    for _, h in ipairs(victims) do
      ends, worked, h.kept = max(ends, h.ends), worked or h.ends > now, 0
      if h.slot then end_slot(lock, h, us) end
    end
    if worked and not ask.FORGET then
      lock.broken, lock.victim, lock.reason = fence, owner == '' and ALL or owner, ask.REASON or ''
      lock.recorded = min(max(ends, now + RECORD_MIN_MS), now + RECORD_MAX_MS)
    end
    end_minimum(lock)
    lock.writes = true
    pass_on(lock, us)
  else
    settle(lock, us)
  end
  if ask.FORGET and lock.recorded > 0 and (broken or not ask.OWNER or ask.OWNER == lock.victim) then
    if not broken and now < lock.recorded then
      broken, owner, fence = true, lock.victim == ALL and '' or lock.victim, lock.broken
    end
    lock.recorded, lock.writes = 0, true
  end
  commit(lock, us)
  for _, h in ipairs(victims) do tell(h) end
  return broken and { 1, owner, fence } or refuse(lock, us)
end

-- holdfast_inspect
-- Says who has the lock, how many wait, and why nobody else gets it. Changes nothing. fence is 0
-- for a plain string of another service.
-- KEYS    lock
-- ARGV    -
-- Reply   held, owner, holds, fence, pttl_ms, waiters, why
-- Errors  HFARG HFOPTION HFTYPE HFSERVER
-- Repeat  safe: no writes
local INSPECT = form(0, 'none')
local function holdfast_inspect(key, args)
  options(args, INSPECT)
  local lock, us = read(key), clock()
  settle_crowd(lock, us, true)
  local owner, pttl, why = state_of(lock, us)
  local held = lock.taken > 0 or why == 'held' or why == 'foreign'
  return { held and 1 or 0, owner, held and max(1, lock.holds, lock.taken) or 0,
    (held or owner ~= '') and lock.fence or 0, pttl, lock.count, why }
end

-- holdfast_holders
-- Lists who has the lock, by slot: from this one on, and at most 100 of them. One who has it alone
-- is in slot 1. The owner of a slot that is kept is ''. next is the slot to go on from, or 0.
-- KEYS    lock
-- ARGV    [from]
-- Reply   next, slot, owner, fence, pttl_ms, slot, owner, fence, pttl_ms, ...
-- Errors  HFARG HFTYPE HFSERVER
-- Repeat  safe: no writes
local function holdfast_holders(key, args)
  expect(#args <= 1, '[from]')
  local from = args[1] and integer_arg(args[1], 'from', MAX_HOLDERS) or 1
  local lock, us = read(key), clock()
  local now, reply, all = ms(us), { 0 }, holders(lock, from, from + STEPS - 1)
  if lock.taken == 0 and from == 1 then all = { lock } end
  if from + STEPS <= #lock.slots then reply[1] = from + STEPS end
  for _, h in ipairs(all) do
    local pttl, n = h.pttl or max(h.ends, h.kept) - now, #reply
    if pttl > 0 or h.pttl then
      reply[n + 1], reply[n + 2] = h.slot or 1, (h.pttl or now < h.ends) and h.owner or ''
      reply[n + 3], reply[n + 4] = h.fence, h.pttl or now < h.ends and h.ends - now or pttl
    end
  end
  return reply
end

-- holdfast_memory
-- Since when this server remembers, for those that load the library: FUNCTION LOAD REPLACE makes it
-- forget. With what it said before that, it remembers again, if it is the same process with the
-- same replication id. Only who may load the library may say that.
-- KEYS    -
-- ARGV    [run_id replid since_us]
-- Reply   run_id, replid, since_us
-- Errors  HFARG HFSERVER
-- Repeat  safe
local function holdfast_memory(_, args)
  expect(#args == 0 or #args == 3, '[run_id replid since_us]')
  local since = args[3] and integer_arg(args[3], 'since_us', MAX_FENCE)
  if since and not redis.acl_check_cmd('FUNCTION', 'LOAD', '') then
    fail('HFARG since_us is only for those who may use FUNCTION LOAD')
  end
  age(clock())
  local process = call('INFO', 'server'):match('\nrun_id:(%x+)')
  if since and args[1] == process and args[2] == history then born = min(born, since) end
  return { process, history, digits(born) }
end

-- holdfast_version
-- The version of the loaded library.
-- KEYS    -
-- ARGV    -
-- Reply   version
-- Errors  HFARG
-- Repeat  safe: no writes
local function holdfast_version(_, args)
  expect(#args == 0, 'none')
  return VERSION
end

-- Nothing of Lua's own reaches the caller: an error becomes a reply with a stable first word. The
-- body gets the key, if there is one; `least` is how many it needs.
local function register(name, body, least, ...)
  local function run(keys, args)
    if not call then look_up() end
    if #keys < least or #keys > 1 then
      return redis.error_reply(least == 1 and 'HFARG exactly one key is needed, the lock'
        or 'HFARG at most one key is possible, to choose the node')
    elseif least == 1 and keys[1] == '' then
      return redis.error_reply('HFARG key must not be empty')
    end
    local ok, reply = pcall(body, keys[1], args)
    if ok then return reply end
    if type(reply) == 'table' and reply.holdfast then return redis.error_reply(reply.holdfast) end
    local problem = tostring(type(reply) == 'table' and reply.err or reply)
    problem = problem:gsub('^@?user_function:%d+: ', '')
    return redis.error_reply('HFSERVER ' .. problem:gsub('[\r\n]', ' '))
  end
  redis.register_function{ function_name = name, callback = run, flags = { ... } }
end

register('holdfast_acquire', holdfast_acquire, 1)
register('holdfast_acquire_reentrant', holdfast_acquire_reentrant, 1)
register('holdfast_renew', holdfast_renew, 1, 'allow-oom')
register('holdfast_release', holdfast_release, 1, 'allow-oom')
register('holdfast_wait', holdfast_wait, 1)
register('holdfast_finish', holdfast_finish, 1)
register('holdfast_leave', holdfast_leave, 1, 'allow-oom')
register('holdfast_break', holdfast_break, 1, 'allow-oom')
register('holdfast_inspect', holdfast_inspect, 1, 'no-writes')
register('holdfast_holders', holdfast_holders, 1, 'no-writes')
register('holdfast_memory', holdfast_memory, 0, 'allow-oom')
register('holdfast_version', holdfast_version, 0, 'no-writes')
