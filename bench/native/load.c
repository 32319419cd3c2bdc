/* The hot loop of the load generator: sends prepared requests on many connections, and counts and keeps the answers.
 *
 * Python prepares the requests of a phase before it and checks the answers after it (bench/client/load.py).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* How the end of an answer is found; bench/client/dialect.py has the same numbers. */
enum framing { IPROTO, BEANSTALKD, REDIS };

enum result { DONE, NO_ANSWER, CLOSED, MALFORMED, NO_MEMORY, FAILED };

enum {
    LENGTH_SIZE = 5,
    LENGTH_MARK = 0xce,
    EVENTS = 1024,
    LEAST_ROOM = 32 * 1024,
    SEND_AT = 4, /* More requests are sent when one in so many of those in flight is answered. */
};

/* Requests that were sent together. */
typedef struct {
    double at;
    uint64_t count;
} Burst;

typedef struct {
    int fd;
    int is_waiting_to_send;
    const char *requests;
    const uint64_t *bounds; /* the offset of each request, and the end of the last one */
    uint64_t count, sent, answered;
    uint64_t given; /* bytes that the system has accepted */
    char *answers;
    size_t size, capacity, scanned;
    Burst *bursts; /* a ring of `in_flight` places */
    uint64_t first_burst, end_burst;
} Connection;

typedef struct {
    enum framing framing;
    uint64_t in_flight;
    int poll;
    int connection_count;
    Connection *connections;
    double *seconds; /* latencies, and the numbers of answers that have them */
    uint64_t *counts;
    size_t latency_count, latency_capacity;
} Load;

static double clock_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t count_frames(const unsigned char *data, size_t size, size_t *end) {
    uint64_t count = 0;
    size_t at = 0;
    while (size - at >= LENGTH_SIZE) {
        const unsigned char *head = data + at;
        if (head[0] != LENGTH_MARK) {
            *end = SIZE_MAX;
            return 0;
        }
        size_t length = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
        if (size - at - LENGTH_SIZE < length)
            break;
        at += LENGTH_SIZE + length;
        count++;
    }
    *end = at;
    return count;
}

/* The size of the data that follows a line, with its line break; 0 if none does. */
static size_t announced(enum framing framing, const char *line, const char *end) {
    static const char reserved[] = "RESERVED ";
    const char *number = NULL;
    if (framing == REDIS) {
        if (line[0] == '$' && line[1] != '-')
            number = line + 1;
    } else if ((size_t)(end - line) > sizeof reserved && memcmp(line, reserved, sizeof reserved - 1) == 0) {
        number = memrchr(line, ' ', (size_t)(end - line));
        number++;
    }
    if (number == NULL)
        return 0;
    size_t size = 0;
    for (; number < end && *number >= '0' && *number <= '9'; number++)
        size = size * 10 + (size_t)(*number - '0');
    return size + 2;
}

static uint64_t count_lines(enum framing framing, const char *data, size_t size, size_t *end) {
    uint64_t count = 0;
    size_t at = 0;
    while (at < size) {
        const char *line = data + at, *feed = memchr(line, '\n', size - at);
        if (feed == NULL)
            break;
        if (feed == line || feed[-1] != '\r') {
            *end = SIZE_MAX;
            return 0;
        }
        size_t whole = (size_t)(feed + 1 - line) + announced(framing, line, feed - 1);
        if (size - at < whole)
            break;
        at += whole;
        count++;
    }
    *end = at;
    return count;
}

/* Count complete answers.
 *
 * end: set to the end of the last one; to SIZE_MAX if the data is malformed.
 */
uint64_t count_answers(int framing, const char *data, size_t size, size_t *end) {
    return framing == IPROTO ? count_frames((const unsigned char *)data, size, end)
                             : count_lines((enum framing)framing, data, size, end);
}

