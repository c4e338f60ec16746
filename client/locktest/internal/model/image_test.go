package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// image is a key in words that can be compared.
type image struct {
	Owner, Until, Fence, Guard string
	Expires                    int64
	Holds                      string   // sorted
	Line                       []string // 'owner, asked, channel'
}

// want is the key that the model says there is after the call.
func (c *concrete) want(cfg *Config) image {
	l := &c.effect.Lock
	if l.Owner == 0 {
		return image{Expires: -2}
	}
	im := image{Owner: ownerName(l.Owner), Until: text(c.after()), Fence: text(c.token(l.Fence)), Expires: c.after() + 1}
	im.Holds = strings.Join(holds(l.Holds), "")
	if c.guard > 0 {
		im.Guard = text(c.guardMS())
	}
	for _, w := range l.Line[:l.waiters()] {
		asked := c.ms - since(w.Age, cfg.Silence)
		im.Line = append(im.Line, fmt.Sprintf("%s %d %s", ownerName(w.Owner), asked, c.channel(w.Owner)))
		im.Expires = c.after() + lineMS
	}
	if c.closed() && l.Rem <= 0 {
		im.Until, im.Expires = "0", c.ms+lineMS+tickMS*int64(l.Exp-cfg.Line)
	}
	return im
}

// look reads a key back. It checks what the model has no words for.
func (s *server) look() (image, error) {
	expires, _ := s.node.Do("PEXPIRETIME", tiedKey).(int64)
	fields := s.node.Hash(tiedKey)
	if fields == nil {
		return image{Expires: expires}, nil
	}
	im := image{Owner: fields["owner"], Until: fields["until"], Fence: fields["fence"], Expires: expires}
	known := []string{"owner", "until", "fence", "channel", "state", "holds"}
	if state := fields["state"]; state != "" {
		var head, tail, count, turn, top, holds int64
		if _, err := fmt.Sscan(state, &head, &tail, &count, &turn, &top, &holds); err != nil {
			return im, fmt.Errorf("state %q: %w", state, err)
		}
		all := regexp.MustCompile(`\d:hold\d`).FindAllString(fields["holds"], -1)
		slices.Sort(all)
		if im.Holds = strings.Join(all, ""); len(im.Holds) != len(fields["holds"]) {
			return im, fmt.Errorf("holds %q", fields["holds"])
		}
		if words := strings.Split(state, " "); len(words) > 6 {
			im.Guard = strings.Join(words[6:], " ")
		}
		for n := head; n < tail; n++ {
			entry, there := fields["w:"+text(n)]
			if !there || entry[0] == '<' || entry[0] == '>' {
				continue
			}
			var ttl, block, asked, held, size int
			if _, err := fmt.Sscan(entry, &ttl, &block, &asked, &held, &size); err != nil {
				return im, fmt.Errorf("w:%d %q: %w", n, entry, err)
			}
			rest := strings.SplitN(entry, " ", 6)[5]
			owner := rest[size:]
			if fields["at:"+owner] != text(n) {
				return im, fmt.Errorf("at:%s is %q, not %d", owner, fields["at:"+owner], n)
			}
			known = append(known, "at:"+owner)
			im.Line = append(im.Line, fmt.Sprintf("%s %d %s", owner, asked, rest[:size]))
		}
		if int(count) != len(im.Line) || text(top) != im.Fence || int(holds) != len(all) {
			return im, fmt.Errorf("state %q with %d waiters and the token %s", state, len(im.Line), im.Fence)
		}
	}
	for name := range fields {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "w:") {
			return im, fmt.Errorf("an unknown field %q", name)
		}
	}
	return im, nil
}
