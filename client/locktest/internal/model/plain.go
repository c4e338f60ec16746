package model

// plain is the lock at one server, or at a primary with its replica, as it is explored.
type plain struct {
	*Config
	saw Witness
}

// Explore visits all states that the configuration can reach, breadth first. It stops at the first
// violation that is not admitted.
func Explore(cfg Config, saw Witness) (*Report[Action], error) {
	return explore[State, Action](plain{&cfg, saw})
}

func (cfg *Config) first() State {
	var s State
	for i := range cfg.Pollers {
		s.Clients[cfg.Clients-1-i].Polls = 1
	}
	s.Clients[0].More = cfg.More
	s.Main.Age = cfg.Guard
	if cfg.Coarse {
		s.Now = 1
	}
	cfg.normalize(&s)
	return s
}

// successors returns the states that follow one, in their normal form.
func (p plain) successors(s *State, out []successor[State, Action]) []successor[State, Action] {
	for m := range moves {
		if m == lastOrderly {
			continue
		}
		clients := p.Clients
		if m.alone() {
			clients = 1
		}
		for i := range clients {
			a := Action{m, uint8(i)}
			if !p.may(s, a) {
				continue
			}
			out = append(out, successor[State, Action]{state: *s, action: a})
			x := &out[len(out)-1]
			ok, bad := p.apply(&x.state, x.action, p.saw)
			if !ok {
				out = out[:len(out)-1]
				continue
			}
			x.bad = bad
			p.normalize(&x.state)
		}
	}
	return out
}

func (cfg *Config) waits(s *State) bool { return s.Clients[0].Waits() }

func (cfg *Config) urgent(_ *State, a Action) bool { return a.Move.urgent() }

func (cfg *Config) orderly(_ *State, a Action, urgent bool) bool { return a.Move.orderly(urgent) }
