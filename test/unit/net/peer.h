/* The other end in tests of net and http: a plain socket in the same process, and turning the loop until something is
 * so. Nothing here sleeps; a wait that lasts 20 s of real time is a failure. */
#ifndef TEST_NET_PEER_H
#define TEST_NET_PEER_H

#include "support.h"

#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Turn the loop until the condition holds. */
#define turn_until(loop, condition)                                                                                    \
    do {                                                                                                               \
        int64_t turn_limit = time_mono_ns() + 20 * NS_PER_S;                                                           \
        while (!(condition) && time_mono_ns() < turn_limit)                                                            \
            (void)net_loop_turn(loop);                                                                                 \
        assert_true(condition);                                                                                        \
    } while (0)

/* A few turns: what was going to happen has happened. */
static inline void turn_some(struct net_loop *loop)
{
    for (int i = 0; i < 20; i++)
        (void)net_loop_turn(loop);
}

/* The clock was moved: it is so within a few turns. turn_until could wait until real time has passed the deadline. */
#define turn_now(loop, condition)                                                                                      \
    do {                                                                                                               \
        turn_some(loop);                                                                                               \
        assert_true(condition);                                                                                        \
    } while (0)

/* A non-blocking socket connected to 127.0.0.1:port. */
static inline int peer_connect(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void peer_send(int fd, const void *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static inline void peer_say(int fd, const char *text)
{
    peer_send(fd, text, strlen(text));
}

/* Append what is there. Returns false once the stream has ended (or was reset). */
static inline bool peer_read(int fd, struct buf *into)
{
    for (;;) {
        char bytes[65536];
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n > 0)
            (void)buf_append(into, bytes, (size_t)n);
        else
            return n < 0 && errno == EAGAIN;
    }
}

/* Turn the loop until the stream has ended; everything read is in `into`. */
static inline void peer_read_all(struct net_loop *loop, int fd, struct buf *into)
{
    turn_until(loop, !peer_read(fd, into));
}

/* Turn the loop until `text` has come. */
static inline void peer_expect(struct net_loop *loop, int fd, struct buf *into, const char *text)
{
    turn_until(loop, ((void)peer_read(fd, into), strstr(buf_cstr(into), text) != NULL));
}

/* The value of a counter or gauge with one label (or none: label_value NULL), -1 when there is no such series. */
struct peer_metric {
    const char *name, *label_value;
    double value;
};
static inline void peer_metric_family(void *context, const struct metric_desc *desc)
{
    (void)context;
    (void)desc;
}
static inline void peer_metric_sample(void *context, const struct metric_sample *sample)
{
    struct peer_metric *wanted = (struct peer_metric *)context;
    if (strcmp(sample->desc->name, wanted->name) == 0 &&
        (!wanted->label_value || strcmp(sample->label_values[0], wanted->label_value) == 0))
        wanted->value = sample->value;
}
static inline double metric_of(const struct metrics *metrics, const char *name, const char *label_value)
{
    struct peer_metric wanted = {name, label_value, -1};
    struct metric_visitor visitor = {peer_metric_family, peer_metric_sample, &wanted};
    metrics_visit(metrics, &visitor);
    return wanted.value;
}
static inline double limit_hits(const struct metrics *metrics, enum net_limit limit)
{
    return metric_of(metrics, "keda_gpu_scaler_limit_hits", net_limit_name(limit));
}

#endif
