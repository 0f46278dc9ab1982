/*
 * Descriptors that a client sends along over a unix socket (SCM_RIGHTS, unix(7)). Nobody asks for
 * them, and the last close of one can wait for as long as its sender wishes (SO_LINGER, socket(7)):
 * within our loop, whether the message is read or the connection closed with it unread.
 *
 * Linux refuses them from 6.16 on, for sockets that say so. Before, they are taken, told not to
 * linger, and closed.
 */
#ifndef SIDFLAKE_NET_PASSED_FD_H
#define SIDFLAKE_NET_PASSED_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* fd: a unix socket; whoever is accepted by it inherits this. false: this kernel does not know. */
bool passed_fd_refuse(int fd);

/* How many may come at once; 0: the kernel refuses them. For so many there has to be room: those
 * that find none are closed by the kernel, as we receive the message, and may linger. */
unsigned passed_fd_most(void);

/* As recv(2) with MSG_DONTWAIT, of any socket; EPROTO: descriptors came along. */
ssize_t passed_fd_recv(int fd, void *to, size_t room);

/* As close(2) of a connection, of any kind. */
void passed_fd_close(int fd);

#endif
