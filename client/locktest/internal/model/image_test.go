package model

import (
	"fmt"
	"reflect"
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

// is reports whether it is what was wanted. The bound of a line, as it was before, is not written anew
// for a little.
func (im image) is(want image, before int64) bool {
	if d := im.Expires - want.Expires; im.Expires == before && len(im.Line) > 0 && max(d, -d) <= slackMS {
		im.Expires = want.Expires
	}
	return reflect.DeepEqual(im, want)
}

// want is the key that the model says there is after the call.
func (c *concrete) want(cfg *Config) image {
	l := &c.effect.Lock
	if l.Owner == 0 {
		return image{Expires: -2}
	}
	im := image{Owner: ownerName(l.Owner), Until: text(c.after()), Fence: text(c.token(l.Fence)), Expires: c.after()}
	if l.Rem <= 0 && l.waiters() == 0 { // it is there for its token
		im.Until, im.Expires = "0", c.token(l.Fence)/1000+1
	}
	im.Holds = strings.Join(holds(l.Holds), "")
	if c.guard > 0 {
		im.Guard = text(c.guardMS())
	}
	for _, w := range l.Line[:l.waiters()] {
		asked := c.ms - since(w.Age, cfg.Silence)
		im.Line = append(im.Line, fmt.Sprintf("%s %d %s", ownerName(w.Owner), asked, c.channel(w.Owner)))
		im.Expires = c.after() + lineMS
	}
	if c.closed() && l.Rem <= 0 && l.waiters() > 0 {
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
		line, more := unpacked(state, 6), make([]int64, 8)
		if len(state) > 8*6 {
			more = unpacked(state[8*6:], 8)
		}
		all := regexp.MustCompile(`\d:hold\d`).FindAllString(fields["holds"], -1)
		slices.Sort(all)
		if im.Holds = strings.Join(all, ""); len(im.Holds) != len(fields["holds"]) {
			return im, fmt.Errorf("holds %q", fields["holds"])
		}
		if more[1] > 0 {
			im.Guard = text(more[1])
		}
		for n := line[0]; n < line[1]; n++ {
			entry, there := fields["w:"+text(n)]
			if !there || entry[0] == '<' || entry[0] == '>' {
				continue
			}
			rest, size := entry[8*4+4:], int(entry[8*4+2])
			asked, owner := unpacked(entry, 4)[2], rest[size:]
			if fields["at:"+owner] != text(n) {
				return im, fmt.Errorf("at:%s is %q, not %d", owner, fields["at:"+owner], n)
			}
			known = append(known, "at:"+owner)
			im.Line = append(im.Line, fmt.Sprintf("%s %d %s", owner, asked, rest[:size]))
		}
		if int(line[2]) != len(im.Line) || text(line[4]) != im.Fence || int(more[0]) != len(all) || len(im.Line) > 0 && line[5] != expires {
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
