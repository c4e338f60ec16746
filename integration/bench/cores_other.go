//go:build !linux

package main

import "errors"

// move cannot be done here.
func move(string, string) error { return errors.ErrUnsupported }

func pin(int, int) error { return errors.ErrUnsupported }
