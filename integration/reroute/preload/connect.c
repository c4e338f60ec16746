// SPDX-License-Identifier: Apache-2.0

/*
 * A connect() that goes elsewhere, for LD_PRELOAD. The file "routes" in the
 * working directory has lines of two port numbers: a connection to the first
 * port of 127.0.0.1 goes to the second one. It is read at each connect().
 * Without the file, or a line for the port, the connection goes where it was
 * meant to.
 *
 * It needs only syscall() of the C library, so that one build fits all of
 * them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef SYS_connect
#error this processor has no system call connect()
#endif

long syscall(long number, ...);

static unsigned route(unsigned port) {
	char text[4096];
	long fd = syscall(SYS_openat, AT_FDCWD, "routes", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return port;
	long n = syscall(SYS_read, fd, text, sizeof text);
	syscall(SYS_close, fd);
	unsigned number[2] = {0, 0};
	int which = 0;
	for (long i = 0; i < n; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			number[which] = number[which] * 10 + (text[i] - '0');
		} else if (text[i] == ' ') {
			which = 1;
		} else {
			if (number[0] == port)
				return number[1];
			number[0] = number[1] = which = 0;
		}
	}
	return port;
}

int connect(int fd, const struct sockaddr *to, socklen_t length) {
	struct sockaddr_in other;
	if (length >= sizeof other && to->sa_family == AF_INET) {
		other = *(const struct sockaddr_in *)to;
		if (other.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) {
			other.sin_port = htons(route(ntohs(other.sin_port)));
			return syscall(SYS_connect, fd, &other, sizeof other);
		}
	}
	return syscall(SYS_connect, fd, to, length);
}