void load_free(Load *load) {
    for (int number = 0; number < load->connection_count; number++) {
        free(load->connections[number].answers);
        free(load->connections[number].bursts);
    }
    if (load->poll >= 0)
        close(load->poll);
    free(load->connections);
    free(load->seconds);
    free(load->counts);
    free(load);
}

/* Make a load of connected sockets, which the caller closes after load_free().
 *
 * Returns NULL and sets errno if the system refuses.
 */
Load *load_new(int framing, const int *sockets, int count, uint64_t in_flight) {
    Load *load = calloc(1, sizeof *load);
    if (load == NULL)
        return NULL;
    load->framing = (enum framing)framing;
    load->in_flight = in_flight;
    load->poll = epoll_create1(EPOLL_CLOEXEC);
    load->connections = calloc((size_t)count, sizeof *load->connections);
    int is_good = load->poll >= 0 && load->connections != NULL;
    for (int number = 0; is_good && number < count; number++) {
        Connection *connection = &load->connections[number];
        load->connection_count++;
        connection->fd = sockets[number];
        connection->bursts = calloc(in_flight, sizeof *connection->bursts);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)number};
        is_good = connection->bursts != NULL && epoll_ctl(load->poll, EPOLL_CTL_ADD, sockets[number], &event) == 0;
    }
    if (is_good)
        return load;
    int error = errno;
    load_free(load);
    errno = error;
    return NULL;
}

/* Hand bytes of sent requests to the system, and wait until it accepts more if it did not accept all. */
static enum result give(Load *load, Connection *connection) {
    uint64_t end = connection->bounds[connection->sent];
    while (connection->given < end) {
        // A blocking send could wait forever: the server may stop reading until its answers are read.
        ssize_t taken = send(connection->fd, connection->requests + connection->given, end - connection->given,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                break;
            return errno == EPIPE || errno == ECONNRESET ? CLOSED : FAILED;
        }
        connection->given += (uint64_t)taken;
    }
    int is_waiting = connection->given < end;
    if (is_waiting != connection->is_waiting_to_send) {
        struct epoll_event event = {
            .events = EPOLLIN | (is_waiting ? EPOLLOUT : 0),
            .data.u32 = (uint32_t)(connection - load->connections),
        };
        if (epoll_ctl(load->poll, EPOLL_CTL_MOD, connection->fd, &event) != 0)
            return FAILED;
        connection->is_waiting_to_send = is_waiting;
    }
    return DONE;
}

static enum result send_more(Load *load, Connection *connection, double now) {
    uint64_t room = load->in_flight - (connection->sent - connection->answered);
    uint64_t left = connection->count - connection->sent;
    uint64_t more = room < left ? room : left;
    if (more == 0)
        return DONE;
    connection->bursts[connection->end_burst++ % load->in_flight] = (Burst){now, more};
    connection->sent += more;
    return give(load, connection);
}

/* Note the latencies of answers, in the order of their requests. */
static enum result note(Load *load, Connection *connection, uint64_t answered, double now) {
    while (answered > 0) {
        if (connection->first_burst == connection->end_burst)
            return MALFORMED;
        Burst *burst = &connection->bursts[connection->first_burst % load->in_flight];
        uint64_t count = burst->count < answered ? burst->count : answered;
        if (load->latency_count == load->latency_capacity) {
            size_t capacity = load->latency_capacity ? 2 * load->latency_capacity : 4096;
            double *seconds = realloc(load->seconds, capacity * sizeof *seconds);
            if (seconds == NULL)
                return NO_MEMORY;
            load->seconds = seconds;
            uint64_t *counts = realloc(load->counts, capacity * sizeof *counts);
            if (counts == NULL)
                return NO_MEMORY;
            load->counts = counts;
            load->latency_capacity = capacity;
        }
        load->seconds[load->latency_count] = now - burst->at;
        load->counts[load->latency_count++] = count;
        burst->count -= count;
        if (burst->count == 0)
            connection->first_burst++;
        answered -= count;
    }
    return DONE;
}

