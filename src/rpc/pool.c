/* What thousands of clients of one program share, so that each is small: nghttp2's callbacks, and the memory of its
 * frame buffer. That has 16 kB, of which a client uses some hundred bytes for a moment and then none for a long time;
 * on the common heap all of it would be resident sooner or later. Here it lies on pages of its own, which go back to
 * the system whenever nothing waits to be sent. */
#include "rpc/client.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAME_BYTES_MIN = 16384, FRAME_BYTES_MAX = 18432 }; /* nghttp2 asks for 16394; nothing else is that large */

struct rpc_pool {
    nghttp2_session_callbacks *callbacks;
    char *frames; /* n_frames slots, never used pages are not there; NULL: the system gives no room */
    size_t frame_bytes, n_frames, n_touched, n_free, n_refs;
    uint32_t *free; /* slots below n_touched that are not in use */
};

struct rpc_pool *rpc_pool_new(size_t max_clients)
{
    struct rpc_pool *pool = mem_new(struct rpc_pool);
    long page = sysconf(_SC_PAGESIZE);
    size_t page_bytes = page > 0 ? (size_t)page : 4096;
    pool->n_refs = 1;
    pool->callbacks = rpc_client_callbacks_new();
    pool->frame_bytes = (FRAME_BYTES_MAX + page_bytes - 1) / page_bytes * page_bytes;
    pool->n_frames = max_clients;
    void *frames = mmap(NULL, pool->n_frames * pool->frame_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pool->frames = frames == MAP_FAILED ? NULL : (char *)frames;
    pool->free = (uint32_t *)mem_new_array(max_clients, sizeof(*pool->free));
    return pool;
}

struct rpc_pool *rpc_pool_ref(struct rpc_pool *pool)
{
    pool->n_refs++;
    return pool;
}

void rpc_pool_free(struct rpc_pool *pool)
{
    if (!pool || --pool->n_refs > 0)
        return;
    assert(pool->n_free == pool->n_touched);
    if (pool->frames)
        (void)munmap(pool->frames, pool->n_frames * pool->frame_bytes);
    nghttp2_session_callbacks_del(pool->callbacks);
    free(pool->free);
    free(pool);
}

const nghttp2_session_callbacks *rpc_pool_callbacks(const struct rpc_pool *pool)
{
    return pool->callbacks;
}

/* ---- frame buffers ---- */

static void *take_frame(struct rpc_pool *pool)
{
    if (pool->n_free > 0)
        return pool->frames + pool->free[--pool->n_free] * pool->frame_bytes;
    if (!pool->frames || pool->n_touched == pool->n_frames)
        return NULL;
    return pool->frames + pool->n_touched++ * pool->frame_bytes;
}

void rpc_pool_release(struct rpc_pool_share *share)
{
    if (share->frame && share->is_touched)
        (void)madvise(share->frame, share->pool->frame_bytes, MADV_DONTNEED);
    share->is_touched = false;
}

static void give_frame(struct rpc_pool_share *share)
{
    struct rpc_pool *pool = share->pool;
    share->is_touched = true;
    rpc_pool_release(share);
    pool->free[pool->n_free++] = (uint32_t)((size_t)((char *)share->frame - pool->frames) / pool->frame_bytes);
    share->frame = NULL;
}

/* ---- as nghttp2 asks for memory ---- */

static void *pool_realloc(void *old, size_t size, void *context)
{
    struct rpc_pool_share *share = (struct rpc_pool_share *)context;
    bool is_frame = size >= FRAME_BYTES_MIN && size <= FRAME_BYTES_MAX;
    if (!old && is_frame && !share->frame && (share->frame = take_frame(share->pool)) != NULL)
        return share->frame;
    if (!old || old != share->frame)
        return mem_resize(old, size, 1);
    if (size <= share->pool->frame_bytes)
        return old;
    void *moved = mem_resize(NULL, size, 1);
    memcpy(moved, old, share->pool->frame_bytes);
    give_frame(share);
    return moved;
}

static void *pool_malloc(size_t size, void *context)
{
    return pool_realloc(NULL, size, context);
}

static void *pool_calloc(size_t n, size_t size, void *context)
{
    (void)context;
    return mem_new_array(n, size);
}

static void pool_free(void *old, void *context)
{
    struct rpc_pool_share *share = (struct rpc_pool_share *)context;
    if (old && old == share->frame)
        give_frame(share);
    else
        free(old);
}

nghttp2_mem rpc_pool_mem(struct rpc_pool_share *share)
{
    return (nghttp2_mem){.mem_user_data = share,
                         .malloc = pool_malloc,
                         .free = pool_free,
                         .calloc = pool_calloc,
                         .realloc = pool_realloc};
}
