package model

// mutation is a change of the library: the tie must notice it.
type mutation struct{ name, old, new string }

var mutations = []mutation{
	{"a longer provisional lease", "local PROVISIONAL_MS = 2000 ", "local PROVISIONAL_MS = 2001 "},
	{"a line lives longer", "local LINE_MS = 60000 ", "local LINE_MS = 60001 "},
	{"silence is noticed earlier", "local POLL_MS = 5000 ", "local POLL_MS = 4999 "},
	{"silence is noticed later", "local POLL_MS = 5000 ", "local POLL_MS = 5001 "},
	{"the dead are not swept out", "  sweep(lock, us)\n", ""},
	{"the last in line is served first", "    local waiter, behind = look(lock, lock.head)\n    put(", `
    local a, b = field(lock, place(lock.head)), field(lock, place(lock.tail - 1))
    put(lock, place(lock.head), b)
    put(lock, place(lock.tail - 1), a)
    local waiter, behind = look(lock, lock.head)
    put(`},
	{"who joins goes to the head", "  lock.tail, lock.count = lock.tail + 1, lock.count + 1\n  return lock.count\n", `
  local a, b = field(lock, place(lock.head)), field(lock, place(lock.tail))
  put(lock, place(lock.head), b)
  put(lock, place(lock.tail), a)
  lock.tail, lock.count = lock.tail + 1, lock.count + 1
  return lock.count
`},
	{
		"renewal without a look at the owner",
		"  local mine = held_by(lock, owner)\n    and (not fence or fence == lock.fence or raise == lock.fence)",
		"  local mine = lock.ends > 0",
	},
	{"renewal without a look at the token", "    and (not fence or fence == lock.fence or raise == lock.fence)", ""},
	{"renewal of an ended lease", "  settle(lock, us)\n  -- A memory that forgot", "  -- A memory that forgot"},
	{"plain renewal of an ended lease", "  if now >= ends or fence > us and", "  if now > ends or fence > us and"},
	{"plain renewal without an expiry", "    call('PEXPIREAT', key, text)\n  elseif", "  elseif"},
	{
		"release without a look at the owner",
		"  if not held_by(lock, owner) then\n    commit(lock, us)\n    return disown(lock, us, owner)\n  end\n",
		"",
	},
	{"plain release without a look at the owner", "  if v[1] == args[1] and (#args == 1 or", "  if v[1] and (#args == 1 or"},
	{
		"plain release of a lock with a line",
		"    if head ~= tail then return not used and #state == LINE_BYTES and plain_hand_over(key, v) end\n",
		"",
	},
	{"plain hand-over of an ended lease", "not fence or now >= ends or us <= top", "not fence or now > ends or us <= top"},
	{"plain hand-over to who cannot be told", "or w.minimum > 0 or subscribers(w.channel) == 0 then", "or w.minimum > 0 then"},
	{"plain hand-over without a message", "try('SPUBLISH', w.channel, grant_text(key, fence, ends, top - fence + 1, w.owner))", "1"},
	{"leave without a look at the owner", "  local mine = held_by(lock, owner) and (not fence", "  local mine = lock.ends > 0 and (not fence"},
	{"leave without a look at the token", "held_by(lock, owner) and (not fence or lock.fence == fence)\n", "held_by(lock, owner)\n"},
	{"leave keeps what was handed over", "    left = give_back(lock, us, hold) ~= nil or left\n", "    left = true\n"},
	{"leave with a token takes a place", "  local left = not fence and not lock.absent and", "  local left = not lock.absent and"},
	{"the lease ends a millisecond early", "not lock.absent and ms(us) >= lock.ends then", "not lock.absent and ms(us) + 1 >= lock.ends then"},
	{"the lease ends a millisecond late", "not lock.absent and ms(us) >= lock.ends then", "not lock.absent and ms(us) > lock.ends then"},
	{"busy for a millisecond longer", "or not ends or now >= ends then", "or not ends or now > ends then"},
	{"the key outlives the lease", "  local stays = max(lock.ends, remains", "  local stays = max(lock.ends + 1, remains"},
	{"a lock without an expiry", "  local done = try('PEXPIREAT', key, expires)\n", "  local done = 1\n"},
	{"the server's memory is not asked for a token", "  last = us > last and us or last + 1\n", "  last = us\n"},
	{"the key is not asked for a token", "  return last > above and last or above + 1\n", "  return last\n"},
	{"a key moves the server's memory", "  return last > above and last or above + 1\n", "  last = max(last, above + 1)\n  return last\n"},
	{"a token ahead is forgotten", "  if top > us and top > last and top <= us + AHEAD_US then token = ms(top) + 1 end\n", ""},
	{"a token ahead is forgotten by a plain release", "  if top > last and top > clock() then return nil end\n", ""},
	{"handed to a waiter that cannot be told", "  return subscribers(waiter.channel) > 0\n", "  return true\n"},
	{"the caller is passed over", "  if waiter.owner == lock.caller then return true end\n", ""},
	{
		"the caller is told by a message",
		"  if waiter.owner ~= lock.caller and waiter.channel ~= '' then lock.tell",
		"  if waiter.channel ~= '' then lock.tell",
	},
	{
		"nobody is told",
		"  if waiter.owner ~= lock.caller and waiter.channel ~= '' then lock.tell = waiter.channel end\n",
		"",
	},
	{
		"acquire overtakes the line",
		"  settle(lock, us)\n  local mine, reply = try_take(",
		"  if ms(us) >= lock.ends then lock.ends, lock.head = 0, lock.tail end\n  local mine, reply = try_take(",
	},
	{"a repeat does not start the lease anew", "  prolong(lock, us, w.ttl)\n", ""},
	{"who asks again is told another place", "  return at - head + 1\n", "  return at - head\n"},
	{"a break ends the line too", "    lock.kept, lock.writes = 0, true\n    pass_on(", "    lock.kept, lock.writes, lock.head = 0, true, lock.tail\n    pass_on("},
}

