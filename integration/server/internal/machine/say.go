package machine

import (
	"fmt"
	"os"
	"sync"
)

// Say writes a line about the choice of the server to standard error.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "server: "+format+"\n", args...)
}

var said sync.Map

// SayOnce says a line that this process has not said yet.
func SayOnce(line string) {
	if _, again := said.LoadOrStore(line, true); !again {
		Say("%s", line)
	}
}