static enum result receive(Load *load, Connection *connection, uint64_t *left) {
    if (connection->capacity - connection->size < LEAST_ROOM) {
        size_t capacity = 2 * connection->capacity + 2 * LEAST_ROOM;
        char *answers = realloc(connection->answers, capacity);
        if (answers == NULL)
            return NO_MEMORY;
        connection->answers = answers;
        connection->capacity = capacity;
    }
    ssize_t got = recv(connection->fd, connection->answers + connection->size,
                       connection->capacity - connection->size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return DONE;
    if (got <= 0)
        return got == 0 || errno == ECONNRESET ? CLOSED : FAILED;
    double now = clock_of(CLOCK_MONOTONIC);
    connection->size += (size_t)got;
    size_t end;
    uint64_t answered = count_answers(load->framing, connection->answers + connection->scanned,
                                      connection->size - connection->scanned, &end);
    if (end == SIZE_MAX)
        return MALFORMED;
    connection->scanned += end;
    if (answered == 0)
        return DONE;
    enum result noted = note(load, connection, answered, now);
    if (noted != DONE)
        return noted;
    connection->answered += answered;
    *left -= answered;
    uint64_t enough = load->in_flight / SEND_AT;
    uint64_t room = load->in_flight - (connection->sent - connection->answered);
    return room >= enough ? send_more(load, connection, now) : DONE;
}

/* Send all requests and receive their answers.
 *
 * requests, bounds, counts: of each connection.
 * timeout_ms: of each wait for any answer.
 * seconds, cpu_seconds: set to the duration, and to this thread's CPU time.
 * left: set to the number of requests without an answer.
 *
 * Returns what happened; after FAILED, errno has the reason.
 */
int load_run(Load *load, const char *const *requests, const uint64_t *const *bounds, const uint64_t *counts,
             int timeout_ms, double *seconds, double *cpu_seconds, uint64_t *left) {
    enum result result = DONE;
    uint64_t remaining = 0;
    load->latency_count = 0;
    for (int number = 0; number < load->connection_count; number++) {
        Connection *connection = &load->connections[number];
        connection->requests = requests[number];
        connection->bounds = bounds[number];
        connection->count = counts[number];
        connection->sent = connection->answered = connection->given = 0;
        connection->size = connection->scanned = 0;
        connection->first_burst = connection->end_burst = 0;
        remaining += counts[number];
    }
    double cpu = clock_of(CLOCK_THREAD_CPUTIME_ID), begun = clock_of(CLOCK_MONOTONIC);
    for (int number = 0; result == DONE && number < load->connection_count; number++)
        result = send_more(load, &load->connections[number], clock_of(CLOCK_MONOTONIC));
    struct epoll_event events[EVENTS];
    while (result == DONE && remaining > 0) {
        int count = epoll_wait(load->poll, events, EVENTS, timeout_ms);
        if (count < 0 && errno != EINTR)
            result = FAILED;
        if (count == 0)
            result = NO_ANSWER;
        for (int place = 0; result == DONE && place < count; place++) {
            Connection *connection = &load->connections[events[place].data.u32];
            if (events[place].events & EPOLLOUT)
                result = give(load, connection);
            if (result == DONE && events[place].events & ~(uint32_t)EPOLLOUT)
                result = receive(load, connection, &remaining);
        }
    }
    *seconds = clock_of(CLOCK_MONOTONIC) - begun;
    *cpu_seconds = clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    *left = remaining;
    return result;
}

/* The answers of a connection since the beginning of the last run. */
const char *load_answers(const Load *load, int number, size_t *size) {
    *size = load->connections[number].size;
    return load->connections[number].answers;
}

/* The latencies of the last run, and the numbers of answers that have them. */
size_t load_latencies(const Load *load, const double **seconds, const uint64_t **counts) {
    *seconds = load->seconds;
    *counts = load->counts;
    return load->latency_count;
}
