// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package supervise

import "syscall"

// attributes cannot make the system kill the command with the process that watches it.
func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group}
}
