package model

// may reports whether a move is possible, as far as that shows without making it.
func (cfg *Config) may(s *State, a Action) bool {
	c := &s.Clients[a.Client]
	calls := c.Call.Kind != None
	switch a.Move {
	case Run, RunLost:
		return calls && c.Call.Status == Pending
	case RunStray, LoseStray:
		return c.Stray.Kind != None
	case Hear:
		return calls && c.Call.Status == Answered
	case Turn:
		return c.Phase == Asking && c.Call.Status == Answered && c.Call.Yes == 0
	case Missed:
		return c.Call.Status == Gone
	case Again:
		return calls
	case Read, LoseNote:
		return c.Note.For != 0
	case Ask:
		return c.Phase == Standing && !calls && c.Due == 1
	case Resub:
		return c.Deaf == 1 && c.Polls == 0 && c.Phase != Dead
	case Unsub:
		return cfg.Drops && c.Deaf == 0 && c.Polls == 0 && c.Phase == Standing
	case Notice:
		return c.Phase == Dead && c.Deaf == 0 && c.Polls == 0
	case Learn:
		return c.Link == 1 && c.Phase != Dead
	case GiveBack:
		return c.Phase == Held || c.Phase == Confirming
	case Keep:
		return c.Phase == Held && !calls
	case Begin0, Line0:
		return c.Phase == Idle
	case Begin1, Line1:
		return c.Phase == Idle && cfg.Locks > 1
	case Crash:
		return c.Phase != Dead && s.Crashed < cfg.Crashes
	case Smash:
		return s.Broken < cfg.Breaks && s.Main.Locks[0].Owner != 0
	case Fail:
		return cfg.Failover != Never && s.Failed == 0
	case Instant:
		return cfg.Coarse
	}
	return true
}

// apply makes a move. It returns false if the move is not possible, and else the invariants that
// the move itself broke, as bits.
func (cfg *Config) apply(s *State, a Action, saw Witness) (possible bool, bad uint8) {
	if !cfg.may(s, a) {
		return false, 0
	}
	i := int(a.Client)
	c := &s.Clients[i]
	switch a.Move {
	case Run:
		return cfg.run(s, i, false, saw)
	case RunLost:
		return cfg.run(s, i, true, saw)
	case RunStray:
		return cfg.runStray(s, i, saw)
	case Smash:
		return cfg.smash(s, saw)
	case Read:
		return cfg.read(s, c), 0
	case Begin0, Begin1:
		return cfg.start(s, i, Acquire, uint8(a.Move-Begin0)), 0
	case Line0, Line1:
		return cfg.start(s, i, Wait, uint8(a.Move-Line0)), 0
	case Stop:
		return cfg.stop(s, c), 0
	case Sync:
		return cfg.sync(s), 0
	case Fail:
		return cfg.fail(s), 0
	case Instant:
		return instant(s), 0
	}
	switch a.Move {
	case Hear:
		cfg.hear(c, true)
	case Turn:
		cfg.hear(c, false)
	case Ask:
		c.Due = 0
		cfg.send(c, Wait)
	case Resub:
		resub(c)
	case Learn:
		cfg.learn(s, c)
	case GiveBack:
		cfg.release(s, c)
	case Missed, Again:
		cfg.repeat(s, c)
	case Notice, Unsub:
		c.Deaf = 1
	case Keep:
		cfg.send(c, Renew)
	case LoseStray:
		c.Stray = Stray{}
	case LoseNote:
		c.Note = Note{}
	case Crash:
		s.Crashed++
		cfg.crash(s, c)
	case Tick:
		cfg.pass(s)
	}
	return true, 0
}

// Witness sees each run of a function.
type Witness func(lock Lock, env Env, r Request, e Effect)

// serve runs a request at a server. It returns false if the server serves nobody.
func (cfg *Config) serve(s *State, link, k uint8, r Request, saw Witness) (served bool, e Effect, bad uint8) {
	if link == 1 && s.Linger <= 0 {
		return false, e, 0
	}
	server := s.server(link)
	if cfg.Contact > 0 && server.Quiet > cfg.Contact || cfg.Coarse && ahead(s) > 2 {
		return false, e, 0
	}
	env := Env{Young: cfg.Level == Guarded && server.Age < cfg.Guard, Now: s.Now, Last: server.Last}
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		if c.Polls == 1 {
			env.Pollers |= 1 << i
		} else if c.Deaf == 0 && c.Link == link {
			env.Heard |= 1 << i
		}
	}
	before := server.Locks[k]
	e = cfg.Do(before, env, r)
	if saw != nil {
		saw(before, env, r, e)
	}
	bad = cfg.judge(s, k, &before, env, r, &e)
	server.Locks[k], server.Last, s.Now = e.Lock, e.Last, e.Now
	if e.Told != 0 {
		if c := &s.Clients[e.Told.client()]; c.Phase != Dead {
			c.Note = Note{For: 1 + e.Told.past(), Lock: k, Left: e.Lock.Rem, Fence: e.Lock.Fence}
			c.Call.Newer = 0
		}
	}
	return true, e, bad
}

// ahead is how far the greatest token is ahead of the clock.
func ahead(s *State) int {
	most := Token(0)
	look := func(t *Token) { most = max(most, *t) }
	eachFence(s, look)
	eachMemory(s, look)
	return int(most) - int(s.Now)
}

// run runs a client's call. lost says that the reply is lost on its way, and that the client
// repeats the call.
func (cfg *Config) run(s *State, i int, lost bool, saw Witness) (bool, uint8) {
	c := &s.Clients[i]
	k := c.Call.Kind
	r := Request{Kind: k, Owner: ownerOf(i, 0), Fence: c.argument(k)}
	note := c.Note
	served, e, bad := cfg.serve(s, c.Link, c.Lock, r, saw)
	switch {
	case !served:
		return false, 0
	case e.Reply.Followed:
		c.Call.Kind = Delete
	case lost:
		cfg.send(c, k)
	case k == Release || k == Leave || k == Delete: // whatever the reply, that was it
		cfg.finish(c)
	default:
		cfg.answer(s, c, &e, note)
	}
	return true, bad
}

// answer sends a reply. note is what was on its way to the client before.
func (cfg *Config) answer(s *State, c *Client, e *Effect, note Note) {
	c.Call.Status = Answered
	if !e.Reply.Yes {
		if note.For == 1 && note == c.Note && (note.Fence == stale || note.Fence <= e.Reply.Fence) {
			c.Call.Newer = 1
		}
		return
	}
	c.Call.Yes = 1
	if c.Call.Kind != Renew {
		c.Call.Got = e.Reply.Fence
	}
	waits := c.Call.Kind == Acquire || c.Call.Kind == Renew // for replicas
	if waits && e.Wrote && cfg.Level == Replicas && cfg.replicated() && cfg.Flaw != UnseenAcks &&
		(s.Failed == 0 || c.Link == 1) {
		c.Call.Status = Unacked
	}
}

func (cfg *Config) runStray(s *State, i int, saw Witness) (bool, uint8) {
	c := &s.Clients[i]
	r := Request{Kind: c.Stray.Kind, Owner: ownerOf(i, c.Stray.Past), Fence: c.Stray.Fence}
	link, k := c.Stray.Link, c.Stray.Lock
	c.Stray = Stray{}
	served, e, bad := cfg.serve(s, link, k, r, saw)
	if e.Reply.Followed {
		c.Stray = Stray{Kind: Delete, Past: r.Owner.past(), Lock: k, Link: link}
	}
	return served, bad
}
