// SPDX-License-Identifier: Apache-2.0

package supervise

import "syscall"

// attributes make Linux kill the command with the process that watches it. What the command itself
// started lives on, and so does a program that runs as another user by its file's mode, as sudo.
func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGKILL}
}
