/* Elements by places that are data. Places below 0 count from the end. */

typedef struct {
    int32_t batch, outer, size, inner; /* inner: bytes that go as one */
    int32_t count; /* of places, for each of the batch */
} micro_gathering;

static int32_t micro_place32(const int32_t *places, int32_t i, int32_t size)
{
    const int32_t at = places[i] < 0 ? places[i] + size : places[i];
    return at < 0 || at >= size ? 0 : at;
}

static int32_t micro_place64(const int64_t *places, int32_t i, int32_t size)
{
    const int64_t at = places[i] < 0 ? places[i] + size : places[i];
    return at < 0 || at >= size ? 0 : (int32_t)at;
}

/* y[b, o, k] = x[b, o, places[b, k]] */
void micro_gather_i32(const micro_gathering *p, const void *x, const int32_t *places, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    int32_t b, o, k;
    for (b = 0; b < p->batch; b++, places += p->count)
        for (o = 0; o < p->outer; o++, from += p->size * p->inner)
            for (k = 0; k < p->count; k++, to += p->inner) memcpy(to, from + micro_place32(places, k, p->size) * p->inner, (size_t)p->inner);
}

void micro_gather_i64(const micro_gathering *p, const void *x, const int64_t *places, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    int32_t b, o, k;
    for (b = 0; b < p->batch; b++, places += p->count)
        for (o = 0; o < p->outer; o++, from += p->size * p->inner)
            for (k = 0; k < p->count; k++, to += p->inner) memcpy(to, from + micro_place64(places, k, p->size) * p->inner, (size_t)p->inner);
}
