/* An echo server that appends what it received to a file before it answers: the least that a server with a log does.
 *
 *     echo PORT FILE
 *
 * All that arrived in one iteration of the loop is appended with one write, as servers do that commit in groups.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 1024, PART = 16 * 1024, BACKLOG = 1024 };

typedef struct {
    int fd;
    size_t start, size;
} Part;

static char received[EVENTS * PART];
static Part parts[EVENTS];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int listen_on(int port) {
    int server = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (server < 0 || setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, BACKLOG) != 0)
        fail("listen");
    return server;
}

static void add(int poll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll_ctl");
}

static void welcome(int poll, int server) {
    int client = accept(server, NULL, NULL), yes = 1;
    if (client < 0)
        fail("accept");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    add(poll, client);
}

static void append(int file, size_t size) {
    for (size_t written = 0; written < size;) {
        ssize_t some = write(file, received + written, size - written);
        if (some < 0)
            fail("write");
        written += (size_t)some;
    }
}

static void answer(const Part *part) {
    for (size_t sent = 0; sent < part->size;) {
        ssize_t some = send(part->fd, received + part->start + sent, part->size - sent, MSG_NOSIGNAL);
        if (some < 0)
            return; // The client is gone; the next receive closes its socket.
        sent += (size_t)some;
    }
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: echo PORT FILE\n");
        return 2;
    }
    int file = open(arguments[2], O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file < 0)
        fail(arguments[2]);
    int server = listen_on(atoi(arguments[1])), poll = epoll_create1(0);
    if (poll < 0)
        fail("epoll_create1");
    add(poll, server);
    struct epoll_event events[EVENTS];
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1), used = 0;
        size_t size = 0;
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int place = 0; place < ready; place++) {
            int fd = events[place].data.fd;
            if (fd == server) {
                welcome(poll, server);
                continue;
            }
            ssize_t got = recv(fd, received + size, PART, 0);
            if (got <= 0) {
                close(fd);
                continue;
            }
            parts[used++] = (Part){fd, size, (size_t)got};
            size += (size_t)got;
        }
        append(file, size);
        for (int place = 0; place < used; place++)
            answer(&parts[place]);
    }
}
