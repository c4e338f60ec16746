package model

func (p *polled) waits(s *Poll) bool               { return false }
func (p *polled) urgent(d Deed) bool               { return false }
func (p *polled) orderly(d Deed, urgent bool) bool { return false }
