package model

// The clients' rules: what the Go client does, each in few steps. Its deadlines are those of its lease
// machine (lease.go). A client may stop waiting for an answer at any
// time, which stands for all lost messages; what it does then is what the client does.

// send makes a call of the client's present acquisition.
func (cfg *Config) send(c *Client, k Kind) {
	c.Call = Call{Kind: k, Left: cfg.belief()}
	if k == Release || k == Leave {
		c.Call.Left = 0
	}
}

func (cfg *Config) belief() int8 {
	if cfg.Belief > 0 {
		return cfg.Belief
	}
	return cfg.Lease
}

// abandon stops waiting for an answer. What the server has not run yet, it may run later.
func (cfg *Config) abandon(s *State, c *Client) {
	call := c.Call
	c.Call = Call{}
	if call.Kind != None && call.Status == Pending && c.Stray.Kind == None && s.Strayed < cfg.Strays {
		s.Strayed++
		c.Stray = Stray{Kind: call.Kind, Lock: c.Lock, Link: c.Link, Fence: c.argument(call.Kind)}
	}
}

// argument is the token that a call names.
func (c *Client) argument(k Kind) Token {
	if k == Renew || k == Leave {
		return c.Fence
	}
	return 0
}

// start begins an acquisition, with an owner string of its own. It returns false if the model has
// no other name for one: then the last one but one must be forgotten first.
func (cfg *Config) start(s *State, i int, k Kind, lock uint8) bool {
	c := &s.Clients[i]
	present, past := ownerOf(i, 0), ownerOf(i, 1)
	if cfg.Flaw != SharedOwner && s.named(present) {
		if s.named(past) {
			return false
		}
		names := identity
		names[present] = past
		s.renameOwners(&names)
		if c.Stray.Kind != None {
			c.Stray.Past = 1
		}
		if c.Note.For != 0 {
			c.Note.For = 2
		}
	}
	c.Lock, c.Phase = lock, Asking
	if k == Wait {
		c.Phase = Standing
	}
	cfg.send(c, k)
	return true
}

var identity = func() (names [2*maxClients + 1]Owner) {
	for i := range names {
		names[i] = Owner(i)
	}
	return names
}()

// finish ends the acquisition. What is under way of it stays so.
func (cfg *Config) finish(c *Client) {
	c.Phase = Idle
	if cfg.Progress {
		c.Phase = Resting
	}
	c.Left, c.Fence, c.Due, c.Void, c.Lock, c.Call = 0, 0, 0, 0, 0, Call{}
}

// hold starts to work under a whole lease.
func (cfg *Config) hold(c *Client, fence Token) {
	call := c.Call
	c.Call, c.Due = Call{}, 0
	has := granted(cfg.belief(), call.Left)
	if has <= 0 { // the answer took longer than the lease
		cfg.giveUp(c, 0)
		return
	}
	c.Phase, c.Left, c.Fence, c.Void = Held, has, fence, call.Void
}

// giveUp gives back what the server may have. A fence gives back nothing newer.
func (cfg *Config) giveUp(c *Client, fence Token) {
	c.Phase, c.Left, c.Fence, c.Due, c.Void = Leaving, 0, fence, 0, 0
	cfg.send(c, Leave)
}

// hear takes the reply to a client's call. stay says whether the client waits for a lock that is
// busy.
func (cfg *Config) hear(c *Client, stay bool) {
	call := c.Call
	if cfg.Flaw == LateDeadline && call.Left < cfg.Lease {
		c.Call.Left, call.Left = cfg.Lease, cfg.Lease
	}
	yes := call.Yes != 0
	switch c.Phase {
	case Asking:
		switch {
		case yes:
			cfg.hold(c, call.Got)
		case stay:
			c.Phase = Standing
			cfg.send(c, Wait)
		default:
			cfg.finish(c)
		}
	case Standing:
		switch {
		case yes && cfg.Level == Replicas && cfg.Flaw != NoConfirm:
			cfg.verify(c, call.Got)
		case yes:
			cfg.hold(c, call.Got)
		default:
			c.Call = Call{}
			if call.Newer != 0 && cfg.Flaw == OldNotes {
				c.Note.Void = 0 // it has been told otherwise
			} else if call.Newer != 0 {
				c.Note = Note{}
			}
		}
	case Verifying:
		if yes {
			cfg.hold(c, c.Fence)
			return
		}
		c.Phase, c.Call, c.Due, c.Fence = Standing, Call{}, 1, 0
	case Confirming, Held:
		if !yes { // lost
			cfg.finish(c)
			return
		}
		c.Left = renewed(cfg.belief(), c.Left, call.Left, c.Phase == Confirming)
		c.Phase, c.Call, c.Void = Held, Call{}, call.Void
	default:
		cfg.finish(c)
	}
}

