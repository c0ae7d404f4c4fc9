/* Elements that go to other places. */

typedef struct {
    int32_t size[8]; /* of the axes; those behind the last one are 1 */
    int32_t from[8], to[8]; /* bytes from one place to the next */
    int32_t begin_from, begin_to, bytes; /* bytes: that lie together and go as one */
} micro_move;

/* Copies along up to 8 axes; what goes as one may overlap its place before. */
void micro_copy(const micro_move *p, const void *x, void *y)
{
    int32_t at[8] = {0, 0, 0, 0, 0, 0, 0, 0}, d;
    const uint8_t *from = (const uint8_t *)x + p->begin_from;
    uint8_t *to = (uint8_t *)y + p->begin_to;
    for (;;) {
        memmove(to, from, (size_t)p->bytes);
        for (d = 7; d >= 0; d--) {
            from += p->from[d];
            to += p->to[d];
            if (++at[d] < p->size[d]) break;
            from -= p->from[d] * p->size[d];
            to -= p->to[d] * p->size[d];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

typedef struct {
    int32_t count, bytes;
} micro_filling;

/* One element, `bytes` long, over and over. */
void micro_fill(const micro_filling *p, const void *x, void *y)
{
    int32_t i;
    for (i = 0; i < p->count; i++) memcpy((uint8_t *)y + i * p->bytes, x, (size_t)p->bytes);
}