// guardMutations are changes of what the library does with a guard.
var guardMutations = []mutation{
	{"a young memory grants a free lock", "  if closed > 0 then return false end\n", ""},
	{
		"a young memory hands over",
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n",
		"  lock.closed = 0\n",
	},
	{
		"a young memory hands over to the caller",
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n",
		"  local first = has_line(lock) and look(lock, lock.head)\n" +
			"  local other = first and first.owner ~= lock.caller\n" +
			"  lock.closed = other and too_young(lock.guard, us) or 0\n",
	},
	{
		"a young memory keeps an ended lock without a line",
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n",
		"  lock.closed = too_young(lock.guard, us)\n" +
			"  if lock.closed > 0 and not has_line(lock) then lock.tail = lock.tail + 1 end\n",
	},
	{
		"a line that is left does not live on",
		"  if has_line(lock) then return max(stays, ms(us)) + LINE_MS end\n",
		"  if has_line(lock) then return stays + LINE_MS end\n",
	},
	{
		"a repeat waits for an old memory",
		"  prolong(lock, us, w.ttl)\n",
		"  local closed = too_young(lock.guard, us)\n" +
			"  if closed > 0 then return { 0, closed, lock.owner, lock.count, 'settling' } end\n" +
			"  prolong(lock, us, w.ttl)\n",
	},
	{
		"the caller is not told for how long yet",
		"  if lock.closed > 0 then return '', lock.closed, 'settling' end\n",
		"  if lock.closed > 0 then return '', 0, 'settling' end\n",
	},
	{
		"a memory is old enough a millisecond early",
		"  return max(0, guard - ms(age(us)))\n",
		"  return max(0, guard - 1 - ms(age(us)))\n",
	},
	{
		"a memory is old enough a millisecond late",
		"  return max(0, guard - ms(age(us)))\n",
		"  return max(0, guard + 1 - ms(age(us)))\n",
	},
	{"the guard is not kept in the lock", "  local guard, kept = lock.guard, w.minimum", "  local guard, kept = 0, w.minimum"},
	{"the guard is not kept with a line", "lock.expires, lock.holds, lock.guard,\n", "lock.expires, lock.holds, 0,\n"},
	{"the guard goes with the line", "  local more = lock.holds + lock.guard + lock.kept", "  local more = lock.holds + lock.kept"},
	{"a renewal for longer than the guard", "    lock.guard = longest_guard(lock, 0, ttl)\n", ""},
	{"a renewal does not begin the memory", "    too_young(lock.guard, us)\n", ""},
	{
		"a memory does not begin anew with a replication id",
		"  if id ~= history or us < born then",
		"  if history == '' or us < born then",
	},
	{
		"a memory is old when it begins",
		"or us < born then born, history = us, id end\n",
		"or us < born then born, history = 1, id end\n",
	},
}