// verify asks for a whole lease of what was granted, before it counts.
func (cfg *Config) verify(c *Client, fence Token) {
	c.Phase, c.Due, c.Fence = Verifying, 0, fence
	cfg.send(c, Renew)
}

// read takes a message of a grant. It returns false if the client does not look at messages now.
func (cfg *Config) read(s *State, c *Client) bool {
	n := c.Note
	switch {
	case n.For == 1 && (c.Phase == Verifying || c.Phase == Standing && c.Call.Kind != None):
		return false
	case n.For == 1 && c.Phase == Standing && n.Lock == c.Lock:
		c.Note = Note{}
		switch {
		case n.Left <= 0 || cfg.Level == Replicas && cfg.Flaw != NoConfirm:
			cfg.verify(c, n.Fence)
		default:
			c.Phase, c.Left, c.Fence, c.Void, c.Due = Confirming, n.Left, n.Fence, n.Void, 0
			cfg.send(c, Renew)
		}
		return true
	}
	c.Note = Note{}
	wanted := n.For == 1 && c.Phase != Idle && c.Phase != Resting
	if !wanted && c.Phase != Dead && c.Stray.Kind == None && s.Strayed < cfg.Strays { // declined
		s.Strayed++
		c.Stray = Stray{Kind: Leave, Past: n.For - 1, Lock: n.Lock, Link: c.Link, Fence: n.Fence}
	}
	return true
}

// repeat makes the client's call once more.
func (cfg *Config) repeat(s *State, c *Client) {
	k := c.Call.Kind
	cfg.abandon(s, c)
	cfg.send(c, k)
}

// stop is what a client does that does not want to wait any more: it leaves. It returns false if
// there is nothing to stop.
func (cfg *Config) stop(s *State, c *Client) bool {
	switch c.Phase {
	case Asking, Standing, Verifying:
		cfg.abandon(s, c)
		cfg.giveUp(c, 0)
	case Releasing, Leaving: // the call goes on behind its back
		if c.Stray.Kind != None || s.Strayed >= cfg.Strays {
			return false
		}
		cfg.abandon(s, c)
		cfg.finish(c)
	default:
		return false
	}
	return true
}

// release gives back the lock.
func (cfg *Config) release(s *State, c *Client) {
	cfg.abandon(s, c)
	c.Phase, c.Left, c.Fence, c.Void = Releasing, 0, 0, 0
	cfg.send(c, Release)
}

// tick lets a tick pass for a client.
func (cfg *Config) tick(s *State, c *Client) {
	if c.Call.Left > 0 {
		c.Call.Left--
	}
	if c.Note.Left > 0 {
		c.Note.Left--
	}
	switch c.Phase {
	case Resting:
		c.Phase = Idle
	case Standing:
		c.Due = 1
	case Confirming, Held:
		over := ends(cfg.belief(), c.Left, c.Phase == Confirming)
		if c.Left--; over { // its own deadline: the work ends
			fence := c.Fence
			cfg.abandon(s, c)
			cfg.giveUp(c, fence)
		}
	}
}

// crash ends a client. Its connection stays open until the server notices.
func (cfg *Config) crash(s *State, c *Client) {
	cfg.abandon(s, c)
	*c = Client{Phase: Dead, Deaf: c.Deaf, Polls: c.Polls, Link: c.Link, Stray: c.Stray}
}
