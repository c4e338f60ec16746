//go:build !linux

package main

import "errors"

func part() (*int, error) { return nil, errors.New("only Linux can part them") }

func house(int, int) error { return nil }
